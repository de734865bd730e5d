/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet send queue: TCP segmentation.
 */
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"

#define SEQ     0xfffff000u     /* it wraps within the frame */
#define IP_ID   0xfffe
#define FLAGS   0x99            /* CWR, ACK, PSH, FIN */

struct setup {
    struct guest *g;
    struct eth_tx tx;
    uint64_t mem;
    size_t hdr, l3, l4;         /* length and offsets of the headers below */
    bool ipv6;
};

static unsigned get16(const uint8_t *p)
{
    return (unsigned)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Fills memory with headers with 12 bytes of TCP options, then a pattern. */
static struct setup start(bool ipv6, bool tagged)
{
    struct setup s = { .g = guest_start(), .ipv6 = ipv6 };
    struct geq eq = eq_create(s.g, 1, 6, 0);
    uint8_t *f, *ip, *tcp;

    s.tx = eth_tx_create(s.g, &eq, 6);
    s.mem = guest_alloc(s.g, 131072, 4096);
    guest_fill(s.g, s.mem, 131072, 1);
    port_enable(s.g, test_mac, 0, 1500);
    s.l3 = tagged ? 18 : 14;
    s.l4 = s.l3 + (ipv6 ? 40 : 20);
    s.hdr = s.l4 + 32;
    f = guest_ptr(s.g, s.mem, s.hdr);
    ip = f + s.l3;
    tcp = f + s.l4;
    memset(f, 0, s.hdr);
    memset(f, 0x22, 12);
    if (tagged) {
        put16(f + 12, 0x8100);
        put16(f + 14, 9);
    }
    put16(ip - 2, ipv6 ? 0x86dd : 0x0800);
    ip[0] = ipv6 ? 0x60 : 0x45;
    ip[ipv6 ? 6 : 9] = 6;
    ip[ipv6 ? 7 : 8] = 64;
    memset(ip + (ipv6 ? 8 : 12), 0x77, ipv6 ? 32 : 8);
    if (!ipv6) {
        put16(ip + 4, IP_ID);
    }
    put16(tcp + 4, SEQ >> 16);
    put16(tcp + 6, SEQ & 0xffff);
    tcp[12] = 8 << 4;
    tcp[13] = FLAGS;
    put16(tcp + 16, 0xdead);    /* irrelevant */
    return s;
}

static struct qhca_eth_wqe *post(struct setup *s, uint32_t payload,
                                 unsigned mss, unsigned flags)
{
    struct qhca_eth_wqe *w;

    w = eth_tx_post(&s->tx, s->mem, (uint32_t)s->hdr + 100,
                    QHCA_ETH_TSO | QHCA_ETH_CSUM | QHCA_ETH_MORE | flags);
    w->mss = htole16((uint16_t)mss);
    w->csum_start = htole16((uint16_t)s->l4);
    w->csum_offset = htole16(16);
    w->vlan_tci = htole16(0x6005);
    eth_tx_post(&s->tx, s->mem + s->hdr + 100, payload - 100, 0);
    return w;
}

static struct qhca_cqe expect(struct setup *s, unsigned status)
{
    struct qhca_cqe cqe = { 0 };

    if (!cq_poll(&s->tx.cq, &cqe)) {
        tap_fail(__FILE__, __LINE__, "no completion");
    }
    CHECK_EQ(cqe.status, status);
    return cqe;
}

/* Whether @sent is segment @i of what post() has posted. */
static void check_piece(struct setup *s, const struct sent *sent, unsigned i,
                        uint32_t payload, unsigned mss, size_t tag)
{
    uint32_t off = i * mss, n = payload - off < mss ? payload - off : mss;
    bool last = off + n == payload;
    const uint8_t *ip = sent->data + s->l3 + tag, *tcp = ip + s->l4 - s->l3;
    size_t len = s->hdr + tag + n;
    unsigned flags = FLAGS & ~(last ? 0u : 0x09u) & ~(i ? 0x80u : 0u);

    CHECK_EQ(sent->len, len < 60 ? 60 : len);
    CHECK(!memcmp(sent->data, guest_ptr(s->g, s->mem, 12), 12));
    CHECK(!memcmp(tcp + 32, guest_ptr(s->g, s->mem + s->hdr + off, n), n));
    CHECK_EQ(get32(tcp + 4), SEQ + off);
    CHECK_EQ(tcp[13], flags);
    if (s->ipv6) {
        CHECK_EQ(get16(ip + 4), 32 + n);
    } else {
        CHECK_EQ(get16(ip + 2), 52 + n);
        CHECK_EQ(get16(ip + 4), (IP_ID + i) & 0xffff);
    }
    CHECK(vhca_csum_verify(sent->data, sent->len, s->l3 + tag,
                           s->ipv6 ? 0x86dd : 0x0800));
    if (tag) {
        CHECK_EQ(get16(sent->data + 12), 0x8100);
        CHECK_EQ(get16(sent->data + 14), 0x6005);
    }
}

static void check_all(struct setup *s, uint32_t payload, unsigned mss,
                      size_t tag)
{
    unsigned i, pieces = (payload + mss - 1) / mss;
    uint32_t bytes = 0;

    guest_settle(s->g);
    REQUIRE(s->g->num_sent == pieces);
    for (i = 0; i < pieces; i++) {
        check_piece(s, &s->g->sent[i], i, payload, mss, tag);
        bytes += (uint32_t)s->g->sent[i].len;
    }
    CHECK_EQ(le32toh(expect(s, QHCA_WC_SUCCESS).byte_len), bytes);
    s->g->num_sent = 0;
}

static void segments(bool ipv6, bool tagged)
{
    static const struct {
        uint32_t payload;
        unsigned mss;
    } rows[] = {
        { 1000, 1400 }, { 1400, 1400 }, { 1401, 1400 }, { 2800, 1400 },
        { 60000, 1400 }, { 65000, 536 }, { 300, 1 }, { 200, 7 },
    };
    struct setup s = start(ipv6, tagged);
    uint64_t pkts = 0;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(rows); i++) {
        post(&s, rows[i].payload, rows[i].mss, 0);
        eth_tx_ring(&s.tx);
        pkts += (rows[i].payload + rows[i].mss - 1) / rows[i].mss;
        check_all(&s, rows[i].payload, rows[i].mss, 0);
        post(&s, rows[i].payload, rows[i].mss, QHCA_ETH_VLAN);
        eth_tx_ring(&s.tx);
        check_all(&s, rows[i].payload, rows[i].mss, 4);
        CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_PKTS), 2 * pkts);
    }
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_ERR), 0);
}

