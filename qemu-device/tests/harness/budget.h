/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: how much the device does in one call.
 */
#ifndef QHCA_TESTS_BUDGET_H
#define QHCA_TESTS_BUDGET_H

#include "fixture.h"

/*
 * Units of work of a call, of all calls in a slice, and by how much the last
 * step may exceed them.
 */
#define CALL        2048u
#define SLICE       65536u
#define STEP        512u

/* Number of DMA calls that @g's engine has made so far. */
uint64_t dma_calls(void);
/* Checks the last call against its limit; @before is dma_calls() before it. */
void check_call(uint64_t before);
/* Runs until nothing is scheduled, checks each call, returns their number. */
unsigned settle(void);
/* Let @ns pass at @g; the timer is called no more often than @calls times. */
void let_pass(uint64_t ns, unsigned calls);
/* Limits @guest's device to @share percent of the CPU. */
void limit_cpu(struct guest *guest, unsigned share);
/* @qp and @peer on a device with limits, which has recovered from the setup. */
void start_limited(unsigned cpu_share, unsigned bandwidth,
                   const struct rc_opts *o);
/* Pushes a CQE that no work request has caused. */
void push_cqe(const struct gcq *cq, uint64_t wr_id);
/*
 * A multicast group with as many members as possible, @qp among them, each with
 * @recvs receive WRs of as many SGEs as possible. Returns its last member.
 */
extern const uint8_t full_group[16];
struct rc_qp *start_group(unsigned recvs);
/*
 * A REG_MR command in @node's PD of @blocks pages, at most 2^27. In its tables,
 * of depth 3, all entries of a table are the same page.
 */
struct qhca_cmd huge_region(uint32_t blocks);

#endif /* QHCA_TESTS_BUDGET_H */
