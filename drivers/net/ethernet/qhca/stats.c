// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: statistics of the Ethernet port and its queues. */
#include <linux/ethtool.h>
#include <net/netdev_queues.h>

#include <qhca/counters.h>

#include "eth.h"

static const enum qhca_counter qhca_nic_counters[] = {
	[QHCA_NIC_MISSED] = QHCA_CNT_ETH_RX_NO_BUF,
	[QHCA_NIC_LENGTH] = QHCA_CNT_RX_LENGTH,
	[QHCA_NIC_NO_ROOM] = QHCA_CNT_RX_NO_ROOM,
};

/* How old the device's part of the statistics may be. */
#define QHCA_STATS_DELAY	HZ

/**
 * qhca_stats_fetch - ask the device for its counters
 * @nic: the port
 * @counters: filled in with QHCA_CNT_MAX counters, which are 0 on error
 *
 * Statistics are read where nothing may sleep, so remember those that they need.
 *
 * Context: process, under @nic->port_lock.
 * Return: 0 or a negative errno.
 */
int qhca_stats_fetch(struct qhca_nic *nic, __le64 *counters)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_QUERY_COUNTERS) };
	struct qhca_mbox mbox = {
		.out = counters,
		.out_len = QHCA_CNT_MAX * sizeof(*counters),
	};
	unsigned int i;
	int ret;

	memset(counters, 0, mbox.out_len);
	ret = qhca_cmd_exec(nic->dev, &cmd, &mbox, NULL);
	for (i = 0; !ret && i < QHCA_NIC_COUNTERS; i++)
		WRITE_ONCE(nic->counter[i], le64_to_cpu(counters[qhca_nic_counters[i]]) -
					    nic->counter_base[i]);
	return ret;
}

static void qhca_stats_work(struct work_struct *work)
{
	struct qhca_nic *nic = container_of(to_delayed_work(work), struct qhca_nic, stats_work);
	__le64 counters[QHCA_CNT_MAX];

	mutex_lock(&nic->port_lock);
	/* Otherwise no frame has come since qhca_port_set(), and the device may be down. */
	if (nic->port_on)
		qhca_stats_fetch(nic, counters);
	mutex_unlock(&nic->port_lock);
}

/**
 * qhca_stats_kick - have the device's part of the statistics brought up to date soon
 * @nic: the port
 *
 * The device misses frames only if it has taken all buffers, so those are found if this is called
 * when it gets new ones. Other counters are as old as the last read of statistics.
 *
 * Context: any.
 */
void qhca_stats_kick(struct qhca_nic *nic)
{
	if (!delayed_work_pending(&nic->stats_work))
		schedule_delayed_work(&nic->stats_work, QHCA_STATS_DELAY);
}

/**
 * qhca_stats_init - begin to count at probe()
 * @nic: the port, off
 *
 * The device's counters are as old as the device.
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_stats_init(struct qhca_nic *nic)
{
	__le64 counters[QHCA_CNT_MAX];
	int ret;

	INIT_DELAYED_WORK(&nic->stats_work, qhca_stats_work);
	mutex_lock(&nic->port_lock);
	ret = qhca_stats_fetch(nic, counters);
	memcpy(nic->counter_base, nic->counter, sizeof(nic->counter));
	memset(nic->counter, 0, sizeof(nic->counter));
	mutex_unlock(&nic->port_lock);
	return ret;
}

/* Frames that the device had no place for, in a queue or on the way there. */
static u64 qhca_missed(const struct qhca_nic *nic)
{
	return READ_ONCE(nic->counter[QHCA_NIC_MISSED]) +
	       READ_ONCE(nic->counter[QHCA_NIC_NO_ROOM]);
}

/**
 * qhca_get_stats64 - ndo_get_stats64
 * @netdev: the netdev
 * @s: sums of all queues, also of those that are not used at present
 */
