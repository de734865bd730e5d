/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: RESET forgets everything, conformance A-104. Each row puts
 * one thing into a QP's state, takes it through RESET, and checks that it is
 * gone.
 */
#include "harness/scripted.h"

#define SQ_PSN  0x111111u       /* sq_psn of RC_OPTS */
#define PSN     0x222222u
#define MTU     1024
#define T(code) (4096ull << (code))

static void start(uint8_t type)
{
    struct rc_opts o = opts_of(type);

    o.rd_atomic = 1;
    o.sq_log = 11;
    o.cq_log = 12;
    start_responder(&o, QHCA_QPS_RESET);
}

/* ---- what the responder remembers ---- */

static void half_a_message(void)
{
    rc_recv(&qp, 1, 4096, 8192);
    inject(RC_SEND_FIRST, PSN, MTU);
}

/* The place in the message, the receive WR and the MSN are gone. */
static void a_whole_message(void)
{
    rc_recv(&qp, 2, 0, 8192);
    inject(RC_SEND_ONLY, PSN, 8);
    expect_ack(PSN, 1);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 2, 0).byte_len), 8);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr, 1), data[0]);
    CHECK_EQ(le32toh(rc_query(&qp).epsn), PSN + 1);
}

static void one_message(void)
{
    rc_recv(&qp, 1, 4096, 8192);
    inject(RC_SEND_ONLY, PSN, 8);
    rc_expect(&qp.rcq, 1, 0);
}

static void a_gap(void)
{
    inject(RC_SEND_ONLY, PSN + 1, 8);
}

static void a_gap_again(void)
{
    a_gap();
    expect_nak(AETH_NAK_SEQ, PSN);
}

static void no_receive_wr(void)
{
    inject(RC_SEND_ONLY, PSN, 8);
}

static void an_atomic(void)
{
    inject(RC_FETCH_ADD, PSN - 1, 0);
}

static void an_atomic_again(void)
{
    an_atomic();
    peer_expect_none(&qp);
}

static void answers_in_line(void)
{
    g->net_blocked = true;
    for (unsigned i = 0; i < 120; i++) {
        inject(RC_SEND_ONLY, PSN - 1, 8);
    }
    for (unsigned i = 0; i < 4; i++) {
        inject_read(PSN + i, 0, 8);
    }
}

/* No old response is sent, and all resources are free. */
static void no_answers(void)
{
    for (unsigned i = 0; i < 4; i++) {
        inject_read(PSN + i, 0, 8);
        peer_expect(&qp, RC_READ_RESP_ONLY, PSN + i);
    }
    peer_expect_none(&qp);
}

/* ---- what the requester remembers ---- */

static void rnr_wait(void)
{
    post(QHCA_WR_SEND, 8);
    peer_nak(&qp, AETH_RNR_NAK, SQ_PSN);        /* 655 ms */
}

static void bad_wr(void)
{
    post(QHCA_WR_SEND, 8);
    post(0x66, 8);
}

static void outstanding_read(void)
{
    post(QHCA_WR_RDMA_READ, 8);
}

static void send_and_read(void)
{
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, RC_SEND_ONLY, SQ_PSN);
    post(QHCA_WR_RDMA_READ, 8);
    peer_expect(&qp, RC_READ_REQUEST, SQ_PSN + 1);
    guest_advance(g, T(10) - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    CHECK_EQ(peer_drain(&qp), 2);
}

static void going_back(void)
{
    post(QHCA_WR_SEND, 8);
    peer_nak(&qp, AETH_NAK_SEQ, SQ_PSN);
}

/* A QP goes back for an implied NAK once, and may do so again. */
static void going_back_again(void)
{
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_ack(&qp, SQ_PSN + 1);
    peer_expect(&qp, RC_READ_REQUEST, SQ_PSN);
}

