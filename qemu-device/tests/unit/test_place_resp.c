/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: FLUSH and ATOMIC WRITE (annex A19) at the responder,
 * against a scripted peer.
 */
#include "harness/fixture.h"
#include "tables.h"

#define PSN         0x222222u       /* rq_psn of RC_OPTS */
#define GLOBAL      QHCA_FLUSH_GLOBAL
#define PERSISTENT  QHCA_FLUSH_PERSISTENT
#define BOTH        (QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_FLUSH_PERSISTENT)

static const uint8_t word[8] = "\x01\x23\x45\x67\x89\xab\xcd\xef";

static struct roce_packet flush(uint32_t psn, uint64_t off, uint32_t len,
                                uint8_t level)
{
    struct roce_packet p = peer_request(&qp, RC_FLUSH, psn, off, len);

    p.flush_type = GLOBAL;
    p.flush_level = level;
    return p;
}

static struct roce_packet store(uint32_t psn, uint64_t off)
{
    return peer_request(&qp, RC_ATOMIC_WRITE, psn, off, 8);
}

static void inject(const struct roce_packet *p)
{
    size_t len = p->opcode == RC_ATOMIC_WRITE ? 8 : 0;

    peer_inject(&qp, p, word, len);
}

/* E-024: the response to both. */
static void expect_done(uint32_t psn, uint32_t msn)
{
    struct roce_packet p = peer_expect(&qp, RC_READ_RESP_ONLY, psn);

    CHECK_EQ(p.payload_len, 0);
    CHECK_EQ(p.syndrome, AETH_ACK);
    CHECK_EQ(p.msn, msn);
}

static void expect_refusal(uint8_t syndrome, uint32_t psn, unsigned event)
{
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, psn).syndrome, syndrome);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    eq_expect(&node.async, event, qp.qpn);
    no_event();
}

static const uint8_t *memory(uint64_t off)
{
    return guest_ptr(g, node.mr.addr + off, 8);
}

static void test_flush(void)
{
    struct roce_packet p;

    start_alone(&RC_OPTS);
    p = flush(PSN, 0, NODE_MEM, QHCA_FLUSH_RANGE);
    inject(&p);
    expect_done(PSN, 1);
    p = flush(PSN + 1, NODE_MEM - 1, 1, QHCA_FLUSH_RANGE);
    p.ackreq = false;                   /* has a response nevertheless */
    inject(&p);
    expect_done(PSN + 1, 2);
    p = flush(PSN + 2, 0, UINT32_MAX, QHCA_FLUSH_MR);
    p.va = UINT64_MAX;                  /* address and length are ignored */
    inject(&p);
    expect_done(PSN + 2, 3);
    p = flush(PSN + 3, 0, 0, QHCA_FLUSH_RANGE);
    p.va = 5;                           /* an empty range has no address */
    inject(&p);
    expect_done(PSN + 3, 4);
    CHECK_EQ(rc_query(&qp).epsn, htole32(PSN + 4));
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

static void test_store(void)
{
    struct roce_packet p;
    uint64_t writes;

    start_alone(&RC_OPTS);
    writes = g->writes;
    p = store(PSN, 64);
    inject(&p);
    expect_done(PSN, 1);
    CHECK(!memcmp(memory(64), word, 8));
    CHECK_EQ(g->stores, 1);             /* a single store (B-074) */
    CHECK_EQ(g->writes, writes);
    CHECK(!memcmp(memory(56), "\0\0\0\0\0\0\0", 8));
    CHECK(!memcmp(memory(72), "\0\0\0\0\0\0\0", 8));
    rc_expect_none(&qp.rcq);
}

/* Payload and RETH both say 8 bytes (B-074). */
static void test_lengths(void)
{
    static const struct {
        uint32_t dma_len;
        size_t len;
    } c[] = { { 4, 4 }, { 16, 16 }, { 8, 4 }, { 16, 8 }, { 4, 8 }, { 8, 0 } };
    static const uint8_t data[16];
    struct roce_packet p;

    for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
        start_alone(&RC_OPTS);
        p = store(PSN, 0);
        p.dma_len = c[i].dma_len;
        peer_inject(&qp, &p, data, c[i].len);
        expect_refusal(AETH_NAK_INV_REQ, PSN, QHCA_EVENT_QP_ACCESS_ERR);
        CHECK_EQ(g->stores, 0);
    }
    start_alone(&RC_OPTS);
    p = flush(PSN, 0, 8, QHCA_FLUSH_RANGE);
    peer_inject(&qp, &p, data, 4);       /* a FLUSH carries nothing */
    expect_refusal(AETH_NAK_INV_REQ, PSN, QHCA_EVENT_QP_ACCESS_ERR);
    start_alone(&RC_OPTS);
    p = flush(PSN, 0, 0x80000001u, QHCA_FLUSH_RANGE);
    inject(&p);
    expect_refusal(AETH_NAK_INV_REQ, PSN, QHCA_EVENT_QP_ACCESS_ERR);
}

