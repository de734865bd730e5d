// SPDX-License-Identifier: GPL-2.0
/*
 * Parent and thread domains: which allocator provides the memory of queues, and the order of
 * destruction.
 */
#include <stdlib.h>

#include "lib/rdma.h"

#define PAGE		4096
#define MAX_PIECES	8

/* struct arena - an allocator that records its allocations, and how it behaves */
struct arena {
	enum { GIVES, HAS_NONE, DECLINES, GIVES_UNALIGNED } mode;
	struct piece {
		uint8_t *addr;
		size_t len;
		uint64_t type;
	} piece[MAX_PIECES];
	int asked, given, taken_back;
};

static struct arena arena;
static struct ibv_pd *parent;

static void *arena_alloc(struct ibv_pd *pd, void *pd_context, size_t size,
			 size_t alignment, uint64_t resource_type)
{
	struct arena *a = pd_context;
	struct piece *p;

	CHECK(pd == parent);
	a->asked++;
	if (a->mode == HAS_NONE)
		return NULL;
	if (a->mode == DECLINES)
		return IBV_ALLOCATOR_USE_DEFAULT;
	REQUIRE(a->given < MAX_PIECES);
	p = &a->piece[a->given++];
	*p = (struct piece){ .len = size, .type = resource_type };
	REQUIRE_OK(posix_memalign((void **)&p->addr, alignment, size + PAGE));
	memset(p->addr, 0, size + PAGE);
	if (a->mode == GIVES_UNALIGNED)
		p->addr += 64;
	return p->addr;
}

static void arena_free(struct ibv_pd *pd, void *pd_context, void *ptr,
		       uint64_t resource_type)
{
	struct arena *a = pd_context;
	int i;

	CHECK(pd == parent);
	for (i = 0; i < a->given && a->piece[i].addr != ptr; i++)
		;
	REQUIRE(i < a->given);	/* also fails if memory is freed twice */
	CHECK_EQ(resource_type, a->piece[i].type);
	a->piece[i].addr = NULL;
	a->taken_back++;
}

static struct ibv_pd *parent_new(struct dev *d, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = d->pd, .td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = arena_alloc, .free = arena_free, .pd_context = &arena,
	};

	parent = ibv_alloc_parent_domain(d->ctx, &attr);
	REQUIRE(parent);
	return parent;
}

static struct ibv_td *td_new(struct dev *d)
{
	struct ibv_td_init_attr attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(d->ctx, &attr);

	REQUIRE(td);
	return td;
}

/* The objects that a domain can have, and how often each allocates memory. */

static struct dev *d;
static struct ibv_cq *a_cq;	/* for QPs, outside the domain */
static struct buf a_buf;

static void *make_cq(struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2000, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS |
			     IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = pd,
	};

	return ibv_create_cq_ex(d->ctx, &attr);
}

static int kill_cq(void *cq)
{
	return ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

static void *make_qp(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
		.send_cq = a_cq, .recv_cq = a_cq,
	};

	return ibv_create_qp(pd, &attr);
}

static int kill_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };

	return ibv_create_srq(pd, &attr);
}

static int kill_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_mr(struct ibv_pd *pd)
{
	return ibv_reg_mr(pd, a_buf.addr, a_buf.len, LOCAL);
}

static int kill_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *make_mw(struct ibv_pd *pd)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}

static int kill_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static void *make_ah(struct ibv_pd *pd)
{
	return own_ah(d, pd);
}

static int kill_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

static const struct kind {
	const char *name;
	void *(*make)(struct ibv_pd *pd);
	int (*kill)(void *object);
	int pieces;
} kinds[] = {
	{ "extended CQ", make_cq, kill_cq, 1 },
	{ "QP", make_qp, kill_qp, 2 },
	{ "SRQ", make_srq, kill_srq, 1 },
	{ "MR", make_mr, kill_mr, 0 },
	{ "MW", make_mw, kill_mw, 0 },
	{ "AH", make_ah, kill_ah, 0 },
};

#define NUM_QUEUES	3	/* the kinds that have rings */

static void setup(void)
{
	d = dev_open_qhca();
	a_cq = cq_new(d, 16, NULL);
	a_buf = buf_new(d->pd, PAGE, LOCAL);
}

