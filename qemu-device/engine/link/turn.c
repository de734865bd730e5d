/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the turn of a QP: responses, then requests, then flushing. */
#include "../steering/steering.h"
#include "link.h"

/* Return the index up to which send WRs are to be flushed. */
static uint32_t sq_flush_end(const struct vhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
        return qp->sq.pi;
    }
    return qp->req.flushing ? qp->req.flush_to : qp->sq.ci;
}

static void flush(struct qhca_engine *e, struct vhca_qp *qp)
{
    uint32_t end = sq_flush_end(qp);

    if (qp->sq.ci != end) {
        while (qp->sq.ci != end && vhca_may_go_on(e)) {
            vhca_sq_flush_one(e, qp);
        }
        qp->req.snd_wqe = qp->sq.ci;
    }
    if (qp->req.flushing && qp->sq.ci == end) {
        qp->req.flushing = false;
        vhca_qp_check_drained(e, qp);
    }
    if (qp->state == QHCA_QPS_ERR) {
        vhca_recv_stop(e, qp);
    }
    while (qp->state == QHCA_QPS_ERR && vhca_recv_to_flush(qp) &&
           vhca_may_go_on(e)) {
        vhca_recv_flush_one(e, qp);
    }
}

/* Whether it has something to send that need not wait at the gate. */
static bool has_to_send(struct vhca_qp *qp)
{
    if (qp->rated && qp->gate.cnp_owed) {
        return true;
    }
    if (qp->rated && vhca_gate_waits(&qp->gate)) {
        return vhca_response_ready(qp) && !vhca_response_is_data(qp);
    }
    return vhca_response_ready(qp) || vhca_requester_ready(qp);
}

void vhca_qp_turn(struct qhca_engine *e)
{
    struct vhca_qp *qp = vhca_qp_next(e);

    if (!qp) {
        return;
    }
    if (qp->state != QHCA_QPS_ERR) {
        (vhca_qp_is(qp, VHCA_RAW) ? vhca_raw_turn : vhca_link_turn)(e, qp);
    }
    /* Start the ACK timer if there is something outstanding now. */
    if (qp->state != QHCA_QPS_ERR && !qp->req.timer.pos) {
        vhca_requester_timer(e, qp);
    }
    flush(e, qp);
    vhca_requester_rest(e, qp);
    qp->rated = qp->rated && vhca_qp_rated(e, qp);
    /* The turn itself may have put it in line, with nothing to do. */
    vhca_list_del(&qp->ready);
    if (qp->sq.ci != sq_flush_end(qp) ||
        (qp->state == QHCA_QPS_ERR ? vhca_recv_to_flush(qp) :
         vhca_list_empty(&qp->tx_wait) && has_to_send(qp))) {
        vhca_qp_schedule(e, qp);
    }
}
