// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: user contexts: one doorbell page each. */
#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

/**
 * qhca_ib_mmap_insert - let a user map something of the device
 * @ibctx: whose
 * @addr: physical address
 * @len: bytes, whole pages
 * @is_dm: device memory, whose pages the entry takes over: with it they are freed
 *
 * Return: the entry or an error.
 */
struct qhca_ib_mmap_entry *qhca_ib_mmap_insert(struct ib_ucontext *ibctx, phys_addr_t addr,
					       size_t len, bool is_dm)
{
	struct qhca_ib_mmap_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	int ret;

	if (!entry)
		return ERR_PTR(-ENOMEM);
	entry->addr = addr;
	entry->is_dm = is_dm;
	ret = rdma_user_mmap_entry_insert(ibctx, &entry->rdma, len);
	if (ret) {
		kfree(entry);
		return ERR_PTR(ret);
	}
	return entry;
}

static void qhca_ib_ucontext_resp(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx,
				  struct qhca_alloc_ucontext_resp *resp)
{
	resp->db_mmap_key = rdma_user_mmap_get_offset(&ctx->db->rdma);
	resp->db_page_size = QHCA_DB_PAGE_SIZE;
	resp->max_send_sge = dev->limits->max_send_sge;
	resp->max_recv_sge = dev->limits->max_recv_sge;
	resp->max_inline = dev->limits->max_inline;
	resp->null_lkey = dev->limits->null_lkey;
}

/**
 * qhca_ib_alloc_ucontext - alloc_ucontext verb
 * @ibctx: the context
 * @udata: the user's
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibctx->device);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_ib_ucontext *ctx = to_qctx(ibctx);
	int ret;

	/* A larger page would hold the doorbells of others as well. */
	if (PAGE_SIZE != QHCA_DB_PAGE_SIZE)
		return -EOPNOTSUPP;
	ret = qhca_ib_udata_check(udata, 0, sizeof(resp));
	if (ret)
		return ret;

	ret = qhca_uar_alloc(dev->core, &ctx->uar);
	if (ret)
		return ret;
	ctx->db = qhca_ib_mmap_insert(ibctx, qhca_uar_phys(dev->core, ctx->uar), PAGE_SIZE,
				      false);
	if (IS_ERR(ctx->db)) {
		ret = PTR_ERR(ctx->db);
		goto err_uar;
	}
	qhca_ib_ucontext_resp(dev, ctx, &resp);
	ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (ret)
		goto err_entry;
	return 0;

err_entry:
	rdma_user_mmap_entry_remove(&ctx->db->rdma);
err_uar:
	qhca_uar_free(dev->core, ctx->uar);
	return ret;
}

/**
 * qhca_ib_query_ucontext - query_ucontext verb: the context for one more process
 * @ibctx: the context
 * @attrs: the request; its response is that of alloc_ucontext, for the doorbell
 *         page is the context's, whoever maps it
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_ucontext(struct ib_ucontext *ibctx, struct uverbs_attr_bundle *attrs)
{
	struct qhca_alloc_ucontext_resp resp = {};

	qhca_ib_ucontext_resp(to_qdev(ibctx->device), to_qctx(ibctx), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, QHCA_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

/**
 * qhca_ib_dealloc_ucontext - dealloc_ucontext verb
 * @ibctx: the context; nothing is mapped any more
 */
void qhca_ib_dealloc_ucontext(struct ib_ucontext *ibctx)
{
	struct qhca_ib_ucontext *ctx = to_qctx(ibctx);

	rdma_user_mmap_entry_remove(&ctx->db->rdma);
	qhca_uar_free(to_qdev(ibctx->device)->core, ctx->uar);
}

/**
 * qhca_ib_mmap - mmap() of the command file: the doorbell page, device memory
 * @ibctx: the context
 * @vma: where to
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct qhca_ib_mmap_entry *entry;
	pgprot_t prot;
	int ret;

	rdma_entry = rdma_user_mmap_entry_get(ibctx, vma);
	if (!rdma_entry)
		return -EINVAL;
	entry = container_of(rdma_entry, struct qhca_ib_mmap_entry, rdma);
	prot = entry->is_dm ? pgprot_writecombine(vma->vm_page_prot) :
			      pgprot_noncached(vma->vm_page_prot);
	ret = rdma_user_mmap_io(ibctx, vma, PFN_DOWN(entry->addr),
				rdma_entry->npages * PAGE_SIZE, prot, rdma_entry);
	rdma_user_mmap_entry_put(rdma_entry);
	return ret;
}

/**
 * qhca_ib_mmap_free - the last mapping of an entry has gone
 * @rdma_entry: the entry
 */
void qhca_ib_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct qhca_ib_mmap_entry *entry =
		container_of(rdma_entry, struct qhca_ib_mmap_entry, rdma);

	if (entry->is_dm)
		qhca_ib_dm_free_pages(to_qdev(rdma_entry->ucontext->device), entry->addr,
				      rdma_entry->npages * PAGE_SIZE);
	kfree(entry);
}

/**
 * qhca_ib_disassociate_ucontext - the device goes away under its users
 * @ibctx: the context
 *
 * The core replaces the mappings; that this exists says that it may.
 */
void qhca_ib_disassociate_ucontext(struct ib_ucontext *ibctx)
{
}

/**
 * qhca_ib_udata_uar - doorbell page of the caller
 * @udata: the user's, or NULL for a kernel consumer
 *
 * Return: the page; 0 is the kernel's.
 */
u32 qhca_ib_udata_uar(struct ib_udata *udata)
{
	struct qhca_ib_ucontext *ctx;

	if (!udata)
		return 0;
	ctx = rdma_udata_to_drv_context(udata, struct qhca_ib_ucontext, ibucontext);
	return ctx->uar;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_ib_query_context_def, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct qhca_alloc_ucontext_resp,
								    reserved),
						 UA_MANDATORY));

const struct uapi_definition qhca_ib_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_query_context_def),
	{},
};
