/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the way out. RoCE and Ethernet frames leave in the order in
 * which they are handed in, each when its time has come.
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
                 uint32_t from, uint64_t due)
{
    bool ok = vhca_fifo_push(&e->port->loop, frame, len, from, due);

    if (ok && e->ops->loop_frame) {
        e->ops->loop_frame(e->opaque, frame, len);
    }
    return ok;
}

static void wait_until(struct qhca_engine *e, uint64_t due)
{
    struct vhca_timer *t = &e->port->line;

    if (!t->pos || t->deadline > due) {
        vhca_timer_set(e, t, due);
    }
}

bool vhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from)
{
    uint64_t latency = vhca_port_latency(e), due = e->now + latency;

    VHCA_ASSERT(len <= VHCA_MAX_FRAME);
    if (!vhca_running(e)) {
        return false;
    }
    vhca_spend_bytes(e, len, VHCA_UNIT_FRAME);
    if (!vhca_port_up(e)) {
        return true;
    }
    vhca_port_pay(e, len);
    if (latency) {
        e->rules->late->hits++;
        wait_until(e, due);
    }
    if (from) {
        return loop(e, frame, len, from, due);
    }
    return (!latency && send_now(e, frame, len)) ||
           vhca_fifo_push(&e->port->tx, frame, len, 0, due);
}

bool vhca_tx_long(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  const struct qhca_long_frame *how,
                  const struct vhca_cut *cut)
{
    if (!vhca_running(e) || !vhca_port_up(e) || e->port->tx_blocked ||
        vhca_fifo_used(&e->port->tx) || e->rules->late || e->rules->slow ||
        !e->ops->send_long(e->opaque, frame, len, how)) {
        return false;
    }
    vhca_spend(e, (cut->num - 1) * MAX_OF(cut->len / VHCA_UNIT_FRAME, 1u));
    vhca_spend_bytes(e, cut->last, VHCA_UNIT_FRAME);
    vhca_port_pay(e, vhca_cut_bytes(cut));
    return true;
}

bool vhca_tx_room(const struct qhca_engine *e, bool loop, unsigned n)
{
    const struct vhca_fifo *f = loop ? &e->port->loop : &e->port->tx;

    return vhca_fifo_used(f) + n <= VHCA_FIFO_FRAMES;
}

bool vhca_tx_free(const struct qhca_engine *e)
{
    return vhca_port_open(e) && vhca_tx_room(e, false, VHCA_TX_RESERVE + 1) &&
           vhca_tx_room(e, true, VHCA_TX_RESERVE + 1);
}

bool vhca_loop_waits(const struct qhca_engine *e)
{
    return vhca_fifo_used(&e->port->loop) &&
           vhca_fifo_due(&e->port->loop) > e->now;
}

/* Hand frames to the network until it refuses one. */
static void drain(struct qhca_engine *e)
{
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    while (vhca_running(e) && vhca_fifo_due(&e->port->tx) <= e->now) {
        frame = vhca_fifo_peek(&e->port->tx, &len, &from);
        if (vhca_port_up(e) && !e->ops->send_frame(e->opaque, frame, len)) {
            e->port->tx_blocked = true;
            return;
        }
        vhca_spend(e, 1);
        vhca_fifo_pop(&e->port->tx);
    }
}

void vhca_tx_wait(struct qhca_engine *e)
{
    uint64_t due = vhca_fifo_due(&e->port->loop);

    if (!e->port->tx_blocked) {
        due = MIN_OF(due, vhca_fifo_due(&e->port->tx));
    }
    if (due != UINT64_MAX) {
        wait_until(e, due);
    }
}

void vhca_tx_flush(struct qhca_engine *e)
{
    e->port->tx_blocked = false;
    drain(e);
    vhca_tx_wait(e);
}

/* The run loop receives those to the port itself. */
void vhca_tx_due(struct qhca_engine *e, struct vhca_timer *t)
{
    (void)t;
    if (!e->port->tx_blocked) {
        drain(e);
    }
    vhca_tx_wait(e);
}
