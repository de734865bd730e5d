/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: commands of regions without pages, and their memory. */
#include "harness/fixture.h"
#include "harness/budget.h"
#include "harness/keys.h"
#include "harness/odp.h"
#include "harness/snapshot.h"

#define PAGE    QHCA_PAGE_SIZE

static struct odp odp;

static void commands(void)
{
    struct qhca_pages pages = { 0 };
    struct qhca_page_faults all;
    uint32_t key;

    start_pair(&RC_OPTS);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    CHECK_EQ(odp_reg(g, node.pdn, 0, 0, 0, 12, 0, &key), QHCA_ERR_LIMIT);
    CHECK_EQ(odp_reg(g, node.pdn, 0, QHCA_ODP_SIZE_MAX, 1, 12, 0, &key),
             QHCA_ERR_LIMIT);
    CHECK_EQ(odp_reg(g, node.pdn, 0, PAGE, 0, 11, 0, &key), QHCA_ERR_PARAM);
    CHECK_EQ(odp_reg(g, node.pdn, 0, PAGE, 0, QHCA_BLOCK_SHIFT_MAX + 1, 0,
                     &key), QHCA_ERR_PARAM);
    CHECK_EQ(odp_reg(g, node.pdn, 0, PAGE, PAGE, 12, 0, &key), QHCA_ERR_PARAM);
    CHECK_EQ(odp_reg(g, node.pdn, -(uint64_t)PAGE, PAGE + 1, 0, 12, 0, &key),
             QHCA_ERR_PARAM);
    CHECK_EQ(odp_reg(g, node.pdn, 0, PAGE, 0, 12, QHCA_ACCESS_REMOTE_WRITE,
                     &key), QHCA_ERR_PARAM);
    CHECK_EQ(odp_set_raw(g, odp.key, 0, 0, &pages), QHCA_ERR_PARAM);
    CHECK_EQ(odp_set_raw(g, odp.key, odp.num, 1, &pages), QHCA_ERR_PARAM);
    CHECK_EQ(odp_set_raw(g, odp.key, odp.num - 1, 2, &pages), QHCA_ERR_PARAM);
    CHECK_EQ(odp_set_raw(g, odp.key, 1, UINT64_MAX, &pages), QHCA_ERR_PARAM);
    CHECK_EQ(odp_set_raw(g, odp.key + 1, 0, 1, &pages), QHCA_ERR_OBJ);
    CHECK_EQ(odp_set_raw(g, node.mr.key, 0, 1, &pages), QHCA_ERR_OBJ);
    CHECK_EQ(odp_set_raw(g, odp.key, 0, 1, &pages), QHCA_OK);
    pages.page[0] = htole64(RAM_BASE);
    CHECK_EQ(odp_set_raw(g, odp.key, 0, 1, &pages), QHCA_ERR_PARAM);
    pages.page[0] = htole64(RAM_BASE | QHCA_PAGE_WRITE);
    CHECK_EQ(odp_set_raw(g, odp.key, 0, 1, &pages), QHCA_ERR_PARAM);
    pages.page[0] = htole64(RAM_BASE | 4 | QHCA_PAGE_READ);
    CHECK_EQ(odp_set_raw(g, odp.key, 0, 1, &pages), QHCA_ERR_PARAM);
    CHECK_EQ(odp_clear(&odp, 0, 0), QHCA_ERR_PARAM);
    CHECK_EQ(odp_clear(&odp, 0, odp.num + 1), QHCA_ERR_PARAM);
    CHECK_EQ(odp_clear(&odp, 0, odp.num), QHCA_OK);
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PAGE_FAULTS, 0xfffff0, &all,
                         sizeof(all)), QHCA_ERR_OBJ);
    CHECK_EQ(odp_resume(g, 0xfffff0, 0, 0, 0), QHCA_ERR_OBJ);
    CHECK_EQ(odp_resume(g, qp.qpn, QHCA_PAGE_KINDS, 0, 0), QHCA_ERR_PARAM);
    CHECK_EQ(odp_resume(g, qp.qpn, 0, 0, 2), QHCA_ERR_PARAM);
    CHECK_EQ(odp_resume(g, qp.qpn, 0, 0, 0), QHCA_ERR_STATE);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, odp.key), QHCA_OK);
}

static uint32_t blocks_held(void)
{
    return g->e->table_blocks;
}

