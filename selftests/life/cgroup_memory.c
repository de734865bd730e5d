// SPDX-License-Identifier: GPL-2.0
/*
 * The cgroup of the user pays for memory that the driver keeps for the user or needs for a command.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define PAGE		4096
#define REGIONS		4000
/* Pages of a file, none of which is contiguous with the one before, and how often to map them. */
#define PAGES		8192
#define TIMES		16
#define LEN		((size_t)PAGES * PAGE)
/* The kernel charges a cgroup for that many pages in advance. */
#define BATCH		64

static struct dev *d;

static void *make_mr(void *addr, size_t len)
{
	return ibv_reg_mr(d->pd, addr, len, REMOTE);
}

/* ---- memory that the driver keeps for each region */

static void register_many(const void *arg)
{
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
	int i;

	d = dev_open_qhca();
	atomic_store(&shared->done, 1);
	while (!atomic_load(&shared->go))
		sleep_ms(1);
	for (i = 0; i < REGIONS; i++)
		REQUIRE(make_mr(page, PAGE));
	atomic_store(&shared->done, 2);
	pause();
}

TEST(keeps, "J-018 memory that the driver keeps for a region is charged to the user's cgroup")
{
	const char *slab = "slab_unreclaimable ";
	long before, after;
	pid_t pid;

	cgroup_open("+memory");
	pid = user_start(register_many, NULL, 10001, true);
	user_wait(pid, 1);
	before = cgroup_number("memory.stat", slab);
	atomic_store(&shared->go, 1);
	user_wait(pid, 2);
	after = cgroup_number("memory.stat", slab);
	test_note("%ld bytes for each region", (after - before) / REGIONS);
	CHECK(after - before >= REGIONS * 128);
	user_stop(pid);
	cgroup_remove();
}

/* ---- the table that describes a region to the device */

/* Maps a file many times, whose pages alternate in memory with another file's. */
static uint8_t *scattered(void)
{
	int fd[2] = { memfd_create("mine", 0), memfd_create("between", 0) };
	uint8_t *mem;
	int i;

	REQUIRE(fd[0] >= 0 && fd[1] >= 0 && !ftruncate(fd[0], LEN) && !ftruncate(fd[1], LEN));
	for (i = 0; i < PAGES; i++)
		REQUIRE(pwrite(fd[0], "", 1, (off_t)i * PAGE) == 1 &&
			pwrite(fd[1], "", 1, (off_t)i * PAGE) == 1);
	close(fd[1]);
	mem = mmap(NULL, TIMES * LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	for (i = 0; i < TIMES; i++)
		REQUIRE(mmap(mem + i * LEN, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     fd[0], 0) != MAP_FAILED);
	return mem;
}

/* Make the page tables of the process first, because they are charged as well. */
static void register_large(const void *arg)
{
	uint8_t *mem = (uint8_t *)arg;
	size_t i;

	d = dev_open_qhca();
	for (i = 0; i < TIMES * LEN; i += PAGE)
		mem[i] = 1;
	atomic_store(&shared->done, 1);
	while (!atomic_load(&shared->go))
		sleep_ms(1);
	REQUIRE(make_mr(mem, TIMES * LEN));
	atomic_store(&shared->done, 2);
	pause();
}

TEST(table, "J-018 the table that describes a region is charged while it exists")
{
	const long table = PAGES * TIMES * 8L / PAGE, least = (table - BATCH) * PAGE;
	long before, after;
	pid_t pid;

	cgroup_open("+memory");
	if (access(CGROUP "/memory.peak", F_OK))
		test_skip("no memory.peak");
	pid = user_start(register_large, scattered(), 10001, true);
	user_wait(pid, 1);
	before = cgroup_number("memory.current", "");
	REQUIRE(cgroup_number("memory.peak", "") < before + least);
	atomic_store(&shared->go, 1);
	user_wait(pid, 2);
	after = cgroup_number("memory.peak", "");
	test_note("at most %ld KiB more, for a table of %ld", (after - before) / 1024,
		  table * PAGE / 1024);
	CHECK(after - before >= least);
	user_stop(pid);
	cgroup_remove();
}
