/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port whose frames are on their way for some time. */
#include <stdlib.h>

#include "harness/budget.h"
#include "harness/frames.h"
#include "harness/snapshot.h"

#define MS  1000000ull

static uint32_t finished(void)
{
    return vhca_qp_get(g->e, qp.qpn)->sq.ci;
}

static void start_late(const char *rules)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = 10;
    o.cq_log = 11;
    start_limited(0, 0, &o);
    guest_set_faults(g, rules);
}

/* A request and its ACK take the latency each. */
static void test_round_trip(void)
{
    start_late("port latency=1ms");
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    let_pass(2 * MS - 10, 10);
    CHECK_EQ(finished(), 0);
    let_pass(20, 4);
    CHECK_EQ(finished(), 1);
    CHECK_EQ(g->deadline, UINT64_MAX);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* More than the line holds waits without work, and nothing is lost. */
static void test_line_is_full(void)
{
    start_late("port latency=100us");
    post_writes(&qp, 1000, 65536);
    rc_ring(&qp);
    let_pass(50 * MS, 5000);
    tap_note("%u messages in 50 ms", finished());
    CHECK(finished() > 20 && finished() < 1000);
    guest_set_faults(g, "");
    let_pass(50 * MS, 5000);
    CHECK_EQ(finished(), 1000);
    CHECK_EQ(g->deadline, UINT64_MAX);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* A shorter way does not let frames overtake. */
static void test_shorter(void)
{
    start_late("port latency=2ms");
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    guest_set_faults(g, "port latency=10us");
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    let_pass(2 * MS - 10, 10);
    CHECK_EQ(finished(), 0);
    let_pass(2 * MS, 10);
    CHECK_EQ(finished(), 2);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* Frames to the network leave later; those that are loaded leave at once. */
static void test_network(void)
{
    struct eth_tx q;
    uint64_t mem;
    uint8_t *state;
    size_t len;

    start_late("port latency=1ms");
    q = eth_tx_create(g, &node.comp, 6);
    mem = guest_alloc(g, 1500, 1);
    memset(guest_ptr(g, mem, 1500), 0x52, 1500);
    for (unsigned i = 0; i < 3; i++) {
        eth_tx_post(&q, mem, 1500, 0);
    }
    eth_tx_ring(&q);
    let_pass(MS - 10, 10);
    CHECK_EQ(g->num_sent, 0);
    g->net_blocked = true;
    let_pass(20, 4);
    CHECK_EQ(g->num_sent, 0);
    let_pass(MS, 4);
    g->net_blocked = false;
    guest_unblock(g);
    CHECK_EQ(g->num_sent, 3);
    for (unsigned i = 0; i < 3; i++) {
        eth_tx_post(&q, mem, 1500, 0);
    }
    eth_tx_ring(&q);
    state = snapshot_save(g, &len);
    CHECK(snapshot_load(g, state, len));
    let_pass(10, 4);
    CHECK_EQ(g->num_sent, 6);
    CHECK_EQ(g->deadline, UINT64_MAX);
}

/* What is on its way when the device is reset is lost; the rule stays. */
static void test_lost(void)
{
    start_late("port latency=1ms");
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    qhca_engine_reset(g->e, *g->clock);
    let_pass(5 * MS, 4);
    CHECK_EQ(g->deadline, UINT64_MAX);
    CHECK_EQ(vhca_port_latency(g->e), MS);
}

static const struct test tests[] = {
    { "a round trip takes twice as long", test_round_trip },
    { "a line that is full", test_line_is_full },
    { "frames do not overtake", test_shorter },
    { "frames to the network", test_network },
    { "what a reset does to them", test_lost },
};

TEST_MAIN(tests)
