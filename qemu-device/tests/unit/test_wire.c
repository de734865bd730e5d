/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the wire format, against frames made by other code, and
 * parsing of whatever may arrive.
 */
#include <stdio.h>

#include "harness/debug.h"
#include "harness/harness.h"
#include "harness/net.h"
#include "wire_vectors.h"

static const uint8_t v4_1[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t v4_2[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
static const uint8_t v6_1[16] = {
    0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56,
};
static const uint8_t v6_2[16] = { 0xfd, [15] = 2 };

static struct roce_packet packet(bool ipv4, uint8_t opcode, uint32_t psn)
{
    struct roce_packet p = {
        .smac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
        .dmac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x57 },
        .vlan = QHCA_NO_VLAN, .ipv4 = ipv4, .hop_limit = 64, .sport = 0xffff,
        .opcode = opcode, .pkey = 0xffff, .psn = psn, .dest_qp = 0x11,
    };

    memcpy(p.sgid, ipv4 ? v4_1 : v6_1, 16);
    memcpy(p.dgid, ipv4 ? v4_2 : v6_2, 16);
    return p;
}

/* Builds @p and compares with @want, byte by byte. */
static void check_build(const struct roce_packet *p, const char *payload,
                        const uint8_t *want, size_t want_len)
{
    uint8_t frame[ROCE_MAX_FRAME];
    size_t len;

    memset(frame, 0xa5, sizeof(frame));
    memcpy(frame + roce_payload_offset(p), payload, p->payload_len);
    len = roce_finish(p, frame);
    CHECK_EQ(len, want_len);
    for (size_t i = 0; i < len && i < want_len; i++) {
        if (frame[i] != want[i]) {
            tap_note("byte %zu: 0x%02x, not 0x%02x", i, frame[i], want[i]);
            CHECK(!"same bytes");
            return;
        }
    }
}

static void test_build_send(void)
{
    struct roce_packet p = packet(true, RC_SEND_ONLY, 0xfffffe);

    p.tclass = 2;
    p.sport = 0xd431;
    p.solicited = p.ackreq = true;
    p.dest_qp = 0x123456;
    p.payload_len = 5;
    check_build(&p, "hello", send_only_v4, sizeof(send_only_v4));
}

static void test_build_write_imm(void)
{
    struct roce_packet p = packet(false, RC_WRITE_ONLY_IMM, 0x10);

    p.vlan = 100;
    p.sl = 3;
    p.tclass = 0xb8;
    p.hop_limit = 255;
    p.flow_label = 0x12345;
    p.sport = 0xc001;
    p.ackreq = true;
    p.dest_qp = 0xabc;
    p.va = 0x1122334455667788;
    p.rkey = 0xcafe0001;
    p.dma_len = 7;
    memcpy(&p.imm, "\1\2\3\4", 4);
    p.payload_len = 7;
    check_build(&p, "payload", write_imm_v6_vlan, sizeof(write_imm_v6_vlan));
}

static void test_build_answers(void)
{
    struct roce_packet p = packet(true, RC_ACKNOWLEDGE, 0x800000);

    p.hop_limit = 1;
    p.sport = 0xc000;
    p.syndrome = AETH_ACK;
    p.msn = 0xabcdef;
    check_build(&p, "", ack_v4, sizeof(ack_v4));
    CHECK_EQ(sizeof(ack_v4), 62);       /* E-011 */

    p = packet(true, RC_FETCH_ADD, 5);
    p.ackreq = true;
    p.va = 0x1000;
    p.rkey = 0x42;
    p.swap_add = 3;
    check_build(&p, "", fetch_add_v4, sizeof(fetch_add_v4));

    p = packet(false, RC_ATOMIC_ACKNOWLEDGE, 5);
    p.syndrome = AETH_ACK;
    p.msn = 9;
    p.atomic_orig = 0x0102030405060708;
    check_build(&p, "", atomic_ack_v6, sizeof(atomic_ack_v6));
}

static void test_xrc(void)
{
    struct roce_packet p = packet(true, SVC_XRC | RC_WRITE_ONLY_IMM, 6);

    p.solicited = p.ackreq = true;
    p.srqn = 0xabcdef;
    p.va = 0x2000;
    p.rkey = 0x43;
    p.dma_len = p.payload_len = 5;
    memcpy(&p.imm, "\5\6\7\10", 4);
    check_build(&p, "12345", xrc_write_imm_v4, sizeof(xrc_write_imm_v4));

    p = packet(false, SVC_XRC | RC_CMP_SWAP, 7);
    p.ackreq = true;
    p.srqn = 1;
    p.va = 0x3000;
    p.rkey = 0x44;
    p.swap_add = 1;
    p.compare = 2;
    check_build(&p, "", xrc_cmp_swap_v6, sizeof(xrc_cmp_swap_v6));

    CHECK_EQ(roce_parse(&p, xrc_write_imm_v4, sizeof(xrc_write_imm_v4)),
             ROCE_OK);
    CHECK_EQ(p.srqn, 0xabcdef);
    CHECK(p.va == 0x2000 && p.rkey == 0x43 && p.dma_len == 5);
    CHECK(p.payload_len == 5 && !memcmp(p.payload, "12345", 5));
    CHECK_EQ(roce_parse(&p, xrc_cmp_swap_v6, sizeof(xrc_cmp_swap_v6)),
             ROCE_OK);
    CHECK(p.srqn == 1 && p.va == 0x3000 && p.swap_add == 1 && p.compare == 2);
}

static void test_build_placement(void)
{
    struct roce_packet p = packet(false, RC_FLUSH, 5);

    p.ackreq = true;
    p.va = 0x1122334455667788;
    p.rkey = 0xcafe0001;
    p.dma_len = 0x1234;
    p.flush_type = 3;
    p.flush_level = 1;
    check_build(&p, "", flush_v6, sizeof(flush_v6));

    p = packet(true, RC_ATOMIC_WRITE, 5);
    p.ackreq = true;
    p.va = 0x1122334455667788;
    p.rkey = 0xcafe0001;
    p.dma_len = 8;
    p.payload_len = 8;
    check_build(&p, "\1\2\3\4\5\6\7\10", atomic_write_v4,
                sizeof(atomic_write_v4));
}

static void test_masked(void)
{
    struct roce_packet p = packet(true, RC_MASKED_CMP_SWAP, 5);

    CHECK_EQ(sizeof(masked_cmp_swap_v4), sizeof(fetch_add_v4) + 16);
    p.ackreq = true;
    p.va = 0x1122334455667788;
    p.rkey = 0xcafe0001;
    p.swap_add = 0x0102030405060708;
    p.compare = 0x1112131415161718;
    p.swap_mask = 0x2122232425262728;
    p.compare_mask = 0x3132333435363738;
    check_build(&p, "", masked_cmp_swap_v4, sizeof(masked_cmp_swap_v4));

    CHECK_EQ(roce_parse(&p, masked_cmp_swap_v4, sizeof(masked_cmp_swap_v4)),
             ROCE_OK);
    CHECK(p.opcode == 0xd3 && p.payload_len == 0 && p.rkey == 0xcafe0001);
    CHECK(p.va == 0x1122334455667788);
    CHECK(p.swap_add == 0x0102030405060708);
    CHECK(p.compare == 0x1112131415161718);
    CHECK(p.swap_mask == 0x2122232425262728);
    CHECK(p.compare_mask == 0x3132333435363738);
}

/* In a block of its own, so that the sanitizer sees a read past it. */
static enum roce_parse_result parse_copy(struct roce_packet *p,
                                         const uint8_t *frame, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    enum roce_parse_result res;

    memcpy(copy, frame, len);
    res = roce_parse(p, copy, len);
    if (res == ROCE_OK) {
        volatile uint8_t sum = 0;   /* volatile: the reads must happen */

        for (size_t i = 0; i < p->payload_len; i++) {
            sum = (uint8_t)(sum + p->payload[i]);
        }
    }
    free(copy);
    return res;
}

static void test_parse(void)
{
    struct roce_packet p;

    CHECK_EQ(roce_parse(&p, send_only_v4, sizeof(send_only_v4)), ROCE_OK);
    CHECK_EQ(p.opcode, RC_SEND_ONLY);
    CHECK(p.solicited && p.ackreq && p.ipv4);
    CHECK_EQ(p.dest_qp, 0x123456);
    CHECK_EQ(p.psn, 0xfffffe);
    CHECK_EQ(p.sport, 0xd431);
    CHECK_EQ(p.payload_len, 5);
    CHECK(!memcmp(p.payload, "hello", 5));
    CHECK(!memcmp(p.sgid, v4_1, 16) && !memcmp(p.dgid, v4_2, 16));

    CHECK_EQ(roce_parse(&p, write_imm_v6_vlan, sizeof(write_imm_v6_vlan)),
             ROCE_OK);
    CHECK_EQ(p.vlan, 100);
    CHECK_EQ(p.sl, 3);
    CHECK_EQ(p.flow_label, 0x12345);
    CHECK_EQ(p.tclass, 0xb8);
    CHECK(p.va == 0x1122334455667788 && p.rkey == 0xcafe0001);
    CHECK_EQ(p.dma_len, 7);
    CHECK(!memcmp(&p.imm, "\1\2\3\4", 4));
    CHECK_EQ(p.payload_len, 7);
    CHECK(!memcmp(p.sgid, v6_1, 16) && !memcmp(p.dgid, v6_2, 16));

    CHECK_EQ(roce_parse(&p, ack_v4, sizeof(ack_v4)), ROCE_OK);
    CHECK_EQ(p.syndrome, AETH_ACK);
    CHECK_EQ(p.msn, 0xabcdef);
    CHECK_EQ(roce_parse(&p, atomic_ack_v6, sizeof(atomic_ack_v6)), ROCE_OK);
    CHECK(p.atomic_orig == 0x0102030405060708);

    CHECK_EQ(roce_parse(&p, flush_v6, sizeof(flush_v6)), ROCE_OK);
    CHECK(p.va == 0x1122334455667788 && p.rkey == 0xcafe0001);
    CHECK_EQ(p.dma_len, 0x1234);
    CHECK(p.flush_type == 3 && p.flush_level == 1);
    CHECK_EQ(p.payload_len, 0);
    CHECK_EQ(roce_parse(&p, atomic_write_v4, sizeof(atomic_write_v4)), ROCE_OK);
    CHECK(p.va == 0x1122334455667788 && p.dma_len == 8);
    CHECK_EQ(p.payload_len, 8);
    CHECK(!memcmp(p.payload, "\1\2\3\4\5\6\7\10", 8));
}

/* Whether byte @i of @f may change on the way (E-033); @l3: the IP header. */
static bool is_variant(size_t i, size_t l3, bool ipv4, uint8_t bit)
{
    size_t udp = l3 + (ipv4 ? IPV4_LEN : IPV6_LEN), o = i - l3;

    if (i < l3) {
        return true;
    }
    if (i == udp + 6 || i == udp + 7 || i == udp + UDP_LEN + 4) {
        return true;
    }
    if (ipv4) {
        return o == 1 || o == 8 || o == 10 || o == 11;
    }
    return (o == 0 && bit < 4) || (o >= 1 && o <= 3) || o == 7;
}

static void flip_all(const uint8_t *good, size_t len, size_t l3, bool ipv4)
{
    uint8_t f[256];
    struct roce_packet p;

    for (size_t i = 0; i < len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            enum roce_parse_result res;

            memcpy(f, good, len);
            f[i] ^= (uint8_t)(1u << bit);
            res = parse_copy(&p, f, len);
            if (i == l3 - 1 || i == l3 - 2 || (l3 == 18 && i >= 12 && i < 14)) {
                continue;       /* EtherTypes */
            }
            if ((res == ROCE_OK) != is_variant(i, l3, ipv4, (uint8_t)bit)) {
                tap_note("byte %zu bit %u: result %d", i, bit, res);
                CHECK(!"flip judged rightly");
            }
        }
    }
}

