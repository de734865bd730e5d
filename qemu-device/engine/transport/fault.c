/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules where packets of QPs arrive.
 */
#include "transport.h"

void qhca_fault_take(struct qhca_engine *e, struct qhca_fault_held *h)
{
    qhca_spend_bytes(e, h->len, QHCA_UNIT_FRAME);
    if (qhca_port_up(e)) {
        qhca_roce_take(e, h->frame, h->len, h->from);
    }
    qhca_fault_release(e, h);
}

static void raise_event(struct qhca_engine *e,
                        const struct qhca_fault_frame *f)
{
    struct qhca_qp *qp = qhca_qp_get(e, f->qpn);

    if (qp) {
        qhca_fault_raise(e, qp, &f->does);
    }
}

void qhca_fault_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from)
{
    uint8_t copy[ROCE_MAX_FRAME];
    struct qhca_fault_frame f = {
        .point = QHCA_FAULT_RX, .frame = copy, .len = len, .from = from,
    };
    struct qhca_fault_held *h;
    unsigned times;

    if (len > sizeof(copy)) {
        qhca_roce_take(e, frame, len, from);
        return;
    }
    memcpy(copy, frame, len);
    times = qhca_fault_frame(e, &f);
    if (f.does.action == QHCA_FAULT_NAK &&
        qhca_roce_refuse(e, copy, len, from, (uint8_t)f.does.value)) {
        return;
    }
    if (f.does.action == QHCA_FAULT_RAISE) {
        raise_event(e, &f);
    }
    for (unsigned i = 0; i < times; i++) {
        qhca_spend(e, i);
        qhca_roce_take(e, copy, len, from);
    }
    while (times && (h = qhca_fault_behind(e, &f)) != NULL) {
        qhca_fault_take(e, h);
    }
}
