// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: creating, posting, slots, resizing, events. test_srq.c of the engine has
 * which QP gets which WR, and when the events are due.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define MSG	64

/* Makes @n pairs whose b ends receive from @srq. */
static void pairs_new(struct dev *d, struct pair *p, int n, struct ibv_srq *srq)
{
	struct qp_opts o = QP_OPTS;
	int i;

	for (i = 0; i < n; i++) {
		p[i].dev = d;
		o.srq = NULL;
		p[i].a = end_new(d, &o);
		o.srq = srq;
		p[i].b = end_new(d, &o);
		pair_connect(&p[i], &CONN);
	}
}

/* Sends a message with @seed's pattern from p->a. */
static void send(struct pair *p, struct buf *b, uint32_t seed)
{
	struct ibv_sge sge = buf_sge(b, 0, MSG);
	struct ibv_send_wr wr = wr_send(seed, &sge, 1);

	fill(b->addr, MSG, seed);
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->a.send_cq, seed);
}

TEST(create, "G-001 sizes: requested, granted and refused")
{
	struct dev *d = dev_open();
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 5, .max_sge = 2 } };
	struct ibv_srq *srq = srq_new(d, 5, 2);
	struct ibv_srq_attr attr;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	CHECK(attr.max_wr >= 5);
	CHECK(attr.max_sge >= 2);
	if (d->qhca)	/* same as for QPs, see qp_caps in device.c */
		CHECK_EQ(attr.max_sge, 2);
	CHECK_EQ(attr.srq_limit, 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);

	init.attr.max_wr = 0;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
	init.attr.max_wr = d->attr.max_srq_wr + 1;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
	init.attr.max_wr = 1;
	init.attr.max_sge = d->attr.max_srq_sge + 1;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
}

TEST(full_size, "G-001 J-035 B-023 the largest SRQ takes max_srq_wr WRs of max_srq_sge SGEs")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, d->attr.max_srq_wr, d->attr.max_srq_sge);
	struct ibv_sge sge[128] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = d->attr.max_srq_sge };
	struct ibv_recv_wr *bad;
	struct ibv_srq_attr attr;
	uint32_t i;

	CHECK(d->attr.max_srq_wr >= 4096);
	REQUIRE(d->attr.max_srq_sge < (int)ARRAY_SIZE(sge));
	REQUIRE_OK(ibv_query_srq(srq, &attr));
	for (i = 0; i < attr.max_wr; i++)
		REQUIRE_OK(ibv_post_srq_recv(srq, &wr, &bad));
	CHECK_ERR(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	CHECK(bad == &wr);
	wr.num_sge = attr.max_sge + 1;
	CHECK_ERR(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
}

TEST(slots, "B-077 a slot is in use until its CQE has been polled")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_srq_attr attr;
	struct pair p[2];
	uint32_t i;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	pairs_new(d, p, 2, srq);
	for (i = 0; i < attr.max_wr; i++)
		REQUIRE_OK(srq_post(srq, i, &rx, 0, MSG));
	send(&p[0], &tx, 1);
	send(&p[1], &tx, 2);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	poll_ok(p[1].b.recv_cq, 1);		/* completes out of order */
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), 0);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	poll_ok(p[0].b.recv_cq, 0);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), 0);
}

TEST(users, "A-014 A-015 which QPs have an SRQ, and no receive queue then")
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	struct ibv_qp_init_attr uc = {
		.send_cq = cq_new(d, 4, NULL), .qp_type = IBV_QPT_UC, .srq = srq_new(d, 4, 1),
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct end e;

	uc.recv_cq = uc.send_cq;
	errno = 0;
	CHECK(!ibv_create_qp(d->pd, &uc) && errno == EINVAL);
	o.srq = uc.srq;
	o.recv_wr = d->attr.max_qp_wr + 1;	/* ignored */
	o.recv_sge = d->attr.max_sge + 1;
	e = end_in(d, &o, IBV_QPS_INIT);
	CHECK_ERR(post_recv(&e, 1, NULL, 0), EINVAL);
	o.type = IBV_QPT_UD;
	end_new(d, &o);
}

