// SPDX-License-Identifier: GPL-2.0
/* Device memory: allocation, access by the CPU, memory regions and their traffic. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/import.h"

#define ZERO_BASED	IBV_ACCESS_ZERO_BASED
#define ATOMIC		IBV_ACCESS_REMOTE_ATOMIC
#define PAGE		4096

static struct dev *d;
static size_t max;		/* size of all device memory */

static void open_any(void)
{
	struct ibv_device_attr_ex attr;

	d = dev_open();
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	max = attr.max_dm_size;
}

static void open_dm(void)
{
	open_any();
	if (!max)
		test_skip("no device memory");
}

static struct ibv_dm *alloc(size_t len, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {
		.length = len, .log_align_req = log_align,
	};

	errno = 0;
	return ibv_alloc_dm(d->ctx, &attr);
}

TEST(offered, "F-018 device memory is offered, or EOPNOTSUPP")
{
	struct ibv_dm *dm;

	open_any();
	dm = alloc(4, 0);
	CHECK_EQ(errno, max ? 0 : EOPNOTSUPP);
	CHECK(!dm == !max);
}

static struct ibv_dm *dm_new(size_t len)
{
	struct ibv_dm *dm = alloc(len, 0);

	REQUIRE(dm);
	return dm;
}

static struct ibv_mr *mr_new(struct ibv_dm *dm, size_t off, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(d->pd, dm, off, len, access | ZERO_BASED);

	REQUIRE(mr);
	return mr;
}

static const struct bad_alloc {
	const char *name;
	size_t more;		/* bytes more than the device has */
	size_t len;
	uint32_t log_align, comp_mask;
} bad_allocs[] = {
	{ "nothing" },
	{ "a byte more than the device has", .more = 1 },
	{ "very much", .len = SIZE_MAX },
	{ "aligned to more than the device has", .len = 4, .log_align = 40 },
	{ "aligned to 2^255", .len = 4, .log_align = 255 },
	{ "aligned to 2^4294967295", .len = 4, .log_align = UINT32_MAX },
	{ "an unknown mask", .len = 4, .comp_mask = 1 },
};

TEST_ROWS(refused, "device memory: allocations that are refused", bad_allocs)
{
	struct ibv_alloc_dm_attr attr = {
		.log_align_req = row->log_align, .comp_mask = row->comp_mask,
	};

	open_dm();
	attr.length = row->more ? max + row->more : row->len;
	CHECK(!ibv_alloc_dm(d->ctx, &attr));
	CHECK_EQ(errno, row->comp_mask ? EOPNOTSUPP : EINVAL);
	REQUIRE_OK(ibv_free_dm(dm_new(max)));
}

TEST(whole, "device memory: allocated as a whole, or page by page")
{
	size_t n = 0, i, pages;
	struct ibv_dm **dm;
	uint32_t v;

	open_dm();
	pages = max / PAGE;
	dm = calloc(pages, sizeof(*dm));
	REQUIRE(dm);
	dm[0] = dm_new(max);
	CHECK(!alloc(4, 0));
	CHECK_EQ(errno, ENOMEM);
	REQUIRE_OK(ibv_free_dm(dm[0]));
	for (; n < pages; n++) {
		v = n;
		dm[n] = dm_new(n % 2 ? 4 : PAGE);
		REQUIRE_OK(ibv_memcpy_to_dm(dm[n], 0, &v, 4));
	}
	CHECK(!alloc(4, 0));
	CHECK_EQ(errno, ENOMEM);
	for (i = 0; i < n; i++) {
		REQUIRE_OK(ibv_memcpy_from_dm(&v, dm[i], 0, 4));
		CHECK_EQ(v, i);
		REQUIRE_OK(ibv_free_dm(dm[i]));
	}
	REQUIRE_OK(ibv_free_dm(dm_new(max)));
}

TEST(aligned, "device memory: every alignment up to its size")
{
	uint32_t log;

	open_dm();
	for (log = 0; 1ull << log <= max; log++) {
		bool room = max > PAGE && 1ull << log < max;
		struct ibv_dm *other = room ? dm_new(4) : NULL;
		struct ibv_dm *dm = alloc(4, log);

		REQUIRE(dm);
		REQUIRE_OK(ibv_free_dm(dm));
		if (other)
			REQUIRE_OK(ibv_free_dm(other));
	}
}

TEST(zeroed, "device memory is zeroed for its next owner")
{
	uint8_t *p;
	size_t i;

	open_dm();
	p = malloc(max);
	REQUIRE(p);
	for (i = 0; i < 2; i++) {
		struct ibv_dm *dm = dm_new(max);

		REQUIRE_OK(ibv_memcpy_from_dm(p, dm, 0, max));
		CHECK(!p[0] && !memcmp(p, p + 1, max - 1));
		memset(p, 0x5a, max);
		REQUIRE_OK(ibv_memcpy_to_dm(dm, 0, p, max));
		REQUIRE_OK(ibv_free_dm(dm));
	}
}

