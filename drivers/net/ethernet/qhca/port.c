// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: settings of the port: address, filters, MTU, carrier. */
#include "eth.h"

/**
 * qhca_port_query - ask the device about the port
 * @nic: the port
 * @attr: filled in with the answer
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_port_query(struct qhca_nic *nic, struct qhca_port_attr *attr)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_QUERY_PORT),
		.obj.obj = cpu_to_le32(QHCA_PORT_NUM),
	};
	struct qhca_mbox mbox = { .out = attr, .out_len = sizeof(*attr) };

	return qhca_cmd_exec(nic->dev, &cmd, &mbox, NULL);
}

static int qhca_port_cmd_set(struct qhca_nic *nic, u8 flags)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_SET_PORT),
		.set_port = {
			.port = QHCA_PORT_NUM,
			.flags = flags,
			.mtu = cpu_to_le32(nic->params.mtu),
		},
	};

	ether_addr_copy(cmd.set_port.mac, nic->netdev->dev_addr);
	return qhca_cmd_exec(nic->dev, &cmd, NULL, NULL);
}

/* Copy the multicast list. Returns its length, or -E2BIG if there is no room. */
static int qhca_port_get_mcast(struct qhca_nic *nic, struct qhca_mcast_list *list)
{
	u32 max = min_t(u32, nic->dev->limits.max_mcast, ARRAY_SIZE(list->mac));
	struct net_device *netdev = nic->netdev;
	struct netdev_hw_addr *ha;
	int n = 0;

	netif_addr_lock_bh(netdev);
	if (netdev_mc_count(netdev) > max) {
		n = -E2BIG;
	} else {
		netdev_for_each_mc_addr(ha, netdev)
			memcpy(list->mac[n++], ha->addr, ETH_ALEN);
	}
	netif_addr_unlock_bh(netdev);
	return n;
}

static int qhca_port_set_mcast(struct qhca_nic *nic)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_SET_MCAST) };
	struct qhca_mbox mbox = { .in_len = sizeof(struct qhca_mcast_list) };
	struct qhca_mcast_list *list;
	int n, ret;

	list = kzalloc_obj(*list);
	if (!list)
		return -ENOMEM;
	n = qhca_port_get_mcast(nic, list);
	mbox.in = list;
	cmd.set_mcast.count = cpu_to_le32(max(n, 0));
	ret = n < 0 ? n : qhca_cmd_exec(nic->dev, &cmd, &mbox, NULL);
	kfree(list);
	return ret;
}

/* Pass all settings to the device. */
static int qhca_port_push(struct qhca_nic *nic)
{
	unsigned int dev_flags = READ_ONCE(nic->netdev->flags);
	u8 flags = 0;

	if (nic->port_on) {
		flags = QHCA_PORT_ENABLE;
		if (dev_flags & IFF_PROMISC)
			flags |= QHCA_PORT_PROMISC;
		/* If the list does not reach the device, let all multicast frames in. */
		if (dev_flags & IFF_ALLMULTI || qhca_port_set_mcast(nic))
			flags |= QHCA_PORT_ALLMULTI;
	}
	return qhca_port_cmd_set(nic, flags);
}

/**
 * qhca_port_set - switch the port on or off
 * @nic: the port
 * @on: whether to send and receive frames, including RoCE
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_port_set(struct qhca_nic *nic, bool on)
{
	__le64 counters[QHCA_CNT_MAX];
	int ret;

	mutex_lock(&nic->port_lock);
	nic->port_on = on;
	ret = qhca_port_push(nic);
	if (ret)
		nic->port_on = false;
	if (!nic->port_on)
		qhca_stats_fetch(nic, counters);
	mutex_unlock(&nic->port_lock);
	return ret;
}

/**
 * qhca_port_sync - pass changed settings to the device, if the port is on
 * @nic: the port
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_port_sync(struct qhca_nic *nic)
{
	int ret = 0;

	mutex_lock(&nic->port_lock);
	if (nic->port_on)
		ret = qhca_port_push(nic);
	mutex_unlock(&nic->port_lock);
	return ret;
}

/**
 * qhca_port_rx_mode_work - set the address filter; ndo_set_rx_mode must not sleep
 * @work: rx_mode_work of the port
 */
void qhca_port_rx_mode_work(struct work_struct *work)
{
	struct qhca_nic *nic = container_of(work, struct qhca_nic, rx_mode_work);
	int ret = qhca_port_sync(nic);

	if (ret && !qhca_is_dead(nic->dev))
		netdev_warn(nic->netdev, "address filter not set: %d\n", ret);
}

/**
 * qhca_port_update_carrier - copy the carrier of the device to the netdev
 * @nic: the port
 *
 * Read the register, because an event may be out of date.
 *
 * Context: any.
 */
void qhca_port_update_carrier(struct qhca_nic *nic)
{
	unsigned long flags;

	spin_lock_irqsave(&nic->link_lock, flags);
	if (!qhca_is_dead(nic->dev) && qhca_hw_link_up(nic->dev))
		netif_carrier_on(nic->netdev);
	else
		netif_carrier_off(nic->netdev);
	spin_unlock_irqrestore(&nic->link_lock, flags);
}
