/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: life of a QP between creation and destruction: completions,
 * errors, flushing, doorbells. Its commands are in qp_cmd.c.
 */
#include "recv.h"

struct qhca_qp *qhca_qp_get(struct qhca_engine *e, uint32_t qpn)
{
    struct qhca_qp *qp = qpn == QHCA_QPN_GSI ?
                         e->qps->gsi : qhca_table_get(&e->qps->table, qpn);

    return qp && qp->qpn == qpn ? qp : NULL;
}

void qhca_qp_schedule(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qhca_list_empty(&qp->ready)) {
        qhca_list_add_tail(&e->qps->ready, &qp->ready);
    }
}

struct qhca_qp *qhca_qp_of_ready(struct qhca_list *n)
{
    return container_of(n, struct qhca_qp, ready);
}

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

void qhca_qp_error(struct qhca_engine *e, struct qhca_qp *qp, unsigned event)
{
    if (qp->state == QHCA_QPS_ERR) {
        return;
    }
    qhca_trace(e, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, QHCA_QPS_ERR);
    qp->state = QHCA_QPS_ERR;
    qhca_timer_cancel(e, &qp->req.timer);
    qp->sqd_notify = false;
    qp->last_wqe_owed = qhca_qp_shares_rq(qp);
    qp->rsp.q_head = qp->rsp.q_tail;
    if (event) {
        qhca_event(e, &qp->async, (enum qhca_event)event);
    }
    qhca_qp_schedule(e, qp);
}

void qhca_qp_cq_failed(struct qhca_engine *e, struct qhca_cq *cq)
{
    struct qhca_qp *qp;

    qhca_table_each(&e->qps->table, qp) {
        if (qp->scq != cq && qp->rcq != cq) {
            continue;
        }
        if (qp->state == QHCA_QPS_ERR) {
            /* Flushed CQEs were lost: that is news, whatever came before. */
            qhca_event(e, &qp->async, QHCA_EVENT_QP_FATAL);
        }
        qhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
    }
    qhca_xrc_cq_failed(e, cq);
}

/* ---- completions ---- */

static const uint8_t cqe_opcode[] = {
    [QHCA_WR_SEND] = QHCA_CQE_SEND,
    [QHCA_WR_SEND_WITH_IMM] = QHCA_CQE_SEND,
    [QHCA_WR_SEND_WITH_INV] = QHCA_CQE_SEND,
    [QHCA_WR_RDMA_WRITE] = QHCA_CQE_RDMA_WRITE,
    [QHCA_WR_RDMA_WRITE_WITH_IMM] = QHCA_CQE_RDMA_WRITE,
    [QHCA_WR_RDMA_READ] = QHCA_CQE_RDMA_READ,
    [QHCA_WR_ATOMIC_CMP_AND_SWP] = QHCA_CQE_COMP_SWAP,
    [QHCA_WR_ATOMIC_FETCH_AND_ADD] = QHCA_CQE_FETCH_ADD,
    [QHCA_WR_BIND_MW] = QHCA_CQE_BIND_MW,
    [QHCA_WR_LOCAL_INV] = QHCA_CQE_LOCAL_INV,
    [QHCA_WR_REG_MR] = QHCA_CQE_REG_MR,
    [QHCA_WR_FLUSH] = QHCA_CQE_FLUSH,
    [QHCA_WR_ATOMIC_WRITE] = QHCA_CQE_ATOMIC_WRITE,
    [QHCA_WR_MASKED_ATOMIC_CMP_AND_SWP] = QHCA_CQE_MASKED_COMP_SWAP,
    [QHCA_WR_MASKED_ATOMIC_FETCH_AND_ADD] = QHCA_CQE_MASKED_FETCH_ADD,
};

/* CQE of the send WQE at sq.ci, which is then done with. */
static void push_send_cqe(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct qhca_swr *wr,
                          enum qhca_cqe_status status)
{
    struct qhca_cqe cqe = {
        .wr_id = htole64(wr->wr_id),
        .qpn = htole32(qp->qpn),
        .wqe_index = htole32(qp->sq.ci),
        .flags = htole16(QHCA_CQE_SQ),
        .opcode = wr->opcode < ARRAY_SIZE(cqe_opcode) ?
                  cqe_opcode[wr->opcode] : QHCA_CQE_SEND,
        .status = (uint8_t)status,
    };

    if (qhca_swr_has_result(wr)) {
        cqe.byte_len = htole32(wr->length);
    }
    qp->sq.ci++;
    qhca_cq_push(e, qp->scq, &cqe, false);
}

