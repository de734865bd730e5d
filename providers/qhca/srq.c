// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues.
 *
 * WRs complete in any order, but the device reads them in order: while at most as many
 * WRs are outstanding as the ring has entries, the device has read the next entry. So
 * it is enough to count completions, on whatever CQs they arrive.
 */
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

static int cmd_create_srq(struct ibv_context *ibctx, struct qhca_srq *srq,
			  struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex true_attr = *attr;
	struct uqhca_create_srq_resp resp = {};
	struct uqhca_create_srq cmd = {};
	int err;

	cmd.buf_addr = (uintptr_t)srq->wq.mem.addr;
	cmd.buf_len = rq_len(&srq->wq);
	cmd.log_size = ilog32_nz(srq->wq.size) - 1;
	cmd.log_stride = srq->wq.stride_shift;
	true_attr.attr.max_wr = srq->wq.size;
	true_attr.attr.max_sge = srq->wq.max_sge;
	err = ibv_cmd_create_srq_ex(ibctx, &srq->vsrq, &true_attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	srq->srqn = resp.srqn;
	attr->attr = true_attr.attr;
	return 0;
}

static void size_srq(struct qhca_wq *wq, const struct ibv_srq_attr *attr)
{
	const uint32_t head = sizeof(struct qhca_rq_wqe);
	const uint32_t sge = sizeof(struct qhca_sge);
	uint32_t stride = head + sge * attr->max_sge;

	stride = 1u << log2_ceil(max(stride, (uint32_t)QHCA_RQ_STRIDE_MIN));
	wq->size = 1u << log2_ceil(attr->max_wr);
	wq->stride_shift = ilog32_nz(stride) - 1;
	wq->max_sge = attr->max_sge;	/* not more, as in size_queues() */
}

static bool is_xrc(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	       attr->srq_type == IBV_SRQT_XRC;
}

static int check_srq_attr(const struct qhca_context *ctx,
			  const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const struct qhca_given given[] = {
		{ IBV_SRQ_INIT_ATTR_PD, attr->pd },
		{ IBV_SRQ_INIT_ATTR_XRCD, attr->xrcd },
		{ IBV_SRQ_INIT_ATTR_CQ, attr->cq },
	};

	if (qhca_check_given(attr->comp_mask, given, ARRAY_SIZE(given)))
		return EINVAL;
	if (!check_comp_mask(attr->comp_mask, IBV_SRQ_INIT_ATTR_TYPE |
					      IBV_SRQ_INIT_ATTR_PD | xrc) ||
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	     attr->srq_type != IBV_SRQT_BASIC && !is_xrc(attr)))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) ||
	    (is_xrc(attr) && (attr->comp_mask & xrc) != xrc))
		return EINVAL;
	if (!attr->attr.max_wr || attr->attr.max_wr > ctx->max_srq_wr ||
	    attr->attr.max_sge > ctx->max_srq_sge)
		return EINVAL;
	return 0;
}

/* Only its own CQ must find the SRQ: QPs of other processes complete there. */
static int join_cq(struct qhca_srq *srq)
{
	struct qhca_cq *cq;

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return 0;
	cq = to_qcq(srq->vsrq.cq);
	srq->link.owner = srq;
	srq->link.number = srq->srqn;
	return qhca_cq_add(cq, &cq->srqs, &srq->link);
}

static void leave_cq(struct qhca_srq *srq)
{
	struct qhca_cq *cq;

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return;
	cq = to_qcq(srq->vsrq.cq);
	qhca_cq_clean_srq(cq, srq);
	qhca_cq_del(cq, &cq->srqs, &srq->link);
}

