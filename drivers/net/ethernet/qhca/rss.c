// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: how the device spreads received frames over the channels. */
#include "eth.h"

static bool qhca_has_rss(const struct net_device *netdev)
{
	const struct qhca_nic *nic = netdev_priv(netdev);

	return qhca_limits_have_rss(&nic->dev->limits);
}

static int qhca_rss_set(struct qhca_nic *nic, u32 context, u32 types, const struct qhca_rss *rss)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_SET_RSS),
		.set_rss.types = cpu_to_le32(types),
		.set_rss.context = cpu_to_le32(context),
	};
	struct qhca_mbox mbox = { .in = rss, .in_len = sizeof(*rss) };

	if (!qhca_has_rss(nic->netdev))
		return 0;
	return qhca_cmd_exec(nic->dev, &cmd, &mbox, NULL);
}

static void qhca_rss_default(unsigned int channels, struct qhca_rss *rss)
{
	unsigned int i;

	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		rss->queue[i] = ethtool_rxfh_indir_default(i, channels);
}

/* The table that is in force with this number of channels. */
static void qhca_rss_get(const struct qhca_nic *nic, unsigned int channels, struct qhca_rss *rss)
{
	*rss = nic->rss;
	if (netif_is_rxfh_configured(nic->netdev))
		return;
	qhca_rss_default(channels, rss);
}

/*
 * A table of the administrator's may name channels that the device lost in a reset. Returns true if
 * it has changed.
 */
static bool qhca_rss_fit(struct qhca_nic *nic, unsigned int channels, struct qhca_rss *rss)
{
	bool lost = false;
	unsigned int i;

	for (i = 0; i < QHCA_RSS_ENTRIES; i++) {
		lost |= rss->queue[i] >= channels;
		rss->queue[i] %= channels;
	}
	if (lost)
		netdev_warn(nic->netdev, "fewer channels, so the RSS table has changed\n");
	return lost;
}

#ifdef QHCA_HAVE_RXFH_CONTEXT		/* 6.12 */
/* Let the ethtool core show the table of a context that has changed. */
static void qhca_rss_show(struct qhca_nic *nic, u32 number)
{
	struct ethtool_netdev_state *state = nic->netdev->ethtool;
	struct ethtool_rxfh_context *ctx;
	unsigned int i;

	mutex_lock(&state->rss_lock);
	ctx = xa_load(&state->rss_ctx, number);
	for (i = 0; ctx && i < QHCA_RSS_ENTRIES; i++)
		ethtool_rxfh_context_indir(ctx)[i] = nic->context[number - 1].rss.queue[i];
	mutex_unlock(&state->rss_lock);
}

/* The device does not want a context any more, so it is gone, and so are the rules for it. */
static void qhca_rss_lose(struct qhca_nic *nic, u32 number)
{
	struct qhca_rss_context none = {};

	qhca_ntuple_forget(nic, number);
	nic->context[number - 1] = none;
	/* If the device had it before. */
	qhca_rss_set(nic, number, 0, &none.rss);
	ethtool_rxfh_context_lost(nic->netdev, number);
}

/* Give the further contexts to the device, with the tables that the ethtool core shows. */
static int qhca_rss_apply_contexts(struct qhca_nic *nic, unsigned int channels)
{
	unsigned int i;
	int ret;

	for (i = 0; i < QHCA_RSS_CONTEXTS; i++) {
		struct qhca_rss_context *context = &nic->context[i];

		if (!context->types)
			continue;
		if (qhca_rss_fit(nic, channels, &context->rss))
			qhca_rss_show(nic, i + 1);
		ret = qhca_rss_set(nic, i + 1, context->types, &context->rss);
		if (ret && qhca_is_dead(nic->dev))
			return ret;
		if (ret)
			qhca_rss_lose(nic, i + 1);
	}
	return 0;
}
#else
static int qhca_rss_apply_contexts(struct qhca_nic *nic, unsigned int channels)
{
	return 0;
}
#endif

/**
 * qhca_rss_apply - spread received frames, but those that rules are for
 * @nic: the port
 * @channels: so many receive queues exist
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_rss_apply(struct qhca_nic *nic, unsigned int channels)
{
	struct qhca_rss rss;
	int ret;

	qhca_rss_get(nic, channels, &rss);
	qhca_rss_fit(nic, channels, &rss);
	nic->rss = rss;
	ret = qhca_rss_set(nic, 0, nic->rss_types, &rss);
	if (!ret)
		ret = qhca_rss_apply_contexts(nic, channels);
	if (!ret)
		qhca_ntuple_apply(nic, channels);
	return ret;
}

/**
 * qhca_rss_off - let all frames go to queue 0, so that the others can be destroyed
 * @nic: the port
 *
 * Context: process, RTNL.
 */
