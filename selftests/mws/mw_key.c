// SPDX-License-Identifier: GPL-2.0
/*
 * The window of a bind, and its next key: the work request has both the window and a key, and only
 * the low byte of the key is used.
 */
#include "lib/window.h"
#include "lib/wr_ex.h"

#define PAGE	4096
#define OPS	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_BIND_MW)

/* struct rig - windows a and b of one PD, both free; a is to be bound */
struct rig {
	struct pair p;
	struct buf src, dst;
	struct ibv_mw *a, *b;
};

static struct rig rig_new(void)
{
	struct dev *d = dev_open_mw(IBV_MW_TYPE_2);
	struct rig r = {};

	r.p = pair_ex(d, OPS, &CONN);
	r.src = buf_new(d->pd, PAGE, LOCAL);
	r.dst = buf_new(d->pd, PAGE, BINDABLE);
	r.a = mw_new(d, IBV_MW_TYPE_2);
	r.b = mw_new(d, IBV_MW_TYPE_2);
	fill(r.src.addr, PAGE, 1);
	fill(r.dst.addr, PAGE, 2);
	return r;
}

/* Each binds @mw with @rkey on end b of the pair. */

static void bind_post(struct rig *r, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = mw_part(&r->dst, 0, PAGE, MW_RW);
	REQUIRE_OK(post_send(&r->p.b, &wr));
}

static void bind_wr(struct rig *r, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_mw_bind_info info = mw_part(&r->dst, 0, PAGE, MW_RW);
	struct ibv_qp_ex *q = wr_start(&r->p.b, 1);

	ibv_wr_bind_mw(q, mw, rkey, &info);
	REQUIRE_OK(ibv_wr_complete(q));
}

static uint32_t right(const struct rig *r)
{
	return r->a->rkey;
}

static uint32_t of_other(const struct rig *r)
{
	return r->b->rkey;
}

static uint32_t no_object(const struct rig *r)
{
	return 0xffffff00;
}

static uint32_t zero(const struct rig *r)
{
	return 0;
}

static uint32_t of_region(const struct rig *r)
{
	return r->dst.mr->rkey;
}

static const struct {
	const char *name;
	void (*bind)(struct rig *r, struct ibv_mw *mw, uint32_t rkey);
	uint32_t (*key)(const struct rig *r);
} binds[] = {
	{ "ibv_post_send, the window's index", bind_post, right },
	{ "ibv_post_send, the index of another window", bind_post, of_other },
	{ "ibv_post_send, no object's index", bind_post, no_object },
	{ "ibv_post_send, only the low byte", bind_post, zero },
	{ "ibv_post_send, a region's index", bind_post, of_region },
	{ "ibv_wr_bind_mw, the window's index", bind_wr, right },
	{ "ibv_wr_bind_mw, another window's index", bind_wr, of_other },
	{ "ibv_wr_bind_mw, no object's index", bind_wr, no_object },
	{ "ibv_wr_bind_mw, only the low byte", bind_wr, zero },
	{ "ibv_wr_bind_mw, a region's index", bind_wr, of_region },
};

TEST_ROWS(which, "F-037 B-009 a bind takes the window from mw, the low byte from rkey",
	  binds)
{
	struct rig r = rig_new();
	uint32_t before = r.a->rkey;
	uint8_t low = before + 7;
	uint32_t key = (before & ~0xff) | low;

	row->bind(&r, r.a, (row->key(&r) & ~0xff) | low);
	CHECK_EQ(poll_ok(r.p.b.send_cq, 1).opcode, IBV_WC_BIND_MW);
	/* As with providers of other adapters, the user keeps track of the key. */
	CHECK_EQ(r.a->rkey, before);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, PAGE, r.dst.addr, key),
		 IBV_WC_SUCCESS);
	check_fill(r.dst.addr, PAGE, 1, "written");
	/* The other window is still free: it can be bound. */
	row->bind(&r, r.b, r.b->rkey + 1);
	poll_ok(r.p.b.send_cq, 1);
	CHECK_EQ(local_inv(&r.p.b, key), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 1, r.dst.addr, key),
		 IBV_WC_REM_ACCESS_ERR);
}

TEST(again, "F-037 bound, invalidated and bound again without touching mw->rkey")
{
	struct rig r = rig_new();
	uint32_t key;
	int i;

	for (i = 1; i < 300; i++) {
		key = (r.a->rkey & ~0xff) | ((r.a->rkey + i) & 0xff);
		bind_post(&r, r.a, key);
		poll_ok(r.p.b.send_cq, 1);
		CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 1, r.dst.addr,
			      key), IBV_WC_SUCCESS);
		CHECK_EQ(local_inv(&r.p.b, key), IBV_WC_SUCCESS);
	}
}