/* All kinds of FLUSH, as encoded in 6 bits. */
static void test_kinds(void)
{
    struct rc_opts o = RC_OPTS;

    o.access |= BOTH;
    for (unsigned bits = 0; bits < 64; bits++) {
        uint8_t type = bits & 15, level = (uint8_t)(bits >> 4);
        bool known = type >= 1 && type <= 3 && level <= 1;
        struct roce_packet p;

        start_alone(&o);
        p = flush(PSN, 0, 8, level);
        p.flush_type = type;
        inject(&p);
        if (!known) {
            expect_refusal(AETH_NAK_INV_REQ, PSN, QHCA_EVENT_QP_ACCESS_ERR);
        } else if (type & PERSISTENT) {         /* no key allows it */
            expect_refusal(I_037_NAK, PSN, I_037_EVENT);
        } else {
            expect_done(PSN, 1);
        }
    }
}

enum { KEY, RANGE, RIGHT, PD, QP_RIGHT, ALIGN };

/* Changes @p as @what says; returns the expected NAK. */
static uint8_t spoil(struct roce_packet *p, unsigned what)
{
    uint32_t pd = what == PD ? pd_create(g) : node.pdn;
    unsigned access = QHCA_ACCESS_LOCAL_WRITE | REMOTE_ALL;
    struct gmr mr;

    if (what == RIGHT) {
        access &= ~(p->opcode == RC_FLUSH ? QHCA_ACCESS_FLUSH_GLOBAL :
                                            QHCA_ACCESS_REMOTE_WRITE);
    }
    mr = mr_create(g, pd, 4096, access);
    p->va = mr.addr + (what == RANGE ? 4096 : what == ALIGN ? 4 : 0);
    p->rkey = mr.key ^ (what == KEY);
    return what == QP_RIGHT || what == ALIGN ? AETH_NAK_INV_REQ :
                                               AETH_NAK_ACCESS;
}

static void test_refused(void)
{
    for (unsigned i = 0; i < 4 * 6; i++) {
        unsigned what = i / 4;
        bool is_store = i % 4 == 3;
        struct rc_opts o = RC_OPTS;
        struct roce_packet p;
        uint8_t nak;

        if ((what == ALIGN && !is_store) || (what == RANGE && i % 4 == 1)) {
            continue;
        }
        if (what == QP_RIGHT) {
            o.access &= ~(is_store ? QHCA_ACCESS_REMOTE_WRITE : BOTH);
        }
        start_alone(&o);
        /* FLUSH of a range, of all, of no bytes; ATOMIC WRITE. */
        p = is_store ? store(PSN, 0) :
                       flush(PSN, 0, i % 4 == 2 ? 0 : 8, i % 4 == 1);
        nak = spoil(&p, what);
        if (what == RANGE && i % 4 == 2) {
            nak = 0;                    /* an empty range is in range */
        }
        inject(&p);
        if (nak) {
            expect_refusal(nak, PSN, what == QP_RIGHT ?
                                     QHCA_EVENT_QP_REQ_ERR :
                                     QHCA_EVENT_QP_ACCESS_ERR);
        } else {
            expect_done(PSN, 1);
        }
        CHECK_EQ(g->stores, 0);
    }
}

/* A FLUSH of both kinds needs both rights. */
static void test_both(void)
{
    static const uint16_t has[] = {
        0, QHCA_ACCESS_FLUSH_GLOBAL, QHCA_ACCESS_FLUSH_PERSISTENT,
    };

    for (size_t i = 0; i < ARRAY_SIZE(has); i++) {
        struct rc_opts o = RC_OPTS;
        struct roce_packet p;

        o.access = (uint16_t)((o.access & ~BOTH) | has[i]);
        start_alone(&o);
        p = flush(PSN, 0, 8, QHCA_FLUSH_RANGE);
        p.flush_type = GLOBAL | PERSISTENT;
        inject(&p);
        expect_refusal(I_038_NAK, PSN, I_038_EVENT);
    }
}

/* Memory that cannot be written. */
static void test_dma(void)
{
    struct roce_packet p;

    start_alone(&RC_OPTS);
    guest_spoil(g, node.mr.addr + 64, 8);
    p = flush(PSN, 0, 256, QHCA_FLUSH_RANGE);   /* accesses no memory */
    inject(&p);
    expect_done(PSN, 1);
    p = store(PSN + 1, 64);
    inject(&p);
    expect_refusal(AETH_NAK_OP, PSN + 1, QHCA_EVENT_QP_FATAL);
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 1);
}

