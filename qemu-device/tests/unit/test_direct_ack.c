/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what one turn of a QP does inside the port, and what has
 * to wait for the turn of another: ACKs, which are packets only then, and
 * responses to READs. test_direct checks what the guest can see of them.
 */
#include "harness/fixture.h"
#include "harness/keys.h"

/* Puts @q in line for a turn, with the WRs that are in its ring. */
static void line_up(const struct rc_qp *q)
{
    vhca_qp_schedule(g->e, vhca_qp_get(g->e, q->qpn));
    vhca_qp_get(g->e, q->qpn)->sq.pi = q->sq_pi;
}

/* Gives a turn to the QP that is the first in line, and does nothing else. */
static void next_turn(void)
{
    g->e->limit = g->e->spent + 1000;
    heap_use(g->heap);
    vhca_qp_turn(g->e);
    heap_use(NULL);
}

static void turn(void)
{
    line_up(&qp);
    next_turn();
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

/* Packets are work even if no memory is accessed for them, and so is an ACK. */
static void test_charged(void)
{
    struct rc_wr wr;
    uint64_t dma;
    unsigned spent;

    start_pair(&RC_OPTS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 0);
    wr.flags = 0;
    rc_put(&qp, &wr);
    rc_put(&qp, &wr);
    dma = g->cost.dma;
    spent = g->e->spent;
    turn();
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 3);
    CHECK(g->e->spent - spent >= g->cost.dma - dma + 3);
}

/* A message has arrived, and is counted, even if its key is not invalidated. */
static void test_bad_key_counted(void)
{
    static const struct {
        uint8_t opcode;
        unsigned packets;
    } rows[] = {
        { QHCA_WR_SEND_WITH_INV, 5 }, { QHCA_WR_RDMA_READ_WITH_INV, 6 },
    };
    struct rc_opts o = RC_OPTS;

    o.qp_flags = KERNEL_QP;
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
        struct rc_wr wr;

        start_pair(&o);
        g->e->cfg.frames = i & 1;
        rc_recv(&peer, 1, NODE_MEM / 2, 8192);
        wr = rc_wr(&qp, rows[i / 2].opcode, 0, 5 * 1024);
        wr.imm = htole32(0x1234);
        rc_aim(&wr, &node, NODE_MEM / 2);
        rc_do(&qp, &wr);
        CHECK(rc_state(&qp) == QHCA_QPS_ERR || rc_state(&peer) == QHCA_QPS_ERR);
        CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), rows[i / 2].packets);
        CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), rows[i / 2].packets);
    }
}

/* Only the packets that fit the window cross; the others wait for the ACK. */
static void test_window(void)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 1;
    start_pair(&o);
    post_writes(&qp, 2, 40 * 256);
    turn();
    CHECK_EQ(peer_responder()->epsn, o.sq_psn + VHCA_WINDOW);
    done(0, QHCA_WC_SUCCESS);
    rc_expect_none(&qp.scq);
    qhca_engine_run(g->e, *g->clock);
    done(1, QHCA_WC_SUCCESS);
}

/* The turn ends with a WQE that cannot be read: the QP takes no ACK in ERR. */
static void test_ack_in_err(void)
{
    for (unsigned frames = 0; frames < 2; frames++) {
        start_pair(&RC_OPTS);
        g->e->cfg.frames = frames;
        post_writes(&qp, 2, 100);
        guest_spoil(g, qp.sq.block[0] + (1ull << qp.sq_stride), 1);
        rc_ring(&qp);
        guest_settle(g);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        CHECK_EQ(counter(g, QHCA_CNT_TX_ACK), 1);
        CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_STATE), 1);
        CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS), 2);
        CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 1);
    }
}

/* A NAK says what the ACK that is owed would have said. */
static void test_nak_instead(void)
{
    struct rc_wr wr;

    start_pair(&RC_OPTS);
    post_writes(&qp, 1, 100);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_put(&qp, &wr);           /* of no key */
    rc_ring(&qp);
    done(0, QHCA_WC_SUCCESS);
    done(1, QHCA_WC_REM_ACCESS_ERR);
    CHECK_EQ(counter(g, QHCA_CNT_TX_ACK), 0);
}

