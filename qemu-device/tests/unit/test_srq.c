/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: shared receive queues: which QP gets which WR, limit,
 * resize.
 */
#include "harness/fixture.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define QPS     3

/* @srq of 2^@log WRs, and pairs of QPs that send to QPs that use it. */
static void start(unsigned log)
{
    start_shared(log, 4, QPS, &RC_OPTS);
}

static struct qhca_srqc query(void)
{
    struct qhca_srqc c;

    CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
    return c;
}

/* ---- G-002: WRs for any QP ---- */

static void in_order(void)
{
    static const unsigned who[] = { 2, 0, 0, 1, 2, 1, 0, 2 };
    struct qhca_cqe c;

    start(3);
    for (unsigned i = 0; i < 8; i++) {
        srq_post(&srq, 100 + i, 1000 * i, 1000);
    }
    for (unsigned i = 0; i < 8; i++) {
        guest_fill(g, node.mr.addr, 500, i);
        memset(guest_ptr(g, node.mr.addr + 1000 * i + 500, 500), 0, 500);
        rc_send(&tx[who[i]], 300);
        c = rc_expect(&rx[who[i]].rcq, 100 + i, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(c.qpn), rx[who[i]].qpn);
        CHECK_EQ(le16toh(c.flags), QHCA_CQE_SRQ);
        CHECK_EQ(le32toh(c.wqe_index), i);
        CHECK(guest_is_filled(g, node.mr.addr + 1000 * i, 300, i));
    }
    CHECK_EQ(le32toh(query().ci), 8);
}

/* A QP in the middle of a message does not block the others. */
static void interleaved(void)
{
    struct rc_qp q;

    start(2);
    q = srq_scripted();
    srq_post(&srq, 1, 0, 5000);
    srq_post(&srq, 2, 8000, 5000);
    srq_half_message(&q);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 2, QHCA_WC_SUCCESS);
    peer_send(&q, RC_SEND_LAST, PSN + 1, "0123456789", 10);
    rc_expect(&q.rcq, 1, QHCA_WC_SUCCESS);
    /* D-017: an ACK has no credits, because others may use the WRs. */
    CHECK_EQ(peer_expect(&q, RC_ACKNOWLEDGE, PSN + 1).syndrome, 0x1f);
}

/* The consumer may reuse a slot after polling a CQE that covers it. */
static void slots(void)
{
    uint64_t bad;

    start(2);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            srq_post(&srq, round * 4 + i, 0, 100);
        }
        bad = counter(g, QHCA_CNT_BAD_DOORBELL);
        ring(g, 1, QHCA_DB_SRQ, srq.srqn, srq.pi + 1);          /* full */
        ring(g, 1, QHCA_DB_SRQ, srq.srqn, srq.pi - 1);          /* backwards */
        ring(g, 2, QHCA_DB_SRQ, srq.srqn, srq.pi);      /* not its page */
        ring(g, 1, QHCA_DB_SRQ, srq.srqn ^ 0x800000, srq.pi);
        ring(g, 1, QHCA_DB_RQ, rx[0].qpn, 1);                   /* */
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), bad + 5);
        for (unsigned i = 0; i < 4; i++) {
            rc_send(&tx[i % QPS], 100);
            rc_expect(&rx[i % QPS].rcq, round * 4 + i, QHCA_WC_SUCCESS);
        }
    }
}

static void empty(void)
{
    start(2);
    rc_send(&tx[0], 100);
    rc_send(&tx[1], 100);
    CHECK(counter(g, QHCA_CNT_TX_RNR_NAK) >= 2);
    srq_post(&srq, 7, 0, 100);
    srq_post(&srq, 8, 0, 100);
    guest_advance(g, 1000000000);
    rc_expect(&tx[0].scq, 0x1000, QHCA_WC_SUCCESS);
    rc_expect(&tx[1].scq, 0x1000, QHCA_WC_SUCCESS);
    CHECK_EQ(le32toh(query().ci), 2);
}

