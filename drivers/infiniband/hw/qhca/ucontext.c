// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: user contexts, each with one doorbell page, and the page of the PTP clock. */
#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

static void qhca_ib_db_release(struct qhca_ib_dev *dev, const struct qhca_ib_mmap_entry *entry)
{
	qhca_uar_free(dev->core, to_qctx(entry->rdma.ucontext)->uar);
}

static const struct qhca_ib_mmap_kind qhca_ib_mmap_db = {
	.release = qhca_ib_db_release,
};

static const struct qhca_ib_mmap_kind qhca_ib_mmap_clock = {
	.memory = true,
};

static int qhca_ib_insert_clock(struct qhca_ib_dev *dev, struct ib_ucontext *ibctx)
{
	struct page *page = qhca_clock_page(dev->core);
	struct qhca_ib_mmap_entry *entry;

	if (!page)
		return 0;
	entry = qhca_ib_mmap_insert(ibctx, &qhca_ib_mmap_clock, page_to_phys(page), PAGE_SIZE);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	to_qctx(ibctx)->clock = entry;
	return 0;
}

/* Allow no new mappings of either page. */
static void qhca_ib_remove_pages(struct qhca_ib_ucontext *ctx)
{
	if (ctx->clock)
		qhca_ib_mmap_remove(ctx->clock);
	qhca_ib_mmap_remove(ctx->db);
}

static void qhca_ib_ucontext_resp(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx,
				  struct qhca_alloc_ucontext_resp *resp)
{
	resp->db_mmap_key = qhca_ib_mmap_key(ctx->db);
	resp->db_page_size = qhca_ib_mmap_len(ctx->db);
	resp->max_send_sge = dev->limits->max_send_sge;
	resp->max_recv_sge = dev->limits->max_recv_sge;
	resp->max_inline = dev->limits->max_inline;
	resp->null_lkey = dev->limits->null_lkey;
	if (qhca_ib_has(dev, QHCA_CAP_SHADOW))
		resp->max_shadow_slots = QHCA_SHADOW_SLOTS_MAX;
	if (!ctx->clock)
		return;
	resp->clock_mmap_key = qhca_ib_mmap_key(ctx->clock);
	resp->clock_page_size = qhca_ib_mmap_len(ctx->clock);
}

static int qhca_ib_do_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibctx->device);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_ib_ucontext *ctx = to_qctx(ibctx);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	ret = qhca_uar_alloc(dev->core, &ctx->uar);
	if (ret)
		return qhca_ib_refuse(dev, ret, "context: no doorbell page in a page of %lu bytes",
				      PAGE_SIZE);
	ctx->db = qhca_ib_mmap_insert(ibctx, &qhca_ib_mmap_db,
				      qhca_uar_phys(dev->core, ctx->uar), PAGE_SIZE);
	if (IS_ERR(ctx->db)) {
		qhca_uar_free(dev->core, ctx->uar);
		return PTR_ERR(ctx->db);
	}
	ret = qhca_ib_insert_clock(dev, ibctx);
	if (ret)
		goto err;
	qhca_ib_ucontext_resp(dev, ctx, &resp);
	ret = ib_respond_udata(udata, resp);
	if (ret)
		goto err;
	return 0;

err:
	qhca_ib_remove_pages(ctx);
	return ret;
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
	return qhca_ib_count_err(to_qdev(ibctx->device), QHCA_IB_ALLOC_UCONTEXT_ERR,
				 qhca_ib_do_alloc_ucontext(ibctx, udata));
}

