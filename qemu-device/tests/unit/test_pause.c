/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that ask for a pause, of the port or by priority: what waits, until
 * when, and what does not.
 */
#include "harness/budget.h"
#include "harness/debug.h"
#include "harness/faults.h"
#include "harness/scripted.h"
#include "harness/snapshot.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define RQ_PSN      0x222222u
#define ALL         0xffu
#define PAUSE       0x0001
#define PFC         0x0101
#define QUANTA_NS(n)    ((n) * 512ull / 100)    /* at 100 Gbit/s */

static const uint8_t group[6] = { 0x01, 0x80, 0xc2, 0, 0, 1 };

static void control(const uint8_t *dmac, uint16_t opcode, uint8_t classes,
                    uint16_t quanta, size_t len)
{
    uint8_t f[64] = { 0 };

    memcpy(f, dmac, 6);
    f[6] = 2;
    f[12] = 0x88;
    f[13] = 0x08;
    f[14] = (uint8_t)(opcode >> 8);
    f[15] = (uint8_t)opcode;
    if (opcode == PAUSE) {
        f[16] = (uint8_t)(quanta >> 8);
        f[17] = (uint8_t)quanta;
    } else {
        f[17] = classes;
        for (unsigned i = 0; i < 8; i++) {
            /* The times of other classes mean nothing. */
            uint16_t time = classes >> i & 1 ? quanta : 0x7777;

            f[18 + 2 * i] = (uint8_t)(time >> 8);
            f[19 + 2 * i] = (uint8_t)time;
        }
    }
    guest_rx(g, f, len);
}

/* The neighbour asks these classes to wait for so many quanta. */
static void ask(unsigned classes, uint16_t quanta)
{
    uint64_t before = counter(g, QHCA_CNT_RX_PAUSE);

    control(group, classes == ALL ? PAUSE : PFC, (uint8_t)classes, quanta, 60);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PAUSE), before + 1);
    guest_settle(g);
}

/* A QP alone, whose packets have that priority by their DSCP. */
static void start_with(uint8_t prio)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 0;
    start_alone(&o);
    vhca_qp_get(g->e, qp.qpn)->attr.av.tclass = (uint8_t)(prio << 5);
}

static void expect_at(uint32_t psn, uint64_t ns)
{
    guest_advance(g, ns - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    peer_expect(&qp, RC_WRITE_ONLY, psn);
    peer_expect_none(&qp);
}

/* ---- what waits ---- */

static void test_waits(void)
{
    for (unsigned prio = 0; prio < 8; prio++) {
        for (unsigned whole = 0; whole < 2; whole++) {
            unsigned mine = whole ? ALL : 1u << prio;

            start_with((uint8_t)prio);
            ask(mine, 1000);
            post(QHCA_WR_RDMA_WRITE, 64);
            expect_at(PSN, QUANTA_NS(1000));
            /* Time ends a pause, and so does a frame. */
            ask(mine, 65535);
            post(QHCA_WR_RDMA_WRITE, 64);
            guest_advance(g, QUANTA_NS(60000));
            peer_expect_none(&qp);
            ask(mine, 0);
            peer_expect(&qp, RC_WRITE_ONLY, PSN + 1);
            /* A second pause counts from when it comes. */
            ask(mine, 100);
            guest_advance(g, QUANTA_NS(50));
            ask(mine, 200);
            post(QHCA_WR_RDMA_WRITE, 64);
            expect_at(PSN + 2, QUANTA_NS(200));
            /* A pause for other classes holds nothing up. */
            if (!whole) {
                ask(ALL ^ mine, 65535);
                post(QHCA_WR_RDMA_WRITE, 64);
                peer_expect(&qp, RC_WRITE_ONLY, PSN + 3);
            }
        }
    }
}

/* Answers also wait; a notification has a class of its own. */
static void test_answers(void)
{
    struct qhca_congestion c;
    struct roce_packet p;

    start_type(QHCA_QPT_RC);
    vhca_qp_get(g->e, qp.qpn)->attr.av.tclass = 3 << 5;
    c = congestion_get(g);
    c.value[QHCA_CC_NP_ENABLE] = htole32(1);
    CHECK_EQ(congestion_set(g, &c), QHCA_OK);
    ask(1u << 3, 65535);
    p = request(RC_WRITE_ONLY, RQ_PSN, 0, 4);
    p.tclass = 3;
    peer_inject(&qp, &p, data, 4);
    peer_expect(&qp, ROCE_CNP, 0);
    peer_expect_none(&qp);
    ask(1u << 3, 0);
    expect_ack(RQ_PSN, 1);
    guest_advance(g, 1000000);
    ask(1u << 6, 65535);
    p = request(RC_WRITE_ONLY, RQ_PSN + 1, 0, 4);
    p.tclass = 3;
    peer_inject(&qp, &p, data, 4);
    expect_ack(RQ_PSN + 1, 2);
    peer_expect_none(&qp);
    ask(1u << 6, 0);
    peer_expect(&qp, ROCE_CNP, 0);
}

/* A packet that waits has not been sent, so no answer is late. */
static void test_timeout(void)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 1;              /* 8 us */
    start_alone(&o);
    ask(1, 65535);
    post(QHCA_WR_RDMA_WRITE, 64);
    guest_advance(g, QUANTA_NS(65535) - 1);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    guest_advance(g, 1);
    peer_expect(&qp, RC_WRITE_ONLY, PSN);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* Many QPs wait, and all of them go on; one of them is gone by then. */
static void test_many(void)
{
    struct rc_qp more[20];

    start_with(0);
    for (unsigned i = 0; i < ARRAY_SIZE(more); i++) {
        struct rc_opts o = RC_OPTS;

        o.timeout = 0;
        more[i] = rc_create(&node, &o);
        rc_set_peer(&more[i], &far, 0x123);
        rc_bring_up(&more[i], QHCA_QPS_RTS);
    }
    ask(1, 65535);
    for (unsigned i = 0; i < ARRAY_SIZE(more); i++) {
        struct rc_wr wr = rc_wr(&more[i], QHCA_WR_RDMA_WRITE, 0, 64);

        rc_aim(&wr, &node, 0);
        rc_post(&more[i], &wr);
    }
    guest_settle(g);
    CHECK_EQ(g->num_sent, 0);
    CHECK_EQ(rc_destroy(&more[7]), 0);
    ask(1, 0);
    CHECK_EQ(g->num_sent, ARRAY_SIZE(more) - 1);
}

/* ---- frames that are not obeyed ---- */

static void test_others(void)
{
    static const uint8_t other[6] = { 2, 0, 0, 0, 0, 99 };
    uint64_t bad;

    start_with(0);
    bad = counter(g, QHCA_CNT_RX_MALFORMED);
    control(other, PFC, ALL, 65535, 60);        /* for another port */
    CHECK_EQ(counter(g, QHCA_CNT_RX_MALFORMED), bad);
    control(group, PFC, ALL, 65535, 33);        /* a byte is missing */
    control(group, PAUSE, 0, 65535, 17);
    control(group, 2, ALL, 65535, 60);          /* another opcode */
    control(group, 0, ALL, 65535, 14);
    CHECK_EQ(counter(g, QHCA_CNT_RX_MALFORMED), bad + 4);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PAUSE), 0);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 0);    /* nor by Ethernet */
    post(QHCA_WR_RDMA_WRITE, 64);
    peer_expect(&qp, RC_WRITE_ONLY, PSN);
    control(g->e->port->mac, PFC, 1, 10, 34);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PAUSE), 1);
    post(QHCA_WR_RDMA_WRITE, 64);
    expect_at(PSN + 1, QUANTA_NS(10));
    control(group, PFC, 0, 65535, 60);          /* of no class */
    post(QHCA_WR_RDMA_WRITE, 64);
    peer_expect(&qp, RC_WRITE_ONLY, PSN + 2);
}

