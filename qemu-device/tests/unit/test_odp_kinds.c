/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: regions without pages under other services than RC, shared
 * receive queues, windows, and QPs that are drained or stopped.
 */
#include "harness/flows.h"
#include "harness/keys.h"
#include "harness/odp.h"
#include "harness/xrc.h"

#define HALF    (NODE_MEM / 2)
#define GRH     40

static struct odp odp;

static void start_odp(uint8_t type)
{
    struct rc_opts o = opts_of(type);

    start_pair(&o);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
}

static void recv_odp(struct rc_qp *q, uint64_t wr_id, uint32_t len)
{
    struct qhca_seg_le sge = { node.mr.addr + HALF, len, odp.key };

    rc_recv_raw(q, wr_id, 1, &sge);
}

/* A SEND of @len bytes, whose pages are absent. */
static struct rc_wr send_odp(uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 3, len);

    wr.sge[0].lkey = odp.key;
    return wr;
}

/* ---- unreliable services: the sender waits, the receiver loses ---- */

static void unreliable_sender(void)
{
    static const uint8_t types[] = { QHCA_QPT_UC, QHCA_QPT_UD };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_wr wr;

        start_odp(types[i]);
        guest_fill(g, node.mr.addr + 3, 1000, i);
        rc_recv(&peer, 7, HALF, 2000);
        wr = send_odp(1000);
        rc_post(&qp, &wr);
        odp_run(&odp, &node);
        CHECK_EQ(odp.served, 1);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
        rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
        CHECK(guest_is_filled(g, node.mr.addr + HALF +
                                 (types[i] == QHCA_QPT_UD ? GRH : 0), 1000, i));
    }
}

/* Denied, the WR fails as if its key were wrong: the queue goes to SQE. */
static void unreliable_denied(void)
{
    static const uint8_t types[] = { QHCA_QPT_UC, QHCA_QPT_UD };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        struct rc_wr wr;

        start_odp(types[i]);
        odp.deny = true;
        wr = send_odp(1000);
        rc_post(&qp, &wr);
        odp_run(&odp, &node);
        rc_expect(&qp.scq, wr.wr_id, QHCA_WC_LOC_PROT_ERR);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 100);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    }
}

static void unreliable_receiver(void)
{
    static const uint8_t types[] = { QHCA_QPT_UC, QHCA_QPT_UD };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        uint64_t refused;
        struct rc_wr wr;

        start_odp(types[i]);
        refused = counter(g, QHCA_CNT_RX_REFUSED);
        recv_odp(&peer, 7, 2000);
        wr = rc_wr(&qp, QHCA_WR_SEND, 3, 1000);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        rc_expect_none(&peer.rcq);
        CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), refused + 1);
        odp_run(&odp, &node);
        CHECK_EQ(odp.served, 1);
        rc_expect_none(&peer.rcq);
        wr = rc_wr(&qp, QHCA_WR_SEND, 3, 1000);
        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
        rc_expect(&peer.rcq, 7, QHCA_WC_SUCCESS);
    }
}

/* However many datagrams are lost, the driver gets one event at a time. */
static void flood(void)
{
    struct qhca_eqe eqe;
    unsigned events = 0;

    start_odp(QHCA_QPT_UD);
    recv_odp(&peer, 7, 2000);
    for (unsigned i = 0; i < 200; i++) {
        struct rc_wr wr = rc_wr(&qp, QHCA_WR_SEND, 3, 100);

        rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    }
    while (eq_next(&node.async, &eqe)) {
        events++;
    }
    CHECK_EQ(events, 1);
    CHECK_EQ(counter(g, QHCA_CNT_PAGE_FAULT), 200);
}

/* ---- Ethernet frames ---- */

/* A frame waits where it is sent from, and is lost where it is to go. */
static void frames(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_seg_le sge;
    struct qhca_flow r;
    struct rc_wr wr;

    start_node();
    qp = flow_qp(&node);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    r = flow_rule(&qp);
    flow_add(g, &r);
    sge = (struct qhca_seg_le) { node.mr.addr + FLOW_RECV, 1600, odp.key };
    rc_recv_raw(&qp, 100, 1, &sge);
    memcpy(guest_ptr(g, node.mr.addr, f.len), f.data, f.len);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, (uint32_t)f.len);
    wr.sge[0].lkey = odp.key;
    rc_post(&qp, &wr);
    guest_run(g);
    rc_expect_none(&qp.scq);
    odp_run(&odp, &node);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK(flow_none(&qp));
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), 1);
    CHECK_EQ(odp.served, 2);
    rc_finish(&qp, &wr, QHCA_WC_SUCCESS);
    CHECK(flow_got(&qp, 0, &f));
    CHECK_EQ(counter(g, QHCA_CNT_PAGE_FAULT), 2);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

