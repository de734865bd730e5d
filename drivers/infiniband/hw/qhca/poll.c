// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: completions of kernel consumers.
 *
 * The device is not trusted: a CQE must name a QP of this CQ and an outstanding WQE. The wr_id,
 * which is often a pointer, and the operation are taken from the driver's own record of the WQE. A
 * device that completes anything else is declared dead; then all outstanding WQEs are flushed.
 */
#include <linux/if_vlan.h>

#include "qhca_ib.h"

/* Statuses have the same numbers, so they need no table. */
static_assert(QHCA_WC_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR &&
	      QHCA_WC_REM_ACCESS_ERR == (int)IB_WC_REM_ACCESS_ERR &&
	      QHCA_WC_RNR_RETRY_EXC_ERR == (int)IB_WC_RNR_RETRY_EXC_ERR &&
	      QHCA_WC_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

static struct qhca_cqe *qhca_ib_cqe(const struct qhca_ib_cq *cq, u32 index)
{
	return (struct qhca_cqe *)cq->mem.ring.va + (index & (BIT(cq->log_size) - 1));
}

static struct qhca_cq_dbrec *qhca_ib_cq_dbrec(const struct qhca_ib_cq *cq)
{
	return cq->mem.ring.va + (sizeof(struct qhca_cqe) << cq->log_size);
}

static bool qhca_ib_cqe_valid(const struct qhca_ib_cq *cq, u32 index)
{
	u8 phase = index >> cq->log_size & 1 ? 0 : QHCA_OWNER_PHASE;

	return (READ_ONCE(qhca_ib_cqe(cq, index)->owner) & QHCA_OWNER_PHASE) == phase;
}

/* Tell the device that the CQEs before @cq->ci have been taken. */
static void qhca_ib_cq_write_ci(struct qhca_ib_cq *cq)
{
	/* The CQEs must have been read before the device may overwrite them. */
	dma_mb();
	WRITE_ONCE(qhca_ib_cq_dbrec(cq)->ci, cpu_to_le32(cq->ci));
}

/* Complete the WQE at @index and all before it. Fills in @wr with what was posted there. */
static bool qhca_ib_wq_complete(struct qhca_ib_wq *wq, u32 index, struct qhca_ib_wr *wr)
{
	/* Pairs with the release in qhca_ib_wq_push(). */
	if (index - wq->ci >= smp_load_acquire(&wq->pi) - wq->ci)
		return false;
	*wr = wq->wr[index & (wq->size - 1)];
	/* From here on the slots are reused; pairs with qhca_ib_wq_full(). */
	smp_store_release(&wq->ci, index + 1);
	return true;
}

/* The QP that a CQE names, or NULL if that QP does not complete in @cq. */
static struct qhca_ib_qp *qhca_ib_cqe_qp(struct qhca_ib_cq *cq, const struct qhca_cqe *cqe)
{
	bool xrc = le16_to_cpu(cqe->flags) & QHCA_CQE_XRC;

	return xa_load(xrc ? &to_qdev(cq->ibcq.device)->targets : &cq->qps,
		       le32_to_cpu(cqe->qpn));
}

/* The SRQ whose WQE a CQE completes, or NULL. */
static struct qhca_ib_srq *qhca_ib_cqe_srq(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
					   const struct qhca_cqe *cqe)
{
	if (le16_to_cpu(cqe->flags) & QHCA_CQE_XRC)
		return xa_load(&cq->srqs, le32_to_cpu(cqe->srqn));
	return qp && qp->ibqp.srq ? to_qsrq(qp->ibqp.srq) : NULL;
}

/* Complete the WQE that a CQE names. Returns false if there is no such WQE. */
static bool qhca_ib_complete(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			     const struct qhca_cqe *cqe, struct qhca_ib_wr *wr)
{
	bool sq = le16_to_cpu(cqe->flags) & QHCA_CQE_SQ;
	struct qhca_ib_srq *srq = sq ? NULL : qhca_ib_cqe_srq(cq, qp, cqe);

	if (qp->xrcd)
		return srq && qhca_ib_srq_complete(srq, le64_to_cpu(cqe->wr_id), wr);
	if ((sq ? qp->ibqp.send_cq : qp->ibqp.recv_cq) != &cq->ibcq)
		return false;
	if (srq)
		return qhca_ib_srq_complete(srq, le64_to_cpu(cqe->wr_id), wr);
	return qhca_ib_wq_complete(sq ? &qp->sq : &qp->rq, le32_to_cpu(cqe->wqe_index), wr);
}

static bool qhca_ib_is_ud(const struct qhca_ib_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* The length in such a CQE is the WRITE's, and unrelated to the SGEs of the WR. */
static bool qhca_ib_is_write_imm(const struct qhca_ib_wr *wr, const struct qhca_cqe *cqe)
{
	return wr->opcode == IB_WC_RECV && cqe->opcode == QHCA_CQE_RECV_RDMA_WITH_IMM;
}

/* Whether the CQE can be true. Only a success makes claims that can be checked. */
static bool qhca_ib_cqe_ok(const struct qhca_ib_qp *qp, const struct qhca_ib_wr *wr,
			   const struct qhca_cqe *cqe)
{
	u32 len = le32_to_cpu(cqe->byte_len);

	if (cqe->status != QHCA_WC_SUCCESS)
		return true;
	if (!wr->signaled)
		return false;
	if (qhca_ib_is_write_imm(wr, cqe))
		return !qhca_ib_is_ud(qp);
	if (wr->opcode == IB_WC_RECV && qhca_ib_is_ud(qp) &&
	    (len < sizeof(struct ib_grh) || !(le16_to_cpu(cqe->flags) & QHCA_CQE_GRH)))
		return false;
	return len <= wr->len;
}

static void qhca_ib_fill_wc_ud(struct ib_wc *wc, const struct qhca_cqe *cqe, u16 flags)
{
	wc->src_qp = le32_to_cpu(cqe->src_qp);
	wc->pkey_index = 0;	/* the port has only one P_Key */
	wc->sl = cqe->sl;
	wc->port_num = QHCA_IB_PORT;
	wc->network_hdr_type = flags & QHCA_CQE_IPV4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	memcpy(wc->smac, cqe->smac, sizeof(wc->smac));
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	if (flags & QHCA_CQE_VLAN) {
		wc->vlan_id = le16_to_cpu(cqe->vlan_tci) & VLAN_VID_MASK;
		wc->wc_flags |= IB_WC_WITH_VLAN;
	}
}

static void qhca_ib_fill_wc(struct ib_wc *wc, struct qhca_ib_qp *qp,
			    const struct qhca_ib_wr *wr, const struct qhca_cqe *cqe)
{
	u16 flags = le16_to_cpu(cqe->flags);

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr->wr_id;
	wc->qp = &qp->ibqp;
	wc->opcode = qhca_ib_is_write_imm(wr, cqe) ? IB_WC_RECV_RDMA_WITH_IMM : wr->opcode;
	wc->status = min_t(u8, cqe->status, IB_WC_GENERAL_ERR);
	wc->vendor_err = le32_to_cpu(cqe->vendor_err);
	if (wc->status != IB_WC_SUCCESS)
		return;

	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (flags & QHCA_CQE_IMM) {
		wc->ex.imm_data = cqe->imm;
		wc->wc_flags |= IB_WC_WITH_IMM;
	} else if (flags & QHCA_CQE_INV) {
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_key);
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
	}
	if (flags & QHCA_CQE_CSUM_OK)
		wc->wc_flags |= IB_WC_IP_CSUM_OK;
	if (wr->opcode == IB_WC_RECV && qhca_ib_is_ud(qp))
		qhca_ib_fill_wc_ud(wc, cqe, flags);
}

static bool qhca_ib_take_cqe(struct qhca_ib_cq *cq, const struct qhca_cqe *cqe,
			     struct ib_wc *wc)
{
	struct qhca_ib_qp *qp = qhca_ib_cqe_qp(cq, cqe);
	struct qhca_ib_wr wr;

	if (!qp || !qhca_ib_complete(cq, qp, cqe, &wr)) {
		ibdev_err_ratelimited(cq->ibcq.device, "CQ %#x: CQE of QP %#x makes no sense\n",
				      cq->core.cqn, le32_to_cpu(cqe->qpn));
		qhca_health_die(to_qdev(cq->ibcq.device)->core, "a completion makes no sense");
		return false;
	}
	qhca_ib_fill_wc(wc, qp, &wr, cqe);
	if (!qhca_ib_cqe_ok(qp, &wr, cqe)) {
		wc->status = IB_WC_GENERAL_ERR;
		qhca_health_die(to_qdev(cq->ibcq.device)->core, "a completion makes no sense");
	}
	return true;
}

static int qhca_ib_poll_ring(struct qhca_ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	u32 left = BIT(cq->log_size), first = cq->ci;
	struct qhca_cqe cqe;
	int n = 0;

	while (n < num_entries && left-- && qhca_ib_cqe_valid(cq, cq->ci)) {
		dma_rmb();	/* read the phase before the rest of the CQE */
		cqe = *qhca_ib_cqe(cq, cq->ci++);
		if (qhca_ib_take_cqe(cq, &cqe, &wc[n]))
			n++;
	}
	if (cq->ci != first)
		qhca_ib_cq_write_ci(cq);
	return n;
}

/* Flush the WQEs of a queue that a dead and quiet device has not completed. */
static int qhca_ib_flush_wq(struct qhca_ib_qp *qp, struct qhca_ib_wq *wq, int num_entries,
			    struct ib_wc *wc)
{
	struct qhca_ib_wr wr;
	int n;

	for (n = 0; n < num_entries && qhca_ib_wq_complete(wq, wq->ci, &wr); n++) {
		memset(&wc[n], 0, sizeof(wc[n]));
		wc[n].wr_id = wr.wr_id;
		wc[n].opcode = wr.opcode;
		wc[n].qp = &qp->ibqp;
		wc[n].status = IB_WC_WR_FLUSH_ERR;
	}
	return n;
}

static int qhca_ib_flush_cq(struct qhca_ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	struct qhca_ib_qp *qp;
	unsigned long qpn;
	int n = 0;

	xa_for_each(&cq->qps, qpn, qp) {
		if (qp->ibqp.send_cq == &cq->ibcq)
			n += qhca_ib_flush_wq(qp, &qp->sq, num_entries - n, wc + n);
		if (qp->ibqp.recv_cq == &cq->ibcq)
			n += qhca_ib_flush_wq(qp, &qp->rq, num_entries - n, wc + n);
	}
	return n;
}

static bool qhca_ib_cq_to_flush(struct qhca_ib_cq *cq)
{
	struct qhca_ib_qp *qp;
	unsigned long qpn;

	xa_for_each(&cq->qps, qpn, qp) {
		if (qp->ibqp.send_cq == &cq->ibcq && qp->sq.ci != READ_ONCE(qp->sq.pi))
			return true;
		if (qp->ibqp.recv_cq == &cq->ibcq && qp->rq.ci != READ_ONCE(qp->rq.pi))
			return true;
	}
	return false;
}

/**
 * qhca_ib_poll_cq - poll_cq verb
 * @ibcq: the CQ, of a kernel consumer
 * @num_entries: room in @wc
 * @wc: filled in
 *
 * Context: any.
 * Return: how many completions were taken.
 */
int qhca_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	unsigned long flags;
	bool quiet;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	/*
	 * A dead device may write to the memory of outstanding WRs until it is quiet, so flush only
	 * then. Test it before polling: if it is quiet, the ring already has all CQEs that it will
	 * ever have.
	 */
	quiet = qhca_is_quiet(dev->core);
	n = qhca_ib_poll_ring(cq, num_entries, wc);
	if (n < num_entries && unlikely(quiet))
		n += qhca_ib_flush_cq(cq, num_entries - n, wc + n);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/**
 * qhca_ib_cq_arm - arm a CQ for all or for solicited completions, as cq->solicited says
 * @cq: the CQ, of a kernel consumer, locked
 */
void qhca_ib_cq_arm(struct qhca_ib_cq *cq)
{
	cq->armed = true;
	cq->withheld = false;
	qhca_cq_arm(to_qdev(cq->ibcq.device)->core, &cq->core, qhca_ib_cq_dbrec(cq),
		    cq->solicited);
}

/**
 * qhca_ib_req_notify_cq - req_notify_cq verb
 * @ibcq: the CQ, of a kernel consumer
 * @flags: completions to wait for, and whether to report missed ones
 *
 * Context: any.
 *
 * Return: 1 if @flags asks for it and the CQ holds CQEs that will raise no event; otherwise 0.
 */
int qhca_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	unsigned long irq_flags;
	bool missed = false;

	spin_lock_irqsave(&cq->lock, irq_flags);
	/* If the CQ is armed for all completions, do not restrict it to solicited ones. */
	cq->solicited = solicited && (!cq->armed || cq->solicited);
	qhca_ib_cq_arm(cq);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = qhca_ib_cqe_valid(cq, cq->ci);
	/* If the device is not quiet yet, qhca_ib_flush_work() runs later. */
	if (unlikely(qhca_is_quiet(dev->core)) && qhca_ib_cq_to_flush(cq)) {
		missed = true;
		queue_work(dev->wq, &dev->flush_work);
	}
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && missed;
}

