// SPDX-License-Identifier: GPL-2.0
/* The kernel's verbs without libibverbs, by write() on the command file. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <qhca/queues.h>

#include "uverbs.h"

#define MAX_CMD		512

int uv_command(struct uv *uv, uint32_t command, void *req, size_t req_len, const void *drv,
	       size_t drv_len, void *resp, size_t resp_len)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command,
		.in_words = (sizeof(hdr) + req_len + drv_len) / 4,
		.out_words = (resp_len + uv->resp_more) / 4,
	};
	uint64_t resp_addr = (uintptr_t)(uv->resp ? uv->resp : resp);
	uint8_t buf[MAX_CMD];
	size_t len = sizeof(hdr) + req_len + drv_len;

	REQUIRE(len <= sizeof(buf) && len % 4 == 0);
	if (resp)
		memcpy(req, &resp_addr, sizeof(resp_addr));
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), req, req_len);
	if (drv_len)
		memcpy(buf + sizeof(hdr) + req_len, drv, drv_len);
	return write(uv->fd, buf, len) == (ssize_t)len ? 0 : errno;
}

struct uv uv_open_file(struct dev *d)
{
	struct uv uv = { 0 };
	char path[256];

	snprintf(path, sizeof(path), "/dev/infiniband/%s",
		 d->ctx->device->dev_name);
	uv.fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(uv.fd >= 0);
	return uv;
}

int uv_get_context(struct uv *uv)
{
	struct {
		struct ib_uverbs_get_context_resp core;
		struct qhca_alloc_ucontext_resp drv;
	} ctx = { 0 };
	struct ib_uverbs_get_context get = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_GET_CONTEXT, &get, sizeof(get), NULL, 0, &ctx,
			 sizeof(ctx));
	uv->ctx = ctx.drv;
	return err;
}

struct uv uv_open(struct dev *d)
{
	struct uv uv = uv_open_file(d);

	REQUIRE_OK(uv_get_context(&uv));
	uv.db = mmap(NULL, uv.ctx.db_page_size, PROT_WRITE, MAP_SHARED, uv.fd,
		     uv.ctx.db_mmap_key);
	REQUIRE(uv.db != MAP_FAILED);
	REQUIRE_OK(uv_alloc_pd(&uv, &uv.pd));
	return uv;
}

int uv_alloc_pd(struct uv *uv, uint32_t *handle)
{
	struct ib_uverbs_alloc_pd req = { 0 };
	struct {
		struct ib_uverbs_alloc_pd_resp core;
		struct qhca_alloc_pd_resp drv;
	} resp = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), NULL, 0, &resp,
			 sizeof(resp));
	*handle = resp.core.pd_handle;
	return err;
}

int uv_create_cq(struct uv *uv, int cqe, const void *drv, size_t drv_len,
		 struct uv_cq *cq)
{
	struct ib_uverbs_create_cq req = { .cqe = cqe, .comp_channel = -1 };
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct qhca_create_cq_resp drv;
	} resp = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), drv,
			 drv_len, &resp, sizeof(resp));
	cq->handle = resp.core.cq_handle;
	cq->cqe = resp.core.cqe;
	cq->cqn = resp.drv.cqn;
	return err;
}

int uv_resize_cq(struct uv *uv, struct uv_cq *cq, int cqe, const void *drv,
		 size_t drv_len)
{
	struct ib_uverbs_resize_cq req = { .cq_handle = cq->handle, .cqe = cqe };
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_RESIZE_CQ, &req, sizeof(req), drv,
			 drv_len, &resp, sizeof(resp));
	if (!err)
		cq->cqe = resp.cqe;
	return err;
}

int uv_destroy_cq(struct uv *uv, const struct uv_cq *cq)
{
	struct ib_uverbs_destroy_cq req = { .cq_handle = cq->handle };
	struct ib_uverbs_destroy_cq_resp resp;

	return uv_command(uv, IB_USER_VERBS_CMD_DESTROY_CQ, &req, sizeof(req),
			  NULL, 0, &resp, sizeof(resp));
}

int uv_create_srq(struct uv *uv, uint32_t max_wr, uint32_t max_sge,
		  const void *drv, size_t drv_len, struct uv_srq *srq)
{
	struct ib_uverbs_create_srq req = {
		.pd_handle = uv->pd, .max_wr = max_wr, .max_sge = max_sge,
	};
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct qhca_create_srq_resp drv;
	} resp = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_CREATE_SRQ, &req, sizeof(req), drv,
			 drv_len, &resp, sizeof(resp));
	srq->handle = resp.core.srq_handle;
	srq->srqn = resp.drv.srqn;
	return err;
}

int uv_resize_srq(struct uv *uv, const struct uv_srq *srq, uint32_t max_wr,
		  const void *drv, size_t drv_len)
{
	struct ib_uverbs_modify_srq req = {
		.srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR,
		.max_wr = max_wr,
	};

	return uv_command(uv, IB_USER_VERBS_CMD_MODIFY_SRQ, &req, sizeof(req), drv,
			  drv_len, NULL, 0);
}

int uv_destroy_srq(struct uv *uv, const struct uv_srq *srq)
{
	struct ib_uverbs_destroy_srq req = { .srq_handle = srq->handle };
	struct ib_uverbs_destroy_srq_resp resp;

	return uv_command(uv, IB_USER_VERBS_CMD_DESTROY_SRQ, &req, sizeof(req),
			  NULL, 0, &resp, sizeof(resp));
}

/* An extended command says apart what is the core's and what the driver's. */
static int command_ex(struct uv *uv, uint32_t command, const void *req, size_t req_len,
		      const void *drv, size_t drv_len, void *resp, size_t resp_len,
		      size_t drv_resp_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t body[MAX_CMD];
	} in = {
		.hdr = {
			.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = req_len / 8, .out_words = resp_len / 8,
		},
		.ex = {
			.response = (uintptr_t)resp, .provider_in_words = drv_len / 8,
			.provider_out_words = drv_resp_len / 8,
		},
	};
	size_t len = offsetof(typeof(in), body) + req_len + drv_len;

	REQUIRE(len <= sizeof(in) && len % 8 == 0);
	memcpy(in.body, req, req_len);
	memcpy(in.body + req_len, drv, drv_len);
	return write(uv->fd, &in, len) == (ssize_t)len ? 0 : errno;
}