/* REREG_MR changes rights and PD, but no addresses. */
static void reregister(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REREG_MR) };
    uint32_t pd;
    struct odp o;

    start_node();
    pd = pd_create(g);
    o = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    cmd.reg_mr.key = htole32(o.key);
    cmd.reg_mr.access = htole16(QHCA_ACCESS_REMOTE_READ);
    cmd.reg_mr.pdn = htole32(pd);
    cmd.reg_mr.rereg = QHCA_REREG_ACCESS | QHCA_REREG_PD;
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
    CHECK(key_allows(g, pd, 0, o.key, o.base, 8, QHCA_ACCESS_REMOTE_READ));
    CHECK(!key_allows(g, pd, 0, o.key, o.base, 8, QHCA_ACCESS_LOCAL_WRITE));
    cmd.reg_mr.rereg = QHCA_REREG_TRANS;
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_PARAM);
}

/* Nodes of the tree exist only while they have pages. */
static void sparse(void)
{
    static const uint64_t at[] = {
        0, 1, 511, 512, 1ull << 18, 1ull << 27, 1ull << 36, (1ull << 45) - 1,
    };
    struct qhca_pages pages = { .page = { htole64(RAM_BASE | ODP_ALL) } };
    struct odp big = { .num = 1ull << 45 };
    uint32_t before;

    start_node();
    big.g = g;
    REQUIRE(odp_reg(g, node.pdn, 0, QHCA_ODP_SIZE_MAX, 0, 12, ODP_ACCESS,
                    &big.key) == QHCA_OK);
    before = blocks_held();
    for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
        CHECK_EQ(odp_set_raw(g, big.key, at[i], 1, &pages), QHCA_OK);
        CHECK(blocks_held() > before);
    }
    snapshot_cycle(g);
    for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
        CHECK(blocks_held() > before);
        CHECK_EQ(odp_clear(&big, at[i], 1), QHCA_OK);
    }
    CHECK_EQ(blocks_held(), before);
    for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
        CHECK_EQ(odp_set_raw(g, big.key, at[i], 1, &pages), QHCA_OK);
    }
    CHECK_EQ(odp_clear(&big, 1, big.num - 2), QHCA_OK);
    CHECK_EQ(odp_clear(&big, 0, 1), QHCA_OK);
    CHECK(blocks_held() > before);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, big.key), QHCA_OK);
    CHECK_EQ(blocks_held(), before);
}

/*
 * DEREG_MR takes several turns to clear the pages; a window that is bound
 * between them ends it. The region goes on, without some of its pages.
 */
static void bound_amid(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_DEREG_MR) };
    struct qhca_pages pages = { .page = { htole64(RAM_BASE | ODP_ALL) } };
    struct rc_opts o = RC_OPTS;
    uint32_t key, mw, none, before;
    struct rc_wr wr;

    o.qp_flags = KERNEL_QP;
    start_pair(&o);
    none = blocks_held();
    REQUIRE(odp_reg(g, node.pdn, 0, QHCA_ODP_SIZE_MAX, 0, 12, ODP_ACCESS,
                    &key) == QHCA_OK);
    mw = mw_create(g, node.pdn, QHCA_MW_2B);
    for (unsigned i = 0; i < 2 * CALL; i++) {
        CHECK_EQ(odp_set_raw(g, key, 512ull * i, 1, &pages), QHCA_OK);
    }
    before = blocks_held();
    cmd.obj.obj = htole32(key);
    guest_cmd_start(g, &cmd, 1);
    CHECK(g->host.todo);
    wr = wr_bind(&qp, next_key(mw), 0, 100, QHCA_ACCESS_REMOTE_WRITE);
    wr.mr_key = key;
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    settle();
    g->cmd_ci = g->cmd_pi;
    CHECK_EQ(guest_cmd_comp(g, g->cmd_pi - 1)->status, QHCA_ERR_BUSY);
    CHECK(blocks_held() < before);
    CHECK_EQ(odp_set_raw(g, key, 0, 1, &pages), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_MW, next_key(mw)), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, key), QHCA_OK);
    CHECK_EQ(blocks_held(), none);
}

static const struct test tests[] = {
    { "commands: ranges, shapes, keys, answers", commands },
    { "F-012 REREG_MR", reregister },
    { "a sparse region holds nodes only for its pages", sparse },
    { "F-009 a window is bound while the region is deregistered", bound_amid },
};

TEST_MAIN(tests)
