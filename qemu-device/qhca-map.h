/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: where this process has the RAM of an address space.
 */
#ifndef HW_NET_QHCA_MAP_H
#define HW_NET_QHCA_MAP_H

#include "exec/memory.h"

typedef struct QHCARam QHCARam;

/*
 * struct QHCAMap - the plain RAM of an address space; see qhca_dev_map_find()
 * @ram: table of RAM by ascending address
 * @num: entries of @ram
 * @hit: the entry found last
 * @found: each MemoryRegionSection of the next map
 */
typedef struct QHCAMap {
    AddressSpace *as;
    MemoryListener listener;
    QHCARam *ram;
    unsigned num, hit;
    GArray *found;
} QHCAMap;

void qhca_dev_map_init(QHCAMap *map, AddressSpace *as);
/* Call before @as is destroyed; nothing is found from then on. */
void qhca_dev_map_exit(QHCAMap *map);

/*
 * Return the RAM at @addr, and its offset in that RAM in @off; NULL if it is
 * not plain RAM and must be accessed through the address space. Called under
 * the BQL; the entry is valid until the BQL is released or the address space
 * changes, the memory behind it until the RCU read-side critical section ends.
 */
MemoryRegionCache *qhca_dev_map_find(QHCAMap *map, hwaddr addr, hwaddr *off);

#endif /* HW_NET_QHCA_MAP_H */
