// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: create and destroy queue pairs. */
#include "qhca_ib.h"

static_assert(QHCA_QPT_GSI == (int)IB_QPT_GSI && QHCA_QPT_RC == (int)IB_QPT_RC &&
	      QHCA_QPT_UC == (int)IB_QPT_UC && QHCA_QPT_UD == (int)IB_QPT_UD &&
	      QHCA_QPT_RAW == (int)IB_QPT_RAW_PACKET && QHCA_QPT_XRC_INI == (int)IB_QPT_XRC_INI &&
	      QHCA_QPT_XRC_TGT == (int)IB_QPT_XRC_TGT);

#define QHCA_IB_QP_TYPES (BIT(IB_QPT_GSI) | BIT(IB_QPT_RC) | BIT(IB_QPT_UC) | BIT(IB_QPT_UD) | \
			  BIT(IB_QPT_RAW_PACKET) | BIT(IB_QPT_XRC_INI) | BIT(IB_QPT_XRC_TGT))

/* Flags that the device knows for a QP of this type. */
static u32 qhca_ib_create_flags(u32 type)
{
	return type == IB_QPT_UD ? IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;
}

static int qhca_ib_check_type(struct qhca_ib_dev *dev, const struct ib_qp_init_attr *attr,
			      bool kernel)
{
	u32 type = attr->qp_type;
	bool target = type == IB_QPT_XRC_TGT;

	if (type >= BITS_PER_LONG || !(QHCA_IB_QP_TYPES & BIT(type)))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "QP: type %u", type);
	if (attr->create_flags & ~qhca_ib_create_flags(type))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "QP: flags %#x", attr->create_flags);
	/* A kernel WR has no member for the SRQ of the peer. */
	if (type == IB_QPT_XRC_INI && kernel)
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "QP: the kernel cannot send with XRC");
	if (attr->srq && type != IB_QPT_RC && type != IB_QPT_UD && type != IB_QPT_RAW_PACKET)
		return qhca_ib_refuse(dev, -EINVAL, "QP: type %u with an SRQ", type);
	if (!!attr->xrcd != target)
		return qhca_ib_refuse(dev, -EINVAL, "QP: type %u %s an XRC domain", type,
				      target ? "without" : "with");
	if (target)
		return 0;
	if (!attr->send_cq || (!attr->recv_cq && type != IB_QPT_XRC_INI))
		return qhca_ib_refuse(dev, -EINVAL, "QP: no CQ");
	if (type == IB_QPT_GSI && !kernel)
		return qhca_ib_refuse(dev, -EINVAL, "QP: only the kernel can create a GSI QP");
	return 0;
}

/* Ignore the capacities of a queue that the QP does not have. */
static void qhca_ib_trim_cap(struct ib_qp_init_attr *attr)
{
	struct ib_qp_cap *cap = &attr->cap;

	if (attr->qp_type == IB_QPT_XRC_TGT)
		memset(cap, 0, sizeof(*cap));
	if (attr->srq || attr->qp_type == IB_QPT_XRC_INI) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
}

static int qhca_ib_check_cap(struct qhca_ib_dev *dev, const struct ib_qp_cap *cap)
{
	u32 max_wr = dev->ibdev.attrs.max_qp_wr;

	if (cap->max_send_wr > max_wr || cap->max_recv_wr > max_wr ||
	    cap->max_send_sge > dev->limits->max_send_sge ||
	    cap->max_recv_sge > dev->limits->max_recv_sge ||
	    cap->max_inline_data > dev->limits->max_inline)
		return qhca_ib_refuse(dev, -EINVAL, "QP: %u WRs of %u SGEs, %u inline; %u of %u",
				      cap->max_send_wr, cap->max_send_sge, cap->max_inline_data,
				      cap->max_recv_wr, cap->max_recv_sge);
	return 0;
}

static u32 qhca_ib_sq_stride(const struct ib_qp_cap *cap)
{
	u32 payload = max_t(u32, cap->max_send_sge * sizeof(struct qhca_sge),
			    cap->max_inline_data);

	return max_t(u32, QHCA_SQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct qhca_sq_wqe) + payload));
}

