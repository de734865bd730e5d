/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the way out. Frames of both kinds, RoCE and Ethernet, leave in
 * the order in which they come here.
 */
#include "port.h"

static bool send_now(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    if (e->port->tx_blocked || qhca_fifo_used(&e->port->tx)) {
        return false;
    }
    if (!e->ops->send_frame(e->opaque, frame, len)) {
        e->port->tx_blocked = true;
        return false;
    }
    return true;
}

static bool loop(struct qhca_engine *e, const uint8_t *frame, size_t len,
                 uint32_t from)
{
    bool ok = qhca_fifo_push(&e->port->loop, frame, len, from);

    if (ok && e->ops->loop_frame) {
        e->ops->loop_frame(e->opaque, frame, len);
    }
    return ok;
}

bool qhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from)
{
    if (!qhca_running(e)) {
        return false;
    }
    qhca_spend_bytes(e, len, QHCA_UNIT_FRAME);
    if (!qhca_port_up(e)) {
        return true;
    }
    qhca_pace_take(&e->port->pace, e->now, len);
    if (from) {
        return loop(e, frame, len, from);
    }
    return send_now(e, frame, len) ||
           qhca_fifo_push(&e->port->tx, frame, len, 0);
}

bool qhca_tx_room(struct qhca_engine *e, bool loop, unsigned n)
{
    const struct qhca_fifo *f = loop ? &e->port->loop : &e->port->tx;

    return qhca_fifo_used(f) + n <= QHCA_FIFO_FRAMES;
}

void qhca_tx_flush(struct qhca_engine *e)
{
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    e->port->tx_blocked = false;
    while (qhca_running(e) &&
           (frame = qhca_fifo_peek(&e->port->tx, &len, &from))) {
        if (qhca_port_up(e) && !e->ops->send_frame(e->opaque, frame, len)) {
            e->port->tx_blocked = true;
            return;
        }
        qhca_spend(e, 1);
        qhca_fifo_pop(&e->port->tx);
    }
}
