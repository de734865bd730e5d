// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the channels of the Ethernet port together: start, stop, replacement by others. */
#include <linux/delay.h>

#include "eth.h"

/* How long queues that are to be replaced may take to send their frames. */
#define QHCA_CHAN_DRAIN_MS	1000

/**
 * qhca_chans_alloc - allocate the memory of channels
 * @nic: the port
 * @params: number and sizes
 *
 * Context: process, RTNL. The hardware is not touched.
 * Return: the channels or NULL.
 */
struct qhca_chans *qhca_chans_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params)
{
	struct qhca_chans *chans = kzalloc(struct_size(chans, chan, params->channels), GFP_KERNEL);
	unsigned int i;

	if (!chans)
		return NULL;
	chans->nic = nic;
	chans->num = params->channels;
	for (i = 0; i < chans->num; i++) {
		chans->chan[i] = qhca_chan_alloc(nic, params, i);
		if (!chans->chan[i])
			goto err;
	}
	return chans;

err:
	while (i--)
		qhca_chan_free(chans->chan[i]);
	kfree(chans);
	return NULL;
}

/**
 * qhca_chans_free - undo qhca_chans_alloc()
 * @chans: the channels, stopped
 *
 * Context: process, RTNL.
 */
void qhca_chans_free(struct qhca_chans *chans)
{
	unsigned int i;

	for (i = 0; i < chans->num; i++)
		qhca_chan_free(chans->chan[i]);
	kfree(chans);
}

static int qhca_chans_create_cqs(struct qhca_chans *chans)
{
	unsigned int i;
	int ret;

	for (i = 0; i < chans->num; i++) {
		ret = qhca_chan_create_cqs(chans->chan[i]);
		if (ret)
			goto err;
	}
	return 0;

err:
	while (i--)
		qhca_chan_destroy_cqs(chans->chan[i]);
	return ret;
}

/* Destroy channels that NAPI no longer polls, and that no frames are spread over. */
static void qhca_chans_destroy(struct qhca_chans *chans)
{
	unsigned int i;

	for (i = 0; i < chans->num; i++) {
		qhca_chan_destroy_queues(chans->chan[i]);
		qhca_chan_destroy_cqs(chans->chan[i]);
	}
}

/* Create the queues, and spread received frames over them; the queues of @old are replaced. */
static int qhca_chans_create_queues(struct qhca_chans *chans, struct qhca_chans *old)
{
	struct qhca_chan *before;
	unsigned int i;
	int ret;

	for (i = 0; i < chans->num; i++) {
		before = old && i < old->num ? old->chan[i] : NULL;
		ret = qhca_chan_create_queues(chans->chan[i], before);
		if (ret)
			return ret;
	}
	return qhca_rss_apply(chans->nic, chans->num);
}

/* Each CPU has its channel to send, or shares it with as few others as possible. */
static int qhca_chans_set_xps(struct qhca_chans *chans)
{
	unsigned int i, n, cpu;
	cpumask_var_t mask;
	int ret = 0;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	for (i = 0; !ret && i < chans->num; i++) {
		n = 0;
		cpumask_clear(mask);
		for_each_online_cpu(cpu)
			if (n++ % chans->num == i)
				cpumask_set_cpu(cpu, mask);
		ret = netif_set_xps_queue(chans->nic->netdev, mask, i);
	}
	free_cpumask_var(mask);
	return ret;
}

/* No CPU has a channel, and the stack spreads what it sends. This takes no memory. */
static void qhca_chans_reset_xps(struct qhca_chans *chans)
{
	unsigned int i;

	for (i = 0; i < chans->num; i++)
		netif_set_xps_queue(chans->nic->netdev, cpu_none_mask, i);
}

/* The queues exist: start the stack and NAPI. */
static void qhca_chans_go(struct qhca_chans *chans)
{
	struct qhca_nic *nic = chans->nic;
	unsigned int i;

	rcu_assign_pointer(nic->chans, chans);
	for (i = 0; i < chans->num; i++)
		qhca_chan_enable(chans->chan[i]);
}

/* When this returns, no poll and no sender uses the queues. */
static void qhca_chans_silence(struct qhca_chans *chans)
{
	struct qhca_nic *nic = chans->nic;
	unsigned int i;

	/* Stop NAPI first, because it would wake the queues again. */
	for (i = 0; i < chans->num; i++)
		qhca_chan_disable(chans->chan[i]);
	netif_tx_disable(nic->netdev);
	RCU_INIT_POINTER(nic->chans, NULL);
	/* qhca_eth_poll() may still run for a moment after napi_complete_done(). */
	synchronize_net();
	/*
	 * Forget what they had in flight. The watchdog also looks at queues without a channel, and
	 * would take one that waits for that for a hung one.
	 */
	for (i = 0; i < chans->num; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(nic->netdev, i));
}

/*
 * Frames may wait. netif_device_attach() would wake only queues that are stopped. Queues without a
 * channel are woken too, because the watchdog would take them for hung ones; the stack chooses none
 * of them, and qhca_xmit() drops the frames of those who choose for themselves.
 */
static void qhca_chans_wake(struct qhca_nic *nic)
{
	netif_tx_wake_all_queues(nic->netdev);
}

/* Tell the stack how many queues there are. */
static int qhca_chans_set_num(struct qhca_chans *chans)
{
	struct net_device *netdev = chans->nic->netdev;
	int ret = netif_set_real_num_queues(netdev, chans->num, chans->num);

	if (ret)
		return ret;
	/* Otherwise leave XPS as the administrator may have set it. */
	if (chans->nic->xps_num == chans->num)
		return 0;
	chans->nic->xps_num = chans->num;
	/* Without memory for all of it there is none, until the next queues. */
	if (qhca_chans_set_xps(chans)) {
		qhca_chans_reset_xps(chans);
		chans->nic->xps_num = 0;
	}
	return 0;
}

