// SPDX-License-Identifier: GPL-2.0
/*
 * An object that is made and destroyed, or refused, leaves neither memory nor a mapping nor a file
 * behind in the process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/rdma.h"

#define BEFORE	10	/* what is kept for the next one is there then */
#define ROUNDS	100

static struct dev *d;
static struct ibv_cq *cq;
static struct buf page;

/* ---- made and destroyed ---- */

static void context(void)
{
	struct ibv_context *ctx = ibv_open_device(d->ctx->device);

	REQUIRE(ctx);
	REQUIRE_OK(ibv_close_device(ctx));
}

static void imported(void)
{
	int fd = dup(d->ctx->cmd_fd);
	struct ibv_context *ctx = ibv_import_device(fd);
	struct ibv_pd *pd;

	REQUIRE(ctx);
	pd = ibv_import_pd(ctx, d->pd->handle);
	REQUIRE(pd);
	CHECK(!ibv_import_pd(ctx, 12345));
	ibv_unimport_pd(pd);
	REQUIRE_OK(ibv_close_device(ctx));
}

static void pd(void)
{
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr around = { .pd = ibv_alloc_pd(d->ctx) };
	struct ibv_pd *domain;

	REQUIRE(around.pd);
	around.td = ibv_alloc_td(d->ctx, &td);
	REQUIRE(around.td);
	domain = ibv_alloc_parent_domain(d->ctx, &around);
	REQUIRE(domain);
	REQUIRE_OK(ibv_dealloc_pd(domain));
	REQUIRE_OK(ibv_dealloc_td(around.td));
	REQUIRE_OK(ibv_dealloc_pd(around.pd));
}

static void queue(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(d->ctx);
	struct ibv_cq *one;

	REQUIRE(ch);
	one = cq_new(d, 100, ch);
	REQUIRE_OK(ibv_resize_cq(one, 1000));
	REQUIRE_OK(ibv_destroy_cq(one));
	REQUIRE_OK(ibv_destroy_comp_channel(ch));
}

static void queue_ex(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 100, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *one = ibv_create_cq_ex(d->ctx, &init);

	REQUIRE(one);
	REQUIRE_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(one)));
}

static void qp(void)
{
	struct qp_opts o = QP_OPTS;

	o.send_cq = cq;
	o.recv_cq = cq;
	REQUIRE_OK(ibv_destroy_qp(end_in(d, &o, IBV_QPS_RTS).qp));
}

static void srq(void)
{
	REQUIRE_OK(ibv_destroy_srq(srq_new(d, 100, 2)));
}

static void xrc(void)
{
	struct ibv_xrcd_init_attr dom = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 10, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = d->pd,
		.cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
	};
	struct ibv_srq *one;

	init.xrcd = ibv_open_xrcd(d->ctx, &dom);
	REQUIRE(init.xrcd);
	one = ibv_create_srq_ex(d->ctx, &init);
	REQUIRE(one);
	REQUIRE_OK(ibv_destroy_srq(one));
	REQUIRE_OK(ibv_close_xrcd(init.xrcd));
}

static void region(void)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, page.addr, page.len, REMOTE);

	REQUIRE(mr);
	REQUIRE_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL));
	REQUIRE_OK(ibv_dereg_mr(mr));
}

static void null_region(void)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(d->pd);

	REQUIRE(mr);
	REQUIRE_OK(ibv_dereg_mr(mr));
}

static void window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);

	REQUIRE(mw);
	REQUIRE_OK(ibv_dealloc_mw(mw));
}

static void memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(d->ctx, &attr);
	struct ibv_mr *mr;

	REQUIRE(dm);
	mr = ibv_reg_dm_mr(d->pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED | LOCAL);
	REQUIRE(mr);
	REQUIRE_OK(ibv_dereg_mr(mr));
	REQUIRE_OK(ibv_free_dm(dm));
}

static void address(void)
{
	REQUIRE_OK(ibv_destroy_ah(own_ah(d, d->pd)));
}

