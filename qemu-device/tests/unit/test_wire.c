/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: parsing of arbitrary frames, and computed fields of good
 * ones: CRC, PSNs, source ports. test_vectors.c checks what the bytes mean.
 */
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

static struct roce_packet packet(bool ipv4)
{
    struct roce_packet p = {
        .smac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
        .dmac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x57 },
        .vlan = QHCA_NO_VLAN, .ipv4 = ipv4, .hop_limit = 64, .sport = 0xffff,
        .pkey = 0xffff, .dest_qp = 0x11,
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

/* Random bytes after valid IP and UDP headers, with a valid ICRC. */
static void test_fuzz(void)
{
    uint8_t f[200];
    uint64_t rng = 4711;
    unsigned parsed = 0;

    for (unsigned i = 0; i < 200000; i++) {
        bool ipv4 = i & 1;
        struct roce_packet p = packet(ipv4);
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

/* ---- computed fields ---- */

static void test_arithmetic(void)
{
    CHECK_EQ(psn_add(0xffffff, 1), 0);
    CHECK_EQ(psn_add(0, -1u), 0xffffff);
    CHECK_EQ(psn_diff(0, 0xffffff), 1);
    CHECK_EQ(psn_diff(0xffffff, 0), -1);
    CHECK_EQ(psn_diff(0x7fffff, 0), 0x7fffff);
    CHECK_EQ(psn_diff(0x800000, 0), -0x800000);
    CHECK_EQ(psn_diff(0x100, 0x900100), 0x700000);
    /* The check value of CRC-32 in catalogues. */
    CHECK_EQ(~roce_crc32(~0u, (const uint8_t *)"123456789", 9), 0xcbf43926);
}

/* CRC-32 by definition, one bit at a time. */
static uint32_t crc32_bits(uint32_t crc, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len * 8; i++) {
        uint32_t bit = (crc ^ (uint32_t)data[i / 8] >> i % 8) & 1;

        crc = (crc >> 1) ^ (bit ? 0xedb88320u : 0);
    }
    return crc;
}

/* E-032: every length and alignment, for all code paths of the CRC. */
static void test_crc_lengths(void)
{
    uint8_t data[16 + 300];
    uint32_t x = 1;

    for (size_t i = 0; i < sizeof(data); i++) {
        x = x * 1103515245 + 12345;
        data[i] = (uint8_t)(x >> 16);
    }
    for (size_t len = 0; len <= 300; len++) {
        const uint8_t *p = data + len % 16;

        CHECK_EQ(roce_crc32(x, p, len), crc32_bits(x, p, len));
    }
}

/* As in Linux rdma_get_udp_sport() (E-036). */
static void test_sport(void)
{
    CHECK_EQ(roce_sport(0x12345, 1, 2), 0xc000 | (0x2345 ^ 0x4));
    CHECK_EQ(roce_sport(0xfffff, 1, 2), 0xc000 | (0x3fff ^ 0x3f));
    CHECK_EQ(roce_sport(0, 0x11, 0x22), 0xc000 | 0x242);
    CHECK_EQ(roce_sport(0, 0x123456, 0x654321),
             roce_sport(0, 0x654321, 0x123456));
}

static const struct test tests[] = {
    { "E-046 random frames with a valid ICRC", test_fuzz },
    { "D-003 PSN arithmetic, CRC-32", test_arithmetic },
    { "E-032 CRC of every length", test_crc_lengths },
    { "E-036 UDP source port", test_sport },
};

TEST_MAIN(tests)
