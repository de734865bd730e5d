// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows, as verbs have them: who chooses the key, which window and which rights a bind
 * names, invalidation, and objects in use. The window is bound on end b of a pair, and end a uses
 * it. test_mw.c and test_mw_use.c of the engine have what a window then allows.
 */
#include <stdlib.h>

#include "lib/window.h"
#include "lib/wr_ex.h"

#define PAGE	4096
#define OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |	\
		 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

/* struct rig - a window, and another free one of the same PD */
struct rig {
	struct pair p;
	struct buf src, dst;	/* dst: bindable, without remote rights */
	struct ibv_mw *mw, *other;
};

static struct rig rig_new(enum ibv_mw_type type)
{
	struct dev *d = dev_open_mw(type);
	struct conn c = CONN;
	struct rig r = {};

	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	r.p = pair_ex(d, OPS, &c);
	r.src = buf_new(d->pd, 2 * PAGE, LOCAL);
	r.dst = buf_new(d->pd, 2 * PAGE, BINDABLE);
	r.mw = mw_new(d, type);
	r.other = mw_new(d, type);
	fill(r.src.addr, r.src.len, 1);
	fill(r.dst.addr, r.dst.len, 2);
	return r;
}

static enum ibv_wc_status write_key(struct rig *r, uint32_t len, uint32_t key)
{
	return rdma(&r->p.a, IBV_WR_RDMA_WRITE, &r->src, len, r->dst.addr, key);
}

TEST(caps, "F-035 J-004 of type 2 only 2B is offered, and windows can be allocated")
{
	struct dev *d = dev_open_qhca();
	const unsigned int type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	const int bad[] = { 0, 3, 255 };
	size_t i;

	CHECK(d->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	CHECK_EQ(d->attr.device_cap_flags & type_2, IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	CHECK(d->attr.max_mw >= 4096);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		CHECK(!ibv_alloc_mw(d->pd, bad[i]));
		CHECK_EQ(errno, EINVAL);
	}
}

/* ---- type 2: the work request names the window, and has a key ---- */

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
	return r->mw->rkey;
}

static uint32_t of_other(const struct rig *r)
{
	return r->other->rkey;
}

static uint32_t no_object(const struct rig *r)
{
	return 0xffffff00;
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
	{ "ibv_wr_bind_mw, the window's index", bind_wr, right },
	{ "ibv_wr_bind_mw, another window's index", bind_wr, of_other },
	{ "ibv_wr_bind_mw, a region's index", bind_wr, of_region },
};

TEST_ROWS(bind, "F-037 B-009 B-010 a bind takes the window from mw, the low byte from rkey",
	  binds)
{
	struct rig r = rig_new(IBV_MW_TYPE_2);
	struct ibv_send_wr wr = wr_send(9, NULL, 0);
	uint32_t before = r.mw->rkey;
	uint8_t low = before + 7;
	uint32_t key = (before & ~0xff) | low;

	row->bind(&r, r.mw, (row->key(&r) & ~0xff) | low);
	CHECK_EQ(poll_ok(r.p.b.send_cq, 1).opcode, IBV_WC_BIND_MW);
	/* As with providers of other adapters, the user keeps track of the key. */
	CHECK_EQ(r.mw->rkey, before);
	CHECK_EQ(write_key(&r, PAGE, key), IBV_WC_SUCCESS);
	check_fill(r.dst.addr, PAGE, 1, "written");
	/* The other window is still free: it can be bound. */
	row->bind(&r, r.other, r.other->rkey + 1);
	poll_ok(r.p.b.send_cq, 1);
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = key;
	REQUIRE_OK(post_send(&r.p.b, &wr));
	CHECK_EQ(poll_ok(r.p.b.send_cq, 9).opcode, IBV_WC_LOCAL_INV);
	CHECK_EQ(write_key(&r, 1, key), IBV_WC_REM_ACCESS_ERR);
}

static const struct {
	const char *name;
	int access;
	enum ibv_wr_opcode can, cannot;
} rights[] = {
	{ "to write", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ },
	{ "to read", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE },
	{ "to atomics", IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ },
	{ "to read, zero-based", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED,
	  IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE },
	/* Local write means nothing for a window, but is often set. */
	{ "to write, also locally", IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE,
	  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ },
};

TEST_ROWS(access, "F-048 F-037 a window has the start and the right of its bind", rights)
{
	struct rig r = rig_new(IBV_MW_TYPE_2);
	uint8_t *addr = row->access & IBV_ACCESS_ZERO_BASED ? NULL : r.dst.addr + 64;

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 64, 8, row->access)), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, row->can, &r.src, 8, addr, r.mw->rkey), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, row->cannot, &r.src, 8, addr, r.mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

/* ---- type 1: the verb chooses the key ---- */

