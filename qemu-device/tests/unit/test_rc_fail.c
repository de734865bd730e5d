/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: failures around RC queue pairs: completion queues that
 * overrun, local keys, lengths, unreadable rings, packets not from the peer.
 */
#include "harness/debug.h"
#include "harness/scripted.h"
#include "tables.h"

#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define T(code) (4096ull << (code))

/* More QPs than node.async has room for. */
#define MANY    40

/* No new QP can use a failed CQ. */
static void expect_no_new_qp(void)
{
    const struct qhca_create_qp c = {
        .pdn = htole32(node.pdn), .uar = htole32(1), .type = QHCA_QPT_RC,
        .send_cqn = htole32(qp.scq.cqn), .recv_cqn = htole32(qp.rcq.cqn),
    };
    uint32_t qpn;

    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_ERR_STATE);
}

/*
 * A CQ fails, and all its QPs raise an event, which are more events than the
 * asynchronous EQ holds. That must not stop the device.
 */
static void test_overrun_of_many(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp more[MANY];
    unsigned seen = 0;
    struct qhca_eqe eqe;

    o.cq_log = 0;
    start_alone(&o);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_EQ, node.async.eqn), QHCA_OK);
    node.async = eq_create(g, 0, 1, QHCA_EQ_ASYNC);
    for (unsigned i = 0; i < MANY; i++) {
        more[i] = rc_create_shared(&qp, &o);
    }
    post(QHCA_WR_SEND, 8);
    post(QHCA_WR_SEND, 8);
    peer_ack(&qp, PSN + 1);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.scq.cqn);
    for (eq_arm(&node.async); eq_next(&node.async, &eqe); eq_arm(&node.async)) {
        CHECK_EQ(eqe.type, QHCA_EVENT_QP_FATAL);
        seen++;
    }
    CHECK_EQ(seen, MANY + 1);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQ(rc_state(&more[i]), QHCA_QPS_ERR);
    }
    CHECK_EQ(dev_state(g), QHCA_STATE_RUNNING);
}

static void test_overrun(void)
{
    struct rc_opts o = RC_OPTS;

    o.cq_log = 1;
    start_alone(&o);
    rc_recv(&qp, 5, 0, 8);
    for (unsigned i = 0; i < 4; i++) {
        post(QHCA_WR_SEND, 8);
    }
    peer_drain(&qp);
    peer_ack(&qp, PSN + 3);             /* four CQEs for two slots */
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.scq.cqn);      /* C-028 */
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);        /* C-029 */
    no_event();
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    done(0, 0);
    done(1, 0);
    rc_expect_none(&qp.scq);
    rc_expect(&qp.rcq, 5, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(cq_query(&qp.scq).state, QHCA_CQ_ERROR);
    expect_no_new_qp();

    start_alone(&o);            /* overrun by receive completions */
    for (unsigned i = 0; i < 4; i++) {
        struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, 0x222222 + i);

        rc_recv(&qp, i, 0, 8);
        peer_inject(&qp, &p, "x", 1);
    }
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.rcq.cqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    no_event();
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);

    start_alone(&o);            /* overrun by the flush */
    for (unsigned i = 0; i < 4; i++) {
        rc_recv(&qp, i, 0, 8);
    }
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.rcq.cqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    no_event();
}

/*
 * A QP begins anew with a CQ that has failed, which the loop has dealt with. A
 * message is not acknowledged, and the QP ends again.
 */
static void test_failed_before(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.cq_log = 0;
    start_alone(&o);
    rc_recv(&qp, 0, 0, 8);
    rc_recv(&qp, 1, 0, 8);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_CQ_ERR, qp.rcq.cqn);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    qp.rq_pi = 0;
    rc_bring_up(&qp, QHCA_QPS_RTS);
    rc_recv(&qp, 0, 0, 8);
    p = peer_packet(&qp, RC_SEND_ONLY, 0x222222);
    peer_inject(&qp, &p, "x", 1);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    no_event();
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK_EQ(counter(g, QHCA_CNT_TX_ACK), 0);
}

