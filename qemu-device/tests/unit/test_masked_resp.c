/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: masked atomics, which have no IBTA opcodes, at the
 * responder.
 */
#include "harness/debug.h"
#include "harness/fixture.h"

#define RQ_PSN  0x222222u       /* rq_psn of RC_OPTS */
#define ALL     UINT64_MAX
#define TOPS    0x8080808080808080ull   /* boundaries of one-byte fields */
#define CAS     RC_MASKED_CMP_SWAP
#define FAA     RC_MASKED_FETCH_ADD

static uint64_t get_word(uint64_t off)
{
    uint64_t v;

    memcpy(&v, guest_ptr(g, node.mr.addr + off, 8), 8);
    return le64toh(v);
}

static void set_word(uint64_t off, uint64_t v)
{
    v = htole64(v);
    memcpy(guest_ptr(g, node.mr.addr + off, 8), &v, 8);
}

struct op {
    uint8_t opcode;
    uint64_t word, swap_add, compare, swap_mask, compare_mask, result;
};

static struct roce_packet request(const struct op *op, uint32_t psn,
                                  uint64_t off)
{
    struct roce_packet p = peer_request(&qp, op->opcode, psn, off, 0);

    p.swap_add = op->swap_add;
    p.compare = op->compare;
    p.swap_mask = op->swap_mask;
    p.compare_mask = op->compare_mask;
    return p;
}

static void inject(const struct op *op, uint32_t psn, uint64_t off)
{
    struct roce_packet p = request(op, psn, off);

    peer_inject(&qp, &p, NULL, 0);
}

static void expect_orig(uint32_t psn, uint64_t orig)
{
    struct roce_packet p = peer_expect(&qp, RC_ATOMIC_ACKNOWLEDGE, psn);

    CHECK_EQ(p.syndrome, AETH_ACK);
    CHECK(p.atomic_orig == orig);
}

