/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: shared receive queues; included by qhca_ib.h. */
#ifndef QHCA_IB_SRQ_H
#define QHCA_IB_SRQ_H

/* Values of qhca_ib_srq_slot.next that name no slot: end of the free list, WR outstanding. */
#define QHCA_IB_SLOT_END	U32_MAX
#define QHCA_IB_SLOT_OUT	(U32_MAX - 1)

/**
 * struct qhca_ib_srq_slot - a WR of a kernel SRQ, or room for one
 * @wr_id: the consumer's wr_id
 * @len: sum of the lengths of its SGEs
 * @next: next free slot, or QHCA_IB_SLOT_*
 */
struct qhca_ib_srq_slot {
	u64 wr_id;
	u32 len;
	u32 next;
};

/**
 * struct qhca_ib_srq - shared receive queue
 * @ibsrq: the verbs object
 * @srqn: its number
 * @mutex: serialises changes of @mem and @size
 * @mem: ring and doorbell record; for kernel SRQs also under @lock
 * @size: WQEs, a power of two; for kernel SRQs also under @lock
 * @log_stride: log2 of the bytes of a WQE
 * @max_sge: SGEs of a WQE, as given at creation
 * @cq: the CQ of an XRC SRQ, else NULL
 * @lock: for kernel SRQs, as all below up to @slots: protects these members
 * @pi: free-running producer index
 * @out: WRs that are posted and not complete
 * @room: so many WRs can be; @size, or less while the SRQ is resized
 * @moving: the SRQ is resized, so the device must not hear of new WRs
 * @free: first free slot
 * @num_slots: slots that there are, at least @size
 * @slots: what is outstanding; NULL for a user SRQ
 * @events: enum qhca_event of events not yet delivered
 * @event_work: delivers @events
 */
struct qhca_ib_srq {
	struct ib_srq ibsrq;
	u32 srqn;
	struct mutex mutex;	/* @mem and @size */
	struct qhca_ib_qmem mem;
	u32 size;
	u8 log_stride;
	u32 max_sge;
	struct qhca_ib_cq *cq;

	spinlock_t lock;	/* @pi to @slots */
	u32 pi;
	u32 out;
	u32 room;
	bool moving;
	u32 free;
	u32 num_slots;
	struct qhca_ib_srq_slot *slots;

	DECLARE_KFIFO(events, u8, 16);
	struct work_struct event_work;
};

static inline struct qhca_ib_srq *to_qsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct qhca_ib_srq, ibsrq);
}

int qhca_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init_attr,
		       struct ib_udata *udata);
int qhca_ib_srq_check_size(struct qhca_ib_dev *dev, u32 max_wr, u32 log_size);
void qhca_ib_srq_add_slots(struct qhca_ib_srq *srq, u32 num);
int qhca_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata);
int qhca_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int qhca_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int qhca_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr);
int qhca_ib_query_srqc(struct qhca_ib_srq *srq, struct qhca_srqc *srqc);
bool qhca_ib_srq_complete(struct qhca_ib_srq *srq, u64 slot, struct qhca_ib_wr *wr);
void qhca_ib_srq_event(struct qhca_ib_dev *dev, u8 type, u32 srqn);

#endif /* QHCA_IB_SRQ_H */
