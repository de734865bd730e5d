/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the limits of Documentation/bounds.rst on what an engine
 * does in one call and on the memory it holds. bounds.c wraps the engine's
 * entry points (ld --wrap); a call that exceeds a limit fails the test that
 * made it.
 */
#ifndef QHCA_TESTS_BOUNDS_H
#define QHCA_TESTS_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

struct guest;
struct qhca_engine_ops;

/* struct call_cost - work and callbacks of one call */
struct call_cost {
    uint64_t units;             /* of work, as the engine counts them */
    uint64_t dma, dma_bytes;    /* accesses to guest memory */
    uint64_t frames;            /* given to the network, or refused by it */
    uint64_t irqs;
    uint64_t timers;            /* set_timer, schedule */
    uint64_t lines;             /* guest_error */
};

/* The callbacks of all guests; they count into guest->cost. */
extern const struct qhca_engine_ops guest_ops;

#endif /* QHCA_TESTS_BOUNDS_H */
