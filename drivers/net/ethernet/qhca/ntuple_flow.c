// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: what a rule of the administrator's looks at in a frame, as the device has it. */
#include <linux/ethtool.h>

#include "eth.h"

/*
 * struct qhca_ntuple_field - a member of the key, and the member of a specification it has to match
 */
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

/* Two places of a specification may be about one of the frame. Returns false if they disagree. */
static bool qhca_ntuple_match(struct qhca_flow *flow, unsigned int at, const void *val,
			      const void *mask, unsigned int len)
{
	u8 *key = (u8 *)&flow->key + at, *known = (u8 *)&flow->mask + at;
	const u8 *bits = val, *more = mask;
	unsigned int i;

	for (i = 0; i < len; i++) {
		if ((key[i] ^ bits[i]) & known[i] & more[i])
			return false;
		known[i] |= more[i];
		key[i] |= bits[i] & more[i];
	}
	return true;
}

/* Match the fields that the specification names. Others cannot be matched. */
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

	if (fs->flow_type & FLOW_MAC_EXT &&
	    !qhca_ntuple_match(flow, offsetof(struct qhca_flow_key, dmac), fs->h_ext.h_dest,
			       mask->h_dest, ETH_ALEN))
		return -EINVAL;
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

/* The device cannot add a queue to what a context says, so there is none beside a context. */
static int qhca_ntuple_action(const struct qhca_nic *nic, const struct ethtool_rx_flow_spec *fs,
			      u32 context, unsigned int channels, struct qhca_flow *flow)
{
	u64 cookie = fs->ring_cookie;

	if (fs->flow_type & FLOW_RSS) {
		if (!qhca_rss_types(nic, context))
			return -EINVAL;
		flow->action = QHCA_FLOW_RSS;
		flow->target = cpu_to_le32(context);
		return cookie ? -EOPNOTSUPP : 0;
	}
	if (cookie == RX_CLS_FLOW_DISC)
		return 0;
	if (cookie >= channels)
		return -EINVAL;
	flow->action = QHCA_FLOW_QUEUE;
	flow->target = cpu_to_le32(cookie);
	return 0;
}

/**
 * qhca_ntuple_flow - make the device's rule of one of the administrator's
 * @nic: the port
 * @fs: the rule
 * @context: its RSS context, if it names one
 * @channels: so many receive queues exist
 * @flow: filled in
 *
 * Context: process, RTNL.
 * Return: 0, -EINVAL if it makes no sense, or -EOPNOTSUPP.
 */
int qhca_ntuple_flow(const struct qhca_nic *nic, const struct ethtool_rx_flow_spec *fs,
		     u32 context, unsigned int channels, struct qhca_flow *flow)
{
	u32 type = fs->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS);
	unsigned int i;
	int ret;

	memset(flow, 0, sizeof(*flow));
	flow->order = QHCA_FLOW_ETH;
	flow->priority = cpu_to_le32(fs->location);
	for (i = 0; i < ARRAY_SIZE(qhca_ntuple_kinds); i++)
		if (qhca_ntuple_kinds[i].type == type)
			break;
	if (i == ARRAY_SIZE(qhca_ntuple_kinds))
		return -EOPNOTSUPP;
	if (type == IP_USER_FLOW && fs->h_u.usr_ip4_spec.ip_ver != ETH_RX_NFC_IP4)
		return -EINVAL;
	ret = qhca_ntuple_fields(flow, &qhca_ntuple_kinds[i], fs);
	if (!ret)
		ret = qhca_ntuple_ext(flow, fs);
	return ret ?: qhca_ntuple_action(nic, fs, context, channels, flow);
}
