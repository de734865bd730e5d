/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what types of QPs consist of; qp.c has a row for each. */
#ifndef QHCA_ENGINE_QP_KIND_H
#define QHCA_ENGINE_QP_KIND_H

#include <stdint.h>

#include "qhca/qp.h"

/* Sets of types. */
#define VHCA_TYPE(t)    (1u << QHCA_QPT_##t)

enum {
    VHCA_HAS_SQ = 0x1,          /* and PD and send CQ */
    VHCA_HAS_RQ = 0x2,          /* and receive CQ */
    VHCA_MAY_SRQ = 0x4,         /* instead of the receive queue */
    VHCA_HAS_XRCD = 0x8,        /* receives by SRQs that packets name */
    VHCA_RELIABLE = 0x10,       /* requests are acknowledged */
    VHCA_DATAGRAM = 0x20,       /* WQEs name peer and address */
    VHCA_RAW = 0x40,            /* WQEs are Ethernet frames */
};

/*
 * struct vhca_qp_kind - what a type of QPs consists of
 * @parts: set of the above; empty: no such type
 * @service: SVC_*, part of all its opcodes; 0xff: has no packets
 */
struct vhca_qp_kind {
    uint8_t parts, service;
};

#define VHCA_NUM_QP_TYPES   (QHCA_QPT_XRC_TGT + 1)
extern const struct vhca_qp_kind vhca_qp_kinds[VHCA_NUM_QP_TYPES];

#endif /* QHCA_ENGINE_QP_KIND_H */