/**
 * qhca_chans_start - create the queues of channels and switch the port on
 * @chans: the channels, new or stopped
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_chans_start(struct qhca_chans *chans)
{
	int ret;

	ret = qhca_chans_set_num(chans);
	if (ret)
		return ret;
	ret = qhca_chans_create_cqs(chans);
	if (ret)
		return ret;
	ret = qhca_chans_create_queues(chans, NULL);
	if (ret)
		goto err;

	qhca_chans_go(chans);
	ret = qhca_port_set(chans->nic, true);
	if (ret)
		goto err_silence;
	qhca_chans_wake(chans->nic);
	return 0;

err_silence:
	qhca_chans_silence(chans);
err:
	qhca_rss_off(chans->nic);
	qhca_chans_destroy(chans);
	return ret;
}

/**
 * qhca_chans_stop - undo qhca_chans_start()
 * @chans: the channels
 *
 * Context: process, RTNL.
 */
void qhca_chans_stop(struct qhca_chans *chans)
{
	qhca_port_set(chans->nic, false);
	qhca_chans_silence(chans);
	qhca_rss_off(chans->nic);
	qhca_chans_destroy(chans);
}

/* ---- replacing channels ---- */

/* Whether NAPI has work; with @all, also whether the device has frames to send. */
static bool qhca_chan_is_busy(struct qhca_chan *chan, bool all)
{
	struct qhca_txq *tx = &chan->tx;

	return !qhca_eth_cq_is_empty(&tx->cq) || !qhca_eth_cq_is_empty(&chan->rx.cq) ||
	       (all && READ_ONCE(tx->ci) != tx->pi);
}

/*
 * Let NAPI finish what the device has completed. With @all, also wait until the device has sent all
 * frames, but not for ever, because the network may be stuck.
 */
static void qhca_chans_drain(struct qhca_chans *chans, bool all)
{
	unsigned long end = jiffies + msecs_to_jiffies(QHCA_CHAN_DRAIN_MS);
	unsigned int i;

	for (i = 0; i < chans->num; i++) {
		while (qhca_chan_is_busy(chans->chan[i], all)) {
			if (time_after(jiffies, end) || qhca_is_dead(chans->nic->dev))
				return;
			qhca_chan_kick(chans->chan[i]);
			usleep_range(50, 200);
		}
	}
}

/* Accept no more frames to send, and wait until those in the queues have left. */
static void qhca_chans_close_tx(struct qhca_chans *chans)
{
	struct net_device *netdev = chans->nic->netdev;
	unsigned int i;

	/* A poll that is still running could wake its queue. */
	for (i = 0; i < chans->num; i++)
		WRITE_ONCE(chans->chan[i]->closing, true);
	for (i = 0; i < chans->num; i++)
		napi_synchronize(&chans->chan[i]->napi);
	/* Do not let the watchdog take idle queues for hung ones. */
	for (i = 0; i < netdev->num_tx_queues; i++)
		txq_trans_cond_update(netdev_get_tx_queue(netdev, i));
	netif_tx_disable(netdev);
	qhca_chans_drain(chans, true);
}

/*
 * Channels that will not be started again leave the netdev's list, which has the identifier of a
 * NAPI instance only once, and netlink looks at it without RTNL.
 */
static void qhca_chans_unlist(struct qhca_chans *chans)
{
	unsigned int i;

	for (i = 0; i < chans->num; i++)
		netif_napi_del(&chans->chan[i]->napi);
}

/**
 * qhca_chans_prepare - create what can be missing before others are replaced by these channels
 * @chans: the channels, new
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_chans_prepare(struct qhca_chans *chans)
{
	return qhca_chans_create_cqs(chans);
}

/**
 * qhca_chans_unprepare - undo qhca_chans_prepare()
 * @chans: the channels, not started
 *
 * Context: process, RTNL.
 */
void qhca_chans_unprepare(struct qhca_chans *chans)
{
	qhca_chans_destroy(chans);
}

/**
 * qhca_chans_replace - replace the channels without losing frames
 * @old: the channels that are up; stopped afterwards, even on error
 * @new: their successors, prepared; as new on error
 *
 * The port stays on. The stack keeps frames to send, and received frames end up in either the old
 * or the new receive queues.
 *
 * Context: process, RTNL.
 * Return: 0, or a negative errno, and then none of them are up.
 */
int qhca_chans_replace(struct qhca_chans *old, struct qhca_chans *new)
{
	struct net_device *netdev = old->nic->netdev;
	int ret;

	/* Fewer send queues: now, because the stack drops what waits for the others. */
	if (new->num < old->num) {
		ret = netif_set_real_num_tx_queues(netdev, new->num);
		if (ret)
			goto err_new;
		/* The others have lost their CPUs, and get them back if this fails. */
		old->nic->xps_num = 0;
	}
	qhca_chans_close_tx(old);
	ret = qhca_chans_create_queues(new, old);
	/* Frames in the old queues arrived first: deliver them first. */
	qhca_chans_drain(old, false);
	if (!ret && new->num > old->num)
		ret = qhca_chans_set_num(new);
	if (ret)
		goto err_queues;
	qhca_chans_silence(old);
	qhca_chans_unlist(old);
	/* Fewer receive queues: now that no frame says it is from the others. This cannot fail. */
	if (new->num < old->num)
		qhca_chans_set_num(new);
	qhca_chans_go(new);
	qhca_chans_wake(new->nic);
	qhca_chans_destroy(old);
	return 0;

err_queues:
	qhca_rss_off(new->nic);
err_new:
	qhca_chans_destroy(new);
	qhca_chans_stop(old);
	return ret;
}