/**
 * qhca_ib_query_ucontext - query_ucontext verb: the context for one more process
 * @ibctx: the context
 * @attrs: the request; the response is the same as for alloc_ucontext, because the doorbell page
 *         belongs to the context, whichever process maps it
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

static int qhca_ib_shadow_create(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx,
				 const struct qhca_create_shadow_req *req)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_CREATE_SHADOW),
		.create_shadow.uar = cpu_to_le32(ctx->uar),
		.create_shadow.slots = cpu_to_le32(req->slots),
	};
	int ret;

	if (!req->slots || req->slots > QHCA_SHADOW_SLOTS_MAX)
		return qhca_ib_refuse(dev, -EINVAL, "doorbells: %u slots", req->slots);
	ret = qhca_ib_qmem_get_user(dev, &ctx->shadow, req->addr, req->len,
				    offsetof(struct qhca_shadow, slot[req->slots]));
	if (ret)
		return ret;
	cmd.create_shadow.buf = ctx->shadow.buf;
	ret = qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
	qhca_ib_qmem_free_table(&ctx->shadow);
	if (ret)
		qhca_ib_qmem_put(dev, &ctx->shadow);
	return ret;
}

static void qhca_ib_shadow_destroy(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx)
{
	if (!atomic_read(&ctx->has_shadow))
		return;
	qhca_cmd_destroy(dev->core, QHCA_CMD_DESTROY_SHADOW, ctx->uar);
	qhca_ib_qmem_put(dev, &ctx->shadow);
}

/* Let the device look for the doorbells of a context in the memory of its process. */
static int UVERBS_HANDLER(QHCA_METHOD_CREATE_SHADOW)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibctx = ib_uverbs_get_ucontext(attrs);
	struct qhca_create_shadow_req req;
	struct qhca_ib_ucontext *ctx;
	struct qhca_ib_dev *dev;
	int ret;

	if (IS_ERR(ibctx))
		return PTR_ERR(ibctx);
	dev = to_qdev(ibctx->device);
	ctx = to_qctx(ibctx);
	if (!qhca_ib_has(dev, QHCA_CAP_SHADOW))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "doorbells in memory");
	ret = uverbs_copy_from(&req, attrs, QHCA_ATTR_CREATE_SHADOW_REQ);
	if (ret)
		return ret;
	if (atomic_cmpxchg(&ctx->has_shadow, 0, 1))
		return qhca_ib_refuse(dev, -EBUSY, "doorbells: there are some");
	ret = qhca_ib_shadow_create(dev, ctx, &req);
	if (ret)
		atomic_set(&ctx->has_shadow, 0);
	return ret;
}

/**
 * qhca_ib_dealloc_ucontext - dealloc_ucontext verb
 * @ibctx: the context; its page is not mapped any more, and no queue uses its doorbells
 */
void qhca_ib_dealloc_ucontext(struct ib_ucontext *ibctx)
{
	struct qhca_ib_dev *dev = to_qdev(ibctx->device);
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_ALLOW_GID),
		.allow_gid.uar = cpu_to_le32(to_qctx(ibctx)->uar),
		.allow_gid.port = QHCA_IB_PORT,
	};

	/* The next owner of the page must start without GIDs; if this fails, the device is dead. */
	qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
	qhca_ib_shadow_destroy(dev, to_qctx(ibctx));
	qhca_ib_remove_pages(to_qctx(ibctx));
	qhca_ib_pager_put(to_qctx(ibctx)->pager);
}

/**
 * qhca_ib_disassociate_ucontext - allow the core to remove the device while it is in use
 * @ibctx: the context
 *
 * The core itself replaces the mappings, but only for drivers that have this function.
 */
void qhca_ib_disassociate_ucontext(struct ib_ucontext *ibctx)
{
}

/**
 * qhca_ib_udata_uar - doorbell page for the caller's queues
 * @udata: the user's, or NULL for a kernel consumer
 *
 * Return: number of the page; 0 is the kernel's.
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
								    max_shadow_slots),
						 UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_CREATE_SHADOW,
			    UVERBS_ATTR_PTR_IN(QHCA_ATTR_CREATE_SHADOW_REQ,
					       UVERBS_ATTR_STRUCT(struct qhca_create_shadow_req,
								  slots),
					       UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_ib_device_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(QHCA_METHOD_CREATE_SHADOW));

const struct uapi_definition qhca_ib_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_query_context_def),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_device_methods),
	{},
};
