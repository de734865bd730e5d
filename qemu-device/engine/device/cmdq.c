/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the command queue. A ring of commands, a ring of completions;
 * the rooms say what to do for each opcode.
 */
#include "device.h"

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

static const struct qhca_command *in_list(const struct qhca_command *row,
                                          unsigned opcode)
{
    for (; row->run; row++) {
        if (row->opcode == opcode) {
            return row;
        }
    }
    return NULL;
}

static const struct qhca_command *in_room(const struct qhca_room *room,
                                          unsigned opcode)
{
    const struct qhca_command *row;

    for (unsigned i = 0; room->commands && room->commands[i]; i++) {
        row = in_list(room->commands[i], opcode);
        if (row) {
            return row;
        }
    }
    return NULL;
}

static const struct qhca_command *find_command(unsigned opcode)
{
    const struct qhca_command *row = NULL;

    for (unsigned i = 0; !row && qhca_rooms[i]; i++) {
        row = in_room(qhca_rooms[i], opcode);
    }
    return row;
}

/* Before the first call of the handler. */
static int begin(struct qhca_engine *e, const struct qhca_command *command)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    uint64_t mbox = le64toh(q->cmd.mailbox);

    if (command->dir != QHCA_NO_MBOX &&
        (!mbox || mbox & (QHCA_PAGE_SIZE - 1))) {
        return QHCA_ERR_PARAM;
    }
    memset(q->mbox, 0, command->mbox_len);
    return command->dir != QHCA_MBOX_IN ||
           qhca_dma_read(e, mbox, q->mbox, command->mbox_len) ?
           QHCA_OK : QHCA_ERR_DMA;
}

static int run_command(struct qhca_engine *e,
                       const struct qhca_command *command)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    int status = q->ctx.again ? QHCA_OK : begin(e, command);

    if (status == QHCA_OK) {
        q->steps++;
        status = command->run(e, &q->ctx);
        q->ctx.again = true;
    }
    if (status == QHCA_OK && command->dir == QHCA_MBOX_OUT) {
        qhca_tamper(e, QHCA_TOLD_MBOX, q->mbox, command->mbox_len);
        if (!qhca_dma_write(e, le64toh(q->cmd.mailbox), q->mbox,
                            command->mbox_len)) {
            return QHCA_ERR_DMA;
        }
    }
    return status;
}

static int execute(struct qhca_engine *e, uint32_t slot)
{
    unsigned opcode = le16toh(e->device->cmdq.cmd.opcode);
    const struct qhca_command *command = find_command(opcode);
    int status = e->device->cmdq.judged ? QHCA_OK : qhca_fault_cmd(e);

    if (status == QHCA_OK) {
        status = command ? run_command(e, command) : QHCA_ERR_OPCODE;
    }
    if (status == QHCA_AGAIN) {
        return status;
    }
    if (status != QHCA_OK) {
        qhca_count(e, QHCA_CNT_BAD_CMD);
        qhca_guest_error(e, "command %s (0x%x): %s",
                         command ? command->name : "?", opcode,
                         status_name[status]);
    }
    qhca_trace(e, QHCA_TRACE_CMD, opcode, slot, (unsigned)status);
    return status;
}

static bool complete(struct qhca_engine *e, uint32_t slot, int status)
{
    struct qhca_cmdq *q = &e->device->cmdq;
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
    qhca_tamper(e, QHCA_TOLD_CMD, &comp, sizeof(comp));
    return qhca_dma_write_entry(e, addr, &comp, sizeof(comp));
}

/* The next command; false: the ring cannot be read. */
static bool take(struct qhca_engine *e, uint32_t slot)
{
    struct qhca_cmdq *q = &e->device->cmdq;

    q->active = qhca_dma_read(e, q->sq + slot * sizeof(q->cmd), &q->cmd,
                              sizeof(q->cmd));
    q->ctx.cmd = &q->cmd;
    q->ctx.mbox = q->mbox;
    q->judged = !qhca_faults_at(e, QHCA_FAULT_CMD);
    q->ctx.again = false;
    q->ctx.obj = q->ctx.from = q->ctx.done = 0;
    return q->active;
}

