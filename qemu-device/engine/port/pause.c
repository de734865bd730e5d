/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: frames by which the other end of the cable pauses the port: all
 * of it (IEEE 802.3, annex 31B), or some classes of traffic (802.1Qbb).
 */
#include "port.h"

#define OPCODE_AT       ETH_LEN
#define OPCODE_PAUSE    0x0001
#define OPCODE_PFC      0x0101
#define PAUSE_LEN       (ETH_LEN + 2u + 2)
#define PFC_LEN         (ETH_LEN + 2u + 2 + 2 * VHCA_CLASSES)
#define QUANTUM_BITS    512u

/* Let classes go on whose time has come, and wait for the next of them. */
static void pause_go_on(struct qhca_engine *e)
{
    struct vhca_pause *p = &e->port->pause;
    uint64_t next = UINT64_MAX;
    uint8_t before = p->classes;

    for (unsigned i = 0; i < VHCA_CLASSES; i++) {
        if (p->until[i] <= e->now) {
            p->classes &= (uint8_t)~(1u << i);
        } else if (p->classes >> i & 1) {
            next = MIN_OF(next, p->until[i]);
        }
    }
    if (p->classes != before) {
        vhca_list_move(&p->let_go, &p->held);
    }
    if (p->classes) {
        vhca_timer_set(e, &p->timer, next);
    } else {
        vhca_timer_cancel(e, &p->timer);
    }
}

void vhca_pause_due(struct qhca_engine *e, struct vhca_timer *t)
{
    (void)t;
    pause_go_on(e);
}

void vhca_pause(struct qhca_engine *e, uint8_t classes, uint64_t ns)
{
    for (unsigned i = 0; i < VHCA_CLASSES; i++) {
        if (classes >> i & 1) {
            e->port->pause.until[i] = e->now + MIN_OF(ns, VHCA_PAUSE_NS);
        }
    }
    e->port->pause.classes |= classes;
    pause_go_on(e);
}

/* Return the ns that a time in a frame stands for. */
static uint64_t quanta(const struct qhca_engine *e, const uint8_t *field)
{
    return (uint64_t)get_be16(field) * QUANTUM_BITS * 1000 /
           vhca_port_speed(e);
}

void vhca_pause_rx(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    static const uint8_t group[6] = { 0x01, 0x80, 0xc2, 0, 0, 0x01 };
    uint16_t opcode = len < PAUSE_LEN ? 0 : get_be16(frame + OPCODE_AT);

    if (memcmp(frame, group, 6) != 0 &&
        memcmp(frame, e->port->mac, 6) != 0) {
        return;
    }
    if (opcode == OPCODE_PAUSE) {
        vhca_pause(e, 0xff, quanta(e, frame + OPCODE_AT + 2));
    } else if (opcode == OPCODE_PFC && len >= PFC_LEN) {
        uint8_t which = frame[OPCODE_AT + 3];

        for (unsigned i = 0; i < VHCA_CLASSES; i++) {
            if (which >> i & 1) {
                vhca_pause(e, (uint8_t)(1u << i),
                           quanta(e, frame + OPCODE_AT + 4 + 2 * i));
            }
        }
    } else {
        vhca_count(e, QHCA_CNT_RX_MALFORMED);
        return;
    }
    vhca_count(e, QHCA_CNT_RX_PAUSE);
}
