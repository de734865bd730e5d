// SPDX-License-Identifier: GPL-2.0
/*
 * States of QPs whose peer is in another machine, which learns the state of this end by a message
 * over TCP. Both machines run this program at the same time: RDMA_ROLE is server in one and client
 * in the other, RDMA_IP is its own address, RDMA_PEER the address of the other. The network may
 * lose frames.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/rdma.h"

#define TCP_PORT	7600
#define LEN		8000
#define ROUNDS		25

/* struct message - state and address of this end */
struct message {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn, psn;
	uint32_t state;
};

static bool serving;
static int sock;
static struct dev *d;
static struct end e;
static struct buf out, in;
static struct message peer;

/* ---- messages ---- */

static int tcp(void)
{
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), fd = -1;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(TCP_PORT) };
	int64_t end = time_ms() + 2 * WAIT_MS;

	REQUIRE(s >= 0);
	REQUIRE(inet_pton(AF_INET, getenv(serving ? "RDMA_IP" : "RDMA_PEER"),
			  &a.sin_addr) == 1);
	if (serving) {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		REQUIRE(!bind(s, (struct sockaddr *)&a, sizeof(a)) && !listen(s, 1));
		fd = accept(s, NULL, NULL);
		close(s);
	}
	/* The server may not listen yet. */
	while (!serving && connect(s, (struct sockaddr *)&a, sizeof(a))) {
		REQUIRE(time_ms() < end);
		close(s);
		sleep_ms(50);
		s = socket(AF_INET, SOCK_STREAM, 0);
	}
	fd = serving ? fd : s;
	REQUIRE(fd >= 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void tell(uint32_t psn)
{
	struct message m = {
		.gid = d->gid, .addr = (uintptr_t)in.addr, .rkey = in.mr->rkey,
		.qpn = e.qp->qp_num, .psn = psn, .state = get_state(e.qp),
	};

	REQUIRE(write(sock, &m, sizeof(m)) == sizeof(m));
}

static void hear(void)
{
	REQUIRE(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
}

/* A barrier at which both ends exchange their states. */
static void meet(void)
{
	tell(0);
	hear();
}

/* ---- the connection ---- */

static void two_machines(enum ibv_qp_type type)
{
	struct qp_opts o = QP_OPTS;

	if (!getenv("RDMA_ROLE") || !getenv("RDMA_IP") || !getenv("RDMA_PEER"))
		test_skip("no other machine");
	serving = !strcmp(getenv("RDMA_ROLE"), "server");
	test_timeout(120);
	d = dev_open_qhca();
	o.type = type;
	o.recv_wr = 64;
	e = end_new(d, &o);
	out = buf_new(d->pd, LEN, LOCAL);
	in = buf_new(d->pd, LEN, REMOTE);
	sock = tcp();
}

static struct conn params(uint32_t psn)
{
	struct conn c = CONN;

	c.timeout = 16;
	c.sq_psn = psn;
	c.rq_psn = peer.psn;
	c.dest_qpn = peer.qpn;
	return c;
}

/* Moves the QP from RESET to @state, with the peer and PSNs exchanged before. */
static void connect_to(enum ibv_qp_state state)
{
	uint32_t psn = lrand48() & 0xffffff;
	struct dev far = *d;
	struct conn c;

	tell(psn);
	hear();
	c = params(psn);
	far.gid = peer.gid;
	e.dev = &far;
	qp_bring(&e, &c, state);
	e.dev = d;
	meet();
}

static void to_rts(void)
{
	struct conn c = params(0);
	struct ibv_qp_attr a;
	int mask = attr_mask(e.qp->qp_type, attr_rts(&a, &c));

	REQUIRE_OK(ibv_modify_qp(e.qp, &a, mask));
}

static void room(uint64_t id)
{
	struct ibv_sge sge = buf_sge(&in, 0, LEN);

	REQUIRE_OK(post_recv(&e, id, &sge, 1));
}

static void send_seed(uint64_t id, uint32_t seed)
{
	struct ibv_sge sge = buf_sge(&out, 0, LEN);
	struct ibv_send_wr wr = wr_send(id, &sge, 1);

	fill(out.addr, LEN, seed + serving);
	REQUIRE_OK(post_send(&e, &wr));
}

static void arrived(uint64_t id, uint32_t seed)
{
	poll_ok(e.recv_cq, id);
	check_fill(in.addr, LEN, seed + !serving, "message");
}

/* Sends a message in each direction at the same time. */
static void exchange(uint32_t seed)
{
	memset(in.addr, 0, LEN);
	room(2);
	meet();
	send_seed(1, seed);
	poll_ok(e.send_cq, 1);
	arrived(2, seed);
	meet();
}

/* ---- paths ---- */

TEST(reset, "A-104 A-105 A-120 both to RESET and back, with new PSNs")
{
	int i;

	two_machines(IBV_QPT_RC);
	for (i = 0; i < ROUNDS; i++) {
		connect_to(IBV_QPS_RTS);
		exchange(i);
		exchange(~i);
		REQUIRE_OK(set_state(e.qp, IBV_QPS_RESET));
		meet();
		CHECK_EQ(peer.state, IBV_QPS_RESET);
	}
}

/* The other end learns of the error by its retries, or by a message. */
TEST(error, "A-097 A-100 A-115 A-118 I-021 one to ERR, the other informed or not")
{
	int i;

	two_machines(IBV_QPT_RC);
	for (i = 0; i < 6; i++) {
		bool first = (i & 1) == serving, told = i % 3;

		connect_to(IBV_QPS_RTS);
		exchange(i);
		room(10);
		room(11);
		meet();
		if (first)
			REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
		meet();
		if (!first && !told) {
			send_seed(12, 0);
			poll_expect(e.send_cq, 12, IBV_WC_RETRY_EXC_ERR);
			CHECK(wait_state(e.qp, IBV_QPS_ERR));
		} else if (!first) {
			CHECK_EQ(peer.state, IBV_QPS_ERR);
			REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
		}
		poll_expect(e.recv_cq, 10, IBV_WC_WR_FLUSH_ERR);
		poll_expect(e.recv_cq, 11, IBV_WC_WR_FLUSH_ERR);
		meet();
		CHECK_EQ(peer.state, IBV_QPS_ERR);
		CHECK_ERR(set_state(e.qp, IBV_QPS_RTS), EINVAL);
		REQUIRE_OK(set_state(e.qp, IBV_QPS_RESET));
		poll_empty(e.send_cq);
		poll_empty(e.recv_cq);
	}
}

/* The client drains while the server, which knows this, has no room for its message. */
static void drain_client(int round)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	send_seed(1, round);
	sleep_ms(20);			/* started, and refused with RNR */
	REQUIRE_OK(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	send_seed(3, round);		/* held back */
	room(2);
	meet();				/* in SQD, still draining */
	arrived(2, round);		/* */
	poll_ok(e.send_cq, 1);
	async_expect(d->ctx, IBV_EVENT_SQ_DRAINED, e.qp);
	meet();
	poll_none(e.send_cq);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD, .timeout = 15 };
	REQUIRE_OK(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT));
	meet();
	REQUIRE_OK(set_state(e.qp, IBV_QPS_RTS));
	poll_ok(e.send_cq, 3);
}

