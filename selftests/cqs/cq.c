// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: capacity, overflow, sharing, polling, resizing, and CQEs that RESET and
 * destroy leave there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/rdma.h"

/* Sends @n empty signaled messages from @a to @b, with wr_ids from @id. */
static void send_many(struct end *a, struct end *b, uint64_t id, int n)
{
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	int i;

	for (i = 0; i < n; i++) {
		wr.wr_id = id + i;
		REQUIRE_OK(post_recv(b, id + i, NULL, 0));
		REQUIRE_OK(post_send(a, &wr));
	}
}

static void poll_many(struct ibv_cq *cq, uint64_t id, int n)
{
	int i;

	for (i = 0; i < n; i++)
		poll_ok(cq, id + i);
}

/* Makes a pair whose end b completes receives on @cq. */
static struct pair pair_on(struct dev *d, struct ibv_cq *recv_cq, uint32_t depth)
{
	struct pair p = { .dev = d };
	struct qp_opts o = QP_OPTS;

	o.send_wr = depth;
	o.recv_wr = depth;
	o.cqe = depth;
	p.a = end_new(d, &o);
	o.recv_cq = recv_cq;
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	return p;
}

TEST(capacity, "C-002 a CQ of n entries holds n completions")
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 20, NULL);
	struct pair p = pair_on(d, cq, cq->cqe);
	int round, n = cq->cqe;

	for (round = 0; round < 5; round++) {
		send_many(&p.a, &p.b, 0, n);
		poll_many(p.a.send_cq, 0, n);
		poll_many(cq, 0, n);
	}
	async_none(d->ctx);
	ping_pong(&p);
}

TEST(overflow, "C-028 C-029 I-041 one completion more than the CQ holds")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 8, NULL);
	struct pair p = pair_on(d, cq, 2 * cq->cqe);
	struct pair other = pair_on(d, cq, 4), apart = pair_new(d, &QP_OPTS, &CONN);
	struct ibv_wc wc;
	int i, n = cq->cqe;
	uint64_t before = hw_counter("cq_overrun");

	send_many(&p.a, &p.b, 0, n + 1);
	async_expect(d->ctx, IBV_EVENT_CQ_ERR, cq);
	CHECK_EQ(hw_counter("cq_overrun") - before, 1);
	CHECK(wait_state(p.b.qp, IBV_QPS_ERR));
	CHECK(wait_state(other.b.qp, IBV_QPS_ERR));
	/* The CQEs are right, and no other follows. */
	for (i = 0; i < n && poll_wait(cq, &wc, 0); i++) {
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	poll_none(cq);
	REQUIRE_OK(post_recv(&p.b, 77, NULL, 0));
	poll_none(cq);
	ping_pong(&apart);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	CHECK_ERR(ibv_destroy_qp(other.b.qp), 0);
	CHECK_ERR(ibv_destroy_cq(cq), 0);
}

TEST(overflow_events, "C-028 C-029 overflow: one CQ_ERR, one QP_FATAL per QP")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct pair p = pair_on(d, cq, 2 * cq->cqe);
	struct pair other = pair_on(d, cq, 4);
	int cq_err = 0, fatal_p = 0, fatal_other = 0;
	struct ibv_async_event ev;

	send_many(&p.a, &p.b, 0, cq->cqe + 3);
	while (async_wait(d->ctx, &ev, 500)) {
		if (ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == cq)
			cq_err++;
		if (ev.event_type != IBV_EVENT_QP_FATAL)
			continue;
		if (ev.element.qp == p.b.qp)
			fatal_p++;
		else if (ev.element.qp == other.b.qp)
			fatal_other++;
		else
			FAIL("QP_FATAL for another QP");
	}
	CHECK_EQ(cq_err, 1);
	CHECK_EQ(fatal_p, 1);
	CHECK_EQ(fatal_other, 1);
	CHECK_ERR(set_state(p.b.qp, IBV_QPS_RESET), 0);
}

#define SHARERS 16