TEST(basic_ex, "G-001 ibv_create_srq_ex: the basic type, no tag matching")
{
	struct dev *d = dev_open_qhca();
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.pd = d->pd,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(d->ctx, &init);

	REQUIRE(srq);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	init.srq_type = IBV_SRQT_TM;
	init.comp_mask |= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
	init.cq = cq_new(d, 4, NULL);
	CHECK(!ibv_create_srq_ex(d->ctx, &init) && errno == EOPNOTSUPP);
}

TEST(busy, "G-008 G-017 busy: an SRQ with a QP, a PD with an SRQ")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.srq = srq;
	e = end_new(d, &o);
	CHECK_ERR(ibv_destroy_srq(srq), EBUSY);
	CHECK_ERR(ibv_destroy_qp(e.qp), 0);
	CHECK(ibv_dealloc_pd(d->pd) != 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
}

TEST(unpolled, "B-077 CQEs that are removed with their QP free their slots")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_srq_attr attr;
	struct pair p[2];
	uint32_t i, round;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	for (round = 0; round < 10; round++) {
		pairs_new(d, p, 2, srq);
		for (i = 0; i < attr.max_wr; i++)
			REQUIRE_OK(srq_post(srq, i, &rx, 0, MSG));
		for (i = 0; i < attr.max_wr; i++)
			send(&p[i & 1], &tx, i);
		REQUIRE_OK(set_state(p[0].b.qp, IBV_QPS_RESET));
		poll_empty(p[0].b.recv_cq);
		REQUIRE_OK(ibv_destroy_qp(p[1].b.qp));
		REQUIRE_OK(ibv_destroy_qp(p[0].b.qp));
	}
}

static struct ibv_srq *shared;
static struct buf shared_rx;
static atomic_int seen[4096];

static void *receiver(void *arg)
{
	struct pair *p = arg;
	int i;

	for (i = 0; i < 1000; i++) {
		struct ibv_wc wc = poll_get(p->b.recv_cq);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		atomic_fetch_add(&seen[wc.wr_id], 1);
		/* Post the same WR again, while other threads do the same. */
		REQUIRE_OK(srq_post(shared, wc.wr_id, &shared_rx,
				    wc.wr_id * MSG, MSG));
	}
	return NULL;
}

static void *sender(void *arg)
{
	struct pair *p = arg;
	struct buf tx = buf_new(p->dev->pd, MSG, LOCAL);
	int i;

	for (i = 0; i < 1000; i++)
		send(p, &tx, i);
	return NULL;
}

