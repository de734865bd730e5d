// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the netdev.
 *
 * It lives as long as the driver is bound. While the device is down for a reset, or without power,
 * the netdev is detached and has no queues, but keeps its settings. RoCE frames never pass through
 * here: the device filters them out, and qhca_ib uses the netdev only for its addresses.
 */
#include <linux/rtnetlink.h>

#include "eth.h"
#include <qhca_netdev_ops.h>	/* needed only for older kernels */

/**
 * qhca_nic_max_channels - how many channels the port can have now
 * @nic: the port
 *
 * Return: at least 1; no more than the netdev has queues.
 */
unsigned int qhca_nic_max_channels(const struct qhca_nic *nic)
{
	return min(qhca_max_channels(nic->dev), nic->netdev->num_tx_queues);
}

static int qhca_nic_start(struct qhca_nic *nic)
{
	struct qhca_chans *chans;
	int ret;

	/* After a reset the device may have less to offer. */
	nic->params.channels = min(nic->params.channels, qhca_nic_max_channels(nic));
	chans = qhca_chans_alloc(nic, &nic->params);
	if (!chans)
		return -ENOMEM;
	ret = qhca_chans_start(chans);
	if (ret)
		qhca_chans_free(chans);
	return ret;
}

static void qhca_nic_stop(struct qhca_nic *nic)
{
	struct qhca_chans *chans = rtnl_dereference(nic->chans);

	if (!chans)
		return;
	qhca_chans_stop(chans);
	qhca_chans_free(chans);
}

static bool qhca_nic_is_up(const struct qhca_nic *nic)
{
	return netif_running(nic->netdev) && netif_device_present(nic->netdev);
}

/* After a failure, create the queues again with the old settings. */
static void qhca_nic_restore(struct qhca_nic *nic, struct qhca_chans *old)
{
	if (old && qhca_chans_start(old)) {
		netdev_err(nic->netdev, "no queues\n");
		qhca_chans_free(old);
	}
}

/* Replace the queues by @new; without queues, start @new. */
static int qhca_nic_replace(struct qhca_nic *nic, struct qhca_chans *new,
			    const struct qhca_chan_params *params)
{
	struct qhca_chan_params old_params = nic->params;
	struct qhca_chans *old = rtnl_dereference(nic->chans);
	int ret;

	/* Take scarce resources first: if that fails, nothing changes and no frame gets lost. */
	ret = old ? qhca_chans_prepare(new) : 0;
	if (ret)
		goto err_free;
	/* The device must not put a frame into a buffer that is too small for it. */
	nic->params.mtu = min(old_params.mtu, params->mtu);
	ret = qhca_port_sync(nic);
	if (ret)
		goto err_prepare;
	ret = old ? qhca_chans_replace(old, new) : qhca_chans_start(new);
	if (ret) {
		nic->params = old_params;
		qhca_chans_free(new);
		qhca_nic_restore(nic, old);
		return ret;
	}
	if (old)
		qhca_chans_free(old);
	nic->params = *params;
	ret = params->mtu > old_params.mtu ? qhca_port_sync(nic) : 0;
	/* If this fails the buffers are larger than necessary, which does no harm. */
	if (ret)
		nic->params.mtu = old_params.mtu;
	return ret;

err_prepare:
	nic->params = old_params;
	if (old)
		qhca_chans_unprepare(new);
err_free:
	qhca_chans_free(new);
	return ret;
}

/**
 * qhca_nic_change - change the settings that the queues are made for
 * @nic: the port
 * @params: new settings
 *
 * Context: process, RTNL.
 * Return: 0, or a negative errno, and then the MTU has not changed.
 */
int qhca_nic_change(struct qhca_nic *nic, const struct qhca_chan_params *params)
{
	struct qhca_chans *new;

	if (!qhca_nic_is_up(nic)) {
		nic->params = *params;
		return 0;
	}
	new = qhca_chans_alloc(nic, params);
	return new ? qhca_nic_replace(nic, new, params) : -ENOMEM;
}

/* If there is no room for others beside them, the queues that have failed go first. */
static int qhca_nic_restart(struct qhca_nic *nic)
{
	struct qhca_chan_params params = nic->params;

	if (!qhca_nic_change(nic, &params))
		return 0;
	qhca_nic_stop(nic);
	return qhca_nic_start(nic);
}

static void qhca_nic_restart_work(struct work_struct *work)
{
	struct qhca_nic *nic = container_of(work, struct qhca_nic, restart_work);

	rtnl_lock();
	/* A dead device needs no new queues. */
	if (qhca_nic_is_up(nic) && !qhca_is_dead(nic->dev) && qhca_nic_restart(nic))
		netdev_err(nic->netdev, "restart failed\n");
	rtnl_unlock();
}

static int qhca_open(struct net_device *netdev)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	int ret = qhca_nic_start(nic);

	if (!ret)
		qhca_port_update_carrier(nic);
	return ret;
}

