/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: the headers of frames at a tap.
 */
#include <assert.h>
#include <string.h>

#include "../engine/wire/wire.h"
#include "vnet.h"

#define NEEDS_CSUM  1       /* of the flags */
#define TCPV4       1       /* of the types */
#define TCPV6       4

static_assert(sizeof(struct qhca_vnet) == 10, "struct virtio_net_hdr");

struct qhca_vnet qhca_vnet_long(const struct qhca_long_frame *how)
{
    return (struct qhca_vnet) {
        .flags = NEEDS_CSUM, .gso_type = how->ipv4 ? TCPV4 : TCPV6,
        .hdr_len = how->hdr_len, .gso_size = how->mss,
        .csum_start = how->csum_start, .csum_offset = how->csum_offset,
    };
}

/* Add the checksum that a frame lacks; false: the header is wrong. */
static bool add_checksum(const struct qhca_vnet *hdr, uint8_t *frame,
                         size_t len)
{
    size_t start = hdr->csum_start, at = start + hdr->csum_offset;
    uint16_t sum;

    if (at + sizeof(sum) > len) {
        return false;
    }
    sum = vhca_csum_fold(vhca_csum_add(0, frame + start, len - start));
    put_be16(frame + at, sum ? sum : 0xffff);
    return true;
}

const uint8_t *qhca_vnet_frame(const uint8_t *buf, size_t *len, uint8_t *room)
{
    const uint8_t *frame = buf + sizeof(struct qhca_vnet);
    struct qhca_vnet hdr;
    bool unsummed;

    if (*len < sizeof(hdr)) {
        return NULL;
    }
    memcpy(&hdr, buf, sizeof(hdr));
    *len -= sizeof(hdr);
    unsummed = hdr.flags & NEEDS_CSUM;
    if ((!unsummed && *len >= ETH_MIN_LEN) || *len > VHCA_MAX_FRAME) {
        return frame;       /* one that is too long is the engine's to refuse */
    }
    memcpy(room, frame, *len);
    if (*len < ETH_MIN_LEN) {
        memset(room + *len, 0, ETH_MIN_LEN - *len);
        *len = ETH_MIN_LEN;
    }
    return !unsummed || add_checksum(&hdr, room, *len) ? room : NULL;
}
