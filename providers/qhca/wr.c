// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting with ibv_wr_*(): WQEs are built in place between wr_start() and
 * wr_complete(), which rings the doorbell for all of them or, after an error, for none.
 */
#include <errno.h>
#include <string.h>

#include "doorbell.h"
#include "wqe.h"

static struct qhca_qp *to_qqp_ex(struct ibv_qp_ex *ibqp)
{
	return to_qqp(&ibqp->qp_base);
}

static void wr_fail(struct qhca_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
	qp->wr_wqe = NULL;
}

/* Begin the next WQE. Returns NULL after an error, and then no more WQEs are built. */
static struct qhca_sq_wqe *wr_begin(struct ibv_qp_ex *ibqp,
				    enum ibv_wr_opcode opcode)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	struct qhca_sq_wqe *wqe;

	qp->wr_wqe = NULL;
	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(wq_full(&qp->sq))) {
		wr_fail(qp, ENOMEM);
		return NULL;
	}
	wqe = wqe_at(&qp->sq, qp->sq.pi++);
	qp->wr_wqe = wqe;
	qp->wr_op = qhca_send_op(opcode);
	put_header(wqe, ibqp->wr_id, qp->wr_op->opcode,
		   wqe_flags(ibqp->wr_flags), 0);
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	wr_begin(ibqp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm_data)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_SEND_WITH_IMM);

	if (likely(wqe))
		wqe->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_SEND_WITH_INV);

	if (likely(wqe))
		wqe->inv_key = htole32(invalidate_rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			  uint64_t remote_addr)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_RDMA_WRITE);

	if (likely(wqe))
		put_rdma(wqe, remote_addr, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (unlikely(!wqe))
		return;
	wqe->imm = imm_data;
	put_rdma(wqe, remote_addr, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey,
			 uint64_t remote_addr)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_RDMA_READ);

	if (likely(wqe))
		put_rdma(wqe, remote_addr, rkey);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_ATOMIC_CMP_AND_SWP);

	if (likely(wqe))
		put_atomic(wqe, remote_addr, rkey, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (likely(wqe))
		put_atomic(wqe, remote_addr, rkey, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_LOCAL_INV);

	if (likely(wqe))
		wqe->inv_key = htole32(invalidate_rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_BIND_MW);

	if (unlikely(!wqe))
		return;
	if (unlikely(mw->type != IBV_MW_TYPE_2 || check_bind(info))) {
		wr_fail(to_qqp_ex(ibqp), EINVAL);
		return;
	}
	put_bind(wqe, mw, rkey, info);
}

