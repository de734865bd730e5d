// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: binding, use, invalidation, and objects that they keep from being destroyed. The
 * window is bound on end b of a pair, and end a uses it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/window.h"

#define PAGE	4096

static const struct mw_type {
	const char *name;
	enum ibv_mw_type type;
} mw_types[] = {
	{ "type 1", IBV_MW_TYPE_1 },
	{ "type 2", IBV_MW_TYPE_2 },
};

struct rig {
	struct pair p;
	struct buf src, dst;	/* dst: bindable, without remote rights */
	struct ibv_mw *mw;
};

static struct rig rig_new(enum ibv_mw_type type)
{
	struct dev *d = dev_open_mw(type);
	struct conn c = CONN;
	struct rig r = {};

	c.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		   IBV_ACCESS_REMOTE_ATOMIC;
	r.p = pair_new(d, &QP_OPTS, &c);
	r.src = buf_new(d->pd, 2 * PAGE, LOCAL);
	r.dst = buf_new(d->pd, 2 * PAGE, BINDABLE);
	r.mw = mw_new(d, type);
	fill(r.src.addr, r.src.len, 1);
	fill(r.dst.addr, r.dst.len, 2);
	return r;
}

static enum ibv_wc_status write_mw(struct rig *r, size_t off, uint32_t len)
{
	return rdma(&r->p.a, IBV_WR_RDMA_WRITE, &r->src, len, r->dst.addr + off,
		    r->mw->rkey);
}

TEST(caps, "F-035 J-004 of type 2 only 2B is offered, and windows can be allocated")
{
	struct dev *d = dev_open_qhca();
	const unsigned int type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	CHECK(d->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	CHECK_EQ(d->attr.device_cap_flags & type_2, IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	CHECK(d->attr.max_mw >= 4096);
}

TEST(alloc_bad, "F-035 window types that do not exist")
{
	struct dev *d = dev_open_mw(IBV_MW_TYPE_1);
	const int bad[] = { 0, 3, 255 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		CHECK(!ibv_alloc_mw(d->pd, bad[i]));
		CHECK_EQ(errno, EINVAL);
	}
}

TEST_ROWS(alloc, "F-035 F-052 a window is unusable until bound; freed bound or not", mw_types)
{
	struct rig r = rig_new(row->type);
	struct ibv_mw *other = mw_new(r.p.dev, row->type);

	uint32_t key;

	CHECK_ERR(ibv_dealloc_mw(other), 0);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_EQ(write_mw(&r, 0, 1), IBV_WC_SUCCESS);
	key = r.mw->rkey;
	CHECK_ERR(ibv_dealloc_mw(r.mw), 0);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 1, r.dst.addr, key),
		 IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST_ROWS(unbound, "F-035 the key of a window that is not bound", mw_types)
{
	struct rig r = rig_new(row->type);

	CHECK_EQ(write_mw(&r, 0, 1), IBV_WC_REM_ACCESS_ERR);
	check_fill(r.dst.addr, r.dst.len, 2, "window");
}

TEST_ROWS(use, "F-048 F-036 F-037 B-009 data through a window", mw_types)
{
	struct rig r = rig_new(row->type);
	struct buf back = buf_new(r.p.dev->pd, PAGE, LOCAL);
	struct ibv_wc wc;
	struct ibv_mw_bind bind = { 7, IBV_SEND_SIGNALED,
				    mw_part(&r.dst, 10, PAGE, MW_RW) };

	if (row->type == IBV_MW_TYPE_1) {
		REQUIRE_OK(ibv_bind_mw(r.p.b.qp, r.mw, &bind));
		wc = poll_ok(r.p.b.send_cq, 7);
		CHECK_EQ(wc.opcode, IBV_WC_BIND_MW);
	} else {
		CHECK_EQ(mw_bind(&r.p.b, r.mw, bind.bind_info), IBV_WC_SUCCESS);
	}
	CHECK_EQ(write_mw(&r, 10, PAGE), IBV_WC_SUCCESS);
	check_fill(r.dst.addr + 10, PAGE, 1, "written");
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_READ, &back, PAGE, r.dst.addr + 10,
		      r.mw->rkey), IBV_WC_SUCCESS);
	check_fill(back.addr, PAGE, 1, "read");
	/* The region's own key gives the peer no rights. */
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 1, r.dst.addr,
		      r.dst.mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

static const struct {
	const char *name;
	int access;
	enum ibv_wr_opcode opcode;
	long off;
	uint32_t len;
} refused[] = {
	{ "a byte before the start", MW_RW, IBV_WR_RDMA_WRITE, -1, 2 },
	{ "a byte behind the end", MW_RW, IBV_WR_RDMA_WRITE, 1, PAGE },
	{ "all of the address space", MW_RW, IBV_WR_RDMA_WRITE, 0, 0 },
	{ "write, right to read", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 1 },
	{ "read, right to write", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 1 },
	{ "atomic, right to write", MW_RW, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
	{ "no right", 0, IBV_WR_RDMA_READ, 0, 1 },
};

TEST_ROWS(exact, "F-048 I-007 range and rights of a window", refused)
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	uint32_t len = row->len;

	if (row->name[0] == 'a' && !len)
		len = 2 * PAGE;
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 64, PAGE, row->access)),
		 IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, row->opcode, &r.src, len, r.dst.addr + 64 + row->off,
		      r.mw->rkey), IBV_WC_REM_ACCESS_ERR);
	check_fill(r.dst.addr, r.dst.len, 2, "region");
}

