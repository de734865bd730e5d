// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: create and destroy shared receive queues, and deliver their events. */
#include "qhca_ib.h"

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
 * qhca_ib_srq_event - store an event of an SRQ and schedule its delivery
 * @dev: the HCA
 * @type: QHCA_EVENT_SRQ_LIMIT_REACHED or QHCA_EVENT_SRQ_ERR
 * @srqn: the SRQN that the device reported
 *
 * Context: any.
 */
void qhca_ib_srq_event(struct qhca_ib_dev *dev, u8 type, u32 srqn)
{
	struct qhca_ib_srq *srq;
	unsigned long flags;

	/* The lock keeps the SRQ alive: qhca_ib_srq_unlink() erases it, then cancels the work. */
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
	xa_cmpxchg_irq(&dev->srqs, srq->srqn, srq, NULL, 0);
	cancel_work_sync(&srq->event_work);
	if (srq->slots && srq->cq) {
		qhca_ib_cq_clean(srq->cq, NULL, srq);
		/* Erase it only now: the CQEs removed before name it. */
		xa_cmpxchg(&srq->cq->srqs, srq->srqn, srq, NULL, 0);
		qhca_eqs_synchronize(dev->core);
	}
}

/* ---- life ---- */

/**
 * qhca_ib_srq_check_size - whether a ring is large enough, and not too large
 * @dev: the HCA
 * @max_wr: WRs that the consumer wants
 * @log_size: log2 of the WQEs of the ring
 *
 * Return: 0 or -EINVAL.
 */
int qhca_ib_srq_check_size(struct qhca_ib_dev *dev, u32 max_wr, u32 log_size)
{
	if (max_wr && log_size <= dev->limits->max_srq_wr_log && BIT(log_size) >= max_wr)
		return 0;
	return qhca_ib_refuse(dev, -EINVAL, "SRQ: ring of 2^%u for %u WRs", log_size, max_wr);
}

static int qhca_ib_srq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct qhca_create_srq_req req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "SRQ: reserved bytes of the request");
	ret = qhca_ib_srq_check_size(dev, attr->max_wr, req.log_size);
	if (ret)
		return ret;
	if (req.log_stride > ilog2(QHCA_RQ_STRIDE_MAX) ||
	    BIT(req.log_stride) < qhca_ib_rq_stride(attr->max_sge))
		return qhca_ib_refuse(dev, -EINVAL, "SRQ: WQEs of 2^%u for %u SGEs",
				      req.log_stride, attr->max_sge);
	srq->size = BIT(req.log_size);
	srq->log_stride = req.log_stride;
	return qhca_ib_qmem_get_user(dev, &srq->mem, req.buf_addr, req.buf_len,
				     qhca_ib_rq_bytes(srq->size, srq->log_stride));
}

/**
 * qhca_ib_srq_add_slots - let a kernel SRQ use more of its slots
 * @srq: the SRQ; the caller serialises posting
 * @num: the number of slots from now on; there is memory for them
 */
void qhca_ib_srq_add_slots(struct qhca_ib_srq *srq, u32 num)
{
	while (num > srq->num_slots) {
		srq->slots[srq->num_slots].next = srq->free;
		srq->free = srq->num_slots++;
	}
}

static int qhca_ib_srq_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
				  const struct ib_srq_attr *attr)
{
	srq->size = roundup_pow_of_two(attr->max_wr);
	srq->room = srq->size;
	srq->log_stride = ilog2(qhca_ib_rq_stride(attr->max_sge));
	srq->free = QHCA_IB_SLOT_END;
	srq->slots = kvcalloc(srq->size, sizeof(*srq->slots), GFP_KERNEL);
	if (!srq->slots)
		return -ENOMEM;
	qhca_ib_srq_add_slots(srq, srq->size);
	return qhca_ib_qmem_get_kernel(dev, &srq->mem,
				       qhca_ib_rq_bytes(srq->size, srq->log_stride));
}

static void qhca_ib_srq_put(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	qhca_ib_qmem_put(dev, &srq->mem);
	kvfree(srq->slots);
}

static int qhca_ib_srq_create_hw(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq, u32 uar,
				 struct ib_xrcd *xrcd)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_SRQ),
		.create_srq.buf = srq->mem.buf,
		.create_srq.pdn = cpu_to_le32(to_qpd(srq->ibsrq.pd)->pdn),
		.create_srq.uar = cpu_to_le32(uar),
		.create_srq.max_sge = cpu_to_le32(srq->max_sge),
		.create_srq.log_size = ilog2(srq->size),
		.create_srq.log_stride = srq->log_stride,
		.create_srq.flags = QHCA_SRQ_DBREC | (srq->slots ? QHCA_SRQ_RESERVED_LKEY : 0),
	};

	if (xrcd) {
		cmd.create_srq.xrcdn = cpu_to_le32(to_qxrcd(xrcd)->xrcdn);
		cmd.create_srq.cqn = cpu_to_le32(srq->cq->core.cqn);
	}
	return qhca_cmd_exec(dev->core, &cmd, NULL, &srq->srqn);
}

