/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: receive work queues, tables of them, flow rules. */
#ifndef QHCA_IB_RWQ_H
#define QHCA_IB_RWQ_H

#include <qhca/flow.h>

#include "qhca_ib.h"

/**
 * struct qhca_ib_rwq - receive work queue
 * @ibwq: the verbs object
 * @mutex: serialises modify_wq
 * @qpn: the number of its QP in the device
 * @rq: its ring
 * @event_work: delivers WQ_FATAL
 * @faults: its page faults, or NULL
 */
struct qhca_ib_rwq {
	struct ib_wq ibwq;
	struct mutex mutex;	/* modify_wq */
	u32 qpn;
	struct qhca_ib_wq rq;
	struct work_struct event_work;
	struct qhca_ib_faults *faults;
};

/**
 * struct qhca_ib_rwq_table - table of receive work queues
 * @ibtable: the verbs object
 * @log_size: log2 of the WQs
 * @qpn: their numbers in the device
 */
struct qhca_ib_rwq_table {
	struct ib_rwq_ind_table ibtable;
	u8 log_size;
	__le32 qpn[1 << QHCA_SPREAD_LOG_MAX];
};

/**
 * struct qhca_ib_flow - flow rule
 * @ibflow: the verbs object
 * @number: its number in the device
 * @charge: the charge for a rule of the device
 * @counters: those that it names, or NULL
 * @node: in the list of the counters
 */
struct qhca_ib_flow {
	struct ib_flow ibflow;
	u32 number;
	struct qhca_ib_charge charge;
	struct ib_counters *counters;
	struct list_head node;
};

/**
 * struct qhca_ib_flow_counters - counters of flow rules
 * @ibcounters: the verbs object
 * @lock: for the members that follow: rules of several QPs may name the same counters
 * @flows: the rules
 * @gone: what rules have counted that do not exist any more
 */
struct qhca_ib_flow_counters {
	struct ib_counters ibcounters;
	struct mutex lock;	/* flows, gone */
	struct list_head flows;
	u64 gone[QHCA_FLOW_CNT_MAX];
};

static inline struct qhca_ib_rwq *to_qrwq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct qhca_ib_rwq, ibwq);
}

static inline struct qhca_ib_rwq_table *to_qrwq_table(struct ib_rwq_ind_table *ibtable)
{
	return container_of(ibtable, struct qhca_ib_rwq_table, ibtable);
}

/* rwq.c */
void qhca_ib_rwq_event(struct qhca_ib_dev *dev, u8 type, u32 qpn);
struct ib_wq *qhca_ib_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr,
				struct ib_udata *udata);
int qhca_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int qhca_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata);
int qhca_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
				 struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata);
int qhca_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable);
int qhca_ib_rss_create(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		       const struct ib_qp_init_attr *attr, struct ib_udata *udata);
void qhca_ib_rss_destroy(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp);
int qhca_ib_rss_modify(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		       const struct ib_qp_attr *attr, int mask);

/* flow.c */
struct ib_flow *qhca_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				    struct ib_udata *udata);
int qhca_ib_destroy_flow(struct ib_flow *ibflow);

/* flow_counters.c */
void qhca_ib_flow_count(struct qhca_ib_flow *flow);
void qhca_ib_flow_uncount(struct qhca_ib_dev *dev, struct qhca_ib_flow *flow);
int qhca_ib_create_counters(struct ib_counters *ibcounters, struct uverbs_attr_bundle *attrs);
int qhca_ib_destroy_counters(struct ib_counters *ibcounters);
int qhca_ib_read_counters(struct ib_counters *ibcounters, struct ib_counters_read_attr *attr,
			  struct uverbs_attr_bundle *attrs);

#endif /* QHCA_IB_RWQ_H */
