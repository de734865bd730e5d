/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, cmd: the command queue, and what the device tells about itself.
 * The handlers of commands are in the rooms of their objects.
 */
#ifndef QHCA_ENGINE_CMD_H
#define QHCA_ENGINE_CMD_H

#include "../rules/rules.h"
#include "../verbs/verbs.h"
#include "../shadow/shadow.h"

#define VHCA_CMD_LOG_MAX    8

struct vhca_cmdq {
    uint64_t sq, cq;
    uint8_t log_size;
    uint32_t pi, ci;            /* commands that are executed now */
    uint32_t rung;              /* behind @pi: those that have to wait */
    uint32_t cq_pi;             /* completions */
    uint32_t steps;             /* calls of handlers; not in a saved state */
    bool stalled;               /* by a fault rule */
    bool active;                /* the command at ci is being executed */
    bool judged;                /* fault rules have judged it */
    struct qhca_cmd cmd;
    struct vhca_cmd_ctx ctx;
    _Alignas(8) uint8_t mbox[QHCA_PAGE_SIZE];
};

/* Ring the command doorbell. */
bool vhca_cmdq_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* Whether there is a command to execute or to continue. */
static inline bool vhca_cmdq_ready(const struct qhca_engine *e)
{
    return e->cmdq->ci != e->cmdq->pi && !e->cmdq->stalled &&
           !vhca_shadow_owes(e);
}

/* Execute commands, within the budget. */
void vhca_cmdq_work(struct qhca_engine *e);
/* Forget the queue and its commands. */
void vhca_cmdq_reset(struct qhca_engine *e);
/* Start the queue; returns false if the base registers are wrong. */
bool vhca_cmdq_start(struct qhca_engine *e);

/*
 * Walk over the command queue of a device in @state. A command being executed
 * is saved as one that has not begun; its handler reads everything again.
 */
void vhca_cmdq_walk(struct vhca_snap *s, uint8_t state);

#endif /* QHCA_ENGINE_CMD_H */
