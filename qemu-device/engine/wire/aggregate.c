/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: aggregates of frames. The layout of one:
 *
 *   addresses of the first, type 0x88b5 (for local experiments, IEEE 802)
 *   4 bytes of magic, 2 with a sequence number, 2 of zeros
 *   for each frame: 2 bytes with its length, and the frame
 */
#include <string.h>

#include "aggregate.h"
#include "wire.h"

#define ETHERTYPE_LOCAL 0x88b5
#define MAGIC           0x71616767u     /* qagg */
#define HEAD_LEN        (ETH_LEN + 8)
#define ADDRESSES       12
#define LEN_LEN         2

bool vhca_aggregate_add(struct vhca_aggregate *a, const uint8_t *frame,
                        size_t len)
{
    size_t at = a->frames ? a->len : HEAD_LEN;
    const uint8_t *first = a->data + HEAD_LEN + LEN_LEN;

    if (len < ETH_LEN || len > UINT16_MAX ||
        at + LEN_LEN + len > sizeof(a->data) ||
        a->frames == VHCA_AGGREGATE_FRAMES) {
        return false;
    }
    if (a->frames && (memcmp(first, frame, ADDRESSES) != 0 || frame[0] & 1)) {
        return false;
    }
    put_be16(a->data + at, (uint16_t)len);
    memcpy(a->data + at + LEN_LEN, frame, len);
    a->len = at + LEN_LEN + len;
    a->frames++;
    return true;
}

const uint8_t *vhca_aggregate_take(struct vhca_aggregate *a, size_t *len)
{
    uint8_t *first = a->data + HEAD_LEN + LEN_LEN;
    unsigned frames = a->frames;

    a->frames = 0;
    if (frames < 2) {
        *len = a->len - HEAD_LEN - LEN_LEN;
        return frames ? first : NULL;
    }
    memcpy(a->data, first, ADDRESSES);
    put_be16(a->data + ADDRESSES, ETHERTYPE_LOCAL);
    put_be32(a->data + ETH_LEN, MAGIC);
    put_be16(a->data + ETH_LEN + 4, a->seq++);
    put_be16(a->data + ETH_LEN + 6, 0);
    *len = a->len;
    return a->data;
}

bool vhca_aggregate_is(const uint8_t *frame, size_t len)
{
    return len >= HEAD_LEN && get_be16(frame + ADDRESSES) == ETHERTYPE_LOCAL &&
           get_be32(frame + ETH_LEN) == MAGIC;
}

uint16_t vhca_aggregate_seq(const uint8_t *frame)
{
    return get_be16(frame + ETH_LEN + 4);
}

const uint8_t *vhca_aggregate_next(const uint8_t *frame, size_t len,
                                   size_t *at, size_t *part)
{
    size_t start = (*at ? *at : HEAD_LEN) + LEN_LEN;

    if (start > len) {
        return NULL;
    }
    *part = get_be16(frame + start - LEN_LEN);
    if (*part < ETH_LEN || *part > len - start) {
        return NULL;
    }
    *at = start + *part;
    return frame + start;
}
