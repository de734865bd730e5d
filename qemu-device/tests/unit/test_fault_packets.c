/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: each action of fault rules on packets, and how queue pairs
 * handle it.
 */
#include <stdio.h>

#include "harness/faults.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define MS          1000000ull

static void alone(const char *text)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 2;
    start_alone(&o);
    faults_set(text);
}

/* ---- what leaves, as the network sees it ---- */

static void test_drop(void)
{
    alone("tx opcode=rc.send_only once drop");
    post(QHCA_WR_SEND, 5);
    peer_expect_none(&qp);
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 1);      /* counted, then lost */
    guest_advance(g, ACK_TIME);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_ack(&qp, PSN);
    done(0, 0);

    alone("tx drop");
    post(QHCA_WR_SEND, 5);
    guest_advance(g, 10 * ACK_TIME);
    done(0, QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(faults_hits(0), 3);
    expect_dead();
}

static void test_duplicate(void)
{
    alone("tx psn=0x111112 duplicate");
    post(QHCA_WR_SEND, 5);
    post(QHCA_WR_SEND, 5);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect_none(&qp);
}

static void test_delay(void)
{
    alone("tx psn=0x111111-0x111112 delay=100us");
    post(QHCA_WR_SEND, 5);
    guest_advance(g, 50000);
    post(QHCA_WR_SEND, 5);
    post(QHCA_WR_SEND, 5);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
    guest_advance(g, 49999);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect_none(&qp);
    guest_advance(g, 50000);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect_none(&qp);
    peer_ack(&qp, PSN + 2);
    done(0, 0);
    CHECK_EQ(g->e->rules->num_held, 0);
}

static void test_reorder(void)
{
    alone("tx opcode=rc.send_only once reorder");
    post(QHCA_WR_SEND, 5);
    peer_expect_none(&qp);
    post(QHCA_WR_SEND, 5);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    post(QHCA_WR_SEND, 5);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
    peer_expect_none(&qp);

    /* No packet follows that could be sent first. */
    alone("tx once reorder");
    post(QHCA_WR_SEND, 5);
    guest_advance(g, ACK_TIME - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);                    /* the ACK timer sends it again */
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    peer_expect_none(&qp);
}

static void test_reorder_alone(void)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 0;
    start_alone(&o);
    faults_set("tx once reorder");
    post(QHCA_WR_SEND, 5);
    guest_advance(g, VHCA_RULE_SWAP_NS - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    CHECK(!g->e->fault_points);
}

static void test_wrong_psn(void)
{
    alone("tx once wrong-psn=0xfffffe");
    post(QHCA_WR_SEND, 5);
    peer_expect(&qp, RC_SEND_ONLY, PSN - 2);
}

/* As many packets as there is room for are delayed; the others are lost. */
static void test_held_bound(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);
    unsigned n = 0;

    o.sq_log = 8;
    start_alone(&o);
    faults_set("tx delay=1ms");
    for (unsigned i = 0; i < VHCA_RULE_HELD + 9; i++) {
        post(QHCA_WR_SEND, 5);
    }
    peer_expect_none(&qp);
    guest_advance(g, MS);
    for (; n < VHCA_RULE_HELD; n++) {
        peer_expect(&qp, SVC_UC | RC_SEND_ONLY, PSN + n);
    }
    peer_expect_none(&qp);
}

static void test_held_reset(void)
{
    alone("tx delay=1ms");
    post(QHCA_WR_SEND, 5);
    CHECK_EQ(g->e->rules->num_held, 1);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(g->e->rules->num_held, 0);
    guest_advance(g, 2 * MS);
    CHECK_EQ(g->num_sent, 0);
    CHECK(g->e->fault_points);
}

/* ---- what arrives ---- */

static void test_rx_drop(void)
{
    faults_pair("rx opcode=rc.acknowledge once drop");
    faults_send();
    rc_expect(&peer.rcq, 0, 0);
    rc_expect_none(&qp.scq);
    guest_advance(g, ACK_TIME);
    done(0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 1);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
    rc_expect_none(&peer.rcq);

    faults_pair("rx qpn=0x1 drop");            /* no such QP */
    faults_send();
    done(0, 0);
    CHECK_EQ(faults_hits(0), 0);
}

