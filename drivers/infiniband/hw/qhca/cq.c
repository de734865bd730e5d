// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: create, destroy and modify completion queues, and deliver their events. */
#include "qhca_ib.h"

static u64 qhca_ib_cq_bytes(u8 log_size)
{
	return ((u64)sizeof(struct qhca_cqe) << log_size) + sizeof(struct qhca_cq_dbrec);
}

/*
 * Whether to call the handler of a kernel consumer for the event that arm @arm_sn has raised. A
 * consumer that has not armed is not ready for it. The consumer of a CQ without queues may have
 * stopped listening in order to destroy the CQ, so withhold the event until the next queue is
 * added.
 *
 * The event of an earlier arm is delivered too, but leaves the CQ armed: the event of the last arm
 * is still to come.
 */
static bool qhca_ib_cq_is_due(struct qhca_ib_cq *cq, u32 arm_sn)
{
	bool queues = !xa_empty(&cq->qps) || !xa_empty(&cq->srqs);
	bool armed = cq->armed;

	lockdep_assert_held(&cq->lock);
	if (armed && arm_sn == cq->core.arm_sn) {
		cq->armed = !queues;
		cq->withheld = !queues;
	}
	return armed && queues;
}

static void qhca_ib_cq_comp(struct qhca_cq_core *core, u32 arm_sn)
{
	struct qhca_ib_cq *cq = container_of(core, struct qhca_ib_cq, core);
	unsigned long flags;
	bool due = true;

	if (qhca_ib_is_kernel_cq(cq)) {
		spin_lock_irqsave(&cq->lock, flags);
		due = qhca_ib_cq_is_due(cq, arm_sn);
		spin_unlock_irqrestore(&cq->lock, flags);
	}
	if (!due)
		return;
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static void qhca_ib_cq_error(struct qhca_cq_core *core)
{
	struct qhca_ib_cq *cq = container_of(core, struct qhca_ib_cq, core);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/**
 * qhca_ib_flush_work - the device is dead and quiet: wake kernel consumers
 * @work: flush_work of the HCA
 *
 * The device sends no events for what qhca_ib_poll_cq() flushes from now on. A handler of the CQ
 * may still be running for the last event of the device, and must not run twice at a time. So this
 * calls it through qhca_cq_tell(), as an event of the last arm would.
 */
void qhca_ib_flush_work(struct work_struct *work)
{
	struct qhca_ib_dev *dev = container_of(work, struct qhca_ib_dev, flush_work);
	struct qhca_ib_cq *cq;
	u32 arm_sn;

	local_bh_disable();
	spin_lock_irq(&dev->cqs_lock);
	list_for_each_entry(cq, &dev->kernel_cqs, list) {
		spin_lock(&cq->lock);
		arm_sn = cq->core.arm_sn;
		spin_unlock(&cq->lock);
		qhca_cq_tell(dev->core, &cq->core, arm_sn);
	}
	spin_unlock_irq(&dev->cqs_lock);
	local_bh_enable();
	qhca_ib_flush_last_wqe(dev);
}

/**
 * qhca_ib_cq_joined - deliver the withheld event of a CQ to which a queue was added
 * @cq: the CQ of a kernel consumer, in which the queue can already be found
 *
 * The consumer has armed the CQ, perhaps long ago, but the event came while the CQ had no queue.
 * Arm the CQ again: the device then repeats the event.
 */
void qhca_ib_cq_joined(struct qhca_ib_cq *cq)
{
	spin_lock_irq(&cq->lock);
	if (cq->withheld)
		qhca_ib_cq_arm(cq);
	spin_unlock_irq(&cq->lock);
}

static int qhca_ib_cq_check_size(struct qhca_ib_dev *dev, u32 entries, u32 log_size)
{
	if (log_size <= dev->limits->max_cqe_log && BIT(log_size) >= entries)
		return 0;
	return qhca_ib_refuse(dev, -EINVAL, "CQ: ring of 2^%u for %u CQEs", log_size, entries);
}

static int qhca_ib_cq_check_flags(struct qhca_ib_dev *dev, const struct qhca_create_cq_req *req)
{
	if (!req->reserved && !(req->flags & ~QHCA_CREATE_CQ_DBREC) &&
	    (!req->flags || qhca_ib_has(dev, QHCA_CAP_SHADOW)))
		return 0;
	return qhca_ib_refuse(dev, -EOPNOTSUPP, "CQ: flags %#x of the ABI", req->flags);
}

static int qhca_ib_cq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, u32 entries,
			       struct ib_udata *udata, u8 *flags)
{
	struct qhca_create_cq_req req;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, log_size);
	if (!ret)
		ret = qhca_ib_cq_check_flags(dev, &req);
	if (!ret)
		ret = qhca_ib_cq_check_size(dev, entries, req.log_size);
	if (ret)
		return ret;
	*flags = req.flags & QHCA_CREATE_CQ_DBREC ? QHCA_CQ_DBREC : 0;
	cq->log_size = req.log_size;
	return qhca_ib_qmem_get_user(dev, &cq->mem, req.buf_addr, req.buf_len,
				     qhca_ib_cq_bytes(req.log_size));
}

