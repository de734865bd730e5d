/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine holds what Documentation/bounds.rst says, and the calls with most
 * to do keep their limits. harness/bounds.c checks all other calls, in every
 * test.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/budget.h"
#include "harness/flows.h"

#define ENTRY   2048u           /* units of an entry point */
#define TABLE   "../../Documentation/bounds.rst"

static const struct qhca_engine_config properties = {
    .mac = { 0x52, 0x54, 0, 1, 2, 3 },
    .num_vectors = 5, .num_uars = 1024, .log_db_stride = 12, .max_qp = 4096,
    .eth_queues = VHCA_MAX_ETH_PAIRS,
    .shadow = true,
};

/* A device with QEMU's defaults, which never sees a guest. */
static struct qhca_engine *engine_new(struct guest *nobody)
{
    struct qhca_engine *e;

    memset(nobody, 0, sizeof(*nobody));
    nobody->heap = &nobody->heaps[0];
    heap_use(nobody->heap);
    e = qhca_engine_new(&properties, &guest_ops, nobody);
    heap_use(NULL);
    REQUIRE(e);
    return e;
}

/* Reads the row of @what: size in bytes, maximal number. */
static bool find_row(const char *what, size_t *size, unsigned *max)
{
    FILE *f = fopen(TABLE, "r");
    size_t len = strlen(what);
    char line[200];
    bool found = false;

    REQUIRE(f);
    while (!found && fgets(line, sizeof(line), f)) {
        found = !strncmp(line, what, len) && !strncmp(line + len, "  ", 2) &&
                sscanf(line + len, "%zu %u", size, max) == 2;
    }
    fclose(f);
    return found;
}

/* The rows are between the second border of the table and the third. */
static unsigned num_rows(void)
{
    static const char border[] = "=====  ";
    FILE *f = fopen(TABLE, "r");
    unsigned borders = 0, n = 0;
    char line[200];

    REQUIRE(f);
    while (fgets(line, sizeof(line), f)) {
        if (strstr(line, border)) {
            borders++;
        } else if (borders == 2) {
            n += line[0] != ' ';
        }
    }
    fclose(f);
    return n;
}

static void table(void)
{
    struct qhca_holding h[VHCA_MAX_HOLDINGS];
    static struct guest nobody;
    struct qhca_engine *e = engine_new(&nobody);
    unsigned n = qhca_engine_holdings(e, h), max;
    size_t size;

    REQUIRE(n <= VHCA_MAX_HOLDINGS);
    CHECK_EQ(num_rows(), n);
    for (unsigned i = 0; i < n; i++) {
        if (!find_row(h[i].what, &size, &max)) {
            tap_note("%s", h[i].what);
            tap_fail(__FILE__, __LINE__, "not in the table");
            continue;
        }
        if (h[i].size > size || h[i].max != max) {
            tap_note("%s: %zu bytes, %u", h[i].what, h[i].size, h[i].max);
            tap_fail(__FILE__, __LINE__, "the table has other numbers");
        }
    }
    qhca_engine_free(e);
}

static void totals(void)
{
    static struct guest nobody;
    struct qhca_engine *e = engine_new(&nobody);
    uint64_t max, now = qhca_engine_memory(e, &max);

    tap_note("%llu bytes when idle, %llu at most", (unsigned long long)now,
             (unsigned long long)max);
    CHECK_EQ(now, nobody.heap->bytes);
    CHECK(now <= (6u << 20) + (36u << 10));
    CHECK(max <= 341u << 20);
    qhca_engine_free(e);
    CHECK_EQ(nobody.heap->bytes, 0);
}

/* A QP that is connected and has not sent yet, without its tables. */
static void idle_qp(void)
{
    size_t before;
    struct rc_qp q;

    start_node();
    before = g->heap->bytes;
    q = rc_scripted(&node, &RC_OPTS, &far);
    CHECK(g->heap->bytes - before <= 8192 + sizeof(struct vhca_cq) * 2);
    post_writes(&q, 1, 8);
    rc_ring(&q);
    CHECK(g->heap->bytes - before > 8192);
    before = g->heap->bytes;
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_RESET), QHCA_OK);
    CHECK(before - g->heap->bytes == VHCA_INFLIGHT * sizeof(struct vhca_swr));
}

/* After a reset the engine holds as much as before it was used. */
static void reset(void)
{
    struct guest *g = guest_new();
    size_t before = g->heap->bytes;
    uint64_t max;

    guest_enable(g, 5);
    for (unsigned i = 0; i < 10; i++) {
        pd_create(g);
    }
    CHECK_EQ(qhca_engine_memory(g->e, &max),
             before + 10 * sizeof(struct vhca_holder));
    qhca_engine_reset(g->e, *g->clock);
    CHECK_EQ(g->heap->bytes, before);
}

/* ---- calls with much to do ---- */

#define SENDERS     8
#define WRS         16

