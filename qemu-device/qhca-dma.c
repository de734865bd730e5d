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
 * This is the only file that knows how guest memory is reached; a translation
 * cache would belong behind these five functions.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "exec/tswap.h"
#include "system/dma.h"

#include "qhca.h"
#include "trace.h"

static const MemTxAttrs qhca_dma_attrs = { .memory = true };

/* The address space of @addr, which becomes an offset in it. */
static AddressSpace *qhca_dma_space(QHCAState *s, uint64_t *addr)
{
    if (s->dm_size && *addr & QHCA_ADDR_DM) {
        *addr &= ~QHCA_ADDR_DM;
        return &s->dm_as;
    }
    return pci_get_address_space(PCI_DEVICE(s));
}

static bool qhca_dma_rw(QHCAState *s, uint64_t addr, void *buf, size_t len,
                        DMADirection dir)
{
    bool wraps = len && addr + (len - 1) < addr;
    uint64_t off = addr;
    AddressSpace *as = qhca_dma_space(s, &off);

    /* Starts with a full barrier, so accesses are seen in order. */
    if (!wraps && !s->gone &&
        dma_memory_rw(as, off, buf, len, dir, qhca_dma_attrs) == MEMTX_OK) {
        return true;
    }
    trace_qhca_dma_fail(s->id, addr, len, dir == DMA_DIRECTION_FROM_DEVICE);
    return false;
}

bool qhca_dev_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    return qhca_dma_rw(opaque, addr, buf, len, DMA_DIRECTION_TO_DEVICE);
}

bool qhca_dev_dma_write(void *opaque, uint64_t addr, const void *buf,
                        size_t len)
{
    return qhca_dma_rw(opaque, addr, (void *)buf, len,
                       DMA_DIRECTION_FROM_DEVICE);
}

/*
 * Map the 8 bytes of an atomic operation, or return NULL: they must be aligned,
 * readable, writable and RAM. Anything but RAM would be mapped through a bounce
 * buffer, where nothing is atomic.
 */
static uint64_t *qhca_dma_map_atomic(QHCAState *s, uint64_t addr)
{
    uint64_t off = addr;
    AddressSpace *as = qhca_dma_space(s, &off);
    dma_addr_t len = sizeof(uint64_t);
    ram_addr_t unused;
    void *p;

    if (addr % sizeof(uint64_t) || s->gone ||
        !dma_memory_valid(as, off, len, DMA_DIRECTION_TO_DEVICE,
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
    dma_memory_unmap(qhca_dma_space(s, &addr), p, sizeof(*p),
                     DMA_DIRECTION_FROM_DEVICE, sizeof(*p));
}

/* Returns the value found at @p: @old if the swap took place. */
static uint64_t qhca_cmpxchg(uint64_t *p, uint64_t old, uint64_t new)
{
#ifdef CONFIG_ATOMIC64
    return qatomic_cmpxchg__nocheck(p, old, new);
#else
    /* Atomic among holders of the BQL, the best that this host can do. */
    uint64_t found = *p;

    if (found == old) {
        *p = new;
    }
    return found;
#endif
}

bool qhca_dev_dma_cas(void *opaque, uint64_t addr, uint64_t compare,
                      uint64_t swap, uint64_t *old)
{
    QHCAState *s = opaque;
    uint64_t *p = qhca_dma_map_atomic(s, addr);

    if (!p) {
        return false;
    }
    *old = tswap64(qhca_cmpxchg(p, tswap64(compare), tswap64(swap)));
    qhca_dma_unmap_atomic(s, addr, p);
    return true;
}

bool qhca_dev_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old)
{
    QHCAState *s = opaque;
    uint64_t *p = qhca_dma_map_atomic(s, addr);
    uint64_t seen, found;

    if (!p) {
        return false;
    }
    /* A loop, because the addition is in the guest's byte order. */
    for (found = *p, seen = ~found; found != seen; ) {
        seen = found;
        found = qhca_cmpxchg(p, seen, tswap64(tswap64(seen) + add));
    }
    *old = tswap64(found);
    qhca_dma_unmap_atomic(s, addr, p);
    return true;
}

bool qhca_dev_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes)
{
    QHCAState *s = opaque;
    uint64_t *p = qhca_dma_map_atomic(s, addr);
    uint64_t val;

    if (!p) {
        return false;
    }
    memcpy(&val, bytes, sizeof(val));
    /* Whoever sees the word must also see the writes before it. */
    smp_wmb();
#ifdef CONFIG_ATOMIC64
    qatomic_set__nocheck(p, val);
#else
    *p = val;
#endif
    qhca_dma_unmap_atomic(s, addr, p);
    return true;
}
