/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DCQCN: notifications, and what follows from them, packet by packet.
 */
#include "harness/scripted.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define CE      3
#define US      1000ull

/* ---- parameters ---- */

#define QHCA_CC(id, name, min, max, value)  { min, max, value },
static const struct {
    uint32_t min, max, value;
} params[] = {
#include "qhca/congestion.def"
};

static struct qhca_congestion defaults(void)
{
    struct qhca_congestion c;

    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        c.value[i] = htole32(params[i].value);
    }
    return c;
}

static void set_one(enum qhca_cc which, uint32_t value)
{
    struct qhca_congestion c = congestion_get(g);

    c.value[which] = htole32(value);
    CHECK_EQ(congestion_set(g, &c), QHCA_OK);
}

/* Each has its limits; a command with a wrong one changes nothing. */
static void test_params(void)
{
    struct qhca_congestion c;

    start_node();
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        CHECK_EQ(g->e->congestion->value[i], params[i].value);
        CHECK(params[i].value >= params[i].min &&
              params[i].value <= params[i].max);
    }
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        c = defaults();
        c.value[i] = htole32(params[i].max);
        CHECK_EQ(congestion_set(g, &c), QHCA_OK);
        CHECK_EQ(g->e->congestion->value[i], params[i].max);
        c.value[i ? 0 : 1] = htole32(params[i ? 0 : 1].min);
        c.value[i] = htole32(params[i].max + 1);
        CHECK_EQ(congestion_set(g, &c), QHCA_ERR_PARAM);
        CHECK_EQ(g->e->congestion->value[i], params[i].max);
        c.value[i] = htole32(params[i].min);
        CHECK_EQ(congestion_set(g, &c), QHCA_OK);
        c.value[i] = htole32(params[i].min - 1);
        CHECK_EQ(congestion_set(g, &c), QHCA_ERR_PARAM);
        CHECK_EQ(g->e->congestion->value[i], params[i].min);
    }
    qhca_engine_reset(g->e, *g->clock);
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        CHECK_EQ(g->e->congestion->value[i], params[i].value);
    }
}

/* ---- the notification point ---- */

static void arrive(uint32_t psn, uint8_t tclass)
{
    uint8_t service = qp.o.type == QHCA_QPT_UC ? SVC_UC : SVC_RC;
    struct roce_packet p = peer_packet(&qp, service | RC_WRITE_ONLY, psn);

    p.tclass = tclass;
    p.ackreq = false;
    peer_inject(&qp, &p, NULL, 0);
}

/* One CNP, in every field as the annex has it. */
static void expect_cnp(uint8_t dscp)
{
    static const uint8_t zero[CNP_LEN];
    const uint8_t *frame;
    struct roce_packet p;
    size_t bth;

    REQUIRE(g->num_sent);
    frame = g->sent[0].data;
    bth = ETH_LEN + IPV4_LEN + UDP_LEN;
    CHECK_EQ(frame[bth + 4], 0x40);     /* BECN, not FECN */
    CHECK_EQ(g->sent[0].len, bth + BTH_LEN + CNP_LEN + ICRC_LEN);
    CHECK(!memcmp(frame + bth + BTH_LEN, zero, CNP_LEN));
    p = peer_expect(&qp, ROCE_CNP, 0);
    CHECK_EQ(p.dest_qp, qp.peer_qpn);
    CHECK_EQ(p.tclass, dscp << 2 | 2);
    CHECK(!p.ackreq && !p.solicited);
    CHECK_EQ(p.pkey, PKEY_DEFAULT);
}

/* At most one per interval, and none without a mark or if they are off. */
static void test_notify(void)
{
    static const uint8_t types[] = { QHCA_QPT_RC, QHCA_QPT_UC };
    uint32_t psn;

    for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
        start_type(types[t]);
        psn = PSN;
        arrive(psn++, CE);
        peer_expect_none(&qp);
        set_one(QHCA_CC_NP_ENABLE, 1);
        arrive(psn++, 2);
        peer_expect_none(&qp);
        arrive(psn++, CE);
        expect_cnp(48);
        for (unsigned i = 0; i < 3; i++) {
            arrive(psn++, CE);
            guest_advance(g, 16 * US);
        }
        guest_advance(g, 2 * US - 1);
        arrive(psn++, CE);
        peer_expect_none(&qp);
        guest_advance(g, 1);
        peer_expect_none(&qp);          /* a mark asks for it, not the time */
        arrive(psn++, 0xb8 | CE);
        set_one(QHCA_CC_NP_DSCP, 5);
        expect_cnp(48);
        guest_advance(g, 50 * US);
        arrive(psn++, CE);
        expect_cnp(5);
        peer_expect_none(&qp);
        CHECK_EQ(counter(g, QHCA_CNT_NP_CNP_SENT), 3);
        CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS), 8);
    }
}

/* Each mark, without an interval; also on a response. */
static void test_notify_all(void)
{
    struct roce_packet p;

    start_type(QHCA_QPT_RC);
    set_one(QHCA_CC_NP_ENABLE, 1);
    set_one(QHCA_CC_NP_MIN_TIME, 0);
    for (unsigned i = 0; i < 3; i++) {
        arrive(PSN + i, CE);
        expect_cnp(48);
    }
    post(QHCA_WR_RDMA_READ, 8);
    CHECK_EQ(peer_drain(&qp), 1);
    p = peer_packet(&qp, RC_READ_RESP_ONLY, 0x111111);
    p.tclass = CE;
    peer_inject(&qp, &p, data, 8);
    done(0, QHCA_WC_SUCCESS);
    expect_cnp(48);
    peer_expect_none(&qp);
}

