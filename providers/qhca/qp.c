// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Create and destroy queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/ilog.h>
#include <ccan/minmax.h>

#include "given.h"
#include "qhca-abi.h"
#include "wqe.h"

static uint32_t log2_ceil(uint32_t n)
{
	return n ? ilog32(n - 1) : 0;
}

static int check_cap(const struct qhca_context *ctx,
		     const struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr > ctx->max_qp_wr ||
	    cap->max_recv_wr > ctx->max_qp_wr ||
	    cap->max_send_sge > ctx->max_send_sge ||
	    cap->max_recv_sge > ctx->max_recv_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	return 0;
}

/* Size a receive queue; without WRs it has no ring. */
void qhca_rq_size(struct qhca_wq *rq, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t stride = sizeof(struct qhca_rq_wqe) +
			  max_sge * sizeof(struct qhca_sge);

	rq->max_sge = max_sge;
	if (!max_wr)
		return;
	rq->size = 1u << log2_ceil(max_wr);
	stride = 1u << log2_ceil(max(stride, (uint32_t)QHCA_RQ_STRIDE_MIN));
	rq->stride_shift = ilog32_nz(stride) - 1;
}

/*
 * Size both queues. Rings have a power of two of WQEs, and inline data may fill the
 * stride, but report as many SGEs as requested, not more: programs size arrays by what
 * they requested and then fill as many entries as reported (UCX's ud_verbs).
 */
static void size_queues(const struct qhca_context *ctx, struct qhca_qp *qp,
			const struct ibv_qp_cap *cap)
{
	const uint32_t sq_head = sizeof(struct qhca_sq_wqe);
	const uint32_t sge = sizeof(struct qhca_sge);
	uint32_t stride;

	qp->sq.max_sge = cap->max_send_sge;
	qp->sq.max_inline = cap->max_inline_data;
	if (cap->max_send_wr) {
		qp->sq.size = 1u << log2_ceil(cap->max_send_wr);
		stride = sq_head + max(sge * cap->max_send_sge,
				       cap->max_inline_data);
		stride = 1u << log2_ceil(max(stride, (uint32_t)QHCA_SQ_STRIDE_MIN));
		qp->sq.stride_shift = ilog32_nz(stride) - 1;
		qp->sq.max_inline = min(stride - sq_head, ctx->max_inline);
	}

	qhca_rq_size(&qp->rq, cap->max_recv_wr, cap->max_recv_sge);
}

static int alloc_queues(struct ibv_context *ibctx, struct qhca_qp *qp,
			struct qhca_pd *pd)
{
	int err;

	if (qp->sq.size) {
		err = qhca_mem_alloc(&qp->sq.mem, wq_len(&qp->sq), pd,
				     QHCA_MEM_SQ);
		if (err)
			return err;
	}
	if (qp->rq.size) {
		err = qhca_mem_alloc(&qp->rq.mem, rq_len(&qp->rq), pd,
				     QHCA_MEM_RQ);
		if (err) {
			qhca_mem_free(&qp->sq.mem);
			return err;
		}
		*rq_dbrec(&qp->rq) = (struct qhca_rq_dbrec){};
	}
	if (qp->sq.size)
		qhca_slot_get(to_qctx(ibctx), &qp->sq_slot);
	return 0;
}

static void free_queues(struct ibv_context *ibctx, struct qhca_qp *qp)
{
	qhca_slot_put(to_qctx(ibctx), &qp->sq_slot);
	qhca_mem_free(&qp->sq.mem);
	qhca_mem_free(&qp->rq.mem);
}

static void fill_queues(struct uqhca_create_qp *cmd, const struct qhca_qp *qp)
{
	if (qp->sq.size) {
		cmd->sq_addr = (uintptr_t)qp->sq.mem.addr;
		cmd->sq_len = wq_len(&qp->sq);
		cmd->sq_log_size = ilog32_nz(qp->sq.size) - 1;
		cmd->sq_log_stride = qp->sq.stride_shift;
	}
	if (qp->rq.size) {
		cmd->rq_addr = (uintptr_t)qp->rq.mem.addr;
		cmd->rq_len = rq_len(&qp->rq);
		cmd->rq_log_size = ilog32_nz(qp->rq.size) - 1;
		cmd->rq_log_stride = qp->rq.stride_shift;
	}
}