/* Free the SRQ slot of a CQE that is removed unpolled. */
static void qhca_ib_forget_cqe(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			       const struct qhca_cqe *cqe)
{
	struct qhca_ib_srq *srq = qhca_ib_cqe_srq(cq, qp, cqe);
	struct qhca_ib_wr wr;

	if (srq && !(le16_to_cpu(cqe->flags) & QHCA_CQE_SQ))
		qhca_ib_srq_complete(srq, le64_to_cpu(cqe->wr_id), &wr);
}

static bool qhca_ib_cqe_is_of(const struct qhca_cqe *cqe, const struct qhca_ib_qp *qp,
			      const struct qhca_ib_srq *srq)
{
	if (qp)
		return le32_to_cpu(cqe->qpn) == qp->qpn;
	return le16_to_cpu(cqe->flags) & QHCA_CQE_XRC && le32_to_cpu(cqe->srqn) == srq->srqn;
}

/**
 * qhca_ib_cq_clean - remove the CQEs of a QP or XRC SRQ
 * @cq: the CQ, of a kernel consumer
 * @qp: a QP that the device has stopped using, or NULL
 * @srq: if @qp is NULL, an XRC SRQ that the device has stopped using
 *
 * The other CQEs move towards the newer end of the ring, where the device continues.
 */