static void qhca_ib_srq_init(struct qhca_ib_srq *srq, const struct ib_srq_init_attr *init_attr)
{
	mutex_init(&srq->mutex);
	spin_lock_init(&srq->lock);
	INIT_KFIFO(srq->events);
	INIT_WORK(&srq->event_work, qhca_ib_srq_event_work);
	srq->max_sge = init_attr->attr.max_sge;
	if (init_attr->srq_type == IB_SRQT_XRC)
		srq->cq = to_qcq(init_attr->ext.cq);
}

static int qhca_ib_srq_publish(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			       struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct qhca_create_srq_resp resp = { .srqn = srq->srqn };
	int ret;

	/* This may replace an SRQ that the device has destroyed, but that is not erased yet. */
	ret = xa_err(xa_store_irq(&dev->srqs, srq->srqn, srq, GFP_KERNEL));
	if (!ret && srq->slots && srq->cq)
		ret = xa_err(xa_store(&srq->cq->srqs, srq->srqn, srq, GFP_KERNEL));
	if (ret)
		goto err_unlink;
	if (srq->slots && srq->cq)
		qhca_ib_cq_joined(srq->cq);
	attr->max_wr = srq->size;
	if (srq->cq)
		srq->ibsrq.ext.xrc.srq_num = srq->srqn;
	ret = udata ? ib_respond_udata(udata, resp) : 0;
	if (ret)
		goto err_unlink;
	return 0;

err_unlink:
	qhca_ib_srq_unlink(dev, srq);
	return ret;
}

/* An XRC SRQ needs a CQ and a domain. */
static int qhca_ib_srq_check_type(struct qhca_ib_dev *dev, const struct ib_srq_init_attr *attr)
{
	if (attr->srq_type == IB_SRQT_BASIC)
		return 0;
	if (attr->srq_type != IB_SRQT_XRC)
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "SRQ: type %u", attr->srq_type);
	if (!attr->ext.cq || !attr->ext.xrc.xrcd)
		return qhca_ib_refuse(dev, -EINVAL, "SRQ: no CQ or no XRC domain");
	return 0;
}

static int qhca_ib_srq_check_attrs(struct qhca_ib_dev *dev, struct ib_udata *udata)
{
#ifdef QHCA_HAVE_SRQ_UMEM
	static const u16 id = UVERBS_ATTR_CREATE_SRQ_BUF_UMEM;

	if (udata)
		return qhca_ib_refuse_attrs(dev, rdma_udata_to_uverbs_attr_bundle(udata), &id, 1);
#endif
	return 0;
}

static int qhca_ib_do_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init_attr,
				 struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct ib_srq_attr *attr = &init_attr->attr;
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int ret;

	ret = qhca_ib_srq_check_type(dev, init_attr);
	if (!ret)
		ret = qhca_ib_srq_check_attrs(dev, udata);
	if (ret)
		return ret;
	if (!attr->max_wr || attr->max_wr > BIT(dev->limits->max_srq_wr_log) ||
	    attr->max_sge > dev->limits->max_srq_sge)
		return qhca_ib_refuse(dev, -EINVAL, "SRQ: %u WRs of %u SGEs", attr->max_wr,
				      attr->max_sge);

	qhca_ib_srq_init(srq, init_attr);
	ret = udata ? qhca_ib_srq_get_user(dev, srq, attr, udata) :
		      qhca_ib_srq_get_kernel(dev, srq, attr);
	if (!ret)
		ret = qhca_ib_srq_create_hw(dev, srq, qhca_ib_udata_uar(udata),
					    srq->cq ? init_attr->ext.xrc.xrcd : NULL);
	qhca_ib_qmem_free_table(&srq->mem);
	if (ret)
		goto err_mem;
	ret = qhca_ib_srq_publish(dev, srq, attr, udata);
	if (ret)
		goto err_hw;
	return 0;

err_hw:
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_SRQ, srq->srqn);
err_mem:
	qhca_ib_srq_put(dev, srq);
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
	return qhca_ib_count_err(to_qdev(ibsrq->device), QHCA_IB_CREATE_SRQ_ERR,
				 qhca_ib_do_create_srq(ibsrq, init_attr, udata));
}

/**
 * qhca_ib_destroy_srq - destroy_srq verb
 * @ibsrq: the SRQ
 * @udata: the user's, or NULL
 *
 * Return: 0.
 */
int qhca_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);

	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_SRQ, srq->srqn);
	qhca_ib_srq_unlink(dev, srq);
	qhca_ib_srq_put(dev, srq);
	return 0;
}
