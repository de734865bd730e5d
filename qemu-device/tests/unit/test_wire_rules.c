/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the headers of packets that a QP sends, and the headers
 * that it tolerates.
 */
#include <stdio.h>

#include "harness/fixture.h"
#include "tables.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define SQ_PSN  0x111111u

static const struct node far6 = { .host = 2, .ipv6 = true,
                                  .vlan = QHCA_NO_VLAN };

/* An RC QP in RTS whose AV has these values. */
static void start(bool ipv6, uint8_t tclass, uint8_t hop_limit,
                  uint32_t flow_label)
{
    struct qhca_qp_attr a;

    start_gid(ipv6, QHCA_NO_VLAN);
    add_scripted(&RC_OPTS, QHCA_QPS_INIT);
    a = rc_attr(&qp);
    a.av.tclass = tclass;
    a.av.hop_limit = hop_limit;
    a.av.flow_label = htole32(flow_label);
    a.state = QHCA_QPS_RTR;
    CHECK_EQ(rc_modify(&qp, &a, rc_step_mask(QHCA_QPT_RC, a.state)), 0);
    a.state = QHCA_QPS_RTS;
    CHECK_EQ(rc_modify(&qp, &a, rc_step_mask(QHCA_QPT_RC, a.state)), 0);
}

static const uint8_t *ip_of(const struct sent *f)
{
    return f->data + ETH_LEN;
}

static void send_some(uint32_t len)
{
    rc_send(&qp, len);
    REQUIRE(g->num_sent >= 1);
}

static void test_av_v4(void)
{
    const uint8_t *ip, *udp, *bth;

    start(false, 0xb9, 3, 0x12345);     /* DSCP 46, ECN 01 */
    send_some(64);
    ip = ip_of(&g->sent[0]);
    CHECK_EQ(ip[1], 0xb9);                                      /* E-037 */
    CHECK_EQ(ip[8], 3);
    CHECK_EQ(ip[6] & 0x40, 0x40);                               /* DF, E-002 */
    CHECK_EQ(get_be32(ip + 12), 0x0a000001);                    /* E-038 */
    CHECK_EQ(get_be32(ip + 16), 0x0a000002);
    udp = ip + IPV4_LEN;
    CHECK_EQ(get_be16(udp), roce_sport(0x12345, qp.qpn, 0x77));
    CHECK_EQ(get_be16(udp + 6), 0);                             /* E-003 */
    bth = udp + UDP_LEN;
    CHECK_EQ(bth[1] & 0x40, 0x40);                              /* E-031 */
    CHECK_EQ(bth[1] & 0x0f, 0);
    CHECK_EQ(bth[4], 0);
    CHECK_EQ(bth[8] & 0x7f, 0);
    CHECK_EQ(g->sent[0].len,                                    /* E-010 */
             get_be16(udp + 4) + IPV4_LEN + ETH_LEN);
}

static void test_av_v6(void)
{
    const uint8_t *ip;
    uint8_t gid[16], mac[6];

    start(true, 0x2a, 7, 0xabcde);      /* ECN 10 */
    send_some(64);
    ip = ip_of(&g->sent[0]);
    CHECK_EQ(get_be32(ip), 0x60000000u | 0x2a << 20 | 0xabcde);
    CHECK_EQ(ip[7], 7);
    node_gid(&node, gid, mac);
    CHECK(!memcmp(ip + 8, gid, 16));
    node_gid(&far6, gid, mac);
    CHECK(!memcmp(ip + 24, gid, 16));
    CHECK_EQ(get_be16(ip + IPV6_LEN + 6), 0);
}

/* Injects a SEND in which @change has changed the frame; the ICRC is right. */
static void inject_changed(void (*change)(uint8_t *ip))
{
    struct roce_packet p = peer_packet(&qp, RC_SEND_ONLY, PSN);
    uint8_t frame[MAX_FRAME];
    size_t len, end;
    uint32_t icrc;

    p.payload_len = 4;
    memset(frame + roce_payload_offset(&p), 1, 4);
    len = roce_finish(&p, frame);
    end = len - ICRC_LEN;
    change(frame + ETH_LEN);
    icrc = roce_icrc(frame + ETH_LEN, p.ipv4, end - ETH_LEN);
    for (int i = 0; i < ICRC_LEN; i++) {
        frame[end + (size_t)i] = (uint8_t)(icrc >> (8 * i));
    }
    guest_rx(g, frame, len);
    guest_settle(g);
}

static uint8_t *bth_of(uint8_t *ip)
{
    return ip + IPV4_LEN + UDP_LEN;
}

static void no_mig_req(uint8_t *ip)
{
    bth_of(ip)[1] &= (uint8_t)~0x40;
}

static void reserved_bits(uint8_t *ip)
{
    bth_of(ip)[4] = 0x3f;
    bth_of(ip)[8] |= 0x7f;
}

static void congestion(uint8_t *ip)
{
    bth_of(ip)[4] = 0xc0;               /* F and B */
}

