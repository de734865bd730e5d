/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the command queue: a ring of commands, a ring of completions. */
#include "../save/save.h"
#include "driver.h"

_Static_assert(sizeof(__le64[QHCA_CNT_MAX]) <= QHCA_PAGE_SIZE,
               "counters do not fit a mailbox");

static const char *const status_name[] = {
    [QHCA_OK] = "ok",
    [QHCA_ERR_OPCODE] = "no such command",
    [QHCA_ERR_PARAM] = "bad parameter",
    [QHCA_ERR_LIMIT] = "above the limit",
    [QHCA_ERR_OBJ] = "no such object",
    [QHCA_ERR_BUSY] = "object in use",
    [QHCA_ERR_STATE] = "wrong state",
    [QHCA_ERR_NO_RESOURCE] = "no more objects",
    [QHCA_ERR_DMA] = "DMA failed",
    [QHCA_ERR_NOT_SUPPORTED] = "not supported",
    [QHCA_ERR_PERM] = "not permitted",
};

/* struct command - what executes an opcode, and its mailbox, if any */
struct command {
    const char *name;
    int (*run)(struct qhca_engine *e, struct vhca_cmd_ctx *c);
    enum { NO_MBOX, MBOX_IN, MBOX_OUT } dir;
    uint16_t mbox_len;
};

