/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the end of send work requests. They complete in
 * order: with success, with an error, or because the queue is flushed (A-097 to
 *
 */
#include "requester.h"

/* Push the CQE of the send WQE at sq.ci, and free the WQE. */
static void push_send_cqe(struct qhca_engine *e, struct vhca_qp *qp,
                          const struct vhca_swr *wr,
                          enum qhca_cqe_status status)
{
    struct qhca_cqe cqe = {
        .wr_id = htole64(wr->wr_id),
        .qpn = htole32(qp->qpn),
        .wqe_index = htole32(qp->sq.ci),
        .flags = htole16(QHCA_CQE_SQ),
        .opcode = vhca_wr_info(wr->opcode)->cqe,
        .status = (uint8_t)status,
    };

    if (vhca_swr_is(wr, VHCA_WR_HAS_RESULT)) {
        cqe.byte_len = htole32(wr->length);
    }
    qp->sq.ci++;
    vhca_cq_push(e, qp->scq, &cqe, false);
}

/* Complete the WR at sq.ci; false: a fault rule has made it fail. */
static bool complete_one(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct vhca_swr *wr)
{
    if (vhca_rules_at(e, VHCA_RULE_CQE)) {
        enum qhca_cqe_status status =
            vhca_rule_cqe(e, qp, qp->scq, vhca_wr_info(wr->opcode)->cqe);

        if (status != QHCA_WC_SUCCESS) {
            vhca_sq_fail(e, qp, status);
            return false;
        }
    }
    if ((wr->flags & QHCA_WQE_SIGNALED) ||
        (qp->flags & QHCA_QP_FLAG_SIGNAL_ALL)) {
        push_send_cqe(e, qp, wr, QHCA_WC_SUCCESS);
    } else {
        qp->sq.ci++;
    }
    return true;
}

void vhca_sq_complete(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.ci);

    /* WRs that have not been sent again since a rewind are not in the count. */
    if (vhca_swr_is(wr, VHCA_WR_RD_ATOMIC) && qp->req.rd_atomic) {
        qp->req.rd_atomic--;
    }
    while (complete_one(e, qp, wr) && qp->sq.ci != qp->sq.next) {
        wr = vhca_swr_at(qp, qp->sq.ci);
        if (!wr->executed) {
            break;
        }
        if (qp->req.snd_wqe == qp->sq.ci) {
            qp->req.snd_wqe++;          /* after a rewind */
        }
    }
}

void vhca_sq_fail(struct qhca_engine *e, struct vhca_qp *qp,
                  enum qhca_cqe_status status)
{
    struct vhca_requester *r = &qp->req;

    push_send_cqe(e, qp, vhca_swr_at(qp, qp->sq.ci), status);
    if (vhca_qp_is(qp, VHCA_RELIABLE)) {
        vhca_qp_error(e, qp, 0);
        return;
    }
    vhca_trace_qp_state(e, qp->qpn, qp->state, QHCA_QPS_SQE);
    qp->state = QHCA_QPS_SQE;
    qp->sqd_notify = false;
    /* Give up what was started; PSNs continue behind the last that was sent. */
    r->next_psn = r->max_psn = r->una_psn = r->snd_psn;
    r->read_psns = 0;
    r->snd_wqe = qp->sq.ci;
    r->stopped = false;
    vhca_qp_schedule(e, qp);
}

void vhca_sq_fail_oldest(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->req.stopped && qp->state != QHCA_QPS_ERR &&
        qp->sq.ci != qp->sq.next) {
        struct vhca_swr *wr = vhca_swr_at(qp, qp->sq.ci);

        if (wr->fail) {
            vhca_sq_fail(e, qp, wr->fail);
        }
    }
}

void vhca_sq_fail_wr(struct qhca_engine *e, struct vhca_qp *qp,
                     struct vhca_swr *wr, enum qhca_cqe_status status)
{
    wr->fail = (uint8_t)status;
    qp->req.stopped = true;
    vhca_sq_fail_oldest(e, qp);
}

void vhca_sq_flush_one(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_swr unread = { 0 };
    struct vhca_swr *wr = &unread;

    if (qp->sq.ci != qp->sq.next) {
        wr = vhca_swr_at(qp, qp->sq.ci);
    } else {
        /* Not started: wr_id and opcode matter, not whether it is valid. */
        (void)vhca_wqe_fetch_send(e, qp, qp->sq.ci, wr);
        qp->sq.next++;
    }
    push_send_cqe(e, qp, wr, QHCA_WC_WR_FLUSH_ERR);
}
