// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: ethtool. */
#include <linux/ethtool.h>
#include <linux/log2.h>

#include "eth.h"
#include <qhca_eth_ops.h>	/* needed only for older kernels */

static void qhca_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	strscpy(info->driver, QHCA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(nic->dev->pdev), sizeof(info->bus_info));
	qhca_fw_text(&nic->dev->limits, info->fw_version, sizeof(info->fw_version));
}

static int qhca_get_link_ksettings(struct net_device *netdev,
				   struct ethtool_link_ksettings *settings)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	bool up = netif_carrier_ok(netdev);

	settings->base.speed = up ? nic->speed : SPEED_UNKNOWN;
	settings->base.duplex = up ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static u32 qhca_max_entries(const struct qhca_nic *nic)
{
	return min_t(u64, QHCA_RING_MAX, BIT_ULL(nic->dev->limits.max_ethq_log));
}

static void qhca_get_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	ring->tx_max_pending = qhca_max_entries(nic);
	ring->rx_max_pending = qhca_max_entries(nic);
	ring->tx_pending = nic->params.tx_entries;
	ring->rx_pending = nic->params.rx_entries;
}

static int qhca_set_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			      struct kernel_ethtool_ringparam *kernel_ring,
			      struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chan_params params = nic->params;

	/* The core has checked the maximum; there are no jumbo and mini rings. */
	if (ring->tx_pending < QHCA_RING_MIN || ring->rx_pending < QHCA_RING_MIN) {
		NL_SET_ERR_MSG_MOD(extack, "rings need at least 64 entries");
		return -EINVAL;
	}
	params.tx_entries = roundup_pow_of_two(ring->tx_pending);
	params.rx_entries = roundup_pow_of_two(ring->rx_pending);
	return qhca_nic_change(nic, &params);
}

static int qhca_get_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
			     struct kernel_ethtool_coalesce *kernel_c,
			     struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	c->tx_coalesce_usecs = nic->params.tx_mod.usecs;
	c->tx_max_coalesced_frames = nic->params.tx_mod.frames;
	c->rx_coalesce_usecs = nic->params.rx_mod.usecs;
	c->rx_max_coalesced_frames = nic->params.rx_mod.frames;
	c->use_adaptive_tx_coalesce = nic->params.tx_mod.adaptive;
	c->use_adaptive_rx_coalesce = nic->params.rx_mod.adaptive;
	return 0;
}

/* The delays of a channel at present, which adaptive moderation changes. */
static int qhca_get_per_queue_coalesce(struct net_device *netdev, u32 queue,
				       struct ethtool_coalesce *c)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chans *chans = rtnl_dereference(nic->chans);
	struct qhca_chan *chan;
	int ret;

	if (queue >= (chans ? chans->num : nic->params.channels))
		return -EINVAL;
	ret = qhca_get_coalesce(netdev, c, NULL, NULL);
	if (ret || !chans)
		return ret;
	chan = chans->chan[queue];
	c->tx_coalesce_usecs = READ_ONCE(chan->tx.cq.usecs);
	c->rx_coalesce_usecs = READ_ONCE(chan->rx.cq.usecs);
	return 0;
}

static int qhca_check_moderation(const struct qhca_nic *nic, const struct qhca_moderation *mod,
				 struct netlink_ext_ack *extack)
{
	const struct qhca_limits *limits = &nic->dev->limits;

	if (mod->usecs > limits->max_cq_period || mod->frames > limits->max_cq_count) {
		NL_SET_ERR_MSG_MOD(extack, "the device supports no such delay");
		return -ERANGE;
	}
	/* Otherwise the last frames of a burst would never be reported. */
	if (mod->frames && !mod->usecs) {
		NL_SET_ERR_MSG_MOD(extack, "a number of frames needs a time limit");
		return -EINVAL;
	}
	return 0;
}

static int qhca_set_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
			     struct kernel_ethtool_coalesce *kernel_c,
			     struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chan_params params = nic->params;
	int ret;

	params.tx_mod.usecs = c->tx_coalesce_usecs;
	params.tx_mod.frames = c->tx_max_coalesced_frames;
	params.rx_mod.usecs = c->rx_coalesce_usecs;
	params.rx_mod.frames = c->rx_max_coalesced_frames;
	params.tx_mod.adaptive = c->use_adaptive_tx_coalesce;
	params.rx_mod.adaptive = c->use_adaptive_rx_coalesce;
	ret = qhca_check_moderation(nic, &params.tx_mod, extack);
	if (!ret)
		ret = qhca_check_moderation(nic, &params.rx_mod, extack);
	return ret ?: qhca_nic_change(nic, &params);
}

/* A channel has a queue of each direction, and one interrupt for both. */
static void qhca_get_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	channels->max_combined = qhca_nic_max_channels(nic);
	channels->combined_count = nic->params.channels;
}

static int qhca_set_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chan_params params = nic->params;

	/*
	 * The core has checked the maximum, and that the RSS table needs no other channels; older
	 * ones do not know of the rules.
	 */
	if (channels->combined_count < qhca_ntuple_max_queue(nic))
		return -EINVAL;
	params.channels = channels->combined_count;
	return qhca_nic_change(nic, &params);
}

const struct ethtool_ops qhca_ethtool_ops = {
#ifdef QHCA_HAVE_RXFH_CONTEXT
	.rxfh_per_ctx_key = 1,
	.rxfh_per_ctx_fields = 1,
	.rxfh_max_num_contexts = QHCA_RSS_CONTEXTS + 1,
	.create_rxfh_context = qhca_create_rxfh_context,
	.modify_rxfh_context = qhca_modify_rxfh_context,
	.remove_rxfh_context = qhca_remove_rxfh_context,
#endif
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES |
				     (QHCA_CAN_DIM ? ETHTOOL_COALESCE_USE_ADAPTIVE : 0),
	.get_drvinfo = qhca_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = qhca_get_link_ksettings,
	.get_ringparam = qhca_get_ringparam,
	.set_ringparam = qhca_set_ringparam,
	.get_coalesce = qhca_get_coalesce,
	.set_coalesce = qhca_set_coalesce,
	.get_per_queue_coalesce = qhca_get_per_queue_coalesce,
	.get_channels = qhca_get_channels,
	.set_channels = qhca_set_channels,
	.get_rxnfc = qhca_get_rxnfc,
	.set_rxnfc = qhca_set_rxnfc,
	.get_rx_ring_count = qhca_get_rx_ring_count,
	.get_rxfh_key_size = qhca_get_rxfh_key_size,
	.get_rxfh_indir_size = qhca_get_rxfh_indir_size,
	.get_rxfh = qhca_get_rxfh,
	.set_rxfh = qhca_set_rxfh,
	.get_rxfh_fields = qhca_get_rxfh_fields,
	.set_rxfh_fields = qhca_set_rxfh_fields,
	.get_sset_count = qhca_get_sset_count,
	.get_strings = qhca_get_strings,
	.get_ethtool_stats = qhca_get_ethtool_stats,
	.get_ts_info = qhca_get_ts_info,
};
