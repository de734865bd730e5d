// SPDX-License-Identifier: GPL-2.0
/*
 * The device holds as many objects of each kind, and as many work requests, as it promises: the
 * last one works, and one more fails with ENOMEM. Address handles are in ud.c, groups in mcast.c,
 * limits of SRQs in srq.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

static struct dev *d;
static struct ibv_cq *cq;
static uint8_t page[4096] __attribute__((aligned(4096)));

static void *make_pd(void)
{
	return ibv_alloc_pd(d->ctx);
}

static int destroy_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

/* Registers an MR in the last PD. */
static void use_pd(void *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), LOCAL);

	REQUIRE(mr);
	REQUIRE_OK(ibv_dereg_mr(mr));
}

static void *make_cq(void)
{
	return ibv_create_cq(d->ctx, 1, NULL, NULL, 0);
}

static int destroy_cq(void *obj)
{
	return ibv_destroy_cq(obj);
}

/* Makes a completion in the last CQ. */
static void use_cq(void *obj)
{
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.send_cq = obj;
	o.recv_cq = obj;
	e = end_in(d, &o, IBV_QPS_INIT);
	REQUIRE_OK(post_recv(&e, 1, NULL, 0));
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	poll_expect(obj, 1, IBV_WC_WR_FLUSH_ERR);
	REQUIRE_OK(ibv_destroy_qp(e.qp));
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 2, 2, 1, 1, 0 },
	};

	return ibv_create_qp(d->pd, &init);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

/* Sends on the last QP, to itself. */
static void use_qp(void *qp)
{
	struct end e = { .dev = d, .qp = qp, .send_cq = cq, .recv_cq = cq };
	struct conn c = CONN;

	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, IBV_QPS_RTS);
	REQUIRE_OK(post_recv(&e, 1, NULL, 0));
	send_id(&e, 1);
	poll_ok(cq, 1);
	poll_ok(cq, 1);
}

static void *make_mr(void)
{
	return ibv_reg_mr(d->pd, page, sizeof(page), REMOTE);
}

static int destroy_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

/* Accesses memory with both keys of the last MR. */
static void use_mr(void *obj)
{
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_RTS);
	struct ibv_mr *mr = obj;
	struct ibv_sge sge = { (uintptr_t)page, 100, mr->lkey };
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)page + 200,
					mr->rkey);

	fill(page, 100, 1);
	memset(page + 200, 0, 100);
	REQUIRE_OK(post_send(&e, &wr));
	poll_ok(e.send_cq, 1);
	check_fill(page + 200, 100, 1, "written with the last MR");
	REQUIRE_OK(ibv_destroy_qp(e.qp));
}

static void *make_mw(void)
{
	return ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
}

static int destroy_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(d->pd, &init);
}

static int destroy_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

/* Posts a WR to the last SRQ. */
static void use_srq(void *srq)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	REQUIRE_OK(ibv_post_srq_recv(srq, &wr, &bad));
}

#define MAX(member) offsetof(struct ibv_device_attr, member)

static const struct kind {
	const char *name;	/* name that rdma(8) prints */
	size_t max;		/* offset of the limit */
	void *(*make)(void);
	int (*destroy)(void *obj);
	void (*use)(void *obj);
} kinds[] = {
	{ "pd", MAX(max_pd), make_pd, destroy_pd, use_pd },
	{ "cq", MAX(max_cq), make_cq, destroy_cq, use_cq },
	{ "qp", MAX(max_qp), make_qp, destroy_qp, use_qp },
	{ "mr", MAX(max_mr), make_mr, destroy_mr, use_mr },
	{ "mw", MAX(max_mw), make_mw, destroy_mw, NULL },
	{ "srq", MAX(max_srq), make_srq, destroy_srq, use_srq },
};

/* Returns how many objects of a kind the device already has, including the kernel's. */
static int existing(const char *kind)
{
	char text[1024], args[64], word[16];
	const char *at;

	snprintf(args, sizeof(args), "resource show %s", dev_name());
	REQUIRE(rdma_tool("", args, text, sizeof(text)));
	snprintf(word, sizeof(word), " %s ", kind);
	at = strstr(text, word);
	return at ? atoi(at + strlen(word)) : 0;	/* rdma(8) does not count windows */
}

/* Makes as many objects as possible; then frees all but the last, and uses that one. */
static void fill_up(const struct kind *k, void **list, int max)
{
	int64_t start = time_ms();
	int i, n;

	for (n = 0; n <= max; n++) {
		errno = 0;
		list[n] = k->make();
		if (!list[n])
			break;
	}
	CHECK_ERR(errno, ENOMEM);
	CHECK_EQ(n, max);
	REQUIRE(n > 2);
	test_note("%d in %lld ms", n, (long long)(time_ms() - start));
	/* Using the last object may take another one of this kind. */
	REQUIRE_OK(k->destroy(list[0]));
	if (k->use)
		k->use(list[n - 1]);
	list[0] = k->make();
	REQUIRE(list[0]);
	for (i = 0; i < n; i++)
		REQUIRE_OK(k->destroy(list[i]));
}

