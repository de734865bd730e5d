// SPDX-License-Identifier: GPL-2.0
/*
 * Connections between two machines that run this program at the same time: RDMA_ROLE is server in
 * one and client in the other, RDMA_IP is its own address, RDMA_PEER the address of the other, and
 * "$RDMA_BARRIER NAME" returns when both have called it. Works with any device.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/echo.h"

#define BUF_LEN		4096
#define REQ_DATA	56
#define REJ_DATA	148

/* struct window - memory that the peer may write; sent as private data */
struct window {
	uint64_t addr;
	uint32_t rkey;
};

static bool serving;
static struct rdma_event_channel *ch;
static struct rdma_cm_id *listener, *id;
static struct rdma_cm_event *event;
/* Two CQs, because the peer may answer a message before it acknowledges it. */
static struct ibv_cq *cq, *recv_cq;
static struct ibv_mr *mr;
static struct window peer;
static unsigned char buf[2 * BUF_LEN];	/* the peer writes the first half, we send the second */

/* Every test calls this first. */
static void two_machines(void)
{
	if (!getenv("RDMA_ROLE") || !getenv("RDMA_IP") || !getenv("RDMA_PEER") ||
	    !getenv("RDMA_BARRIER"))
		test_skip("no other machine");
	serving = !strcmp(getenv("RDMA_ROLE"), "server");
	test_timeout(90);
}

static void barrier(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "%s %s-%d >/dev/null", getenv("RDMA_BARRIER"),
		 name, atoi(getenv("RDMA_ROUND") ?: "0"));
	REQUIRE(!system(command));
}

/* Runs "RDMA_CABLE down|up", which unplugs or plugs the cable of this machine. */
static void cable(const char *what)
{
	char command[256];

	snprintf(command, sizeof(command), "%s %s >/dev/null", getenv("RDMA_CABLE"), what);
	REQUIRE(!system(command));
}

static struct sockaddr_in address(const char *variable)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(7500) };

	REQUIRE(inet_pton(AF_INET, getenv(variable), &a.sin_addr) == 1);
	return a;
}

static void expect(enum rdma_cm_event_type type)
{
	if (event)
		rdma_ack_cm_event(event);
	event = cm_event(ch, type);
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	cq = ibv_create_cq(id->verbs, 32, NULL, NULL, 0);
	recv_cq = ibv_create_cq(id->verbs, 32, NULL, NULL, 0);
	REQUIRE(cq && recv_cq);
	init.send_cq = cq;
	init.recv_cq = recv_cq;
	REQUIRE(!rdma_create_qp(id, NULL, &init));
	mr = ibv_reg_mr(id->pd, buf, sizeof(buf), REMOTE);
	REQUIRE(mr);
	fill(buf + BUF_LEN, BUF_LEN, serving);
}

static void post_recvs(int n)
{
	struct ibv_recv_wr wr = { .wr_id = 100 }, *bad;

	while (n--)
		REQUIRE_OK(ibv_post_recv(id->qp, &wr, &bad));
}

/*
 * The passive side listens, and the active one has a route to it and a QP. @name distinguishes the
 * barriers of different tests.
 */
static void prepare(const char *name, int recvs)
{
	struct sockaddr_in own = address("RDMA_IP"), other = address("RDMA_PEER");

	ch = rdma_create_event_channel();
	REQUIRE(ch);
	if (serving) {
		REQUIRE(!rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP));
		REQUIRE(!rdma_bind_addr(listener, (struct sockaddr *)&own));
		REQUIRE(!rdma_listen(listener, 4));
		barrier(name);
		return;
	}
	barrier(name);
	REQUIRE(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&other, 5000));
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(id, 5000));
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp();
	post_recvs(recvs);
}

/* Sends the request; returns at the passive side when it is there. */
static void request(int recvs, struct rdma_conn_param *param)
{
	struct window mine;

	if (serving) {
		expect(RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		memcpy(&peer, event->param.conn.private_data, sizeof(peer));
		make_qp();
		post_recvs(recvs);
		return;
	}
	mine = (struct window){ .addr = (uintptr_t)buf, .rkey = mr->rkey };
	if (!param->private_data) {
		param->private_data = &mine;
		param->private_data_len = sizeof(mine);
	}
	REQUIRE(!rdma_connect(id, param));
}

static struct rdma_conn_param defaults(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void accept_it(struct rdma_conn_param param)
{
	struct window mine = { .addr = (uintptr_t)buf, .rkey = mr->rkey };

	param.private_data = &mine;
	param.private_data_len = sizeof(mine);
	REQUIRE(!rdma_accept(id, &param));
}

/* Afterwards each side knows the memory that it may write at the other. */
static void connected(void)
{
	expect(RDMA_CM_EVENT_ESTABLISHED);
	if (!serving)
		memcpy(&peer, event->param.conn.private_data, sizeof(peer));
}

static void connect_both(const char *name, int recvs, unsigned int retries)
{
	struct rdma_conn_param param = defaults();

	param.retry_count = retries;
	prepare(name, recvs);
	request(recvs, &param);
	if (serving)
		accept_it(param);
	connected();
}

static void write_imm(uint32_t len, uint32_t off)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf + BUF_LEN + off, .length = len, .lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = len, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(0xabc00000 | len),
		.wr.rdma = { .remote_addr = peer.addr + off, .rkey = peer.rkey },
	}, *bad;

	REQUIRE_OK(ibv_post_send(id->qp, &wr, &bad));
}