static void test_icrc_coverage(void)
{
    flip_all(send_only_v4, sizeof(send_only_v4), 14, true);
    flip_all(write_imm_v6_vlan, sizeof(write_imm_v6_vlan), 18, false);
    flip_all(ack_v4, sizeof(ack_v4), 14, true);
}

static void refit_icrc(uint8_t *f, size_t len, size_t l3, bool ipv4)
{
    uint32_t crc = roce_icrc(f + l3, ipv4, len - l3 - ICRC_LEN);

    for (int i = 0; i < 4; i++) {
        f[len - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
    }
}

static void test_malformed(void)
{
    static const struct {
        size_t off;
        uint8_t val;
        const char *what;
    } bad[] = {
        { 14, 0x44, "IHL 4" }, { 14, 0x46, "IHL 6" }, { 14, 0x65, "version" },
        { 20, 0x20, "more fragments" }, { 21, 0x01, "fragment offset" },
        { 23, 6, "TCP" }, { 17, 0x33, "IP length" }, { 37, 0xb8, "port" },
        { 39, 0x24, "UDP length" }, { 39, 0x1c, "UDP length" },
        { 43, 0xf1, "TVer 1" },
    };
    uint8_t f[sizeof(send_only_v4)];
    struct roce_packet p;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        memcpy(f, send_only_v4, sizeof(f));
        f[bad[i].off] = bad[i].val;
        refit_icrc(f, sizeof(f), 14, true);
        if (parse_copy(&p, f, sizeof(f)) != ROCE_MALFORMED) {
            tap_note("%s", bad[i].what);
            CHECK(!"malformed");
        }
    }
}