static void tcp4(void)
{
    segments(false, false);
}

static void tcp6(void)
{
    segments(true, false);
}

static void tagged(void)
{
    segments(false, true);
}

/* The network stops taking frames in the middle, more than once. */
static unsigned sent_until_blocked;

static void block(struct guest *g, const uint8_t *frame, size_t len)
{
    (void)frame;
    (void)len;
    g->net_blocked = ++sent_until_blocked % 5 == 0;
}

static void back_pressure(void)
{
    struct setup s = start(false, false);
    unsigned i;

    sent_until_blocked = 0;
    s.g->on_send = block;
    post(&s, 60000, 1400, 0);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    for (i = 0; i < 20; i++) {
        guest_settle(s.g);
        s.g->net_blocked = false;
        qhca_engine_tx_ready(s.g->e, 1);
    }
    REQUIRE(s.g->num_sent == 44);
    CHECK_EQ(s.g->sent[43].len, 100);
    s.g->num_sent = 43;
    check_all(&s, 60000, 1400, 0);
    expect(&s, QHCA_WC_SUCCESS);
}

static void stopped(void)
{
    struct setup s = start(false, false);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };

    s.g->net_blocked = true;
    post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, s.tx.number), QHCA_OK);
    guest_unblock(s.g);
    CHECK(s.g->num_sent <= 2);          /* those already taken from the queue */
    s.g->num_sent = 0;
    cmd.create_ethq.buf = s.tx.ring.desc;
    cmd.create_ethq.cqn = htole32(s.tx.cq.cqn);
    cmd.create_ethq.log_size = 6;
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_OK);
    s.tx.pi = 0;
    post(&s, 5000, 1400, 0);
    eth_tx_ring(&s.tx);
    check_all(&s, 5000, 1400, 0);
}

