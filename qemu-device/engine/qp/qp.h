/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, qp: the QPC, and what its two halves have in common.
 *
 * A QP is a requester (send queue) and a responder (receive queue). They keep
 * their state in struct vhca_qp; the rooms of these names do not know each
 * other. This room has what both need: finding a QP, giving it a turn, moving
 * it to ERR, counting for it, and the packets that a half hands out.
 */
#ifndef QHCA_ENGINE_QP_H
#define QHCA_ENGINE_QP_H

#include "../rules/rules.h"
#include "../congestion/congestion.h"
#include "../memory/memory.h"
#include "../wire/wire.h"
#include "half.h"

#define VHCA_WQ_LOG_MAX     14
#define VHCA_MAX_MSG        (1u << 31)
#define VHCA_MAX_CNTSET     4096u
/* Report a page fault again if the driver has not answered it for so long. */
#define VHCA_PAGE_WAIT_NS   1000000u
/* More repeats of a page fault than these make no difference. */
#define VHCA_PAGE_REPEATS   6u
#define VHCA_NO_PSN         UINT32_MAX

/* Packets that may cross to another QP together. */
#define VHCA_SPAN           64u

/* ---- types of QPs: what they consist of; qp.c has a row for each ---- */

/* Sets of types. */
#define VHCA_TYPE(t)    (1u << QHCA_QPT_##t)

enum {
    VHCA_HAS_SQ = 0x1,          /* and PD and send CQ */
    VHCA_HAS_RQ = 0x2,          /* and receive CQ */
    VHCA_MAY_SRQ = 0x4,         /* instead of the receive queue */
    VHCA_HAS_XRCD = 0x8,        /* receives by SRQs that packets name */
    VHCA_RELIABLE = 0x10,       /* requests are acknowledged */
    VHCA_DATAGRAM = 0x20,       /* WQEs name peer and address */
    VHCA_RAW = 0x40,            /* WQEs are Ethernet frames */
};

/*
 * struct vhca_qp_kind - what a type of QPs consists of
 * @parts: set of the above; empty: no such type
 * @service: SVC_*, part of all its opcodes; 0xff: has no packets
 */
struct vhca_qp_kind {
    uint8_t parts, service;
};

#define VHCA_NUM_QP_TYPES   (QHCA_QPT_XRC_TGT + 1)
extern const struct vhca_qp_kind vhca_qp_kinds[VHCA_NUM_QP_TYPES];

/* ---- rings of WQEs ---- */

/* struct vhca_wq - a send or receive queue in guest memory */
struct vhca_wq {
    struct vhca_mem mem;
    bool present;
    bool dbrec;                 /* receive queue: has a doorbell record */
    bool rings;                 /* its record asks for doorbells */
    uint8_t log_size, log_stride;
    uint32_t max_sge;
    uint32_t pi;                /* from doorbell or doorbell record */
    uint32_t next;              /* send queue: next WQE to start */
    uint32_t ci;                /* oldest WQE not complete */
};

static inline uint32_t vhca_wq_size(const struct vhca_wq *wq)
{
    return wq->present ? 1u << wq->log_size : 0;
}

static inline uint64_t vhca_wq_ring_bytes(const struct vhca_wq *wq)
{
    return 1ull << (wq->log_size + wq->log_stride);
}

/* Return the bytes of the ring and of the doorbell record behind it. */
static inline uint64_t vhca_wq_bytes(const struct vhca_wq *wq)
{
    return vhca_wq_ring_bytes(wq) +
           (wq->dbrec ? sizeof(struct qhca_rq_dbrec) : 0);
}

static inline uint64_t vhca_wq_offset(const struct vhca_wq *wq, uint32_t index)
{
    return (uint64_t)(index & (vhca_wq_size(wq) - 1)) << wq->log_stride;
}

/*
 * Whether the producer index only moves forward, and not past the free entries;
 * @held entries before ci are not free.
 */
static inline bool vhca_wq_index_ok(const struct vhca_wq *wq, uint32_t pi,
                                    uint32_t held)
{
    uint32_t used = wq->pi - wq->ci + held;

    return wq->present && pi - wq->pi <= vhca_wq_size(wq) - used;
}

