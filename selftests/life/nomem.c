// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation of every verb fails once: the verb returns an error, nothing is left behind, and
 * the device still works. /proc/thread-self/fail-nth makes the n-th allocation of a system call
 * fail. It exists only in kernels with CONFIG_FAULT_INJECTION, so this is not in tests.list.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/failing.h"
#include "lib/steer.h"

#define MANY	2000	/* more allocations than any verb has */

static struct dev *d;
static struct end spare;	/* for modify and attach */
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *mem;

#define LEN	(4u << 20)

/* ---- operations: they return an object, or NULL and errno; and functions to undo them ---- */

static void *done(int err)
{
	errno = err;
	return err ? NULL : &spare;
}

static int nothing(void *p)
{
	return 0;
}

static void *open_device(void)
{
	return ibv_open_device(d->ctx->device);
}

static int close_device(void *p)
{
	return ibv_close_device(p);
}

static void *alloc_pd(void)
{
	return ibv_alloc_pd(d->ctx);
}

static int dealloc_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static void *reg_mr(void)
{
	return ibv_reg_mr(d->pd, mem, LEN, REMOTE);
}

static void *reg_odp(void)
{
	return ibv_reg_mr(d->pd, mem, LEN, REMOTE | IBV_ACCESS_ON_DEMAND);
}

/* A region of all memory has parts, which are made where pages are needed. */
static void *prefetch(void)
{
	struct ibv_mr *all = ibv_reg_mr(d->pd, NULL, SIZE_MAX, REMOTE | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = LEN };
	int ret;

	if (!all)
		return NULL;
	sge.lkey = all->lkey;
	ret = ibv_advise_mr(d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			    &sge, 1);
	if (!ret)
		return all;
	ibv_dereg_mr(all);
	errno = ret;
	return NULL;
}

static int dereg_mr(void *p)
{
	return ibv_dereg_mr(p);
}

/* If the failure has destroyed the region, make a new one. */
static void *rereg_mr(void)
{
	int ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + 4096, LEN / 2, 0);

	return done(ret ? errno : 0);
}

static void *create_cq(void)
{
	return ibv_create_cq(d->ctx, 4000, NULL, NULL, 0);
}

static int destroy_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static void *resize_cq(void)
{
	return done(ibv_resize_cq(cq, 100 + rand() % 4000));
}

static void *create_channel(void)
{
	return ibv_create_comp_channel(d->ctx);
}

static int destroy_channel(void *p)
{
	return ibv_destroy_comp_channel(p);
}

static void *create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1000, .max_sge = 2 } };

	return ibv_create_srq(d->pd, &init);
}

static int destroy_srq(void *p)
{
	return ibv_destroy_srq(p);
}

static void *create_qp_of(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 500, .max_recv_wr = 500, .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};

	return ibv_create_qp(d->pd, &init);
}

static void *create_rc(void)
{
	return create_qp_of(IBV_QPT_RC);
}

static void *create_ud(void)
{
	return create_qp_of(IBV_QPT_UD);
}

static void *create_raw(void)
{
	return create_qp_of(IBV_QPT_RAW_PACKET);
}

static void *create_steer(void)
{
	static struct steer steer;

	errno = steer_make(d, cq, &steer);
	return errno ? NULL : &steer;
}

static int destroy_steer(void *p)
{
	return steer_unmake(p);
}

static int destroy_qp(void *p)
{
	return ibv_destroy_qp(p);
}

static void *modify_qp(void)
{
	struct ibv_qp_attr attr = {};
	struct conn c = CONN;
	int ret;

	c.dest_qpn = spare.qp->qp_num;
	ret = set_state(spare.qp, IBV_QPS_RESET);
	if (!ret)
		ret = ibv_modify_qp(spare.qp, &attr, attr_init(&attr, &c));
	if (!ret)
		ret = ibv_modify_qp(spare.qp, &attr, attr_rtr(&attr, d, &c));
	if (!ret)
		ret = ibv_modify_qp(spare.qp, &attr, attr_rts(&attr, &c));
	return done(ret);
}

static void *query_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return done(ibv_query_qp(spare.qp, &attr, IBV_QP_STATE, &init));
}

static void *alloc_mw(void)
{
	return ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
}

static int dealloc_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

static void *create_ah(void)
{
	struct ibv_ah_attr attr = own_address(d);

	return ibv_create_ah(d->pd, &attr);
}

