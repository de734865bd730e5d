/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, qp: the QPC, and what its two halves have in common.
 *
 * A QP is a requester (send queue) and a responder (receive queue). They keep
 * their state in struct qhca_qp and meet only there: the rooms of that name do
 * not know each other. Here is what both need: finding a QP, giving it a turn,
 * moving it to ERR, counting for it, and the packets that they hand out.
 */
#ifndef QHCA_ENGINE_QP_H
#define QHCA_ENGINE_QP_H

#include "../faults/faults.h"
#include "../memory/memory.h"
#include "../port/port.h"
#include "../wire/wire.h"
#include "wq.h"

#define QHCA_WQ_LOG_MAX     14
#define QHCA_MAX_RD_ATOMIC  16
#define QHCA_MAX_MSG        (1u << 31)
#define QHCA_MAX_CNTSET     4096u
/* Send WQEs a QP may have started and not completed. */
#define QHCA_INFLIGHT       64u
/*
 * Answers waiting for their turn: READs and atomics, new ones and replays, at
 * most one ACK or NAK behind each. A power of two: indices run free.
 */
#define QHCA_RESPONSES      64u

/* Packets that may go at once to a QP of this port. */
#define QHCA_SPAN           64u
/* Frames a request leaves free, so that answers always find room. */
#define QHCA_TX_RESERVE     64u

/* What reading a WQE can lead to. */
enum qhca_wqe_result {
    QHCA_WQE_OK = 0,
    QHCA_WQE_BAD,               /* breaks a rule: LOC_QP_OP_ERR */
    QHCA_WQE_UNREADABLE,        /* the ring cannot be read: QP_FATAL */
    QHCA_WQE_NONE,              /* receive: none has been posted */
};

/* struct qhca_requester - the sending half of a QP; IBTA 9.9.2 */
struct qhca_requester {
    struct qhca_swr *swr;       /* QHCA_INFLIGHT, or NULL: none is started */
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
    struct qhca_timer timer;    /* ACK timer, or the RNR wait */
};

/* A request the responder can replay: READ, atomic, FLUSH, ATOMIC WRITE. */
struct qhca_rd_resource {
    bool valid;
    uint8_t op;                 /* enum roce_op */
    uint32_t psn, num_psn;      /* of the request */
    uint64_t va;
    uint32_t rkey, length;
    uint32_t srqn;              /* XRC: that it named */
    uint64_t orig;              /* atomic: the value found */
};

enum qhca_response_kind {
    QHCA_RESP_ACK,              /* or NAK, by the syndrome */
    QHCA_RESP_READ,             /* of no bytes for FLUSH and ATOMIC WRITE */
    QHCA_RESP_ATOMIC,
};

/* struct qhca_response - an answer in line; answers leave in order (D-013) */
struct qhca_response {
    uint8_t kind;               /* enum qhca_response_kind */
    uint8_t syndrome;
    bool replay;                /* answers a duplicate: frees no resource */
    uint32_t psn;               /* of the next packet of it */
    uint32_t msn;
    uint64_t va, orig;
    uint32_t rkey, srqn;        /* srqn: XRC */
    uint32_t length, done;      /* READ: bytes in all, bytes sent */
};

/* struct qhca_rwr - the receive work request in use, the one copy of its WQE */
struct qhca_rwr {
    bool taken;
    bool bad;                   /* the WQE breaks a rule */
    uint32_t index;             /* of the WQE */
    uint64_t wr_id;
    uint64_t length;            /* room in all segments */
    unsigned num_seg;
    struct qhca_seg seg[QHCA_MAX_RECV_SGE];
};

/* struct qhca_responder - the receiving half of a QP; IBTA 9.9.3 */
struct qhca_responder {
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
    struct qhca_rwr rwr;
    struct qhca_rd_resource res[QHCA_MAX_RD_ATOMIC];
    struct qhca_response queue[QHCA_RESPONSES];
};

/*
 * struct qhca_qp - a QP; what its type does not have is NULL
 *
 * When thousands of them send, what counts is how many cache lines each takes.
 * So what every message needs is together, from @ready to the start of @rsp.
 */
struct qhca_qp {
    uint32_t groups;            /* multicast groups it is in */
    uint32_t slot;              /* number in the table of QPs, not 1 for GSI */
    uint32_t max_inline;
    bool last_wqe_owed;         /* LAST_WQE_REACHED is owed */
    struct qhca_pd *pd;
    struct qhca_xrcd *xrcd;
    struct qhca_srq *srq;       /* instead of rq; XRC_TGT: the latest named */
    struct qhca_async async;
    struct qhca_wq rq;

