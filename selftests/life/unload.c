// SPDX-License-Identifier: GPL-2.0
/*
 * The driver is unloaded while a process with the device open asks for a page that never comes.
 * Loading it again is up to the caller.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ondemand.h"
#include "lib/stuck.h"

#define LEN	(1ul << 20)
#define LONG_MS	(60000 * (int)test_patience())
#define MODULE	"/sys/module/qhca_ib"

/* Returns whether the module is on its way out, or has gone if @gone. */
static bool module_is(bool gone)
{
	char text[16] = "";
	int fd = open(MODULE "/initstate", O_RDONLY);

	if (fd < 0)
		return gone;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return !gone && !strncmp(text, "going", 5);
}

static bool module_wait(bool gone)
{
	int64_t end = time_ms() + LONG_MS;

	while (!module_is(gone)) {
		if (time_ms() > end)
			return false;
		sched_yield();		/* not longer: the first wait is for a moment */
	}
	return true;
}

TEST(unload, "F-062 J-021 a page that is asked for while the driver is unloaded does not keep it")
{
	struct dev *d = odp_open();
	struct ibv_mr *mr;
	struct buf to;
	struct pair p;
	uint8_t *mem;
	pid_t pid;

	test_timeout(200);
	stuck_start();
	mem = stuck_map(LEN);
	mr = odp_reg(d, mem, LEN, 0);
	to = buf_new(d->pd, PAGE, REMOTE);
	p = pair_new(d, &QP_OPTS, &CONN);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		/* Another request for pages may be under way. */
		execlp("sh", "sh", "-c", "for i in $(seq 600); do rmmod qhca_ib && exit; "
		       "sleep 0.1; done", NULL);
		_exit(1);
	}
	REQUIRE(module_wait(false));
	odp_post_write(&p, mem, mr, &to);
	if (!module_wait(true))
		FAIL("the driver is still there after %d ms", LONG_MS);
	stuck_end();
	REQUIRE(waitpid(pid, NULL, 0) == pid);
}
