// SPDX-License-Identifier: GPL-2.0
/*
 * The port follows its network interface: state, MTU, addresses, events. Needs root and the
 * interface's name in QHCA_IF, and restores everything.
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

/* Waits for the GID: the address of the interface appears some time after the interface is up. */
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

/* Counts events of that type until no more follow. */
static int count_events(struct dev *d, enum ibv_event_type type)
{
	struct ibv_async_event ev;
	int n = 0;

	while (async_wait(d->ctx, &ev, 5 * QUIET_MS))
		n += ev.event_type == type;
	return n;
}

/* Waits for link-local addresses, which appear some time after the interface is up. */
static void settle(struct dev *d)
{
	struct ibv_async_event ev;

	while (async_wait(d->ctx, &ev, 30 * QUIET_MS))
		;
}

/* ---- GIDs; first, because the tests below add and remove addresses ---- */

TEST(gid_change, "H-013 J-013 J-014 GID_CHANGE: an address is added and removed")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	static const uint8_t want[16] = {
		[10] = 0xff, 0xff, 192, 168, 213, 7
	};
	struct ibv_gid_entry before[256], e[256];
	ssize_t i, n, num, found = -1;

	settle(d);
	num = ibv_query_gid_table(d->ctx, before, ARRAY_SIZE(before), 0);
	run("ip addr add 192.168.213.7/24 dev %s", name);
	CHECK_EQ(count_events(d, IBV_EVENT_GID_CHANGE), 1);
	n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
	CHECK_EQ(n, num + 1);
	for (i = 0; i < n; i++)
		if (!memcmp(e[i].gid.raw, want, sizeof(want)))
			found = e[i].gid_index;
	REQUIRE(found >= 0);
	run("ip addr del 192.168.213.7/24 dev %s", name);
	CHECK_EQ(count_events(d, IBV_EVENT_GID_CHANGE), 1);
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, found, &e[0], 0), ENODATA);
	/* All other GIDs keep their index. */
	REQUIRE(ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0) == num);
	for (i = 0; i < num; i++) {
		CHECK_EQ(e[i].gid_index, before[i].gid_index);
		CHECK(!memcmp(&e[i].gid, &before[i].gid, sizeof(e[i].gid)));
	}
}

/* Returns the link-local GID with the interface's MAC address. */
static void default_gid(const char *name, union ibv_gid *gid)
{
	unsigned int mac[6];
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	f = fopen(path, "r");
	REQUIRE(f && fscanf(f, "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3],
			    &mac[4], &mac[5]) == 6);
	fclose(f);
	*gid = (union ibv_gid){ .raw = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1],
					 mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] } };
}

/* The default GID is the first one. */
static void check_default_gid(struct dev *d, const union ibv_gid *want)
{
	union ibv_gid gid;

	REQUIRE_OK(ibv_query_gid(d->ctx, PORT, 0, &gid));
	CHECK(!memcmp(&gid, want, sizeof(gid)));
}

TEST(guid, "J-007 the GUIDs are derived from the interface's address")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	union ibv_gid gid;

	default_gid(name, &gid);
	CHECK_EQ(be64toh(d->attr.node_guid), be64toh(gid.global.interface_id));
	CHECK_EQ(be64toh(d->attr.sys_image_guid), be64toh(gid.global.interface_id));
	CHECK(d->attr.hw_ver && d->attr.fw_ver[0]);
}