    struct qhca_list ready;     /* node in the line of its page */
    struct qhca_list tx_wait;   /* node in that of those waiting for room */
    uint32_t qpn, uar;
    uint8_t type, flags, state;
    bool sqd_notify;            /* SQ_DRAINED is owed */
    uint32_t mtu;               /* bytes */
    struct qhca_cq *scq, *rcq;
    struct qhca_cntset *cntset; /* counts for it, or NULL */
    struct qhca_key_user user;
    struct qhca_qp_attr attr;   /* as set; little-endian */
    struct qhca_wq sq;
    struct qhca_requester req;
    struct qhca_responder rsp;
};

/* struct qhca_cntset - counters of the QPs that are bound to it */
struct qhca_cntset {
    struct qhca_holder base;    /* its users are QPs */
    uint64_t cnt[QHCA_CNT_MAX];
};

/* ---- types of QPs: one row each, in qp.c ---- */

/* Sets of types. */
#define QHCA_TYPE(t)    (1u << QHCA_QPT_##t)

enum {
    QHCA_HAS_SQ = 0x1,          /* and PD and send CQ */
    QHCA_HAS_RQ = 0x2,          /* and receive CQ */
    QHCA_MAY_SRQ = 0x4,         /* instead of the receive queue */
    QHCA_HAS_XRCD = 0x8,        /* receives by SRQs that packets name */
    QHCA_RELIABLE = 0x10,       /* requests are acknowledged */
    QHCA_DATAGRAM = 0x20,       /* peer and address are those of the WQE */
};

/*
 * struct qhca_qp_kind - what a type of QPs is made of
 * @parts: set of the above; empty: no such type
 * @service: SVC_*, part of all its opcodes
 */
struct qhca_qp_kind {
    uint8_t parts, service;
};

#define QHCA_NUM_QP_TYPES   (QHCA_QPT_XRC_TGT + 1)
extern const struct qhca_qp_kind qhca_qp_kinds[QHCA_NUM_QP_TYPES];

/*
 * struct qhca_lines - QPs that wait for something, in a line for each doorbell
 * page; @busy has the lines with somebody in it, and empty ones
 *
 * Pages take turns before QPs do: a process with thousands of them gets no more
 * than one with a single QP.
 */
struct qhca_lines {
    struct qhca_list busy;
    struct qhca_line {
        struct qhca_list node, qps;
    } *page;
};

struct qhca_qps {
    struct qhca_table table, cntset;
    uint32_t num_swr;           /* arrays of send WRs: those of QPs, and */
    struct qhca_swr *spare_swr; /* one for who has none, or NULL */
    struct qhca_qp *gsi;        /* QP 1, or NULL */
    struct qhca_lines ready;    /* QPs with work to do */
    struct qhca_lines tx_wait;  /* QPs that the way out had no room for */
    uint64_t set_cnt[QHCA_CNT_MAX]; /* of e->cnt, since the reset, in sets */
};

extern const struct qhca_room qhca_qp_room;

/* ---- qp.c ---- */

/* The QP of number @qpn, which may come from guest or network, or NULL. */
struct qhca_qp *qhca_qp_get(struct qhca_engine *e, uint32_t qpn);
/* Puts the QP in line for a turn if it is not there. */
void qhca_qp_schedule(struct qhca_engine *e, struct qhca_qp *qp);
/* Takes the QP that is first in line out of it, or returns NULL. */
struct qhca_qp *qhca_qp_next(struct qhca_engine *e);
/* The QP waits for room on the way out. */
void qhca_qp_wait_tx(struct qhca_engine *e, struct qhca_qp *qp);
/* There is some: the QP that is first in line for it goes on. */
void qhca_qp_tx_ready(struct qhca_engine *e);
/*
 * To ERR; @event is raised if it is not 0. Outstanding WRs are flushed by the
 * run loop behind whatever CQEs have been pushed before. Does nothing in ERR.
 */
void qhca_qp_error(struct qhca_engine *e, struct qhca_qp *qp, unsigned event);
/* Raises SQ_DRAINED if it is owed and the send queue is quiet. */
void qhca_qp_check_drained(struct qhca_engine *e, struct qhca_qp *qp);
/*
 * SQ and RQ doorbells. False: no such queue on that page, or index out of
 * range.
 */
