/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs of type RAW: they send and receive Ethernet frames.
 */
#include "harness/flows.h"
#include "harness/snapshot.h"
#include "harness/srq.h"

static const uint8_t far_mac[6] = { 0x52, 0x54, 0, 9, 9, 9 };
static const uint8_t group[6] = { 0x01, 0, 0x5e, 1, 1, 1 };

static struct node n;
static struct rc_qp q;

static void start(void)
{
    n = node_new(NULL, 1);
    port_enable(n.g, test_mac, 0, 1500);
    q = flow_qp(&n);
}

/* The last frame that left for the network is @f. */
static bool sent(const struct frame *f)
{
    const struct sent *s = &n.g->sent[n.g->num_sent - 1];

    return n.g->num_sent && s->len == f->len &&
           !memcmp(s->data, f->data, f->len);
}

static void sending(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 100);
    struct qhca_cqe cqe;

    start();
    cqe = flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, QHCA_CQE_SEND);
    CHECK_EQ(n.g->num_sent, 1);
    CHECK(sent(&f));
    f = udp_frame(far_mac, 1, 2, 7, 1500 - 28);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    frame_add_vlan(&f, 5);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    CHECK_EQ(n.g->num_sent, 3);
    CHECK_EQ(counter(n.g, QHCA_CNT_ETH_TX_PKTS), 3);
    CHECK_EQ(counter(n.g, QHCA_CNT_TX_PKTS), 0);
}

static void short_frames(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 1);
    struct frame least = f;

    start();
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    f.len = 60;
    CHECK(sent(&f));
    least.len = 14;
    flow_send(&q, &least, 0, QHCA_WC_SUCCESS);
    memset(least.data + 14, 0, 46);
    least.len = 60;
    CHECK(sent(&least));
}

/* A send WR that breaks a rule ends in SQE, and the QP goes on after that. */
static void bad_frame(const struct frame *f, unsigned status)
{
    unsigned before = n.g->num_sent;

    flow_send(&q, f, 0, status);
    CHECK_EQ(n.g->num_sent, before);
    CHECK_EQ(rc_state(&q), QHCA_QPS_SQE);
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_RTS), QHCA_OK);
}

static void bad_frames(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 1500 - 27);
    struct rc_wr wr;

    start();
    bad_frame(&f, QHCA_WC_LOC_LEN_ERR);
    f.len = 13;
    bad_frame(&f, QHCA_WC_LOC_LEN_ERR);
    f.len = 0;
    bad_frame(&f, QHCA_WC_LOC_LEN_ERR);
    f = udp_frame(far_mac, 1, 2, 4791, 100);    /* speaks for a QP */
    bad_frame(&f, QHCA_WC_LOC_QP_OP_ERR);
    f = udp_frame(far_mac, 3, 2, 4791, 100);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    wr = rc_wr(&q, QHCA_WR_RDMA_WRITE, 0, 100);
    rc_finish(&q, &wr, QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_RTS), QHCA_OK);
    wr = rc_wr(&q, QHCA_WR_SEND, 0, 100);
    wr.sge[0].lkey ^= 1;
    rc_finish(&q, &wr, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(rc_set_state(&q, QHCA_QPS_RTS), QHCA_OK);
    wr = rc_wr(&q, QHCA_WR_SEND, 0, 1u << 20);
    rc_finish(&q, &wr, QHCA_WC_LOC_LEN_ERR);
    CHECK_EQ(n.g->num_sent, 1);
}

/* Checksums are filled in, and right: those that udp_frame() has. */
static void checksums(void)
{
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    struct frame good[] = {
        udp_frame(far_mac, 1, 2, 7, 101), udp6_frame(far_mac, v6, 7, 100),
        udp_frame(far_mac, 1, 2, 7, 100),
    };

    start();
    frame_add_vlan(&good[2], 3);
    for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
        size_t ip = i == 2 ? 18 : 14, l4 = i == 1 ? 54 : ip + 20;
        struct frame f = good[i];

        memset(f.data + l4 + 6, i ? 0xff : 0, 2);
        if (i != 1) {
            memset(f.data + ip + 10, 0x55, 2);
        }
        flow_send(&q, &f, QHCA_WQE_CSUM, QHCA_WC_SUCCESS);
        CHECK(sent(&good[i]));
        flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
        CHECK(sent(&f));
    }
}

