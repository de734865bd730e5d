/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, qp: the QPC, and what its two halves have in common.
 *
 * A QP is a requester (send queue) and a responder (receive queue). They keep
 * their state in struct vhca_qp and meet only there: the rooms of that name do
 * not know each other. Here is what both need: finding a QP, giving it a turn,
 * moving it to ERR, counting for it, and the packets that they hand out.
 */
#ifndef QHCA_ENGINE_QP_H
#define QHCA_ENGINE_QP_H

#include "../faults/faults.h"
#include "../port/port.h"
#include "burst.h"
#include "half.h"
#include "kind.h"
#include "wq.h"

#define QHCA_WQ_LOG_MAX     14
#define QHCA_MAX_MSG        (1u << 31)
#define QHCA_MAX_CNTSET     4096u

/* Packets that may go at once to a QP of this port. */
#define QHCA_SPAN           64u
/* Frames a request leaves free, so that answers always find room. */
#define QHCA_TX_RESERVE     64u

/*
 * struct vhca_qp - a QP; what its type does not have is NULL
 *
 * When thousands of them send, what counts is how many cache lines each takes.
 * So what every message needs is together, from @ready to the start of @rsp.
 */
struct vhca_qp {
    uint32_t groups;            /* multicast groups it is in */
    uint32_t slot;              /* number in the table of QPs, not 1 for GSI */
    uint32_t max_inline;
    bool last_wqe_owed;         /* LAST_WQE_REACHED is owed */
    struct vhca_pd *pd;
    struct vhca_xrcd *xrcd;
    struct vhca_srq *srq;       /* instead of rq; XRC_TGT: the latest named */
    struct vhca_async async;
    struct vhca_wq rq;

    struct vhca_list ready;     /* node in the line of its page */
    struct vhca_list tx_wait;   /* node in that of those waiting for room */
    uint32_t qpn, uar;
    uint8_t type, flags, state;
    bool sqd_notify;            /* SQ_DRAINED is owed */
    uint32_t mtu;               /* bytes */
    struct vhca_cq *scq, *rcq;
    struct vhca_cntset *cntset; /* counts for it, or NULL */
    struct vhca_key_user user;
    struct qhca_qp_attr attr;   /* as set; little-endian */
    struct vhca_wq sq;
    struct vhca_requester req;
    struct vhca_responder rsp;
};

/*
 * struct vhca_lines - QPs that wait for something, in a line for each doorbell
 * page; @busy has the lines with somebody in it, and empty ones
 *
 * Pages take turns before QPs do: a process with thousands of them gets no more
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
    uint32_t num_swr;           /* arrays of send WRs: those of QPs, and */
    struct vhca_swr *spare_swr; /* one for who has none, or NULL */
    struct vhca_qp *gsi;        /* QP 1, or NULL */
    struct vhca_lines ready;    /* QPs with work to do */
    struct vhca_lines tx_wait;  /* QPs that the way out had no room for */
    uint64_t set_cnt[QHCA_CNT_MAX]; /* of e->cnt, since the reset, in sets */
};

extern const struct vhca_room vhca_qp_room;

/* ---- qp.c ---- */

/* The QP of number @qpn, which may come from guest or network, or NULL. */
struct vhca_qp *vhca_qp_get(struct qhca_engine *e, uint32_t qpn);
/* Puts the QP in line for a turn if it is not there. */
void vhca_qp_schedule(struct qhca_engine *e, struct vhca_qp *qp);
/* Takes the QP that is first in line out of it, or returns NULL. */
struct vhca_qp *vhca_qp_next(struct qhca_engine *e);
/* The QP waits for room on the way out. */
void vhca_qp_wait_tx(struct qhca_engine *e, struct vhca_qp *qp);
/* There is some: the QP that is first in line for it goes on. */
void vhca_qp_tx_ready(struct qhca_engine *e);
/*
 * To ERR; @event is raised if it is not 0. Outstanding WRs are flushed by the
 * run loop behind whatever CQEs have been pushed before. Does nothing in ERR.
 */
void vhca_qp_error(struct qhca_engine *e, struct vhca_qp *qp, unsigned event);
/* Raises SQ_DRAINED if it is owed and the send queue is quiet. */
void vhca_qp_check_drained(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * SQ and RQ doorbells. False: no such queue on that page, or index out of
 * range.
 */
bool vhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);
bool vhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi);

static inline bool vhca_qp_draining(const struct vhca_qp *qp)
{
    return qp->state == QHCA_QPS_SQD &&
           (qp->sq.ci != qp->sq.next || qp->req.flushing);
}

/* Whether its type has one of @parts. */
static inline bool vhca_qp_is(const struct vhca_qp *qp, unsigned parts)
{
    return vhca_qp_kinds[qp->type].parts & parts;
}

static inline uint8_t vhca_qp_service(const struct vhca_qp *qp)
{
    return vhca_qp_kinds[qp->type].service;
}

/* Receives from a shared queue: an SRQ, or the one an XRC packet names. */
static inline bool vhca_qp_shares_rq(const struct vhca_qp *qp)
{
    return qp->srq || vhca_qp_is(qp, QHCA_HAS_XRCD);
}

/* The Q_Key that packets to it must have (D-079, D-080). */
static inline uint32_t vhca_qp_qkey(const struct vhca_qp *qp)
{
    return qp->type == QHCA_QPT_GSI ? QHCA_QKEY_GSI : le32toh(qp->attr.qkey);
}

/* A single packet shows by its length alone what its sender's MTU is. */
static inline bool vhca_same_mtu(const struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    return p->num_psn == 1 || p->mtu == qp->mtu;
}

/* Packets of a message of @length bytes. */
static inline uint32_t vhca_packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

/* Whether there is such a FLUSH: QHCA_FLUSH_*, level; of a WQE or a packet. */
static inline bool vhca_flush_kind_ok(uint8_t type, uint8_t level)
{
    return type && !(type & ~(QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT)) &&
           level <= QHCA_FLUSH_MR;
}

/* ---- counters.c: for the device, and for sets of QPs ---- */

/* struct vhca_cntset - counters of the QPs that are bound to it */
struct vhca_cntset {
    struct vhca_holder base;    /* its users are QPs */
    uint64_t cnt[QHCA_CNT_MAX];
};

void vhca_cntset_free_all(struct qhca_engine *e);
/* Counts @n of @which; @qp may be NULL. */
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
/* From now on @set, or none if it is NULL, counts for @qp. */
void vhca_cntset_bind(struct vhca_qp *qp, struct vhca_cntset *set);

/* ---- snapshot.c ---- */

/*
 * The caller judges whether there can be such a queue. On load @wq is empty
 * before; its memory is the caller's to release.
 */
void vhca_wq_walk(struct vhca_snap *s, const char *name, struct vhca_wq *wq);
/* Returns the sum of their lengths. */
uint64_t vhca_segs_walk(struct vhca_snap *s, struct vhca_seg *segs, unsigned n);
void vhca_cntsets_walk(struct vhca_snap *s);
/* Who is in line; all QPs are there. */
void vhca_lines_walk(struct vhca_snap *s);

/* ---- fault.c ---- */

/*
 * A WR of @qp, whose CQE would have @opcode, is about to complete with success
 * on @cq. Returns how it completes.
 */
enum qhca_cqe_status vhca_fault_cqe(struct qhca_engine *e, struct vhca_qp *qp,
                                    struct vhca_cq *cq, uint8_t opcode);
/* An event of the QP, which is in ERR then if it is one of errors. */
void vhca_fault_raise(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_fault *does);

#endif /* QHCA_ENGINE_QP_H */