TEST(bind_mw, "F-036 F-040 ibv_bind_mw() has the next key, before the bind is done")
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	struct buf mail = buf_new(r.p.dev->pd, 4, LOCAL);
	struct ibv_sge in = buf_sge(&r.src, 0, 4), out = buf_sge(&mail, 0, 4);
	struct ibv_send_wr wr = wr_send(2, &out, 1);
	struct ibv_mw_bind bind = { 1, 0, mw_part(&r.dst, 0, PAGE, MW_RW) };
	uint32_t old = r.mw->rkey;

	REQUIRE_OK(post_recv(&r.p.a, 3, &in, 1));
	REQUIRE_OK(ibv_bind_mw(r.p.b.qp, r.mw, &bind));
	CHECK(r.mw->rkey != old);
	memcpy(mail.addr, &r.mw->rkey, 4);
	REQUIRE_OK(post_send(&r.p.b, &wr));
	poll_ok(r.p.a.recv_cq, 3);
	CHECK_EQ(write_key(&r, PAGE, *(uint32_t *)r.src.addr), IBV_WC_SUCCESS);
	poll_ok(r.p.b.send_cq, 2);
	/* Bound again while bound; length 0 unbinds. */
	old = r.mw->rkey;
	bind.send_flags = IBV_SEND_SIGNALED;
	REQUIRE_OK(ibv_bind_mw(r.p.b.qp, r.mw, &bind));
	CHECK_EQ(poll_ok(r.p.b.send_cq, 1).opcode, IBV_WC_BIND_MW);
	CHECK(r.mw->rkey != old);
	CHECK_EQ(write_key(&r, 1, r.mw->rkey), IBV_WC_SUCCESS);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, (struct ibv_mw_bind_info){ .mr = NULL }), IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST(wrong_verb, "F-036 F-037 F-022 binds that are refused: type 1, unknown rights, the null MR")
{
	struct rig one = rig_new(IBV_MW_TYPE_1), two = rig_new(IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = { .bind_info = mw_part(&one.dst, 0, 10, MW_RW) };
	struct ibv_send_wr wr = wr_send(1, NULL, 0), *bad = NULL;
	struct ibv_mw_bind_info info = bind.bind_info;
	uint32_t key = one.mw->rkey;
	struct ibv_qp_ex *q;

	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = one.mw;
	wr.bind_mw.rkey = ibv_inc_rkey(key);
	wr.bind_mw.bind_info = info;
	CHECK_ERR(ibv_post_send(one.p.b.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	q = wr_start(&one.p.b, 1);
	ibv_wr_bind_mw(q, one.mw, ibv_inc_rkey(key), &info);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	CHECK_ERR(ibv_bind_mw(one.p.b.qp, one.mw, &bind), EINVAL);
	if (one.p.dev->qhca) {
		bind.bind_info.mw_access_flags = MW_RW;
		bind.bind_info.mr = ibv_alloc_null_mr(one.p.dev->pd);
		REQUIRE(bind.bind_info.mr);
		CHECK_ERR(ibv_bind_mw(one.p.b.qp, one.mw, &bind), EINVAL);
	}
	CHECK_EQ(one.mw->rkey, key);
	info = mw_part(&two.dst, 0, 10, IBV_ACCESS_MW_BIND);
	q = wr_start(&two.p.b, 1);
	ibv_wr_bind_mw(q, two.mw, ibv_inc_rkey(two.mw->rkey), &info);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
}

/* ---- the end of a window ---- */

TEST(send_inv, "B-003 B-070 SEND_WITH_INV, posted in both ways, and its completion")
{
	struct rig r = rig_new(IBV_MW_TYPE_2);
	struct ibv_send_wr wr = wr_send(5, NULL, 0);
	struct ibv_qp_ex *q;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
		REQUIRE_OK(post_recv(&r.p.b, 6, NULL, 0));
		if (i) {
			q = wr_start(&r.p.a, 5);
			ibv_wr_send_inv(q, r.mw->rkey);
			REQUIRE_OK(ibv_wr_complete(q));
		} else {
			wr.opcode = IBV_WR_SEND_WITH_INV;
			wr.invalidate_rkey = r.mw->rkey;
			REQUIRE_OK(post_send(&r.p.a, &wr));
		}
		CHECK_EQ(poll_ok(r.p.a.send_cq, 5).opcode, IBV_WC_SEND);
		wc = poll_ok(r.p.b.recv_cq, 6);
		CHECK_EQ(wc.wc_flags, IBV_WC_WITH_INV);
		CHECK_EQ(wc.invalidated_rkey, r.mw->rkey);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
	}
	CHECK_EQ(write_key(&r, 1, r.mw->rkey), IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST(local_inv_wr, "B-010 ibv_wr_local_inv()")
{
	struct rig r = rig_new(IBV_MW_TYPE_2);
	struct ibv_qp_ex *q;

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	q = wr_start(&r.p.b, 7);
	ibv_wr_local_inv(q, r.mw->rkey);
	REQUIRE_OK(ibv_wr_complete(q));
	CHECK_EQ(poll_ok(r.p.b.send_cq, 7).opcode, IBV_WC_LOCAL_INV);
	CHECK_EQ(write_key(&r, 1, r.mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

static const struct {
	const char *name;
	enum ibv_mw_type type;
} mw_types[] = {
	{ "type 1", IBV_MW_TYPE_1 },
	{ "type 2", IBV_MW_TYPE_2 },
};

/* A refused deregistration leaves a region that can be used. */
TEST_ROWS(busy, "F-009 F-038 F-052 F-054 J-018 what a window keeps from being destroyed", mw_types)
{
	struct rig r = rig_new(row->type);
	struct ibv_pd *pd = ibv_alloc_pd(r.p.dev->ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, row->type);

	REQUIRE(mw);
	CHECK_ERR(ibv_dealloc_pd(pd), EBUSY);
	CHECK_ERR(ibv_dealloc_mw(mw), 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), EBUSY);
	CHECK_EQ(write_key(&r, 1, r.mw->rkey), IBV_WC_SUCCESS);
	CHECK_ERR(ibv_destroy_qp(r.p.b.qp), 0);
	CHECK_ERR(ibv_dealloc_mw(r.mw), 0);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}
