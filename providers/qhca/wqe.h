/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Segments of WQEs, for ibv_post_send() (post.c) and ibv_wr_*() (wr.c). */
#ifndef QHCA_WQE_H
#define QHCA_WQE_H

#include <errno.h>

#include "qhca.h"

#define QPS(state)	(1u << IBV_QPS_##state)

/* Segments that the send WQE of an opcode has besides its SGEs. */
enum {
	HAS_IMM		= 1 << 0,
	HAS_KEY		= 1 << 1,	/* key to invalidate */
	HAS_RDMA	= 1 << 2,
	HAS_CAS		= 1 << 3,
	HAS_ADD		= 1 << 4,
	MAY_INLINE	= 1 << 5,
	NO_DATA		= 1 << 6,
	HAS_BIND	= 1 << 7,
	EX_ONLY		= 1 << 8,	/* only for ibv_wr_*() */
	EX_OWN_DATA	= 1 << 9,	/* ibv_wr_*() gets opcode and data in one call */
};

struct qhca_send_op {
	uint8_t opcode;		/* enum qhca_wr_opcode */
	uint16_t parts;
	uint16_t qp_types;
};

#define QHCA_NUM_SEND_OPS	(IBV_WR_ATOMIC_WRITE + 1)

const struct qhca_send_op *qhca_send_op(enum ibv_wr_opcode opcode);

static inline bool may_post_send(const struct ibv_qp *ibqp)
{
	return (QPS(RTS) | QPS(SQD) | QPS(SQE) | QPS(ERR)) & 1u << ibqp->state;
}

static inline void *wqe_at(const struct qhca_wq *wq, uint32_t index)
{
	return (uint8_t *)wq->mem.addr +
	       ((size_t)(index & (wq->size - 1)) << wq->stride_shift);
}

static inline bool wq_full(struct qhca_wq *wq)
{
	return wq->pi - atomic_load_explicit(&wq->ci, memory_order_acquire) >=
	       wq->size;
}

static inline size_t wq_len(const struct qhca_wq *wq)
{
	return (size_t)wq->size << wq->stride_shift;
}

/* Bytes of a receive ring and its doorbell record. */
static inline size_t rq_len(const struct qhca_wq *wq)
{
	return wq_len(wq) + sizeof(struct qhca_rq_dbrec);
}

static inline struct qhca_rq_dbrec *rq_dbrec(const struct qhca_wq *wq)
{
	return (void *)((uint8_t *)wq->mem.addr + wq_len(wq));
}

static inline uint8_t wqe_flags(unsigned int send_flags)
{
	return (send_flags & IBV_SEND_FENCE ? QHCA_WQE_FENCE : 0) |
	       (send_flags & IBV_SEND_SIGNALED ? QHCA_WQE_SIGNALED : 0) |
	       (send_flags & IBV_SEND_SOLICITED ? QHCA_WQE_SOLICITED : 0) |
	       (send_flags & IBV_SEND_IP_CSUM ? QHCA_WQE_CSUM : 0);
}

static inline void put_header(struct qhca_sq_wqe *wqe, uint64_t wr_id,
			      uint8_t opcode, uint8_t flags, uint32_t count)
{
	wqe->wr_id = htole64(wr_id);
	wqe->opcode = opcode;
	wqe->flags = flags;
	wqe->count = htole16(count);
	wqe->imm = 0;
}

static inline void put_rdma(struct qhca_sq_wqe *wqe, uint64_t addr,
			    uint32_t rkey)
{
	wqe->rdma.addr = htole64(addr);
	wqe->rdma.rkey = htole32(rkey);
}

static inline void put_atomic(struct qhca_sq_wqe *wqe, uint64_t addr,
			      uint32_t rkey, uint64_t swap_add,
			      uint64_t compare)
{
	wqe->atomic.addr = htole64(addr);
	wqe->atomic.rkey = htole32(rkey);
	wqe->atomic.srqn = 0;
	wqe->atomic.swap_add = htole64(swap_add);
	wqe->atomic.compare = htole64(compare);
}

/* Check arguments that are never valid; the device checks the rest. */
static inline int check_bind(const struct ibv_mw_bind_info *info)
{
	const unsigned int taken = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_FLUSH_GLOBAL |
				   IBV_ACCESS_ZERO_BASED;

	if (info->mw_access_flags & ~taken || (!info->mr && info->length))
		return EINVAL;
	return info->mr &&
	       verbs_get_mr(info->mr)->mr_type == IBV_MR_TYPE_NULL_MR ?
	       EINVAL : 0;
}

/*
 * The window is @mw; only the low byte of @rkey is used, for the next key. As with
 * other adapters, a stale or invented index in @rkey does not name another window.
 */
static inline void put_bind(struct qhca_sq_wqe *wqe, const struct ibv_mw *mw,
			    uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	wqe->bind.addr = htole64(info->addr);
	wqe->bind.length = htole64(info->length);
	wqe->bind.mw_key = htole32((mw->rkey & ~0xffu) | (rkey & 0xff));
	wqe->bind.mr_key = htole32(info->mr ? info->mr->lkey : 0);
	/* The same bits; local write means nothing here, but is often set. */
	wqe->bind.access = htole16(info->mw_access_flags &
				   ~IBV_ACCESS_LOCAL_WRITE);
}

static inline void put_ud(struct qhca_sq_wqe *wqe, struct ibv_ah *ah,
			  uint32_t qpn, uint32_t qkey)
{
	wqe->ud.av = to_qah(ah)->av;
	wqe->ud.qpn = htole32(qpn);
	wqe->ud.qkey = htole32(qkey);
}

/* The SRQ of the peer; local WRs use the field for other values. */
static inline void put_xrc(struct qhca_sq_wqe *wqe, unsigned int parts,
			   uint32_t srqn)
{
	if (!(parts & NO_DATA))
		wqe->rdma.srqn = htole32(srqn);
}

static inline void put_sges(struct qhca_sge *to, const struct ibv_sge *from,
			    unsigned int num_sge)
{
	unsigned int i;

	for (i = 0; i < num_sge; i++) {
		to[i].addr = htole64(from[i].addr);
		to[i].length = htole32(from[i].length);
		to[i].lkey = htole32(from[i].lkey);
	}
}

int post_recv_list(struct qhca_wq *rq, void *db, uint32_t reg, uint32_t number,
		   struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif /* QHCA_WQE_H */
