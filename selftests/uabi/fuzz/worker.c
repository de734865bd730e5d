// SPDX-License-Identifier: GPL-2.0
/* A hostile process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fuzz.h"

#define THREADS		3

/* Returns a dma-buf of four pages of a memfd, or -1 if the kernel has no udmabuf. */
static int dmabuf_new(void)
{
	struct udmabuf_create create = { .size = 4 * PAGE };
	int dev = open("/dev/udmabuf", O_RDWR), file = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	int fd = -1;

	if (dev >= 0 && file >= 0 && !ftruncate(file, create.size) &&
	    !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = file;
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	}
	close(dev);
	close(file);
	return fd;
}

static void open_contexts(void)
{
	int ctx;

	for (ctx = 0; ctx < CONTEXTS; ctx++) {
		/* Reserve the number of the file descriptor. */
		fuzz.fd[ctx] = open("/dev/null", O_RDWR | O_CLOEXEC);
		fuzz.db[ctx] = doorbell_place(ctx);
		REQUIRE(reopen(ctx));
	}
}

static void step(void)
{
	uint32_t n = below(1000);

	if (n < 600)
		any_call();
	else if (n < 900)
		ring_something();
	else if (n < 940)
		map_something();
	else if (n < 960)
		use_events();
	else if (n < 996)
		disturb();
	else if (n < 998)
		reopen(below(CONTEXTS));
	else
		fork_something();
}

struct thread {
	uint32_t number;
	uint64_t seed;
};

static void *run(void *arg)
{
	struct thread *t = arg;

	memory_thread_init(t->number);
	chance_seed(t->seed + t->number);
	for (;;)
		step();
	return NULL;
}

/* Makes every other process unprivileged. */
static void drop_rights(void)
{
	REQUIRE(!setresgid(65534, 65534, 65534));
	REQUIRE(!setresuid(65534, 65534, 65534));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void worker(uint64_t seed)
{
	static struct thread threads[THREADS];
	pthread_t id;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	fuzz.dmabuf = dmabuf_new();
	fuzz.tmpfile = memfd_create("xrcd", 0);
	REQUIRE(fuzz.tmpfile >= 0);
	if (seed & 1)
		drop_rights();
	memory_init();
	open_contexts();
	for (i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ i, seed * THREADS };
		if (i)
			REQUIRE_OK(pthread_create(&id, NULL, run, &threads[i]));
	}
	run(&threads[0]);
}
