// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: shared receive queues.
 *
 * WRs of an SRQ complete in any order, so what the device echoes of a kernel WR
 * is a slot of a table that holds its wr_id. The device is not believed: the slot
 * has to be one that is out.
 *
 * A dead device completes no WR of an SRQ: nobody knows which of them a QP had
 * taken. They are the consumer's again when the SRQ is destroyed.
 */
#include "qhca_ib.h"

#define QHCA_IB_SLOT_END	U32_MAX
#define QHCA_IB_SLOT_OUT	(U32_MAX - 1)

/* ---- events ---- */

static void qhca_ib_srq_event_work(struct work_struct *work)
{
	struct qhca_ib_srq *srq = container_of(work, struct qhca_ib_srq, event_work);
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
	};
	u8 type;

	while (kfifo_get(&srq->events, &type)) {
		event.event = type == QHCA_EVENT_SRQ_ERR ? IB_EVENT_SRQ_ERR :
							   IB_EVENT_SRQ_LIMIT_REACHED;
		if (srq->ibsrq.event_handler)
			srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	}
}

/**
 * qhca_ib_srq_event - an event of an SRQ came
 * @dev: the HCA
 * @type: QHCA_EVENT_SRQ_LIMIT_REACHED or QHCA_EVENT_SRQ_ERR
 * @srqn: as the device says
 *
 * Context: hard IRQ.
 */
void qhca_ib_srq_event(struct qhca_ib_dev *dev, u8 type, u32 srqn)
{
	struct qhca_ib_srq *srq;
	unsigned long flags;

	/* The lock keeps the SRQ; whoever takes it out cancels the work next. */
	xa_lock_irqsave(&dev->srqs, flags);
	srq = xa_load(&dev->srqs, srqn);
	if (srq) {
		if (!kfifo_put(&srq->events, type))
			ibdev_err_ratelimited(&dev->ibdev, "SRQ %#x: too many events\n", srqn);
		queue_work(dev->wq, &srq->event_work);
	}
	xa_unlock_irqrestore(&dev->srqs, flags);
}

static void qhca_ib_srq_unlink(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	xa_lock_irq(&dev->srqs);
	__xa_cmpxchg(&dev->srqs, srq->srqn, srq, NULL, 0);
	xa_unlock_irq(&dev->srqs);
	cancel_work_sync(&srq->event_work);
}

/* ---- life ---- */

static u32 qhca_ib_srq_stride(u32 max_sge)
{
	return max_t(u32, QHCA_RQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct qhca_rq_wqe) +
					max_sge * sizeof(struct qhca_sge)));
}

static bool qhca_ib_srq_size_ok(struct qhca_ib_dev *dev, u32 max_wr, u32 log_size)
{
	return max_wr && log_size <= dev->limits->max_srq_wr_log && BIT(log_size) >= max_wr;
}

static int qhca_ib_srq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct qhca_create_srq_req req;
	int ret;

	ret = qhca_ib_udata_check(udata, sizeof(req), sizeof(struct qhca_create_srq_resp));
	if (!ret)
		ret = ib_copy_from_udata(&req, udata, sizeof(req));
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	if (!qhca_ib_srq_size_ok(dev, attr->max_wr, req.log_size) ||
	    req.log_stride > ilog2(QHCA_RQ_STRIDE_MAX) ||
	    BIT(req.log_stride) < qhca_ib_srq_stride(attr->max_sge))
		return -EINVAL;
	srq->size = BIT(req.log_size);
	srq->log_stride = req.log_stride;
	return qhca_ib_qmem_get_user(dev, &srq->mem, req.buf_addr, req.buf_len,
				     (u64)srq->size << srq->log_stride);
}

static int qhca_ib_srq_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				  const struct ib_srq_attr *attr)
{
	u32 i;

	srq->size = roundup_pow_of_two(attr->max_wr);
	srq->log_stride = ilog2(qhca_ib_srq_stride(attr->max_sge));
	srq->slots = kvcalloc(srq->size, sizeof(*srq->slots), GFP_KERNEL);
	if (!srq->slots)
		return -ENOMEM;
	for (i = 0; i < srq->size; i++)
		srq->slots[i].next = i + 1 < srq->size ? i + 1 : QHCA_IB_SLOT_END;
	return qhca_ib_qmem_get_kernel(dev, &srq->mem, (size_t)srq->size << srq->log_stride);
}

