// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: convert work requests of kernel consumers to WQEs.
 *
 * The WRs of an SRQ complete in any order, so the driver passes the device the index of a slot as
 * the wr_id, and keeps the consumer's wr_id in that slot. The device is not trusted: the slot that
 * it returns must belong to an outstanding WR.
 *
 * The WRs of an SRQ are not flushed when the device is dead, because the driver cannot tell which
 * QP had taken which of them. The consumer gets them back when it destroys the SRQ.
 */
#include "qhca_ib.h"

#define QPT(type)	BIT(IB_QPT_##type)

#define qhca_ib_refuse_wr(qp, err, fmt, ...)				\
	({								\
		const struct qhca_ib_qp *refuse_qp = (qp);		\
									\
		qhca_ib_refuse(to_qdev(refuse_qp->ibqp.device), err, "QP %#x: " fmt, \
			       refuse_qp->qpn, ##__VA_ARGS__);		\
	})

/* Segments that the send WQE of an opcode has besides its data, and what it allows. */
enum {
	QHCA_IB_IMM = BIT(0),
	QHCA_IB_RDMA = BIT(1),
	QHCA_IB_ATOMIC = BIT(2),
	QHCA_IB_SWAP = BIT(3),
	QHCA_IB_MAY_INLINE = BIT(4),
	QHCA_IB_KEY = BIT(5),		/* key to invalidate */
	QHCA_IB_REG = BIT(6),
	QHCA_IB_NO_DATA = BIT(7),
};

/* For each kind of opcode in opcodes.def, and for the use of the immediate data word. */
#define QHCA_IB_KIND_SEND	QHCA_IB_MAY_INLINE
#define QHCA_IB_KIND_WRITE	(QHCA_IB_RDMA | QHCA_IB_MAY_INLINE)
#define QHCA_IB_KIND_READ	QHCA_IB_RDMA
#define QHCA_IB_KIND_CAS	(QHCA_IB_ATOMIC | QHCA_IB_SWAP)
#define QHCA_IB_KIND_ADD	QHCA_IB_ATOMIC
#define QHCA_IB_KIND_STORE	QHCA_IB_KIND_WRITE
#define QHCA_IB_KIND_INV	QHCA_IB_NO_DATA
#define QHCA_IB_KIND_REG	(QHCA_IB_REG | QHCA_IB_NO_DATA)
#define QHCA_IB_WORD_NONE	0
#define QHCA_IB_WORD_IMM	QHCA_IB_IMM
#define QHCA_IB_WORD_KEY	QHCA_IB_KEY

/* Indexed by IB_WR_*. Kernel consumers cannot send on QPs of type XRC_INI. */
#define QHCA_WR(id, number, cqe, kind, word, types, ...)		\
	[IB_WR_##id] = {						\
		.opcode = number,					\
		.wc_opcode = IB_WC_##cqe,				\
		.parts = QHCA_IB_KIND_##kind | QHCA_IB_WORD_##word,	\
		.qp_types = QHCA_TYPES_##types & ~QPT(XRC_INI),		\
	},
#define QHCA_USER_WR(...)
static const struct qhca_ib_send_op {
	u8 opcode;
	u8 wc_opcode;
	u16 parts;
	u16 qp_types;
} qhca_ib_send_ops[] = {
#include <qhca/opcodes.def>
};

static const struct qhca_ib_send_op *qhca_ib_send_op(const struct qhca_ib_qp *qp, u32 opcode)
{
	const struct qhca_ib_send_op *op;

	if (opcode >= ARRAY_SIZE(qhca_ib_send_ops))
		return NULL;
	op = &qhca_ib_send_ops[opcode];
	return op->qp_types & BIT(qp->ibqp.qp_type) ? op : NULL;
}

static bool qhca_ib_wq_full(const struct qhca_ib_wq *wq)
{
	/* Pairs with the release in qhca_ib_wq_complete(). */
	return wq->pi - smp_load_acquire(&wq->ci) >= wq->size;
}

static void *qhca_ib_wqe(const struct qhca_ib_wq *wq)
{
	return wq->mem.ring.va + ((size_t)(wq->pi & (wq->size - 1)) << wq->log_stride);
}

static void qhca_ib_wq_push(struct qhca_ib_wq *wq, struct qhca_ib_wr wr)
{
	wq->wr[wq->pi & (wq->size - 1)] = wr;
	/* Pairs with the acquire in qhca_ib_wq_complete(). */
	smp_store_release(&wq->pi, wq->pi + 1);
}

/* Write the SGEs. Returns the sum of their lengths, or U32_MAX if that is larger. */
static u32 qhca_ib_put_sges(struct qhca_sge *to, const struct ib_sge *from, int n)
{
	u64 len = 0;
	int i;

	for (i = 0; i < n; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length = cpu_to_le32(from[i].length);
		to[i].lkey = cpu_to_le32(from[i].lkey);
		len += from[i].length;
	}
	return min_t(u64, len, U32_MAX);
}

/* Copy inline data from kernel addresses. Returns its length or -EINVAL. */
static int qhca_ib_put_inline(const struct qhca_ib_qp *qp, void *to,
			      const struct ib_send_wr *wr)
{
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return qhca_ib_refuse_wr(qp, -EINVAL, "more than %u bytes inline",
						 qp->max_inline);
		memcpy(to + len, (const void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	return len;
}

static void qhca_ib_put_atomic(struct qhca_sq_wqe *wqe, const struct ib_atomic_wr *atomic,
			       bool swap)
{
	wqe->atomic.addr = cpu_to_le64(atomic->remote_addr);
	wqe->atomic.rkey = cpu_to_le32(atomic->rkey);
	wqe->atomic.swap_add = cpu_to_le64(swap ? atomic->swap : atomic->compare_add);
	wqe->atomic.compare = cpu_to_le64(swap ? atomic->compare_add : 0);
}

/* Whether the key of a REG_MR belongs to its MR. */
static bool qhca_ib_reg_ok(const struct ib_send_wr *wr)
{
	const struct qhca_ib_mr *mr = to_qmr(reg_wr(wr)->mr);

	return mr->pages && !((reg_wr(wr)->key ^ mr->ibmr.lkey) & ~0xff) &&
	       !(reg_wr(wr)->access & ~(QHCA_ACCESS_MASK | IB_ACCESS_OPTIONAL));
}

static void qhca_ib_put_reg(struct qhca_sq_wqe *wqe, const struct ib_reg_wr *wr)
{
	const struct qhca_ib_mr *mr = to_qmr(wr->mr);

	wqe->reg.iova = cpu_to_le64(mr->ibmr.iova);
	wqe->reg.length = cpu_to_le64(mr->ibmr.length);
	wqe->reg.table = cpu_to_le64(mr->pages_dma);
	wqe->reg.key = cpu_to_le32(wr->key);
	wqe->reg.num_blocks = cpu_to_le32(mr->num_pages);
	wqe->reg.offset = cpu_to_le32(mr->offset);
	wqe->reg.access = cpu_to_le16(wr->access & QHCA_ACCESS_MASK);
	wqe->reg.block_shift = mr->gaps ? 0 : ilog2(mr->ibmr.page_size);
}

static void qhca_ib_put_parts(const struct qhca_ib_qp *qp, struct qhca_sq_wqe *wqe,
			      const struct ib_send_wr *wr, u16 parts)
{
	if (parts & QHCA_IB_IMM)
		wqe->imm = wr->ex.imm_data;
	if (parts & QHCA_IB_RDMA) {
		wqe->rdma.addr = cpu_to_le64(rdma_wr(wr)->remote_addr);
		wqe->rdma.rkey = cpu_to_le32(rdma_wr(wr)->rkey);
	}
	if (parts & QHCA_IB_ATOMIC)
		qhca_ib_put_atomic(wqe, atomic_wr(wr), parts & QHCA_IB_SWAP);
	if (parts & QHCA_IB_KEY)
		wqe->inv_key = cpu_to_le32(wr->ex.invalidate_rkey);
	if (parts & QHCA_IB_REG)
		qhca_ib_put_reg(wqe, reg_wr(wr));
	if (BIT(qp->ibqp.qp_type) & (QPT(UD) | QPT(GSI))) {
		wqe->ud.av = to_qah(ud_wr(wr)->ah)->av;
		wqe->ud.qpn = cpu_to_le32(ud_wr(wr)->remote_qpn);
		wqe->ud.qkey = cpu_to_le32(ud_wr(wr)->remote_qkey);
	}
}

static u8 qhca_ib_wqe_flags(int send_flags)
{
	return (send_flags & IB_SEND_SIGNALED ? QHCA_WQE_SIGNALED : 0) |
	       (send_flags & IB_SEND_SOLICITED ? QHCA_WQE_SOLICITED : 0) |
	       (send_flags & IB_SEND_IP_CSUM ? QHCA_WQE_CSUM : 0) |
	       (send_flags & IB_SEND_FENCE ? QHCA_WQE_FENCE : 0);
}

static int qhca_ib_post_one_send(struct qhca_ib_qp *qp, const struct ib_send_wr *wr)
{
	const struct qhca_ib_send_op *op = qhca_ib_send_op(qp, wr->opcode);
	struct qhca_sq_wqe *wqe;
	int count;
	u32 len;

	if (!op)
		return qhca_ib_refuse_wr(qp, -EINVAL, "send opcode %u", wr->opcode);
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return qhca_ib_refuse_wr(qp, -EINVAL, "send of %d SGEs", wr->num_sge);
	if ((wr->send_flags & IB_SEND_INLINE) && !(op->parts & QHCA_IB_MAY_INLINE))
		return qhca_ib_refuse_wr(qp, -EINVAL, "send opcode %u inline", wr->opcode);
	if ((op->parts & QHCA_IB_REG) && !qhca_ib_reg_ok(wr))
		return qhca_ib_refuse_wr(qp, -EINVAL, "key %#x or access %#x of REG_MR",
					 reg_wr(wr)->key, reg_wr(wr)->access);
	if (qhca_ib_wq_full(&qp->sq))
		return qhca_ib_refuse_wr(qp, -ENOMEM, "send queue full");

	wqe = qhca_ib_wqe(&qp->sq);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = cpu_to_le64(wr->wr_id);
	wqe->opcode = op->opcode;
	wqe->flags = qhca_ib_wqe_flags(wr->send_flags);
	qhca_ib_put_parts(qp, wqe, wr, op->parts);
	count = op->parts & QHCA_IB_NO_DATA ? 0 : wr->num_sge;
	if (wr->send_flags & IB_SEND_INLINE) {
		count = qhca_ib_put_inline(qp, wqe + 1, wr);
		if (count < 0)
			return count;
		wqe->flags |= QHCA_WQE_INLINE;
		len = count;
	} else {
		len = qhca_ib_put_sges((struct qhca_sge *)(wqe + 1), wr->sg_list, count);
	}
	wqe->count = cpu_to_le16(count);
	qhca_ib_wq_push(&qp->sq, (struct qhca_ib_wr) {
		.wr_id = wr->wr_id,
		.len = len,
		.opcode = op->wc_opcode,
		.signaled = qp->sig_all || wr->send_flags & IB_SEND_SIGNALED,
	});
	return 0;
}

/* A dead device completes nothing, so make the driver flush the queue. */
static void qhca_ib_check_quiet(struct qhca_ib_dev *dev)
{
	if (unlikely(qhca_is_quiet(dev->core)))
		queue_work(dev->wq, &dev->flush_work);
}

/**
 * qhca_ib_post_send - post_send verb
 * @ibqp: the QP, of a kernel consumer
 * @wr: list of work requests
 * @bad_wr: on error, the first work request that was not posted
 *
 * Context: any.
 * Return: 0; -EINVAL for an invalid work request or state, -ENOMEM if the queue is full.
 */
int qhca_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&qp->sq.lock, flags);
	if (READ_ONCE(qp->state) < IB_QPS_RTS)
		ret = qhca_ib_refuse_wr(qp, -EINVAL, "send in state %d", qp->state);
	for (first = qp->sq.pi; !ret && wr; wr = ret ? wr : wr->next)
		ret = qhca_ib_post_one_send(qp, wr);
	if (qp->sq.pi != first) {
		qhca_ring_slot(dev->core, qp->sq.slot, QHCA_DB_SQ, qhca_db(qp->qpn, qp->sq.pi));
		qhca_ib_check_quiet(dev);
	}
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}

/* Write a receive WQE; return the sum of the lengths of its SGEs. */
static u32 qhca_ib_put_recv_wqe(struct qhca_rq_wqe *wqe, u64 wr_id, const struct ib_recv_wr *wr)
{
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = cpu_to_le64(wr_id);
	wqe->num_sge = cpu_to_le16(wr->num_sge);
	return qhca_ib_put_sges((struct qhca_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
}

/* Publish the receive WQEs; ring the doorbell if the device asks for it, as it does in ERR. */
static void qhca_ib_rq_tell(struct qhca_ib_qp *qp)
{
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);
	struct qhca_ib_wq *rq = &qp->rq;

	if (qhca_ib_rq_posted(&rq->mem, rq->size, rq->log_stride, rq->pi))
		qhca_ring(dev->core, QHCA_DB_RQ, qhca_db(qp->qpn, rq->pi));
	qhca_ib_check_quiet(dev);
}

static int qhca_ib_post_one_recv(struct qhca_ib_qp *qp, const struct ib_recv_wr *wr)
{
	struct qhca_ib_wr posted = { .wr_id = wr->wr_id, .opcode = IB_WC_RECV, .signaled = true };

	if (wr->num_sge < 0 || wr->num_sge > qp->rq.max_sge)
		return qhca_ib_refuse_wr(qp, -EINVAL, "receive of %d SGEs", wr->num_sge);
	if (qhca_ib_wq_full(&qp->rq))
		return qhca_ib_refuse_wr(qp, -ENOMEM, "receive queue full");

	posted.len = qhca_ib_put_recv_wqe(qhca_ib_wqe(&qp->rq), wr->wr_id, wr);
	qhca_ib_wq_push(&qp->rq, posted);
	return 0;
}

/**
 * qhca_ib_post_recv - post_recv verb
 * @ibqp: the QP, of a kernel consumer
 * @wr: list of work requests
 * @bad_wr: on error, the first work request that was not posted
 *
 * Context: any.
 * Return: 0; -EINVAL for an invalid work request or state, -ENOMEM if the queue is full.
 */
int qhca_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&qp->rq.lock, flags);
	if (READ_ONCE(qp->state) == IB_QPS_RESET || ibqp->srq)
		ret = qhca_ib_refuse_wr(qp, -EINVAL, "receive in RESET, or with an SRQ");
	for (first = qp->rq.pi; !ret && wr; wr = ret ? wr : wr->next)
		ret = qhca_ib_post_one_recv(qp, wr);
	if (qp->rq.pi != first)
		qhca_ib_rq_tell(qp);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}