static void test_values(void)
{
    static const struct op ops[] = {
        /* One field carries as a plain FETCH_ADD does. */
        { FAA, 5, 3, 0, 0, 0, 8 },
        { FAA, ALL, 2, 0, 0, 0, 1 },
        { FAA, 0xff, 1, 0, 0, 0, 0x100 },
        { FAA, ALL, 2, 0, 0, 1ull << 63, 1 },
        /* Two fields; the upper one with or without a boundary of its own. */
        { FAA, 0xffffffff, 1, 0, 0, 1ull << 31, 0 },
        { FAA, 0x7fffffff, 1, 0, 0, 1ull << 31, 0x80000000 },
        { FAA, 0x7fffffff, 1, 0, 0, 1ull << 30, 0 },
        { FAA, ALL, 0x100000001, 0, 0, 1ull << 31, 0 },
        { FAA, ALL, 0x100000001, 0, 0, 1ull << 63 | 1ull << 31, 0 },
        { FAA, 0x1ffffffff, 0xffffffff, 0, 0, 1ull << 31, 0x1fffffffe },
        /* Fields of a byte, of a bit, and of many sizes. */
        { FAA, 0xff01fe80ff7f0055, 0x01ff03800101ff11, 0, 0, TOPS,
          0x000001000080ff66 },
        { FAA, ALL, 0x0101010101010101, 0, 0, TOPS, 0 },
        { FAA, 0x0f0f, 0x00ff, 0, 0, ALL, 0x0ff0 },
        { FAA, ALL, ALL, 0, 0, ALL, 0 },
        { FAA, 0xfff, 0x211, 0, 0, 0x918, 0x1e0 },
        /* The other mask and operand are ignored. */
        { FAA, 1, 2, ALL, ALL, 0, 3 },
        { CAS, 5, 9, 5, ALL, ALL, 9 },
        { CAS, 5, 9, 4, ALL, ALL, 5 },
        { CAS, 0, 9, 0, ALL, ALL, 9 },
        { CAS, 0x1234, 0xabcd, 0xff34, 0xff00, 0x00ff, 0xab34 },
        { CAS, 0x1234, 0xabcd, 0xff35, 0xff00, 0x00ff, 0x1234 },
        { CAS, 0x1234, 0xabcd, 0x5678, ALL, 0, 0xabcd },
        { CAS, 0x1234, 0xabcd, 0x5678, 0, 0, 0x1234 },
        { CAS, ALL, 0, 1ull << 63, 1ull << 63, 1ull << 63, ALL >> 1 },
        { CAS, ALL >> 1, 0, 1ull << 63, ALL, 1ull << 63, ALL >> 1 },
    };

    start_alone(&RC_OPTS);
    for (uint32_t i = 0; i < ARRAY_SIZE(ops); i++) {
        set_word(64, ops[i].word);
        inject(&ops[i], RQ_PSN + i, 64);
        expect_orig(RQ_PSN + i, ops[i].word);
        if (get_word(64) != ops[i].result) {
            tap_note("operation %u: 0x%llx, not 0x%llx", i,
                     (unsigned long long)get_word(64),
                     (unsigned long long)ops[i].result);
            CHECK(!"right value");
        }
        CHECK(!get_word(56) && !get_word(72));
    }
    CHECK_EQ(rc_query(&qp).msn, htole32(ARRAY_SIZE(ops)));
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

/* With all bits, or no boundary, they do what plain atomics do. */
static void test_plain(void)
{
    uint64_t rng = 99;

    start_alone(&RC_OPTS);
    for (uint32_t i = 0; i < 1000; i += 2) {
        uint64_t v = test_random(&rng), x = test_random(&rng);
        struct op op = {
            .opcode = i & 4 ? RC_CMP_SWAP : RC_FETCH_ADD, .swap_add = x,
            .compare = i & 8 ? v : x,
        };

        set_word(0, v);
        set_word(8, v);
        inject(&op, RQ_PSN + i, 0);
        expect_orig(RQ_PSN + i, v);
        op.opcode |= SVC_VENDOR;
        if (op.opcode == CAS) {
            op.swap_mask = op.compare_mask = ALL;
        }
        inject(&op, RQ_PSN + i + 1, 8);
        expect_orig(RQ_PSN + i + 1, v);
        CHECK(get_word(0) == get_word(8));
    }
}

/* D-052: a duplicate gets the saved result, but only for the same request. */
static void test_duplicates(void)
{
    static const struct op add = { FAA, .swap_add = 5, .compare_mask = TOPS };
    static const struct op swap = {
        CAS, .swap_add = 0xff, .swap_mask = 0xf0, .compare_mask = 0,
    };
    static const struct op plain = { RC_FETCH_ADD, .swap_add = 5 };

    start_alone(&RC_OPTS);
    set_word(0, 0xfe);
    inject(&add, RQ_PSN, 0);
    inject(&swap, RQ_PSN + 1, 0);
    expect_orig(RQ_PSN, 0xfe);
    expect_orig(RQ_PSN + 1, 3);
    inject(&swap, RQ_PSN + 1, 0);
    expect_orig(RQ_PSN + 1, 3);
    inject(&add, RQ_PSN, 0);
    expect_orig(RQ_PSN, 0xfe);
    CHECK(get_word(0) == 0xf3);
    inject(&swap, RQ_PSN, 0);           /* not the request executed there */
    inject(&plain, RQ_PSN, 0);
    inject(&add, RQ_PSN + 1, 0);
    peer_expect_none(&qp);
    CHECK(get_word(0) == 0xf3);
    CHECK_EQ(counter(g, QHCA_CNT_RX_DUPLICATE), 5);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
}

/* I-004 to I-026: masked atomics are refused when plain ones are. */
static void test_refusals(void)
{
    static const struct {
        uint16_t access;
        uint8_t resources;
        uint64_t off;
        uint32_t key;           /* XORed to the R_Key */
        size_t payload;
        uint8_t syndrome;
        unsigned event;
    } c[] = {
        { REMOTE_ALL & ~QHCA_ACCESS_REMOTE_ATOMIC, 4, 0, 0, 0,
          AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR },
        { REMOTE_ALL, 0, 0, 0, 0, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR },
        { REMOTE_ALL, 4, 4, 0, 0, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR },
        { REMOTE_ALL, 4, 1, 0, 0, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR },
        { REMOTE_ALL, 4, 0, 0, 8, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR },
        { REMOTE_ALL, 4, 0, 1, 0, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR },
        { REMOTE_ALL, 4, NODE_MEM, 0, 0, AETH_NAK_ACCESS,
          QHCA_EVENT_QP_ACCESS_ERR },
    };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(c); i++) {
        const struct op op = {
            i & 1 ? CAS : FAA, .swap_add = 7, .swap_mask = ALL,
        };
        struct rc_opts o = RC_OPTS;
        struct roce_packet p;
        size_t j = i / 2;

        o.access = c[j].access;
        o.dest_rd_atomic = c[j].resources;
        start_alone(&o);
        p = request(&op, RQ_PSN, c[j].off);
        p.rkey ^= c[j].key;
        peer_inject(&qp, &p, "payload", c[j].payload);
        CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, RQ_PSN).syndrome,
                 c[j].syndrome);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
        eq_expect(&node.async, c[j].event, qp.qpn);
        CHECK(!get_word(0));
    }
}

