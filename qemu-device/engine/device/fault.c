/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: what fault rules do later, from the timer: packets held back,
 * and actions on the whole device.
 */
#include "device.h"

static void packets(struct qhca_engine *e)
{
    struct vhca_fault_held *h;

    while (vhca_may_go_on(e) && (h = vhca_fault_due(e)) != NULL) {
        (h->point == QHCA_FAULT_TX ? vhca_fault_send : vhca_fault_take)(e, h);
    }
}

static void link(struct qhca_engine *e, bool down)
{
    struct vhca_faults *f = e->faults;

    if (down) {
        f->link_back = MAX_OF(f->link_back, e->now + f->link_ns);
        vhca_port_set_link(e, false);
    } else if (f->link_back && f->link_back <= e->now) {
        f->link_back = 0;
        vhca_port_set_link(e, e->device->link_wanted);
    }
}

static void due(struct qhca_engine *e, struct vhca_timer *t)
{
    struct vhca_faults *f = e->faults;
    unsigned wanted;

    (void)t;
    vhca_faults_tick(e);
    wanted = f->wanted;
    f->wanted = 0;
    packets(e);
    link(e, wanted & 1u << QHCA_FAULT_LINK_DOWN);
    if (f->stalled && f->stalled <= e->now) {
        f->stalled = 0;
        e->cmdq->stalled = false;
    }
    if (wanted & 1u << QHCA_FAULT_REMOVE) {
        e->ops->remove(e->opaque);
    }
    if (wanted & 1u << QHCA_FAULT_FATAL) {
        vhca_fatal(e, QHCA_FATAL_INJECTED);
    }
    vhca_faults_update(e);
}

void vhca_faults_init(struct qhca_engine *e)
{
    e->faults->timer.fn = due;
    e->device->link_wanted = true;
}

void vhca_faults_end(struct qhca_engine *e)
{
    if (e->faults->link_back) {
        e->port->link = e->device->link_wanted;
    }
}
