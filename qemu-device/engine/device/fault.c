/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules for commands, and what rules have put off: packets,
 * and all that is the whole device's.
 */
#include "device.h"

int qhca_fault_cmd(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    unsigned opcode = le16toh(q->cmd.opcode);
    struct qhca_fault_at at = {
        .point = QHCA_FAULT_CMD, .kind = (uint8_t)opcode,
    };
    struct qhca_fault does;

    q->judged = true;
    if (opcode > UINT8_MAX) {
        return QHCA_OK;
    }
    does = qhca_fault_judge(e, &at);
    if (does.action == QHCA_FAULT_STALL) {
        q->stalled = true;
        e->faults->stalled = does.value ? e->now + does.value : 0;
        qhca_faults_update(e);
        return QHCA_AGAIN;
    }
    return does.action == QHCA_FAULT_FAIL ? (int)does.value : QHCA_OK;
}

static void packets(struct qhca_engine *e)
{
    struct qhca_fault_held *h;

    while (qhca_may_go_on(e) && (h = qhca_fault_due(e)) != NULL) {
        (h->point == QHCA_FAULT_TX ? qhca_fault_send : qhca_fault_take)(e, h);
    }
}

static void link(struct qhca_engine *e, bool down)
{
    struct qhca_faults *f = e->faults;

    if (down) {
        f->link_back = MAX_OF(f->link_back, e->now + f->link_ns);
        qhca_port_set_link(e, false);
    } else if (f->link_back && f->link_back <= e->now) {
        f->link_back = 0;
        qhca_port_set_link(e, e->device->link_wanted);
    }
}

static void due(struct qhca_engine *e, struct qhca_timer *t)
{
    struct qhca_faults *f = e->faults;
    unsigned wanted;

    (void)t;
    qhca_faults_tick(e);
    wanted = f->wanted;
    f->wanted = 0;
    packets(e);
    link(e, wanted & 1u << QHCA_FAULT_LINK_DOWN);
    if (f->stalled && f->stalled <= e->now) {
        f->stalled = 0;
        e->device->cmdq.stalled = false;
    }
    if (wanted & 1u << QHCA_FAULT_REMOVE) {
        e->ops->remove(e->opaque);
    }
    if (wanted & 1u << QHCA_FAULT_FATAL) {
        qhca_fatal(e, QHCA_FATAL_INJECTED);
    }
    qhca_faults_update(e);
}

void qhca_faults_init(struct qhca_engine *e)
{
    e->faults->timer.fn = due;
    e->device->link_wanted = true;
}

void qhca_faults_end(struct qhca_engine *e)
{
    if (e->faults->link_back) {
        e->port->link = e->device->link_wanted;
    }
}
