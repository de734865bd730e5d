/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: work queues, memory of rings, cgroup charges; included by qhca_ib.h. */
#ifndef QHCA_IB_WQ_H
#define QHCA_IB_WQ_H

/**
 * struct qhca_ib_charge - what an object is charged with besides itself
 * @cg: the cgroup that pays
 * @num: objects that it pays for
 */
struct qhca_ib_charge {
	struct rdma_cgroup *cg;
	u32 num;
};

/**
 * struct qhca_ib_pinned - a user's memory whose addresses the device knows
 * @umem: the memory, or NULL
 * @charge: charge for the addresses
 */
struct qhca_ib_pinned {
	struct ib_umem *umem;
	struct qhca_ib_charge charge;
};

/**
 * struct qhca_ib_qmem - memory of a ring, the user's or the kernel's
 * @buf: description for a command
 * @table: table for @buf, until the command has completed
 * @user: memory of the user
 * @ring: memory of the kernel
 */
struct qhca_ib_qmem {
	struct qhca_buf buf;
	struct qhca_table table;
	struct qhca_ib_pinned user;
	struct qhca_ring_mem ring;
};

/**
 * struct qhca_ib_wr - a posted work request of a kernel consumer, recorded by the driver
 * @wr_id: the consumer's wr_id
 * @len: sum of the lengths of its SGEs
 * @opcode: enum ib_wc_opcode of its completion
 * @signaled: it also gets a CQE on success
 */
struct qhca_ib_wr {
	u64 wr_id;
	u32 len;
	u8 opcode;
	bool signaled;
};

/**
 * struct qhca_ib_wq - send or receive queue
 * @mem: ring; a receive queue has its doorbell record behind it
 * @size: WQEs, a power of two; 0: the QP has no such queue
 * @log_stride: log2 of the bytes of a WQE
 * @max_sge: SGEs of a WQE, as given at creation
 * @slot: slot of the doorbells of a send queue of a kernel QP
 * @lock: for kernel QPs, as all below: serialises posting
 * @pi: free-running producer index, written under @lock
 * @ci: index of the oldest WQE without completion, written under the CQ's lock
 * @wr: the WR at each ring position
 */
struct qhca_ib_wq {
	struct qhca_ib_qmem mem;
	u32 size;
	u8 log_stride;
	u32 max_sge;
	int slot;

	spinlock_t lock;	/* posting */
	u32 pi;
	u32 ci;
	struct qhca_ib_wr *wr;
};

/**
 * struct qhca_ib_user_wq - ring of a queue, as the user describes it
 * @addr: where it is
 * @len: bytes there; 0: there is no queue
 * @log_size: log2 of the WQEs
 * @log_stride: log2 of the bytes of a WQE
 */
struct qhca_ib_user_wq {
	u64 addr;
	u32 len;
	u8 log_size;
	u8 log_stride;
};

#endif /* QHCA_IB_WQ_H */
