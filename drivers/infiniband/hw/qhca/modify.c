// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: modify and query queue pairs.
 *
 * The core's table says which attributes each transition takes; this file checks their values. The
 * device checks both again.
 */
#include "qhca_ib.h"

/* QHCA_QP_* and IB_QP_* are the same bits. */
static_assert(QHCA_QP_STATE == (int)IB_QP_STATE);
static_assert(QHCA_QP_AV == (int)IB_QP_AV);
static_assert(QHCA_QP_MIN_RNR_TIMER == (int)IB_QP_MIN_RNR_TIMER);
static_assert(QHCA_QP_DEST_QPN == (int)IB_QP_DEST_QPN);
static_assert(QHCA_QP_RATE_LIMIT == (int)IB_QP_RATE_LIMIT);

/* All but resizing and the alternate path, which RoCE does not have. */
#define QHCA_IB_QP_ATTRS	((IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT) &	\
				 ~(IB_QP_CAP | IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE))

#define QHCA_IB_QP_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |	\
				 IB_ACCESS_REMOTE_ATOMIC)
#define QHCA_IB_QP_FLUSH	(IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)
#define QHCA_IB_QP_ACCESS	(QHCA_IB_QP_REMOTE | QHCA_IB_QP_FLUSH |			\
				 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND |		\
				 IB_ACCESS_ON_DEMAND | IB_ACCESS_OPTIONAL)
static_assert(QHCA_IB_QP_FLUSH == (QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_FLUSH_PERSISTENT));

#define ATTR(attr, ib, hw, max)	{ IB_QP_##attr, offsetof(struct ib_qp_attr, ib),	\
				  offsetof(struct qhca_qp_attr, hw), max }

/* Attributes of one byte: their offsets in both structures, and the largest value. */
static const struct {
	u32 bit;
	u16 ib, hw;
	u8 max;
} qhca_ib_attr8[] = {
	ATTR(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, en_sqd_async_notify, 1),
	ATTR(TIMEOUT, timeout, timeout, 31),
	ATTR(RETRY_CNT, retry_cnt, retry_cnt, 7),
	ATTR(RNR_RETRY, rnr_retry, rnr_retry, 7),
	ATTR(MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer, 31),
	ATTR(MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic, U8_MAX),
	ATTR(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, max_dest_rd_atomic, U8_MAX),
};

/* Attributes of four bytes. */
static const struct {
	u32 bit;
	u16 ib, hw;
	u32 max;
} qhca_ib_attr32[] = {
	ATTR(QKEY, qkey, qkey, U32_MAX),
	ATTR(RQ_PSN, rq_psn, rq_psn, QHCA_OBJ_MASK),
	ATTR(SQ_PSN, sq_psn, sq_psn, QHCA_OBJ_MASK),
	ATTR(DEST_QPN, dest_qp_num, dest_qpn, QHCA_OBJ_MASK),
	ATTR(RATE_LIMIT, rate_limit, rate_limit, U32_MAX),
};

/* Copy the attributes in the two tables. Returns -EINVAL if a value is too large. */
static int qhca_ib_take_attrs(struct qhca_ib_dev *dev, struct qhca_qp_attr *hw,
			      const struct ib_qp_attr *attr, int mask)
{
	unsigned int i;
	u32 val;

	for (i = 0; i < ARRAY_SIZE(qhca_ib_attr8); i++) {
		if (!(mask & qhca_ib_attr8[i].bit))
			continue;
		val = *((const u8 *)attr + qhca_ib_attr8[i].ib);
		if (val > qhca_ib_attr8[i].max)
			return qhca_ib_refuse(dev, -EINVAL, "modify QP: attribute %#x is %u",
					      qhca_ib_attr8[i].bit, val);
		*((u8 *)hw + qhca_ib_attr8[i].hw) = val;
	}
	for (i = 0; i < ARRAY_SIZE(qhca_ib_attr32); i++) {
		if (!(mask & qhca_ib_attr32[i].bit))
			continue;
		val = *(const u32 *)((const u8 *)attr + qhca_ib_attr32[i].ib);
		if (val > qhca_ib_attr32[i].max)
			return qhca_ib_refuse(dev, -EINVAL, "modify QP: attribute %#x is %u",
					      qhca_ib_attr32[i].bit, val);
		*(__le32 *)((u8 *)hw + qhca_ib_attr32[i].hw) = cpu_to_le32(val);
	}
	return 0;
}