static void test_truncation(void)
{
    static const struct {
        const uint8_t *f;
        size_t len;
    } v[] = {
        { send_only_v4, sizeof(send_only_v4) }, { ack_v4, sizeof(ack_v4) },
        { write_imm_v6_vlan, sizeof(write_imm_v6_vlan) },
        { fetch_add_v4, sizeof(fetch_add_v4) },
        { atomic_ack_v6, sizeof(atomic_ack_v6) },
        { flush_v6, sizeof(flush_v6) },
        { atomic_write_v4, sizeof(atomic_write_v4) },
    };
    struct roce_packet p;
    uint8_t longer[256];

    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        for (size_t len = 0; len < v[i].len; len++) {
            CHECK(parse_copy(&p, v[i].f, len) == ROCE_MALFORMED);
        }
        /* Ethernet padding behind the datagram does not matter. */
        memset(longer, 0xee, sizeof(longer));
        memcpy(longer, v[i].f, v[i].len);
        CHECK(parse_copy(&p, longer, sizeof(longer)) == ROCE_OK);
    }
}

/* Every opcode, payload length and header combination: out and in again. */
static void test_round_trip(void)
{
    uint8_t frame[ROCE_MAX_FRAME];
    uint64_t rng = 77;

    for (unsigned op = 0; op < 256; op++) {
        uint16_t flags = roce_opcode((uint8_t)op)->flags;

        for (size_t len = 0; len <= 4096; len += len < 9 ? 1 : 681) {
            struct roce_packet p = packet(op & 1, (uint8_t)op, op * 0x1001u);
            struct roce_packet q;
            size_t n;

            if (!roce_opcode((uint8_t)op)->op ||
                (len && !(flags & OPF_PAYLOAD))) {
                continue;
            }
            p.vlan = op & 2 ? 7 : QHCA_NO_VLAN;
            p.va = test_random(&rng);
            p.rkey = (uint32_t)test_random(&rng);
            p.srqn = (uint32_t)test_random(&rng) & PSN_MASK;
            p.dma_len = (uint32_t)test_random(&rng);
            p.flush_type = (uint8_t)(rng & 15);
            p.flush_level = (uint8_t)(rng >> 4 & 3);
            p.payload_len = len;
            memset(frame + roce_payload_offset(&p), (int)op, len);
            n = roce_finish(&p, frame);
            CHECK(n <= sizeof(frame));
            REQUIRE(parse_copy(&q, frame, n) == ROCE_OK);
            CHECK(q.opcode == op && q.psn == p.psn && q.payload_len == len);
            CHECK(q.vlan == p.vlan && q.ipv4 == p.ipv4);
            CHECK(!(flags & OPF_RETH) ||
                  (q.va == p.va && q.rkey == p.rkey && q.dma_len == p.dma_len));
            CHECK(q.srqn == (flags & OPF_XRCETH ? p.srqn : 0));
            CHECK(!(flags & OPF_FETH) || (q.flush_type == p.flush_type &&
                                          q.flush_level == p.flush_level));
        }
    }
}