TEST(shared, "C-003 C-005 many QPs on one CQ, each queue in order")
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, SHARERS * 16, NULL);
	struct qp_opts o = QP_OPTS;
	struct pair p[SHARERS];
	int next_send[SHARERS] = { 0 }, next_recv[SHARERS] = { 0 }, i, j;

	o.send_cq = cq;
	o.recv_cq = cq;
	for (i = 0; i < SHARERS; i++)
		p[i] = pair_new(d, &o, &CONN);
	for (j = 0; j < 8; j++)
		for (i = 0; i < SHARERS; i++)
			send_many(&p[i].a, &p[i].b, i * 100 + j, 1);
	for (j = 0; j < 8 * SHARERS * 2; j++) {
		struct ibv_wc wc = poll_get(cq);
		int *next, who = wc.wr_id / 100;

		REQUIRE(wc.status == IBV_WC_SUCCESS && who < SHARERS);
		next = wc.opcode == IBV_WC_RECV ? next_recv : next_send;
		CHECK_EQ(wc.wr_id % 100, next[who]++);
		CHECK_EQ(wc.qp_num, wc.opcode == IBV_WC_RECV ?
			 p[who].b.qp->qp_num : p[who].a.qp->qp_num);
	}
	poll_none(cq);
}

TEST(poll_count, "C-004 poll returns as many as requested, or all there are")
{
	struct pair p = pair_default();
	struct ibv_wc wc[32];
	int i;

	send_many(&p.a, &p.b, 0, 10);
	for (i = 0; i < 10; i++)
		poll_ok(p.b.recv_cq, i);
	CHECK_EQ(ibv_poll_cq(p.a.send_cq, 0, wc), 0);
	CHECK_EQ(ibv_poll_cq(p.a.send_cq, 3, wc), 3);
	CHECK_EQ(wc[2].wr_id, 2);
	CHECK_EQ(ibv_poll_cq(p.a.send_cq, 32, wc), 7);
	for (i = 0; i < 7; i++)
		CHECK_EQ(wc[i].wr_id, 3 + i);
	CHECK_EQ(ibv_poll_cq(p.a.send_cq, 32, wc), 0);
}

#define POLLS 400

struct poller {
	struct ibv_cq *cq;
	atomic_int *left;
	uint8_t *seen;
	pthread_t thread;
};

static void *poller(void *arg)
{
	struct poller *t = arg;
	struct ibv_wc wc[3];
	int i, n;

	while (*t->left > 0) {
		n = ibv_poll_cq(t->cq, 3, wc);
		for (i = 0; i < n; i++)
			t->seen[wc[i].wr_id]++;
		*t->left -= n;
		if (!n)
			sleep_ms(1);
	}
	return NULL;
}

TEST(poll_threads, "C-004 two threads poll one CQ: no completion is lost or duplicated")
{
	static uint8_t seen[2][POLLS];
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	atomic_int left = POLLS;
	struct poller t[2];
	struct pair p;
	int i, err;

	o.recv_wr = 512;
	o.cqe = 1024;
	p = pair_new(dev_open(), &o, &CONN);
	for (i = 0; i < POLLS; i++)
		REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
	for (i = 0; i < 2; i++) {
		t[i] = (struct poller){ p.a.send_cq, &left, seen[i], 0 };
		REQUIRE_OK(pthread_create(&t[i].thread, NULL, poller, &t[i]));
	}
	for (i = 0; i < POLLS; i++) {
		wr.wr_id = i;
		while ((err = post_send(&p.a, &wr)) == ENOMEM)
			sleep_ms(1);
		REQUIRE_OK(err);
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i].thread, NULL);
	for (i = 0; i < POLLS; i++)
		CHECK_EQ(seen[0][i] + seen[1][i], 1);
	CHECK_EQ(left, 0);
}

static int resize(struct ibv_cq *cq, int cqe)
{
	int err = ibv_resize_cq(cq, cqe);

	if (err == EOPNOTSUPP)
		test_skip("no resizing here");
	return err;
}

TEST(resize_pending, "C-026 resizing keeps pending completions, in order")
{
	const int sizes[] = { 100, 16, 1000, 10, 20 };
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 32, NULL);
	struct pair p = pair_on(d, cq, 32);
	uint64_t id = 0, polled = 0;
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* Poll some first, so that the pending CQEs do not begin at entry 0. */
		send_many(&p.a, &p.b, id, 8);
		poll_many(p.a.send_cq, id, 8);
		id += 8;
		poll_many(cq, polled, 6);
		polled += 6;
		CHECK_ERR(resize(cq, sizes[i]), 0);
		CHECK(cq->cqe >= sizes[i]);
	}
	n = id - polled;
	poll_many(cq, polled, n);
	poll_empty(cq);
	for (i = 0; i < 10; i++)
		ping_pong(&p);
}

