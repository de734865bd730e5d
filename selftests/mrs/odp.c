// SPDX-License-Identifier: GPL-2.0
/* On-demand paging: memory that is not pinned, and what the kernel may do to it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

#define PAGE	4096ul
#define LEN	(64 * PAGE)
#define ODP	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND)

static struct pair p;
static uint8_t *mem;		/* LEN bytes, not pinned */
static struct ibv_mr *odp;	/* of @mem */
static struct buf pinned;	/* as much, on the other side */

static uint8_t *map(size_t len)
{
	void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(m != MAP_FAILED);
	return m;
}

static struct ibv_mr *reg(void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(p.dev->pd, addr, len, ODP);

	REQUIRE(mr);
	return mr;
}

/* @implicit: the region is all memory of the process. */
static void start(bool implicit)
{
	struct ibv_device_attr_ex attr;
	struct conn c = CONN;

	p.dev = dev_open();
	REQUIRE_OK(ibv_query_device_ex(p.dev->ctx, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		test_skip("no on-demand paging");
	if (implicit && !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		test_skip("no implicit on-demand paging");
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	p = pair_new(p.dev, &QP_OPTS, &c);
	mem = map(LEN);
	odp = implicit ? reg(NULL, SIZE_MAX) : reg(mem, LEN);
	pinned = buf_new(p.dev->pd, LEN, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
}

static struct ibv_sge sge_of(void *addr, uint32_t len, const struct ibv_mr *mr)
{
	return (struct ibv_sge){ .addr = (uintptr_t)addr, .length = len, .lkey = mr->lkey };
}

/* From @a's memory at @from to @b's at @to, or back for a READ. */
static enum ibv_wc_status rdma(enum ibv_wr_opcode opcode, void *from, const struct ibv_mr *lmr,
			       void *to, const struct ibv_mr *rmr, uint32_t len)
{
	struct ibv_sge sge = sge_of(from, len, lmr);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, (uintptr_t)to, rmr->rkey);

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	REQUIRE_OK(post_send(&p.a, &wr));
	return poll_get(p.a.send_cq).status;
}

static enum ibv_wc_status send_to(void *from, const struct ibv_mr *smr, void *to,
				  const struct ibv_mr *rmr, uint32_t len)
{
	struct ibv_sge s = sge_of(from, len, smr), r = sge_of(to, len, rmr);
	struct ibv_send_wr wr = wr_send(1, &s, 1);

	REQUIRE_OK(post_recv(&p.b, 2, &r, 1));
	REQUIRE_OK(post_send(&p.a, &wr));
	return poll_get(p.a.send_cq).status;
}

static const struct {
	const char *name;
	bool implicit;
} kinds[] = {
	{ "explicit", false },
	{ "implicit", true },
};

TEST_ROWS(messages, "every operation, with pages absent on either side", kinds)
{
	uint64_t before;

	start(row->implicit);
	before = hw_counter("page_fault");
	fill(pinned.addr, LEN, 1);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, LEN), IBV_WC_SUCCESS);
	check_fill(mem, LEN, 1, "WRITE to absent pages");
	CHECK(hw_counter("page_fault") > before);
	REQUIRE_OK(madvise(mem, LEN, MADV_DONTNEED));
	CHECK_EQ(rdma(IBV_WR_RDMA_READ, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	check_fill(mem, LEN, 1, "READ into absent pages");
	fill(mem, LEN, 2);
	CHECK_EQ(rdma(IBV_WR_RDMA_READ, pinned.addr, pinned.mr, mem, odp, LEN), IBV_WC_SUCCESS);
	check_fill(pinned.addr, LEN, 2, "READ from pages that were written since");
	REQUIRE_OK(madvise(mem, LEN, MADV_DONTNEED));
	CHECK_EQ(send_to(pinned.addr, pinned.mr, mem, odp, LEN), IBV_WC_SUCCESS);
	check_fill(mem, LEN, 2, "SEND to absent pages");
	poll_ok(p.b.recv_cq, 2);
	fill(mem, LEN, 3);
	CHECK_EQ(send_to(mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	check_fill(pinned.addr, LEN, 3, "SEND from pages that were written since");
	poll_ok(p.b.recv_cq, 2);
	REQUIRE_OK(madvise(mem, LEN, MADV_DONTNEED));
	CHECK_EQ(rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, mem, odp, mem + PAGE, odp, 8), IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)(mem + PAGE), 1);
	CHECK_ERR(ibv_dereg_mr(odp), 0);
}

/* The device must see changes made behind its back, and not the old contents. */
TEST_ROWS(changed, "munmap, mremap, fork and mprotect between messages", kinds)
{
	uint8_t *other;
	int status;
	pid_t pid;

	start(row->implicit);
	fill(mem, LEN, 1);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	/* Other memory at the same place. */
	REQUIRE(mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0) == mem);
	fill(mem, LEN, 2);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	check_fill(pinned.addr, LEN, 2, "after mmap over it");
	/* Memory of another place. */
	other = map(LEN);
	fill(other, LEN, 3);
	REQUIRE(mremap(other, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, mem) == mem);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	check_fill(pinned.addr, LEN, 3, "after mremap to it");
	/* The device writes; the child must keep what it had. */
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		sleep_ms(500);
		_exit(find_bad(mem, LEN, 3) >= 0);
	}
	fill(pinned.addr, LEN, 4);
	CHECK_EQ(rdma(IBV_WR_RDMA_READ, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	check_fill(mem, LEN, 4, "the parent's memory after fork");
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	/* Memory that only can be read is read, and not written. */
	REQUIRE_OK(mprotect(mem, LEN, PROT_READ));
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(IBV_WR_RDMA_READ, mem, odp, pinned.addr, pinned.mr, 8), IBV_WC_LOC_PROT_ERR);
}

static const struct {
	const char *name;
	bool implicit, local;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
} holes[] = {
	{ "WRITE from it", false, true, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
	{ "READ to it", false, true, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR },
	{ "WRITE to the peer's", false, false, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR },
	{ "READ of the peer's", false, false, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR },
	{ "atomic on the peer's", false, false, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  IBV_WC_REM_ACCESS_ERR },
	{ "implicit: WRITE from it", true, true, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
	{ "implicit: WRITE to the peer's", true, false, IBV_WR_RDMA_WRITE,
	  IBV_WC_REM_ACCESS_ERR },
};

TEST_ROWS(unmapped, "memory that does not exist any more", holes)
{
	uint32_t len = row->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 2 * PAGE;
	enum ibv_wc_status status;

	start(row->implicit);
	REQUIRE_OK(munmap(mem + PAGE, LEN - PAGE));
	status = row->local ? rdma(row->opcode, mem + PAGE, odp, pinned.addr, pinned.mr, len) :
			      rdma(row->opcode, pinned.addr, pinned.mr, mem + PAGE, odp, len);
	CHECK_EQ(status, row->status);
	/* Objects beside it can be used. */
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	pair_connect(&p, &CONN);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, PAGE), IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dereg_mr(odp), 0);
}

static const struct {
	const char *name;
	enum ibv_advise_mr_advice advice;
	bool absent;		/* pages that are not in memory stay absent */
} advice_kinds[] = {
	{ "to read", IBV_ADVISE_MR_ADVICE_PREFETCH, false },
	{ "to write", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, false },
	{ "without faults", IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, true },
};

TEST_ROWS(prefetch, "pages that are provided before they are needed",
	  advice_kinds)
{
	bool write = row->advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct ibv_sge sge;
	uint64_t before;

	start(false);
	sge = sge_of(mem, LEN, odp);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, row->advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
	before = hw_counter("page_fault");
	CHECK_EQ(write ? rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, LEN) :
			 rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN),
		 IBV_WC_SUCCESS);
	CHECK_EQ(hw_counter("page_fault") > before, row->absent);
}

