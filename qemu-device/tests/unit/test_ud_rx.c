/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: datagrams, what is received.
 */
#include "harness/fixture.h"
#include "tables.h"

#define UD(op)  (SVC_UD | RC_##op)
#define GRH     40

static void start_on(bool ipv6, uint16_t vlan, unsigned state)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);

    start_gid(ipv6, vlan);
    add_scripted(&o, state);
}

static void start(void)
{
    start_on(false, QHCA_NO_VLAN, QHCA_QPS_RTS);
}

static void inject(size_t len)
{
    peer_send(&qp, UD(SEND_ONLY), 99, "0123456789abcdef", len);
}

static const uint8_t *received(uint64_t off)
{
    return guest_ptr(g, node.mr.addr + off, 1);
}

static uint16_t ones_sum(const uint8_t *p, size_t len)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < len; i += 2) {
        sum += get_be16(p + i);
    }
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* D-076: the 40 bytes in front of the payload. */
static void check_grh(const struct roce_packet *p, const uint8_t *grh)
{
    static const uint8_t zero[20];

    if (!p->ipv4) {
        CHECK_EQ(grh[0] >> 4, 6);
        CHECK_EQ(grh[7], p->hop_limit);
        CHECK(!memcmp(grh + 8, p->sgid, 16));
        CHECK(!memcmp(grh + 24, p->dgid, 16));
        return;
    }
    CHECK(!memcmp(grh, zero, 20));
    CHECK_EQ(grh[20], 0x45);
    CHECK_EQ(grh[28], p->hop_limit);
    CHECK(!memcmp(grh + 32, p->sgid + 12, 4));
    CHECK(!memcmp(grh + 36, p->dgid + 12, 4));
    CHECK_EQ(ones_sum(grh + 20, 20), 0xffff);
}

static void test_receive(void)
{
    for (unsigned i = 0; i < 8; i++) {
        bool ipv6 = i & 1, imm = i & 4;
        uint16_t vlan = i & 2 ? 5 : QHCA_NO_VLAN;
        struct roce_packet p;
        struct qhca_cqe c;
        unsigned flags = QHCA_CQE_GRH | (ipv6 ? 0 : QHCA_CQE_IPV4) |
                         (imm ? QHCA_CQE_IMM | QHCA_CQE_SOLICITED : 0) |
                         (i & 2 ? QHCA_CQE_VLAN : 0);

        start_on(ipv6, vlan, QHCA_QPS_RTS);
        guest_fill(g, node.mr.addr, 100, 3);
        rc_recv(&qp, 1, 0, 100);
        p = peer_packet(&qp, imm ? UD(SEND_ONLY_IMM) : UD(SEND_ONLY), 5);
        p.imm = 0x0a0b0c0d;
        p.sl = 6;
        p.solicited = imm;
        peer_inject(&qp, &p, "datagram!", 9);
        c = rc_expect(&qp.rcq, 1, 0);
        CHECK_EQ(c.opcode, QHCA_CQE_RECV);
        CHECK_EQ(le32toh(c.byte_len), GRH + 9);
        CHECK_EQ(le16toh(c.flags), flags);
        CHECK_EQ(le32toh(c.src_qp), 0x77);
        CHECK_EQ(le32toh(c.qpn), qp.qpn);
        CHECK_EQ(c.pkey_index, 0);
        CHECK(!memcmp(c.smac, qp.peer_mac, 6));
        CHECK_EQ(c.sl, vlan == QHCA_NO_VLAN ? 0 : 6);
        CHECK_EQ(le16toh(c.vlan_tci), i & 2 ? 6 << 13 | 5 : 0);
        CHECK(!imm || c.imm == 0x0a0b0c0d);
        check_grh(&p, received(0));
        CHECK(!memcmp(received(GRH), "datagram!", 9));
        CHECK_EQ(*received(GRH + 9), guest_pattern(GRH + 9, 3));
        peer_expect_none(&qp);
    }
}

