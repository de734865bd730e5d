// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the command queue.
 *
 * A command takes the ring position at the producer index, its slot, together with the mailbox of
 * that slot. The device answers in ring order, but callers fetch their answers when they get to
 * run, so the slot at the producer index may be in use while later ones are free; the next poster
 * waits for that slot.
 *
 * The device is not trusted: an answer has to name a slot that is waiting, and to echo its opcode
 * and token. A slot without an answer in time (see qhca_cmd_overdue()) is lost for good, since the
 * device may still write to its mailbox; that makes the device dead.
 */
#include "qhca.h"
#include "trace.h"

/* How many timeouts a command may take while the device makes progress without answers. */
#define QHCA_CMD_PATIENCE	60

static const int qhca_status_errno[] = {
	[QHCA_OK] = 0,
	[QHCA_ERR_OPCODE] = -EOPNOTSUPP,
	[QHCA_ERR_PARAM] = -EINVAL,
	[QHCA_ERR_LIMIT] = -EINVAL,
	[QHCA_ERR_OBJ] = -ENOENT,
	[QHCA_ERR_BUSY] = -EBUSY,
	[QHCA_ERR_STATE] = -EINVAL,
	[QHCA_ERR_NO_RESOURCE] = -ENOMEM,
	[QHCA_ERR_DMA] = -EFAULT,
	[QHCA_ERR_NOT_SUPPORTED] = -EOPNOTSUPP,
	[QHCA_ERR_PERM] = -EPERM,
};

static int qhca_status_to_errno(u8 status)
{
	return status < ARRAY_SIZE(qhca_status_errno) ? qhca_status_errno[status] : -EIO;
}

/* Commands that a reset makes unnecessary. */
static const u16 qhca_cmd_destroys[] = {
	QHCA_CMD_DESTROY_EQ, QHCA_CMD_DESTROY_ETHQ, QHCA_CMD_DEALLOC_MW, QHCA_CMD_DEALLOC_PD,
	QHCA_CMD_DEALLOC_XRCD, QHCA_CMD_DEREG_MR, QHCA_CMD_DESTROY_CQ, QHCA_CMD_DESTROY_SRQ,
	QHCA_CMD_DESTROY_QP, QHCA_CMD_DETACH_MCAST, QHCA_CMD_DEALLOC_CNTSET,
	QHCA_CMD_DESTROY_SHADOW, QHCA_CMD_DESTROY_FLOW, QHCA_CMD_DESTROY_SPREAD,
};

static bool qhca_cmd_is_destroy(u16 opcode)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(qhca_cmd_destroys); i++)
		if (qhca_cmd_destroys[i] == opcode)
			return true;
	return false;
}

static u32 qhca_cmdq_pos(const struct qhca_cmdq *q, u32 index)
{
	return index & (BIT(q->log_size) - 1);
}

static void *qhca_cmdq_mbox(const struct qhca_cmdq *q, u32 pos)
{
	return q->mbox.va + (size_t)pos * QHCA_PAGE_SIZE;
}

/* Whether the poster can stop waiting: the slot is free, or the device is dead. */
static bool qhca_cmdq_may_post(struct qhca_dev *dev, struct qhca_cmd_slot *slot)
{
	/* Pairs with the release in qhca_slot_put(). */
	return smp_load_acquire(&slot->state) == QHCA_SLOT_FREE || qhca_is_dead(dev);
}

/*
 * The page is 0 behind the request, and wherever the answer will be, so that an answer that is too
 * short shows nothing of an earlier one. Clear only what may not be 0.
 */
static void qhca_cmdq_fill_mbox(struct qhca_cmdq *q, u32 pos, const struct qhca_mbox *mbox)
{
	struct qhca_cmd_slot *slot = &q->slots[pos];
	size_t len = mbox->in ? mbox->in_len : 0;
	void *page = qhca_cmdq_mbox(q, pos);

	if (len)
		memcpy(page, mbox->in, len);
	if (slot->mbox_used > len)
		memset(page + len, 0, slot->mbox_used - len);
	/* The device may write as much of an answer as it likes. */
	slot->mbox_used = mbox->out ? QHCA_PAGE_SIZE : len;
}

