// SPDX-License-Identifier: GPL-2.0
/*
 * The port follows its network interface: state, MTU, addresses, events. Needs
 * root and the interface's name in QHCA_IF, and leaves everything as it was.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

static const char *ifname(void)
{
	const char *name = getenv("QHCA_IF");

	if (!name || !*name)
		test_skip("QHCA_IF does not name the interface");
	if (geteuid())
		test_skip("needs root");
	return name;
}

__attribute__((format(printf, 1, 2)))
static void run(const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd))
		FAIL("%s: failed", cmd);
}

static struct ibv_port_attr port_attr(struct dev *d)
{
	struct ibv_port_attr attr;

	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &attr));
	return attr;
}

static void wait_port(struct dev *d, enum ibv_port_state state)
{
	int64_t end = time_ms() + WAIT_MS;

	while (port_attr(d).state != state && time_ms() < end)
		sleep_ms(10);
	CHECK_EQ(port_attr(d).state, state);
}

/* The address comes and goes with the interface. */
static void wait_gid(struct dev *d)
{
	int64_t end = time_ms() + WAIT_MS;
	union ibv_gid gid;

	do {
		if (!ibv_query_gid(d->ctx, PORT, d->gid_index, &gid) &&
		    !memcmp(&gid, &d->gid, sizeof(gid)))
			return;
		sleep_ms(10);
	} while (time_ms() < end);
	FAIL("the GID does not come back");
}

TEST(updown, "J-009 H-012 the port's state and events follow the interface")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	int i;

	for (i = 0; i < 3; i++) {
		run("ip link set dev %s down", name);
		async_expect(d->ctx, IBV_EVENT_PORT_ERR, NULL);
		CHECK_EQ(port_attr(d).state, IBV_PORT_DOWN);
		CHECK(port_attr(d).phys_state == 2 /* POLLING */ ||
		      port_attr(d).phys_state == 3 /* DISABLED */);
		run("ip link set dev %s up", name);
		async_expect(d->ctx, IBV_EVENT_PORT_ACTIVE, NULL);
		wait_port(d, IBV_PORT_ACTIVE);
		CHECK_EQ(port_attr(d).phys_state, 5 /* LINK_UP */);
	}
	wait_gid(d);
	async_none(d->ctx);
}

TEST(everyone, "H-020 a port event reaches every context")
{
	const char *name = ifname();
	struct dev *d[3];
	int i;

	for (i = 0; i < 3; i++)
		d[i] = dev_open_qhca();
	run("ip link set dev %s down", name);
	for (i = 0; i < 3; i++)
		async_expect(d[i]->ctx, IBV_EVENT_PORT_ERR, NULL);
	run("ip link set dev %s up", name);
	for (i = 0; i < 3; i++)
		async_expect(d[i]->ctx, IBV_EVENT_PORT_ACTIVE, NULL);
	wait_gid(d[0]);
}

TEST(survive, "J-010 QPs live through a port that is down for a while")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	struct pair p;

	/* 8 times 134 ms at least: longer than the interruption. */
	c.timeout = 15;
	p = pair_new(d, &QP_OPTS, &c);
	ping_pong(&p);
	run("ip link set dev %s down", name);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
	run("ip link set dev %s up", name);
	wait_port(d, IBV_PORT_ACTIVE);
	wait_gid(d);
	ping_pong(&p);
}

TEST(gid_change, "H-013 J-014 GID_CHANGE: an address comes and goes")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	static const uint8_t want[16] = {
		[10] = 0xff, 0xff, 192, 168, 213, 7
	};
	struct ibv_gid_entry e[256];
	ssize_t i, n, found = -1;

	run("ip addr add 192.168.213.7/24 dev %s", name);
	async_expect(d->ctx, IBV_EVENT_GID_CHANGE, NULL);
	n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
	for (i = 0; i < n; i++)
		if (!memcmp(e[i].gid.raw, want, sizeof(want)))
			found = e[i].gid_index;
	CHECK(found >= 0);
	run("ip addr del 192.168.213.7/24 dev %s", name);
	async_expect(d->ctx, IBV_EVENT_GID_CHANGE, NULL);
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, found, &e[0], 0), ENODATA);
	wait_gid(d);	/* the others stay where they are */
}

static const struct {
	const char *name;
	int netdev;
	enum ibv_mtu path;
} mtus[] = {
	/* The kernel's iboe_get_mtu() keeps 96 bytes for headers. */
	{ "netdev 607: 256", 607, IBV_MTU_256 },
	{ "netdev 608: 512", 608, IBV_MTU_512 },
	{ "netdev 1119: 512", 1119, IBV_MTU_512 },
	{ "netdev 1120: 1024", 1120, IBV_MTU_1024 },
	{ "netdev 1500: 1024", 1500, IBV_MTU_1024 },
	{ "netdev 2144: 2048", 2144, IBV_MTU_2048 },
	{ "netdev 4191: 2048", 4191, IBV_MTU_2048 },
	{ "netdev 4192: 4096", 4192, IBV_MTU_4096 },
	{ "netdev 9000: 4096", 9000, IBV_MTU_4096 },
};

TEST_ROWS(mtu, "J-011 active_mtu follows the interface", mtus)
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();

	run("ip link set dev %s mtu %d", name, row->netdev);
	CHECK_EQ(port_attr(d).active_mtu, row->path);
	CHECK_EQ(port_attr(d).max_mtu, IBV_MTU_4096);
	run("ip link set dev %s mtu 4200", name);
}

TEST(speed, "J-012 width and speed are those of the interface")
{
	struct dev *d = dev_open_qhca();
	struct ibv_port_attr attr = port_attr(d);
	char path[128];
	int mbps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", ifname());
	f = fopen(path, "r");
	REQUIRE(f && fscanf(f, "%d", &mbps) == 1);
	fclose(f);
	/* ib_get_eth_speed(): 4X EDR from 100 Gb/s on. */
	CHECK_EQ(mbps, 100000);
	CHECK_EQ(attr.active_width, 2 /* 4X */);
	CHECK_EQ(attr.active_speed, 32 /* EDR */);
}

TEST(never, "H-007 H-011 H-014 events that this port never raises")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	struct ibv_async_event ev;

	run("ip link set dev %s down", name);
	run("ip link set dev %s up", name);
	wait_port(d, IBV_PORT_ACTIVE);
	wait_gid(d);
	while (async_wait(d->ctx, &ev, QUIET_MS))
		if (ev.event_type != IBV_EVENT_PORT_ERR &&
		    ev.event_type != IBV_EVENT_PORT_ACTIVE &&
		    ev.event_type != IBV_EVENT_GID_CHANGE)
			FAIL("%s", ibv_event_type_str(ev.event_type));
}

TEST(ack_delay, "J-006 an answer comes within local_ca_ack_delay")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	int64_t ms = (4096ll << d->attr.local_ca_ack_delay) / 1000000;
	int64_t start, best = 1000000;
	int i;

	CHECK(d->attr.local_ca_ack_delay > 0 && d->attr.local_ca_ack_delay < 24);
	/* The machine may be busy; the device is judged by its good days. */
	for (i = 0; i < 20; i++) {
		start = time_ms();
		ping(&p.a, &p.b);
		if (time_ms() - start < best)
			best = time_ms() - start;
	}
	CHECK(best <= ms);
}