static int qhca_ib_qp_get_user(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			       const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	const size_t hash = offsetof(struct qhca_create_qp_req, rx_hash_types);
	struct qhca_create_qp_req req;
	struct qhca_ib_user_wq user;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)) ||
	    memchr_inv(&req.rx_hash_types, 0, sizeof(req) - hash))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "QP: reserved bytes, or a hash");

	user = (struct qhca_ib_user_wq) { req.sq_addr, req.sq_len, req.sq_log_size,
					  req.sq_log_stride };
	ret = qhca_ib_wq_get_user(dev, &qp->sq, cap->max_send_wr, qhca_ib_sq_stride(cap),
				  QHCA_SQ_STRIDE_MAX, 0, &user);
	if (ret)
		return ret;
	user = (struct qhca_ib_user_wq) { req.rq_addr, req.rq_len, req.rq_log_size,
					  req.rq_log_stride };
	return qhca_ib_wq_get_user(dev, &qp->rq, cap->max_recv_wr,
				   qhca_ib_rq_stride(cap->max_recv_sge), QHCA_RQ_STRIDE_MAX,
				   sizeof(struct qhca_rq_dbrec), &user);
}

static int qhca_ib_qp_get_kernel(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
				 const struct ib_qp_cap *cap)
{
	int ret;

	ret = qhca_ib_wq_get_kernel(dev, &qp->sq, cap->max_send_wr, qhca_ib_sq_stride(cap), 0);
	if (ret)
		return ret;
	if (qp->sq.size)
		qp->sq.slot = qhca_db_slot_get(dev->core);
	return qhca_ib_wq_get_kernel(dev, &qp->rq, cap->max_recv_wr,
				     qhca_ib_rq_stride(cap->max_recv_sge),
				     sizeof(struct qhca_rq_dbrec));
}

static void qhca_ib_qp_put(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	qhca_ib_faults_end(qp->faults);
	qhca_ib_wq_put(dev, &qp->rq);
	qhca_db_slot_put(dev->core, qp->sq.slot);
	qhca_ib_wq_put(dev, &qp->sq);
}

static int qhca_ib_qp_init_faults(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return 0;
	qp->faults = qhca_ib_faults_new(dev);
	return qp->faults ? 0 : -ENOMEM;
}

static int qhca_ib_qp_init(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			   const struct ib_qp_init_attr *attr)
{
	mutex_init(&qp->mutex);
	INIT_LIST_HEAD(&qp->joined);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	INIT_KFIFO(qp->events);
	INIT_WORK(&qp->event_work, qhca_ib_qp_event_work);
	qp->state = IB_QPS_RESET;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->sq.slot = QHCA_NO_SLOT;
	qp->sq.max_sge = attr->cap.max_send_sge;
	qp->rq.max_sge = attr->cap.max_recv_sge;
	qp->max_inline = attr->cap.max_inline_data;
	qp->no_own_mcast = attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->xrcd = attr->xrcd ? to_qxrcd(attr->xrcd) : NULL;
	return qhca_ib_qp_init_faults(dev, qp);
}

static u8 qhca_ib_qp_flags(const struct qhca_ib_qp *qp)
{
	u8 flags = qp->sig_all ? QHCA_QP_FLAG_SIGNAL_ALL : 0;

	if (qp->rq.size)
		flags |= QHCA_QP_FLAG_RQ_DBREC;
	if (qp->no_own_mcast)
		flags |= QHCA_QP_FLAG_NO_OWN_MCAST;
	return qhca_ib_is_kernel_qp(qp) ? flags | QHCA_QP_FLAG_RESERVED_LKEY : flags;
}

static __le32 qhca_ib_cqn(struct ib_cq *ibcq)
{
	return cpu_to_le32(ibcq ? to_qcq(ibcq)->core.cqn : 0);
}

static int qhca_ib_qp_create_hw(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
				const struct ib_qp_init_attr *attr, u32 uar)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_CREATE_QP) };
	struct qhca_create_qp in = {
		.sq = qp->sq.mem.buf,
		.rq = qp->rq.mem.buf,
		.pdn = cpu_to_le32(qp->ibqp.pd ? to_qpd(qp->ibqp.pd)->pdn : 0),
		.uar = cpu_to_le32(uar),
		.send_cqn = qhca_ib_cqn(attr->send_cq),
		.recv_cqn = qhca_ib_cqn(attr->recv_cq),
		.type = attr->qp_type,
		.flags = qhca_ib_qp_flags(qp),
		.sq_log_size = qp->sq.size ? ilog2(qp->sq.size) : 0,
		.sq_log_stride = qp->sq.log_stride,
		.rq_log_size = qp->rq.size ? ilog2(qp->rq.size) : 0,
		.rq_log_stride = qp->rq.log_stride,
		.max_send_sge = cpu_to_le32(qp->sq.max_sge),
		.max_recv_sge = cpu_to_le32(qp->rq.max_sge),
		.max_inline = cpu_to_le32(qp->max_inline),
		.srqn = cpu_to_le32(attr->srq ? to_qsrq(attr->srq)->srqn : 0),
		.xrcdn = cpu_to_le32(qp->xrcd ? qp->xrcd->xrcdn : 0),
	};
	struct qhca_mbox mbox = { .in = &in, .in_len = sizeof(in) };

	return qhca_cmd_exec(dev->core, &cmd, &mbox, &qp->qpn);
}