static void work_queue(void)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = d->pd, .cq = cq,
	};
	struct ibv_rwq_ind_table_init_attr of = { 0 };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *wq = ibv_create_wq(d->ctx, &init);

	REQUIRE(wq);
	of.ind_tbl = &wq;
	table = ibv_create_rwq_ind_table(d->ctx, &of);
	REQUIRE(table);
	REQUIRE_OK(ibv_destroy_rwq_ind_table(table));
	REQUIRE_OK(ibv_destroy_wq(wq));
}

static void counters(void)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *one = ibv_create_counters(d->ctx, &init);

	REQUIRE(one);
	REQUIRE_OK(ibv_destroy_counters(one));
}

/* ---- refused, by libibverbs, by the provider, by the driver and by the device ---- */

static void no_queue(void)
{
	CHECK(!ibv_create_cq(d->ctx, d->attr.max_cqe + 1, NULL, NULL, 0));
	CHECK(!ibv_create_cq(d->ctx, 10, NULL, NULL, 1000));
	CHECK(ibv_resize_cq(cq, d->attr.max_cqe + 1));
}

static void no_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 2, 2, 1, 1, 0 },
	};

	init.cap.max_send_wr = d->attr.max_qp_wr + 1;
	CHECK(!ibv_create_qp(d->pd, &init));
	init.cap.max_send_wr = 2;
	init.qp_type = 77;
	CHECK(!ibv_create_qp(d->pd, &init));
}

static void no_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1 } };

	init.attr.max_sge = d->attr.max_srq_sge + 1;
	CHECK(!ibv_create_srq(d->pd, &init));
}

static void no_region(void)
{
	CHECK(!ibv_reg_mr(d->pd, NULL, 1 << 20, REMOTE));
	CHECK(!ibv_reg_mr(d->pd, page.addr, page.len, IBV_ACCESS_REMOTE_WRITE));
}

static void no_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 1ul << 40 };

	CHECK(!ibv_alloc_dm(d->ctx, &attr));
}

static void no_work_queue(void)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = d->pd, .cq = cq,
	};

	init.max_wr = d->attr.max_qp_wr + 1;
	CHECK(!ibv_create_wq(d->ctx, &init));
}

static const struct {
	const char *name;
	void (*once)(void);
} rows[] = {
	{ "a context", context }, { "an imported context and PD", imported },
	{ "a PD, a parent domain, a TD", pd }, { "a CQ and its channel", queue },
	{ "an extended CQ", queue_ex }, { "a QP", qp }, { "an SRQ", srq },
	{ "an XRC SRQ and its domain", xrc }, { "an MR", region }, { "a null MR", null_region },
	{ "a window", window }, { "device memory and its MR", memory },
	{ "an address handle", address }, { "a WQ and a table", work_queue },
	{ "counters", counters }, { "CQs that are refused", no_queue },
	{ "QPs that are refused", no_qp }, { "SRQs that are refused", no_srq },
	{ "MRs that are refused", no_region }, { "device memory that is refused", no_memory },
	{ "WQs that are refused", no_work_queue },
};

/* Pages that are mapped: neighbours are one mapping, so counting these would show little. */
static long pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long n = 0;

	REQUIRE(file);
	REQUIRE(fscanf(file, "%ld", &n) == 1);
	fclose(file);
	return n;
}

static int files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	REQUIRE(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST_ROWS(made, "J-018 nothing is left behind in the process", rows)
{
	size_t used;
	int i, open;
	long mapped;

	d = dev_open_qhca();
	cq = cq_new(d, 16, NULL);
	page = buf_new(d->pd, 4096, REMOTE);
	for (i = 0; i < BEFORE; i++)
		row->once();
	mapped = pages();
	open = files();
	used = mallinfo2().uordblks;
	for (i = 0; i < ROUNDS; i++)
		row->once();
	CHECK(pages() < mapped + ROUNDS);
	CHECK_EQ(files(), open);
	/* Less than a pointer for each. */
	CHECK(mallinfo2().uordblks < used + ROUNDS * sizeof(void *));
}
