// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow rules: which Ethernet frames a QP receives. The kernel checks them. */
#include <errno.h>
#include <stdlib.h>

#include "flow.h"
#include "qhca.h"

struct ibv_flow *qhca_create_flow(struct ibv_qp *ibqp,
				  struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = calloc(1, sizeof(*flow));
	int err;

	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(ibqp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int qhca_destroy_flow(struct ibv_flow *flow)
{
	int err = ibv_cmd_destroy_flow(flow);

	if (!err)
		free(flow);
	return qhca_ret(err);
}
