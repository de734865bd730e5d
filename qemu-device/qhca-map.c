/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: where this process has the RAM of an address space.
 *
 * A listener keeps the address space's RAM in a table, so that an access needs
 * neither the memory core's tree nor its locks. The table holds what can be
 * read and written with memcpy() and nothing else: ROM, devices' memory that is
 * not RAM, and whatever is behind an IOMMU have no entry.
 */
#include "qemu/osdep.h"
#include "system/xen.h"

#include "common/ram.h"
#include "qhca-map.h"

struct QHCARam {
    struct qhca_range range;
    MemoryRegionCache cache;
};

static bool qhca_map_wants(const MemoryRegionSection *section)
{
    return memory_region_is_ram(section->mr) && !section->readonly &&
           !memory_region_is_ram_device(section->mr);
}

/* Also called for sections that stay: the table is rebuilt each time. */
static void qhca_map_add(MemoryListener *listener, MemoryRegionSection *section)
{
    QHCAMap *map = container_of(listener, QHCAMap, listener);

    if (qhca_map_wants(section)) {
        g_array_append_val(map->found, *section);
    }
}

static void qhca_map_begin(MemoryListener *listener)
{
    QHCAMap *map = container_of(listener, QHCAMap, listener);

    g_array_set_size(map->found, 0);
}

static void qhca_map_clear(QHCAMap *map)
{
    unsigned i;

    for (i = 0; i < map->num; i++) {
        address_space_cache_destroy(&map->ram[i].cache);
    }
    g_free(map->ram);
    map->ram = NULL;
    map->num = map->hit = 0;
}

/*
 * The entries refer to the new view of the address space: it exists only now.
 */
static void qhca_map_commit(MemoryListener *listener)
{
    QHCAMap *map = container_of(listener, QHCAMap, listener);
    unsigned i, num = map->found->len;
    MemoryRegionSection *section;
    QHCARam *ram;

    qhca_map_clear(map);
    map->ram = g_new0(QHCARam, num);
    map->num = num;
    for (i = 0; i < num; i++) {
        section = &g_array_index(map->found, MemoryRegionSection, i);
        ram = &map->ram[i];
        ram->range.base = section->offset_within_address_space;
        address_space_cache_init(&ram->cache, map->as, ram->range.base,
                                 int128_get64(section->size), true);
        g_assert(ram->cache.ptr);
        ram->range.len = ram->cache.len;
    }
    g_array_set_size(map->found, 0);
}

MemoryRegionCache *qhca_dev_map_find(QHCAMap *map, hwaddr addr, hwaddr *off)
{
    unsigned at = map->hit;

    if (!qhca_range_find(map->ram, sizeof(*map->ram), map->num, addr, &at)) {
        return NULL;
    }
    map->hit = at;
    *off = addr - map->ram[at].range.base;
    return &map->ram[at].cache;
}

void qhca_dev_map_init(QHCAMap *map, AddressSpace *as)
{
    map->as = as;
    map->found = g_array_new(false, false, sizeof(MemoryRegionSection));
    map->listener = (MemoryListener) {
        .name = "qhca",
        .begin = qhca_map_begin,
        .region_add = qhca_map_add,
        .region_nop = qhca_map_add,
        .commit = qhca_map_commit,
    };
    /* Xen maps guest memory piecemeal, so the table stays empty there. */
    if (!xen_enabled()) {
        memory_listener_register(&map->listener, as);
    }
}

/* Unregistering empties the table: the listener sees a map without regions. */
void qhca_dev_map_exit(QHCAMap *map)
{
    memory_listener_unregister(&map->listener);
    g_array_free(map->found, true);
}
