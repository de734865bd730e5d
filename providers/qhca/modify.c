// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Modify and query queue pairs. */
#include <errno.h>

#include <infiniband/cmd_write.h>

#include "qhca.h"

/* Other types of QPs take no request that their peer has to ask about. */
uint32_t qhca_offered_ece(const struct qhca_context *ctx, enum ibv_qp_type type)
{
	return type == IBV_QPT_RC ? ctx->ece : 0;
}

void qhca_wq_reset(struct qhca_wq *wq)
{
	qhca_lock(&wq->lock);
	wq->pi = 0;
	atomic_store(&wq->ci, 0);
	qhca_unlock(&wq->lock);
}

int qhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct ib_uverbs_ex_modify_qp_resp resp;
	struct ibv_modify_qp_ex ex = {};
	struct ibv_modify_qp cmd = {};
	int err;

	if (attr_mask & IBV_QP_RATE_LIMIT)
		err = ibv_cmd_modify_qp_ex(ibqp, attr, attr_mask, &ex,
					   sizeof(ex), &resp, sizeof(resp));
	else
		err = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd,
					sizeof(cmd));
	if (err)
		return qhca_ret(err);

	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		qp->ece = qhca_offered_ece(to_qctx(ibqp->context), ibqp->qp_type);
		qhca_qp_clean_cqs(qp);
		qhca_wq_reset(&qp->sq);
		qhca_wq_reset(&qp->rq);
	}
	return 0;
}

/* Packets leave one by one, so the device has no use for a size of bursts. */
int qhca_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr qp_attr = { .rate_limit = attr->rate_limit };

	if (attr->comp_mask)
		return qhca_ret(EINVAL);
	if (attr->max_burst_sz || attr->typical_pkt_sz)
		return qhca_ret(EOPNOTSUPP);
	return qhca_modify_qp(ibqp, &qp_attr, IBV_QP_RATE_LIMIT);
}

int qhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return qhca_ret(ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
					 sizeof(cmd)));
}

/*
 * Enhanced connection establishment: the options that both ends of the connection have. They
 * inform only: an operation that the peer does not have fails as it does without them.
 */
int qhca_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece) {
		.vendor_id = QHCA_PCI_VENDOR_ID,
		.options = to_qqp(ibqp)->ece,
	};
	return 0;
}

/* @ece: in: what the peer has; out: what both have. Options that are not known here are left out. */
int qhca_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	struct qhca_qp *qp = to_qqp(ibqp);

	if (ece->comp_mask || ece->vendor_id != QHCA_PCI_VENDOR_ID)
		return qhca_ret(EINVAL);
	qp->ece = ece->options &
		  qhca_offered_ece(to_qctx(ibqp->context), ibqp->qp_type);
	ece->options = qp->ece;
	return 0;
}