static const struct copy {
	const char *name;
	uint64_t off;
	size_t len;
	int err;
} copies[] = {
	{ "all", 0, 1000, 0 },
	{ "the last word", 996, 4, 0 },
	{ "nothing, at the end", 1000, 0, 0 },
	{ "a word too many", 0, 1004, EFAULT },
	{ "the next word", 1000, 4, EFAULT },
	{ "far behind the end, in the same page", 2000, 4, EFAULT },
	{ "half a word", 0, 2, EFAULT },
	{ "from the middle of a word", 2, 4, EFAULT },
	{ "an offset that wraps", UINT64_MAX - 3, 8, EFAULT },
	{ "a length that wraps", 8, SIZE_MAX - 3, EFAULT },
};

TEST_ROWS(copy, "device memory, copied to and from", copies)
{
	uint8_t in[1004], out[1004] = { 0 };
	struct ibv_dm *dm;

	open_dm();
	dm = dm_new(1000);
	fill(in, sizeof(in), 1);
	CHECK_ERR(ibv_memcpy_to_dm(dm, row->off, in, row->len), row->err);
	CHECK_ERR(ibv_memcpy_from_dm(out, dm, row->off, row->len), row->err);
	if (!row->err)
		check_fill(out, row->len, 1, "the copy");
}

static const struct bad_mr {
	const char *name;
	uint64_t off;
	size_t len;
	int access;
} bad_mrs[] = {
	{ "not zero-based", 0, 100, LOCAL },
	{ "beyond the end", 0, PAGE + 1, LOCAL | ZERO_BASED },
	{ "behind the end", PAGE + 4, 4, LOCAL | ZERO_BASED },
	{ "an offset that wraps", UINT64_MAX, 2, LOCAL | ZERO_BASED },
	{ "remote writes without local ones", 0, 100, IBV_ACCESS_REMOTE_WRITE | ZERO_BASED },
	{ "on demand", 0, 100, LOCAL | ZERO_BASED | IBV_ACCESS_ON_DEMAND },
};

TEST_ROWS(bad_region, "F-002 regions of device memory that are refused", bad_mrs)
{
	struct ibv_dm *dm;

	open_dm();
	dm = dm_new(PAGE);
	CHECK(!ibv_reg_dm_mr(d->pd, dm, row->off, row->len, row->access));
	CHECK(errno == EINVAL || errno == EOPNOTSUPP);
	CHECK_ERR(ibv_free_dm(dm), 0);
}

TEST(held, "device memory stays allocated while it has a region")
{
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint32_t v = 7;

	open_dm();
	dm = dm_new(PAGE);
	mr = mr_new(dm, 0, PAGE, LOCAL);
	CHECK_ERR(ibv_free_dm(dm), EBUSY);
	CHECK_ERR(ibv_memcpy_to_dm(dm, 0, &v, 4), 0);
	/* Device memory is not memory of the process, so it cannot be replaced. */
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL));
	CHECK_ERR(ibv_dereg_mr(mr), 0);
	CHECK_ERR(ibv_free_dm(dm), 0);
}

/* Connected QPs, plain memory, and a region in the middle of device memory. */
struct scene {
	struct pair p;
	struct buf b;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

#define DM_LEN	(3 * PAGE)
#define MR_OFF	4092
#define MR_LEN	4104		/* three pages, with no edge at a page boundary */

static struct scene scene_new(void)
{
	struct conn c = CONN;
	struct scene s;

	open_dm();
	if (max < 2 * DM_LEN)
		test_skip("little device memory");
	c.access |= ATOMIC;
	s.p = pair_new(d, &QP_OPTS, &c);
	s.b = buf_new(d->pd, 2 * PAGE, REMOTE);
	s.dm = dm_new(DM_LEN);
	s.mr = mr_new(s.dm, MR_OFF, MR_LEN, REMOTE | ATOMIC);
	return s;
}

static enum ibv_wc_status rdma(struct scene *s, enum ibv_wr_opcode opcode, uint64_t at,
			       uint32_t len)
{
	struct ibv_sge sge = buf_sge(&s->b, 0, len);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, at, s->mr->rkey);

	REQUIRE_OK(post_send(&s->p.a, &wr));
	return poll_get(s->p.a.send_cq).status;
}

TEST(data, "F-014 WRITE and READ by a peer reach exactly the region")
{
	uint8_t seen[DM_LEN], want[DM_LEN] = { 0 };
	struct scene s = scene_new();

	fill(s.b.addr, s.b.len, 3);
	CHECK_EQ(rdma(&s, IBV_WR_RDMA_WRITE, 0, MR_LEN), IBV_WC_SUCCESS);
	memcpy(want + MR_OFF, s.b.addr, MR_LEN);
	REQUIRE_OK(ibv_memcpy_from_dm(seen, s.dm, 0, DM_LEN));
	CHECK(!memcmp(seen, want, DM_LEN));

	memset(s.b.addr, 0, s.b.len);
	CHECK_EQ(rdma(&s, IBV_WR_RDMA_READ, 1, MR_LEN - 1), IBV_WC_SUCCESS);
	CHECK(!memcmp(s.b.addr, want + MR_OFF + 1, MR_LEN - 1));
	CHECK_EQ(s.b.addr[MR_LEN - 1], 0);
}

