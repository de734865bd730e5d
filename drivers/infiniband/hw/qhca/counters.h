/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: hw_counters; included by qhca_ib.h. */
#ifndef QHCA_IB_COUNTERS_H
#define QHCA_IB_COUNTERS_H

struct qhca_ib_dev;

/* Verbs that can fail, each with a counter of the device. */
enum qhca_ib_err {
	QHCA_IB_ALLOC_UCONTEXT_ERR,
	QHCA_IB_MMAP_ERR,
	QHCA_IB_ALLOC_PD_ERR,
	QHCA_IB_CREATE_AH_ERR,
	QHCA_IB_REG_MR_ERR,
	QHCA_IB_REREG_MR_ERR,
	QHCA_IB_ALLOC_MW_ERR,
	QHCA_IB_ALLOC_DM_ERR,
	QHCA_IB_CREATE_CQ_ERR,
	QHCA_IB_MODIFY_CQ_ERR,
	QHCA_IB_CREATE_QP_ERR,
	QHCA_IB_MODIFY_QP_ERR,
	QHCA_IB_CREATE_SRQ_ERR,
	QHCA_IB_MODIFY_SRQ_ERR,
	QHCA_IB_ALLOC_XRCD_ERR,
	QHCA_IB_ATTACH_MCAST_ERR,
	QHCA_IB_NUM_ERRS,
};

int qhca_ib_count_err(struct qhca_ib_dev *dev, enum qhca_ib_err err, int ret);
int qhca_ib_query_counters(struct qhca_ib_dev *dev, u64 *values);
struct rdma_hw_stats *qhca_ib_alloc_hw_device_stats(struct ib_device *ibdev);
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index);
int qhca_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port);
int qhca_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port);
int qhca_ib_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *qhca_ib_counter_alloc_stats(struct rdma_counter *counter);
int qhca_ib_counter_update_stats(struct rdma_counter *counter);

#endif /* QHCA_IB_COUNTERS_H */
