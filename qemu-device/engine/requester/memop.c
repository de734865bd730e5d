/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the work requests that never leave it: fast
 * registration, binding of windows, local invalidation.
 *
 * They have no packets and own no PSN. The requester's cursor stops at each of
 * them once, which is when it is executed; when the cursor comes by again,
 * after a retry, it is stepped over.
 */
#include "requester.h"

static enum qhca_cqe_status execute(struct qhca_engine *e, struct qhca_qp *qp,
                                    const struct qhca_swr *wr)
{
    switch (wr->opcode) {
    case QHCA_WR_REG_MR:
        return qhca_mr_fast_reg(e, &qp->user, &wr->memop);
    case QHCA_WR_BIND_MW:
        return qhca_mw_bind(e, &qp->user, &wr->memop);
    default:
        return qhca_mr_invalidate(e, &qp->user, wr->memop.key, false) ?
               QHCA_WC_SUCCESS : QHCA_WC_MW_BIND_ERR;
    }
}

void qhca_memop_step(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_requester *r = &qp->req;
    struct qhca_swr *wr = qhca_swr_at(qp, r->snd_wqe);

    qhca_spend(e, 1);
    if (!wr->executed) {
        wr->fail = (uint8_t)execute(e, qp, wr);
        if (wr->fail) {
            r->stopped = true;
            qhca_sq_fail_oldest(e, qp);
            return;
        }
        wr->executed = true;
    }
    r->snd_wqe++;
    if (wr == qhca_swr_at(qp, qp->sq.ci)) {
        qhca_sq_complete(e, qp);
    }
}
