// SPDX-License-Identifier: GPL-2.0
/* Memory regions: what can be registered, and the exact bounds of access. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/rdma.h"

#define PAGE	4096

static void *map(size_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static enum ibv_wc_status do_wr(struct pair *p, struct ibv_send_wr wr)
{
	REQUIRE_OK(post_send(&p->a, &wr));
	return poll_get(p->a.send_cq).status;
}

/* Writes by RDMA WRITE from @src to @addr with @rkey. */
static enum ibv_wc_status write_to(struct pair *p, struct buf *src,
				   uint32_t len, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = buf_sge(src, 0, len);

	return do_wr(p, wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, addr, rkey));
}

static enum ibv_wc_status read_from(struct pair *p, struct buf *dst,
				    uint32_t len, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = buf_sge(dst, 0, len);

	return do_wr(p, wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1, addr, rkey));
}

static const struct {
	const char *name;
	size_t off, len;
} shapes[] = {
	{ "1 byte, first of a page", 0, 1 },
	{ "1 byte, last of a page", PAGE - 1, 1 },
	{ "2 bytes across pages", PAGE - 1, 2 },
	{ "odd start and length in a page", 17, 333 },
	{ "a page", 0, PAGE },
	{ "a page and a byte", 0, PAGE + 1 },
	{ "a page less a byte", 1, PAGE - 1 },
	{ "a page's length, unaligned", 1, PAGE },
	{ "513 pages, unaligned", 123, 513 * PAGE },
	{ "700001 bytes, unaligned", 4001, 700001 },
};

TEST_ROWS(shape, "F-014 MRs of any place and size have exact bounds", shapes)
{
	struct pair p = pair_default();
	size_t room = row->off + row->len + PAGE;
	struct buf src = buf_new(p.dev->pd, row->len, LOCAL);
	struct buf back = buf_new(p.dev->pd, row->len, LOCAL);
	uint8_t *mem = map(room, PROT_READ | PROT_WRITE, 0);
	struct ibv_mr *mr;

	REQUIRE(mem);
	fill(mem, room, 1);
	fill(src.addr, src.len, 2);
	mr = ibv_reg_mr(p.dev->pd, mem + row->off, row->len, REMOTE);
	REQUIRE(mr);
	CHECK_EQ(write_to(&p, &src, row->len, (uintptr_t)mem + row->off,
			  mr->rkey), IBV_WC_SUCCESS);
	check_fill(mem + row->off, row->len, 2, "written");
	CHECK_EQ(read_from(&p, &back, row->len, (uintptr_t)mem + row->off,
			   mr->rkey), IBV_WC_SUCCESS);
	check_fill(back.addr, row->len, 2, "read back");
	/* Bytes around the MR are unchanged. */
	memset(mem + row->off, 0, row->len);
	fill(src.addr, row->off, 1);
	check_fill(mem, row->off, 1, "before");
	check_fill(mem + row->off + row->len, 0, 1, "after");
	CHECK_ERR(ibv_dereg_mr(mr), 0);
}

enum side { REMOTE_SIDE, LOCAL_SIDE };

static const struct {
	const char *name;
	enum side side;
	long off;	/* offset from the start of the MR */
	uint32_t len;
	bool ok;
} ranges[] = {
	{ "all of it, remote", REMOTE_SIDE, 0, 5000, true },
	{ "last byte, remote", REMOTE_SIDE, 4999, 1, true },
	{ "one byte too far, remote", REMOTE_SIDE, 0, 5001, false },
	{ "only the byte behind the end, remote", REMOTE_SIDE, 5000, 1, false },
	{ "starts one byte early, remote", REMOTE_SIDE, -1, 2, false },
	{ "only the byte before the start, remote", REMOTE_SIDE, -1, 1, false },
	{ "whole pages around it, remote", REMOTE_SIDE, -100, 8192, false },
	{ "wraps the address space, remote", REMOTE_SIDE, 0, 0xfffff000, false },
	{ "all of it, local", LOCAL_SIDE, 0, 5000, true },
	{ "one byte too far, local", LOCAL_SIDE, 0, 5001, false },
	{ "only the byte behind the end, local", LOCAL_SIDE, 5000, 1, false },
	{ "starts one byte early, local", LOCAL_SIDE, -1, 2, false },
};

