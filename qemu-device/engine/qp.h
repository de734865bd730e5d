/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: queue pairs.
 *
 * A QP is a requester (send queue: requester.c starts and repeats requests,
 * completer.c takes the answers) and a responder (receive queue, responder.c
 * executes requests, or uc.c those of UC, response.c sends the answers);
 * datagram.c is both for UD. All of them keep their state in struct qhca_qp,
 * the QPC, and meet only there.
 */
#ifndef QHCA_ENGINE_QP_H
#define QHCA_ENGINE_QP_H

#include "internal.h"
#include "wire/wire.h"

/* Send WQEs a QP may have started and not completed. */
#define QHCA_INFLIGHT       64u
/* Request packets a QP may have sent and not seen acknowledged. */
#define QHCA_WINDOW         64u
/* An acknowledgement is asked for at least every so many packets. */
#define QHCA_ACKREQ_EVERY   16u
/* Packets or flushed WQEs per turn of a QP: what bounds qhca_qp_work(). */
#define QHCA_BURST          32u
/* Frames a request leaves free, so that answers always find room. */
#define QHCA_TX_RESERVE     64u
/*
 * Answers waiting for their turn: READs and atomics, new ones and replays, at
 * most one ACK or NAK behind each. A power of two: indices run free.
 */
#define QHCA_RESPONSES      64u

/* struct qhca_wq - a send or receive queue in guest memory */
struct qhca_wq {
    struct qhca_mem mem;
    bool present;
    uint8_t log_size, log_stride;
    uint32_t max_sge;
    uint32_t pi;                /* from the doorbell */
    uint32_t next;              /* send queue: next WQE to start */
    uint32_t ci;                /* oldest WQE not complete */
};

static inline uint32_t qhca_wq_size(const struct qhca_wq *wq)
{
    return wq->present ? 1u << wq->log_size : 0;
}

static inline uint64_t qhca_wq_offset(const struct qhca_wq *wq, uint32_t index)
{
    return (uint64_t)(index & (qhca_wq_size(wq) - 1)) << wq->log_stride;
}

/* A producer index may only move forward, and not past the free entries. */
static inline bool qhca_wq_index_ok(const struct qhca_wq *wq, uint32_t pi)
{
    uint32_t used = wq->pi - wq->ci;

    return wq->present && pi - wq->pi <= qhca_wq_size(wq) - used;
}

/*
 * struct qhca_swr - a send work request that has been started: the one copy of
 * its WQE, and which PSNs it owns.
 */
struct qhca_swr {
    uint64_t wr_id;
    uint64_t raddr;
    uint64_t swap_add, compare;
    uint64_t swap_mask, compare_mask;   /* masked atomics */
    struct {
        struct qhca_av av;      /* port, GID index and PD have been checked */
        uint32_t qpn, qkey;
    } ud;
    uint32_t rkey;
    uint32_t srqn;              /* XRC: where it goes */
    uint32_t imm;               /* network order */
    uint32_t inv_key;
    uint32_t length;
    uint32_t flush_len;         /* FLUSH: as in the WQE */
    uint8_t flush_type, flush_level;
    uint32_t first_psn, num_psn;
    uint16_t num_seg;
    uint8_t opcode;             /* enum qhca_wr_opcode */
    uint8_t flags;              /* QHCA_WQE_* */
    uint8_t fail;               /* status to fail with once it is the oldest */
    bool executed;              /* one without packets: it has been done */
    union {
        struct qhca_memop memop;
        struct qhca_seg seg[QHCA_MAX_SEND_SGE];
        uint8_t inline_data[QHCA_MAX_INLINE];
    };
};

