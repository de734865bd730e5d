// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: table of all CQs by number, to deliver their events.
 *
 * A handler that has found a CQ holds the lock of its event queue, and qhca_cq_forget() waits for
 * all handlers before the CQ is freed. That costs much less than a grace period.
 */
#include "qhca.h"

/*
 * The number may belong to a CQ that the device has destroyed, but that is not yet erased here. It
 * must not belong to a live CQ.
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
	cq->arm_sn = 0;
	cq->arm_any_sn = 0;
	cq->arm_in_record = body->flags & QHCA_CQ_DBREC;
	cmd.create_cq.eqn = cpu_to_le32(qhca_comp_eqn(dev, cq->vector));
	ret = qhca_cmd_exec(dev, &cmd, NULL, &cq->cqn);
	if (ret)
		return ret;

	ret = qhca_cq_remember(dev, cq);
	if (ret)
		qhca_cmd_destroy(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	return ret;
}
EXPORT_SYMBOL(qhca_cq_create);

u8 qhca_cq_flags(const struct qhca_dev *dev)
{
	return dev->limits.caps & QHCA_CAP_SHADOW ? QHCA_CQ_DBREC : 0;
}
EXPORT_SYMBOL(qhca_cq_flags);

void qhca_cq_arm(struct qhca_dev *dev, struct qhca_cq_core *cq, struct qhca_cq_dbrec *dbrec,
		 bool solicited)
{
	u32 sn = ++cq->arm_sn;

	if (!solicited)
		cq->arm_any_sn = sn;
	if (cq->arm_in_record)
		WRITE_ONCE(dbrec->arm,
			   cpu_to_le64(FIELD_PREP(QHCA_CQ_ARM_SN, sn) |
				       FIELD_PREP(QHCA_CQ_ARM_ANY_SN, cq->arm_any_sn)));
	else
		qhca_ring(dev, QHCA_DB_CQ_ARM,
			  qhca_db(cq->cqn, sn) | (solicited ? QHCA_DB_SOLICITED : 0));
	/* The arm is in force before the caller polls. */
	mb();
}
EXPORT_SYMBOL(qhca_cq_arm);

/* Erase a CQ that the device has destroyed, and wait for handlers that have found it. */
static void qhca_cq_forget(struct qhca_dev *dev, struct qhca_cq_core *cq)
{
	xa_cmpxchg(&dev->cqs, cq->cqn, cq, NULL, 0);
	qhca_eqs_synchronize(dev);
}

void qhca_cq_destroy(struct qhca_dev *dev, struct qhca_cq_core *cq)
{
	WRITE_ONCE(cq->dying, true);
	qhca_cmd_destroy(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	qhca_cq_forget(dev, cq);
}
EXPORT_SYMBOL(qhca_cq_destroy);