/* The result of reading a WQE. */
enum vhca_wqe_result {
    VHCA_WQE_OK = 0,
    VHCA_WQE_BAD,               /* breaks a rule: LOC_QP_OP_ERR */
    VHCA_WQE_UNREADABLE,        /* the ring cannot be read: QP_FATAL */
    VHCA_WQE_NONE,              /* receive: none has been posted */
};

/* ---- QPs ---- */

/*
 * struct vhca_page_fault - the last page fault of a kind
 * @told: when the driver got an event for it
 * @at: the index of the WQE, or the PSN of the request, that needs the page;
 *      VHCA_NO_PSN: another request has come in the place of that
 * @why: SEND, REQUEST: what it fails with if the page is denied
 * @open: the driver has not answered it
 * @repeats: how often it has been met again while it was open, up to a maximum
 */
struct vhca_page_fault {
    struct vhca_miss miss;
    uint64_t told;
    uint32_t sn, at;
    uint8_t why;
    bool open;
    uint8_t repeats;
};

/*
 * struct vhca_qp - a QP; members that its type does not have are NULL
 *
 * When thousands of QPs send, the cache lines that each one touches matter. So
 * the members that every message needs are together, from @ready to @rsp.
 */
struct vhca_qp {
    uint32_t groups;            /* multicast groups, rules, spreads it is in */
    uint32_t slot;              /* number in the table, for QP1 not its QPN */
    uint32_t max_inline;
    bool last_wqe_owed;         /* LAST_WQE_REACHED is owed */
    bool sqd_notify;            /* SQ_DRAINED is owed */
    struct vhca_holder *pd, *xrcd;
    struct vhca_srq *srq;       /* instead of rq; XRC_TGT: last one named */
    struct vhca_async async;
    struct vhca_wq rq;

    struct vhca_list ready;     /* node in the line of QPs with work */
    struct vhca_list tx_wait;   /* node in the line of QPs without room */
    uint32_t qpn, uar;
    uint8_t type, flags, state;
    bool rated;                 /* see vhca_qp_rated() */
    uint32_t mtu;               /* bytes */
    struct vhca_cq *scq, *rcq;
    struct vhca_cntset *cntset; /* counters it is bound to, or NULL */
    struct vhca_key_user user;
    struct qhca_qp_attr attr;   /* as set; little-endian */
    struct vhca_wq sq;
    struct vhca_requester req;
    struct vhca_responder rsp;
    struct vhca_gate gate;      /* for packets with data */
    struct vhca_page_fault fault[QHCA_PAGE_KINDS];
};

/*
 * struct vhca_lines - QPs that wait for something, in a line for each doorbell
 * page; @busy lists the lines that have QPs, and some that have lost them
 *
 * Pages take turns before QPs do: a process with thousands of QPs gets no more
 * than one with a single QP.
 */
struct vhca_lines {
    struct vhca_list busy;
    struct vhca_line {
        struct vhca_list node, qps;
    } *page;
};

struct vhca_qps {
    struct vhca_table table, cntset;
    uint32_t num_swr;           /* arrays of send WRs, the spare one included */
    struct vhca_swr *spare_swr; /* for the next QP that has none, or NULL */
    struct vhca_qp *gsi;        /* QP 1, or NULL */
    struct vhca_lines ready;    /* QPs with work to do */
    struct vhca_lines tx_wait;  /* QPs that found no room for a frame */
    uint64_t set_cnt[QHCA_CNT_MAX]; /* part of e->cnt that sets also have */
};

extern const struct vhca_room vhca_qp_room;

/* ---- qp.c ---- */

/* Return QP @qpn, a number which may come from guest or network, or NULL. */
struct vhca_qp *vhca_qp_get(struct qhca_engine *e, uint32_t qpn);
/* Put the QP in line for a turn, unless it is in it. */
void vhca_qp_schedule(struct qhca_engine *e, struct vhca_qp *qp);
/* Remove and return a QP in line; NULL: its page's line was empty. */
struct vhca_qp *vhca_qp_next(struct qhca_engine *e);
/*
 * Whether there is room for @reserve + 1 frames to the port itself, if @loop,
 * and to the network, if @net, and both the pace and the pauses of @class allow
 * one. If not, @qp waits for it, unless the run loop makes that room.
 */
