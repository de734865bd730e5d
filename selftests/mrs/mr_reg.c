// SPDX-License-Identifier: GPL-2.0
/* Registrations that are refused and leave nothing behind, and the null MR, which is none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "lib/rdma.h"

#define PAGE	4096

static const struct {
	const char *name;
	int access, err;
} bad_access[] = {
	{ "remote write without local write", IBV_ACCESS_REMOTE_WRITE, EINVAL },
	{ "remote atomic without local write", IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
	{ "unknown bit", IBV_ACCESS_LOCAL_WRITE | 1 << 15, EINVAL },
};

TEST_ROWS(flags, "F-002 F-018 access flags that are refused", bad_access)
{
	struct dev *d = dev_open_qhca();
	static char page[PAGE];

	errno = 0;
	CHECK(!ibv_reg_mr(d->pd, page, sizeof(page), row->access));
	CHECK_EQ(errno, row->err);
}

/* Returns how much memory the kernel has pinned for this process, in kB. */
static long pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

TEST(unmapped, "F-015 memory that is not mapped")
{
	struct dev *d = dev_open();
	uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buf b;
	long before;
	int i;

	REQUIRE(p != MAP_FAILED);
	b = buf_new(d->pd, PAGE, LOCAL);
	munmap(p + 2 * PAGE, PAGE);
	before = pinned();
	CHECK(before > 0);
	for (i = 0; i < 100; i++) {
		errno = 0;
		CHECK(!ibv_reg_mr(d->pd, p, 4 * PAGE, LOCAL));
		CHECK_EQ(errno, EFAULT);
	}
	CHECK(!ibv_reg_mr(d->pd, NULL, PAGE, LOCAL));
	CHECK(!ibv_reg_mr(d->pd, p, -PAGE, LOCAL));
	CHECK_EQ(pinned(), before);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	CHECK(pinned() < before);
}

/* ---- the null MR ---- */

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

TEST(null_data, "F-022 null MR: data sent from it is zero, data received into it is dropped")
{
	struct dev *d = dev_open_qhca();
	struct ibv_mr *null = ibv_alloc_null_mr(d->pd);
	struct buf src = buf_new(d->pd, PAGE, LOCAL), dst = buf_new(d->pd, PAGE, LOCAL);
	struct ibv_sge nothing = { .addr = 0x1234, .length = 500 };
	struct ibv_sge out[2], in[2];
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct pair p;

	REQUIRE(null);
	o.send_sge = 2;
	o.recv_sge = 2;
	p = pair_new(d, &o, &CONN);
	nothing.lkey = null->lkey;
	fill(src.addr, src.len, 1);
	fill(dst.addr, dst.len, 2);
	out[0] = nothing;
	out[1] = buf_sge(&src, 0, 1000);
	in[0] = buf_sge(&dst, 0, 1000);
	in[1] = nothing;
	wr = wr_send(1, out, 2);
	REQUIRE_OK(post_recv(&p.b, 2, in, 2));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, 1500);
	CHECK(!dst.addr[0] && !memcmp(dst.addr, dst.addr + 1, 499));
	check_fill(dst.addr + 500, 500, 1, "sent");
}
