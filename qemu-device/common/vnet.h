/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: the headers by which the kernel behind a tap takes TCP
 * segments that it cuts itself, or need not.
 */
#ifndef QHCA_COMMON_VNET_H
#define QHCA_COMMON_VNET_H

#include <stddef.h>
#include <stdint.h>

#include "../engine/engine.h"

/* struct qhca_vnet - what is in front of a frame: struct virtio_net_hdr */
struct qhca_vnet {
    uint8_t flags, gso_type;
    uint16_t hdr_len, gso_size, csum_start, csum_offset;
};

/* Return the header of a frame that is to be cut. */
struct qhca_vnet qhca_vnet_long(const struct qhca_long_frame *how);
/*
 * Return the frame behind a header, or NULL if there is none, or it is wrong.
 * This process does not ask the kernel to leave out checksums, but another user
 * of the tap may have: a missing one is added. A short frame is padded.
 * @len: of both; what the frame has then
 * @room: for VHCA_MAX_FRAME bytes of a frame that is not complete
 */
const uint8_t *qhca_vnet_frame(const uint8_t *buf, size_t *len, uint8_t *room);

#endif /* QHCA_COMMON_VNET_H */
