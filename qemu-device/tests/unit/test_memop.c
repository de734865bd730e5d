/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fast registration and invalidation: REG_MR, LOCAL_INV, SEND_WITH_INV, and
 * their order among work requests that send packets.
 */
#include "harness/debug.h"
#include "harness/fixture.h"
#include "harness/keys.h"
#include "tables.h"

#define RW      (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
                 QHCA_ACCESS_REMOTE_READ)
#define IOVA    0x123456000ull
#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define RPSN    0x222222u       /* rq_psn */

/* Two QPs of one machine. */
static void start(void)
{
    struct rc_opts o = RC_OPTS;

    o.qp_flags = KERNEL_QP;
    start_pair(&o);
}

/* A QP whose peer is the test. */
static void start_scripted(void)
{
    struct rc_opts o = RC_OPTS;

    o.qp_flags = KERNEL_QP;
    start_alone(&o);
}

static bool usable(uint32_t key, uint64_t addr, uint64_t len, unsigned access)
{
    return key_allows(g, node.pdn, qp.qpn, key, addr, len, access);
}

static void reg(const struct fast *f, uint32_t key, unsigned status)
{
    struct rc_wr wr = wr_reg(&qp, f, key, IOVA, RW);

    rc_finish(&qp, &wr, status);
}

static void inv(uint32_t key, unsigned status)
{
    struct rc_wr wr = wr_inv(&qp, QHCA_WR_LOCAL_INV, key);

    rc_finish(&qp, &wr, status);
}

/* ---- fast registration ---- */

static void life(void)
{
    struct fast f;
    uint32_t key;

    start();
    f = fast_create(&node, 16, 3);
    key = f.key;
    CHECK(!usable(key, 0, 1, 0));                               /* F-025 */
    for (unsigned i = 0; i < 600; i++) {
        uint32_t old = key;

        key = next_key(key);
        reg(&f, key, QHCA_WC_SUCCESS);
        CHECK(usable(key, IOVA, 3 << 12, RW));
        CHECK(!usable(key, IOVA, (3 << 12) + 1, 0));
        CHECK(!usable(key, IOVA - 1, 1, 0));
        CHECK(!usable(key, IOVA, 8, QHCA_ACCESS_REMOTE_ATOMIC));
        CHECK(!usable(old, IOVA, 1, 0));
        inv(key, QHCA_WC_SUCCESS);
        CHECK(!usable(key, IOVA, 1, 0));                        /* B-071 */
        inv(key, QHCA_WC_SUCCESS);                      /* stays Free */
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, f.key ^ 0x100), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, f.key), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, key), QHCA_ERR_OBJ);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

/* WRs right after a REG_MR may use the key (F-027), and so may the peer. */
static void data(void)
{
    struct fast f;
    struct rc_wr wr;
    uint8_t *last;

    start();
    f = fast_create(&node, 4, 2);
    guest_fill(g, gbuf_addr(&f.buf, 0), 4096, 5);
    guest_fill(g, gbuf_addr(&f.buf, 4096), 4096, 6);
    wr = wr_reg(&qp, &f, next_key(f.key), IOVA, RW);
    wr.offset = 4095;
    wr.length = 3000;
    wr.flags = 0;
    rc_put(&qp, &wr);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 3000);
    wr.sge[0].addr = IOVA;
    wr.sge[0].lkey = next_key(f.key);
    rc_aim(&wr, &node, 20000);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    last = guest_ptr(g, gbuf_addr(&f.buf, 4095), 1);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr + 20000, 1), *last);
    CHECK(guest_is_filled(g, node.mr.addr + 20001, 2999, 6));

    wr = rc_wr(&peer, QHCA_WR_RDMA_READ, 30000, 2999);
    wr.raddr = IOVA + 1;
    wr.rkey = next_key(f.key);
    rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, node.mr.addr + 30000, 2999, 6));
    inv(next_key(f.key), QHCA_WC_SUCCESS);
    wr.wr_id++;
    rc_finish(&peer, &wr, I_010_RQ);
    eq_expect(&node.async, I_010_EVENT, qp.qpn);
}

