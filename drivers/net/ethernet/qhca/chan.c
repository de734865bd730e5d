// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the queues of the Ethernet port, and NAPI. */
#include <linux/delay.h>

#include "eth.h"

/* How long a queue that is to be replaced may take to send its frames. */
#define QHCA_CHAN_DRAIN_MS	1000

/* ---- NAPI ---- */

/* Arm both CQs. Arming reports only later CQEs, so return whether none was there before. */
static bool qhca_eth_arm(struct qhca_chan *chan)
{
	/* The event of an arm of before may have started the next poll already, on another CPU. */
	spin_lock(&chan->arm_lock);
	qhca_eth_cq_arm(&chan->tx.cq);
	qhca_eth_cq_arm(&chan->rx.cq);
	spin_unlock(&chan->arm_lock);
	return qhca_eth_cq_is_empty(&chan->tx.cq) && qhca_eth_cq_is_empty(&chan->rx.cq);
}

/* netpoll calls this with a budget of 0: only complete sent frames then. */
static int qhca_eth_poll(struct napi_struct *napi, int budget)
{
	struct qhca_chan *chan = container_of(napi, struct qhca_chan, napi);
	/* A dead device may write CQEs for ever, so do not refill and arm for it either. */
	bool filled, closing = READ_ONCE(chan->closing) || qhca_is_dead(chan->nic->dev);
	int done;

	qhca_tx_poll(chan, budget);
	if (!budget)
		return 0;
	done = qhca_rx_poll(chan, budget);
	/* Refill in every poll, because under load every poll uses up its budget. */
	filled = closing || qhca_rxq_fill(chan);
	/* Poll on without buffers: no frame would arrive and trigger the next attempt. */
	if (done == budget || !filled)
		return budget;
	/* From here on only qhca_chan_silence() keeps the channel alive. */
	if (napi_complete_done(napi, done) && !closing && !qhca_eth_arm(chan))
		napi_schedule(napi);
	return done;
}

static void qhca_chan_kick(struct qhca_chan *chan)
{
	local_bh_disable();
	napi_schedule(&chan->napi);
	local_bh_enable();
}

/* ---- queues ---- */

/* Create the queue of direction @dir, and destroy its predecessor, if there is one. */
static int qhca_ethq_create(struct qhca_nic *nic, enum qhca_eth_dir dir,
			    const struct qhca_cmd_create_ethq *body, u32 *number)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_ETHQ),
		.create_ethq = *body,
	};

	cmd.create_ethq.dir = dir;
	cmd.create_ethq.flags = QHCA_ETHQ_REPLACE;
	return qhca_cmd_exec(nic->dev, &cmd, NULL, number);
}

/* Object 0 does not exist, so 0 says that there is no queue to destroy. */
static void qhca_ethq_destroy(struct qhca_nic *nic, u32 *number)
{
	if (*number)
		qhca_cmd_destroy(nic->dev, QHCA_CMD_DESTROY_ETHQ, *number);
	*number = 0;
}

static int qhca_tx_create(struct qhca_chan *chan)
{
	struct qhca_txq *tx = &chan->tx;
	struct qhca_cmd_create_ethq body = {
		.buf = tx->mem.table.buf,
		.cqn = cpu_to_le32(tx->cq.core.cqn),
		.log_size = tx->log_size,
	};

	return qhca_ethq_create(chan->nic, QHCA_ETH_TX, &body, &tx->number);
}

static int qhca_rx_create(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;
	struct qhca_cmd_create_ethq body = {
		.buf = rx->mem.table.buf,
		.cqn = cpu_to_le32(rx->cq.core.cqn),
		.log_size = rx->log_size,
	};

	qhca_rxq_prefill(chan);
	body.pi = cpu_to_le32(rx->pi);
	return qhca_ethq_create(chan->nic, QHCA_ETH_RX, &body, &rx->number);
}

static int qhca_chan_create_cqs(struct qhca_chan *chan)
{
	int ret;

	chan->closing = false;
	chan->tx.pi = 0;
	chan->tx.ci = 0;
	chan->rx.pi = 0;
	chan->rx.rung = 0;
	chan->rx.ci = 0;
	/* A frame takes at least one WQE, so one CQE for each WQE is enough. */
	ret = qhca_eth_cq_create(&chan->tx.cq, chan, chan->tx.log_size, &chan->tx_mod);
	if (ret)
		return ret;
	ret = qhca_eth_cq_create(&chan->rx.cq, chan, chan->rx.log_size, &chan->rx_mod);
	if (ret)
		qhca_eth_cq_destroy(&chan->tx.cq);
	return ret;
}

/* Destroy the queues of a channel that NAPI no longer polls. */
static void qhca_chan_destroy(struct qhca_chan *chan)
{
	qhca_ethq_destroy(chan->nic, &chan->rx.number);
	qhca_eth_cq_destroy(&chan->rx.cq);
	qhca_rxq_drain(chan);
	qhca_ethq_destroy(chan->nic, &chan->tx.number);
	qhca_eth_cq_destroy(&chan->tx.cq);
	qhca_txq_drain(chan);
}

/**
 * qhca_chan_alloc - allocate the memory of a channel
 * @nic: the port
 * @params: sizes
 *
 * Context: process, RTNL. The hardware is not touched.
 * Return: the channel or NULL.
 */
struct qhca_chan *qhca_chan_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params)
{
	struct qhca_chan *chan = kzalloc_obj(*chan);

