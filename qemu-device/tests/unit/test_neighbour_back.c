/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: ACKs that must not cross between two engines, although the
 * requests did.
 */
#include "harness/fixture.h"

/* The peer sends to the MAC of no machine, or of a third one. */
static void another_mac(void)
{
    vhca_qp_get(there.g->e, peer.qpn)->attr.av.dmac[5] = 0x80;
}

/* The peer's machine also has the requester's GID, and sends to itself. */
static void same_gid(void)
{
    uint8_t gid[16], mac[6];

    node_gid(&node, gid, mac);
    CHECK_EQ(gid_set(there.g, 1, gid, mac, node.vlan), QHCA_OK);
}

/* The peer sends from an address that its machine must not send from. */
static void stolen_mac(void)
{
    uint8_t gid[16], mac[6];

    node_gid(&there, gid, mac);
    mac[5] ^= 0x40;
    CHECK_EQ(gid_set(there.g, 0, gid, mac, there.vlan), QHCA_OK);
    there.g->spoofchk = true;
}

static uint8_t write_status(void (*before)(void), bool one_place)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe = { 0 };
    struct rc_wr wr;

    o.retry = 1;
    start_net(&o, one_place);
    before();
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 9000);
    rc_aim(&wr, &there, NODE_MEM / 2);
    rc_post(&qp, &wr);
    net_run(net, 10000000000ull);
    CHECK(cq_poll(&qp.scq, &cqe));
    return cqe.status;
}

static void test_back(void)
{
    static void (*const why[])(void) = {
        another_mac, same_gid, stolen_mac,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(why); i++) {
        CHECK_EQ(write_status(why[i], false), QHCA_WC_RETRY_EXC_ERR);
        CHECK_EQ(write_status(why[i], true), QHCA_WC_RETRY_EXC_ERR);
    }
}

/* Behind the first WQE: neither the next one nor the event can be accessed. */
static void end_of_memory(struct guest *guest, uint64_t addr, size_t len,
                          bool write)
{
    (void)len;
    if (!write && addr == qp.sq.block[0]) {
        guest->bad_from = gbuf_addr(&node.async.buf, 0);
        guest->bad_to = qp.sq.block[0] + 4096;
    }
}

static uint64_t refused_acks(bool one_place)
{
    struct rc_wr wr;

    start_net(&RC_OPTS, one_place);
    g->on_dma = end_of_memory;
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 0);
    rc_aim(&wr, &there, 0);
    rc_put(&qp, &wr);
    rc_put(&qp, &wr);
    rc_ring(&qp);
    net_run(net, 1000000000);
    CHECK_EQ(dev_state(g), QHCA_STATE_FATAL);
    CHECK_EQ(counter(there.g, QHCA_CNT_TX_ACK), 1);
    return counter(g, QHCA_CNT_RX_BAD_STATE);
}

static void test_stops(void)
{
    CHECK_EQ(refused_acks(false), 0);
    CHECK_EQ(refused_acks(true), 0);
}

/* With a limit of the bandwidth there the ACK must wait to be paid for. */
static void test_limit(void)
{
    struct rc_wr wr;

    start_net(&RC_OPTS, true);
    there.g->e->cfg.bandwidth = 1000;
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_aim(&wr, &there, NODE_MEM / 2);
    rc_post(&qp, &wr);
    rc_expect_none(&qp.scq);
    net_run(net, 1000000);
    done(0, QHCA_WC_SUCCESS);
}

/*
 * The receiver's device stops because it cannot write the event of the first
 * message, which has no other error. No ACK of it follows.
 */
static uint8_t first_status(bool one_place)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe = { 0 };
    struct rc_wr wr;

    o.retry = 1;
    start_net(&o, one_place);
    vhca_qp_get(there.g->e, peer.qpn)->state = QHCA_QPS_RTR;
    guest_spoil(there.g, gbuf_addr(&there.async.buf, 0), 4096);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 0);
    rc_post(&qp, &wr);
    net_run(net, 10000000000ull);
    CHECK_EQ(dev_state(there.g), QHCA_STATE_FATAL);
    CHECK(cq_poll(&qp.scq, &cqe));
    return cqe.status;
}

static void test_stops_there(void)
{
    CHECK_EQ(first_status(false), QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(first_status(true), QHCA_WC_RETRY_EXC_ERR);
}

/*
 * The peer's device stops because it cannot write the event of an error, which
 * has to precede the NAK. So it sends no NAK.
 */
static uint8_t refused_status(bool one_place)
{
    struct rc_opts o = RC_OPTS;
    struct qhca_cqe cqe = { 0 };
    struct rc_wr wr;

    o.retry = 1;
    start_net(&o, one_place);
    guest_spoil(there.g, gbuf_addr(&there.async.buf, 0), 4096);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_aim(&wr, &there, NODE_MEM / 2);
    wr.rkey ^= 1;
    rc_post(&qp, &wr);
    net_run(net, 10000000000ull);
    CHECK_EQ(dev_state(there.g), QHCA_STATE_FATAL);
    CHECK_EQ(counter(there.g, QHCA_CNT_TX_PKTS), 0);
    CHECK(cq_poll(&qp.scq, &cqe));
    return cqe.status;
}

static void test_stops_refusing(void)
{
    CHECK_EQ(refused_status(false), QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(refused_status(true), QHCA_WC_RETRY_EXC_ERR);
}

/* The peer, which may receive from an SRQ, has room for a single CQE. */
static void start_small(bool shared, bool one_place)
{
    struct rc_opts o = RC_OPTS;

    o.cq_log = 0;
    o.retry = 1;
    start_net(&o, one_place);
    if (shared) {
        srq = srq_create(&there, there.pdn, 2, o.sges);
        o.srqn = srq.srqn;
        peer = rc_create(&there, &o);
        o.srqn = 0;
        qp = rc_create(&node, &o);
        rc_connect(&qp, &peer);
        srq_fill(&srq, 3, 100);
    }
    for (unsigned i = 0; i < 3 && !shared; i++) {
        rc_recv(&peer, i, 0, 100);
    }
}

/* The CQ is too small for the second completion: no ACK of that message. */
static void lose_completion(bool shared, bool one_place)
{
    static const unsigned status[] = {
        QHCA_WC_SUCCESS, QHCA_WC_RETRY_EXC_ERR, QHCA_WC_WR_FLUSH_ERR,
    };
    struct rc_wr wr;

    start_small(shared, one_place);
    for (unsigned i = 0; i < ARRAY_SIZE(status); i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
        rc_post(&qp, &wr);
        net_run(net, 1000000000);
        done(i, status[i]);
    }
    eq_expect(&there.async, QHCA_EVENT_CQ_ERR, peer.rcq.cqn);
    eq_expect(&there.async, QHCA_EVENT_QP_FATAL, peer.qpn);
    if (shared) {
        eq_expect(&there.async, QHCA_EVENT_LAST_WQE_REACHED, peer.qpn);
    }
    eq_expect_none(&there.async);
}

static void test_lost_completion(void)
{
    for (unsigned i = 0; i < 4; i++) {
        lose_completion(i & 1, i & 2);
    }
}

static const struct test tests[] = {
    { "what the peer sends goes elsewhere", test_back },
    { "a device that stops while its requests cross", test_stops },
    { "a device that stops while requests cross to it", test_stops_there },
    { "a device that stops instead of refusing a request",
      test_stops_refusing },
    { "C-029 a message whose completion is lost", test_lost_completion },
    { "an ACK from a device with a limit of the bandwidth", test_limit },
};

TEST_MAIN(tests)
