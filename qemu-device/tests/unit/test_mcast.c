/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: multicast groups of UD QPs.
 */
#include "harness/fixture.h"

#define UD(op)  (SVC_UD | RC_##op)
#define GRH     40
#define NUM_QPS 3

static const uint8_t group4[16] = {
    [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 0x81, [14] = 2, [15] = 3,
};
static const uint8_t group6[16] = { 0xff, 0x0e, [12] = 1, [15] = 0x77 };

static struct rc_qp qps[NUM_QPS];

static void start_with(bool ipv6, unsigned flags)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);

    start_gid(ipv6, QHCA_NO_VLAN);
    o.qp_flags |= flags;
    for (unsigned i = 0; i < NUM_QPS; i++) {
        qps[i] = rc_scripted(&node, &o, &far);
    }
}

static void start(bool ipv6)
{
    start_with(ipv6, 0);
}

static int attach(const uint8_t *gid, unsigned i)
{
    return rc_mcast(&qps[i], QHCA_CMD_ATTACH_MCAST, gid);
}

static int detach(const uint8_t *gid, unsigned i)
{
    return rc_mcast(&qps[i], QHCA_CMD_DETACH_MCAST, gid);
}

static struct roce_packet packet(const uint8_t *gid)
{
    return peer_to_group(&qps[0], 1, gid);
}

static void inject(const struct roce_packet *p)
{
    peer_inject(&qps[0], p, "to all", 6);
}

static void room(unsigned i)
{
    rc_recv(&qps[i], i, 1000 * i, GRH + 6);
}

static void expect(unsigned i)
{
    struct qhca_cqe c = rc_expect(&qps[i].rcq, i, 0);

    CHECK_EQ(le32toh(c.byte_len), GRH + 6);
    CHECK(!memcmp(guest_ptr(g, node.mr.addr + 1000 * i + GRH, 6), "to all", 6));
    rc_expect_none(&qps[i].rcq);
}

static void test_commands(void)
{
    static const uint8_t unicast[16] = { [10] = 0xff, [11] = 0xff, [12] = 10 };
    static const uint8_t class_e[16] = { [10] = 0xff, [11] = 0xff, [12] = 240 };
    static const uint8_t zero[16];
    struct rc_qp rc, none;

    start(false);
    rc = rc_create(&node, &RC_OPTS);
    none = rc;
    none.qpn = 5;
    CHECK_EQ(attach(unicast, 0), QHCA_ERR_PARAM);
    CHECK_EQ(attach(class_e, 0), QHCA_ERR_PARAM);
    CHECK_EQ(attach(zero, 0), QHCA_ERR_PARAM);
    CHECK_EQ(rc_mcast(&none, QHCA_CMD_ATTACH_MCAST, group4), QHCA_ERR_OBJ);
    CHECK_EQ(rc_mcast(&rc, QHCA_CMD_ATTACH_MCAST, group4), QHCA_ERR_PARAM);
    CHECK_EQ(detach(group4, 0), QHCA_ERR_STATE);
    CHECK_EQ(attach(group4, 0), QHCA_OK);
    CHECK_EQ(attach(group4, 0), QHCA_OK);
    CHECK_EQ(attach(group6, 0), QHCA_OK);
    CHECK_EQ(detach(group4, 1), QHCA_ERR_STATE);
    CHECK_EQ(rc_destroy(&qps[0]), QHCA_ERR_BUSY);
    CHECK_EQ(detach(group6, 0), QHCA_OK);
    CHECK_EQ(detach(group4, 0), QHCA_OK);
    CHECK_EQ(rc_destroy(&qps[0]), QHCA_ERR_BUSY);   /* it was attached twice */
    CHECK_EQ(detach(group4, 0), QHCA_OK);
    CHECK_EQ(detach(group4, 0), QHCA_ERR_STATE);
    CHECK_EQ(rc_destroy(&qps[0]), QHCA_OK);
    CHECK_EQ(attach(group4, 1), QHCA_OK);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
}

