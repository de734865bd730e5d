/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: datagrams into a shared receive queue.
 */
#include "harness/fixture.h"

#define UD(op)  (SVC_UD | RC_##op)
#define GRH     40

static struct rc_qp qps[2];

static void start(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);

    start_node();
    srq = srq_create(&node, node.pdn, 3, 2);
    o.srqn = srq.srqn;
    for (unsigned i = 0; i < 2; i++) {
        qps[i] = rc_scripted(&node, &o, &far);
    }
}

static void inject(unsigned i, size_t len)
{
    uint8_t data[64] = "a datagram";

    peer_send(&qps[i], UD(SEND_ONLY), 99, data, len);
}

static uint32_t taken(void)
{
    struct qhca_srqc c;

    CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
    return le32toh(c.ci);
}

static void order(void)
{
    struct qhca_cqe c;

    start();
    for (unsigned i = 0; i < 4; i++) {
        srq_post(&srq, i, 200 * i, 200);
    }
    for (unsigned i = 0; i < 4; i++) {
        inject(i & 1, 16);
        c = rc_expect(&qps[i & 1].rcq, i, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(c.byte_len), GRH + 16);
        CHECK_EQ(le16toh(c.flags),
                 QHCA_CQE_SRQ | QHCA_CQE_GRH | QHCA_CQE_IPV4);
        CHECK_EQ(le32toh(c.wqe_index), i);
        CHECK(!memcmp(guest_ptr(g, node.mr.addr + 200 * i + GRH, 10),
                      "a datagram", 10));
    }
}

static void empty(void)
{
    start();
    inject(0, 16);
    srq_post(&srq, 1, 0, 200);
    guest_settle(g);
    rc_expect_none(&qps[0].rcq);
    peer_expect_none(&qps[0]);
    CHECK_EQ(rc_state(&qps[0]), QHCA_QPS_RTS);
    inject(0, 16);
    rc_expect(&qps[0].rcq, 1, QHCA_WC_SUCCESS);
}

static void too_long(void)
{
    start();
    srq_post(&srq, 1, 0, GRH + 15);
    srq_post(&srq, 2, 0, GRH + 16);
    inject(0, 16);
    rc_expect(&qps[0].rcq, 1, QHCA_WC_LOC_LEN_ERR);
    CHECK_EQ(rc_state(&qps[0]), QHCA_QPS_RTS);
    inject(0, 16);
    rc_expect(&qps[0].rcq, 2, QHCA_WC_SUCCESS);
    no_event();
}

/* A bad WR moves the QP to ERR; other WRs stay in the SRQ. */
static void bad_wr(void)
{
    const struct qhca_seg_le no_key = { node.mr.addr, 200, 0x12345600 };

    start();
    srq_put(&srq, 1, 1, &no_key);
    srq_ring(&srq);
    srq_post(&srq, 2, 0, 200);
    inject(0, 16);
    rc_expect(&qps[0].rcq, 1, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(rc_state(&qps[0]), QHCA_QPS_ERR);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, qps[0].qpn);
    rc_expect_none(&qps[0].rcq);
    CHECK_EQ(taken(), 1);
    inject(0, 16);
    CHECK_EQ(taken(), 1);
    inject(1, 16);
    rc_expect(&qps[1].rcq, 2, QHCA_WC_SUCCESS);
}

static void states(void)
{
    start();
    srq_post(&srq, 1, 0, 200);
    CHECK_EQ(rc_set_state(&qps[0], QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, qps[0].qpn);
    CHECK_EQ(rc_set_state(&qps[0], QHCA_QPS_RESET), QHCA_OK);
    CHECK_EQ(rc_destroy(&qps[0]), QHCA_OK);
    no_event();
    CHECK_EQ(taken(), 0);
    CHECK_EQ(srq_destroy(&srq), QHCA_ERR_BUSY);
    inject(1, 16);
    rc_expect(&qps[1].rcq, 1, QHCA_WC_SUCCESS);
}

static void unreadable(void)
{
    start();
    srq_post(&srq, 1, 0, 200);
    guest_spoil(g, gbuf_addr(&srq.ring, 0), 64);
    inject(0, 16);
    eq_expect(&node.async, QHCA_EVENT_SRQ_ERR, srq.srqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qps[0].qpn);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, qps[0].qpn);
    CHECK_EQ(rc_state(&qps[0]), QHCA_QPS_ERR);
}

static const struct test tests[] = {
    { "G-002 datagrams of two QPs", order },
    { "G-004 an empty SRQ drops datagrams", empty },
    { "G-009 a datagram that is too long fails its WR only", too_long },
    { "G-003 G-008 a bad WR", bad_wr },
    { "A-102 G-008 ERR, RESET, destruction", states },
    { "G-010 H-010 unreadable ring", unreadable },
};

TEST_MAIN(tests)
