/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: what fault rules have put off.
 */
#include "device.h"

static void due(struct qhca_engine *e, struct qhca_timer *t)
{
    struct qhca_fault_held *h;

    (void)t;
    while (qhca_may_go_on(e) && (h = qhca_fault_due(e)) != NULL) {
        (h->point == QHCA_FAULT_TX ? qhca_fault_send : qhca_fault_take)(e, h);
    }
    qhca_faults_update(e);
}

void qhca_faults_init(struct qhca_engine *e)
{
    e->faults->timer.fn = due;
}
