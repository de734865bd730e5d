/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca hosts: guest memory, once it is mapped. */
#include <string.h>

#include "../engine/wire/bytes.h"
#include "ram.h"

/*
 * Hosts with words of 32 bits may be unable to access 8 bytes at once: there it
 * is atomic only among those whom the program serialises.
 */
#define IS_ATOMIC   __atomic_always_lock_free(sizeof(uint64_t), NULL)

bool qhca_range_find(const void *table, size_t size, unsigned num,
                     uint64_t addr, unsigned *at)
{
    const struct qhca_range *range;
    unsigned low = 0, high = num;

    while (low < high) {
        range = (const void *)((const uint8_t *)table + *at * size);
        if (addr - range->base < range->len) {
            return true;
        }
        if (addr < range->base) {
            high = *at;
        } else {
            low = *at + 1;
        }
        *at = low + (high - low) / 2;
    }
    *at = low;
    return false;
}

bool qhca_ram_is_dm(const struct qhca_props *props, uint64_t *addr)
{
    bool is_dm = props->dm_size && *addr & QHCA_ADDR_DM;

    *addr &= is_dm ? ~QHCA_ADDR_DM : UINT64_MAX;
    return is_dm;
}

/* On x86 only the full fence costs. */
void qhca_ram_order(bool *wrote, bool write)
{
    if (write) {
        /* After earlier writes: the owner byte after the rest of its entry */
        __atomic_thread_fence(__ATOMIC_RELEASE);
    } else if (*wrote) {
        /* After earlier writes, which may still be in a store buffer */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else {
        /* After earlier reads */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
    *wrote = write;
}

void qhca_ram_entry(uint8_t *p, const uint8_t *entry, size_t len)
{
    size_t last = len - 1;

    memcpy(p, entry, last);
    /* The guest reads the bytes in reverse order. */
    __atomic_store_n(p + last, entry[last], __ATOMIC_RELEASE);
}

/* Returns the value found at @p: @old if the swap took place. */
static uint64_t cmpxchg(uint64_t *p, uint64_t old, uint64_t new)
{
    uint64_t found = *p;

    if (!IS_ATOMIC) {
        if (found == old) {
            *p = new;
        }
        return found;
    }
    __atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return old;
}

uint64_t qhca_ram_cas(uint64_t *p, uint64_t compare, uint64_t swap)
{
    return le64toh(cmpxchg(p, htole64(compare), htole64(swap)));
}

/* A loop, because the host may be big-endian. */
uint64_t qhca_ram_add(uint64_t *p, uint64_t add)
{
    /* Guests write there at any time, so one read has to serve both uses. */
    uint64_t found = *(volatile uint64_t *)p, seen;

    do {
        seen = found;
        found = cmpxchg(p, seen, htole64(le64toh(seen) + add));
    } while (found != seen);
    return le64toh(found);
}

void qhca_ram_store(uint64_t *p, const uint8_t *bytes)
{
    uint64_t val;

    memcpy(&val, bytes, sizeof(val));
    if (IS_ATOMIC) {
        __atomic_store_n(p, val, __ATOMIC_RELEASE);
    } else {
        *p = val;
    }
}