static const struct {
    const char *what;
    uint32_t num_blocks, offset;
    uint64_t length;
    unsigned shift, access;
    uint64_t addr, table_add, block_or;
} bad_regs[] = {
    { "too many blocks", 5, 0, 4096, 12, RW, 0, 0, 0 },
    { "2^32 - 1 blocks", UINT32_MAX, 0, 4096, 12, RW, 0, 0, 0 },
    { "no blocks", 0, 0, 4096, 12, RW, 0, 0, 0 },
    { "nothing", 3, 0, 0, 12, RW, 0, 0, 0 },
    { "more than the blocks", 3, 0, (3 << 12) + 1, 12, RW, 0, 0, 0 },
    { "all of it", 3, 0, UINT64_MAX, 12, RW, 0, 0, 0 },
    { "more than the blocks, by the offset", 3, 1, 3 << 12, 12, RW, 0, 0, 0 },
    { "an offset of a block", 3, 4096, 1, 12, RW, 0, 0, 0 },
    { "small blocks", 3, 0, 4096, 11, RW, 0, 0, 0 },
    { "large blocks", 3, 0, 4096, 32, RW, 0, 0, 0 },
    { "shift 255", 3, 0, 4096, 255, RW, 0, 0, 0 },
    { "a range that wraps", 3, 0, 4096, 12, RW, UINT64_MAX - 100, 0, 0 },
    { "unknown rights", 3, 0, 4096, 12, 0x40 | RW, 0, 0, 0 },
    { "remote write alone", 3, 0, 4096, 12, QHCA_ACCESS_REMOTE_WRITE, 0, 0, 0 },
    { "a list that is not aligned", 3, 0, 4096, 12, RW, 0, 4, 0 },
    { "a block that is not aligned", 3, 0, 4096, 12, RW, 0, 0, 8 },
    { "a list that cannot be read", 3, 0, 4096, 12, RW, 0, 1ull << 60, 0 },
};

static void refused_regs(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_regs); i++) {
        struct fast f;
        struct rc_wr wr;
        uint32_t before;

        start();
        before = g->e->table_blocks;
        f = fast_create(&node, 4, 3);
        *(uint64_t *)guest_ptr(g, f.table + 8, 8) |=
            htole64(bad_regs[i].block_or);
        wr = wr_reg(&qp, &f, f.key, bad_regs[i].addr, bad_regs[i].access);
        wr.num_blocks = bad_regs[i].num_blocks;
        wr.offset = bad_regs[i].offset;
        wr.length = bad_regs[i].length;
        wr.table += bad_regs[i].table_add;
        wr.block_shift = bad_regs[i].shift;
        tap_note("%s", bad_regs[i].what);
        rc_finish(&qp, &wr, bad_regs[i].table_add > 4 ? QHCA_WC_LOC_PROT_ERR :
                                                        I_035_RQ);
        CHECK_EQ(rc_state(&qp), I_035_RQ_QP);
        CHECK(!usable(f.key, bad_regs[i].addr, 1, 0));
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, f.key), QHCA_OK);
        CHECK_EQ(g->e->table_blocks, before);
    }
}