bool qhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
bool qhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);

static inline bool qhca_qp_draining(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_SQD &&
           (qp->sq.ci != qp->sq.next || qp->req.flushing);
}

/* Whether its type has one of @parts. */
static inline bool qhca_qp_is(const struct qhca_qp *qp, unsigned parts)
{
    return qhca_qp_kinds[qp->type].parts & parts;
}

static inline uint8_t qhca_qp_service(const struct qhca_qp *qp)
{
    return qhca_qp_kinds[qp->type].service;
}

/* Receives from a shared queue: an SRQ, or the one an XRC packet names. */
static inline bool qhca_qp_shares_rq(const struct qhca_qp *qp)
{
    return qp->srq || qhca_qp_is(qp, QHCA_HAS_XRCD);
}

/* The Q_Key that packets to it must have (D-079, D-080). */
static inline uint32_t qhca_qp_qkey(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_GSI ? QHCA_QKEY_GSI : le32toh(qp->attr.qkey);
}

/* Packets of a message of @length bytes. */
static inline uint32_t qhca_packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

/* Whether there is such a FLUSH: QHCA_FLUSH_*, level; of a WQE or a packet. */
static inline bool qhca_flush_kind_ok(uint8_t type, uint8_t level)
{
    return type && !(type & ~(QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT)) &&
           level <= QHCA_FLUSH_MR;
}

/* ---- counters.c: for the device, and for sets of QPs ---- */

extern const struct qhca_command qhca_counter_commands[];
void qhca_cntset_free_all(struct qhca_engine *e);
/* Counts @n of @which; @qp may be NULL. */
static inline void qhca_count_qp(struct qhca_engine *e,
                                 const struct qhca_qp *qp,
                                 enum qhca_counter which, uint64_t n)
{
    e->cnt[which] += n;
    if (qp && qp->cntset) {
        qp->cntset->cnt[which] += n;
        e->qps->set_cnt[which] += n;
    }
}
/* From now on @set, or none if it is NULL, counts for @qp. */
void qhca_cntset_bind(struct qhca_qp *qp, struct qhca_cntset *set);

/* ---- snapshot.c ---- */

/*
 * The caller judges whether there can be such a queue. On load @wq is empty
 * before; its memory is the caller's to release.
 */
void qhca_wq_walk(struct qhca_snap *s, const char *name, struct qhca_wq *wq);
/* Returns the sum of their lengths. */
uint64_t qhca_segs_walk(struct qhca_snap *s, struct qhca_seg *segs, unsigned n);
void qhca_qps_walk(struct qhca_snap *s);
/* Who is in line; all QPs are there. */
void qhca_lines_walk(struct qhca_snap *s);

/* ---- burst.c: what a half of a QP hands out to be sent ---- */

/*
 * struct qhca_burst - a packet that a QP sends next, or several of one message
 * @p: the packet; whoever moves it has filled in where it goes
 * @across: it goes to another QP of this port, and its payload can stay where
 *          it is; then it can be that of many packets
 * @unsent: its WR is done with it, but nothing leaves (B-030)
 * @fatal: its QP goes to ERR when it leaves
 * @event: of the QP, then; or 0
 * @view: the payload of one that goes across
 * @frame: that of any other, behind the room for its headers
 */
struct qhca_burst {
    struct roce_packet p;
    bool across, unsent, fatal;
    uint8_t event;
    struct qhca_view view;
    uint8_t frame[ROCE_MAX_FRAME];
};

/* Where the payload of @len bytes goes in the frame; the opcode is known. */
uint8_t *qhca_burst_payload(struct qhca_burst *burst, size_t len);
/*
 * The payload is what is in view of the @left bytes from here to the end of the
 * message, in as many packets as that fills. False: not even one.
 */
bool qhca_burst_in_place(struct qhca_burst *burst, uint32_t mtu, uint64_t left);

/* ---- fault.c ---- */

/*
 * A WR of @qp, whose CQE would have @opcode, is about to complete with success
 * on @cq. Returns how it completes.
 */
enum qhca_cqe_status qhca_fault_cqe(struct qhca_engine *e, struct qhca_qp *qp,
                                    struct qhca_cq *cq, uint8_t opcode);
/* An event of the QP, which is in ERR then if it is one of errors. */
void qhca_fault_raise(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_fault *does);

#endif /* QHCA_ENGINE_QP_H */