static const struct edge {
	const char *name;
	uint64_t at;
	uint32_t len;
	enum ibv_wc_status status;
} edges[] = {
	{ "the last byte", MR_LEN - 1, 1, IBV_WC_SUCCESS },
	{ "the byte behind the end", MR_LEN, 1, IBV_WC_REM_ACCESS_ERR },
	{ "across the end", MR_LEN - 1, 2, IBV_WC_REM_ACCESS_ERR },
	{ "the byte before the start", UINT64_MAX, 1, IBV_WC_REM_ACCESS_ERR },
};

TEST_ROWS(range, "F-004 the edges of a region of device memory", edges)
{
	struct scene s = scene_new();

	CHECK_EQ(rdma(&s, IBV_WR_RDMA_WRITE, row->at, row->len), row->status);
}

TEST(empty, "F-014 an empty region of device memory gives access to no byte")
{
	struct scene s = scene_new();

	s.mr = mr_new(s.dm, 0, 0, REMOTE);
	CHECK_EQ(rdma(&s, IBV_WR_RDMA_WRITE, 0, 0), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(&s, IBV_WR_RDMA_WRITE, 0, 1), IBV_WC_REM_ACCESS_ERR);
}

TEST(local, "SEND from device memory to device memory")
{
	struct scene s = scene_new();
	struct ibv_dm *other = dm_new(DM_LEN);
	struct ibv_mr *mr = mr_new(other, 0, DM_LEN, LOCAL);
	struct ibv_sge in = { .addr = 5, .length = MR_LEN, .lkey = mr->lkey };
	struct ibv_sge out = { .addr = 0, .length = MR_LEN, .lkey = s.mr->lkey };
	struct ibv_send_wr wr = wr_send(1, &out, 1);
	uint8_t data[DM_LEN];

	fill(data, sizeof(data), 4);
	REQUIRE_OK(ibv_memcpy_to_dm(s.dm, MR_OFF, data, MR_LEN));
	REQUIRE_OK(post_recv(&s.p.b, 2, &in, 1));
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	CHECK_EQ(poll_ok(s.p.b.recv_cq, 2).byte_len, MR_LEN);
	REQUIRE_OK(ibv_memcpy_from_dm(data, other, 0, DM_LEN));
	check_fill(data + 5, MR_LEN, 4, "what came");
}

TEST(atomic, "atomics on device memory, with their results in device memory")
{
	struct scene s = scene_new();
	struct ibv_mr *mr = mr_new(s.dm, PAGE, PAGE, LOCAL | ATOMIC);
	struct ibv_sge sge = { .addr = 24, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 16, mr->rkey);
	uint64_t v[2] = { 40, 0 };

	wr.wr.atomic.compare_add = 2;
	REQUIRE_OK(ibv_memcpy_to_dm(s.dm, PAGE + 16, v, sizeof(v)));
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	REQUIRE_OK(ibv_memcpy_from_dm(v, s.dm, PAGE + 16, sizeof(v)));
	CHECK_EQ(v[0], 42);
	CHECK_EQ(v[1], 40);
}

static void hold_all(int out)
{
	open_dm();
	dm_new(max);
	REQUIRE(write(out, "x", 1) == 1);
	for (;;)
		pause();
}

TEST(killed, "device memory of a killed process is freed")
{
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_dm *dm;
	int pipe_fd[2];
	pid_t pid;
	char c;

	REQUIRE_OK(pipe(pipe_fd));
	pid = fork();
	if (!pid)
		hold_all(pipe_fd[1]);
	open_dm();
	REQUIRE(read(pipe_fd[0], &c, 1) == 1);
	CHECK(!alloc(4, 0));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	do
		dm = alloc(max, 0);
	while (!dm && time_ms() < end);
	CHECK(dm);
}

TEST(imported, "mapped device memory is not allocated to others")
{
	struct ibv_dm *dm, *other;
	struct dev *theirs;
	uint32_t v = 11, got = 0;

	open_dm();
	theirs = dev_import(d);
	dm = dm_new(PAGE);
	other = ibv_import_dm(theirs->ctx, dm->handle);
	REQUIRE(other);
	CHECK_ERR(ibv_memcpy_to_dm(dm, 100, &v, 4), 0);
	CHECK_ERR(ibv_memcpy_from_dm(&got, other, 100, 4), 0);
	CHECK_EQ(got, v);
	CHECK_ERR(ibv_memcpy_to_dm(other, PAGE, &v, 4), EFAULT);

	CHECK_ERR(ibv_free_dm(dm), 0);
	CHECK(!alloc(max, 0));
	CHECK_EQ(errno, ENOMEM);
	CHECK_ERR(ibv_memcpy_to_dm(other, 100, &v, 4), 0);
	ibv_unimport_dm(other);
	CHECK(alloc(max, 0));
}
