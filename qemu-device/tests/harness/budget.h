/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: how much the device does in one call.
 */
#ifndef QHCA_TESTS_BUDGET_H
#define QHCA_TESTS_BUDGET_H

#include "fixture.h"

/*
 * Units of a call, of all calls in a slice, and the most that the last step
 * takes too much.
 */
#define CALL        2048u
#define SLICE       65536u
#define STEP        512u

/* DMA calls of @g until now. */
uint64_t dma_calls(void);
/* The last call did no more than it may; @before is dma_calls() before it. */
void check_call(uint64_t before);
/* What is scheduled goes on, no call doing too much; returns the calls. */
unsigned settle(void);
/* From now on @guest's device may have one percent of the CPU. */
void limit_cpu(struct guest *guest);
/* A CQE out of the blue. */
void push_cqe(const struct gcq *cq, uint64_t wr_id);
/*
 * REG_MR in @node's PD of @blocks pages, at most 2^27: tables of depth 3 that
 * have the same pages in them again and again.
 */
struct qhca_cmd huge_region(uint32_t blocks);

#endif /* QHCA_TESTS_BUDGET_H */
