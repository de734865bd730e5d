// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: a channel of the Ethernet port: two queues, and NAPI. */
#include "eth.h"

/* ---- NAPI ---- */

/* Arm both CQs. Arming reports only later CQEs, so return whether none was there before. */
static bool qhca_eth_arm(struct qhca_chan *chan)
{
	const struct qhca_queue_stats *stats = chan->stats;

	/* The event of an arm of before may have started the next poll already, on another CPU. */
	spin_lock(&chan->arm_lock);
	qhca_eth_dim(&chan->tx.cq, READ_ONCE(stats->tx.packets), READ_ONCE(stats->tx.bytes));
	qhca_eth_dim(&chan->rx.cq, READ_ONCE(stats->rx.packets), READ_ONCE(stats->rx.bytes));
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
	/* From here on only qhca_chans_silence() keeps the channel alive. */
	if (napi_complete_done(napi, done) && !closing && !qhca_eth_arm(chan))
		napi_schedule(napi);
	return done;
}

/**
 * qhca_chan_kick - poll a channel as if there had been an event
 * @chan: the channel, enabled
 *
 * Context: process.
 */
void qhca_chan_kick(struct qhca_chan *chan)
{
	local_bh_disable();
	napi_schedule(&chan->napi);
	local_bh_enable();
}

/* ---- queues ---- */

/* Create the queue of direction @dir, and destroy its predecessor, if there is one. */
static int qhca_ethq_create(struct qhca_chan *chan, enum qhca_eth_dir dir,
			    const struct qhca_cmd_create_ethq *body, u32 *number)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_ETHQ),
		.create_ethq = *body,
	};

	cmd.create_ethq.dir = dir;
	cmd.create_ethq.index = chan->index;
	cmd.create_ethq.flags |= QHCA_ETHQ_REPLACE;
	return qhca_cmd_exec(chan->nic->dev, &cmd, NULL, number);
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

	return qhca_ethq_create(chan, QHCA_ETH_TX, &body, &tx->number);
}

static int qhca_rx_create(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;
	struct qhca_cmd_create_ethq body = {
		.buf = rx->mem.table.buf,
		.cqn = cpu_to_le32(rx->cq.core.cqn),
		.log_size = rx->log_size,
		.flags = rx->frags > 1 ? QHCA_ETHQ_SCATTER : 0,
		.frags = rx->frags,
	};

	qhca_rxq_prefill(chan);
	body.pi = cpu_to_le32(rx->pi);
	return qhca_ethq_create(chan, QHCA_ETH_RX, &body, &rx->number);
}

/**
 * qhca_chan_create_cqs - create the CQs of a channel
 * @chan: the channel, new or stopped
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_chan_create_cqs(struct qhca_chan *chan)
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
	if (ret) {
		qhca_eth_cq_destroy(&chan->tx.cq);
		return ret;
	}
	qhca_eth_dim_init(&chan->tx.cq);
	qhca_eth_dim_init(&chan->rx.cq);
	return 0;
}

/**
 * qhca_chan_destroy_cqs - destroy the CQs of a channel, and free its buffers
 * @chan: the channel, without queues and not polled
 *
 * Context: process, RTNL.
 */
void qhca_chan_destroy_cqs(struct qhca_chan *chan)
{
	qhca_eth_dim_stop(&chan->rx.cq);
	qhca_eth_dim_stop(&chan->tx.cq);
	qhca_eth_cq_destroy(&chan->rx.cq);
	qhca_rxq_drain(chan);
	qhca_eth_cq_destroy(&chan->tx.cq);
	qhca_txq_drain(chan);
}

/**
 * qhca_chan_create_queues - create the queues of a channel
 * @chan: the channel, with its CQs
 * @old: the channel whose queues the device destroys for this, or NULL
 *
 * Context: process, RTNL.
 * Return: 0, or a negative errno, and then each of the two may have a queue.
 */
int qhca_chan_create_queues(struct qhca_chan *chan, struct qhca_chan *old)
{
	int ret;

	ret = qhca_tx_create(chan);
	if (ret)
		return ret;
	if (old)
		old->tx.number = 0;
	ret = qhca_rx_create(chan);
	if (!ret && old)
		old->rx.number = 0;
	return ret;
}

/**
 * qhca_chan_destroy_queues - destroy the queues that a channel has
 * @chan: the channel
 *
 * Context: process, RTNL.
 */
void qhca_chan_destroy_queues(struct qhca_chan *chan)
{
	qhca_ethq_destroy(chan->nic, &chan->rx.number);
	qhca_ethq_destroy(chan->nic, &chan->tx.number);
}

/**
 * qhca_chan_alloc - allocate the memory of a channel
 * @nic: the port
 * @params: sizes
 * @index: of the channel
 *
 * Context: process, RTNL. The hardware is not touched.
 * Return: the channel or NULL.
 */
struct qhca_chan *qhca_chan_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params,
				  unsigned int index)
{
	struct qhca_chan *chan = kzalloc_obj(*chan);

	if (!chan)
		return NULL;
	chan->nic = nic;
	chan->index = index;
	chan->stats = &nic->stats[index];
	spin_lock_init(&chan->arm_lock);
	chan->tx_mod = params->tx_mod;
	chan->rx_mod = params->rx_mod;
	netif_napi_add_config(nic->netdev, &chan->napi, qhca_eth_poll, index);
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

/**
 * qhca_chan_enable - let NAPI poll a channel
 * @chan: the channel, with its queues
 *
 * Context: process, RTNL.
 */
void qhca_chan_enable(struct qhca_chan *chan)
{
	struct net_device *netdev = chan->nic->netdev;

	netif_napi_set_irq(&chan->napi, qhca_comp_irq(chan->nic->dev, chan->tx.cq.core.vector));
	napi_enable(&chan->napi);
	netif_queue_set_napi(netdev, chan->index, NETDEV_QUEUE_TYPE_TX, &chan->napi);
	netif_queue_set_napi(netdev, chan->index, NETDEV_QUEUE_TYPE_RX, &chan->napi);
	/* The first poll arms the CQs. */
	qhca_chan_kick(chan);
}

/**
 * qhca_chan_disable - stop NAPI
 * @chan: the channel, enabled
 *
 * A poll may still run for a moment after this, until a grace period is over.
 *
 * Context: process, RTNL.
 */
void qhca_chan_disable(struct qhca_chan *chan)
{
	struct net_device *netdev = chan->nic->netdev;

	netif_queue_set_napi(netdev, chan->index, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_queue_set_napi(netdev, chan->index, NETDEV_QUEUE_TYPE_TX, NULL);
	napi_disable(&chan->napi);
}
