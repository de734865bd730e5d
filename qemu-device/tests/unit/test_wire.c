/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: parsing of arbitrary frames. test_vectors.c checks the
 * meaning of their bytes.
 */
#include <stdio.h>

#include "harness/debug.h"
#include "harness/harness.h"
#include "harness/net.h"
#include "harness/vectors.h"

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

static void refit_icrc(uint8_t *f, size_t len, size_t l3, bool ipv4)
{
    uint32_t crc = roce_icrc(f + l3, ipv4, len - l3 - ICRC_LEN);

    for (int i = 0; i < 4; i++) {
        f[len - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
    }
}

/* Every opcode, payload length and header combination, built and parsed. */
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

/* Random bytes after valid IP and UDP headers, with a valid ICRC. */
static void test_fuzz(void)
{
    uint8_t f[200];
    uint64_t rng = 4711;
    unsigned parsed = 0;

    for (unsigned i = 0; i < 200000; i++) {
        bool ipv4 = i & 1;
        struct roce_packet p = packet(ipv4, 0, 0);
        size_t udp = ETH_LEN + (ipv4 ? IPV4_LEN : IPV6_LEN);
        size_t len = udp + UDP_LEN + test_random(&rng) % 120;

        roce_finish(&p, f);
        put_be16(f + ETH_LEN + (ipv4 ? 2 : 4),
                 (uint16_t)(len - (ipv4 ? ETH_LEN : udp)));
        put_be16(f + udp + 4, (uint16_t)(len - udp));
        for (size_t j = udp + UDP_LEN; j < len; j++) {
            f[j] = (uint8_t)test_random(&rng);
        }
        if (len >= udp + UDP_LEN + BTH_LEN + ICRC_LEN) {
            f[udp + UDP_LEN + 1] &= 0xf0;       /* TVer */
            refit_icrc(f, len, ETH_LEN, ipv4);
        }
        parsed += parse_copy(&p, f, len) == ROCE_OK;
    }
    CHECK(parsed > 100000);
}

static const struct test tests[] = {
    { "E-020..E-027 every opcode and many lengths, built and parsed",
      test_round_trip },
    { "E-046 random frames with a valid ICRC", test_fuzz },
};

TEST_MAIN(tests)