static int qhca_ib_cq_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, u32 entries)
{
	cq->log_size = order_base_2(entries);
	return qhca_ib_qmem_get_kernel(dev, &cq->mem, qhca_ib_cq_bytes(cq->log_size));
}

static int qhca_ib_cq_create_hw(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, u32 uar, u8 flags)
{
	struct qhca_cmd_create_cq body = {
		.buf = cq->mem.buf,
		.uar = cpu_to_le32(uar),
		.log_size = cq->log_size,
		.flags = flags,
	};

	return qhca_cq_create(dev->core, &cq->core, &body);
}

static void qhca_ib_cq_publish(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	if (!qhca_ib_is_kernel_cq(cq))
		return;
	spin_lock_irq(&dev->cqs_lock);
	list_add_tail(&cq->list, &dev->kernel_cqs);
	spin_unlock_irq(&dev->cqs_lock);
}

static void qhca_ib_cq_hide(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	if (!qhca_ib_is_kernel_cq(cq))
		return;
	spin_lock_irq(&dev->cqs_lock);
	list_del(&cq->list);
	spin_unlock_irq(&dev->cqs_lock);
	xa_destroy(&cq->qps);
	xa_destroy(&cq->srqs);
}

static void qhca_ib_cq_init(struct qhca_ib_cq *cq, u32 vector)
{
	mutex_init(&cq->resize);
	spin_lock_init(&cq->lock);
	xa_init(&cq->qps);
	xa_init(&cq->srqs);
	cq->core.vector = vector;
	cq->core.comp = qhca_ib_cq_comp;
	cq->core.error = qhca_ib_cq_error;
}

static int qhca_ib_cq_respond(struct qhca_ib_cq *cq, struct ib_udata *udata)
{
	struct qhca_create_cq_resp resp = { .cqn = cq->core.cqn };

	return udata ? ib_respond_udata(udata, resp) : 0;
}

static int qhca_ib_cq_check_attrs(struct qhca_ib_dev *dev, const struct uverbs_attr_bundle *attrs)
{
#ifdef QHCA_HAVE_BUF_UMEM
	static const u16 ids[] = {
		UVERBS_ATTR_CREATE_CQ_BUFFER_VA, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH,
		UVERBS_ATTR_CREATE_CQ_BUFFER_FD, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET,
		UVERBS_ATTR_CREATE_CQ_BUF_UMEM,
	};

	return qhca_ib_refuse_attrs(dev, attrs, ids, ARRAY_SIZE(ids));
#else
	return 0;	/* the core does */
#endif
}

/* The network interface shares the device's CQs, so keep to what query_device promises. */
static int qhca_ib_cq_count(struct qhca_ib_dev *dev)
{
	if (atomic_add_unless(&dev->num_cqs, 1, dev->ibdev.attrs.max_cq))
		return 0;
	return qhca_ib_refuse(dev, -ENOMEM, "CQ: there are %d", dev->ibdev.attrs.max_cq);
}