/* A packet that has no checksums, or is cut short, is sent as it is. */
static void no_checksums(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 100);

    start();
    f.data[13] = 6;             /* ARP */
    flow_send(&q, &f, QHCA_WQE_CSUM, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    f.data[13] = 0;
    f.data[14] = 0x4f;          /* options up to the end, and beyond */
    f.len = 60;
    flow_send(&q, &f, QHCA_WQE_CSUM, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    f.len = 33;
    flow_send(&q, &f, QHCA_WQE_CSUM, QHCA_WC_SUCCESS);
    CHECK_EQ(n.g->num_sent, 3);
    CHECK(!memcmp(n.g->sent[2].data, f.data, 33));
}

static void receiving(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    struct qhca_cqe cqe;

    start();
    r = flow_rule(&q);
    r.tag = htole32(0xabcdef);
    flow_add(n.g, &r);
    flow_recv(&q, 0, 1600);
    flow_recv(&q, 1, 1600);
    guest_rx(n.g, f.data, f.len);
    REQUIRE(cq_poll(&q.rcq, &cqe));
    CHECK_EQ(le32toh(cqe.byte_len), f.len);
    CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_CSUM_OK);
    CHECK_EQ(le32toh(cqe.flow_tag), 0xabcdef);
    f.data[40] ^= 1;            /* in front of a checksum that is wrong now */
    guest_rx(n.g, f.data, f.len);
    REQUIRE(cq_poll(&q.rcq, &cqe));
    CHECK_EQ(le16toh(cqe.flags), 0);
    CHECK_EQ(counter(n.g, QHCA_CNT_ETH_RX_PKTS), 2);
    CHECK_EQ(counter(n.g, QHCA_CNT_RX_PKTS), 0);
}

/* A tag stays in the frame. */
static void tagged(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 1400);
    struct qhca_flow r;

    start();
    frame_add_vlan(&f, 0x2005);
    r = flow_rule(&q);
    flow_add(n.g, &r);
    flow_recv(&q, 0, 1600);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&q, 0, &f));
}

static void no_buffer(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;

    start();
    r = flow_rule(&q);
    flow_add(n.g, &r);
    guest_rx(n.g, f.data, f.len);
    CHECK_EQ(counter(n.g, QHCA_CNT_RX_REFUSED), 1);
    flow_recv(&q, 0, (uint32_t)f.len - 1);      /* too small, so it stays */
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_none(&q));
    CHECK_EQ(counter(n.g, QHCA_CNT_RX_REFUSED), 2);
    f.len--;
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&q, 0, &f));
    CHECK_EQ(rc_state(&q), QHCA_QPS_RTS);
}

static void bad_buffer(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_seg_le sge;
    struct qhca_flow r;

    start();
    r = flow_rule(&q);
    flow_add(n.g, &r);
    sge = (struct qhca_seg_le) { n.mr.addr, 1600, n.mr.key ^ 1 };
    rc_recv_raw(&q, 5, 1, &sge);
    guest_rx(n.g, f.data, f.len);
    rc_expect(&q.rcq, 5, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(rc_state(&q), QHCA_QPS_ERR);
    guest_rx(n.g, f.data, f.len);
    CHECK_EQ(counter(n.g, QHCA_CNT_RX_BAD_STATE), 1);
}

/* Frames are taken from RTR on. */
static void states(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    struct rc_opts o = RC_OPTS;
    struct rc_qp p;

    start();
    o.type = QHCA_QPT_RAW;
    p = rc_create(&n, &o);
    r = flow_rule(&p);
    flow_add(n.g, &r);
    guest_rx(n.g, f.data, f.len);
    rc_bring_up(&p, QHCA_QPS_INIT);
    flow_recv(&p, 0, 1600);
    flow_recv(&p, 1, 1600);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_none(&p));
    CHECK_EQ(counter(n.g, QHCA_CNT_RX_BAD_STATE), 2);
    CHECK_EQ(rc_set_state(&p, QHCA_QPS_RTR), QHCA_OK);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&p, 0, &f));
    CHECK_EQ(rc_set_state(&p, QHCA_QPS_RTS), QHCA_OK);
    CHECK_EQ(rc_drain(&p), QHCA_OK);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&p, 1, &f));
    CHECK_EQ(rc_set_state(&p, QHCA_QPS_RTS), QHCA_OK);
    CHECK_EQ(rc_set_state(&p, QHCA_QPS_RESET), QHCA_OK);
    CHECK_EQ(rc_destroy(&p), QHCA_ERR_BUSY);    /* the rule names it */
}

