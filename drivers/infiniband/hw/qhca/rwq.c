// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: receive work queues, tables of them, and the QPs that spread frames over such a
 * table. For the device a WQ is a QP of type RAW with nothing but a receive queue, and a QP with a
 * table is a spread.
 */
#include "qhca_ib.h"

/* ---- events ---- */

static void qhca_ib_rwq_event_work(struct work_struct *work)
{
	struct qhca_ib_rwq *rwq = container_of(work, struct qhca_ib_rwq, event_work);
	struct ib_event event = {
		.device = rwq->ibwq.device,
		.element.wq = &rwq->ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	if (rwq->ibwq.event_handler)
		rwq->ibwq.event_handler(&event, rwq->ibwq.wq_context);
}

/**
 * qhca_ib_rwq_event - deliver an event, or serve a page fault, if the number belongs to a WQ
 * @dev: the HCA
 * @type: QHCA_EVENT_QP_FATAL or QHCA_EVENT_PAGE_FAULT
 * @qpn: number of the QP that the device reported
 *
 * Context: any.
 */
void qhca_ib_rwq_event(struct qhca_ib_dev *dev, u8 type, u32 qpn)
{
	struct qhca_ib_rwq *rwq;
	unsigned long flags;

	/* The lock keeps the WQ alive: it is erased, then the work is cancelled. */
	xa_lock_irqsave(&dev->rwqs, flags);
	rwq = xa_load(&dev->rwqs, qpn);
	if (rwq && type == QHCA_EVENT_PAGE_FAULT)
		qhca_ib_faults_event(rwq->faults);
	else if (rwq)
		queue_work(dev->wq, &rwq->event_work);
	xa_unlock_irqrestore(&dev->rwqs, flags);
}

/* ---- WQs ---- */

static int qhca_ib_rwq_check(struct qhca_ib_dev *dev, const struct ib_wq_init_attr *attr)
{
	if (attr->wq_type != IB_WQT_RQ || attr->create_flags)
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "WQ: type %d, flags %#x", attr->wq_type,
				      attr->create_flags);
	/* For WQ_CREATE of the ioctl a CQ is optional, and what the core passes is an error. */
	if (IS_ERR_OR_NULL(attr->cq))
		return qhca_ib_refuse(dev, -EINVAL, "WQ: no CQ");
	if (!attr->max_wr || attr->max_wr > dev->ibdev.attrs.max_qp_wr ||
	    attr->max_sge > dev->limits->max_recv_sge)
		return qhca_ib_refuse(dev, -EINVAL, "WQ: %u WRs of %u SGEs", attr->max_wr,
				      attr->max_sge);
	return 0;
}

static int qhca_ib_rwq_get_user(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq,
				const struct ib_wq_init_attr *attr, struct ib_udata *udata)
{
	struct qhca_create_wq_req req;
	struct qhca_ib_user_wq user;
	int ret;

	ret = ib_copy_validate_udata_in(udata, req, reserved);
	if (ret)
		return ret;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "WQ: reserved bytes of the request");
	user = (struct qhca_ib_user_wq) { req.buf_addr, req.buf_len, req.log_size,
					  req.log_stride };
	return qhca_ib_wq_get_user(dev, &rwq->rq, attr->max_wr, qhca_ib_rq_stride(attr->max_sge),
				   QHCA_RQ_STRIDE_MAX, sizeof(struct qhca_rq_dbrec), &user);
}

static int qhca_ib_rwq_create_hw(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq,
				 const struct ib_wq_init_attr *attr, struct ib_pd *pd, u32 uar)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_CREATE_QP) };
	const __le32 cqn = cpu_to_le32(to_qcq(attr->cq)->core.cqn);
	struct qhca_create_qp in = {
		.rq = rwq->rq.mem.buf,
		.pdn = cpu_to_le32(to_qpd(pd)->pdn),
		.uar = cpu_to_le32(uar),
		.send_cqn = cqn,
		.recv_cqn = cqn,
		.type = QHCA_QPT_RAW,
		.flags = QHCA_QP_FLAG_RQ_DBREC,
		.rq_log_size = ilog2(rwq->rq.size),
		.rq_log_stride = rwq->rq.log_stride,
		.max_recv_sge = cpu_to_le32(attr->max_sge),
	};
	struct qhca_mbox mbox = { .in = &in, .in_len = sizeof(in) };

	return qhca_cmd_exec(dev->core, &cmd, &mbox, &rwq->qpn);
}

