/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: attributes changed in SQD, in the frames that follow.
 */
#include "harness/fixture.h"

#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define RQ_PSN  0x222222u       /* rq_psn of RC_OPTS */

/* Changes @qp in SQD, when everything begun is complete, and goes to RTS. */
static void change(const struct qhca_qp_attr *a, uint32_t mask)
{
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK_EQ(rc_modify(&qp, a, mask), QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    guest_settle(g);
}

static void post(uint8_t opcode)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);

    rc_do(&qp, &wr);
}

static void answer_read(uint8_t service, uint32_t psn)
{
    peer_send(&qp, service | RC_READ_RESP_ONLY, psn, "12345678", 8);
}

/* The next frame must have the peer's current address and this AV. */
static void expect_av(uint32_t psn, const struct qhca_av *av)
{
    struct roce_packet p = { 0 };

    CHECK(peer_next(&qp, &p));          /* checks MAC and GID as well */
    CHECK_EQ(p.psn, psn);
    CHECK_EQ(p.tclass, av->tclass);
    CHECK_EQ(p.hop_limit, av->hop_limit);
    CHECK(p.ipv4 || p.flow_label == le32toh(av->flow_label));
    peer_expect_none(&qp);
}

static struct qhca_av move_to(unsigned host, bool ipv6, uint8_t tclass)
{
    struct qhca_qp_attr a;

    far.host = host;
    far.ipv6 = ipv6;
    node_set_gid(&node, ipv6, QHCA_NO_VLAN);
    rc_set_peer(&qp, &far, 0x77);
    a = rc_attr(&qp);
    a.av.tclass = tclass;
    a.av.hop_limit = (uint8_t)(10 + host);
    a.av.flow_label = htole32(0x12300 + host);
    change(&a, QHCA_QP_AV);
    return a.av;
}

/* All types of QP with an AV can change it in SQD. */
static void test_av(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_XRC_INI,
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct qhca_av av = { .hop_limit = 64 };
        uint32_t psn = PSN;

        start_type(types[i]);
        for (unsigned n = 0; n < 4; n++, psn++) {
            post(QHCA_WR_RDMA_WRITE);
            expect_av(psn, &av);
            if (types[i] != QHCA_QPT_UC) {
                peer_send(&qp, RC_ACKNOWLEDGE |
                               (types[i] == QHCA_QPT_RC ? 0 : SVC_XRC),
                          psn, NULL, 0);
            }
            rc_expect(&qp.scq, 0x1000 + n, QHCA_WC_SUCCESS);
            av = move_to(3 + n, n & 1, (uint8_t)(0x20 + 4 * n));
            CHECK_EQ(le32toh(rc_query(&qp).next_psn), psn + 1);
        }
    }
}

/* D-083: the responder uses the new address as well. */
static void test_av_answers(void)
{
    struct roce_packet old, p;
    struct qhca_av av;

    start_type(QHCA_QPT_RC);
    old = peer_packet(&qp, RC_WRITE_ONLY, RQ_PSN);
    old.ackreq = true;
    av = move_to(9, false, 0x48);
    peer_inject(&qp, &old, NULL, 0);            /* unknown address */
    peer_expect_none(&qp);
    p = peer_packet(&qp, RC_WRITE_ONLY, RQ_PSN);
    p.ackreq = true;
    peer_inject(&qp, &p, NULL, 0);
    expect_av(RQ_PSN, &av);
}

/* Checks how many READs are outstanding together. */
static void check_rd_atomic(uint8_t type, uint8_t service)
{
    static const uint8_t most[] = { 1, 3, 2, 4 };
    uint32_t psn = PSN;

    start_type(type);
    for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
        struct qhca_qp_attr a = { .max_rd_atomic = most[i] };

        change(&a, QHCA_QP_MAX_QP_RD_ATOMIC);
        CHECK_EQ(rc_query(&qp).attr.max_rd_atomic, most[i]);
        for (unsigned n = 0; n < 6; n++) {
            post(QHCA_WR_RDMA_READ);
        }
        for (unsigned n = 0; n < most[i]; n++) {
            peer_expect(&qp, service | RC_READ_REQUEST, psn + n);
        }
        peer_expect_none(&qp);
        for (unsigned n = 0; n < 6; n++, psn++) {
            answer_read(service, psn);
            rc_expect(&qp.scq, 0x1000 + 6 * i + n, QHCA_WC_SUCCESS);
            if (n + most[i] < 6) {
                peer_expect(&qp, service | RC_READ_REQUEST, psn + most[i]);
            }
            peer_expect_none(&qp);
        }
    }
}