TEST_ROWS(busy, "parent domain: it and its PD are busy while objects use it", kinds)
{
	struct ibv_pd *pd;
	void *object;

	setup();
	REQUIRE_OK(ibv_dereg_mr(a_buf.mr));
	pd = parent_new(d, NULL);
	object = row->make(pd);
	REQUIRE(object);
	CHECK_EQ(arena.given, row->pieces);
	CHECK_ERR(ibv_dealloc_pd(d->pd), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(pd), EBUSY);
	CHECK_ERR(row->kill(object), 0);
	CHECK_EQ(arena.taken_back, row->pieces);
	CHECK_ERR(ibv_dealloc_pd(d->pd), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
}

TEST_SOME_ROWS(no_memory, "parent domain: an allocator that fails", kinds,
	       NUM_QUEUES)
{
	struct ibv_pd *pd;

	setup();
	pd = parent_new(d, NULL);
	arena.mode = HAS_NONE;
	errno = 0;
	CHECK(!row->make(pd));
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(arena.asked, 1);
	CHECK_EQ(arena.taken_back, 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

TEST_SOME_ROWS(declined, "parent domain: an allocator that falls back to the provider",
	       kinds, NUM_QUEUES)
{
	struct ibv_pd *pd;
	void *object;

	setup();
	pd = parent_new(d, NULL);
	arena.mode = DECLINES;
	object = row->make(pd);
	REQUIRE(object);
	CHECK_EQ(arena.asked, row->pieces);
	CHECK_ERR(row->kill(object), 0);
	CHECK_EQ(arena.taken_back, 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

TEST_SOME_ROWS(unaligned, "parent domain: an allocator whose memory does not start at a page",
	       kinds, NUM_QUEUES)
{
	struct ibv_pd *pd;

	setup();
	pd = parent_new(d, NULL);
	arena.mode = GIVES_UNALIGNED;
	errno = 0;
	CHECK(!row->make(pd));
	CHECK_EQ(errno, EINVAL);
	CHECK(arena.given > 0);
	CHECK_EQ(arena.taken_back, arena.given);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

static bool is_zero(const struct piece *p)
{
	size_t i;

	for (i = 0; i < p->len; i++)
		if (p->addr[i])
			return false;
	return true;
}

/* Makes two QPs with a CQ and an SRQ, all in memory of the arena. */
static struct pair pair_in(struct ibv_pd *pd, struct ibv_srq **srq)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(make_cq(pd));
	struct qp_opts o = QP_OPTS;
	struct pair p = { .dev = d };

	REQUIRE(cq);
	*srq = make_srq(pd);
	REQUIRE(*srq);
	o.pd = pd;
	o.send_cq = cq;
	o.recv_cq = cq;
	o.srq = *srq;
	p.a = end_new(d, &o);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	return p;
}

/* Sends one message, received through the SRQ. */
static void message(struct end *from, struct ibv_srq *srq)
{
	struct ibv_sge sge = buf_sge(&a_buf, 0, 64);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);
	struct ibv_wc wc[2];
	int i;

	REQUIRE_OK(srq_post(srq, 2, &a_buf, 64, 64));
	REQUIRE_OK(post_send(from, &wr));
	for (i = 0; i < 2; i++) {
		wc[i] = poll_get(from->send_cq);
		CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
	}
	CHECK_EQ(wc[0].wr_id + wc[1].wr_id, 3);
}

static const struct {
	const char *name;
	bool td;
} locking[] = {
	{ "with locks", false },
	{ "thread domain", true },
};

TEST_ROWS(traffic, "parent domain: rings in the allocator's memory", locking)
{
	struct ibv_srq_attr bigger = { .max_wr = 64 };
	struct ibv_srq *srq;
	struct ibv_td *td;
	struct ibv_pd *pd;
	struct pair p;
	int i;

	setup();
	td = row->td ? td_new(d) : NULL;
	pd = parent_new(d, td);
	p = pair_in(pd, &srq);
	CHECK_EQ(arena.given, 4);	/* CQ, SRQ, two SQs */
	for (i = 0; i < 20; i++)
		message(i & 1 ? &p.a : &p.b, srq);
	for (i = 0; i < arena.given; i++)
		if (is_zero(&arena.piece[i]))
			FAIL("piece %d was not used", i);

	REQUIRE_OK(ibv_resize_cq(p.a.send_cq, 100));
	REQUIRE_OK(ibv_modify_srq(srq, &bigger, IBV_SRQ_MAX_WR));
	CHECK_EQ(arena.given, 6);
	CHECK_EQ(arena.taken_back, 2);
	message(&p.a, srq);

	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	CHECK_ERR(ibv_destroy_cq(p.a.send_cq), 0);
	CHECK_EQ(arena.taken_back, arena.given);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
	if (td)
		CHECK_ERR(ibv_dealloc_td(td), 0);
}

TEST(resize_refused, "parent domain: an allocator that fails for a resize")
{
	struct ibv_srq_attr bigger = { .max_wr = 64 };
	struct ibv_srq *srq;
	struct pair p;

	setup();
	p = pair_in(parent_new(d, NULL), &srq);
	arena.mode = HAS_NONE;
	CHECK_ERR(ibv_resize_cq(p.a.send_cq, 100), ENOMEM);
	CHECK_ERR(ibv_modify_srq(srq, &bigger, IBV_SRQ_MAX_WR), ENOMEM);
	CHECK_EQ(arena.taken_back, 0);
	message(&p.a, srq);
	message(&p.b, srq);
}

TEST(cq_pd, "C-030 extended CQ: no parent domain, and a PD in place of one")
{
	setup();
	errno = 0;
	CHECK(!make_cq(NULL));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(!make_cq(d->pd));
	CHECK_EQ(errno, EINVAL);
}

TEST(rereg, "parent domain: an MR that is moved to another PD moves its reference")
{
	struct ibv_pd *from, *to;
	struct ibv_mr *mr;

	setup();
	from = parent_new(d, NULL);
	to = parent_new(d, NULL);
	mr = make_mr(from);
	REQUIRE(mr);
	REQUIRE_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, to, NULL, 0, 0));
	CHECK_ERR(ibv_dealloc_pd(to), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(from), 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			   (void *)8, PAGE, 0));
	CHECK_ERR(ibv_dealloc_pd(to), EBUSY);
	CHECK_ERR(ibv_dereg_mr(mr), 0);
	CHECK_ERR(ibv_dealloc_pd(to), 0);
}

TEST(td_busy, "thread domain: busy while a parent domain uses it")
{
	struct ibv_td_init_attr unknown = { .comp_mask = 1 };
	struct ibv_pd *one, *two;
	struct ibv_td *td;

	setup();
	errno = 0;
	CHECK(!ibv_alloc_td(d->ctx, &unknown));
	CHECK_EQ(errno, EOPNOTSUPP);
	td = td_new(d);
	one = parent_new(d, td);
	two = parent_new(d, td);
	CHECK_ERR(ibv_dealloc_td(td), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(one), 0);
	CHECK_ERR(ibv_dealloc_td(td), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(two), 0);
	CHECK_ERR(ibv_dealloc_td(td), 0);
}

TEST(bad_attr, "parent domain: invalid attributes")
{
	const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct ibv_parent_domain_init_attr attr = { 0 };
	struct ibv_pd *pd;

	setup();
	CHECK(!ibv_alloc_parent_domain(d->ctx, &attr));	/* around no PD */
	CHECK_EQ(errno, EINVAL);
	attr.pd = d->pd;
	attr.comp_mask = 1u << 31;
	errno = 0;
	CHECK(!ibv_alloc_parent_domain(d->ctx, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
	attr.comp_mask = allocators;
	attr.alloc = arena_alloc;
	errno = 0;
	CHECK(!ibv_alloc_parent_domain(d->ctx, &attr));	/* no function to free memory */
	CHECK_EQ(errno, EINVAL);

	attr.comp_mask = 0;
	pd = ibv_alloc_parent_domain(d->ctx, &attr);
	REQUIRE(pd);
	attr.pd = pd;
	errno = 0;
	CHECK(!ibv_alloc_parent_domain(d->ctx, &attr));	/* around another parent domain */
	CHECK_EQ(errno, EINVAL);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}