static void qhca_ib_give_attrs(struct ib_qp_attr *attr, const struct qhca_qp_attr *hw)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(qhca_ib_attr8); i++)
		*((u8 *)attr + qhca_ib_attr8[i].ib) = *((const u8 *)hw + qhca_ib_attr8[i].hw);
	for (i = 0; i < ARRAY_SIZE(qhca_ib_attr32); i++)
		*(u32 *)((u8 *)attr + qhca_ib_attr32[i].ib) =
			le32_to_cpu(*(const __le32 *)((const u8 *)hw + qhca_ib_attr32[i].hw));
}

static int qhca_ib_check_av(struct qhca_ib_dev *dev, const struct rdma_ah_attr *attr,
			    struct ib_udata *udata)
{
	return qhca_ib_check_ah_attr(dev, attr) ?: qhca_ib_check_gid_user(dev, attr, udata);
}

static int qhca_ib_check_attrs(struct qhca_ib_dev *dev, const struct ib_qp_attr *attr, int mask,
			       struct ib_udata *udata)
{
	if (mask & ~QHCA_IB_QP_ATTRS)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: attributes %#x are not offered",
				      mask & ~QHCA_IB_QP_ATTRS);
	if ((mask & IB_QP_PORT) && attr->port_num != QHCA_IB_PORT)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: port %u", attr->port_num);
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: P_Key index %u", attr->pkey_index);
	if ((mask & IB_QP_PATH_MTU) &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > qhca_ib_active_mtu(dev)))
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: path MTU %d, the port's is %d",
				      ib_mtu_enum_to_int(attr->path_mtu),
				      ib_mtu_enum_to_int(qhca_ib_active_mtu(dev)));
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	    attr->max_rd_atomic > dev->limits->max_rd_atomic)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: max_rd_atomic %u",
				      attr->max_rd_atomic);
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	    attr->max_dest_rd_atomic > dev->limits->max_rd_atomic)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: max_dest_rd_atomic %u",
				      attr->max_dest_rd_atomic);
	if ((mask & IB_QP_ACCESS_FLAGS) && (attr->qp_access_flags & ~QHCA_IB_QP_ACCESS))
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: access %#x",
				      attr->qp_access_flags);
	return mask & IB_QP_AV ? qhca_ib_check_av(dev, &attr->ah_attr, udata) : 0;
}

/* Whether a QP can have moved from @from to @to without a command. */
static bool qhca_ib_state_ok(enum ib_qp_state from, u8 to)
{
	return to == from || to == IB_QPS_ERR ||
	       (to == IB_QPS_SQE && (from == IB_QPS_RTS || from == IB_QPS_SQD));
}

static int qhca_ib_query_qpc(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			     struct qhca_qpc *qpc)
{
	int ret;

	ret = qhca_ib_query(dev, QHCA_CMD_QUERY_QP, qp->qpn, qpc, sizeof(*qpc));
	if (ret)
		return ret;
	if (!qhca_ib_state_ok(qp->state, qpc->attr.state)) {
		qhca_health_die(dev->core, "the state of a QP makes no sense");
		return -EIO;
	}
	WRITE_ONCE(qp->state, qpc->attr.state);
	return 0;
}

/*
 * Whether a request can only be judged in the QP's true state. Every state leads to ERR and RESET.
 * A QP on its way to RTS can have failed already, but then the device refuses that in the same way.
 */
static bool qhca_ib_state_matters(const struct qhca_ib_qp *qp, const struct ib_qp_attr *attr,
				  int mask)
{
	if (!(mask & IB_QP_STATE) || (mask & IB_QP_CUR_STATE))
		return true;
	if (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET)
		return false;
	return qp->state != IB_QPS_RTR || attr->qp_state != IB_QPS_RTS;
}

/* The device moves QPs to SQE or ERR by itself when something goes wrong. */
static int qhca_ib_refresh_state(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	struct qhca_qpc qpc;

	if (qp->state < IB_QPS_RTR || qp->state == IB_QPS_ERR)
		return 0;
	return qhca_ib_query_qpc(dev, qp, &qpc);
}

/* Rights that the device does not know are stored in qp->access, but not passed on. */
static __le16 qhca_ib_qp_rights(int access)
{
	return cpu_to_le16(access & (QHCA_IB_QP_REMOTE | QHCA_IB_QP_FLUSH));
}

