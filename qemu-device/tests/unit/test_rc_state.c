/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: RC queue pairs on their way to RTS, and how they stop:
 * ERR, SQD, RESET, destruction.
 */
#include "harness/scripted.h"

#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define RPSN    0x222222u       /* rq_psn */
#define T(code) (4096ull << (code))

/* ---- up to RTS ---- */

static int step_with(uint8_t state, uint32_t mask)
{
    struct qhca_qp_attr a = rc_attr(&qp);

    a.state = state;
    return rc_modify(&qp, &a, mask);
}

static int step(uint8_t state)
{
    return step_with(state, rc_step_mask(QHCA_QPT_RC, state));
}

/*
 * Receive WRs of INIT are used from RTR on, where a QP may stay and answer. A
 * step from a state to itself disturbs nothing.
 */
static void test_way_up(void)
{
    struct roce_packet p;

    start_in(&RC_OPTS, QHCA_QPS_INIT);
    rc_recv(&qp, 0, 0, 8);
    rc_recv(&qp, 1, 8, 8);
    CHECK_EQ(step(QHCA_QPS_INIT), QHCA_OK);                     /* */
    CHECK_EQ(step(QHCA_QPS_RTR), QHCA_OK);
    for (unsigned i = 0; i < 2; i++) {
        peer_send(&qp, RC_SEND_ONLY, RPSN + i, "12345678", 8);
        rc_expect(&qp.rcq, i, QHCA_WC_SUCCESS);                 /* */
        expect_ack(RPSN + i, i + 1);
    }
    eq_expect(&node.async, QHCA_EVENT_COMM_EST, qp.qpn);
    p = peer_request(&qp, RC_READ_REQUEST, RPSN + 2, 0, 8);
    peer_inject(&qp, &p, NULL, 0);
    peer_expect(&qp, RC_READ_RESP_ONLY, RPSN + 2);              /* */
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTR);
    CHECK_EQ(step(QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, RC_SEND_ONLY, PSN);
    CHECK_EQ(step_with(QHCA_QPS_RTS, QHCA_QP_STATE |            /* */
                       QHCA_QP_ACCESS_FLAGS | QHCA_QP_MIN_RNR_TIMER), QHCA_OK);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    no_event();
}

/* ---- ERR ---- */

static void test_flush(void)
{
    start_alone(&RC_OPTS);
    for (unsigned i = 0; i < 3; i++) {
        rc_recv(&qp, i, 0, 100);
    }
    for (unsigned i = 0; i < 5; i++) {
        post_flags(i == 2 ? QHCA_WR_RDMA_READ : QHCA_WR_SEND, 8,
                   i & 1 ? QHCA_WQE_SIGNALED : 0);
    }
    CHECK_EQ(peer_drain(&qp), 5);
    peer_ack(&qp, PSN);                 /* completes the unsignaled first WR */
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    for (unsigned i = 1; i < 5; i++) {
        done(i, QHCA_WC_WR_FLUSH_ERR);                  /* */
    }
    for (unsigned i = 0; i < 3; i++) {
        rc_expect(&qp.rcq, i, QHCA_WC_WR_FLUSH_ERR);
    }
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK); /* */
    post(QHCA_WR_SEND, 8);
    done(5, QHCA_WC_WR_FLUSH_ERR);                      /* */
    rc_recv(&qp, 3, 0, 100);
    rc_expect(&qp.rcq, 3, QHCA_WC_WR_FLUSH_ERR);
    peer_ack(&qp, PSN + 4);                             /* */
    guest_advance(g, 10 * T(10));
    rc_expect_none(&qp.scq);
    rc_expect_none(&qp.rcq);
    peer_expect_none(&qp);
    CHECK(g->host.deadline == UINT64_MAX);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_ERR_STATE);  /* */
    no_event();
}