/* F-026, F-028, F-029: the wrong object, state, PD or variant. */
static void wrong_objects(void)
{
    enum { REG_VALID, REG_PD, REG_MEM, REG_NONE, INV_MEM, INV_VARIANT,
           INV_NONE, INV_PD, NUM };

    for (unsigned i = 0; i < NUM; i++) {
        struct fast f;
        uint32_t mine, key;

        start();
        mine = node.pdn;
        if (i == REG_PD || i == INV_PD) {
            node.pdn = pd_create(g);
        }
        f = fast_create(&node, 4, 3);
        node.pdn = mine;
        key = i == REG_MEM || i == INV_MEM ? node.mr.key :
              i == REG_NONE || i == INV_NONE ? f.key ^ 0x4200 : f.key;
        if (i == REG_VALID || i == INV_VARIANT) {
            reg(&f, f.key, QHCA_WC_SUCCESS);
        }
        if (i < INV_MEM) {
            reg(&f, i == REG_VALID ? next_key(key) : key, I_035_RQ);
        } else {
            inv(i == INV_VARIANT ? next_key(key) : key, I_035_RQ);
        }
        CHECK(usable(node.mr.key, node.mr.addr, 1, 0));
        CHECK_EQ(usable(f.key, IOVA, 1, 0), i == REG_VALID || i == INV_VARIANT);
        CHECK_EQ(rc_state(&qp), I_035_RQ_QP);
        CHECK(counter(g, QHCA_CNT_BAD_KEY) > 0);
    }
}

static void limits(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };
    struct rc_wr wr;
    struct fast f;
    uint32_t before, max;

    start();
    max = le32toh(device_attr(g).max_fast_reg_blocks);
    before = g->e->table_blocks;
    cmd.reg_mr.type = QHCA_MR_FAST;
    cmd.reg_mr.pdn = htole32(node.pdn);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
    cmd.reg_mr.length = htole64(max + 1);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_LIMIT);
    cmd.reg_mr.length = htole64(UINT64_MAX);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_LIMIT);
    cmd.reg_mr.length = htole64(1);
    cmd.reg_mr.access = htole16(QHCA_ACCESS_LOCAL_WRITE);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
    CHECK_EQ(g->e->table_blocks, before);
    f = fast_create(&node, max, max);
    CHECK_EQ(g->e->table_blocks, before + max);
    reg(&f, f.key, QHCA_WC_SUCCESS);
    CHECK(usable(f.key, IOVA, (uint64_t)max << 12, RW));
    inv(f.key, QHCA_WC_SUCCESS);
    wr = wr_reg(&qp, &f, f.key, -((uint64_t)max << 12), RW);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);       /* to the last address */
    CHECK(usable(f.key, UINT64_MAX, 1, RW));
    CHECK(!usable(f.key, UINT64_MAX, 2, RW));
    cmd.opcode = htole16(QHCA_CMD_REREG_MR);
    cmd.reg_mr.key = htole32(f.key);
    cmd.reg_mr.rereg = QHCA_REREG_ACCESS;
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, f.key), QHCA_OK);
    CHECK_EQ(g->e->table_blocks, before);
}

/*
 * A process can write any WQE into its ring. One with DMA addresses must not
 * work, even if the process has a region for it.
 */
static void not_for_processes(void)
{
    struct fast f;

    start();
    f = fast_create(&node, 4, 3);
    qp = rc_scripted(&node, &RC_OPTS, &far);
    reg(&f, f.key, QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK(!usable(f.key, IOVA, 1, 0));
}

/* ---- SEND_WITH_INV ---- */

static void send_inv(void)
{
    struct fast f;
    struct qhca_cqe cqe;
    struct rc_wr wr;

    start();
    f = fast_create(&node, 4, 2);
    reg(&f, f.key, QHCA_WC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        rc_recv(&qp, 7 + i, 4096, 8192);
        wr = rc_wr(&peer, QHCA_WR_SEND_WITH_INV, 0, i ? 5000 : 0);
        wr.imm = htole32(f.key);
        rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
        cqe = rc_expect(&qp.rcq, 7 + i, QHCA_WC_SUCCESS);       /* B-003 */
        CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_INV);
        CHECK_EQ(le32toh(cqe.inv_key), f.key);
        CHECK_EQ(cqe.opcode, QHCA_CQE_RECV);
        CHECK_EQ(le32toh(cqe.byte_len), i ? 5000 : 0);
        CHECK(!usable(f.key, IOVA, 1, 0));                      /* B-070 */
        f.key = next_key(f.key);
        reg(&f, f.key, QHCA_WC_SUCCESS);
    }
}

