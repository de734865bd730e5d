// SPDX-License-Identifier: GPL-2.0
/*
 * A fault rule makes the device refuse a command of an MTU change: netdev, port and device keep
 * their old MTU. Needs root and the interface's name in QHCA_IF.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/faults.h"

#define SMALL	1500
#define LARGE	4200
#define GRH	40

static int first_mtu;

/* Returns 0 or an errno value. */
static int ioctl_if(unsigned long request, struct ifreq *req)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err;
	const char *name = getenv("QHCA_IF");

	snprintf(req->ifr_name, sizeof(req->ifr_name), "%s", name ? name : "");
	err = ioctl(fd, request, req) ? errno : 0;
	close(fd);
	return err;
}

static int set_mtu(int mtu)
{
	struct ifreq req = { .ifr_mtu = mtu };

	return ioctl_if(SIOCSIFMTU, &req);
}

/* Returns 0 if there is no such interface. */
static int get_mtu(void)
{
	struct ifreq req = {};

	return ioctl_if(SIOCGIFMTU, &req) ? 0 : req.ifr_mtu;
}

static void set_allmulti(bool on)
{
	struct ifreq req = {};

	REQUIRE_OK(ioctl_if(SIOCGIFFLAGS, &req));
	req.ifr_flags = on ? req.ifr_flags | IFF_ALLMULTI : req.ifr_flags & ~IFF_ALLMULTI;
	REQUIRE_OK(ioctl_if(SIOCSIFFLAGS, &req));
}

/* Rules and MTU survive the process that sets them, so the harness process restores them. */
__attribute__((constructor)) static void remember(void)
{
	first_mtu = get_mtu();
}

__attribute__((destructor)) static void restore(void)
{
	faults_clear();
	if (first_mtu)
		set_mtu(first_mtu);
}

/* The device sends datagrams of the port's path MTU, but not of one byte more. */
static void check_device(struct dev *d, int mtu)
{
	uint32_t path_mtu = mtu_bytes(mtu == SMALL ? IBV_MTU_1024 : IBV_MTU_4096);
	struct buf b = buf_new(d->pd, 8192, LOCAL);
	struct ibv_ah *ah = own_ah(d, d->pd);
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	int more;

	o.type = IBV_QPT_UD;
	p = pair_new(d, &o, &CONN);
	sge = buf_sge(&b, 0, b.len);
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	for (more = 1; more >= 0; more--) {
		sge.length = path_mtu + more;
		wr = wr_send(1, &sge, 1);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = p.b.qp->qp_num;
		wr.wr.ud.remote_qkey = CONN.qkey;
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
	}
	CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, GRH + path_mtu);
}

/* Netdev, port and device agree, and frames reach another host and return. */
static void check_mtu(struct dev *d, int mtu)
{
	struct ibv_port_attr attr;

	CHECK_EQ(get_mtu(), mtu);
	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &attr));
	CHECK_EQ(attr.active_mtu, mtu == SMALL ? IBV_MTU_1024 : IBV_MTU_4096);
	check_device(d, mtu);
	/* Ping the gateway behind the user network. */
	if (getenv("QHCA_PEER"))
		CHECK(!system("ping -q -M dont -c 2 -i 0.01 -W 5 -s 3000 ${QHCA_PEER%.*}.254"));
}

/* Makes the driver send the device all settings of the port once more. */
static void change_filter(void)
{
	int64_t end = time_ms() + WAIT_MS;

	REQUIRE_OK(faults_set("cmd opcode=set_port stall=50us"));
	set_allmulti(true);
	while (!faults_hits() && time_ms() < end)
		sleep_ms(10);
	CHECK(faults_hits() > 0);
	set_allmulti(false);
	faults_clear();
}

/*
 * The driver first sets the smaller one of both MTUs, then replaces the queues, and then sets the
 * larger one if that is the new one.
 */
static const struct {
	const char *name, *text;
	int from, to, err;
} cases[] = {
	{ "smaller", "cmd opcode=set_port once fail=busy", LARGE, SMALL, EBUSY },
	{ "larger, before", "cmd opcode=set_port once fail=busy", SMALL, LARGE, EBUSY },
	{ "larger, after", "cmd opcode=set_port after=1 once fail=busy", SMALL, LARGE, EBUSY },
	{ "larger, send queue", "cmd opcode=create_ethq once fail=no_resource", SMALL, LARGE,
	  ENOMEM },
	{ "smaller, receive queue", "cmd opcode=create_ethq after=1 once fail=no_resource", LARGE,
	  SMALL, ENOMEM },
	{ "larger, second channel", "cmd opcode=create_ethq after=3 once fail=no_resource", SMALL,
	  LARGE, ENOMEM },
	{ "smaller, spreading of frames", "cmd opcode=set_rss once fail=no_resource", LARGE, SMALL,
	  ENOMEM },
	{ "smaller, CQ", "cmd opcode=create_cq once fail=no_resource", LARGE, SMALL, ENOMEM },
};

TEST_ROWS(refused, "J-011 B-030 an MTU that the device refuses is not used anywhere", cases)
{
	struct dev *d = faults_open();

	if (!first_mtu)
		test_skip("QHCA_IF does not name the interface");
	REQUIRE_OK(set_mtu(row->from));
	check_mtu(d, row->from);
	REQUIRE_OK(faults_set(row->text));
	CHECK_ERR(set_mtu(row->to), row->err);
	CHECK_EQ(faults_hits(), 1);
	faults_clear();
	check_mtu(d, row->from);
	/* The refused MTU is not set later, either. */
	change_filter();
	check_mtu(d, row->from);
	REQUIRE_OK(set_mtu(row->to));
	check_mtu(d, row->to);
}
