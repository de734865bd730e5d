// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: regions and their page faults. The device sends an event when a QP
 * needs a page. Then it is asked which pages the QP needs, they are provided, and the QP goes on.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "odp.h"

/* While memory is short, a page is tried again for so long, and so often, before it is denied. */
#define QHCA_IB_ODP_PATIENCE	(2 * HZ)
#define QHCA_IB_ODP_RETRIES	9
/* Times to look for page faults of a QP for one event; the device sends one for what is left. */
#define QHCA_IB_ODP_ROUNDS	4

/* Address behind the last page of the region. */
static u64 qhca_ib_odp_end(const struct qhca_ib_odp *odp)
{
	return odp->umem->is_implicit_odp ? TASK_SIZE_MAX : ib_umem_end(odp->umem);
}

static bool qhca_ib_odp_in_range(const struct qhca_ib_odp *odp, u64 va, u64 end)
{
	return va < end && va >= qhca_ib_odp_base(odp) && end <= qhca_ib_odp_end(odp);
}

/* ---- page faults ---- */

static struct qhca_ib_odp *qhca_ib_odp_get(struct qhca_ib_dev *dev, u32 key)
{
	struct qhca_ib_odp *odp;

	xa_lock_irq(&dev->odps);
	odp = xa_load(&dev->odps, key >> 8);
	if (odp && (odp->key != key || !refcount_inc_not_zero(&odp->users)))
		odp = NULL;
	xa_unlock_irq(&dev->odps);
	return odp;
}

static void qhca_ib_odp_put(struct qhca_ib_odp *odp)
{
	if (refcount_dec_and_test(&odp->users))
		complete(&odp->idle);
}

/*
 * Provide the pages of a fault, at least the first. Those behind it need not exist. A packet can
 * need pages of two pieces, and its sender need not try more than twice.
 */
static int qhca_ib_odp_pages(struct qhca_ib_odp *odp, u64 va, u64 end, bool write,
			     struct qhca_pages *pages)
{
	ssize_t ret = qhca_ib_odp_provide(odp, va, end, write, true, pages);

	if (ret < 0)
		return qhca_ib_odp_provide(odp, va, va + 1, write, true, pages);
	if (va + ret < end)
		qhca_ib_odp_provide(odp, va + ret, end, write, true, pages);
	return 0;
}

/* Whether the process has memory at @va, whose pages a device can have. */
static bool qhca_ib_odp_is_mapped(const struct qhca_ib_odp *odp, u64 va)
{
	struct mm_struct *mm = odp->umem->umem.owning_mm;
	struct vm_area_struct *vma;
	bool ret;

	if (!mmget_not_zero(mm))
		return false;
	mmap_read_lock(mm);
	vma = vma_lookup(mm, va);
	ret = vma && (vma->vm_flags & (VM_READ | VM_IO | VM_PFNMAP)) == VM_READ;
	mmap_read_unlock(mm);
	mmput(mm);
	return ret;
}

/*
 * Whether a page may be had later. The memory management says EFAULT also if there is no memory for
 * the page, and EBUSY if it was taken away all the time.
 */
static bool qhca_ib_odp_is_short(const struct qhca_ib_odp *odp, u64 va, int err)
{
	return err == -ENOMEM || err == -EBUSY ||
	       (err == -EFAULT && qhca_ib_odp_is_mapped(odp, va));
}

/* Nothing that the device says is trusted. Returns -EAGAIN if memory is short. */
static int qhca_ib_odp_serve(struct qhca_ib_odp *odp, const struct qhca_page_fault *fault,
			     struct qhca_pages *pages)
{
	unsigned int shift = odp->umem->page_shift;
	u64 num = clamp_t(u64, le64_to_cpu(fault->num), 1, QHCA_TABLE_ENTRIES);
	u64 first = le64_to_cpu(fault->first);
	u64 va = qhca_ib_odp_base(odp) + (first << shift);
	int ret;

	if (first > U64_MAX >> (shift + 1) || !qhca_ib_odp_in_range(odp, va, va + BIT(shift)))
		return -EFAULT;
	ret = qhca_ib_odp_pages(odp, va, min(va + (num << shift), qhca_ib_odp_end(odp)),
				fault->write, pages);
	if (ret < 0 && qhca_ib_odp_is_short(odp, va, ret))
		return -EAGAIN;
	return ret < 0 ? ret : 0;
}

/* Without a region the QP tries again, and finds out. */
static int qhca_ib_odp_try(struct qhca_ib_dev *dev, const struct qhca_page_fault *fault,
			   struct qhca_pages *pages)
{
	struct qhca_ib_odp *odp = qhca_ib_odp_get(dev, le32_to_cpu(fault->key));
	int ret = 0;

