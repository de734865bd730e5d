/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Operations of network devices in older kernels, whose arguments differ from the driver's
 * functions. Each replaces such a function in netdev.c, which includes this header after the
 * declarations.
 */
#ifndef QHCA_NETDEV_OPS_H
#define QHCA_NETDEV_OPS_H

#ifndef QHCA_HAVE_NDO_HWTSTAMP		/* 6.6 */
static int qhca_eth_ioctl(struct net_device *netdev, struct ifreq *ifr, int cmd)
{
	struct kernel_hwtstamp_config kernel_config = {};
	struct hwtstamp_config config = {};
	int ret;

	if (cmd != SIOCGHWTSTAMP && cmd != SIOCSHWTSTAMP)
		return -EOPNOTSUPP;
	if (cmd == SIOCSHWTSTAMP) {
		if (copy_from_user(&config, ifr->ifr_data, sizeof(config)))
			return -EFAULT;
		kernel_config.tx_type = config.tx_type;
		kernel_config.rx_filter = config.rx_filter;
		ret = qhca_hwtstamp_set(netdev, &kernel_config, NULL);
	} else {
		ret = qhca_hwtstamp_get(netdev, &kernel_config);
	}
	if (ret)
		return ret;
	config.tx_type = kernel_config.tx_type;
	config.rx_filter = kernel_config.rx_filter;
	return copy_to_user(ifr->ifr_data, &config, sizeof(config)) ? -EFAULT : 0;
}

#define qhca_hwtstamp_set	qhca_eth_ioctl
#define ndo_hwtstamp_set	ndo_eth_ioctl
/* qhca_eth_ioctl() does this, so let another operation stay NULL. */
#define qhca_hwtstamp_get	NULL
#define ndo_hwtstamp_get	ndo_siocdevprivate
#endif

#endif /* QHCA_NETDEV_OPS_H */
