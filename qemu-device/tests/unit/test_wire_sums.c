/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: computed fields of packets: CRC, PSNs, source ports. */
#include "harness/debug.h"
#include "harness/harness.h"

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
    { "D-003 PSN arithmetic, CRC-32", test_arithmetic },
    { "E-032 CRC of every length", test_crc_lengths },
    { "E-036 UDP source port", test_sport },
};

TEST_MAIN(tests)