void qhca_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *s)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	const struct qhca_tx_stats *tx;
	const struct qhca_rx_stats *rx;
	unsigned int i;

	qhca_stats_kick(nic);
	s->rx_missed_errors = qhca_missed(nic);
	s->rx_length_errors = READ_ONCE(nic->counter[QHCA_NIC_LENGTH]);
	for (i = 0; i < QHCA_CHANNELS_MAX; i++) {
		tx = &nic->stats[i].tx;
		rx = &nic->stats[i].rx;
		s->tx_packets += READ_ONCE(tx->packets);
		s->tx_bytes += READ_ONCE(tx->bytes);
		s->tx_errors += READ_ONCE(tx->errors);
		s->tx_dropped += READ_ONCE(tx->dropped);
		s->rx_packets += READ_ONCE(rx->packets);
		s->rx_bytes += READ_ONCE(rx->bytes);
		s->multicast += READ_ONCE(rx->multicast);
		s->rx_length_errors += READ_ONCE(rx->length_errors);
		s->rx_over_errors += READ_ONCE(rx->over_errors);
		s->rx_errors += READ_ONCE(rx->errors);
		s->rx_dropped += READ_ONCE(rx->dropped);
	}
	s->rx_errors += s->rx_length_errors + s->rx_over_errors;
}

#ifdef QHCA_HAVE_STAT_OPS
static void qhca_add_rx(const struct net_device *netdev, int i, struct netdev_queue_stats_rx *stats)
{
	const struct qhca_nic *nic = netdev_priv(netdev);
	const struct qhca_rx_stats *rx = &nic->stats[i].rx;

	stats->packets += READ_ONCE(rx->packets);
	stats->bytes += READ_ONCE(rx->bytes);
	stats->alloc_fail += READ_ONCE(rx->dropped);
	stats->csum_unnecessary += READ_ONCE(rx->csum_ok);
}

static void qhca_add_tx(const struct net_device *netdev, int i, struct netdev_queue_stats_tx *stats)
{
	const struct qhca_nic *nic = netdev_priv(netdev);
	const struct qhca_tx_stats *tx = &nic->stats[i].tx;

	stats->packets += READ_ONCE(tx->packets);
	stats->bytes += READ_ONCE(tx->bytes);
	stats->hw_drops += READ_ONCE(tx->errors);
	stats->hw_drop_errors += READ_ONCE(tx->errors);
	stats->hw_gso_packets += READ_ONCE(tx->tso);
	stats->stop += READ_ONCE(tx->stops);
	stats->wake += READ_ONCE(tx->wakes);
}

/* The core uses only members that are not all ones. */
static void qhca_clear_rx(struct netdev_queue_stats_rx *stats)
{
	stats->packets = 0;
	stats->bytes = 0;
	stats->alloc_fail = 0;
	stats->csum_unnecessary = 0;
}

static void qhca_clear_tx(struct netdev_queue_stats_tx *stats)
{
	stats->packets = 0;
	stats->bytes = 0;
	stats->hw_drops = 0;
	stats->hw_drop_errors = 0;
	stats->hw_gso_packets = 0;
	stats->stop = 0;
	stats->wake = 0;
}

static void qhca_get_queue_stats_rx(struct net_device *netdev, int i,
				    struct netdev_queue_stats_rx *stats)
{
	qhca_clear_rx(stats);
	qhca_add_rx(netdev, i, stats);
}

static void qhca_get_queue_stats_tx(struct net_device *netdev, int i,
				    struct netdev_queue_stats_tx *stats)
{
	qhca_clear_tx(stats);
	qhca_add_tx(netdev, i, stats);
}

/* The device does not say which queue a frame that it has missed was for. */
static void qhca_get_rx_drops(struct qhca_nic *nic, struct netdev_queue_stats_rx *stats)
{
	const struct qhca_rx_stats *rx;
	unsigned int i;

	qhca_stats_kick(nic);
	stats->hw_drop_overruns = qhca_missed(nic);
	stats->hw_drops = stats->hw_drop_overruns + READ_ONCE(nic->counter[QHCA_NIC_LENGTH]);
	for (i = 0; i < QHCA_CHANNELS_MAX; i++) {
		rx = &nic->stats[i].rx;
		stats->hw_drops += READ_ONCE(rx->errors) + READ_ONCE(rx->over_errors);
	}
}