static void fill_cap(struct ibv_qp_cap *cap, const struct qhca_qp *qp)
{
	cap->max_send_wr = qp->sq.size;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->rq.size;
	cap->max_recv_sge = qp->rq.max_sge;
}

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/*
 * The CQs on which a QP completes: NULL if it does not use that one, or if both are the same.
 * The members of struct ibv_qp are what the caller gave, used or not.
 */
static struct qhca_cq *send_cq(const struct qhca_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;

	return ibqp->send_cq && ibqp->qp_type != IBV_QPT_XRC_RECV ?
	       to_qcq(ibqp->send_cq) : NULL;
}

static struct qhca_cq *other_cq(const struct qhca_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;

	return ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq &&
	       !is_xrc(ibqp->qp_type) ? to_qcq(ibqp->recv_cq) : NULL;
}

static int join_cq(struct qhca_qp *qp, struct qhca_cq *cq,
		   struct qhca_link *link)
{
	link->owner = qp;
	link->number = qp->qpn;
	return cq ? qhca_cq_add(cq, &cq->qps, link) : 0;
}

static void leave_cq(struct qhca_cq *cq, struct qhca_link *link)
{
	if (cq)
		qhca_cq_del(cq, &cq->qps, link);
}

int qhca_qp_join_cqs(struct qhca_qp *qp)
{
	int err;

	err = join_cq(qp, send_cq(qp), &qp->send_link);
	if (err)
		return err;
	err = join_cq(qp, other_cq(qp), &qp->recv_link);
	if (err)
		leave_cq(send_cq(qp), &qp->send_link);
	return err;
}

void qhca_qp_clean_cqs(struct qhca_qp *qp)
{
	if (send_cq(qp))
		qhca_cq_clean_qp(send_cq(qp), qp);
	if (other_cq(qp))
		qhca_cq_clean_qp(other_cq(qp), qp);
}

void qhca_qp_leave_cqs(struct qhca_qp *qp)
{
	leave_cq(send_cq(qp), &qp->send_link);
	leave_cq(other_cq(qp), &qp->recv_link);
}

static int cmd_create_qp(struct ibv_context *ibctx, struct qhca_qp *qp,
			 struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex true_attr = *attr;
	struct uqhca_create_qp_resp resp = {};
	struct uqhca_create_qp cmd = {};
	int err;

	fill_queues(&cmd, qp);
	fill_cap(&true_attr.cap, qp);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		true_attr.pd = NULL;
	err = ibv_cmd_create_qp_ex2(ibctx, &qp->vqp, &true_attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp),
				    NULL);
	if (err)
		return err;
	/* The kernel does not ask the driver about shared QPs, so fill this in here. */
	qp->qpn = qp->vqp.qp.qp_num;
	fill_cap(&attr->cap, qp);
	return 0;
}

