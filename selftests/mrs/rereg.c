// SPDX-License-Identifier: GPL-2.0
/* Re-registration of memory regions. */
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/rdma.h"

#define PAGE	4096

static void *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static enum ibv_wc_status transfer(struct pair *p, enum ibv_wr_opcode opcode,
				   struct buf *local, uint32_t len, void *addr,
				   uint32_t rkey)
{
	struct ibv_sge sge = buf_sge(local, 0, len);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, (uintptr_t)addr,
					rkey);

	REQUIRE_OK(post_send(&p->a, &wr));
	return poll_get(p->a.send_cq).status;
}

/* Returns enum ibv_rereg_mr_err_code, unlike other verbs. */
static int rereg(struct buf *b, int what, struct ibv_pd *pd, void *addr,
		 size_t len, int access)
{
	int ret;

	errno = 0;
	ret = ibv_rereg_mr(b->mr, what, pd, addr, len, access);
	if (ret && errno == EOPNOTSUPP)
		test_skip("no re-registration here");
	return ret;
}

TEST(rereg_access, "F-012 re-registration removes and adds rights")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf tmp = buf_new(p.dev->pd, PAGE, LOCAL);

	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			LOCAL | IBV_ACCESS_REMOTE_READ), 0);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_READ, &tmp, 8, b.addr,
			  b.mr->rkey),
		 IBV_WC_SUCCESS);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 8, b.addr,
			  b.mr->rkey),
		 IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REMOTE),
		  0);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	pair_connect(&p, &CONN);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 8, b.addr,
			  b.mr->rkey),
		 IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
}

TEST(rereg_trans, "F-012 re-registration moves the MR to other memory")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf tmp = buf_new(p.dev->pd, 3 * PAGE, LOCAL);
	uint8_t *old = b.addr, *mem = map(4 * PAGE, PROT_READ | PROT_WRITE);

	REQUIRE(mem);
	fill(tmp.addr, tmp.len, 13);
	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + 5,
			3 * PAGE, 0), 0);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 3 * PAGE, mem + 5,
			  b.mr->rkey),
		 IBV_WC_SUCCESS);
	check_fill(mem + 5, 3 * PAGE, 13, "new memory");
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 8, old,
			  b.mr->rkey),
		 IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
}

TEST(rereg_pd, "F-012 re-registration moves the MR to another PD")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf tmp = buf_new(p.dev->pd, PAGE, LOCAL);
	struct ibv_pd *pd = ibv_alloc_pd(p.dev->ctx);

	REQUIRE(pd);
	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	CHECK_ERR(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 8, b.addr,
			  b.mr->rkey),
		 IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

TEST(rereg_left, "F-012 the PD that an MR has left can be deallocated")
{
	struct dev *d = dev_open();
	struct ibv_pd *old = ibv_alloc_pd(d->ctx), *pd = ibv_alloc_pd(d->ctx);
	struct buf b;

	REQUIRE(old && pd);
	b = buf_new(old, PAGE, REMOTE);
	CHECK_ERR(ibv_dealloc_pd(old), EBUSY);
	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	CHECK_ERR(ibv_dealloc_pd(old), 0);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

static const struct {
	const char *name;
	int what;
} receives[] = {
	{ "PD", IBV_REREG_MR_CHANGE_PD },
	{ "address", IBV_REREG_MR_CHANGE_TRANSLATION },
	{ "access", IBV_REREG_MR_CHANGE_ACCESS },
};

TEST_ROWS(rereg_posted, "F-012 F-008 re-registration under a posted receive request, to another",
	  receives)
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, LOCAL), src = buf_new(p.dev->pd, PAGE, LOCAL);
	struct ibv_sge in = buf_sge(&b, 0, 64), out = buf_sge(&src, 0, 64);
	struct ibv_send_wr wr = wr_send(1, &out, 1);
	uint8_t *mem = map(PAGE, PROT_READ | PROT_WRITE);

	REQUIRE(mem);
	fill(src.addr, PAGE, 13);
	fill(b.addr, PAGE, 14);
	REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
	CHECK_ERR(rereg(&b, row->what, ibv_alloc_pd(p.dev->ctx), mem, PAGE, 0), 0);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_OP_ERR);
	if (p.dev->qhca)
		poll_expect(p.b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	check_fill(b.addr, PAGE, 14, "old memory");
	CHECK_EQ(mem[0], 0);
}

TEST(rereg_all, "F-012 re-registration of everything at once")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open();
	struct buf b = buf_new(d->pd, PAGE, LOCAL);
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	uint8_t *mem = map(PAGE, PROT_READ | PROT_WRITE);
	struct pair p;
	struct buf tmp;

	REQUIRE(pd && mem);
	CHECK_ERR(rereg(&b, IBV_REREG_MR_CHANGE_TRANSLATION |
			IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
			pd, mem, PAGE, REMOTE), 0);
	o.pd = pd;
	p = pair_new(d, &o, &CONN);
	tmp = buf_new(pd, PAGE, LOCAL);
	fill(tmp.addr, PAGE, 14);
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, PAGE, mem,
			  b.mr->rkey),
		 IBV_WC_SUCCESS);
	check_fill(mem, PAGE, 14, "new memory");
}

TEST(rereg_bad, "F-013 re-registrations that are refused")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf tmp = buf_new(p.dev->pd, PAGE, LOCAL);
	uint8_t *ro = map(PAGE, PROT_READ);
	struct buf r = { .addr = ro, .len = PAGE };

	CHECK(rereg(&b, 0, NULL, NULL, 0, 0));
	CHECK(rereg(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		    IBV_ACCESS_REMOTE_WRITE));
	r.mr = ibv_reg_mr(p.dev->pd, ro, PAGE, 0);
	REQUIRE(r.mr);
	CHECK(rereg(&r, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL));
	CHECK_ERR(ibv_dereg_mr(r.mr), 0);
	/* The MR still works as before. */
	CHECK_EQ(transfer(&p, IBV_WR_RDMA_WRITE, &tmp, 8, b.addr,
			  b.mr->rkey),
		 IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
}
