// SPDX-License-Identifier: GPL-2.0
/*
 * A window is allocated and bound while the region that it is going to use is about to be
 * deregistered: that fails, and nothing else happens.
 *
 * The destroyer waits for the command queue. It does so in every run, because the test fills the
 * queue with commands that the device executes slowly, and keeps the only CPU of the destroyer busy
 * when the wait is over.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/faults.h"
#include "lib/window.h"

#define PAGE	4096
#define STALL	3000	/* ms; must match the rule */
#define RULE	"cmd opcode=alloc_pd once stall=3s"
/* From here on the only CPU of the destroyer is kept busy, in ms since the start. */
#define HURRY	(STALL - 300)
/* The command queue has 32 slots. */
#define CROWD	40
#define TRIES	5

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
}

/* struct race - one attempt */
struct race {
	struct dev *d;
	struct end e;
	struct buf buf;
	struct ibv_mw *mw;
	int64_t start;
	atomic_int done;		/* threads of the crowd that have finished */
	atomic_int tids[CROWD + 1];	/* the last one is the destroyer's */
	int err;
};

struct member {
	struct race *r;
	int n;
};

/* Runs this thread on CPU 0, or on all others. */
static void run_on(bool first)
{
	long i, n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	for (i = 1; !first && i < n; i++)
		CPU_SET(i, &set);
	if (!first)
		CPU_CLR(0, &set);
	REQUIRE(!sched_setaffinity(0, sizeof(set), &set));
}

static void *crowd(void *arg)
{
	struct member *m = arg;
	struct ibv_pd *pd;

	run_on(false);
	atomic_store(&m->r->tids[m->n], (int)syscall(SYS_gettid));
	pd = ibv_alloc_pd(m->r->d->ctx);
	atomic_fetch_add(&m->r->done, 1);
	if (pd)
		ibv_dealloc_pd(pd);
	return NULL;
}

static void *destroyer(void *arg)
{
	struct race *r = arg;

	run_on(true);
	atomic_store(&r->tids[CROWD], (int)syscall(SYS_gettid));
	r->err = ibv_dereg_mr(r->buf.mr);
	return NULL;
}

/* Whether thread @n waits in the kernel, uninterruptibly. */
static bool waits(struct race *r, int n)
{
	int tid = atomic_load(&r->tids[n]);
	char path[64], state = 0;
	FILE *f;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'D';
}

static int64_t elapsed(const struct race *r)
{
	return time_ms() - r->start;
}

/* Returns false if the threads do not wait in time. */
static bool wait_for(struct race *r, int first, int last)
{
	int i;

	for (i = first; i <= last && elapsed(r) < HURRY;)
		if (waits(r, i))
			i++;
		else
			sleep_ms(1);
	return i > last;
}

static void hurry(bool on)
{
	struct sched_param param = { .sched_priority = on ? 1 : 0 };

	REQUIRE(!sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param));
}

/* When the crowd has finished the destroyer is next, but it cannot run before this ends. */
static void bind_first(struct race *r)
{
	while (elapsed(r) < HURRY)
		sleep_ms(1);
	hurry(true);
	while (atomic_load(&r->done) < CROWD && elapsed(r) < STALL + 500)
		;
	r->mw = ibv_alloc_mw(r->d->pd, IBV_MW_TYPE_1);
	if (r->mw)
		mw_bind(&r->e, r->mw, mw_part(&r->buf, 0, PAGE, MW_RW));
	hurry(false);
	REQUIRE(r->mw);
}

static void run_race(struct race *r)
{
	struct member members[CROWD];
	pthread_t threads[CROWD + 1];
	bool ready;
	int i;

	run_on(true);
	REQUIRE_OK(faults_set(RULE));
	r->start = time_ms();
	for (i = 0; i < CROWD; i++) {
		members[i] = (struct member){ r, i };
		REQUIRE_OK(pthread_create(&threads[i], NULL, crowd, &members[i]));
	}
	ready = wait_for(r, 0, CROWD - 1);
	REQUIRE_OK(pthread_create(&threads[CROWD], NULL, destroyer, r));
	ready = wait_for(r, CROWD, CROWD) && ready;
	if (ready)
		bind_first(r);
	for (i = 0; i <= CROWD; i++)
		REQUIRE_OK(pthread_join(threads[i], NULL));
}

static struct race race_new(void)
{
	struct race r = { .d = faults_open(), .err = -1 };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		test_skip("needs two CPUs");
	r.e = end_in(r.d, &QP_OPTS, IBV_QPS_RTS);
	r.buf = buf_new(r.d->pd, PAGE, BINDABLE);
	return r;
}

/* Repeats the race until the destroyer fails with EBUSY. The device must survive every try. */
static struct race race_until_busy(void)
{
	struct race r;
	int i;

	test_timeout(120);
	for (i = 0; i < TRIES; i++) {
		r = race_new();
		run_race(&r);
		REQUIRE(ibv_alloc_pd(r.d->ctx));
		if (r.err == EBUSY)
			return r;
		CHECK_EQ(r.err, 0);
	}
	FAIL("the window was bound too late %d times", TRIES);
	test_die();
}

TEST(mr, "F-009 J-018 a window is bound while its region is about to be destroyed")
{
	struct race r = race_until_busy();

	CHECK_ERR(ibv_dereg_mr(r.buf.mr), EBUSY);
	CHECK_ERR(ibv_dealloc_mw(r.mw), 0);
	CHECK_ERR(ibv_dereg_mr(r.buf.mr), 0);
	CHECK_ERR(ibv_destroy_qp(r.e.qp), 0);
}