#define QHCA_COMMAND(id, name, ...) \
    [QHCA_CMD_##id] = { #id, vhca_do_##name, NO_MBOX, 0 },
#define QHCA_COMMAND_IN(id, name, number, type) \
    [QHCA_CMD_##id] = { #id, vhca_do_##name, MBOX_IN, sizeof(type) },
#define QHCA_COMMAND_OUT(id, name, number, type) \
    [QHCA_CMD_##id] = { #id, vhca_do_##name, MBOX_OUT, sizeof(type) },
static const struct command commands[] = {
#include "qhca/commands.def"
};

/* Prepare the mailbox before the first call of the handler. */
static int begin(struct qhca_engine *e, const struct command *command)
{
    struct vhca_cmdq *q = e->cmdq;
    uint64_t mbox = le64toh(q->cmd.mailbox);

    if (command->dir != NO_MBOX &&
        (!mbox || mbox & (QHCA_PAGE_SIZE - 1))) {
        return QHCA_ERR_PARAM;
    }
    memset(q->mbox, 0, command->mbox_len);
    return command->dir != MBOX_IN ||
           vhca_dma_read(e, mbox, q->mbox, command->mbox_len) ?
           QHCA_OK : QHCA_ERR_DMA;
}

static int run_command(struct qhca_engine *e, const struct command *command)
{
    struct vhca_cmdq *q = e->cmdq;
    int status = q->ctx.again ? QHCA_OK : begin(e, command);

    if (status == QHCA_OK) {
        q->steps++;
        status = command->run(e, &q->ctx);
        q->ctx.again = true;
    }
    if (status == QHCA_OK && command->dir == MBOX_OUT) {
        vhca_tamper(e, VHCA_TOLD_MBOX, q->mbox, command->mbox_len);
        if (!vhca_dma_write(e, le64toh(q->cmd.mailbox), q->mbox,
                            command->mbox_len)) {
            return QHCA_ERR_DMA;
        }
    }
    return status;
}

/*
 * Apply fault rules to the command that has been read. Returns QHCA_OK, the
 * status it fails with, or VHCA_AGAIN if the queue stalls.
 */
static int judge(struct qhca_engine *e)
{
    struct vhca_cmdq *q = e->cmdq;
    unsigned opcode = le16toh(q->cmd.opcode);
    struct vhca_rule_at at = {
        .point = VHCA_RULE_CMD, .kind = (uint8_t)opcode,
    };
    struct vhca_effect does;

    q->judged = true;
    if (opcode > UINT8_MAX) {
        return QHCA_OK;
    }
    does = vhca_rule_judge(e, &at);
    if (does.action == VHCA_RULE_STALL) {
        q->stalled = true;
        e->rules->stalled = does.value ? e->now + does.value : 0;
        vhca_rules_update(e);
        return VHCA_AGAIN;
    }
    return does.action == VHCA_RULE_FAIL ? (int)does.value : QHCA_OK;
}

static int cmdq_execute(struct qhca_engine *e, uint32_t slot)
{
    unsigned opcode = le16toh(e->cmdq->cmd.opcode);
    const struct command *command =
        opcode < ARRAY_SIZE(commands) && commands[opcode].run ?
        &commands[opcode] : NULL;
    int status = e->cmdq->judged ? QHCA_OK : judge(e);

    /* Held back data must not reach memory that the command takes away. */
    vhca_late_finish(e, VHCA_EVERY_QP);
    vhca_early_drop(e);
    if (status == QHCA_OK) {
        status = command ? run_command(e, command) : QHCA_ERR_OPCODE;
    }
    if (status == VHCA_AGAIN) {
        return status;
    }
    if (status != QHCA_OK) {
        vhca_count(e, QHCA_CNT_BAD_CMD);
        vhca_guest_error(e, "command %s (0x%x): %s",
                         command ? command->name : "?", opcode,
                         status_name[status]);
    }
    vhca_trace_cmd(e, opcode, slot, (unsigned)status);
    return status;
}

static bool complete(struct qhca_engine *e, uint32_t slot, int status)
{
    struct vhca_cmdq *q = e->cmdq;
    struct qhca_cmd_comp comp = {
        .opcode = q->cmd.opcode,
        .slot = htole16((uint16_t)slot),
        .token = q->cmd.token,
        .status = (uint8_t)status,
        .obj = htole32(status == QHCA_OK ? q->ctx.obj : 0),
        .owner = (q->cq_pi >> q->log_size) & 1 ? 0 : QHCA_OWNER_PHASE,
    };
    uint64_t addr = q->cq + (q->cq_pi & ((1u << q->log_size) - 1)) *
                    sizeof(comp);

    q->cq_pi++;
    vhca_tamper(e, VHCA_TOLD_CMD, &comp, sizeof(comp));
    return vhca_dma_write_entry(e, addr, &comp, sizeof(comp));
}

/* Read the next command; false: the ring cannot be read. */
static bool take(struct qhca_engine *e, uint32_t slot)
{
    struct vhca_cmdq *q = e->cmdq;

    q->active = vhca_dma_read(e, q->sq + slot * sizeof(q->cmd), &q->cmd,
                              sizeof(q->cmd));
    q->ctx.cmd = &q->cmd;
    q->ctx.mbox = q->mbox;
    q->judged = !vhca_rules_at(e, VHCA_RULE_CMD);
    q->ctx.again = false;
    q->ctx.obj = q->ctx.from = q->ctx.done = 0;
    return q->active;
}

/* Free whatever the command did not keep. */
static void drop_imports(struct qhca_engine *e)
{
    struct vhca_cmd_ctx *c = &e->cmdq->ctx;

    for (unsigned i = 0; i < ARRAY_SIZE(c->import); i++) {
        vhca_import_drop(e, &c->import[i]);
    }
}

/*
 * Whether the driver needs an interrupt for the command in @slot, the answer to
 * which is in memory. A driver that stops looking for the answer clears
 * @polled, and then looks once more, so one of both sees what the other wrote.
 */
static bool wants_irq(struct qhca_engine *e, uint32_t slot)
{
    struct vhca_cmdq *q = e->cmdq;
    uint64_t addr = q->sq + slot * sizeof(q->cmd) +
                    offsetof(struct qhca_cmd, polled);
    uint8_t polled = q->cmd.polled;

    return !polled || !vhca_dma_read(e, addr, &polled, sizeof(polled)) ||
           !polled;
}

/*
 * Execute the next command, or continue the current one. Returns false if a
 * ring cannot be accessed and the device has stopped. Sets @tell if the driver
 * needs an interrupt.
 */
static bool serve_one(struct qhca_engine *e, bool *tell)
{
    struct vhca_cmdq *q = e->cmdq;
    uint32_t slot = q->ci & ((1u << q->log_size) - 1);
    int status;

    if (q->active || take(e, slot)) {
        status = cmdq_execute(e, slot);
        if (status == VHCA_AGAIN) {
            return true;
        }
        drop_imports(e);
        q->active = false;
        q->ci++;
        if (complete(e, slot, status)) {
            *tell |= wants_irq(e, slot);
            return true;
        }
    }
    if (vhca_running(e)) {
        vhca_guest_error(e, "command ring at slot %u: DMA failed", slot);
        vhca_fatal(e, QHCA_FATAL_CMDQ_DMA);
    }
    return false;
}

/*
 * When all commands are done, begin with those that have been rung for since.
 * Serve the doorbells that a process left in memory before its command. Do not
 * wait for later ones: other processes could then delay a command for ever.
 */
static void next_commands(struct qhca_engine *e)
{
    struct vhca_cmdq *q = e->cmdq;

    if (q->ci == q->pi && q->pi != q->rung) {
        q->pi = q->rung;
        vhca_shadow_owe(e);
    }
}

void vhca_cmdq_work(struct qhca_engine *e)
{
    bool tell = false;

    while (vhca_cmdq_ready(e) && vhca_may_go_on(e) && serve_one(e, &tell)) {
        next_commands(e);
    }
    if (tell) {
        vhca_raise_irq(e, 0);
    }
}

bool vhca_cmdq_doorbell(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_cmdq *q = e->cmdq;

    if (db->obj) {
        return false;
    }
    if (db->index - q->ci > 1u << q->log_size) {
        vhca_guest_error(e, "command doorbell %u, at %u, ring of %u", db->index,
                         q->ci, 1u << q->log_size);
        vhca_fatal(e, QHCA_FATAL_CMDQ_INDEX);
        return true;
    }
    /* Commands can be taken back, but not one that has begun. */
    q->rung = q->active && db->index == q->ci ? q->ci + 1 : db->index;
    if (q->rung - q->ci < q->pi - q->ci) {
        q->pi = q->rung;
    }
    next_commands(e);
    return true;
}

void vhca_cmdq_reset(struct qhca_engine *e)
{
    drop_imports(e);
    memset(e->cmdq, 0, sizeof(*e->cmdq));
}

static bool rings_ok(const struct vhca_cmdq *q)
{
    const uint64_t low = QHCA_PAGE_SIZE - 1;

    return q->sq && q->cq && !(q->sq & low) && !(q->cq & low) &&
           q->log_size <= VHCA_CMD_LOG_MAX;
}

bool vhca_cmdq_start(struct qhca_engine *e)
{
    struct vhca_cmdq *q = e->cmdq;

    q->pi = q->ci = q->rung = q->cq_pi = 0;
    return rings_ok(q);
}

static const struct vhca_snap_field cmdq_fields[] = {
    VHCA_SNAP_ANY(struct vhca_cmdq, sq, cq, log_size, pi, ci, cq_pi),
    VHCA_SNAP_FLAG(struct vhca_cmdq, active),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_cmdq, 28896);

void vhca_cmdq_walk(struct vhca_snap *s, uint8_t state)
{
    struct vhca_cmdq *q = s->e->cmdq;
    uint32_t num;

    vhca_snap_fields(s, cmdq_fields, q);
    q->rung = vhca_snap_u32(s, "rung", q->rung, UINT32_MAX);
    num = q->rung - q->ci;
    if (state == QHCA_STATE_RUNNING) {
        vhca_snap_check(s, rings_ok(q), "command rings");
        vhca_snap_check(s, s->bad || num <= 1u << q->log_size, "commands");
        vhca_snap_check(s, q->pi != q->ci || !num, "commands");
    }
    vhca_snap_check(s, q->pi - q->ci <= num, "commands");
    vhca_snap_check(s, state != QHCA_STATE_RESET || !num, "commands");
    vhca_snap_check(s, num || !q->active, "command");
    if (q->active && !s->bad) {
        vhca_snap_raw(s, "command", &q->cmd, sizeof(q->cmd));
        q->ctx.cmd = &q->cmd;
        q->ctx.mbox = q->mbox;
    }
}
