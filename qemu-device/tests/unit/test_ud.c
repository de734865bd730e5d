/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: datagrams, what is sent.
 */
#include "harness/fixture.h"
#include "tables.h"

#define SQ_PSN  0x111111u       /* sq_psn of RC_OPTS */
#define QKEY    0x12345678u
#define UD(op)  (SVC_UD | RC_##op)

static void post(uint8_t opcode, uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, len);

    wr.imm = 0x01020304;
    rc_do(&qp, &wr);
}

static void test_packets(void)
{
    static const uint32_t len[] = { 0, 1, 2, 3, 4, 1000, 4096 };
    struct roce_packet p;
    unsigned n = 0;

    start_type(QHCA_QPT_UD);
    guest_fill(g, node.mr.addr, 4096, 7);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(len); i++, n++) {
        bool imm = i & 1;

        post(imm ? QHCA_WR_SEND_WITH_IMM : QHCA_WR_SEND, len[i / 2]);
        p = peer_expect(&qp, imm ? UD(SEND_ONLY_IMM) : UD(SEND_ONLY),
                        SQ_PSN + n);
        CHECK_EQ(p.qkey, QKEY);
        CHECK_EQ(p.src_qp, qp.qpn);
        CHECK_EQ(p.ackreq, false);
        CHECK_EQ(p.solicited, false);
        CHECK_EQ(p.payload_len, len[i / 2]);
        CHECK(!memcmp(p.payload, guest_ptr(g, node.mr.addr, 4096), len[i / 2]));
        CHECK(!imm || p.imm == 0x01020304);
        done(n, 0);
    }
    peer_expect_none(&qp);
    CHECK_EQ(g->host.deadline, UINT64_MAX);
}

