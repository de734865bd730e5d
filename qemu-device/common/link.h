/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: the link that the PCI Express capability tells of.
 *
 * No data go over it, but libraries and health checks take the smaller of link
 * and port for what the adapter can do. The numbers are encoded as in the
 * registers.
 */
#ifndef QHCA_COMMON_LINK_H
#define QHCA_COMMON_LINK_H

/* Generation 4, 16 GT/s; and lanes: 252 Gbit/s. */
#define QHCA_LINK_SPEED     4u
#define QHCA_LINK_WIDTH     16u
/* From generation 3 on, with 128 bits of data in 130. */
#define QHCA_LINK_MBIT      ((1000u << QHCA_LINK_SPEED) * QHCA_LINK_WIDTH * \
                             128u / 130u)

/* For Link Capabilities and Link Status, and for Link Capabilities 2. */
#define QHCA_LINK_CAP       (QHCA_LINK_WIDTH << 4 | QHCA_LINK_SPEED)
#define QHCA_LINK_SPEEDS    ((2u << QHCA_LINK_SPEED) - 2)

/* Device Control after a reset: read requests of up to 512 bytes. */
#define QHCA_LINK_DEVCTL    0x2000u

#endif /* QHCA_COMMON_LINK_H */