static int qhca_stop(struct net_device *netdev)
{
	qhca_nic_stop(netdev_priv(netdev));
	return 0;
}

static void qhca_set_rx_mode(struct net_device *netdev)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	schedule_work(&nic->rx_mode_work);
}

static int qhca_set_mac_address(struct net_device *netdev, void *addr)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	u8 old[ETH_ALEN];
	int ret;

	ret = eth_prepare_mac_addr_change(netdev, addr);
	if (ret)
		return ret;
	ether_addr_copy(old, netdev->dev_addr);
	eth_commit_mac_addr_change(netdev, addr);
	ret = qhca_port_sync(nic);
	if (ret)
		eth_hw_addr_set(netdev, old);
	return ret;
}

static int qhca_change_mtu(struct net_device *netdev, int mtu)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	struct qhca_chan_params params = nic->params;
	int ret;

	params.mtu = mtu;
	ret = qhca_nic_change(nic, &params);
	if (!ret)
		WRITE_ONCE(netdev->mtu, mtu);
	return ret;
}

static void qhca_tx_timeout(struct net_device *netdev, unsigned int txqueue)
{
	struct qhca_nic *nic = netdev_priv(netdev);

	netdev_err(netdev, "send queue %u is stuck\n", txqueue);
	schedule_work(&nic->restart_work);
}

static const struct net_device_ops qhca_netdev_ops = {
	.ndo_open = qhca_open,
	.ndo_stop = qhca_stop,
	.ndo_start_xmit = qhca_xmit,
	.ndo_features_check = qhca_features_check,
	.ndo_set_rx_mode = qhca_set_rx_mode,
	.ndo_set_mac_address = qhca_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = qhca_change_mtu,
	.ndo_get_stats64 = qhca_get_stats64,
	.ndo_tx_timeout = qhca_tx_timeout,
	.ndo_hwtstamp_get = qhca_hwtstamp_get,
	.ndo_hwtstamp_set = qhca_hwtstamp_set,
};

/*
 * The operator has given the port another speed. Bonds, netlink and the RDMA device hear of it by
 * NETDEV_CHANGE.
 */
static void qhca_nic_speed_work(struct work_struct *work)
{
	struct qhca_nic *nic = container_of(work, struct qhca_nic, speed_work);
	struct qhca_port_attr attr;
	u32 speed;

	rtnl_lock();
	/* A detached netdev issues no commands; qhca_netdev_resume() asks. */
	if (netif_device_present(nic->netdev) && !qhca_port_query(nic, &attr)) {
		speed = le32_to_cpu(attr.speed);
		if (speed != nic->speed) {
			nic->speed = speed;
			netdev_state_change(nic->netdev);
		}
	}
	rtnl_unlock();
}