TEST(rebind, "F-036 type 1: bound again while bound, and unbound by length 0")
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	uint32_t old;

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, 100, MW_RW)), 0);
	old = r.mw->rkey;
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 100, 100, MW_RW)), 0);
	CHECK(r.mw->rkey != old);
	CHECK_EQ(write_mw(&r, 100, 100), IBV_WC_SUCCESS);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, 0, 0)), 0);
	CHECK_EQ(write_mw(&r, 100, 1), IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST(old_key, "F-036 type 1: a bind makes the old key invalid")
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	uint32_t old;

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, 100, MW_RW)), 0);
	old = r.mw->rkey;
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, 100, MW_RW)), 0);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 1, r.dst.addr, old),
		 IBV_WC_REM_ACCESS_ERR);
}

TEST(wrong_verb, "F-036 F-037 each type has its own verb for binding")
{
	struct rig one = rig_new(IBV_MW_TYPE_1);
	struct ibv_send_wr wr = wr_send(1, NULL, 0), *bad = NULL;
	struct ibv_mw_bind bind = { .bind_info = mw_part(&one.dst, 0, 10, MW_RW) };

	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = one.mw;
	wr.bind_mw.rkey = ibv_inc_rkey(one.mw->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	CHECK_ERR(ibv_post_send(one.p.b.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	CHECK_ERR(ibv_bind_mw(one.p.b.qp, one.mw, &bind), EINVAL);
}

TEST(zero_based, "F-037 type 2, ZERO_BASED: addresses count from the window's start")
{
	struct rig r = rig_new(IBV_MW_TYPE_2);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 100, 200, MW_RW |
					       IBV_ACCESS_ZERO_BASED)), 0);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 200, NULL, r.mw->rkey),
		 IBV_WC_SUCCESS);
	check_fill(r.dst.addr + 100, 200, 1, "written");
	CHECK_EQ(write_mw(&r, 100, 1), IBV_WC_REM_ACCESS_ERR);
}

enum mistake { NO_BIND, READ_ONLY, ZERO_MR, OTHER_PD, BEYOND, BEFORE, BOUND, EMPTY };

static const struct {
	const char *name;
	enum mistake mistake;
	enum ibv_mw_type type;
} mistakes[] = {
	{ "F-039 region without the right, type 1", NO_BIND, IBV_MW_TYPE_1 },
	{ "F-039 region without the right, type 2", NO_BIND, IBV_MW_TYPE_2 },
	{ "F-039 write right on a region to read, type 1", READ_ONLY, IBV_MW_TYPE_1 },
	{ "F-039 write right on a region to read, type 2", READ_ONLY, IBV_MW_TYPE_2 },
	{ "F-039 zero-based region", ZERO_MR, IBV_MW_TYPE_2 },
	{ "F-039 region of another PD", OTHER_PD, IBV_MW_TYPE_2 },
	{ "F-039 beyond the region, type 1", BEYOND, IBV_MW_TYPE_1 },
	{ "F-039 beyond the region, type 2", BEYOND, IBV_MW_TYPE_2 },
	{ "F-039 before the region", BEFORE, IBV_MW_TYPE_1 },
	{ "F-037 bound already, type 2", BOUND, IBV_MW_TYPE_2 },
	{ "F-037 length 0, type 2", EMPTY, IBV_MW_TYPE_2 },
};