static void qhca_cmdq_write(struct qhca_cmdq *q, u32 pos, const struct qhca_cmd *cmd,
			    const struct qhca_mbox *mbox, u32 token)
{
	struct qhca_cmd *entry = q->sq.va + pos * sizeof(*entry);

	*entry = *cmd;
	/* Nearly all answers are there when the doorbell returns. */
	entry->polled = 1;
	entry->token = cpu_to_le32(token);
	entry->mailbox = 0;
	if (!mbox)
		return;

	entry->mailbox = cpu_to_le64(q->mbox.dma + (u64)pos * QHCA_PAGE_SIZE);
	qhca_cmdq_fill_mbox(q, pos, mbox);
}

/* Take the slot at the producer index for a command, unless the device is dead. */
static int qhca_slot_get(struct qhca_dev *dev, struct qhca_cmd_slot *slot, u16 opcode,
			 u32 token)
{
	struct qhca_cmdq *q = &dev->cmdq;
	int ret = -EIO;

	spin_lock_irq(&q->lock);
	/* Test under the lock, so that qhca_cmdq_kill() sees every slot that is taken. */
	if (!qhca_is_dead(dev)) {
		slot->opcode = opcode;
		slot->token = token;
		reinit_completion(&slot->done);
		slot->state = QHCA_SLOT_POSTED;
		ret = 0;
	}
	spin_unlock_irq(&q->lock);
	return ret;
}

static void qhca_slot_put(struct qhca_cmdq *q, struct qhca_cmd_slot *slot)
{
	/* Read the answer before the slot is used again. */
	smp_store_release(&slot->state, QHCA_SLOT_FREE);
	/* Pairs with the barrier of wait_event() in qhca_cmd_post(). */
	if (wq_has_sleeper(&q->slot_wait))
		wake_up(&q->slot_wait);
}

/* Give the command to the device. Returns the position of its slot or an errno. */
static int qhca_cmd_post(struct qhca_dev *dev, const struct qhca_cmd *cmd,
			 const struct qhca_mbox *mbox)
{
	struct qhca_cmdq *q = &dev->cmdq;
	struct qhca_cmd_slot *slot;
	u32 pos;
	int ret;

	mutex_lock(&q->post_lock);
	pos = qhca_cmdq_pos(q, q->pi);
	slot = &q->slots[pos];
	/* This ends: the command in the slot is answered, or times out and kills the device. */
	wait_event(q->slot_wait, qhca_cmdq_may_post(dev, slot));
	ret = qhca_slot_get(dev, slot, le16_to_cpu(cmd->opcode), ++q->token);
	if (!ret) {
		qhca_cmdq_write(q, pos, cmd, mbox, q->token);
		q->pi++;
		trace_qhca_cmd_post(dev, slot->opcode, pos, q->token);
		qhca_ring(dev, QHCA_DB_CMD, qhca_db(0, q->pi));
		ret = pos;
	}
	mutex_unlock(&q->post_lock);
	return ret;
}

/*
 * struct qhca_cmd_watch - progress of the command queue while a command waits
 * @steps: the register CMD_PROGRESS
 * @answers: index of the next completion
 * @moved: when @steps or @answers last changed, in jiffies
 * @answered: when @answers last changed, in jiffies
 */
struct qhca_cmd_watch {
	u32 steps;
	u32 answers;
	unsigned long moved;
	unsigned long answered;
};

static void qhca_cmd_look(struct qhca_dev *dev, struct qhca_cmd_watch *w)
{
	u32 steps = qhca_read_reg(dev, QHCA_REG_CMD_PROGRESS);
	u32 answers = READ_ONCE(dev->cmdq.ci);

	if (answers != w->answers)
		w->answered = jiffies;
	if (answers != w->answers || steps != w->steps)
		w->moved = jiffies;
	w->answers = answers;
	w->steps = steps;
}

/*
 * Users' commands can keep a slow device busy for longer than any timeout, so a command is lost
 * only if the device makes no progress for that long, or if it claims progress for very long
 * without answering a command.
 */
static bool qhca_cmd_overdue(const struct qhca_cmdq *q, const struct qhca_cmd_watch *w)
{
	return time_after_eq(jiffies, w->moved + q->timeout) ||
	       time_after_eq(jiffies, w->answered + QHCA_CMD_PATIENCE * q->timeout);
}

