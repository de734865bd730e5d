/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: completion queues; included by qhca_ib.h. */
#ifndef QHCA_IB_CQ_H
#define QHCA_IB_CQ_H

struct qhca_ib_qp;
struct qhca_ib_srq;

/**
 * struct qhca_ib_cq - completion queue
 * @ibcq: the verbs object
 * @core: event delivery
 * @mem: ring and doorbell record
 * @log_size: log2 of the entries
 * @resize: protects @mem and @log_size of user CQs
 * @lock: kernel CQs, here and below: protects everything below
 * @ci: free-running consumer index
 * @armed: the consumer waits for an event
 * @solicited: if @armed, only for solicited completions
 * @withheld: the event came while the CQ had no queue; the device is not armed any more
 * @qps: QPN to QP, of the QPs that complete here; no QP is freed while it is in here
 * @srqs: SRQN to XRC SRQ; no SRQ is freed while it is in here
 * @list: in struct qhca_ib_dev.kernel_cqs
 */
struct qhca_ib_cq {
	struct ib_cq ibcq;
	struct qhca_cq_core core;
	struct qhca_ib_qmem mem;
	u8 log_size;
	struct mutex resize;	/* @mem and @log_size of user CQs */

	spinlock_t lock;	/* all below */
	u32 ci;
	bool armed;
	bool solicited;
	bool withheld;
	struct xarray qps;
	struct xarray srqs;
	struct list_head list;
};

static inline struct qhca_ib_cq *to_qcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct qhca_ib_cq, ibcq);
}

static inline bool qhca_ib_is_kernel_cq(const struct qhca_ib_cq *cq)
{
	return !cq->ibcq.uobject;
}

/* cq.c */
int qhca_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs);
int qhca_ib_resize_cq(struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata);
int qhca_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int qhca_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
void qhca_ib_flush_work(struct work_struct *work);
void qhca_ib_cq_joined(struct qhca_ib_cq *cq);

/* poll.c */
int qhca_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
void qhca_ib_cq_arm(struct qhca_ib_cq *cq);
int qhca_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void qhca_ib_cq_clean(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp, struct qhca_ib_srq *srq);
void qhca_ib_clean_target(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp);

#endif /* QHCA_IB_CQ_H */