static int qhca_ib_modify_hw(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			     const struct ib_qp_attr *attr, int mask,
			     enum ib_qp_state next)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_MODIFY_QP),
		.modify_qp.qpn = cpu_to_le32(qp->qpn),
		.modify_qp.attr_mask = cpu_to_le32(mask),
	};
	struct qhca_qp_attr hw = { .state = next, .cur_state = qp->state };
	struct qhca_mbox mbox = { .in = &hw, .in_len = sizeof(hw) };
	int ret;

	ret = qhca_ib_take_attrs(dev, &hw, attr, mask);
	if (ret)
		return ret;
	if (mask & IB_QP_AV)
		qhca_ib_av_from_attr(&hw.av, &attr->ah_attr, 0);
	if (mask & IB_QP_ACCESS_FLAGS)
		hw.access = qhca_ib_qp_rights(attr->qp_access_flags);
	if (mask & IB_QP_PKEY_INDEX)
		hw.pkey_index = cpu_to_le16(attr->pkey_index);
	if (mask & IB_QP_PATH_MTU)
		hw.path_mtu = attr->path_mtu;
	if (mask & IB_QP_PORT)
		hw.port = attr->port_num;
	return qhca_cmd_exec(dev->core, &cmd, &mbox, NULL);
}

static void qhca_ib_reset_wq(struct qhca_ib_cq *cq, struct qhca_ib_wq *wq)
{
	spin_lock_irq(&cq->lock);
	spin_lock(&wq->lock);
	wq->pi = 0;
	wq->ci = 0;
	spin_unlock(&wq->lock);
	spin_unlock_irq(&cq->lock);
}

/* Empty the queues of a kernel QP, as the device has done on the way to RESET. */
static void qhca_ib_reset_queues(struct qhca_ib_qp *qp)
{
	if (!qhca_ib_is_kernel_qp(qp))
		return;
	qhca_ib_qp_clean(qp);
	if (qp->xrcd)
		return;
	qhca_ib_reset_wq(to_qcq(qp->ibqp.send_cq), &qp->sq);
	qhca_ib_reset_wq(to_qcq(qp->ibqp.recv_cq), &qp->rq);
}

static void qhca_ib_modified(struct qhca_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
			     enum ib_qp_state next)
{
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);

	if (mask & IB_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
	WRITE_ONCE(qp->state, next);
	if (next != IB_QPS_RESET)
		return;
	qp->access = 0;
	xa_lock_irq(&dev->qps);
	qp->last_wqe = false;
	xa_unlock_irq(&dev->qps);
	qhca_ib_reset_queues(qp);
}

/* Whether a kernel consumer moves the QP to ERR or RESET. */
static bool qhca_ib_is_stop(const struct qhca_ib_qp *qp, const struct ib_qp_attr *attr,
			    int mask)
{
	return qhca_ib_is_kernel_qp(qp) && (mask & IB_QP_STATE) &&
	       (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET);
}

/*
 * Uverbs adds PORT to the AV of any QP in SQD, but the core's table accepts it for RC only. The
 * device has one port, so the attribute says nothing: drop it.
 */
static int qhca_ib_drop_added_port(const struct qhca_ib_qp *qp, const struct ib_qp_attr *attr,
				   int mask)
{
	if (qp->ibqp.qp_type == IB_QPT_UC && qp->state == IB_QPS_SQD && (mask & IB_QP_AV) &&
	    attr->port_num == QHCA_IB_PORT)
		mask &= ~IB_QP_PORT;
	return mask;
}

static int qhca_ib_modify_live(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			       const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state next;
	int ret;

	ret = qhca_ib_state_matters(qp, attr, mask) ? qhca_ib_refresh_state(dev, qp) : 0;
	if (ret)
		return ret;
	mask = qhca_ib_drop_added_port(qp, attr, mask);
	next = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != qp->state)
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: state is %d, not %d", qp->state,
				      attr->cur_qp_state);
	/* The core's table has the rate limit for RAW_PACKET only, the device for all types. */
	if (!ib_modify_qp_is_ok(qp->state, next, qp->ibqp.qp_type, mask & ~IB_QP_RATE_LIMIT))
		return qhca_ib_refuse(dev, -EINVAL, "modify QP: type %d, state %d to %d, mask %#x",
				      qp->ibqp.qp_type, qp->state, next, mask);
	ret = qhca_ib_check_attrs(dev, attr, mask, udata);
	if (ret)
		return ret;
	ret = qhca_ib_modify_hw(dev, qp, attr, mask, next);
	if (!ret)
		qhca_ib_modified(qp, attr, mask, next);
	else if (qhca_ib_is_stop(qp, attr, mask))
		qhca_health_die(dev->core, "a QP could not be stopped");
	return ret;
}