/* A READ response that comes when the QP has failed changes no memory. */
static void test_response_in_err(void)
{
    for (unsigned frames = 0; frames < 2; frames++) {
        struct rc_wr wr;

        start_pair(&RC_OPTS);
        g->e->cfg.frames = frames;
        memset(guest_ptr(g, node.mr.addr + NODE_MEM / 2, 4096), 0x55, 4096);
        wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, 4096);
        rc_aim(&wr, &node, NODE_MEM / 2);
        rc_put(&qp, &wr);
        turn();
        heap_use(g->heap);
        vhca_qp_error(g->e, vhca_qp_get(g->e, qp.qpn), 0);
        heap_use(NULL);
        qhca_engine_run(g->e, *g->clock);
        done(0, QHCA_WC_WR_FLUSH_ERR);
        CHECK(memory_is(0, 4096, 0));
        CHECK(counter(g, QHCA_CNT_RX_BAD_STATE));
    }
}

/* Which the device has written first: an event, or a CQE of @qp. */
static char first_written;

static void note_writes(struct guest *guest, uint64_t addr, size_t len,
                        bool write)
{
    (void)guest;
    (void)len;
    if (!write || first_written) {
        return;
    }
    if (addr == gbuf_addr(&node.async.buf, 0)) {
        first_written = 'E';
    } else if (addr == gbuf_addr(&qp.scq.buf, 0)) {
        first_written = 'C';
    }
}

/* D-026: the peer has its event before the requester hears of the NAK. */
static void test_event_first(void)
{
    struct rc_wr wr;

    start_pair(&RC_OPTS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_aim(&wr, &node, NODE_MEM / 2);
    wr.rkey ^= 1;
    first_written = 0;
    g->on_dma = note_writes;
    rc_post(&qp, &wr);
    done(0, QHCA_WC_REM_ACCESS_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_ACCESS_ERR, peer.qpn);
    CHECK_EQ(first_written, 'E');
}

/*
 * D-069: the owner has its turn between the requester and the responder. The
 * owner registers the region again, with the same key, not to be read any more.
 */
static void test_right_withdrawn(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp owner, unused;
    struct rc_wr wr;
    struct fast f;

    o.qp_flags = KERNEL_QP;
    start_pair(&o);
    rc_pair(&node, &o, &owner, &unused);
    f = fast_create(&node, 4, 1);
    wr = wr_reg(&owner, &f, f.key, 0, QHCA_ACCESS_REMOTE_READ);
    rc_finish(&owner, &wr, QHCA_WC_SUCCESS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, 4096);
    wr.raddr = 0;
    wr.rkey = f.key;
    rc_put(&qp, &wr);
    wr = wr_inv(&owner, QHCA_WR_LOCAL_INV, f.key);
    rc_put(&owner, &wr);
    wr = wr_reg(&owner, &f, f.key, 0, QHCA_ACCESS_REMOTE_WRITE |
                                      QHCA_ACCESS_LOCAL_WRITE);
    rc_put(&owner, &wr);
    line_up(&qp);
    line_up(&owner);
    next_turn();
    CHECK(peer_responder()->q_tail != peer_responder()->q_head);
    next_turn();
    rc_expect(&owner.scq, 0x1001, QHCA_WC_SUCCESS);
    rc_expect(&owner.scq, 0x1002, QHCA_WC_SUCCESS);
    qhca_engine_run(g->e, *g->clock);
    done(0, QHCA_WC_REM_ACCESS_ERR);
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
    { "what crosses is charged as work", test_charged },
    { "packets of a message whose key is bad", test_bad_key_counted },
    { "no more than a window crosses before the ACK", test_window },
    { "an ACK for a QP that has failed in its turn", test_ack_in_err },
    { "a NAK in place of the ACK before it", test_nak_instead },
    { "a response for a QP that has failed", test_response_in_err },
    { "D-026 the event of a NAK comes before the NAK", test_event_first },
    { "D-069 a right withdrawn between READ and response",
      test_right_withdrawn },
    { "send WRs of many QPs in the same memory", test_shared_memory },
    { "outstanding send WRs keep their memory", test_own_memory },
};

TEST_MAIN(tests)
