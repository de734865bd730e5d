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
/* What is scheduled goes on, no call doing too much; returns the calls. */
unsigned settle(void);
/* A CQE out of the blue. */
void push_cqe(const struct gcq *cq, uint64_t wr_id);

#endif /* QHCA_TESTS_BUDGET_H */
