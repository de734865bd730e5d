/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: SQE, the state of a UC or UD QP after a send error. */
#include "harness/fixture.h"

#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define BAD     0x66            /* invalid opcode */
#define UC_SEND_ONLY    (SVC_UC | RC_SEND_ONLY)

static void put(uint8_t opcode, bool signaled)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, 8);

    wr.flags = signaled ? QHCA_WQE_SIGNALED : 0;
    rc_put(&qp, &wr);
}

static void ring_all(void)
{
    rc_ring(&qp);
    guest_settle(g);
}

static void post(uint8_t opcode)
{
    put(opcode, true);
    ring_all();
}

static void test_enter(void)
{
    start_type(QHCA_QPT_UC);
    rc_recv(&qp, 1, 0, 100);
    put(BAD, false);                    /* B-044 */
    put(QHCA_WR_SEND, false);
    put(BAD, true);
    put(QHCA_WR_SEND, true);
    ring_all();
    done(0, QHCA_WC_LOC_QP_OP_ERR);
    all_done(1, 4, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    post(QHCA_WR_SEND);
    post(BAD);
    done(4, QHCA_WC_WR_FLUSH_ERR);
    done(5, QHCA_WC_WR_FLUSH_ERR);
    rc_recv(&qp, 2, 0, 100);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQE), QHCA_ERR_STATE);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_ERR_STATE);
    rc_expect_none(&qp.scq);
    rc_expect_none(&qp.rcq);
    peer_send(&qp, UC_SEND_ONLY, 0x222222, "12345678", 8);
    rc_expect(&qp.rcq, 1, 0);           /* */
    peer_expect_none(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    rc_expect_none(&qp.scq);
    no_event();
}

/* After RTS, and after a second error, sending continues with the next PSN. */
static void test_resume(void)
{
    start_type(QHCA_QPT_UC);
    for (unsigned i = 0; i < 3; i++) {
        post(QHCA_WR_SEND);
        peer_expect(&qp, UC_SEND_ONLY, PSN + i);
        done(3 * i, 0);
        post(BAD);
        done(3 * i + 1, QHCA_WC_LOC_QP_OP_ERR);
        post(QHCA_WR_SEND);
        done(3 * i + 2, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
        rc_expect_none(&qp.scq);
    }
    peer_expect_none(&qp);
    CHECK_EQ(rc_query(&qp).next_psn, htole32(PSN + 3));
}

/*
 * WRs posted in SQE are flushed even if RTS comes before their turn, and SQD
 * does not drain until then.
 */
static void test_resume_early(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UC);

    o.sq_log = 13;
    o.cq_log = 14;
    start_alone(&o);
    put(BAD, true);
    for (unsigned i = 1; i < 8000; i++) {
        put(QHCA_WR_SEND, i & 1);
    }
    rc_ring(&qp);                       /* the budget ends it early */
    CHECK(g->host.todo);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND);
    peer_expect(&qp, UC_SEND_ONLY, PSN);
    peer_expect_none(&qp);
    done(0, QHCA_WC_LOC_QP_OP_ERR);
    all_done(1, 8000, QHCA_WC_WR_FLUSH_ERR);
    done(8000, 0);

    put(BAD, true);
    for (unsigned i = 1; i < 8000; i++) {
        put(QHCA_WR_SEND, true);
    }
    rc_ring(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    CHECK_EQ(rc_query(&qp).sq_draining, 1);
    no_event();
    guest_settle(g);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(rc_query(&qp).sq_draining, 0);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    no_event();
}

/* an error and both commands that lead out of SQE, except to RTS. */
static void test_leave(void)
{
    static const struct qhca_seg_le none[5];
    struct rc_opts o = opts_of(QHCA_QPT_UC);

    o.cq_log = 2;
    start_alone(&o);
    post(BAD);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    for (unsigned i = 0; i < 4; i++) {
        post(QHCA_WR_SEND);             /* the CQ overruns */
    }
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.scq.cqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);

    o.cq_log = 8;                       /* a receive-side error */
    start_alone(&o);
    post(BAD);
    done(0, QHCA_WC_LOC_QP_OP_ERR);
    rc_recv_raw(&qp, 1, 5, none);       /* the queue allows 4 */
    rc_recv(&qp, 2, 0, 8);
    peer_send(&qp, UC_SEND_ONLY, 0x222222, "12345678", 8);
    rc_expect(&qp.rcq, 1, QHCA_WC_LOC_QP_OP_ERR);
    rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    no_event();

    start_alone(&o);
    post(BAD);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    rc_bring_up(&qp, QHCA_QPS_RTS);
    CHECK_EQ(rc_query(&qp).next_psn, htole32(PSN));
}

/* A buffer is deregistered while being sent: SQE, and never SQ_DRAINED. */
static void test_in_sqd(void)
{
    unsigned sent;
    struct gmr mr;
    struct rc_wr wr;

    start_type(QHCA_QPT_UC);
    mr = mr_create(g, node.pdn, 500 * 1024, 0);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 500 * 1024);
    wr.sge[0].addr = mr.addr;
    wr.sge[0].lkey = mr.key;
    g->net_blocked = true;
    rc_put(&qp, &wr);
    put(QHCA_WR_SEND, false);
    ring_all();
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    post(QHCA_WR_SEND);                 /* held by SQD */
    CHECK_EQ(rc_query(&qp).sq_draining, 1);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    rc_expect_none(&qp.scq);
    guest_unblock(g);
    done(0, QHCA_WC_LOC_PROT_ERR);
    done(1, QHCA_WC_WR_FLUSH_ERR);
    done(2, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    CHECK_EQ(rc_query(&qp).sq_draining, 0);
    sent = peer_drain(&qp);
    CHECK(sent > 0 && sent < 500);
    no_event();

    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    post(QHCA_WR_SEND);
    done(3, 0);
    peer_expect(&qp, UC_SEND_ONLY, PSN + sent);
    /* EN_SQD_ASYNC_NOTIFY was for that SQD only. */
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_SQD), QHCA_OK);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    no_event();
}

/*
 * A datagram is one packet, so none is half sent: one held by a blocked network
 * goes back to the ring, and can fail only after SQD.
 */
static void test_datagram_in_sqd(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    unsigned sent;
    struct gmr mr;
    struct rc_wr wr;

    o.sq_log = 10;
    o.cq_log = 11;
    start_alone(&o);
    g->net_blocked = true;
    mr = mr_create(g, node.pdn, 4096, 0);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 4000);
    wr.sge[0].addr = mr.addr;
    wr.sge[0].lkey = mr.key;
    for (unsigned i = 0; i < 500; i++) {
        rc_put(&qp, &wr);
    }
    ring_all();
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    guest_unblock(g);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQD);
    sent = peer_drain(&qp);             /* frames sent before the error */
    CHECK(sent > 0 && sent < 500);
    for (unsigned i = 0; i < sent; i++) {
        rc_expect(&qp.scq, wr.wr_id, 0);
    }
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    guest_settle(g);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
    peer_expect_none(&qp);
    no_event();
}

static const struct test tests[] = {
    { "A-006 A-091 A-092 A-093 B-044 a send error leads to SQE", test_enter },
    { "A-094 SQE to RTS, the PSNs continue", test_resume },
    { "A-092 A-094 RTS before all WRs are flushed", test_resume_early },
    { "A-095 SQE to ERR and RESET", test_leave },
    { "A-034 A-085 A-091 A-092 A-094 a send error in SQD", test_in_sqd },
    { "A-005 A-034 A-084 a datagram in SQD", test_datagram_in_sqd },
};

TEST_MAIN(tests)
