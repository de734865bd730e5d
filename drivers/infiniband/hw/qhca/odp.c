// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: the pages of a region. They are mapped and the device is told where
 * they are; when the memory changes, the device forgets them before they are unmapped.
 */
#ifdef QHCA_HAVE_HMM_DMA
#include <linux/hmm.h>
#include <linux/hmm-dma.h>
#include <linux/pci-p2pdma.h>
#endif

#include "odp.h"

/* An implicit region consists of pieces of this size, made where there are page faults. */
#define QHCA_IB_ODP_PIECE_SHIFT	23
#define QHCA_IB_ODP_MAX_PIECES	16384

/* ---- pages to and from the device ---- */

static void qhca_ib_odp_cmd(const struct qhca_ib_odp *odp, struct qhca_cmd *cmd, u16 opcode,
			    u64 start, u64 end)
{
	unsigned int shift = odp->umem->page_shift;
	u64 base = qhca_ib_odp_base(odp);

	*cmd = (struct qhca_cmd) {
		.opcode = cpu_to_le16(opcode),
		.pages.key = cpu_to_le32(odp->key),
		.pages.first = cpu_to_le64((start - base) >> shift),
		.pages.num = cpu_to_le64((end - start) >> shift),
	};
}

/* Make the device forget pages. If it does not know the region any more, it has. */
static void qhca_ib_odp_clear(struct qhca_ib_odp *odp, u64 start, u64 end)
{
	struct qhca_dev *core = odp->dev->core;
	struct qhca_cmd cmd;
	int ret;

	qhca_ib_odp_cmd(odp, &cmd, QHCA_CMD_CLEAR_PAGES, start, end);
	ret = qhca_cmd_exec(core, &cmd, NULL, NULL);
	if (!ret || ret == -ENOENT)
		return;
	/* The pages are freed next, so stop all DMA. */
	qhca_health_die(core, "pages could not be taken back");
	qhca_health_quiesce(core);
}

#ifdef QHCA_HAVE_HMM_DMA
#define QHCA_IB_ODP_READ	0
#define QHCA_IB_ODP_WRITE	HMM_PFN_WRITE

/*
 * The entry for page @i of @umem, 0 if it is not present. The core counts the pages that it unmaps,
 * but leaves counting those that are mapped to the driver.
 */
static int qhca_ib_odp_page(struct ib_umem_odp *umem, size_t i, __le64 *page)
{
	struct pci_p2pdma_map_state p2pdma = {};
	unsigned long pfn = umem->map.pfn_list[i];
	dma_addr_t dma;

	*page = 0;
	if (!(pfn & HMM_PFN_VALID))
		return 0;
	dma = hmm_dma_map_pfn(umem->umem.ibdev->dma_device, &umem->map, i, &p2pdma);
	if (ib_dma_mapping_error(umem->umem.ibdev, dma))
		return -EFAULT;
	if (!(pfn & HMM_PFN_DMA_MAPPED))
		umem->npages++;
	*page = cpu_to_le64(dma | QHCA_PAGE_READ | (pfn & HMM_PFN_WRITE ? QHCA_PAGE_WRITE : 0));
	return 0;
}
#else
#define QHCA_IB_ODP_READ	ODP_READ_ALLOWED_BIT
#define QHCA_IB_ODP_WRITE	(ODP_READ_ALLOWED_BIT | ODP_WRITE_ALLOWED_BIT)

static int qhca_ib_odp_page(struct ib_umem_odp *umem, size_t i, __le64 *page)
{
	dma_addr_t dma = umem->dma_list[i];

	*page = 0;
	if (dma & ODP_DMA_ADDR_MASK)
		*page = cpu_to_le64((dma & ODP_DMA_ADDR_MASK) | QHCA_PAGE_READ |
				    (dma & ODP_WRITE_ALLOWED_BIT ? QHCA_PAGE_WRITE : 0));
	return 0;
}
#endif

/* Tell the device where @num pages from @va on are. The pages are locked. */
static int qhca_ib_odp_set(struct qhca_ib_odp *odp, struct ib_umem_odp *umem, u64 va, size_t num,
			   struct qhca_pages *pages)
{
	size_t i, first = (va - ib_umem_start(umem)) >> umem->page_shift;
	struct qhca_mbox mbox = { .in = pages, .in_len = num * sizeof(pages->page[0]) };
	struct qhca_cmd cmd;
	int ret;

	for (i = 0; i < num; i++) {
		ret = qhca_ib_odp_page(umem, first + i, &pages->page[i]);
		if (ret)
			return ret;
	}
	qhca_ib_odp_cmd(odp, &cmd, QHCA_CMD_SET_PAGES, va, va + (num << umem->page_shift));
	return qhca_cmd_exec(odp->dev->core, &cmd, &mbox, NULL);
}

/*
 * Map pages of @umem from the one of @va up to @end, as many as a command can have, and tell the
 * device. Returns how many bytes, or a negative errno.
 */
static ssize_t qhca_ib_odp_map(struct qhca_ib_odp *odp, struct ib_umem_odp *umem, u64 va, u64 end,
			       bool write, bool fault, struct qhca_pages *pages)
{
	u64 size = BIT(umem->page_shift);
	int num, ret;

	if (write && !umem->umem.writable)
		return -EPERM;
	va = ALIGN_DOWN(va, size);
	end = min3(end, (u64)ib_umem_end(umem), va + (QHCA_TABLE_ENTRIES << umem->page_shift));
	num = ib_umem_odp_map_dma_and_lock(umem, va, end - va,
					   write ? QHCA_IB_ODP_WRITE : QHCA_IB_ODP_READ, fault);
	if (num < 0)
		return num;
	num = min_t(int, num, QHCA_TABLE_ENTRIES);
	ret = qhca_ib_odp_set(odp, umem, va, num, pages);
	mutex_unlock(&umem->umem_mutex);
	return ret ?: (ssize_t)num << umem->page_shift;
}