/* A datagram has the address, QPN and Q_Key of its WR. */
static void test_per_wr(void)
{
    static const uint8_t gid3[16] = {
        [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3,
    };
    struct roce_packet p;
    struct rc_wr wr;

    start_type(QHCA_QPT_UD);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    wr.av.hop_limit = 3;
    wr.av.tclass = 0x28;
    wr.av.flow_label = htole32(0x12345);
    wr.flags |= QHCA_WQE_SOLICITED | QHCA_WQE_FENCE;
    rc_put(&qp, &wr);
    memcpy(wr.av.dgid, gid3, 16);
    wr.av.dmac[5] = 3;
    wr.qpn = 0xff000078;                /* only 24 bits count */
    wr.qkey = 5;
    wr.wr_id++;
    rc_do(&qp, &wr);
    p = peer_expect(&qp, UD(SEND_ONLY), SQ_PSN);
    CHECK_EQ(p.hop_limit, 3);
    CHECK_EQ(p.tclass, 0x28);
    CHECK_EQ(p.sport, roce_sport(0x12345, qp.qpn, 0x77));
    CHECK(p.solicited);
    rc_set_peer(&qp, &(struct node) { .host = 3 }, 0x78);
    p = peer_expect(&qp, UD(SEND_ONLY), SQ_PSN + 1);
    CHECK_EQ(p.qkey, 5);
    done(0, 0);
    done(1, 0);
}

static void test_own_qkey(void)
{
    struct qhca_qp_attr a = { .qkey = htole32(0x80000042) };
    struct rc_wr wr;

    start_type(QHCA_QPT_UD);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    wr.qkey = 0x80000001;
    rc_do(&qp, &wr);
    CHECK_EQ(peer_expect(&qp, UD(SEND_ONLY), SQ_PSN).qkey, QKEY);
    CHECK_EQ(rc_modify(&qp, &a, QHCA_QP_QKEY), 0);              /* */
    rc_do(&qp, &wr);
    CHECK_EQ(peer_expect(&qp, UD(SEND_ONLY), SQ_PSN + 1).qkey, 0x80000042);
    wr.qkey = 0x42;
    rc_do(&qp, &wr);
    CHECK_EQ(peer_expect(&qp, UD(SEND_ONLY), SQ_PSN + 2).qkey, 0x42);
}

/* B-030, I-049: a WR that is too long completes, but nothing is sent. */
static void test_too_long(void)
{
    static const struct {
        uint32_t mtu, path_mtu;
    } row[] = {
        { 9000, 4096 }, { 4192, 4096 }, { 4191, 2048 }, { 1500, 1024 },
        { 352, 256 }, { 351, 0 },
    };

    start_type(QHCA_QPT_UD);
    for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
        uint8_t gid[16], mac[6];
        unsigned n = 2 * (unsigned)i;

        node_gid(&node, gid, mac);
        port_enable(g, mac, 0, row[i].mtu);
        post(QHCA_WR_SEND, row[i].path_mtu + 1);
        peer_expect_none(&qp);
        done(n, 0);
        post(QHCA_WR_SEND, row[i].path_mtu);
        CHECK_EQ(peer_expect(&qp, UD(SEND_ONLY), SQ_PSN + n + 1).payload_len,
                 row[i].path_mtu);
        done(n + 1, 0);
    }
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

enum mistake {
    LKEY, RANGE, OTHER_PD, PORT, GID_INDEX, OPCODE, SGES, INLINE, MISTAKES
};

static unsigned spoil(struct rc_wr *wr, enum mistake m)
{
    switch (m) {
    case LKEY:
        wr->sge[0].lkey ^= 1;
        return I_045_RQ;
    case RANGE:
        wr->sge[0].addr = node.mr.addr + NODE_MEM - 7;
        return I_045_RQ;
    case OTHER_PD:
        wr->av.pdn = htole32(pd_create(g));
        return I_046_RQ;
    case PORT:
        wr->av.port = 2;
        break;
    case GID_INDEX:
        wr->av.sgid_index = 200;
        break;
    case OPCODE:
        wr->opcode = QHCA_WR_RDMA_WRITE;
        return I_051_RQ;
    case SGES:
        wr->num_sge = 5;
        break;
    default:
        wr->flags |= QHCA_WQE_INLINE;
        wr->inline_len = 65;
        break;
    }
    return QHCA_WC_LOC_QP_OP_ERR;
}

/* Bad WRs lead to SQE without a packet; RTS ends it. */
static void test_send_errors(void)
{
    for (unsigned m = 0; m < MISTAKES; m++) {
        struct rc_wr wr;
        unsigned status;

        start_type(QHCA_QPT_UD);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
        status = spoil(&wr, (enum mistake)m);
        rc_put(&qp, &wr);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
        rc_do(&qp, &wr);
        done(0, status);
        done(1, QHCA_WC_WR_FLUSH_ERR);
        peer_expect_none(&qp);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_SQE);
        CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
        post(QHCA_WR_SEND, 8);
        peer_expect(&qp, UD(SEND_ONLY), SQ_PSN);
        done(2, 0);
    }
}

/* G-015: the GID is removed, or is of the other IP version. */
static void test_gid_gone(void)
{
    uint64_t before;

    start_type(QHCA_QPT_UD);
    CHECK_EQ(gid_set(g, 0, NULL, NULL, 0), QHCA_OK);
    before = counter(g, QHCA_CNT_TX_DROPPED);
    post(QHCA_WR_SEND, 8);
    node_set_gid(&node, true, QHCA_NO_VLAN);
    post(QHCA_WR_SEND, 8);
    peer_expect_none(&qp);
    CHECK_EQ(counter(g, QHCA_CNT_TX_DROPPED), before + 2);
    CHECK_EQ(counter(g, QHCA_CNT_RX_BAD_ADDR), 0);
    done(0, 0);
    done(1, 0);
    node_set_gid(&node, false, QHCA_NO_VLAN);
    post(QHCA_WR_SEND, 8);
    peer_expect(&qp, UD(SEND_ONLY), SQ_PSN + 2);
}