/* GRH and payload ignore segment boundaries, and empty segments. */
static void test_segments(void)
{
    struct qhca_seg_le sge[4];

    start();
    sge[0] = (struct qhca_seg_le) { node.mr.addr, 33, node.mr.key };
    sge[1] = (struct qhca_seg_le) { node.mr.addr + 1000, 0, 0 };
    sge[2] = (struct qhca_seg_le) { node.mr.addr + 100, 10, node.mr.key };
    sge[3] = (struct qhca_seg_le) { node.mr.addr + 200, 5, node.mr.key };
    rc_recv_raw(&qp, 1, 4, sge);
    inject(8);
    rc_expect(&qp.rcq, 1, 0);
    CHECK_EQ(*received(0), 0);
    CHECK_EQ(*received(20), 0x45);
    CHECK(!memcmp(received(107), "012", 3));
    CHECK(!memcmp(received(200), "34567", 5));
    rc_recv(&qp, 2, 0, GRH);
    inject(0);
    CHECK_EQ(le32toh(rc_expect(&qp.rcq, 2, 0).byte_len), GRH);
}

/* D-077, D-078, I-048: a WR that is too small stays for the next datagram. */
static void test_no_room(void)
{
    uint64_t refused;

    start();
    refused = counter(g, QHCA_CNT_RX_REFUSED);
    inject(4);
    rc_recv(&qp, 1, 0, GRH + 3);
    inject(4);
    rc_expect_none(&qp.rcq);
    CHECK_EQ(counter(g, QHCA_CNT_RX_REFUSED), refused + 2);
    CHECK_EQ(*received(0), 0);
    inject(3);
    rc_expect(&qp.rcq, 1, 0);
    rc_recv(&qp, 2, 0, 39);
    inject(0);
    rc_expect_none(&qp.rcq);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    rc_set_state(&qp, QHCA_QPS_ERR);
    rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
    rc_expect_none(&qp.rcq);
}

/* Each datagram is dropped for its own reason and uses no receive WR. */
static void test_drops(void)
{
    static const struct {
        uint8_t opcode;
        uint16_t pkey;
        uint32_t qkey;
        unsigned dest;          /* 0: the QP */
        size_t len;
        enum qhca_counter why;
    } row[] = {
        { UD(SEND_ONLY), 0xffff, 0x12345679, 0, 4, QHCA_CNT_RX_BAD_QKEY },
        { UD(SEND_ONLY), 0xffff, 0x92345678, 0, 4, QHCA_CNT_RX_BAD_QKEY },
        { UD(SEND_ONLY), 0x7ffe, 0x12345678, 0, 4, QHCA_CNT_RX_BAD_PKEY },
        { UD(SEND_ONLY), 0xffff, 0x12345678, 0xffffff, 4, QHCA_CNT_RX_NO_QP },
        { UD(SEND_ONLY), 0xffff, 0x12345678, 1, 4, QHCA_CNT_RX_NO_QP },
        { UD(SEND_FIRST), 0xffff, 0x12345678, 0, 4, QHCA_CNT_RX_MALFORMED },
        { UD(WRITE_ONLY), 0xffff, 0x12345678, 0, 4, QHCA_CNT_RX_MALFORMED },
        { UD(ACKNOWLEDGE), 0xffff, 0x12345678, 0, 0, QHCA_CNT_RX_MALFORMED },
        { RC_SEND_ONLY, 0xffff, 0x12345678, 0, 4, QHCA_CNT_RX_NO_QP },
        { SVC_UC | RC_SEND_ONLY, 0xffff, 0, 0, 4, QHCA_CNT_RX_NO_QP },
        { UD(SEND_ONLY), 0xffff, 0x12345678, 0, 4097, QHCA_CNT_RX_REFUSED },
    };
    static uint8_t data[4100];

    start();
    rc_recv(&qp, 1, 0, 8000);
    for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
        struct roce_packet p = peer_packet(&qp, row[i].opcode, 1);
        uint64_t before = counter(g, row[i].why);

        p.pkey = row[i].pkey;
        p.qkey = row[i].qkey;
        p.dest_qp = row[i].dest ? row[i].dest : qp.qpn;
        peer_inject(&qp, &p, data, row[i].len);
        CHECK_EQ(counter(g, row[i].why), before + 1);
        rc_expect_none(&qp.rcq);
        peer_expect_none(&qp);
    }
    inject(4);
    rc_expect(&qp.rcq, 1, 0);
}

static struct qhca_port_attr query_port(void)
{
    struct qhca_port_attr a;

    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 1, &a, sizeof(a)), QHCA_OK);
    return a;
}