/* ---- shared receive queues ---- */

/* A datagram that is lost gives the SRQ its WR back. */
static void srq_datagram(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct qhca_seg_le sge = { 0 };
    struct qhca_srqc c;

    start_node();
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    srq = srq_create(&node, node.pdn, 3, 2);
    o.srqn = srq.srqn;
    qp = rc_scripted(&node, &o, &far);
    sge = (struct qhca_seg_le) { node.mr.addr, 500, odp.key };
    srq_put(&srq, 9, 1, &sge);
    srq_ring(&srq);
    for (unsigned i = 0; i < 2; i++) {
        peer_send(&qp, SVC_UD | RC_SEND_ONLY, 99 + i, "a datagram!", 12);
        CHECK_EQ(srq_query(&srq, &c), QHCA_OK);
        CHECK_EQ(le32toh(c.ci), i);
        CHECK_EQ(odp_serve(&odp, &node), 1 - i);
    }
    rc_expect(&qp.rcq, 9, QHCA_WC_SUCCESS);
}

static void srq_reliable(void)
{
    struct qhca_seg_le sge;
    struct rc_wr wr;

    start_shared(3, 2, 2, &RC_OPTS);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    sge = (struct qhca_seg_le) { node.mr.addr + HALF, 9000, odp.key };
    srq_put(&srq, 9, 1, &sge);
    srq_ring(&srq);
    guest_fill(g, node.mr.addr, 8000, 4);
    wr = rc_wr(&tx[0], QHCA_WR_SEND, 0, 8000);
    rc_post(&tx[0], &wr);
    odp_run(&odp, &node);
    CHECK(odp.served >= 1);
    rc_expect(&tx[0].scq, wr.wr_id, QHCA_WC_SUCCESS);
    rc_expect(&rx[0].rcq, 9, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, node.mr.addr + HALF, 8000, 4));
}

/* The key is of the SRQ's PD. */
static void xrc(void)
{
    static const uint8_t ops[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
    };
    struct xrc *x = xrc_loop();
    struct qhca_seg_le sge;

    odp = odp_create(g, x->pdn[1], x->mr[1].addr, 4096);
    sge = (struct qhca_seg_le) { x->mr[1].addr, 4096, odp.key };
    srq_put(&x->srq[1], 9, 1, &sge);
    srq_ring(&x->srq[1]);
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        struct rc_wr wr = xrc_wr(x, 1, ops[i], 3000);

        wr.rkey = odp.key;
        odp.served = 0;
        CHECK_EQ(odp_clear(&odp, 0, 1), QHCA_OK);
        rc_post(&x->ini, &wr);
        odp_run(&odp, &node);
        CHECK_EQ(odp.served, 1);
        rc_expect(&x->ini.scq, wr.wr_id, QHCA_WC_SUCCESS);
    }
}

/* ---- windows ---- */

/* A fault of a window names the region behind it. */
static void window(void)
{
    struct qhca_page_fault f;
    uint32_t key;
    struct rc_wr wr;

    start_odp(QHCA_QPT_RC);
    key = mw_create(g, node.pdn, QHCA_MW_2B);
    wr = wr_bind(&peer, next_key(key), HALF, 50000,
                 QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_ZERO_BASED);
    wr.mr_key = odp.key;
    rc_finish(&peer, &wr, QHCA_WC_SUCCESS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 20000);
    guest_fill(g, node.mr.addr, 20000, 8);
    wr.raddr = 5000;
    wr.rkey = next_key(key);
    rc_post(&qp, &wr);
    guest_run(g);
    REQUIRE(odp_fault(g, peer.qpn, QHCA_PAGE_REQUEST, &f));
    CHECK_EQ(le32toh(f.key), odp.key);
    CHECK_EQ(le64toh(f.first), (HALF + 5000) / QHCA_PAGE_SIZE);
    CHECK_EQ(le64toh(f.num), 6);
    odp_run(&odp, &node);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    CHECK(guest_is_filled(g, node.mr.addr + HALF + 5000, 20000, 8));
}

/* ---- SQD ---- */