static void test_flush_early(void)
{
    static const uint8_t from[] = { QHCA_QPS_INIT, QHCA_QPS_RTR };

    for (unsigned i = 0; i < 2; i++) {
        start_in(&RC_OPTS, from[i]);
        rc_recv(&qp, 1, 0, 100);
        rc_recv(&qp, 2, 0, 100);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
        rc_expect(&qp.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
        rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
        rc_expect_none(&qp.scq);
    }
}

/* A flush of full rings takes longer than a turn. */
static void test_flush_many(void)
{
    struct rc_opts o = RC_OPTS;

    o.sq_log = o.rq_log = 9;
    o.cq_log = 10;
    start_alone(&o);
    for (unsigned i = 0; i < 512; i++) {
        struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);

        rc_recv(&qp, i, 0, 8);
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    guest_settle(g);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    guest_settle(g);
    for (unsigned i = 0; i < 512; i++) {
        done(i, QHCA_WC_WR_FLUSH_ERR);
        rc_expect(&qp.rcq, i, QHCA_WC_WR_FLUSH_ERR);
    }
    rc_expect_none(&qp.scq);
}

/* ---- SQD ---- */

static int to_sqd(bool notify)
{
    struct qhca_qp_attr a = {
        .state = QHCA_QPS_SQD, .en_sqd_async_notify = notify,
    };

    return rc_modify(&qp, &a, QHCA_QP_STATE |
                     (notify ? QHCA_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

static void test_sqd(void)
{
    struct qhca_qp_attr a = { 0 };

    start_alone(&RC_OPTS);
    CHECK_EQ(to_sqd(true), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);  /* no delay */
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    CHECK_EQ(to_sqd(false), QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    no_event();

    post(QHCA_WR_SEND, 8);
    CHECK_EQ(peer_drain(&qp), 1);
    CHECK_EQ(to_sqd(true), QHCA_OK);
    CHECK(rc_query(&qp).sq_draining);                           /* */
    post(QHCA_WR_SEND, 8);                                      /* */
    peer_expect_none(&qp);
    no_event();
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_ERR_STATE);  /* */
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_ERR_STATE);
    a.timeout = 12;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_TIMEOUT), QHCA_ERR_STATE);
    CHECK_EQ(rc_query(&qp).attr.timeout, 10);                   /* */
    guest_advance(g, T(10));
    peer_expect(&qp, RC_SEND_ONLY, PSN);        /* retries go on */
    peer_ack(&qp, PSN);
    done(0, 0);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);      /* */
    CHECK(!rc_query(&qp).sq_draining);
    /* */
    a.max_rd_atomic = 1;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_TIMEOUT |
                       QHCA_QP_MAX_QP_RD_ATOMIC), QHCA_OK);
    peer_expect_none(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    guest_advance(g, T(12) - 1);
    peer_expect_none(&qp);
    peer_ack(&qp, PSN + 1);
    done(1, 0);
    no_event();

    CHECK_EQ(to_sqd(false), QHCA_OK);           /* A-072, with no ACK before */
    a.retry_cnt = a.rnr_retry = 0;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_RETRY_CNT | QHCA_QP_RNR_RETRY),
             QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    guest_advance(g, T(12));
    done(2, QHCA_WC_RETRY_EXC_ERR);
}

/* the number of RNR retries can be changed in SQD. */
static void test_sqd_rnr_retry(void)
{
    struct qhca_qp_attr a;

    start_alone(&RC_OPTS);
    a = rc_attr(&qp);
    CHECK(a.rnr_retry);
    CHECK_EQ(to_sqd(false), QHCA_OK);
    a.rnr_retry = 0;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_RNR_RETRY), QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    peer_nak(&qp, AETH_RNR_NAK | 1, PSN);
    done(0, QHCA_WC_RNR_RETRY_EXC_ERR);
}

/* WRs that are read from the ring but not begun are held in SQD. */
static void test_sqd_hold(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.rd_atomic = 1;
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_RDMA_READ, 8);         /* waits for the first READ */
    CHECK_EQ(peer_drain(&qp), 1);
    peer_nak(&qp, AETH_RNR_NAK | 1, PSN);       /* the cursor goes back */
    CHECK_EQ(to_sqd(true), QHCA_OK);
    guest_advance(g, 10000);
    peer_expect(&qp, RC_READ_REQUEST, PSN);
    peer_send(&qp, RC_READ_RESP_ONLY, PSN, "12345678", 8);
    done(0, 0);
    peer_expect_none(&qp);                                      /* */
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    p = peer_expect(&qp, RC_READ_REQUEST, PSN + 1);
    CHECK_EQ(p.va, node.mr.addr);
    peer_send(&qp, RC_READ_RESP_ONLY, PSN + 1, "12345678", 8);
    done(1, 0);
}

/* A bad WR behind a good one is held like any other. */
static void test_sqd_bad(void)
{
    struct rc_opts o = RC_OPTS;

    start_alone(&o);
    post(QHCA_WR_SEND, 8);
    post(0x66, 8);
    CHECK_EQ(to_sqd(false), QHCA_OK);
    peer_ack(&qp, PSN);
    done(0, 0);
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQD);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    done(1, QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);

    o.retry = 0;                        /* */
    start_alone(&o);
    rc_recv(&qp, 7, 0, 8);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(to_sqd(true), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    guest_advance(g, T(10));
    done(0, QHCA_WC_RETRY_EXC_ERR);
    done(1, QHCA_WC_WR_FLUSH_ERR);
    rc_expect(&qp.rcq, 7, QHCA_WC_WR_FLUSH_ERR);
    no_event();

    start_alone(&o);            /* */
    CHECK_EQ(to_sqd(false), QHCA_OK);
    rc_recv(&qp, 8, 0, 8);
    peer_send(&qp, RC_SEND_ONLY, RPSN, "12345678", 8);
    rc_expect(&qp.rcq, 8, 0);
    peer_expect(&qp, RC_ACKNOWLEDGE, RPSN);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    done(0, QHCA_WC_WR_FLUSH_ERR);
    no_event();
}

