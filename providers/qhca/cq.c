// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Create, resize and destroy completion queues; tables of the QPs that complete on
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/ilog.h>

#include "cq.h"
#include "given.h"
#include "qhca-abi.h"

static size_t cq_mem_len(uint32_t log_size)
{
	return (sizeof(struct qhca_cqe) << log_size) +
	       sizeof(struct qhca_cq_dbrec);
}

static void cq_use_mem(struct qhca_cq *cq, const struct qhca_mem *mem,
		       uint32_t log_size)
{
	cq->mem = *mem;
	cq->ring = mem->addr;
	cq->dbrec = cq_dbrec(mem->addr, log_size);
	cq->log_size = log_size;
}

/* Tables of the QPs and XRC SRQs of a CQ. Used only under the lock of the CQ. */

static int map_grow(struct qhca_map *map)
{
	struct qhca_map old = *map;
	struct qhca_link *link, **to;
	uint32_t i;

	map->num_buckets = old.num_buckets ? 2 * old.num_buckets : 8;
	map->bucket = calloc(map->num_buckets, sizeof(*map->bucket));
	if (!map->bucket) {
		*map = old;
		return ENOMEM;
	}
	for (i = 0; i < old.num_buckets; i++) {
		while ((link = old.bucket[i])) {
			old.bucket[i] = link->next;
			to = map_bucket(map, link->number);
			link->next = *to;
			*to = link;
		}
	}
	free(old.bucket);
	return 0;
}

int qhca_cq_add(struct qhca_cq *cq, struct qhca_map *map,
		struct qhca_link *link)
{
	struct qhca_link **bucket;
	int err = 0;

	qhca_lock(&cq->lock);
	if (map->count >= map->num_buckets)
		err = map_grow(map);
	if (!err) {
		bucket = map_bucket(map, link->number);
		link->next = *bucket;
		*bucket = link;
		map->count++;
	}
	qhca_unlock(&cq->lock);
	return err;
}

void qhca_cq_del(struct qhca_cq *cq, struct qhca_map *map,
		 struct qhca_link *link)
{
	struct qhca_link **at;

	qhca_lock(&cq->lock);
	for (at = map_bucket(map, link->number); *at; at = &(*at)->next) {
		if (*at == link) {
			*at = link->next;
			map->count--;
			break;
		}
	}
	map->last = NULL;
	qhca_unlock(&cq->lock);
}

/* Whether the CQE belongs to @qp, or, if @qp is NULL, to the XRC SRQ @srq. */
static bool cqe_is_of(const struct qhca_cqe *cqe, const struct qhca_qp *qp,
		      const struct qhca_srq *srq)
{
	if (qp)
		return le32toh(cqe->qpn) == qp->qpn;
	return le16toh(cqe->flags) & QHCA_CQE_XRC &&
	       le32toh(cqe->srqn) == srq->srqn;
}

/*
 * Remove the CQEs of a QP or SRQ that the device does not use any more. The other CQEs
 * close up, newest first, so that none is lost if the device writes more CQEs behind
 * them.
 */
static void cq_clean(struct qhca_cq *cq, const struct qhca_qp *qp,
		     const struct qhca_srq *srq)
{
	uint32_t end, i, freed = 0;
	struct qhca_cqe *from, *to;
	uint8_t owner;

	qhca_lock(&cq->lock);
	for (end = cq->ci; end - cq->ci < 1u << cq->log_size; end++)
		if (!cqe_valid(cq, cqe_at(cq, end), end))
			break;
	udma_from_device_barrier();

	for (i = end; i != cq->ci; i--) {
		from = cqe_at(cq, i - 1);
		if (cqe_is_of(from, qp, srq)) {
			/* The WR is complete, though its completion is never polled. */
			if (qp && qp->srq &&
			    !(le16toh(from->flags) & QHCA_CQE_SQ))
				srq_free_one(qp->srq);
			freed++;
		} else if (freed) {
			to = cqe_at(cq, i - 1 + freed);
			owner = to->owner;
			*to = *from;
			to->owner = owner;
		}
	}
	if (freed) {
		cq->ci += freed;
		cq_write_ci(cq);
	}
	qhca_unlock(&cq->lock);
}

void qhca_cq_clean_qp(struct qhca_cq *cq, struct qhca_qp *qp)
{
	cq_clean(cq, qp, NULL);
}

void qhca_cq_clean_srq(struct qhca_cq *cq, struct qhca_srq *srq)
{
	cq_clean(cq, NULL, srq);
}

/* Life */

static int cmd_create_cq(struct ibv_context *ibctx, struct qhca_cq *cq,
			 const struct ibv_cq_init_attr_ex *attr)
{
	struct uqhca_create_cq_resp resp = {};
	struct uqhca_create_cq cmd = {};
	int err;

	cmd.buf_addr = (uintptr_t)cq->mem.addr;
	cmd.buf_len = cq_mem_len(cq->log_size);
	cmd.log_size = cq->log_size;
	cmd.flags = cq->arm_in_record ? QHCA_CREATE_CQ_DBREC : 0;
	err = ibv_cmd_create_cq_ex(ibctx, attr, NULL, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp), 0);
	cq->cqn = resp.cqn;
	return err;
}