/* The network accepts frames again, and thousands have been waiting. */
static void all_may_send(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);
    struct rc_qp q[SENDERS];
    unsigned frames = 0;

    start_node();
    g->net_blocked = true;
    for (unsigned i = 0; i < SENDERS; i++) {
        q[i] = rc_scripted(&node, &o, &far);
        for (unsigned j = 0; j < WRS; j++) {
            struct rc_wr wr = rc_wr(&q[i], QHCA_WR_SEND, 0, 16 * 1024);

            rc_put(&q[i], &wr);
        }
        rc_ring(&q[i]);
        guest_settle(g);
    }
    CHECK_EQ(g->num_sent, 0);
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    CHECK(g->host.todo);
    frames = g->num_sent;
    CHECK(frames > VHCA_FIFO_FRAMES && frames < SENDERS * WRS * 8);
    guest_settle(g);
    CHECK_EQ(g->num_sent, SENDERS * WRS * 16);
}

#define PSN     0x222222u       /* rq_psn of RC_OPTS */

/* The FIFO to the network: WRITEs leave room for READs, and both for ACKs. */
static void room_for_answers(void)
{
    const unsigned left = VHCA_FIFO_FRAMES / 4;     /* for ACKs */
    struct rc_qp data, acks;
    struct roce_packet p;
    const uint8_t byte = 0;

    start_alone(&RC_OPTS);
    data = rc_scripted(&node, &RC_OPTS, &far);
    acks = rc_scripted(&node, &RC_OPTS, &far);
    g->net_blocked = true;
    post_writes(&qp, 4, 64 * 1024);
    rc_ring(&qp);
    guest_settle(g);
    CHECK_EQ(vhca_fifo_used(&g->e->port->tx), VHCA_FIFO_FRAMES / 2);
    p = peer_request(&data, RC_READ_REQUEST, PSN, 0, NODE_MEM);
    peer_inject(&data, &p, NULL, 0);
    guest_settle(g);
    CHECK_EQ(vhca_fifo_used(&g->e->port->tx), VHCA_FIFO_FRAMES - left);
    for (unsigned i = 0; i <= left; i++) {
        p = peer_request(&acks, RC_WRITE_ONLY, PSN + i, 0, 1);
        p.ackreq = true;
        peer_inject(&acks, &p, &byte, 1);
        CHECK_EQ(vhca_fifo_used(&g->e->port->tx),
                 VHCA_FIFO_FRAMES - left + MIN_OF(i + 1, left));
    }
}

#define USERS       100

/* A CQ of many QPs fails: all events that follow need one interrupt. */
static void all_are_told(void)
{
    struct rc_qp q[USERS];
    struct qhca_eqe eqe;
    struct rc_wr wr;
    unsigned before;

    start_node();
    q[0] = rc_create(&node, &RC_OPTS);
    for (unsigned i = 1; i < USERS; i++) {
        q[i] = rc_create_shared(&q[0], &RC_OPTS);
    }
    rc_set_peer(&q[0], &far, 0x77);
    rc_bring_up(&q[0], QHCA_QPS_RTS);
    eq_arm(&node.async);
    wr = rc_wr(&q[0], 0xff, 0, 8);              /* no such opcode */
    guest_spoil(g, gbuf_addr(&q[0].scq.buf, 0), 4096);
    before = g->irqs[0];
    rc_do(&q[0], &wr);
    CHECK_EQ(g->irqs[0], before + 1);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, q[0].scq.cqn);
    for (unsigned i = 0; i < USERS; i++) {
        REQUIRE(eq_next(&node.async, &eqe));
        CHECK_EQ(eqe.type, QHCA_EVENT_QP_FATAL);
    }
}

#define CQS     (VHCA_MAX_CQ - 2)

/* Each QP waits for an ACK and each CQ for more CQEs: all have their timer. */
static void all_timers(void)
{
    static struct gcq cq[CQS];
    const unsigned qps = 1024;
    struct qhca_cqe cqe = { 0 };
    struct rc_qp first, q;

    start_node();
    for (unsigned i = 0; i < CQS; i++) {
        cq[i] = cq_create(g, &node.comp, 3, 1);
        CHECK_EQ(cq_moderate(&cq[i], 2, 1000), QHCA_OK);
        cq_arm(&cq[i], false);
    }
    first = rc_create(&node, &RC_OPTS);
    for (unsigned i = 0; i < qps; i++) {
        q = i ? rc_create_shared(&first, &RC_OPTS) : first;
        rc_set_peer(&q, &far, 0x77);
        rc_bring_up(&q, QHCA_QPS_RTS);
        vhca_qp_get(g->e, q.qpn)->attr.rate_limit = htole32(1);
        vhca_qp_get(g->e, q.qpn)->rated = true;
        post_writes(&q, 2, 8);
        rc_ring(&q);
    }
    CHECK_EQ(g->e->timers.used, 2 * qps);
    for (unsigned i = 0; i < CQS; i++) {
        vhca_cq_push(g->e, vhca_cq_get(g->e, cq[i].cqn), &cqe, false);
    }
    CHECK_EQ(g->e->timers.used, 2 * qps + CQS);
    CHECK_EQ(g->e->timers.size,
             2 * qps + VHCA_MAX_CQ + 4 + VHCA_RULE_EARLY);
}

