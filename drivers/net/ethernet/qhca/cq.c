// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: delivery of completion events to the owners of CQs.
 *
 * Handlers find a CQ by its number and hold a reference while they call its
 * owner. Between the lookup and the reference the CQ is kept by
 * qhca_cq_forget(), which waits for all handlers; that costs much less than a
 * grace period.
 */
#include "qhca.h"

static struct qhca_cq_core *qhca_cq_get(struct qhca_dev *dev, u32 cqn)
{
	struct qhca_cq_core *cq;

	rcu_read_lock();
	cq = xa_load(&dev->cqs, cqn);
	if (cq && !refcount_inc_not_zero(&cq->refs))
		cq = NULL;
	rcu_read_unlock();
	return cq;
}

static void qhca_cq_put(struct qhca_cq_core *cq)
{
	if (refcount_dec_and_test(&cq->refs))
		complete(&cq->released);
}

/**
 * qhca_cq_comp - a COMP event came
 * @dev: the function
 * @cqn: CQN, as the device says
 * @arm_sn: of the arm that it answers
 *
 * Context: hard IRQ. The CQ may have been destroyed since.
 */
void qhca_cq_comp(struct qhca_dev *dev, u32 cqn, u32 arm_sn)
{
	struct qhca_cq_core *cq = qhca_cq_get(dev, cqn);

	if (!cq)
		return;
	cq->comp(cq, arm_sn);
	qhca_cq_put(cq);
}

/**
 * qhca_cq_error - a CQ_ERR event came
 * @dev: the function
 * @cqn: CQN, as the device says
 *
 * Context: hard IRQ.
 */
void qhca_cq_error(struct qhca_dev *dev, u32 cqn)
{
	struct qhca_cq_core *cq = qhca_cq_get(dev, cqn);

	if (!cq)
		return;
	if (cq->error)
		cq->error(cq);
	qhca_cq_put(cq);
}

/*
 * The number may be that of a CQ which is destroyed but whose destroyer did not yet
 * get to take it out; but not that of one which lives.
 */
static int qhca_cq_remember(struct qhca_dev *dev, struct qhca_cq_core *cq)
{
	int ret = xa_reserve(&dev->cqs, cq->cqn, GFP_KERNEL);
	struct qhca_cq_core *old;

	if (ret)
		return ret;
	xa_lock(&dev->cqs);
	old = xa_load(&dev->cqs, cq->cqn);
	if (!old || READ_ONCE(old->dying))
		ret = xa_err(__xa_store(&dev->cqs, cq->cqn, cq, GFP_ATOMIC));
	else
		ret = -EIO;
	xa_unlock(&dev->cqs);
	if (ret == -EIO)
		qhca_health_die(dev, "two CQs have the same number");
	return ret;
}

int qhca_cq_create(struct qhca_dev *dev, struct qhca_cq_core *cq,
		   const struct qhca_cmd_create_cq *body)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_CQ),
		.create_cq = *body,
	};
	int ret;

	cq->dying = false;
	refcount_set(&cq->refs, 1);
	init_completion(&cq->released);
	ret = qhca_cmd_exec(dev, &cmd, NULL, &cq->cqn);
	if (ret)
		return ret;

	ret = qhca_cq_remember(dev, cq);
	if (ret)
		qhca_cmd_destroy(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	return ret;
}
EXPORT_SYMBOL(qhca_cq_create);

/* The device has forgotten the CQ: nobody here may find it from now on. */
static void qhca_cq_forget(struct qhca_dev *dev, struct qhca_cq_core *cq)
{
	xa_cmpxchg(&dev->cqs, cq->cqn, cq, NULL, 0);
	qhca_eqs_synchronize(dev);
	qhca_cq_put(cq);
	wait_for_completion(&cq->released);
}

void qhca_cq_destroy(struct qhca_dev *dev, struct qhca_cq_core *cq)
{
	WRITE_ONCE(cq->dying, true);
	qhca_cmd_destroy(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	qhca_cq_forget(dev, cq);
}
EXPORT_SYMBOL(qhca_cq_destroy);
