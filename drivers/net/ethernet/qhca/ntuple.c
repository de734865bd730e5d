// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the administrator's rules about which queue a received frame is for (ethtool -N). */
#include <linux/ethtool.h>

#include "eth.h"

/*
 * struct qhca_ntuple - a rule
 * @node: in the list of the port, by location
 * @number: the device's number; 0: the device does not have the rule at present
 */
struct qhca_ntuple {
	struct list_head node;
	u32 number;
	u32 context;
	struct ethtool_rx_flow_spec fs;
};

/* Give a rule to the device, in place of the one that has its number. */
static int qhca_ntuple_create(struct qhca_nic *nic, struct qhca_ntuple *rule,
			      unsigned int channels)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_FLOW),
		.obj.obj = cpu_to_le32(rule->number),
	};
	struct qhca_flow flow;
	struct qhca_mbox mbox = { .in = &flow, .in_len = sizeof(flow) };
	int ret = qhca_ntuple_flow(nic, &rule->fs, rule->context, channels, &flow);

	return ret ?: qhca_cmd_exec(nic->dev, &cmd, &mbox, &rule->number);
}

static void qhca_ntuple_destroy(struct qhca_nic *nic, struct qhca_ntuple *rule)
{
	if (rule->number)
		qhca_cmd_destroy(nic->dev, QHCA_CMD_DESTROY_FLOW, rule->number);
	rule->number = 0;
}

static void qhca_ntuple_del(struct qhca_nic *nic, struct qhca_ntuple *rule)
{
	qhca_ntuple_destroy(nic, rule);
	list_del(&rule->node);
	kfree(rule);
}

/**
 * qhca_ntuple_apply - give the rules to the device that it does not have
 * @nic: the port
 * @channels: so many receive queues exist
 *
 * Context: process, RTNL.
 */
void qhca_ntuple_apply(struct qhca_nic *nic, unsigned int channels)
{
	struct qhca_ntuple *rule;

	list_for_each_entry(rule, &nic->ntuple, node)
		if (!rule->number && qhca_ntuple_create(nic, rule, channels) &&
		    !qhca_is_dead(nic->dev))
			netdev_warn(nic->netdev, "rule %u is not in force\n", rule->fs.location);
}

/**
 * qhca_ntuple_off - undo qhca_ntuple_apply(), for a port that is closed
 * @nic: the port
 *
 * Context: process, RTNL.
 */
void qhca_ntuple_off(struct qhca_nic *nic)
{
	struct qhca_ntuple *rule;

	list_for_each_entry(rule, &nic->ntuple, node)
		qhca_ntuple_destroy(nic, rule);
}

/**
 * qhca_ntuple_free - forget all rules
 * @nic: the port, closed
 *
 * Context: process.
 */
void qhca_ntuple_free(struct qhca_nic *nic)
{
	struct qhca_ntuple *rule, *next;

	list_for_each_entry_safe(rule, next, &nic->ntuple, node)
		qhca_ntuple_del(nic, rule);
}

/**
 * qhca_ntuple_max_queue - how many channels the rules need
 * @nic: the port
 *
 * Context: process, RTNL.
 * Return: the largest index of a queue, plus 1.
 */
unsigned int qhca_ntuple_max_queue(const struct qhca_nic *nic)
{
	const struct qhca_ntuple *rule;
	u64 max = 0;

	list_for_each_entry(rule, &nic->ntuple, node)
		if (rule->fs.ring_cookie != RX_CLS_FLOW_DISC &&
		    !(rule->fs.flow_type & FLOW_RSS))
			max = max(max, rule->fs.ring_cookie + 1);
	return max;
}

/**
 * qhca_ntuple_uses - whether a rule names an RSS context
 * @nic: the port
 * @context: its number
 *
 * Context: process, RTNL.
 * Return: true or false.
 */
bool qhca_ntuple_uses(const struct qhca_nic *nic, u32 context)
{
	const struct qhca_ntuple *rule;

	list_for_each_entry(rule, &nic->ntuple, node)
		if (rule->fs.flow_type & FLOW_RSS && rule->context == context)
			return true;
	return false;
}

/**
 * qhca_ntuple_forget - delete the rules that name an RSS context
 * @nic: the port
 * @context: its number
 *
 * Context: process, RTNL.
 */