static bool qhca_ib_odp_invalidate(struct mmu_interval_notifier *mni,
				   const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	u64 start = max_t(u64, ib_umem_start(umem), range->start);
	u64 end = min_t(u64, ib_umem_end(umem), range->end);
	u64 size = BIT(umem->page_shift);

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	if (umem->npages) {
		qhca_ib_odp_clear(umem->private, ALIGN_DOWN(start, size), ALIGN(end, size));
		ib_umem_odp_unmap_dma_pages(umem, start, end);
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops qhca_ib_odp_mn_ops = {
	.invalidate = qhca_ib_odp_invalidate,
};

/* ---- pieces of implicit regions ---- */

static void qhca_ib_odp_drop_pieces(struct qhca_ib_odp *odp, bool all)
{
	struct ib_umem_odp *piece;
	unsigned long i;

	xa_for_each(&odp->pieces, i, piece) {
		if (!all && READ_ONCE(piece->npages))
			continue;
		xa_erase(&odp->pieces, i);
		ib_umem_odp_release(piece);
		odp->num_pieces--;
	}
}

static struct ib_umem_odp *qhca_ib_odp_new_piece(struct qhca_ib_odp *odp, unsigned long i)
{
	unsigned long start = i << QHCA_IB_ODP_PIECE_SHIFT;
	struct ib_umem_odp *piece;
	int ret;

	if (odp->num_pieces >= QHCA_IB_ODP_MAX_PIECES)
		qhca_ib_odp_drop_pieces(odp, false);
	if (odp->num_pieces >= QHCA_IB_ODP_MAX_PIECES)
		return ERR_PTR(-ENOMEM);
	/* The region does not end with a whole piece, and the device refuses what is behind it. */
	piece = ib_umem_odp_alloc_child(odp->umem, start,
					min(BIT(QHCA_IB_ODP_PIECE_SHIFT), TASK_SIZE_MAX - start),
					&qhca_ib_odp_mn_ops);
	if (IS_ERR(piece))
		return piece;
	piece->private = odp;
	ret = xa_err(xa_store(&odp->pieces, i, piece, GFP_KERNEL_ACCOUNT));
	if (ret) {
		ib_umem_odp_release(piece);
		return ERR_PTR(ret);
	}
	odp->num_pieces++;
	return piece;
}

/* The memory that has @va, which the caller has checked. */
static struct ib_umem_odp *qhca_ib_odp_find(struct qhca_ib_odp *odp, u64 va)
{
	unsigned long i = va >> QHCA_IB_ODP_PIECE_SHIFT;
	struct ib_umem_odp *piece;

	if (!odp->umem->is_implicit_odp)
		return odp->umem;
	lockdep_assert_held(&odp->lock);
	piece = xa_load(&odp->pieces, i);
	return piece ?: qhca_ib_odp_new_piece(odp, i);
}

/**
 * qhca_ib_odp_provide - map pages of a region, and tell the device
 * @odp: the region
 * @va: the user's address of a byte in the first page
 * @end: end of what is needed
 * @write: they are to be written
 * @fault: also pages that are not in memory
 * @pages: scratch space
 *
 * One call provides no more pages than @pages has room for, and ends at the end of a piece.
 *
 * Context: process; waits for the process's memory.
 * Return: how many bytes from the start of the first page on, or a negative errno.
 */
ssize_t qhca_ib_odp_provide(struct qhca_ib_odp *odp, u64 va, u64 end, bool write, bool fault,
			    struct qhca_pages *pages)
{
	struct ib_umem_odp *umem;
	ssize_t ret;

	mutex_lock(&odp->lock);
	umem = qhca_ib_odp_find(odp, va);
	ret = IS_ERR(umem) ? PTR_ERR(umem) :
			     qhca_ib_odp_map(odp, umem, va, end, write, fault, pages);
	mutex_unlock(&odp->lock);
	return ret;
}

/* ---- regions ---- */

/**
 * qhca_ib_odp_alloc - watch memory of the current process
 * @dev: the HCA
 * @start: the user's address
 * @length: bytes, or U64_MAX for all memory of the process
 * @access: IB_ACCESS_*
 *
 * Return: the region, which the device does not know yet, or an error.
 */
struct qhca_ib_odp *qhca_ib_odp_alloc(struct qhca_ib_dev *dev, u64 start, u64 length, int access)
{
	struct qhca_ib_odp *odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);

	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->dev = dev;
	mutex_init(&odp->lock);
	xa_init(&odp->pieces);
	refcount_set(&odp->users, 1);
	init_completion(&odp->idle);
	/* The hint is for pinned memory. */
	access &= ~IB_ACCESS_HUGETLB;
	odp->umem = length == U64_MAX ?
		    ib_umem_odp_alloc_implicit(&dev->ibdev, access) :
		    ib_umem_odp_get(&dev->ibdev, start, length, access, &qhca_ib_odp_mn_ops);
	if (IS_ERR(odp->umem)) {
		int ret = PTR_ERR(odp->umem);

		kfree(odp);
		return ERR_PTR(ret);
	}
	odp->umem->private = odp;
	return odp;
}

/**
 * qhca_ib_odp_free - undo qhca_ib_odp_alloc()
 * @odp: the region, which the device does not know any more
 */
void qhca_ib_odp_free(struct qhca_ib_odp *odp)
{
	qhca_ib_odp_drop_pieces(odp, true);
	xa_destroy(&odp->pieces);
	ib_umem_odp_release(odp->umem);
	kfree(odp);
}
