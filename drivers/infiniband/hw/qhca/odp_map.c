// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: pages that are in memory. They are mapped and the device is told
 * where they are; when the memory changes, the device forgets them before they are unmapped.
 */
#include <linux/hmm.h>
#ifdef QHCA_HAVE_HMM_DMA
#include <linux/hmm-dma.h>
#include <linux/pci-p2pdma.h>
#endif

#include "odp.h"

static void qhca_ib_odp_cmd(const struct qhca_ib_odp *odp, struct qhca_cmd *cmd, u16 opcode,
			    u64 start, u64 end)
{
	*cmd = (struct qhca_cmd) {
		.opcode = cpu_to_le16(opcode),
		.pages.key = cpu_to_le32(odp->key),
		.pages.first = cpu_to_le64((start - odp->base) >> PAGE_SHIFT),
		.pages.num = cpu_to_le64((end - start) >> PAGE_SHIFT),
	};
}

/**
 * qhca_ib_odp_clear - make the device forget pages
 * @odp: the region; if the device does not know it any more, it has
 * @start: address of the first page
 * @end: address behind the last
 *
 * Context: process, under the lock of the pages.
 */
void qhca_ib_odp_clear(struct qhca_ib_odp *odp, u64 start, u64 end)
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

/*
 * Map page @i of @umem, which is where @pfn says. The core counts the pages that it unmaps, but
 * leaves counting those that are mapped to the driver.
 */
#ifdef QHCA_HAVE_HMM_DMA
static dma_addr_t qhca_ib_odp_dma(struct ib_umem_odp *umem, size_t i, unsigned long pfn)
{
	struct device *dma_dev = umem->umem.ibdev->dma_device;
	unsigned long *entry = &umem->map.pfn_list[i];
	bool mapped = *entry & HMM_PFN_DMA_MAPPED;
	struct pci_p2pdma_map_state p2pdma = {};
	dma_addr_t dma;

	*entry = mapped ? *entry | (pfn & HMM_PFN_WRITE) : pfn;
	dma = hmm_dma_map_pfn(dma_dev, &umem->map, i, &p2pdma);
	if (dma_mapping_error(dma_dev, dma))
		*entry = 0;
	else if (!mapped)
		umem->npages++;
	return dma;
}
#else
static dma_addr_t qhca_ib_odp_dma(struct ib_umem_odp *umem, size_t i, unsigned long pfn)
{
	struct device *dma_dev = umem->umem.ibdev->dma_device;
	dma_addr_t dma = umem->dma_list[i] & ODP_DMA_ADDR_MASK;

	if (!umem->dma_list[i]) {
		dma = dma_map_page(dma_dev, hmm_pfn_to_page(pfn), 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dma_dev, dma))
			return dma;
		umem->pfn_list[i] = pfn;
		umem->npages++;
	}
	umem->dma_list[i] = dma | ODP_READ_ALLOWED_BIT |
			    (pfn & HMM_PFN_WRITE ? ODP_WRITE_ALLOWED_BIT : 0);
	return dma;
}
#endif

/* Returns whether the page is there, and may be written if @write. */
static bool qhca_ib_odp_page(struct ib_umem_odp *umem, size_t i, unsigned long pfn, bool write,
			     __le64 *page)
{
	dma_addr_t dma;

	*page = 0;
	if (!(pfn & HMM_PFN_VALID) || (pfn & HMM_PFN_ERROR))
		return false;
	if (!umem->umem.writable)
		pfn &= ~HMM_PFN_WRITE;
	dma = qhca_ib_odp_dma(umem, i, pfn);
	if (dma_mapping_error(umem->umem.ibdev->dma_device, dma))
		return false;
	*page = cpu_to_le64(dma | QHCA_PAGE_READ | (pfn & HMM_PFN_WRITE ? QHCA_PAGE_WRITE : 0));
	return !write || pfn & HMM_PFN_WRITE;
}

/*
 * Tell the device where the @num pages from @va on are, as far as they are there. The pages are
 * locked. Returns how many of the first are there, or a negative errno.
 */
