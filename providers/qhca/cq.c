// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/ilog.h>

#include "qhca.h"
#include "qhca-abi.h"

static const uint8_t wc_opcode[] = {
	[QHCA_CQE_SEND] = IBV_WC_SEND,
	[QHCA_CQE_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[QHCA_CQE_RDMA_READ] = IBV_WC_RDMA_READ,
	[QHCA_CQE_COMP_SWAP] = IBV_WC_COMP_SWAP,
	[QHCA_CQE_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[QHCA_CQE_BIND_MW] = IBV_WC_BIND_MW,
	[QHCA_CQE_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[QHCA_CQE_RECV] = IBV_WC_RECV,
	[QHCA_CQE_RECV_RDMA_WITH_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
};

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
	cq->dbrec = (void *)(cq->ring + (1u << log_size));
	cq->log_size = log_size;
}

static struct qhca_cqe *cqe_at(const struct qhca_cq *cq, uint32_t index)
{
	return cq->ring + (index & ((1u << cq->log_size) - 1));
}

/* The phase that marks a valid CQE alternates with every pass over the ring. */
static uint8_t valid_phase(const struct qhca_cq *cq, uint32_t index)
{
	return index >> cq->log_size & 1 ? 0 : QHCA_OWNER_PHASE;
}

static bool cqe_valid(const struct qhca_cq *cq, const struct qhca_cqe *cqe,
		      uint32_t index)
{
	uint8_t owner = *(const volatile uint8_t *)&cqe->owner;

	return (owner & QHCA_OWNER_PHASE) == valid_phase(cq, index);
}

/* Give what has been consumed back to the device, after the last read of it. */
static void cq_write_ci(struct qhca_cq *cq)
{
	atomic_thread_fence(memory_order_release);
	udma_to_device_barrier();
	*(volatile __le32 *)&cq->dbrec->ci = htole32(cq->ci);
}

/* QPs of a CQ. All under the lock of the CQ. */

static struct qhca_qp_link **map_bucket(struct qhca_qp_map *map, uint32_t qpn)
{
	return &map->bucket[qpn & (map->num_buckets - 1)];
}

static int map_grow(struct qhca_qp_map *map)
{
	struct qhca_qp_map old = *map;
	struct qhca_qp_link *link;
	uint32_t i;

	map->num_buckets = old.num_buckets ? 2 * old.num_buckets : 8;
	map->bucket = calloc(map->num_buckets, sizeof(*map->bucket));
	if (!map->bucket) {
		*map = old;
		return ENOMEM;
	}
	for (i = 0; i < old.num_buckets; i++) {
		while ((link = old.bucket[i])) {
			struct qhca_qp_link **to = map_bucket(map, link->qp->qpn);

			old.bucket[i] = link->next;
			link->next = *to;
			*to = link;
		}
	}
	free(old.bucket);
	return 0;
}

int qhca_cq_add_qp(struct qhca_cq *cq, struct qhca_qp_link *link)
{
	struct qhca_qp_map *map = &cq->qps;
	struct qhca_qp_link **bucket;
	int err = 0;

	qhca_lock(&cq->lock);
	if (map->count >= map->num_buckets)
		err = map_grow(map);
	if (!err) {
		bucket = map_bucket(map, link->qp->qpn);
		link->next = *bucket;
		*bucket = link;
		map->count++;
	}
	qhca_unlock(&cq->lock);
	return err;
}

void qhca_cq_del_qp(struct qhca_cq *cq, struct qhca_qp_link *link)
{
	struct qhca_qp_map *map = &cq->qps;
	struct qhca_qp_link **at;

	qhca_lock(&cq->lock);
	for (at = map_bucket(map, link->qp->qpn); *at; at = &(*at)->next) {
		if (*at == link) {
			*at = link->next;
			map->count--;
			break;
		}
	}
	map->last = NULL;
	qhca_unlock(&cq->lock);
}

static struct qhca_qp *map_find(struct qhca_qp_map *map, uint32_t qpn)
{
	struct qhca_qp_link *link;

	if (map->last && map->last->qpn == qpn)
		return map->last;
	if (!map->count)
		return NULL;
	for (link = *map_bucket(map, qpn); link; link = link->next) {
		if (link->qp->qpn == qpn) {
			map->last = link->qp;
			return link->qp;
		}
	}
	return NULL;
}

/* Polling */

/* A CQE frees its WQE and all before it; errors and flushes are no exception. */
static void free_slots(struct qhca_qp *qp, const struct qhca_cqe *cqe,
		       uint16_t flags)
{
	struct qhca_wq *wq = flags & QHCA_CQE_SQ ? &qp->sq : &qp->rq;

	atomic_store_explicit(&wq->ci, le32toh(cqe->wqe_index) + 1,
			      memory_order_release);
}

static unsigned int wc_flags(uint16_t flags)
{
	return (flags & QHCA_CQE_GRH ? IBV_WC_GRH : 0) |
	       (flags & QHCA_CQE_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & QHCA_CQE_INV ? IBV_WC_WITH_INV : 0);
}

static void fill_wc(struct ibv_wc *wc, const struct qhca_cqe *cqe,
		    uint16_t flags)
{
	wc->wr_id = le64toh(cqe->wr_id);
	wc->status = cqe->status;
	wc->opcode = cqe->opcode < ARRAY_SIZE(wc_opcode) ?
		     wc_opcode[cqe->opcode] : 0;
	wc->vendor_err = le32toh(cqe->vendor_err);
	wc->byte_len = le32toh(cqe->byte_len);
	if (flags & QHCA_CQE_INV)
		wc->invalidated_rkey = le32toh(cqe->inv_key);
	else
		wc->imm_data = cqe->imm;
	wc->qp_num = le32toh(cqe->qpn);
	wc->src_qp = le32toh(cqe->src_qp);
	wc->wc_flags = wc_flags(flags);
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

int qhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_cqe *cqe;
	struct qhca_qp *qp;
	uint32_t first;
	uint16_t flags;
	int n = 0;

	qhca_lock(&cq->lock);
	first = cq->ci;
	while (n < num_entries) {
		cqe = cqe_at(cq, cq->ci);
		if (!cqe_valid(cq, cqe, cq->ci))
			break;
		udma_from_device_barrier();
		cq->ci++;

		qp = map_find(&cq->qps, le32toh(cqe->qpn));
		if (unlikely(!qp))
			continue;	/* nobody is left to tell */
		flags = le16toh(cqe->flags);
		fill_wc(&wc[n++], cqe, flags);
		free_slots(qp, cqe, flags);
	}
	if (cq->ci != first)
		cq_write_ci(cq);
	qhca_unlock(&cq->lock);
	return n;
}

int qhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	uint64_t obj = cq->cqn;
	uint32_t sn;

	if (solicited_only)
		obj |= QHCA_DB_SOLICITED;
	sn = atomic_fetch_add_explicit(&cq->arm_sn, 1, memory_order_relaxed);
	qhca_ring(cq->db, QHCA_DB_CQ_ARM, obj, sn + 1);
	return 0;
}

/*
 * Remove the CQEs of a QP that the device will not complete on any more; those
 * of other QPs close up, newest first, so none is lost if the device goes on
 * writing behind them.
 */
void qhca_cq_clean(struct qhca_cq *cq, uint32_t qpn)
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
		if (le32toh(from->qpn) == qpn) {
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

/* Life */

struct ibv_cq *qhca_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct qhca_context *ctx = to_qctx(ibctx);
	struct uqhca_create_cq_resp resp = {};
	struct uqhca_create_cq cmd = {};
	struct qhca_mem mem;
	struct qhca_cq *cq;
	uint32_t log_size;
	int err;

	if (cqe < 1 || (uint32_t)cqe > ctx->max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	log_size = ilog32(cqe - 1);
	err = qhca_mem_alloc(&mem, cq_mem_len(log_size));
	if (err)
		goto err_free;
	cq_use_mem(cq, &mem, log_size);

	cmd.buf_addr = (uintptr_t)mem.addr;
	cmd.buf_len = cq_mem_len(log_size);
	cmd.log_size = log_size;
	err = ibv_cmd_create_cq(ibctx, cqe, channel, comp_vector, &cq->vcq.cq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (err)
		goto err_mem;

	cq->cqn = resp.cqn;
	cq->db = ctx->db;
	qhca_lock_init(&cq->lock, ctx);
	return &cq->vcq.cq;

err_mem:
	qhca_mem_free(&mem);
err_free:
	free(cq);
	errno = err;
	return NULL;
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
		return EINVAL;

	log_size = ilog32(cqe - 1);
	err = qhca_mem_alloc(&mem, cq_mem_len(log_size));
	if (err)
		return err;

	cmd.buf_addr = (uintptr_t)mem.addr;
	cmd.buf_len = cq_mem_len(log_size);
	cmd.log_size = log_size;
	qhca_lock(&cq->lock);
	old = cq->mem;
	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (!err) {
		/* The device has moved the CQEs that were not polled. */
		cq_use_mem(cq, &mem, log_size);
		cq->ci = 0;
	}
	qhca_unlock(&cq->lock);

	qhca_mem_free(err ? &mem : &old);
	return err;
}

int qhca_destroy_cq(struct ibv_cq *ibcq)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;

	pthread_spin_destroy(&cq->lock.lock);
	qhca_mem_free(&cq->mem);
	free(cq->qps.bucket);
	free(cq);
	return 0;
}