bool vhca_qp_tx_room(struct qhca_engine *e, struct vhca_qp *qp, bool loop,
                     bool net, unsigned class, unsigned reserve);
/* There is room again: schedule a QP that waits for it. */
void vhca_qp_tx_ready(struct qhca_engine *e);
/*
 * Move the QP to ERR, and raise @event if it is not 0. The run loop flushes
 * outstanding WRs, behind the CQEs that have been pushed before. Does nothing
 * in ERR.
 */
void vhca_qp_error(struct qhca_engine *e, struct vhca_qp *qp, unsigned event);
/*
 * Report the page fault that an access has just met, if the driver does not
 * know of it; for the rest see struct vhca_page_fault.
 */
void vhca_qp_page_fault(struct qhca_engine *e, struct vhca_qp *qp,
                        enum qhca_page_fault_kind kind, uint32_t at,
                        uint8_t why);
/* The function of gate.timer: let the QP go on. */
void vhca_qp_gate_due(struct qhca_engine *e, struct vhca_timer *t);
/* Raise SQ_DRAINED if it is owed and the send queue is quiet. */
void vhca_qp_check_drained(struct qhca_engine *e, struct vhca_qp *qp);
/* The doorbells of the send and the receive queue. */
bool vhca_qp_doorbell_sq(struct qhca_engine *e, const struct vhca_db *db);
bool vhca_qp_doorbell_rq(struct qhca_engine *e, const struct vhca_db *db);

/*
 * Apply fault rules to a WR of @qp that is about to complete with success on
 * @cq, with a CQE of @opcode. Returns the status it has to complete with.
 */
enum qhca_cqe_status vhca_rule_cqe(struct qhca_engine *e, struct vhca_qp *qp,
                                    struct vhca_cq *cq, uint8_t opcode);
/* Raise the event of a rule, and move the QP to ERR if it is an error. */
void vhca_rule_raise(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_effect *does);

static inline bool vhca_qp_draining(const struct vhca_qp *qp)
{
    return qp->state == QHCA_QPS_SQD &&
           (qp->sq.ci != qp->sq.next || qp->req.flushing);
}

/* Whether a packet with data may leave now; if not, a timer says when. */
static inline bool vhca_qp_gate_open(struct qhca_engine *e, struct vhca_qp *qp)
{
    return !qp->rated || vhca_gate_open(e, &qp->gate);
}

/* Whether the gate may limit the QP. */
static inline bool vhca_qp_rated(const struct qhca_engine *e,
                                 const struct vhca_qp *qp)
{
    return qp->attr.rate_limit || !vhca_gate_rests(e, &qp->gate);
}

/* Charge the gate with @bytes sent to an AV with this static rate. */
static inline void vhca_qp_charge(struct qhca_engine *e, struct vhca_qp *qp,
                                  uint8_t static_rate, size_t bytes)
{
    qp->rated = true;
    vhca_gate_charge(e, &qp->gate,
                     vhca_lower_rate(le32toh(qp->attr.rate_limit),
                                     vhca_static_rate(static_rate)),
                     (uint32_t)bytes);
}

/* Whether packets of the QP to an AV with this static rate are charged. */
static inline bool vhca_qp_paced(const struct vhca_qp *qp, uint8_t static_rate)
{
    return qp->rated || (static_rate && vhca_static_rate(static_rate));
}

/* Whether the QP's type has any of @parts. */
static inline bool vhca_qp_is(const struct vhca_qp *qp, unsigned parts)
{
    return vhca_qp_kinds[qp->type].parts & parts;
}

static inline uint8_t vhca_qp_service(const struct vhca_qp *qp)
{
    return vhca_qp_kinds[qp->type].service;
}

/* Whether the QP receives from an SRQ, its own or one that XRC packets name. */
static inline bool vhca_qp_shares_rq(const struct vhca_qp *qp)
{
    return qp->srq || vhca_qp_is(qp, VHCA_HAS_XRCD);
}

