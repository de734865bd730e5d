// SPDX-License-Identifier: GPL-2.0
/*
 * The operator changes the speed of the port. Needs a launcher, and the interface's name in
 * QHCA_IF, and restores the speed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "lib/rdma.h"

static void set_bandwidth(int mbps)
{
	static const char object[] = "\"path\": \"/machine/peripheral/qhca0\"";
	static const char set[] = "\"execute\": \"qom-set\"";
	char cmd[256];

	snprintf(cmd, sizeof(cmd),
		 "qhca-host qmp '{%s, \"arguments\": {%s, \"property\": \"bandwidth\", \"value\": %d}}'",
		 set, object, mbps);
	strcat(cmd, " >/dev/null");
	if (system(cmd))
		test_skip("the launcher does not respond");
}

static int if_speed(void)
{
	char path[128];
	int mbps = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", getenv("QHCA_IF"));
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%d", &mbps) != 1)
			mbps = -1;
		fclose(f);
	}
	return mbps;
}

#define SPEED_CHANGE	20	/* IBV_EVENT_DEVICE_SPEED_CHANGE, rdma-core 62 */

/* Whether the program and the kernel know the verb, and what it says: units of 100 Mb/s. */
static bool port_speed(struct dev *d, uint64_t *speed)
{
	int (*query)(struct ibv_context *ctx, uint32_t port, uint64_t *speed);

	*(void **)&query = dlsym(NULL, "ibv_query_port_speed");
	return query && !query(d->ctx, PORT, speed);
}

static void check_speed(struct dev *d, int mbps, int width, int speed, bool event)
{
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_async_event ev;
	struct ibv_port_attr attr;
	uint64_t units;

	set_bandwidth(mbps);
	while (if_speed() != mbps && time_ms() < end)
		sleep_ms(10);
	CHECK_EQ(if_speed(), mbps);
	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &attr));
	CHECK_EQ(attr.active_width, width);
	CHECK_EQ(attr.active_speed, speed);
	CHECK_EQ(attr.state, IBV_PORT_ACTIVE);
	if (port_speed(d, &units))
		CHECK_EQ(units, (mbps + 99) / 100);
	if (event) {
		REQUIRE(async_wait(d->ctx, &ev, WAIT_MS));
		CHECK_EQ((int)ev.event_type, SPEED_CHANGE);
		CHECK_EQ(ev.element.port_num, PORT);
		ibv_ack_async_event(&ev);
	}
	CHECK(!async_wait(d->ctx, &ev, 100));
}

static bool kernel_has_event(void)
{
	struct utsname u;

	REQUIRE(!uname(&u));
	return strtoul(u.release, NULL, 10) >= 7;
}

TEST(speed_changes, "J-012 H-016 the operator changes the speed: interface, port, event")
{
	struct dev *d = dev_open_qhca();
	bool event = kernel_has_event();

	if (!getenv("QHCA_IF"))
		test_skip("QHCA_IF does not name the interface");
	if (if_speed() != 100000)
		test_skip("the port has a limit from the start");
	check_speed(d, 25000, 1, 32, event);
	check_speed(d, 1000, 1, 1, event);
	check_speed(d, 100000, 2, 32, event);
	set_bandwidth(0);
}
