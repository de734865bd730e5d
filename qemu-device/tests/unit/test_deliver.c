/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The delivery of a frame to many: it stops when the budget ends and goes on
 * later. Here each receiver takes more than an entry point may do: its memory
 * is in pieces of a byte each.
 */
#include "harness/budget.h"
#include "harness/fields.h"
#include "harness/flows.h"
#include "harness/keys.h"
#include "harness/snapshot.h"

#define NUM     16u             /* receivers */
#define PIECES  (VHCA_MAX_FAST_REG / 2)
#define REGIONS 9u
#define LEN     4096u           /* of a datagram */
#define IOVA(i) (0x100000ull * ((i) + 1))

static struct rc_qp one[NUM + 1];
static struct qhca_seg_le bytes[REGIONS];

static void start(uint8_t type)
{
    struct rc_opts o = RC_OPTS;

    start_node();
    o.qp_flags = KERNEL_QP;
    rc_pair(&node, &o, &qp, &peer);
    for (unsigned i = 0; i < REGIONS; i++) {
        bytes[i] = (struct qhca_seg_le) {
            IOVA(i), PIECES, fast_bytes(&qp, IOVA(i), PIECES),
        };
    }
    o = opts_of(type);
    o.sges = REGIONS;
    o.mtu = 5;
    for (unsigned i = 0; i <= NUM; i++) {
        one[i] = rc_create(&node, &o);
        rc_set_peer(&one[i], &far, 0x77);
        rc_bring_up(&one[i], QHCA_QPS_RTS);
        for (unsigned n = 0; n < 3; n++) {
            rc_recv_raw(&one[i], n, REGIONS, bytes);
        }
    }
}

static int join(unsigned i)
{
    return rc_mcast(&one[i], QHCA_CMD_ATTACH_MCAST, full_group);
}

static int leave(unsigned i)
{
    return rc_mcast(&one[i], QHCA_CMD_DETACH_MCAST, full_group);
}

/* All but the last one are members. */
static void start_members(void)
{
    start(QHCA_QPT_UD);
    for (unsigned i = 0; i < NUM; i++) {
        CHECK_EQ(join(i), QHCA_OK);
    }
}

static void send(uint32_t psn, uint8_t fill)
{
    struct roce_packet p = peer_to_group(&one[0], psn, full_group);
    uint8_t frame[MAX_FRAME];

    p.payload_len = LEN;
    memset(frame + roce_payload_offset(&p), fill, LEN);
    guest_rx(g, frame, roce_finish(&p, frame));
}

/* A frame has come, one of the receivers has it, and the others wait. */
static void first_has_it(void)
{
    CHECK(vhca_delivering(g->e));
    CHECK(g->host.todo);
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    rc_expect(&one[0].rcq, 0, 0);
    rc_expect_none(&one[1].rcq);
}

/* Runs to the end; no call takes more than one receiver over its budget. */
static void finish(void)
{
    unsigned calls = 0;

    while (g->host.todo) {
        REQUIRE(++calls < 1000);
        g->host.todo = 0;
        qhca_engine_run(g->e, *g->clock);
        CHECK(g->cost.units < CALL + VHCA_MAX_FRAME + STEP);
    }
    CHECK(!vhca_delivering(g->e));
    CHECK(qhca_engine_has_time(g->e, *g->clock));
}

/* Receivers from @from up to before @to complete WR @n, and nothing else. */
static void expect_from(unsigned from, unsigned to, uint64_t n)
{
    for (unsigned i = from; i < to; i++) {
        rc_expect(&one[i].rcq, n, 0);
        rc_expect_none(&one[i].rcq);
    }
}

/* Each gets the frame once, and those behind it in their order. */
static void in_order(void)
{
    start_members();
    send(1, 0x11);
    first_has_it();
    send(2, 0x22);
    send(3, 0x33);
    CHECK_EQ(g->e->port->late_rx, 2);
    finish();
    for (unsigned i = 0; i < NUM; i++) {
        for (unsigned n = !i; n < 3; n++) {
            rc_expect(&one[i].rcq, n, 0);
        }
        rc_expect_none(&one[i].rcq);
    }
    rc_expect_none(&one[NUM].rcq);
}