static int qhca_ib_do_create_wq(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq,
				struct ib_pd *pd, const struct ib_wq_init_attr *attr,
				struct ib_udata *udata)
{
	struct qhca_create_wq_resp resp = {};
	int ret;

	mutex_init(&rwq->mutex);
	INIT_WORK(&rwq->event_work, qhca_ib_rwq_event_work);
	if (IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)) {
		rwq->faults = qhca_ib_faults_new(dev);
		if (!rwq->faults)
			return -ENOMEM;
	}
	ret = qhca_ib_rwq_get_user(dev, rwq, attr, udata);
	if (!ret)
		ret = qhca_ib_rwq_create_hw(dev, rwq, attr, pd, qhca_ib_udata_uar(udata));
	qhca_ib_qmem_free_table(&rwq->rq.mem);
	if (ret)
		goto err_mem;
	qhca_ib_faults_start(rwq->faults, rwq->qpn);
	resp.wqn = rwq->qpn;
	rwq->ibwq.wq_num = rwq->qpn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		goto err_hw;
	return 0;

err_hw:
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_QP, rwq->qpn);
err_mem:
	qhca_ib_faults_end(rwq->faults);
	qhca_ib_qmem_put(dev, &rwq->rq.mem);
	return ret;
}

/**
 * qhca_ib_create_wq - create_wq verb
 * @pd: the PD of its L_Keys
 * @attr: what the consumer wants; the number of WRs becomes what it gets
 * @udata: the user's; the kernel has no such verb
 *
 * Return: the WQ, or an error pointer.
 */
struct ib_wq *qhca_ib_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
				struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(pd->device);
	struct qhca_ib_rwq *rwq;
	int ret;

	ret = qhca_ib_rwq_check(dev, attr);
	if (ret)
		return ERR_PTR(ret);
	rwq = kzalloc_obj(*rwq, GFP_KERNEL_ACCOUNT);
	if (!rwq)
		return ERR_PTR(-ENOMEM);
	rwq->ibwq.device = pd->device;
	rwq->ibwq.event_handler = attr->event_handler;
	rwq->ibwq.wq_context = attr->wq_context;
	ret = qhca_ib_do_create_wq(dev, rwq, pd, attr, udata);
	if (ret) {
		kfree(rwq);
		return ERR_PTR(ret);
	}
	attr->max_wr = rwq->rq.size;
	return &rwq->ibwq;
}

/**
 * qhca_ib_destroy_wq - destroy_wq verb
 * @ibwq: the WQ, which is in no table
 * @udata: the user's
 *
 * Return: 0.
 */
int qhca_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibwq->device);
	struct qhca_ib_rwq *rwq = to_qrwq(ibwq);

	qhca_ib_faults_hold(rwq->faults);
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_QP, rwq->qpn);
	xa_cmpxchg_irq(&dev->rwqs, rwq->qpn, rwq, NULL, 0);
	cancel_work_sync(&rwq->event_work);
	qhca_ib_faults_end(rwq->faults);
	qhca_ib_qmem_put(dev, &rwq->rq.mem);
	kfree(rwq);
	return 0;
}

static int qhca_ib_rwq_set_state(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq,
				 enum qhca_qp_state state)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_QP),
		.modify_qp.qpn = cpu_to_le32(rwq->qpn),
		.modify_qp.attr_mask = cpu_to_le32(QHCA_QP_STATE |
						   (state == QHCA_QPS_INIT ? QHCA_QP_PORT : 0)),
	};
	struct qhca_qp_attr in = { .state = state, .port = QHCA_IB_PORT };
	struct qhca_mbox mbox = { .in = &in, .in_len = sizeof(in) };

	return qhca_cmd_exec(dev->core, &cmd, &mbox, NULL);
}