/* ---- RESET and destruction ---- */

/* RESET many times during traffic, each with new PSNs. */
static void test_reset_loop(void)
{
    struct net *net = net_new(3);
    struct node node2;
    uint64_t rng = 5;

    node = node_new(net, 1);
    node2 = node_new(net, 2);
    g = node.g;
    qp = rc_create(&node, &RC_OPTS);
    peer = rc_create(&node2, &RC_OPTS);
    for (unsigned i = 0; i < 100; i++) {
        struct qhca_cqe c;
        struct rc_wr wr;

        qp.o.sq_psn = (uint32_t)test_random(&rng) & 0xffffff;
        qp.o.rq_psn = (uint32_t)test_random(&rng) & 0xffffff;
        qp.o.mtu = (uint8_t)(1 + i % 5);
        peer.o.mtu = qp.o.mtu;
        rc_connect(&qp, &peer);
        rc_recv(&peer, i, NODE_MEM / 2, 10000);
        guest_fill(g, node.mr.addr, 10000, i);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 10000);
        rc_post(&qp, &wr);
        net_run(net, 1000000000);
        rc_expect(&qp.scq, wr.wr_id, 0);
        rc_expect(&peer.rcq, i, 0);
        CHECK(guest_is_filled(node2.g, node2.mr.addr + NODE_MEM / 2, 10000, i));
        rc_recv(&peer, 99, 0, 10000);
        rc_post(&qp, &wr);
        rc_aim(&wr, &node2, 0);
        wr.opcode = QHCA_WR_RDMA_READ;
        rc_post(&qp, &wr);
        net_advance(net, test_random(&rng) % 20000);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);   /* */
        net_advance(net, 100);
        CHECK_EQ(rc_set_state(&peer, QHCA_QPS_RESET), QHCA_OK);
        net_run(net, 1000000000);
        while (cq_poll(&qp.scq, &c) || cq_poll(&peer.rcq, &c)) {
            CHECK_EQ(c.status, 0);
        }
        CHECK_EQ(rc_query(&qp).msn, 0);                         /* */
        CHECK_EQ(rc_query(&qp).sq_ci, 0);
    }
}

/* a QP is destroyed while the engine holds frames from it. */
static void test_destroy_midway(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct rc_opts o = RC_OPTS;
        struct rc_wr wr;

        o.mtu = 1;
        start_pair(&o);
        g->e->cfg.frames = true;
        rc_recv(&peer, 1, NODE_MEM / 2, 500000);
        wr = rc_wr(&qp, i & 1 ? QHCA_WR_RDMA_READ : QHCA_WR_SEND, 0, 500000);
        rc_aim(&wr, &node, NODE_MEM / 2);
        rc_post(&qp, &wr);
        CHECK(g->host.todo);            /* the budget is used up */
        CHECK_EQ(rc_destroy(i & 2 ? &peer : &qp), QHCA_OK);
        guest_advance(g, 100 * T(10));
        CHECK(g->host.deadline == UINT64_MAX);
        if (i & 2) {
            done(0, QHCA_WC_RETRY_EXC_ERR);
        }
    }
}

static const struct test tests[] = {
    { "A-097 A-098 A-099 A-100 A-101 A-115 A-118 I-039 flush", test_flush },
    { "A-116 A-117 flush from INIT and RTR", test_flush_early },
    { "A-097 C-012 flush of full rings", test_flush_many },
    { "A-005 A-019 A-062 A-072 A-085 A-087 A-088 A-112 A-113 SQD", test_sqd },
    { "A-072 RNR retries changed in SQD", test_sqd_rnr_retry },
    { "A-084 A-119 SQD holds WRs that have not begun", test_sqd_hold },
    { "A-084 A-089 A-090 A-114 SQD and failure", test_sqd_bad },
    { "A-103 A-104 A-105 A-120 100 times through RESET", test_reset_loop },
    { "A-020 a QP is destroyed with frames in flight", test_destroy_midway },
    { "A-080 A-081 A-110 A-111 from INIT to RTS", test_way_up },
};

TEST_MAIN(tests)