static void complete_one(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct qhca_swr *wr)
{
    if ((wr->flags & QHCA_WQE_SIGNALED) ||
        (qp->flags & QHCA_QP_FLAG_SIGNAL_ALL)) {
        push_send_cqe(e, qp, wr, QHCA_WC_SUCCESS);
    } else {
        qp->sq.ci++;
    }
}

void qhca_sq_complete(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_swr *wr = qhca_swr_at(qp, qp->sq.ci);

    /* Only those that went out since the last rewind were counted. */
    if (qhca_swr_is_rd_atomic(wr) && qp->req.rd_atomic) {
        qp->req.rd_atomic--;
    }
    complete_one(e, qp, wr);
    for (; qp->sq.ci != qp->sq.next; complete_one(e, qp, wr)) {
        wr = qhca_swr_at(qp, qp->sq.ci);
        if (!wr->executed) {
            break;
        }
        if (qp->req.snd_wqe == qp->sq.ci) {
            qp->req.snd_wqe++;          /* the cursor was on its way again */
        }
    }
}

static void enter_sqe(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_trace(e, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, QHCA_QPS_SQE);
    qp->state = QHCA_QPS_SQE;
    qp->sqd_notify = false;
    qhca_requester_abandon(qp);
    qhca_qp_schedule(e, qp);
}

void qhca_sq_fail(struct qhca_engine *e, struct qhca_qp *qp,
                  enum qhca_cqe_status status)
{
    push_send_cqe(e, qp, qhca_swr_at(qp, qp->sq.ci), status);
    if (qhca_qp_is_reliable(qp)) {
        qhca_qp_error(e, qp, 0);
    } else {
        enter_sqe(e, qp);
    }
}

void qhca_sq_reap(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->req.stopped && qp->state != QHCA_QPS_ERR &&
        qp->sq.ci != qp->sq.next) {
        struct qhca_swr *wr = qhca_swr_at(qp, qp->sq.ci);

        if (wr->fail) {
            qhca_sq_fail(e, qp, wr->fail);
        }
    }
}

void qhca_qp_check_drained(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->sqd_notify && qp->state == QHCA_QPS_SQD && !qhca_qp_draining(qp)) {
        qp->sqd_notify = false;
        qhca_event(e, &qp->async, QHCA_EVENT_SQ_DRAINED);
    }
}

/* ---- flushing (A-097 to A-099) ---- */

static void flush_one_send(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_swr unread = { 0 };
    struct qhca_swr *wr = &unread;

    if (qp->sq.ci != qp->sq.next) {
        wr = qhca_swr_at(qp, qp->sq.ci);
    } else {
        /* Never started: only who it was counts, not whether it was right. */
        (void)qhca_wqe_fetch_send(e, qp, qp->sq.ci, wr);
        qp->sq.next++;
    }
    push_send_cqe(e, qp, wr, QHCA_WC_WR_FLUSH_ERR);
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
        flush_one_send(e, qp);
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

/* ---- the run loop's and the doorbells' entry points ---- */

static bool has_work(struct qhca_qp *qp)
{
    if (to_flush(qp)) {
        return true;
    }
    return qp->state != QHCA_QPS_ERR && qhca_list_empty(&qp->tx_wait) &&
           (qhca_response_ready(qp) || qhca_requester_ready(qp));
}

unsigned qhca_qp_work(struct qhca_engine *e, struct qhca_qp *qp)
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

void qhca_qp_tx_ready(struct qhca_engine *e)
{
    while (!qhca_list_empty(&e->qps->tx_wait)) {
        struct qhca_qp *qp = container_of(e->qps->tx_wait.next, struct qhca_qp,
                                          tx_wait);

        qhca_list_del(&qp->tx_wait);
        qhca_qp_schedule(e, qp);
    }
}

/* States in which a doorbell means anything. */
static const bool takes_sq[] = {
    [QHCA_QPS_RTS] = true, [QHCA_QPS_SQD] = true, [QHCA_QPS_SQE] = true,
    [QHCA_QPS_ERR] = true,
};

bool qhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (!qp || qp->uar != page || !takes_sq[qp->state] ||
        !qhca_wq_index_ok(&qp->sq, pi)) {
        return false;
    }
    qp->sq.pi = pi;
    qhca_qp_schedule(e, qp);
    return true;
}

bool qhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (!qp || qp->uar != page || qp->state == QHCA_QPS_RESET ||
        !qhca_wq_index_ok(&qp->rq, pi)) {
        return false;
    }
    qp->rq.pi = pi;
    if (qp->state == QHCA_QPS_ERR) {
        qhca_qp_schedule(e, qp);
    }
    return true;
}
