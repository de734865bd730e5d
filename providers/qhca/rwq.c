// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive work queues, tables of them, and QPs that spread frames over such a table. For CQs a
 * work queue is a QP with nothing but a receive queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/ilog.h>

#include <qhca/cmd.h>

#include "given.h"
#include "qhca-abi.h"
#include "wqe.h"

struct qhca_rwq {
	struct ibv_wq wq;
	struct qhca_qp qp;
	struct qhca_pd *pd;
};

static struct qhca_rwq *to_qrwq(struct ibv_wq *ibwq)
{
	return container_of(ibwq, struct qhca_rwq, wq);
}

static int post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct qhca_qp *qp = &to_qrwq(ibwq)->qp;

	if (ibwq->state == IBV_WQS_RESET) {
		*bad_wr = wr;
		return qhca_ret(EINVAL);
	}
	return post_recv_list(&qp->rq, qp->db, QHCA_DB_RQ, qp->qpn, wr, bad_wr);
}

static int check_wq_attr(const struct qhca_context *ctx,
			 const struct ibv_wq_init_attr *attr)
{
	const struct qhca_given given[] = {
		{ QHCA_GIVEN_ALWAYS, attr->pd },
		{ QHCA_GIVEN_ALWAYS, attr->cq },
	};

	if (qhca_check_given(attr->comp_mask, given, ARRAY_SIZE(given)))
		return EINVAL;
	if (attr->wq_type != IBV_WQT_RQ ||
	    !check_comp_mask(attr->comp_mask, IBV_WQ_INIT_ATTR_FLAGS) ||
	    (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags))
		return EOPNOTSUPP;
	return !attr->max_wr || attr->max_wr > ctx->max_qp_wr ||
	       attr->max_sge > ctx->max_recv_sge ? EINVAL : 0;
}

static int cmd_create_wq(struct ibv_context *ibctx, struct qhca_rwq *rwq,
			 struct ibv_wq_init_attr *attr)
{
	struct qhca_wq *rq = &rwq->qp.rq;
	struct uqhca_create_wq_resp resp = {};
	struct uqhca_create_wq cmd = {
		.buf_addr = (uintptr_t)rq->mem.addr,
		.buf_len = rq_len(rq),
		.log_size = ilog32_nz(rq->size) - 1,
		.log_stride = rq->stride_shift,
	};
	int err;

	err = ibv_cmd_create_wq(ibctx, attr, &rwq->wq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	rwq->qp.qpn = rwq->wq.wq_num;
	return err;
}

static int make_wq(struct ibv_context *ibctx, struct qhca_rwq *rwq,
		   struct ibv_wq_init_attr *attr)
{
	struct qhca_qp *qp = &rwq->qp;
	int err;

	rwq->pd = to_qpd(attr->pd);
	rwq->wq.post_recv = post_wq_recv;
	qhca_qp_init(qp, to_qctx(ibctx), rwq->pd);
	qp->vqp.qp.recv_cq = attr->cq;
	qp->vqp.qp.send_cq = attr->cq;
	qhca_rq_size(&qp->rq, attr->max_wr, attr->max_sge);
	err = qhca_mem_alloc(&qp->rq.mem, rq_len(&qp->rq), rwq->pd, QHCA_MEM_RQ);
	if (err)
		return err;
	*rq_dbrec(&qp->rq) = (struct qhca_rq_dbrec){};
	err = cmd_create_wq(ibctx, rwq, attr);
	if (err)
		goto err_mem;
	err = qhca_qp_join_cqs(qp);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	ibv_cmd_destroy_wq(&rwq->wq);
err_mem:
	qhca_mem_free(&qp->rq.mem);
	return err;
}

struct ibv_wq *qhca_create_wq(struct ibv_context *ibctx,
			      struct ibv_wq_init_attr *attr)
{
	struct qhca_rwq *rwq;
	int err;

	err = check_wq_attr(to_qctx(ibctx), attr);
	if (err) {
		errno = err;
		return NULL;
	}
	rwq = calloc(1, sizeof(*rwq));
	if (!rwq)
		return NULL;
	err = make_wq(ibctx, rwq, attr);
	if (err) {
		free(rwq);
		errno = err;
		return NULL;
	}
	attr->max_wr = rwq->qp.rq.size;
	qhca_pd_get(rwq->pd);
	return &rwq->wq;
}

int qhca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct qhca_qp *qp = &to_qrwq(ibwq)->qp;
	struct ibv_modify_wq cmd = {};
	int err;

	err = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (err)
		return qhca_ret(err);
	if (attr->attr_mask & IBV_WQ_ATTR_STATE &&
	    attr->wq_state == IBV_WQS_RESET) {
		qhca_qp_clean_cqs(qp);
		qhca_wq_reset(&qp->rq);
	}
	return 0;
}

int qhca_destroy_wq(struct ibv_wq *ibwq)
{
	struct qhca_rwq *rwq = to_qrwq(ibwq);
	struct qhca_pd *pd = rwq->pd;
	int err;

	err = ibv_cmd_destroy_wq(ibwq);
	if (err)
		return qhca_ret(err);
	qhca_qp_clean_cqs(&rwq->qp);
	qhca_qp_leave_cqs(&rwq->qp);
	qhca_mem_free(&rwq->qp.rq.mem);
	free(rwq);
	qhca_pd_put(pd);
	return 0;
}