TEST_ROWS(range, "F-004 I-002 I-007 bounds of an MR", ranges)
{
	struct pair p = pair_default();
	struct buf other = buf_new(p.dev->pd, 16384, REMOTE);
	uint8_t *mem = map(5 * PAGE, PROT_READ | PROT_WRITE, 0);
	uint8_t *start = mem + PAGE + 100;
	struct ibv_mr *mr = ibv_reg_mr(p.dev->pd, start, 5000, REMOTE);
	struct ibv_sge sge = buf_sge(&other, 0, row->len);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)start + row->off, mr->rkey);

	REQUIRE(mem && mr);
	fill(mem, 5 * PAGE, 3);
	fill(other.addr, other.len, 4);
	if (row->side == LOCAL_SIDE) {
		sge.addr = (uintptr_t)start + row->off;
		sge.lkey = mr->lkey;
		wr.wr.rdma.remote_addr = (uintptr_t)other.addr;
		wr.wr.rdma.rkey = other.mr->rkey;
	} else if (row->len > other.len) {
		/* A READ of that length does not need local memory of the same size. */
		sge.length = 8192;
		wr.wr.rdma.remote_addr = -4096ull;
	}
	REQUIRE_OK(post_send(&p.a, &wr));
	if (row->ok)
		poll_ok(p.a.send_cq, 1);
	else if (row->side == LOCAL_SIDE)
		poll_expect(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	else
		poll_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	/* D-065: a violation writes no byte at the peer. */
	if (!row->ok)
		check_fill(mem, 5 * PAGE, 3, "memory under the MR");
}

#define SLOT	(5 * PAGE)
#define SLOTS	8

/* struct arrivals - what the thread of the receiver looks at, and at how many bad messages */
struct arrivals {
	struct ibv_cq *cq;
	const uint8_t *slots;
	uint32_t seed;
	int bad;
};

/* Looks at each message as soon as there is a CQE, while others come in. */
static void *look(void *arg)
{
	struct arrivals *a = arg;
	struct ibv_wc wc;
	int i, n;

	for (i = 0; i < SLOTS; i++) {
		while (!(n = ibv_poll_cq(a->cq, 1, &wc)))
			continue;
		a->bad += n < 0 || wc.status || (int)wc.wr_id != i ||
			  find_bad(a->slots + i * SLOT, SLOT, a->seed + i) >= 0;
	}
	return NULL;
}

TEST(hints, "F-002 F-019 relaxed ordering is taken, and a CQE still means that the data is there")
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, SLOTS * SLOT, LOCAL);
	struct buf dst = buf_new(p.dev->pd, SLOTS * SLOT, REMOTE | IBV_ACCESS_RELAXED_ORDERING);
	struct arrivals a = { .cq = p.b.recv_cq, .slots = dst.addr };
	pthread_t thread;
	int i, round;

	for (round = 0; round < 20; round++) {
		a.seed = round;
		for (i = 0; i < SLOTS; i++) {
			fill(src.addr + i * SLOT, SLOT, round + i);
			REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
		}
		REQUIRE_OK(pthread_create(&thread, NULL, look, &a));
		for (i = 0; i < SLOTS; i++) {
			struct ibv_sge sge = buf_sge(&src, i * SLOT, SLOT);
			struct ibv_send_wr wr = wr_rdma(i, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1,
							(uintptr_t)dst.addr + i * SLOT,
							dst.mr->rkey);

			REQUIRE_OK(post_send(&p.a, &wr));
		}
		REQUIRE_OK(pthread_join(thread, NULL));
		for (i = 0; i < SLOTS; i++)
			poll_ok(p.a.send_cq, i);
	}
	CHECK_EQ(a.bad, 0);
}

TEST(read_only, "F-003 F-015 a read-only mapping can be sent, not written")
{
	struct pair p = pair_default();
	struct buf dst = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf src = { .len = PAGE };

	src.addr = map(PAGE, PROT_READ | PROT_WRITE, 0);
	REQUIRE(src.addr);
	fill(src.addr, PAGE, 5);
	REQUIRE(!mprotect(src.addr, PAGE, PROT_READ));
	errno = 0;
	CHECK(!ibv_reg_mr(p.dev->pd, src.addr, PAGE, LOCAL));
	CHECK(errno == EFAULT || errno == EACCES);
	src.mr = ibv_reg_mr(p.dev->pd, src.addr, PAGE, 0);
	REQUIRE(src.mr);
	CHECK_EQ(write_to(&p, &src, PAGE, (uintptr_t)dst.addr, dst.mr->rkey),
		 IBV_WC_SUCCESS);
	check_fill(dst.addr, PAGE, 5, "written");
}

