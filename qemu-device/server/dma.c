/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the engine's access to the machine's memory.
 *
 * What the machine has not handed over as a mapping, other devices' registers
 * above all, cannot be reached: as in QEMU, an address that the guest chooses
 * never makes the HCA operate another device.
 */
#include <string.h>

#include "dma.h"
#include "trace.h"

static uint8_t *dma_where(struct hca *hca, uint64_t addr, size_t len,
                          bool write)
{
    if (hca->dm && addr & QHCA_ADDR_DM) {
        addr &= ~QHCA_ADDR_DM;
        return addr <= hca->props.dm_size && len <= hca->props.dm_size - addr ?
               hca->dm + addr : NULL;
    }
    return hca_is_bus_master(hca) ?
           memory_find(&hca->memory, addr, len, write) : NULL;
}

/* Find @len bytes at @addr, in the machine's memory or the device's own. */
static uint8_t *dma_find(struct hca *hca, uint64_t addr, size_t len, bool write)
{
    uint8_t *p = dma_where(hca, addr, len, write);

    if (!p) {
        trace_qhca_dma_fail(hca->name, addr, len, write);
    }
    return p;
}

/* Let the guest see accesses in their order. On x86 only the full one costs. */
static void dma_order(struct hca *hca, bool write)
{
    if (!write && hca->memory.wrote) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else {
        __atomic_thread_fence(write ? __ATOMIC_RELEASE : __ATOMIC_ACQUIRE);
    }
    hca->memory.wrote = write;
}

bool hca_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct hca *hca = opaque;
    uint8_t *p = dma_find(hca, addr, len, false);

    dma_order(hca, false);
    if (p) {
        memcpy(buf, p, len);
    }
    return p;
}

bool hca_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    struct hca *hca = opaque;
    uint8_t *p = dma_find(hca, addr, len, true);

    dma_order(hca, true);
    if (p) {
        /* @buf may be memory peeked at, even the target. */
        memmove(p, buf, len);
    }
    return p;
}

static void dma_trace_entry(struct hca *hca, uint64_t addr, const uint8_t *p,
                            size_t len)
{
    if (trace_on[TRACE_qhca_dma_entry]) {
        g_autoptr(GString) hex = g_string_new(NULL);

        for (size_t i = 0; i < len; i++) {
            g_string_append_printf(hex, i ? " %02x" : "%02x", p[i]);
        }
        trace_qhca_dma_entry(hca->name, addr, hex->str);
    }
}

bool hca_dma_write_entry(void *opaque, uint64_t addr, const void *entry,
                         size_t len)
{
    const uint8_t *from = entry;
    struct hca *hca = opaque;
    uint8_t *p = dma_find(hca, addr, len, true);

    dma_trace_entry(hca, addr, from, len);
    dma_order(hca, true);
    if (p) {
        memcpy(p, from, len - 1);
        /* The guest reads the bytes in reverse order. */
        __atomic_store_n(p + len - 1, from[len - 1], __ATOMIC_RELEASE);
    }
    return p;
}

const void *hca_dma_peek(void *opaque, uint64_t addr, size_t *len)
{
    struct hca *hca = opaque;

    dma_order(hca, false);
    if (hca->dm && addr & QHCA_ADDR_DM) {
        addr &= ~QHCA_ADDR_DM;
        if (addr >= hca->props.dm_size) {
            return NULL;
        }
        *len = MIN(*len, hca->props.dm_size - addr);
        return hca->dm + addr;
    }
    return hca_is_bus_master(hca) ? memory_peek(&hca->memory, addr, len) : NULL;
}

/* The 8 bytes of an atomic operation, or NULL unless they are aligned. */
static uint64_t *dma_atomic(struct hca *hca, uint64_t addr)
{
    uint8_t *p = addr % 8 ? NULL : dma_find(hca, addr, 8, true);

    dma_order(hca, true);
    return (uint64_t *)(void *)p;
}

bool hca_dma_cas(void *opaque, uint64_t addr, uint64_t compare, uint64_t swap,
                 uint64_t *old)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        *old = compare;
        __atomic_compare_exchange_n(p, old, swap, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
    return p;
}

bool hca_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        *old = __atomic_fetch_add(p, add, __ATOMIC_SEQ_CST);
    }
    return p;
}

bool hca_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes)
{
    uint64_t *p = dma_atomic(opaque, addr), val;

    if (p) {
        memcpy(&val, bytes, sizeof(val));
        __atomic_store_n(p, val, __ATOMIC_RELEASE);
    }
    return p;
}
