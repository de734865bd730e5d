/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: the properties that the operator sets.
 *
 * common/ has what the device in QEMU and the server share, in plain C.
 */
#ifndef QHCA_COMMON_PROPS_H
#define QHCA_COMMON_PROPS_H

#include "../engine/engine.h"

/*
 * struct qhca_props - properties, see props.def
 * @db_stride: bytes from a doorbell page to the next
 * @eth_queues: Ethernet queues of each direction
 * @cpu_share: percent
 * @bandwidth: Mbit/s, 0: no limit
 * @dm_size: bytes of device memory
 * @loopback_capture: name of a file, or NULL
 * @shadow_doorbells: guests may ring doorbells in memory
 * @seed: of the random numbers; 0: they cannot be predicted
 */
struct qhca_props {
    uint32_t vectors;
    uint32_t uars;
    uint64_t db_stride;
    uint32_t max_qp;
    uint32_t eth_queues;
    uint32_t cmd_timeout_ms;
    uint32_t cpu_share;
    uint32_t bandwidth;
    uint64_t dm_size;
    uint64_t seed;
    char *loopback_capture;
    bool frames;
    bool guest_faults;
    bool shadow_doorbells;
};

/* Return what is wrong with @mbit as the bandwidth, or NULL. */
const char *qhca_props_bandwidth_wrong(uint64_t mbit);
/* Return what is wrong with @props or the permanent address @mac, or NULL. */
const char *qhca_props_wrong(const struct qhca_props *props,
                             const uint8_t mac[6]);
/* Return the configuration of the engine; removable is false. */
struct qhca_engine_config qhca_props_config(const struct qhca_props *props,
                                            const uint8_t mac[6]);
/* Return the EUI-64 of @mac, which PCIe has in the serial number. */
uint64_t qhca_props_serial(const uint8_t mac[6]);

#endif /* QHCA_COMMON_PROPS_H */