void qhca_ib_cq_clean(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp, struct qhca_ib_srq *srq)
{
	u32 end, i, freed = 0;
	struct qhca_cqe *to;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	end = cq->ci;
	while (end - cq->ci < BIT(cq->log_size) && qhca_ib_cqe_valid(cq, end))
		end++;
	dma_rmb();	/* read the phases before the rest of the CQEs */

	for (i = end; i != cq->ci; i--) {
		if (qhca_ib_cqe_is_of(qhca_ib_cqe(cq, i - 1), qp, srq)) {
			qhca_ib_forget_cqe(cq, qp, qhca_ib_cqe(cq, i - 1));
			freed++;
		} else if (freed) {
			to = qhca_ib_cqe(cq, i - 1 + freed);
			/* Copy all but the owner byte, which belongs to the ring position. */
			memcpy(to, qhca_ib_cqe(cq, i - 1), offsetof(struct qhca_cqe, owner));
		}
	}
	if (freed) {
		cq->ci += freed;
		qhca_ib_cq_write_ci(cq);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * qhca_ib_clean_target - remove the CQEs of a QP of type XRC_TGT
 * @dev: the HCA
 * @qp: the QP, which the device has stopped using
 *
 * The CQEs are in the CQs of all SRQs for which the QP has received messages.
 */
void qhca_ib_clean_target(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	struct qhca_ib_cq *cq;

	spin_lock_irq(&dev->cqs_lock);
	list_for_each_entry(cq, &dev->kernel_cqs, list)
		qhca_ib_cq_clean(cq, qp, NULL);
	spin_unlock_irq(&dev->cqs_lock);
}