static void qhca_ib_qp_unlink(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	if (qhca_ib_is_kernel_qp(qp)) {
		/* Clean while pollers find the QP: later they could not attribute its CQEs. */
		qhca_ib_qp_clean(qp);
		if (qp->xrcd) {
			xa_cmpxchg_irq(&dev->targets, qp->qpn, qp, NULL, 0);
		} else {
			xa_cmpxchg(&to_qcq(qp->ibqp.send_cq)->qps, qp->qpn, qp, NULL, 0);
			xa_cmpxchg(&to_qcq(qp->ibqp.recv_cq)->qps, qp->qpn, qp, NULL, 0);
		}
		/* This takes the locks of the CQs once more: then no poller uses the QP. */
		qhca_ib_qp_clean(qp);
		qhca_eqs_synchronize(dev->core);
	}
	xa_cmpxchg_irq(&dev->qps, qp->qpn, qp, NULL, 0);
	cancel_work_sync(&qp->event_work);
	qhca_ib_faults_end(qp->faults);
	qp->faults = NULL;
}

/*
 * The number may belong to a QP that the device has destroyed, but that is not yet erased here. It
 * must not belong to a live QP, whose completions could not be found any more.
 */
static int qhca_ib_qp_store(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	int ret = xa_reserve_irq(&dev->qps, qp->qpn, GFP_KERNEL);
	struct qhca_ib_qp *old;

	if (ret)
		return ret;
	xa_lock_irq(&dev->qps);
	old = xa_load(&dev->qps, qp->qpn);
	if (!old || READ_ONCE(old->dying))
		ret = xa_err(__xa_store(&dev->qps, qp->qpn, qp, GFP_ATOMIC));
	else
		ret = -EIO;
	xa_unlock_irq(&dev->qps);
	if (ret == -EIO)
		qhca_health_die(dev->core, "two QPs have the same number");
	return ret;
}

/* From here on events and CQEs find the QP by its number. */
static int qhca_ib_qp_link(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	int ret;

	qhca_ib_faults_start(qp->faults, qp->qpn);
	ret = qhca_ib_qp_store(dev, qp);
	if (ret || !qhca_ib_is_kernel_qp(qp))
		return ret;
	if (qp->xrcd) {
		ret = xa_err(xa_store_irq(&dev->targets, qp->qpn, qp, GFP_KERNEL));
	} else {
		ret = xa_err(xa_store(&to_qcq(qp->ibqp.send_cq)->qps, qp->qpn, qp, GFP_KERNEL));
		if (!ret)
			ret = xa_err(xa_store(&to_qcq(qp->ibqp.recv_cq)->qps, qp->qpn, qp,
					      GFP_KERNEL));
	}
	if (ret) {
		qhca_ib_qp_unlink(dev, qp);
		return ret;
	}
	if (!qp->xrcd) {
		qhca_ib_cq_joined(to_qcq(qp->ibqp.send_cq));
		qhca_ib_cq_joined(to_qcq(qp->ibqp.recv_cq));
	}
	return 0;
}

static int qhca_ib_qp_respond(struct qhca_ib_qp *qp, struct ib_qp_init_attr *attr,
			      struct ib_udata *udata)
{
	struct qhca_create_qp_resp resp = { .qpn = qp->qpn };

	/* The size of the ring is the true limit; other capacities stay as requested. */
	attr->cap.max_send_wr = qp->sq.size;
	attr->cap.max_recv_wr = qp->rq.size;
	qp->ibqp.qp_num = attr->qp_type == IB_QPT_GSI ? 1 : qp->qpn;
	return udata ? ib_respond_udata(udata, resp) : 0;
}

