/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: arms. A CQE that an arm asks for has its event, and there is
 * no event without. Where two devices are compared nothing is armed: doorbells
 * let a device go on, and which CQs are empty then is not the same for both.
 */
#include "sim.h"

static struct gcq *find_cq(struct sim *s, const struct node *n, uint32_t cqn)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct rc_qp *q = &s->qp[i].q;

        if (q->n == n && (q->scq.cqn == cqn || q->rcq.cqn == cqn)) {
            return q->scq.cqn == cqn ? &q->scq : &q->rcq;
        }
    }
    return NULL;
}

static bool asks_for(const struct gcq *cq, const struct qhca_cqe *c)
{
    return cq->armed == QHCA_CQ_ARM_NEXT ||
           (cq->armed && (c->status != QHCA_WC_SUCCESS ||
                          le16toh(c->flags) & QHCA_CQE_SOLICITED));
}

/* Whether a CQE came that the arm asks for. None has been polled since. */
static bool is_due(const struct gcq *cq)
{
    struct gcq at = *cq;
    struct qhca_cqe c;

    for (; cq_peek(&at, &c); at.ci++) {
        if (asks_for(cq, &c)) {
            return true;
        }
    }
    return false;
}

void sim_arm_events(struct sim *s, struct node *n)
{
    struct qhca_eqe e;

    if (s->seen) {
        return;
    }
    /* The doorbell may bring more CQEs, and their events. */
    eq_arm(&n->comp);
    while (eq_next(&n->comp, &e)) {
        struct gcq *cq = find_cq(s, n, le32toh(e.obj));

        if (!cq || !is_due(cq) || cq->sn != le32toh(e.arm_sn)) {
            sim_fail(s, "event of CQ 0x%x for arm %u", le32toh(e.obj),
                     le32toh(e.arm_sn));
        } else {
            cq->armed = QHCA_CQ_NOT_ARMED;
            s->saw[SIM_SAW_COMP]++;
        }
    }
}

void sim_arm_check(struct sim *s, const struct gcq *cq,
                   const struct qhca_cqe *c)
{
    if (asks_for(cq, c)) {
        sim_fail(s, "CQ 0x%x was armed, but there is no event", cq->cqn);
    }
}

void sim_arm(struct sim *s, struct gcq *cq)
{
    struct qhca_cqe c;
    unsigned how = sim_rand(s, 6);

    if (s->seen) {
        return;
    }
    /* CQEs from before the arm raise no event. */
    if (how < 2 && !cq_peek(cq, &c)) {
        cq_arm(cq, how);
    }
}
