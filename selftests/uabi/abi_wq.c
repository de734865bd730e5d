// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues: a program passes arbitrary requests through the user ABI, and provokes
 * events while they are being created.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "lib/uverbs.h"

#define PAGE	4096
#define MAX_WR	UV_RING_WR
#define MAX_SGE	UV_RING_SGE

static struct qhca_create_wq_req good_req(void)
{
	return (struct qhca_create_wq_req){
		.buf_addr = (uintptr_t)uv_mem(PAGE),
		.buf_len = 64 * MAX_WR + 64,	/* and the doorbell record */
		.log_size = 5, .log_stride = 6,
	};
}

static const struct uv_change creations[] = { UV_RING_CHANGES(qhca_create_wq_req) };

TEST_ROWS(create, "abi: create_wq, bad request", creations)
{
	struct dev *d = dev_open_qhca();
	struct uv uv = { .fd = d->ctx->cmd_fd, .pd = d->pd->handle };
	uint32_t cq = cq_new(d, 64, NULL)->handle;
	struct qhca_create_wq_req req = good_req();
	struct uv_wq wq;

	uv_apply(&req, row);
	uv_check_refused(uv_create_wq(&uv, cq, MAX_WR, MAX_SGE, &req, sizeof(req), &wq), row->err);
	req = good_req();
	REQUIRE_OK(uv_create_wq(&uv, cq, MAX_WR, MAX_SGE, &req, sizeof(req), &wq));
	CHECK_ERR(uv_destroy_wq(&uv, &wq), 0);
}

/* The core passes on that there is none. */
TEST(no_cq, "abi: create_wq without a CQ")
{
	struct dev *d = dev_open_qhca();
	struct qhca_create_wq_req req = good_req();
	struct qhca_create_wq_resp resp;
	uint32_t wr = MAX_WR, sge = MAX_SGE, out;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[11];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd), .object_id = UVERBS_OBJECT_WQ,
			.method_id = UVERBS_METHOD_WQ_CREATE, .num_attrs = ARRAY_SIZE(cmd.attr),
			.driver_id = QHCA_RDMA_DRIVER_ID,
		},
		.attr = {
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_HANDLE },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_PD_HANDLE, .data = d->pd->handle },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_USER_HANDLE, .len = 8 },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_TYPE, .len = 8, .data = IBV_WQT_RQ },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_MAX_WR, .len = 4,
			  .data = uv_inline_u32(wr) },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_MAX_SGE, .len = 4,
			  .data = uv_inline_u32(sge) },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_FLAGS, .len = 4 },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, .len = 4,
			  .data = (uintptr_t)&out },
			{ .attr_id = UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, .len = 4,
			  .data = (uintptr_t)&out },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = sizeof(req),
			  .data = (uintptr_t)&req },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(resp),
			  .data = (uintptr_t)&resp },
		},
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmd.attr); i++)
		cmd.attr[i].flags = UVERBS_ATTR_F_MANDATORY;
	errno = 0;
	CHECK(ioctl(d->ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd));
	CHECK_EQ(errno, EINVAL);
}

/* ---- an event before the WQ is the core's ---- */

/* struct trap - a page of memory that is absent until a function has run */
struct trap {
	int fd;
	uint8_t *page;		/* another one is before it */
	void (*meanwhile)(void *arg);
	void *arg;
};

static void trap_set(struct trap *t)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	t->fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (t->fd < 0)
		test_skip("no userfaultfd");
	t->page = (uint8_t *)uv_mem(2 * PAGE) + PAGE;
	reg.range.start = (uintptr_t)t->page;
	reg.range.len = PAGE;
	REQUIRE_OK(ioctl(t->fd, UFFDIO_API, &api));
	REQUIRE_OK(ioctl(t->fd, UFFDIO_REGISTER, &reg));
}

static void *trap_spring(void *arg)
{
	struct trap *t = arg;
	struct uffdio_zeropage zero = { .range = { .start = (uintptr_t)t->page, .len = PAGE } };
	struct uffd_msg msg;

	REQUIRE(read(t->fd, &msg, sizeof(msg)) == sizeof(msg));
	CHECK_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
	t->meanwhile(t->arg);
	REQUIRE_OK(ioctl(t->fd, UFFDIO_ZEROPAGE, &zero));
	return NULL;
}

static void overflow(void *arg)
{
	struct pair *p = arg;

	pair_overflow(p);
	async_expect(p->dev->ctx, IBV_EVENT_CQ_ERR, p->b.recv_cq);
	CHECK(wait_state(p->b.qp, IBV_QPS_ERR));
	sleep_ms(QUIET_MS);
}

TEST(early, "abi: an event for a WQ before create_wq has returned")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 8, NULL);
	struct uv uv = { .fd = d->ctx->cmd_fd, .pd = d->pd->handle };
	struct qhca_create_wq_req req = good_req();
	struct pair p = pair_at(d, cq);
	struct trap t = { .meanwhile = overflow, .arg = &p };
	struct uv_wq wq;
	pthread_t thread;

	trap_set(&t);
	uv.resp = t.page;
	REQUIRE_OK(pthread_create(&thread, NULL, trap_spring, &t));
	CHECK_ERR(uv_create_wq(&uv, cq->handle, MAX_WR, MAX_SGE, &req, sizeof(req), &wq), 0);
	REQUIRE_OK(pthread_join(thread, NULL));
	CHECK_ERR(uv_destroy_wq(&uv, &wq), 0);
}
