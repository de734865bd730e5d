/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's verbs without libibverbs: a second context that passes arbitrary requests, for tests
 * of the user ABI and of doorbell pages.
 */
#ifndef SELFTESTS_UVERBS_H
#define SELFTESTS_UVERBS_H

#include <rdma/ib_user_verbs.h>
#include <rdma/qhca-abi.h>

#include "rdma.h"

/* struct uv - a context with a PD */
struct uv {
	int fd;
	struct qhca_alloc_ucontext_resp ctx;
	void *db;		/* mapped doorbell page */
	uint32_t pd;
	void *resp;		/* buffer for responses; NULL: the caller's */
	int resp_more;		/* bytes to add to the length of responses, may be negative */
};

/*
 * One write to what is mapped of the device: of @len bytes, or of a doorbell. Programs on s390x
 * cannot store there and have a system call for it.
 */
void uv_store(void *to, const void *bytes, size_t len);
void uv_ring(void *page, uint32_t reg, uint64_t value);

struct uv uv_open(struct dev *d);
/* uv_open() in two steps, without a PD and a doorbell page. */
struct uv uv_open_file(struct dev *d);
int uv_get_context(struct uv *uv);

/*
 * Any command of write(), whose request begins with room for the address of its response. @drv is
 * the driver's part.
 */
int uv_command(struct uv *uv, uint32_t command, void *req, size_t req_len, const void *drv,
	       size_t drv_len, void *resp, size_t resp_len);
/* These take the driver's part of the request with any length. They return 0 or an errno value. */
int uv_alloc_pd(struct uv *uv, uint32_t *handle);

struct uv_cq {
	uint32_t handle, cqe, cqn;
};

int uv_create_cq(struct uv *uv, int cqe, const void *drv, size_t drv_len,
		 struct uv_cq *cq);
/* By ioctl(), with one more attribute of the core, of 8 bytes; 0: none. */
int uv_create_cq_with(struct uv *uv, uint32_t cqe, const struct qhca_create_cq_req *drv,
		      uint16_t attr, uint64_t value);
int uv_resize_cq(struct uv *uv, struct uv_cq *cq, int cqe, const void *drv,
		 size_t drv_len);
int uv_destroy_cq(struct uv *uv, const struct uv_cq *cq);

struct uv_qp {
	uint32_t handle, qpn;
};

int uv_create_qp(struct uv *uv, const struct uv_cq *cq,
		 const struct ibv_qp_cap *cap, const void *drv, size_t drv_len,
		 struct uv_qp *qp);
int uv_qp_to_init(struct uv *uv, const struct uv_qp *qp);
int uv_destroy_qp(struct uv *uv, const struct uv_qp *qp);

struct uv_srq {
	uint32_t handle, srqn;
};

int uv_create_srq(struct uv *uv, uint32_t max_wr, uint32_t max_sge,
		  const void *drv, size_t drv_len, struct uv_srq *srq);
/* The ring of @drv has room for @max_wr. */
int uv_resize_srq(struct uv *uv, const struct uv_srq *srq, uint32_t max_wr,
		  const void *drv, size_t drv_len);
int uv_destroy_srq(struct uv *uv, const struct uv_srq *srq);

struct uv_wq {
	uint32_t handle, wqn;
};

/* uv->resp is for the driver's part, which follows the core's. */
int uv_create_wq(struct uv *uv, uint32_t cq, uint32_t max_wr, uint32_t max_sge,
		 const void *drv, size_t drv_len, struct uv_wq *wq);
int uv_destroy_wq(struct uv *uv, const struct uv_wq *wq);

/* QHCA_METHOD_CREATE_SHADOW. */
int uv_create_shadow(struct uv *uv, const struct qhca_create_shadow_req *req);

/* struct uv_change - one change in a good request, and the error; 0: any error */
struct uv_change {
	const char *name;
	struct {
		size_t off, size;
	} at;
	uint64_t value;
	int err;
};

#define UV_FIELD(type, member) \
	{ offsetof(struct type, member), sizeof(((struct type *)0)->member) }

/* Size of a receive ring in the tests of its requests. */
#define UV_RING_WR	32
#define UV_RING_SGE	3		/* fill a stride of 64 */

/* Rows of struct uv_change for @type, a request for a ring of these with its doorbell record. */
#define UV_RING_CHANGES(type)							\
	{ "unaligned address", UV_FIELD(type, buf_addr), 0x10000040, EINVAL }, \
	{ "unmapped address", UV_FIELD(type, buf_addr), 0x10000000, EFAULT }, \
	{ "kernel address", UV_FIELD(type, buf_addr), 0xffff888000000000, 0 }, \
	{ "length 0", UV_FIELD(type, buf_len), 0, EINVAL }, \
	{ "no room for the doorbell record", UV_FIELD(type, buf_len), 64 * UV_RING_WR + 63, \
	  EINVAL }, \
	{ "length beyond the mapping", UV_FIELD(type, buf_len), 0x7fffffff, EFAULT }, \
	{ "fewer WQEs than requested", UV_FIELD(type, log_size), 4, EINVAL }, \
	{ "log size 15", UV_FIELD(type, log_size), 15, EINVAL }, \
	{ "log size 255", UV_FIELD(type, log_size), 255, EINVAL }, \
	{ "stride too small for the SGEs", UV_FIELD(type, log_stride), 5, EINVAL }, \
	{ "stride above the largest", UV_FIELD(type, log_stride), 11, EINVAL }, \
	{ "stride 2^255", UV_FIELD(type, log_stride), 255, EINVAL }, \
	{ "reserved bytes", UV_FIELD(type, reserved), 1, EOPNOTSUPP }

/* The content of an attribute of four bytes, which is in place of its address. */
uint64_t uv_inline_u32(uint32_t value);
void uv_apply(void *req, const struct uv_change *c);
/* Fails the test unless @err is @want, or any error if @want is 0. */
void uv_check_refused(int err, int want);

/* Allocates whole pages; good requests that use this memory. */
void *uv_mem(size_t len);
struct qhca_create_cq_req uv_cq_req(void *mem, uint32_t log_size);
struct qhca_create_qp_req uv_qp_req(void *sq, void *rq, uint32_t log_size);

#endif /* SELFTESTS_UVERBS_H */
