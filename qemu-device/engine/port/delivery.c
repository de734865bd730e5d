/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the delivery of a frame to many. A receiver may take thousands
 * of accesses to memory, and there may be hundreds of them, so the delivery
 * stops when the budget ends and goes on in the next turn. Its receivers are
 * those that there were when the frame came.
 */
#include "port.h"

uint32_t vhca_delivery_next(struct qhca_engine *e)
{
    struct vhca_delivery *d = &e->port->delivery;
    uint32_t number = 0;

    while (!number && d->next < d->num && vhca_may_go_on(e)) {
        number = d->to[d->next++];
    }
    return number;
}

void vhca_delivery_stop(struct qhca_engine *e, const uint8_t *frame, size_t len,
                        bool csum_ok)
{
    struct vhca_delivery *d = &e->port->delivery;

    if (d->next == d->num || !vhca_running(e)) {
        d->kind = VHCA_TO_NOBODY;
        d->num = d->next = 0;
        return;
    }
    d->len = (uint32_t)len;
    d->csum_ok = csum_ok;
    if (frame != d->frame) {
        memcpy(d->frame, frame, len);
    }
}

void vhca_delivery_forget(struct qhca_engine *e, enum vhca_receivers kind,
                          const uint8_t *gid, uint32_t number)
{
    struct vhca_delivery *d = &e->port->delivery;

    if (d->kind != kind || (gid && memcmp(gid, d->gid, sizeof(d->gid)) != 0)) {
        return;
    }
    for (uint32_t i = d->next; i < d->num; i++) {
        if (d->to[i] == number) {
            d->to[i] = 0;
        }
    }
}

void vhca_rx_keep(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    vhca_spend_bytes(e, len, VHCA_UNIT_FRAME);
    if (vhca_fifo_push(&e->port->loop, frame, len, 0, e->now)) {
        e->port->late_rx++;
    } else {
        vhca_count(e, QHCA_CNT_RX_NO_ROOM);
    }
}

void vhca_loop_pop(struct qhca_engine *e)
{
    uint32_t from;
    size_t len;

    vhca_fifo_peek(&e->port->loop, &len, &from);
    e->port->late_rx -= !from;
    vhca_fifo_pop(&e->port->loop);
}