/* struct qhca_requester - the sending half of a QP; IBTA 9.9.2 */
struct qhca_requester {
    struct qhca_swr *swr;       /* QHCA_INFLIGHT of them, by WQE index */
    uint32_t next_psn;          /* of the next WQE to be started */
    uint32_t snd_psn;           /* of the next packet to send */
    uint32_t max_psn;           /* one past the highest PSN ever sent */
    uint32_t una_psn;           /* oldest PSN not acknowledged */
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
    struct qhca_rwr rwr;
    uint64_t offset;            /* bytes of the message so far */
    uint64_t va;                /* WRITE: from the RETH */
    uint32_t rkey, dma_len;
    struct qhca_rd_resource res[QHCA_MAX_RD_ATOMIC];
    uint32_t res_last;          /* slot of the latest */
    uint32_t rd_pending;        /* of them not yet answered */
    struct qhca_response queue[QHCA_RESPONSES];
    uint32_t q_head, q_tail;
};

struct qhca_qp {
    struct qhca_list ready;     /* node in the engine's list of that name */
    struct qhca_list tx_wait;   /* likewise */
    uint32_t qpn, uar;
    uint32_t groups;            /* multicast groups it is in */
    uint32_t slot;              /* number in the table of QPs, not 1 for GSI */
    uint8_t type, flags, state;
    bool sqd_notify;            /* SQ_DRAINED is owed */
    /* What its type does not have is NULL. */
    struct qhca_pd *pd;
    struct qhca_cq *scq, *rcq;
    struct qhca_xrcd *xrcd;
    struct qhca_srq *srq;       /* instead of rq; XRC_TGT: the latest named */
    struct qhca_rwr_node *spare;    /* to give back a WR of srq in */
    bool last_wqe_owed;         /* LAST_WQE_REACHED is owed */
    struct qhca_async async;
    struct qhca_key_user user;
    struct qhca_cntset *cntset; /* counts for it, or NULL */
    uint32_t max_inline;
    struct qhca_qp_attr attr;   /* as set; little-endian */
    uint32_t mtu;               /* bytes */
    struct qhca_wq sq, rq;
    struct qhca_requester req;
    struct qhca_responder rsp;
};

/* Whether the peer and the way to it are those of the WQE. */
static inline bool qhca_qp_is_datagram(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_UD || qp->type == QHCA_QPT_GSI;
}

/* Whether its requests are acknowledged. */
static inline bool qhca_qp_is_reliable(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI ||
           qp->type == QHCA_QPT_XRC_TGT;
}

/* Whether its receive WRs are those of others as well. */
static inline bool qhca_qp_shares_rq(const struct qhca_qp *qp)
{
    return qp->srq || qp->type == QHCA_QPT_XRC_TGT;
}

/* ---- qp.c ---- */

struct qhca_qp *qhca_qp_get(struct qhca_engine *e, uint32_t qpn);

/* cntset.c: counters of QPs. @qp may be NULL; so may @set, for none. */
void qhca_count_qp(struct qhca_engine *e, const struct qhca_qp *qp,
                   enum qhca_counter which, uint64_t n);
void qhca_cntset_bind(struct qhca_qp *qp, struct qhca_cntset *set);
/*
 * To ERR; @event is raised if it is not 0. Outstanding WRs are flushed by the
 * run loop behind whatever CQEs have been pushed before. Does nothing in ERR.
 */
void qhca_qp_error(struct qhca_engine *e, struct qhca_qp *qp, unsigned event);
/*
 * The oldest send WR succeeds: its CQE, if one is asked for. So do those behind
 * it that have no packets and are done.
 */
void qhca_sq_complete(struct qhca_engine *e, struct qhca_qp *qp);
/*
 * The oldest send WR fails with @status: its CQE, then the state where the rest
 * is flushed: ERR for RC, SQE for the others, whose receive queue goes
 * on.
 */
void qhca_sq_fail(struct qhca_engine *e, struct qhca_qp *qp,
                  enum qhca_cqe_status status);
/* Fails the oldest send WR if it was found bad while others were before it. */
void qhca_sq_reap(struct qhca_engine *e, struct qhca_qp *qp);
/* Back to the empty queues of a new QP, without CQEs. */
void qhca_qp_clear(struct qhca_engine *e, struct qhca_qp *qp);
/* Raises SQ_DRAINED if it is owed and the send queue is quiet. */
void qhca_qp_check_drained(struct qhca_engine *e, struct qhca_qp *qp);
static inline bool qhca_qp_draining(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_SQD &&
           (qp->sq.ci != qp->sq.next || qp->req.flushing);
}