static void test_rx_duplicate(void)
{
    faults_pair("rx opcode=rc.send_only duplicate");
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
    rc_expect_none(&peer.rcq);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 1);
}

static void test_rx_delay(void)
{
    faults_pair("rx opcode=rc.send_only once delay=5ms");
    faults_send();
    guest_advance(g, ACK_TIME - 1);
    rc_expect_none(&peer.rcq);
    guest_advance(g, 1);                /* the packet sent again is in time */
    rc_expect(&peer.rcq, 0, 0);
    done(0, 0);
    guest_advance(g, 10 * MS);          /* the late one is a duplicate */
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 1);
    rc_expect_none(&peer.rcq);
}

/* Packets that were late cost as much as others when they come. */
static void test_rx_late_cost(void)
{
    struct rc_qp nobody;
    struct roce_packet p;
    uint64_t before;

    alone("rx delay=1ms");
    nobody = qp;
    nobody.qpn ^= 1;
    p = peer_request(&nobody, RC_WRITE_ONLY, PSN, 0, 1024);
    for (unsigned i = 0; i < 40; i++) {
        peer_inject(&nobody, &p, guest_ptr(g, node.mr.addr, 1024), 1024);
    }
    CHECK_EQ(g->e->rules->num_held, 40);
    before = counter(g, QHCA_CNT_RX_NO_QP);
    *g->clock += MS;
    qhca_engine_tick(g->e, *g->clock);
    CHECK(g->e->spent / (1024 / VHCA_UNIT_FRAME) >=
          counter(g, QHCA_CNT_RX_NO_QP) - before);
    guest_advance(g, MS);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), before + 40);
}

static void test_rx_reorder(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);

    faults_pair_of(&o, "rx once reorder");
    for (unsigned i = 0; i < 3; i++) {
        struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100 * (i + 1));

        rc_post(&qp, &wr);
    }
    guest_settle(g);
    for (unsigned i = 0; i < 3; i++) {
        static const uint32_t len[] = { 200, 100, 300 };
        struct qhca_cqe c = rc_expect(&peer.rcq, i, 0);

        CHECK_EQ(le32toh(c.byte_len), len[i] + 40);
    }
}

static void test_corrupt(const char *where)
{
    const uint8_t *p;
    char text[60];

    /* The ICRC reveals the damage: the packet is dropped and sent again. */
    snprintf(text, sizeof(text), "%s opcode=rc.send_only once corrupt=icrc",
             where);
    faults_pair(text);
    faults_send();
    CHECK_EQ(counter(g, QHCA_CNT_RX_ICRC), 1);
    rc_expect_none(&peer.rcq);
    faults_sent(0);
    rc_expect(&peer.rcq, 0, 0);

    /* Only the payload reveals the damage. */
    snprintf(text, sizeof(text), "%s once corrupt=payload", where);
    faults_pair(text);
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_ICRC), 0);
    p = guest_ptr(g, node.mr.addr + FAULT_DST, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_EQ(p[i], i == 500 ? 0x11 ^ 0x55 : 0x11);
    }
}

static void test_corrupt_tx(void)
{
    test_corrupt("tx");
}

static void test_corrupt_rx(void)
{
    test_corrupt("rx");
}

/*
 * The packet that one held back waits for has passed tx once it has left,
 * whatever happens to it where it arrives, and whether it is a frame.
 */
static void test_reorder_lost(void)
{
    static const char *const rx[] = { "drop", "corrupt=icrc", "delay=1ms" };
    char text[90];

    for (unsigned i = 0; i < 2 * ARRAY_SIZE(rx); i++) {
        snprintf(text, sizeof(text), "tx opcode=rc.send_only once reorder; "
                 "rx opcode=rc.send_only once %s", rx[i / 2]);
        faults_pair(text);
        g->e->cfg.frames = i & 1;
        faults_send();
        rc_expect_none(&peer.rcq);
        faults_send();
        rc_expect(&peer.rcq, 0, 0);
        CHECK_EQ(faults_hits(1), 1);
    }
}

