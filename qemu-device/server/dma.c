/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the engine's access to the machine's memory.
 *
 * It cannot reach addresses that the machine has not handed over as a mapping,
 * above all other devices' registers: as in QEMU, an address that the guest
 * chooses never makes the HCA operate another device.
 */
#include <string.h>

#include "dma.h"
#include "trace.h"

/*
 * Return where the byte at @addr is, in the machine's memory or the device's
 * own, or NULL; reduce @len to the bytes from there on that are one piece.
 */
static uint8_t *dma_piece(struct hca *hca, uint64_t addr, size_t *len,
                          bool write)
{
    if (qhca_ram_is_dm(&hca->props, &addr)) {
        if (addr >= hca->props.dm_size) {
            return NULL;
        }
        *len = MIN(*len, hca->props.dm_size - addr);
        return hca->dm + addr;
    }
    return hca_is_bus_master(hca) ?
           memory_piece(&hca->memory, addr, len, write) : NULL;
}

/*
 * Whether all addresses are of one kind: none behind the end of all, nor both
 * of the machine's memory and of the device's own.
 */
static bool dma_is_range(struct hca *hca, uint64_t addr, size_t len)
{
    uint64_t last = addr + len - (len > 0);

    return last >= addr && (!hca->dm || !((addr ^ last) & QHCA_ADDR_DM));
}

static bool dma_fail(struct hca *hca, uint64_t addr, size_t len, bool write)
{
    trace_qhca_dma_fail(hca->name, addr, len, write);
    return false;
}

/*
 * Copy piece by piece, as the machine's memory may be several mappings in a
 * row. In front of a byte that is not there all has been copied, as on a bus.
 */
static bool dma_copy(struct hca *hca, uint64_t addr, uint8_t *buf, size_t len,
                     bool write)
{
    size_t done = 0, n;

    qhca_ram_order(&hca->memory.wrote, write);
    if (!dma_is_range(hca, addr, len)) {
        return dma_fail(hca, addr, len, write);
    }
    for (; done < len; done += n) {
        uint8_t *p;

        n = len - done;
        p = dma_piece(hca, addr + done, &n, write);
        if (!p) {
            return dma_fail(hca, addr + done, len - done, write);
        }
        if (write) {
            /* @buf may be memory peeked at, even the target. */
            memmove(p, buf + done, n);
        } else {
            memcpy(buf + done, p, n);
        }
    }
    return true;
}

bool hca_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    return dma_copy(opaque, addr, buf, len, false);
}

bool hca_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    return dma_copy(opaque, addr, (void *)buf, len, true);
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
    size_t last = len - 1, n = len;
    uint8_t *p = dma_piece(hca, addr, &n, true);

    dma_trace_entry(hca, addr, from, len);
    if (!p || n < len) {
        return hca_dma_write(hca, addr, from, last) &&
               hca_dma_write(hca, addr + last, from + last, 1);
    }
    qhca_ram_order(&hca->memory.wrote, true);
    qhca_ram_entry(p, from, len);
    return true;
}

const void *hca_dma_peek(void *opaque, uint64_t addr, size_t *len)
{
    struct hca *hca = opaque;

    qhca_ram_order(&hca->memory.wrote, false);
    return dma_is_range(hca, addr, *len) ? dma_piece(hca, addr, len, true) :
                                           NULL;
}

/*
 * The 8 bytes of an atomic operation, or NULL unless they are aligned, at the
 * machine's address and, as it has chosen where its files begin, at ours.
 */
static uint64_t *dma_atomic(struct hca *hca, uint64_t addr)
{
    size_t n = sizeof(uint64_t);
    uint8_t *p = addr % n ? NULL : dma_piece(hca, addr, &n, true);

    if (!p || n < sizeof(uint64_t) || (uintptr_t)p % sizeof(uint64_t)) {
        trace_qhca_dma_fail(hca->name, addr, sizeof(uint64_t), true);
        return NULL;
    }
    qhca_ram_order(&hca->memory.wrote, true);
    return (uint64_t *)(void *)p;
}

bool hca_dma_cas(void *opaque, uint64_t addr, uint64_t compare, uint64_t swap,
                 uint64_t *old)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        *old = qhca_ram_cas(p, compare, swap);
    }
    return p;
}

bool hca_dma_add(void *opaque, uint64_t addr, uint64_t add, uint64_t *old)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        *old = qhca_ram_add(p, add);
    }
    return p;
}

bool hca_dma_store(void *opaque, uint64_t addr, const uint8_t *bytes)
{
    uint64_t *p = dma_atomic(opaque, addr);

    if (p) {
        qhca_ram_store(p, bytes);
    }
    return p;
}
