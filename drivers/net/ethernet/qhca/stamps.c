// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: hardware timestamps of frames. Every CQE has one, in device time, so turning them on
 * only makes the driver convert them to the time of the PTP clock. The device takes it when it
 * writes the CQE: when the frame has been received, or handed to the network.
 */
#include <linux/net_tstamp.h>

#include "eth.h"

static ktime_t qhca_stamp(const struct qhca_chan *chan, const struct qhca_cqe *cqe)
{
	return ns_to_ktime(qhca_clock_to_ns(chan->nic->dev, le64_to_cpu(cqe->timestamp)));
}

/**
 * qhca_rx_stamp - give a received frame its timestamp, if that is turned on
 * @chan: the channel
 * @skb: the frame
 * @cqe: its completion
 *
 * Context: NAPI.
 */
void qhca_rx_stamp(const struct qhca_chan *chan, struct sk_buff *skb, const struct qhca_cqe *cqe)
{
	if (unlikely(READ_ONCE(chan->nic->rx_stamps)))
		skb_hwtstamps(skb)->hwtstamp = qhca_stamp(chan, cqe);
}

/**
 * qhca_tx_stamp_start - promise the sender of a frame a timestamp, if it wants one
 * @nic: the port
 * @skb: the frame
 */
void qhca_tx_stamp_start(const struct qhca_nic *nic, struct sk_buff *skb)
{
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP) && READ_ONCE(nic->tx_stamps))
		skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
}

/**
 * qhca_tx_stamp_end - tell the sender of a frame when it was sent, if that was promised
 * @chan: the channel
 * @skb: the frame
 * @cqe: its completion
 *
 * Context: NAPI, or netpoll.
 */
void qhca_tx_stamp_end(const struct qhca_chan *chan, struct sk_buff *skb,
		       const struct qhca_cqe *cqe)
{
	struct skb_shared_hwtstamps stamps = {};

	if (likely(!(skb_shinfo(skb)->tx_flags & SKBTX_IN_PROGRESS)) ||
	    cqe->status != QHCA_WC_SUCCESS)
		return;
	stamps.hwtstamp = qhca_stamp(chan, cqe);
	skb_tstamp_tx(skb, &stamps);
}

/**
 * qhca_hwtstamp_get - ndo_hwtstamp_get
 * @netdev: the netdev
 * @config: filled in
 *
 * Context: process, RTNL.
 * Return: 0, or -EOPNOTSUPP without a PTP clock.
 */
int qhca_hwtstamp_get(struct net_device *netdev, struct kernel_hwtstamp_config *config)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	if (qhca_clock_index(nic->dev) < 0)
		return -EOPNOTSUPP;
	config->tx_type = nic->tx_stamps ? HWTSTAMP_TX_ON : HWTSTAMP_TX_OFF;
	config->rx_filter = nic->rx_stamps ? HWTSTAMP_FILTER_ALL : HWTSTAMP_FILTER_NONE;
	return 0;
}

/**
 * qhca_hwtstamp_set - ndo_hwtstamp_set
 * @netdev: the netdev
 * @config: which frames get timestamps; changed to what they get
 * @extack: unused
 *
 * A request for timestamps of some received frames turns them on for all.
 *
 * Context: process, RTNL.
 * Return: 0, -ERANGE for timestamps that the device would have to write into frames, or -EOPNOTSUPP
 * without a PTP clock.
 */
int qhca_hwtstamp_set(struct net_device *netdev, struct kernel_hwtstamp_config *config,
		      struct netlink_ext_ack *extack)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	if (qhca_clock_index(nic->dev) < 0)
		return -EOPNOTSUPP;
	if (config->tx_type != HWTSTAMP_TX_OFF && config->tx_type != HWTSTAMP_TX_ON)
		return -ERANGE;
	WRITE_ONCE(nic->tx_stamps, config->tx_type == HWTSTAMP_TX_ON);
	WRITE_ONCE(nic->rx_stamps, config->rx_filter != HWTSTAMP_FILTER_NONE);
	return qhca_hwtstamp_get(netdev, config);
}

/**
 * qhca_get_ts_info - ethtool's get_ts_info
 * @netdev: the netdev
 * @info: filled in
 *
 * Return: 0.
 */
int qhca_get_ts_info(struct net_device *netdev, struct kernel_ethtool_ts_info *info)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	int ret = ethtool_op_get_ts_info(netdev, info);

	info->phc_index = qhca_clock_index(nic->dev);
	if (ret || info->phc_index < 0)
		return ret;
	info->so_timestamping |= SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
				 SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_ALL);
	return 0;
}