static void test_rd_atomic(void)
{
    check_rd_atomic(QHCA_QPT_RC, 0);
    check_rd_atomic(QHCA_QPT_XRC_INI, SVC_XRC);
}

/* D-055: as many READs as this can be repeated by the peer. */
static void test_dest_rd_atomic(void)
{
    static const uint8_t most[] = { 1, 3, 2 };
    uint32_t psn = RQ_PSN;

    start_type(QHCA_QPT_RC);
    for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
        struct qhca_qp_attr a = { .max_dest_rd_atomic = most[i] };
        struct roce_packet p[4];

        change(&a, QHCA_QP_MAX_DEST_RD_ATOMIC);
        CHECK_EQ(rc_query(&qp).attr.max_dest_rd_atomic, most[i]);
        for (unsigned n = 0; n < ARRAY_SIZE(p); n++, psn++) {
            p[n] = peer_request(&qp, RC_READ_REQUEST, psn, 0, 8);
            peer_inject(&qp, &p[n], NULL, 0);
            peer_expect(&qp, RC_READ_RESP_ONLY, psn);
        }
        for (unsigned n = 0; n < ARRAY_SIZE(p); n++) {
            peer_inject(&qp, &p[n], NULL, 0);
            CHECK_EQ(peer_drain(&qp), n + most[i] >= ARRAY_SIZE(p));
        }
    }
}

static void test_min_rnr_timer(void)
{
    static const uint8_t code[] = { 0, 31, 7 };

    start_type(QHCA_QPT_RC);
    for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
        struct qhca_qp_attr a = { .min_rnr_timer = code[i] };
        struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, RQ_PSN);

        change(&a, QHCA_QP_MIN_RNR_TIMER);
        CHECK_EQ(rc_query(&qp).attr.min_rnr_timer, code[i]);
        peer_inject(&qp, &p, NULL, 0);
        CHECK(peer_next(&qp, &p));
        CHECK_EQ(p.syndrome, AETH_RNR_NAK | code[i]);
        peer_expect_none(&qp);
    }
}

/*
 * A WR whose buffer is gone when it has to be sent again fails in its turn,
 * although a fenced WR behind it, which has been read, is put back.
 */
static void test_fail_then_hold(void)
{
    struct gmr mr;
    struct rc_wr wr;

    start_type(QHCA_QPT_RC);
    mr = mr_create(g, node.pdn, 4096, QHCA_ACCESS_LOCAL_WRITE);
    post(QHCA_WR_RDMA_READ);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 8);
    wr.sge[0].addr = mr.addr;
    wr.sge[0].lkey = mr.key;
    rc_post(&qp, &wr);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 8);
    wr.flags |= QHCA_WQE_FENCE;
    rc_post(&qp, &wr);
    guest_settle(g);
    CHECK_EQ(peer_drain(&qp), 2);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    guest_advance(g, 5000000);          /* the time-out is 4.2 ms */
    CHECK_EQ(peer_drain(&qp), 1);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    answer_read(0, PSN);
    rc_expect(&qp.scq, 0x1000, QHCA_WC_SUCCESS);
    rc_expect(&qp.scq, 0x1001, QHCA_WC_LOC_PROT_ERR);
    rc_expect(&qp.scq, 0x1002, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
}

static const struct test tests[] = {
    { "A-056 A-057 A-072 A-113 E-037 E-038 the AV, on the wire", test_av },
    { "A-056 A-072 A-113 D-083 the AV, at the responder",
      test_av_answers },
    { "A-056 A-072 A-113 D-067 max_rd_atomic", test_rd_atomic },
    { "A-056 A-072 A-113 D-055 max_dest_rd_atomic", test_dest_rd_atomic },
    { "A-056 A-072 A-113 D-031 min_rnr_timer", test_min_rnr_timer },
    { "A-084 a WR that cannot be sent again, before one that is put back",
      test_fail_then_hold },
};

TEST_MAIN(tests)