/* End the wait for a slot. Returns whether it has an answer; otherwise it is lost. */
static bool qhca_slot_answered(struct qhca_cmdq *q, struct qhca_cmd_slot *slot)
{
	bool answered;

	spin_lock_irq(&q->lock);
	answered = slot->state == QHCA_SLOT_DONE;
	if (!answered)
		slot->state = QHCA_SLOT_LOST;
	spin_unlock_irq(&q->lock);
	return answered;
}

/*
 * Look for the answer once more, because the device sends an interrupt only if it reads @polled
 * after it has written the answer, and finds it 0.
 */
static void qhca_cmd_stop_polling(struct qhca_dev *dev, u32 pos)
{
	struct qhca_cmdq *q = &dev->cmdq;
	struct qhca_cmd *entry = q->sq.va + pos * sizeof(*entry);

	WRITE_ONCE(entry->polled, 0);
	mb();	/* write @polled before reading the owner of the completion */
	qhca_cmdq_poll(dev);
}

static int qhca_cmd_wait(struct qhca_dev *dev, u32 pos)
{
	struct qhca_cmdq *q = &dev->cmdq;
	struct qhca_cmd_slot *slot = &q->slots[pos];
	struct qhca_cmd_watch watch = { .moved = jiffies, .answered = jiffies };
	bool woken, overdue = false;

	/* The device executes and answers nearly all commands before the doorbell returns. */
	qhca_cmdq_poll(dev);
	if (!completion_done(&slot->done))
		qhca_cmd_stop_polling(dev, pos);
	/* Wait in steps: if the interrupt is lost, the answer is found by polling. */
	do {
		woken = wait_for_completion_timeout(&slot->done, min(q->timeout / 4, HZ));
		if (woken)
			break;
		qhca_cmdq_poll(dev);
		qhca_cmd_look(dev, &watch);
		overdue = qhca_cmd_overdue(q, &watch);
	} while (!completion_done(&slot->done) && !overdue);

	if (qhca_slot_answered(q, slot)) {
		if (!woken)
			dev_warn_ratelimited(&dev->pdev->dev,
					     "command %#x: answer without interrupt\n",
					     slot->opcode);
		return 0;
	}
	if (qhca_is_dead(dev))
		return -EIO;	/* woken by qhca_cmdq_kill() */

	dev_err(&dev->pdev->dev, "command %#x: no answer\n", slot->opcode);
	qhca_health_die(dev, "a command was lost");
	return -ETIMEDOUT;
}

/*
 * The command did not reach the device, or its answer did not arrive. The caller frees memory next,
 * so stop DMA first.
 */
static int qhca_cmd_failed(struct qhca_dev *dev, u16 opcode, int err)
{
	qhca_health_quiesce(dev);
	return qhca_cmd_is_destroy(opcode) ? 0 : err;
}

/* Whether @obj can be the result of @opcode. Keys have 32 bits, object numbers fewer. */
static bool qhca_cmd_obj_ok(u16 opcode, u32 obj)
{
	bool key = opcode == QHCA_CMD_REG_MR || opcode == QHCA_CMD_ALLOC_MW;

	return obj && (key || obj <= QHCA_OBJ_MASK);
}

/* Take the answer out of the slot and free the slot. */
static int qhca_cmd_finish(struct qhca_dev *dev, u32 pos, const struct qhca_mbox *mbox,
			   u32 *obj)
{
	struct qhca_cmdq *q = &dev->cmdq;
	struct qhca_cmd_slot *slot = &q->slots[pos];
	int ret = qhca_status_to_errno(slot->status);
	u16 opcode = slot->opcode;
	bool sane = ret || !obj || qhca_cmd_obj_ok(opcode, slot->obj);

	trace_qhca_cmd_done(dev, opcode, pos, slot->token, slot->status, slot->obj);
	if (!ret && mbox && mbox->out)
		memcpy(mbox->out, qhca_cmdq_mbox(q, pos), mbox->out_len);
	if (!ret && obj)
		*obj = slot->obj;
	qhca_slot_put(q, slot);
	if (sane)
		return ret;
	qhca_health_die(dev, "the number of an object makes no sense");
	return qhca_cmd_failed(dev, opcode, -EIO);
}

static bool qhca_mbox_fits(const struct qhca_mbox *mbox)
{
	return mbox->in_len <= QHCA_PAGE_SIZE && mbox->out_len <= QHCA_PAGE_SIZE;
}

