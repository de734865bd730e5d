/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port whose frames are on their way for some time. */
#include <stdlib.h>

#include "harness/budget.h"
#include "harness/flows.h"
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
    CHECK_EQ(g->host.deadline, UINT64_MAX);
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
    CHECK_EQ(g->host.deadline, UINT64_MAX);
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

/* Frames to the network leave later; frames that are loaded do not wait. */
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
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* Frames that QPs send to their own port leave together, as others do. */
static void test_raw(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct rc_qp raw;
    struct qhca_flow r;

    start_late("port latency=1ms");
    raw = flow_qp(&node);
    r = flow_rule(&raw);
    flow_add(g, &r);
    memcpy(guest_ptr(g, node.mr.addr + FLOW_SEND, f.len), f.data, f.len);
    for (unsigned i = 0; i < 3; i++) {
        struct rc_wr wr = rc_wr(&raw, QHCA_WR_SEND, FLOW_SEND,
                                (uint32_t)f.len);

        flow_recv(&raw, i, 200);
        rc_put(&raw, &wr);
    }
    rc_ring(&raw);
    CHECK(settle() < 10);
    CHECK_EQ(vhca_qp_get(g->e, raw.qpn)->sq.ci, 3);
    let_pass(MS - 10, 4);
    CHECK(flow_none(&raw));
    let_pass(20, 4);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(flow_got(&raw, i, &f));
    }
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* QPs that send to the port itself do not wait for the network. */
static void test_blocked(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct rc_opts o = RC_OPTS;
    struct eth_tx q;
    struct qhca_flow r;
    struct rc_qp raw;
    uint64_t mem;

    start_late("port latency=100us");
    o.type = QHCA_QPT_RAW;
    o.sq_log = 8;
    o.cq_log = 9;
    raw = rc_create(&node, &o);
    rc_bring_up(&raw, QHCA_QPS_RTS);
    r = flow_rule(&raw);
    flow_add(g, &r);
    q = eth_tx_create(g, &node.comp, 6);
    mem = guest_alloc(g, 1500, 1);
    memset(guest_ptr(g, mem, 1500), 0x52, 1500);
    g->net_blocked = true;
    eth_tx_post(&q, mem, 1500, 0);
    eth_tx_ring(&q);
    let_pass(MS, 10);
    CHECK(g->e->port->tx_blocked);
    memcpy(guest_ptr(g, node.mr.addr + FLOW_SEND, f.len), f.data, f.len);
    for (unsigned i = 0; i < 200; i++) {
        struct rc_wr wr = rc_wr(&raw, QHCA_WR_SEND, FLOW_SEND,
                                (uint32_t)f.len);

        rc_put(&raw, &wr);
    }
    rc_ring(&raw);
    let_pass(10 * MS, 100);
    CHECK_EQ(vhca_qp_get(g->e, raw.qpn)->sq.ci, 200);
}

/* A reset of the device loses packets on their way; the rule stays. */
static void test_lost(void)
{
    start_late("port latency=1ms");
    post_writes(&qp, 1, 64);
    rc_ring(&qp);
    qhca_engine_reset(g->e, *g->clock);
    let_pass(5 * MS, 4);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    CHECK_EQ(vhca_port_latency(g->e), MS);
}

static const struct test tests[] = {
    { "a round trip takes twice as long", test_round_trip },
    { "a line that is full", test_line_is_full },
    { "frames do not overtake", test_shorter },
    { "frames to the network", test_network },
    { "frames of QPs of type RAW", test_raw },
    { "the network takes nothing", test_blocked },
    { "what a reset does to them", test_lost },
};

TEST_MAIN(tests)
