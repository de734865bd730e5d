/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The speed of the port: it changes while the device runs. */
#include <stdlib.h>

#include "harness/budget.h"
#include "harness/fields.h"
#include "harness/frames.h"
#include "harness/snapshot.h"

#define MS  1000000ull

static void set_speed(unsigned mbit)
{
    CHECK(qhca_engine_set_bandwidth(g->e, *g->clock, mbit));
}

static uint32_t speed(void)
{
    struct qhca_port_attr port;

    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 1, &port, sizeof(port)),
             QHCA_OK);
    return le32toh(port.speed);
}

static uint64_t bytes_sent(void)
{
    return counter(g, QHCA_CNT_TX_BYTES);
}

/* Mbit/s of frames in the next @ms milliseconds. */
static unsigned measured(unsigned ms)
{
    uint64_t before = bytes_sent();

    let_pass(ms * MS, 20 * ms);
    return (unsigned)((bytes_sent() - before) * 8 / 1000 / ms);
}

static void start_running(unsigned mbit)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = 12;
    o.cq_log = 13;
    start_limited(0, mbit, &o);
    post_writes(&qp, 4000, 65536);
    rc_ring(&qp);
}

static void test_paced(void)
{
    static const unsigned mbits[] = { 1000, 100, 2500, 10, 1000, 20 };

    start_running(500);
    for (unsigned i = 0; i < ARRAY_SIZE(mbits); i++) {
        unsigned is;

        set_speed(mbits[i]);
        CHECK_EQ(speed(), mbits[i]);
        is = measured(100);
        tap_note("%u Mbit/s: %u", mbits[i], is);
        CHECK(is <= mbits[i] + mbits[i] / 10 + 2);
        CHECK(is >= mbits[i] - mbits[i] / 4);
    }
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* Looking for doorbells in memory does not put off what waits for the port. */
static void test_looked_at(void)
{
    uint64_t before;

    start_running(50);
    before = bytes_sent();
    for (unsigned i = 0; i < 1000; i++) {
        let_pass(MS / 10, 20);
        (void)qhca_engine_look(g->e, *g->clock);
    }
    tap_note("%u Mbit/s", (unsigned)((bytes_sent() - before) * 8 / 100000));
    CHECK(bytes_sent() - before > 100 * 50 * 1000 / 8 * 3 / 4);
}

/* Packets that wait for a slow port go on when the limit is gone. */
static void test_lifted(void)
{
    start_running(1);
    let_pass(10 * MS, 200);
    CHECK(!vhca_port_open(g->e));
    set_speed(0);
    CHECK_EQ(speed(), VHCA_PORT_SPEED);
    let_pass(MS, 100000);
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->sq.ci, 4000);
    let_pass(1000 * MS, 10);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    CHECK_EQ(g->e->port->pace.cost, 0);
}

/* Frames of the network card and packets of QPs share the limit. */
static void test_ethernet(void)
{
    struct eth_tx q;
    uint64_t mem, before;
    unsigned ms;

    start_limited(0, 0, &RC_OPTS);
    q = eth_tx_create(g, &node.comp, 6);
    mem = guest_alloc(g, 1500, 1);
    memset(guest_ptr(g, mem, 1500), 0x52, 1500);
    set_speed(10);
    before = *g->clock;
    for (unsigned i = 0; i < 40; i++) {
        eth_tx_post(&q, mem, 1500, 0);
    }
    eth_tx_ring(&q);
    post_writes(&qp, 10, 4096);
    rc_ring(&qp);
    for (ms = 0; ms < 1000 && (g->e->eth->tx_busy ||
                  vhca_qp_get(g->e, qp.qpn)->sq.ci < 10); ms++) {
        let_pass(MS, 20);
    }
    tap_note("%u ms", ms);
    CHECK(ms >= 70 && ms <= 95);        /* 100,000 bytes and headers: 80 */
    CHECK_EQ(*g->clock - before, ms * MS);
}

static void test_events(void)
{
    start_node();
    set_speed(0);
    no_event();
    set_speed(VHCA_PORT_SPEED);         /* as fast as it is without limit */
    no_event();
    CHECK(!qhca_engine_set_bandwidth(g->e, *g->clock, VHCA_PORT_SPEED + 1));
    CHECK(!qhca_engine_set_bandwidth(g->e, *g->clock, UINT32_MAX));
    CHECK_EQ(speed(), VHCA_PORT_SPEED);
    no_event();
    set_speed(40000);
    eq_expect(&node.async, QHCA_EVENT_SPEED_CHANGE, 1);
    set_speed(40000);
    no_event();
    set_speed(0);
    eq_expect(&node.async, QHCA_EVENT_SPEED_CHANGE, 1);
    CHECK_EQ(speed(), VHCA_PORT_SPEED);
}

