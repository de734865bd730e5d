/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: several frames as one of the network's, between two devices
 * whose operator says that nobody else is on the cable.
 */
#ifndef QHCA_ENGINE_AGGREGATE_H
#define QHCA_ENGINE_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What QEMU's network takes as a frame, and how many may be in it. */
#define QHCA_AGGREGATE_MAX      (4096 + 65536)
#define QHCA_AGGREGATE_FRAMES   64

/* struct vhca_aggregate - frames that have not left yet; zeros: none */
struct vhca_aggregate {
    uint8_t data[QHCA_AGGREGATE_MAX];
    size_t len;
    unsigned frames;
    uint16_t seq;
};

/*
 * Copies a frame behind the others. False: it does not fit, or does not go from
 * and to where they go, one machine; into an empty one every frame fits that a
 * port can send.
 */
bool vhca_aggregate_add(struct vhca_aggregate *a, const uint8_t *frame,
                        size_t len);
/*
 * What to send now, valid until the next frame is added, or NULL; @a is empty
 * then. A single frame is sent as it is.
 */
const uint8_t *vhca_aggregate_take(struct vhca_aggregate *a, size_t *len);

/* Whether a frame from the network has others in it. */
bool vhca_aggregate_is(const uint8_t *frame, size_t len);
/* Of such a one: tells it from those before and after it. */
uint16_t vhca_aggregate_seq(const uint8_t *frame);
/*
 * The one at offset @at, 0 for the first, and its length; @at moves on.
 * NULL: there is none, or not all of it.
 */
const uint8_t *vhca_aggregate_next(const uint8_t *frame, size_t len,
                                   size_t *at, size_t *part);

#endif /* QHCA_ENGINE_AGGREGATE_H */