static void qhca_ib_srq_put(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	qhca_ib_qmem_put(dev, &srq->mem);
	kvfree(srq->slots);
}

static int qhca_ib_srq_create_hw(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq, u32 uar)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_SRQ),
		.create_srq.buf = srq->mem.buf,
		.create_srq.pdn = cpu_to_le32(to_qpd(srq->ibsrq.pd)->pdn),
		.create_srq.uar = cpu_to_le32(uar),
		.create_srq.max_sge = cpu_to_le32(srq->max_sge),
		.create_srq.log_size = ilog2(srq->size),
		.create_srq.log_stride = srq->log_stride,
		.create_srq.flags = srq->slots ? QHCA_SRQ_RESERVED_LKEY : 0,
	};

	return qhca_cmd_exec(dev->core, &cmd, NULL, &srq->srqn);
}

static void qhca_ib_srq_init(struct qhca_ib_srq *srq, const struct ib_srq_attr *attr)
{
	mutex_init(&srq->mutex);
	spin_lock_init(&srq->lock);
	INIT_KFIFO(srq->events);
	INIT_WORK(&srq->event_work, qhca_ib_srq_event_work);
	srq->max_sge = attr->max_sge;
}

static int qhca_ib_srq_publish(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			       struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct qhca_create_srq_resp resp = { .srqn = srq->srqn };
	int ret;

	/* The number may be that of an SRQ not yet taken out: see qhca_ib_qp_link() */
	ret = xa_err(xa_store_irq(&dev->srqs, srq->srqn, srq, GFP_KERNEL));
	if (ret)
		return ret;
	attr->max_wr = srq->size;
	ret = udata ? ib_copy_to_udata(udata, &resp, sizeof(resp)) : 0;
	if (ret)
		qhca_ib_srq_unlink(dev, srq);
	return ret;
}

/**
 * qhca_ib_create_srq - create_srq verb
 * @ibsrq: the SRQ
 * @init_attr: what the consumer wants; the capacities become what it gets
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init_attr,
		       struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct ib_srq_attr *attr = &init_attr->attr;
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int ret;

	if (init_attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > BIT(dev->limits->max_srq_wr_log) ||
	    attr->max_sge > dev->limits->max_srq_sge)
		return -EINVAL;

	qhca_ib_srq_init(srq, attr);
	ret = udata ? qhca_ib_srq_get_user(dev, srq, attr, udata) :
		      qhca_ib_srq_get_kernel(dev, srq, attr);
	if (!ret)
		ret = qhca_ib_srq_create_hw(dev, srq, qhca_ib_udata_uar(udata));
	qhca_ib_qmem_told(&srq->mem);
	if (ret)
		goto err_mem;
	ret = qhca_ib_srq_publish(dev, srq, attr, udata);
	if (ret)
		goto err_hw;
	return 0;

err_hw:
	qhca_cmd_obj(dev->core, QHCA_CMD_DESTROY_SRQ, srq->srqn);
err_mem:
	qhca_ib_srq_put(dev, srq);
	return ret;
}

/**
 * qhca_ib_destroy_srq - destroy_srq verb
 * @ibsrq: the SRQ
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno, and the SRQ lives on.
 */
int qhca_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int ret;

	ret = qhca_cmd_obj(dev->core, QHCA_CMD_DESTROY_SRQ, srq->srqn);
	if (ret)
		return ret;
	qhca_ib_srq_unlink(dev, srq);
	qhca_ib_srq_put(dev, srq);
	return 0;
}

/* ---- attributes ---- */

static int qhca_ib_srq_set_limit(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq, u32 limit)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_SRQ),
		.modify_srq.srqn = cpu_to_le32(srq->srqn),
		.modify_srq.limit = cpu_to_le32(limit),
	};

	return qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

/* Moves the SRQ over to @mem, which gets the old memory; or changes nothing. */
static int qhca_ib_srq_move(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			    struct qhca_ib_qmem *mem, u8 log_size,
			    const struct ib_srq_attr *attr, int mask)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_RESIZE_SRQ),
		.create_srq.buf = mem->buf,
		.create_srq.srqn = cpu_to_le32(srq->srqn),
		.create_srq.log_size = log_size,
	};
	int ret;

	if (mask & IB_SRQ_LIMIT) {
		cmd.create_srq.flags = QHCA_SRQ_LIMIT;
		cmd.create_srq.limit = cpu_to_le32(attr->srq_limit);
	}
	ret = qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
	if (ret)
		return ret;
	swap(srq->mem, *mem);
	srq->size = BIT(log_size);
	return 0;
}

