// SPDX-License-Identifier: GPL-2.0
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "life.h"

void device_break(void)
{
	static const char object[] = "\"path\": \"/machine/peripheral/qhca0\"";
	static const char value[] = "\"property\": \"inject-fatal\", \"value\": true";
	static const char leave[] =
		"devlink dev | xargs -IDEV devlink health set DEV reporter hca auto_recover false";
	char cmd[256];

	/* The driver shall not restart it. */
	if (system(leave))
		test_skip("devlink does not respond");
	snprintf(cmd, sizeof(cmd),
		 "qhca-host qmp '{\"execute\": \"qom-set\", \"arguments\": {%s, %s}}' >/dev/null",
		 object, value);
	if (system(cmd))
		test_skip("the launcher does not respond");
}

void server_kill(void)
{
	if (system("qhca-host server kill >/dev/null"))
		test_skip("needs vm --mortal-server");
}

/* The file of the PCI function that the driver is bound to. */
static void function_write(const char *name)
{
	char pattern[64];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/drivers/qhca/*:*:*/%s", name);
	if (glob(pattern, 0, NULL, &g))
		test_skip("no PCI function is bound to the driver");
	CHECK_ERR(write_file(g.gl_pathv[0], "1"), 0);
	globfree(&g);
}

static bool host_does(const char *cmd)
{
	int64_t end = time_ms() + WAIT_MS;

	while (system(cmd)) {
		if (time_ms() >= end)
			return false;
		sleep_ms(100);
	}
	return true;
}

void server_replace(void)
{
	function_write("remove");
	CHECK(host_does("qhca-host server start >/dev/null"));
	CHECK(host_does("qhca-host plug >/dev/null"));
	/* The network device is also a new one, without an address. */
	CHECK(host_does("/opt/qhca/guest/setup.sh eth >/dev/null"));
}

void device_reset(void)
{
	function_write("reset");
}

static bool usable(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;
	int i;

	for (i = 0; list && list[i]; i++)
		found = found || !strcmp(ibv_get_device_name(list[i]), dev_name());
	if (list)
		ibv_free_device_list(list);
	return found;
}

void device_wait_back(int gid_index)
{
	int64_t end = time_ms() + WAIT_MS;
	char path[128];

	while (!usable() && time_ms() < end)
		sleep_ms(20);
	CHECK(usable());
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
		 dev_name(), gid_index);
	for (; time_ms() < end; sleep_ms(20)) {
		FILE *f = fopen(path, "r");
		int c = f ? fgetc(f) : EOF;

		if (f)
			fclose(f);
		if (c != EOF)
			return;
	}
	FAIL("the GID is not back");
}
