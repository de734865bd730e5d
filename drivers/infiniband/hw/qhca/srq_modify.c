// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: modify and query shared receive queues. */
#include "qhca_ib.h"

static int qhca_ib_srq_set_limit(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq, u32 limit)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_SRQ),
		.modify_srq.srqn = cpu_to_le32(srq->srqn),
		.modify_srq.limit = cpu_to_le32(limit),
	};

	return qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

/* Make the device move to the ring in @mem. On error it has not. */
static int qhca_ib_srq_move_hw(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			       const struct qhca_ib_qmem *mem, u8 log_size,
			       const struct ib_srq_attr *attr, int mask)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_RESIZE_SRQ),
		.create_srq.buf = mem->buf,
		.create_srq.srqn = cpu_to_le32(srq->srqn),
		.create_srq.log_size = log_size,
	};

	if (mask & IB_SRQ_LIMIT) {
		cmd.create_srq.flags = QHCA_SRQ_LIMIT;
		cmd.create_srq.limit = cpu_to_le32(attr->srq_limit);
	}
	return qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

static int qhca_ib_srq_resize_user(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				   const struct ib_srq_attr *attr, int mask,
				   struct ib_udata *udata)
{
	struct qhca_ib_qmem mem = {};
	struct qhca_modify_srq_req req;
	struct qhca_table table;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, log_size);
	if (!ret)
		ret = qhca_ib_srq_check_size(dev, attr->max_wr, req.log_size);
	if (ret)
		return ret;

	ret = qhca_ib_qmem_get_user(dev, &mem, req.buf_addr, req.buf_len,
				    qhca_ib_rq_bytes(BIT(req.log_size), srq->log_stride));
	if (ret)
		return ret;
	table = mem.table;
	ret = qhca_ib_srq_move_hw(dev, srq, &mem, req.log_size, attr, mask);
	qhca_table_free(&table);
	if (!ret) {
		swap(srq->mem, mem);
		srq->size = BIT(req.log_size);
	}
	/* The old ring, or the new one if the device has not moved to it. */
	qhca_ib_qmem_put(dev, &mem);
	return ret;
}

/* ---- a kernel consumer's, which may post at any time ---- */

/*
 * The device names outstanding WRs by their slots, so slots stay where they are: there can be more
 * of them, but never fewer.
 */