/* J-001: as many groups, and QPs in a group, as QUERY_DEVICE promises. */
static void test_limits(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct qhca_device_attr a;
    uint8_t gid[16] = { 0xff };
    uint32_t max_grp, max_qp;

    start(false);
    a = device_attr(g);
    max_grp = le32toh(a.max_mcast_grp);
    max_qp = le32toh(a.max_mcast_qp);
    for (uint32_t i = 0; i <= max_grp; i++) {
        gid[14] = (uint8_t)(i >> 8);
        gid[15] = (uint8_t)i;
        CHECK_EQ(attach(gid, 0), i < max_grp ? QHCA_OK :
                                               QHCA_ERR_NO_RESOURCE);
    }
    gid[14] = gid[15] = 0;
    o.sq_log = o.rq_log = 1;
    for (uint32_t i = 1; i <= max_qp; i++) {
        struct rc_qp q = rc_create_shared(&qps[0], &o);

        CHECK_EQ(rc_mcast(&q, QHCA_CMD_ATTACH_MCAST, gid),
                 i < max_qp ? QHCA_OK : QHCA_ERR_NO_RESOURCE);
    }
    CHECK_EQ(attach(gid, 0), QHCA_OK);
}

/* D-084: each member gets a copy; a member without room affects no other. */
static void test_receive(bool ipv6)
{
    const uint8_t *gid = ipv6 ? group6 : group4;
    struct qhca_qp_attr a = { .qkey = htole32(1) };
    struct roce_packet p;
    uint64_t before;

    start(ipv6);
    p = packet(gid);
    room(0);
    inject(&p);                         /* while the group is empty */
    rc_expect_none(&qps[0].rcq);
    for (unsigned i = 0; i < NUM_QPS; i++) {
        CHECK_EQ(attach(gid, i), QHCA_OK);
        CHECK_EQ(attach(gid, i), QHCA_OK);
    }
    room(2);
    inject(&p);
    expect(0);
    rc_expect_none(&qps[1].rcq);         /* no receive WR */
    expect(2);
    for (unsigned i = 0; i < NUM_QPS; i++) {
        room(i);
    }
    CHECK_EQ(rc_modify(&qps[0], &a, QHCA_QP_QKEY), QHCA_OK);
    CHECK_EQ(rc_set_state(&qps[2], QHCA_QPS_ERR), QHCA_OK);
    rc_expect(&qps[2].rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    before = counter(g, QHCA_CNT_RX_BAD_QKEY);
    inject(&p);
    rc_expect_none(&qps[0].rcq);
    expect(1);
    rc_expect_none(&qps[2].rcq);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_QKEY), before + 1);
    CHECK_EQ(detach(gid, 1), QHCA_OK);
    room(1);
    inject(&p);
    expect(1);                           /* attached twice, detached once */
    for (unsigned i = 0; i < NUM_QPS; i++) {
        CHECK_EQ(detach(gid, i), QHCA_OK);
    }
    room(1);
    inject(&p);
    rc_expect_none(&qps[1].rcq);         /* G-019 */
}

static void test_receive_ipv4(void)
{
    test_receive(false);
}

static void test_receive_ipv6(void)
{
    test_receive(true);
}

/* E-039, E-045: another address, VLAN, QPN or service. */
static void test_filter(void)
{
    struct roce_packet good, p;

    start(false);
    CHECK_EQ(attach(group4, 0), QHCA_OK);
    room(0);
    good = p = packet(group4);
    p.dmac[3] |= 0x80;
    inject(&p);
    p = good;
    memcpy(p.dmac, (const uint8_t[]) { 255, 255, 255, 255, 255, 255 }, 6);
    inject(&p);
    p = good;
    p.vlan = 7;
    inject(&p);
    p = good;
    p.dest_qp = qps[0].qpn;
    inject(&p);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 1);
    p = good;
    p.opcode = SVC_UC | RC_SEND_ONLY;
    inject(&p);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 1);
    p = peer_packet(&qps[0], UD(SEND_ONLY), 1);
    p.dest_qp = QHCA_QPN_MCAST;
    inject(&p);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 2);
    rc_expect_none(&qps[0].rcq);
    inject(&good);
    expect(0);
}

