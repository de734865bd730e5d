/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef QHCA_ABI_H
#define QHCA_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/qhca-abi.h>
#include <kernel-abi/qhca-abi.h>

DECLARE_DRV_CMD(uqhca_alloc_ucontext, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, qhca_alloc_ucontext_resp);
DECLARE_DRV_CMD(uqhca_query_device_ex, IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		empty, qhca_query_device_ex_resp);
DECLARE_DRV_CMD(uqhca_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, qhca_alloc_pd_resp);
DECLARE_DRV_CMD(uqhca_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, qhca_create_ah_resp);
DECLARE_DRV_CMD(uqhca_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		qhca_create_cq_req, qhca_create_cq_resp);
DECLARE_DRV_CMD(uqhca_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		qhca_resize_cq_req, empty);
DECLARE_DRV_CMD(uqhca_create_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		qhca_create_qp_req, qhca_create_qp_resp);
DECLARE_DRV_CMD(uqhca_create_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		qhca_create_srq_req, qhca_create_srq_resp);
DECLARE_DRV_CMD(uqhca_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		qhca_create_wq_req, qhca_create_wq_resp);
DECLARE_DRV_CMD(uqhca_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		qhca_modify_srq_req, empty);

#endif /* QHCA_ABI_H */
