/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: numbers in network order at any address, and the little-endian
 * numbers of the contract.
 */
#ifndef QHCA_ENGINE_BYTES_H
#define QHCA_ENGINE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* macOS and Windows lack <endian.h>, but run on little-endian machines only. */
#if __has_include(<endian.h>)
#include <endian.h>
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define htole16(v) ((uint16_t)(v))
#define htole32(v) ((uint32_t)(v))
#define htole64(v) ((uint64_t)(v))
#define le16toh(v) ((uint16_t)(v))
#define le32toh(v) ((uint32_t)(v))
#define le64toh(v) ((uint64_t)(v))
#else
#error "no byte order"
#endif

struct vhca_piece {
    const uint8_t *base;
    size_t len;
};

static inline uint16_t get_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t get_be32(const uint8_t *p)
{
    return (uint32_t)get_be16(p) << 16 | get_be16(p + 2);
}

static inline uint64_t get_be64(const uint8_t *p)
{
    return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
    put_be16(p, (uint16_t)(v >> 16));
    put_be16(p + 2, (uint16_t)v);
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
    put_be32(p, (uint32_t)(v >> 32));
    put_be32(p + 4, (uint32_t)v);
}

#endif /* QHCA_ENGINE_BYTES_H */
