/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the invariant CRC of RoCEv2 packets.
 */
#include <string.h>

#include "wire.h"

#define CRC32_POLY_REFLECTED 0xedb88320u

/* Slicing-by-8: table[k][b] is byte b followed by k zero bytes. */
static uint32_t table[8][256];

/* Runs before main(): the tables are constant from then on. */
__attribute__((constructor))
static void crc_tables_init(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;

        for (int i = 0; i < 8; i++) {
            c = (c >> 1) ^ (c & 1 ? CRC32_POLY_REFLECTED : 0);
        }
        table[0][b] = c;
    }
    for (uint32_t b = 0; b < 256; b++) {
        for (int k = 1; k < 8; k++) {
            uint32_t c = table[k - 1][b];

            table[k][b] = (c >> 8) ^ table[0][c & 0xff];
        }
    }
}

static uint32_t load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

uint32_t roce_crc32(uint32_t crc, const uint8_t *data, size_t len)
{
    for (; len >= 8; len -= 8, data += 8) {
        uint32_t a = crc ^ load_le32(data);
        uint32_t b = load_le32(data + 4);

        crc = table[7][a & 0xff] ^ table[6][a >> 8 & 0xff] ^
              table[5][a >> 16 & 0xff] ^ table[4][a >> 24] ^
              table[3][b & 0xff] ^ table[2][b >> 8 & 0xff] ^
              table[1][b >> 16 & 0xff] ^ table[0][b >> 24];
    }
    for (; len > 0; len--, data++) {
        crc = (crc >> 8) ^ table[0][(crc ^ *data) & 0xff];
    }
    return crc;
}

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
