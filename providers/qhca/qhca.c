// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device that libibverbs finds, and the contexts that processes open on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <infiniband/cmd_write.h>

#include "doorbell.h"
#include "flow.h"
#include "qhca.h"
#include "qhca-abi.h"

static int qhca_query_device_ex(struct ibv_context *ibctx,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr,
				size_t attr_size)
{
	struct uqhca_query_device_ex_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int err;

	err = ibv_cmd_query_device_any(ibctx, input, attr, attr_size,
				       &resp.ibv_resp, &resp_size);
	if (err)
		return qhca_ret(err);

	if (attr_size >= offsetof(struct ibv_device_attr_ex, raw_packet_caps)) {
		attr->packet_pacing_caps.qp_rate_limit_min =
			resp.max_rate_limit ? 1 : 0;
		attr->packet_pacing_caps.qp_rate_limit_max =
			resp.max_rate_limit;
		attr->packet_pacing_caps.supported_qpts = resp.rate_limit_qpts;
		qhca_rss_caps(&attr->rss_caps);
	}
	fw = resp.ibv_resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (uint32_t)(fw >> 32), (uint32_t)(fw >> 16) & 0xffff,
		 (uint32_t)fw & 0xffff);
	return 0;
}

static void unmap_pages(struct qhca_context *ctx)
{
	qhca_clock_unmap(ctx);
	munmap(ctx->db, ctx->db_size);
}

static void qhca_free_context(struct ibv_context *ibctx)
{
	struct qhca_context *ctx = to_qctx(ibctx);

	qhca_shadow_free(ctx);
	qhca_null_mrs_free(ctx);
	unmap_pages(ctx);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

static const struct verbs_context_ops qhca_ctx_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = qhca_alloc_dm,
	QHCA_OP_59(.alloc_dmah = qhca_alloc_dmah)
	.alloc_mw = qhca_alloc_mw,
	.alloc_null_mr = qhca_alloc_null_mr,
	.alloc_parent_domain = qhca_alloc_parent_domain,
	.alloc_pd = qhca_alloc_pd,
	.alloc_td = qhca_alloc_td,
	.attach_counters_point_flow = qhca_attach_counters_point_flow,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = qhca_bind_mw,
	.close_xrcd = qhca_close_xrcd,
	.create_ah = qhca_create_ah,
	.create_counters = qhca_create_counters,
	.create_cq = qhca_create_cq,
	.create_cq_ex = qhca_create_cq_ex,
	.create_flow = qhca_create_flow,
	.create_qp = qhca_create_qp,
	.create_qp_ex = qhca_create_qp_ex,
	.create_rwq_ind_table = qhca_create_rwq_ind_table,
	.create_srq = qhca_create_srq,
	.create_srq_ex = qhca_create_srq_ex,
	.create_wq = qhca_create_wq,
	QHCA_OP_59(.dealloc_dmah = qhca_dealloc_dmah)
	.dealloc_mw = qhca_dealloc_mw,
	.dealloc_pd = qhca_dealloc_pd,
	.dealloc_td = qhca_dealloc_td,
	.dereg_mr = qhca_dereg_mr,
	.destroy_ah = qhca_destroy_ah,
	.destroy_counters = qhca_destroy_counters,
	.destroy_cq = qhca_destroy_cq,
	.destroy_flow = qhca_destroy_flow,
	.destroy_qp = qhca_destroy_qp,
	.destroy_rwq_ind_table = qhca_destroy_rwq_ind_table,
	.destroy_srq = qhca_destroy_srq,
	.destroy_wq = qhca_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	QHCA_OP_62(.dm_export_dmabuf_fd = qhca_dm_export_dmabuf_fd)
	.free_context = qhca_free_context,
	.free_dm = qhca_free_dm,
	.get_srq_num = qhca_get_srq_num,
	.import_dm = qhca_import_dm,
	.import_mr = qhca_import_mr,
	.import_pd = qhca_import_pd,
	.modify_cq = qhca_modify_cq,
	.modify_qp = qhca_modify_qp,
	.modify_qp_rate_limit = qhca_modify_qp_rate_limit,
	.modify_srq = qhca_modify_srq,
	.modify_wq = qhca_modify_wq,
	.open_qp = qhca_open_qp,
	.open_xrcd = qhca_open_xrcd,
	.poll_cq = qhca_poll_cq,
	.post_recv = qhca_post_recv,
	.post_send = qhca_post_send,
	.post_srq_recv = qhca_post_srq_recv,
	.query_device_ex = qhca_query_device_ex,
	.query_ece = qhca_query_ece,
	.query_port = qhca_query_port,
	QHCA_OP_62(.query_port_speed = qhca_query_port_speed)
	.query_qp = qhca_query_qp,
	.query_rt_values = qhca_query_rt_values,
	.query_srq = qhca_query_srq,
	.read_counters = qhca_read_counters,
	.reg_dm_mr = qhca_reg_dm_mr,
	.reg_dmabuf_mr = qhca_reg_dmabuf_mr,
	.reg_mr = qhca_reg_mr,
	QHCA_OP_59(.reg_mr_ex = qhca_reg_mr_ex)
	.req_notify_cq = qhca_req_notify_cq,
	.rereg_mr = qhca_rereg_mr,
	.resize_cq = qhca_resize_cq,
	.set_ece = qhca_set_ece,
	.unimport_dm = qhca_unimport_dm,
	.unimport_mr = qhca_unimport_mr,
	.unimport_pd = qhca_unimport_pd,
};

