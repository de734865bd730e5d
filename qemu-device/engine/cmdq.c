/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the command queue. A ring of commands, a ring of completions,
 * one table that says what to do for each opcode.
 */
#include "internal.h"

enum mbox_dir { NO_MBOX, MBOX_IN, MBOX_OUT };

/* struct command - one row of the dispatch table */
struct command {
    const char *name;
    qhca_cmd_fn run;
    enum mbox_dir dir;
    size_t mbox_len;
};

#define CMD(op, fn)         [QHCA_CMD_##op] = { #op, fn, NO_MBOX, 0 }
#define CMD_IN(op, fn, type) \
    [QHCA_CMD_##op] = { #op, fn, MBOX_IN, sizeof(type) }
#define CMD_OUT(op, fn, type) \
    [QHCA_CMD_##op] = { #op, fn, MBOX_OUT, sizeof(type) }

static int cmd_nop(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    (void)e;
    (void)c;
    return QHCA_OK;
}

static const struct command commands[] = {
    CMD(NOP, cmd_nop),
    CMD_OUT(QUERY_DEVICE, qhca_cmd_query_device, struct qhca_device_attr),
    CMD_OUT(QUERY_PORT, qhca_cmd_query_port, struct qhca_port_attr),
    CMD(SET_PORT, qhca_cmd_set_port),
    CMD_IN(SET_MCAST, qhca_cmd_set_mcast, struct qhca_mcast_list),
    CMD(SET_GID, qhca_cmd_set_gid),
    CMD_OUT(QUERY_COUNTERS, qhca_cmd_query_counters, __le64[QHCA_CNT_MAX]),
    CMD(CREATE_EQ, qhca_cmd_create_eq),
    CMD(DESTROY_EQ, qhca_cmd_destroy_eq),
    CMD(CREATE_ETHQ, qhca_cmd_create_ethq),
    CMD(DESTROY_ETHQ, qhca_cmd_destroy_ethq),
    CMD(ALLOC_PD, qhca_cmd_alloc_pd),
    CMD(DEALLOC_PD, qhca_cmd_dealloc_pd),
    CMD(ALLOC_XRCD, qhca_cmd_alloc_xrcd),
    CMD(DEALLOC_XRCD, qhca_cmd_dealloc_xrcd),
    CMD(REG_MR, qhca_cmd_reg_mr),
    CMD(REREG_MR, qhca_cmd_rereg_mr),
    CMD(DEREG_MR, qhca_cmd_dereg_mr),
    CMD(ALLOC_MW, qhca_cmd_alloc_mw),
    CMD(DEALLOC_MW, qhca_cmd_dealloc_mw),
    CMD(CREATE_CQ, qhca_cmd_create_cq),
    CMD(DESTROY_CQ, qhca_cmd_destroy_cq),
    CMD_OUT(QUERY_CQ, qhca_cmd_query_cq, struct qhca_cqc),
    CMD(RESIZE_CQ, qhca_cmd_resize_cq),
    CMD(MODIFY_CQ, qhca_cmd_modify_cq),
    CMD(CREATE_SRQ, qhca_cmd_create_srq),
    CMD(DESTROY_SRQ, qhca_cmd_destroy_srq),
    CMD(MODIFY_SRQ, qhca_cmd_modify_srq),
    CMD_OUT(QUERY_SRQ, qhca_cmd_query_srq, struct qhca_srqc),
    CMD(RESIZE_SRQ, qhca_cmd_resize_srq),
    CMD_IN(CREATE_QP, qhca_cmd_create_qp, struct qhca_create_qp),
    CMD_IN(MODIFY_QP, qhca_cmd_modify_qp, struct qhca_qp_attr),
    CMD_OUT(QUERY_QP, qhca_cmd_query_qp, struct qhca_qpc),
    CMD(DESTROY_QP, qhca_cmd_destroy_qp),
    CMD(ATTACH_MCAST, qhca_cmd_attach_mcast),
    CMD(DETACH_MCAST, qhca_cmd_detach_mcast),
    CMD(ALLOC_CNTSET, qhca_cmd_alloc_cntset),
    CMD(DEALLOC_CNTSET, qhca_cmd_dealloc_cntset),
    CMD_OUT(QUERY_CNTSET, qhca_cmd_query_cntset, __le64[QHCA_CNT_MAX]),
    CMD(BIND_CNTSET, qhca_cmd_bind_cntset),
};

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

static const struct command *find_command(unsigned opcode)
{
    if (opcode >= ARRAY_SIZE(commands) || !commands[opcode].run) {
        return NULL;
    }
    return &commands[opcode];
}

static int run_command(struct qhca_engine *e, const struct command *command,
                       struct qhca_cmd_ctx *c)
{
    uint64_t mbox = le64toh(c->cmd->mailbox);
    int status;

    if (command->dir != NO_MBOX && (!mbox || mbox & (QHCA_PAGE_SIZE - 1))) {
        return QHCA_ERR_PARAM;
    }
    memset(e->device->mbox, 0, command->mbox_len);
    if (command->dir == MBOX_IN &&
        !qhca_dma_read(e, mbox, e->device->mbox, command->mbox_len)) {
        return QHCA_ERR_DMA;
    }
    status = command->run(e, c);
    if (status == QHCA_OK && command->dir == MBOX_OUT &&
        !qhca_dma_write(e, mbox, e->device->mbox, command->mbox_len)) {
        return QHCA_ERR_DMA;
    }
    return status;
}

static int execute(struct qhca_engine *e, struct qhca_cmd_ctx *c, uint32_t slot)
{
    unsigned opcode = le16toh(c->cmd->opcode);
    const struct command *command = find_command(opcode);
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

/* False: a ring cannot be accessed; the device has stopped then. */
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

/**
 * qhca_cmdq_doorbell() - executes what the driver has put in the ring
 * @e: the engine
 * @pi: its new producer index
 */
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

/**
 * qhca_cmdq_start() - takes the rings of the base registers into use
 * @e: the engine
 */
bool qhca_cmdq_start(struct qhca_engine *e)
{
    struct qhca_cmdq *q = &e->device->cmdq;
    const uint64_t low = QHCA_PAGE_SIZE - 1;

    q->pi = q->ci = q->cq_pi = 0;
    return q->sq && q->cq && !(q->sq & low) && !(q->cq & low) &&
           q->log_size <= QHCA_CMD_LOG_MAX;
}