/* What the command has not made its own goes. */
static void drop_imports(struct qhca_engine *e)
{
    struct qhca_cmd_ctx *c = &e->device->cmdq.ctx;

    for (unsigned i = 0; i < ARRAY_SIZE(c->import); i++) {
        qhca_import_drop(e, &c->import[i]);
    }
}

/*
 * Takes the next command, or goes on with one. False: a ring cannot be
 * accessed, and the device has stopped.
 */
static bool serve_one(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    uint32_t slot = q->ci & ((1u << q->log_size) - 1);
    int status;

    if (q->active || take(e, slot)) {
        status = execute(e, slot);
        if (status == QHCA_AGAIN) {
            return true;
        }
        drop_imports(e);
        q->active = false;
        q->ci++;
        if (complete(e, slot, status)) {
            return true;
        }
    }
    if (qhca_running(e)) {
        qhca_guest_error(e, "command ring at slot %u: DMA failed", slot);
        qhca_fatal(e, QHCA_FATAL_CMDQ_DMA);
    }
    return false;
}

void qhca_cmdq_work(struct qhca_engine *e)
{
    uint32_t before = e->device->cmdq.cq_pi;

    while (qhca_cmdq_ready(e) && qhca_may_go_on(e) && serve_one(e)) {
        continue;
    }
    if (e->device->cmdq.cq_pi != before) {
        qhca_raise_irq(e, 0);
    }
}

void qhca_cmdq_doorbell(struct qhca_engine *e, uint32_t pi)
{
    struct qhca_cmdq *q = &e->device->cmdq;

    if (pi - q->ci > 1u << q->log_size) {
        qhca_guest_error(e, "command doorbell %u, at %u, ring of %u", pi, q->ci,
                         1u << q->log_size);
        qhca_fatal(e, QHCA_FATAL_CMDQ_INDEX);
        return;
    }
    q->pi = pi;
}

void qhca_cmdq_reset(struct qhca_engine *e)
{
    drop_imports(e);
    memset(&e->device->cmdq, 0, sizeof(e->device->cmdq));
}

static bool rings_ok(const struct qhca_cmdq *q)
{
    const uint64_t low = QHCA_PAGE_SIZE - 1;

    return q->sq && q->cq && !(q->sq & low) && !(q->cq & low) &&
           q->log_size <= QHCA_CMD_LOG_MAX;
}

bool qhca_cmdq_start(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;

    q->pi = q->ci = q->cq_pi = 0;
    return rings_ok(q);
}

static const struct qhca_snap_field cmdq_fields[] = {
    QHCA_SNAP_ANY(struct qhca_cmdq, sq),
    QHCA_SNAP_ANY(struct qhca_cmdq, cq),
    QHCA_SNAP_ANY(struct qhca_cmdq, log_size),
    QHCA_SNAP_ANY(struct qhca_cmdq, pi),
    QHCA_SNAP_ANY(struct qhca_cmdq, ci),
    QHCA_SNAP_ANY(struct qhca_cmdq, cq_pi),
    QHCA_SNAP_FLAG(struct qhca_cmdq, active),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_cmdq, 28888);

void qhca_cmdq_walk(struct qhca_snap *s, uint8_t state)
{
    struct qhca_cmdq *q = &s->e->device->cmdq;
    uint32_t num;

    qhca_snap_fields(s, cmdq_fields, q);
    num = q->pi - q->ci;
    if (state == QHCA_STATE_RUNNING) {
        qhca_snap_check(s, rings_ok(q), "command rings");
        qhca_snap_check(s, s->bad || num <= 1u << q->log_size, "commands");
    }
    qhca_snap_check(s, state != QHCA_STATE_RESET || !num, "commands");
    qhca_snap_check(s, num || !q->active, "command");
    if (q->active && !s->bad) {
        qhca_snap_raw(s, "command", &q->cmd, sizeof(q->cmd));
        q->ctx.cmd = &q->cmd;
        q->ctx.mbox = q->mbox;
    }
}