static void udp_checksum(uint8_t *ip)
{
    ip[IPV4_LEN + 6] = 0x12;
}

static void ce_mark(uint8_t *ip)
{
    ip[1] |= 3;
}

static void ttl(uint8_t *ip)
{
    ip[8] = 1;
}

static void test_tolerated(void)
{
    static void (*const change[])(uint8_t *ip) = {
        no_mig_req, reserved_bits, congestion, udp_checksum, ttl, ce_mark,
    };

    for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
        start(false, 0, 64, 0);
        rc_recv(&qp, 1, 0, 64);
        inject_changed(change[i]);
        rc_expect(&qp.rcq, 1, QHCA_WC_SUCCESS);
    }
}

/* Opcodes of other classes get no response and change nothing. */
static void test_other_classes(void)
{
    static const uint8_t opcodes[] = {
        0x40, 0x44, 0x50, 0x5f, 0x80, 0x82, 0xa0, 0xa4, 0xbf, 0xc0, 0xd3, 0xe4,
        0xff,
    };
    struct qhca_qpc before, after;

    start(false, 0, 64, 0);
    rc_recv(&qp, 1, 0, 64);
    before = rc_query(&qp);
    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        uint64_t accepted = counter(g, QHCA_CNT_RX_PKTS);
        struct roce_packet p = peer_packet(&qp, opcodes[i], PSN);
        uint8_t payload[16] = { 0 };

        peer_inject(&qp, &p, payload, sizeof(payload));
        CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), accepted);
    }
    after = rc_query(&qp);
    CHECK(!memcmp(&before, &after, sizeof(before)));
    rc_expect_none(&qp.rcq);
    peer_expect_none(&qp);
}

/* With every path MTU and all headers a packet fits the port's MTU. */
static void test_fits(void)
{
    struct rc_opts o = RC_OPTS;

    for (unsigned v6 = 0; v6 < 2; v6++) {
        for (o.mtu = 1; o.mtu <= 5; o.mtu++) {
            struct rc_wr wr;

            start_gid(v6, QHCA_NO_VLAN);
            add_scripted(&o, QHCA_QPS_RTS);
            wr = rc_wr(&qp, QHCA_WR_RDMA_WRITE_WITH_IMM, 0, 128u << o.mtu);
            rc_aim(&wr, &node, 0);
            rc_do(&qp, &wr);
            REQUIRE(g->num_sent == 1);
            CHECK(g->sent[0].len <= ETH_LEN + (128u << o.mtu) +
                  ROCE_MAX_OVERHEAD - ETH_LEN - VLAN_LEN);
        }
    }
}

/* Immediate data is not swapped and not in the buffer. */
static void test_imm(void)
{
    static const uint8_t wire[4] = { 0xde, 0xad, 0xbe, 0xef };
    struct roce_packet p;
    struct qhca_cqe c;
    uint8_t payload[4] = { 1, 1, 1, 1 };

    start(false, 0, 64, 0);
    memset(guest_ptr(g, node.mr.addr, 64), 0xee, 64);
    rc_recv(&qp, 1, 0, 64);
    p = peer_packet(&qp, RC_SEND_ONLY_IMM, PSN);
    memcpy(&p.imm, wire, 4);
    peer_inject(&qp, &p, payload, 4);
    c = rc_expect(&qp.rcq, 1, QHCA_WC_SUCCESS);
    CHECK(!memcmp(&c.imm, wire, 4));
    CHECK_EQ(le32toh(c.byte_len), 4);
    CHECK_EQ(*(uint8_t *)guest_ptr(g, node.mr.addr + 4, 1), 0xee);
}