/* ---- in a saved state, after a reset, and by a rule ---- */

static void test_saved(void)
{
    start_with(5);
    ask(1u << 5, 1000);
    post(QHCA_WR_RDMA_WRITE, 64);
    guest_advance(g, QUANTA_NS(400));
    snapshot_cycle(g);
    expect_at(PSN, QUANTA_NS(600));
    ask(1u << 5, 1000);
    qhca_engine_reset(g->e, *g->clock);
    CHECK_EQ(g->e->port->pause.classes, 0);
}

static void test_rule(void)
{
    start_with(2);
    faults_set("timer pause=5ms prio=3");
    guest_advance(g, 1);
    post(QHCA_WR_RDMA_WRITE, 64);
    peer_expect(&qp, RC_WRITE_ONLY, PSN);
    faults_set("timer pause=5ms prio=2");
    guest_advance(g, 1);
    post(QHCA_WR_RDMA_WRITE, 64);
    guest_advance(g, 4999000);
    peer_expect_none(&qp);
    guest_advance(g, 1000);
    peer_expect(&qp, RC_WRITE_ONLY, PSN + 1);
    faults_set("rx pause=1ms");
    peer_send(&qp, RC_ACKNOWLEDGE, PSN + 1, NULL, 0);
    guest_advance(g, 1);
    post(QHCA_WR_RDMA_WRITE, 64);
    peer_expect_none(&qp);
    guest_advance(g, 1000000);
    peer_expect(&qp, RC_WRITE_ONLY, PSN + 2);
}

/*
 * At a low speed 65535 quanta are longer than a pause may be. So is what a
 * state is saved and verified with.
 */
static void test_slow(void)
{
    uint64_t clock;

    start_limited(0, 1, &RC_OPTS);
    clock = *g->clock;
    control(group, PAUSE, ALL, 0xffff, 60);
    CHECK(g->e->port->pause.until[0] <= clock + VHCA_PAUSE_NS);
    snapshot_check(g);
    control(group, PFC, 0xff, 0xffff, 60);
    snapshot_check(g);
    guest_advance(g, VHCA_PAUSE_NS - 1);
    CHECK(vhca_paused(g->e, 0));
    guest_advance(g, 1);
    CHECK(!vhca_paused(g->e, 0));
}

static const struct test tests[] = {
    { "frames wait for the end of a pause of their class", test_waits },
    { "answers wait, and notifications by themselves", test_answers },
    { "what is paused is not late", test_timeout },
    { "all that were paused go on", test_many },
    { "frames for the MAC that are not obeyed", test_others },
    { "pauses in a saved state, and a reset", test_saved },
    { "pauses by fault rules", test_rule },
    { "the longest pause, of a slow port", test_slow },
};

TEST_MAIN(tests)