void qhca_rss_off(struct qhca_nic *nic)
{
	struct qhca_rss rss = {};
	unsigned int i;

	qhca_ntuple_off(nic);
	for (i = 0; i < QHCA_RSS_CONTEXTS; i++)
		if (nic->context[i].types)
			qhca_rss_set(nic, i + 1, 0, &rss);
	/* If this fails, so will the destruction of the queues. */
	qhca_rss_set(nic, 0, 0, &rss);
}

/* Change key, table and types of a device that may be down. */
static int qhca_rss_change(struct qhca_nic *nic, u32 types, const struct qhca_rss *rss)
{
	int ret = rcu_access_pointer(nic->chans) ? qhca_rss_set(nic, 0, types, rss) : 0;

	if (ret)
		return ret;
	nic->rss_types = types;
	nic->rss = *rss;
	return 0;
}

/**
 * qhca_get_rx_ring_count - ethtool: receive queues that a table can name
 * @netdev: the netdev
 *
 * Return: number of the queues.
 */
u32 qhca_get_rx_ring_count(struct net_device *netdev)
{
	const struct qhca_nic *nic = netdev_priv(netdev);

	return nic->params.channels;
}

/**
 * qhca_get_rxfh_key_size - ethtool: bytes of the key
 * @netdev: the netdev
 *
 * Return: bytes; 0 if the device cannot spread frames.
 */
u32 qhca_get_rxfh_key_size(struct net_device *netdev)
{
	return qhca_has_rss(netdev) ? QHCA_RSS_KEY_LEN : 0;
}

/**
 * qhca_get_rxfh_indir_size - ethtool: entries of the table
 * @netdev: the netdev
 *
 * Return: entries; 0 if the device cannot spread frames.
 */
u32 qhca_get_rxfh_indir_size(struct net_device *netdev)
{
	return qhca_has_rss(netdev) ? QHCA_RSS_ENTRIES : 0;
}

/**
 * qhca_get_rxfh - ethtool -x
 * @netdev: the netdev
 * @rxfh: filled in; its table has no room if qhca_get_rxfh_indir_size() says so
 *
 * Return: 0 or a negative errno.
 */
int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_rss rss;
	unsigned int i;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	qhca_rss_get(nic, nic->params.channels, &rss);
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	if (rxfh->key)
		memcpy(rxfh->key, rss.key, sizeof(rss.key));
	for (i = 0; rxfh->indir && i < QHCA_RSS_ENTRIES; i++)
		rxfh->indir[i] = rss.queue[i];
	return 0;
}

/* Change key and table as the administrator wants them. */
static int qhca_rss_take(struct qhca_rss *rss, const struct ethtool_rxfh_param *rxfh,
			 struct netlink_ext_ack *extack)
{
	unsigned int i;

	if (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE && rxfh->hfunc != ETH_RSS_HASH_TOP) {
		NL_SET_ERR_MSG_MOD(extack, "Toeplitz is the only hash");
		return -EOPNOTSUPP;
	}
	if (rxfh->key)
		memcpy(rss->key, rxfh->key, sizeof(rss->key));
	for (i = 0; rxfh->indir && i < QHCA_RSS_ENTRIES; i++)
		rss->queue[i] = rxfh->indir[i];
	return 0;
}

/**
 * qhca_set_rxfh - ethtool -X
 * @netdev: the netdev
 * @rxfh: what changes; the core has checked that the channels exist
 * @extack: why it is not possible
 *
 * Return: 0 or a negative errno.
 */
int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_rss rss;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	qhca_rss_get(nic, nic->params.channels, &rss);
	return qhca_rss_take(&rss, rxfh, extack) ?: qhca_rss_change(nic, nic->rss_types, &rss);
}

#ifdef QHCA_HAVE_RXFH_CONTEXT		/* 6.12 */
/* Change a context in the device, if that is up, and here. */
static int qhca_rss_change_context(struct qhca_nic *nic, u32 number,
				   const struct qhca_rss_context *next)
{
	int ret = 0;

	if (rcu_access_pointer(nic->chans))
		ret = qhca_rss_set(nic, number, next->types, &next->rss);
	if (!ret)
		nic->context[number - 1] = *next;
	return ret;
}

/* Change key and table of a context, here and in what the core knows of it. */
static int qhca_rss_set_context(struct qhca_nic *nic, struct ethtool_rxfh_context *ctx,
				const struct ethtool_rxfh_param *rxfh,
				struct qhca_rss_context *next, struct netlink_ext_ack *extack)
{
	int ret = qhca_rss_take(&next->rss, rxfh, extack) ?:
		  qhca_rss_change_context(nic, rxfh->rss_context, next);
	unsigned int i;

	if (ret)
		return ret;
	ctx->hfunc = ETH_RSS_HASH_TOP;
	memcpy(ethtool_rxfh_context_key(ctx), next->rss.key, sizeof(next->rss.key));
	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		ethtool_rxfh_context_indir(ctx)[i] = next->rss.queue[i];
	return 0;
}

