/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: what users can map; included by qhca_ib.h. */
#ifndef QHCA_IB_MMAP_H
#define QHCA_IB_MMAP_H

struct p2pdma_provider;
struct qhca_ib_mmap_entry;

/**
 * struct qhca_ib_mmap_kind - a kind of mapping
 * @memory: a page of the kernel's memory, mapped for reading only
 * @write_combine: a part of a BAR is mapped for combined writes; otherwise uncached
 * @bar: the BAR, if other devices can get at it by a dma-buf; otherwise 0
 * @release: frees what the entry maps, once the owner has removed the entry and no VMA maps it;
 *           qhca_ib_mmap_insert() makes this the entry's task; NULL if it owns nothing
 */
struct qhca_ib_mmap_kind {
	bool memory;
	bool write_combine;
	int bar;
	void (*release)(struct qhca_ib_dev *dev, const struct qhca_ib_mmap_entry *entry);
};

/**
 * struct qhca_ib_mmap_entry - a part of the device that the user of a context can map
 * @rdma: the core's part, which counts the owner and the VMAs
 * @kind: what kind of mapping it is
 * @addr: physical address
 * @charge: the charge for what it maps
 */
struct qhca_ib_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	const struct qhca_ib_mmap_kind *kind;
	phys_addr_t addr;
	struct qhca_ib_charge charge;
};

static inline size_t qhca_ib_mmap_len(const struct qhca_ib_mmap_entry *entry)
{
	return entry->rdma.npages * PAGE_SIZE;
}

/* mmap.c */
struct qhca_ib_mmap_entry *qhca_ib_mmap_insert(struct ib_ucontext *ibctx,
					       const struct qhca_ib_mmap_kind *kind,
					       phys_addr_t addr, size_t len);
void qhca_ib_mmap_remove(struct qhca_ib_mmap_entry *entry);
u64 qhca_ib_mmap_key(const struct qhca_ib_mmap_entry *entry);
int qhca_ib_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma);
void qhca_ib_mmap_free(struct rdma_user_mmap_entry *rdma_entry);
#ifdef QHCA_HAVE_MMAP_GET_PFNS
void qhca_ib_mmap_init(struct qhca_ib_dev *dev);
struct rdma_user_mmap_entry *qhca_ib_pgoff_to_mmap_entry(struct ib_ucontext *ibctx,
							 off_t offset);
int qhca_ib_mmap_get_pfns(struct rdma_user_mmap_entry *rdma_entry, struct phys_vec *phys,
			  struct p2pdma_provider **provider);
#else
static inline void qhca_ib_mmap_init(struct qhca_ib_dev *dev)
{
}
#endif

#endif /* QHCA_IB_MMAP_H */