static int check_cq_attr(const struct qhca_context *ctx,
			 const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS |
			       IBV_CQ_INIT_ATTR_MASK_PD;
	const struct qhca_given given[] = {
		{ IBV_CQ_INIT_ATTR_MASK_PD, attr->parent_domain },
	};

	if (qhca_check_given(attr->comp_mask, given, ARRAY_SIZE(given)))
		return EINVAL;
	if (!check_comp_mask(attr->comp_mask, known) ||
	    !check_comp_mask(attr->wc_flags, ctx->wc_flags))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    !check_comp_mask(attr->flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    !to_qpd(attr->parent_domain)->inner)
		return EINVAL;
	if (attr->cqe < 1 || attr->cqe > ctx->max_cqe)
		return EINVAL;
	return 0;
}

static struct qhca_pd *parent_domain(const struct ibv_cq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		return NULL;
	return to_qpd(attr->parent_domain);
}

static bool is_single_threaded(const struct ibv_cq_init_attr_ex *attr)
{
	const struct qhca_pd *pd = parent_domain(attr);

	return (pd && pd->td) ||
	       (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
		attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

static struct qhca_cq *create_cq(struct ibv_context *ibctx,
				 const struct ibv_cq_init_attr_ex *attr)
{
	struct qhca_context *ctx = to_qctx(ibctx);
	struct qhca_cq *cq = NULL;
	struct qhca_mem mem;
	uint32_t log_size;
	int err;

	err = check_cq_attr(ctx, attr);
	if (err)
		goto err_free;
	err = ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_free;
	log_size = ilog32(attr->cqe - 1);
	cq->pd = parent_domain(attr);
	err = qhca_mem_alloc(&mem, cq_mem_len(log_size), cq->pd, QHCA_MEM_CQ);
	if (err)
		goto err_free;
	cq_use_mem(cq, &mem, log_size);
	cq->arm_in_record = ctx->shadow_mem.addr;
	err = cmd_create_cq(ibctx, cq, attr);
	if (err)
		goto err_mem;

	qhca_pd_get(cq->pd);
	cq->db = ctx->db;
	qhca_lock_init(&cq->lock, ctx, is_single_threaded(attr));
	qhca_lock_init(&cq->arm_lock, ctx, is_single_threaded(attr));
	return cq;

err_mem:
	qhca_mem_free(&mem);
err_free:
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *qhca_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct qhca_cq *cq = create_cq(ibctx, &attr);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *ibctx,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct qhca_cq *cq = create_cq(ibctx, attr);

	if (!cq)
		return NULL;
	qhca_cq_fill_ops(to_qctx(ibctx), &cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int qhca_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct qhca_context *ctx = to_qctx(ibcq->context);
	struct ib_uverbs_resize_cq_resp resp = {};
	struct uqhca_resize_cq cmd = {};
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_mem mem, old;
	uint32_t log_size;
	int err;

	if (cqe < 1 || (uint32_t)cqe > ctx->max_cqe)
		return qhca_ret(EINVAL);

	log_size = ilog32(cqe - 1);
	err = qhca_mem_alloc(&mem, cq_mem_len(log_size), cq->pd, QHCA_MEM_CQ);
	if (err)
		return qhca_ret(err);

	cmd.buf_addr = (uintptr_t)mem.addr;
	cmd.buf_len = cq_mem_len(log_size);
	cmd.log_size = log_size;
	qhca_lock(&cq->lock);
	qhca_lock(&cq->arm_lock);
	if (cq->arm_in_record)
		cq_write_arm(cq, cq_dbrec(mem.addr, log_size));
	old = cq->mem;
	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (!err) {
		/* The device has copied unpolled CQEs to the new ring. */
		cq_use_mem(cq, &mem, log_size);
		cq->ci = 0;
	}
	qhca_unlock(&cq->arm_lock);
	qhca_unlock(&cq->lock);

	qhca_mem_free(err ? &mem : &old);
	return qhca_ret(err);
}

int qhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return qhca_ret(ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd)));
}

/* The kernel may destroy a QP while another thread still removes its CQEs here. */
static bool is_in_use(struct qhca_cq *cq)
{
	bool used;

	qhca_lock(&cq->lock);
	used = cq->qps.count || cq->srqs.count;
	qhca_unlock(&cq->lock);
	return used;
}

int qhca_destroy_cq(struct ibv_cq *ibcq)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	int err;

	if (is_in_use(cq))
		return qhca_ret(EBUSY);
	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return qhca_ret(err);

	qhca_mem_free(&cq->mem);
	qhca_pd_put(cq->pd);
	free(cq->qps.bucket);
	free(cq->srqs.bucket);
	free(cq);
	return 0;
}
