// SPDX-License-Identifier: GPL-2.0
/*
 * The performance management agent: the counters of the port as sysfs shows them, and as another
 * host gets them with MADs, here through the port's own address.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#include "lib/rdma.h"

#define PERF_MGMT	0x04
#define GET		0x01
#define SET		0x02
#define GET_RESP	0x81
#define CLASS_PORT_INFO	0x0001
#define PORT_COUNTERS	0x0012
#define PORT_EXT	0x001d
#define GSI_QKEY	0x80010000

/* struct mad - a MAD of the performance management class */
struct mad {
	uint8_t base_version, mgmt_class, class_version, method;
	__be16 status, class_specific;
	__be64 tid;
	__be16 attr_id, reserved;
	__be32 attr_mod;
	uint8_t reserved2[40];
	uint8_t data[192];
};

struct counters {
	uint8_t reserved, port_select;
	__be16 counter_select;
	uint8_t rest[188];
};

struct counters_ext {
	uint8_t reserved, port_select;
	__be16 counter_select;
	__be32 reserved2;
	__be64 xmit_data, rcv_data, xmit_packets, rcv_packets;
};

struct packet {
	struct ib_user_mad_hdr hdr;
	struct mad mad;
};

_Static_assert(sizeof(struct mad) == 256, "a MAD has 256 bytes");

static uint64_t port_counter(const char *name)
{
	unsigned long long value;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/counters/%s", dev_name(),
		 name);
	f = fopen(path, "r");
	REQUIRE(f);
	REQUIRE(fscanf(f, "%llu", &value) == 1);
	fclose(f);
	return value;
}

static void traffic(struct dev *d)
{
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf src = buf_new(d->pd, 3001, LOCAL), dst = buf_new(d->pd, 3001, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, 3001), in = buf_sge(&dst, 0, 3001);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.b.recv_cq, 2);
	poll_ok(p.a.send_cq, 1);
}

TEST(sysfs, "J-026 counters of the port in sysfs agree with those of the hardware")
{
	struct dev *d = dev_open_qhca();
	uint64_t before = port_counter("port_xmit_packets");

	traffic(d);
	CHECK(port_counter("port_xmit_packets") >= before + 4);
	CHECK_EQ(port_counter("port_xmit_packets"), hw_counter("tx_pkts"));
	CHECK_EQ(port_counter("port_rcv_packets"), hw_counter("rx_pkts"));
	CHECK_EQ(port_counter("port_xmit_data"), hw_counter("tx_bytes") / 4);
	CHECK_EQ(port_counter("port_rcv_data"), hw_counter("rx_bytes") / 4);
	CHECK_EQ(port_counter("symbol_error"), 0);
	CHECK_EQ(port_counter("VL15_dropped"), 0);
}

/* Returns an open umad device of the port, with an agent of number @agent. */
static int umad_open(uint32_t *agent)
{
	struct ib_user_mad_reg_req req = {
		.qpn = 1,
		.mgmt_class = PERF_MGMT,
		.mgmt_class_version = 1,
	};
	char path[256], name[64] = "";
	int i, fd;
	FILE *f;

	if (system("modprobe ib_umad 2>/dev/null"))
		test_skip("no ib_umad");
	for (i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband_mad/umad%d/ibdev", i);
		f = fopen(path, "r");
		if (!f)
			continue;
		REQUIRE(fscanf(f, "%63s", name) == 1);
		fclose(f);
		if (!strcmp(name, dev_name()))
			break;
	}
	REQUIRE(i < 16);
	snprintf(path, sizeof(path), "/dev/infiniband/umad%d", i);
	fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	REQUIRE_OK(ioctl(fd, IB_USER_MAD_ENABLE_PKEY));
	REQUIRE_OK(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req));
	*agent = req.id;
	return fd;
}

/*
 * Returns the index of an IPv6 address of the port: ib_mad knows the answer to a request by its
 * sender, which it looks for where IPv4's header does not have it.
 */
static int gid_v6(struct dev *d, union ibv_gid *gid)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	int i;

	for (i = 0; i < d->port.gid_tbl_len; i++)
		if (!ibv_query_gid(d->ctx, PORT, i, gid) && gid->global.subnet_prefix &&
		    memcmp(gid->raw, v4_mapped, sizeof(v4_mapped)))
			return i;
	test_skip("no IPv6 address");
}

