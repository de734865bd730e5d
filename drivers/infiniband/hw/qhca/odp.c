// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: on-demand paging: regions, and how their pages are provided.
 *
 * Memory may take for ever: a page comes from a file system whose server does not answer, or a
 * thread of the process waits for one with its mmap_lock. So the driver waits for pages, and for
 * mmap_lock, with nothing but the mm in hand (qhca_ib_odp_pull()), and maps what is there then
 * (qhca_ib_odp_map()) under the lock of the region, where nothing waits for memory: the end of a
 * region, of a QP or of the device only waits for that lock. This is why
 * ib_umem_odp_map_dma_and_lock(), which does both in one step, is not used.
 */
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "odp.h"

/* An implicit region is charged for this part of the block addresses, and keeps within it. */
#define QHCA_IB_ODP_IMPLICIT_PART	32
/* Nodes that a piece takes at most: its leaves, and those above them but the root. */
#define QHCA_IB_ODP_PIECE_NODES		7u
/* How often to get a page that is taken away again before it is mapped. */
#define QHCA_IB_ODP_TRIES	8

/* ---- pieces of implicit regions ---- */

static void qhca_ib_odp_drop_piece(struct qhca_ib_odp *odp, struct ib_umem_odp *piece)
{
	xa_erase(&odp->pieces, ib_umem_start(piece) >> QHCA_IB_ODP_PIECE_SHIFT);
	ib_umem_odp_release(piece);
	odp->num_pieces--;
}

static void qhca_ib_odp_drop_empty(struct qhca_ib_odp *odp)
{
	struct ib_umem_odp *piece;
	unsigned long i;

	xa_for_each_marked(&odp->pieces, i, piece, XA_MARK_0) {
		xa_clear_mark(&odp->pieces, i, XA_MARK_0);
		if (!READ_ONCE(piece->npages))
			qhca_ib_odp_drop_piece(odp, piece);
	}
}

static void qhca_ib_odp_trim(struct work_struct *work)
{
	struct qhca_ib_odp *odp = container_of(work, struct qhca_ib_odp, trim);

	mutex_lock(&odp->lock);
	qhca_ib_odp_drop_empty(odp);
	mutex_unlock(&odp->lock);
}

/* Take the pages of the next piece back; an access to them causes a page fault. */
static void qhca_ib_odp_evict_piece(struct qhca_ib_odp *odp)
{
	struct ib_umem_odp *piece;

	piece = xa_find_after(&odp->pieces, &odp->evicted, ULONG_MAX, XA_PRESENT);
	if (!piece) {
		odp->evicted = 0;
		piece = xa_find(&odp->pieces, &odp->evicted, ULONG_MAX, XA_PRESENT);
	}
	if (!piece)
		return;
	mutex_lock(&piece->umem_mutex);
	if (piece->npages)
		qhca_ib_odp_clear(odp, ib_umem_start(piece), ib_umem_end(piece));
	mutex_unlock(&piece->umem_mutex);
	qhca_ib_odp_drop_piece(odp, piece);
}

static struct ib_umem_odp *qhca_ib_odp_new_piece(struct qhca_ib_odp *odp, unsigned long i)
{
	unsigned long start = i << QHCA_IB_ODP_PIECE_SHIFT;
	struct ib_umem_odp *piece;

	/* The region does not end with a whole piece, and the device refuses what is behind it. */
	piece = ib_umem_odp_alloc_child(odp->umem, start,
					min(BIT(QHCA_IB_ODP_PIECE_SHIFT), TASK_SIZE_MAX - start),
					&qhca_ib_odp_mn_ops);
	if (!IS_ERR(piece))
		piece->private = odp;
	return piece;
}