static void test_local_errors(void)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
        QHCA_WR_ATOMIC_FETCH_AND_ADD,
    };
    static const uint8_t status[] = { I_001_RQ, I_002_RQ, I_001_RQ, I_003_RQ };

    for (unsigned i = 0; i < 4 * 4; i++) {
        uint8_t op = ops[i % 4];
        struct rc_wr wr;
        struct gmr mr;

        start_alone(&RC_OPTS);
        wr = rc_wr(&qp, op, 0, 8);
        mr = mr_create(g, i / 4 == 2 ? pd_create(g) : node.pdn, 4096,
                       QHCA_ACCESS_REMOTE_READ);        /* read-only */
        switch (i / 4) {
        case 0:
            wr.sge[0].lkey ^= 1;
            break;
        case 1:
            wr.sge[0].addr = node.mr.addr + NODE_MEM - 7;
            break;
        default:
            wr.sge[0].addr = mr.addr;
            wr.sge[0].lkey = mr.key;
            break;
        }
        rc_post(&qp, &wr);
        if (i / 4 == 3 && op != QHCA_WR_RDMA_READ && i % 4 < 2) {
            CHECK_EQ(peer_drain(&qp), 1);       /* reading is allowed */
        } else {
            done(0, status[i / 4]);
            CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
            CHECK_EQ(peer_drain(&qp), 0);
        }
    }
}

/* F-008: the region is deregistered when half of a message is sent. */
static void test_dereg_midway(void)
{
    struct rc_wr wr;
    struct gmr mr;

    start_alone(&RC_OPTS);
    mr = mr_create(g, node.pdn, 100 * 1024, 0);
    post(QHCA_WR_SEND, 8);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100 * 1024);
    wr.sge[0].addr = mr.addr;
    wr.sge[0].lkey = mr.key;
    rc_do(&qp, &wr);
    CHECK_EQ(peer_drain(&qp), 64);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, mr.key), QHCA_OK);
    peer_ack(&qp, PSN);
    done(0, 0);
    done(1, I_001_RQ);
    CHECK_EQ(peer_drain(&qp), 0);
    CHECK(g->host.deadline == UINT64_MAX);
}

static void test_lengths(void)
{
    struct rc_wr wr;

    start_alone(&RC_OPTS);      /* B-027: 2^32 + 8 in all */
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 8);
    for (unsigned i = 1; i < 3; i++) {
        wr.sge[i] = wr.sge[0];
        wr.sge[i].length = 0x80000000u;
    }
    wr.num_sge = 3;
    rc_post(&qp, &wr);
    done(0, I_032_RQ);

    start_alone(&RC_OPTS);      /* one byte too many */
    wr.sge[0].length = 1;
    wr.num_sge = 2;
    rc_post(&qp, &wr);
    done(0, I_032_RQ);

    start_alone(&RC_OPTS);      /* B-032 */
    post(QHCA_WR_ATOMIC_CMP_AND_SWP, 7);
    done(0, I_032_RQ);

    start_alone(&RC_OPTS);      /* B-054: nowhere to put the old value */
    wr = rc_wr(&qp, QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
    wr.flags |= QHCA_WQE_INLINE;
    wr.inline_len = 8;
    rc_finish(&qp, &wr, QHCA_WC_LOC_QP_OP_ERR);

    start_alone(&RC_OPTS);      /* B-024: five in a queue for four */
    wr.num_sge = 5;
    rc_post(&qp, &wr);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_LOC_QP_OP_ERR);

    start_alone(&RC_OPTS);      /* H-002: the ring is unreadable */
    guest_spoil(g, gbuf_addr(&qp.sq, 0), 4096);
    post(QHCA_WR_SEND, 8);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    rc_expect(&qp.scq, 0, QHCA_WC_WR_FLUSH_ERR);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);

    start_alone(&RC_OPTS);      /* after an outstanding packet */
    guest_spoil(g, gbuf_addr(&qp.sq, 1u << qp.sq_stride), 4096);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    rc_put(&qp, &wr);
    post(QHCA_WR_SEND, 8);
    CHECK_EQ(peer_drain(&qp), 1);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
    done(0, QHCA_WC_WR_FLUSH_ERR);
    rc_expect(&qp.scq, 0, QHCA_WC_WR_FLUSH_ERR);
    guest_advance(g, 10 * T(10));
    CHECK(g->host.deadline == UINT64_MAX);                           /* */
    peer_expect_none(&qp);
    rc_expect_none(&qp.scq);
}