/* A range has 32 bits of length in the packet; for a region it is ignored. */
static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey,
		     uint64_t remote_addr, size_t len, uint8_t type,
		     uint8_t level)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_FLUSH);
	bool range = level == IBV_FLUSH_RANGE;

	if (unlikely(!wqe))
		return;
	if (unlikely(!type ||
		     type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) ||
		     level > IBV_FLUSH_MR || (range && len > UINT32_MAX))) {
		wr_fail(to_qqp_ex(ibqp), EINVAL);
		return;
	}
	put_rdma(wqe, remote_addr, rkey);
	wqe->flush.length = htole32(range ? len : 0);
	/* Verbs and device use the numbers of the IBTA. */
	wqe->flush.type = type;
	wqe->flush.level = level;
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct qhca_sq_wqe *wqe = wr_begin(ibqp, IBV_WR_ATOMIC_WRITE);

	if (unlikely(!wqe))
		return;
	put_rdma(wqe, remote_addr, rkey);
	memcpy(wqe + 1, atomic_wr, sizeof(uint64_t));
	wqe->flags |= QHCA_WQE_INLINE;
	wqe->count = htole16(sizeof(uint64_t));
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	if (unlikely(!qp->wr_wqe))
		return;
	if (unlikely(num_sge > qp->sq.max_sge ||
		     qp->wr_op->parts & (NO_DATA | EX_OWN_DATA))) {
		wr_fail(qp, EINVAL);
		return;
	}
	put_sges((struct qhca_sge *)(qp->wr_wqe + 1), sg_list, num_sge);
	qp->wr_wqe->count = htole16(num_sge);
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(ibqp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	struct qhca_sq_wqe *wqe = qp->wr_wqe;
	uint8_t *to = (uint8_t *)(wqe + 1);
	uint32_t len = 0;
	size_t i;

	if (unlikely(!wqe))
		return;
	if (unlikely(!(qp->wr_op->parts & MAY_INLINE) ||
		     qp->wr_op->parts & EX_OWN_DATA)) {
		wr_fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num_buf; i++) {
		if (unlikely(buf_list[i].length > qp->sq.max_inline - len)) {
			wr_fail(qp, EINVAL);
			return;
		}
		memcpy(to + len, buf_list[i].addr, buf_list[i].length);
		len += buf_list[i].length;
	}
	wqe->flags |= QHCA_WQE_INLINE;
	wqe->count = htole16(len);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
			       size_t length)
{
	const struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	if (likely(qp->wr_wqe))
		put_ud(qp->wr_wqe, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	if (likely(qp->wr_wqe))
		put_xrc(qp->wr_wqe, qp->wr_op->parts, remote_srqn);
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	qhca_lock(&qp->sq.lock);
	qp->wr_first = qp->sq.pi;
	qp->wr_wqe = NULL;
	qp->wr_err = may_post_send(&ibqp->qp_base) ? 0 : EINVAL;
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	int err = qp->wr_err;

	if (unlikely(err))
		qp->sq.pi = qp->wr_first;
	else if (likely(qp->sq.pi != qp->wr_first))
		qhca_ring_sq(qp);
	qhca_unlock(&qp->sq.lock);
	return qhca_ret(err);
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	qp->sq.pi = qp->wr_first;
	qhca_unlock(&qp->sq.lock);
}

/* The opcode for each bit of send_ops_flags. */
static const struct {
	uint32_t flag;
	enum ibv_wr_opcode opcode;
} wr_flags[] = {
	{ IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE },
	{ IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ IBV_QP_EX_WITH_SEND, IBV_WR_SEND },
	{ IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM },
	{ IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ },
	{ IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP },
	{ IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV },
	{ IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV },
	{ IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW },
	{ IBV_QP_EX_WITH_FLUSH, IBV_WR_FLUSH },
	{ IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE },
};

/* Whether the QP offers all operations that the user requests. */
static bool wr_offered(const struct qhca_qp *qp, uint64_t send_ops_flags)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wr_flags); i++)
		if (qp->send_ops & 1u << wr_flags[i].opcode)
			send_ops_flags &= ~(uint64_t)wr_flags[i].flag;
	return !send_ops_flags;
}

int qhca_qp_fill_ops(struct qhca_qp *qp, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *ibqp = &qp->vqp.qp_ex;

	if (!wr_offered(qp, send_ops_flags))
		return EOPNOTSUPP;

	ibqp->wr_start = wr_start;
	ibqp->wr_complete = wr_complete;
	ibqp->wr_abort = wr_abort;
	ibqp->wr_send = wr_send;
	ibqp->wr_send_imm = wr_send_imm;
	ibqp->wr_send_inv = wr_send_inv;
	ibqp->wr_rdma_write = wr_rdma_write;
	ibqp->wr_rdma_write_imm = wr_rdma_write_imm;
	ibqp->wr_rdma_read = wr_rdma_read;
	ibqp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ibqp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ibqp->wr_local_inv = wr_local_inv;
	ibqp->wr_bind_mw = wr_bind_mw;
	qhca_set_wr_flush(ibqp, wr_flush);
	ibqp->wr_atomic_write = wr_atomic_write;
	ibqp->wr_set_ud_addr = wr_set_ud_addr;
	ibqp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ibqp->wr_set_sge = wr_set_sge;
	ibqp->wr_set_sge_list = wr_set_sge_list;
	ibqp->wr_set_inline_data = wr_set_inline_data;
	ibqp->wr_set_inline_data_list = wr_set_inline_data_list;
	return 0;
}