/* Send opcodes that only devices with a capability offer. */
static uint32_t offered_send_ops(const struct ibv_device_attr_ex *ex)
{
	const uint32_t atomics = 1u << IBV_WR_ATOMIC_CMP_AND_SWP |
				 1u << IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint32_t keys = 1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_SEND_WITH_INV;
	const unsigned int windows = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	const struct ibv_device_attr *attr = &ex->orig_attr;
	uint32_t ops = ~0u;

	if (attr->atomic_cap == IBV_ATOMIC_NONE)
		ops &= ~atomics;
	if (!(attr->device_cap_flags & windows))
		ops &= ~(1u << IBV_WR_BIND_MW);
	if (!(attr->device_cap_flags & (windows | IBV_DEVICE_MEM_MGT_EXTENSIONS)))
		ops &= ~keys;
	if (!(ex->device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL))
		ops &= ~(1u << IBV_WR_FLUSH);
	if (!(ex->device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE))
		ops &= ~(1u << IBV_WR_ATOMIC_WRITE);
	return ops;
}

/* Return the ECE options of an RC QP: requests that its peer cannot know of. */
static uint32_t offered_ece(const struct ibv_device_attr_ex *ex)
{
	uint32_t options = 0;

	if (ex->device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL)
		options |= QHCA_ECE_FLUSH;
	if (ex->device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE)
		options |= QHCA_ECE_ATOMIC_WRITE;
	return options;
}

/* Read the limits that the queue code checks before it allocates memory. */
static int read_limits(struct qhca_context *ctx)
{
	struct ibv_device_attr_ex attr = {};
	int err;

	err = qhca_query_device_ex(&ctx->ibv_ctx.context, NULL, &attr,
				   sizeof(attr));
	if (err)
		return err;

	ctx->max_cqe = attr.orig_attr.max_cqe;
	ctx->wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN;
	if (attr.raw_packet_caps)
		ctx->wc_flags |= IBV_WC_EX_WITH_FLOW_TAG;
	if (attr.completion_timestamp_mask)
		ctx->wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	ctx->max_qp_wr = attr.orig_attr.max_qp_wr;
	ctx->max_srq_wr = attr.orig_attr.max_srq_wr;
	ctx->max_srq_sge = attr.orig_attr.max_srq_sge;
	ctx->send_ops = offered_send_ops(&attr);
	ctx->ece = offered_ece(&attr);
	return 0;
}

static int map_doorbells(struct qhca_context *ctx, int cmd_fd,
			 const struct qhca_alloc_ucontext_resp *resp)
{
	void *db;

	if (resp->db_page_size < QHCA_DB_PAGE_SIZE)
		return EPROTO;
	db = mmap(NULL, resp->db_page_size, PROT_WRITE, MAP_SHARED, cmd_fd,
		  resp->db_mmap_key);
	if (db == MAP_FAILED)
		return errno;
	ctx->db = db;
	ctx->db_size = resp->db_page_size;
	return 0;
}

static bool env_true(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

/* Initialise all members of a context that need no further call of the kernel. */
static int context_init(struct qhca_context *ctx, int cmd_fd,
			const struct qhca_alloc_ucontext_resp *resp)
{
	int err;

	err = map_doorbells(ctx, cmd_fd, resp);
	if (err)
		return err;
	qhca_clock_map(ctx, cmd_fd, resp);
	err = read_limits(ctx);
	if (err) {
		unmap_pages(ctx);
		return err;
	}
	ctx->max_send_sge = resp->max_send_sge;
	ctx->max_recv_sge = resp->max_recv_sge;
	ctx->max_inline = resp->max_inline;
	ctx->null_lkey = resp->null_lkey;
	qhca_null_mrs_init(ctx);
	ctx->single_threaded = env_true("QHCA_SINGLE_THREADED");
	verbs_set_ops(&ctx->ibv_ctx, &qhca_ctx_ops);
	qhca_shadow_init(ctx, resp->max_shadow_slots);
	return 0;
}

static struct verbs_context *context_failed(struct qhca_context *ctx, int err)
{
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_context *qhca_alloc_context(struct ibv_device *device,
						int cmd_fd, void *private_data)
{
	struct uqhca_alloc_ucontext_resp resp = {};
	struct ibv_get_context cmd = {};
	struct qhca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, ibv_ctx,
					   QHCA_RDMA_DRIVER_ID);
	if (!ctx)
		return NULL;

	err = ibv_cmd_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), NULL,
				  &resp.ibv_resp, sizeof(resp));
	if (!err)
		err = context_init(ctx, cmd_fd, &resp.drv_payload);
	return err ? context_failed(ctx, err) : &ctx->ibv_ctx;
}