struct ibv_srq *qhca_create_srq_ex(struct ibv_context *ibctx,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct qhca_context *ctx = to_qctx(ibctx);
	struct qhca_srq *srq = NULL;
	struct qhca_pd *pd;
	int err;

	err = check_srq_attr(ctx, attr);
	if (err)
		goto err_free;
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto err_free;
	pd = to_qpd(attr->pd);
	srq->db = ctx->db;
	size_srq(&srq->wq, &attr->attr);
	err = qhca_mem_alloc(&srq->wq.mem, rq_len(&srq->wq), pd, QHCA_MEM_SRQ);
	if (err)
		goto err_free;
	*rq_dbrec(&srq->wq) = (struct qhca_rq_dbrec){};
	qhca_lock_init(&srq->wq.lock, ctx, pd->td);
	err = cmd_create_srq(ibctx, srq, attr);
	if (err)
		goto err_mem;
	err = join_cq(srq);
	if (err)
		goto err_destroy;
	/* libibverbs leaves this to the provider for extended SRQs. */
	srq->vsrq.srq.pd = attr->pd;
	srq->vsrq.srq.srq_context = attr->srq_context;
	qhca_pd_get(pd);
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_mem:
	qhca_mem_free(&srq->wq.mem);
err_free:
	free(srq);
	errno = err;
	return NULL;
}

struct ibv_srq *qhca_create_srq(struct ibv_pd *ibpd,
				struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {};
	struct ibv_srq *ibsrq;

	/* The extended attributes begin with the plain ones. */
	memcpy(&attr_ex, attr, sizeof(*attr));
	attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr_ex.srq_type = IBV_SRQT_BASIC;
	attr_ex.pd = ibpd;
	ibsrq = qhca_create_srq_ex(ibpd->context, &attr_ex);
	if (ibsrq)
		attr->attr = attr_ex.attr;
	return ibsrq;
}

int qhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return qhca_ret(EINVAL);
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

/* Called under the lock of the SRQ, so that no WR is posted to the old ring. */
static int resize_srq(struct qhca_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct qhca_context *ctx = to_qctx(srq->vsrq.srq.context);
	struct uqhca_modify_srq cmd = {};
	struct qhca_wq wq = srq->wq;
	int err;

	if (!attr->max_wr || attr->max_wr > ctx->max_srq_wr)
		return EINVAL;
	wq.size = 1u << log2_ceil(attr->max_wr);
	if (wq.pi - atomic_load_explicit(&srq->wq.ci, memory_order_acquire) >
	    wq.size)
		return EINVAL;
	err = qhca_mem_alloc(&wq.mem, rq_len(&wq), srq->wq.mem.pd,
			     QHCA_MEM_SRQ);
	if (err)
		return err;
	*rq_dbrec(&wq) = (struct qhca_rq_dbrec){ .pi = htole32(wq.pi) };

	cmd.buf_addr = (uintptr_t)wq.mem.addr;
	cmd.buf_len = rq_len(&wq);
	cmd.log_size = ilog32_nz(wq.size) - 1;
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, mask, &cmd.ibv_cmd,
				 sizeof(cmd));
	if (err) {
		qhca_mem_free(&wq.mem);
		return err;
	}
	/* The device has copied the WQEs that it has not read to the new ring. */
	qhca_mem_free(&srq->wq.mem);
	srq->wq.mem = wq.mem;
	srq->wq.size = wq.size;
	return 0;
}

int qhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct ibv_modify_srq cmd = {};
	int err;

	if (!(attr_mask & IBV_SRQ_MAX_WR))
		return qhca_ret(ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd,
						   sizeof(cmd)));
	qhca_lock(&srq->wq.lock);
	err = resize_srq(srq, attr, attr_mask);
	qhca_unlock(&srq->wq.lock);
	return qhca_ret(err);
}

int qhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return qhca_ret(ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd)));
}

int qhca_destroy_srq(struct ibv_srq *ibsrq)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct qhca_pd *pd = to_qpd(ibsrq->pd);
	int err;

	if (atomic_load(&srq->users))
		return qhca_ret(EBUSY);
	err = ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return qhca_ret(err);
	leave_cq(srq);
	qhca_mem_free(&srq->wq.mem);
	free(srq);
	qhca_pd_put(pd);
	return 0;
}

int qhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);

	return post_recv_list(&srq->wq, srq->db, QHCA_DB_SRQ, srq->srqn, wr,
			      bad_wr);
}
