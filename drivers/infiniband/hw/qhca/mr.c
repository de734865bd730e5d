// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: memory regions. */
#include "qhca_ib.h"

static_assert(IB_MR_REREG_TRANS == QHCA_REREG_TRANS && IB_MR_REREG_PD == QHCA_REREG_PD &&
	      IB_MR_REREG_ACCESS == QHCA_REREG_ACCESS);

static u64 qhca_ib_mr_iova(u64 iova, int access)
{
	return access & IB_ZERO_BASED ? 0 : iova;
}

static int qhca_ib_check_range(struct qhca_ib_dev *dev, u64 iova, u64 length, int access)
{
	iova = qhca_ib_mr_iova(iova, access);
	if (!length || length > dev->limits->max_mr_size || iova + length < iova)
		return qhca_ib_refuse(dev, -EINVAL, "MR: %llu bytes at %#llx", length, iova);
	return 0;
}

/* Describe the pinned memory in @table and @body. */
static int qhca_ib_mr_describe(struct qhca_ib_dev *dev, struct qhca_ib_pinned *mem, u64 iova,
			       int access, struct qhca_table *table,
			       struct qhca_cmd_reg_mr *body)
{
	struct ib_umem *umem = mem->umem;
	unsigned long pgsz;
	int ret;

	/* The device needs the memory aligned, but not iova. */
	pgsz = ib_umem_find_best_pgoff(umem, QHCA_IB_PAGE_SIZES, U64_MAX);
	if (!pgsz)
		return qhca_ib_refuse(dev, -EINVAL, "MR: no page size fits its memory");
	ret = qhca_ib_pinned_table(dev, mem, pgsz, table);
	if (ret)
		return ret;
	body->buf = table->buf;
	body->offset = cpu_to_le32(ib_umem_dma_offset(umem, pgsz));
	body->iova = cpu_to_le64(qhca_ib_mr_iova(iova, access));
	body->length = cpu_to_le64(umem->length);
	return 0;
}

static struct ib_mr *qhca_ib_do_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct qhca_cmd cmd = { .reg_mr.type = QHCA_MR_DMA };

	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_OPTIONAL))
		return ERR_PTR(qhca_ib_refuse(to_qdev(ibpd->device), -EOPNOTSUPP,
					      "MR of all memory: access %#x", access));
	return qhca_ib_mr_new(ibpd, &cmd, access);
}

/**
 * qhca_ib_get_dma_mr - get_dma_mr verb: all memory, for local use
 * @ibpd: the PD
 * @access: IB_ACCESS_LOCAL_WRITE or nothing
 *
 * Return: the MR or an error; -EOPNOTSUPP for remote access to everything.
 */
struct ib_mr *qhca_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ib_mr *ibmr = qhca_ib_do_get_dma_mr(ibpd, access);

	qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_REG_MR_ERR, PTR_ERR_OR_ZERO(ibmr));
	return ibmr;
}

/* Takes ownership of @umem, also on error. */
static struct ib_mr *qhca_ib_mr_of_umem(struct ib_pd *ibpd, struct ib_umem *umem, u64 iova,
					int access)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_cmd cmd = { .reg_mr.type = QHCA_MR_MEM };
	struct qhca_ib_pinned mem = { .umem = umem };
	struct qhca_table table;
	struct ib_mr *ibmr;
	int ret;

	ret = qhca_ib_mr_describe(dev, &mem, iova, access, &table, &cmd.reg_mr);
	if (ret) {
		qhca_ib_pinned_put(dev, &mem);
		return ERR_PTR(ret);
	}
	ibmr = qhca_ib_mr_new(ibpd, &cmd, access);
	qhca_table_free(&table);
	if (IS_ERR(ibmr))
		qhca_ib_pinned_put(dev, &mem);
	else
		to_qmr(ibmr)->mem = mem;
	return ibmr;
}

#ifdef QHCA_HAVE_REG_MR_DMAH
/**
 * qhca_ib_alloc_dmah - alloc_dmah verb
 * @ibdmah: hints where the device's DMA should go, which the core has checked
 * @attrs: the request
 *
 * The device is software and copies with whatever cache its CPU has, so hints have no effect.
 *
 * Return: 0, or -EINVAL for a combination that PCI Express does not know.
 */