/* SQD puts a WR back that waits for its first page; it runs after RTS. */
static void drained(void)
{
    struct rc_wr first, second;
    struct qhca_qp_attr a;

    start_odp(QHCA_QPT_RC);
    first = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_aim(&first, &node, HALF);
    rc_finish(&qp, &first, QHCA_WC_SUCCESS);
    second = rc_wr(&qp, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_aim(&second, &node, HALF);
    second.sge[0].lkey = odp.key;
    rc_post(&qp, &second);
    guest_run(g);
    a = rc_attr(&qp);
    a.state = QHCA_QPS_SQD;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_STATE), QHCA_OK);
    CHECK(!rc_query(&qp).sq_draining);
    odp_run(&odp, &node);
    rc_expect_none(&qp.scq);
    a.state = QHCA_QPS_RTS;
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_STATE), QHCA_OK);
    odp_run(&odp, &node);
    rc_expect(&qp.scq, second.wr_id, QHCA_WC_SUCCESS);
}

/* ---- other QPs ---- */

/* A QP that waits holds up no other, and answers wake no other. */
static void neighbours(void)
{
    struct rc_qp other[2];
    struct qhca_page_fault f;
    struct rc_wr wr;

    start_odp(QHCA_QPT_RC);
    rc_pair(&node, &RC_OPTS, &other[0], &other[1]);
    rc_recv(&peer, 7, HALF, 100);
    wr = send_odp(100);
    rc_post(&qp, &wr);
    for (unsigned i = 0; i < 20; i++) {
        struct rc_wr w = rc_wr(&other[0], QHCA_WR_RDMA_WRITE, 0, 60000);

        rc_aim(&w, &node, HALF);
        rc_finish(&other[0], &w, QHCA_WC_SUCCESS);
    }
    REQUIRE(odp_fault(g, qp.qpn, QHCA_PAGE_SEND, &f));
    CHECK_EQ(odp_resume(g, other[0].qpn, QHCA_PAGE_SEND, le32toh(f.sn), 0),
             QHCA_ERR_STATE);
    odp_run(&odp, &node);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
}

/* Deregistration ends the wait: the key names nothing any more. */
static void deregistered(void)
{
    struct rc_wr wr;

    start_odp(QHCA_QPT_RC);
    wr = send_odp(100);
    rc_post(&qp, &wr);
    guest_run(g);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, odp.key), QHCA_OK);
    guest_advance(g, VHCA_PAGE_WAIT_NS);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_LOC_PROT_ERR);
}

/* ---- what leaves, as the peer sees it ---- */

/* A READ into such a region asks for at most VHCA_PAGED_PIECE bytes a time. */
static void long_read(void)
{
    const uint32_t half = VHCA_PAGED_PIECE / 2;
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    odp = odp_create(g, node.pdn, node.mr.addr, NODE_MEM);
    odp_set(&odp, 0, odp.num, ODP_ALL);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, half);
    wr.num_sge = 4;
    for (unsigned i = 0; i < wr.num_sge; i++) {
        wr.sge[i] = (struct qhca_seg_le) { node.mr.addr, half, odp.key };
    }
    rc_post(&qp, &wr);
    CHECK_EQ(peer_expect(&qp, RC_READ_REQUEST, RC_OPTS.sq_psn).dma_len,
             VHCA_PAGED_PIECE);
}

/* Nothing is asked for while there is no page for it. */
static void read_waits(void)
{
    struct qhca_page_fault f;
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, 3000);
    CHECK_EQ(odp_reg(g, node.pdn, node.mr.addr, NODE_MEM, 0, 12,
                     QHCA_ACCESS_LOCAL_WRITE, &wr.sge[0].lkey), QHCA_OK);
    rc_post(&qp, &wr);
    peer_expect_none(&qp);
    CHECK(odp_fault(g, qp.qpn, QHCA_PAGE_SEND, &f));
}

static const struct test tests[] = {
    { "UC and UD: the sender waits for its page", unreliable_sender },
    { "UC and UD: the sender's page is denied", unreliable_denied },
    { "UC and UD: a message to an absent page is lost", unreliable_receiver },
    { "UD: many messages to an absent page are one event", flood },
    { "RAW: a frame waits for its page, or is lost", frames },
    { "UD: a lost message gives the SRQ its receive WR back", srq_datagram },
    { "a message into an SRQ waits", srq_reliable },
    { "XRC: pages of the SRQ's region", xrc },
    { "a window on a region without pages", window },
    { "READs that are long", long_read },
    { "a READ waits for its pages", read_waits },
    { "SQD while a WR waits", drained },
    { "a QP that waits holds up no other", neighbours },
    { "the region is deregistered while a WR waits", deregistered },
};

TEST_MAIN(tests)
