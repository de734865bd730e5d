// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: XRC domains. The core shares them, and the QPs of type XRC_TGT in them, between
 * processes.
 *
 * Kernel consumers can receive with XRC, but not send: struct ib_send_wr has no member for the SRQ
 * of the peer.
 */
#include "qhca_ib.h"

static int qhca_ib_do_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_XRCD) };
	struct qhca_ib_dev *dev = to_qdev(ibxrcd->device);
	struct qhca_ib_xrcd *xrcd = to_qxrcd(ibxrcd);
	int ret;

	ret = qhca_ib_udata_check(dev, udata, 0);
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