/* Checks data that the peer has written, by the immediate data that announces it. */
static void written(uint32_t len, uint32_t off)
{
	unsigned char want[BUF_LEN];
	struct ibv_wc wc = poll_expect(recv_cq, 100, IBV_WC_SUCCESS);

	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, len);
	CHECK_EQ(ntohl(wc.imm_data), 0xabc00000 | len);
	fill(want, sizeof(want), !serving);
	CHECK(!memcmp(buf + off, want + off, len));
}

static void finish(void)
{
	if (serving) {
		expect(RDMA_CM_EVENT_DISCONNECTED);
		REQUIRE(!rdma_disconnect(id));
	} else {
		REQUIRE(!rdma_disconnect(id));
		expect(RDMA_CM_EVENT_DISCONNECTED);
	}
}

TEST(writes, "K-003 K-004 two writes with immediate data to the peer, one back")
{
	two_machines();
	connect_both("writes", serving ? 2 : 1, 7);
	if (serving) {
		written(52, 0);
		written(16, 64);
		write_imm(16, 128);
		poll_ok(cq, 16);
	} else {
		write_imm(52, 0);
		poll_ok(cq, 52);
		write_imm(16, 64);
		poll_ok(cq, 16);
		written(16, 128);
	}
	finish();
}

TEST(disconnect, "K-012 a disconnected QP flushes its work requests")
{
	two_machines();
	connect_both("disconnect", 3, 7);
	finish();
	for (int i = 0; i < 3; i++)
		poll_expect(recv_cq, 100, IBV_WC_WR_FLUSH_ERR);
}

TEST(reject, "K-009 K-010 rejection, with its reason and data")
{
	struct rdma_conn_param param = defaults();
	uint8_t data[256];

	two_machines();
	fill(data, sizeof(data), 5);
	param.private_data = data;
	param.private_data_len = REQ_DATA;
	prepare("reject", 0);
	request(0, &param);
	if (serving) {
		check_fill(event->param.conn.private_data, REQ_DATA, 5, "private data");
		REQUIRE(!rdma_reject(id, data, REJ_DATA));
	} else {
		expect(RDMA_CM_EVENT_REJECTED);
		CHECK_EQ(event->status, 28);	/* consumer defined */
		check_fill(event->param.conn.private_data, REJ_DATA, 5, "private data");
	}
	barrier("rejected");
}

/* The kernel disconnects on behalf of the killed process. */
TEST(killed, "K-012 J-018 the peer's process is killed")
{
	int connected[2];
	pid_t child;
	char c;

	two_machines();
	if (!serving) {
		connect_both("killed", 1, 7);
		expect(RDMA_CM_EVENT_DISCONNECTED);
		REQUIRE(!rdma_disconnect(id));
		poll_expect(recv_cq, 100, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	REQUIRE(!pipe(connected));
	child = fork();
	if (child == 0) {
		connect_both("killed", 1, 7);
		REQUIRE(write(connected[1], "", 1) == 1);
		pause();
	}
	REQUIRE(child > 0);
	close(connected[1]);
	REQUIRE(read(connected[0], &c, 1) == 1);
	kill(child, SIGKILL);
}

static void needs_cable(void)
{
	two_machines();
	if (!getenv("RDMA_CABLE"))
		test_skip("nothing can unplug the cable");
}

TEST(silent, "I-021 the peer stops answering: the QP gives up")
{
	needs_cable();
	connect_both("silent", 0, 1);
	if (serving)
		cable("down");
	barrier("down");
	if (!serving) {
		write_imm(16, 0);
		poll_expect(cq, 16, IBV_WC_RETRY_EXC_ERR);
	}
	barrier("gave-up");
	if (serving)
		cable("up");
	barrier("up");
}

/* Unplugs this machine while the other one sends what gets lost. */
static void unplugged(void)
{
	cable("down");
	barrier("unplugged");
	barrier("lost");
	cable("up");
}

TEST(lost_req, "K-022 a lost REQ is sent again")
{
	struct rdma_conn_param param = defaults();

	needs_cable();
	prepare("lost-req", 0);
	if (serving) {
		unplugged();
		request(0, &param);
		accept_it(param);
	} else {
		barrier("unplugged");
		request(0, &param);
		sleep_ms(QUIET_MS);
		barrier("lost");
	}
	connected();
	finish();
}

TEST(lost_rep, "K-022 a lost REP is sent again, and the request that comes again is harmless")
{
	struct rdma_conn_param param = defaults();

	needs_cable();
	prepare("lost-rep", 0);
	request(0, &param);
	barrier("asked");
	if (serving) {
		barrier("unplugged");
		accept_it(param);
		sleep_ms(QUIET_MS);
		barrier("lost");
	} else {
		unplugged();
	}
	connected();
	finish();
}

TEST(no_host, "K-020 an address that no host has")
{
	struct sockaddr_in other;

	two_machines();
	other = address("RDMA_PEER");
	((uint8_t *)&other.sin_addr)[3] = 77;
	ch = rdma_create_event_channel();
	REQUIRE(ch);
	REQUIRE(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&other, 500));
	expect(RDMA_CM_EVENT_ADDR_ERROR);
	CHECK_EQ(event->status, -ETIMEDOUT);
}