TEST(read_needs_write, "F-003 I-003 READ into memory without LOCAL_WRITE")
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, PAGE, REMOTE);
	struct buf dst = buf_new(p.dev->pd, PAGE, 0);

	fill(src.addr, PAGE, 6);
	fill(dst.addr, PAGE, 7);
	CHECK_EQ(read_from(&p, &dst, 64, (uintptr_t)src.addr, src.mr->rkey),
		 IBV_WC_LOC_PROT_ERR);
	check_fill(dst.addr, PAGE, 7, "destination");
}

TEST(huge, "F-014 huge pages")
{
	const size_t len = 4 << 20;
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, len, LOCAL);
	struct buf dst = { .len = len };
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+");
	int have = 0;

	if (f && fscanf(f, "%d", &have) == 1 && have < 2) {
		rewind(f);
		fprintf(f, "4\n");
		fflush(f);
	}
	dst.addr = map(len, PROT_READ | PROT_WRITE, MAP_HUGETLB);
	if (!dst.addr)
		test_skip("no huge pages here: %s", strerror(errno));
	dst.mr = ibv_reg_mr(p.dev->pd, dst.addr + 3, len - 7, REMOTE);
	REQUIRE(dst.mr);
	fill(src.addr, len, 8);
	CHECK_EQ(write_to(&p, &src, len - 7, (uintptr_t)dst.addr + 3,
			  dst.mr->rkey), IBV_WC_SUCCESS);
	check_fill(dst.addr + 3, len - 7, 8, "written");
	CHECK_EQ(dst.addr[2] | dst.addr[len - 4], 0);
	if (!have && f) {
		ibv_dereg_mr(dst.mr);
		munmap(dst.addr, len);
		rewind(f);
		fprintf(f, "0\n");
		fflush(f);
	}
}

TEST(large, "F-014 an MR of 256 MiB: its first, middle and last bytes")
{
	const size_t len = 256 << 20;
	struct pair p = pair_default();
	struct buf big = buf_new(p.dev->pd, len, REMOTE);
	struct buf src = buf_new(p.dev->pd, PAGE, LOCAL);
	const size_t at[] = { 0, len / 2 - 5, len - 10 };
	size_t i;

	fill(src.addr, PAGE, 9);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		CHECK_EQ(write_to(&p, &src, 10, (uintptr_t)big.addr + at[i],
				  big.mr->rkey), IBV_WC_SUCCESS);
		check_fill(big.addr + at[i], 10, 9, "written");
	}
	CHECK_EQ(write_to(&p, &src, 10, (uintptr_t)big.addr + len - 9,
			  big.mr->rkey), IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(big.mr), 0);
}

static const struct {
	const char *name;
	uint64_t iova;		/* without the offset in the page */
	bool low, high;		/* access just outside the MR */
} iovas[] = {
	{ "zero", 0, false, false },
	{ "4096", PAGE, false, false },
	{ "top of the address space", -2ull * PAGE, false, false },
	{ "zero, one byte too far", 0, false, true },
	{ "4096, one byte early", PAGE, true, false },
};

TEST_ROWS(iova, "F-010 F-011 access by an iova of the user's choice", iovas)
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 8192, LOCAL);
	uint8_t *mem = map(3 * PAGE, PROT_READ | PROT_WRITE, 0);
	uint64_t iova = row->iova + 16;
	enum ibv_wc_status want = IBV_WC_SUCCESS;
	uint32_t len = 5000;
	struct ibv_mr *mr;

	REQUIRE(mem);
	fill(src.addr, src.len, 10);
	mr = ibv_reg_mr_iova(p.dev->pd, mem + 16, len, iova, REMOTE);
	REQUIRE(mr);
	if (row->low || row->high)
		want = IBV_WC_REM_ACCESS_ERR;
	CHECK_EQ(write_to(&p, &src, len + row->high, iova - row->low, mr->rkey),
		 want);
	if (want == IBV_WC_SUCCESS)
		check_fill(mem + 16, len, 10, "written");
	else
		CHECK(find_bad(mem + 16, 64, 10) >= 0);
}

static const struct {
	const char *name;
	size_t off;		/* offset in the page */
	uint32_t len;
} zero_based[] = {
	{ "page aligned", 0, 5000 },
	{ "unaligned", 17, 5000 },
	{ "last byte of a page", PAGE - 1, 2 },
};