/* Asks the agent at the port's address. Returns false if there is no answer. */
static bool ask(struct dev *d, uint8_t method, uint16_t attr, uint8_t port, struct mad *answer)
{
	static uint32_t tid;
	struct counters *asked;
	struct pollfd pfd;
	union ibv_gid gid;
	struct packet p = {
		.hdr = {
			.timeout_ms = 2000,
			.retries = 2,
			.length = sizeof(p.mad),
			.qpn = htonl(1),
			.qkey = htonl(GSI_QKEY),
			.grh_present = 1,
			.hop_limit = 64,
		},
		.mad = {
			.base_version = 1,
			.mgmt_class = PERF_MGMT,
			.class_version = 1,
			.method = method,
			.attr_id = htons(attr),
			.tid = htobe64(++tid),
		},
	};

	asked = (void *)p.mad.data;
	asked->port_select = port;
	asked->counter_select = htons(0xffff);
	p.hdr.gid_index = gid_v6(d, &gid);
	memcpy(p.hdr.gid, gid.raw, sizeof(p.hdr.gid));
	pfd.fd = umad_open(&p.hdr.id);
	pfd.events = POLLIN;
	REQUIRE(write(pfd.fd, &p, sizeof(p)) == sizeof(p));
	REQUIRE(poll(&pfd, 1, WAIT_MS) == 1);
	memset(&p, 0, sizeof(p));
	REQUIRE(read(pfd.fd, &p, sizeof(p)) > 0);
	close(pfd.fd);
	if (p.hdr.status)
		return false;
	*answer = p.mad;
	CHECK_EQ(answer->mgmt_class, PERF_MGMT);
	CHECK_EQ(answer->method, GET_RESP);
	CHECK_EQ(ntohs(answer->attr_id), attr);
	CHECK_EQ((uint32_t)be64toh(answer->tid), tid);
	return true;
}

TEST(remote, "J-026 another host can ask for the counters of the port")
{
	struct dev *d = dev_open_qhca();
	struct counters_ext *ext;
	uint64_t before;
	struct mad mad;

	REQUIRE(ask(d, GET, CLASS_PORT_INFO, 0, &mad));
	CHECK_EQ(ntohs(mad.status), 0);
	CHECK_EQ(mad.data[1], 1);	/* class version */
	before = hw_counter("tx_pkts");
	traffic(d);
	REQUIRE(ask(d, GET, PORT_EXT, PORT, &mad));
	CHECK_EQ(ntohs(mad.status), 0);
	ext = (void *)mad.data;
	CHECK_EQ(ext->port_select, PORT);
	CHECK(be64toh(ext->xmit_packets) >= before + 4);
	CHECK(be64toh(ext->xmit_packets) <= hw_counter("tx_pkts"));
	CHECK(be64toh(ext->rcv_data) <= hw_counter("rx_bytes") / 4);
	CHECK(be64toh(ext->rcv_data) > 3001 / 4);
	REQUIRE(ask(d, GET, PORT_COUNTERS, 0xff, &mad));
	CHECK_EQ(ntohs(mad.status), 0);
}

static const struct {
	const char *name;
	uint8_t method;
	uint16_t attr;
	uint8_t port;
	uint16_t status;
} refusals[] = {
	{ "counters cannot be set", SET, PORT_COUNTERS, PORT, 0x0c },
	{ "an attribute that there is not", GET, 0x0010, PORT, 0x0c },
	{ "a port that there is not", GET, PORT_COUNTERS, 2, 0x1c },
	{ "no port", GET, PORT_EXT, 0, 0x1c },
};

TEST_ROWS(refused, "J-026 what the agent does not do is refused with a status", refusals)
{
	struct dev *d = dev_open_qhca();
	struct mad mad;

	REQUIRE(ask(d, row->method, row->attr, row->port, &mad));
	CHECK_EQ(ntohs(mad.status), row->status);
	if (row->method == SET)
		CHECK(port_counter("port_xmit_packets") > 0);
}