/* G-003, F-006: keys must be of the SRQ's PD. */
static void keys(void)
{
    uint32_t pdn;
    struct gmr mr;
    struct rc_opts o = RC_OPTS;
    struct qhca_seg_le sge;

    start(2);
    pdn = pd_create(g);
    mr = mr_create(g, pdn, 4096, QHCA_ACCESS_LOCAL_WRITE);
    sge = (struct qhca_seg_le) { mr.addr, 100, mr.key };
    srq_put(&srq, 1, 1, &sge);
    srq_ring(&srq);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 1, QHCA_WC_LOC_PROT_ERR);
    rc_expect(&tx[0].scq, 0x1000, QHCA_WC_REM_OP_ERR);

    srq = srq_create(&node, pdn, 2, 1);
    o.srqn = srq.srqn;
    rx[0] = rc_create(&node, &o);
    o.srqn = 0;
    tx[0] = rc_create(&node, &o);
    rc_connect(&tx[0], &rx[0]);
    srq_put(&srq, 1, 1, &sge);
    srq_ring(&srq);
    guest_fill(g, node.mr.addr, 100, 9);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 1, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, mr.addr, 100, 9));
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEALLOC_PD, pdn), QHCA_ERR_BUSY);
}

/* ---- G-005, G-006: the limit ---- */

