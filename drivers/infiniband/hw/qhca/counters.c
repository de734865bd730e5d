// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: hw_counters. The driver counts failed verbs. Counters of the port and of sets of QPs
 * ("rdma statistic qp") come from the device, under the names in qhca/counters.h.
 *
 * The core adds the counts of all sets, even of deleted ones, to those that the driver reports for
 * the port. So the driver reports for the port only what no set has counted.
 */
#include <qhca/counters.h>

#include "qhca_ib.h"

/* The core wants the descriptors only once; they are equal for all HCAs. */
static struct rdma_stat_desc qhca_ib_counters[QHCA_CNT_MAX];

static const struct rdma_stat_desc qhca_ib_errs[QHCA_IB_NUM_ERRS] = {
	[QHCA_IB_ALLOC_UCONTEXT_ERR].name = "alloc_ucontext_err",
	[QHCA_IB_MMAP_ERR].name = "mmap_err",
	[QHCA_IB_ALLOC_PD_ERR].name = "alloc_pd_err",
	[QHCA_IB_CREATE_AH_ERR].name = "create_ah_err",
	[QHCA_IB_REG_MR_ERR].name = "reg_mr_err",
	[QHCA_IB_REREG_MR_ERR].name = "rereg_mr_err",
	[QHCA_IB_ALLOC_MW_ERR].name = "alloc_mw_err",
	[QHCA_IB_ALLOC_DM_ERR].name = "alloc_dm_err",
	[QHCA_IB_CREATE_CQ_ERR].name = "create_cq_err",
	[QHCA_IB_MODIFY_CQ_ERR].name = "modify_cq_err",
	[QHCA_IB_CREATE_QP_ERR].name = "create_qp_err",
	[QHCA_IB_MODIFY_QP_ERR].name = "modify_qp_err",
	[QHCA_IB_CREATE_SRQ_ERR].name = "create_srq_err",
	[QHCA_IB_MODIFY_SRQ_ERR].name = "modify_srq_err",
	[QHCA_IB_ALLOC_XRCD_ERR].name = "alloc_xrcd_err",
	[QHCA_IB_ATTACH_MCAST_ERR].name = "attach_mcast_err",
};

/**
 * qhca_ib_count_err - count a failure of a verb
 * @dev: the HCA
 * @err: the counter
 * @ret: the return value of the verb
 *
 * Context: any.
 * Return: @ret.
 */
int qhca_ib_count_err(struct qhca_ib_dev *dev, enum qhca_ib_err err, int ret)
{
	if (ret)
		atomic64_inc(&dev->errs[err]);
	return ret;
}

/**
 * qhca_ib_alloc_hw_device_stats - alloc_hw_device_stats verb
 * @ibdev: the HCA
 */
struct rdma_hw_stats *qhca_ib_alloc_hw_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(qhca_ib_errs, ARRAY_SIZE(qhca_ib_errs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int qhca_ib_get_errs(struct qhca_ib_dev *dev, struct rdma_hw_stats *stats)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dev->errs); i++)
		stats->value[i] = atomic64_read(&dev->errs[i]);
	return ARRAY_SIZE(dev->errs);
}

static struct rdma_hw_stats *qhca_ib_alloc_stats(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(qhca_ib_counters); i++)
		qhca_ib_counters[i].name = qhca_counter_names[i];
	return rdma_alloc_hw_stats_struct(qhca_ib_counters, ARRAY_SIZE(qhca_ib_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int qhca_ib_query_values(struct qhca_ib_dev *dev, enum qhca_cmd_opcode opcode, u32 obj,
				u64 *values)
{
	__le64 hw[QHCA_CNT_MAX];
	unsigned int i;
	int ret;

	ret = qhca_ib_query(dev, opcode, obj, hw, sizeof(hw));
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(hw); i++)
		values[i] = le64_to_cpu(hw[i]);
	return 0;
}

/**
 * qhca_ib_query_counters - read the counters of the port, including all sets
 * @dev: the HCA
 * @values: QHCA_CNT_MAX of them, filled in
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_counters(struct qhca_ib_dev *dev, u64 *values)
{
	return qhca_ib_query_values(dev, QHCA_CMD_QUERY_COUNTERS, QHCA_IB_PORT, values);
}

/**
 * qhca_ib_alloc_hw_port_stats - alloc_hw_port_stats verb
 * @ibdev: the HCA
 * @port: port number
 */
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return qhca_ib_alloc_stats();
}