/* Called with @odp->grow, so that no piece is added concurrently. */
static int qhca_ib_odp_grow(struct qhca_ib_odp *odp, unsigned long i)
{
	struct ib_umem_odp *piece;
	int ret;

	mutex_lock(&odp->lock);
	if (odp->num_pieces >= odp->max_pieces)
		qhca_ib_odp_drop_empty(odp);
	if (odp->num_pieces >= odp->max_pieces)
		qhca_ib_odp_evict_piece(odp);
	mutex_unlock(&odp->lock);
	/* For lockdep this may take the mmap_lock. */
	piece = qhca_ib_odp_new_piece(odp, i);
	if (IS_ERR(piece))
		return PTR_ERR(piece);
	mutex_lock(&odp->lock);
	ret = xa_err(xa_store(&odp->pieces, i, piece, GFP_KERNEL_ACCOUNT));
	if (!ret)
		odp->num_pieces++;
	mutex_unlock(&odp->lock);
	if (ret)
		ib_umem_odp_release(piece);
	return ret;
}

/* Make piece @i, if there is none. It may already be evicted on return, like any other. */
static int qhca_ib_odp_need_piece(struct qhca_ib_odp *odp, unsigned long i)
{
	int ret = 0;

	mutex_lock(&odp->grow);
	if (odp->ended)
		ret = -ENODEV;
	else if (!xa_load(&odp->pieces, i))
		ret = qhca_ib_odp_grow(odp, i);
	mutex_unlock(&odp->grow);
	return ret;
}

/* qhca_ib_odp_map() in the piece that has @va. Only if @create, the region gets another one. */
static ssize_t qhca_ib_odp_map_piece(const struct qhca_ib_pages *p, u64 va, bool create,
				     struct qhca_ib_odp_scratch *s)
{
	unsigned long i = va >> QHCA_IB_ODP_PIECE_SHIFT;
	struct qhca_ib_odp *odp = p->odp;
	struct ib_umem_odp *umem;
	ssize_t ret = 0;

	if (odp->implicit && create)
		ret = qhca_ib_odp_need_piece(odp, i);
	if (ret)
		return ret;
	mmap_read_lock(odp->mm);
	mutex_lock(&odp->lock);
	if (odp->ended) {
		ret = -ENODEV;
	} else {
		umem = odp->implicit ? xa_load(&odp->pieces, i) : odp->umem;
		if (umem)
			ret = qhca_ib_odp_map(p, umem, va, s);
		else if (create)
			ret = -EAGAIN;
		if (odp->implicit && umem && !READ_ONCE(umem->npages))
			qhca_ib_odp_drop_piece(odp, umem);
	}
	mutex_unlock(&odp->lock);
	mmap_read_unlock(odp->mm);
	return ret;
}

/* ---- pages from the memory ---- */

/*
 * Bring the pages from @va on into memory, as many as one command can have, but at least the first.
 * This may take for ever. The kernel drops mmap_lock where it waits for a device.
 */
static int qhca_ib_odp_pull(struct mm_struct *mm, u64 va, u64 end, bool write)
{
	unsigned int flags = FAULT_FLAG_REMOTE | (write ? FAULT_FLAG_WRITE : 0);
	struct vm_area_struct *vma;
	bool unlocked;
	int ret = 0;
	u64 at;

	end = min(end, va + QHCA_TABLE_ENTRIES * PAGE_SIZE);
	mmap_read_lock(mm);
	for (at = ALIGN_DOWN(va, PAGE_SIZE); at < end; at += PAGE_SIZE) {
		vma = vma_lookup(mm, at);
		if (!vma || vma->vm_flags & (VM_IO | VM_PFNMAP))
			ret = -EFAULT;
		else
			ret = fixup_user_fault(mm, at, flags, &unlocked);
		if (ret)
			break;
		cond_resched();
	}
	mmap_read_unlock(mm);
	return at > va ? 0 : ret;
}

static int qhca_ib_odp_fill(const struct qhca_ib_pages *p, struct qhca_ib_odp_scratch *s)
{
	struct mm_struct *mm = p->odp->mm;
	unsigned int tries = 0;
	u64 va = p->va;
	ssize_t ret = 0;

	while (va < p->end) {
		ret = qhca_ib_odp_map_piece(p, va, !p->fault || tries, s);
		if (ret > 0) {
			va = ALIGN_DOWN(va, PAGE_SIZE) + ret;
			tries = 0;
			continue;
		}
		/* A page that is there, but not of a kind that a device can have. */
		if (!ret && tries && s->pfn[0] & HMM_PFN_ERROR)
			ret = -EFAULT;
		if ((ret && ret != -EAGAIN) || tries++ == QHCA_IB_ODP_TRIES)
			break;
		ret = p->fault ? qhca_ib_odp_pull(mm, va, p->end, p->write) : 0;
		if (ret)
			break;
	}
	if (va >= p->end || (!p->all && va > p->va))
		return 0;
	return ret ?: -EAGAIN;
}