/*
 * Kernel consumers of a dead device can still stop and drain their QPs (see qhca_ib_poll_cq());
 * otherwise they would wait for ever or complain.
 */
static int qhca_ib_do_modify(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			     const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	bool stop = qhca_ib_is_stop(qp, attr, mask);
	int ret = -EIO;

	if (!stop || !qhca_is_dead(dev->core))
		ret = qhca_ib_modify_live(dev, qp, attr, mask, udata);
	if (!stop)
		return ret;
	/* The device may have died of this command. A stopped QP must not use memory any more. */
	if (ret && qhca_is_dead(dev->core)) {
		qhca_health_quiesce(dev->core);
		qhca_ib_modified(qp, attr, mask, attr->qp_state);
		ret = 0;
	}
	/* If the device is not quiet yet, qhca_ib_flush_work() will see the new state. */
	smp_mb();
	if (!ret && qhca_is_quiet(dev->core))
		qhca_ib_flush_last_wqe(dev);
	return ret;
}

static int qhca_ib_do_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
				struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	int ret;

	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "modify QP: mask %#x", mask);
	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (qp->spread)
		return qhca_ib_rss_modify(dev, qp, attr, mask);

	mutex_lock(&qp->mutex);
	ret = qhca_ib_do_modify(dev, qp, attr, mask, udata);
	mutex_unlock(&qp->mutex);
	return ret;
}

/**
 * qhca_ib_modify_qp - modify_qp verb
 * @ibqp: the QP
 * @attr: values
 * @mask: IB_QP_*, says which of them to change
 * @udata: the user's, or NULL
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int qhca_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibqp->device), QHCA_IB_MODIFY_QP_ERR,
				 qhca_ib_do_modify_qp(ibqp, attr, mask, udata));
}

static void qhca_ib_fill_init_attr(struct qhca_ib_qp *qp, struct ib_qp_init_attr *init_attr)
{
	init_attr->event_handler = qp->ibqp.event_handler;
	init_attr->qp_context = qp->ibqp.qp_context;
	init_attr->send_cq = qp->ibqp.send_cq;
	init_attr->recv_cq = qp->ibqp.recv_cq;
	init_attr->srq = qp->ibqp.srq;
	init_attr->xrcd = qp->ibqp.xrcd;
	init_attr->qp_type = qp->ibqp.qp_type;
	init_attr->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	if (qp->no_own_mcast)
		init_attr->create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	init_attr->cap.max_send_wr = qp->sq.size;
	init_attr->cap.max_recv_wr = qp->rq.size;
	init_attr->cap.max_send_sge = qp->sq.max_sge;
	init_attr->cap.max_recv_sge = qp->rq.max_sge;
	init_attr->cap.max_inline_data = qp->max_inline;
}

/**
 * qhca_ib_query_qp - query_qp verb
 * @ibqp: the QP
 * @attr: filled in, except for the PSNs that @mask does not name
 * @mask: attributes that the consumer looks at
 * @init_attr: filled in
 *
 * "rdma resource show" passes an empty mask, and shows the result to every user: no PSNs.
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init_attr)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_qpc qpc;
	int ret;

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	if (qp->spread) {
		attr->qp_state = READ_ONCE(qp->state);
		attr->cur_qp_state = attr->qp_state;
		init_attr->qp_type = ibqp->qp_type;
		return 0;
	}
	mutex_lock(&qp->mutex);
	ret = qhca_ib_query_qpc(dev, qp, &qpc);
	attr->qp_access_flags = qp->access;
	mutex_unlock(&qp->mutex);
	if (ret)
		return ret;

	qhca_ib_give_attrs(attr, &qpc.attr);
	if (!(mask & IB_QP_RQ_PSN))
		attr->rq_psn = 0;
	if (!(mask & IB_QP_SQ_PSN))
		attr->sq_psn = 0;
	attr->qp_state = qpc.attr.state;
	attr->cur_qp_state = qpc.attr.state;
	attr->path_mtu = qpc.attr.path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->pkey_index = le16_to_cpu(qpc.attr.pkey_index);
	attr->port_num = qpc.attr.port;
	attr->sq_draining = qpc.sq_draining;
	if (qpc.attr.av.port)
		qhca_ib_av_to_attr(dev, &attr->ah_attr, &qpc.attr.av);
	qhca_ib_fill_init_attr(qp, init_attr);
	attr->cap = init_attr->cap;
	return 0;
}