static int qhca_ib_srq_grow_slots(struct qhca_ib_srq *srq, u32 num)
{
	struct qhca_ib_srq_slot *slots;

	if (num <= srq->num_slots)
		return 0;
	slots = kvcalloc(num, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	spin_lock_irq(&srq->lock);
	memcpy(slots, srq->slots, srq->num_slots * sizeof(*slots));
	swap(srq->slots, slots);
	qhca_ib_srq_add_slots(srq, num);
	spin_unlock_irq(&srq->lock);
	kvfree(slots);
	return 0;
}

/*
 * From here on the device hears of no new WR. New WRs stay in the old ring, and must fit both
 * rings. Returns -EINVAL if the outstanding ones do not.
 */
static int qhca_ib_srq_begin_move(struct qhca_ib_srq *srq, u32 size, u32 *pi)
{
	int ret = 0;

	spin_lock_irq(&srq->lock);
	if (srq->out > size) {
		ret = -EINVAL;
	} else {
		srq->room = min(srq->size, size);
		srq->moving = true;
		*pi = srq->pi;
	}
	spin_unlock_irq(&srq->lock);
	return ret;
}

static void *qhca_ib_srq_wqe(const struct qhca_ib_srq *srq, const struct qhca_ib_qmem *mem,
			     u32 size, u32 index)
{
	return mem->ring.va + ((size_t)(index & (size - 1)) << srq->log_stride);
}

/*
 * Use the ring in @mem, of @size, which then holds the old ring. The device has copied the WQEs up
 * to index @pi to it. Called under the lock.
 */
static void qhca_ib_srq_switch(struct qhca_ib_srq *srq, struct qhca_ib_qmem *mem, u32 size, u32 pi)
{
	for (; pi != srq->pi; pi++)
		memcpy(qhca_ib_srq_wqe(srq, mem, size, pi),
		       qhca_ib_srq_wqe(srq, &srq->mem, srq->size, pi), BIT(srq->log_stride));
	swap(srq->mem, *mem);
	srq->size = size;
}

/* Tell the device of the WRs that were posted during the move. Called under the lock. */
static void qhca_ib_srq_end_move(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	srq->room = srq->size;
	srq->moving = false;
	if (qhca_ib_rq_posted(&srq->mem, srq->size, srq->log_stride, srq->pi))
		qhca_ring(dev->core, QHCA_DB_SRQ, qhca_db(srq->srqn, srq->pi));
}

static int qhca_ib_srq_resize_kernel(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				     const struct ib_srq_attr *attr, int mask)
{
	u32 size, pi;
	struct qhca_ib_qmem mem = {};
	struct qhca_rq_dbrec *dbrec;
	struct qhca_table table;
	int ret;

	if (!attr->max_wr || attr->max_wr > BIT(dev->limits->max_srq_wr_log))
		return qhca_ib_refuse(dev, -EINVAL, "SRQ: %u WRs", attr->max_wr);
	size = roundup_pow_of_two(attr->max_wr);
	ret = qhca_ib_srq_grow_slots(srq, size);
	if (!ret)
		ret = qhca_ib_qmem_get_kernel(dev, &mem, qhca_ib_rq_bytes(size, srq->log_stride));
	if (ret)
		return ret;
	table = mem.table;
	ret = qhca_ib_srq_begin_move(srq, size, &pi);
	if (ret)
		goto out;
	dbrec = mem.ring.va + ((size_t)size << srq->log_stride);
	dbrec->pi = cpu_to_le32(pi);
	ret = qhca_ib_srq_move_hw(dev, srq, &mem, ilog2(size), attr, mask);
	spin_lock_irq(&srq->lock);
	if (!ret)
		qhca_ib_srq_switch(srq, &mem, size, pi);
	qhca_ib_srq_end_move(dev, srq);
	spin_unlock_irq(&srq->lock);
out:
	qhca_table_free(&table);
	qhca_ib_qmem_put(dev, &mem);
	return ret;
}

static int qhca_ib_srq_resize(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			      const struct ib_srq_attr *attr, int mask, struct ib_udata *udata)
{
	return udata ? qhca_ib_srq_resize_user(dev, srq, attr, mask, udata) :
		       qhca_ib_srq_resize_kernel(dev, srq, attr, mask);
}

static int qhca_ib_do_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
				 enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return qhca_ib_refuse(dev, -EINVAL, "modify SRQ: mask %#x", mask);
	if (!(mask & IB_SRQ_MAX_WR)) {
		ret = ib_no_udata_io(udata);
		if (ret)
			return ret;
	}

	mutex_lock(&srq->mutex);
	if (mask & IB_SRQ_MAX_WR)
		ret = qhca_ib_srq_resize(dev, srq, attr, mask, udata);
	else if (mask & IB_SRQ_LIMIT)
		ret = qhca_ib_srq_set_limit(dev, srq, attr->srq_limit);
	mutex_unlock(&srq->mutex);
	return ret;
}

/**
 * qhca_ib_modify_srq - modify_srq verb
 * @ibsrq: the SRQ
 * @attr: values
 * @mask: IB_SRQ_*, says which of them to change
 * @udata: the user's, or NULL
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int qhca_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibsrq->device), QHCA_IB_MODIFY_SRQ_ERR,
				 qhca_ib_do_modify_srq(ibsrq, attr, mask, udata));
}

/**
 * qhca_ib_query_srqc - query the context of an SRQ
 * @srq: the SRQ
 * @srqc: filled in
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_srqc(struct qhca_ib_srq *srq, struct qhca_srqc *srqc)
{
	return qhca_ib_query(to_qdev(srq->ibsrq.device), QHCA_CMD_QUERY_SRQ, srq->srqn, srqc,
			     sizeof(*srqc));
}

/**
 * qhca_ib_query_srq - query_srq verb
 * @ibsrq: the SRQ
 * @attr: filled in
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct qhca_srqc srqc;
	int ret;

	mutex_lock(&srq->mutex);
	ret = qhca_ib_query_srqc(srq, &srqc);
	if (!ret) {
		attr->max_wr = srq->size;
		attr->max_sge = srq->max_sge;
		attr->srq_limit = le32_to_cpu(srqc.limit);
	}
	mutex_unlock(&srq->mutex);
	return ret;
}
