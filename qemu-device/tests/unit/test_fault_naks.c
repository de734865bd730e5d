/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: fault rules that make the device send NAKs, and raise
 * events for no reason.
 */
#include "harness/faults.h"

static void test_rnr(void)
{
    struct rc_opts o = RC_OPTS;

    faults_pair("rx opcode=rc.send_only times=3 nak=rnr");
    faults_send();
    faults_sent(0);
    rc_expect(&peer.rcq, 0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_RNR_NAK), 3);

    o.rnr_retry = 2;
    faults_pair_of(&o, "rx opcode=rc.send_only nak=rnr");
    faults_send();
    faults_sent(QHCA_WC_RNR_RETRY_EXC_ERR);
    rc_expect_none(&peer.rcq);
    CHECK_EQ(faults_hits(0), 3);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
}

/* A WRITE uses no receive WR, so the responder reports the NAK by an event. */
static void test_naks(void)
{
    static const struct {
        const char *name;
        unsigned status, event;
    } nak[] = {
        { "rx nak=inv_req", QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERR },
        { "rx nak=rem_access_err", QHCA_WC_REM_ACCESS_ERR,
          QHCA_EVENT_QP_ACCESS_ERR },
        { "rx nak=rem_op_err", QHCA_WC_REM_OP_ERR, QHCA_EVENT_QP_FATAL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(nak); i++) {
        struct rc_wr wr;

        faults_pair(nak[i].name);
        wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 3000);
        rc_aim(&wr, &node, FAULT_DST);
        rc_post(&qp, &wr);
        faults_send();
        done(0, nak[i].status);
        done(1, QHCA_WC_WR_FLUSH_ERR);
        eq_expect(&node.async, nak[i].event, peer.qpn);
        no_event();
        CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
        CHECK(memory_is(FAULT_DST, 4096, 0));
        rc_expect(&peer.rcq, 0, QHCA_WC_WR_FLUSH_ERR);
    }
}

static void test_nak_seq(void)
{
    faults_pair("rx opcode=rc.send_only once nak=psn_seq_err");
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_TX_NAK_SEQ), 1);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 1);
}

/* The rule does not apply to responses and to unexpected requests. */
static void test_nak_else(void)
{
    struct rc_opts uc = opts_of(QHCA_QPT_UC);

    faults_pair("rx opcode=rc.acknowledge nak=inv_req");
    faults_send();
    done(0, 0);
    CHECK_EQ(faults_hits(0), 1);
    faults_pair_of(&uc, "rx nak=inv_req");
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
}

static void test_event(void)
{
    faults_pair("rx opcode=rc.send_only once event=comm_est");
    faults_send();
    done(0, 0);
    rc_expect(&peer.rcq, 0, 0);
    eq_expect(&node.async, QHCA_EVENT_COMM_EST, peer.qpn);

    faults_pair("rx opcode=rc.send_only once event=qp_fatal");
    faults_send();
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, peer.qpn);
    no_event();
    rc_expect(&peer.rcq, 0, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_ERR);
    faults_sent(QHCA_WC_RETRY_EXC_ERR);

    faults_pair("tx opcode=rc.send_only once event=qp_access_err");
    faults_send();
    eq_expect(&node.async, QHCA_EVENT_QP_ACCESS_ERR, qp.qpn);
    done(0, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
}

static const struct test tests[] = {
    { "receiver not ready", test_rnr },
    { "fatal NAKs", test_naks },
    { "NAK for a sequence error", test_nak_seq },
    { "NAKs are for requests of reliable services", test_nak_else },
    { "events", test_event },
};

TEST_MAIN(tests)
