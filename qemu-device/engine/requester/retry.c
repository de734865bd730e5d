/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, going back: the ACK timer, the RNR wait, and sending
 * again what was not acknowledged.
 */
#include "requester.h"

#define NS_PER_TIMEOUT_UNIT 4096ull     /* IBTA 9.7.6.1.3: 4.096 us * 2^t */

void vhca_requester_rewind(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    r->snd_psn = r->una_psn;
    r->read_psns = 0;
    r->snd_wqe = qp->sq.ci;
    r->rd_atomic = 0;
    r->unasked = 0;
    r->rewound = true;
    r->stale_from = r->una_psn;
    r->stale_to = r->max_psn;
    r->graces = 0;
    vhca_requester_timer(e, qp);
    vhca_qp_schedule(e, qp);
}

void vhca_requester_retry(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    vhca_trace_retry(e, qp->qpn, r->una_psn, r->retries);
    if (!r->retries) {
        vhca_count_qp(e, qp, QHCA_CNT_RETRY_EXC, 1);
        vhca_sq_fail(e, qp, QHCA_WC_RETRY_EXC_ERR);
        return;
    }
    r->retries--;
    vhca_requester_rewind(e, qp);
}

void vhca_requester_timer(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    if (r->rnr_wait || r->page_wait) {
        return;                 /* the timer runs for that (D-033) */
    }
    /* The turn in which the QP has failed may still get here. */
    if (r->max_psn == r->una_psn || !qp->attr.timeout ||
        qp->state == QHCA_QPS_ERR) {
        vhca_timer_cancel(e, &r->timer);
        return;
    }
    vhca_timer_set(e, &r->timer,
                   e->now + (NS_PER_TIMEOUT_UNIT << qp->attr.timeout));
}

/*
 * How many timeouts in a row do not count. Frames that still wait in this
 * device are not lost, however late the host lets it work: wait once more; nor
 * is what waits in line for a share of the CPU or the bandwidth: wait as many
 * times longer as the limit makes the device slower. But not for ever, because
 * other QPs must not keep this one from noticing a dead peer.
 */
static unsigned graces(const struct qhca_engine *e)
{
    if (e->cfg.cpu_share && !vhca_list_empty(&e->qps->ready.busy)) {
        return VHCA_MAX_GRACES / e->cfg.cpu_share;
    }
    if (vhca_port_limit(e) && !e->port->tx_blocked &&
        !vhca_list_empty(&e->qps->tx_wait.busy)) {
        return MIN_OF(VHCA_PORT_SPEED / vhca_port_limit(e), VHCA_MAX_GRACES);
    }
    return vhca_fifo_due(&e->port->loop) <= e->now || e->port->tx_blocked;
}

/*
 * Whether a limit still holds packets back, which the peer cannot have got. A
 * gate that has just opened has left the QP in line for its turn.
 */
static bool not_left(const struct qhca_engine *e, const struct vhca_qp *qp)
{
    bool paced = vhca_qp_paced(qp, qp->attr.av.static_rate);

    return (paced && (vhca_gate_waits(&qp->gate) ||
                      !vhca_list_empty(&qp->ready))) ||
           (!e->port->tx_blocked && !vhca_list_empty(&qp->tx_wait));
}

void vhca_requester_timeout(struct qhca_engine *e, struct vhca_timer *t)
{
    struct vhca_qp *qp = container_of(t, struct vhca_qp, req.timer);

    if (qp->req.rnr_wait || qp->req.page_wait) {
        qp->req.rnr_wait = qp->req.page_wait = false;
        vhca_requester_timer(e, qp);
        vhca_qp_schedule(e, qp);
        return;
    }
    if (not_left(e, qp)) {
        vhca_requester_timer(e, qp);
        return;
    }
    if (qp->req.graces < graces(e)) {
        qp->req.graces++;
        vhca_requester_timer(e, qp);
        return;
    }
    vhca_count_qp(e, qp, QHCA_CNT_TIMEOUT, 1);
    vhca_requester_retry(e, qp);
}

/* ---- page faults ---- */

/*
 * Until the driver answers the fault, ACKs go on arriving, but nothing is sent
 * and no ACK is missed. Without an answer the QP meets the fault again.
 */
void vhca_requester_park(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_requester *r = &qp->req;

    r->page_wait = true;
    vhca_qp_page_fault(e, qp, QHCA_PAGE_SEND, r->snd_wqe,
                       QHCA_WC_LOC_PROT_ERR);
    if (!r->rnr_wait) {
        vhca_timer_set(e, &r->timer, e->now + VHCA_PAGE_WAIT_NS);
    }
}

void vhca_requester_resume(struct qhca_engine *e, struct vhca_qp *qp, bool deny)
{
    const struct vhca_page_fault *f = &qp->fault[QHCA_PAGE_SEND];
    struct vhca_requester *r = &qp->req;

    if (!r->page_wait || qp->state == QHCA_QPS_ERR) {
        return;
    }
    r->page_wait = false;
    vhca_requester_timer(e, qp);
    if (deny && f->at - qp->sq.ci < qp->sq.next - qp->sq.ci) {
        vhca_sq_fail_wr(e, qp, vhca_swr_at(qp, f->at),
                        (enum qhca_cqe_status)f->why);
    }
    vhca_qp_schedule(e, qp);
}
