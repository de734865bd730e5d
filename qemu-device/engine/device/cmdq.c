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

static int run_command(struct qhca_engine *e,
                       const struct qhca_command *command,
                       struct qhca_cmd_ctx *c)
{
    uint64_t mbox = le64toh(c->cmd->mailbox);
    int status;

    if (command->dir != QHCA_NO_MBOX &&
        (!mbox || mbox & (QHCA_PAGE_SIZE - 1))) {
        return QHCA_ERR_PARAM;
    }
    memset(e->device->mbox, 0, command->mbox_len);
    if (command->dir == QHCA_MBOX_IN &&
        !qhca_dma_read(e, mbox, e->device->mbox, command->mbox_len)) {
        return QHCA_ERR_DMA;
    }
    status = command->run(e, c);
    if (status == QHCA_OK && command->dir == QHCA_MBOX_OUT &&
        !qhca_dma_write(e, mbox, e->device->mbox, command->mbox_len)) {
        return QHCA_ERR_DMA;
    }
    return status;
}

static int execute(struct qhca_engine *e, struct qhca_cmd_ctx *c, uint32_t slot)
{
    unsigned opcode = le16toh(c->cmd->opcode);
    const struct qhca_command *command = find_command(opcode);
    int status = command ? run_command(e, command, c) : QHCA_ERR_OPCODE;

    if (status != QHCA_OK) {
        qhca_count(e, QHCA_CNT_BAD_CMD);
        qhca_guest_error(e, "command %s (0x%x): %s",
                         command ? command->name : "?", opcode,
                         status_name[status]);
    }
    qhca_trace(e, QHCA_TRACE_CMD, opcode, slot, (unsigned)status);
    return status;
}

static bool complete(struct qhca_engine *e, const struct qhca_cmd_ctx *c,
                     uint32_t slot, int status)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    struct qhca_cmd_comp comp = {
        .opcode = c->cmd->opcode,
        .slot = htole16((uint16_t)slot),
        .token = c->cmd->token,
        .status = (uint8_t)status,
        .obj = htole32(status == QHCA_OK ? c->obj : 0),
        .owner = (q->cq_pi >> q->log_size) & 1 ? 0 : QHCA_OWNER_PHASE,
    };
    uint64_t addr = q->cq + (q->cq_pi & ((1u << q->log_size) - 1)) *
                    sizeof(comp);
    const size_t owner = offsetof(struct qhca_cmd_comp, owner);

    q->cq_pi++;
    return qhca_dma_write(e, addr, &comp, owner) &&
           qhca_dma_write(e, addr + owner, &comp.owner, 1);
}

/* False: a ring cannot be accessed, and the device has stopped. */
static bool serve_one(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    uint32_t slot = q->ci & ((1u << q->log_size) - 1);
    struct qhca_cmd cmd;
    struct qhca_cmd_ctx c = { .cmd = &cmd, .mbox = e->device->mbox };
    int status;

    if (qhca_dma_read(e, q->sq + slot * sizeof(cmd), &cmd, sizeof(cmd))) {
        q->ci++;
        status = execute(e, &c, slot);
        if (complete(e, &c, slot, status)) {
            return true;
        }
    }
    if (qhca_running(e)) {
        qhca_guest_error(e, "command ring at slot %u: DMA failed", slot);
        qhca_fatal(e, QHCA_FATAL_CMDQ_DMA);
    }
    return false;
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
    if (q->ci == q->pi) {
        return;
    }
    while (q->ci != q->pi && serve_one(e)) {
        continue;
    }
    qhca_raise_irq(e, 0);
}

bool qhca_cmdq_start(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    const uint64_t low = QHCA_PAGE_SIZE - 1;

    q->pi = q->ci = q->cq_pi = 0;
    return q->sq && q->cq && !(q->sq & low) && !(q->cq & low) &&
           q->log_size <= QHCA_CMD_LOG_MAX;
}