/* Datagrams to the port itself do not wait for the network if posted first. */
static void test_pressure(void)
{
    struct roce_packet p;
    struct rc_wr wr;
    unsigned n = 0;

    start_type(QHCA_QPT_UD);
    rc_recv(&qp, 1, 0, 100);
    g->net_blocked = true;
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
    node_gid(&node, wr.av.dgid, wr.av.dmac);
    wr.qpn = qp.qpn;
    rc_put(&qp, &wr);
    for (unsigned i = 0; i < 63; i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 8);
        wr.flags = i == 62 ? QHCA_WQE_SIGNALED : 0;
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    guest_settle(g);
    rc_expect(&qp.rcq, 1, 0);
    done(0, 0);
    while (peer_next(&qp, &p)) {
        n++;
    }
    CHECK_EQ(n, 0);
    guest_unblock(g);
    while (peer_next(&qp, &p)) {
        n++;
        CHECK_EQ(p.psn, SQ_PSN + n);
    }
    CHECK_EQ(n, 63);
    done(63, 0);
}

/* SQD holds datagrams; A-085: it is drained without a wait. */
static void test_sqd(void)
{
    start_type(QHCA_QPT_UD);
    CHECK_EQ(rc_drain(&qp), QHCA_OK);
    eq_expect(&node.async, QHCA_EVENT_SQ_DRAINED, qp.qpn);
    post(QHCA_WR_SEND, 8);
    peer_expect_none(&qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RTS), QHCA_OK);
    guest_settle(g);
    peer_expect(&qp, UD(SEND_ONLY), SQ_PSN);
    done(0, 0);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), QHCA_OK);
    post(QHCA_WR_SEND, 8);
    done(1, QHCA_WC_WR_FLUSH_ERR);
}

/* D-080, E-043: the GSI QP has QPN 1 and a fixed Q_Key, and exists once. */
static void test_gsi(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_GSI);
    struct qhca_create_qp c = {
        .type = QHCA_QPT_GSI, .sq_log_stride = 7, .rq_log_stride = 5,
    };
    struct roce_packet p;
    struct rc_wr wr;
    uint32_t qpn;

    start_alone(&o);
    CHECK_EQ(qp.qpn, 1);
    CHECK_EQ(rc_query(&qp).qpn, htole32(1));
    c.pdn = htole32(node.pdn);
    c.send_cqn = c.recv_cqn = htole32(qp.scq.cqn);
    CHECK_EQ(rc_create_raw(g, &c, &qpn), QHCA_ERR_NO_RESOURCE);

    rc_set_peer(&qp, &far, 1);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 256);
    wr.qkey = 0x42;
    rc_do(&qp, &wr);
    p = peer_expect(&qp, UD(SEND_ONLY), SQ_PSN);
    CHECK_EQ(p.qkey, 0x80010000);
    CHECK_EQ(p.src_qp, 1);
    CHECK_EQ(p.payload_len, 256);
    done(0, 0);

    rc_recv(&qp, 7, 0, 296);
    p = peer_packet(&qp, UD(SEND_ONLY), 9);
    peer_inject(&qp, &p, "abcd", 4);            /* the QP's own Q_Key */
    rc_expect_none(&qp.rcq);
    p.qkey = 0x80010000;
    peer_inject(&qp, &p, "abcd", 4);
    CHECK_EQ(rc_expect(&qp.rcq, 7, 0).src_qp, htole32(1));
    rc_set_state(&qp, QHCA_QPS_RTS);
    post(QHCA_WR_SEND_WITH_IMM, 8);             /* not for MADs */
    done(1, QHCA_WC_LOC_QP_OP_ERR);

    CHECK_EQ(rc_destroy(&qp), QHCA_OK);
    peer_inject(&qp, &p, "abcd", 4);
    CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), 1);
    peer = rc_create(&node, &o);
    CHECK_EQ(peer.qpn, 1);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static const struct test tests[] = {
    { "D-075 B-061 D-010 packets of all lengths", test_packets },
    { "B-031 E-037 D-075 address and Q_Key per WR", test_per_wr },
    { "D-079 A-053 the QP's own Q_Key", test_own_qkey },
    { "B-030 I-049 E-042 WRs that are longer than a packet", test_too_long },
    { "I-045 I-046 I-051 B-031 WRs that cannot be sent", test_send_errors },
    { "G-015 the GID is removed", test_gid_gone },
    { "a network that is blocked", test_pressure },
    { "A-005 A-084 A-085 A-007 SQD and ERR", test_sqd },
    { "D-080 E-043 the GSI QP", test_gsi },
};

TEST_MAIN(tests)