static int qhca_ib_qp_check_attrs(struct qhca_ib_dev *dev, struct ib_udata *udata)
{
#ifdef QHCA_HAVE_BUF_UMEM
	static const u16 ids[] = {
		UVERBS_ATTR_CREATE_QP_BUF_UMEM, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM,
		UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM,
	};

	if (udata)
		return qhca_ib_refuse_attrs(dev, rdma_udata_to_uverbs_attr_bundle(udata), ids,
					    ARRAY_SIZE(ids));
#endif
	return 0;
}

static int qhca_ib_do_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
				struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	int ret;

	ret = qhca_ib_qp_check_attrs(dev, udata);
	if (ret)
		return ret;
	if (attr->rwq_ind_tbl)
		return qhca_ib_rss_create(dev, qp, attr, udata);
	qhca_ib_trim_cap(attr);
	ret = qhca_ib_check_type(dev, attr, !udata);
	if (!ret)
		ret = qhca_ib_check_cap(dev, &attr->cap);
	if (ret)
		return ret;

	ret = qhca_ib_qp_init(dev, qp, attr);
	if (!ret)
		ret = udata ? qhca_ib_qp_get_user(dev, qp, &attr->cap, udata) :
			      qhca_ib_qp_get_kernel(dev, qp, &attr->cap);
	if (!ret)
		ret = qhca_ib_qp_create_hw(dev, qp, attr, qhca_ib_udata_uar(udata));
	qhca_ib_qmem_free_table(&qp->sq.mem);
	qhca_ib_qmem_free_table(&qp->rq.mem);
	if (ret)
		goto err_mem;
	ret = qhca_ib_qp_link(dev, qp);
	if (ret)
		goto err_hw;
	ret = qhca_ib_qp_respond(qp, attr, udata);
	if (ret)
		goto err_link;
	return 0;

err_link:
	qhca_ib_qp_unlink(dev, qp);
err_hw:
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_QP, qp->qpn);
err_mem:
	qhca_ib_qp_put(dev, qp);
	return ret;
}

/**
 * qhca_ib_create_qp - create_qp verb
 * @ibqp: the QP
 * @attr: what the consumer wants; the capacities become what it gets
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		      struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibqp->device), QHCA_IB_CREATE_QP_ERR,
				 qhca_ib_do_create_qp(ibqp, attr, udata));
}

#ifndef QHCA_HAVE_MAD_PORT_CLOSE
/*
 * Work around a bug of ib_mad that no kernel has fixed so far: ib_mad_port_close() destroys its QP
 * first, and stops the worker of its CQ afterwards. If the worker is handling a MAD by then, it
 * posts another receive to the QP, which would be freed.
 */
static void qhca_ib_wait_for_mads(const struct ib_qp *gsi)
{
	struct ib_cq *cq = gsi->recv_cq;

	if (cq->poll_ctx == IB_POLL_WORKQUEUE || cq->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)
		flush_work(&cq->work);
}
#endif

/**
 * qhca_ib_destroy_qp - destroy_qp verb
 * @ibqp: the QP
 * @udata: the user's, or NULL
 *
 * Return: 0.
 */
int qhca_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);

	if (qp->spread) {
		qhca_ib_rss_destroy(dev, qp);
		return 0;
	}
	WRITE_ONCE(qp->dying, true);
	qhca_ib_faults_hold(qp->faults);
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_QP, qp->qpn);
	qhca_ib_qp_unlink(dev, qp);
#ifndef QHCA_HAVE_MAD_PORT_CLOSE
	if (ibqp->qp_type == IB_QPT_GSI)
		qhca_ib_wait_for_mads(ibqp);
#endif
	qhca_ib_qp_put(dev, qp);
	return 0;
}

/**
 * qhca_ib_qp_clean - empty the queues of a kernel QP and remove its CQEs
 * @qp: the QP, which the device has stopped using
 */
void qhca_ib_qp_clean(struct qhca_ib_qp *qp)
{
	struct ib_cq *send_cq = qp->ibqp.send_cq, *recv_cq = qp->ibqp.recv_cq;

	if (qp->xrcd) {
		qhca_ib_clean_target(to_qdev(qp->ibqp.device), qp);
		return;
	}
	qhca_ib_cq_clean(to_qcq(send_cq), qp, NULL);
	if (recv_cq != send_cq)
		qhca_ib_cq_clean(to_qcq(recv_cq), qp, NULL);
}