TEST_ROWS(objects, "J-001 J-018 as many as promised, one more is ENOMEM; twice", kinds)
{
	void **list;
	int max;

	d = dev_open_qhca();
	test_timeout(200);
	/* Using the last CQ takes a QP, which uses this CQ. */
	cq = row->make == make_qp ? cq_new(d, 16, NULL) : NULL;
	max = *(int *)((uint8_t *)&d->attr + row->max) - existing(row->name);
	list = calloc(max + 1, sizeof(*list));
	REQUIRE(list && max > 0);
	fill_up(row, list, max);
	fill_up(row, list, max);
}

/* Polls @n completions, in the order in which @e has posted the WRs. */
static void poll_all(struct ibv_cq *from, int n, enum ibv_wc_status status)
{
	int i;

	for (i = 0; i < n; i++)
		poll_expect(from, i, status);
	poll_empty(from);
}

TEST(work_requests, "J-035 A-013 B-023 queues of max_qp_wr WRs, filled to the last")
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end e;
	int i, n;

	d = dev_open_qhca();
	n = d->attr.max_qp_wr;
	o.send_wr = n;
	o.recv_wr = n;
	o.send_cq = cq_new(d, n, NULL);
	o.recv_cq = cq_new(d, n, NULL);
	e = end_new(d, &o);
	CHECK_EQ(e.cap.max_send_wr, n);
	CHECK_EQ(e.cap.max_recv_wr, n);
	c.dest_qpn = e.qp->qp_num;	/* itself; it has no receive request yet */
	qp_bring(&e, &c, IBV_QPS_RTS);
	for (i = 0; i < n; i++)
		send_id(&e, i);
	struct ibv_send_wr wr = wr_send(n, NULL, 0);

	CHECK_ERR(post_send(&e, &wr), ENOMEM);
	for (i = 0; i < n; i++)
		REQUIRE_OK(post_recv(&e, i, NULL, 0));
	poll_all(e.recv_cq, n, IBV_WC_SUCCESS);
	poll_all(e.send_cq, n, IBV_WC_SUCCESS);
	/* Fill the receive queue while no message takes its WRs. */
	for (i = 0; i < n; i++)
		REQUIRE_OK(post_recv(&e, i, NULL, 0));
	CHECK_ERR(post_recv(&e, n, NULL, 0), ENOMEM);
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	poll_all(e.recv_cq, n, IBV_WC_WR_FLUSH_ERR);
}

/*
 * Most completions are of flushed receive WRs, which is the fastest way to make that many. The
 * device writes those of different QPs in any order.
 */
TEST(entries, "C-001 C-002 J-035 a CQ of max_cqe entries, filled to the last")
{
	struct qp_opts o = QP_OPTS;
	struct ibv_wc wc[128];
	struct ibv_cq *all;
	uint8_t *seen;
	int i, k, n, left;

	d = dev_open_qhca();
	test_timeout(300);
	n = d->attr.max_cqe;
	CHECK(n >= 196608);		/* libfabric's verbs;ofi_rxm */
	all = cq_new(d, n, NULL);
	CHECK_EQ(all->cqe, n);
	seen = calloc(n, 1);
	REQUIRE(seen);
	o.recv_cq = all;
	o.send_cq = cq_new(d, 1, NULL);
	for (left = n; left; ) {
		struct end e;

		o.recv_wr = left < d->attr.max_qp_wr ? left : d->attr.max_qp_wr;
		e = end_in(d, &o, IBV_QPS_INIT);
		for (i = o.recv_wr; i; i--)
			REQUIRE_OK(post_recv(&e, --left, NULL, 0));
		REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	}
	async_none(d->ctx);
	for (left = n; left; left -= i) {
		wc[0] = poll_get(all);
		i = 1 + ibv_poll_cq(all, ARRAY_SIZE(wc) - 1, wc + 1);
		REQUIRE(i > 0);
		for (k = 0; k < i; k++)
			REQUIRE(wc[k].status == IBV_WC_WR_FLUSH_ERR &&
				wc[k].wr_id < (uint64_t)n && !seen[wc[k].wr_id]++);
	}
	poll_empty(all);
}

TEST(members, "J-001 G-018 as many QPs in a multicast group as promised")
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct qp_opts o = QP_OPTS;
	int i, n;

	d = dev_open_qhca();
	n = d->attr.max_mcast_qp_attach;
	CHECK(n > 1);
	o.type = IBV_QPT_UD;
	o.send_cq = cq_new(d, 16, NULL);
	o.recv_cq = o.send_cq;
	for (i = 0; i <= n; i++) {
		struct end e = end_in(d, &o, IBV_QPS_INIT);

		CHECK_ERR(ibv_attach_mcast(e.qp, &gid, 0), i < n ? 0 : ENOMEM);
	}
}
