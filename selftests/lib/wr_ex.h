/* SPDX-License-Identifier: GPL-2.0 */
/* Posting with ibv_wr_*(). A failure here ends the test. */
#ifndef SELFTESTS_WR_EX_H
#define SELFTESTS_WR_EX_H

#include "rdma.h"

/* Makes an RC QP for @ops (IBV_QP_EX_*); skips the test if the device has none. */
struct end end_ex(struct dev *d, struct ibv_pd *pd, struct ibv_cq *cq,
		  uint64_t ops);
/* Makes two of them, connected as @c says. */
struct pair pair_ex(struct dev *d, uint64_t ops, const struct conn *c);
/* Begins a batch on @e; its WRs are signaled, and the first has the wr_id @id. */
struct ibv_qp_ex *wr_start(struct end *e, uint64_t id);

#endif /* SELFTESTS_WR_EX_H */
