/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: work queues, the memory of rings, and who pays; included by qhca_ib.h. */
#ifndef QHCA_IB_WQ_H
#define QHCA_IB_WQ_H

/**
 * struct qhca_ib_charge - what an object is charged with besides itself
 * @cg: the cgroup that pays
 * @num: objects
 */
struct qhca_ib_charge {
	struct rdma_cgroup *cg;
	u32 num;
};

/**
 * struct qhca_ib_pinned - a user's memory that the device has the addresses of
 * @umem: the memory, or NULL
 * @charge: for the addresses
 */
struct qhca_ib_pinned {
	struct ib_umem *umem;
	struct qhca_ib_charge charge;
};

/**
 * struct qhca_ib_qmem - memory of a ring, the user's or the kernel's
 * @buf: what a command says of it
 * @table: behind @buf until the command has completed
 * @user: the user's
 * @ring: the kernel's
 */
struct qhca_ib_qmem {
	struct qhca_buf buf;
	struct qhca_table table;
	struct qhca_ib_pinned user;
	struct qhca_ring_mem ring;
};

/**
 * struct qhca_ib_wr - what a kernel consumer has posted; a device is not believed in this
 * @wr_id: the consumer's
 * @len: bytes of its SGEs
 * @opcode: enum ib_wc_opcode of its completion
 * @signaled: it completes with success as well
 */
struct qhca_ib_wr {
	u64 wr_id;
	u32 len;
	u8 opcode;
	bool signaled;
};

/**
 * struct qhca_ib_wq - send or receive queue
 * @mem: ring; behind that of a receive queue its doorbell record
 * @size: WQEs, a power of two; 0: the QP has no such queue
 * @log_stride: log2 of the bytes of a WQE
 * @max_sge: as created
 * @lock: kernel QPs, here and below: serialises posting
 * @pi: free-running producer index, written under @lock
 * @ci: index of the oldest WQE without completion, written under the CQ's lock
 * @wr: at each ring position
 */
struct qhca_ib_wq {
	struct qhca_ib_qmem mem;
	u32 size;
	u8 log_stride;
	u32 max_sge;

	spinlock_t lock;	/* see above */
	u32 pi;
	u32 ci;
	struct qhca_ib_wr *wr;
};

#endif /* QHCA_IB_WQ_H */