static int qhca_ib_srq_resize(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			      const struct ib_srq_attr *attr, int mask, struct ib_udata *udata)
{
	struct qhca_ib_qmem mem = {};
	struct qhca_modify_srq_req req;
	struct qhca_table table;
	int ret;

	/* Kernel SRQs keep their size. */
	if (!udata || !qhca_ib_has(dev, QHCA_CAP_RESIZE_SRQ))
		return -EOPNOTSUPP;
	ret = qhca_ib_udata_check(udata, sizeof(req), 0);
	if (!ret)
		ret = ib_copy_from_udata(&req, udata, sizeof(req));
	if (ret)
		return ret;
	if (!qhca_ib_srq_size_ok(dev, attr->max_wr, req.log_size))
		return -EINVAL;

	ret = qhca_ib_qmem_get_user(dev, &mem, req.buf_addr, req.buf_len,
				    (u64)BIT(req.log_size) << srq->log_stride);
	if (ret)
		return ret;
	table = mem.table;
	ret = qhca_ib_srq_move(dev, srq, &mem, req.log_size, attr, mask);
	qhca_table_free(&table);
	qhca_ib_qmem_put(dev, &mem);
	return ret;
}

/**
 * qhca_ib_modify_srq - modify_srq verb
 * @ibsrq: the SRQ
 * @attr: values
 * @mask: IB_SRQ_*: which of them
 * @udata: the user's, or NULL
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int qhca_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (!(mask & IB_SRQ_MAX_WR)) {
		ret = qhca_ib_udata_check(udata, 0, 0);
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
 * qhca_ib_query_srqc - ask the device for the context of an SRQ
 * @srq: the SRQ
 * @srqc: the answer
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

/* ---- work requests of kernel consumers ---- */

/**
 * qhca_ib_srq_complete - the device has completed a WR, or will not any more
 * @srq: the SRQ, of a kernel consumer
 * @slot: what the device echoed
 * @wr_id: filled in
 *
 * Context: any.
 * Return: whether there is such a WR.
 */
bool qhca_ib_srq_complete(struct qhca_ib_srq *srq, u64 slot, u64 *wr_id)
{
	unsigned long flags;
	bool out;

	spin_lock_irqsave(&srq->lock, flags);
	out = slot < srq->size && srq->slots[slot].next == QHCA_IB_SLOT_OUT;
	if (out) {
		*wr_id = srq->slots[slot].wr_id;
		srq->slots[slot].next = srq->free;
		srq->free = slot;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return out;
}

static int qhca_ib_srq_post_one(struct qhca_ib_srq *srq, const struct ib_recv_wr *wr)
{
	u32 slot = srq->free;
	struct qhca_rq_wqe *wqe;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	/* As many slots as WQEs: with a slot free there is a WQE that has been read. */
	if (slot == QHCA_IB_SLOT_END)
		return -ENOMEM;

	srq->free = srq->slots[slot].next;
	srq->slots[slot].next = QHCA_IB_SLOT_OUT;
	srq->slots[slot].wr_id = wr->wr_id;
	wqe = srq->mem.ring.va + ((size_t)(srq->pi++ & (srq->size - 1)) << srq->log_stride);
	qhca_ib_put_recv_wqe(wqe, slot, wr);
	return 0;
}

/**
 * qhca_ib_post_srq_recv - post_srq_recv verb
 * @ibsrq: the SRQ, of a kernel consumer
 * @wr: list of work requests
 * @bad_wr: the first that was not taken, on error
 *
 * Context: any.
 * Return: 0; -EINVAL for what is never right, -ENOMEM if the queue is full.
 */
int qhca_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&srq->lock, flags);
	for (first = srq->pi; !ret && wr; wr = ret ? wr : wr->next)
		ret = qhca_ib_srq_post_one(srq, wr);
	if (srq->pi != first)
		qhca_ring(dev->core, QHCA_DB_SRQ, qhca_db(srq->srqn, srq->pi));
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}