TEST_ROWS(bind_bad, "I-034 a bind that is not allowed", mistakes)
{
	struct rig r = rig_new(row->type);
	struct ibv_pd *pd = row->mistake == OTHER_PD ?
			    ibv_alloc_pd(r.p.dev->ctx) : r.p.dev->pd;
	int access = row->mistake == NO_BIND ? LOCAL :
		     row->mistake == READ_ONLY ? IBV_ACCESS_MW_BIND :
		     row->mistake == ZERO_MR ? BINDABLE | IBV_ACCESS_ZERO_BASED :
		     BINDABLE;
	struct buf dst = buf_new(pd, PAGE, access);
	struct ibv_mw_bind_info info = mw_part(&dst, 0, PAGE, MW_RW);

	if (row->mistake == ZERO_MR)
		info.addr = 0;
	else if (row->mistake == BEYOND)
		info.length++;
	else if (row->mistake == BEFORE)
		info.addr--;
	else if (row->mistake == EMPTY)
		info.length = 0;
	else if (row->mistake == BOUND)
		CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, 10, MW_RW)), 0);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, info), IBV_WC_MW_BIND_ERR);
	CHECK(wait_state(r.p.b.qp, IBV_QPS_ERR));
}

TEST_ROWS(behind, "F-040 a SEND after the bind passes the key to the peer", mw_types)
{
	struct rig r = rig_new(row->type);
	struct buf mail = buf_new(r.p.dev->pd, 64, LOCAL);
	struct ibv_sge in = buf_sge(&r.src, 0, 64), out = buf_sge(&mail, 0, 4);
	struct ibv_send_wr wr = wr_send(2, &out, 1);
	struct ibv_mw_bind bind = { 1, 0, mw_part(&r.dst, 0, PAGE, MW_RW) };
	struct ibv_send_wr bwr = wr_send(1, NULL, 0);

	REQUIRE_OK(post_recv(&r.p.a, 3, &in, 1));
	if (row->type == IBV_MW_TYPE_1) {
		REQUIRE_OK(ibv_bind_mw(r.p.b.qp, r.mw, &bind));
	} else {
		bwr.opcode = IBV_WR_BIND_MW;
		bwr.send_flags = 0;
		bwr.bind_mw.mw = r.mw;
		bwr.bind_mw.rkey = ibv_inc_rkey(r.mw->rkey);
		bwr.bind_mw.bind_info = bind.bind_info;
		REQUIRE_OK(post_send(&r.p.b, &bwr));
		r.mw->rkey = bwr.bind_mw.rkey;
	}
	memcpy(mail.addr, &r.mw->rkey, 4);
	REQUIRE_OK(post_send(&r.p.b, &wr));
	poll_ok(r.p.a.recv_cq, 3);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, PAGE, r.dst.addr,
		      *(uint32_t *)r.src.addr), IBV_WC_SUCCESS);
	poll_ok(r.p.b.send_cq, 2);
}