/* RoCE packets are none of its business. */
static void no_packets(void)
{
    static const uint8_t service[] = { 0, 0x20, 0x60, 0xa0, 0xc0, 0x80 };

    start();
    rc_set_peer(&q, &n, 0x77);
    flow_recv(&q, 0, 1600);
    for (unsigned i = 0; i < sizeof(service); i++) {
        peer_send(&q, service[i] | RC_SEND_ONLY, 0, "abcd", 4);
    }
    CHECK(flow_none(&q));
    CHECK_EQ(n.g->num_sent, 0);
    CHECK_EQ(rc_state(&q), QHCA_QPS_RTS);
}

/* A frame for a rule of the port does not leave it, unless it is to a group. */
static void to_itself(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 100);
    struct rc_qp other;
    struct qhca_flow r;

    start();
    other = flow_qp(&n);
    r = flow_rule(&other);
    flow_match_udp(&r, 7);
    flow_add(n.g, &r);
    flow_recv(&other, 0, 1600);
    flow_recv(&other, 1, 1600);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(flow_got(&other, 0, &f));
    CHECK_EQ(n.g->num_sent, 0);
    f = udp_frame(group, 1, 2, 7, 100);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(flow_got(&other, 1, &f));
    CHECK(sent(&f));
    f = udp_frame(far_mac, 1, 2, 8, 100);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(sent(&f));
    CHECK(flow_none(&other));
}

/* A frame that looks like one of a peer reaches only who has a rule for it. */
static void no_spoofing(void)
{
    struct frame f = udp_frame(test_mac, 2, 1, 4791, 100);
    struct rc_opts o = RC_OPTS;
    struct qhca_flow r;
    struct rc_qp ud;

    start();
    o.type = QHCA_QPT_UD;
    ud = rc_create(&n, &o);
    rc_bring_up(&ud, QHCA_QPS_RTS);
    rc_recv(&ud, 1, 0, 1000);
    r = flow_rule(&q);
    flow_match_dmac(&r, &f);
    flow_add(n.g, &r);
    flow_recv(&q, 0, 1600);
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK(flow_got(&q, 0, &f));
    rc_expect_none(&ud.rcq);
    /* From the network it is RoCE, and no rule is asked. */
    flow_recv(&q, 1, 1600);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_none(&q));
}