/* D-068: each request uses one of the resources. */
static void test_resources(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    for (unsigned i = 0; i < 2; i++) {
        o.dest_rd_atomic = 0;
        start_alone(&o);
        p = i ? store(PSN, 0) : flush(PSN, 0, 8, QHCA_FLUSH_RANGE);
        inject(&p);
        expect_refusal(I_025_NAK, PSN, I_025_EVENT);
    }
    o.dest_rd_atomic = 2;
    start_alone(&o);
    g->net_blocked = true;
    p = peer_packet(&qp, RC_SEND_ONLY, PSN - 1);
    for (unsigned i = 0; i < 120; i++) {        /* responses have to wait */
        peer_inject(&qp, &p, NULL, 0);
    }
    p = store(PSN, 0);
    inject(&p);
    p = flush(PSN + 1, 0, 8, QHCA_FLUSH_RANGE);
    inject(&p);
    p = store(PSN + 2, 8);
    inject(&p);
    guest_unblock(g);
    while (g->num_sent > 3) {
        peer_next(&qp, &p);
    }
    expect_done(PSN, 1);
    expect_done(PSN + 1, 2);
    expect_refusal(I_026_NAK, PSN + 2, I_026_EVENT);
    CHECK_EQ(g->stores, 1);
}

/* D-052, D-055: the response is sent again, nothing is executed again. */
static void test_duplicates(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet f, s, p;

    o.dest_rd_atomic = 2;
    start_alone(&o);
    f = flush(PSN, 0, 8, QHCA_FLUSH_RANGE);
    s = store(PSN + 1, 0);
    inject(&f);
    inject(&s);
    CHECK_EQ(peer_drain(&qp), 2);
    memset(guest_ptr(g, node.mr.addr, 8), 0x77, 8);
    inject(&s);
    expect_done(PSN + 1, 2);
    inject(&f);
    expect_done(PSN, 2);
    CHECK_EQ(g->stores, 1);
    CHECK(memory(0)[0] == 0x77);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 2);

    p = f;                              /* not the original requests */
    p.psn = PSN + 1;
    inject(&p);
    p = s;
    p.psn = PSN;
    inject(&p);
    p = peer_request(&qp, RC_READ_REQUEST, PSN, 0, 0);
    inject(&p);
    p = peer_packet(&qp, RC_FETCH_ADD, PSN + 1);
    inject(&p);
    peer_expect_none(&qp);

    p = peer_packet(&qp, RC_SEND_ONLY, PSN - 1);
    inject(&p);                         /* D-014: no ACK beyond the FLUSH */
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN - 1).syndrome, AETH_ACK);
    p = flush(PSN + 2, 0, 8, QHCA_FLUSH_MR);
    inject(&p);                         /* replaces the oldest response */
    expect_done(PSN + 2, 3);
    inject(&f);
    peer_expect_none(&qp);
    inject(&s);
    expect_done(PSN + 1, 3);

    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DEREG_MR, node.mr.key), QHCA_OK);
    inject(&s);                         /* already done; no key is needed */
    expect_done(PSN + 1, 3);
    CHECK_EQ(g->stores, 1);
}

/* B-073, B-074: both are executed after the WRITE before them. */
static void test_order(void)
{
    struct roce_packet p;

    start_alone(&RC_OPTS);
    p = store(PSN, 0);
    p.opcode = RC_WRITE_FIRST;
    p.dma_len = 1024 + 8;
    peer_inject(&qp, &p, guest_ptr(g, node.mr.addr + 4096, 1024), 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    p = flush(PSN + 2, 0, 8, QHCA_FLUSH_RANGE);
    inject(&p);                         /* the WRITE lacks its last packet */
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, PSN + 1).syndrome, AETH_NAK_SEQ);
    p = store(PSN + 3, 0);
    inject(&p);
    peer_expect_none(&qp);
    CHECK_EQ(g->stores, 0);
    peer_send(&qp, RC_WRITE_LAST, PSN + 1, word, 8);
    CHECK_EQ(peer_drain(&qp), 1);
    p = flush(PSN + 2, 0, 8, QHCA_FLUSH_RANGE);
    inject(&p);
    CHECK(!memcmp(memory(1024), word, 8));
    expect_done(PSN + 2, 2);
    p = peer_request(&qp, RC_WRITE_FIRST, PSN + 3, 0, 2048);
    peer_inject(&qp, &p, guest_ptr(g, node.mr.addr + 4096, 1024), 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    p = store(PSN + 4, 0);              /* in the middle of a message */
    inject(&p);
    expect_refusal(AETH_NAK_INV_REQ, PSN + 4, QHCA_EVENT_QP_REQ_ERR);
}

static const struct test tests[] = {
    { "B-012 B-073 E-024 FLUSH of a range, of a region", test_flush },
    { "B-013 B-074 E-024 ATOMIC WRITE", test_store },
    { "B-074 D-064 lengths", test_lengths },
    { "E-009 I-037 kinds of FLUSH", test_kinds },
    { "I-037 I-038 D-063 keys, ranges, rights", test_refused },
    { "I-038 D-063 a FLUSH of both kinds", test_both },
    { "H-002 memory that cannot be written", test_dma },
    { "I-025 I-026 D-068 resources", test_resources },
    { "D-052 D-055 D-014 duplicates", test_duplicates },
    { "B-073 B-074 D-062 order after a WRITE", test_order },
};

TEST_MAIN(tests)
