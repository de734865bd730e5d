/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca hosts: guest memory, once it is mapped: finding the mapping, and
 * accesses in the order and with the atomicity that struct qhca_engine_ops asks
 * for.
 */
#ifndef QHCA_COMMON_RAM_H
#define QHCA_COMMON_RAM_H

#include "props.h"

/* struct qhca_range - the addresses of a mapping: the first of its members */
struct qhca_range {
    uint64_t base, len;
};

/**
 * qhca_range_find - find the mapping of an address
 * @table: mappings by ascending address
 * @size: bytes of each
 * @num: how many
 * @addr: address
 * @at: where to look first; on return the place of the mapping, or the one that
 *      it would have
 *
 * Returns false if there is none.
 */
bool qhca_range_find(const void *table, size_t size, unsigned num,
                     uint64_t addr, unsigned *at);

/**
 * qhca_ram_is_dm - tell the device's own memory from the machine's
 * @props: properties of the device
 * @addr: DMA address; in the device's memory it becomes an offset
 */
bool qhca_ram_is_dm(const struct qhca_props *props, uint64_t *addr);

/**
 * qhca_ram_order - let the guest see accesses in their order
 * @wrote: the access before was a write
 * @write: the access that follows is one
 */
void qhca_ram_order(bool *wrote, bool write);

/**
 * qhca_ram_entry - write a queue entry; its last byte is seen after the others
 * @p: where
 * @entry: entry
 * @len: bytes of it
 */
void qhca_ram_entry(uint8_t *p, const uint8_t *entry, size_t len);

/**
 * qhca_ram_cas - compare and swap 8 bytes, which are little-endian
 * @p: where, aligned
 * @compare: value to replace
 * @swap: value to replace it by
 *
 * Returns the value found: @compare if the swap took place.
 */
uint64_t qhca_ram_cas(uint64_t *p, uint64_t compare, uint64_t swap);

/**
 * qhca_ram_add - fetch 8 bytes, which are little-endian, and add to them
 * @p: where, aligned
 * @add: what to add
 *
 * Returns the value found.
 */
uint64_t qhca_ram_add(uint64_t *p, uint64_t add);

/**
 * qhca_ram_store - write 8 bytes in one store, seen after all earlier writes
 * @p: where, aligned
 * @bytes: what to write
 */
void qhca_ram_store(uint64_t *p, const uint8_t *bytes);

#endif /* QHCA_COMMON_RAM_H */
