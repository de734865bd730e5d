/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: a machine's memory, which it has handed over as mappings.
 *
 * The machine owns the files behind them, so they can shrink under an access.
 * memory_survive() makes that end the machine's connection and not the server.
 */
#ifndef QHCA_SERVER_MEMORY_H
#define QHCA_SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/ram.h"

/*
 * struct ram - a mapping
 * @range: the machine's addresses
 * @at: the address here
 * @whole, @whole_len: what has been mapped, which may be more
 */
struct ram {
    struct qhca_range range;
    uint8_t *at;
    void *whole;
    size_t whole_len;
    bool writable;
};

#define MEMORY_MAX      64

/*
 * struct memory - mappings by ascending address
 * @hit: the one found last
 * @wrote: the last access was a write
 * @lost: a file has shrunk, zeroes are in its place, and no more is accessed:
 *        each place would take as much memory again
 */
struct memory {
    struct ram ram[MEMORY_MAX];
    unsigned num, hit;
    bool wrote;
    volatile bool lost;         /* volatile: set by a signal handler */
};

/* Returns false if there are too many, or it overlaps. */
bool memory_add(struct memory *m, struct ram ram);
void memory_remove(struct memory *m, uint64_t base, uint64_t len);
/*
 * Return where the byte at @addr is, or NULL if there is none, or none that
 * can be written for a @write, or if some have been lost. @len: how many bytes
 * are wanted, and on return how many of them this mapping has; the others may
 * be in the next one.
 */
uint8_t *memory_piece(struct memory *m, uint64_t addr, size_t *len, bool write);

/*
 * Let the process outlive accesses to memory whose file has shrunk; @m is one
 * that it looks for. At most MEMORY_WATCHED are possible.
 */
void memory_survive(struct memory *m);
#define MEMORY_WATCHED  64

#endif /* QHCA_SERVER_MEMORY_H */