int qhca_ib_alloc_dmah(struct ib_dmah *ibdmah, struct uverbs_attr_bundle *attrs)
{
	const u8 tag = BIT(IB_DMAH_CPU_ID_EXISTS) | BIT(IB_DMAH_MEM_TYPE_EXISTS);
	u8 fields = ibdmah->valid_fields;

	if (!(fields & BIT(IB_DMAH_PH_EXISTS)) || ((fields & tag) && (fields & tag) != tag))
		return qhca_ib_refuse(to_qdev(ibdmah->device), -EINVAL, "DMAH: fields %#x",
				      fields);
	return 0;
}

/**
 * qhca_ib_dealloc_dmah - dealloc_dmah verb
 * @ibdmah: the hints
 * @attrs: the request
 *
 * Return: 0
 */
int qhca_ib_dealloc_dmah(struct ib_dmah *ibdmah, struct uverbs_attr_bundle *attrs)
{
	return 0;
}
#endif

/* Check what user space says about the memory to register. */
static int qhca_ib_check_mr(struct qhca_ib_dev *dev, u64 iova, u64 length, int access)
{
	int ret = qhca_ib_check_access(dev, access);

	return ret ?: qhca_ib_check_range(dev, iova, length, access);
}

static struct ib_mr *qhca_ib_odp_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				    int access, struct ib_dmah *dmah)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	int ret = dmah ?
		  qhca_ib_refuse(dev, -EOPNOTSUPP, "MR: on-demand paging") :
		  qhca_ib_check_access(dev, access & ~IB_ACCESS_ON_DEMAND);

	return ret ? ERR_PTR(ret) : qhca_ib_odp_reg(ibpd, start, length, iova, access);
}

static struct ib_mr *qhca_ib_do_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					    int access, struct ib_dmah *dmah,
					    struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct ib_umem *umem;
	int ret;

	ret = ib_no_udata_io(udata);
	if (!ret && access & IB_ACCESS_ON_DEMAND)
		return qhca_ib_odp_mr(ibpd, start, length, iova, access, dmah);
	if (!ret)
		ret = qhca_ib_check_mr(dev, iova, length, access);
	if (ret)
		return ERR_PTR(ret);

	umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return qhca_ib_mr_of_umem(ibpd, umem, iova, access);
}

/**
 * qhca_ib_reg_user_mr - reg_user_mr verb
 * @ibpd: the PD
 * @start: the user's address
 * @length: bytes
 * @iova: address in work requests
 * @access: IB_ACCESS_*
 * @dmah: hints, or NULL
 * @udata: the user's
 *
 * Return: the MR or an error.
 */
struct ib_mr *qhca_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				  int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct ib_mr *ibmr;

	ibmr = qhca_ib_do_reg_user_mr(ibpd, start, length, iova, access, dmah, udata);
	qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_REG_MR_ERR, PTR_ERR_OR_ZERO(ibmr));
	return ibmr;
}

static struct ib_mr *qhca_ib_do_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
						   u64 iova, int fd, int access,
						   struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct ib_umem_dmabuf *umem;
	int ret;

	ret = ib_no_udata_io(udata);
	if (!ret)
		ret = qhca_ib_check_mr(dev, iova, length, access);
	if (ret)
		return ERR_PTR(ret);

	umem = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, length, fd, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return qhca_ib_mr_of_umem(ibpd, &umem->umem, iova, access);
}

/**
 * qhca_ib_reg_user_mr_dmabuf - reg_user_mr_dmabuf verb
 * @ibpd: the PD
 * @offset: offset in the dma-buf
 * @length: bytes
 * @iova: address in work requests
 * @fd: the dma-buf; pinned while the region exists
 * @access: IB_ACCESS_*
 * @dmah: hints, or NULL
 * @attrs: the request
 *
 * Return: the MR or an error.
 */
struct ib_mr *qhca_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					 int fd, int access, struct ib_dmah *dmah,
					 struct uverbs_attr_bundle *attrs)
{
	struct ib_mr *ibmr;

	ibmr = qhca_ib_do_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access,
					     &attrs->driver_udata);
	qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_REG_MR_ERR, PTR_ERR_OR_ZERO(ibmr));
	return ibmr;
}

