/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: frames that are sent whole, for the network to cut.
 */
#include "bounds.h"
#include "debug.h"
#include "long.h"
#include "oom.h"

#define MAX_LONG    (14u + 4 + 40 + 65536)

static size_t l3_of(const uint8_t *frame)
{
    return get_be16(frame + 12) == ETHERTYPE_VLAN ? 18 : 14;
}

static void check(const uint8_t *frame, size_t len,
                const struct qhca_long_frame *how)
{
    static uint8_t whole[MAX_LONG];
    size_t l3 = l3_of(frame), at = how->csum_start + how->csum_offset;
    uint16_t type = get_be16(frame + l3 - 2);

    REQUIRE(len <= sizeof(whole) && how->hdr_len < len);
    REQUIRE(how->mss && how->mss < len - how->hdr_len);
    REQUIRE(how->csum_start >= l3 + (how->ipv4 ? 20 : 40));
    REQUIRE(how->csum_offset == 16 && at + 4 <= how->hdr_len);
    REQUIRE(type == (how->ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6));
    /* As if the network left the cutting, and not the checksum, to others. */
    memcpy(whole, frame, len);
    put_be16(whole + at, vhca_csum_fold(vhca_csum_add(
                             0, frame + how->csum_start,
                             len - how->csum_start)));
    REQUIRE(vhca_csum_verify(whole, len, l3, type));
}

bool long_send(void *opaque, const uint8_t *frame, size_t len,
               const struct qhca_long_frame *how)
{
    struct guest *g = opaque;

    heap_check_known(frame, len);
    if (QHCA_VERIFY) {
        check(frame, len, how);
    }
    return g->take_long && g->take_long(g, frame, len, how);
}

bool long_cut(struct guest *g, const uint8_t *frame, size_t len,
              const struct qhca_long_frame *how)
{
    size_t l3 = l3_of(frame), payload = len - how->hdr_len, n;
    static uint8_t piece[MAX_FRAME];
    uint8_t *ip = piece + l3, *tcp = piece + how->csum_start;
    uint16_t i = 0;

    if (g->net_blocked) {
        return false;
    }
    for (size_t done = 0; done < payload; done += n, i++) {
        n = payload - done < how->mss ? payload - done : how->mss;
        REQUIRE(how->hdr_len + n <= sizeof(piece));
        memcpy(piece, frame, how->hdr_len);
        memcpy(piece + how->hdr_len, frame + how->hdr_len + done, n);
        if (how->ipv4) {
            put_be16(ip + 2, (uint16_t)(how->hdr_len - l3 + n));
            put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) + i));
        } else {
            put_be16(ip + 4, (uint16_t)(how->hdr_len - l3 - 40 + n));
        }
        put_be32(tcp + 4, get_be32(tcp + 4) + (uint32_t)done);
        if (done + n < payload) {
            tcp[13] &= (uint8_t)~0x09u;
        }
        vhca_csum_fill(piece, how->hdr_len + n);
        guest_ops.send_frame(g, piece, how->hdr_len + n);
    }
    return true;
}
