/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the sending half (IBTA 9.7.2, 9.9.2; of UC
 * 9.8.2, of UD 9.8.3).
 *
 * A WQE is started by copying it and giving it PSNs; from then on it lives in
 * qp->req.swr until it completes. One cursor (snd_psn, snd_wqe) walks over the
 * started WRs; going back N is moving the cursor to una_psn. A UC requester is
 * one whose packets are acknowledged by being sent.
 */
#include <stdlib.h>

#include "requester.h"

/* ---- starting WRs ---- */

/* Check all local buffers of a WR before its first byte is sent (I-001). */
static bool buffers_ok(struct qhca_engine *e, struct vhca_qp *qp,
                       struct vhca_swr *wr)
{
    if (vhca_swr_is(wr, VHCA_WR_MEMOP)) {
        return true;
    }
    if (vhca_swr_is(wr, VHCA_WR_HAS_RESULT)) {
        wr->paged = e->memory->num_odp &&
                    vhca_segs_paged(e, wr->seg, wr->num_seg);
        return vhca_segs_check(e, &qp->user, wr->seg, wr->num_seg,
                               QHCA_ACCESS_LOCAL_WRITE);
    }
    /* Gathering a single packet checks its buffers. */
    return wr->num_psn == 1 ||
           vhca_segs_check(e, &qp->user, wr->seg, wr->num_seg, 0);
}

uint32_t vhca_swr_packets(const struct vhca_qp *qp, const struct vhca_swr *wr)
{
    if (vhca_swr_is(wr, VHCA_WR_MEMOP)) {
        return 0;
    }
    /* Atomics (8 bytes) and FLUSH (none) are one packet as well. */
    return vhca_qp_is(qp, VHCA_DATAGRAM | VHCA_RAW) ?
           1 : vhca_packets_of(wr->length, qp->mtu);
}

/* Return the place for the next WR, or NULL if there is no memory. */
static struct vhca_swr *next_place(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    if (!r->swr) {
        r->swr = e->qps->spare_swr;
        e->qps->spare_swr = NULL;
    }
    if (!r->swr) {
        r->swr = calloc(VHCA_INFLIGHT, sizeof(*r->swr));
        if (!r->swr) {
            return NULL;
        }
        e->qps->num_swr++;
    }
    if (qp->sq.ci == qp->sq.next) {
        r->swr_base = qp->sq.next;
    }
    return vhca_swr_at(qp, qp->sq.next);
}

void vhca_requester_rest(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->sq.ci == qp->sq.next && !e->qps->spare_swr) {
        e->qps->spare_swr = qp->req.swr;
        qp->req.swr = NULL;
    }
}

void vhca_requester_forget(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->req.swr) {
        e->qps->num_swr--;
        free(qp->req.swr);
        qp->req.swr = NULL;
    }
}

/* Read the next WQE and give it its PSNs. */
static void start_wqe(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = next_place(e, qp);
    enum vhca_wqe_result res = VHCA_WQE_UNREADABLE;

    if (wr) {
        res = vhca_wqe_fetch_send(e, qp, qp->sq.next, wr);
    }
    if (res == VHCA_WQE_UNREADABLE) {
        vhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
        return;
    }
    wr->first_psn = r->next_psn;
    wr->num_psn = 0;
    qp->sq.next++;
    if (res == VHCA_WQE_OK) {
        wr->num_psn = vhca_swr_packets(qp, wr);
        if (!buffers_ok(e, qp, wr)) {
            wr->fail = QHCA_WC_LOC_PROT_ERR;
        }
    }
    if (wr->fail) {
        wr->num_psn = 0;
        vhca_sq_fail_wr(e, qp, wr, (enum qhca_cqe_status)wr->fail);
        return;
    }
    r->next_psn = psn_add(r->next_psn, wr->num_psn);
}

void vhca_requester_hold(struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    if (qp->sq.ci != qp->sq.next) {
        /* Only the last one read can be: the next is read when it is sent. */
        struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.next - 1);

        if (r->max_psn == wr->first_psn && !wr->executed) {
            qp->sq.next--;
            r->next_psn = wr->first_psn;
            /* A bad WR will be judged again, but not another before it. */
            r->stopped = r->stopped && !wr->fail;
        }
    }
}

/* ---- what may be sent now ---- */

/* Whether a WR waits for a fence or for a READ resource (B-051, D-067). */
static bool held_back(const struct vhca_qp *qp, const struct vhca_swr *wr)
{
    const struct vhca_requester *r = &qp->req;

    if (wr->executed) {
        return false;
    }
    if (r->snd_psn != wr->first_psn) {
        /* The next piece of a READ follows when all of the last has come. */
        return vhca_swr_is(wr, VHCA_WR_READ) && r->una_psn != r->snd_psn;
    }
    if ((wr->flags & QHCA_WQE_FENCE) && r->rd_atomic) {
        return true;
    }
    if (wr->opcode == QHCA_WR_LOCAL_INV) {
        return r->snd_wqe != qp->sq.ci;     /* must be the oldest (B-052) */
    }
    return vhca_swr_is(wr, VHCA_WR_RD_ATOMIC) &&
           r->rd_atomic >= qp->attr.max_rd_atomic;
}

