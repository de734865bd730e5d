// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: pages that never come. They delay only their owner, and everything goes without
 * waiting for them.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/life.h"
#include "lib/ondemand.h"
#include "lib/stuck.h"

#define LEN	(1ul << 20)
#define SOON	(5000 * (int)test_patience())

/* Whether a WRITE from memory that has to come from somewhere is done soon. */
static void write_soon(struct dev *d, struct ibv_mr *mr, void *from)
{
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf to = buf_new(d->pd, PAGE, REMOTE);
	int64_t begin = time_ms();
	struct ibv_wc wc;

	odp_post_write(&p, from, mr, &to);
	if (!poll_wait(p.a.send_cq, &wc, SOON))
		FAIL("no completion in %d ms", SOON);
	else
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	test_note("a WRITE took %d ms", (int)(time_ms() - begin));
}

static const struct {
	const char *name;
	bool implicit;
} kinds[] = {
	{ "implicit", true },
	{ "explicit", false },
};

TEST_ROWS(beside, "F-062 a page that does not come delays no other of the region", kinds)
{
	struct dev *d = odp_open();
	struct ibv_mr *mr;
	struct buf to;
	struct pair p;
	uint8_t *mem;

	test_timeout(120);
	stuck_start();
	mem = stuck_map(LEN);
	p = pair_new(d, &QP_OPTS, &CONN);
	to = buf_new(d->pd, PAGE, REMOTE);
	/* An explicit region of both kinds of memory. */
	REQUIRE(mmap(mem + LEN / 2, LEN / 2, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem + LEN / 2);
	mr = row->implicit ? odp_reg(d, NULL, SIZE_MAX, 0) : odp_reg(d, mem, LEN, 0);
	odp_post_write(&p, mem, mr, &to);
	sleep_ms(500);
	write_soon(d, mr, mem + LEN / 2);
	poll_none(p.a.send_cq);
	stuck_end();
	CHECK_EQ(poll_get(p.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
}

/* Takes what it can of the workers, and stays. */
static void crowd(unsigned int num)
{
	struct dev *d = odp_open();
	struct buf to = buf_new(d->pd, PAGE, REMOTE);
	uint8_t *mem = stuck_map(LEN);
	struct ibv_mr *mr = odp_reg(d, mem, LEN, 0);
	unsigned int i;

	for (i = 0; i < num; i++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		odp_post_write(&p, mem + (i * PAGE) % LEN, mr, &to);
	}
}

TEST(starve, "F-062 300 page faults of one process do not starve another's")
{
	unsigned int num = from_env("ODP_STUCK", 300);
	int fds[2], status;
	struct dev *d;
	char c = 0;
	pid_t pid;

	test_timeout(300);
	stuck_start();
	REQUIRE(!pipe(fds));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		crowd(num);
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		pause();
	}
	close(fds[1]);
	REQUIRE(read(fds[0], &c, 1) == 1);
	sleep_ms(2000);
	d = odp_open();
	write_soon(d, odp_reg(d, NULL, SIZE_MAX, 0), odp_map(PAGE));
	/* And the process can be killed. */
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	stuck_end();
}

static void woken(int sig)
{
}

/* Interrupts what this process waits for, again and again. */
static void interrupt(unsigned int ms)
{
	struct itimerval t = { { 0, ms * 1000 }, { 0, ms * 1000 } };
	struct sigaction sa = { .sa_handler = woken };

	REQUIRE(!sigaction(SIGALRM, &sa, NULL));
	REQUIRE(!setitimer(ITIMER_REAL, &t, NULL));
}

/*
 * Leaves a page that does not come behind, in a context of its own that is closed. Returns 0, or
 * why it could not.
 */
static int leave(void)
{
	struct dev *d = odp_open();
	uint8_t *mem = stuck_map(PAGE);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, PAGE, IBV_ACCESS_ON_DEMAND);
	int err = mr ? 0 : errno;

	if (mr) {
		struct ibv_sge sge = { (uintptr_t)mem, PAGE, mr->lkey };

		interrupt(5);
		CHECK_ERR(ibv_advise_mr(d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EINTR);
		interrupt(0);
		REQUIRE_OK(ibv_dereg_mr(mr));
	}
	REQUIRE_OK(ibv_dealloc_pd(d->pd));
	REQUIRE_OK(ibv_close_device(d->ctx));
	munmap(mem, PAGE);
	return err;
}

/* Leaves @num of them, or as many as it may. Returns how many. */
static unsigned int leave_many(unsigned int num, int *err)
{
	unsigned int i;

	*err = 0;
	for (i = 0; i < num && !*err; i++)
		*err = leave();
	return *err ? i - 1 : i;
}

TEST(left, "F-062 J-027 pages that contexts have left behind starve no other context")
{
	unsigned int num;
	struct dev *d;
	struct ibv_mr *mr;
	int err;

	test_timeout(300);
	stuck_start();
	d = odp_open();
	mr = odp_reg(d, NULL, SIZE_MAX, 0);
	num = leave_many(from_env("ODP_LEFT", 2200), &err);
	test_note("%u were left behind: %s", num, strerror(err));
	CHECK(!err || err == ENOMEM);
	write_soon(d, mr, odp_map(PAGE));
	stuck_end();
}

/* Leaves behind what its cgroup allows. */
static void greedy(const void *arg)
{
	int err;
	unsigned int num = leave_many(2000, &err);

	test_note("%u were left behind", num);
	CHECK_ERR(err, EAGAIN);
	fflush(stdout);
}

static unsigned int charged(void)
{
	unsigned int handles = 0, objects = 0;
	char line[200];

	cgroup_line("rdma.current", dev_name(), line, sizeof(line));
	if (*line)
		REQUIRE(sscanf(line, "%*s hca_handle=%u hca_object=%u", &handles, &objects) == 2);
	return objects;
}

TEST(share, "F-062 J-027 pages that contexts have left behind are in the share of their user")
{
	struct dev *d;

	test_timeout(200);
	stuck_start();
	cgroup_open("+rdma");
	cgroup_limit("hca_handle=%d hca_object=%d", 10, 100);
	user_ended(user_start(greedy, NULL, 10001, true), "the greedy user", 0);
	CHECK(charged() > 90);
	d = odp_open();
	write_soon(d, odp_reg(d, NULL, SIZE_MAX, 0), odp_map(PAGE));
	stuck_end();
	sleep_ms(SOON);
	CHECK_EQ(charged(), 0);
	cgroup_remove();
}

static struct end waiting(struct dev *d, struct ibv_mr **mr)
{
	struct buf to = buf_new(d->pd, PAGE, REMOTE);
	uint8_t *mem = stuck_map(LEN);
	struct pair p;

	p = pair_new(d, &QP_OPTS, &CONN);
	*mr = odp_reg(d, mem, LEN, 0);
	odp_post_write(&p, mem, *mr, &to);
	sleep_ms(500);
	return p.a;
}

static void go_region(struct dev *d, struct end *e, struct ibv_mr *mr)
{
	CHECK_ERR(ibv_dereg_mr(mr), 0);
	CHECK_EQ(poll_get(e->send_cq).status, IBV_WC_LOC_PROT_ERR);
}

static void go_qp(struct dev *d, struct end *e, struct ibv_mr *mr)
{
	CHECK_ERR(ibv_destroy_qp(e->qp), 0);
	CHECK_ERR(ibv_dereg_mr(mr), 0);
}

static void go_device(struct dev *d, struct end *e, struct ibv_mr *mr)
{
	device_reset();
	device_wait_back(d->gid_index);
}

static void go_advice(struct dev *d, struct end *e, struct ibv_mr *mr)
{
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		struct dev *mine = odp_open();
		uint8_t *mem = stuck_map(LEN);
		struct ibv_mr *odp = odp_reg(mine, mem, LEN, 0);
		struct ibv_sge sge = { (uintptr_t)mem, LEN, odp->lkey };

		ibv_advise_mr(mine->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
			      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
		_exit(0);
	}
	sleep_ms(500);
	go_device(d, e, mr);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
}

static const struct {
	const char *name;
	void (*go)(struct dev *d, struct end *e, struct ibv_mr *mr);
} ends[] = {
	{ "region", go_region },
	{ "QP", go_qp },
	{ "function reset", go_device },
	{ "function reset during a prefetch", go_advice },
};

TEST_ROWS(gone, "F-062 J-021 nothing waits for a page that does not come", ends)
{
	struct dev *d = odp_open();
	int64_t begin;
	struct ibv_mr *mr;
	struct end e;

	test_timeout(200);
	if (geteuid())
		test_skip("needs root");
	stuck_start();
	e = waiting(d, &mr);
	begin = time_ms();
	row->go(d, &e, mr);
	begin = time_ms() - begin;
	if (begin > 6 * SOON)
		FAIL("it took %d ms", (int)begin);
	test_note("it took %d ms", (int)begin);
	stuck_end();
}

/* A file that is shorter than its mapping: what is behind its end raises SIGBUS. */
TEST(sigbus, "F-063 a page that cannot be had is refused at once")
{
	struct dev *d = odp_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf to = buf_new(d->pd, PAGE, REMOTE);
	int fd = memfd_create("short", 0);
	int64_t begin;
	uint8_t *mem;

	REQUIRE(fd >= 0 && !ftruncate(fd, PAGE));
	mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(mem != MAP_FAILED);
	begin = time_ms();
	odp_post_write(&p, mem + PAGE, odp_reg(d, mem, 2 * PAGE, 0), &to);
	CHECK_EQ(poll_get(p.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
	begin = time_ms() - begin;
	test_note("it took %d ms", (int)begin);
	CHECK(begin < 500 * test_patience());
}

static long free_mib(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	REQUIRE(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemAvailable: %ld", &kib);
	fclose(f);
	return kib / 1024;
}

#define PIECE	(8ul << 20)
#define PIECES	8192ul

static void advise(struct dev *d, struct ibv_mr *mr, uint64_t at, uint32_t len,
		   enum ibv_advise_mr_advice advice)
{
	struct ibv_sge sge = { at, len, mr->lkey };

	CHECK_ERR(ibv_advise_mr(d->pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
}

TEST(empty, "F-064 an implicit region costs nothing where the device has no pages")
{
	struct dev *d = odp_open();
	struct ibv_mr *mr = odp_reg(d, NULL, SIZE_MAX, LOCAL);
	const uint64_t nothing = 0x100000000000;
	long before = free_mib(), left;
	unsigned long i, num = 1024;
	uint8_t *mem;

	test_timeout(200);
	for (i = 0; i < PIECES; i += 128)
		advise(d, mr, nothing + i * PIECE, 128 * PIECE,
		       IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
	left = before - free_mib();
	test_note("%ld MiB less after a look at nothing", left);
	CHECK(left < 64);
	mem = odp_map(num * PIECE);
	for (i = 0; i < num; i++)
		advise(d, mr, (uintptr_t)mem + i * PIECE, 1,
		       IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	left = before - free_mib();
	test_note("%ld MiB less with a page in each of %lu pieces", left, num);
	REQUIRE_OK(munmap(mem, num * PIECE));
	sleep_ms(1000);
	left = before - free_mib();
	test_note("%ld MiB less when they have gone", left);
	CHECK(left < 24);
}
