// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of flow rules. The kernel has one value of each kind; which of them a program finds in
 * which place it says with ibv_attach_counters_point_flow().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "qhca.h"
#include "qhca-abi.h"

#define POINTS	32

/* struct qhca_counters - @point: the kinds in each place, a bit for each enum qhca_flow_counter */
struct qhca_counters {
	struct verbs_counters vcounters;
	uint8_t point[POINTS];
};

static struct qhca_counters *to_qcounters(struct ibv_counters *ibcounters)
{
	return container_of(ibcounters, struct qhca_counters, vcounters.counters);
}

struct ibv_counters *qhca_create_counters(struct ibv_context *ibctx,
					  struct ibv_counters_init_attr *attr)
{
	struct qhca_counters *counters;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return NULL;
	err = ibv_cmd_create_counters(ibctx, attr, &counters->vcounters, NULL);
	if (err) {
		free(counters);
		errno = err;
		return NULL;
	}
	return &counters->vcounters.counters;
}

int qhca_destroy_counters(struct ibv_counters *ibcounters)
{
	struct qhca_counters *counters = to_qcounters(ibcounters);
	int err = ibv_cmd_destroy_counters(&counters->vcounters);

	if (!err)
		free(counters);
	return qhca_ret(err);
}

/* Rules name their counters when they are made, and cannot be given any afterwards. */
int qhca_attach_counters_point_flow(struct ibv_counters *ibcounters,
				    struct ibv_counter_attach_attr *attr,
				    struct ibv_flow *flow)
{
	static const uint8_t kind[] = {
		[IBV_COUNTER_PACKETS] = QHCA_FLOW_CNT_PACKETS,
		[IBV_COUNTER_BYTES] = QHCA_FLOW_CNT_BYTES,
	};

	if (attr->comp_mask || flow ||
	    (uint32_t)attr->counter_desc >= sizeof(kind))
		return EOPNOTSUPP;
	if (attr->index >= POINTS)
		return EINVAL;
	to_qcounters(ibcounters)->point[attr->index] |= 1 << kind[attr->counter_desc];
	return 0;
}

int qhca_read_counters(struct ibv_counters *ibcounters, uint64_t *values,
		       uint32_t num, uint32_t flags)
{
	struct qhca_counters *counters = to_qcounters(ibcounters);
	uint64_t sum[QHCA_FLOW_CNT_MAX];
	unsigned int i, kind;
	int err;

	for (i = num; i < POINTS; i++)
		if (counters->point[i])
			return EINVAL;
	err = ibv_cmd_read_counters(&counters->vcounters, sum, QHCA_FLOW_CNT_MAX,
				    flags, NULL);
	if (err)
		return qhca_ret(err);
	memset(values, 0, num * sizeof(*values));
	for (i = 0; i < POINTS; i++)
		for (kind = 0; kind < QHCA_FLOW_CNT_MAX; kind++)
			if (counters->point[i] & 1 << kind)
				values[i] += sum[kind];
	return 0;
}
