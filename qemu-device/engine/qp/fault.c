/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules for completions and events of a QP.
 */
#include "qp.h"

void vhca_fault_raise(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_fault *does)
{
    enum qhca_event type = (enum qhca_event)does->value;

    if (type <= QHCA_EVENT_QP_ACCESS_ERR) {
        vhca_qp_error(e, qp, type);
    } else {
        vhca_event(e, &qp->async, type);
    }
}

enum qhca_cqe_status vhca_fault_cqe(struct qhca_engine *e, struct vhca_qp *qp,
                                    struct vhca_cq *cq, uint8_t opcode)
{
    struct vhca_fault_at at = { .point = QHCA_FAULT_CQE, .kind = opcode };
    struct vhca_fault does;

    at.field[QHCA_FAULT_QPN] = qp->qpn;
    at.field[QHCA_FAULT_CQN] = cq->cqn;
    does = vhca_fault_judge(e, &at);
    if (does.action == QHCA_FAULT_FAIL) {
        return (enum qhca_cqe_status)does.value;
    }
    if (does.action == QHCA_FAULT_OVERRUN) {
        vhca_cq_overrun(e, cq);
    } else if (does.action == QHCA_FAULT_RAISE) {
        vhca_fault_raise(e, qp, &does);
    }
    return QHCA_WC_SUCCESS;
}
