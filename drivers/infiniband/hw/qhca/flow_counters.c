// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: counters of flow rules: sums over all rules that name the same counters. */
#include "rwq.h"

static struct qhca_ib_flow_counters *to_qfc(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct qhca_ib_flow_counters, ibcounters);
}

/* Add to @sum what a rule has counted. */
static int qhca_ib_flow_sum(struct qhca_ib_dev *dev, const struct qhca_ib_flow *flow, u64 *sum)
{
	struct qhca_flow_counts hw;
	int ret = qhca_ib_query(dev, QHCA_CMD_QUERY_FLOW, flow->number, &hw, sizeof(hw));

	if (ret)
		return ret;
	sum[QHCA_FLOW_CNT_PACKETS] += le64_to_cpu(hw.frames);
	sum[QHCA_FLOW_CNT_BYTES] += le64_to_cpu(hw.bytes);
	return 0;
}

/**
 * qhca_ib_flow_count - let the counters that a rule names count it
 * @flow: the rule, which the device has
 */
void qhca_ib_flow_count(struct qhca_ib_flow *flow)
{
	struct qhca_ib_flow_counters *counters;

	if (!flow->counters)
		return;
	counters = to_qfc(flow->counters);
	mutex_lock(&counters->lock);
	list_add_tail(&flow->node, &counters->flows);
	mutex_unlock(&counters->lock);
}

/**
 * qhca_ib_flow_uncount - let counters keep what a rule has counted, which goes
 * @dev: the HCA
 * @flow: the rule, which the device still has
 */
void qhca_ib_flow_uncount(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow)
{
	struct qhca_ib_flow_counters *counters;

	if (!flow->counters)
		return;
	counters = to_qfc(flow->counters);
	mutex_lock(&counters->lock);
	qhca_ib_flow_sum(dev, flow, counters->gone);
	list_del(&flow->node);
	mutex_unlock(&counters->lock);
}

/**
 * qhca_ib_create_counters - create_counters verb
 * @ibcounters: the counters, for rules to name them
 * @attrs: the user's request, which has nothing for the driver
 *
 * Return: 0.
 */
int qhca_ib_create_counters(struct ib_counters *ibcounters, struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_flow_counters *counters = to_qfc(ibcounters);

	mutex_init(&counters->lock);
	INIT_LIST_HEAD(&counters->flows);
	return 0;
}

/**
 * qhca_ib_destroy_counters - destroy_counters verb
 * @ibcounters: the counters, which no rule names
 *
 * Return: 0.
 */
int qhca_ib_destroy_counters(struct ib_counters *ibcounters)
{
	mutex_destroy(&to_qfc(ibcounters)->lock);
	return 0;
}

/**
 * qhca_ib_read_counters - read_counters verb
 * @ibcounters: the counters
 * @attr: room for values, in the order of enum qhca_ib_flow_counter
 * @attrs: the user's request, which has nothing for the driver
 *
 * Return: 0, -EINVAL if there is room for more values than there are, -EIO.
 */
int qhca_ib_read_counters(struct ib_counters *ibcounters, struct ib_counters_read_attr *attr,
			  struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_flow_counters *counters = to_qfc(ibcounters);
	struct qhca_ib_dev *dev = to_qdev(ibcounters->device);
	u64 sum[QHCA_FLOW_CNT_MAX];
	struct qhca_ib_flow *flow;
	int ret = 0;

	if (attr->ncounters > ARRAY_SIZE(sum))
		return qhca_ib_refuse(dev, -EINVAL, "counters: %u values", attr->ncounters);
	mutex_lock(&counters->lock);
	memcpy(sum, counters->gone, sizeof(sum));
	list_for_each_entry(flow, &counters->flows, node) {
		ret = qhca_ib_flow_sum(dev, flow, sum);
		if (ret)
			break;
	}
	mutex_unlock(&counters->lock);
	if (!ret)
		memcpy(attr->counters_buff, sum, attr->ncounters * sizeof(*sum));
	return ret;
}
