// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the queues of the Ethernet port together, their CQs, and NAPI. */
#include "eth.h"

/* ---- CQs ---- */

static void qhca_eth_cq_comp(struct qhca_cq_core *core, u32 arm_sn)
{
	struct qhca_eth_cq *cq = container_of(core, struct qhca_eth_cq, core);

	napi_schedule(&cq->chan->napi);
}

static void qhca_eth_cq_error(struct qhca_cq_core *core)
{
	struct qhca_eth_cq *cq = container_of(core, struct qhca_eth_cq, core);

	netdev_err(cq->chan->nic->netdev, "CQ %#x failed\n", core->cqn);
	schedule_work(&cq->chan->nic->restart_work);
}

/**
 * qhca_eth_cq_next - take the next CQE
 * @cq: the CQ
 * @cqe: where it goes: in the ring the device could change it
 *
 * Context: NAPI.
 * Return: whether there was one.
 */
bool qhca_eth_cq_next(struct qhca_eth_cq *cq, struct qhca_cqe *cqe)
{
	const struct qhca_cqe *entry = cq->mem.va;

	entry += cq->ci & (BIT(cq->log_size) - 1);
	if ((READ_ONCE(entry->owner) & QHCA_OWNER_PHASE) != qhca_phase(cq->ci, cq->log_size))
		return false;
	dma_rmb();	/* the rest of the entry was written before the phase */
	*cqe = *entry;
	cq->ci++;
	return true;
}

static bool qhca_eth_cq_is_empty(const struct qhca_eth_cq *cq)
{
	const struct qhca_cqe *entry = cq->mem.va;

	entry += cq->ci & (BIT(cq->log_size) - 1);
	return (READ_ONCE(entry->owner) & QHCA_OWNER_PHASE) !=
	       qhca_phase(cq->ci, cq->log_size);
}

/**
 * qhca_eth_cq_update - tell the device which CQEs have been taken
 * @cq: the CQ
 */
void qhca_eth_cq_update(struct qhca_eth_cq *cq)
{
	dma_mb();	/* the CQEs were read before the device may write new ones */
	WRITE_ONCE(cq->dbrec->ci, cpu_to_le32(cq->ci));
}

static void qhca_eth_cq_arm(struct qhca_eth_cq *cq)
{
	qhca_ring(cq->chan->nic->dev, QHCA_DB_CQ_ARM, qhca_db(cq->core.cqn, ++cq->arm_sn));
}

static int qhca_eth_cq_create(struct qhca_eth_cq *cq, struct qhca_chan *chan, u8 log_size)
{
	struct qhca_dev *dev = chan->nic->dev;
	struct qhca_cmd_create_cq body = {
		.eqn = cpu_to_le32(qhca_comp_eqn(dev, QHCA_ETH_COMP_VECTOR)),
		.log_size = log_size,
	};
	size_t ring = sizeof(struct qhca_cqe) << log_size;
	int ret;

	cq->chan = chan;
	cq->log_size = log_size;
	cq->ci = 0;
	cq->arm_sn = 0;
	cq->core.comp = qhca_eth_cq_comp;
	cq->core.error = qhca_eth_cq_error;
	ret = qhca_ring_mem_alloc(dev, &cq->mem, ring + sizeof(*cq->dbrec), &body.buf);
	if (ret)
		return ret;
	cq->dbrec = cq->mem.va + ring;
	ret = qhca_cq_create(dev, &cq->core, &body);
	if (ret)
		qhca_ring_mem_free(dev, &cq->mem);
	return ret;
}

static void qhca_eth_cq_destroy(struct qhca_eth_cq *cq)
{
	struct qhca_dev *dev = cq->chan->nic->dev;

	if (qhca_cq_destroy(dev, &cq->core)) {
		qhca_health_die(dev, "a CQ could not be destroyed");
		/* Cannot fail any more. */
		qhca_cq_destroy(dev, &cq->core);
	}
	qhca_ring_mem_free(dev, &cq->mem);
}

/* ---- NAPI ---- */

/*
 * An arm reports CQEs that are younger than it only, so those that came before
 * have to be looked for after it. The register read makes sure that the device has
 * acted on the arm by then.
 */
static bool qhca_eth_arm(struct qhca_chan *chan)
{
	qhca_eth_cq_arm(&chan->tx.cq);
	qhca_eth_cq_arm(&chan->rx.cq);
	qhca_read_reg(chan->nic->dev, QHCA_REG_STATUS);
	return qhca_eth_cq_is_empty(&chan->tx.cq) && qhca_eth_cq_is_empty(&chan->rx.cq);
}

/* A budget of 0 is netpoll's, which only wants to send. */
static int qhca_eth_poll(struct napi_struct *napi, int budget)
{
	struct qhca_chan *chan = container_of(napi, struct qhca_chan, napi);
	int done;

	qhca_tx_poll(chan, budget);
	if (!budget)
		return 0;
	done = qhca_rx_poll(chan, budget);
	/* Without buffers no frame would come to make us try for some again. */
	if (!qhca_rxq_fill(chan) || done == budget)
		return budget;
	/* From here on only qhca_chan_silence() keeps the channel alive. */
	if (napi_complete_done(napi, done) && !qhca_eth_arm(chan))
		napi_schedule(napi);
	return done;
}

