// SPDX-License-Identifier: GPL-2.0
/* The null MR: data sent from it is zero, data received or read into it is dropped. */
#include "lib/window.h"

#define PAGE	4096

struct rig {
	struct pair p;
	struct buf src, dst;
	struct ibv_mr *null;
};

static struct rig rig_new(enum ibv_qp_type type)
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct rig r = {};

	o.type = type;
	o.send_sge = 3;
	o.recv_sge = 3;
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	r.p = pair_new(d, &o, &c);
	r.src = buf_new(d->pd, 2 * PAGE, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	r.dst = buf_new(d->pd, 2 * PAGE, REMOTE);
	fill(r.src.addr, r.src.len, 1);
	fill(r.dst.addr, r.dst.len, 2);
	r.null = ibv_alloc_null_mr(d->pd);
	REQUIRE(r.null);
	return r;
}

static struct ibv_sge null_sge(const struct rig *r, uint32_t len)
{
	return (struct ibv_sge){ .addr = 0x1234, .length = len, .lkey = r->null->lkey };
}

static void check_zero(const uint8_t *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	CHECK_EQ(len, 0);
}

TEST(object, "F-022 F-018 null MR: only an L_Key, any length")
{
	struct dev *d = dev_open_qhca();
	struct ibv_mr *mr = ibv_alloc_null_mr(d->pd);

	REQUIRE(mr);
	CHECK(mr->lkey != 0);
	CHECK_EQ(mr->rkey, 0);
	CHECK(mr->length == SIZE_MAX);
	CHECK(mr->pd == d->pd);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL));
	CHECK_ERR(ibv_dereg_mr(mr), 0);
}

/* As perftest does, which has mlx5 in mind. */
TEST(given_up, "F-022 null MRs hold no PD, can go in any order, and need not be deregistered")
{
	struct dev *d = dev_open_qhca();
	struct ibv_context *ctx = ibv_open_device(d->ctx->device);
	struct ibv_pd *pd[2] = { ibv_alloc_pd(ctx), ibv_alloc_pd(ctx) };
	struct ibv_mr *mr[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		mr[i] = ibv_alloc_null_mr(pd[i % 2]);
		REQUIRE(mr[i]);
		CHECK(mr[i]->pd == pd[i % 2]);
		CHECK_EQ(mr[i]->lkey, mr[0]->lkey);
	}
	CHECK_ERR(ibv_dereg_mr(mr[1]), 0);
	CHECK_ERR(ibv_dealloc_pd(pd[0]), 0);
	CHECK_ERR(ibv_dealloc_pd(pd[1]), 0);
	CHECK_ERR(ibv_dereg_mr(mr[2]), 0);
	CHECK_ERR(ibv_close_device(ctx), 0);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
};

TEST_ROWS(message, "F-022 null MR in the middle of a message, on either side", types)
{
	struct rig r = rig_new(row->type);
	struct ibv_sge out[] = { buf_sge(&r.src, 0, 100), null_sge(&r, 3000),
				 buf_sge(&r.src, 100, 900) };
	struct ibv_sge in[] = { buf_sge(&r.dst, 0, 200), null_sge(&r, 1800),
				buf_sge(&r.dst, 200, 2000) };
	struct ibv_send_wr wr = wr_send(1, out, 3);

	REQUIRE_OK(post_recv(&r.p.b, 2, in, 3));
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_ok(r.p.a.send_cq, 1);
	CHECK_EQ(poll_ok(r.p.b.recv_cq, 2).byte_len, 4000);
	check_fill(r.dst.addr, 100, 1, "sent");
	check_zero(r.dst.addr + 100, 100 + 1100);
	CHECK(!memcmp(r.dst.addr + 1300, r.src.addr + 100, 900));
}

TEST(remote, "F-022 null MR: WRITE sends zeros, READ and atomic results are dropped")
{
	struct rig r = rig_new(IBV_QPT_RC);
	uint64_t *word = (uint64_t *)r.src.addr, before = *word;
	struct ibv_sge sge = null_sge(&r, 2 * PAGE);
	struct ibv_send_wr wr;

	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)r.dst.addr, r.dst.mr->rkey);
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_ok(r.p.a.send_cq, 1);
	check_zero(r.dst.addr, r.dst.len);
	wr = wr_rdma(2, IBV_WR_RDMA_READ, &sge, 1, (uintptr_t)r.src.addr, r.src.mr->rkey);
	REQUIRE_OK(post_send(&r.p.a, &wr));
	CHECK_EQ(poll_ok(r.p.a.send_cq, 2).byte_len, 2 * PAGE);
	sge.length = 8;
	wr = wr_rdma(3, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 0, 0);
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = r.src.mr->rkey;
	wr.wr.atomic.compare_add = 5;
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_ok(r.p.a.send_cq, 3);
	CHECK_EQ(*word, before + 5);
}

TEST(largest, "F-022 B-026 null MR: a message of 2^31 bytes without memory")
{
	const uint32_t len = 1u << 31;
	struct rig r = rig_new(IBV_QPT_RC);
	struct ibv_sge out = null_sge(&r, len), in = null_sge(&r, len);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	test_timeout(180);
	REQUIRE_OK(post_recv(&r.p.b, 2, &in, 1));
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_ok(r.p.a.send_cq, 1);
	CHECK_EQ(poll_ok(r.p.b.recv_cq, 2).byte_len, len);
}

TEST(refused, "F-022 null MR: no remote access, no window")
{
	struct rig r = rig_new(IBV_QPT_RC);
	struct ibv_mw *mw = mw_new(r.p.dev, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.bind_info = { .mr = r.null, .length = 8, .mw_access_flags = MW_RW },
	};

	CHECK_ERR(ibv_bind_mw(r.p.b.qp, mw, &bind), EINVAL);
	CHECK_EQ(rdma(&r.p.a, IBV_WR_RDMA_READ, &r.dst, 8, NULL, r.null->lkey),
		 IBV_WC_REM_ACCESS_ERR);
	check_fill(r.dst.addr, r.dst.len, 2, "local");
}