/* Frames for which the FIFO has no place are lost, and counted. */
static void no_room(void)
{
    start_members();
    send(1, 0x11);
    first_has_it();
    for (uint32_t i = 0; i < VHCA_FIFO_FRAMES; i++) {
        send(2 + i, 0x22);
    }
    CHECK_EQ(g->e->port->late_rx, VHCA_FIFO_FRAMES);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_ROOM), 0);
    send(2, 0x33);
    send(3, 0x33);
    CHECK_EQ(g->e->port->late_rx, VHCA_FIFO_FRAMES);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_ROOM), 2);
    finish();
    for (unsigned i = 0; i < NUM; i++) {
        for (unsigned n = !i; n < 3; n++) {
            rc_expect(&one[i].rcq, n, 0);
        }
    }
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_ROOM), 2);
}

/* Each member gets a datagram from a QP of the port, and the next one. */
static void looped(void)
{
    struct rc_wr wr;

    start_members();
    for (unsigned n = 0; n < 2; n++) {
        wr = rc_wr(&one[NUM], QHCA_WR_SEND, 0, LEN);
        memcpy(wr.av.dgid, full_group, 16);
        vhca_group_mac(full_group, wr.av.dmac);
        wr.qpn = QHCA_QPN_MCAST;
        rc_put(&one[NUM], &wr);
    }
    rc_ring(&one[NUM]);
    finish();
    for (unsigned i = 0; i < NUM; i++) {
        rc_expect(&one[i].rcq, 0, 0);
    }
    expect_from(0, NUM, 1);
}

/* The device is saved and loaded after each call. */
static void saved(void)
{
    uint64_t before = snapshot_count();

    start_members();
    snapshot_every(1);
    send(1, 0x11);
    send(2, 0x22);
    rc_expect(&one[0].rcq, 0, 0);
    finish();
    snapshot_every(0);
    for (unsigned i = 1; i < NUM; i++) {
        rc_expect(&one[i].rcq, 0, 0);
    }
    expect_from(0, NUM, 1);
    CHECK(snapshot_count() >= before + 2 * NUM - 2);
}

/* Loading the state with the edit must fail. */
static void refused(const char *name, unsigned nth, uint64_t value)
{
    struct field_edit edit = { .value = value };
    uint8_t *state;
    size_t len;

    start_members();
    send(1, 0x11);
    edit.which = fields_find(g, "transport", name, nth);
    state = fields_save(g, &edit, 1, &len);
    CHECK(!snapshot_load(g, state, len));
    CHECK(strstr(snapshot_why(), "transport"));
    CHECK(!vhca_delivering(g->e));
}

/* Receivers that are none, or twice the same; frames that are none. */
static void forged(void)
{
    start_members();
    send(1, 0x11);
    snapshot_cycle(g);
    CHECK(vhca_delivering(g->e));
    refused("receiver", 0, one[NUM].qpn);
    refused("receiver", 1, one[1].qpn);
    refused("receiver", 0, 0xffffff);
    refused("delivery", 0, VHCA_TO_RULES);
    refused("delivery", 0, VHCA_NUM_RECEIVERS);
    refused("len", 0, 13);
    refused("len", 0, VHCA_MAX_FRAME + 1);
    refused("receivers", 0, QHCA_FLOW_MAX + 1);
}

/* One that leaves gets it no longer; one that comes back has had it. */
static void members_change(void)
{
    start_members();
    send(1, 0x11);
    first_has_it();
    CHECK_EQ(leave(0), QHCA_OK);
    CHECK_EQ(join(0), QHCA_OK);
    CHECK_EQ(leave(NUM - 1), QHCA_OK);
    CHECK_EQ(rc_destroy(&one[NUM - 1]), QHCA_OK);
    CHECK_EQ(join(NUM), QHCA_OK);
    CHECK(vhca_delivering(g->e));
    snapshot_cycle(g);
    finish();
    rc_expect_none(&one[0].rcq);
    expect_from(1, NUM - 1, 0);
    rc_expect_none(&one[NUM].rcq);
    send(2, 0x22);
    finish();
    rc_expect(&one[NUM].rcq, 0, 0);
    rc_expect(&one[0].rcq, 1, 0);
}

/* The group goes, and comes again; a QP is reset; another group is left. */
static void group_goes(void)
{
    static const uint8_t other[16] = { 0xff, 0x0e, [15] = 1 };

    start_members();
    CHECK_EQ(rc_mcast(&one[5], QHCA_CMD_ATTACH_MCAST, other), QHCA_OK);
    send(1, 0x11);
    CHECK_EQ(rc_mcast(&one[5], QHCA_CMD_DETACH_MCAST, other), QHCA_OK);
    CHECK_EQ(rc_set_state(&one[NUM - 1], QHCA_QPS_RESET), QHCA_OK);
    CHECK(vhca_delivering(g->e));
    finish();
    rc_expect(&one[5].rcq, 0, 0);
    rc_expect_none(&one[NUM - 1].rcq);
    send(2, 0x22);
    for (unsigned i = NUM; i-- > 0;) {
        CHECK_EQ(leave(i), QHCA_OK);
    }
    CHECK_EQ(join(NUM - 1), QHCA_OK);
    finish();
    rc_expect_none(&one[NUM - 1].rcq);
}