static int qhca_ib_do_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	u8 flags = qhca_cq_flags(dev->core);
	int ret;

	/* CQEs always have a timestamp. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "CQ: flags %#x", attr->flags);
	if (!attr->cqe || attr->cqe > BIT(dev->limits->max_cqe_log) ||
	    attr->comp_vector >= dev->ibdev.num_comp_vectors)
		return qhca_ib_refuse(dev, -EINVAL, "CQ: %u CQEs, completion vector %u", attr->cqe,
				      attr->comp_vector);

	ret = qhca_ib_cq_check_attrs(dev, attrs) ?: qhca_ib_cq_count(dev);
	if (ret)
		return ret;
	qhca_ib_cq_init(cq, attr->comp_vector);
	ret = udata ? qhca_ib_cq_get_user(dev, cq, attr->cqe, udata, &flags) :
		      qhca_ib_cq_get_kernel(dev, cq, attr->cqe);
	if (ret)
		goto err_count;
	ret = qhca_ib_cq_create_hw(dev, cq, qhca_ib_udata_uar(udata), flags);
	qhca_ib_qmem_free_table(&cq->mem);
	if (ret)
		goto err_mem;
	ret = qhca_ib_cq_respond(cq, udata);
	if (ret)
		goto err_hw;
	ibcq->cqe = BIT(cq->log_size);
	qhca_ib_cq_publish(dev, cq);
	return 0;

err_hw:
	qhca_cq_destroy(dev->core, &cq->core);
err_mem:
	qhca_ib_qmem_put(dev, &cq->mem);
err_count:
	atomic_dec(&dev->num_cqs);
	return ret;
}

/**
 * qhca_ib_create_cq - create_cq verb
 * @ibcq: the CQ
 * @attr: what the consumer wants
 * @attrs: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs)
{
	return qhca_ib_count_err(to_qdev(ibcq->device), QHCA_IB_CREATE_CQ_ERR,
				 qhca_ib_do_create_cq(ibcq, attr, attrs));
}

/**
 * qhca_ib_destroy_cq - destroy_cq verb
 * @ibcq: the CQ
 * @udata: the user's, or NULL
 *
 * Return: 0.
 */
int qhca_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);

	qhca_cq_destroy(dev->core, &cq->core);
	qhca_ib_cq_hide(dev, cq);
	qhca_ib_qmem_put(dev, &cq->mem);
	atomic_dec(&dev->num_cqs);
	return 0;
}

/* Move the CQ to @mem, which then holds the old memory; on error nothing changes. */
static int qhca_ib_cq_move(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq,
			   struct qhca_ib_qmem *mem, u8 log_size)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_RESIZE_CQ),
		.create_cq.buf = mem->buf,
		.create_cq.cqn = cpu_to_le32(cq->core.cqn),
		.create_cq.log_size = log_size,
	};
	int ret;

	mutex_lock(&cq->resize);
	ret = qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
	if (!ret) {
		swap(cq->mem, *mem);
		cq->log_size = log_size;
		cq->ibcq.cqe = BIT(log_size);
	}
	mutex_unlock(&cq->resize);
	return ret;
}

static int qhca_ib_do_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_qmem mem = {};
	struct qhca_resize_cq_req req;
	struct qhca_table table;
	int ret;

	if (!udata)
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "CQ: kernel CQs cannot be resized");
	if (!entries)
		return qhca_ib_refuse(dev, -EINVAL, "CQ: resize to 0 CQEs");
	ret = ib_copy_validate_udata_in(udata, req, log_size);
	if (!ret)
		ret = qhca_ib_cq_check_size(dev, entries, req.log_size);
	if (ret)
		return ret;

	ret = qhca_ib_qmem_get_user(dev, &mem, req.buf_addr, req.buf_len,
				    qhca_ib_cq_bytes(req.log_size));
	if (ret)
		return ret;
	table = mem.table;
	ret = qhca_ib_cq_move(dev, to_qcq(ibcq), &mem, req.log_size);
	qhca_table_free(&table);
	qhca_ib_qmem_put(dev, &mem);
	return ret;
}

/**
 * qhca_ib_resize_cq - resize_user_cq verb
 * @ibcq: the CQ
 * @entries: how many CQEs it is to hold
 * @udata: the user's; kernel CQs keep their size
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int qhca_ib_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibcq->device), QHCA_IB_MODIFY_CQ_ERR,
				 qhca_ib_do_resize_cq(ibcq, entries, udata));
}

/**
 * qhca_ib_modify_cq - modify_cq verb: event moderation
 * @ibcq: the CQ
 * @count: send an event after that many CQEs
 * @period: or after that many microseconds
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_CQ),
		.modify_cq.cqn = cpu_to_le32(to_qcq(ibcq)->core.cqn),
		.modify_cq.count = cpu_to_le32(count),
		.modify_cq.period = cpu_to_le32(period),
	};

	return qhca_ib_count_err(dev, QHCA_IB_MODIFY_CQ_ERR,
				 qhca_cmd_exec(dev->core, &cmd, NULL, NULL));
}