/*
 * RESET to RDY is what a QP does in two steps. If the second fails, the first is undone.
 *
 * A WQ gets events from its first start on: the core's handler needs what the core sets after
 * create_wq, and a CQ that fails, or a hostile device, can move a WQ to ERR before that.
 */
static int qhca_ib_rwq_start(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq)
{
	int ret = xa_err(xa_store_irq(&dev->rwqs, rwq->qpn, rwq, GFP_KERNEL_ACCOUNT));

	if (!ret)
		ret = qhca_ib_rwq_set_state(dev, rwq, QHCA_QPS_INIT);
	if (ret)
		return ret;
	ret = qhca_ib_rwq_set_state(dev, rwq, QHCA_QPS_RTR);
	if (ret)
		qhca_ib_rwq_set_state(dev, rwq, QHCA_QPS_RESET);
	return ret;
}

/* The device moves WQs to ERR by itself when something goes wrong. */
static int qhca_ib_rwq_refresh_state(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq)
{
	struct qhca_qpc qpc;
	int ret;

	if (rwq->ibwq.state != IB_WQS_RDY)
		return 0;
	ret = qhca_ib_query(dev, QHCA_CMD_QUERY_QP, rwq->qpn, &qpc, sizeof(qpc));
	if (!ret && qpc.attr.state == QHCA_QPS_ERR)
		rwq->ibwq.state = IB_WQS_ERR;
	return ret;
}

/* Without IB_WQ_CUR_STATE any state will do, and without IB_WQ_STATE it stays. */
static int qhca_ib_do_modify_wq(struct qhca_ib_dev *dev, struct qhca_ib_rwq *rwq,
				const struct ib_wq_attr *attr, u32 mask)
{
	enum ib_wq_state from, to;
	int ret = qhca_ib_rwq_refresh_state(dev, rwq);

	if (ret)
		return ret;
	from = mask & IB_WQ_CUR_STATE ? attr->curr_wq_state : rwq->ibwq.state;
	to = mask & IB_WQ_STATE ? attr->wq_state : from;
	ret = -EINVAL;
	if (from != rwq->ibwq.state)
		return qhca_ib_refuse(dev, -EINVAL, "modify WQ: state is %d, not %d",
				      rwq->ibwq.state, from);
	if (to == IB_WQS_RESET)
		ret = qhca_ib_rwq_set_state(dev, rwq, QHCA_QPS_RESET);
	else if (to == IB_WQS_ERR && from != IB_WQS_RESET)
		ret = qhca_ib_rwq_set_state(dev, rwq, QHCA_QPS_ERR);
	else if (to == IB_WQS_RDY && from == IB_WQS_RESET)
		ret = qhca_ib_rwq_start(dev, rwq);
	else if (to == IB_WQS_RDY && from == IB_WQS_RDY)
		ret = 0;
	if (!ret)
		rwq->ibwq.state = to;
	return ret;
}

/**
 * qhca_ib_modify_wq - modify_wq verb
 * @ibwq: the WQ
 * @attr: states
 * @mask: enum ib_wq_attr_mask, which of them count
 * @udata: the user's
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int qhca_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibwq->device);
	struct qhca_ib_rwq *rwq = to_qrwq(ibwq);
	int ret;

	if (mask & ~(IB_WQ_STATE | IB_WQ_CUR_STATE))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "modify WQ: mask %#x", mask);
	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	mutex_lock(&rwq->mutex);
	ret = qhca_ib_do_modify_wq(dev, rwq, attr, mask);
	mutex_unlock(&rwq->mutex);
	return ret;
}

/* ---- tables of WQs ---- */

