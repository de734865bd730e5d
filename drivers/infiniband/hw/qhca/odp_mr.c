// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: on-demand paging: verbs. */
#include "odp.h"

/* How much a request for advice is about at most, so that one that is given up ends soon. */
#define QHCA_IB_ADVICE_STEP	(8ul << 20)

/* ---- regions ---- */

/* QPs whose faults are about the region that has gone try again, and find out. */
static void qhca_ib_odp_answer(struct qhca_ib_dev *dev)
{
	struct qhca_ib_qp *qp;
	unsigned long qpn;

	xa_lock_irq(&dev->qps);
	xa_for_each(&dev->qps, qpn, qp)
		qhca_ib_faults_check(qp->faults);
	xa_unlock_irq(&dev->qps);
}

/**
 * qhca_ib_odp_going - tell the device of no more pages while a region is destroyed
 * @mr: the region, which may be of any type
 * @going: it begins; false: the region was not destroyed
 *
 * Context: process; waits for no memory.
 */
void qhca_ib_odp_going(struct qhca_ib_mr *mr, bool going)
{
	if (mr->odp)
		qhca_ib_odp_hold(mr->odp, going);
}

/**
 * qhca_ib_odp_release - let go of the memory of a region that the device does not know any more
 * @dev: the HCA
 * @mr: the region, which may be of any type
 *
 * Context: process; waits for no memory.
 */
