/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: fault rules for commands. */
#include "cmd.h"

int vhca_fault_cmd(struct qhca_engine *e)
{
    struct vhca_cmdq *q = e->cmdq;
    unsigned opcode = le16toh(q->cmd.opcode);
    struct vhca_fault_at at = {
        .point = QHCA_FAULT_CMD, .kind = (uint8_t)opcode,
    };
    struct vhca_fault does;

    q->judged = true;
    if (opcode > UINT8_MAX) {
        return QHCA_OK;
    }
    does = vhca_fault_judge(e, &at);
    if (does.action == QHCA_FAULT_STALL) {
        q->stalled = true;
        e->faults->stalled = does.value ? e->now + does.value : 0;
        vhca_faults_update(e);
        return QHCA_AGAIN;
    }
    return does.action == QHCA_FAULT_FAIL ? (int)does.value : QHCA_OK;
}
