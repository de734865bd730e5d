/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the tests of memory windows start with.
 */
#include "windows.h"

struct rc_qp other, other_peer;

const unsigned types[NUM_TYPES] = { QHCA_MW_1, QHCA_MW_2B };

void start(void)
{
    struct rc_opts o = RC_OPTS;

    o.qp_flags = KERNEL_QP;
    start_pair(&o);
}

void start_two_pairs(void)
{
    start();
    rc_pair(&node, &RC_OPTS, &other, &other_peer);
}

uint64_t at(uint64_t off)
{
    return node.mr.addr + off;
}

void bind_window(struct rc_qp *q, uint32_t key, uint64_t off,
                 uint64_t len, unsigned access, unsigned status)
{
    struct rc_wr wr = wr_bind(q, key, off, len, access);

    rc_finish(q, &wr, status);
}

void invalidate(struct rc_qp *q, uint32_t key, unsigned status)
{
    struct rc_wr wr = wr_inv(q, QHCA_WR_LOCAL_INV, key);

    rc_finish(q, &wr, status);
}

bool usable(const struct rc_qp *q, uint32_t key, uint64_t addr,
            uint64_t len, unsigned access)
{
    return key_allows(g, q->n->pdn, q->qpn, key, addr, len, access);
}

unsigned use(struct rc_qp *from, uint8_t opcode, uint32_t key,
             uint64_t addr, uint32_t len)
{
    struct rc_wr wr = rc_wr(from, opcode, 0x80000, len);
    struct qhca_cqe cqe = { .status = 0xff };

    wr.raddr = addr;
    wr.rkey = key;
    rc_do(from, &wr);
    CHECK(cq_poll(&from->scq, &cqe));
    return cqe.status;
}

uint32_t region(unsigned access, unsigned type)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    struct gbuf b = guest_buf(g, NODE_MEM, 12, 0);

    cmd.reg_mr.buf = b.desc;
    cmd.reg_mr.type = (uint8_t)type;
    cmd.reg_mr.iova = htole64(type == QHCA_MR_FAST ? 0 : at(0));
    cmd.reg_mr.length = htole64(type == QHCA_MR_FAST ? 4 : NODE_MEM);
    cmd.reg_mr.pdn = htole32(node.pdn);
    cmd.reg_mr.access = htole16((uint16_t)access);
    return guest_create(g, &cmd);
}
