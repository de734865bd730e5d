// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: memory regions as the device has them, for the verbs of all kinds of regions. */
#include "qhca_ib.h"

/* Flags that mean something to the device; IB_ACCESS_* are the same bits. */
#define QHCA_IB_MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |	\
				 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |	\
				 IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL)
static_assert(QHCA_IB_MR_ACCESS == QHCA_ACCESS_MASK && IB_ZERO_BASED == QHCA_ACCESS_ZERO_BASED);

/* Accepted flags. IB_ACCESS_HUGETLB is ignored: huge pages are found without a hint. */
#define QHCA_IB_MR_TAKEN	(QHCA_IB_MR_ACCESS | IB_ZERO_BASED | IB_ACCESS_HUGETLB | \
				 IB_ACCESS_OPTIONAL)

/**
 * qhca_ib_check_access - whether a region can have these rights
 * @dev: the HCA
 * @access: IB_ACCESS_*
 *
 * Return: 0 or -EOPNOTSUPP.
 */
int qhca_ib_check_access(struct qhca_ib_dev *dev, int access)
{
	if (!(access & ~QHCA_IB_MR_TAKEN))
		return 0;
	return qhca_ib_refuse(dev, -EOPNOTSUPP, "MR: access %#x", access & ~QHCA_IB_MR_TAKEN);
}

/**
 * qhca_ib_mr_rights - access rights as the device has them
 * @access: IB_ACCESS_*
 *
 * Return: QHCA_ACCESS_*.
 */
__le16 qhca_ib_mr_rights(int access)
{
	return cpu_to_le16(access & (QHCA_IB_MR_ACCESS | IB_ZERO_BASED));
}

/**
 * qhca_ib_mr_create - run REG_MR
 * @dev: the HCA
 * @mr: filled in with its keys
 * @cmd: all but opcode, PD and access rights are set
 * @ibpd: the PD
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_mr_create(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr, struct qhca_cmd *cmd,
		      struct ib_pd *ibpd)
{
	u32 key;
	int ret;

	cmd->opcode = cpu_to_le16(QHCA_CMD_REG_MR);
	cmd->reg_mr.pdn = cpu_to_le32(to_qpd(ibpd)->pdn);
	cmd->reg_mr.access = qhca_ib_mr_rights(mr->access);
	ret = qhca_cmd_exec(dev->core, cmd, NULL, &key);
	if (ret)
		return ret;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	mr->pdn = to_qpd(ibpd)->pdn;
	return 0;
}

/**
 * qhca_ib_mr_free - free a region with the memory that it keeps
 * @dev: the HCA
 * @mr: the region, which the device does not know yet or any more
 */
void qhca_ib_mr_free(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
{
	qhca_ib_pinned_put(dev, &mr->mem);
	if (mr->pages)
		dma_free_coherent(dev->ibdev.dma_device, mr->max_pages * sizeof(*mr->pages),
				  mr->pages, mr->pages_dma);
	kfree(mr);
}

/**
 * qhca_ib_mr_new - register memory that never moves
 * @ibpd: the PD
 * @cmd: all but opcode, PD and access rights are set
 * @access: IB_ACCESS_*, checked
 *
 * Return: the MR or an error.
 */
struct ib_mr *qhca_ib_mr_new(struct ib_pd *ibpd, struct qhca_cmd *cmd, int access)
{
	struct qhca_ib_mr *mr;
	int ret;

	mr = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = access;
	mr->ibmr.length = le64_to_cpu(cmd->reg_mr.length);
	ret = qhca_ib_mr_create(to_qdev(ibpd->device), mr, cmd, ibpd);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}
