/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: access to guest memory.
 *
 * The device reaches RAM, of the machine or its own (QHCA_ADDR_DM), and nothing
 * else: with the attribute .memory set, the memory core refuses MMIO, so that
 * an address chosen by the guest cannot make the device operate another device,
 * or itself. Accesses go through the bus master address space, so they fail
 * while bus mastering is off and are translated by a vIOMMU, and they mark
 * memory dirty.
 *
 * Nearly all of them are copies to or from plain RAM, which qhca-map.c finds;
 * the memory core does the rest. This is the only file that knows how guest
 * memory is reached.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "system/dma.h"

#include "qhca.h"
#include "trace.h"

static const MemTxAttrs qhca_dma_attrs = { .memory = true };

/* Return the address space of @addr, and make @addr an offset in it. */
static QHCAMap *qhca_dma_space(QHCAState *s, uint64_t *addr)
{
    return qhca_ram_is_dm(&s->props, addr) ? &s->dm_map : &s->bus_map;
}

/*
 * Return the plain RAM of @len bytes at @addr, or NULL if it is not one piece.
 */
static MemoryRegionCache *qhca_dma_ram(QHCAState *s, uint64_t addr, size_t len,
                                       hwaddr *off)
{
    QHCAMap *map = qhca_dma_space(s, &addr);
    MemoryRegionCache *ram = qhca_dev_map_find(map, addr, off);

    return ram && len <= ram->len - *off ? ram : NULL;
}

static bool qhca_dma_slow(QHCAState *s, uint64_t addr, void *buf, size_t len,
                          DMADirection dir)
{
    bool wraps = len && addr + (len - 1) < addr;
    uint64_t off = addr;
    AddressSpace *as = qhca_dma_space(s, &off)->as;

    if (!wraps && !s->gone &&
        dma_memory_rw(as, off, buf, len, dir, qhca_dma_attrs) == MEMTX_OK) {
        return true;
    }
    trace_qhca_dma_fail(s->id, addr, len, dir == DMA_DIRECTION_FROM_DEVICE);
    return false;
}

bool qhca_dev_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    QHCAState *s = qhca_dev_of(opaque);
    hwaddr off;
    MemoryRegionCache *ram = qhca_dma_ram(s, addr, len, &off);

    qhca_ram_order(&s->wrote, false);
    if (ram) {
        address_space_read_cached(ram, off, buf, len);
        return true;
    }
    return qhca_dma_slow(s, addr, buf, len, DMA_DIRECTION_TO_DEVICE);
}

/* Marking memory dirty also drops TCG's translations of it. */
bool qhca_dev_dma_write(void *opaque, uint64_t addr, const void *buf,
                        size_t len)
{
    QHCAState *s = qhca_dev_of(opaque);
    hwaddr off;
    MemoryRegionCache *ram = qhca_dma_ram(s, addr, len, &off);

    qhca_ram_order(&s->wrote, true);
    if (ram) {
        /* @buf may be memory peeked at, even the target, at another address. */
        memmove(ram->ptr + off, buf, len);
        address_space_cache_invalidate(ram, off, len);
        return true;
    }
    return qhca_dma_slow(s, addr, (void *)buf, len, DMA_DIRECTION_FROM_DEVICE);
}

static void qhca_trace_entry(QHCAState *s, uint64_t addr, const uint8_t *p,
                             size_t len)
{
    if (trace_event_get_state_backends(TRACE_QHCA_DMA_ENTRY)) {
        g_autoptr(GString) hex = qemu_hexdump_line(NULL, p, len, 1, 0);

        trace_qhca_dma_entry(s->id, addr, hex->str);
    }
}

bool qhca_dev_dma_write_entry(void *opaque, uint64_t addr, const void *entry,
                              size_t len)
{
    const uint8_t *p = entry;
    QHCAState *s = qhca_dev_of(opaque);
    size_t last = len - 1;
    hwaddr off;
    MemoryRegionCache *ram = qhca_dma_ram(s, addr, len, &off);

    qhca_trace_entry(s, addr, p, len);
    if (!ram) {
        return qhca_dev_dma_write(opaque, addr, p, last) &&
               qhca_dev_dma_write(opaque, addr + last, p + last, 1);
    }
    qhca_ram_order(&s->wrote, true);
    qhca_ram_entry((uint8_t *)ram->ptr + off, p, len);
    address_space_cache_invalidate(ram, off, len);
    return true;
}