TEST(mac, "J-013 J-014 GID_CHANGE: the default GID follows the interface's address")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	union ibv_gid old, gid;
	char address[64];
	struct pair p;

	default_gid(name, &old);
	check_default_gid(d, &old);
	snprintf(address, sizeof(address), "%02x:%02x:%02x:%02x:%02x:%02x", old.raw[8] ^ 2,
		 old.raw[9], old.raw[10], old.raw[13], old.raw[14], old.raw[15]);
	settle(d);
	run("ip link set dev %s address 52:54:00:12:99:99", name);
	CHECK(count_events(d, IBV_EVENT_GID_CHANGE) >= 1);
	default_gid(name, &gid);
	CHECK(memcmp(&gid, &old, sizeof(gid)));
	check_default_gid(d, &gid);
	wait_gid(d);
	/* Destroy the QPs first: a GID in use would return at another index. */
	p = pair_new(d, &QP_OPTS, &CONN);
	ping_pong(&p);
	REQUIRE_OK(ibv_destroy_qp(p.a.qp));
	REQUIRE_OK(ibv_destroy_qp(p.b.qp));
	run("ip link set dev %s address %s", name, address);
	CHECK(count_events(d, IBV_EVENT_GID_CHANGE) >= 1);
	check_default_gid(d, &old);
	wait_gid(d);
	p = pair_new(d, &QP_OPTS, &CONN);
	ping_pong(&p);
}

/* ---- state ---- */

/* Waits for PORT_ACTIVE or PORT_ERR, which must alternate. */
static void expect_port(struct dev *d, enum ibv_event_type type)
{
	struct ibv_async_event ev;

	do {
		REQUIRE(async_wait(d->ctx, &ev, WAIT_MS));
	} while (ev.event_type == IBV_EVENT_GID_CHANGE);
	CHECK_EQ(ev.event_type, type);
	CHECK_EQ(ev.element.port_num, PORT);
}

TEST(updown, "J-009 H-012 the port's state and events follow the interface")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	int i;

	for (i = 0; i < 3; i++) {
		run("ip link set dev %s down", name);
		expect_port(d, IBV_EVENT_PORT_ERR);
		CHECK_EQ(port_attr(d).state, IBV_PORT_DOWN);
		CHECK(port_attr(d).phys_state == 2 /* POLLING */ ||
		      port_attr(d).phys_state == 3 /* DISABLED */);
		run("ip link set dev %s up", name);
		expect_port(d, IBV_EVENT_PORT_ACTIVE);
		wait_port(d, IBV_PORT_ACTIVE);
		CHECK_EQ(port_attr(d).phys_state, 5 /* LINK_UP */);
	}
	wait_gid(d);
	CHECK_EQ(count_events(d, IBV_EVENT_PORT_ACTIVE), 0);
}

/* The CQs that the process gets until there are none left. */
static int take_cqs(struct dev *d)
{
	int n = 0;

	while (ibv_create_cq(d->ctx, 1, NULL, NULL, 0))
		n++;
	CHECK_ERR(errno, ENOMEM);
	return n;
}

TEST(cqs, "J-018 the network card gets new queues while a process has all CQs that it can have")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();

	test_timeout(200);
	CHECK(take_cqs(d) > 0);
	run("ethtool -G %s rx 256 tx 256", name);
	CHECK_EQ(take_cqs(d), 0);
	run("ip link set dev %s down", name);
	CHECK_EQ(take_cqs(d), 0);
	run("ip link set dev %s up", name);
	wait_port(d, IBV_PORT_ACTIVE);
	run("ethtool -G %s rx 1024 tx 512", name);
	wait_gid(d);
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

TEST(survive, "J-010 QPs survive a port that is down for a while")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;
	struct pair p;

	/* At least 8 times 537 ms: longer than the interruption. */
	c.timeout = 17;
	p = pair_new(d, &QP_OPTS, &c);
	ping_pong(&p);
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	run("ip link set dev %s down", name);
	wait_port(d, IBV_PORT_DOWN);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_none(p.a.send_cq);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
	run("ip link set dev %s up", name);
	wait_port(d, IBV_PORT_ACTIVE);
	wait_gid(d);
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
	ping_pong(&p);
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