/* ---- packets that are not from the peer ---- */

static void test_strangers(void)
{
    struct roce_packet good, p;
    struct qhca_port_attr port;

    start_alone(&RC_OPTS);
    rc_recv(&qp, 1, 0, 8);
    good = peer_packet(&qp, RC_SEND_ONLY, 0x222222);
    p = good;
    p.sgid[15] = 9;                                             /* D-083 */
    peer_inject(&qp, &p, "x", 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 1);
    p = good;
    p.dgid[15] = 5;
    CHECK_EQ(gid_set(g, 1, p.dgid, p.dmac, p.vlan), QHCA_OK);
    peer_inject(&qp, &p, "x", 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 2);
    p = good;
    p.vlan = 7;
    CHECK_EQ(gid_set(g, 2, p.dgid, p.dmac, p.vlan), QHCA_OK);
    peer_inject(&qp, &p, "x", 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 3);
    p = good;
    p.pkey = 0x8001;                                            /* D-082 */
    peer_inject(&qp, &p, "x", 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_PKEY), 1);
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 1, &port, sizeof(port)), 0);
    CHECK_EQ(le32toh(port.bad_pkey_cntr), 1);
    for (unsigned i = 0; i < 5; i++) {                          /* E-045 */
        static const uint8_t ops[] = { 0x24, 0x64, 0x44, 0xe4, 0xc4 };

        p = good;
        p.opcode = ops[i];
        peer_inject(&qp, &p, NULL, 0);
    }
    p = good;
    p.dest_qp = 0;
    peer_inject(&qp, &p, "x", 1);
    p.dest_qp = 0xffffff;
    peer_inject(&qp, &p, "x", 1);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 7);
    peer_expect_none(&qp);
    CHECK_EQ(le32toh(rc_query(&qp).epsn), 0x222222);
    peer_inject(&qp, &good, "x", 1);
    rc_expect(&qp.rcq, 1, 0);
}

/* G-015: the GID of the QP is removed. */
static void test_gid_gone(void)
{
    start_alone(&RC_OPTS);
    CHECK_EQ(gid_set(g, 0, NULL, NULL, 0), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    guest_advance(g, 8 * T(10));
    peer_expect_none(&qp);
    done(0, QHCA_WC_RETRY_EXC_ERR);
}

/* Frames of others in the loopback FIFO delay a timeout only once. */
static void test_grace(void)
{
    struct rc_opts o = RC_OPTS;
    const uint8_t junk[64] = { 0 };

    o.retry = 0;
    start_alone(&o);
    post(QHCA_WR_SEND, 8);
    for (unsigned i = 0; i < 2; i++) {
        rc_expect_none(&qp.scq);
        g->own_clock = g->host.deadline;
        heap_use(g->heap);
        CHECK(vhca_fifo_push(&g->e->port->loop, junk, sizeof(junk), 1,
                             0));
        heap_use(NULL);
        qhca_host_tick(&g->host, g->own_clock);
    }
    done(0, QHCA_WC_RETRY_EXC_ERR);                             /* D-045 */
}

static const struct test tests[] = {
    { "C-028 C-029 H-001 H-002 I-041 CQ overrun", test_overrun },
    { "C-029 H-002 CQ overrun under many QPs", test_overrun_of_many },
    { "C-029 H-002 a QP begins anew with a CQ that has failed",
      test_failed_before },
    { "I-001 I-002 I-003 local keys", test_local_errors },
    { "I-001 F-008 region deregistered in mid-SEND", test_dereg_midway },
    { "A-100 B-024 B-027 B-032 I-032 H-002 lengths, unreadable ring",
      test_lengths },
    { "D-082 D-083 E-045 packets not from the peer", test_strangers },
    { "G-015 the QP's GID is removed", test_gid_gone },
    { "D-045 timeouts while frames of others loop back", test_grace },
};

TEST_MAIN(tests)
