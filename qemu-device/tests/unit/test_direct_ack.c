/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: ACKs inside the port, which are packets only if they have
 * to wait. test_direct checks what the guest can see of them.
 */
#include "harness/fixture.h"

/* Gives @qp one turn for the WRs posted, and nothing else. */
static void turn(void)
{
    vhca_qp_schedule(g->e, vhca_qp_get(g->e, qp.qpn));
    vhca_qp_get(g->e, qp.qpn)->sq.pi = qp.sq_pi;
    g->e->limit = g->e->spent + 1000;
    heap_use(g->heap);
    vhca_qp_turn(g->e);
    heap_use(NULL);
}

static struct vhca_responder *peer_responder(void)
{
    return &vhca_qp_get(g->e, peer.qpn)->rsp;
}

/* One ACK acknowledges all WRs, and the peer needs no turn for it. */
static void test_ack_at_once(void)
{
    start_pair(&RC_OPTS);
    post_writes(&qp, 2, 100);
    turn();
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
    CHECK_EQ(peer_responder()->q_head, peer_responder()->q_tail);
    CHECK(vhca_list_empty(&vhca_qp_get(g->e, peer.qpn)->ready));
    CHECK(!vhca_qp_get(g->e, qp.qpn)->req.timer.pos);
    CHECK_EQ(counter(g, QHCA_CNT_TX_ACK), 1);
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 3);
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 3);
    CHECK_EQ(counter(g, QHCA_CNT_TX_BYTES), 2 * (58 + 16 + 100) + 62);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BYTES), counter(g, QHCA_CNT_TX_BYTES));
}

/* Responses stay in order: an ACK waits for the READ response before it. */
static void test_ack_behind_answer(void)
{
    struct rc_wr wr;

    start_pair(&RC_OPTS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, 8);
    wr.wr_id = 0x1000;
    rc_aim(&wr, &node, NODE_MEM / 2);
    rc_put(&qp, &wr);
    wr.opcode = QHCA_WR_RDMA_WRITE;
    wr.wr_id++;
    rc_put(&qp, &wr);
    turn();
    CHECK_EQ(peer_responder()->q_tail - peer_responder()->q_head, 2);
    rc_expect_none(&qp.scq);
    qhca_engine_run(g->e, *g->clock);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_SUCCESS);
}

/* With a limit of the bandwidth the ACK must wait to be paid for. */
static void test_ack_with_limit(void)
{
    start_pair(&RC_OPTS);
    g->e->cfg.bandwidth = 1000;
    post_writes(&qp, 1, 100);
    turn();
    CHECK_EQ(peer_responder()->q_tail - peer_responder()->q_head, 1);
    rc_expect_none(&qp.scq);
    qhca_engine_run(g->e, *g->clock);
    done(0, QHCA_WC_SUCCESS);
}

/* QPs whose WRs complete within a turn share the memory for send WRs. */
static void test_shared_memory(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp a, b;
    struct rc_wr wr;

    start_pair(&o);
    o.access &= (uint16_t)~QHCA_ACCESS_FLUSH_GLOBAL;
    rc_pair(&node, &o, &a, &b);
    wr = rc_wr(&qp, QHCA_WR_FLUSH, 0, 0);
    wr.num_sge = 0;
    wr.flush_type = QHCA_FLUSH_GLOBAL;
    wr.flush_len = 4096;
    rc_aim(&wr, &node, NODE_MEM / 2);
    rc_post(&qp, &wr);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    /* No trace of the FLUSH is left, which this QP has no right to. */
    wr = rc_wr(&a, QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
    rc_aim(&wr, &node, NODE_MEM / 2);
    rc_post(&a, &wr);
    rc_expect(&a.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK_EQ(g->e->qps->num_swr, 1);
    CHECK(g->e->qps->spare_swr);
    CHECK(!vhca_qp_get(g->e, qp.qpn)->req.swr);
    /* CQEs of bad WRs do not show other QPs' data either. */
    wr = rc_wr(&a, QHCA_WR_RDMA_READ, 0, 100);
    wr.sge[0].lkey ^= 0xff;
    rc_post(&a, &wr);
    CHECK_EQ(le32toh(rc_expect(&a.scq, wr.wr_id,
                               QHCA_WC_LOC_PROT_ERR).byte_len), 100);
    wr = rc_wr(&b, QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 9);
    rc_post(&b, &wr);
    CHECK_EQ(rc_expect(&b.scq, wr.wr_id, QHCA_WC_LOC_LEN_ERR).byte_len, 0);
}

/* A QP that waits for a response keeps the memory until it is destroyed. */
static void test_own_memory(void)
{
    start_pair(&RC_OPTS);
    REQUIRE(rc_set_state(&peer, QHCA_QPS_ERR) == QHCA_OK);
    post_writes(&qp, 1, 100);
    rc_ring(&qp);
    CHECK(vhca_qp_get(g->e, qp.qpn)->req.swr && !g->e->qps->spare_swr);
    post_writes(&peer, 1, 100);
    rc_ring(&peer);
    CHECK_EQ(g->e->qps->num_swr, 1);
    CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    CHECK_EQ(g->e->qps->num_swr, 0);
}

static const struct test tests[] = {
    { "an ACK in the sender's own turn", test_ack_at_once },
    { "an ACK behind the response to a READ", test_ack_behind_answer },
    { "an ACK with a limit of the bandwidth", test_ack_with_limit },
    { "send WRs of many QPs in the same memory", test_shared_memory },
    { "outstanding send WRs keep their memory", test_own_memory },
};

TEST_MAIN(tests)