/* Open an existing context of another process, from its command fd. */
static struct verbs_context *qhca_import_context(struct ibv_device *device,
						 int cmd_fd)
{
	DECLARE_COMMAND_BUFFER_LINK(query, UVERBS_OBJECT_DEVICE,
				    UVERBS_METHOD_QUERY_CONTEXT, 1, NULL);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, ibv_ctx,
					   QHCA_RDMA_DRIVER_ID);
	if (!ctx)
		return NULL;

	fill_attr_out_ptr(query, QHCA_ATTR_QUERY_CONTEXT_RESP, &resp);
	err = ibv_cmd_query_context(&ctx->ibv_ctx.context, query);
	if (!err)
		err = context_init(ctx, cmd_fd, &resp);
	return err ? context_failed(ctx, err) : &ctx->ibv_ctx;
}

/* Allocate with the parent domain's allocator, unless it asks for the default. */
static int mem_get(struct qhca_mem *mem, struct qhca_pd *pd, size_t page)
{
	if (pd && pd->alloc) {
		mem->addr = pd->alloc(&pd->ibv_pd, pd->pd_context, mem->len,
				      page, mem->type);
		if (!mem->addr)
			return ENOMEM;
		if (mem->addr != IBV_ALLOCATOR_USE_DEFAULT) {
			memset(mem->addr, 0, mem->len);
			mem->pd = pd;
			return 0;
		}
	}
	mem->addr = mmap(NULL, mem->len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mem->addr == MAP_FAILED ? errno : 0;
}

static void mem_put(struct qhca_mem *mem)
{
	struct qhca_pd *pd = mem->pd;

	if (pd)
		pd->free(&pd->ibv_pd, pd->pd_context, mem->addr, mem->type);
	else
		munmap(mem->addr, mem->len);
	mem->addr = NULL;
}

int qhca_mem_alloc(struct qhca_mem *mem, size_t len, struct qhca_pd *pd,
		   enum qhca_mem_type type)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int err;

	*mem = (struct qhca_mem){ .len = align(len, page), .type = type };
	err = mem_get(mem, pd, page);
	if (err) {
		mem->addr = NULL;
		return err;
	}
	if (ibv_dontfork_range(mem->addr, mem->len)) {
		mem_put(mem);
		return ENOMEM;
	}
	return 0;
}

void qhca_mem_free(struct qhca_mem *mem)
{
	if (!mem->addr)
		return;
	ibv_dofork_range(mem->addr, mem->len);
	mem_put(mem);
}

bool qhca_cpu_is_tcg;

/* TCG identifies itself in the first CPUID leaf for hypervisors. */
static bool cpu_is_tcg(void)
{
#ifdef __x86_64__
	const unsigned int hypervisor = 1u << 31, leaves = 0x40000000;
	uint32_t r[4];

	__cpuid(1, r[0], r[1], r[2], r[3]);
	if (!(r[2] & hypervisor))
		return false;
	__cpuid(leaves, r[0], r[1], r[2], r[3]);
	return !memcmp(&r[1], "TCGTCGTCGTCG", 12);
#else
	return false;
#endif
}

static struct verbs_device *qhca_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	qhca_cpu_is_tcg = cpu_is_tcg();
	return calloc(1, sizeof(struct verbs_device));
}

static void qhca_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

/* The kernel tells the number by netlink, the PCI ID is in sysfs, which containers may lack. */
static const struct verbs_match_ent qhca_match_table[] = {
	VERBS_DRIVER_ID(QHCA_RDMA_DRIVER_ID),
	VERBS_PCI_MATCH(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops qhca_dev_ops = {
	.name = "qhca",
	.match_min_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_max_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_table = qhca_match_table,
	.alloc_device = qhca_alloc_device,
	.uninit_device = qhca_uninit_device,
	.alloc_context = qhca_alloc_context,
	.import_context = qhca_import_context,
};
PROVIDER_DRIVER(qhca, qhca_dev_ops);