/*
 * The memory stays until qhca_dev_leave(), even if the address space changes.
 */
const void *qhca_dev_dma_peek(void *opaque, uint64_t addr, size_t *len)
{
    QHCAState *s = qhca_dev_of(opaque);
    hwaddr off;
    MemoryRegionCache *ram = qhca_dma_ram(s, addr, 0, &off);

    if (!ram) {
        return NULL;
    }
    qhca_ram_order(&s->wrote, false);
    *len = MIN(*len, ram->len - off);
    fuzz_dma_read_cb(ram->xlat + off, *len, ram->mrs.mr);
    return ram->ptr + off;
}

/*
 * Map the 8 bytes of an atomic operation. NULL unless they are aligned,
 * readable, writable and RAM: anything else would be mapped through a bounce
 * buffer, where nothing is atomic.
 */
static uint64_t *qhca_dma_map_atomic(QHCAState *s, uint64_t addr)
{
    dma_addr_t len = sizeof(uint64_t);
    MemoryRegionCache *ram;
    AddressSpace *as;
    ram_addr_t unused;
    hwaddr off;
    void *p;

    if (addr % len || s->gone) {
        goto fail;
    }
    qhca_ram_order(&s->wrote, true);
    ram = qhca_dma_ram(s, addr, len, &off);
    if (ram) {
        return (uint64_t *)(ram->ptr + off);
    }
    off = addr;
    as = qhca_dma_space(s, &off)->as;
    if (!dma_memory_valid(as, off, len, DMA_DIRECTION_TO_DEVICE,
                          qhca_dma_attrs)) {
        goto fail;
    }
    p = dma_memory_map(as, off, &len, DMA_DIRECTION_FROM_DEVICE,
                       qhca_dma_attrs);
    if (!p) {
        goto fail;
    }
    if (len == sizeof(uint64_t) && memory_region_from_host(p, &unused)) {
        return p;
    }
    dma_memory_unmap(as, p, len, DMA_DIRECTION_FROM_DEVICE, 0);
fail:
    trace_qhca_dma_fail(s->id, addr, sizeof(uint64_t), true);
    return NULL;
}

static void qhca_dma_unmap_atomic(QHCAState *s, uint64_t addr, uint64_t *p)
{
    hwaddr off;
    MemoryRegionCache *ram = qhca_dma_ram(s, addr, sizeof(*p), &off);

    if (ram) {
        address_space_cache_invalidate(ram, off, sizeof(*p));
    } else {
        dma_memory_unmap(qhca_dma_space(s, &addr)->as, p, sizeof(*p),
                         DMA_DIRECTION_FROM_DEVICE, sizeof(*p));
    }
}

bool qhca_dev_dma_cas(void *opaque, uint64_t addr, uint64_t compare,
                      uint64_t swap, uint64_t *old)
{
    QHCAState *s = qhca_dev_of(opaque);
    uint64_t *p = qhca_dma_map_atomic(s, addr);

    if (p) {
        *old = qhca_ram_cas(p, compare, swap);
        qhca_dma_unmap_atomic(s, addr, p);
    }
    return p;
}

bool qhca_dev_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old)
{
    QHCAState *s = qhca_dev_of(opaque);
    uint64_t *p = qhca_dma_map_atomic(s, addr);

    if (p) {
        *old = qhca_ram_add(p, add);
        qhca_dma_unmap_atomic(s, addr, p);
    }
    return p;
}

bool qhca_dev_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes)
{
    QHCAState *s = qhca_dev_of(opaque);
    uint64_t *p = qhca_dma_map_atomic(s, addr);

    if (p) {
        qhca_ram_store(p, bytes);
        qhca_dma_unmap_atomic(s, addr, p);
    }
    return p;
}

void qhca_dev_dma_init(QHCAState *s)
{
    qhca_dev_map_init(&s->bus_map, pci_get_address_space(PCI_DEVICE(s)));
    if (s->props.dm_size) {
        qhca_dev_map_init(&s->dm_map, &s->dm_as);
    }
}

void qhca_dev_dma_exit(QHCAState *s)
{
    qhca_dev_map_exit(&s->bus_map);
    if (s->props.dm_size) {
        qhca_dev_map_exit(&s->dm_map);
    }
}
