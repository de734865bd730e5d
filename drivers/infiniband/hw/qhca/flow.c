// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: flow rules: which Ethernet frames a QP receives. */
#include "rwq.h"

static_assert(QHCA_FLOW_DONT_FRAG == (int)IB_IPV4_DONT_FRAG &&
	      QHCA_FLOW_MORE_FRAGS == (int)IB_IPV4_MORE_FRAG);

/*
 * struct qhca_ib_field - a member of the key, and the member of a specification that it has to
 * match
 */
struct qhca_ib_field {
	u8 key;
	u8 spec;
	u8 len;
};

#define QHCA_IB_FIELD(member, type, field, len)	\
	{ offsetof(struct qhca_flow_key, member), offsetof(type, field), len }

static const struct qhca_ib_field qhca_ib_eth[] = {
	QHCA_IB_FIELD(dmac, struct ib_flow_eth_filter, dst_mac, 6),
	QHCA_IB_FIELD(smac, struct ib_flow_eth_filter, src_mac, 6),
	QHCA_IB_FIELD(ethertype, struct ib_flow_eth_filter, ether_type, 2),
	QHCA_IB_FIELD(vlan_tci, struct ib_flow_eth_filter, vlan_tag, 2),
};

static const struct qhca_ib_field qhca_ib_ipv4[] = {
	QHCA_IB_FIELD(src, struct ib_flow_ipv4_filter, src_ip, 4),
	QHCA_IB_FIELD(dst, struct ib_flow_ipv4_filter, dst_ip, 4),
	QHCA_IB_FIELD(proto, struct ib_flow_ipv4_filter, proto, 1),
	QHCA_IB_FIELD(tclass, struct ib_flow_ipv4_filter, tos, 1),
	QHCA_IB_FIELD(ttl, struct ib_flow_ipv4_filter, ttl, 1),
	QHCA_IB_FIELD(ip_flags, struct ib_flow_ipv4_filter, flags, 1),
};

static const struct qhca_ib_field qhca_ib_ipv6[] = {
	QHCA_IB_FIELD(src, struct ib_flow_ipv6_filter, src_ip, 16),
	QHCA_IB_FIELD(dst, struct ib_flow_ipv6_filter, dst_ip, 16),
	QHCA_IB_FIELD(flow_label, struct ib_flow_ipv6_filter, flow_label, 4),
	QHCA_IB_FIELD(proto, struct ib_flow_ipv6_filter, next_hdr, 1),
	QHCA_IB_FIELD(tclass, struct ib_flow_ipv6_filter, traffic_class, 1),
	QHCA_IB_FIELD(ttl, struct ib_flow_ipv6_filter, hop_limit, 1),
};

static const struct qhca_ib_field qhca_ib_ports[] = {
	QHCA_IB_FIELD(sport, struct ib_flow_tcp_udp_filter, src_port, 2),
	QHCA_IB_FIELD(dport, struct ib_flow_tcp_udp_filter, dst_port, 2),
};

/* struct qhca_ib_spec - a specification: what it looks at, and the header that a frame must have */
struct qhca_ib_spec {
	u16 type;
	u8 header;
	u8 val;
	u8 mask;
	u8 num;
	const struct qhca_ib_field *field;
};

#define QHCA_IB_SPEC(id, header, type, fields)					\
	{ IB_FLOW_SPEC_##id, header, offsetof(type, val), offsetof(type, mask),	\
	  ARRAY_SIZE(qhca_ib_##fields), qhca_ib_##fields }

static const struct qhca_ib_spec qhca_ib_specs[] = {
	QHCA_IB_SPEC(ETH, 0, struct ib_flow_spec_eth, eth),
	QHCA_IB_SPEC(IPV4, QHCA_FLOW_HAS_IPV4, struct ib_flow_spec_ipv4, ipv4),
	QHCA_IB_SPEC(IPV6, QHCA_FLOW_HAS_IPV6, struct ib_flow_spec_ipv6, ipv6),
	QHCA_IB_SPEC(TCP, QHCA_FLOW_HAS_TCP, struct ib_flow_spec_tcp_udp, ports),
	QHCA_IB_SPEC(UDP, QHCA_FLOW_HAS_UDP, struct ib_flow_spec_tcp_udp, ports),
};

static void qhca_ib_need_header(struct qhca_flow *rule, u8 header)
{
	rule->key.headers |= header;
	rule->mask.headers |= header;
}

/* Add the bits of @mask to a byte of the key. Returns false if this contradicts earlier bits. */
static bool qhca_ib_match_byte(struct qhca_flow *rule, unsigned int at, u8 val, u8 mask)
{
	u8 *key = (u8 *)&rule->key + at, *known = (u8 *)&rule->mask + at;
	bool ok = !((*key ^ val) & *known & mask);

	*known |= mask;
	*key |= val & mask;
	return ok;
}

/* Add what a specification looks at; a frame has to match all of them. */
static int qhca_ib_match(struct qhca_ib_dev *dev, struct qhca_flow *rule,
			 const struct qhca_ib_spec *spec, const u8 *from)
{
	const u8 *val = from + spec->val, *mask = from + spec->mask;
	unsigned int i, k;
	bool ok = true;

	qhca_ib_need_header(rule, spec->header);
	for (i = 0; i < spec->num; i++) {
		const struct qhca_ib_field *field = &spec->field[i];

		for (k = field->spec; k < field->spec + field->len; k++)
			ok &= qhca_ib_match_byte(rule, field->key + k - field->spec, val[k],
						 mask[k]);
	}
	if (rule->mask.vlan_tci)
		qhca_ib_need_header(rule, QHCA_FLOW_HAS_VLAN);
	return ok ? 0 : qhca_ib_refuse(dev, -EINVAL, "flow: no frame matches it");
}

static int qhca_ib_add_counters(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow,
				struct ib_counters *counters)
{
	if (flow->counters)
		return qhca_ib_refuse(dev, -EINVAL, "flow: counters, twice");
	flow->counters = counters;
	return 0;
}

/* Add a specification to a rule. */
static int qhca_ib_add_spec(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow,
			    struct qhca_flow *rule, const union ib_flow_spec *spec)
{
	unsigned int i;

	if (spec->type == IB_FLOW_SPEC_ACTION_COUNT)
		return qhca_ib_add_counters(dev, flow, spec->flow_count.counters);
	if (spec->type == IB_FLOW_SPEC_ACTION_TAG) {
		rule->tag = cpu_to_le32(spec->flow_tag.tag_id);
		return 0;
	}
	if (spec->type == IB_FLOW_SPEC_ACTION_DROP) {
		rule->action = QHCA_FLOW_DROP;
		rule->target = 0;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(qhca_ib_specs); i++) {
		if (spec->type == qhca_ib_specs[i].type)
			return qhca_ib_match(dev, rule, &qhca_ib_specs[i], (const u8 *)spec);
	}
	return qhca_ib_refuse(dev, -EOPNOTSUPP, "flow: specification %#x", spec->type);
}

static int qhca_ib_add_specs(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow,
			     struct qhca_flow *rule, const struct ib_flow_attr *attr)
{
	const void *at = attr + 1;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < attr->num_of_specs && !ret; i++) {
		ret = qhca_ib_add_spec(dev, flow, rule, at);
		at += ((const union ib_flow_spec *)at)->size;
	}
	return ret;
}

/* Default rules come last: for all that the network interface does not want, or the groups. */
static int qhca_ib_flow_type(struct qhca_ib_dev *dev, struct qhca_flow *rule,
			     const struct ib_flow_attr *attr)
{
	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		return 0;
	case IB_FLOW_ATTR_MC_DEFAULT:
		rule->key.dmac[0] = 1;
		rule->mask.dmac[0] = 1;
		fallthrough;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		rule->order = QHCA_FLOW_REST;
		return attr->num_of_specs ?
		       qhca_ib_refuse(dev, -EINVAL, "flow: default, with specifications") : 0;
	default:
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "flow: type %d", attr->type);
	}
}

