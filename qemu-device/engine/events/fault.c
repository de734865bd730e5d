/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: fault rules for events and interrupts.
 */
#include "events.h"

bool vhca_fault_event(struct qhca_engine *e, uint8_t type, uint32_t obj)
{
    struct vhca_fault_at at = { .point = QHCA_FAULT_EVENT, .kind = type };

    at.field[QHCA_FAULT_OBJ] = obj;
    return vhca_fault_judge(e, &at).action != QHCA_FAULT_DROP;
}

bool vhca_fault_irq(struct qhca_engine *e, unsigned vector)
{
    struct vhca_fault_at at = { .point = QHCA_FAULT_IRQ };

    at.field[QHCA_FAULT_VECTOR] = vector;
    return vhca_fault_judge(e, &at).action != QHCA_FAULT_DROP;
}
