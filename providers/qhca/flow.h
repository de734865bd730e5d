/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Flow rules and their counters. */
#ifndef QHCA_FLOW_RULES_H
#define QHCA_FLOW_RULES_H

#include <infiniband/driver.h>

struct ibv_flow *qhca_create_flow(struct ibv_qp *ibqp,
				  struct ibv_flow_attr *attr);
int qhca_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *qhca_create_counters(struct ibv_context *ibctx,
					  struct ibv_counters_init_attr *attr);
int qhca_destroy_counters(struct ibv_counters *ibcounters);
int qhca_attach_counters_point_flow(struct ibv_counters *ibcounters,
				    struct ibv_counter_attach_attr *attr,
				    struct ibv_flow *flow);
int qhca_read_counters(struct ibv_counters *ibcounters, uint64_t *values,
		       uint32_t num, uint32_t flags);

#endif /* QHCA_FLOW_RULES_H */
