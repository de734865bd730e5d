// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC domains, and QPs of type XRC_RECV that another process may have created. The
 * kernel knows which processes share them; user space stores nothing about them.
 */
#include <errno.h>
#include <stdlib.h>

#include "given.h"
#include "qhca.h"

struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *ibctx,
				struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int err;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	err = ibv_cmd_open_xrcd(ibctx, xrcd, sizeof(*xrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(xrcd);
		errno = err;
		return NULL;
	}
	return &xrcd->xrcd;
}

int qhca_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int err;

	err = ibv_cmd_close_xrcd(xrcd);
	if (err)
		return qhca_ret(err);
	free(xrcd);
	return 0;
}

struct ibv_qp *qhca_open_qp(struct ibv_context *ibctx,
			    struct ibv_qp_open_attr *attr)
{
	const struct qhca_given given[] = {
		{ IBV_QP_OPEN_ATTR_XRCD, attr->xrcd },
	};
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct qhca_qp *qp;
	int err;

	err = qhca_check_given(attr->comp_mask, given, ARRAY_SIZE(given));
	if (err) {
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	err = ibv_cmd_open_qp(ibctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	qhca_qp_init(qp, to_qctx(ibctx), NULL);
	return &qp->vqp.qp;
}
