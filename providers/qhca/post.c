// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting work requests: ibv_send_wr and ibv_recv_wr become WQEs.
 */
#include <errno.h>
#include <string.h>

#include "qhca.h"

#define QPT(type)	(1u << IBV_QPT_##type)
#define QPS(state)	(1u << IBV_QPS_##state)

/* Parts of a send WQE that an opcode has besides its SGEs. */
enum {
	HAS_IMM		= 1 << 0,
	HAS_KEY		= 1 << 1,	/* to invalidate */
	HAS_RDMA	= 1 << 2,
	HAS_ATOMIC	= 1 << 3,
	MAY_INLINE	= 1 << 4,
	NO_DATA		= 1 << 5,
};

struct send_op {
	uint8_t opcode;		/* enum qhca_wr_opcode */
	uint8_t parts;
	uint16_t qp_types;
};

/* Which opcode goes with which QP type: conformance B.1. */
static const struct send_op send_ops[] = {
	[IBV_WR_SEND] = {
		QHCA_WR_SEND, MAY_INLINE, QPT(RC) | QPT(UC) },
	[IBV_WR_SEND_WITH_IMM] = {
		QHCA_WR_SEND_WITH_IMM, HAS_IMM | MAY_INLINE,
		QPT(RC) | QPT(UC) },
	[IBV_WR_SEND_WITH_INV] = {
		QHCA_WR_SEND_WITH_INV, HAS_KEY | MAY_INLINE, QPT(RC) },
	[IBV_WR_RDMA_WRITE] = {
		QHCA_WR_RDMA_WRITE, HAS_RDMA | MAY_INLINE,
		QPT(RC) | QPT(UC) },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		QHCA_WR_RDMA_WRITE_WITH_IMM, HAS_RDMA | HAS_IMM | MAY_INLINE,
		QPT(RC) | QPT(UC) },
	[IBV_WR_RDMA_READ] = {
		QHCA_WR_RDMA_READ, HAS_RDMA, QPT(RC) },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		QHCA_WR_ATOMIC_CMP_AND_SWP, HAS_ATOMIC, QPT(RC) },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		QHCA_WR_ATOMIC_FETCH_AND_ADD, HAS_ATOMIC, QPT(RC) },
	[IBV_WR_LOCAL_INV] = {
		QHCA_WR_LOCAL_INV, HAS_KEY | NO_DATA, QPT(RC) | QPT(UC) },
};

/* Indexed by the lowest three bits of send_flags: FENCE, SIGNALED, SOLICITED. */
static const uint8_t wqe_flags[] = {
#define FLAGS(n) [n] = ((n) & IBV_SEND_FENCE ? QHCA_WQE_FENCE : 0) |	\
		       ((n) & IBV_SEND_SIGNALED ? QHCA_WQE_SIGNALED : 0) | \
		       ((n) & IBV_SEND_SOLICITED ? QHCA_WQE_SOLICITED : 0)
	FLAGS(0), FLAGS(1), FLAGS(2), FLAGS(3),
	FLAGS(4), FLAGS(5), FLAGS(6), FLAGS(7),
#undef FLAGS
};

/* Bit per enum ibv_wr_opcode that a QP of @type takes; 0: no such type here. */
uint32_t qhca_send_ops(enum ibv_qp_type type)
{
	uint32_t ops = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(send_ops); i++)
		if (send_ops[i].qp_types & 1u << type)
			ops |= 1u << i;
	return ops;
}

static void *wqe_at(const struct qhca_wq *wq, uint32_t index)
{
	return (uint8_t *)wq->mem.addr +
	       ((size_t)(index & (wq->size - 1)) << wq->stride_shift);
}

static bool wq_full(struct qhca_wq *wq)
{
	return wq->pi - atomic_load_explicit(&wq->ci, memory_order_acquire) >=
	       wq->size;
}

static void put_sges(struct qhca_sge *to, const struct ibv_sge *from,
		     unsigned int num_sge)
{
	unsigned int i;

	for (i = 0; i < num_sge; i++) {
		to[i].addr = htole64(from[i].addr);
		to[i].length = htole32(from[i].length);
		to[i].lkey = htole32(from[i].lkey);
	}
}

/* Returns the number of bytes, or more than @room if they do not fit. */
static uint32_t inline_len(const struct ibv_send_wr *wr, uint32_t room)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > room - len)
			return room + 1;
		len += wr->sg_list[i].length;
	}
	return len;
}