/**
 * qhca_create_rxfh_context - ethtool -X context new
 * @netdev: the netdev
 * @ctx: what the core knows of it; filled in
 * @rxfh: number, key and table; without these the port's key and the default table
 * @extack: why it is not possible
 *
 * Return: 0 or a negative errno.
 */
int qhca_create_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_rss_context next = { .types = nic->rss_types, .rss = nic->rss };

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	qhca_rss_default(nic->params.channels, &next.rss);
	return qhca_rss_set_context(nic, ctx, rxfh, &next, extack);
}

/**
 * qhca_modify_rxfh_context - ethtool -X context
 * @netdev: the netdev
 * @ctx: what the core knows of it; changed
 * @rxfh: its number, and what changes
 * @extack: why it is not possible
 *
 * Return: 0 or a negative errno.
 */
int qhca_modify_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_rss_context next = nic->context[rxfh->rss_context - 1];

	return qhca_rss_set_context(nic, ctx, rxfh, &next, extack);
}

/**
 * qhca_remove_rxfh_context - ethtool -X context delete
 * @netdev: the netdev
 * @ctx: what the core knows of it
 * @number: its number
 * @extack: why it is not possible
 *
 * Return: 0, or -EBUSY while a rule names it.
 */
int qhca_remove_rxfh_context(struct net_device *netdev, struct ethtool_rxfh_context *ctx,
			     u32 number, struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_rss_context none = {};

	return qhca_ntuple_uses(nic, number) ? -EBUSY :
					       qhca_rss_change_context(nic, number, &none);
}
#endif

/* The bit that includes the ports of a kind of frames in the hash; 0: they have none. */
static const struct {
	u32 flow_type;
	u32 ports;
} qhca_flow_types[] = {
	{ TCP_V4_FLOW, QHCA_RSS_TCPV4 },
	{ UDP_V4_FLOW, QHCA_RSS_UDPV4 },
	{ SCTP_V4_FLOW, 0 },
	{ AH_ESP_V4_FLOW, 0 },
	{ AH_V4_FLOW, 0 },
	{ ESP_V4_FLOW, 0 },
	{ IPV4_FLOW, 0 },
	{ TCP_V6_FLOW, QHCA_RSS_TCPV6 },
	{ UDP_V6_FLOW, QHCA_RSS_UDPV6 },
	{ SCTP_V6_FLOW, 0 },
	{ AH_ESP_V6_FLOW, 0 },
	{ AH_V6_FLOW, 0 },
	{ ESP_V6_FLOW, 0 },
	{ IPV6_FLOW, 0 },
};

#define QHCA_RXH_ADDRESSES	(RXH_IP_SRC | RXH_IP_DST)
#define QHCA_RXH_PORTS		(RXH_L4_B_0_1 | RXH_L4_B_2_3)

/**
 * qhca_get_rxfh_fields - ethtool -n rx-flow-hash
 * @netdev: the netdev
 * @fields: the kind of frames; filled in with what is hashed of them
 *
 * Return: 0 or a negative errno.
 */
int qhca_get_rxfh_fields(struct net_device *netdev, struct ethtool_rxfh_fields *fields)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	unsigned int i;
	u32 types;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	types = qhca_rss_types(nic, fields->rss_context);
	if (!types)
		return -ENOENT;
	fields->data = 0;
	for (i = 0; i < ARRAY_SIZE(qhca_flow_types); i++)
		if (qhca_flow_types[i].flow_type == fields->flow_type)
			fields->data = QHCA_RXH_ADDRESSES |
				       (types & qhca_flow_types[i].ports ? QHCA_RXH_PORTS : 0);
	return 0;
}

/**
 * qhca_set_rxfh_fields - ethtool -N rx-flow-hash
 * @netdev: the netdev
 * @fields: the kind of frames, and what should be hashed of them
 * @extack: why it is not possible
 *
 * Return: 0 or a negative errno.
 */
int qhca_set_rxfh_fields(struct net_device *netdev, const struct ethtool_rxfh_fields *fields,
			 struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	u32 types, ports = 0;
	struct qhca_rss rss;
	unsigned int i;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(qhca_flow_types); i++)
		if (qhca_flow_types[i].flow_type == fields->flow_type)
			ports = qhca_flow_types[i].ports;
	types = qhca_rss_types(nic, fields->rss_context);
	if (!types)
		return -ENOENT;
	if (fields->data == QHCA_RXH_ADDRESSES)
		types &= ~ports;
	else if (ports && fields->data == (QHCA_RXH_ADDRESSES | QHCA_RXH_PORTS))
		types |= ports;
	else
		return -EINVAL;
#ifdef QHCA_HAVE_RXFH_CONTEXT
	if (fields->rss_context) {
		struct qhca_rss_context next = nic->context[fields->rss_context - 1];

		next.types = types;
		return qhca_rss_change_context(nic, fields->rss_context, &next);
	}
#endif
	qhca_rss_get(nic, nic->params.channels, &rss);
	return qhca_rss_change(nic, types, &rss);
}
