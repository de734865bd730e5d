// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: hw_counters of the port. As everywhere they go by the names in qhca/counters.h. */
#include <qhca/counters.h>

#include "qhca_ib.h"

/* What the core wants to be told once; every HCA has the same. */
static struct rdma_stat_desc qhca_ib_counters[QHCA_CNT_MAX];

/**
 * qhca_ib_alloc_hw_port_stats - alloc_hw_port_stats verb
 * @ibdev: the HCA
 * @port: port number
 */
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(qhca_ib_counters); i++)
		qhca_ib_counters[i].name = qhca_counter_names[i];
	return rdma_alloc_hw_stats_struct(qhca_ib_counters, ARRAY_SIZE(qhca_ib_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * qhca_ib_get_hw_stats - get_hw_stats verb
 * @ibdev: the HCA
 * @stats: filled in
 * @port: port number
 * @index: of the one that is wanted; all are read
 *
 * Return: how many were read, or a negative errno.
 */
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index)
{
	__le64 values[QHCA_CNT_MAX];
	unsigned int i;
	int ret;

	if (!port)
		return -EINVAL;
	ret = qhca_ib_query(to_qdev(ibdev), QHCA_CMD_QUERY_COUNTERS, port, values,
			    sizeof(values));
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(values); i++)
		stats->value[i] = le64_to_cpu(values[i]);
	return ARRAY_SIZE(values);
}
