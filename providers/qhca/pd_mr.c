// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Port, protection domains and memory regions: the kernel does all the work.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca.h"
#include "qhca-abi.h"

int qhca_query_port(struct ibv_context *ibctx, uint8_t port,
		    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

struct ibv_pd *qhca_alloc_pd(struct ibv_context *ibctx)
{
	struct uqhca_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd;
	struct qhca_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	if (ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd),
			     &resp.ibv_resp, sizeof(resp))) {
		free(pd);
		return NULL;
	}
	pd->pdn = resp.pdn;
	return &pd->ibv_pd;
}

int qhca_dealloc_pd(struct ibv_pd *ibpd)
{
	int err;

	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;
	free(to_qpd(ibpd));
	return 0;
}

struct ibv_mr *qhca_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(ibpd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int qhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		  void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, ibpd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

int qhca_dereg_mr(struct verbs_mr *vmr)
{
	int err;

	err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return err;
	free(vmr);
	return 0;
}
