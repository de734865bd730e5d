// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses and ports of the connection manager, IPv4 and IPv6, and the states of QPs on the way
 * from rdma_getaddrinfo() to the first message.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/echo.h"

static struct dev *d;
static struct rdma_event_channel *ch_passive, *ch_active;

/* An IPv6 address cannot be used until duplicate address detection has ended. */
static void wait_usable(const struct sockaddr_in6 *addr)
{
	int64_t end = time_ms() + WAIT_MS;
	int sock = socket(AF_INET6, SOCK_DGRAM, 0);

	REQUIRE(sock >= 0);
	while (bind(sock, (const struct sockaddr *)addr, sizeof(*addr)) && time_ms() < end)
		sleep_ms(20);
	close(sock);
}

/* Returns an address of the port of the device under test, without a TCP port. */
static struct sockaddr_storage own_addr(int family)
{
	struct sockaddr_storage addr = { .ss_family = family };
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addr;
	struct ibv_gid_entry e[256];
	ssize_t i, n;

	if (family == AF_INET) {
		memcpy(&((struct sockaddr_in *)&addr)->sin_addr, d->gid.raw + 12, 4);
		return addr;
	}
	n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
	for (i = 0; i < n; i++)
		if (e[i].gid.raw[0] == 0xfe && e[i].gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	REQUIRE(i < n);
	memcpy(&v6->sin6_addr, e[i].gid.raw, 16);
	v6->sin6_scope_id = e[i].ndev_ifindex;
	wait_usable(v6);
	return addr;
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	REQUIRE(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	return id;
}

static void open_channels(void)
{
	d = dev_open_qhca();
	ch_passive = rdma_create_event_channel();
	ch_active = rdma_create_event_channel();
	REQUIRE(ch_passive && ch_active);
}

/* Looks up the address of the server from its text form, which is all that a client knows. */
static struct rdma_addrinfo *look_up(const struct sockaddr_storage *addr, int port)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_NUMERICHOST,
	}, *found;
	char node[80], service[8];

	if (addr->ss_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, node,
			  sizeof(node));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, node, sizeof(node));
		snprintf(node + strlen(node), sizeof(node) - strlen(node), "%%%u",
			 v6->sin6_scope_id);
	}
	snprintf(service, sizeof(service), "%d", port);
	REQUIRE(!rdma_getaddrinfo(node, service, &hints, &found));
	CHECK_EQ(found->ai_family, addr->ss_family);
	return found;
}

static void step(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(cm_event(ch, type));
}

static void quiet(struct rdma_event_channel *ch)
{
	struct pollfd fd = { .fd = ch->fd, .events = POLLIN };

	CHECK_EQ(poll(&fd, 1, QUIET_MS), 0);
}

static struct end make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct end e = { .dev = d };

	e.send_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	e.recv_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	REQUIRE(e.send_cq && e.recv_cq);
	init.send_cq = e.send_cq;
	init.recv_cq = e.recv_cq;
	REQUIRE(!rdma_create_qp(id, NULL, &init));
	e.qp = id->qp;
	CHECK_EQ(get_state(e.qp), IBV_QPS_INIT);
	return e;
}

/* Connects; after each step both QPs are in the states of K-005. */
static void connect_to(struct rdma_cm_id *listener, const struct sockaddr_storage *addr)
{
	struct rdma_cm_id *active = new_id(ch_active), *passive;
	struct rdma_addrinfo *to = look_up(addr, ntohs(rdma_get_src_port(listener)));
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *ev;
	struct end a, p;

	REQUIRE(!rdma_resolve_addr(active, NULL, to->ai_dst_addr, 5000));
	step(ch_active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(active->verbs);
	REQUIRE(!rdma_resolve_route(active, 5000));
	step(ch_active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	a = make_qp(active);
	quiet(ch_passive);		/* K-002: no event yet */
	REQUIRE(!rdma_connect(active, &param));
	ev = cm_event(ch_passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = ev->id;
	CHECK(passive != listener);
	CHECK(ev->listen_id == listener);
	CHECK(passive->verbs);
	CHECK_EQ(rdma_get_src_port(passive), rdma_get_src_port(listener));
	CHECK_EQ(rdma_get_dst_port(passive), rdma_get_src_port(active));
	rdma_ack_cm_event(ev);
	p = make_qp(passive);
	CHECK_EQ(get_state(a.qp), IBV_QPS_INIT);
	REQUIRE(!rdma_accept(passive, &param));
	CHECK_EQ(get_state(p.qp), IBV_QPS_RTS);
	step(ch_active, RDMA_CM_EVENT_ESTABLISHED);
	CHECK_EQ(get_state(a.qp), IBV_QPS_RTS);
	step(ch_passive, RDMA_CM_EVENT_ESTABLISHED);
	REQUIRE_OK(post_recv(&p, 1, NULL, 0));
	send_id(&a, 2);
	poll_ok(p.recv_cq, 1);
	poll_ok(a.send_cq, 2);
	rdma_freeaddrinfo(to);
}

static const struct {
	const char *name;
	int family;
	bool wildcard;
} addresses[] = {
	{ "an IPv4 address", AF_INET, false },
	{ "an IPv6 address", AF_INET6, false },
	{ "any IPv4 address", AF_INET, true },
	{ "any IPv6 address", AF_INET6, true },
};

TEST_ROWS(port_0, "K-001 K-002 K-005 bind to port 0, listen and accept a connection", addresses)
{
	struct sockaddr_storage addr, any = { .ss_family = row->family };
	struct rdma_cm_id *listener, *other, *same;
	struct sockaddr *to;

	open_channels();
	addr = own_addr(row->family);
	to = (struct sockaddr *)(row->wildcard ? &any : &addr);
	listener = new_id(ch_passive);
	REQUIRE(!rdma_bind_addr(listener, to));
	CHECK(rdma_get_src_port(listener));
	/* A specific address determines the device, a wildcard does not. */
	CHECK_EQ(!listener->verbs, row->wildcard);
	/* The next id gets another port, and no other id can bind to the same one. */
	other = new_id(ch_passive);
	REQUIRE(!rdma_bind_addr(other, to));
	CHECK(rdma_get_src_port(other) != rdma_get_src_port(listener));
	REQUIRE(!rdma_listen(listener, 4));
	((struct sockaddr_in *)to)->sin_port = rdma_get_src_port(listener);
	same = new_id(ch_passive);
	CHECK(rdma_bind_addr(same, to));
	CHECK_EQ(errno, row->wildcard ? EADDRNOTAVAIL : EADDRINUSE);
	connect_to(listener, &addr);
}

TEST(foreign, "K-001 cannot bind to an address that no interface has")
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	open_channels();
	addr.sin_addr.s_addr = htonl(0xc6336463);	/* 198.51.100.99 */
	CHECK(rdma_bind_addr(new_id(ch_passive), (struct sockaddr *)&addr));
	CHECK(errno == EADDRNOTAVAIL || errno == ENODEV);
}