/* Of the queues that are not used at present, and of the port as a whole. */
static void qhca_get_base_stats(struct net_device *netdev, struct netdev_queue_stats_rx *rx,
				struct netdev_queue_stats_tx *tx)
{
	int i;

	qhca_get_rx_drops(netdev_priv(netdev), rx);
	qhca_clear_rx(rx);
	for (i = netdev->real_num_rx_queues; i < netdev->num_rx_queues; i++)
		qhca_add_rx(netdev, i, rx);
	qhca_clear_tx(tx);
	for (i = netdev->real_num_tx_queues; i < netdev->num_tx_queues; i++)
		qhca_add_tx(netdev, i, tx);
}

const struct netdev_stat_ops qhca_stat_ops = {
	.get_queue_stats_rx = qhca_get_queue_stats_rx,
	.get_queue_stats_tx = qhca_get_queue_stats_tx,
	.get_base_stats = qhca_get_base_stats,
};
#endif

/* Counters of each channel; the device's precede them. */
static const struct {
	const char *dir;
	const char *name;
	size_t offset;
} qhca_queue_counters[] = {
#define QHCA_STAT(dir, stat) { #dir, #stat, offsetof(struct qhca_queue_stats, dir.stat) }
	QHCA_STAT(tx, packets),
	QHCA_STAT(tx, bytes),
	QHCA_STAT(tx, tso),
	QHCA_STAT(tx, errors),
	QHCA_STAT(tx, dropped),
	QHCA_STAT(tx, doorbells),
	QHCA_STAT(tx, linearized),
	QHCA_STAT(tx, stops),
	QHCA_STAT(tx, wakes),
	QHCA_STAT(rx, packets),
	QHCA_STAT(rx, bytes),
	QHCA_STAT(rx, multicast),
	QHCA_STAT(rx, errors),
	QHCA_STAT(rx, over_errors),
	QHCA_STAT(rx, length_errors),
	QHCA_STAT(rx, dropped),
	QHCA_STAT(rx, csum_ok),
	QHCA_STAT(rx, scattered),
	QHCA_STAT(rx, polls),
#undef QHCA_STAT
};

/**
 * qhca_get_sset_count - number of the counters of ethtool -S, which does not change
 * @netdev: the netdev
 * @sset: which set of strings
 *
 * Return: the number, or -EOPNOTSUPP.
 */
int qhca_get_sset_count(struct net_device *netdev, int sset)
{
	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return QHCA_CNT_MAX + netdev->num_tx_queues * ARRAY_SIZE(qhca_queue_counters);
}

/**
 * qhca_get_strings - names of the counters of ethtool -S
 * @netdev: the netdev
 * @sset: which set of strings
 * @data: filled in with them
 */
void qhca_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	unsigned int i, queue;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < QHCA_CNT_MAX; i++)
		ethtool_puts(&data, qhca_counter_names[i]);
	for (queue = 0; queue < netdev->num_tx_queues; queue++)
		for (i = 0; i < ARRAY_SIZE(qhca_queue_counters); i++)
			ethtool_sprintf(&data, "%s%u_%s", qhca_queue_counters[i].dir, queue,
					qhca_queue_counters[i].name);
}

/**
 * qhca_get_ethtool_stats - counters of ethtool -S
 * @netdev: the netdev
 * @stats: not used
 * @data: filled in with them
 */
void qhca_get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data)
{
	struct qhca_nic *nic = netdev_priv(netdev);
	__le64 counters[QHCA_CNT_MAX];
	unsigned int i, queue;
	const void *of;

	mutex_lock(&nic->port_lock);
	/* This function cannot report an error: a dead device shows zeroes. */
	qhca_stats_fetch(nic, counters);
	mutex_unlock(&nic->port_lock);
	for (i = 0; i < QHCA_CNT_MAX; i++)
		*data++ = le64_to_cpu(counters[i]);
	for (queue = 0; queue < netdev->num_tx_queues; queue++) {
		of = &nic->stats[queue];
		for (i = 0; i < ARRAY_SIZE(qhca_queue_counters); i++)
			*data++ = READ_ONCE(*(const u64 *)(of + qhca_queue_counters[i].offset));
	}
}