/**
 * qhca_ib_create_rwq_ind_table - create_rwq_ind_table verb
 * @ibtable: the table
 * @attr: the WQs in it
 * @udata: the user's
 *
 * The device learns of the table when a QP uses it.
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
				 struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibtable->device);
	struct qhca_ib_rwq_table *table = to_qrwq_table(ibtable);
	unsigned int i;
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (attr->log_ind_tbl_size > QHCA_SPREAD_LOG_MAX)
		return qhca_ib_refuse(dev, -EINVAL, "table of 2^%u WQs", attr->log_ind_tbl_size);
	table->log_size = attr->log_ind_tbl_size;
	for (i = 0; i < BIT(table->log_size); i++)
		table->qpn[i] = cpu_to_le32(to_qrwq(attr->ind_tbl[i])->qpn);
	return 0;
}

/**
 * qhca_ib_destroy_rwq_ind_table - destroy_rwq_ind_table verb
 * @ibtable: the table, which no QP uses
 *
 * Return: 0.
 */
int qhca_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable)
{
	return 0;
}

/* ---- QPs with a table ---- */

/**
 * qhca_ib_rss_create - create a QP that spreads frames over WQs
 * @dev: the HCA
 * @qp: the QP
 * @attr: what the consumer wants
 * @udata: the user's, which has the hash
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_rss_create(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		       const struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	const struct qhca_ib_rwq_table *table = to_qrwq_table(attr->rwq_ind_tbl);
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_CREATE_SPREAD) };
	struct qhca_spread in = { .log_size = table->log_size };
	struct qhca_mbox mbox = { .in = &in, .in_len = sizeof(in) };
	struct qhca_create_qp_resp resp = {};
	struct qhca_create_qp_req req;
	int ret;

	if (attr->qp_type != IB_QPT_RAW_PACKET || attr->create_flags || attr->send_cq ||
	    attr->recv_cq || attr->srq || attr->cap.max_send_wr || attr->cap.max_recv_wr)
		return qhca_ib_refuse(dev, -EINVAL, "QP with a table: type %u, or own queues",
				      attr->qp_type);
	ret = ib_copy_validate_udata_in(udata, req, reserved2);
	if (ret)
		return ret;
	if (memchr_inv(&req, 0, offsetof(struct qhca_create_qp_req, rx_hash_types)) ||
	    memchr_inv(req.reserved2, 0, sizeof(req.reserved2)))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "QP with a table: rings or reserved bytes");
	memcpy(in.key, req.rx_hash_key, sizeof(in.key));
	in.types = cpu_to_le32(req.rx_hash_types);
	memcpy(in.qpn, table->qpn, sizeof(in.qpn));
	mutex_init(&qp->mutex);
	qp->state = IB_QPS_RESET;
	ret = qhca_ib_charge(dev, &qp->shares, 1, QHCA_SPREAD_MAX);
	if (ret)
		return ret;
	ret = qhca_cmd_exec(dev->core, &cmd, &mbox, &qp->spread);
	if (ret)
		goto err_charge;
	resp.qpn = qp->spread;
	qp->ibqp.qp_num = qp->spread;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		goto err_spread;
	return 0;

err_spread:
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_SPREAD, qp->spread);
err_charge:
	qhca_ib_uncharge_all(dev, &qp->shares);
	return ret;
}

/**
 * qhca_ib_rss_destroy - undo qhca_ib_rss_create()
 * @dev: the HCA
 * @qp: the QP
 */
void qhca_ib_rss_destroy(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_SPREAD, qp->spread);
	qhca_ib_uncharge_all(dev, &qp->shares);
}

/**
 * qhca_ib_rss_modify - modify a QP with a table: it has a state, and no other attributes
 * @dev: the HCA
 * @qp: the QP
 * @attr: values
 * @mask: IB_QP_*
 *
 * The state of the QP does not matter to the frames, only the states of the WQs do.
 *
 * Context: process; takes the QP's mutex.
 * Return: 0 or a negative errno.
 */
int qhca_ib_rss_modify(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		       const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state next;
	int ret = 0;

	mutex_lock(&qp->mutex);
	next = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	if (((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != qp->state) ||
	    !ib_modify_qp_is_ok(qp->state, next, IB_QPT_RAW_PACKET, mask))
		ret = qhca_ib_refuse(dev, -EINVAL, "modify QP of RSS: state %d to %d, mask %#x",
				     qp->state, next, mask);
	else
		qp->state = next;
	mutex_unlock(&qp->mutex);
	return ret;
}
