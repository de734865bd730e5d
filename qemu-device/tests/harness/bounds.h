/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what an engine may do in one call and hold in all, as
 * Documentation/bounds.rst has it. The linker puts bounds.c between all tests
 * and the engine's entry points (--wrap); a call that goes beyond is a failure
 * of the test that made it.
 */
#ifndef QHCA_TESTS_BOUNDS_H
#define QHCA_TESTS_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

struct guest;
struct qhca_engine_ops;

/* struct call_cost - what a call has done to the world around */
struct call_cost {
    uint64_t units;             /* of work, as the engine counts */
    uint64_t dma, dma_bytes;    /* accesses to guest memory */
    uint64_t frames;            /* given to the network, or refused by it */
    uint64_t irqs;
    uint64_t timers;            /* set_timer, schedule */
    uint64_t lines;             /* guest_error */
};

/* The callbacks of guests, which count. */
extern const struct qhca_engine_ops guest_ops;
/* What leaves the engine is not what happened to be in the host's memory. */
void bounds_check_known(const void *buf, size_t len);
/* A guest's engine has been freed: nothing of it is left. */
void bounds_check_freed(const struct guest *g);

#endif /* QHCA_TESTS_BOUNDS_H */
