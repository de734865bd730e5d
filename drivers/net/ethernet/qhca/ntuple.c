// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the administrator's rules about which queue a received frame is for (ethtool -N). */
#include <linux/ethtool.h>

#include "eth.h"

/*
 * struct qhca_ntuple - a rule
 * @node: in the list of the port, by location
 * @number: that of the device; 0: the device does not have it at present
 */
struct qhca_ntuple {
	struct list_head node;
	u32 number;
	u32 context;
	struct ethtool_rx_flow_spec fs;
};

/* struct qhca_ntuple_field - a member of the key, and that of a specification it has to match */
struct qhca_ntuple_field {
	u8 key;
	u8 spec;
	u8 len;
};

#define QHCA_NTUPLE_FIELD(member, type, field, len)	\
	{ offsetof(struct qhca_flow_key, member), offsetof(struct type, field), len }

static const struct qhca_ntuple_field qhca_ntuple_eth[] = {
	QHCA_NTUPLE_FIELD(dmac, ethhdr, h_dest, 6),
	QHCA_NTUPLE_FIELD(smac, ethhdr, h_source, 6),
	QHCA_NTUPLE_FIELD(ethertype, ethhdr, h_proto, 2),
};

static const struct qhca_ntuple_field qhca_ntuple_l4v4[] = {
	QHCA_NTUPLE_FIELD(src, ethtool_tcpip4_spec, ip4src, 4),
	QHCA_NTUPLE_FIELD(dst, ethtool_tcpip4_spec, ip4dst, 4),
	QHCA_NTUPLE_FIELD(sport, ethtool_tcpip4_spec, psrc, 2),
	QHCA_NTUPLE_FIELD(dport, ethtool_tcpip4_spec, pdst, 2),
	QHCA_NTUPLE_FIELD(tclass, ethtool_tcpip4_spec, tos, 1),
};

static const struct qhca_ntuple_field qhca_ntuple_l4v6[] = {
	QHCA_NTUPLE_FIELD(src, ethtool_tcpip6_spec, ip6src, 16),
	QHCA_NTUPLE_FIELD(dst, ethtool_tcpip6_spec, ip6dst, 16),
	QHCA_NTUPLE_FIELD(sport, ethtool_tcpip6_spec, psrc, 2),
	QHCA_NTUPLE_FIELD(dport, ethtool_tcpip6_spec, pdst, 2),
	QHCA_NTUPLE_FIELD(tclass, ethtool_tcpip6_spec, tclass, 1),
};

static const struct qhca_ntuple_field qhca_ntuple_ipv4[] = {
	QHCA_NTUPLE_FIELD(src, ethtool_usrip4_spec, ip4src, 4),
	QHCA_NTUPLE_FIELD(dst, ethtool_usrip4_spec, ip4dst, 4),
	QHCA_NTUPLE_FIELD(tclass, ethtool_usrip4_spec, tos, 1),
	QHCA_NTUPLE_FIELD(proto, ethtool_usrip4_spec, proto, 1),
};

static const struct qhca_ntuple_field qhca_ntuple_ipv6[] = {
	QHCA_NTUPLE_FIELD(src, ethtool_usrip6_spec, ip6src, 16),
	QHCA_NTUPLE_FIELD(dst, ethtool_usrip6_spec, ip6dst, 16),
	QHCA_NTUPLE_FIELD(tclass, ethtool_usrip6_spec, tclass, 1),
	QHCA_NTUPLE_FIELD(proto, ethtool_usrip6_spec, l4_proto, 1),
};

/* struct qhca_ntuple_kind - a type of specification, and the headers that a frame must have */
struct qhca_ntuple_kind {
	u32 type;
	u8 headers;
	u8 num;
	const struct qhca_ntuple_field *field;
};

