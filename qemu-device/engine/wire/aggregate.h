/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: several frames as a single one of the network, between two
 * devices whose operator says that no other device is on the cable.
 */
#ifndef QHCA_ENGINE_AGGREGATE_H
#define QHCA_ENGINE_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest frame of QEMU's network, and how many frames it may hold. */
#define VHCA_AGGREGATE_MAX      (4096 + 65536)
#define VHCA_AGGREGATE_FRAMES   64

/* struct vhca_aggregate - frames collected for sending; zeroes: none */
struct vhca_aggregate {
    uint8_t data[VHCA_AGGREGATE_MAX];
    size_t len;
    unsigned frames;
    uint16_t seq;
};

/*
 * Append a copy of @frame. Returns false if it does not fit, or if the frames
 * before have other addresses, or its own are multicast. An empty aggregate has
 * room for any frame that a port can send.
 */
bool vhca_aggregate_add(struct vhca_aggregate *a, const uint8_t *frame,
                        size_t len);
/*
 * Empty @a and return the frame to send, valid until the next one is added, or
 * NULL if there is none. A single frame is sent as it is.
 */
const uint8_t *vhca_aggregate_take(struct vhca_aggregate *a, size_t *len);

/* Whether a frame from the network is an aggregate of others. */
bool vhca_aggregate_is(const uint8_t *frame, size_t len);
/* Return the sequence number of an aggregate. */
uint16_t vhca_aggregate_seq(const uint8_t *frame);
/*
 * Return the frame at offset @at of an aggregate, 0 for the first, with its
 * length in @part, and advance @at. Returns NULL if there is no further frame,
 * or only part of it.
 */
const uint8_t *vhca_aggregate_next(const uint8_t *frame, size_t len,
                                   size_t *at, size_t *part);

#endif /* QHCA_ENGINE_AGGREGATE_H */
