/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: TCP segments for the engine to cut.
 */
#include "debug.h"
#include "frames.h"
#include "tso.h"

#define SEQ     0xfffff000u     /* it wraps within the frame */
#define IP_ID   0xfffe

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

size_t tso_headers(uint8_t *f, bool ipv6, bool tagged, unsigned flags)
{
    uint8_t *ip = f + (tagged ? 18 : 14), *tcp = ip + (ipv6 ? 40 : 20);
    size_t len = (size_t)(tcp - f) + 32;

    memset(f, 0, len);
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
    tcp[13] = (uint8_t)flags;
    put16(tcp + 16, 0xdead);    /* irrelevant */
    return len;
}

struct tso tso_start(bool ipv6, bool tagged)
{
    struct tso s = { .g = guest_start(), .ipv6 = ipv6, .flags = TSO_FLAGS };
    struct geq eq = eq_create(s.g, 1, 6, 0);

    s.tx = eth_tx_create(s.g, &eq, 6);
    s.mem = guest_alloc(s.g, 131072, 4096);
    guest_fill(s.g, s.mem, 131072, 1);
    port_enable(s.g, test_mac, 0, 1500);
    s.l3 = tagged ? 18 : 14;
    s.l4 = s.l3 + (ipv6 ? 40 : 20);
    s.hdr = tso_headers(guest_ptr(s.g, s.mem, TSO_HEADERS), ipv6, tagged,
                        TSO_FLAGS);
    return s;
}

struct qhca_eth_wqe *tso_post(struct tso *s, uint32_t payload,
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

struct qhca_cqe tso_expect(struct tso *s, unsigned status)
{
    struct qhca_cqe cqe = { 0 };

    if (!cq_poll(&s->tx.cq, &cqe)) {
        tap_fail(__FILE__, __LINE__, "no completion");
    }
    CHECK_EQ(cqe.status, status);
    return cqe;
}

/* Whether @sent is segment @i of what tso_post() has posted. */
static void check_piece(struct tso *s, const struct sent *sent, unsigned i,
                        uint32_t payload, unsigned mss, size_t tag)
{
    uint32_t off = i * mss, n = payload - off < mss ? payload - off : mss;
    bool last = off + n == payload;
    const uint8_t *ip = sent->data + s->l3 + tag, *tcp = ip + s->l4 - s->l3;
    size_t len = s->hdr + tag + n, tcp_len = s->hdr - s->l4;
    unsigned flags = s->flags & ~(last ? 0u : 0x09u) & ~(i ? 0x80u : 0u);

    CHECK_EQ(sent->len, len < 60 ? 60 : len);
    CHECK(!memcmp(sent->data, guest_ptr(s->g, s->mem, 12), 12));
    CHECK(!memcmp(tcp + tcp_len,
                  guest_ptr(s->g, s->mem + s->hdr + off, n), n));
    CHECK_EQ(get32(tcp + 4), SEQ + off);
    CHECK_EQ(tcp[13], flags);
    if (s->ipv6) {
        CHECK_EQ(get16(ip + 4), tcp_len + n);
    } else {
        CHECK_EQ(get16(ip + 2), 20 + tcp_len + n);
        CHECK_EQ(get16(ip + 4), (IP_ID + i) & 0xffff);
    }
    CHECK(vhca_csum_verify(sent->data, sent->len, s->l3 + tag,
                           s->ipv6 ? 0x86dd : 0x0800));
    if (tag) {
        CHECK_EQ(get16(sent->data + 12), 0x8100);
        CHECK_EQ(get16(sent->data + 14), 0x6005);
    }
}

void tso_check(struct tso *s, uint32_t payload, unsigned mss,
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
    CHECK_EQ(le32toh(tso_expect(s, QHCA_WC_SUCCESS).byte_len), bytes);
    s->g->num_sent = 0;
}

void tso_segments(struct tso s)
{
    static const struct {
        uint32_t payload;
        unsigned mss;
    } rows[] = {
        { 1000, 1400 }, { 1400, 1400 }, { 1401, 1400 }, { 2800, 1400 },
        { 60000, 1400 }, { 65000, 536 }, { 300, 1 }, { 200, 7 },
    };
    uint64_t pkts = 0;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(rows); i++) {
        tso_post(&s, rows[i].payload, rows[i].mss, 0);
        eth_tx_ring(&s.tx);
        pkts += (rows[i].payload + rows[i].mss - 1) / rows[i].mss;
        tso_check(&s, rows[i].payload, rows[i].mss, 0);
        tso_post(&s, rows[i].payload, rows[i].mss, QHCA_ETH_VLAN);
        eth_tx_ring(&s.tx);
        tso_check(&s, rows[i].payload, rows[i].mss, 4);
        CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_PKTS), 2 * pkts);
    }
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_ERR), 0);
}

void tso_refusals(struct tso s)
{
    uint8_t *f = guest_ptr(s.g, s.mem, s.hdr), good[128];
    struct qhca_eth_wqe *w;

    memcpy(good, f, s.hdr);
#define TRY(change, status) \
    do { \
        w = tso_post(&s, 3000, 1400, 0); \
        change; \
        eth_tx_ring(&s.tx); \
        tso_expect(&s, status); \
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
    w = eth_tx_post(&s.tx, s.mem, VHCA_MAX_TSO + 1, QHCA_ETH_TSO);
    w->mss = htole16(100);
    eth_tx_ring(&s.tx);
    tso_expect(&s, QHCA_WC_LOC_QP_OP_ERR);
    tso_expect(&s, QHCA_WC_LOC_QP_OP_ERR);
    tso_expect(&s, QHCA_WC_LOC_LEN_ERR);
#undef TRY
}
