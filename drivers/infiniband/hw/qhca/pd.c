// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: protection domains and XRC domains. The core shares XRC domains, and the QPs of type
 * XRC_TGT in them, between processes.
 *
 * Kernel consumers can receive with XRC, but not send: struct ib_send_wr has no member for the SRQ
 * of the peer.
 */
#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

static int qhca_ib_do_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_PD) };
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_alloc_pd_resp resp = {};
	struct qhca_ib_pd *pd = to_qpd(ibpd);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	ret = qhca_cmd_exec(dev->core, &cmd, NULL, &pd->pdn);
	if (ret || !udata)
		return ret;

	resp.pdn = pd->pdn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		qhca_cmd_destroy(dev->core, QHCA_CMD_DEALLOC_PD, pd->pdn);
	return ret;
}

/**
 * qhca_ib_alloc_pd - alloc_pd verb
 * @ibpd: the PD
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_ALLOC_PD_ERR,
				 qhca_ib_do_alloc_pd(ibpd, udata));
}

/**
 * qhca_ib_dealloc_pd - dealloc_pd verb
 * @ibpd: the PD
 * @udata: the user's, or NULL
 *
 * Return: 0.
 */
int qhca_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	qhca_cmd_destroy(to_qdev(ibpd->device)->core, QHCA_CMD_DEALLOC_PD, to_qpd(ibpd)->pdn);
	return 0;
}

static int qhca_ib_do_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_XRCD) };
	struct qhca_ib_dev *dev = to_qdev(ibxrcd->device);
	struct qhca_ib_xrcd *xrcd = to_qxrcd(ibxrcd);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	xrcd->kernel = !udata;
	return qhca_cmd_exec(dev->core, &cmd, NULL, &xrcd->xrcdn);
}

/**
 * qhca_ib_alloc_xrcd - alloc_xrcd verb
 * @ibxrcd: the XRC domain
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibxrcd->device), QHCA_IB_ALLOC_XRCD_ERR,
				 qhca_ib_do_alloc_xrcd(ibxrcd, udata));
}

/**
 * qhca_ib_dealloc_xrcd - dealloc_xrcd verb
 * @ibxrcd: the XRC domain
 * @udata: the user's, or NULL
 *
 * Return: 0.
 */
int qhca_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	qhca_cmd_destroy(to_qdev(ibxrcd->device)->core, QHCA_CMD_DEALLOC_XRCD,
			 to_qxrcd(ibxrcd)->xrcdn);
	return 0;
}

/* Give another process that imports the PD the same response as alloc_pd. */
static int UVERBS_HANDLER(QHCA_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs, QHCA_ATTR_PD_QUERY_HANDLE);
	struct qhca_alloc_pd_resp resp = { .pdn = to_qpd(ibpd)->pdn };

	return uverbs_copy_to_struct_or_zero(attrs, QHCA_ATTR_PD_QUERY_RESP, &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(QHCA_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_PD_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_alloc_pd_resp,
								   reserved),
						UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_ib_pd_methods, UVERBS_OBJECT_PD, &UVERBS_METHOD(QHCA_METHOD_PD_QUERY));

const struct uapi_definition qhca_ib_pd_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &qhca_ib_pd_methods),
	{},
};
