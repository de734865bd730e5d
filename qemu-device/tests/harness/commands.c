/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the guest's driver does: registers, doorbells,
 * commands.
 */
#include "shadow.h"

/* ---- registers and doorbells ---- */

uint32_t reg_read(struct guest *g, unsigned off)
{
    return qhca_engine_reg_read(g->e, *g->clock, off);
}

void reg_write(struct guest *g, unsigned off, uint32_t val)
{
    qhca_engine_reg_write(g->e, *g->clock, off, val);
}

unsigned dev_state(struct guest *g)
{
    return reg_read(g, QHCA_REG_STATUS) & QHCA_STATUS_STATE;
}

void ring(struct guest *g, unsigned page, unsigned off, uint32_t obj,
          uint32_t index)
{
    uint64_t val = (uint64_t)index << 32 | obj;

    if (!shadow_ring(g, page, off, val)) {
        qhca_engine_doorbell(g->e, *g->clock, page, off, val);
    }
}

uint64_t counter(struct guest *g, enum qhca_counter which)
{
    return qhca_engine_counter(g->e, which);
}

/* ---- commands ---- */

/* Waits for the completion of a command; NULL: the device gives none. */
static struct qhca_cmd_comp *await_comp(struct guest *g)
{
    uint32_t size = 1u << g->cmd_log;
    uint8_t phase = g->cmd_ci / size % 2 ? 0 : QHCA_OWNER_PHASE;
    struct qhca_cmd_comp *comp;

    comp = guest_ptr(g, g->cmd_cq + g->cmd_ci % size * sizeof(*comp),
                     sizeof(*comp));
    while ((comp->owner & QHCA_OWNER_PHASE) != phase && g->host.todo) {
        guest_run(g);
    }
    if ((comp->owner & QHCA_OWNER_PHASE) != phase && g->limited) {
        guest_advance(g, 100000000);
    }
    return (comp->owner & QHCA_OWNER_PHASE) == phase ? comp : NULL;
}

int guest_cmd(struct guest *g, struct qhca_cmd *cmd, uint32_t *obj)
{
    uint32_t size = 1u << g->cmd_log, slot = g->cmd_pi % size;
    struct qhca_cmd_comp *comp;

    cmd->token = htole32(0xabc00000u + g->cmd_pi);
    memcpy(guest_ptr(g, g->cmd_sq + slot * sizeof(*cmd), sizeof(*cmd)), cmd,
           sizeof(*cmd));
    g->cmd_pi++;
    ring(g, 0, QHCA_DB_CMD, 0, g->cmd_pi);
    comp = await_comp(g);
    g->cmd_ci = g->cmd_pi;
    if (!comp) {
        return -1;
    }
    if (!g->lenient) {
        CHECK_EQ(comp->opcode, cmd->opcode);
        CHECK_EQ(comp->token, cmd->token);
        CHECK_EQ(le16toh(comp->slot), slot);
    }
    if (obj) {
        *obj = le32toh(comp->obj);
    }
    return comp->status;
}

void guest_cmd_start(struct guest *g, const struct qhca_cmd *cmd, unsigned n)
{
    struct qhca_cmd *sq = guest_ptr(g, g->cmd_sq, sizeof(*sq) << g->cmd_log);

    for (unsigned i = 0; i < n; i++) {
        sq[g->cmd_pi++ % (1u << g->cmd_log)] = cmd[i];
    }
    ring(g, 0, QHCA_DB_CMD, 0, g->cmd_pi);
}

const struct qhca_cmd_comp *guest_cmd_comp(struct guest *g, uint32_t i)
{
    const struct qhca_cmd_comp *cq;

    cq = guest_ptr(g, g->cmd_cq, sizeof(*cq) << g->cmd_log);
    return &cq[i % (1u << g->cmd_log)];
}

int guest_cmd_mbox(struct guest *g, struct qhca_cmd *cmd, const void *in,
                   size_t in_len, void *out, size_t out_len, uint32_t *obj)
{
    int status;

    memset(guest_ptr(g, g->mbox, 4096), 0x5a, 4096);
    if (in) {
        memcpy(guest_ptr(g, g->mbox, in_len), in, in_len);
    }
    cmd->mailbox = htole64(g->mbox);
    status = guest_cmd(g, cmd, obj);
    if (out) {
        memcpy(out, guest_ptr(g, g->mbox, out_len), out_len);
    }
    return status;
}

int guest_cmd_obj(struct guest *g, unsigned opcode, uint32_t obj)
{
    struct qhca_cmd cmd = {
        .opcode = htole16((uint16_t)opcode),
        .obj.obj = htole32(obj),
    };

    return guest_cmd(g, &cmd, NULL);
}

int guest_query(struct guest *g, unsigned opcode, uint32_t obj, void *out,
                size_t len)
{
    struct qhca_cmd cmd = {
        .opcode = htole16((uint16_t)opcode), .obj.obj = htole32(obj),
    };

    return guest_cmd_mbox(g, &cmd, NULL, 0, out, len, NULL);
}

uint32_t guest_create(struct guest *g, struct qhca_cmd *cmd)
{
    uint32_t obj = 0;
    int status = guest_cmd(g, cmd, &obj);

    if (status != QHCA_OK) {
        tap_note("command 0x%x: status %d, %s", le16toh(cmd->opcode), status,
                 g->last_error);
    }
    REQUIRE(status == QHCA_OK);
    return obj;
}

struct qhca_congestion congestion_get(const struct guest *g)
{
    struct qhca_congestion c;

    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        c.value[i] = htole32(g->e->congestion->value[i]);
    }
    return c;
}

int congestion_set(struct guest *g, const struct qhca_congestion *c)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_CONGESTION) };

    return guest_cmd_mbox(g, &cmd, c, sizeof(*c), NULL, 0, NULL);
}

void congestion_on(struct guest *g)
{
    struct qhca_congestion c = congestion_get(g);

    c.value[QHCA_CC_NP_ENABLE] = c.value[QHCA_CC_RP_ENABLE] = htole32(1);
    REQUIRE(congestion_set(g, &c) == QHCA_OK);
}

struct qhca_device_attr device_attr(struct guest *g)
{
    struct qhca_device_attr attr;

    REQUIRE(guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &attr, sizeof(attr)) ==
            QHCA_OK);
    return attr;
}