static int destroy_ah(void *p)
{
	return ibv_destroy_ah(p);
}

static void *alloc_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	return ibv_alloc_dm(d->ctx, &attr);
}

static int free_dm(void *p)
{
	return ibv_free_dm(p);
}

static void *open_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(d->ctx, &attr);
}

static int close_xrcd(void *p)
{
	return ibv_close_xrcd(p);
}

static const struct op {
	const char *name;
	void *(*make)(void);
	int (*undo)(void *p);
	int err;		/* another error that it may return */
} ops[] = {
	/* After a failure libibverbs looks for another file. */
	{ "open_device", open_device, close_device, ENOENT },
	{ "alloc_pd", alloc_pd, dealloc_pd },
	{ "reg_mr", reg_mr, dereg_mr },
	{ "reg_mr, on demand", reg_odp, dereg_mr },
	/* Pages that cannot be had are as good as absent. */
	{ "advise_mr", prefetch, dereg_mr, EFAULT },
	{ "create_comp_channel", create_channel, destroy_channel },
	{ "create_cq", create_cq, destroy_cq },
	{ "create_srq", create_srq, destroy_srq },
	{ "create_qp, RC", create_rc, destroy_qp },
	{ "create_qp, UD", create_ud, destroy_qp },
	{ "create_qp, RAW_PACKET", create_raw, destroy_qp },
	{ "create_wq, create_rwq_ind_table, create_qp, create_flow", create_steer,
	  destroy_steer },
	{ "alloc_mw", alloc_mw, dealloc_mw },
	{ "create_ah", create_ah, destroy_ah },
	{ "alloc_dm", alloc_dm, free_dm },
	{ "open_xrcd", open_xrcd, close_xrcd },
	/* These make no object. */
	{ "rereg_mr", rereg_mr, nothing },
	{ "resize_cq", resize_cq, nothing },
	{ "modify_qp", modify_qp, nothing },
	{ "query_qp", query_qp, nothing },
};

#define NUM_MAKING	16
_Static_assert(ARRAY_SIZE(ops) == NUM_MAKING + 4, "the last four make nothing");

/* ---- failing allocations ---- */

static void prepare(void)
{
	struct qp_opts o = QP_OPTS;

	failing_allow();
	d = dev_open_qhca();
	spare = end_new(d, &o);
	cq = cq_new(d, 64, NULL);
	mem = aligned_alloc(4096, LEN);
	REQUIRE(mem);
	mr = ibv_reg_mr(d->pd, mem, LEN, REMOTE);
	REQUIRE(mr);
}

static void works(void)
{
	struct pair p = pair_default();

	ping_pong(&p);
}

TEST_ROWS(make, "J-020 each allocation fails once", ops)
{
	unsigned int n, failed = 0, refused = 0;
	char before[1024];
	void *p;
	int err;

	test_timeout(300);
	prepare();
	p = row->make();
	REQUIRE(p && !row->undo(p));
	resources(before, sizeof(before));
	for (n = 1; n < MANY; n++) {
		failing_arm(n);
		p = row->make();
		err = errno;
		if (!failing_disarm())
			break;
		failed++;
		if (!p && ++refused && !failing_may_be(err) && err != row->err)
			FAIL("allocation %u: %s", n, strerror(err));
		if (p)
			REQUIRE_OK(row->undo(p));
	}
	REQUIRE(p);
	REQUIRE_OK(row->undo(p));
	test_note("%u allocations, %u refusals", failed, refused);
	CHECK(failed);
	check_resources(before);
	works();
}

/* Destroying must succeed without memory, or return an error and succeed when repeated. */
TEST_SOME_ROWS(unmake, "J-020 each allocation fails once when an object is destroyed", ops,
	       NUM_MAKING)
{
	unsigned int n, failed = 0, again = 0;
	void *p;
	int ret;

	test_timeout(300);
	prepare();
	for (n = 1; n < MANY; n++) {
		p = row->make();
		REQUIRE(p);
		failing_arm(n);
		ret = row->undo(p);
		if (!failing_disarm())
			break;
		failed++;
		if (!ret)
			continue;
		again++;
		if (!failing_may_be(ret > 0 ? ret : errno))
			FAIL("allocation %u: %s", n, strerror(ret > 0 ? ret : errno));
		REQUIRE_OK(row->undo(p));
	}
	REQUIRE_OK(ret);
	test_note("%u allocations, %u refusals", failed, again);
	works();
}
