// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows. Binding a window is a work request and does not enter the kernel. */
#include <errno.h>
#include <stdlib.h>

#include "wqe.h"

struct ibv_mw *qhca_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	err = ibv_cmd_alloc_mw(ibpd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	qhca_pd_get(to_qpd(ibpd));
	return mw;
}

int qhca_dealloc_mw(struct ibv_mw *mw)
{
	struct qhca_pd *pd = to_qpd(mw->pd);
	int err;

	err = ibv_cmd_dealloc_mw(mw);
	if (err)
		return qhca_ret(err);
	free(mw);
	qhca_pd_put(pd);
	return 0;
}

/* Bind a window of type 1: also a work request, but the key is chosen here. */
int qhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
	};
	int err;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return qhca_ret(EINVAL);
	err = qhca_post_bind(ibqp, &wr);
	if (err)
		return err;
	mw->rkey = wr.bind_mw.rkey;
	return 0;
}