int qhca_cmd_exec(struct qhca_dev *dev, struct qhca_cmd *cmd,
		  const struct qhca_mbox *mbox, u32 *obj)
{
	u16 opcode = le16_to_cpu(cmd->opcode);
	int pos, ret;

	might_sleep();
	if (mbox && WARN_ON_ONCE(!qhca_mbox_fits(mbox)))
		return -EINVAL;

	pos = qhca_is_dead(dev) ? -EIO : qhca_cmd_post(dev, cmd, mbox);
	if (pos < 0)
		return qhca_cmd_failed(dev, opcode, pos);
	ret = qhca_cmd_wait(dev, pos);
	if (ret)
		return qhca_cmd_failed(dev, opcode, ret);
	return qhca_cmd_finish(dev, pos, mbox, obj);
}
EXPORT_SYMBOL(qhca_cmd_exec);

int qhca_cmd_obj(struct qhca_dev *dev, enum qhca_cmd_opcode opcode, u32 obj)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(opcode),
		.obj.obj = cpu_to_le32(obj),
	};

	return qhca_cmd_exec(dev, &cmd, NULL, NULL);
}
EXPORT_SYMBOL(qhca_cmd_obj);

/**
 * qhca_cmd_destroy - destroy an object, or declare the device dead
 * @dev: the function
 * @opcode: the command
 * @obj: the object
 *
 * The caller frees the memory of the object next, so the device must not refuse.
 *
 * Context: process.
 */
void qhca_cmd_destroy(struct qhca_dev *dev, enum qhca_cmd_opcode opcode, u32 obj)
{
	int ret = qhca_cmd_obj(dev, opcode, obj);

	if (!ret)
		return;
	dev_err(&dev->pdev->dev, "command %#x of %#x: %d\n", opcode, obj, ret);
	qhca_health_die(dev, "an object could not be destroyed");
	qhca_health_quiesce(dev);
}
EXPORT_SYMBOL(qhca_cmd_destroy);

/* Match an answer with its slot. Returns false if no slot can have this answer. */
static bool qhca_cmd_complete(struct qhca_cmdq *q, const struct qhca_cmd_comp *comp)
{
	u16 pos = le16_to_cpu(comp->slot);
	struct qhca_cmd_slot *slot;

	if (pos >= BIT(q->log_size))
		return false;
	slot = &q->slots[pos];
	if (slot->state == QHCA_SLOT_LOST)
		return true;	/* late: the device is dead and the caller has gone */
	if (slot->state != QHCA_SLOT_POSTED ||
	    slot->opcode != le16_to_cpu(comp->opcode) ||
	    slot->token != le32_to_cpu(comp->token))
		return false;

	slot->status = comp->status;
	slot->obj = le32_to_cpu(comp->obj);
	slot->state = QHCA_SLOT_DONE;
	complete(&slot->done);
	return true;
}

/* Copy the next answer, because the device could change it in the ring. */
static bool qhca_cmdq_next(struct qhca_cmdq *q, struct qhca_cmd_comp *comp)
{
	const struct qhca_cmd_comp *entry = q->cq.va;

	entry += qhca_cmdq_pos(q, q->ci);
	if ((READ_ONCE(entry->owner) & QHCA_OWNER_PHASE) != qhca_phase(q->ci, q->log_size))
		return false;
	dma_rmb();	/* read the phase before the rest of the entry */
	*comp = *entry;
	q->ci++;
	return true;
}

/**
 * qhca_cmdq_poll - take the answers that have arrived
 * @dev: the function
 *
 * Context: any.
 * Return: the number of answers, at most one for each slot.
 */
unsigned int qhca_cmdq_poll(struct qhca_dev *dev)
{
	struct qhca_cmdq *q = &dev->cmdq;
	unsigned int n, max = BIT(q->log_size);
	struct qhca_cmd_comp comp;
	unsigned long flags;
	bool sane = true;

	spin_lock_irqsave(&q->lock, flags);
	for (n = 0; sane && n < max && qhca_cmdq_next(q, &comp); n++)
		sane = qhca_cmd_complete(q, &comp);
	spin_unlock_irqrestore(&q->lock, flags);
	if (!sane)
		qhca_health_die(dev, "a command completion makes no sense");
	return n;
}