/**
 * qhca_ib_odp_provide - get pages of a region, map them, and tell the device
 * @p: the request
 *
 * Context: process, without locks; waits for the process's memory, possibly for ever.
 * Return: 0; -ENODEV if the region has been released; -EAGAIN and -ENOMEM if it is worth to try
 * again later; another negative errno if the pages cannot be had.
 */
int qhca_ib_odp_provide(const struct qhca_ib_pages *p)
{
	struct qhca_ib_odp_scratch *s;
	int ret;

	if (p->write && !p->odp->writable)
		return -EPERM;
	s = kmalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	ret = -EFAULT;
	if (mmget_not_zero(p->odp->mm)) {
		ret = qhca_ib_odp_fill(p, s);
		mmput(p->odp->mm);
	}
	kfree(s);
	return ret;
}

/* ---- regions ---- */

/*
 * Charge for the pages that can be present. The length of an implicit region says nothing about
 * that, so it has a fixed number of pieces.
 */
static int qhca_ib_odp_charge(struct qhca_ib_odp *odp, u64 start, u64 length)
{
	u32 blocks = odp->dev->limits->max_table_blocks;

	if (length == U64_MAX) {
		u32 part = blocks / QHCA_IB_ODP_IMPLICIT_PART;

		/* A packet can need two. */
		odp->max_pieces = max(part / (QHCA_NODE_BLOCKS * QHCA_IB_ODP_PIECE_NODES), 2u);
		return qhca_ib_charge(odp->dev, &odp->charge, part, blocks);
	}
	return qhca_ib_charge_odp(odp->dev, &odp->charge,
				  DIV_ROUND_UP_ULL(offset_in_page(start) + length, PAGE_SIZE));
}

/*
 * The first notifier of a process needs its mmap_lock for writing. Have that behind us while the
 * process itself waits, so that a piece never needs it.
 */
static int qhca_ib_odp_first_notifier(struct ib_umem_odp *root)
{
	struct ib_umem_odp *first = ib_umem_odp_alloc_child(root, 0, PAGE_SIZE,
							    &qhca_ib_odp_mn_ops);

	if (IS_ERR(first))
		return PTR_ERR(first);
	ib_umem_odp_release(first);
	return 0;
}

static struct ib_umem_odp *qhca_ib_odp_umem(struct qhca_ib_dev *dev, u64 start, u64 length,
					    int access)
{
	struct ib_umem_odp *umem;
	int ret;

	/* The hint is for pinned memory. */
	access &= ~IB_ACCESS_HUGETLB;
	if (length != U64_MAX)
		return ib_umem_odp_get(&dev->ibdev, start, length, access, &qhca_ib_odp_mn_ops);
	umem = ib_umem_odp_alloc_implicit(&dev->ibdev, access);
	if (IS_ERR(umem))
		return umem;
	ret = qhca_ib_odp_first_notifier(umem);
	if (ret) {
		ib_umem_odp_release(umem);
		return ERR_PTR(ret);
	}
	return umem;
}

/**
 * qhca_ib_odp_alloc - watch memory of the current process
 * @dev: the HCA
 * @pager: provides the pages; the region takes it over, if there is no error
 * @start: the user's address
 * @length: bytes, or U64_MAX for all memory of the process
 * @access: IB_ACCESS_*
 *
 * Return: the region, which the device does not know yet, or an error.
 */
