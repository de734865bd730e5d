/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: the invariant CRC of RoCEv2 packets. */
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "wire.h"

#define CRC32_POLY_REFLECTED 0xedb88320u

/*
 * Slicing-by-8: crc_table[k][b] is the CRC of byte b followed by k zero bytes.
 * That is the sum of the CRCs of its bits; POW_k_i is the CRC of bit 0x80 >> i.
 */
#define STEP(c) \
    ((int)((uint32_t)(c) >> 1 ^ ((uint32_t)(c) & 1) * CRC32_POLY_REFLECTED))
#define POWERS(k, before) \
    POW_##k##_0 = STEP(before), POW_##k##_1 = STEP(POW_##k##_0), \
    POW_##k##_2 = STEP(POW_##k##_1), POW_##k##_3 = STEP(POW_##k##_2), \
    POW_##k##_4 = STEP(POW_##k##_3), POW_##k##_5 = STEP(POW_##k##_4), \
    POW_##k##_6 = STEP(POW_##k##_5), POW_##k##_7 = STEP(POW_##k##_6)

enum {
    POWERS(0, 1),
    POWERS(1, POW_0_7),
    POWERS(2, POW_1_7),
    POWERS(3, POW_2_7),
    POWERS(4, POW_3_7),
    POWERS(5, POW_4_7),
    POWERS(6, POW_5_7),
    POWERS(7, POW_6_7),
};

#define BIT_OF(k, i, b) ((b) & 0x80 >> (i) ? (uint32_t)POW_##k##_##i : 0)
#define ONE(k, b) \
    (BIT_OF(k, 0, b) ^ BIT_OF(k, 1, b) ^ BIT_OF(k, 2, b) ^ BIT_OF(k, 3, b) ^ \
     BIT_OF(k, 4, b) ^ BIT_OF(k, 5, b) ^ BIT_OF(k, 6, b) ^ BIT_OF(k, 7, b))
#define FOUR(k, b) \
    ONE(k, b), ONE(k, (b) + 1), ONE(k, (b) + 2), ONE(k, (b) + 3)
#define SIXTEEN(k, b) \
    FOUR(k, b), FOUR(k, (b) + 4), FOUR(k, (b) + 8), FOUR(k, (b) + 12)
#define SIXTY_FOUR(k, b) \
    SIXTEEN(k, b), SIXTEEN(k, (b) + 16), SIXTEEN(k, (b) + 32), \
    SIXTEEN(k, (b) + 48)
#define ALL(k) { \
    SIXTY_FOUR(k, 0), SIXTY_FOUR(k, 64), SIXTY_FOUR(k, 128), \
    SIXTY_FOUR(k, 192) \
}

static const uint32_t crc_table[8][256] = {
    ALL(0), ALL(1), ALL(2), ALL(3), ALL(4), ALL(5), ALL(6), ALL(7),
};

static uint32_t load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint32_t crc32_tables(uint32_t crc, const uint8_t *data, size_t len)
{
    for (; len >= 8; len -= 8, data += 8) {
        uint32_t a = crc ^ load_le32(data);
        uint32_t b = load_le32(data + 4);

        crc = crc_table[7][a & 0xff] ^ crc_table[6][a >> 8 & 0xff] ^
              crc_table[5][a >> 16 & 0xff] ^ crc_table[4][a >> 24] ^
              crc_table[3][b & 0xff] ^ crc_table[2][b >> 8 & 0xff] ^
              crc_table[1][b >> 16 & 0xff] ^ crc_table[0][b >> 24];
    }
    for (; len > 0; len--, data++) {
        crc = (crc >> 8) ^ crc_table[0][(crc ^ *data) & 0xff];
    }
    return crc;
}

#ifdef __SSE2__

/*
 * Folding by carry-less multiplication (V. Gopal et al., "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009): 16 bytes
 * are replaced by 16 others, n bits further on, that leave the same remainder.
 * The factors are x^(n + 32) and x^(n - 32) modulo the polynomial, reflected.
 */
__attribute__((target("pclmul")))
static __m128i fold(__m128i x, __m128i factors, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* @len is at least 64; the tables take the rest beyond a multiple of 16. */
__attribute__((target("pclmul")))
static uint32_t crc32_fold(uint32_t crc, const uint8_t *data, size_t len)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i *src = (const __m128i *)data;
    __m128i x[4];
    uint8_t rest[16];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = _mm_loadu_si128(src++);
    }
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (len -= 64; len >= 64; len -= 64) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            x[i] = fold(x[i], by_512, _mm_loadu_si128(src++));
        }
    }
#pragma GCC unroll 4
    for (int i = 1; i < 4; i++) {
        x[0] = fold(x[0], by_128, x[i]);
    }
    for (; len >= 16; len -= 16) {
        x[0] = fold(x[0], by_128, _mm_loadu_si128(src++));
    }
    _mm_storeu_si128((__m128i *)rest, x[0]);
    return crc32_tables(crc32_tables(0, rest, sizeof(rest)),
                        (const uint8_t *)src, len);
}

uint32_t roce_crc32(uint32_t crc, const uint8_t *data, size_t len)
{
    if (len >= 64 && __builtin_cpu_supports("pclmul")) {
        return crc32_fold(crc, data, len);
    }
    return crc32_tables(crc, data, len);
}

#else

uint32_t roce_crc32(uint32_t crc, const uint8_t *data, size_t len)
{
    return crc32_tables(crc, data, len);
}

#endif

uint32_t roce_icrc(const uint8_t *ip, bool ipv4, size_t len)
{
    size_t ip_len = ipv4 ? IPV4_LEN : IPV6_LEN;
    size_t head = ip_len + UDP_LEN + BTH_LEN;
    /* Eight bytes of ones stand for the LRH that RoCE does not have. */
    uint8_t masked[8 + IPV6_LEN + UDP_LEN + BTH_LEN];
    uint8_t *m = masked + 8;

    memset(masked, 0xff, 8);
    memcpy(m, ip, head);
    if (ipv4) {
        m[1] = 0xff;                    /* TOS */
        m[8] = 0xff;                    /* TTL */
        memset(m + 10, 0xff, 2);        /* header checksum */
    } else {
        m[0] |= 0x0f;                   /* traffic class and flow label */
        memset(m + 1, 0xff, 3);
        m[7] = 0xff;                    /* hop limit */
    }
    memset(m + ip_len + 6, 0xff, 2);    /* UDP checksum */
    m[ip_len + UDP_LEN + 4] = 0xff;     /* BTH: F, B and reserved bits */

    uint32_t crc = roce_crc32(0xffffffffu, masked, 8 + head);

    return ~roce_crc32(crc, ip + head, len - head);
}