static void test_psn_gap(void)
{
    faults_pair("rx opcode=rc.send_only once wrong-psn=5");
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_OUT_OF_SEQ), 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NAK_SEQ), 1);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 1);
}

/* Rules ignore frames that are not RoCE's or are broken. */
static void test_foreign(void)
{
    struct roce_packet p;

    alone("rx drop");
    p = peer_packet(&qp, RC_ACKNOWLEDGE, PSN);
    g->e->rules->rule[0].field[VHCA_RULE_QPN].from = 1;
    peer_inject(&qp, &p, NULL, 0);
    CHECK_EQ(faults_hits(0), 1);
    guest_rx(g, (const uint8_t[60]) { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 60);
    CHECK_EQ(faults_hits(0), 1);
}

/* Sends a thousand messages over a bad network; returns how long it took. */
static uint64_t bad_network(const char *text)
{
    faults_pair(text);
    for (unsigned i = 0; i < 250; i++) {
        for (unsigned j = 0; j < 4; j++) {
            faults_send();
        }
        guest_advance(g, 200 * ACK_TIME);
        for (unsigned j = 0; j < 4; j++) {
            done(4 * i + j, 0);
            rc_expect(&peer.rcq, i ? 9 : j, 0);
            rc_recv(&peer, 9, FAULT_DST, 4096);
        }
    }
    CHECK(faults_hits(0) && faults_hits(1) && faults_hits(2) && faults_hits(3));
    return counter(g, QHCA_CNT_TX_PKTS) << 32 |
           counter(g, QHCA_CNT_RETRANSMIT) << 16 | faults_hits(0);
}

static void test_bad_network(void)
{
    static const char text[] = "seed=3; tx prob=5% drop; rx prob=5% duplicate;"
                               "rx prob=5% reorder; tx prob=5% delay=2ms";
    uint64_t first = bad_network(text);

    CHECK_EQ(bad_network(text), first);
}

/* If the FIFO is full when a delayed packet is due, it counts as not sent. */
static void test_held_no_room(void)
{
    static const uint8_t other[60];

    alone("tx once delay=100us");
    post(QHCA_WR_SEND, 5);
    g->net_blocked = true;
    post(QHCA_WR_SEND, 5);
    while (vhca_fifo_used(&g->e->port->tx) < VHCA_FIFO_FRAMES) {
        CHECK(vhca_tx(g->e, other, sizeof(other), 0));
    }
    CHECK_EQ(counter(g, QHCA_CNT_TX_DROPPED), 0);
    guest_advance(g, 100000);
    CHECK_EQ(counter(g, QHCA_CNT_TX_DROPPED), 1);
}

static const struct test tests[] = {
    { "tx: a packet is lost", test_drop },
    { "tx: a packet is sent twice", test_duplicate },
    { "tx: a packet is delayed", test_delay },
    { "tx: a packet is sent after the next", test_reorder },
    { "tx: reorder without a next packet", test_reorder_alone },
    { "tx: a packet has a wrong PSN", test_wrong_psn },
    { "the number of delayed packets is limited", test_held_bound },
    { "a reset drops delayed packets", test_held_reset },
    { "the FIFO is full when a delayed packet is due", test_held_no_room },
    { "rx: a packet is lost", test_rx_drop },
    { "rx: a packet arrives twice", test_rx_duplicate },
    { "rx: a packet is delayed", test_rx_delay },
    { "rx: what delayed packets cost", test_rx_late_cost },
    { "rx: a packet arrives after the next", test_rx_reorder },
    { "tx: a packet is damaged", test_corrupt_tx },
    { "rx: a packet is damaged", test_corrupt_rx },
    { "tx: a packet is sent after one that is lost", test_reorder_lost },
    { "tx: a gap in the PSNs", test_psn_gap },
    { "rules ignore other frames", test_foreign },
    { "a bad network is repeatable", test_bad_network },
};

TEST_MAIN(tests)