TEST(resize_bad, "C-026 resizing below the number of pending CQEs, or above the limit")
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	struct pair p = pair_on(d, cq, 32);
	int cqe = cq->cqe;

	send_many(&p.a, &p.b, 0, 17);
	poll_many(p.a.send_cq, 0, 17);
	CHECK(resize(cq, 16));
	CHECK_ERR(resize(cq, 0), EINVAL);
	CHECK_ERR(resize(cq, -1), EINVAL);
	CHECK_ERR(resize(cq, d->attr.max_cqe + 1), EINVAL);
	CHECK_EQ(cq->cqe, cqe);
	poll_many(cq, 0, 17);
	CHECK_ERR(resize(cq, d->attr.max_cqe), 0);
	ping_pong(&p);
}

TEST(resize_full, "C-026 a resized CQ has the new capacity, and no more")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct pair p = pair_on(d, cq, 64);

	CHECK_ERR(resize(cq, 32), 0);
	send_many(&p.a, &p.b, 0, 32);
	poll_many(p.a.send_cq, 0, 32);
	async_none(d->ctx);
	poll_many(cq, 0, 32);
	CHECK_ERR(resize(cq, 1), 0);
	send_many(&p.a, &p.b, 0, cq->cqe + 1);
	async_expect(d->ctx, IBV_EVENT_CQ_ERR, cq);
}

/* Makes two pairs on one CQ, which then has completions of both, interleaved. */
static void two_on_one(struct dev *d, struct ibv_cq *cq, struct pair *p)
{
	struct qp_opts o = QP_OPTS;
	int i;

	o.send_cq = cq;
	o.recv_cq = cq;
	p[0] = pair_new(d, &o, &CONN);
	p[1] = pair_new(d, &o, &CONN);
	/* Move the indices, so that the ring wraps among those completions. */
	for (i = 0; i < 11; i++)
		ping(&p[1].a, &p[1].b);
	for (i = 0; i < 5; i++) {
		send_many(&p[0].a, &p[0].b, 100 + i, 1);
		send_many(&p[1].a, &p[1].b, 200 + i, 1);
	}
	sleep_ms(QUIET_MS);
}

static void only_second(struct ibv_cq *cq, struct pair *p)
{
	int send = 0, recv = 0, i;

	for (i = 0; i < 10; i++) {
		struct ibv_wc wc = poll_get(cq);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			CHECK_EQ(wc.wr_id, 200 + recv++);
		else
			CHECK_EQ(wc.wr_id, 200 + send++);
	}
	poll_none(cq);
	ping_pong(&p[1]);
}

TEST(reset_clean, "A-103 RESET removes the QP's completions from the CQ, and only those")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 32, NULL);
	struct pair p[2];

	two_on_one(d, cq, p);
	REQUIRE_OK(set_state(p[0].a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p[0].b.qp, IBV_QPS_RESET));
	only_second(cq, p);
	pair_connect(&p[0], &CONN);
	ping_pong(&p[0]);
}

TEST(destroy_clean, "A-024 destroying a QP removes its completions from the CQ")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 32, NULL);
	struct pair p[2];

	two_on_one(d, cq, p);
	REQUIRE_OK(ibv_destroy_qp(p[0].a.qp));
	REQUIRE_OK(ibv_destroy_qp(p[0].b.qp));
	only_second(cq, p);
}

TEST(clean_capacity, "A-103 C-002 completions that RESET removed leave room for others")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 8, NULL);
	struct pair p = pair_on(d, cq, 8), q = pair_on(d, cq, 8);
	int i, n = cq->cqe;

	for (i = 0; i < 6; i++) {
		send_many(&p.a, &p.b, 0, n - 2);
		send_many(&q.a, &q.b, 50, 2);
		poll_many(p.a.send_cq, 0, n - 2);
		poll_many(q.a.send_cq, 50, 2);
		REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
		REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
		send_many(&q.a, &q.b, 52, n - 2);
		poll_many(q.a.send_cq, 52, n - 2);
		poll_many(cq, 50, n);
		poll_empty(cq);
		pair_connect(&p, &CONN);
	}
	async_none(d->ctx);
}