/* Neither a notification, nor a datagram, nor a QP in ERR. */
static void test_no_notify(void)
{
    struct roce_packet p;
    uint8_t payload[CNP_LEN] = { 0 };

    start_type(QHCA_QPT_RC);
    set_one(QHCA_CC_NP_ENABLE, 1);
    p = peer_packet(&qp, ROCE_CNP, 0);
    p.tclass = CE;
    p.ackreq = false;
    peer_inject(&qp, &p, payload, sizeof(payload));
    peer_expect_none(&qp);
    CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS), 1);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), 0);
    arrive(PSN, CE);
    peer_expect_none(&qp);

    start_type(QHCA_QPT_UD);
    set_one(QHCA_CC_NP_ENABLE, 1);
    rc_recv(&qp, 1, 0, 64);
    p = peer_packet(&qp, SVC_UD | RC_SEND_ONLY, 0);
    p.tclass = CE;
    peer_inject(&qp, &p, NULL, 0);
    rc_expect(&qp.rcq, 1, QHCA_WC_SUCCESS);
    peer_expect_none(&qp);
    CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS), 1);
}

/* A notification waits for room, as one. */
static void test_notify_later(void)
{
    start_type(QHCA_QPT_RC);
    set_one(QHCA_CC_NP_ENABLE, 1);
    set_one(QHCA_CC_NP_MIN_TIME, 0);
    g->net_blocked = true;
    for (unsigned i = 0; i < 500; i++) {
        arrive(PSN + i, CE);
    }
    peer_expect_none(&qp);
    guest_unblock(g);
    guest_settle(g);
    CHECK(g->num_sent > 1 && g->num_sent < 500);
    CHECK_EQ(counter(g, QHCA_CNT_NP_CNP_SENT), g->num_sent);
}

/* ---- the reaction point ---- */

static void cnp(void)
{
    static const uint8_t payload[CNP_LEN];
    struct roce_packet p = peer_packet(&qp, ROCE_CNP, 0);

    p.ackreq = false;
    peer_inject(&qp, &p, payload, sizeof(payload));
}

/* With the reaction point on, the network may mark packets. */
static void test_ect(void)
{
    static const uint8_t tclass[][2] = {
        { 0, 2 }, { 0xb8, 0xba }, { 1, 1 }, { 2, 2 }, { 3, 3 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(tclass); i++) {
        start_type(QHCA_QPT_RC);
        vhca_qp_get(g->e, qp.qpn)->attr.av.tclass = tclass[i][0];
        post(QHCA_WR_SEND, 5);
        CHECK_EQ(peer_expect(&qp, RC_SEND_ONLY, 0x111111).tclass,
                 tclass[i][0]);
        set_one(QHCA_CC_RP_ENABLE, 1);
        post(QHCA_WR_SEND, 5);
        CHECK_EQ(peer_expect(&qp, RC_SEND_ONLY, 0x111112).tclass,
                 tclass[i][1]);
    }
}

/* A notification slows the packets that follow, to the nanosecond. */
static void test_slow_down(void)
{
    uint64_t ns;

    start_type(QHCA_QPT_RC);
    cnp();
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 1);
    set_one(QHCA_CC_RP_ENABLE, 1);
    cnp();
    cnp();                      /* too soon */
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_HANDLED), 1);
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 2);
    put(QHCA_WR_RDMA_WRITE, 3 * 1024);
    go();
    ns = 8 * g->sent[0].len / 50;       /* half of 100 Gbit/s */
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, ns - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    CHECK_EQ(peer_drain(&qp), 1);
    set_one(QHCA_CC_RP_MIN_RATE, 1000);
    for (unsigned i = 0; i < 20; i++) {
        guest_advance(g, 4 * US);
        cnp();
    }
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->gate.rp.rate, 1000000);
}

/* A datagram QP takes no notice: anybody could send it a notification. */
static void test_datagrams(void)
{
    start_type(QHCA_QPT_UD);
    set_one(QHCA_CC_RP_ENABLE, 1);
    cnp();
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 1);
    CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->gate.rp.rate, 0);
}

/* ---- from end to end ---- */

/* A mark on the way becomes a notification, and a lower rate. */
static void test_loop(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct qhca_fault_error err;
        struct rc_wr wr;

        start_net(&RC_OPTS, i & 1);
        for (unsigned j = 0; j < 2; j++) {
            g = j ? there.g : node.g;
            set_one(QHCA_CC_NP_ENABLE, 1);
            set_one(QHCA_CC_RP_ENABLE, 1);
        }
        g = node.g;
        CHECK(qhca_engine_set_faults((i & 2 ? there : node).g->e, *g->clock,
                                     i & 2 ? "rx opcode=rc.write_* mark=ce" :
                                             "tx opcode=rc.write_* mark=ce",
                                     &err));
        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 30 * 1024);
        rc_aim(&wr, &there, 0);
        rc_post(&qp, &wr);
        net_run(net, 100000000);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
        CHECK_EQ(counter(there.g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS), 30);
        CHECK_EQ(counter(there.g, QHCA_CNT_NP_CNP_SENT), 1);
        CHECK_EQ(counter(node.g, QHCA_CNT_RP_CNP_HANDLED), 1);
        CHECK_EQ(counter(node.g, QHCA_CNT_RETRANSMIT), 0);
        CHECK_EQ(vhca_qp_get(node.g->e, qp.qpn)->gate.rp.target, 100000000);
    }
}

static const struct test tests[] = {
    { "parameters", test_params },
    { "E-040 notifications", test_notify },
    { "E-040 a notification for each mark", test_notify_all },
    { "E-040 what is not notified", test_no_notify },
    { "notifications without room", test_notify_later },
    { "packets may be marked", test_ect },
    { "E-041 a notification slows down", test_slow_down },
    { "E-041 datagrams", test_datagrams },
    { "from the mark to the rate", test_loop },
};

TEST_MAIN(tests)