static void drain_server(int round)
{
	meet();
	CHECK_EQ(peer.state, IBV_QPS_SQD);
	room(2);
	room(4);
	send_seed(1, round);
	poll_ok(e.send_cq, 1);
	arrived(2, round);
	meet();
	poll_none(e.recv_cq);		/* the held message does not arrive */
	memset(in.addr, 0, LEN);
	meet();
	arrived(4, round);
}

TEST(drain, "A-084 A-085 A-087 A-089 A-112 A-113 A-119 one in SQD and back")
{
	int i;

	two_machines(IBV_QPT_RC);
	connect_to(IBV_QPS_RTS);
	for (i = 0; i < 10; i++) {
		exchange(i);
		if (serving)
			drain_server(i);
		else
			drain_client(i);
		meet();
	}
	exchange(i);
}

TEST(responder, "A-081 A-082 H-005 one stays in RTR until all messages have arrived")
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	two_machines(IBV_QPT_RC);
	connect_to(serving ? IBV_QPS_RTR : IBV_QPS_RTS);
	room(5);
	meet();
	if (serving) {
		arrived(5, 1);
		async_expect(d->ctx, IBV_EVENT_COMM_EST, e.qp);
		CHECK_EQ(get_state(e.qp), IBV_QPS_RTR);
		meet();
		to_rts();
		meet();
		room(5);
	} else {
		send_seed(1, 1);
		poll_ok(e.send_cq, 1);
		sge = buf_sge(&in, 0, LEN);
		wr = wr_rdma(2, IBV_WR_RDMA_READ, &sge, 1, peer.addr, peer.rkey);
		REQUIRE_OK(post_send(&e, &wr));
		poll_ok(e.send_cq, 2);
		check_fill(in.addr, LEN, 1, "read back");
		meet();
		meet();
		CHECK_EQ(peer.state, IBV_QPS_RTS);
	}
	meet();
	send_seed(6, 2);
	poll_ok(e.send_cq, 6);
	arrived(5, 2);
	meet();
}

/* Some of the messages may be lost, but never this many. */
static void some_arrive(uint32_t seed)
{
	struct ibv_wc wc;
	int i, n = 0;

	if (serving)
		for (i = 0; i < 16; i++)
			room(i);
	meet();
	for (i = 0; !serving && i < 16; i++) {
		send_seed(i, seed);
		poll_ok(e.send_cq, i);
	}
	meet();
	while (serving && poll_wait(e.recv_cq, &wc, QUIET_MS)) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		n++;
	}
	if (serving) {
		CHECK(n > 0);
		check_fill(in.addr, LEN, seed, "message");
	}
}

TEST(send_error, "A-091 A-093 A-094 UC: one in SQE and back, the other does not notice")
{
	int i;

	two_machines(IBV_QPT_UC);
	for (i = 0; i < 5; i++) {
		connect_to(IBV_QPS_RTS);
		some_arrive(10 * i);
		if (!serving)
			qp_spoil(&e);
		meet();
		CHECK(serving || get_state(e.qp) == IBV_QPS_SQE);
		CHECK_EQ(peer.state, serving ? IBV_QPS_SQE : IBV_QPS_RTS);
		if (!serving)
			REQUIRE_OK(set_state(e.qp, IBV_QPS_RTS));
		some_arrive(10 * i + 5);
		/* RESET also removes the receive WRs of lost messages. */
		REQUIRE_OK(set_state(e.qp, IBV_QPS_RESET));
		meet();
	}
}