int uv_create_wq(struct uv *uv, uint32_t cq, uint32_t max_wr, uint32_t max_sge,
		 const void *drv, size_t drv_len, struct uv_wq *wq)
{
	struct ib_uverbs_ex_create_wq req = {
		.wq_type = IBV_WQT_RQ, .pd_handle = uv->pd, .cq_handle = cq,
		.max_wr = max_wr, .max_sge = max_sge,
	};
	struct {
		struct ib_uverbs_ex_create_wq_resp core;
		struct qhca_create_wq_resp drv;
	} *resp, own = { 0 };
	int err;

	resp = uv->resp ? (void *)((uint8_t *)uv->resp - sizeof(own.core)) : &own;
	err = command_ex(uv, IB_USER_VERBS_EX_CMD_CREATE_WQ, &req, sizeof(req), drv, drv_len,
			 resp, sizeof(own.core), sizeof(own.drv));
	wq->handle = resp->core.wq_handle;
	wq->wqn = resp->core.wqn;
	return err;
}

int uv_destroy_wq(struct uv *uv, const struct uv_wq *wq)
{
	struct ib_uverbs_ex_destroy_wq req = { .wq_handle = wq->handle };
	struct ib_uverbs_ex_destroy_wq_resp resp;

	return command_ex(uv, IB_USER_VERBS_EX_CMD_DESTROY_WQ, &req, sizeof(req), NULL, 0, &resp,
			  sizeof(resp), 0);
}

int uv_create_qp(struct uv *uv, const struct uv_cq *cq,
		 const struct ibv_qp_cap *cap, const void *drv, size_t drv_len,
		 struct uv_qp *qp)
{
	struct ib_uverbs_create_qp req = {
		.pd_handle = uv->pd,
		.send_cq_handle = cq->handle,
		.recv_cq_handle = cq->handle,
		.max_send_wr = cap->max_send_wr,
		.max_recv_wr = cap->max_recv_wr,
		.max_send_sge = cap->max_send_sge,
		.max_recv_sge = cap->max_recv_sge,
		.max_inline_data = cap->max_inline_data,
		.qp_type = IBV_QPT_RC,
	};
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct qhca_create_qp_resp drv;
	} resp = { 0 };
	int err;

	err = uv_command(uv, IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), drv,
			 drv_len, &resp, sizeof(resp));
	qp->handle = resp.core.qp_handle;
	qp->qpn = resp.drv.qpn;
	return err;
}

int uv_qp_to_init(struct uv *uv, const struct uv_qp *qp)
{
	struct ib_uverbs_modify_qp req = {
		.qp_handle = qp->handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
	};

	return uv_command(uv, IB_USER_VERBS_CMD_MODIFY_QP, &req, sizeof(req),
			  NULL, 0, NULL, 0);
}

int uv_destroy_qp(struct uv *uv, const struct uv_qp *qp)
{
	struct ib_uverbs_destroy_qp req = { .qp_handle = qp->handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return uv_command(uv, IB_USER_VERBS_CMD_DESTROY_QP, &req, sizeof(req),
			  NULL, 0, &resp, sizeof(resp));
}

void *uv_mem(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED);
	return p;
}