/* E-009, E-020: the wire, both ways. */
static void wire(void)
{
    static const uint8_t zeros[1024];
    struct roce_packet p;
    struct rc_wr wr;
    struct fast f;

    start_scripted();
    wr = rc_wr(&qp, QHCA_WR_SEND_WITH_INV, 0, 100);
    wr.imm = htole32(0x12345678);
    rc_do(&qp, &wr);
    p = peer_expect(&qp, RC_SEND_ONLY_INV, PSN);
    CHECK_EQ(p.inv_key, 0x12345678);
    CHECK_EQ(p.payload_len, 100);
    wr = rc_wr(&qp, QHCA_WR_SEND_WITH_INV, 0, 2048);
    wr.imm = htole32(0x87654321);
    rc_do(&qp, &wr);
    peer_expect(&qp, RC_SEND_FIRST, PSN + 1);
    p = peer_expect(&qp, RC_SEND_LAST_INV, PSN + 2);
    CHECK_EQ(p.inv_key, 0x87654321);
    peer_ack(&qp, PSN + 2);
    rc_expect(&qp.scq, 0x1000, QHCA_WC_SUCCESS);
    rc_expect(&qp.scq, 0x1001, QHCA_WC_SUCCESS);

    f = fast_create(&node, 4, 2);
    reg(&f, f.key, QHCA_WC_SUCCESS);
    rc_recv(&qp, 1, 0, 4096);
    peer_send(&qp, RC_SEND_FIRST, RPSN, zeros, 1024);
    CHECK(usable(f.key, IOVA, 1, 0));
    p = peer_packet(&qp, RC_SEND_LAST_INV, RPSN + 1);
    p.inv_key = f.key;
    peer_inject(&qp, &p, zeros, 4);
    CHECK(!usable(f.key, IOVA, 1, 0));
    rc_expect(&qp.rcq, 1, QHCA_WC_SUCCESS);
    /* A duplicate of the request does not affect the key's next use. */
    reg(&f, f.key, QHCA_WC_SUCCESS);
    peer_inject(&qp, &p, zeros, 4);
    CHECK(usable(f.key, IOVA, 1, 0));
    rc_expect_none(&qp.rcq);
}

/* F-056; the peer cannot invalidate a region without remote rights. */
static void refused_send_inv(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct roce_packet p;
        struct fast f;
        struct rc_wr wr;

        start_scripted();
        f = fast_create(&node, 4, 2);
        wr = wr_reg(&qp, &f, f.key, IOVA, i == 3 ? QHCA_ACCESS_LOCAL_WRITE :
                                                   RW);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        rc_recv(&qp, 1, 0, 4096);
        p = peer_packet(&qp, RC_SEND_ONLY_INV, RPSN);
        p.inv_key = i == 0 ? node.mr.key : i == 1 ? 0 :
                    i == 2 ? next_key(f.key) : f.key;
        peer_inject(&qp, &p, NULL, 0);
        peer_expect_none(&qp);          /* class J: neither ACK nor NAK */
        rc_expect(&qp.rcq, 1, I_033_RS);
        CHECK_EQ(rc_state(&qp), I_033_RS_QP);
        CHECK(usable(f.key, IOVA, 1, 0));
        CHECK(usable(node.mr.key, node.mr.addr, 1, 0));
    }
}

static const struct test tests[] = {
    { "F-025 F-027 B-010 B-011 B-071 register, use, invalidate", life },
    { "F-027 B-011 I-010 data through a fast region", data },
    { "F-026 I-035 REG_MR with bad parameters", refused_regs },
    { "F-026 F-028 F-029 I-035 the wrong object", wrong_objects },
    { "F-025 F-030 J-036 limits of fast regions", limits },
    { "B-011 J-020 processes cannot use REG_MR", not_for_processes },
    { "B-003 B-070 F-027 SEND_WITH_INV", send_inv },
    { "E-009 E-020 SEND_WITH_INV on the wire", wire },
    { "F-056 I-033 SEND_WITH_INV of another key", refused_send_inv },
};

TEST_MAIN(tests)