/* Two QPs with an SRQ: a WR that is too small fails, and frames go on. */
static void shared(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct rc_opts o = RC_OPTS;
    struct qhca_flow r;
    struct qhca_cqe cqe;
    struct gsrq srq;
    struct rc_qp to[2];

    start();
    srq = srq_create(&n, n.pdn, 4, 1);
    o.type = QHCA_QPT_RAW;
    o.srqn = srq.srqn;
    for (unsigned i = 0; i < 2; i++) {
        to[i] = rc_create(&n, &o);
        rc_bring_up(&to[i], QHCA_QPS_RTR);
        r = flow_rule(&to[i]);
        flow_match_udp(&r, 7 + i);
        flow_add(n.g, &r);
    }
    srq_post(&srq, 100, FLOW_RECV, (uint32_t)f.len - 1);
    srq_post(&srq, 101, FLOW_RECV + FLOW_STEP, (uint32_t)f.len);
    srq_post(&srq, 102, FLOW_RECV + 2 * FLOW_STEP, (uint32_t)f.len);
    guest_rx(n.g, f.data, f.len);
    REQUIRE(cq_poll(&to[0].rcq, &cqe));
    CHECK_EQ(le64toh(cqe.wr_id), 100);
    CHECK_EQ(cqe.status, QHCA_WC_LOC_LEN_ERR);
    CHECK_EQ(rc_state(&to[0]), QHCA_QPS_RTR);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&to[0], 1, &f));
    f = udp_frame(test_mac, 1, 2, 8, 100);
    snapshot_cycle(n.g);
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_got(&to[1], 2, &f));
    guest_rx(n.g, f.data, f.len);
    CHECK(flow_none(&to[0]) && flow_none(&to[1]));
    CHECK_EQ(srq_destroy(&srq), QHCA_ERR_BUSY);
    CHECK_EQ(rc_set_state(&to[1], QHCA_QPS_ERR), QHCA_OK);
    eq_expect(&n.async, QHCA_EVENT_LAST_WQE_REACHED, to[1].qpn);
}

static void blocked(void)
{
    struct frame f = udp_frame(far_mac, 1, 2, 7, 100);
    struct rc_wr wr;

    start();
    n.g->net_blocked = true;
    memcpy(guest_ptr(n.g, n.mr.addr, f.len), f.data, f.len);
    for (unsigned i = 0; i < 40; i++) {
        wr = rc_wr(&q, QHCA_WR_SEND, 0, (uint32_t)f.len);
        rc_put(&q, &wr);
    }
    rc_ring(&q);
    guest_settle(n.g);
    CHECK_EQ(n.g->num_sent, 0);
    snapshot_cycle(n.g);
    n.g->net_blocked = false;
    qhca_engine_tx_ready(n.g->e, *n.g->clock);
    guest_settle(n.g);
    CHECK_EQ(n.g->num_sent, 40);
    CHECK(sent(&f));
}

/* A QP sends many frames in a turn; the first QP's frames fill the FIFO. */
static void turns(void)
{
    struct rc_qp qps[3];
    unsigned changes = 0;

    start();
    n.g->net_blocked = true;
    for (unsigned i = 0; i < ARRAY_SIZE(qps); i++) {
        struct frame f = udp_frame(far_mac, 1, 2, i, 100);
        struct rc_wr wr;

        qps[i] = flow_qp(&n);
        memcpy(guest_ptr(n.g, n.mr.addr + i * FLOW_STEP, f.len), f.data, f.len);
        for (unsigned k = 0; k < 60; k++) {
            wr = rc_wr(&qps[i], QHCA_WR_SEND, i * FLOW_STEP, (uint32_t)f.len);
            rc_put(&qps[i], &wr);
        }
        rc_ring(&qps[i]);
    }
    guest_unblock(n.g);
    CHECK_EQ(n.g->num_sent, 180);
    for (unsigned k = 1; k < 180; k++) {
        changes += n.g->sent[k].data[37] != n.g->sent[k - 1].data[37];
    }
    CHECK(changes < 10);
}

static const struct test tests[] = {
    { "frames are sent as they are", sending },
    { "short frames are padded", short_frames },
    { "frames that cannot be sent", bad_frames },
    { "checksums are filled in", checksums },
    { "nothing to fill in", no_checksums },
    { "frames are received", receiving },
    { "a tag stays where it is", tagged },
    { "no buffer, or too small", no_buffer },
    { "a buffer that cannot be written", bad_buffer },
    { "states", states },
    { "RoCE packets are refused", no_packets },
    { "frames to the port itself", to_itself },
    { "no frame speaks for a peer", no_spoofing },
    { "receive WRs of an SRQ", shared },
    { "a network that takes nothing", blocked },
    { "the turns of QPs", turns },
};

TEST_MAIN(tests)
