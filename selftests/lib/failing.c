// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "failing.h"
#include "rdma.h"

#define FAULTS	"/sys/kernel/debug/"

static int fail_fd = -1;

/* Caches of the kernel's debugging: it does without, and each allocation would take two. */
static bool is_debug(const char *cache)
{
	static const char *const caches[] = {
		"kmemleak_object", "kmemleak_scan_area", "debug_objects_cache",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caches); i++)
		if (!strcmp(cache, caches[i]))
			return true;
	return false;
}

/* All caches but those. Those that share their memory with others cannot be marked. */
static void choose_caches(void)
{
	DIR *caches = opendir("/sys/kernel/slab");
	unsigned int n = 0;
	struct dirent *e;
	char path[300];

	while (caches && (e = readdir(caches))) {
		if (e->d_name[0] == '.' || is_debug(e->d_name))
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", e->d_name);
		n += !write_file(path, "1");
	}
	if (caches)
		closedir(caches);
	/* Nothing can be chosen where caches are shared, or in a kernel without the files. */
	write_file(FAULTS "failslab/cache-filter", n > 50 ? "Y" : "N");
}

void failing_allow(void)
{
	static const struct { const char *file, *value; } switches[] = {
		{ FAULTS "failslab/ignore-gfp-wait", "N" },
		{ FAULTS "failslab/verbose", "0" },
		{ FAULTS "fail_page_alloc/ignore-gfp-wait", "N" },
		{ FAULTS "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ FAULTS "fail_page_alloc/min-order", "0" },
		{ FAULTS "fail_page_alloc/verbose", "0" },
	};
	size_t i;

	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_fd < 0)
		test_skip("this kernel's allocations cannot be made to fail");
	for (i = 0; i < ARRAY_SIZE(switches); i++)
		if (write_file(switches[i].file, switches[i].value))
			test_skip("no %s", switches[i].file);
	choose_caches();
}

void failing_arm(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	REQUIRE(pwrite(fail_fd, text, len, 0) == len);
}

/* How many are still to be made until one fails. */
static unsigned int stop(void)
{
	char text[16] = "";

	REQUIRE(pread(fail_fd, text, sizeof(text) - 1, 0) > 0);
	failing_arm(0);
	return atoi(text);
}

bool failing_disarm(void)
{
	return !stop();
}

unsigned int failing_count(unsigned int nth)
{
	return nth - stop();
}

bool failing_may_be(int err)
{
	return err == ENOMEM || err == ENOBUFS;
}

/* The allocations that this makes to fail include its own. */
static int set_switch(const char *path, const char *value)
{
	int err, tries = 100;

	do
		err = write_file(path, value);
	while (err == ENOMEM && tries--);
	return err;
}

void failing_workers(unsigned int percent)
{
	static const char *const kinds[] = { FAULTS "failslab/", FAULTS "fail_page_alloc/" };
	char path[128], text[16];
	size_t i;

	snprintf(text, sizeof(text), "%u", percent);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "%stask-filter", kinds[i]);
		REQUIRE_OK(set_switch(path, percent ? "Y" : "N"));
		snprintf(path, sizeof(path), "%stimes", kinds[i]);
		REQUIRE_OK(set_switch(path, percent ? "-1" : "1"));
		snprintf(path, sizeof(path), "%sprobability", kinds[i]);
		REQUIRE_OK(set_switch(path, text));
	}
}

/* Whether the file has the name of a worker that works for any CPU. */
static bool is_worker(const char *comm)
{
	static const char name[] = "kworker/u";
	char text[sizeof(name)] = "";
	int fd = open(comm, O_RDONLY);

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(name) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return !strcmp(text, name);
}

unsigned int failing_mark(bool on)
{
	DIR *proc = opendir("/proc");
	unsigned int n = 0;
	struct dirent *e;
	char path[300];

	REQUIRE(proc);
	while ((e = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		if (!is_worker(path))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/make-it-fail", e->d_name);
		n += !write_file(path, on ? "1" : "0");
	}
	closedir(proc);
	return n;
}
