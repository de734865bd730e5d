// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: mappings of the device in user space. An entry owns what it maps, and the core keeps
 * the entry while a VMA maps it, so nothing is reused before its last mapping is gone.
 */
#include <linux/pci-p2pdma.h>

#include "qhca_ib.h"

static struct qhca_ib_mmap_entry *to_qentry(struct rdma_user_mmap_entry *rdma_entry)
{
	return container_of(rdma_entry, struct qhca_ib_mmap_entry, rdma);
}

/**
 * qhca_ib_mmap_insert - let a user map a part of the device
 * @ibctx: the user's context
 * @kind: what the entry maps
 * @addr: physical address
 * @len: bytes, whole pages
 *
 * Return: the entry, which now owns what it maps; on error, the caller still owns it.
 */
struct qhca_ib_mmap_entry *qhca_ib_mmap_insert(struct ib_ucontext *ibctx,
					       const struct qhca_ib_mmap_kind *kind,
					       phys_addr_t addr, size_t len)
{
	struct qhca_ib_mmap_entry *entry = kzalloc_obj(*entry, GFP_KERNEL_ACCOUNT);
	int ret;

	if (!entry)
		return ERR_PTR(-ENOMEM);
	entry->kind = kind;
	entry->addr = addr;
	ret = rdma_user_mmap_entry_insert(ibctx, &entry->rdma, len);
	if (ret) {
		kfree(entry);
		return ERR_PTR(ret);
	}
	return entry;
}

/**
 * qhca_ib_mmap_remove - allow no new mapping
 * @entry: freed, with what it maps, now or with the last VMA
 */
void qhca_ib_mmap_remove(struct qhca_ib_mmap_entry *entry)
{
	rdma_user_mmap_entry_remove(&entry->rdma);
}

/**
 * qhca_ib_mmap_key - the offset to pass to mmap()
 * @entry: what to map
 */
u64 qhca_ib_mmap_key(const struct qhca_ib_mmap_entry *entry)
{
	return rdma_user_mmap_get_offset(&entry->rdma);
}

/*
 * The VMA has a reference of the page, so it does not need the entry, and the page stays as it is
 * when the device goes.
 */
static int qhca_ib_mmap_memory(const struct qhca_ib_mmap_entry *entry, struct vm_area_struct *vma)
{
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return vm_insert_page(vma, vma->vm_start, pfn_to_page(PFN_DOWN(entry->addr)));
}

static int qhca_ib_mmap_bar(struct qhca_ib_mmap_entry *entry, struct ib_ucontext *ibctx,
			    struct vm_area_struct *vma)
{
	pgprot_t prot = entry->kind->write_combine ? pgprot_writecombine(vma->vm_page_prot) :
						     pgprot_noncached(vma->vm_page_prot);

	return rdma_user_mmap_io(ibctx, vma, PFN_DOWN(entry->addr), qhca_ib_mmap_len(entry), prot,
				 &entry->rdma);
}

static int qhca_ib_do_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct qhca_ib_mmap_entry *entry;
	int ret;

	rdma_entry = rdma_user_mmap_entry_get(ibctx, vma);
	if (!rdma_entry)
		return -EINVAL;
	entry = to_qentry(rdma_entry);
	ret = entry->kind->memory ? qhca_ib_mmap_memory(entry, vma) :
				    qhca_ib_mmap_bar(entry, ibctx, vma);
	rdma_user_mmap_entry_put(rdma_entry);
	return ret;
}

/**
 * qhca_ib_mmap - map an entry, for mmap() on the command file
 * @ibctx: the context
 * @vma: the new VMA
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	return qhca_ib_count_err(to_qdev(ibctx->device), QHCA_IB_MMAP_ERR,
				 qhca_ib_do_mmap(ibctx, vma));
}

/**
 * qhca_ib_mmap_free - release an entry whose last reference is gone
 * @rdma_entry: the entry
 */
void qhca_ib_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct qhca_ib_dev *dev = to_qdev(rdma_entry->ucontext->device);
	struct qhca_ib_mmap_entry *entry = to_qentry(rdma_entry);

	if (entry->kind->release)
		entry->kind->release(dev, entry);
	qhca_ib_uncharge_all(dev, &entry->charge);
	kfree(entry);
}

#ifdef QHCA_HAVE_MMAP_GET_PFNS
/**
 * qhca_ib_mmap_init - prepare to let other devices get at entries
 * @dev: the HCA, not registered yet
 *
 * Not later, when a user wants it: only one call at a time is allowed, and users call as they like.
 */
void qhca_ib_mmap_init(struct qhca_ib_dev *dev)
{
	dev->has_p2pdma = !pcim_p2pdma_init(qhca_pdev(dev->core));
}

/**
 * qhca_ib_pgoff_to_mmap_entry - pgoff_to_mmap_entry verb: what the user wants to export
 * @ibctx: the context
 * @offset: the one for mmap()
 *
 * Return: the entry, with a reference, or NULL.
 */
struct rdma_user_mmap_entry *qhca_ib_pgoff_to_mmap_entry(struct ib_ucontext *ibctx,
							 off_t offset)
{
	return rdma_user_mmap_entry_get_pgoff(ibctx, offset >> PAGE_SHIFT);
}

/**
 * qhca_ib_mmap_get_pfns - mmap_get_pfns verb: where other devices find the memory of an entry
 * @rdma_entry: the entry
 * @phys: filled in
 * @provider: filled in
 *
 * Only device memory can be exported. The core makes a dma-buf of it, and takes the memory back
 * from importers when the owner frees it or the device goes.
 *
 * Return: 0, or -EOPNOTSUPP if it cannot be exported, or not in this kernel.
 */
int qhca_ib_mmap_get_pfns(struct rdma_user_mmap_entry *rdma_entry, struct phys_vec *phys,
			  struct p2pdma_provider **provider)
{
	struct qhca_ib_dev *dev = to_qdev(rdma_entry->ucontext->device);
	const struct qhca_ib_mmap_entry *entry = to_qentry(rdma_entry);

	if (!entry->kind->bar || !dev->has_p2pdma)
		return -EOPNOTSUPP;
	*provider = pcim_p2pdma_provider(qhca_pdev(dev->core), entry->kind->bar);
	if (!*provider)
		return -EOPNOTSUPP;
	phys->paddr = entry->addr;
	phys->len = qhca_ib_mmap_len(entry);
	return 0;
}
#endif