TEST(advice, "bad advice is refused")
{
	const int read = IBV_ADVISE_MR_ADVICE_PREFETCH, write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct ibv_pd *pd = NULL;
	struct ibv_sge sge;
	struct ibv_mr *ro;

	start(false);
	sge = sge_of(mem, LEN, odp);
	sge.lkey ^= 1;
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, 0, &sge, 1), EINVAL);
	sge = sge_of(pinned.addr, LEN, pinned.mr);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, 0, &sge, 1), EINVAL);
	sge = sge_of(mem + 1, LEN, odp);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, 0, &sge, 1), EFAULT);
	sge = sge_of(mem, LEN, odp);
	pd = ibv_alloc_pd(p.dev->ctx);
	REQUIRE(pd);
	CHECK_ERR(ibv_advise_mr(pd, read, 0, &sge, 1), EPERM);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, 99, 0, &sge, 1), EOPNOTSUPP);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, 0x80, &sge, 1), EINVAL);
	ro = ibv_reg_mr(p.dev->pd, mem, LEN, IBV_ACCESS_ON_DEMAND);
	REQUIRE(ro);
	sge = sge_of(mem, LEN, ro);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, write, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EPERM);
	REQUIRE_OK(munmap(mem, LEN));
	sge = sge_of(mem, LEN, odp);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT);
	CHECK_ERR(ibv_advise_mr(p.dev->pd, read, 0, &sge, 1), 0);
}

TEST(refused, "regions that cannot be")
{
	start(true);
	errno = 0;
	CHECK(!ibv_reg_mr(p.dev->pd, mem, SIZE_MAX, ODP));
	CHECK_EQ(errno, EINVAL);
	CHECK(ibv_rereg_mr(odp, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL));
	/* It is as it was. */
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, 100), IBV_WC_SUCCESS);
}

