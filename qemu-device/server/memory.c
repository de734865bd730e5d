/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: a machine's memory, which it has handed over as mappings. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

/* Return the mapping of @addr, or NULL with the place that it would have. */
static struct ram *lookup(struct memory *m, uint64_t addr, unsigned *place)
{
    *place = m->hit;
    if (!qhca_range_find(m->ram, sizeof(m->ram[0]), m->num, addr, place)) {
        return NULL;
    }
    m->hit = *place;
    return &m->ram[*place];
}

bool memory_add(struct memory *m, struct ram ram)
{
    const struct qhca_range *r = &ram.range;
    unsigned at = 0;

    if (m->num == MEMORY_MAX || !r->len || r->base + (r->len - 1) < r->base ||
        lookup(m, r->base, &at) ||
        (at < m->num && m->ram[at].range.base - r->base < r->len)) {
        return false;
    }
    memmove(&m->ram[at + 1], &m->ram[at], (m->num - at) * sizeof(ram));
    m->ram[at] = ram;
    m->num++;
    m->hit = 0;
    return true;
}

void memory_remove(struct memory *m, uint64_t base, uint64_t len)
{
    unsigned at;
    struct ram *ram = lookup(m, base, &at);

    if (ram && ram->range.base == base && ram->range.len == len) {
        at = (unsigned)(ram - m->ram);
        m->num--;
        memmove(ram, ram + 1, (m->num - at) * sizeof(*ram));
        m->hit = 0;
    }
}

uint8_t *memory_piece(struct memory *m, uint64_t addr, size_t *len, bool write)
{
    unsigned place;
    struct ram *ram = lookup(m, addr, &place);
    uint64_t off;

    if (!ram || m->lost || (write && !ram->writable)) {
        return NULL;
    }
    off = addr - ram->range.base;
    *len = *len < ram->range.len - off ? *len : ram->range.len - off;
    return ram->at + off;
}

static struct memory *watched[MEMORY_WATCHED];
static unsigned num_watched;

static bool put_zeroes(uint8_t *at, size_t len)
{
    return mmap(at, len, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

/*
 * Put zeroes in place of @ram around @off; only system calls are allowed in a
 * handler. A host that promises no more memory than it has
 * (vm.overcommit_memory) would have none for all of it, so that is little; but
 * it cannot be less than a huge page where there are such, of 2 MiB or larger.
 */
static bool replace(const struct ram *ram, size_t off)
{
    static const size_t sizes[] = { 64u << 10, 2u << 20 };
    uint8_t *whole = ram->whole;

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t from = off - off % sizes[i], left = ram->whole_len - from;

        if (put_zeroes(whole + from, left < sizes[i] ? left : sizes[i])) {
            return true;
        }
    }
    return put_zeroes(whole, ram->whole_len);
}

/*
 * The file of a mapping has shrunk. The access goes on with zeroes, the next
 * ones fail, and the loop closes the connection. Anything else ends the process
 * as it would.
 */
static void survive(int signo, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;

    (void)context;
    for (unsigned i = 0; i < num_watched; i++) {
        struct memory *m = watched[i];

        for (unsigned j = 0; j < m->num; j++) {
            const struct ram *ram = &m->ram[j];
            size_t off = (size_t)(at - (uint8_t *)ram->whole);

            if (off < ram->whole_len && replace(ram, off)) {
                m->lost = true;
                return;
            }
        }
    }
    signal(signo, SIG_DFL);
}

void memory_survive(struct memory *m)
{
    struct sigaction act = { .sa_sigaction = survive, .sa_flags = SA_SIGINFO };

    watched[num_watched++] = m;
    sigaction(SIGBUS, &act, NULL);
}