/* Flags for this type of QP; the driver knows whether the device has them. */
static uint32_t create_flags(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

static int check_qp_attr(const struct qhca_context *ctx,
			 const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_XRCD;

	if (!check_comp_mask(attr->comp_mask, known) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags & ~create_flags(attr->qp_type)) ||
	    (attr->qp_type != IBV_QPT_XRC_RECV &&
	     !qhca_send_ops(attr->qp_type)))
		return EOPNOTSUPP;
	if (attr->srq && attr->qp_type != IBV_QPT_RC &&
	    attr->qp_type != IBV_QPT_UD && attr->qp_type != IBV_QPT_RAW_PACKET)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return attr->comp_mask & IBV_QP_INIT_ATTR_XRCD &&
		       !(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ?
		       0 : EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ||
	    !(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->send_cq ||
	    (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND))
		return EINVAL;
	return check_cap(ctx, &attr->cap);
}

/* The PD that a QP uses and holds: an XRC target QP has none, whatever the caller gave. */
static struct qhca_pd *used_pd(enum ibv_qp_type type, struct ibv_pd *ibpd)
{
	return type == IBV_QPT_XRC_RECV ? NULL : to_qpd(ibpd);
}

static struct qhca_pd *qp_pd(const struct ibv_qp_init_attr_ex *attr)
{
	return used_pd(attr->qp_type, attr->pd);
}

/* The objects that the caller says it gives. */
static int check_given(const struct ibv_qp_init_attr_ex *attr)
{
	const struct qhca_given given[] = {
		{ IBV_QP_INIT_ATTR_PD, attr->pd },
		{ IBV_QP_INIT_ATTR_XRCD, attr->xrcd },
		{ IBV_QP_INIT_ATTR_IND_TABLE, attr->rwq_ind_tbl },
	};

	return qhca_check_given(attr->comp_mask, given, ARRAY_SIZE(given));
}

/* Ignore the capacities of a queue that the QP does not have. */
static void trim_cap(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		memset(&attr->cap, 0, sizeof(attr->cap));
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
}

/* Initialise the members for any QP; @pd is NULL for a QP without queues. */
void qhca_qp_init(struct qhca_qp *qp, const struct qhca_context *ctx,
		  const struct qhca_pd *pd)
{
	bool single_threaded = pd && pd->td;

	qp->db = ctx->db;
	qhca_lock_init(&qp->sq.lock, ctx, single_threaded);
	qhca_lock_init(&qp->rq.lock, ctx, single_threaded);
}

static void qp_init(struct qhca_qp *qp, const struct qhca_context *ctx,
		    const struct ibv_qp_init_attr_ex *attr)
{
	qhca_qp_init(qp, ctx, qp_pd(attr));
	qp->srq = attr->srq ? to_qsrq(attr->srq) : NULL;
	qp->ece = qhca_offered_ece(ctx, attr->qp_type);
	qp->send_ops = qhca_send_ops(attr->qp_type) & ctx->send_ops;
	size_queues(ctx, qp, &attr->cap);
}

static int qp_extend(struct qhca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	return qhca_qp_fill_ops(qp, attr->send_ops_flags);
}

struct ibv_qp *qhca_create_qp_ex(struct ibv_context *ibctx,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct qhca_context *ctx = to_qctx(ibctx);
	struct qhca_qp *qp = NULL;
	int err;

	err = check_given(attr);
	if (err)
		goto err_free;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return qhca_create_rss_qp(ibctx, attr);
	trim_cap(attr);
	err = check_qp_attr(ctx, attr);
	if (err)
		goto err_free;
	err = ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto err_free;
	qp_init(qp, ctx, attr);
	err = qp_extend(qp, attr);
	if (err)
		goto err_free;
	err = alloc_queues(ibctx, qp, qp_pd(attr));
	if (err)
		goto err_free;
	err = cmd_create_qp(ibctx, qp, attr);
	if (err)
		goto err_queues;
	err = qhca_qp_join_cqs(qp);
	if (err)
		goto err_destroy;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	if (qp->srq)
		atomic_fetch_add(&qp->srq->users, 1);
	qhca_pd_get(qp_pd(attr));
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_queues:
	free_queues(ibctx, qp);
err_free:
	free(qp);
	errno = err;
	return NULL;
}

struct ibv_qp *qhca_create_qp(struct ibv_pd *ibpd,
			      struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {};
	struct ibv_qp *ibqp;

	/* The extended attributes begin with the plain ones. */
	memcpy(&attr_ex, attr, sizeof(*attr));
	attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr_ex.pd = ibpd;
	ibqp = qhca_create_qp_ex(ibpd->context, &attr_ex);
	if (ibqp)
		attr->cap = attr_ex.cap;
	return ibqp;
}

int qhca_destroy_qp(struct ibv_qp *ibqp)
{
	struct qhca_pd *pd = used_pd(ibqp->qp_type, ibqp->pd);
	struct qhca_qp *qp = to_qqp(ibqp);
	int err;

	err = ibv_cmd_destroy_qp(ibqp);
	if (err)
		return qhca_ret(err);

	qhca_qp_clean_cqs(qp);
	qhca_qp_leave_cqs(qp);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->users, 1);
	free_queues(ibqp->context, qp);
	free(qp);
	qhca_pd_put(pd);
	return 0;
}
