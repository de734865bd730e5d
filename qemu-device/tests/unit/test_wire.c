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

static const struct test tests[] = {
    { "E-046 random frames with a valid ICRC", test_fuzz },
};

TEST_MAIN(tests)
