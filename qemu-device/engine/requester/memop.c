/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, work requests without packets: fast registration,
 * binding of windows, local invalidation.
 *
 * They own no PSN. When the cursor reaches one it is executed; when the cursor
 * passes it again, after a retry, it is stepped over.
 */
#include "requester.h"

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

void vhca_memop_step(struct qhca_engine *e, struct vhca_qp *qp)
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
