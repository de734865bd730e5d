/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the end of send work requests. They complete in
 * order: with success, an error, or because the queue is flushed (A-097 to
 *
 */
#include "requester.h"

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

void qhca_sq_fail_oldest(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->req.stopped && qp->state != QHCA_QPS_ERR &&
        qp->sq.ci != qp->sq.next) {
        struct qhca_swr *wr = qhca_swr_at(qp, qp->sq.ci);

        if (wr->fail) {
            qhca_sq_fail(e, qp, wr->fail);
        }
    }
}

void qhca_sq_flush_one(struct qhca_engine *e, struct qhca_qp *qp)
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