static int qhca_ib_odp_set(struct qhca_ib_odp *odp, struct ib_umem_odp *umem, u64 va, size_t num,
			   bool write, struct qhca_ib_odp_scratch *s)
{
	size_t i, first = (va - ib_umem_start(umem)) >> PAGE_SHIFT, known = 0, have = num;
	struct qhca_mbox mbox = { .in = &s->pages, .in_len = num * sizeof(s->pages.page[0]) };
	struct qhca_cmd cmd;
	int ret;

	for (i = 0; i < num; i++) {
		if (!qhca_ib_odp_page(umem, first + i, s->pfn[i], write, &s->pages.page[i]))
			have = min(have, i);
		known += s->pages.page[i] != 0;
	}
	if (!known)
		return s->pfn[0] & HMM_PFN_VALID ? -ENOMEM : 0;
	qhca_ib_odp_cmd(odp, &cmd, QHCA_CMD_SET_PAGES, va, va + (num << PAGE_SHIFT));
	ret = qhca_cmd_exec(odp->dev->core, &cmd, &mbox, NULL);
	return ret ?: have;
}

/**
 * qhca_ib_odp_map - map the first pages of a request, and tell the device
 * @p: the request
 * @umem: the memory that has @va
 * @va: from the page with this byte on, as many as a command can have
 * @s: scratch space; afterwards says where the pages are
 *
 * Context: process, under mmap_lock and the lock of the region; waits for no memory.
 * Return: how many bytes from the start of the first page on are there, or, if the request is not
 * about pages that are not in memory, were looked at. A negative errno: -EAGAIN if the memory is
 * changing.
 */
ssize_t qhca_ib_odp_map(const struct qhca_ib_pages *p, struct ib_umem_odp *umem, u64 va,
			struct qhca_ib_odp_scratch *s)
{
	struct hmm_range range = {
		.notifier = &umem->notifier,
		.start = ALIGN_DOWN(va, PAGE_SIZE),
		.hmm_pfns = s->pfn,
	};
	size_t num;
	int ret;

	range.end = min3(PAGE_ALIGN(p->end), (u64)ib_umem_end(umem),
			 (u64)range.start + QHCA_TABLE_ENTRIES * PAGE_SIZE);
	num = (range.end - range.start) >> PAGE_SHIFT;
	memset(s->pfn, 0, num * sizeof(s->pfn[0]));
	range.notifier_seq = mmu_interval_read_begin(&umem->notifier);
	/* Without flags that ask for faults it only looks. */
	ret = hmm_range_fault(&range);
	if (ret)
		return ret == -EBUSY ? -EAGAIN : ret;
	mutex_lock(&umem->umem_mutex);
	if (mmu_interval_read_retry(&umem->notifier, range.notifier_seq))
		ret = -EAGAIN;
	else
		ret = qhca_ib_odp_set(p->odp, umem, range.start, num, p->write, s);
	mutex_unlock(&umem->umem_mutex);
	if (ret < 0)
		return ret;
	return (p->fault ? ret : num) << PAGE_SHIFT;
}

static bool qhca_ib_odp_invalidate(struct mmu_interval_notifier *mni,
				   const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	u64 start = max_t(u64, ib_umem_start(umem), range->start);
	u64 end = min_t(u64, ib_umem_end(umem), range->end);
	struct qhca_ib_odp *odp;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	odp = umem->private;
	if (umem->npages) {
		qhca_ib_odp_clear(odp, ALIGN_DOWN(start, PAGE_SIZE), ALIGN(end, PAGE_SIZE));
		ib_umem_odp_unmap_dma_pages(umem, start, end);
		if (odp->implicit && !umem->npages) {
			xa_set_mark(&odp->pieces, ib_umem_start(umem) >> QHCA_IB_ODP_PIECE_SHIFT,
				    XA_MARK_0);
			queue_work(odp->dev->odp_wq, &odp->trim);
		}
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

const struct mmu_interval_notifier_ops qhca_ib_odp_mn_ops = {
	.invalidate = qhca_ib_odp_invalidate,
};