static void limit(void)
{
    start(4);
    srq_fill(&srq, 10, 100);
    CHECK_EQ(srq_limit(&srq, 7), QHCA_OK);
    for (unsigned i = 0; i < 3; i++) {
        rc_send(&tx[i], 10);
    }
    no_event();
    CHECK_EQ(le32toh(query().limit), 7);
    rc_send(&tx[0], 10);
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    CHECK_EQ(le32toh(query().limit), 0);
    rc_send(&tx[0], 10);
    no_event();

    CHECK_EQ(srq_limit(&srq, 5), QHCA_OK);      /* 5 are left */
    no_event();
    CHECK_EQ(srq_limit(&srq, 6), QHCA_OK);      /* fewer already: G-006 */
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    CHECK_EQ(le32toh(query().limit), 0);
    CHECK_EQ(srq_limit(&srq, 3), QHCA_OK);
    CHECK_EQ(srq_limit(&srq, 17), QHCA_ERR_PARAM);      /* G-007 */
    CHECK_EQ(le32toh(query().limit), 3);
    CHECK_EQ(srq_limit(&srq, 16), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    CHECK_EQ(srq_limit(&srq, 0), QHCA_OK);
    for (unsigned i = 0; i < 5; i++) {
        rc_send(&tx[1], 10);
    }
    no_event();
}

/* ---- G-007: resize ---- */

static void resize(void)
{
    start(2);
    for (unsigned i = 0; i < 4; i++) {
        srq_post(&srq, i, 1000 * i, 1000);
    }
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 0, QHCA_WC_SUCCESS);
    CHECK_EQ(srq_resize(&srq, 1, 0, 0), QHCA_ERR_STATE);        /* has 3 WRs */
    CHECK_EQ(query().log_size, 2);
    CHECK_EQ(srq_resize(&srq, 15, 0, 0), QHCA_ERR_LIMIT);
    CHECK_EQ(srq_resize(&srq, 3, 1, 0), QHCA_ERR_PARAM);
    CHECK_EQ(srq_resize(&srq, 3, QHCA_SRQ_LIMIT, 9), QHCA_ERR_PARAM);
    CHECK_EQ(srq_limit(&srq, 3), QHCA_OK);
    CHECK_EQ(srq_resize(&srq, 5, 0, 0), QHCA_OK);
    CHECK_EQ(le32toh(query().limit), 3);
    for (unsigned i = 4; i < 33; i++) {
        srq_post(&srq, i, 0, 1000);
    }
    ring(g, 1, QHCA_DB_SRQ, srq.srqn, srq.pi + 1);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
    for (unsigned i = 1; i < 30; i++) {
        rc_send(&tx[i % QPS], 50);
        rc_expect(&rx[i % QPS].rcq, i, QHCA_WC_SUCCESS);
    }
    no_event();
    CHECK_EQ(srq_resize(&srq, 1, 0, 0), QHCA_ERR_PARAM);        /* limit 3 */
    CHECK_EQ(srq_resize(&srq, 2, QHCA_SRQ_LIMIT, 4), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    for (unsigned i = 30; i < 33; i++) {
        rc_send(&tx[0], 50);
        rc_expect(&rx[0].rcq, i, QHCA_WC_SUCCESS);
    }
    CHECK_EQ(srq_resize(&srq, 0, 0, 0), QHCA_OK);
    srq_post(&srq, 99, 0, 100);
    CHECK_EQ(srq_resize(&srq, 14, 0, 0), QHCA_OK);      /* the maximum */
    CHECK_EQ(srq_resize(&srq, 0, 0, 0), QHCA_OK);       /* one slot */
    CHECK_EQ(query().log_size, 0);
    CHECK_EQ(le32toh(query().users), QPS);
    CHECK_EQ(le32toh(query().max_sge), 4);
    rc_send(&tx[1], 50);
    rc_expect(&rx[1].rcq, 99, QHCA_WC_SUCCESS);
}

/* ---- a message of two packets whose second is missing ---- */

static void last_wqe(void)
{
    struct rc_qp q;

    start(3);
    srq_fill(&srq, 4, 4000);
    q = srq_scripted();
    srq_half_message(&q);
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_ERR), QHCA_OK);
    rc_expect(&q.rcq, 0, QHCA_WC_WR_FLUSH_ERR);
    rc_expect_none(&q.rcq);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, q.qpn);
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_ERR), QHCA_OK);
    no_event();

    /* G-008: the QP uses no WR; those in the SRQ stay there. */
    CHECK_EQ(rc_set_state(&rx[1], QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, rx[1].qpn);
    rc_expect_none(&rx[1].rcq);
    CHECK_EQ(le32toh(query().ci), 1);

    /* The event is raised once for each time the QP enters ERR. */
    CHECK_EQ(rc_set_state(&rx[1], QHCA_QPS_RESET), QHCA_OK);
    no_event();
    rc_bring_up(&rx[1], QHCA_QPS_INIT);
    CHECK_EQ(rc_set_state(&rx[1], QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, rx[1].qpn);

    /* ERR caused by an error, which has an event of its own. */
    q = srq_scripted();
    peer_send(&q, RC_SEND_LAST, PSN, NULL, 0);
    eq_expect(&node.async, QHCA_EVENT_QP_REQ_ERR, q.qpn);
    eq_expect(&node.async, QHCA_EVENT_LAST_WQE_REACHED, q.qpn);
    no_event();
    CHECK_EQ(rc_set_state(&tx[0], QHCA_QPS_ERR), QHCA_OK);      /* has no SRQ */
    no_event();
}

/*
 * G-008: WRs that RESET or destruction interrupts are given back and used
 * again, the last one given back first.
 */
static void given_back(void)
{
    static const unsigned who[] = { 1, 0, 2, 3 };
    struct rc_qp q[3];

    start(3);
    srq_fill(&srq, 4, 4000);
    for (unsigned i = 0; i < 3; i++) {
        q[i] = srq_scripted();
        srq_half_message(&q[i]);
    }
    CHECK_EQ(le32toh(query().held), 3);
    CHECK_EQ(srq_limit(&srq, 1), QHCA_OK);
    CHECK_EQ(rc_set_state(&q[2], QHCA_QPS_RESET), QHCA_OK);
    CHECK_EQ(rc_destroy(&q[0]), QHCA_OK);
    CHECK_EQ(rc_set_state(&q[1], QHCA_QPS_RESET), QHCA_OK);
    CHECK_EQ(le32toh(query().held), 0);
    CHECK_EQ(le32toh(query().pi) - le32toh(query().ci), 4);
    no_event();
    for (unsigned i = 0; i < 4; i++) {
        rc_send(&tx[i % QPS], 2000);
        rc_expect(&rx[i % QPS].rcq, who[i], QHCA_WC_SUCCESS);
    }
    eq_expect(&node.async, QHCA_EVENT_SRQ_LIMIT_REACHED, srq.srqn);
    srq_post(&srq, 9, 0, 4000);
    rc_bring_up(&q[1], QHCA_QPS_RTS);
    srq_half_message(&q[1]);
    CHECK_EQ(rc_destroy(&q[1]), QHCA_OK);
    CHECK_EQ(rc_destroy(&q[2]), QHCA_OK);
    for (unsigned i = 0; i < QPS; i++) {
        CHECK_EQ(srq_destroy(&srq), QHCA_ERR_BUSY);
        CHECK_EQ(rc_destroy(&rx[i]), QHCA_OK);
    }
    CHECK_EQ(srq_destroy(&srq), QHCA_OK);
    CHECK_EQ(srq_destroy(&srq), QHCA_ERR_OBJ);
}

/* A WR given back is complete and unchanged. */
static void as_it_was(void)
{
    struct qhca_seg_le sge[4];
    struct rc_qp q;

    start(0);
    for (unsigned i = 0; i < 4; i++) {
        sge[i] = (struct qhca_seg_le) {
            node.mr.addr + 10000 * (4 - i), 500 + i, node.mr.key,
        };
    }
    srq_put(&srq, 0xfedcba9876543210, 4, sge);
    srq_ring(&srq);
    q = srq_scripted();
    srq_half_message(&q);
    memset(guest_ptr(g, gbuf_addr(&srq.ring, 0), 1u << srq.stride), 0x5a,
           1u << srq.stride);
    CHECK_EQ(rc_destroy(&q), QHCA_OK);
    guest_fill(g, node.mr.addr, 2006, 3);
    rc_send(&tx[0], 2006);
    rc_expect(&rx[0].rcq, 0xfedcba9876543210, QHCA_WC_SUCCESS);
    for (unsigned i = 0, off = 0; i < 4; off += sge[i++].length) {
        CHECK(!memcmp(guest_ptr(g, sge[i].addr, sge[i].length),
                      guest_ptr(g, node.mr.addr + off, sge[i].length),
                      sge[i].length));
    }
}

/*
 * B-077: a WR that a QP has taken keeps its place in the ring: doorbells and
 * resizes that would use it are refused.
 */
static void place_kept(void)
{
    struct rc_qp q;

    start(2);
    srq_fill(&srq, 4, 4000);
    q = srq_scripted();
    srq_half_message(&q);
    ring(g, 1, QHCA_DB_SRQ, srq.srqn, srq.pi + 1);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
    CHECK_EQ(le32toh(query().pi), 4);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 1, QHCA_WC_SUCCESS);
    ring(g, 1, QHCA_DB_SRQ, srq.srqn, srq.pi + 2);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 2);
    srq_post(&srq, 4, 0, 4000);
    for (unsigned i = 2; i < 4; i++) {
        rc_send(&tx[0], 100);
        rc_expect(&rx[0].rcq, i, QHCA_WC_SUCCESS);
    }
    CHECK_EQ(srq_resize(&srq, 0, 0, 0), QHCA_ERR_STATE);
    CHECK_EQ(srq_resize(&srq, 1, 0, 0), QHCA_OK);
    CHECK_EQ(rc_destroy(&q), QHCA_OK);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 2);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 0, QHCA_WC_SUCCESS);
    rc_send(&tx[0], 100);
    rc_expect(&rx[0].rcq, 4, QHCA_WC_SUCCESS);
}

static const struct test tests[] = {
    { "G-002 C-003 A-011 WRs are used in order", in_order },
    { "G-002 D-017 two messages at a time", interleaved },
    { "B-023 A-014 slots and doorbells", slots },
    { "G-004 an empty SRQ sends an RNR NAK", empty },
    { "G-003 F-006 G-017 keys of the SRQ's PD", keys },
    { "G-005 G-006 G-007 limit", limit },
    { "G-007 resize", resize },
    { "A-102 H-008 LAST_WQE_REACHED", last_wqe },
    { "G-008 WRs that a QP does not complete are given back", given_back },
    { "G-008 a WR given back is unchanged", as_it_was },
    { "B-023 G-007 G-008 a WR that was taken keeps its place", place_kept },
};

TEST_MAIN(tests)
