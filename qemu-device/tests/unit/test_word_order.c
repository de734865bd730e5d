/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the byte order of the words that atomics change and
 * return, between machines whose CPUs differ in it.
 */
#include "harness/fixture.h"
#include "harness/snapshot.h"

#define WORD    4096            /* where it is in the region of @there */
#define ENABLE  QHCA_CONTROL_ENABLE
#define BOTH    (QHCA_CONTROL_ENABLE | QHCA_CONTROL_BIG_ENDIAN)
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

static void start_orders(bool here, bool far_away, bool one_place)
{
    harness_cleanup();
    here_big = here;
    there_big = far_away;
    net = net_new(1);
    net->one_place = one_place;
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
    check(wr, FOUND, 3);
    check(wr, 0xff, 0x104);
    wr = rc_wr(&qp, QHCA_WR_ATOMIC_CMP_AND_SWP, 0, 8);
    wr.swap_add = 0x0102030405060708;
    wr.compare = FOUND;
    check(wr, FOUND, 0x0102030405060708);
    check(wr, FOUND - 1, FOUND - 1);
}

static void test_orders(void)
{
    for (unsigned i = 0; i < 8; i++) {
        start_orders(i & 1, i & 2, i & 4);
        operations();
    }
}

/* Both QPs are of one device. */
static void test_loopback(void)
{
    for (unsigned i = 0; i < 2; i++) {
        start_orders(i, i, false);
        there = node;
        qp = rc_create(&node, &RC_OPTS);
        peer = rc_create(&node, &RC_OPTS);
        rc_connect(&qp, &peer);
        operations();
    }
}

static void test_control(void)
{
    start_orders(true, false, false);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), BOTH);
    CHECK_EQ(reg_read(there.g, QHCA_REG_CONTROL), ENABLE);
    /* Not in a device that runs, and not without ENABLE. */
    reg_write(there.g, QHCA_REG_CONTROL, BOTH);
    CHECK_EQ(reg_read(there.g, QHCA_REG_CONTROL), ENABLE);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_BIG_ENDIAN);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    guest_enable(g, 5);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), ENABLE);
}

/* Until a reset the device stays as it has been enabled. */
static void test_late(void)
{
    start_orders(true, false, false);
    for (unsigned i = 0; i < 2; i++) {
        /* The same value once more is no mistake. */
        reg_write(g, QHCA_REG_CONTROL, BOTH);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i);
        reg_write(g, QHCA_REG_CONTROL, ENABLE);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i + 1);
        reg_write(g, QHCA_REG_CONTROL, QHCA_CONTROL_BIG_ENDIAN);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_REG), 2 * i + 2);
        CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), BOTH);
        qhca_engine_inject_fatal(g->e, *g->clock);
    }
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    guest_control = 0;
    qhca_engine_reset(g->e, *g->clock);
    guest_enable(g, 5);
    CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), ENABLE);
}

/* Another engine goes on; a device that has been reset can be saved. */
static void test_saved(void)
{
    for (unsigned i = 1; i < 4; i++) {
        start_orders(i & 1, i & 2, false);
        snapshot_cycle(g);
        snapshot_cycle(there.g);
        operations();
        for (unsigned state = 0; state < 2; state++) {
            snapshot_cycle(g);
            CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), here_big ? BOTH : ENABLE);
            qhca_engine_inject_fatal(g->e, *g->clock);
        }
        reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
        snapshot_cycle(g);
        CHECK_EQ(reg_read(g, QHCA_REG_CONTROL), 0);
    }
}

/* ---- a big-endian machine, and the test as its peer ---- */

static void start_big(void)
{
    guest_control = QHCA_CONTROL_BIG_ENDIAN;
    start_alone(&RC_OPTS);
}

static void inject(uint8_t opcode, uint32_t i)
{
    struct roce_packet p = peer_request(&qp, opcode, RC_OPTS.rq_psn + i,
                                        WORD, 0);

    p.swap_add = 1;
    p.compare = FOUND;
    peer_inject(&qp, &p, NULL, 0);
}

static void expect_orig(uint32_t i, uint64_t orig)
{
    CHECK(peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE,
                      RC_OPTS.rq_psn + i).atomic_orig == orig);
}

static void expect_refused(uint32_t i)
{
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, RC_OPTS.rq_psn + i).syndrome,
             AETH_NAK_OP);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
}

static void test_duplicates(void)
{
    uint64_t *word;

    start_big();
    word = word_of(&node, WORD);
    *word = htobe64(FOUND);
    for (unsigned twice = 0; twice < 2; twice++) {
        inject(RC_FETCH_ADD, 0);
        expect_orig(0, FOUND);
        CHECK(be64toh(*word) == FOUND + 1);
    }
    *word = htobe64(FOUND);
    for (unsigned twice = 0; twice < 2; twice++) {
        inject(RC_CMP_SWAP, 1);
        expect_orig(1, FOUND);
        CHECK(be64toh(*word) == 1);
    }
    snapshot_cycle(g);
    inject(RC_FETCH_ADD, 0);
    expect_orig(0, FOUND);
    CHECK(be64toh(*word_of(&node, WORD)) == 1);
}

static unsigned tries, busy;

/* A CPU adds 256 to the word, @busy times. */
static void touch(struct guest *guest, uint64_t addr)
{
    uint64_t *word = guest_ptr(guest, addr, 8);

    if (tries++ < busy) {
        *word = htobe64(be64toh(*word) + 256);
    }
}

static void test_contention(void)
{
    static const unsigned times[] = { 0, 1, VHCA_ADD_TRIES - 1, UINT32_MAX };
    uint64_t *word;

    start_big();
    g->on_cas = touch;
    word = word_of(&node, WORD);
    for (uint32_t i = 0; i < ARRAY_SIZE(times); i++) {
        tries = 0;
        busy = times[i];
        *word = htobe64(255);
        inject(RC_FETCH_ADD, i);
        if (busy < VHCA_ADD_TRIES) {
            expect_orig(i, 255 + 256ull * busy);
            CHECK(be64toh(*word) == 256 + 256ull * busy);
        } else {
            expect_refused(i);
            CHECK_EQ(tries, VHCA_ADD_TRIES);
            CHECK(be64toh(*word) == 255 + 256ull * VHCA_ADD_TRIES);
        }
    }
}

static void test_bad_memory(void)
{
    static const uint8_t opcodes[] = {
        RC_FETCH_ADD, RC_CMP_SWAP,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
        start_big();
        guest_spoil(g, node.mr.addr + WORD, 8);
        inject(opcodes[i], 0);
        expect_refused(0);
        CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 1);
    }
}

static const struct test tests[] = {
    { "F-021 between CPUs of either byte order", test_orders },
    { "F-021 on a CPU of either byte order", test_loopback },
    { "F-021 the byte order is set together with ENABLE", test_control },
    { "F-021 only a reset changes the byte order", test_late },
    { "F-021 a saved device knows the byte order", test_saved },
    { "F-021 D-052 the byte order of duplicates", test_duplicates },
    { "F-021 to add to a word that a CPU changes meanwhile", test_contention },
    { "F-021 H-002 words in memory that fails", test_bad_memory },
};

TEST_MAIN(tests)
