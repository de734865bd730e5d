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

/*
 * @f has passed. A held frame for a group, which may have many members, gets a
 * step of its own.
 */
static void release_behind(struct qhca_engine *e,
                           const struct qhca_fault_frame *f)
{
    struct qhca_fault_held *h = qhca_fault_behind(e, f);

    if (h && f->qpn == QHCA_QPN_MCAST) {
        qhca_fault_hurry(e, h);
    } else if (h) {
        qhca_fault_take(e, h);
    }
}

void qhca_fault_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from)
{
    uint8_t copy[ROCE_MAX_FRAME];
    struct qhca_fault_frame f = {
        .point = QHCA_FAULT_RX, .frame = copy, .len = len, .from = from,
    };
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
    if (times) {
        qhca_roce_take(e, copy, len, from);
    }
    if (times > 1 && f.qpn == QHCA_QPN_MCAST) {
        qhca_fault_repeat(e, &f);
    } else if (times > 1) {
        qhca_spend_bytes(e, len, QHCA_UNIT_FRAME);
        qhca_roce_take(e, copy, len, from);
    }
    if (times) {
        release_behind(e, &f);
    }
}