	if (!chan)
		return NULL;
	chan->nic = nic;
	spin_lock_init(&chan->arm_lock);
	chan->tx_mod = params->tx_mod;
	chan->rx_mod = params->rx_mod;
	netif_napi_add(nic->netdev, &chan->napi, qhca_eth_poll);
	if (qhca_txq_alloc(chan, params->tx_entries))
		goto err_chan;
	if (qhca_rxq_alloc(chan, params->rx_entries, params->mtu))
		goto err_tx;
	chan->tx.slot = qhca_db_slot_get(nic->dev);
	chan->rx.slot = qhca_db_slot_get(nic->dev);
	return chan;

err_tx:
	qhca_txq_free(chan);
err_chan:
	netif_napi_del(&chan->napi);
	kfree(chan);
	return NULL;
}

/**
 * qhca_chan_free - undo qhca_chan_alloc()
 * @chan: the channel, stopped
 *
 * Context: process, RTNL.
 */
void qhca_chan_free(struct qhca_chan *chan)
{
	qhca_db_slot_put(chan->nic->dev, chan->rx.slot);
	qhca_db_slot_put(chan->nic->dev, chan->tx.slot);
	qhca_rxq_free(chan);
	qhca_txq_free(chan);
	netif_napi_del(&chan->napi);
	kfree(chan);
}

/* The queues exist: start the stack, NAPI and the port. */
static void qhca_chan_go(struct qhca_chan *chan)
{
	struct qhca_nic *nic = chan->nic;

	nic->chan = chan;
	netdev_tx_reset_queue(netdev_get_tx_queue(nic->netdev, 0));
	napi_enable(&chan->napi);
	/* The first poll arms the CQs. */
	qhca_chan_kick(chan);
}

/* When this returns, no poll and no sender uses the queues. */
static void qhca_chan_silence(struct qhca_chan *chan)
{
	struct qhca_nic *nic = chan->nic;

	/* Stop NAPI first, because it would wake the queue again. */
	napi_disable(&chan->napi);
	netif_tx_disable(nic->netdev);
	nic->chan = NULL;
	/* qhca_eth_poll() may still run for a moment after napi_complete_done(). */
	synchronize_net();
}

/**
 * qhca_chan_start - create the queues of a channel and switch the port on
 * @chan: the channel, new or stopped
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_chan_start(struct qhca_chan *chan)
{
	int ret;

	ret = qhca_chan_create_cqs(chan);
	if (ret)
		return ret;
	ret = qhca_tx_create(chan);
	if (ret)
		goto err;
	ret = qhca_rx_create(chan);
	if (ret)
		goto err;

	qhca_chan_go(chan);
	ret = qhca_port_set(chan->nic, true);
	if (ret)
		goto err_silence;
	netif_start_queue(chan->nic->netdev);
	return 0;

err_silence:
	qhca_chan_silence(chan);
err:
	qhca_chan_destroy(chan);
	return ret;
}

/**
 * qhca_chan_stop - undo qhca_chan_start()
 * @chan: the channel
 *
 * Context: process, RTNL.
 */
void qhca_chan_stop(struct qhca_chan *chan)
{
	qhca_port_set(chan->nic, false);
	qhca_chan_silence(chan);
	qhca_chan_destroy(chan);
}

/* ---- replacing a channel ---- */

/*
 * Let NAPI finish what the device has completed. With @all, also wait until the device has sent all
 * frames, but not for ever, because the network may be stuck.
 */
static void qhca_chan_drain(struct qhca_chan *chan, bool all)
{
	unsigned long end = jiffies + msecs_to_jiffies(QHCA_CHAN_DRAIN_MS);
	struct qhca_txq *tx = &chan->tx;

	while (!qhca_eth_cq_is_empty(&tx->cq) || !qhca_eth_cq_is_empty(&chan->rx.cq) ||
	       (all && READ_ONCE(tx->ci) != tx->pi)) {
		if (time_after(jiffies, end) || qhca_is_dead(chan->nic->dev))
			return;
		qhca_chan_kick(chan);
		usleep_range(50, 200);
	}
}

/* Accept no more frames to send, and wait until those in the queue have left. */
static void qhca_chan_close_tx(struct qhca_chan *chan)
{
	/* A poll that is still running could wake the queue. */
	WRITE_ONCE(chan->closing, true);
	napi_synchronize(&chan->napi);
	/* Do not let the watchdog take an idle queue for a hung one. */
	netif_trans_update(chan->nic->netdev);
	netif_tx_disable(chan->nic->netdev);
	qhca_chan_drain(chan, true);
}

/*
 * The port stays on. Meanwhile the stack keeps frames to send, and received frames end up in either
 * the old or the new receive queue.
 */
static int qhca_chan_swap(struct qhca_chan *old, struct qhca_chan *new)
{
	int ret;

	qhca_chan_close_tx(old);
	ret = qhca_tx_create(new);
	if (ret)
		return ret;
	old->tx.number = 0;
	ret = qhca_rx_create(new);
	if (!ret)
		old->rx.number = 0;
	return ret;
}

/**
 * qhca_chan_replace - replace the queues without losing frames
 * @old: the channel that is up; stopped afterwards, even on error
 * @new: its successor, not started yet
 *
 * Context: process, RTNL.
 * Return: 0, or a negative errno, and then neither channel is up.
 */
int qhca_chan_replace(struct qhca_chan *old, struct qhca_chan *new)
{
	struct qhca_nic *nic = old->nic;
	int ret;

	ret = qhca_chan_create_cqs(new);
	if (!ret) {
		ret = qhca_chan_swap(old, new);
		if (ret)
			qhca_chan_destroy(new);
	}
	if (ret) {
		qhca_chan_stop(old);
		return ret;
	}
	/* Frames in the old queue arrived first: deliver them first. */
	qhca_chan_drain(old, false);
	qhca_chan_silence(old);
	qhca_chan_go(new);
	netif_tx_wake_all_queues(nic->netdev);
	qhca_chan_destroy(old);
	return 0;
}
