/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the state of the halves of a QP, requester and responder. */
#ifndef QHCA_ENGINE_QP_HALF_H
#define QHCA_ENGINE_QP_HALF_H

#include "../core/core.h"
#include "../memory/memory.h"

#define QHCA_MAX_RD_ATOMIC  16
/* Send WQEs a QP may have started and not completed. */
#define QHCA_INFLIGHT       64u
/*
 * Answers waiting for their turn: READs and atomics, new ones and replays, at
 * most one ACK or NAK behind each. A power of two: indices run free.
 */
#define QHCA_RESPONSES      64u

/* struct vhca_requester - the sending half of a QP; IBTA 9.9.2 */
struct vhca_requester {
    struct vhca_swr *swr;       /* QHCA_INFLIGHT, or NULL: none is started */
    uint32_t swr_base;          /* index of the WQE whose place is the first */
    uint32_t next_psn;          /* of the next WQE to be started */
    uint32_t snd_psn;           /* of the next packet to send */
    uint32_t max_psn;           /* one past the highest PSN ever sent */
    uint32_t una_psn;           /* oldest PSN not acknowledged */
    uint32_t read_psns;         /* from una_psn to snd_psn, of READs' answers */
    uint32_t snd_wqe;           /* WQE that owns snd_psn */
    uint32_t unasked;           /* packets since the last AckReq */
    uint8_t rd_atomic;          /* WRs outstanding that take a resource */
    uint8_t retries, rnr_retries;   /* left */
    bool rewound;               /* went back for this una_psn already */
    bool grace;                 /* a timeout has been let pass */
    bool rnr_wait;
    bool stopped;               /* a WR has failed: start no other */
    bool flushing;              /* left SQE with WRs before flush_to in it */
    uint32_t flush_to;
    struct vhca_timer timer;    /* ACK timer, or the RNR wait */
};

/* A request the responder can replay: READ, atomic, FLUSH, ATOMIC WRITE. */
struct vhca_rd_resource {
    bool valid;
    uint8_t op;                 /* enum roce_op */
    uint32_t psn, num_psn;      /* of the request */
    uint64_t va;
    uint32_t rkey, length;
    uint32_t srqn;              /* XRC: that it named */
    uint64_t orig;              /* atomic: the value found */
};

enum vhca_response_kind {
    QHCA_RESP_ACK,              /* or NAK, by the syndrome */
    QHCA_RESP_READ,             /* of no bytes for FLUSH and ATOMIC WRITE */
    QHCA_RESP_ATOMIC,
};

/* struct vhca_response - an answer in line; answers leave in order (D-013) */
struct vhca_response {
    uint8_t kind;               /* enum vhca_response_kind */
    uint8_t syndrome;
    bool replay;                /* answers a duplicate: frees no resource */
    uint32_t psn;               /* of the next packet of it */
    uint32_t msn;
    uint64_t va, orig;
    uint32_t rkey, srqn;        /* srqn: XRC */
    uint32_t length, done;      /* READ: bytes in all, bytes sent */
};

/* struct vhca_rwr - the receive work request in use, the one copy of its WQE */
struct vhca_rwr {
    bool taken;
    bool bad;                   /* the WQE breaks a rule */
    uint32_t index;             /* of the WQE */
    uint64_t wr_id;
    uint64_t length;            /* room in all segments */
    unsigned num_seg;
    struct vhca_seg seg[QHCA_MAX_RECV_SGE];
};

/* struct vhca_responder - the receiving half of a QP; IBTA 9.9.3 */
struct vhca_responder {
    uint32_t epsn, msn;
    uint8_t op;                 /* enum roce_op of the message in progress */
    bool nak_sent;              /* NAK or RNR NAK out for this ePSN */
    bool failing;               /* fatal NAK is in line: no more requests */
    uint8_t fail_event;         /* to raise when it has left */
    bool comm_est;              /* event raised since RTR */
    bool ack_owed;              /* for all before ePSN; not beyond a turn */
    uint32_t q_head, q_tail;    /* of queue */
    uint32_t rd_pending;        /* of res, not yet answered */
    uint32_t res_last;          /* slot of the latest */
    uint64_t offset;            /* bytes of the message so far */
    uint64_t va;                /* WRITE: from the RETH */
    uint32_t rkey, dma_len;
    struct vhca_rwr rwr;
    struct vhca_rd_resource res[QHCA_MAX_RD_ATOMIC];
    struct vhca_response queue[QHCA_RESPONSES];
};

#endif /* QHCA_ENGINE_QP_HALF_H */