TEST_ROWS(mtu, "J-011 A-063 active_mtu follows the interface, and path MTUs go up to it", mtus)
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_INIT);
	struct conn c = CONN;
	struct ibv_qp_attr a;
	int mask;

	c.dest_qpn = e.qp->qp_num;
	mask = attr_rtr(&a, d, &c);
	run("ip link set dev %s mtu %d", name, row->netdev);
	CHECK_EQ(port_attr(d).active_mtu, row->path);
	CHECK_EQ(port_attr(d).max_mtu, IBV_MTU_4096);
	a.path_mtu = row->path + 1;
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), EINVAL);
	a.path_mtu = row->path;
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), 0);
	run("ip link set dev %s mtu 4200", name);
}

/* Result of ib_get_eth_speed() for Mb/s, where all kernels agree. */
static const struct {
	int from, to;
	int width, speed;
} speeds[] = {
	{ 1, 1000, 1 /* 1X */, 1 /* SDR */ },
	{ 1001, 10000, 1 /* 1X */, 8 /* FDR10 */ },
	{ 10001, 20000, 2 /* 4X */, 2 /* DDR */ },
	{ 20001, 25000, 1 /* 1X */, 32 /* EDR */ },
	{ 25001, 40000, 2 /* 4X */, 8 /* FDR10 */ },
	{ 50001, 100000, 2 /* 4X */, 32 /* EDR */ },
};

TEST(speed, "J-012 width and speed are those of the interface")
{
	struct dev *d = dev_open_qhca();
	struct ibv_port_attr attr = port_attr(d);
	char path[128];
	int mbps = 0;
	size_t i;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", ifname());
	f = fopen(path, "r");
	REQUIRE(f && fscanf(f, "%d", &mbps) == 1);
	fclose(f);
	CHECK(mbps > 0);
	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (mbps < speeds[i].from || mbps > speeds[i].to)
			continue;
		CHECK_EQ(attr.active_width, speeds[i].width);
		CHECK_EQ(attr.active_speed, speeds[i].speed);
		return;
	}
	test_skip("kernels differ at this speed");
}

TEST(never, "H-007 H-011 H-014 events that this port never raises")
{
	const char *name = ifname();
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	struct pair p;
	struct ibv_async_event ev;
	unsigned int seen[IBV_EVENT_WQ_FATAL + 1] = { 0 }, i;

	/* Other devices would migrate the path or raise a fatal error here. */
	c.timeout = 10;
	c.retry_cnt = 1;
	p = pair_new(d, &QP_OPTS, &c);
	REQUIRE_OK(ibv_destroy_qp(p.b.qp));
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	/* A subnet manager would assign an address to the port here and ask for reregistration. */
	run("ip link set dev %s down", name);
	run("ip link set dev %s up", name);
	wait_port(d, IBV_PORT_ACTIVE);
	wait_gid(d);
	while (async_wait(d->ctx, &ev, 5 * QUIET_MS)) {
		REQUIRE(ev.event_type < ARRAY_SIZE(seen));
		seen[ev.event_type]++;
	}
	CHECK_EQ(seen[IBV_EVENT_PORT_ERR], 1);
	CHECK_EQ(seen[IBV_EVENT_PORT_ACTIVE], 1);
	for (i = 0; i < ARRAY_SIZE(seen); i++)
		if (seen[i] && i != IBV_EVENT_PORT_ERR && i != IBV_EVENT_PORT_ACTIVE &&
		    i != IBV_EVENT_GID_CHANGE)
			FAIL("%s", ibv_event_type_str(i));
}

TEST(ack_delay, "J-006 an answer comes within local_ca_ack_delay")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	int64_t ms = (4096ll << d->attr.local_ca_ack_delay) / 1000000;
	int64_t start, best = 1000000;
	int i;

	CHECK(d->attr.local_ca_ack_delay > 0 && d->attr.local_ca_ack_delay < 24);
	/* The machine may be busy, so the best of several tries counts. */
	for (i = 0; i < 20; i++) {
		start = time_ms();
		ping(&p.a, &p.b);
		if (time_ms() - start < best)
			best = time_ms() - start;
	}
	CHECK(best <= ms);
}