static int check_table_attr(const struct ibv_rwq_ind_table_init_attr *attr)
{
	struct qhca_given given[1 << QHCA_SPREAD_LOG_MAX];
	uint32_t i, n;

	if (attr->comp_mask)
		return EOPNOTSUPP;
	if (attr->log_ind_tbl_size > QHCA_SPREAD_LOG_MAX || !attr->ind_tbl)
		return EINVAL;
	n = 1u << attr->log_ind_tbl_size;
	for (i = 0; i < n; i++)
		given[i] = (struct qhca_given){ QHCA_GIVEN_ALWAYS,
						attr->ind_tbl[i] };
	return qhca_check_given(0, given, n);
}

struct ibv_rwq_ind_table *
qhca_create_rwq_ind_table(struct ibv_context *ibctx,
			  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int err;

	err = check_table_attr(attr);
	if (err) {
		errno = err;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(ibctx, attr, table, &resp,
					   sizeof(resp));
	if (err) {
		free(table);
		errno = err;
		return NULL;
	}
	return table;
}

int qhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int err = ibv_cmd_destroy_rwq_ind_table(table);

	if (!err)
		free(table);
	return qhca_ret(err);
}

/* Fields of the hash, in groups that the device takes only together. */
static const struct {
	uint64_t fields;
	uint32_t types;
} hashes[] = {
	{ IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4, QHCA_RSS_IPV4 },
	{ IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6, QHCA_RSS_IPV6 },
	{ IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP,
	  QHCA_RSS_TCPV4 | QHCA_RSS_TCPV6 },
	{ IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP,
	  QHCA_RSS_UDPV4 | QHCA_RSS_UDPV6 },
};

#define RSS_V4	(QHCA_RSS_IPV4 | QHCA_RSS_TCPV4 | QHCA_RSS_UDPV4)
#define RSS_V6	(QHCA_RSS_IPV6 | QHCA_RSS_TCPV6 | QHCA_RSS_UDPV6)

/* Fill in what the provider knows of RSS: what such a QP can hash. */
void qhca_rss_caps(struct ibv_rss_caps *caps)
{
	size_t i;

	if (!caps->supported_qpts)
		return;
	caps->rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	for (i = 0; i < ARRAY_SIZE(hashes); i++)
		caps->rx_hash_fields_mask |= hashes[i].fields;
}

static int get_hash(struct uqhca_create_qp *cmd, const struct ibv_rx_hash_conf *conf)
{
	uint64_t left = conf->rx_hash_fields_mask;
	uint32_t types = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		if ((left & hashes[i].fields) == hashes[i].fields) {
			types |= hashes[i].types;
			left &= ~hashes[i].fields;
		}
	}
	/* Ports belong to a connection, so they need the addresses. */
	if (!(types & QHCA_RSS_IPV4))
		types &= ~RSS_V4;
	if (!(types & QHCA_RSS_IPV6))
		types &= ~RSS_V6;
	if (left || (conf->rx_hash_fields_mask && !types) ||
	    conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return EOPNOTSUPP;
	if (conf->rx_hash_key_len != sizeof(cmd->rx_hash_key))
		return EINVAL;
	cmd->rx_hash_types = types;
	memcpy(cmd->rx_hash_key, conf->rx_hash_key, sizeof(cmd->rx_hash_key));
	return 0;
}

static int make_rss_qp(struct ibv_context *ibctx, struct qhca_qp *qp,
		       struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t needed = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
				IBV_QP_INIT_ATTR_IND_TABLE;
	struct uqhca_create_qp_resp resp = {};
	struct uqhca_create_qp cmd = {};
	int err;

	if ((attr->comp_mask & needed) != needed ||
	    !check_comp_mask(attr->comp_mask,
			     needed | IBV_QP_INIT_ATTR_CREATE_FLAGS) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags) || attr->qp_type != IBV_QPT_RAW_PACKET)
		return EOPNOTSUPP;
	/* It sends nothing; libibverbs reads the CQ of a QP that does. */
	if (attr->cap.max_send_wr || attr->send_cq)
		return EINVAL;
	err = get_hash(&cmd, &attr->rx_hash_conf);
	if (err)
		return err;
	qhca_qp_init(qp, to_qctx(ibctx), to_qpd(attr->pd));
	return ibv_cmd_create_qp_ex2(ibctx, &qp->vqp, attr, &cmd.ibv_cmd,
				     sizeof(cmd), &resp.ibv_resp, sizeof(resp),
				     NULL);
}

/* A QP without queues: its frames go to the work queues of a table. */
struct ibv_qp *qhca_create_rss_qp(struct ibv_context *ibctx,
				  struct ibv_qp_init_attr_ex *attr)
{
	struct qhca_qp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return NULL;
	err = make_rss_qp(ibctx, qp, attr);
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	qhca_pd_get(to_qpd(attr->pd));
	return &qp->vqp.qp;
}
