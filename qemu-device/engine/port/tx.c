/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the way out. RoCE and Ethernet frames leave in the order in
 * which they are handed in.
 */
#include "port.h"

static bool send_now(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    if (e->port->tx_blocked || vhca_fifo_used(&e->port->tx)) {
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
    bool ok = vhca_fifo_push(&e->port->loop, frame, len, from);

    if (ok && e->ops->loop_frame) {
        e->ops->loop_frame(e->opaque, frame, len);
    }
    return ok;
}

bool vhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from)
{
    VHCA_ASSERT(len <= QHCA_MAX_FRAME);
    if (!vhca_running(e)) {
        return false;
    }
    vhca_spend_bytes(e, len, QHCA_UNIT_FRAME);
    if (!vhca_port_up(e)) {
        return true;
    }
    vhca_port_pay(e, len);
    if (from) {
        return loop(e, frame, len, from);
    }
    return send_now(e, frame, len) ||
           vhca_fifo_push(&e->port->tx, frame, len, 0);
}

bool vhca_tx_room(struct qhca_engine *e, bool loop, unsigned n)
{
    const struct vhca_fifo *f = loop ? &e->port->loop : &e->port->tx;

    return vhca_fifo_used(f) + n <= QHCA_FIFO_FRAMES;
}

void vhca_tx_flush(struct qhca_engine *e)
{
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    e->port->tx_blocked = false;
    while (vhca_running(e) &&
           (frame = vhca_fifo_peek(&e->port->tx, &len, &from))) {
        if (vhca_port_up(e) && !e->ops->send_frame(e->opaque, frame, len)) {
            e->port->tx_blocked = true;
            return;
        }
        vhca_spend(e, 1);
        vhca_fifo_pop(&e->port->tx);
    }
}