#define QHCA_NTUPLE_KIND(type, headers, fields)	\
	{ type, headers, ARRAY_SIZE(qhca_ntuple_##fields), qhca_ntuple_##fields }

static const struct qhca_ntuple_kind qhca_ntuple_kinds[] = {
	QHCA_NTUPLE_KIND(ETHER_FLOW, 0, eth),
	QHCA_NTUPLE_KIND(TCP_V4_FLOW, QHCA_FLOW_HAS_IPV4 | QHCA_FLOW_HAS_TCP, l4v4),
	QHCA_NTUPLE_KIND(UDP_V4_FLOW, QHCA_FLOW_HAS_IPV4 | QHCA_FLOW_HAS_UDP, l4v4),
	QHCA_NTUPLE_KIND(IP_USER_FLOW, QHCA_FLOW_HAS_IPV4, ipv4),
	QHCA_NTUPLE_KIND(TCP_V6_FLOW, QHCA_FLOW_HAS_IPV6 | QHCA_FLOW_HAS_TCP, l4v6),
	QHCA_NTUPLE_KIND(UDP_V6_FLOW, QHCA_FLOW_HAS_IPV6 | QHCA_FLOW_HAS_UDP, l4v6),
	QHCA_NTUPLE_KIND(IPV6_USER_FLOW, QHCA_FLOW_HAS_IPV6, ipv6),
};

static void qhca_ntuple_need(struct qhca_flow *flow, u8 headers)
{
	flow->key.headers |= headers;
	flow->mask.headers |= headers;
}

static void qhca_ntuple_match(struct qhca_flow *flow, unsigned int at, const void *val,
			      const void *mask, unsigned int len)
{
	u8 *key = (u8 *)&flow->key + at, *known = (u8 *)&flow->mask + at;
	unsigned int i;

	for (i = 0; i < len; i++) {
		known[i] = ((const u8 *)mask)[i];
		key[i] = ((const u8 *)val)[i] & known[i];
	}
}

/* Match what the specification looks at. Whatever else it has cannot be looked at. */
static int qhca_ntuple_fields(struct qhca_flow *flow, const struct qhca_ntuple_kind *kind,
			      const struct ethtool_rx_flow_spec *fs)
{
	const u8 *val = (const u8 *)&fs->h_u;
	union ethtool_flow_union rest = fs->m_u;
	u8 *mask = (u8 *)&rest;
	unsigned int i;

	qhca_ntuple_need(flow, kind->headers);
	for (i = 0; i < kind->num; i++) {
		const struct qhca_ntuple_field *field = &kind->field[i];

		qhca_ntuple_match(flow, field->key, val + field->spec, mask + field->spec,
				  field->len);
		memset(mask + field->spec, 0, field->len);
	}
	return memchr_inv(&rest, 0, sizeof(rest)) ? -EOPNOTSUPP : 0;
}

static int qhca_ntuple_ext(struct qhca_flow *flow, const struct ethtool_rx_flow_spec *fs)
{
	const struct ethtool_flow_ext *mask = &fs->m_ext;

	if (fs->flow_type & FLOW_MAC_EXT && !is_zero_ether_addr(mask->h_dest))
		qhca_ntuple_match(flow, offsetof(struct qhca_flow_key, dmac), fs->h_ext.h_dest,
				  mask->h_dest, ETH_ALEN);
	if (!(fs->flow_type & FLOW_EXT))
		return 0;
	if (mask->vlan_etype || mask->data[0] || mask->data[1])
		return -EOPNOTSUPP;
	if (mask->vlan_tci) {
		qhca_ntuple_need(flow, QHCA_FLOW_HAS_VLAN);
		qhca_ntuple_match(flow, offsetof(struct qhca_flow_key, vlan_tci),
				  &fs->h_ext.vlan_tci, &mask->vlan_tci, 2);
	}
	return 0;
}

static int qhca_ntuple_action(const struct qhca_nic *nic, const struct qhca_ntuple *rule,
			      struct qhca_flow *flow)
{
	u64 cookie = rule->fs.ring_cookie;

	if (cookie == RX_CLS_FLOW_DISC)
		return 0;
	if (rule->fs.flow_type & FLOW_RSS) {
		if (!qhca_rss_types(nic, rule->context))
			return -EINVAL;
		flow->action = QHCA_FLOW_RSS;
		flow->target = cpu_to_le32(rule->context);
		return cookie ? -EOPNOTSUPP : 0;
	}
	if (cookie >= nic->params.channels)
		return -EINVAL;
	flow->action = QHCA_FLOW_QUEUE;
	flow->target = cpu_to_le32(cookie);
	return 0;
}

/* Make the device's rule. */
static int qhca_ntuple_flow(const struct qhca_nic *nic, const struct qhca_ntuple *rule,
			    struct qhca_flow *flow)
{
	u32 type = rule->fs.flow_type & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS);
	unsigned int i;
	int ret;

	memset(flow, 0, sizeof(*flow));
	flow->order = QHCA_FLOW_ETH;
	flow->priority = cpu_to_le32(rule->fs.location);
	for (i = 0; i < ARRAY_SIZE(qhca_ntuple_kinds); i++)
		if (qhca_ntuple_kinds[i].type == type)
			break;
	if (i == ARRAY_SIZE(qhca_ntuple_kinds))
		return -EOPNOTSUPP;
	ret = qhca_ntuple_fields(flow, &qhca_ntuple_kinds[i], &rule->fs);
	if (!ret)
		ret = qhca_ntuple_ext(flow, &rule->fs);
	return ret ?: qhca_ntuple_action(nic, rule, flow);
}

/* Give a rule to the device. */
static int qhca_ntuple_create(struct qhca_nic *nic, struct qhca_ntuple *rule)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_CREATE_FLOW) };
	struct qhca_flow flow;
	struct qhca_mbox mbox = { .in = &flow, .in_len = sizeof(flow) };
	int ret = qhca_ntuple_flow(nic, rule, &flow);

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
 *
 * Context: process, RTNL.
 */
void qhca_ntuple_apply(struct qhca_nic *nic)
{
	struct qhca_ntuple *rule;

	list_for_each_entry(rule, &nic->ntuple, node)
		if (!rule->number && qhca_ntuple_create(nic, rule))
			netdev_warn(nic->netdev, "the device refuses rule %u\n",
				    rule->fs.location);
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
	ret = nic->chans ? qhca_ntuple_create(nic, rule) : qhca_ntuple_flow(nic, rule, &flow);
	if (ret) {
		kfree(rule);
		return ret;
	}
	old = qhca_ntuple_find(nic, info->fs.location);
	if (old)
		qhca_ntuple_del(nic, old);
	qhca_ntuple_list(nic, rule);
	return 0;
}

static bool qhca_has_ntuple(const struct qhca_nic *nic)
{
	return nic->dev->limits.caps & QHCA_CAP_NTUPLE;
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

	if (!qhca_has_ntuple(nic))
		return -EOPNOTSUPP;
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

	if (!qhca_has_ntuple(nic))
		return -EOPNOTSUPP;
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