/* ---- qp_state.c ---- */

/*
 * Whether @mask is legal for moving a QP of @type from @from to @to,
 * conformance A.2 and A.3: all required attributes, no others than optional
 * ones.
 */
bool qhca_qp_transition_ok(uint8_t type, uint8_t from, uint8_t to,
                           uint32_t mask);

/* ---- wqe.c ---- */

enum qhca_wqe_result {
    QHCA_WQE_OK = 0,
    QHCA_WQE_BAD,               /* breaks a rule: LOC_QP_OP_ERR */
    QHCA_WQE_UNREADABLE,        /* the ring cannot be read: QP_FATAL */
    QHCA_WQE_NONE,              /* receive: none has been posted */
};

/*
 * Reads send WQE @index into @wr. On BAD, wr->fail says why; wr_id and opcode
 * are valid unless UNREADABLE.
 */
enum qhca_wqe_result qhca_wqe_fetch_send(struct qhca_engine *e,
                                         struct qhca_qp *qp, uint32_t index,
                                         struct qhca_swr *wr);
/* Copies @n SGEs at @src; returns the sum of their lengths. */
uint64_t qhca_wqe_parse_sges(struct qhca_seg *seg, const uint8_t *src,
                             unsigned n);

/* Packets of a message of @length bytes. */
static inline uint32_t qhca_packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

/* ---- requester.c ---- */

static inline struct qhca_swr *qhca_swr_at(struct qhca_qp *qp, uint32_t index)
{
    return &qp->req.swr[index % QHCA_INFLIGHT];
}

static inline bool qhca_swr_is_atomic(const struct qhca_swr *wr)
{
    return wr->opcode == QHCA_WR_ATOMIC_CMP_AND_SWP ||
           wr->opcode == QHCA_WR_ATOMIC_FETCH_AND_ADD ||
           wr->opcode == QHCA_WR_MASKED_ATOMIC_CMP_AND_SWP ||
           wr->opcode == QHCA_WR_MASKED_ATOMIC_FETCH_AND_ADD;
}

/* Whether its answer brings data for its SGEs. */
static inline bool qhca_swr_has_result(const struct qhca_swr *wr)
{
    return wr->opcode == QHCA_WR_RDMA_READ || qhca_swr_is_atomic(wr);
}

/* Whether it takes a resource of the responder, who answers with no ACK. */
static inline bool qhca_swr_is_rd_atomic(const struct qhca_swr *wr)
{
    return qhca_swr_has_result(wr) || wr->opcode == QHCA_WR_FLUSH ||
           wr->opcode == QHCA_WR_ATOMIC_WRITE;
}

/* Whether there is such a FLUSH: QHCA_FLUSH_*, level; of a WQE or a packet. */
static inline bool qhca_flush_kind_ok(uint8_t type, uint8_t level)
{
    return type && !(type & ~(QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT)) &&
           level <= QHCA_FLUSH_MR;
}

/* Whether it has no packets: REG_MR, BIND_MW, LOCAL_INV. */
static inline bool qhca_swr_is_memop(const struct qhca_swr *wr)
{
    return wr->opcode == QHCA_WR_BIND_MW || wr->opcode == QHCA_WR_LOCAL_INV ||
           wr->opcode == QHCA_WR_REG_MR;
}

/* memop.c: executes the one at the cursor, which goes on. */
void qhca_memop_step(struct qhca_engine *e, struct qhca_qp *qp);

/* Where the packets of @wr go. */
static inline const struct qhca_av *qhca_swr_av(const struct qhca_qp *qp,
                                                const struct qhca_swr *wr)
{
    return qhca_qp_is_datagram(qp) ? &wr->ud.av : &qp->attr.av;
}

/* Copies @len bytes of the WR's data, inline or not, from byte @off on. */
enum qhca_seg_result qhca_swr_gather(struct qhca_engine *e, struct qhca_qp *qp,
                                     const struct qhca_swr *wr, uint64_t off,
                                     uint8_t *dst, size_t len);