	if (odp) {
		ret = qhca_ib_odp_serve(odp, fault, pages);
		qhca_ib_odp_put(odp);
	}
	return ret;
}

/*
 * To deny a page ends the connection. So if there is no memory, or somebody else takes the page
 * away again and again, try for a while. The region may be released between two tries.
 */
static int qhca_ib_odp_insist(struct qhca_ib_dev *dev, const struct qhca_page_fault *fault,
			      struct qhca_pages *pages)
{
	unsigned long end = jiffies + QHCA_IB_ODP_PATIENCE;
	unsigned int i;
	int ret;

	for (i = 0; ; i++) {
		ret = qhca_ib_odp_try(dev, fault, pages);
		if (ret != -EAGAIN || i == QHCA_IB_ODP_RETRIES || time_after(jiffies, end))
			return ret;
		msleep(1 << i);
	}
}

/* Returns whether the fault has been answered: if not, another has taken its place. */
static bool qhca_ib_odp_answer(struct qhca_ib_dev *dev, u32 qpn, unsigned int kind,
			       const struct qhca_page_fault *fault, struct qhca_pages *pages)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_RESUME_QP),
		.resume_qp.qpn = cpu_to_le32(qpn),
		.resume_qp.sn = fault->sn,
		.resume_qp.kind = kind,
	};

	cmd.resume_qp.deny = qhca_ib_odp_insist(dev, fault, pages) != 0;
	return !qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

/**
 * qhca_ib_odp_faults - serve the page faults of a QP
 * @dev: the HCA
 * @qpn: its number in the device
 *
 * Context: process; waits for the memory of processes.
 */
void qhca_ib_odp_faults(struct qhca_ib_dev *dev, u32 qpn)
{
	struct qhca_page_faults faults;
	unsigned int i, round, open = 1;
	struct qhca_pages *pages;

	pages = kmalloc(sizeof(*pages), GFP_KERNEL);
	/* The device reports the fault again. */
	if (!pages)
		return;
	for (round = 0; open && round < QHCA_IB_ODP_ROUNDS; round++) {
		if (qhca_ib_query(dev, QHCA_CMD_QUERY_PAGE_FAULTS, qpn, &faults, sizeof(faults)))
			break;
		for (i = 0, open = 0; i < QHCA_PAGE_KINDS; i++)
			if (faults.fault[i].open)
				open += qhca_ib_odp_answer(dev, qpn, i, &faults.fault[i], pages) ?
					0 : 1;
	}
	kfree(pages);
}

/* ---- verbs ---- */

/**
 * qhca_ib_odp_release - let go of the memory of a region that the device does not know any more
 * @dev: the HCA
 * @mr: the region, which may be of any type
 *
 * Context: process; waits for page faults that are being served.
 */
void qhca_ib_odp_release(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
{
	struct qhca_ib_odp *odp = mr->odp;

	if (!odp)
		return;
	xa_erase_irq(&dev->odps, odp->key >> 8);
	qhca_ib_odp_put(odp);
	wait_for_completion(&odp->idle);
	qhca_ib_odp_free(odp);
}

/* Create the region in the device, and make its faults known. */
static struct ib_mr *qhca_ib_odp_create(struct ib_pd *ibpd, struct qhca_ib_odp *odp, u64 iova,
					int access)
{
	bool implicit = odp->umem->is_implicit_odp;
	struct qhca_cmd cmd = {
		.reg_mr.type = QHCA_MR_ODP,
		.reg_mr.buf.block_shift = odp->umem->page_shift,
		.reg_mr.length = cpu_to_le64(implicit ? TASK_SIZE_MAX : odp->umem->umem.length),
		.reg_mr.iova = cpu_to_le64(access & IB_ZERO_BASED ? 0 : iova),
	};
	struct qhca_ib_dev *dev = odp->dev;
	struct ib_mr *ibmr;
	int ret;

	if (!implicit)
		cmd.reg_mr.offset = cpu_to_le32(ib_umem_offset(&odp->umem->umem));
	ibmr = qhca_ib_mr_new(ibpd, &cmd, access);
	if (IS_ERR(ibmr))
		return ibmr;
	odp->key = ibmr->lkey;
	odp->pdn = to_qpd(ibpd)->pdn;
	odp->iova = le64_to_cpu(cmd.reg_mr.iova);
	ret = xa_err(xa_store_irq(&dev->odps, odp->key >> 8, odp, GFP_KERNEL_ACCOUNT));
	if (ret) {
		qhca_cmd_destroy(dev->core, QHCA_CMD_DEREG_MR, odp->key);
		qhca_ib_mr_free(dev, to_qmr(ibmr));
		return ERR_PTR(ret);
	}
	to_qmr(ibmr)->odp = odp;
	return ibmr;
}

/**
 * qhca_ib_odp_reg - register memory without pinning it
 * @ibpd: the PD
 * @start: the user's address, or 0
 * @length: bytes, or U64_MAX, with @start 0, for all memory of the process
 * @iova: address in work requests
 * @access: IB_ACCESS_*, IB_ACCESS_ON_DEMAND among them; otherwise checked
 *
 * Return: the MR or an error.
 */
struct ib_mr *qhca_ib_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_ib_odp *odp;
	struct ib_mr *ibmr;

	if (length == U64_MAX ? start || iova || access & IB_ZERO_BASED :
				!length || length > dev->limits->max_mr_size)
		return ERR_PTR(qhca_ib_refuse(dev, -EINVAL, "ODP: %llu bytes at %#llx", length,
					      iova));
	odp = qhca_ib_odp_alloc(dev, start, length, access);
	if (IS_ERR(odp))
		return ERR_CAST(odp);
	ibmr = qhca_ib_odp_create(ibpd, odp, iova, access);
	if (IS_ERR(ibmr))
		qhca_ib_odp_free(odp);
	return ibmr;
}