static void send_to_group(unsigned i)
{
    struct rc_wr wr = rc_wr(&qps[i], QHCA_WR_SEND, 9000, 6);
    struct roce_packet p = packet(group4);

    memcpy(guest_ptr(g, node.mr.addr + 9000, 6), "to all", 6);
    memcpy(wr.av.dgid, group4, 16);
    memcpy(wr.av.dmac, p.dmac, 6);
    wr.qpn = QHCA_QPN_MCAST;
    rc_do(&qps[i], &wr);
}

static unsigned leave(void)
{
    unsigned n = g->num_sent;

    if (n) {
        CHECK_EQ(g->sent[0].data[0], 0x01);
    }
    g->num_sent = 0;
    return n;
}

/* Sent to the network and to this port's members, including the sender. */
static void test_send(void)
{
    start(false);
    send_to_group(0);
    rc_expect(&qps[0].scq, 0x1000, 0);
    CHECK_EQ(leave(), 1);
    CHECK_EQ(attach(group4, 0), QHCA_OK);
    CHECK_EQ(attach(group4, 1), QHCA_OK);
    room(0);
    room(1);
    send_to_group(0);
    CHECK_EQ(leave(), 1);
    expect(0);
    expect(1);
    g->net_blocked = true;
    room(1);
    send_to_group(2);
    expect(1);
    CHECK_EQ(leave(), 0);
    guest_unblock(g);
    CHECK_EQ(leave(), 1);
    CHECK_EQ(rc_expect(&qps[2].scq, 0x1000, 0).status, 0);
}

/*
 * Such a QP gets no copy of its own messages; others get one. It gets messages
 * of others, even of a QP with the same number at another port.
 */
static void test_no_own(void)
{
    struct roce_packet p;
    uint64_t before;

    start_with(false, QHCA_QP_FLAG_NO_OWN_MCAST);
    p = packet(group4);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(attach(group4, i), QHCA_OK);
        room(i);
    }
    before = counter(g, QHCA_CNT_RX_PKTS);
    send_to_group(0);
    CHECK_EQ(leave(), 1);
    CHECK_EQ(rc_expect(&qps[0].scq, 0x1000, 0).status, 0);
    rc_expect_none(&qps[0].rcq);
    expect(1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), before + 1);
    send_to_group(1);
    expect(0);
    rc_expect_none(&qps[1].rcq);
    room(0);
    p.src_qp = qps[0].qpn;
    inject(&p);
    expect(0);
}

/*
 * A message costs one unit per member, so one doorbell does not deliver a full
 * queue of messages to a full group. The rest follows later; none is lost.
 */
static void test_fan_out(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct roce_packet p;
    struct rc_wr wr;
    unsigned num = 32;

    start(false);
    p = packet(group4);
    o.sq_log = o.rq_log = 1;
    for (uint32_t i = 0; i < 128; i++) {
        struct rc_qp q = rc_create_shared(&qps[0], &o);

        rc_bring_up(&q, QHCA_QPS_RTS);
        CHECK_EQ(rc_mcast(&q, QHCA_CMD_ATTACH_MCAST, group4), QHCA_OK);
    }
    wr = rc_wr(&qps[0], QHCA_WR_SEND, 9000, 6);
    memcpy(wr.av.dgid, group4, 16);
    memcpy(wr.av.dmac, p.dmac, 6);
    wr.qpn = QHCA_QPN_MCAST;
    for (unsigned i = 0; i < num; i++) {
        rc_put(&qps[0], &wr);
    }
    rc_ring(&qps[0]);
    CHECK(counter(g, QHCA_CNT_RX_PKTS) <= 2048 + 128);
    CHECK(g->host.todo);
    guest_settle(g);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), num * 128);
}

static const struct test tests[] = {
    { "G-018 G-019 A-021 attach and detach", test_commands },
    { "J-001 as many groups and QPs as allowed", test_limits },
    { "D-084 E-039 G-018 G-019 IPv4 groups", test_receive_ipv4 },
    { "D-084 E-039 IPv6 groups", test_receive_ipv6 },
    { "E-039 E-045 packets that are not for the group", test_filter },
    { "D-084 D-085 sending", test_send },
    { "D-089 no copy to a sender that wants none", test_no_own },
    { "the work of one doorbell for a full group", test_fan_out },
};

TEST_MAIN(tests)