/* Random bytes behind a plausible start, with an ICRC that fits (E-046). */
static void test_fuzz(void)
{
    uint8_t f[200];
    struct roce_packet p;
    uint64_t rng = 4711;

    for (unsigned i = 0; i < 200000; i++) {
        bool v6 = i & 1;
        size_t len = 60 + test_random(&rng) % 140;
        const uint8_t *base = v6 ? atomic_ack_v6 : fetch_add_v4;

        for (size_t j = 0; j < len; j++) {
            f[j] = (uint8_t)test_random(&rng);
        }
        memcpy(f, base, v6 ? 54 : 42);
        put_be16(f + 16, (uint16_t)(len - 14));
        if (v6) {
            put_be16(f + 18, (uint16_t)(len - 54));
        }
        put_be16(f + (v6 ? 58 : 38), (uint16_t)(len - (v6 ? 54 : 34)));
        if (len >= (v6 ? 82u : 62u)) {
            refit_icrc(f, len, 14, !v6);
        }
        parse_copy(&p, f, len);
    }
}

static const struct test tests[] = {
    { "E-001 E-004 E-030 E-032 SEND_ONLY over IPv4, padding", test_build_send },
    { "E-001 E-002 E-005 E-009 WRITE_ONLY_IMM over IPv6, VLAN",
      test_build_write_imm },
    { "E-006 E-007 E-011 acknowledgements and atomics", test_build_answers },
    { "E-009 E-027 requests of XRC", test_xrc },
    { "E-009 E-024 FLUSH and ATOMIC WRITE", test_build_placement },
    { "E-012 E-028 masked atomics, of this device alone", test_masked },
    { "E-004..E-009 parsing frames of another maker", test_parse },
    { "E-033 E-034 every bit flipped", test_icrc_coverage },
    { "E-002 E-045 malformed headers", test_malformed },
    { "E-046 every truncation, padding behind the frame", test_truncation },
    { "E-020..E-027 every opcode and many lengths there and back",
      test_round_trip },
    { "E-046 random frames with a fitting ICRC", test_fuzz },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
