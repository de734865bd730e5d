// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: protection domains. */
#include "qhca_ib.h"

/**
 * qhca_ib_alloc_pd - alloc_pd verb
 * @ibpd: the PD
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_PD) };
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_alloc_pd_resp resp = {};
	struct qhca_ib_pd *pd = to_qpd(ibpd);
	int ret;

	ret = qhca_ib_udata_check(udata, 0, sizeof(resp));
	if (ret)
		return ret;

	ret = qhca_cmd_exec(dev->core, &cmd, NULL, &pd->pdn);
	if (ret || !udata)
		return ret;

	resp.pdn = pd->pdn;
	ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (ret)
		qhca_cmd_obj(dev->core, QHCA_CMD_DEALLOC_PD, pd->pdn);
	return ret;
}

/**
 * qhca_ib_dealloc_pd - dealloc_pd verb
 * @ibpd: the PD
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno, and the PD lives on.
 */
int qhca_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return qhca_cmd_obj(to_qdev(ibpd->device)->core, QHCA_CMD_DEALLOC_PD,
			    to_qpd(ibpd)->pdn);
}
