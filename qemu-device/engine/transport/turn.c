/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the turn of a QP: answers first, then requests, then flushing.
 * Also what empties a QP, and what happens to it when its CQ fails.
 */
#include "transport.h"

void qhca_qp_clear(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_swr *swr = qp->req.swr;

    qhca_timer_cancel(e, &qp->req.timer);
    qhca_list_del(&qp->ready);
    qhca_list_del(&qp->tx_wait);
    if (qp->srq && qp->rsp.rwr.taken) {
        qhca_srq_give_back(qp);                                 /* G-008 */
    }
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->rsp, 0, sizeof(qp->rsp));
    qp->req.swr = swr;
    qp->req.timer.fn = qhca_requester_timeout;
    qp->sq.pi = qp->sq.next = qp->sq.ci = 0;
    qp->rq.pi = qp->rq.ci = 0;
    qp->sqd_notify = qp->last_wqe_owed = false;
    qp->mtu = 0;
    if (qp->xrcd) {
        qp->srq = NULL;
        qp->user.pd = NULL;
    }
    memset(&qp->attr, 0, sizeof(qp->attr));
}

void qhca_qp_cq_failed(struct qhca_engine *e, struct qhca_cq *cq)
{
    struct qhca_qp *qp;

    qhca_table_each(&e->qps->table, qp) {
        if (qp->scq != cq && qp->rcq != cq) {
            continue;
        }
        if (qp->state == QHCA_QPS_ERR) {
            /*
             * Already in ERR, but its flush completions are lost: report
             * QP_FATAL again.
             */
            qhca_event(e, &qp->async, QHCA_EVENT_QP_FATAL);
        }
        qhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
    }
    qhca_xrc_cq_failed(e, cq);
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

static unsigned flush(struct qhca_engine *e, struct qhca_qp *qp,
                      unsigned budget)
{
    uint32_t end = sq_flush_end(qp);
    unsigned n = 0;

    for (; n < budget && qp->sq.ci != end; n++) {
        qhca_sq_flush_one(e, qp);
    }
    if (n) {
        qp->req.snd_wqe = qp->sq.ci;
    }
    if (qp->req.flushing && qp->sq.ci == end) {
        qp->req.flushing = false;
        qhca_qp_check_drained(e, qp);
    }
    for (; n < budget && qp->state == QHCA_QPS_ERR && qhca_recv_to_flush(qp);
         n++) {
        qhca_recv_flush_one(e, qp);
    }
    return n;
}

static bool has_work(struct qhca_qp *qp)
{
    if (to_flush(qp)) {
        return true;
    }
    return qp->state != QHCA_QPS_ERR && qhca_list_empty(&qp->tx_wait) &&
           (qhca_response_ready(qp) || qhca_requester_ready(qp));
}

/* A bounded part of the work @qp has; returns its cost in packets. */
static unsigned work(struct qhca_engine *e, struct qhca_qp *qp)
{
    unsigned n = 0;

    if (qp->state != QHCA_QPS_ERR) {
        n = qhca_response_work(e, qp, QHCA_BURST);
    }
    if (qp->state != QHCA_QPS_ERR && n < QHCA_BURST) {
        n += qhca_requester_work(e, qp, QHCA_BURST - n);
    }
    if (n < QHCA_BURST) {
        n += flush(e, qp, QHCA_BURST - n);
    }

    /* Round robin: to the end of the line, or off it. */
    qhca_list_del(&qp->ready);
    if (has_work(qp)) {
        qhca_qp_schedule(e, qp);
    }
    return MAX_OF(n, 1u);
}

unsigned qhca_qp_turn(struct qhca_engine *e)
{
    struct qhca_list *node = e->qps->ready.next;
    unsigned cost;

    if (qhca_list_empty(&e->qps->ready)) {
        return 0;
    }
    cost = work(e, container_of(node, struct qhca_qp, ready));
    if (e->qps->ready.next == node) {
        qhca_list_del(node);
        qhca_list_add_tail(&e->qps->ready, node);
    }
    return cost;
}
