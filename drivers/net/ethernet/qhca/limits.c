// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the limits that the device reports. The drivers use them as shift counts, divisors and
 * factors, so check them here first.
 */
#include "qhca.h"

#define QHCA_BOUND(field, min, max) { #field, offsetof(struct qhca_limits, field), min, max }

/* Smallest useful value of a limit; larger ones are cut to max. */
static const struct {
	const char *name;
	size_t offset;
	u32 min;
	u32 max;
} qhca_bounds[] = {
	QHCA_BOUND(max_uar, 1, QHCA_DB_CAPS_PAGES),
	QHCA_BOUND(max_gid, 1, U16_MAX),
	QHCA_BOUND(max_table_blocks, 1, QHCA_TABLE_MAX_BLOCKS),
	QHCA_BOUND(max_cq, 3, S32_MAX),
	QHCA_BOUND(max_cqe_log, QHCA_RING_LOG_MIN, QHCA_RING_LOG_MAX),
	QHCA_BOUND(max_ethq_log, QHCA_RING_LOG_MIN, QHCA_RING_LOG_MAX),
	QHCA_BOUND(max_sq_wr_log, 0, QHCA_RING_LOG_MAX),
	QHCA_BOUND(max_rq_wr_log, 0, QHCA_RING_LOG_MAX),
	QHCA_BOUND(max_srq_wr_log, 0, QHCA_RING_LOG_MAX),
	QHCA_BOUND(max_send_sge, 1, QHCA_MAX_SEND_SGE),
	QHCA_BOUND(max_recv_sge, 1, QHCA_MAX_RECV_SGE),
	QHCA_BOUND(max_srq_sge, 1, QHCA_MAX_RECV_SGE),
	QHCA_BOUND(max_inline, 0, QHCA_MAX_INLINE),
	QHCA_BOUND(max_rd_atomic, 0, U8_MAX),
	QHCA_BOUND(max_fast_reg_blocks, 2, QHCA_TABLE_MAX_BLOCKS),
};

static void qhca_limits_parse(struct qhca_limits *l, const struct qhca_device_attr *a)
{
	l->fw_version = le64_to_cpu(a->fw_version);
	l->node_guid = le64_to_cpu(a->node_guid);
	l->max_mr_size = le64_to_cpu(a->max_mr_size);
	l->caps = le64_to_cpu(a->caps);
	l->max_pd = le32_to_cpu(a->max_pd);
	l->max_mr = le32_to_cpu(a->max_mr);
	l->max_cq = le32_to_cpu(a->max_cq);
	l->max_qp = le32_to_cpu(a->max_qp);
	l->max_ethq = le32_to_cpu(a->max_ethq);
	l->max_uar = le32_to_cpu(a->max_uar);
	l->max_gid = le32_to_cpu(a->max_gid);
	l->max_mcast = le32_to_cpu(a->max_mcast);
	l->max_table_blocks = le32_to_cpu(a->max_table_blocks);
	l->max_cqe_log = le32_to_cpu(a->max_cqe_log);
	l->max_sq_wr_log = le32_to_cpu(a->max_sq_wr_log);
	l->max_rq_wr_log = le32_to_cpu(a->max_rq_wr_log);
	l->max_ethq_log = le32_to_cpu(a->max_ethq_log);
	l->max_send_sge = le32_to_cpu(a->max_send_sge);
	l->max_recv_sge = le32_to_cpu(a->max_recv_sge);
	l->max_inline = le32_to_cpu(a->max_inline);
	l->max_rd_atomic = le32_to_cpu(a->max_rd_atomic);
	l->reserved_lkey = le32_to_cpu(a->reserved_lkey);
	l->max_msg_size = le32_to_cpu(a->max_msg_size);
	l->max_fast_reg_blocks = le32_to_cpu(a->max_fast_reg_blocks);
	l->max_mw = le32_to_cpu(a->max_mw);
	l->max_srq = le32_to_cpu(a->max_srq);
	l->max_srq_wr_log = le32_to_cpu(a->max_srq_wr_log);
	l->max_srq_sge = le32_to_cpu(a->max_srq_sge);
	l->max_cq_count = le32_to_cpu(a->max_cq_count);
	l->max_cq_period = le32_to_cpu(a->max_cq_period);
	l->max_mcast_grp = le32_to_cpu(a->max_mcast_grp);
	l->max_mcast_qp = le32_to_cpu(a->max_mcast_qp);
	l->max_tso = le32_to_cpu(a->max_tso);
	l->null_lkey = le32_to_cpu(a->null_lkey);
	l->max_cntset = le32_to_cpu(a->max_cntset);
}

static int qhca_limits_check(struct qhca_dev *dev, struct qhca_limits *l)
{
	unsigned int i;
	u32 *limit;

	for (i = 0; i < ARRAY_SIZE(qhca_bounds); i++) {
		limit = (void *)l + qhca_bounds[i].offset;
		*limit = min(*limit, qhca_bounds[i].max);
		if (*limit < qhca_bounds[i].min)
			return dev_err_probe(&dev->pdev->dev, -ENODEV,
					     "%s is %u, at least %u is needed\n",
					     qhca_bounds[i].name, *limit, qhca_bounds[i].min);
	}
	if (l->max_tso && l->max_tso < QHCA_TSO_MIN)
		return dev_err_probe(&dev->pdev->dev, -ENODEV,
				     "max_tso is %u, at least %u is needed\n", l->max_tso,
				     QHCA_TSO_MIN);
	return 0;
}

/**
 * qhca_limits_query - ask the device for its limits
 * @dev: the function, running
 *
 * Context: process.
 * Return: 0, the error of the command, or -ENODEV if the limits are too small.
 */
int qhca_limits_query(struct qhca_dev *dev)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_QUERY_DEVICE) };
	struct qhca_device_attr attr;
	struct qhca_mbox mbox = { .out = &attr, .out_len = sizeof(attr) };
	int ret;

	ret = qhca_cmd_exec(dev, &cmd, &mbox, NULL);
	if (ret)
		return ret;
	qhca_limits_parse(&dev->limits, &attr);
	dev->limits.max_uar = min(dev->limits.max_uar, qhca_num_uars(dev));
	return qhca_limits_check(dev, &dev->limits);
}

/**
 * qhca_limits - limits of the device
 * @dev: the function
 *
 * Return: the limits, constant while an auxiliary driver is bound.
 */
const struct qhca_limits *qhca_limits(struct qhca_dev *dev)
{
	return &dev->limits;
}
EXPORT_SYMBOL(qhca_limits);