/* Fill in the unchanged values too; the device changes only those that @flags names. */
static int qhca_ib_mr_change(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr, int flags,
			     int access, struct ib_pd *ibpd, struct qhca_cmd *cmd)
{
	cmd->opcode = cpu_to_le16(QHCA_CMD_REREG_MR);
	cmd->reg_mr.key = cpu_to_le32(mr->ibmr.lkey);
	cmd->reg_mr.pdn = cpu_to_le32(to_qpd(ibpd)->pdn);
	cmd->reg_mr.access = qhca_ib_mr_rights(access);
	cmd->reg_mr.rereg = flags;
	return qhca_cmd_exec(dev->core, cmd, NULL, NULL);
}

static struct ib_mr *qhca_ib_do_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
					      u64 iova, int access, struct ib_pd *ibpd,
					      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmr->device);
	struct qhca_cmd cmd = { .reg_mr.type = QHCA_MR_MEM };
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	struct qhca_ib_pinned mem = {};
	struct qhca_table table;
	struct ib_umem *umem;
	int ret;

	ret = ib_no_udata_io(udata);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!ret)
		ret = qhca_ib_check_access(dev, access);
	if (!ret)
		ret = ib_umem_check_rereg(mr->mem.umem, flags, access);
	if (!ret && mr->odp)
		ret = qhca_ib_refuse(dev, -EOPNOTSUPP, "MR: on-demand paging");
	if (!ret && flags & IB_MR_REREG_TRANS)
		ret = qhca_ib_check_range(dev, iova, length, access);
	if (ret)
		return ERR_PTR(ret);
	/* The request names only the PD that the MR already has: nothing changes. */
	if (!flags)
		return NULL;

	if (flags & IB_MR_REREG_TRANS) {
		umem = ib_umem_get_va(&dev->ibdev, start, length, access);
		if (IS_ERR(umem))
			return ERR_CAST(umem);
		mem.umem = umem;
		ret = qhca_ib_mr_describe(dev, &mem, iova, access, &table, &cmd.reg_mr);
		if (ret) {
			qhca_ib_pinned_put(dev, &mem);
			return ERR_PTR(ret);
		}
	}
	ret = qhca_ib_mr_change(dev, mr, flags, access, ibpd, &cmd);
	if (flags & IB_MR_REREG_TRANS) {
		qhca_table_free(&table);
		if (!ret)
			swap(mr->mem, mem);
		/* On error the device still uses the old memory, otherwise the new. */
		qhca_ib_pinned_put(dev, &mem);
	}
	if (ret)
		return ERR_PTR(ret);
	mr->access = access;
	WRITE_ONCE(mr->pdn, to_qpd(ibpd)->pdn);
	return NULL;
}

/**
 * qhca_ib_rereg_user_mr - rereg_user_mr verb
 * @ibmr: the MR
 * @flags: IB_MR_REREG_*
 * @start: new address of the user
 * @length: new length
 * @iova: new address in work requests
 * @access: new IB_ACCESS_*
 * @ibpd: the PD, new or not
 * @udata: the user's
 *
 * Return: NULL, because the MR keeps its keys; or an error, and nothing has
 * changed.
 */
struct ib_mr *qhca_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				    u64 iova, int access, struct ib_pd *ibpd,
				    struct ib_udata *udata)
{
	struct ib_mr *ret;

	ret = qhca_ib_do_rereg_user_mr(ibmr, flags, start, length, iova, access, ibpd, udata);
	qhca_ib_count_err(to_qdev(ibmr->device), QHCA_IB_REREG_MR_ERR, PTR_ERR_OR_ZERO(ret));
	return ret;
}

/**
 * qhca_ib_dereg_mr - dereg_mr verb
 * @ibmr: the MR
 * @udata: the user's, or NULL
 *
 * Return: 0, or -EBUSY if a window is bound to the MR, which then still exists.
 */
int qhca_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmr->device);
	int ret;

	qhca_ib_odp_going(to_qmr(ibmr), true);
	ret = qhca_ib_dereg(dev, ibmr->lkey, to_qpd(ibmr->pd));
	if (ret) {
		qhca_ib_odp_going(to_qmr(ibmr), false);
		return ret;
	}
	qhca_ib_odp_release(dev, to_qmr(ibmr));
	qhca_ib_mr_free(dev, to_qmr(ibmr));
	return 0;
}
