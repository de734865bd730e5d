/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the state of the halves of a QP, requester and responder. */
#ifndef QHCA_ENGINE_QP_HALF_H
#define QHCA_ENGINE_QP_HALF_H

#include "../core/core.h"
#include "../memory/memory.h"

#define VHCA_MAX_RD_ATOMIC  16
/* Send WQEs a QP may have started and not completed. */
#define VHCA_INFLIGHT       64u
/*
 * Responses waiting for their turn: to READs and atomics, new ones and replays,
 * and at most one ACK or NAK behind each. A power of two: indices run free.
 */
#define VHCA_RESPONSES      64u

/* struct vhca_requester - the sending half of a QP; IBTA 9.9.2 */
struct vhca_requester {
    struct vhca_swr *swr;       /* VHCA_INFLIGHT, or NULL: none is started */
    uint32_t swr_base;          /* index of the WQE in swr[0] */
    uint32_t next_psn;          /* first PSN of the next WQE to be started */
    uint32_t snd_psn;           /* PSN of the next packet to send */
    uint32_t max_psn;           /* one past the highest PSN ever sent */
    uint32_t una_psn;           /* oldest PSN not acknowledged */
    uint32_t read_psns;         /* PSNs of READs, from una_psn to snd_psn */
    uint32_t snd_wqe;           /* WQE that owns snd_psn */
    uint32_t unasked;           /* packets since the last AckReq */
    uint8_t rd_atomic;          /* outstanding WRs that take a resource */
    uint8_t retries, rnr_retries;   /* left */
    bool rewound;               /* has gone back to this una_psn already; */
    uint32_t stale_from, stale_to;  /* what answers PSNs between these may */
                                    /* have been on its way then */
    uint8_t graces;             /* timeouts in a row that did not count */
    bool rnr_wait;
    bool page_wait;             /* the WR at the cursor waits for a page */
    bool stopped;               /* a WR has failed: start no other */
    bool flushing;              /* left SQE before all WRs were flushed, */
    uint32_t flush_to;          /* which end here */
    struct vhca_timer timer;    /* ACK timer, or the RNR or page wait */
};

/* A request that can be replayed: READ, atomic, FLUSH or ATOMIC WRITE. */
struct vhca_rd_resource {
    bool valid;
    uint8_t op;                 /* enum roce_op */
    uint32_t psn, num_psn;
    uint64_t va;
    uint32_t rkey, length;
    uint32_t srqn;              /* XRC: the SRQ it named */
    uint64_t orig;              /* atomic: the value found */
};

enum vhca_response_kind {
    VHCA_RESP_ACK,              /* or NAK, by the syndrome */
    VHCA_RESP_READ,             /* of no bytes for FLUSH and ATOMIC WRITE */
    VHCA_RESP_ATOMIC,
};

/* struct vhca_response - a queued response; responses leave in order (D-013) */
struct vhca_response {
    uint8_t kind;               /* enum vhca_response_kind */
    uint8_t syndrome;
    bool replay;                /* to a duplicate: frees no resource */
    bool early;                 /* READ: some of its data were read early */
    uint32_t psn;               /* of its next packet */
    uint32_t msn;
    uint64_t va, orig;
    uint32_t rkey, srqn;        /* srqn: XRC */
    uint32_t length, done;      /* READ: bytes in all, bytes sent */
                                /* NAK: length: PSNs dropped, from psn on */
};

struct vhca_srq;

/*
 * struct vhca_rwr - the receive WR in use, the only copy of its WQE
 *
 * It belongs to the message in progress, a SEND. A request that has taken it
 * and waits for a page comes again, and finds it @kept; if another request
 * comes in its place, the WR goes back to where it was taken from.
 */
struct vhca_rwr {
    bool taken;
    bool bad;                   /* the WQE breaks a rule */
    bool kept;                  /* for a request that has to come again */
    uint32_t index;             /* of the WQE */
    uint64_t wr_id;
    uint64_t length;            /* of all segments */
    struct vhca_srq *srq;       /* that it was taken from; NULL: the QP's RQ */
    unsigned num_seg;
    struct vhca_seg seg[QHCA_MAX_RECV_SGE];
};

/* struct vhca_responder - the receiving half of a QP; IBTA 9.9.3 */
struct vhca_responder {
    uint32_t epsn, msn;
    uint8_t op;                 /* enum roce_op of the message in progress */
    bool nak_sent;              /* NAK or RNR NAK out for this ePSN */
    bool failing;               /* a fatal NAK is queued: ignore requests */
    uint8_t fail_event;         /* event to raise when the NAK has been sent */
    bool comm_est;              /* COMM_EST has been raised since RTR */
    bool ack_owed;              /* an ACK up to ePSN, until the turn ends */
    bool page_wait;             /* the first response waits for a page, */
    bool page_denied;           /* or will not get it */
    bool early_wait;            /* it waits before its data are read */
    uint32_t q_head, q_tail;    /* of queue */
    uint32_t rd_pending;        /* entries of res not yet answered */
    uint32_t res_last;          /* latest entry of res */
    uint64_t offset;            /* bytes of the message so far */
    uint64_t va;                /* WRITE: address of the RETH */
    uint32_t rkey, dma_len;
    struct vhca_rwr rwr;
    struct vhca_rd_resource res[VHCA_MAX_RD_ATOMIC];
    struct vhca_response queue[VHCA_RESPONSES];
};

#endif /* QHCA_ENGINE_QP_HALF_H */