bool vhca_requester_ready(struct vhca_qp *qp)
{
    const struct vhca_requester *r = &qp->req;

    if ((qp->state != QHCA_QPS_RTS && qp->state != QHCA_QPS_SQD) ||
        r->rnr_wait || r->page_wait || r->flushing) {
        return false;
    }
    /* In nearly all cases the first comparison is enough. */
    if (psn_add(r->snd_psn, -r->una_psn) >= VHCA_WINDOW &&
        vhca_requester_unacked(r) >= VHCA_WINDOW) {
        return false;
    }
    if (r->snd_wqe == qp->sq.next) {
        return qp->state == QHCA_QPS_RTS && !r->stopped &&
               qp->sq.next != qp->sq.pi &&
               qp->sq.next - qp->sq.ci < VHCA_INFLIGHT;
    }

    const struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);

    return !wr->fail && !held_back(qp, wr);
}

/* ---- after a packet ---- */

void vhca_requester_sent(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct roce_packet *p)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);
    bool opens = r->snd_psn == wr->first_psn;
    uint32_t n = p->num_psn;

    VHCA_ASSERT(p->psn == r->snd_psn);
    if (psn_diff(r->snd_psn, r->max_psn) < 0) {
        vhca_count_qp(e, qp, QHCA_CNT_RETRANSMIT, 1);
    }
    if (vhca_swr_is(wr, VHCA_WR_READ)) {
        n = vhca_read_piece(qp, wr);
        r->read_psns += n;
    } else if (!vhca_swr_is(wr, VHCA_WR_BARE)) {
        r->unasked = p->ackreq ? 0 : r->unasked + n;
    }
    r->snd_psn = psn_add(r->snd_psn, n);
    /* A READ that continues in its middle after a rewind counts as well. */
    if (vhca_swr_is(wr, VHCA_WR_RD_ATOMIC) && (opens || !r->rd_atomic)) {
        r->rd_atomic++;
    }
    if (psn_diff(r->snd_psn, r->max_psn) > 0) {
        r->max_psn = r->snd_psn;
    }
    if (r->snd_psn == psn_add(wr->first_psn, wr->num_psn)) {
        r->snd_wqe++;
    }
    if (!vhca_qp_is(qp, VHCA_RELIABLE)) {
        /* The WR completes when its last packet has been sent (B-061). */
        r->una_psn = r->snd_psn;
        if (r->snd_wqe != qp->sq.ci) {
            vhca_sq_complete(e, qp);
            vhca_qp_check_drained(e, qp);
        }
    }
}

/* ---- WRs without packets: registration, windows, invalidation ---- */

static enum qhca_cqe_status memop_execute(struct qhca_engine *e,
                                          struct vhca_qp *qp,
                                          const struct vhca_swr *wr)
{
    switch (wr->opcode) {
    case QHCA_WR_REG_MR:
        return vhca_mr_fast_reg(e, &qp->user, &wr->memop);
    case QHCA_WR_BIND_MW:
        return vhca_mw_bind(e, &qp->user, &wr->memop);
    default:
        return vhca_mr_invalidate(e, &qp->user, wr->memop.key, false) ?
               QHCA_WC_SUCCESS : QHCA_WC_MW_BIND_ERR;
    }
}

/*
 * Execute the WR at the cursor, and advance the cursor. The WR owns no PSN:
 * when the cursor meets it again, after a retry, the cursor passes over it.
 */
static void memop_step(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;
    struct vhca_swr *wr = vhca_swr_at(qp, r->snd_wqe);

    vhca_spend(e, 1);
    if (!wr->executed) {
        enum qhca_cqe_status status = memop_execute(e, qp, wr);

        if (status != QHCA_WC_SUCCESS) {
            vhca_sq_fail_wr(e, qp, wr, status);
            return;
        }
        wr->executed = true;
    }
    r->snd_wqe++;
    if (wr == vhca_swr_at(qp, qp->sq.ci)) {
        vhca_sq_complete(e, qp);
    }
}

bool vhca_requester_poll(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    while (vhca_may_go_on(e) && vhca_requester_ready(qp)) {
        if (r->snd_wqe == qp->sq.next) {
            start_wqe(e, qp);   /* the WQE may be bad, or have to wait */
        } else if (vhca_swr_is(vhca_swr_at(qp, r->snd_wqe), VHCA_WR_MEMOP)) {
            memop_step(e, qp);
        } else {
            return true;
        }
    }
    return false;
}