static void put_inline(uint8_t *to, const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void put_parts(struct qhca_sq_wqe *wqe, const struct ibv_send_wr *wr,
		      unsigned int parts)
{
	wqe->imm = 0;
	if (parts & HAS_IMM)
		wqe->imm = wr->imm_data;
	if (parts & HAS_KEY)
		wqe->inv_key = htole32(wr->invalidate_rkey);
	if (parts & HAS_RDMA) {
		wqe->rdma.addr = htole64(wr->wr.rdma.remote_addr);
		wqe->rdma.rkey = htole32(wr->wr.rdma.rkey);
	}
	if (parts & HAS_ATOMIC) {
		wqe->atomic.addr = htole64(wr->wr.atomic.remote_addr);
		wqe->atomic.rkey = htole32(wr->wr.atomic.rkey);
		wqe->atomic.rsvd = 0;
		wqe->atomic.swap_add = htole64(wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ?
					       wr->wr.atomic.swap :
					       wr->wr.atomic.compare_add);
		wqe->atomic.compare = htole64(wr->wr.atomic.compare_add);
	}
}

static int post_one_send(struct qhca_qp *qp, const struct ibv_send_wr *wr)
{
	struct qhca_wq *sq = &qp->sq;
	const struct send_op *op;
	struct qhca_sq_wqe *wqe;
	uint32_t count;
	uint8_t flags;

	if (unlikely((unsigned int)wr->opcode >= 32 ||
		     !(qp->send_ops & 1u << wr->opcode)))
		return EINVAL;
	op = &send_ops[wr->opcode];
	if (unlikely((unsigned int)wr->num_sge > sq->max_sge))
		return EINVAL;
	count = op->parts & NO_DATA ? 0 : wr->num_sge;
	flags = wqe_flags[wr->send_flags & 7];
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (unlikely(!(op->parts & MAY_INLINE)))
			return EINVAL;
		count = inline_len(wr, sq->max_inline);
		if (unlikely(count > sq->max_inline))
			return EINVAL;
		flags |= QHCA_WQE_INLINE;
	}
	if (unlikely(wq_full(sq)))
		return ENOMEM;

	wqe = wqe_at(sq, sq->pi);
	wqe->wr_id = htole64(wr->wr_id);
	wqe->opcode = op->opcode;
	wqe->flags = flags;
	wqe->count = htole16(count);
	put_parts(wqe, wr, op->parts);
	if (flags & QHCA_WQE_INLINE)
		put_inline((uint8_t *)(wqe + 1), wr);
	else
		put_sges((struct qhca_sge *)(wqe + 1), wr->sg_list, count);
	sq->pi++;
	return 0;
}

int qhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	const unsigned int states = QPS(RTS) | QPS(SQD) | QPS(SQE) | QPS(ERR);
	struct qhca_qp *qp = to_qqp(ibqp);
	uint32_t first;
	int err = 0;

	if (unlikely(!(states & 1u << ibqp->state))) {
		*bad_wr = wr;
		return EINVAL;
	}
	qhca_lock(&qp->sq.lock);
	first = qp->sq.pi;
	for (; wr; wr = wr->next) {
		err = post_one_send(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (qp->sq.pi != first)
		qhca_ring(qp->db, QHCA_DB_SQ, qp->qpn, qp->sq.pi);
	qhca_unlock(&qp->sq.lock);
	return err;
}

static int post_one_recv(struct qhca_wq *rq, const struct ibv_recv_wr *wr)
{
	struct qhca_rq_wqe *wqe;

	if (unlikely((unsigned int)wr->num_sge > rq->max_sge))
		return EINVAL;
	if (unlikely(wq_full(rq)))
		return ENOMEM;

	wqe = wqe_at(rq, rq->pi);
	wqe->wr_id = htole64(wr->wr_id);
	wqe->num_sge = htole16(wr->num_sge);
	put_sges((struct qhca_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	rq->pi++;
	return 0;
}

int qhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	uint32_t first;
	int err = 0;

	if (unlikely(ibqp->state == IBV_QPS_RESET)) {
		*bad_wr = wr;
		return EINVAL;
	}
	qhca_lock(&qp->rq.lock);
	first = qp->rq.pi;
	for (; wr; wr = wr->next) {
		err = post_one_recv(&qp->rq, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (qp->rq.pi != first)
		qhca_ring(qp->db, QHCA_DB_RQ, qp->qpn, qp->rq.pi);
	qhca_unlock(&qp->rq.lock);
	return err;
}
