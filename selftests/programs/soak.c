// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are made, carry data and are closed, in many threads: some through the CM, with
 * shared SRQs, others XRC. All data is checked, and nothing is left at the end.
 *
 * SOAK_MS is the duration, SOAK_SEED determines what each thread does (not when).
 * selftests/guest/soak.sh does longer runs.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/chance.h"
#include "lib/echo.h"
#include "lib/xrc.h"

#define CLIENTS		6
#define XRC_THREADS	2

static struct dev *dev;
static atomic_bool closing;
static atomic_ulong messages, xrc_messages;
static long seed;

/* ---- clients ---- */

struct client {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct buf out, in;
	struct echo_window win;
	uint64_t count;		/* content of the word behind the window */
};

/* Waits for the next event, which must be @type, and keeps the data that the server sent. */
static void expect(struct client *c, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = cm_event(c->ch, type);

	if (type == RDMA_CM_EVENT_ESTABLISHED)
		memcpy(&c->win, event->param.conn.private_data, sizeof(c->win));
	REQUIRE(!rdma_ack_cm_event(event));
}

static void client_connect(struct client *c)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_conn_param p = echo_param();

	REQUIRE(!rdma_create_id(c->ch, &c->id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&echo.addr, 5000));
	expect(c, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(c->id, 5000));
	expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED);
	REQUIRE(!rdma_create_qp(c->id, echo.pd, &init));
	REQUIRE(!rdma_connect(c->id, &p));
	expect(c, RDMA_CM_EVENT_ESTABLISHED);
	c->count = 0;
}