int uv_create_shadow(struct uv *uv, const struct qhca_create_shadow_req *req)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = QHCA_METHOD_CREATE_SHADOW,
			.num_attrs = 1,
			.driver_id = QHCA_RDMA_DRIVER_ID,
		},
		.attr = {
			.attr_id = QHCA_ATTR_CREATE_SHADOW_REQ,
			.len = sizeof(*req),
			.flags = UVERBS_ATTR_F_MANDATORY,
			.data = (uintptr_t)req,
		},
	};

	return ioctl(uv->fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

int uv_create_cq_with(struct uv *uv, uint32_t cqe, const struct qhca_create_cq_req *drv,
		      uint16_t attr, uint64_t value)
{
	struct qhca_create_cq_resp resp;
	uint32_t got;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[8];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_CQ,
			.method_id = UVERBS_METHOD_CQ_CREATE,
			.num_attrs = ARRAY_SIZE(cmd.attr),
			.driver_id = QHCA_RDMA_DRIVER_ID,
		},
		.attr = {
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_HANDLE },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_CQE, .len = 4,
			  .data = uv_inline_u32(cqe) },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_USER_HANDLE, .len = 8 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, .len = 4 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_RESP_CQE, .len = 4,
			  .data = (uintptr_t)&got },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = sizeof(*drv),
			  .data = (uintptr_t)drv },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(resp),
			  .data = (uintptr_t)&resp },
			{ .attr_id = attr, .len = 8, .data = value },
		},
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmd.attr); i++)
		cmd.attr[i].flags = UVERBS_ATTR_F_MANDATORY;
	if (!attr) {
		cmd.hdr.num_attrs--;
		cmd.hdr.length -= sizeof(cmd.attr[0]);
	}
	return ioctl(uv->fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

struct qhca_create_cq_req uv_cq_req(void *mem, uint32_t log_size)
{
	return (struct qhca_create_cq_req){
		.buf_addr = (uintptr_t)mem,
		.buf_len = (sizeof(struct qhca_cqe) << log_size) +
			   sizeof(struct qhca_cq_dbrec),
		.log_size = log_size,
	};
}

/* Rings for up to 4 send SGEs and 1 receive SGE. */
struct qhca_create_qp_req uv_qp_req(void *sq, void *rq, uint32_t log_size)
{
	return (struct qhca_create_qp_req){
		.sq_addr = (uintptr_t)sq,
		.rq_addr = (uintptr_t)rq,
		.sq_len = QHCA_SQ_STRIDE_MIN << log_size,
		.rq_len = (QHCA_RQ_STRIDE_MIN << log_size) +
			  sizeof(struct qhca_rq_dbrec),
		.sq_log_size = log_size,
		.sq_log_stride = __builtin_ctz(QHCA_SQ_STRIDE_MIN),
		.rq_log_size = log_size,
		.rq_log_stride = __builtin_ctz(QHCA_RQ_STRIDE_MIN),
	};
}

void uv_apply(void *req, const struct uv_change *c)
{
	const uint64_t value = htole64(c->value);
	uint8_t *to = (uint8_t *)req + c->at.off;
	size_t i;

	for (i = 0; i < c->at.size; i++)
		to[htole16(1) == 1 ? i : c->at.size - 1 - i] = ((const uint8_t *)&value)[i];
}

uint64_t uv_inline_u32(uint32_t value)
{
	uint64_t data = 0;

	memcpy(&data, &value, sizeof(value));
	return data;
}

void uv_store(void *to, const void *bytes, size_t len)
{
#ifdef __NR_s390_pci_mmio_write
	REQUIRE_OK(syscall(__NR_s390_pci_mmio_write, to, bytes, len));
#else
	switch (len) {
	case 8:
		atomic_store_explicit((atomic_ullong *)to, *(const uint64_t *)bytes,
				      memory_order_relaxed);
		break;
	case 4:
		atomic_store_explicit((atomic_uint *)to, *(const uint32_t *)bytes,
				      memory_order_relaxed);
		break;
	case 2:
		atomic_store_explicit((atomic_ushort *)to, *(const uint16_t *)bytes,
				      memory_order_relaxed);
		break;
	default:
		atomic_store_explicit((atomic_uchar *)to, *(const uint8_t *)bytes,
				      memory_order_relaxed);
	}
#endif
}

void uv_ring(void *page, uint32_t reg, uint64_t value)
{
	value = htole64(value);
	uv_store((uint8_t *)page + reg, &value, sizeof(value));
}

void uv_check_refused(int err, int want)
{
	if (!err)
		FAIL("accepted");
	else if (want && err != want)
		FAIL("%s, not %s", strerror(err), strerror(want));
}