struct qhca_ib_odp *qhca_ib_odp_alloc(struct qhca_ib_dev *dev, struct qhca_ib_pager *pager,
				      u64 start, u64 length, int access)
{
	struct qhca_ib_odp *odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);
	struct ib_umem_odp *umem;
	int ret;

	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->dev = dev;
	/* The core takes kernel memory for each page now, so charge first. */
	ret = qhca_ib_odp_charge(odp, start, length);
	if (ret) {
		kfree(odp);
		return ERR_PTR(ret);
	}
	umem = qhca_ib_odp_umem(dev, start, length, access);
	if (IS_ERR(umem)) {
		qhca_ib_uncharge_all(dev, &odp->charge);
		kfree(odp);
		return ERR_CAST(umem);
	}
	kref_init(&odp->ref);
	mutex_init(&odp->grow);
	mutex_init(&odp->lock);
	xa_init(&odp->pieces);
	INIT_WORK(&odp->trim, qhca_ib_odp_trim);
	odp->umem = umem;
	odp->pager = pager;
	odp->implicit = umem->is_implicit_odp;
	odp->writable = umem->umem.writable;
	odp->start = odp->implicit ? 0 : umem->umem.address;
	odp->base = odp->implicit ? 0 : ib_umem_start(umem);
	/* On s390x addresses may have 64 bits, but hardly anybody's do. */
	odp->end = odp->implicit ? min_t(u64, TASK_SIZE_MAX, QHCA_ODP_SIZE_MAX) : ib_umem_end(umem);
	/* The core holds the mm for its notifiers, of which an implicit region may have none. */
	odp->mm = current->mm;
	mmgrab(odp->mm);
	WRITE_ONCE(umem->private, odp);
	return odp;
}

/**
 * qhca_ib_odp_get - hold a region
 * @dev: the HCA
 * @key: its key
 *
 * Context: process.
 * Return: the region, or NULL if there is none.
 */
struct qhca_ib_odp *qhca_ib_odp_get(struct qhca_ib_dev *dev, u32 key)
{
	struct qhca_ib_odp *odp;

	/* While a region is listed, it holds itself. */
	xa_lock_irq(&dev->odps);
	odp = xa_load(&dev->odps, key >> 8);
	if (odp && odp->key != key)
		odp = NULL;
	if (odp)
		kref_get(&odp->ref);
	xa_unlock_irq(&dev->odps);
	return odp;
}

static void qhca_ib_odp_free(struct kref *ref)
{
	struct qhca_ib_odp *odp = container_of(ref, struct qhca_ib_odp, ref);

	mmdrop(odp->mm);
	qhca_ib_pager_put(odp->pager);
	kfree(odp);
}

/**
 * qhca_ib_odp_put - let go of a region
 * @odp: the region
 *
 * Context: process.
 */
void qhca_ib_odp_put(struct qhca_ib_odp *odp)
{
	kref_put(&odp->ref, qhca_ib_odp_free);
}

/**
 * qhca_ib_odp_hold - tell the device of no more pages while the region is destroyed
 * @odp: the region
 * @hold: it begins; false: the region was not destroyed
 *
 * The device may give the key to another region as soon as it is free.
 *
 * Context: process; waits for no memory.
 */
void qhca_ib_odp_hold(struct qhca_ib_odp *odp, bool hold)
{
	mutex_lock(&odp->grow);
	mutex_lock(&odp->lock);
	odp->ended = hold;
	mutex_unlock(&odp->lock);
	mutex_unlock(&odp->grow);
}

/**
 * qhca_ib_odp_end - undo qhca_ib_odp_alloc()
 * @odp: the region, which the device does not know any more
 *
 * The caller lets go of the region. Requests for its pages may hold it for ever, but touch the
 * device no more.
 *
 * Context: process; waits for no memory.
 */
void qhca_ib_odp_end(struct qhca_ib_odp *odp)
{
	struct ib_umem_odp *piece;
	unsigned long i;

	qhca_ib_odp_hold(odp, true);
	mutex_lock(&odp->lock);
	xa_for_each(&odp->pieces, i, piece)
		qhca_ib_odp_drop_piece(odp, piece);
	ib_umem_odp_release(odp->umem);
	mutex_unlock(&odp->lock);
	/* Notifiers queued it, and there are none any more. */
	cancel_work_sync(&odp->trim);
	xa_destroy(&odp->pieces);
	qhca_ib_uncharge_all(odp->dev, &odp->charge);
}