/* The process ends while its QP waits for pages, and messages are under way. */
TEST(death, "a process that dies amid page faults")
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		pid_t pid = fork();

		REQUIRE(pid >= 0);
		if (!pid) {
			struct ibv_sge sge;
			struct ibv_send_wr wr;

			start(i & 1);
			for (;;) {
				sge = sge_of(mem, LEN, odp);
				wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)pinned.addr,
					     pinned.mr->rkey);
				REQUIRE_OK(post_send(&p.a, &wr));
				madvise(mem, LEN, MADV_DONTNEED);
				poll_get(p.a.send_cq);
			}
		}
		sleep_ms(300 + 37 * i);
		kill(pid, SIGKILL);
		REQUIRE(waitpid(pid, NULL, 0) == pid);
	}
	start(false);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, LEN), IBV_WC_SUCCESS);
}

/*
 * The last page that a process can have, or NULL. The kernel keeps one back on some machines, and
 * the size of the address space depends on the page tables.
 */
static uint8_t *map_last(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	unsigned int bits, kept;

	for (bits = 52; bits >= 39; bits--) {
		for (kept = 0; kept < 2; kept++) {
			void *at = (void *)((1ul << bits) - (1 + kept) * PAGE);

			if (mmap(at, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == at)
				return at;
		}
	}
	return NULL;
}

/* The end of the process ends all of its memory, and with it the region. */
TEST(last, "a process dies that has given the device its last page")
{
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		uint8_t *page;

		start(true);
		page = map_last();
		if (!page)
			_exit(2);
		*page = 5;
		_exit(rdma(IBV_WR_RDMA_WRITE, page, odp, pinned.addr, pinned.mr, 1) ||
		      *pinned.addr != 5);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	start(true);
	if (status == 2 << 8)
		test_skip("the last page is in use");
	CHECK_EQ(status, 0);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, LEN), IBV_WC_SUCCESS);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} across[] = {
	{ "WRITE", IBV_WR_RDMA_WRITE },
	{ "SEND", IBV_WR_SEND },
};

/* The driver divides an implicit region, and one answer provides pages of both parts. */
TEST_ROWS(boundary, "a peer that tries twice, and two pages at once", across)
{
	const uintptr_t part = 8ul << 20;
	struct conn c = CONN;
	uint8_t *at;

	c.rnr_retry = 1;
	c.timeout = 20;		/* 4 s: a peer that asks again is told to wait, which is a try */
	start(true);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	pair_connect(&p, &c);
	at = (uint8_t *)(((uintptr_t)map(2 * part) + part) & ~(part - 1)) - 50;
	fill(pinned.addr, 100, 1);
	CHECK_EQ(row->opcode == IBV_WR_SEND ? send_to(pinned.addr, pinned.mr, at, odp, 100) :
		 rdma(row->opcode, pinned.addr, pinned.mr, at, odp, 100), IBV_WC_SUCCESS);
	check_fill(at, 100, 1, "across the boundary");
}

/* Takes pages away all the time; what they hold is in a file, and comes back from there. */
static void *thief(void *arg)
{
	bool *stop = arg;
	unsigned int seed = 1;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		unsigned int first = rand_r(&seed) % 64, num = 1 + rand_r(&seed) % (64 - first);

		madvise(mem + first * PAGE, num * PAGE,
			rand_r(&seed) % 2 ? MADV_DONTNEED : MADV_PAGEOUT);
		usleep(rand_r(&seed) % 500);
	}
	return NULL;
}

TEST_ROWS(thieves, "pages are taken away while messages are under way", kinds)
{
	unsigned int i, rounds = from_env("ODP_ROUNDS", 40);
	bool stop = false;
	pthread_t thread;
	int fd;

	start(row->implicit);
	fd = memfd_create("odp", 0);
	REQUIRE(fd >= 0 && !ftruncate(fd, LEN));
	REQUIRE(mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == mem);
	REQUIRE_OK(pthread_create(&thread, NULL, thief, &stop));
	for (i = 0; i < rounds; i++) {
		fill(pinned.addr, LEN, i);
		CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, pinned.addr, pinned.mr, mem, odp, LEN),
			 IBV_WC_SUCCESS);
		check_fill(mem, LEN, i, "WRITE");
		memset(pinned.addr, 0, LEN);
		CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, mem, odp, pinned.addr, pinned.mr, LEN),
			 IBV_WC_SUCCESS);
		check_fill(pinned.addr, LEN, i, "WRITE from there");
		fill(pinned.addr, LEN, ~i);
		CHECK_EQ(rdma(IBV_WR_RDMA_READ, mem, odp, pinned.addr, pinned.mr, LEN),
			 IBV_WC_SUCCESS);
		check_fill(mem, LEN, ~i, "READ");
		memset(pinned.addr, 0, LEN);
		CHECK_EQ(rdma(IBV_WR_RDMA_READ, pinned.addr, pinned.mr, mem, odp, LEN),
			 IBV_WC_SUCCESS);
		check_fill(pinned.addr, LEN, ~i, "READ from there");
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
