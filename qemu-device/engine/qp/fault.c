/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules that concern a QP, whatever packets there are.
 */
#include "qp.h"

void qhca_fault_raise(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_fault *does)
{
    enum qhca_event type = (enum qhca_event)does->value;

    if (type <= QHCA_EVENT_QP_ACCESS_ERR) {
        qhca_qp_error(e, qp, type);
    } else {
        qhca_event(e, &qp->async, type);
    }
}

enum qhca_cqe_status qhca_fault_cqe(struct qhca_engine *e, struct qhca_qp *qp,
                                    struct qhca_cq *cq, uint8_t opcode)
{
    struct qhca_fault_at at = { .point = QHCA_FAULT_CQE, .kind = opcode };
    struct qhca_fault does;

    at.field[QHCA_FAULT_QPN] = qp->qpn;
    at.field[QHCA_FAULT_CQN] = cq->cqn;
    does = qhca_fault_judge(e, &at);
    if (does.action == QHCA_FAULT_FAIL) {
        return (enum qhca_cqe_status)does.value;
    }
    if (does.action == QHCA_FAULT_OVERRUN) {
        qhca_cq_overrun(e, cq);
    } else if (does.action == QHCA_FAULT_RAISE) {
        qhca_fault_raise(e, qp, &does);
    }
    return QHCA_WC_SUCCESS;
}
