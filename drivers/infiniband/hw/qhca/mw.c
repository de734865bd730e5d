// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: memory windows. */
#include "qhca_ib.h"

static int qhca_ib_do_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_MW) };
	struct qhca_ib_dev *dev = to_qdev(ibmw->device);
	int ret;

	ret = qhca_ib_udata_check(dev, udata, 0);
	if (ret)
		return ret;

	cmd.alloc_mw.pdn = cpu_to_le32(to_qpd(ibmw->pd)->pdn);
	switch (ibmw->type) {
	case IB_MW_TYPE_1:
		cmd.alloc_mw.type = QHCA_MW_1;
		break;
	case IB_MW_TYPE_2:
		cmd.alloc_mw.type = qhca_ib_has(dev, QHCA_CAP_MW_2B) ? QHCA_MW_2B : QHCA_MW_2A;
		break;
	default:
		return qhca_ib_refuse(dev, -EINVAL, "window: type %u", ibmw->type);
	}
	/* Count first: a process that guesses the key can bind the window before this returns. */
	atomic_inc(&to_qpd(ibmw->pd)->mw_made);
	ret = qhca_cmd_exec(dev->core, &cmd, NULL, &ibmw->rkey);
	if (ret)
		atomic_inc(&to_qpd(ibmw->pd)->mw_gone);
	return ret;
}

/**
 * qhca_ib_alloc_mw - alloc_mw verb
 * @ibmw: the window; its type is set
 * @udata: the user's
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibmw->device), QHCA_IB_ALLOC_MW_ERR,
				 qhca_ib_do_alloc_mw(ibmw, udata));
}

/**
 * qhca_ib_dealloc_mw - dealloc_mw verb
 * @ibmw: the window, bound or not
 *
 * Return: 0.
 */
int qhca_ib_dealloc_mw(struct ib_mw *ibmw)
{
	qhca_cmd_destroy(to_qdev(ibmw->device)->core, QHCA_CMD_DEALLOC_MW, ibmw->rkey);
	atomic_inc(&to_qpd(ibmw->pd)->mw_gone);
	return 0;
}
