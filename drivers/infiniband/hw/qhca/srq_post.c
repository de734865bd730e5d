// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: post to shared receive queues of kernel consumers.
 *
 * The WRs of an SRQ complete in any order, so the driver passes the device the index of a slot as
 * the wr_id, and keeps the consumer's wr_id in that slot. The device is not trusted: the slot that
 * it returns must belong to an outstanding WR.
 *
 * The WRs of an SRQ are not flushed when the device is dead, because the driver cannot tell which
 * QP had taken which of them. The consumer gets them back when it destroys the SRQ.
 */
#include "qhca_ib.h"

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
	out = slot < srq->size && srq->slots[slot].next == QHCA_IB_SLOT_OUT;
	if (out) {
		*wr = (struct qhca_ib_wr) {
			.wr_id = srq->slots[slot].wr_id,
			.len = srq->slots[slot].len,
			.opcode = IB_WC_RECV,
			.signaled = true,
		};
		srq->slots[slot].next = srq->free;
		srq->free = slot;
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
	/* There are as many slots as WQEs: if one is free, the device has read the WQE at @pi. */
	if (slot == QHCA_IB_SLOT_END)
		return qhca_ib_refuse(to_qdev(srq->ibsrq.device), -ENOMEM, "SRQ %#x: full",
				      srq->srqn);

	srq->free = srq->slots[slot].next;
	srq->slots[slot].next = QHCA_IB_SLOT_OUT;
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
	if (srq->pi != first &&
	    qhca_ib_rq_posted(&srq->mem, srq->size, srq->log_stride, srq->pi))
		qhca_ring(dev->core, QHCA_DB_SRQ, qhca_db(srq->srqn, srq->pi));
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}
