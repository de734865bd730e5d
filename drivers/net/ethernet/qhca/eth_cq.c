// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the CQs of the Ethernet queues. */
#include "eth.h"

static void qhca_eth_cq_comp(struct qhca_cq_core *core, u32 arm_sn)
{
	struct qhca_eth_cq *cq = container_of(core, struct qhca_eth_cq, core);

	WRITE_ONCE(cq->events, cq->events + 1);
	napi_schedule(&cq->chan->napi);
}

static void qhca_eth_cq_error(struct qhca_cq_core *core)
{
	struct qhca_eth_cq *cq = container_of(core, struct qhca_eth_cq, core);

	if (net_ratelimit())
		netdev_err(cq->chan->nic->netdev, "CQ %#x failed\n", core->cqn);
	schedule_work(&cq->chan->nic->restart_work);
}

/**
 * qhca_eth_cq_next - take the next CQE
 * @cq: the CQ
 * @cqe: filled in with a copy, because the device could change the ring
 *
 * Context: NAPI.
 * Return: whether there was a CQE.
 */
bool qhca_eth_cq_next(struct qhca_eth_cq *cq, struct qhca_cqe *cqe)
{
	const struct qhca_cqe *entry = cq->mem.va;

	entry += cq->ci & (BIT(cq->log_size) - 1);
	if ((READ_ONCE(entry->owner) & QHCA_OWNER_PHASE) != qhca_phase(cq->ci, cq->log_size))
		return false;
	dma_rmb();	/* read the phase before the rest of the entry */
	*cqe = *entry;
	cq->ci++;
	return true;
}

/**
 * qhca_eth_cq_is_empty - whether there is no CQE to take
 * @cq: the CQ
 */
bool qhca_eth_cq_is_empty(const struct qhca_eth_cq *cq)
{
	const struct qhca_cqe *entry = cq->mem.va;

	entry += cq->ci & (BIT(cq->log_size) - 1);
	return (READ_ONCE(entry->owner) & QHCA_OWNER_PHASE) !=
	       qhca_phase(cq->ci, cq->log_size);
}

/**
 * qhca_eth_cq_update - tell the device which CQEs the driver has taken
 * @cq: the CQ
 */
void qhca_eth_cq_update(struct qhca_eth_cq *cq)
{
	dma_mb();	/* read the CQEs before the device may overwrite them */
	WRITE_ONCE(cq->dbrec->ci, cpu_to_le32(cq->ci));
}

/**
 * qhca_eth_cq_arm - ask for an event at the next CQE
 * @cq: the CQ
 */
void qhca_eth_cq_arm(struct qhca_eth_cq *cq)
{
	qhca_cq_arm(cq->chan->nic->dev, &cq->core, cq->dbrec, false);
}

/**
 * qhca_eth_cq_moderate - let the events of a CQ wait
 * @cq: the CQ
 * @usecs: for so long at most; 0: not at all
 * @frames: but not for more than that many CQEs; 0: any number
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_eth_cq_moderate(struct qhca_eth_cq *cq, u32 usecs, u32 frames)
{
	struct qhca_dev *dev = cq->chan->nic->dev;
	const struct qhca_limits *limits = &dev->limits;
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_CQ),
		.modify_cq = {
			.cqn = cpu_to_le32(cq->core.cqn),
			.count = cpu_to_le32(frames ? min(frames, limits->max_cq_count) :
					     limits->max_cq_count),
			.period = cpu_to_le32(min(usecs, limits->max_cq_period)),
		},
	};
	int ret;

	if (usecs == cq->usecs)
		return 0;
	ret = qhca_cmd_exec(dev, &cmd, NULL, NULL);
	if (!ret)
		WRITE_ONCE(cq->usecs, usecs);
	return ret;
}

/**
 * qhca_eth_cq_destroy - undo qhca_eth_cq_create()
 * @cq: the CQ, which no queue uses
 *
 * Context: process.
 */
void qhca_eth_cq_destroy(struct qhca_eth_cq *cq)
{
	struct qhca_dev *dev = cq->chan->nic->dev;

	qhca_cq_destroy(dev, &cq->core);
	qhca_ring_mem_free(dev, &cq->mem);
}

/**
 * qhca_eth_cq_create - create a CQ whose events schedule NAPI
 * @cq: the CQ
 * @chan: the channel with that NAPI
 * @log_size: log2 of its CQEs
 * @mod: delay of its events
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_eth_cq_create(struct qhca_eth_cq *cq, struct qhca_chan *chan, u8 log_size,
		       const struct qhca_moderation *mod)
{
	struct qhca_dev *dev = chan->nic->dev;
	struct qhca_cmd_create_cq body = { .log_size = log_size, .flags = qhca_cq_flags(dev) };
	size_t ring = sizeof(struct qhca_cqe) << log_size;
	int ret;

	cq->chan = chan;
	cq->log_size = log_size;
	cq->ci = 0;
	cq->usecs = 0;
	cq->adaptive = mod->adaptive;
	cq->core.vector = qhca_eth_comp_vector(dev, chan->index);
	cq->core.comp = qhca_eth_cq_comp;
	cq->core.error = qhca_eth_cq_error;
	ret = qhca_ring_mem_alloc(dev, &cq->mem, ring + sizeof(*cq->dbrec), &body.buf);
	if (ret)
		return ret;
	cq->dbrec = cq->mem.va + ring;
	ret = qhca_cq_create(dev, &cq->core, &body);
	if (ret) {
		qhca_ring_mem_free(dev, &cq->mem);
		return ret;
	}
	/* Adaptive moderation begins without delay. */
	ret = mod->adaptive ? 0 : qhca_eth_cq_moderate(cq, mod->usecs, mod->frames);
	if (ret)
		qhca_eth_cq_destroy(cq);
	return ret;
}
