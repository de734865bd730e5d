// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: details of objects for "rdma resource show", beyond the core's.
 *
 * Any user may read them. A user who knows the PSNs and can send packets can impersonate the peer,
 * and can compute the PSNs from the queue indices and the initial PSNs. So PSNs and queue indices
 * are only in the raw contexts, which only administrators may read.
 */
#include <rdma/restrack.h>

#include "qhca_ib.h"

struct qhca_ib_res_attr {
	const char *name;
	u32 value;
};

static int qhca_ib_put_attrs(struct sk_buff *msg, const struct qhca_ib_res_attr *attr,
			     unsigned int n)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (rdma_nl_put_driver_u32(msg, attr[i].name, attr[i].value)) {
			nla_nest_cancel(msg, nest);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, nest);
	return 0;
}

/**
 * qhca_ib_fill_res_mr_entry - details of an MR
 * @msg: where to put them
 * @ibmr: the MR
 *
 * Return: 0 or -EMSGSIZE.
 */
int qhca_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	const struct qhca_ib_res_attr attrs[] = {
		{ "access", mr->access },
		{ "pdn", READ_ONCE(mr->pdn) },
	};

	return qhca_ib_put_attrs(msg, attrs, ARRAY_SIZE(attrs));
}

static int qhca_ib_query_cqc(struct ib_cq *ibcq, struct qhca_cqc *cqc)
{
	return qhca_ib_query(to_qdev(ibcq->device), QHCA_CMD_QUERY_CQ, to_qcq(ibcq)->core.cqn,
			     cqc, sizeof(*cqc));
}

/**
 * qhca_ib_fill_res_cq_entry - details of a CQ, queried from the device
 * @msg: where to put them
 * @ibcq: the CQ
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_cqc cqc;
	int ret;

	ret = qhca_ib_query_cqc(ibcq, &cqc);
	if (ret)
		return ret;

	const struct qhca_ib_res_attr attrs[] = {
		{ "hw_cqn", le32_to_cpu(cqc.cqn) },
		{ "eqn", le32_to_cpu(cqc.eqn) },
		{ "uar", le32_to_cpu(cqc.uar) },
		{ "arm", cqc.arm },
		{ "arm_sn", le32_to_cpu(cqc.arm_sn) },
		{ "mod_count", le32_to_cpu(cqc.count) },
		{ "mod_period", le32_to_cpu(cqc.period) },
		{ "error", cqc.state == QHCA_CQ_ERROR },
	};

	return qhca_ib_put_attrs(msg, attrs, ARRAY_SIZE(attrs));
}

/**
 * qhca_ib_fill_res_cq_entry_raw - the context of a CQ (struct qhca_cqc)
 * @msg: where to put it
 * @ibcq: the CQ
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_cqc cqc;
	int ret;

	ret = qhca_ib_query_cqc(ibcq, &cqc);
	if (ret)
		return ret;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(cqc), &cqc);
}

static int qhca_ib_query_qpc(struct ib_qp *ibqp, struct qhca_qpc *qpc)
{
	return qhca_ib_query(to_qdev(ibqp->device), QHCA_CMD_QUERY_QP, to_qqp(ibqp)->qpn, qpc,
			     sizeof(*qpc));
}

/**
 * qhca_ib_fill_res_qp_entry - details of a QP, queried from the device
 * @msg: where to put them
 * @ibqp: the QP
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_qpc qpc;
	int ret;

	if (qp->spread)
		return 0;
	ret = qhca_ib_query_qpc(ibqp, &qpc);
	if (ret)
		return ret;

	const struct qhca_ib_res_attr attrs[] = {
		{ "uar", le32_to_cpu(qpc.uar) },
		{ "sq_size", qp->sq.size },
		{ "rq_size", qp->rq.size },
		{ "retries_left", qpc.retries_left },
		{ "rnr_retries_left", qpc.rnr_retries_left },
		{ "xrcdn", le32_to_cpu(qpc.xrcdn) },
	};

	return qhca_ib_put_attrs(msg, attrs, ARRAY_SIZE(attrs));
}

/**
 * qhca_ib_fill_res_qp_entry_raw - the context of a QP (struct qhca_qpc)
 * @msg: where to put it
 * @ibqp: the QP
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_qpc qpc;
	int ret;

	if (to_qqp(ibqp)->spread)
		return 0;
	ret = qhca_ib_query_qpc(ibqp, &qpc);
	if (ret)
		return ret;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(qpc), &qpc);
}

/**
 * qhca_ib_fill_res_srq_entry - details of an SRQ, queried from the device
 * @msg: where to put them
 * @ibsrq: the SRQ
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srqc srqc;
	int ret;

	ret = qhca_ib_query_srqc(to_qsrq(ibsrq), &srqc);
	if (ret)
		return ret;

	const struct qhca_ib_res_attr attrs[] = {
		{ "hw_srqn", le32_to_cpu(srqc.srqn) },
		{ "uar", le32_to_cpu(srqc.uar) },
		{ "size", to_qsrq(ibsrq)->size },
		{ "limit", le32_to_cpu(srqc.limit) },
		{ "users", le32_to_cpu(srqc.users) },
		{ "xrcdn", le32_to_cpu(srqc.xrcdn) },
		{ "hw_cqn", le32_to_cpu(srqc.cqn) },
	};

	return qhca_ib_put_attrs(msg, attrs, ARRAY_SIZE(attrs));
}

/**
 * qhca_ib_fill_res_srq_entry_raw - the context of an SRQ (struct qhca_srqc)
 * @msg: where to put it
 * @ibsrq: the SRQ
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srqc srqc;
	int ret;

	ret = qhca_ib_query_srqc(to_qsrq(ibsrq), &srqc);
	if (ret)
		return ret;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(srqc), &srqc);
}