TEST_ROWS(zero, "F-011 ZERO_BASED: addresses count from the first byte", zero_based)
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 8192, LOCAL);
	uint8_t *mem = map(3 * PAGE, PROT_READ | PROT_WRITE, 0);
	struct ibv_mr *mr;

	REQUIRE(mem);
	fill(src.addr, src.len, 10);
	mr = ibv_reg_mr(p.dev->pd, mem + row->off, row->len,
			REMOTE | IBV_ACCESS_ZERO_BASED);
	REQUIRE(mr);
	CHECK_EQ(write_to(&p, &src, row->len, 0, mr->rkey), IBV_WC_SUCCESS);
	check_fill(mem + row->off, row->len, 10, "written");
	CHECK(!row->off || !mem[row->off - 1]);
	CHECK_EQ(mem[row->off + row->len], 0);
	CHECK_EQ(write_to(&p, &src, 1, row->len, mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST(iova_offset, "F-010 a chosen iova keeps its offset in the page")
{
	struct dev *d = dev_open();
	static char mem[PAGE];

	errno = 0;
	CHECK(!ibv_reg_mr_iova(d->pd, mem, sizeof(mem),
			       ((uintptr_t)mem + 8) ^ 1ull << 30, LOCAL));
	CHECK_EQ(errno, EINVAL);
}

TEST(keys, "F-001 several MRs of one buffer have their own keys and rights")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct ibv_mr *other = ibv_reg_mr(p.dev->pd, b.addr, PAGE, LOCAL |
					  IBV_ACCESS_REMOTE_READ);
	struct buf tmp = buf_new(p.dev->pd, PAGE, LOCAL);

	REQUIRE(other);
	CHECK(other->rkey != b.mr->rkey);
	CHECK(other->lkey != b.mr->lkey);
	CHECK_EQ(write_to(&p, &tmp, 8, (uintptr_t)b.addr, b.mr->rkey),
		 IBV_WC_SUCCESS);
	CHECK_EQ(read_from(&p, &tmp, 8, (uintptr_t)b.addr, other->rkey),
		 IBV_WC_SUCCESS);
	CHECK_EQ(write_to(&p, &tmp, 8, (uintptr_t)b.addr, other->rkey),
		 IBV_WC_REM_ACCESS_ERR);
}

TEST(stale_key, "F-007 I-010 the key of a deregistered MR is invalid")
{
	struct dev *d = dev_open();
	struct buf src = buf_new(d->pd, PAGE, LOCAL);
	static uint8_t mem[PAGE];
	uint32_t old[32], i, j;

	for (i = 0; i < ARRAY_SIZE(old); i++) {
		struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, PAGE, REMOTE);

		REQUIRE(mr);
		old[i] = mr->rkey;
		for (j = 0; j < i; j++)
			CHECK(old[j] != old[i]);
		CHECK_ERR(ibv_dereg_mr(mr), 0);
	}
	REQUIRE(ibv_reg_mr(d->pd, mem, PAGE, REMOTE));
	for (i = 0; i < ARRAY_SIZE(old); i += 8) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		CHECK_EQ(write_to(&p, &src, 8, (uintptr_t)mem, old[i]),
			 IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(variant, "F-004 all 32 bits of a key count")
{
	struct dev *d = dev_open();
	struct buf src = buf_new(d->pd, PAGE, LOCAL);
	struct buf dst = buf_new(d->pd, PAGE, REMOTE);
	const uint32_t flip[] = { 1, 0x80, 0x100, 0x80000000 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flip); i++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		CHECK_EQ(write_to(&p, &src, 8, (uintptr_t)dst.addr,
				  dst.mr->rkey ^ flip[i]),
			 IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(dereg_posted, "F-008 deregistration under a posted receive")
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, PAGE, LOCAL);
	struct buf dst = buf_new(p.dev->pd, PAGE, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, 64), in = buf_sge(&dst, 0, 64);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	fill(src.addr, PAGE, 11);
	fill(dst.addr, PAGE, 12);
	REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
	CHECK_ERR(ibv_dereg_mr(dst.mr), 0);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_OP_ERR);
	if (p.dev->qhca)
		poll_expect(p.b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	check_fill(dst.addr, PAGE, 12, "memory of the dead MR");
}
