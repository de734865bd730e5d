/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the byte order of the words that atomics change and
 * return, between machines whose CPUs differ in it.
 */
#include "harness/fixture.h"

#define WORD    4096            /* where it is in the region of @there */
#define FOUND   0xfffffffffffffffeull

static bool here_big, there_big;

static uint64_t *word_of(const struct node *n, uint64_t off)
{
    return guest_ptr(n->g, n->mr.addr + off, 8);
}

static uint64_t as_read(bool big, uint64_t word)
{
    return big ? be64toh(word) : le64toh(word);
}

static void start_orders(bool here, bool far_away)
{
    harness_cleanup();
    here_big = here;
    there_big = far_away;
    net = net_new(1);
    guest_control = here ? QHCA_CONTROL_BIG_ENDIAN : 0;
    node = node_new(net, 1);
    g = node.g;
    guest_control = far_away ? QHCA_CONTROL_BIG_ENDIAN : 0;
    there = node_new(net, 2);
    node_set_gid(&node, false, QHCA_NO_VLAN);
    node_set_gid(&there, false, QHCA_NO_VLAN);
    qp = rc_create(&node, &RC_OPTS);
    peer = rc_create(&there, &RC_OPTS);
    rc_connect(&qp, &peer);
}

/* Executes @wr on a word that is @before, and checks what both CPUs read. */
static void check(struct rc_wr wr, uint64_t before, uint64_t after)
{
    uint64_t *word = word_of(&there, WORD);

    *word = there_big ? htobe64(before) : htole64(before);
    rc_aim(&wr, &there, WORD);
    rc_post(&qp, &wr);
    net_run(net, 10000000000ull);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK(as_read(there_big, *word) == after);
    CHECK(as_read(here_big, *word_of(&node, 0)) == before);
    CHECK(!word_of(&there, WORD)[-1] && !word[1]);
}

static void operations(void)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8);

    wr.swap_add = 5;
    wr.compare_mask = 1ull << 31;       /* none of its fields */
    check(wr, FOUND, 3);
    check(wr, 0xff, 0x104);
    wr = rc_wr(&qp, QHCA_WR_ATOMIC_CMP_AND_SWP, 0, 8);
    wr.swap_add = 0x0102030405060708;
    wr.compare = FOUND;
    check(wr, FOUND, 0x0102030405060708);
    check(wr, FOUND - 1, FOUND - 1);
    wr = rc_wr(&qp, QHCA_WR_MASKED_ATOMIC_FETCH_AND_ADD, 0, 8);
    wr.swap_add = 0x100000001;
    wr.compare_mask = 1ull << 31;
    check(wr, 0x00000000ffffffff, 0x0000000100000000);
    wr = rc_wr(&qp, QHCA_WR_MASKED_ATOMIC_CMP_AND_SWP, 0, 8);
    wr.swap_add = 0xabcd;
    wr.compare = 0xff34;
    wr.swap_mask = 0xff00;
    wr.compare_mask = 0x00ff;
    check(wr, 0x1234, 0xab34);
}

static void test_orders(void)
{
    for (unsigned i = 0; i < 4; i++) {
        start_orders(i & 1, i & 2);
        operations();
    }
}

static void test_control(void)
{
    static const uint32_t both = QHCA_CONTROL_ENABLE | QHCA_CONTROL_BIG_ENDIAN;

    start_orders(true, false);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), both);
    CHECK_EQ(reg_read(there.g, QHCA_REG_CONTROL), QHCA_CONTROL_ENABLE);
    /* Not in a device that runs, and not without ENABLE. */
    reg_write(there.g, QHCA_REG_CONTROL, both);
    CHECK_EQ(reg_read(there.g, QHCA_REG_CONTROL), QHCA_CONTROL_ENABLE);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_BIG_ENDIAN);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    guest_enable(g, 5);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), QHCA_CONTROL_ENABLE);
}

/* Until a reset the device stays as it has been enabled. */
static void test_late(void)
{
    static const uint32_t both = QHCA_CONTROL_ENABLE | QHCA_CONTROL_BIG_ENDIAN;

    start_orders(true, false);
    for (unsigned i = 0; i < 2; i++) {
        /* What it knows already is no mistake. */
        reg_write(g, QHCA_REG_CONTROL, both);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i);
        reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i + 1);
        reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_BIG_ENDIAN);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i + 2);
        CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), both);
        qhca_engine_inject_fatal(g->e, *g->clock);
    }
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    guest_control = 0;
    qhca_engine_reset(g->e, *g->clock);
    guest_enable(g, 5);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), QHCA_CONTROL_ENABLE);
}

static const struct test tests[] = {
    { "F-021 B-075 between CPUs of either byte order", test_orders },
    { "F-021 the byte order is set together with ENABLE", test_control },
    { "F-021 only a reset changes the byte order", test_late },
};

TEST_MAIN(tests)
