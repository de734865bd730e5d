// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Poll completions with ibv_poll_cq() and extended CQs, and arm CQs.
 *
 * A CQE may have any content, and change while it is read, without harm to the
 * provider. But wr_id and byte_len reach the program unchecked: the kernel driver
 * compares them with its own record of what was posted, which would cost time for each
 * work request here.
 */
#include <errno.h>
#include <time.h>

#include "cq.h"
#include "doorbell.h"

enum {
	PKT_ROCE_V2_IPV6 = 1,
	PKT_ROCE_V2_IPV4 = 2,
};

#define QHCA_CQE(id, name, number)	[number] = IBV_WC_##id,
#define QHCA_KERNEL_CQE(...)
#define QHCA_ETH_CQE(...)
static const uint8_t wc_opcode[] = {
#include <qhca/opcodes.def>
};

/* Read the opcode only once: the device could change it between two reads. */
static enum ibv_wc_opcode cqe_opcode(const struct qhca_cqe *cqe)
{
	uint8_t opcode = *(const volatile uint8_t *)&cqe->opcode;

	return opcode < ARRAY_SIZE(wc_opcode) ? wc_opcode[opcode] : 0;
}

/* Return only statuses that programs know, because they may use them as an index. */
static enum ibv_wc_status cqe_status(const struct qhca_cqe *cqe)
{
	uint8_t status = *(const volatile uint8_t *)&cqe->status;

	return likely(status < IBV_WC_GENERAL_ERR) ? status : IBV_WC_GENERAL_ERR;
}

static unsigned int cqe_flags(const struct qhca_cqe *cqe)
{
	uint16_t flags = le16toh(cqe->flags);

	return (flags & QHCA_CQE_GRH ? IBV_WC_GRH : 0) |
	       (flags & QHCA_CQE_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & QHCA_CQE_INV ? IBV_WC_WITH_INV : 0) |
	       (flags & QHCA_CQE_CSUM_OK ? IBV_WC_IP_CSUM_OK : 0);
}

/* Immediate data, or the invalidated key in CPU order. */
static __be32 cqe_imm(const struct qhca_cqe *cqe)
{
	if (le16toh(cqe->flags) & QHCA_CQE_INV)
		return (__force __be32)le32toh(cqe->inv_key);
	return cqe->imm;
}

/*
 * The SL of a datagram is the type of its packet, as in the providers of mlx5, hns and
 * bnxt_re: ibv_wc has no other field for the type that A17.4.5.1 requires, and UCX up
 * to 1.18 uses it to find the address of the receiver. The VLAN priority is in the TCI.
 */
static uint8_t cqe_sl(const struct qhca_cqe *cqe)
{
	uint16_t flags = le16toh(cqe->flags);

	if (!(flags & QHCA_CQE_GRH))
		return 0;
	return flags & QHCA_CQE_IPV4 ? PKT_ROCE_V2_IPV4 : PKT_ROCE_V2_IPV6;
}

/*
 * Free the WQE of the CQE and all before it, or one WQE of an SRQ; also for errors and
 * flushes. Returns false if the QP or SRQ has been destroyed.
 */
static inline bool cqe_free_wqes(struct qhca_cq *cq, const struct qhca_cqe *cqe)
{
	bool sq = le16toh(cqe->flags) & QHCA_CQE_SQ;
	struct qhca_srq *srq;
	struct qhca_qp *qp;

	if (unlikely(le16toh(cqe->flags) & QHCA_CQE_XRC)) {
		/* The QP may belong to another process. */
		srq = map_find(&cq->srqs, le32toh(cqe->srqn));
		if (srq)
			srq_free_one(srq);
		return srq;
	}
	qp = map_find(&cq->qps, le32toh(cqe->qpn));
	if (unlikely(!qp))
		return false;
	if (!sq && qp->srq)
		srq_free_one(qp->srq);
	else
		atomic_store_explicit(sq ? &qp->sq.ci : &qp->rq.ci,
				      le32toh(cqe->wqe_index) + 1,
				      memory_order_release);
	return true;
}

/* From here to cq_write_ci() the ring has no room for CQEs at cq->end and behind. */
static void begin_poll(struct qhca_cq *cq)
{
	cq->end = cq->ci + (1u << cq->log_size);
}

/*
 * Take the next CQE; it stays readable until the consumer index is written. cq->end
 * limits the loop, because a device that ignores the index could write CQEs for ever.
 */
static struct qhca_cqe *next_cqe(struct qhca_cq *cq)
{
	struct qhca_cqe *cqe;

	while (likely(cq->ci != cq->end)) {
		cqe = cqe_at(cq, cq->ci);
		if (!cqe_valid(cq, cqe, cq->ci))
			return NULL;
		udma_from_device_barrier();
		cq->ci++;

		if (likely(cqe_free_wqes(cq, cqe)))
			return cqe;
		/* Skip CQEs whose QP or SRQ has been destroyed. */
	}
	return NULL;
}

static void fill_wc(struct ibv_wc *wc, const struct qhca_cqe *cqe)
{
	wc->wr_id = le64toh(cqe->wr_id);
	wc->status = cqe_status(cqe);
	wc->opcode = cqe_opcode(cqe);
	wc->vendor_err = le32toh(cqe->vendor_err);
	wc->byte_len = le32toh(cqe->byte_len);
	wc->imm_data = cqe_imm(cqe);
	wc->qp_num = le32toh(cqe->qpn);
	wc->src_qp = le32toh(cqe->src_qp);
	wc->wc_flags = cqe_flags(cqe);
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = 0;
	wc->sl = cqe_sl(cqe);
	wc->dlid_path_bits = 0;
}

int qhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_cqe *cqe;
	uint32_t first;
	int n = 0;

	qhca_lock(&cq->lock);
	first = cq->ci;
	begin_poll(cq);
	while (n < num_entries && (cqe = next_cqe(cq)))
		fill_wc(&wc[n++], cqe);
	if (cq->ci != first)
		cq_write_ci(cq);
	qhca_unlock(&cq->lock);
	return n;
}

int qhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	uint64_t obj = cq->cqn;

	if (solicited_only)
		obj |= QHCA_DB_SOLICITED;
	qhca_lock(&cq->arm_lock);
	cq->arm_sn++;
	if (!solicited_only)
		cq->arm_any_sn = cq->arm_sn;
	if (cq->arm_in_record)
		cq_write_arm(cq, cq->dbrec);
	else
		qhca_ring(cq->db, QHCA_DB_CQ_ARM, obj, cq->arm_sn);
	qhca_unlock(&cq->arm_lock);
	/* The arm is in force before the caller polls. */
	qhca_full_barrier();
	return 0;
}

/* Extended CQs: start_poll() takes the lock, end_poll() releases it. */

static struct qhca_cq *to_qcq_ex(struct ibv_cq_ex *ibcq)
{
	return container_of(ibcq, struct qhca_cq, vcq.cq_ex);
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	struct qhca_cq *cq = to_qcq_ex(ibcq);
	struct qhca_cqe *cqe = next_cqe(cq);

	if (!cqe)
		return ENOENT;
	cq->cur = cqe;
	ibcq->wr_id = le64toh(cqe->wr_id);
	ibcq->status = cqe_status(cqe);
	return 0;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct qhca_cq *cq = to_qcq_ex(ibcq);

	cq_write_ci(cq);
	qhca_unlock(&cq->lock);
}

/*
 * Without a PTP clock, real time is device time plus an offset. Because the two clocks slowly drift apart,
 * compare them once a second. That is a system call, so do it without the lock.
 */
static void check_wallclock(struct qhca_cq *cq)
{
	const uint64_t second = 1000000000;
	uint64_t now, checked, device_ns, real_ns;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = ts.tv_sec * second + ts.tv_nsec;
	checked = atomic_load_explicit(&cq->wall_checked, memory_order_relaxed);
	if (checked && now - checked <= second)
		return;
	if (!qhca_query_clock(cq->vcq.cq.context, &device_ns, &real_ns))
		atomic_store_explicit(&cq->wall_offset, real_ns - device_ns,
				      memory_order_relaxed);
	atomic_store_explicit(&cq->wall_checked, now, memory_order_relaxed);
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct qhca_cq *cq = to_qcq_ex(ibcq);
	uint32_t first;
	int err;

	if (attr->comp_mask)
		return qhca_ret(EINVAL);
	qhca_lock(&cq->lock);
	first = cq->ci;
	begin_poll(cq);
	err = next_poll(ibcq);
	if (!err)
		return 0;
	/* CQEs may have been skipped. */
	if (cq->ci != first)
		cq_write_ci(cq);
	qhca_unlock(&cq->lock);
	return err;
}

static int start_poll_wallclock(struct ibv_cq_ex *ibcq,
				struct ibv_poll_cq_attr *attr)
{
	check_wallclock(to_qcq_ex(ibcq));
	return start_poll(ibcq, attr);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return cqe_opcode(to_qcq_ex(ibcq)->cur);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->vendor_err);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->byte_len);
}

static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	return cqe_imm(to_qcq_ex(ibcq)->cur);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->qpn);
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->src_qp);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return cqe_flags(to_qcq_ex(ibcq)->cur);
}

static uint32_t read_slid(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ibcq)
{
	return cqe_sl(to_qcq_ex(ibcq)->cur);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint16_t read_cvlan(struct ibv_cq_ex *ibcq)
{
	const struct qhca_cqe *cqe = to_qcq_ex(ibcq)->cur;

	return le16toh(cqe->flags) & QHCA_CQE_VLAN ? le16toh(cqe->vlan_tci) : 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->flow_tag);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return le64toh(to_qcq_ex(ibcq)->cur->timestamp);
}

static uint64_t read_completion_ptp_ns(struct ibv_cq_ex *ibcq)
{
	return qhca_clock_ns(to_qctx(ibcq->context)->clock,
			     read_completion_ts(ibcq));
}

static uint64_t read_completion_system_ns(struct ibv_cq_ex *ibcq)
{
	return read_completion_ts(ibcq) +
	       atomic_load_explicit(&to_qcq_ex(ibcq)->wall_offset,
				    memory_order_relaxed);
}

void qhca_cq_fill_ops(const struct qhca_context *ctx, struct ibv_cq_ex *ibcq,
		      uint64_t wc_flags)
{
	bool wallclock = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	bool ptp = ctx->clock;

	ibcq->start_poll = wallclock && !ptp ? start_poll_wallclock : start_poll;
	ibcq->next_poll = next_poll;
	ibcq->end_poll = end_poll;
	ibcq->read_opcode = read_opcode;
	ibcq->read_vendor_err = read_vendor_err;
	ibcq->read_byte_len = read_byte_len;
	ibcq->read_imm_data = read_imm_data;
	ibcq->read_qp_num = read_qp_num;
	ibcq->read_src_qp = read_src_qp;
	ibcq->read_wc_flags = read_wc_flags;
	ibcq->read_slid = read_slid;
	ibcq->read_sl = read_sl;
	ibcq->read_dlid_path_bits = read_dlid_path_bits;
	ibcq->read_cvlan = read_cvlan;
	ibcq->read_flow_tag = read_flow_tag;
	ibcq->read_completion_ts = read_completion_ts;
	ibcq->read_completion_wallclock_ns = ptp ? read_completion_ptp_ns :
						   read_completion_system_ns;
}