/* The range of an SGE in the user's memory, or a negative errno if it is not in the region. */
static int qhca_ib_odp_range(const struct qhca_ib_odp *odp, const struct ib_sge *sge, u64 *va,
			     u64 *end)
{
	*va = sge->addr;
	if (!odp->umem->is_implicit_odp)
		*va += odp->umem->umem.address - odp->iova;
	*end = *va + sge->length;
	return qhca_ib_odp_in_range(odp, *va, *end) ? 0 : -EFAULT;
}

static int qhca_ib_odp_prefetch(struct qhca_ib_odp *odp, const struct ib_sge *sge, bool write,
				bool fault, struct qhca_pages *pages)
{
	u64 va, end;
	ssize_t ret;

	ret = qhca_ib_odp_range(odp, sge, &va, &end);
	while (!ret && va < end) {
		ret = qhca_ib_odp_provide(odp, va, end, write, fault, pages);
		if (ret <= 0)
			break;
		va = ALIGN_DOWN(va, BIT(odp->umem->page_shift)) + ret;
		ret = signal_pending(current) ? -EINTR : 0;
	}
	return ret;
}

/* Whether the SGE names a region of @ibpd, and only what is in it. */
static int qhca_ib_odp_check(struct ib_pd *ibpd, const struct ib_sge *sge)
{
	struct qhca_ib_odp *odp = qhca_ib_odp_get(to_qdev(ibpd->device), sge->lkey);
	u64 va, end;
	int ret;

	if (!odp)
		return -EINVAL;
	ret = odp->pdn == to_qpd(ibpd)->pdn ? qhca_ib_odp_range(odp, sge, &va, &end) : -EPERM;
	qhca_ib_odp_put(odp);
	return ret;
}

static int qhca_ib_odp_advise(struct ib_pd *ibpd, const struct ib_sge *sge, bool write, bool fault,
			      struct qhca_pages *pages)
{
	struct qhca_ib_odp *odp = qhca_ib_odp_get(to_qdev(ibpd->device), sge->lkey);
	int ret;

	if (!odp)
		return -EINVAL;
	ret = qhca_ib_odp_prefetch(odp, sge, write, fault, pages);
	qhca_ib_odp_put(odp);
	return ret;
}

/**
 * qhca_ib_advise_mr - advise_mr verb: provide pages before they are needed
 * @ibpd: the PD of the regions
 * @advice: for reading or for writing, or only what is in memory already
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH or nothing: failures to provide pages do not matter
 * @sge: the ranges
 * @num_sge: how many
 * @attrs: the request, or NULL
 *
 * The pages are there when it returns, with or without the flag.
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		      struct ib_sge *sge, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	struct qhca_pages *pages;
	int ret = 0;
	u32 i;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	for (i = 0; !ret && i < num_sge; i++)
		ret = qhca_ib_odp_check(ibpd, &sge[i]);
	if (ret)
		return ret;
	pages = kmalloc(sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; !ret && i < num_sge; i++)
		ret = qhca_ib_odp_advise(ibpd, &sge[i], write, fault, pages);
	kfree(pages);
	return flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH || ret == -EINTR ? ret : 0;
}