/* ---- queues ---- */

static int qhca_ethq_create(struct qhca_nic *nic, enum qhca_eth_dir dir,
			    const struct qhca_ring_mem *mem, u8 log_size, u32 cqn, u32 *number)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_ETHQ),
		.create_ethq = {
			.buf = mem->table.buf,
			.cqn = cpu_to_le32(cqn),
			.log_size = log_size,
			.dir = dir,
		},
	};

	return qhca_cmd_exec(nic->dev, &cmd, NULL, number);
}

static int qhca_tx_start(struct qhca_chan *chan)
{
	struct qhca_txq *tx = &chan->tx;
	int ret;

	tx->pi = 0;
	tx->ci = 0;
	/* A frame takes at least one WQE, so that this CQ cannot overrun. */
	ret = qhca_eth_cq_create(&tx->cq, chan, tx->log_size);
	if (ret)
		return ret;
	ret = qhca_ethq_create(chan->nic, QHCA_ETH_TX, &tx->mem, tx->log_size,
			       tx->cq.core.cqn, &tx->number);
	if (ret)
		qhca_eth_cq_destroy(&tx->cq);
	return ret;
}

static void qhca_tx_stop(struct qhca_chan *chan)
{
	qhca_cmd_destroy(chan->nic->dev, QHCA_CMD_DESTROY_ETHQ, chan->tx.number);
	qhca_eth_cq_destroy(&chan->tx.cq);
	qhca_txq_drain(chan);
}

static int qhca_rx_start(struct qhca_chan *chan)
{
	struct qhca_rxq *rx = &chan->rx;
	int ret;

	rx->pi = 0;
	rx->rung = 0;
	rx->ci = 0;
	ret = qhca_eth_cq_create(&rx->cq, chan, rx->log_size);
	if (ret)
		return ret;
	ret = qhca_ethq_create(chan->nic, QHCA_ETH_RX, &rx->mem, rx->log_size,
			       rx->cq.core.cqn, &rx->number);
	if (ret)
		qhca_eth_cq_destroy(&rx->cq);
	return ret;
}

static void qhca_rx_stop(struct qhca_chan *chan)
{
	qhca_cmd_destroy(chan->nic->dev, QHCA_CMD_DESTROY_ETHQ, chan->rx.number);
	qhca_eth_cq_destroy(&chan->rx.cq);
	qhca_rxq_drain(chan);
}

/**
 * qhca_chan_alloc - get the memory of a channel
 * @nic: the port
 * @params: sizes
 *
 * Context: process, RTNL. Nothing in hardware changes.
 * Return: the channel or NULL.
 */
struct qhca_chan *qhca_chan_alloc(struct qhca_nic *nic, const struct qhca_chan_params *params)
{
	struct qhca_chan *chan = kzalloc(sizeof(*chan), GFP_KERNEL);

	if (!chan)
		return NULL;
	chan->nic = nic;
	netif_napi_add(nic->netdev, &chan->napi, qhca_eth_poll);
	if (qhca_txq_alloc(chan, params->tx_entries))
		goto err_chan;
	if (qhca_rxq_alloc(chan, params->rx_entries, params->mtu))
		goto err_tx;
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
	qhca_rxq_free(chan);
	qhca_txq_free(chan);
	netif_napi_del(&chan->napi);
	kfree(chan);
}

/* Returns when nobody looks at the queues any more. */
static void qhca_chan_silence(struct qhca_chan *chan)
{
	struct qhca_nic *nic = chan->nic;

	/* In this order: NAPI would wake the queue again. */
	napi_disable(&chan->napi);
	netif_tx_disable(nic->netdev);
	nic->chan = NULL;
	/* A poll goes on for a moment after it has completed, see qhca_eth_poll(). */
	synchronize_net();
}

/**
 * qhca_chan_start - make the queues in hardware and let frames come
 * @chan: the channel, new or stopped
 *
 * Context: process, RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_chan_start(struct qhca_chan *chan)
{
	struct qhca_nic *nic = chan->nic;
	int ret;

	ret = qhca_tx_start(chan);
	if (ret)
		return ret;
	ret = qhca_rx_start(chan);
	if (ret)
		goto err_tx;

	nic->chan = chan;
	netdev_tx_reset_queue(netdev_get_tx_queue(nic->netdev, 0));
	napi_enable(&chan->napi);
	/* The first poll fills the receive ring and arms the CQs. */
	local_bh_disable();
	napi_schedule(&chan->napi);
	local_bh_enable();

	ret = qhca_port_set(nic, true);
	if (ret)
		goto err_rx;
	netif_start_queue(nic->netdev);
	return 0;

err_rx:
	qhca_chan_silence(chan);
	qhca_rx_stop(chan);
err_tx:
	qhca_tx_stop(chan);
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
	qhca_rx_stop(chan);
	qhca_tx_stop(chan);
}