TEST(threads, "G-002 one SRQ, four QPs and CQs, eight threads: no WR is used twice")
{
	struct dev *d = dev_open();
	pthread_t rx[4], tx[4];
	struct pair p[4];
	int i, sum = 0;

	test_timeout(100);
	shared = srq_new(d, 64, 1);
	shared_rx = buf_new(d->pd, 64 * MSG, LOCAL);
	pairs_new(d, p, 4, shared);
	for (i = 0; i < 64; i++)
		REQUIRE_OK(srq_post(shared, i, &shared_rx, i * MSG, MSG));
	for (i = 0; i < 4; i++) {
		REQUIRE(!pthread_create(&rx[i], NULL, receiver, &p[i]));
		REQUIRE(!pthread_create(&tx[i], NULL, sender, &p[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(tx[i], NULL);
		pthread_join(rx[i], NULL);
	}
	for (i = 0; i < 64; i++)
		sum += seen[i];
	CHECK_EQ(sum, 4000);
	for (i = 0; i < 4; i++)
		poll_empty(p[i].b.recv_cq);
}

/* ---- modify and events ---- */

static struct dev *dev;
static struct ibv_srq *srq;
static struct buf tx, rx;
static struct pair pair;

static void setup(uint32_t max_wr)
{
	dev = dev_open();
	srq = srq_new(dev, max_wr, 1);
	tx = buf_new(dev->pd, MSG, LOCAL);
	rx = buf_new(dev->pd, MSG, LOCAL);
	pairs_new(dev, &pair, 1, srq);
}

static void post(uint64_t id)
{
	REQUIRE_OK(srq_post(srq, id, &rx, 0, MSG));
}

static void receive(uint64_t id)
{
	send(&pair, &tx, id);
	poll_ok(pair.b.recv_cq, id);
}

static int set_limit(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int resize(uint32_t max_wr, int limit)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr,
			      IBV_SRQ_MAX_WR | (limit < 0 ? 0 : IBV_SRQ_LIMIT));
}

static struct ibv_srq_attr query(void)
{
	struct ibv_srq_attr attr;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	return attr;
}

TEST(limit, "G-005 G-007 H-009 the limit: set, shown, passed, set again, and too high")
{
	struct ibv_srq_attr attr = { 0 };
	int i;

	setup(16);
	for (i = 0; i < 4; i++)
		post(i);
	REQUIRE_OK(set_limit(3));
	CHECK_ERR(set_limit(query().max_wr + 1), EINVAL);
	CHECK(ibv_modify_srq(srq, &attr, 4));
	receive(0);
	async_none(dev->ctx);
	CHECK_EQ(query().srq_limit, 3);
	receive(1);
	async_expect(dev->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	CHECK_EQ(query().srq_limit, 0);
	REQUIRE_OK(set_limit(2));
	receive(2);
	async_expect(dev->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

static void need_resize(void)
{
	setup(8);
	if (!(dev->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		test_skip("no resizing here");
}

TEST(grow, "G-007 resize: pending WRs are kept, in order")
{
	int i;

	need_resize();
	for (i = 0; i < 8; i++)
		post(i);
	receive(0);
	REQUIRE_OK(resize(100, -1));
	CHECK(query().max_wr >= 100);
	for (i = 8; i < 101; i++)
		post(i);
	for (i = 1; i < 101; i++)
		receive(i);
	for (i = 101; i < 300; i++) {
		post(i);
		receive(i);
	}
}

TEST(shrink, "G-007 resize below what is outstanding, or below the limit, is refused")
{
	uint32_t max;
	int i;

	need_resize();
	max = query().max_wr;
	for (i = 0; i < 5; i++)
		post(i);
	/* WRs whose completions were not polled are outstanding: their slots are not free. */
	for (i = 0; i < 3; i++)
		send(&pair, &tx, i);
	CHECK_ERR(resize(4, -1), EINVAL);
	for (i = 0; i < 3; i++)
		poll_ok(pair.b.recv_cq, i);
	REQUIRE_OK(set_limit(2));
	CHECK_ERR(resize(0, -1), EINVAL);
	CHECK_ERR(resize(2, 3), EINVAL);
	CHECK_EQ(query().max_wr, max);
	CHECK_EQ(query().srq_limit, 2);
	REQUIRE_OK(resize(2, 1));
	CHECK_EQ(query().max_wr, 2);
	CHECK_EQ(query().srq_limit, 1);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	receive(3);
	async_none(dev->ctx);
	receive(4);
	async_expect(dev->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	for (i = 5; i < 20; i++) {
		post(i);
		receive(i);
	}
}

TEST(last_wqe, "A-102 H-008 LAST_WQE_REACHED; WRs stay in the SRQ")
{
	setup(16);
	post(0);
	post(1);
	receive(0);
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_ERR));
	async_expect(dev->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp);
	poll_empty(pair.b.recv_cq);
	REQUIRE_OK(set_state(pair.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_RESET));
	pair_connect(&pair, &CONN);
	receive(1);
}
