// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the rings and slots of the command queue. */
#include "qhca.h"

#define QHCA_CMDQ_LOG_SIZE	5

/* Bounds of the timeout that the register asks for. */
#define QHCA_CMD_TIMEOUT_MIN_MS	100
#define QHCA_CMD_TIMEOUT_MAX_MS	60000

static int qhca_cmdq_alloc(struct qhca_dev *dev)
{
	struct qhca_cmdq *q = &dev->cmdq;
	size_t n = BIT(q->log_size);
	int ret;

	q->slots = kcalloc(n, sizeof(*q->slots), GFP_KERNEL);
	if (!q->slots)
		return -ENOMEM;
	ret = qhca_ring_mem_alloc(dev, &q->sq, n * sizeof(struct qhca_cmd), NULL);
	if (ret)
		goto err_slots;
	ret = qhca_ring_mem_alloc(dev, &q->cq, n * sizeof(struct qhca_cmd_comp), NULL);
	if (ret)
		goto err_sq;
	ret = qhca_ring_mem_alloc(dev, &q->mbox, n * QHCA_PAGE_SIZE, NULL);
	if (ret)
		goto err_cq;
	return 0;

err_cq:
	qhca_ring_mem_free(dev, &q->cq);
err_sq:
	qhca_ring_mem_free(dev, &q->sq);
err_slots:
	kfree(q->slots);
	return ret;
}

/**
 * qhca_cmdq_init - allocate the rings and slots of the command queue
 * @dev: the function, reset and down
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int qhca_cmdq_init(struct qhca_dev *dev)
{
	struct qhca_cmdq *q = &dev->cmdq;
	u32 caps = qhca_read_reg(dev, QHCA_REG_CMD_CAPS);
	u32 timeout = qhca_read_reg(dev, QHCA_REG_CMD_TIMEOUT);
	unsigned int i;
	int ret;

	memset(q, 0, sizeof(*q));
	q->log_size = min_t(u32, QHCA_CMDQ_LOG_SIZE, FIELD_GET(QHCA_CMD_CAPS_LOG_MAX, caps));
	q->timeout = msecs_to_jiffies(clamp_t(u32, timeout, QHCA_CMD_TIMEOUT_MIN_MS,
					      QHCA_CMD_TIMEOUT_MAX_MS));
	/* Not zero, so that an answer of zeroes is never right. */
	q->token = get_random_u32();
	mutex_init(&q->post_lock);
	spin_lock_init(&q->lock);
	init_waitqueue_head(&q->slot_wait);
	ret = qhca_cmdq_alloc(dev);
	if (ret)
		return ret;
	for (i = 0; i < BIT(q->log_size); i++)
		init_completion(&q->slots[i].done);
	return 0;
}

/**
 * qhca_cmdq_cleanup - free the command queue
 * @dev: the function, reset and down; no command is issued any more
 */
void qhca_cmdq_cleanup(struct qhca_dev *dev)
{
	struct qhca_cmdq *q = &dev->cmdq;

	qhca_ring_mem_free(dev, &q->mbox);
	qhca_ring_mem_free(dev, &q->cq);
	qhca_ring_mem_free(dev, &q->sq);
	kfree(q->slots);
}

/**
 * qhca_cmdq_kill - wake all callers that wait for the command queue
 * @dev: the function, no longer running
 *
 * Context: any.
 */
void qhca_cmdq_kill(struct qhca_dev *dev)
{
	struct qhca_cmdq *q = &dev->cmdq;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&q->lock, flags);
	for (i = 0; i < BIT(q->log_size); i++) {
		if (q->slots[i].state != QHCA_SLOT_POSTED)
			continue;
		q->slots[i].state = QHCA_SLOT_LOST;
		complete(&q->slots[i].done);
	}
	spin_unlock_irqrestore(&q->lock, flags);
	wake_up_all(&q->slot_wait);
}
