// SPDX-License-Identifier: GPL-2.0
/*
 * If the kernel cannot write the number of a new object to user space, it destroys the object
 * again. If a fault rule makes the device refuse that, the driver declares it dead, because it
 * would go on using memory that is freed next. Needs root.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <qhca/queues.h>

#include "lib/faults.h"
#include "lib/life.h"
#include "lib/uverbs.h"

#define PAGE	4096

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
}

static int make_pd(struct uv *uv, const struct uv_cq *cq)
{
	uint32_t handle;

	return uv_alloc_pd(uv, &handle);
}

static int make_cq(struct uv *uv, const struct uv_cq *other)
{
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct uv_cq cq;

	return uv_create_cq(uv, 64, &req, sizeof(req), &cq);
}

static int make_srq(struct uv *uv, const struct uv_cq *cq)
{
	struct qhca_create_srq_req req = {
		.buf_addr = (uintptr_t)uv_mem(PAGE),
		.buf_len = 32 * QHCA_RQ_STRIDE_MIN + sizeof(struct qhca_rq_dbrec),
		.log_size = 5,
		.log_stride = __builtin_ctz(QHCA_RQ_STRIDE_MIN),
	};
	struct uv_srq srq;

	return uv_create_srq(uv, 32, 1, &req, sizeof(req), &srq);
}

static int make_qp(struct uv *uv, const struct uv_cq *cq)
{
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };
	struct qhca_create_qp_req req = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	struct uv_qp qp;

	return uv_create_qp(uv, cq, &cap, &req, sizeof(req), &qp);
}

static const struct kind {
	const char *name, *command;
	int (*make)(struct uv *uv, const struct uv_cq *cq);
} kinds[] = {
	{ "PD", "dealloc_pd", make_pd },
	{ "CQ", "destroy_cq", make_cq },
	{ "SRQ", "destroy_srq", make_srq },
	{ "QP", "destroy_qp", make_qp },
};

/* struct attempt - an attempt to make an object; QPs use the CQ */
struct attempt {
	struct uv uv;
	struct uv_cq cq;
};

/* Fails to make an object of @kind; a rule with @action is set for its destruction. */
static struct attempt fail(struct dev *d, const struct kind *kind, const char *action)
{
	void *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct attempt a = { .uv = uv_open(d) };
	char rule[100];

	REQUIRE(read_only != MAP_FAILED);
	REQUIRE_OK(uv_create_cq(&a.uv, 64, &req, sizeof(req), &a.cq));
	snprintf(rule, sizeof(rule), "cmd opcode=%s once %s", kind->command, action);
	REQUIRE_OK(faults_set(rule));
	a.uv.resp = read_only;
	CHECK_ERR(kind->make(&a.uv, &a.cq), EFAULT);
	a.uv.resp = NULL;
	return a;
}

TEST_ROWS(destroyed, "A-012 J-018 an object that cannot be returned is destroyed", kinds)
{
	struct dev *d = faults_open();
	struct attempt a = fail(d, row, "stall=50us");

	CHECK_EQ(faults_hits(), 1);
	CHECK_ERR(row->make(&a.uv, &a.cq), 0);
	async_none(d->ctx);
}

TEST_ROWS(refused, "A-012 J-021 H-015 a device that refuses to destroy it is declared dead", kinds)
{
	struct dev *d = faults_open();
	struct pair p;

	fail(d, row, "fail=busy");
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!ibv_alloc_pd(d->ctx));
	CHECK_EQ(errno, EIO);
	device_reset();
	device_wait_back(d->gid_index);
	p = pair_new(dev_open_qhca(), &QP_OPTS, &CONN);
	ping_pong(&p);
}