static int qhca_nic_event(struct notifier_block *nb, unsigned long type, void *obj)
{
	struct qhca_nic *nic = container_of(nb, struct qhca_nic, nb);

	switch (type) {
	case QHCA_EVENT_LINK_UP:
	case QHCA_EVENT_LINK_DOWN:
	case QHCA_EVENT_DEVICE_FATAL:
		qhca_port_update_carrier(nic);
		return NOTIFY_OK;
	case QHCA_EVENT_SPEED_CHANGE:
		schedule_work(&nic->speed_work);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

static void qhca_netdev_init_features(struct net_device *netdev, const struct qhca_limits *limits)
{
	netdev_features_t offloads = NETIF_F_SG | NETIF_F_HW_CSUM;
	u32 max_tso = limits->max_tso;

	if (max_tso) {
		offloads |= NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN;
		netif_set_tso_max_size(netdev, max_tso);
	}
	netdev->vlan_features = offloads | NETIF_F_HIGHDMA;
	netdev->hw_features = offloads | NETIF_F_RXCSUM | NETIF_F_HW_VLAN_CTAG_TX;
	if (qhca_limits_have_rss(limits))
		netdev->hw_features |= NETIF_F_RXHASH;
	/* The device always strips tags. */
	netdev->features = netdev->hw_features | NETIF_F_HIGHDMA | NETIF_F_HW_VLAN_CTAG_RX |
			   NETIF_F_NTUPLE;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
}

static void qhca_netdev_init_addr(struct qhca_dev *dev, struct net_device *netdev)
{
	u8 mac[ETH_ALEN];

	qhca_hw_mac(dev, mac);
	if (is_valid_ether_addr(mac))
		eth_hw_addr_set(netdev, mac);
	else
		eth_hw_addr_random(netdev);
}

static void qhca_nic_init(struct qhca_dev *dev, struct net_device *netdev)
{
	u32 max_entries = BIT(min(dev->limits.max_ethq_log, 12u));
	struct qhca_nic *nic = netdev_priv(netdev);

	nic->netdev = netdev;
	nic->dev = dev;
	nic->params.channels = netdev->num_tx_queues;
	nic->params.mtu = netdev->mtu;
	nic->params.tx_entries = min(QHCA_TX_RING_DEFAULT, max_entries);
	nic->params.rx_entries = min(QHCA_RX_RING_DEFAULT, max_entries);
	nic->rss_types = QHCA_RSS_ALL;
	netdev_rss_key_fill(nic->rss.key, sizeof(nic->rss.key));
	nic->nb.notifier_call = qhca_nic_event;
	INIT_LIST_HEAD(&nic->ntuple);
	mutex_init(&nic->port_lock);
	spin_lock_init(&nic->link_lock);
	INIT_WORK(&nic->rx_mode_work, qhca_port_rx_mode_work);
	INIT_WORK(&nic->restart_work, qhca_nic_restart_work);
	INIT_WORK(&nic->speed_work, qhca_nic_speed_work);
}

/* Ask the device for its speed and its largest MTU. */
static int qhca_nic_query(struct qhca_nic *nic)
{
	struct net_device *netdev = nic->netdev;
	struct qhca_port_attr attr;
	int ret;

	ret = qhca_port_query(nic, &attr);
	if (ret)
		return ret;
	nic->speed = le32_to_cpu(attr.speed);
	netdev->min_mtu = QHCA_ETH_MTU_MIN;
	netdev->max_mtu = clamp_t(u32, le32_to_cpu(attr.max_mtu), ETH_DATA_LEN,
				  QHCA_ETH_MTU_MAX);
	return 0;
}

/**
 * qhca_netdev_register - create the netdev
 * @dev: the function, running
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_netdev_register(struct qhca_dev *dev)
{
	struct net_device *netdev;
	struct qhca_nic *nic;
	int ret;

	netdev = alloc_etherdev_mq(sizeof(*nic), qhca_max_channels(dev));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, &dev->pdev->dev);
	netdev->dev_port = 0;
	netdev->netdev_ops = &qhca_netdev_ops;
	netdev->ethtool_ops = &qhca_ethtool_ops;
#ifdef QHCA_HAVE_STAT_OPS
	netdev->stat_ops = &qhca_stat_ops;
#endif
	qhca_netdev_init_features(netdev, &dev->limits);
	qhca_netdev_init_addr(dev, netdev);
	qhca_nic_init(dev, netdev);
	nic = netdev_priv(netdev);
	ret = qhca_nic_query(nic);
	if (!ret)
		ret = qhca_stats_init(nic);
	if (ret)
		goto err_free;

	dev->netdev = netdev;
	/* The operational state follows changes of the carrier, and only those after this. */
	netif_carrier_off(netdev);
	ret = register_netdev(netdev);
	if (ret)
		goto err_netdev;
	/* Events change the carrier, so register them only while the netdev is registered. */
	qhca_register_events(dev, &nic->nb);
	qhca_port_update_carrier(nic);
	schedule_work(&nic->speed_work);
	return 0;

err_netdev:
	cancel_delayed_work_sync(&nic->stats_work);
	dev->netdev = NULL;
err_free:
	free_netdev(netdev);
	return ret;
}

/**
 * qhca_netdev_unregister - undo qhca_netdev_register()
 * @dev: the function
 */
void qhca_netdev_unregister(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_nic *nic = netdev_priv(netdev);

	/* First, because linkwatch would keep a netdev whose carrier changes later. */
	qhca_unregister_events(dev, &nic->nb);
	unregister_netdev(netdev);
	qhca_ntuple_free(nic);
	cancel_work_sync(&nic->restart_work);
	cancel_work_sync(&nic->speed_work);
	cancel_work_sync(&nic->rx_mode_work);
	cancel_delayed_work_sync(&nic->stats_work);
	dev->netdev = NULL;
	free_netdev(netdev);
}

/**
 * qhca_netdev_suspend - stop using a device that is about to go down
 * @dev: the function
 *
 * Context: process. After this the netdev issues no commands.
 */
void qhca_netdev_suspend(struct qhca_dev *dev)
{
	struct qhca_nic *nic = netdev_priv(dev->netdev);

	rtnl_lock();
	netif_device_detach(dev->netdev);
	qhca_nic_stop(nic);
	netif_carrier_off(dev->netdev);
	rtnl_unlock();
}

/**
 * qhca_netdev_resume - start to use a device that is up again
 * @dev: the function, running
 *
 * Context: process.
 * Return: 0, or a negative errno, and then the netdev stays detached.
 */
int qhca_netdev_resume(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_nic *nic = netdev_priv(netdev);
	int ret = 0;

	rtnl_lock();
	if (netif_running(netdev))
		ret = qhca_nic_start(nic);
	if (!ret) {
		netif_device_attach(netdev);
		qhca_port_update_carrier(nic);
		/* Events of the meantime are lost. */
		schedule_work(&nic->speed_work);
	}
	rtnl_unlock();
	return ret;
}