/* The device shares its rules with ethtool -N, so the administrator keeps some. */
#define QHCA_IB_MAX_FLOWS	(QHCA_FLOW_MAX - 64)

static int qhca_ib_flow_charge(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow)
{
	int ret;

	if (!atomic_add_unless(&dev->num_flows, 1, QHCA_IB_MAX_FLOWS))
		return qhca_ib_refuse(dev, -ENOMEM, "flow: QPs have %u rules", QHCA_IB_MAX_FLOWS);
	ret = qhca_ib_charge(dev, &flow->charge, 1, QHCA_IB_MAX_FLOWS);
	if (ret)
		atomic_dec(&dev->num_flows);
	return ret;
}

static void qhca_ib_flow_uncharge(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow)
{
	qhca_ib_uncharge_all(dev, &flow->charge);
	atomic_dec(&dev->num_flows);
}

static int qhca_ib_do_create_flow(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
				  const struct ib_flow_attr *attr, struct qhca_ib_flow *flow)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_CREATE_FLOW) };
	struct qhca_flow rule = {
		.priority = cpu_to_le32(attr->priority),
		.target = cpu_to_le32(qp->spread ?: qp->qpn),
		.action = qp->spread ? QHCA_FLOW_SPREAD : QHCA_FLOW_QP,
	};
	struct qhca_mbox mbox = { .in = &rule, .in_len = sizeof(rule) };
	int ret;

	ret = qhca_ib_flow_type(dev, &rule, attr);
	if (!ret)
		ret = qhca_ib_add_specs(dev, flow, &rule, attr);
	return ret ?: qhca_cmd_exec(dev->core, &cmd, &mbox, &flow->number);
}

/**
 * qhca_ib_create_flow - create_flow verb
 * @ibqp: the QP that receives, of type RAW_PACKET
 * @attr: which frames
 * @udata: the user's
 *
 * Return: the rule, or an error pointer.
 */
struct ib_flow *qhca_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				    struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_flow *flow;
	int ret;

	if (ibqp->qp_type != IB_QPT_RAW_PACKET || attr->flags)
		return ERR_PTR(qhca_ib_refuse(dev, -EOPNOTSUPP, "flow: QP of type %d, flags %#x",
					      ibqp->qp_type, attr->flags));
	ret = ib_no_udata_io(udata);
	if (ret)
		return ERR_PTR(ret);
	if (attr->port != QHCA_IB_PORT)
		return ERR_PTR(qhca_ib_refuse(dev, -EINVAL, "flow: port %u", attr->port));
	flow = kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	ret = qhca_ib_flow_charge(dev, flow);
	if (ret)
		goto err_free;
	ret = qhca_ib_do_create_flow(dev, to_qqp(ibqp), attr, flow);
	if (ret)
		goto err_charge;
	qhca_ib_flow_count(flow);
	return &flow->ibflow;

err_charge:
	qhca_ib_flow_uncharge(dev, flow);
err_free:
	kfree(flow);
	return ERR_PTR(ret);
}

/**
 * qhca_ib_destroy_flow - destroy_flow verb
 * @ibflow: the rule
 *
 * Return: 0.
 */
int qhca_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct qhca_ib_flow *flow = container_of(ibflow, struct qhca_ib_flow, ibflow);
	struct qhca_ib_dev *dev = to_qdev(ibflow->device);

	qhca_ib_flow_uncount(dev, flow);
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_FLOW, flow->number);
	qhca_ib_flow_uncharge(dev, flow);
	kfree(flow);
	return 0;
}
