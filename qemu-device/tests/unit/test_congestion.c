/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: congestion marks and notifications. */
#include "harness/fixture.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */

/* Valid and invalid congestion notifications (E-041). */
static const struct {
    uint16_t pkey;
    uint8_t host;               /* 2 is the peer */
    size_t len;
    enum qhca_counter counts;
} notifications[] = {
    { PKEY_DEFAULT, 2, CNP_LEN, QHCA_CNT_RP_CNP_IGNORED },
    { 0x7fff, 2, CNP_LEN, QHCA_CNT_RP_CNP_IGNORED },
    { PKEY_DEFAULT, 2, 0, QHCA_CNT_RX_MALFORMED },
    { PKEY_DEFAULT, 2, CNP_LEN - 1, QHCA_CNT_RX_MALFORMED },
    { PKEY_DEFAULT, 2, CNP_LEN + 4, QHCA_CNT_RX_MALFORMED },
    { 0x1234, 2, CNP_LEN, QHCA_CNT_RX_BAD_PKEY },
    { PKEY_DEFAULT, 3, CNP_LEN, QHCA_CNT_RX_BAD_ADDR },
};

static void notify(struct rc_qp *q, size_t i)
{
    struct roce_packet p = peer_packet(q, ROCE_CNP, 0);
    uint8_t payload[2 * CNP_LEN] = { 0 };

    p.pkey = notifications[i].pkey;
    p.ackreq = false;
    p.sgid[15] = (uint8_t)(p.sgid[15] - 2 + notifications[i].host);
    peer_inject(q, &p, payload, notifications[i].len);
}

static void test_cnp(void)
{
    struct qhca_qpc before, after;

    start_type(QHCA_QPT_RC);
    rc_recv(&qp, 1, 0, 64);
    before = rc_query(&qp);
    for (size_t i = 0; i < ARRAY_SIZE(notifications); i++) {
        uint64_t count = counter(g, notifications[i].counts);
        uint64_t cnps = counter(g, QHCA_CNT_RP_CNP_IGNORED);
        bool good = notifications[i].counts == QHCA_CNT_RP_CNP_IGNORED;

        notify(&qp, i);
        CHECK_EQ(counter(g, notifications[i].counts), count + 1);
        CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), cnps + good);
    }
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 2);
    after = rc_query(&qp);
    CHECK(!memcmp(&before, &after, sizeof(before)));
    rc_expect_none(&qp.rcq);
    peer_expect_none(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), 0);
    notify(&qp, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_STATE), 1);
}

/* A UD QP has no peer, and a notification has no Q_Key. */
static void test_cnp_ud(void)
{
    start_type(QHCA_QPT_UD);
    rc_recv(&qp, 1, 0, 64);
    for (size_t i = 0; i < ARRAY_SIZE(notifications); i++) {
        notify(&qp, i);
    }
    CHECK_EQ(counter(g, QHCA_CNT_RP_CNP_IGNORED), 3);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_QKEY), 0);
    rc_expect_none(&qp.rcq);
}

/* Marked packets arrive, and are counted if they are accepted. */
static void test_ce_counted(void)
{
    static const uint8_t tclass[] = { 0, 1, 2, 3, 0xbb, 0xb8 };

    start_type(QHCA_QPT_RC);
    for (unsigned i = 0; i < ARRAY_SIZE(tclass); i++) {
        uint64_t marked = counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS);
        struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, PSN + i);

        p.tclass = tclass[i];
        rc_recv(&qp, i, 0, 64);
        peer_inject(&qp, &p, NULL, 0);
        rc_expect(&qp.rcq, i, QHCA_WC_SUCCESS);
        CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS),
                 marked + ((tclass[i] & 3) == 3));
        p.dest_qp ^= 1;
        peer_inject(&qp, &p, NULL, 0);
    }
    CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS), 2);
}

/* Marks count inside the port: each packet of a message, and the ACK. */
static void test_ce_inside(void)
{
    for (unsigned i = 0; i < 4; i++) {
        start_pair(&RC_OPTS);
        g->e->cfg.frames = i & 1;
        vhca_qp_get(g->e, qp.qpn)->attr.av.tclass = i & 2 ? 3 : 0;
        vhca_qp_get(g->e, peer.qpn)->attr.av.tclass = i & 2 ? 0 : 3;
        post_writes(&qp, 1, 5 * 1024);
        rc_ring(&qp);
        guest_settle(g);
        done(0, QHCA_WC_SUCCESS);
        CHECK_EQ(counter(g, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS),
                 i & 2 ? 5 : 1);
    }
}

/* A QP that has failed owes no notification, and has nothing to do. */
static void test_failed(void)
{
    struct roce_packet p;
    struct vhca_qp *q;
    uint64_t sent;

    start_type(QHCA_QPT_RC);
    congestion_on(g);
    q = vhca_qp_get(g->e, qp.qpn);
    g->net_blocked = true;
    for (unsigned i = 0; !q->gate.cnp_owed; i++) {
        REQUIRE(i < 1000);
        p = peer_packet(&qp, RC_WRITE_ONLY, PSN + i);
        p.tclass = IP_ECN_CE;
        *g->clock += 1000000;
        peer_inject(&qp, &p, NULL, 0);
    }
    sent = counter(g, QHCA_CNT_NP_CNP_SENT);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    guest_settle(g);
    CHECK(!g->host.todo);
    guest_unblock(g);
    rc_recv(&qp, 1, 0, 100);
    rc_expect(&qp.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
    CHECK(!g->host.todo);
    CHECK_EQ(counter(g, QHCA_CNT_NP_CNP_SENT), sent);
}

static const struct test tests[] = {
    { "E-027 E-041 congestion notifications", test_cnp },
    { "E-041 congestion notifications to a UD QP", test_cnp_ud },
    { "E-040 the network's mark is counted", test_ce_counted },
    { "E-040 a notification that is owed by a QP in ERR", test_failed },
    { "E-040 the mark of packets inside the port", test_ce_inside },
};

TEST_MAIN(tests)
