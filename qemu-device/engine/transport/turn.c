/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the turn of a QP: answers first, then requests, then flushing.
 * Also what empties a QP, and what happens to it when its CQ fails.
 */
#include <stdlib.h>

#include "transport.h"

void qhca_qp_clear(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_timer_cancel(e, &qp->req.timer);
    qhca_list_del(&qp->ready);
    qhca_list_del(&qp->tx_wait);
    if (qp->srq && qp->rsp.rwr.taken) {
        qhca_srq_give_back(e, qp);                              /* G-008 */
    }
    qhca_requester_forget(e, qp);
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->rsp, 0, sizeof(qp->rsp));
    qp->req.timer.fn = qhca_requester_timeout;
    qp->sq.pi = qp->sq.next = qp->sq.ci = 0;
    qp->rq.pi = qp->rq.ci = 0;
    qp->rq.rings = false;
    qp->sqd_notify = qp->last_wqe_owed = false;
    qp->mtu = 0;
    if (qp->xrcd) {
        qp->srq = NULL;
        qp->user.pd = NULL;
    }
    memset(&qp->attr, 0, sizeof(qp->attr));
}

static void cq_failed(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR) {
        /*
         * Already in ERR, but its flush completions are lost: report QP_FATAL
         * again.
         */
        qhca_event(e, &qp->async, QHCA_EVENT_QP_FATAL);
    }
    qhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
}

void qhca_qp_cq_failed(struct qhca_engine *e)
{
    struct qhca_cq *cq = qhca_cq_failed(e);
    const struct qhca_table *t = &e->qps->table;
    struct qhca_qp *qp;

    while ((qp = qhca_table_scan(e, t, &cq->qps_told)) != NULL) {
        if (qp->scq == cq || qp->rcq == cq) {
            cq_failed(e, qp);
        }
    }
    if (cq->qps_told == t->size && qhca_xrc_cq_failed(e, cq)) {
        qhca_list_del(&cq->failed);
    }
}

/* Index up to which send WRs are to be flushed. */
static uint32_t sq_flush_end(const struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
        return qp->sq.pi;
    }
    return qp->req.flushing ? qp->req.flush_to : qp->sq.ci;
}

static bool to_flush(const struct qhca_qp *qp)
{
    return qp->sq.ci != sq_flush_end(qp) ||
           (qp->state == QHCA_QPS_ERR && qhca_recv_to_flush(qp));
}

static void flush(struct qhca_engine *e, struct qhca_qp *qp)
{
    uint32_t end = sq_flush_end(qp);

    if (qp->sq.ci != end) {
        while (qp->sq.ci != end && qhca_may_go_on(e)) {
            qhca_sq_flush_one(e, qp);
        }
        qp->req.snd_wqe = qp->sq.ci;
    }
    if (qp->req.flushing && qp->sq.ci == end) {
        qp->req.flushing = false;
        qhca_qp_check_drained(e, qp);
    }
    if (qp->state == QHCA_QPS_ERR) {
        qhca_recv_stop(e, qp);
    }
    while (qp->state == QHCA_QPS_ERR && qhca_recv_to_flush(qp) &&
           qhca_may_go_on(e)) {
        qhca_recv_flush_one(e, qp);
    }
}

static bool has_work(struct qhca_qp *qp)
{
    if (to_flush(qp)) {
        return true;
    }
    return qp->state != QHCA_QPS_ERR && qhca_list_empty(&qp->tx_wait) &&
           (qhca_response_ready(qp) || qhca_requester_ready(qp));
}

void qhca_qp_turn(struct qhca_engine *e)
{
    struct qhca_qp *qp = qhca_qp_next(e);

    if (!qp) {
        return;
    }
    if (qp->state != QHCA_QPS_ERR) {
        qhca_link_turn(e, qp);
    }
    /* The ACK timer runs if, after that, something is outstanding. */
    if (qp->state != QHCA_QPS_ERR && !qp->req.timer.pos) {
        qhca_requester_timer(e, qp);
    }
    flush(e, qp);
    qhca_requester_rest(e, qp);
    /* What it has done may have put it in line again, in vain. */
    qhca_list_del(&qp->ready);
    if (has_work(qp)) {
        qhca_qp_schedule(e, qp);
    }
}