/* A reset in the middle ends it; the port may go down, the frame was there. */
static void resets(void)
{
    start_members();
    send(1, 0x11);
    first_has_it();
    send(2, 0x22);
    qhca_engine_set_link(g->e, *g->clock, false);
    finish();
    expect_from(1, NUM, 0);

    start_members();
    send(1, 0x11);
    send(2, 0x22);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(!vhca_delivering(g->e) && !vhca_rx_waits(g->e));
    CHECK(qhca_engine_has_time(g->e, *g->clock));
    guest_run(g);

    start_members();
    send(1, 0x11);
    qhca_engine_inject_fatal(g->e, *g->clock);
    CHECK(qhca_engine_has_time(g->e, *g->clock));
    snapshot_cycle(g);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(!vhca_delivering(g->e));
}

/* A rule that doubles or delays frames waits for the one before. */
static void rules_for_faults(void)
{
    static const char *const text[] = {
        "rx duplicate", "rx once duplicate; rx once delay=1us",
        "rx once reorder",
    };
    uint64_t before;

    for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
        start_members();
        guest_set_faults(g, text[i]);
        before = counter(g, QHCA_CNT_RX_PKTS);
        send(1, 0x11);
        guest_settle(g);
        guest_advance(g, 1000000000);
        CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS) - before,
                 NUM * (i < 2 ? 2 : 1));
        CHECK(!vhca_delivering(g->e));
    }
}

static uint32_t rule[NUM];

static void start_rules(void)
{
    struct qhca_flow r;

    start(QHCA_QPT_RAW);
    for (unsigned i = 0; i < NUM; i++) {
        r = flow_rule(&one[i]);
        rule[i] = flow_add(g, &r);
    }
}

static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

/* Rules that go or change, or are new, do not get a frame on its way. */
static void rules_change(void)
{
    struct frame f = udp_frame(broadcast, 1, 2, 7, LEN - 28);
    struct qhca_flow r;

    start_rules();
    port_enable(g, test_mac, QHCA_PORT_ENABLE, 9000);
    guest_rx(g, f.data, f.len);
    first_has_it();
    CHECK_EQ(flow_destroy(g, rule[NUM - 1]), QHCA_OK);
    r = flow_rule(&one[0]);
    CHECK_EQ(flow_replace(g, &r, rule[NUM - 2]), QHCA_OK);
    r = flow_rule(&one[NUM]);
    flow_add(g, &r);
    CHECK(vhca_delivering(g->e));
    snapshot_cycle(g);
    finish();
    expect_from(1, NUM - 2, 0);
    rc_expect_none(&one[0].rcq);
    rc_expect_none(&one[NUM - 2].rcq);
    rc_expect_none(&one[NUM - 1].rcq);
    rc_expect_none(&one[NUM].rcq);
}

/* The debt at the lowest share of the CPU can be saved. */
static void debt(void)
{
    uint64_t before;
    size_t len;

    start_members();
    before = *g->clock;
    limit_cpu(g, 1);
    guest_advance(g, 1000000000);
    send(1, 0x11);
    CHECK(snapshot_save(g, &len));
    let_pass(60000000000, 100000);
    expect_from(0, NUM, 0);
    CHECK(*g->clock - before > NUM * 100000000ull);
    vhca_spend(g->e, 100000000);        /* far more than any step */
    vhca_pay(g->e);
    g->e->spent = 0;
    CHECK(snapshot_save(g, &len));
}

static const struct test tests[] = {
    { "D-084 each member gets a frame once, in order, in many steps",
      in_order },
    { "J-030 frames behind it are lost, and counted", no_room },
    { "D-084 so it does from a QP of the port", looped },
    { "D-084 a delivery is saved half done", saved },
    { "a state with a wrong delivery is refused", forged },
    { "D-084 members leave and join in the middle", members_change },
    { "D-084 a group goes in the middle", group_goes },
    { "D-084 resets and the carrier in the middle", resets },
    { "D-084 fault rules for such a frame", rules_for_faults },
    { "flow rules change in the middle", rules_change },
    { "a debt can be saved", debt },
};

TEST_MAIN(tests)
