/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Operations of ethtool in older kernels, whose arguments differ from the driver's functions. Each
 * replaces such a function in ethtool.c, which includes this header after the declarations.
 */
#ifndef QHCA_ETH_OPS_H
#define QHCA_ETH_OPS_H

#ifndef QHCA_HAVE_RXFH_FIELDS		/* 6.17 */
/* Kernels that have no contexts do not say which one is meant. */
static struct ethtool_rxfh_fields qhca_rxfh_fields(const struct ethtool_rxnfc *info)
{
	struct ethtool_rxfh_fields fields = { .data = info->data, .flow_type = info->flow_type };

#ifdef QHCA_HAVE_RXFH_CONTEXT
	if (fields.flow_type & FLOW_RSS)
		fields.rss_context = info->rss_context;
	fields.flow_type &= ~FLOW_RSS;
#endif
	return fields;
}
#endif

#ifndef QHCA_HAVE_RX_RING_COUNT		/* 6.19 */
static int qhca_get_rxnfc_all(struct net_device *netdev, struct ethtool_rxnfc *info, u32 *rules)
{
	switch (info->cmd) {
	case ETHTOOL_GRXRINGS:
		info->data = qhca_get_rx_ring_count(netdev);
		return 0;
#ifndef QHCA_HAVE_RXFH_FIELDS
	case ETHTOOL_GRXFH: {
		struct ethtool_rxfh_fields fields = qhca_rxfh_fields(info);
		int ret = qhca_get_rxfh_fields(netdev, &fields);

		info->data = fields.data;
		return ret;
	}
#endif
	default:
		return qhca_get_rxnfc(netdev, info, rules);
	}
}

#define qhca_get_rxnfc		qhca_get_rxnfc_all
/* Let another operation stay NULL. */
#define qhca_get_rx_ring_count	NULL
#define get_rx_ring_count	get_module_eeprom
#endif

#ifndef QHCA_HAVE_RXFH_FIELDS		/* 6.17 */
static int qhca_set_rxnfc_all(struct net_device *netdev, struct ethtool_rxnfc *info)
{
	struct ethtool_rxfh_fields fields = qhca_rxfh_fields(info);

	if (info->cmd != ETHTOOL_SRXFH)
		return qhca_set_rxnfc(netdev, info);
	return qhca_set_rxfh_fields(netdev, &fields, NULL);
}

#define qhca_set_rxnfc		qhca_set_rxnfc_all
/* These are done by the two others, so let other operations stay NULL. */
#define qhca_set_rxfh_fields	NULL
#define set_rxfh_fields		get_eeprom
#define qhca_get_rxfh_fields	NULL
#define get_rxfh_fields		get_module_info
#endif

#ifndef QHCA_HAVE_RXFH_PARAM		/* 6.8 */
static int qhca_get_rxfh_args(struct net_device *netdev, u32 *indir, u8 *key, u8 *hfunc)
{
	struct ethtool_rxfh_param rxfh = { .indir = indir, .key = key };
	int ret = qhca_get_rxfh(netdev, &rxfh);

	if (hfunc)
		*hfunc = rxfh.hfunc;
	return ret;
}

static int qhca_set_rxfh_args(struct net_device *netdev, const u32 *indir, const u8 *key,
			      const u8 hfunc)
{
	struct ethtool_rxfh_param rxfh = {
		.hfunc = hfunc, .indir = (u32 *)indir, .key = (u8 *)key,
	};

	return qhca_set_rxfh(netdev, &rxfh, NULL);
}

#define qhca_get_rxfh		qhca_get_rxfh_args
#define qhca_set_rxfh		qhca_set_rxfh_args
#endif

#endif /* QHCA_ETH_OPS_H */