/* The region has to give the right as well. */
static void test_region(void)
{
    static const struct op op = { FAA, .swap_add = 7 };
    struct roce_packet p;
    struct gmr mr;

    start_alone(&RC_OPTS);
    mr = mr_create(g, node.pdn, 4096, QHCA_ACCESS_LOCAL_WRITE |
                                      QHCA_ACCESS_REMOTE_WRITE);
    p = request(&op, RQ_PSN, 0);
    p.va = mr.addr;
    p.rkey = mr.key;
    peer_inject(&qp, &p, NULL, 0);
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, RQ_PSN).syndrome,
             AETH_NAK_ACCESS);
}

/* E-027: only RC has masked atomics, and no other opcode of that range. */
static void test_service(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_XRC_INI,
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        uint64_t drops = 0;

        start_type(types[i]);
        for (unsigned op = SVC_VENDOR; op < 256; op++) {
            const struct op r = { (uint8_t)op, .swap_add = 7 };

            if (types[i] == QHCA_QPT_RC && (op == CAS || op == FAA)) {
                continue;
            }
            inject(&r, RQ_PSN, 0);
            drops++;
        }
        CHECK_EQ(counter(g, QHCA_CNT_RX_NO_QP), drops);
        peer_expect_none(&qp);
        CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
        CHECK(!get_word(0));
    }
}

/* ---- a CPU that changes the word as well ---- */

static unsigned tries, busy;

/* Adds 1 to the upper half of the word, @busy times. */
static void touch(struct guest *guest, uint64_t addr)
{
    (void)guest;
    if (tries++ < busy) {
        set_word(addr - node.mr.addr, get_word(addr - node.mr.addr) +
                                      (1ull << 32));
    }
}

static void test_contention(void)
{
    static const struct op add = {
        FAA, .swap_add = 1, .compare_mask = 1ull << 31,
    };
    static const unsigned times[] = { 1, 2, QHCA_MASKED_TRIES - 1 };

    start_alone(&RC_OPTS);
    g->on_cas = touch;
    for (uint32_t i = 0; i < ARRAY_SIZE(times); i++) {
        busy = times[i];
        tries = 0;
        set_word(0, 0xffffffff);
        inject(&add, RQ_PSN + i, 0);
        expect_orig(RQ_PSN + i, (uint64_t)busy << 32 | 0xffffffff);
        CHECK(get_word(0) == (uint64_t)busy << 32);     /* nothing is lost */
        CHECK_EQ(tries, busy + 1);
    }
    busy = UINT32_MAX;
    tries = 0;
    set_word(0, 0xffffffff);
    inject(&add, RQ_PSN + 3, 0);
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, RQ_PSN + 3).syndrome,
             AETH_NAK_OP);
    CHECK_EQ(tries, QHCA_MASKED_TRIES);
    CHECK(get_word(0) == ((uint64_t)tries << 32 | 0xffffffff));
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    eq_expect(&node.async, QHCA_EVENT_QP_FATAL, qp.qpn);
}

static void test_bad_memory(void)
{
    static const struct op add = { FAA, .swap_add = 1 };

    start_alone(&RC_OPTS);
    guest_spoil(g, node.mr.addr, 8);
    inject(&add, RQ_PSN, 0);
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, RQ_PSN).syndrome, AETH_NAK_OP);
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 1);
}

static const struct test tests[] = {
    { "B-075 masks, fields and the resulting word", test_values },
    { "B-075 B-072 all bits, one field: like plain atomics", test_plain },
    { "D-052 duplicates", test_duplicates },
    { "I-013 I-017 I-025 I-004 refused requests", test_refusals },
    { "I-007 a region without the right", test_region },
    { "E-027 E-028 only RC has masked atomics", test_service },
    { "B-075 a CPU changes the word meanwhile, or for ever", test_contention },
    { "H-002 memory that fails", test_bad_memory },
};

TEST_MAIN(tests)