TEST(overlap, "F-041 several windows on one region, each with its rights")
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	struct ibv_mw *ro = mw_new(r.p.dev, IBV_MW_TYPE_1);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_EQ(mw_bind(&r.p.b, ro, mw_part(&r.dst, 10, PAGE,
					     IBV_ACCESS_REMOTE_READ)), 0);
	CHECK_EQ(write_mw(&r, 10, 100), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_READ, &r.src, 100, r.dst.addr + 10,
		      ro->rkey), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_WRITE, &r.src, 100, r.dst.addr + 10,
		      ro->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_ROWS(other_qp, "F-045 F-047 I-011 a window used through another QP", mw_types)
{
	struct rig r = rig_new(row->type);
	struct conn c = CONN;
	struct pair other = pair_new(r.p.dev, &QP_OPTS, &c);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_EQ(rdma(&other.a, IBV_WR_RDMA_WRITE, &r.src, 100, r.dst.addr,
		      r.mw->rkey),
		 row->type == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(write_mw(&r, 0, 100), IBV_WC_SUCCESS);
}

TEST_ROWS(uc, "B-009 B-010 I-043 I-034 windows on UC", mw_types)
{
	struct dev *d = dev_open_mw(row->type);
	struct qp_opts o = QP_OPTS;
	struct rig r = {};

	o.type = IBV_QPT_UC;
	r.p = pair_new(d, &o, &CONN);
	r.src = buf_new(d->pd, PAGE, LOCAL);
	r.dst = buf_new(d->pd, 2 * PAGE, BINDABLE);
	r.mw = mw_new(d, row->type);
	fill(r.src.addr, PAGE, 1);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_EQ(write_mw(&r, 0, PAGE), IBV_WC_SUCCESS);
	CHECK_EQ(write_mw(&r, PAGE, PAGE), IBV_WC_SUCCESS);	/* dropped by the peer */
	CHECK_EQ(write_mw(&r, 0, PAGE), IBV_WC_SUCCESS);
	sleep_ms(QUIET_MS);
	check_fill(r.dst.addr, PAGE, 1, "written");
	CHECK_EQ(r.dst.addr[PAGE], 0);
	if (row->type == IBV_MW_TYPE_2)
		CHECK_EQ(local_inv(&r.p.b, r.mw->rkey), IBV_WC_SUCCESS);
	CHECK_EQ(local_inv(&r.p.b, r.src.mr->rkey), IBV_WC_MW_BIND_ERR);
	CHECK(wait_state(r.p.b.qp, IBV_QPS_SQE));
}

TEST_ROWS(dereg, "F-009 a region cannot be deregistered while a window is bound to it", mw_types)
{
	struct rig r = rig_new(row->type);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), EBUSY);
	CHECK_EQ(write_mw(&r, 0, PAGE), IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dealloc_mw(r.mw), 0);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST_ROWS(destroy_qp, "F-054 destroying a QP with a window bound on it", mw_types)
{
	struct rig r = rig_new(row->type);

	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 0, PAGE, MW_RW)), 0);
	CHECK_ERR(ibv_destroy_qp(r.p.b.qp), 0);
	CHECK_ERR(ibv_dealloc_mw(r.mw), 0);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST(pd, "F-038 J-018 a PD cannot be freed while it has a window")
{
	struct dev *d = dev_open_mw(IBV_MW_TYPE_1);
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	REQUIRE(mw);
	CHECK_ERR(ibv_dealloc_pd(pd), EBUSY);
	CHECK_ERR(ibv_dealloc_mw(mw), 0);
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

struct hammer {
	struct rig *r;
	atomic_uint key;
	atomic_bool stop;
	unsigned int ok, refused;
};

/* Writes with the current key; makes a new pair when a write fails. */
static void *hammer(void *arg)
{
	struct hammer *h = arg;
	struct pair p = pair_new(h->r->p.dev, &QP_OPTS, &CONN);
	enum ibv_wc_status status;

	while (!atomic_load(&h->stop)) {
		status = rdma(&p.a, IBV_WR_RDMA_WRITE, &h->r->src, PAGE,
			      h->r->dst.addr + 2000, atomic_load(&h->key));
		if (status == IBV_WC_SUCCESS) {
			h->ok++;
			continue;
		}
		CHECK_EQ(status, IBV_WC_REM_ACCESS_ERR);
		h->refused++;
		ibv_destroy_qp(p.a.qp);
		ibv_destroy_qp(p.b.qp);
		p = pair_new(h->r->p.dev, &QP_OPTS, &CONN);
	}
	return NULL;
}

TEST(traffic, "F-055 rebinding under traffic: a request sees the old or the new window")
{
	struct rig r = rig_new(IBV_MW_TYPE_1);
	struct hammer h = { .r = &r };
	int64_t end = time_ms() + 3000;
	pthread_t t;
	int n = 0;

	test_timeout(120);
	CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 2000, PAGE, MW_RW)), 0);
	atomic_store(&h.key, r.mw->rkey);
	REQUIRE(!pthread_create(&t, NULL, hammer, &h));
	while (time_ms() < end || (!h.refused && time_ms() < end + 20000)) {
		/* Every second window is too small for the message. */
		size_t len = n++ % 2 ? PAGE : PAGE - 1;

		CHECK_EQ(mw_bind(&r.p.b, r.mw, mw_part(&r.dst, 2000, len, MW_RW)), 0);
		atomic_store(&h.key, r.mw->rkey);
		sleep_ms(n % 5);
	}
	atomic_store(&h.stop, true);
	pthread_join(t, NULL);
	CHECK(h.ok > 0 && h.refused > 0);
	check_fill(r.dst.addr, 2000, 2, "before the window");
	check_fill(r.dst.addr + 2000, PAGE, 1, "window");
	fill(r.src.addr, r.src.len, 2);
	CHECK(!memcmp(r.dst.addr + 2000 + PAGE, r.src.addr + 2000 + PAGE,
		      r.dst.len - 2000 - PAGE));
}