/**
 * qhca_ib_get_hw_stats - get_hw_stats verb
 * @ibdev: the HCA
 * @stats: filled in
 * @port: port number; 0 for the counters of the device
 * @index: the counter that is wanted; all of them are read
 *
 * Return: how many were read, or a negative errno.
 */
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	int ret;

	if (!port)
		return qhca_ib_get_errs(dev, stats);
	if (dev->limits->max_cntset)
		ret = qhca_ib_query_values(dev, QHCA_CMD_QUERY_CNTSET, 0, stats->value);
	else
		ret = qhca_ib_query_counters(dev, stats->value);
	return ret ? ret : QHCA_CNT_MAX;
}

static int qhca_ib_bind_cntset(struct ib_qp *ibqp, u32 cntset)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_BIND_CNTSET),
		.bind_cntset.qpn = cpu_to_le32(to_qqp(ibqp)->qpn),
		.bind_cntset.cntset = cpu_to_le32(cntset),
	};

	if (to_qqp(ibqp)->spread)	/* its WQs receive, and are no QPs here */
		return -EOPNOTSUPP;
	return qhca_cmd_exec(to_qdev(ibqp->device)->core, &cmd, NULL, NULL);
}

/**
 * qhca_ib_counter_bind_qp - counter_bind_qp verb: count the traffic of a QP in a set
 * @counter: the set; it has no number before the first QP
 * @ibqp: the QP
 * @port: port number
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_CNTSET) };
	struct qhca_dev *core = to_qdev(ibqp->device)->core;
	u32 id = counter->id;
	int ret;

	/* Allocate the set in the device with its first QP. */
	ret = id ? 0 : qhca_cmd_exec(core, &cmd, NULL, &id);
	if (ret)
		return ret;
	ret = qhca_ib_bind_cntset(ibqp, id);
	if (ret) {
		if (!counter->id)
			qhca_cmd_obj(core, QHCA_CMD_DEALLOC_CNTSET, id);
		return ret;
	}
	counter->id = id;
	/* Drivers have to set this, the core does not. */
	ibqp->counter = counter;
	return 0;
}

/**
 * qhca_ib_counter_unbind_qp - counter_unbind_qp verb: count the traffic of a QP in no set
 * @ibqp: the QP, which may be about to be destroyed
 * @port: port number
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
{
	int ret = qhca_ib_bind_cntset(ibqp, 0);

	if (ret && !qhca_is_dead(to_qdev(ibqp->device)->core))
		return ret;
	ibqp->counter = NULL;
	return 0;
}

/**
 * qhca_ib_counter_dealloc - counter_dealloc verb
 * @counter: the set, which has no QP any more
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_counter_dealloc(struct rdma_counter *counter)
{
	if (!counter->id)
		return 0;
	return qhca_cmd_obj(to_qdev(counter->device)->core, QHCA_CMD_DEALLOC_CNTSET,
			    counter->id);
}

/**
 * qhca_ib_counter_alloc_stats - counter_alloc_stats verb
 * @counter: the counter; the core expects the counters of the port, in the same order
 */
struct rdma_hw_stats *qhca_ib_counter_alloc_stats(struct rdma_counter *counter)
{
	return qhca_ib_alloc_stats();
}

/**
 * qhca_ib_counter_update_stats - counter_update_stats verb
 * @counter: the counter
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_counter_update_stats(struct rdma_counter *counter)
{
	return qhca_ib_query_values(to_qdev(counter->device), QHCA_CMD_QUERY_CNTSET, counter->id,
				    counter->stats->value);
}