/* Sends up to @budget request packets; returns how many. */
unsigned qhca_requester_work(struct qhca_engine *e, struct qhca_qp *qp,
                             unsigned budget);
/* Whether there is something to send now. */
bool qhca_requester_ready(struct qhca_qp *qp);
/* Entering SQD: a WR read from the ring but not begun on the wire goes back. */
void qhca_requester_hold(struct qhca_qp *qp);
/*
 * What was started and is not sent never will be; the PSNs go on behind what
 * was.
 */
void qhca_requester_abandon(struct qhca_qp *qp);
/* Goes back to the oldest unacknowledged PSN and sends again from there. */
void qhca_requester_rewind(struct qhca_engine *e, struct qhca_qp *qp);
/* As above, at the cost of one retry; fails the WR when none is left. */
void qhca_requester_retry(struct qhca_engine *e, struct qhca_qp *qp);
/* (Re)starts or stops the ACK timer according to what is outstanding. */
void qhca_requester_timer(struct qhca_engine *e, struct qhca_qp *qp);
void qhca_requester_timeout(struct qhca_engine *e, struct qhca_timer *t);

/* ---- completer.c, responder.c, resource.c, uc.c, replay.c, response.c ---- */

void qhca_completer_rx(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p);
void qhca_responder_rx(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p);
void qhca_uc_rx(struct qhca_engine *e, struct qhca_qp *qp,
                const struct roce_packet *p);
/*
 * Takes the next receive WR of a QP that is not RC. False: there is none, and
 * the message is refused, or it is bad, and the QP in ERR.
 */
bool qhca_unreliable_take(struct qhca_engine *e, struct qhca_qp *qp);
/* The fault is on this side: ERR; the receive WR in use says why (I-044). */
void qhca_unreliable_fail(struct qhca_engine *e, struct qhca_qp *qp,
                          enum qhca_cqe_status status);
/* What RC and UC responders have in common: */
/* The payload lengths of D-064 that the opcode alone decides. */
bool qhca_payload_ok(const struct qhca_qp *qp, const struct roce_packet *p);
/* The same, and that the message so far fits the receive WR (D-066). */
bool qhca_send_length_ok(const struct qhca_qp *qp, const struct roce_packet *p);
/* Whether the QP's access flags allow what the packet asks for (D-063). */
bool qhca_operation_enabled(const struct qhca_qp *qp,
                            const struct roce_packet *p);
/* A request was found valid: COMM_EST, if it is the first in RTR. */
void qhca_comm_established(struct qhca_engine *e, struct qhca_qp *qp);
/* The first packet of a WRITE says where it goes. */
void qhca_write_begin(struct qhca_qp *qp, const struct roce_packet *p);
/* D-064, as far as a WRITE is concerned. */
bool qhca_write_length_ok(const struct qhca_qp *qp,
                          const struct roce_packet *p);
/* Writes the payload; AETH_ACK, or the NAK that says why not. */
uint8_t qhca_write_payload(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p);
/* A request whose PSN is behind the ePSN. */
void qhca_responder_duplicate(struct qhca_engine *e, struct qhca_qp *qp,
                              const struct roce_packet *p);
/* Puts an ACK or NAK of @psn in line, in the place of one right before it. */
void qhca_response_ack(struct qhca_engine *e, struct qhca_qp *qp,
                       uint8_t syndrome, uint32_t psn);
/* Puts an answer in line; false: no room, drop the request. */
bool qhca_response_add(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct qhca_response *r);
/* Sends up to @budget packets of answers; returns how many. */
unsigned qhca_response_work(struct qhca_engine *e, struct qhca_qp *qp,
                            unsigned budget);
static inline bool qhca_response_ready(const struct qhca_qp *qp)
{
    return qp->rsp.q_head != qp->rsp.q_tail;
}
/*
 * Whether one would fit: the last place is kept for the ACK or NAK that
 * follows.
 */
static inline bool qhca_response_room(const struct qhca_qp *qp)
{
    return qp->rsp.q_tail - qp->rsp.q_head < QHCA_RESPONSES - 1;
}

#endif /* QHCA_ENGINE_QP_H */