/*
 * A frame has come that many receive. Deliver it to the rest of them; no call
 * does more than an entry point may, and one receiver over that. Returns the
 * units of all calls.
 */
static unsigned deliver(void)
{
    unsigned units = g->e->spent;

    CHECK(units <= ENTRY + QHCA_MAX_RECV_SGE + 16);
    while (g->host.todo) {
        guest_run(g);
        CHECK(g->cost.units <= ENTRY + QHCA_MAX_RECV_SGE + 16);
        units += g->cost.units;
    }
    return units;
}

/*
 * The most that one packet can cost: each member's receive WQE has all SGEs,
 * and its CQ, armed in its doorbell record, an event of its own.
 */
static void armed_group(void)
{
    uint8_t frame[MAX_FRAME] = { 0 };
    struct roce_packet p;
    struct rc_qp *member;
    struct qhca_eqe eqe;
    unsigned units;

    setenv("QHCA_TEST_SHADOW", "1", 1);
    member = start_group(1) - (VHCA_MAX_MCAST_QP - 1);
    unsetenv("QHCA_TEST_SHADOW");
    for (unsigned i = 0; i < VHCA_MAX_MCAST_QP; i++) {
        cq_arm(&member[i].rcq, false);
    }
    p = peer_to_group(&member[0], 1, full_group);
    p.payload_len = 4096;
    guest_rx(g, frame, roce_finish(&p, frame));
    units = deliver();
    CHECK(units > VHCA_MAX_MCAST_QP * (QHCA_MAX_RECV_SGE + 8));
    CHECK(units <= VHCA_MAX_MCAST_QP * (QHCA_MAX_RECV_SGE + 16));
    for (unsigned i = 0; i < VHCA_MAX_MCAST_QP; i++) {
        CHECK(eq_next(&node.comp, &eqe));
    }
}

/* The most that an Ethernet frame can cost, with receive WQEs like those. */
static void ruled_group(void)
{
    static const uint8_t mac[6] = { 0x01, 0, 0x5e, 1, 1, 1 };
    struct frame f = udp_frame(mac, 1, 2, 7, 8950);
    struct rc_opts o = opts_of(QHCA_QPT_RAW);
    struct qhca_seg_le seg[QHCA_MAX_RECV_SGE];
    struct rc_qp q[4];
    unsigned units;

    start_node();
    port_enable(g, test_mac, 0, 9000);
    o.sges = QHCA_MAX_RECV_SGE;
    for (unsigned i = 0; i < ARRAY_SIZE(seg); i++) {
        seg[i] = (struct qhca_seg_le) {
            node.mr.addr + i * 8192, i < 31 ? 128 : 8192, node.mr.key,
        };
    }
    for (unsigned i = 0; i < ARRAY_SIZE(q); i++) {
        q[i] = rc_create(&node, &o);
        rc_bring_up(&q[i], QHCA_QPS_RTR);
        for (unsigned n = 0; n < QHCA_FLOW_MAX / ARRAY_SIZE(q); n++) {
            struct qhca_flow r = flow_rule(&q[i]);

            flow_add(g, &r);
            rc_recv_raw(&q[i], n, ARRAY_SIZE(seg), seg);
        }
    }
    guest_rx(g, f.data, f.len);
    units = deliver();
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_PKTS), QHCA_FLOW_MAX);
    CHECK(units > QHCA_FLOW_MAX * (QHCA_MAX_RECV_SGE + 8));
    CHECK(units <= QHCA_FLOW_MAX * (QHCA_MAX_RECV_SGE + 16));
    for (unsigned i = 0; i < ARRAY_SIZE(q); i++) {
        struct qhca_cqe cqe;

        for (unsigned n = 0; n < QHCA_FLOW_MAX / ARRAY_SIZE(q); n++) {
            CHECK(cq_poll(&q[i].rcq, &cqe));
        }
        CHECK(flow_none(&q[i]));
    }
}

static const struct test tests[] = {
    { "the table of bounds.rst", table },
    { "memory of a device when idle, and at most", totals },
    { "memory of an idle QP", idle_qp },
    { "memory after a reset", reset },
    { "frames for a network that was stuck", all_may_send },
    { "frames for a stuck network leave room for answers", room_for_answers },
    { "events when a CQ of many QPs fails", all_are_told },
    { "all timers at once", all_timers },
    { "a frame to a group whose CQs are armed", armed_group },
    { "a frame that all rules are for", ruled_group },
};

TEST_MAIN(tests)
