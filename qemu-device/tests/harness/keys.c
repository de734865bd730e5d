/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: regions of type FAST, memory windows.
 */
#include "debug.h"
#include "keys.h"

struct fast fast_create(struct node *n, uint32_t max_blocks, uint32_t blocks)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    struct fast f = { .buf = guest_buf(n->g, (uint64_t)blocks << 12, 12, 1) };
    uint64_t *list;

    cmd.reg_mr.type = QHCA_MR_FAST;
    cmd.reg_mr.length = htole64(max_blocks);
    cmd.reg_mr.pdn = htole32(n->pdn);
    f.key = guest_create(n->g, &cmd);
    f.table = guest_alloc(n->g, blocks * sizeof(*list), 8);
    list = guest_ptr(n->g, f.table, blocks * sizeof(*list));
    for (uint32_t i = 0; i < blocks; i++) {
        list[i] = htole64(f.buf.block[i]);
    }
    return f;
}

struct rc_wr wr_reg(const struct rc_qp *q, const struct fast *f, uint32_t key,
                    uint64_t iova, unsigned access)
{
    return (struct rc_wr) {
        .wr_id = 0x1000u + q->sq_pi, .opcode = QHCA_WR_REG_MR,
        .flags = QHCA_WQE_SIGNALED, .key = key, .addr = iova,
        .length = (uint64_t)f->buf.num_blocks << 12, .table = f->table,
        .num_blocks = f->buf.num_blocks, .block_shift = 12, .access = access,
    };
}

uint32_t fast_bytes(struct rc_qp *by, uint64_t iova, uint32_t len)
{
    struct fast f = fast_create(by->n, 2 * len, 1);
    struct rc_wr wr;
    uint64_t *list;

    f.table = guest_alloc(by->n->g, 2 * len * sizeof(*list), 8);
    list = guest_ptr(by->n->g, f.table, 2 * len * sizeof(*list));
    for (uint32_t i = 0; i < len; i++) {
        list[2 * i] = htole64(f.buf.block[0] + 2 * i);
        list[2 * i + 1] = htole64(i + 1);
    }
    wr = wr_reg(by, &f, f.key, iova, REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE);
    wr.length = len;
    wr.num_blocks = 2 * len;
    wr.block_shift = 0;
    rc_finish(by, &wr, QHCA_WC_SUCCESS);
    return f.key;
}

struct rc_wr wr_inv(const struct rc_qp *q, uint8_t opcode, uint32_t key)
{
    return (struct rc_wr) {
        .wr_id = 0x1000u + q->sq_pi, .opcode = opcode,
        .flags = QHCA_WQE_SIGNALED, .imm = htole32(key),
    };
}

struct rc_wr wr_bind(const struct rc_qp *q, uint32_t key, uint64_t off,
                     uint64_t len, unsigned access)
{
    return (struct rc_wr) {
        .wr_id = 0x1000u + q->sq_pi, .opcode = QHCA_WR_BIND_MW,
        .flags = QHCA_WQE_SIGNALED, .key = key, .mr_key = q->n->mr.key,
        .addr = q->n->mr.addr + off, .length = len, .access = access,
    };
}

uint32_t mw_create(struct guest *g, uint32_t pdn, unsigned type)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_ALLOC_MW) };

    cmd.alloc_mw.pdn = htole32(pdn);
    cmd.alloc_mw.type = (uint8_t)type;
    return guest_create(g, &cmd);
}

bool key_allows(struct guest *g, uint32_t pdn, uint32_t qpn, uint32_t key,
                uint64_t addr, uint64_t len, unsigned access)
{
    struct vhca_key_user u = {
        .pd = vhca_table_get(&g->e->memory->pd, pdn), .qpn = qpn,
    };

    return vhca_mr_check(g->e, &u, key, addr, len, (uint16_t)access) != NULL;
}