/* Return the Q_Key that packets to the QP must have (D-079, D-080). */
static inline uint32_t vhca_qp_qkey(const struct vhca_qp *qp)
{
    return qp->type == QHCA_QPT_GSI ? QHCA_QKEY_GSI : le32toh(qp->attr.qkey);
}

/* Whether the sender's MTU fits, which a single packet shows by its length. */
static inline bool vhca_same_mtu(const struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    return p->num_psn == 1 || p->mtu == qp->mtu;
}

/* Return the number of packets of a message of @length bytes. */
static inline uint32_t vhca_packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

/* Whether a WQE or packet may ask for this FLUSH: QHCA_FLUSH_*, level. */
static inline bool vhca_flush_kind_ok(uint8_t type, uint8_t level)
{
    return type && !(type & ~(QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT)) &&
           level <= QHCA_FLUSH_MR;
}

/* ---- burst.c: packets that a half of a QP hands out to be sent ---- */

/*
 * struct vhca_burst - the next packet that a QP sends, or several of a message
 * @p: the packet; the link has filled in where it goes
 * @crosses: it goes to another QP of this port, and its payload stays where it
 *          is, so it can stand for many packets
 * @unsent: its WR goes on, but nothing is sent (B-030)
 * @fatal: the QP goes to ERR when it has been sent, with @event, or 0
 * @view: the payload, if it goes across
 * @frame: else: room for the headers, and the payload
 */
struct vhca_burst {
    struct roce_packet p;
    bool crosses, unsent, fatal;
    uint8_t event;
    struct vhca_view view;
    uint8_t frame[ROCE_MAX_FRAME];
};

/* Return where in the frame a payload of @len bytes goes; opcode is set. */
uint8_t *vhca_burst_payload(struct vhca_burst *burst, size_t len);
/*
 * Use the view as payload, of a message that has @left bytes more: as many
 * packets as it fills. Returns false if it does not fill one.
 */
bool vhca_burst_in_place(struct vhca_burst *burst, uint32_t mtu, uint64_t left);
/*
 * Scatter the payload of @p over @segs, from byte @off on. A failure is not
 * counted if @p stands for several packets.
 */
enum vhca_mem_result vhca_scatter(struct qhca_engine *e, uint32_t qpn,
                                  const struct vhca_key_user *user,
                                  const struct vhca_seg *segs, unsigned n,
                                  uint64_t off, const struct roce_packet *p);

/* ---- counters.c: for the device, and for sets of QPs ---- */

/* struct vhca_cntset - counters of the QPs that are bound to it */
struct vhca_cntset {
    struct vhca_holder base;    /* its users are QPs */
    uint64_t cnt[QHCA_CNT_MAX];
};

/* Add @n to counter @which; @qp may be NULL. */
static inline void vhca_count_qp(struct qhca_engine *e,
                                 const struct vhca_qp *qp,
                                 enum qhca_counter which, uint64_t n)
{
    e->cnt[which] += n;
    if (qp && qp->cntset) {
        qp->cntset->cnt[which] += n;
        e->qps->set_cnt[which] += n;
    }
}
/* Bind @qp to @set from now on, or to none if it is NULL. */
void vhca_cntset_bind(struct vhca_qp *qp, struct vhca_cntset *set);

/* ---- snapshot.c ---- */

/*
 * Walk over a queue; the caller checks its parameters. On load @wq is empty
 * before, and the caller has to release its memory.
 */
void vhca_wq_walk(struct vhca_snap *s, const char *name, struct vhca_wq *wq);
/* Walk over segments; returns the sum of their lengths. */
uint64_t vhca_segs_walk(struct vhca_snap *s, struct vhca_seg *segs, unsigned n);
void vhca_cntsets_walk(struct vhca_snap *s);
/* For struct vhca_snap_ref: a QP by its number in the table. */
uint32_t vhca_qp_slot(const struct qhca_engine *e, const void *qp);
void *vhca_qp_at_slot(struct qhca_engine *e, uint32_t slot);
extern const struct vhca_snap_ref vhca_qp_gate_ref;
/* Walk over the lines, after the QPs. */
void vhca_lines_walk(struct vhca_snap *s);

#endif /* QHCA_ENGINE_QP_H */
