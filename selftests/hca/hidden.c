// SPDX-License-Identifier: GPL-2.0
/* The device in containers, which see only part of sysfs, and under other names. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

#include "lib/rdma.h"

/* Hides what is below @dir from this process, which must not have looked for devices yet. */
static void hide(const char *dir)
{
	REQUIRE(!mount("none", dir, "tmpfs", 0, NULL));
}

/* Only mounts of this process change. */
static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS))
		test_skip("no mount namespace: needs root");
	REQUIRE(!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

/* A QP of the device moves data. */
static void works(void)
{
	struct pair p = pair_default();

	ping_pong(&p);
}

static const struct {
	const char *name;
	const char *dir[2];
} places[] = {
	{ "nothing", { NULL } },
	{ "/sys/class/infiniband_verbs", { "/sys/class/infiniband_verbs" } },
	{ "/sys/class/infiniband", { "/sys/class/infiniband" } },
	{ "/sys/class", { "/sys/class" } },
	{ "PCI devices", { "/sys/bus", "/sys/devices" } },
	{ "/sys", { "/sys" } },
};

TEST_ROWS(sysfs, "J-033 the device is found and works where sysfs lacks", places)
{
	size_t i;

	dev_name();
	own_mounts();
	for (i = 0; i < ARRAY_SIZE(row->dir) && row->dir[i]; i++)
		hide(row->dir[i]);
	works();
}