/**
 * qhca_ib_srq_complete - take an outstanding WR out of its slot
 * @srq: the SRQ, of a kernel consumer
 * @slot: the slot that the device returned
 * @wr: filled in
 *
 * Context: any.
 * Return: whether there is such a WR.
 */
bool qhca_ib_srq_complete(struct qhca_ib_srq *srq, u64 slot, struct qhca_ib_wr *wr)
{
	unsigned long flags;
	bool out;

	spin_lock_irqsave(&srq->lock, flags);
	out = slot < srq->num_slots && srq->slots[slot].next == QHCA_IB_SLOT_OUT;
	if (out) {
		*wr = (struct qhca_ib_wr) {
			.wr_id = srq->slots[slot].wr_id,
			.len = srq->slots[slot].len,
			.opcode = IB_WC_RECV,
			.signaled = true,
		};
		srq->slots[slot].next = srq->free;
		srq->free = slot;
		srq->out--;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return out;
}

static int qhca_ib_srq_post_one(struct qhca_ib_srq *srq, const struct ib_recv_wr *wr)
{
	u32 slot = srq->free;
	struct qhca_rq_wqe *wqe;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return qhca_ib_refuse(to_qdev(srq->ibsrq.device), -EINVAL,
				      "SRQ %#x: receive of %d SGEs", srq->srqn, wr->num_sge);
	/* There is one WQE for each WR: if there is room, the device has read the WQE at @pi. */
	if (srq->out >= srq->room || slot == QHCA_IB_SLOT_END)
		return qhca_ib_refuse(to_qdev(srq->ibsrq.device), -ENOMEM, "SRQ %#x: full",
				      srq->srqn);

	srq->free = srq->slots[slot].next;
	srq->slots[slot].next = QHCA_IB_SLOT_OUT;
	srq->out++;
	srq->slots[slot].wr_id = wr->wr_id;
	wqe = srq->mem.ring.va + ((size_t)(srq->pi++ & (srq->size - 1)) << srq->log_stride);
	srq->slots[slot].len = qhca_ib_put_recv_wqe(wqe, slot, wr);
	return 0;
}

/**
 * qhca_ib_post_srq_recv - post_srq_recv verb
 * @ibsrq: the SRQ, of a kernel consumer
 * @wr: list of work requests
 * @bad_wr: on error, the first work request that was not posted
 *
 * Context: any.
 * Return: 0; -EINVAL for an invalid work request, -ENOMEM if the queue is full.
 */
int qhca_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&srq->lock, flags);
	for (first = srq->pi; !ret && wr; wr = ret ? wr : wr->next)
		ret = qhca_ib_srq_post_one(srq, wr);
	if (srq->pi != first && !srq->moving &&
	    qhca_ib_rq_posted(&srq->mem, srq->size, srq->log_stride, srq->pi))
		qhca_ring(dev->core, QHCA_DB_SRQ, qhca_db(srq->srqn, srq->pi));
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}
