// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: keys that work requests make valid: memory windows, fast registration. */
#include "qhca_ib.h"

static int qhca_ib_do_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_ALLOC_MW) };
	struct qhca_ib_dev *dev = to_qdev(ibmw->device);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;

	cmd.alloc_mw.pdn = cpu_to_le32(to_qpd(ibmw->pd)->pdn);
	switch (ibmw->type) {
	case IB_MW_TYPE_1:
		cmd.alloc_mw.type = QHCA_MW_1;
		break;
	case IB_MW_TYPE_2:
		cmd.alloc_mw.type = QHCA_MW_2B;
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

static struct ib_mr *qhca_ib_do_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_cmd cmd = { .reg_mr.type = QHCA_MR_FAST };
	struct qhca_ib_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(qhca_ib_refuse(dev, -EOPNOTSUPP, "fast registration: type %u",
					      type));
	if (!max_num_sg || max_num_sg > qhca_ib_max_fast_reg(dev))
		return ERR_PTR(qhca_ib_refuse(dev, -EINVAL, "fast registration: %u pages",
					      max_num_sg));

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->gaps = type == IB_MR_TYPE_SG_GAPS;
	mr->max_pages = mr->gaps ? 2 * max_num_sg : max_num_sg;
	mr->pages = dma_alloc_coherent(dev->ibdev.dma_device,
				       mr->max_pages * sizeof(*mr->pages), &mr->pages_dma,
				       GFP_KERNEL);
	if (!mr->pages) {
		ret = -ENOMEM;
		goto err;
	}
	cmd.reg_mr.length = cpu_to_le64(mr->max_pages);
	ret = qhca_ib_mr_create(dev, mr, &cmd, ibpd);
	if (ret)
		goto err;
	return &mr->ibmr;

err:
	qhca_ib_mr_free(dev, mr);
	return ERR_PTR(ret);
}

/**
 * qhca_ib_alloc_mr - alloc_mr verb
 * @ibpd: the PD
 * @type: IB_MR_TYPE_MEM_REG, or IB_MR_TYPE_SG_GAPS
 * @max_num_sg: pages, or pieces of memory, that may be registered at a time
 *
 * Return: an MR that cannot be used before a REG_MR work request, or an error.
 */
struct ib_mr *qhca_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct ib_mr *ibmr = qhca_ib_do_alloc_mr(ibpd, type, max_num_sg);

	qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_REG_MR_ERR, PTR_ERR_OR_ZERO(ibmr));
	return ibmr;
}

static int qhca_ib_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->num_pages++] = cpu_to_le64(addr);
	return 0;
}

/*
 * Describe the pieces of memory in @sg: the address of each, and how many bytes of the MR end with
 * it. Returns how many fit.
 */
static int qhca_ib_map_gaps(struct qhca_ib_mr *mr, struct scatterlist *sgl, int sg_nents,
			    unsigned int *sg_offset)
{
	unsigned int offset = sg_offset ? *sg_offset : 0;
	struct scatterlist *sg;
	u64 end = 0;
	u32 len;
	int i;

	mr->ibmr.iova = sg_dma_address(sgl) + offset;
	for_each_sg(sgl, sg, sg_nents, i) {
		len = sg_dma_len(sg) - offset;
		if (len && mr->num_pages == mr->max_pages)
			break;
		if (len) {
			end += len;
			mr->pages[mr->num_pages++] = cpu_to_le64(sg_dma_address(sg) + offset);
			mr->pages[mr->num_pages++] = cpu_to_le64(end);
		}
		offset = 0;
	}
	if (sg_offset)
		*sg_offset = offset;
	mr->ibmr.length = end;
	mr->offset = 0;
	return i;
}

/**
 * qhca_ib_map_mr_sg - map_mr_sg verb
 * @ibmr: the MR; its page size is set, and it is not registered
 * @sg: mapped for DMA
 * @sg_nents: entries of @sg
 * @sg_offset: offset of the first byte in @sg, updated; or NULL
 *
 * Context: any.
 *
 * Return: how many entries fit, up to the first gap that the MR cannot have, or a negative errno.
 */
int qhca_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		      unsigned int *sg_offset)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	int n;

	if (!is_power_of_2(ibmr->page_size) || !(ibmr->page_size & QHCA_IB_PAGE_SIZES))
		return qhca_ib_refuse(to_qdev(ibmr->device), -EINVAL,
				      "fast registration: pages of %u bytes", ibmr->page_size);
	mr->num_pages = 0;
	if (mr->gaps)
		return qhca_ib_map_gaps(mr, sg, sg_nents, sg_offset);
	n = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, qhca_ib_set_page);
	/* Compute the offset now, because the consumer may choose another iova afterwards. */
	mr->offset = ibmr->iova & (ibmr->page_size - 1);
	return n;
}