/* Sends a message and receives its echo. */
static void send_echo(struct client *c)
{
	uint32_t len = below(one_in(4) ? ECHO_MSG : 200) + 1, s = below(1 << 30);
	struct ibv_sge out = buf_sge(&c->out, 0, len), in = buf_sge(&c->in, 0, ECHO_MSG);
	struct ibv_send_wr wr = wr_send(1, &out, 1), *bad;
	struct ibv_recv_wr rwr = { .wr_id = 2, .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;
	int i;

	fill(c->out.addr, len, s);
	REQUIRE_OK(ibv_post_recv(c->id->qp, &rwr, &bad_recv));
	REQUIRE_OK(ibv_post_send(c->id->qp, &wr, &bad));
	for (i = 0; i < 2; i++) {
		wc = poll_get(c->cq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK(wc.wr_id != 2 || wc.byte_len == len);
	}
	check_fill(c->in.addr, len, s, "echo");
}

static void client_wr(struct client *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	REQUIRE_OK(ibv_post_send(c->id->qp, wr, &bad));
	poll_ok(c->cq, wr->wr_id);
}

static void write_and_read(struct client *c)
{
	uint32_t len = below(one_in(4) ? ECHO_MSG : 200) + 1, s = below(1 << 30);
	struct ibv_sge out = buf_sge(&c->out, 0, len), in = buf_sge(&c->in, 0, len);
	struct ibv_send_wr wr = wr_rdma(3, IBV_WR_RDMA_WRITE, &out, 1, c->win.addr,
					c->win.rkey);

	fill(c->out.addr, len, s);
	memset(c->in.addr, 0, len);
	client_wr(c, &wr);
	wr = wr_rdma(4, IBV_WR_RDMA_READ, &in, 1, c->win.addr, c->win.rkey);
	client_wr(c, &wr);
	check_fill(c->in.addr, len, s, "read back");
}

static void count(struct client *c)
{
	struct ibv_sge in = buf_sge(&c->in, 0, 8);
	struct ibv_send_wr wr = wr_rdma(5, IBV_WR_ATOMIC_FETCH_AND_ADD, &in, 1,
					c->win.addr + ECHO_MSG, c->win.rkey);

	wr.wr.atomic.compare_add = 7;
	client_wr(c, &wr);
	CHECK_EQ(*(uint64_t *)c->in.addr, c->count);
	c->count += 7;
}

/* Some clients disconnect; for the others the kernel does. */
static void client_disconnect(struct client *c)
{
	if (!one_in(4)) {
		REQUIRE(!rdma_disconnect(c->id));
		expect(c, RDMA_CM_EVENT_DISCONNECTED);
	}
	rdma_destroy_qp(c->id);
	REQUIRE(!rdma_destroy_id(c->id));
}

static void *client(void *number)
{
	static void (*const ops[])(struct client *) = {
		send_echo, send_echo, write_and_read, count,
	};
	struct client c = { .ch = rdma_create_event_channel() };
	uint32_t n;

	REQUIRE(c.ch);
	chance_seed(seed * 0x100 + (intptr_t)number);
	c.cq = ibv_create_cq(echo.verbs, 16, NULL, NULL, 0);
	REQUIRE(c.cq);
	c.out = buf_new(echo.pd, ECHO_MSG, LOCAL);
	c.in = buf_new(echo.pd, ECHO_MSG, LOCAL);
	while (!atomic_load(&closing)) {
		client_connect(&c);
		for (n = below(40); n; n--) {
			ops[below(ARRAY_SIZE(ops))](&c);
			atomic_fetch_add(&messages, 1);
		}
		client_disconnect(&c);
	}
	buf_free(&c.out);
	buf_free(&c.in);
	CHECK_ERR(ibv_destroy_cq(c.cq), 0);
	rdma_destroy_event_channel(c.ch);
	return NULL;
}

/* ---- XRC: QPs are created and destroyed, the SRQ stays ---- */

static void *xrc_client(void *number)
{
	struct xrc x;
	uint32_t n;

	chance_seed(seed * 0x100 + 0x80 + (intptr_t)number);
	x = xrc_new(dev, &CONN);
	while (!atomic_load(&closing)) {
		struct qp_opts o = QP_OPTS;

		for (n = below(40); n; n--) {
			uint32_t len = below(XRC_HALF) / (one_in(4) ? 1 : 100) + 1;
			struct ibv_sge sge;
			struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, len);
			uint32_t s = below(1 << 30);

			fill(x.buf.addr, len, s);
			REQUIRE_OK(srq_post(x.srq.srq, n, &x.buf, XRC_HALF, XRC_HALF));
			REQUIRE_OK(post_send(&x.p.a, &wr));
			poll_ok(x.p.a.send_cq, wr.wr_id);
			CHECK_EQ(poll_ok(x.srq.cq, n).byte_len, len);
			check_fill(x.buf.addr + XRC_HALF, len, s, "XRC message");
			atomic_fetch_add(&xrc_messages, 1);
		}
		REQUIRE_OK(ibv_destroy_qp(x.p.a.qp));
		REQUIRE_OK(ibv_destroy_qp(x.p.b.qp));
		o.send_cq = x.p.a.send_cq;
		o.recv_cq = x.p.a.recv_cq;
		o.xrcd = x.xrcd;
		o.type = IBV_QPT_XRC_SEND;
		x.p.a = end_new(dev, &o);
		o.type = IBV_QPT_XRC_RECV;
		x.p.b = end_new(dev, &o);
		pair_connect(&x.p, &CONN);
	}
	return NULL;
}

/* ---- all clients, in one process ---- */

static void run(long ms)
{
	pthread_t threads[CLIENTS + XRC_THREADS];
	unsigned long connections;
	intptr_t i;

	dev = dev_open_qhca();
	echo_open(dev);
	for (i = 0; i < (intptr_t)ARRAY_SIZE(threads); i++)
		REQUIRE_OK(pthread_create(&threads[i], NULL,
					  i < CLIENTS ? client : xrc_client, (void *)i));
	sleep_ms(ms);
	atomic_store(&closing, true);
	for (i = 0; i < (intptr_t)ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	connections = echo_close();
	test_note("seed %ld: %lu connections, %lu messages, %lu of XRC", seed,
		  connections, atomic_load(&messages),
		  atomic_load(&xrc_messages));
	CHECK(connections > CLIENTS);
	CHECK(atomic_load(&messages) > 0);
	CHECK(atomic_load(&xrc_messages) > 0);
}

TEST(soak, "C-003 G-012 J-018 K-012 K-017 connections with data, in many threads")
{
	char before[1024], after[1024] = "";
	long ms = from_env("SOAK_MS", 3000);
	int64_t end;
	int status;
	pid_t pid;

	seed = from_env("SOAK_SEED", 1);
	test_timeout(ms / 1000 + 120);
	resources(before, sizeof(before));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		run(ms);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	for (end = time_ms() + 5000; time_ms() < end; sleep_ms(100)) {
		resources(after, sizeof(after));
		if (!strcmp(before, after))
			return;
	}
	FAIL("before: %s after: %s", before, after);
}