/* Every field that an error CQE promises, and no data. */
static void test_error_cqe(void)
{
    struct rc_wr wr;
    struct qhca_cqe c;

    start(false, 0, 64, 0);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 64);
    wr.wr_id = 0x1122334455667788;
    wr.sge[0].lkey ^= 0x100;
    for (unsigned i = 0; i < 3; i++) {
        rc_recv(&qp, i, 0, 64);
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
    guest_settle(g);
    c = rc_expect(&qp.scq, wr.wr_id, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(le32toh(c.qpn), qp.qpn);
    CHECK_EQ(le32toh(c.vendor_err), 0);
    CHECK_EQ(c.opcode, QHCA_CQE_SEND);
    CHECK_EQ(le16toh(c.flags), QHCA_CQE_SQ);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);                      /* */
    for (unsigned i = 0; i < 3; i++) {
        c = rc_expect(&qp.rcq, i, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(le32toh(c.qpn), qp.qpn);
        CHECK_EQ(le32toh(c.wqe_index), i);
    }
    for (unsigned i = 1; i < 3; i++) {
        c = rc_expect(&qp.scq, wr.wr_id, QHCA_WC_WR_FLUSH_ERR);
        CHECK_EQ(le32toh(c.qpn), qp.qpn);
        CHECK_EQ(le32toh(c.wqe_index), i);
    }
}

/* ---- a link that corrupts every frame in the same way ---- */

static unsigned spoil_at;       /* byte of the frame that is changed */
static bool refit;              /* the ICRC is made to match */

static bool spoil(struct net *n, unsigned from, uint8_t *frame, size_t len)
{
    size_t end = len - ICRC_LEN;
    uint32_t icrc;

    (void)n;
    (void)from;
    frame[spoil_at] ^= 0x20;
    icrc = roce_icrc(frame + ETH_LEN, true, end - ETH_LEN);
    for (int i = 0; refit && i < ICRC_LEN; i++) {
        frame[end + (size_t)i] = (uint8_t)(icrc >> (8 * i));
    }
    return true;
}

static void spoilt(unsigned at, bool fit, enum qhca_counter counts)
{
    start_net(&RC_OPTS, false);
    rc_recv(&peer, 1, 0, 64);
    net->filter = spoil;
    spoil_at = at;
    refit = fit;
    rc_send(&qp, 64);
    net_run(net, 10000000000ull);
    done(0, I_024_RQ);
    CHECK_EQ(rc_state(&qp), I_024_RQ_QP);
    CHECK_EQ(rc_state(&peer), QHCA_QPS_RTS);
    rc_expect_none(&peer.rcq);
    CHECK_EQ(counter(there.g, counts), RC_OPTS.retry + 1);
}

static void test_spoilt(void)
{
    const unsigned ip = ETH_LEN, bth = ETH_LEN + IPV4_LEN + UDP_LEN;

    spoilt(bth + 2, true, QHCA_CNT_RX_BAD_PKEY);
    spoilt(ip + 15, true, QHCA_CNT_RX_BAD_ADDR);        /* source */
    spoilt(bth + 20, false, QHCA_CNT_RX_ICRC);          /* payload */
}

/* ---- order of writes ---- */

static uint64_t cqe_at, data_at;
static unsigned data_writes, cqe_writes, early, owner_writes;

static void watch(struct guest *guest, uint64_t addr, size_t len, bool write)
{
    const uint8_t *owner = guest_ptr(guest, cqe_at + 63, 1);

    if (!write) {
        return;
    }
    if (addr >= data_at && addr < data_at + 64) {
        data_writes++;
        early += cqe_writes;
    }
    if (addr >= cqe_at && addr < cqe_at + 64) {
        bool last = addr + len == cqe_at + 64;

        cqe_writes++;
        owner_writes += last;
        early += !last && (*owner & QHCA_OWNER_PHASE);
    }
}

/* @p writes 64 bytes, or executes an atomic, in the node's memory. */
static void check_order(struct gcq *cq, const struct roce_packet *p, size_t len)
{
    uint8_t payload[64] = { 1 };

    cqe_at = gbuf_addr(&cq->buf, 0);
    data_at = node.mr.addr;
    data_writes = cqe_writes = early = owner_writes = 0;
    g->on_dma = watch;
    peer_inject(&qp, p, payload, len);
    g->on_dma = NULL;
    CHECK(data_writes > 0 && cqe_writes > 0);
    CHECK_EQ(owner_writes, 1);
    CHECK_EQ(early, 0);
    rc_expect(cq, cq == &qp.rcq ? 1 : 0x1000, QHCA_WC_SUCCESS);
}

static void test_order(void)
{
    static const uint8_t requests[] = { RC_SEND_ONLY, RC_WRITE_ONLY_IMM };
    static const uint8_t answers[] = {
        RC_READ_RESP_ONLY, RC_ATOMIC_ACKNOWLEDGE,
    };
    struct roce_packet p;

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        start(false, 0, 64, 0);
        rc_recv(&qp, 1, 0, 64);
        p = peer_request(&qp, requests[i], PSN, 0, 64);
        check_order(&qp.rcq, &p, 64);
    }
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        bool read = answers[i] == RC_READ_RESP_ONLY;
        struct rc_wr wr;

        start(false, 0, 64, 0);
        wr = rc_wr(&qp, read ? QHCA_WR_RDMA_READ :
                               QHCA_WR_ATOMIC_FETCH_AND_ADD, 0, read ? 64 : 8);
        rc_do(&qp, &wr);
        p = peer_packet(&qp, answers[i], SQ_PSN);
        check_order(&qp.scq, &p, read ? 64 : 0);
    }
}

static const struct test tests[] = {
    { "E-002 E-003 E-010 E-031 E-037 E-038 E-040 headers over IPv4",
      test_av_v4 },
    { "E-037 E-038 E-040 headers over IPv6", test_av_v6 },
    { "E-003 E-031 E-034 headers that are tolerated", test_tolerated },
    { "E-027 classes that are not offered", test_other_classes },
    { "E-042 the largest packets fit", test_fits },
    { "B-068 immediate data", test_imm },
    { "C-010 A-096 an error CQE", test_error_cqe },
    { "D-082 D-083 E-045 I-024 P_Key, address or ICRC wrong, for ever",
      test_spoilt },
    { "B-060 B-062 C-013 payload, then the CQE, its owner last", test_order },
};

TEST_MAIN(tests)