void qhca_ib_odp_release(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
{
	struct qhca_ib_odp *odp = mr->odp;

	if (!odp)
		return;
	/* The device may have given the number to another region since. */
	xa_cmpxchg_irq(&dev->odps, odp->key >> 8, odp, NULL, 0);
	qhca_ib_odp_end(odp);
	if (kref_read(&odp->ref) > 1)
		qhca_ib_odp_answer(dev);
	qhca_ib_odp_put(odp);
}

/* Create the region in the device, and make its faults known. */
static struct ib_mr *qhca_ib_odp_create(struct ib_pd *ibpd, struct qhca_ib_odp *odp, u64 iova,
					int access)
{
	struct qhca_cmd cmd = {
		.reg_mr.type = QHCA_MR_ODP,
		.reg_mr.buf.block_shift = PAGE_SHIFT,
		.reg_mr.length = cpu_to_le64(odp->implicit ? odp->end : odp->umem->umem.length),
		.reg_mr.iova = cpu_to_le64(access & IB_ZERO_BASED ? 0 : iova),
	};
	struct qhca_ib_dev *dev = odp->dev;
	struct ib_mr *ibmr;
	int ret;

	if (!odp->implicit)
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
	struct qhca_ib_pager *pager;
	struct qhca_ib_odp *odp;
	struct ib_mr *ibmr;

	if (length == U64_MAX ? start || iova || access & IB_ZERO_BASED :
				!length || length > dev->limits->max_mr_size)
		return ERR_PTR(qhca_ib_refuse(dev, -EINVAL, "ODP: %llu bytes at %#llx", length,
					      iova));
	/* A kernel consumer, such as RDS, registers memory of the process that calls it. */
	pager = qhca_ib_pager_get(dev, ibpd->uobject ? to_qctx(ibpd->uobject->context) : NULL);
	if (IS_ERR(pager))
		return ERR_CAST(pager);
	odp = qhca_ib_odp_alloc(dev, pager, start, length, access);
	if (IS_ERR(odp)) {
		qhca_ib_pager_put(pager);
		return ERR_CAST(odp);
	}
	ibmr = qhca_ib_odp_create(ibpd, odp, iova, access);
	if (IS_ERR(ibmr)) {
		qhca_ib_odp_end(odp);
		qhca_ib_odp_put(odp);
	}
	return ibmr;
}

/* ---- advice ---- */

/**
 * struct qhca_ib_advice - a request for pages that a caller of advise_mr waits for
 * @pages: the pages
 * @ref: the caller has one, and the request
 * @done: it is done
 * @err: how
 */
struct qhca_ib_advice {
	struct qhca_ib_pages pages;
	struct kref ref;
	struct completion done;
	int err;
};

static void qhca_ib_advice_release(struct kref *ref)
{
	struct qhca_ib_advice *advice = container_of(ref, struct qhca_ib_advice, ref);

	qhca_ib_pages_exit(&advice->pages);
	kfree(advice);
}

static void qhca_ib_advice_done(struct qhca_ib_pages *pages, int err)
{
	struct qhca_ib_advice *advice = container_of(pages, struct qhca_ib_advice, pages);

	advice->err = err;
	complete(&advice->done);
	kref_put(&advice->ref, qhca_ib_advice_release);
}

static struct qhca_ib_advice *qhca_ib_advice_new(struct qhca_ib_odp *odp, u64 va, u64 end,
						 bool write, bool fault)
{
	struct qhca_ib_advice *advice = kzalloc_obj(*advice, GFP_KERNEL_ACCOUNT);

	if (!advice)
		return NULL;
	if (!qhca_ib_pages_init(&advice->pages, odp)) {
		kfree(advice);
		return NULL;
	}
	advice->pages.va = va;
	advice->pages.end = end;
	advice->pages.write = write;
	advice->pages.fault = fault;
	advice->pages.all = true;
	advice->pages.done = qhca_ib_advice_done;
	/* One for the caller, one for the request. */
	kref_init(&advice->ref);
	kref_get(&advice->ref);
	init_completion(&advice->done);
	return advice;
}

/* The core removes a device only when no call is under way, and pages may never come. */
static int qhca_ib_advice_wait(struct qhca_ib_dev *dev, struct qhca_ib_advice *advice)
{
	long left = 0;

	while (!left) {
		if (READ_ONCE(dev->leaving))
			return -EIO;
		left = wait_for_completion_interruptible_timeout(&advice->done, HZ / 10);
	}
	return left < 0 ? -EINTR : advice->err;
}

static int qhca_ib_advice_get(struct qhca_ib_dev *dev, struct qhca_ib_odp *odp, u64 va, u64 end,
			      bool write, bool fault)
{
	struct qhca_ib_advice *advice = qhca_ib_advice_new(odp, va, end, write, fault);
	int ret;

	if (!advice)
		return -ENOMEM;
	qhca_ib_pages_ask(&advice->pages);
	ret = qhca_ib_advice_wait(dev, advice);
	if (ret && qhca_ib_pages_drop(&advice->pages))
		kref_put(&advice->ref, qhca_ib_advice_release);
	kref_put(&advice->ref, qhca_ib_advice_release);
	return ret;
}

/* The range of an SGE in the user's memory, or a negative errno if it is not in the region. */
static int qhca_ib_odp_range(const struct qhca_ib_odp *odp, const struct ib_sge *sge, u64 *va,
			     u64 *end)
{
	*va = sge->addr;
	if (!odp->implicit)
		*va += odp->start - odp->iova;
	*end = *va + sge->length;
	return qhca_ib_odp_in_range(odp, *va, *end) ? 0 : -EFAULT;
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

static int qhca_ib_odp_advise(struct ib_pd *ibpd, const struct ib_sge *sge, bool write, bool fault)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_ib_odp *odp = qhca_ib_odp_get(dev, sge->lkey);
	u64 va, next, end;
	int ret;

	if (!odp)
		return -EINVAL;
	ret = qhca_ib_odp_range(odp, sge, &va, &end);
	for (; !ret && va < end; va = next) {
		next = min(end, ALIGN_DOWN(va, QHCA_IB_ADVICE_STEP) + QHCA_IB_ADVICE_STEP);
		ret = qhca_ib_advice_get(dev, odp, va, next, write, fault);
	}
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
	int ret = 0;
	u32 i;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	for (i = 0; !ret && i < num_sge; i++)
		ret = qhca_ib_odp_check(ibpd, &sge[i]);
	if (ret)
		return ret;
	for (i = 0; !ret && i < num_sge; i++)
		ret = qhca_ib_odp_advise(ibpd, &sge[i], write, fault);
	return flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH || ret == -EINTR ? ret : 0;
}
