// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting work requests: convert ibv_send_wr and ibv_recv_wr to WQEs. */
#include <errno.h>
#include <string.h>

#include <qhca/qp.h>

#include "doorbell.h"
#include "wqe.h"

/* Segments for each kind in opcodes.def, and for the immediate data word. */
#define KIND_SEND	MAY_INLINE
#define KIND_WRITE	(HAS_RDMA | MAY_INLINE)
#define KIND_READ	HAS_RDMA
#define KIND_CAS	HAS_CAS
#define KIND_ADD	HAS_ADD
#define KIND_FLUSH	(NO_DATA | EX_ONLY)
#define KIND_STORE	(HAS_RDMA | MAY_INLINE | EX_OWN_DATA)
#define KIND_BIND	(HAS_BIND | NO_DATA)
#define KIND_INV	NO_DATA
#define WORD_NONE	0
#define WORD_IMM	HAS_IMM
#define WORD_KEY	HAS_KEY

/* Opcodes and the QP types that can execute them: conformance B.1. */
#define QHCA_WR(id, number, cqe, kind, word, types, ...)		\
	[IBV_WR_##id] = {						\
		number, KIND_##kind | WORD_##word,			\
		QHCA_TYPES_##types & ~(1u << QHCA_QPT_GSI)		\
	},
#define QHCA_KERNEL_WR(...)
static const struct qhca_send_op send_ops[QHCA_NUM_SEND_OPS] = {
#include <qhca/opcodes.def>
};

/* Description of the WQE for @opcode, which qhca_send_ops() must offer. */
const struct qhca_send_op *qhca_send_op(enum ibv_wr_opcode opcode)
{
	return &send_ops[opcode];
}

/* Mask of enum ibv_wr_opcode that QPs of @type can execute; 0: unsupported type. */
uint32_t qhca_send_ops(enum ibv_qp_type type)
{
	uint32_t ops = 0;
	unsigned int i;

	if ((unsigned int)type >= 8 * sizeof(send_ops[0].qp_types))
		return 0;
	for (i = 0; i < ARRAY_SIZE(send_ops); i++)
		if (send_ops[i].qp_types & 1u << type)
			ops |= 1u << i;
	return ops;
}

/* Returns the length of the inline data, or more than @room if it does not fit. */
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
	if (parts & HAS_IMM)
		wqe->imm = wr->imm_data;
	if (parts & HAS_KEY)
		wqe->inv_key = htole32(wr->invalidate_rkey);
	if (parts & HAS_RDMA)
		put_rdma(wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	if (parts & HAS_CAS)
		put_atomic(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
			   wr->wr.atomic.swap, wr->wr.atomic.compare_add);
	if (parts & HAS_ADD)
		put_atomic(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
			   wr->wr.atomic.compare_add, 0);
	if (parts & HAS_BIND)
		put_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			 &wr->bind_mw.bind_info);
}

static int post_one_send(struct qhca_qp *qp, const struct ibv_send_wr *wr)
{
	struct qhca_wq *sq = &qp->sq;
	const struct qhca_send_op *op;
	struct qhca_sq_wqe *wqe;
	uint32_t count;
	uint8_t flags;

	if (unlikely((unsigned int)wr->opcode >= 32 ||
		     !(qp->send_ops & 1u << wr->opcode)))
		return EINVAL;
	op = &send_ops[wr->opcode];
	if (unlikely((unsigned int)wr->num_sge > sq->max_sge ||
		     op->parts & EX_ONLY))
		return EINVAL;
	if (op->parts & HAS_BIND && check_bind(&wr->bind_mw.bind_info))
		return EINVAL;
	count = op->parts & NO_DATA ? 0 : wr->num_sge;
	flags = wqe_flags(wr->send_flags);
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
	put_header(wqe, wr->wr_id, op->opcode, flags, count);
	put_parts(wqe, wr, op->parts);
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		put_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
		       wr->wr.ud.remote_qkey);
	else if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		put_xrc(wqe, op->parts, wr->qp_type.xrc.remote_srqn);
	if (flags & QHCA_WQE_INLINE)
		put_inline((uint8_t *)(wqe + 1), wr);
	else
		put_sges((struct qhca_sge *)(wqe + 1), wr->sg_list, count);
	sq->pi++;
	return 0;
}

/* Bind windows of type 1 with ibv_bind_mw() only, which chooses their keys. */
static bool is_type_1(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW &&
	       wr->bind_mw.mw->type != IBV_MW_TYPE_2;
}

int qhca_post_bind(struct ibv_qp *ibqp, const struct ibv_send_wr *wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	int err;

	if (!may_post_send(ibqp))
		return qhca_ret(EINVAL);
	qhca_lock(&qp->sq.lock);
	err = post_one_send(qp, wr);
	if (!err)
		qhca_ring_sq(qp);
	qhca_unlock(&qp->sq.lock);
	return qhca_ret(err);
}

int qhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	uint32_t first;
	int err = 0;

	if (unlikely(!may_post_send(ibqp))) {
		*bad_wr = wr;
		return qhca_ret(EINVAL);
	}
	qhca_lock(&qp->sq.lock);
	first = qp->sq.pi;
	for (; wr; wr = wr->next) {
		err = is_type_1(wr) ? EINVAL : post_one_send(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (qp->sq.pi != first)
		qhca_ring_sq(qp);
	qhca_unlock(&qp->sq.lock);
	return qhca_ret(err);
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

/* Returns true if the device needs a doorbell as well. */
static bool rq_posted(const struct qhca_wq *rq)
{
	struct qhca_rq_dbrec *dbrec = rq_dbrec(rq);

	udma_to_device_barrier();
	*(volatile __le32 *)&dbrec->pi = htole32(rq->pi);
	/* Write pi before reading ring; the device does the reverse. */
	qhca_full_barrier();
	return *(volatile __le32 *)&dbrec->ring;
}

/* Post to the receive queue or SRQ with that number and doorbell register. */
int post_recv_list(struct qhca_wq *rq, void *db, uint32_t reg, uint32_t number,
		   struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	uint32_t first;
	int err = 0;

	qhca_lock(&rq->lock);
	first = rq->pi;
	for (; wr; wr = wr->next) {
		err = post_one_recv(rq, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (rq->pi != first && rq_posted(rq))
		qhca_ring(db, reg, number, rq->pi);
	qhca_unlock(&rq->lock);
	return qhca_ret(err);
}

int qhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);

	if (unlikely(ibqp->state == IBV_QPS_RESET || qp->srq)) {
		*bad_wr = wr;
		return qhca_ret(EINVAL);
	}
	return post_recv_list(&qp->rq, qp->db, QHCA_DB_RQ, qp->qpn, wr, bad_wr);
}
