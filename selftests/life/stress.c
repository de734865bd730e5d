// SPDX-License-Identifier: GPL-2.0
/*
 * Processes whose threads create, use, change and destroy objects of all kinds at random are killed
 * at random. They must not harm other processes, and must leave nothing behind.
 *
 * STRESS_SEED determines what each thread does (not when), STRESS_MS is the duration.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/churn.h"

#define PROCESSES	3
#define THREADS		3
#define LONG_LIFE	2000	/* operations */

/* struct child - a process that is killed after so many operations */
struct child {
	pid_t pid;
	uintptr_t seed;
	uint32_t life;
	uint32_t ops;
};

static void process(struct child *c)
{
	pthread_t id;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	churn_open(&c->ops);
	for (i = 1; i < THREADS; i++)
		REQUIRE_OK(pthread_create(&id, NULL, churn_thread, (void *)(c->seed + i)));
	churn_thread((void *)c->seed);
}

static void start(struct child *c, uintptr_t seed)
{
	pid_t pid;

	c->seed = seed;
	c->life = below(LONG_LIFE);
	c->ops = 0;
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		process(c);
		_exit(0);
	}
	c->pid = pid;
}

static uint32_t stop(struct child *c)
{
	int status;

	kill(c->pid, SIGKILL);
	REQUIRE(waitpid(c->pid, &status, 0) == c->pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("seed %#lx: ended by itself, status %#x", (long)c->seed, status);
	return c->ops;
}

/* Returns the seed for the threads of process @n. */
static uintptr_t seed_of(long seed, unsigned int n)
{
	return seed * 0x10000 + n * THREADS;
}

/* Runs for @ms. Returns the number of operations, and of processes in @n. */
static unsigned long run(struct child *children, long seed, long ms, unsigned int *n)
{
	int64_t end = time_ms() + ms;
	unsigned long ops = 0;
	struct child *c;

	for (c = children; c < children + PROCESSES; c++)
		start(c, seed_of(seed, (*n)++));
	for (; time_ms() < end; sleep_ms(20)) {
		for (c = children; c < children + PROCESSES; c++) {
			if (__atomic_load_n(&c->ops, __ATOMIC_RELAXED) <= c->life)
				continue;
			ops += stop(c);
			start(c, seed_of(seed, (*n)++));
		}
	}
	for (c = children; c < children + PROCESSES; c++)
		ops += stop(c);
	return ops;
}

TEST(killed, "J-018 J-020 processes with objects of all kinds are killed at random")
{
	long seed = from_env("STRESS_SEED", 1), ms = from_env("STRESS_MS", 8000);
	char before[1024];
	struct child *children;
	unsigned long ops;
	unsigned int n = 0;
	uint64_t packets;
	struct pair p;

	test_timeout(ms / 1000 + 120);
	chance_seed(seed);
	children = mmap(NULL, PROCESSES * sizeof(*children), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(children != MAP_FAILED);
	resources(before, sizeof(before));
	packets = hw_counter("rx_pkts");
	ops = run(children, seed, ms, &n);
	packets = hw_counter("rx_pkts") - packets;
	test_note("seed %ld: %lu operations by %u processes, %llu packets", seed, ops, n,
		  (unsigned long long)packets);
	CHECK(ops > 0);
	check_resources(before);
	p = pair_default();
	ping_pong(&p);
}