void qhca_ntuple_forget(struct qhca_nic *nic, u32 context)
{
	struct qhca_ntuple *rule, *next;

	list_for_each_entry_safe(rule, next, &nic->ntuple, node) {
		if (!(rule->fs.flow_type & FLOW_RSS) || rule->context != context)
			continue;
		netdev_warn(nic->netdev, "rule %u is lost with its RSS context\n",
			    rule->fs.location);
		qhca_ntuple_del(nic, rule);
	}
}

static struct qhca_ntuple *qhca_ntuple_find(struct qhca_nic *nic, u32 location)
{
	struct qhca_ntuple *rule;

	list_for_each_entry(rule, &nic->ntuple, node)
		if (rule->fs.location == location)
			return rule;
	return NULL;
}

static void qhca_ntuple_list(struct qhca_nic *nic, struct qhca_ntuple *rule)
{
	struct qhca_ntuple *at;

	list_for_each_entry(at, &nic->ntuple, node)
		if (at->fs.location > rule->fs.location)
			break;
	list_add_tail(&rule->node, &at->node);
}

/* Add a rule, in place of one at that location. */
static int qhca_ntuple_insert(struct qhca_nic *nic, const struct ethtool_rxnfc *info)
{
	struct qhca_ntuple *rule, *old;
	struct qhca_flow flow;
	int ret;

	if (info->fs.location >= QHCA_FLOW_MAX)
		return -EINVAL;
	rule = kzalloc_obj(*rule);
	if (!rule)
		return -ENOMEM;
	rule->fs = info->fs;
	if (rule->fs.flow_type & FLOW_RSS)
		rule->context = info->rss_context;
	old = qhca_ntuple_find(nic, info->fs.location);
	rule->number = old ? old->number : 0;
	ret = rcu_access_pointer(nic->chans) ?
	      qhca_ntuple_create(nic, rule, nic->params.channels) :
	      qhca_ntuple_flow(nic, &rule->fs, rule->context, nic->params.channels, &flow);
	if (ret) {
		kfree(rule);
		return ret;
	}
	qhca_ntuple_list(nic, rule);
	if (old) {
		list_del(&old->node);
		kfree(old);
	}
	return 0;
}

/**
 * qhca_set_rxnfc - ethtool -N
 * @netdev: the netdev
 * @info: a rule to add, or the location of one to delete
 *
 * Return: 0 or a negative errno.
 */
int qhca_set_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_ntuple *rule;

	switch (info->cmd) {
	case ETHTOOL_SRXCLSRLINS:
		return qhca_ntuple_insert(nic, info);
	case ETHTOOL_SRXCLSRLDEL:
		rule = qhca_ntuple_find(nic, info->fs.location);
		if (!rule)
			return -ENOENT;
		qhca_ntuple_del(nic, rule);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int qhca_ntuple_get(struct qhca_nic *nic, struct ethtool_rxnfc *info)
{
	const struct qhca_ntuple *rule = qhca_ntuple_find(nic, info->fs.location);

	if (!rule)
		return -ENOENT;
	info->fs = rule->fs;
	if (rule->fs.flow_type & FLOW_RSS)
		info->rss_context = rule->context;
	return 0;
}

/* Count the rules, and list their locations. */
static int qhca_ntuple_all(struct qhca_nic *nic, struct ethtool_rxnfc *info, u32 *locations)
{
	const struct qhca_ntuple *rule;
	u32 n = 0;

	list_for_each_entry(rule, &nic->ntuple, node) {
		if (locations && n == info->rule_cnt)
			return -EMSGSIZE;
		if (locations)
			locations[n] = rule->fs.location;
		n++;
	}
	info->data = QHCA_FLOW_MAX;
	info->rule_cnt = n;
	return 0;
}

/**
 * qhca_get_rxnfc - ethtool -n
 * @netdev: the netdev
 * @info: what is asked for, and the answer
 * @locations: filled in with the locations of all rules
 *
 * Return: 0 or a negative errno.
 */
int qhca_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info, u32 *locations)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	switch (info->cmd) {
	case ETHTOOL_GRXCLSRLCNT:
		return qhca_ntuple_all(nic, info, NULL);
	case ETHTOOL_GRXCLSRULE:
		return qhca_ntuple_get(nic, info);
	case ETHTOOL_GRXCLSRLALL:
		return qhca_ntuple_all(nic, info, locations);
	default:
		return -EOPNOTSUPP;
	}
}