static void spent_retries(void)
{
    post(QHCA_WR_SEND, 8);
    for (unsigned i = 0; i < 7; i++) {
        guest_advance(g, T(10));
    }
}

static void all_retries(void)
{
    post(QHCA_WR_SEND, 8);
    for (unsigned i = 0; i < 7; i++) {
        CHECK_EQ(peer_drain(&qp), 1);
        guest_advance(g, T(10));
    }
    peer_ack(&qp, SQ_PSN);
    rc_expect(&qp.scq, 0x1000, 0);
}

static void draining(void)
{
    post(QHCA_WR_SEND, 8);
    rc_drain(&qp);
    CHECK_EQ(rc_query(&qp).sq_draining, 1);
}

static void not_draining(void)
{
    CHECK_EQ(rc_query(&qp).sq_draining, 0);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK_EQ(rc_query(&qp).sq_draining, 0);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    send_and_read();
}

/* UC: the QP is in RTS again before all WRs posted in SQE are flushed. */
static void flushing(void)
{
    put(0x66, 8);
    for (unsigned i = 1; i < 2000; i++) {
        put(QHCA_WR_SEND, 8);
    }
    rc_ring(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
}

static void not_flushing(void)
{
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, SVC_UC | RC_SEND_ONLY, SQ_PSN);
    rc_expect(&qp.scq, 0x1000, 0);
}

static const struct {
    uint8_t type;
    void (*before)(void), (*after)(void);
} rows[] = {
    { QHCA_QPT_RC, half_a_message, a_whole_message },
    { QHCA_QPT_RC, one_message, a_whole_message },
    { QHCA_QPT_RC, a_gap, a_gap_again },
    { QHCA_QPT_RC, no_receive_wr, a_gap_again },
    { QHCA_QPT_RC, an_atomic, an_atomic_again },
    { QHCA_QPT_RC, answers_in_line, no_answers },
    { QHCA_QPT_RC, rnr_wait, send_and_read },
    { QHCA_QPT_RC, bad_wr, send_and_read },
    { QHCA_QPT_RC, outstanding_read, send_and_read },
    { QHCA_QPT_RC, going_back, going_back_again },
    { QHCA_QPT_RC, spent_retries, all_retries },
    { QHCA_QPT_RC, draining, not_draining },
    { QHCA_QPT_UC, flushing, not_flushing },
};

static void test_forgets(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct qhca_cqe c;

        start(rows[i].type);
        /* A request from before the RESET is behind the new ePSN. */
        qp.o.rq_psn = rows[i].before == an_atomic ? PSN - 1 : PSN;
        rc_bring_up(&qp, QHCA_QPS_RTS);
        rows[i].before();
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
        guest_unblock(g);
        peer_drain(&qp);
        while (cq_poll(&qp.scq, &c)) {
            ;                           /* as drivers do */
        }
        guest_advance(g, 20 * T(10));
        CHECK(g->host.deadline == UINT64_MAX);
        peer_expect_none(&qp);

        qp.o.rq_psn = PSN;
        rc_bring_up(&qp, QHCA_QPS_RTS);
        rows[i].after();
        if (rc_state(&qp) != QHCA_QPS_RTS) {
            tap_note("row %zu", i);
            CHECK(!"RTS");
        }
    }
}

/* one COMM_EST after each RESET. */
static void test_comm_est(void)
{
    start(QHCA_QPT_RC);
    for (unsigned i = 0; i < 3; i++) {
        rc_bring_up(&qp, QHCA_QPS_RTR);
        rc_recv(&qp, 1, 0, 8);
        inject(RC_SEND_ONLY, PSN, 8);
        eq_expect(&node.async, QHCA_EVENT_COMM_EST, qp.qpn);
        no_event();
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    }
}

static const struct test tests[] = {
    { "A-104 RESET forgets all state", test_forgets },
    { "A-082 A-104 COMM_EST after each RESET", test_comm_est },
};

TEST_MAIN(tests)