static void link_down(void)
{
    struct setup s = start(false, false);

    qhca_engine_set_link(s.g->e, 1, false);
    post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    expect(&s, QHCA_WC_SUCCESS);
    CHECK_EQ(s.g->num_sent, 0);
}

static void refusals(void)
{
    struct setup s = start(false, false);
    uint8_t *f = guest_ptr(s.g, s.mem, s.hdr), good[128];
    struct qhca_eth_wqe *w;

    memcpy(good, f, s.hdr);
#define TRY(change, status) \
    do { \
        w = post(&s, 3000, 1400, 0); \
        change; \
        eth_tx_ring(&s.tx); \
        expect(&s, status); \
        memcpy(f, good, s.hdr); \
    } while (0)
    TRY(w->mss = 0, QHCA_WC_LOC_QP_OP_ERR);
    TRY(w->mss = htole16(1449), QHCA_WC_LOC_LEN_ERR);
    TRY(w->csum_start = 0, QHCA_WC_LOC_QP_OP_ERR);
    TRY(w->csum_start = htole16(33), QHCA_WC_LOC_QP_OP_ERR);
    TRY(w->csum_start = htole16(0xffff), QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[12] = 0x09, QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[14] = 0x65, QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[14] = 0x44, QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[14] = 0x4f, QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[23] = 17, QHCA_WC_LOC_QP_OP_ERR);
    TRY(f[46] = 4 << 4, QHCA_WC_LOC_QP_OP_ERR);
    CHECK_EQ(s.g->num_sent, 0);
    TRY(w->mss = htole16(1448), QHCA_WC_SUCCESS);
    /* Frames that are too short, and too long. */
    w = eth_tx_post(&s.tx, s.mem, 37, QHCA_ETH_TSO);
    w->mss = htole16(100);
    w = eth_tx_post(&s.tx, s.mem, (uint32_t)s.hdr - 1, QHCA_ETH_TSO);
    w->mss = htole16(100);
    w->csum_start = htole16(34);
    w = eth_tx_post(&s.tx, s.mem, QHCA_MAX_TSO + 1, QHCA_ETH_TSO);
    w->mss = htole16(100);
    eth_tx_ring(&s.tx);
    expect(&s, QHCA_WC_LOC_QP_OP_ERR);
    expect(&s, QHCA_WC_LOC_QP_OP_ERR);
    expect(&s, QHCA_WC_LOC_LEN_ERR);
#undef TRY
}

static void largest(void)
{
    struct setup s = start(true, true);
    struct qhca_eth_wqe *w;

    port_enable(s.g, test_mac, 0, 9000);
    w = eth_tx_post(&s.tx, s.mem, QHCA_MAX_TSO, QHCA_ETH_TSO | QHCA_ETH_VLAN);
    w->mss = htole16(8900);
    w->csum_start = htole16((uint16_t)s.l4);
    w->vlan_tci = htole16(0x6005);
    eth_tx_ring(&s.tx);
    check_all(&s, (uint32_t)(QHCA_MAX_TSO - s.hdr), 8900, 4);
}

static const struct test tests[] = {
    { "TCP over IPv4", tcp4 },
    { "TCP over IPv6", tcp6 },
    { "with a tag in the frame", tagged },
    { "back-pressure in the middle", back_pressure },
    { "the queue is destroyed in the middle", stopped },
    { "with the link down", link_down },
    { "what cannot be segmented", refusals },
    { "the largest frame", largest },
};

TEST_MAIN(tests)