/* However often it changes, at most one event waits for a slow driver. */
static void test_many_events(void)
{
    struct geq eq;
    struct qhca_eqe e;
    unsigned n = 0;

    harness_cleanup();
    g = guest_new();
    guest_enable(g, 5);
    eq = eq_create(g, 2, 0, QHCA_EQ_ASYNC);
    for (unsigned i = 1; i < 1000; i++) {
        set_speed(i);
    }
    while (eq_next(&eq, &e)) {
        CHECK_EQ(e.type, QHCA_EVENT_SPEED_CHANGE);
        eq_arm(&eq);
        n++;
    }
    CHECK_EQ(n, 2);
    CHECK_EQ(speed(), 999);
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

/* A reset keeps the limit, and takes an event that waits away. */
static void test_reset(void)
{
    start_node();
    set_speed(1000);
    eq_expect(&node.async, QHCA_EVENT_SPEED_CHANGE, 1);
    qhca_engine_reset(g->e, *g->clock);
    guest_enable(g, 5);
    node = node_on(g, 1);
    CHECK_EQ(speed(), 1000);
    set_speed(1000);
    no_event();
}

/* The operator of the new place decides, and the driver hears of it. */
static void test_moved(void)
{
    static const struct {
        unsigned from, to;
        bool event;
    } rows[] = {
        { 0, 1000, true }, { 1000, 0, true }, { 1000, 1000, false },
        { 0, 0, false }, { 0, VHCA_PORT_SPEED, false }, { 25000, 1000, true },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t *state;
        size_t len;

        start_limited(0, rows[i].from, &RC_OPTS);
        state = snapshot_save(g, &len);
        REQUIRE(state);
        g->e->cfg.bandwidth = rows[i].to;       /* another device */
        CHECK(snapshot_load(g, state, len));
        CHECK_EQ(speed(), rows[i].to ? rows[i].to : VHCA_PORT_SPEED);
        no_event();
        set_speed(rows[i].to);
        if (rows[i].event) {
            eq_expect(&node.async, QHCA_EVENT_SPEED_CHANGE, 1);
        }
        no_event();
    }
}

static void test_bad_state(void)
{
    static const uint64_t bad[] = { 0, VHCA_PORT_SPEED + 1, UINT32_MAX };

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        struct field_edit edit = { .value = bad[i] };
        uint8_t *state;
        size_t len;

        start_node();
        edit.which = fields_find(g, "port", "speed", 0);
        state = fields_save(g, &edit, 1, &len);
        CHECK(!snapshot_load(g, state, len));
        CHECK(strstr(snapshot_why(), "speed"));
        CHECK_EQ(vhca_port_speed(g->e), VHCA_PORT_SPEED);
    }
}

/* ---- a port that is slower than it says ---- */

static uint64_t hits_of(const char *rule)
{
    char text[VHCA_RULES_TEXT];
    const char *at;

    qhca_engine_get_faults(g->e, text, sizeof(text));
    at = strstr(text, rule);
    REQUIRE(at);
    return strtoull(strstr(at, "hits ") + 5, NULL, 10);
}

static void test_grey(void)
{
    uint64_t packets, hits;

    start_running(1000);
    guest_set_faults(g, "port bandwidth=100");
    packets = counter(g, QHCA_CNT_TX_PKTS);
    CHECK(measured(100) < 115 && measured(100) > 75);
    CHECK_EQ(speed(), 1000);
    no_event();
    hits = hits_of("port bandwidth=100");
    packets = counter(g, QHCA_CNT_TX_PKTS) - packets;
    tap_note("%u hits", (unsigned)hits);
    CHECK_EQ(hits, packets);
    /* The lower one counts, and the first one of several rules. */
    guest_set_faults(g, "port bandwidth=5000; port bandwidth=10");
    CHECK(measured(50) > 750 && measured(50) < 1100);
    CHECK_EQ(hits_of("port bandwidth=10 "), 0);
    set_speed(0);
    CHECK(measured(10) > 3700 && measured(10) < 5500);
    guest_set_faults(g, "");
    let_pass(10 * MS, 100000);
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->sq.ci, 4000);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
}

/* A slow port is awake only when there is something to send. */
static void test_grey_sleeps(void)
{
    start_limited(0, 0, &RC_OPTS);
    guest_set_faults(g, "port bandwidth=1");
    post_writes(&qp, 2, 4096);
    rc_ring(&qp);
    let_pass(150 * MS, 60);
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->sq.ci, 2);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    qhca_engine_reset(g->e, *g->clock);
    CHECK_EQ(g->e->rules->mbit, 1);
}

/* Marks that a receiver counts, of @n packets. */
static unsigned marks(const char *rules, unsigned n)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = 10;
    o.cq_log = 11;
    start_limited(0, 0, &o);
    guest_set_faults(g, rules);
    for (unsigned i = 0; i < n; i++) {
        post_writes(&qp, 1, 64);
        rc_ring(&qp);
        guest_advance(g, MS);
    }
    return (unsigned)counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS);
}

static void test_marks(void)
{
    unsigned n = marks("seed=3; port ce=20%", 500);

    tap_note("%u of 1000 packets", n);
    CHECK(n > 150 && n < 250);
    CHECK_EQ(hits_of("port ce=20%"), n);
    CHECK_EQ(marks("seed=3; port ce=20%", 500), n);
    CHECK_EQ(marks("seed=3; tx prob=20% mark=ce", 500), n);
}

static const struct test tests[] = {
    { "a rule makes the port slower than it says", test_grey },
    { "a slow port sleeps", test_grey_sleeps },
    { "a rule makes the port mark packets", test_marks },
    { "a speed that changes is kept", test_paced },
    { "a port that is slow and looked at", test_looked_at },
    { "a limit that is lifted", test_lifted },
    { "Ethernet and RoCE share it", test_ethernet },
    { "the driver is told", test_events },
    { "one event waits at most", test_many_events },
    { "a reset keeps it", test_reset },
    { "a machine moves to a device of another speed", test_moved },
    { "a speed in a saved state that none has", test_bad_state },
};

TEST_MAIN(tests)