/* J-016: both violation counters count, and saturate. */
static void test_violations(void)
{
    struct roce_packet p;

    start();
    p = peer_packet(&qp, UD(SEND_ONLY), 1);
    p.qkey++;
    peer_inject(&qp, &p, "abcd", 4);
    p.pkey = 1;
    peer_inject(&qp, &p, "abcd", 4);
    CHECK_EQ(le32toh(query_port().qkey_viol_cntr), 1);
    CHECK_EQ(le32toh(query_port().bad_pkey_cntr), 1);
    p.pkey = 0x7fff;                            /* a limited member */
    for (unsigned i = 0; i < 0x10001; i++) {
        peer_inject(&qp, &p, "abcd", 4);
    }
    CHECK_EQ(le32toh(query_port().qkey_viol_cntr), 0xffff);
    CHECK_EQ(le32toh(query_port().bad_pkey_cntr), 1);
    p.pkey = 1;
    for (unsigned i = 0; i < 0x10001; i++) {
        peer_inject(&qp, &p, "abcd", 4);
    }
    CHECK_EQ(le32toh(query_port().bad_pkey_cntr), 0xffff);
}

static void test_states(void)
{
    for (unsigned s = QHCA_QPS_RESET; s <= QHCA_QPS_ERR; s++) {
        if (s == QHCA_QPS_SQE) {
            continue;           /* test_sqe */
        }
        start_on(false, QHCA_NO_VLAN, s == QHCA_QPS_ERR ? QHCA_QPS_RTS : s);
        if (s != QHCA_QPS_RESET) {
            rc_recv(&qp, 1, 0, 100);
        }
        if (s == QHCA_QPS_ERR) {
            rc_set_state(&qp, s);
            rc_expect(&qp.rcq, 1, QHCA_WC_WR_FLUSH_ERR);
        }
        inject(4);
        if (table_a1[s].requests) {
            rc_expect(&qp.rcq, 1, 0);
        }
        rc_expect_none(&qp.rcq);
        no_event();                             /* no COMM_EST either */
    }
}

static void test_receive_errors(void)
{
    for (unsigned what = 0; what < 4; what++) {
        struct qhca_seg_le sge[5] = { 0 };
        unsigned status = I_050_RS, num = 1;

        start();
        sge[0] = (struct qhca_seg_le) { node.mr.addr, 100, node.mr.key };
        if (what == 0) {
            sge[0].lkey ^= 1;
        } else if (what == 1) {
            sge[0].addr = node.mr.addr + NODE_MEM - 50;
        } else if (what == 2) {
            sge[0].lkey = mr_create(g, node.pdn, 4096, 0).key;
        } else {
            num = 5;
            status = QHCA_WC_LOC_QP_OP_ERR;
        }
        rc_recv_raw(&qp, 1, num, sge);
        rc_recv(&qp, 2, 0, 100);
        inject(16);
        inject(16);
        rc_expect(&qp.rcq, 1, status);
        rc_expect(&qp.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    }
}

/* D-085: another QP of the port, and the QP itself. */
static void test_loopback(void)
{
    struct rc_opts o = opts_of(QHCA_QPT_UD);
    struct rc_wr wr;

    start();
    peer = rc_create(&node, &o);
    rc_bring_up(&peer, QHCA_QPS_RTS);
    guest_fill(g, node.mr.addr, 4096, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct rc_qp *to = i ? &peer : &qp;

        rc_recv(to, 5, 8192, GRH + 4096);
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 4096);
        node_gid(&node, wr.av.dgid, wr.av.dmac);
        wr.qpn = to->qpn;
        rc_do(&qp, &wr);
        rc_expect(&qp.scq, 0x1000 + i, 0);
        CHECK_EQ(rc_expect(&to->rcq, 5, 0).src_qp, htole32(qp.qpn));
        CHECK(guest_is_filled(g, node.mr.addr + 8192 + GRH, 4096, 1));
        CHECK_EQ(ones_sum(received(8192 + 20), 20), 0xffff);
    }
    peer_expect_none(&qp);
}

static const struct test tests[] = {
    { "D-076 C-007 C-008 B-068 GRH and CQE", test_receive },
    { "D-076 over several segments", test_segments },
    { "D-077 D-078 I-048 no receive WR, or a small one", test_no_room },
    { "E-045 D-078 D-082 I-047 I-049 dropped datagrams", test_drops },
    { "J-016 D-078 D-082 violation counters", test_violations },
    { "A-001 A-002 A-003 A-004 A-005 A-007 datagrams by state", test_states },
    { "I-050 bad receive WRs", test_receive_errors },
    { "D-085 loopback", test_loopback },
};

TEST_MAIN(tests)
