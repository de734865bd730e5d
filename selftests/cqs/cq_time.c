// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues and time: count and period of moderation reach the device, and the provider's
 * locks hold while a CQ is resized, armed and polled. test_cq_mod.c and test_cq_arm.c of the engine
 * have when events are due.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib/phc.h"

#define MS	1000000ull		/* ns */

/* ---- moderation ---- */

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period },
	};

	return ibv_modify_cq(cq, &attr);
}

static struct ibv_comp_channel *channel;

/* Makes a pair whose receiving CQ reports to @channel. */
static struct pair moderated_pair(void)
{
	struct dev *d = dev_open_qhca();
	struct pair p = { .dev = d };
	struct qp_opts o = QP_OPTS;

	channel = ibv_create_comp_channel(d->ctx);
	REQUIRE(channel);
	p.a = end_new(d, &o);
	o.recv_cq = cq_new(d, 64, channel);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	return p;
}

TEST(mod_caps, "C-032 moderation can be set to its limits")
{
	struct pair p = moderated_pair();
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(p.dev->ctx, NULL, &attr));
	CHECK(attr.cq_mod_caps.max_cq_count > 0);
	CHECK(attr.cq_mod_caps.max_cq_period > 0);
	CHECK_ERR(moderate(p.b.recv_cq, attr.cq_mod_caps.max_cq_count,
			   attr.cq_mod_caps.max_cq_period), 0);
	CHECK_ERR(moderate(p.b.recv_cq, 0, 0), 0);
}

/* The longest period, in us: 65 ms. */
#define LONGEST		65535

static void drop_all(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

/* Returns whether the event that needs four completions came before the end of the period. */
static bool by_count(struct pair *p)
{
	uint64_t start = device_ns(p->dev);
	struct ibv_cq *cq;
	int i;

	REQUIRE_OK(ibv_req_notify_cq(p->b.recv_cq, 0));
	for (i = 0; i < 4; i++)
		send_empty(p);
	CHECK(cq_event_wait(channel, &cq, WAIT_MS));
	drop_all(p->b.recv_cq);
	return device_ns(p->dev) - start < LONGEST * 1000ull;
}

TEST(mod_count, "C-032 the event comes with the fourth completion, before the period has ended")
{
	struct pair p = moderated_pair();
	int tries = 0;

	REQUIRE_OK(moderate(p.b.recv_cq, 4, LONGEST));
	while (!by_count(&p) && ++tries < 100)
		;
	test_note("%d tries took longer than the period", tries);
	CHECK(tries < 100);
}

TEST(mod_lone, "C-032 a single completion raises its event when the period has ended")
{
	struct pair p = moderated_pair();
	uint64_t before, after;
	struct ibv_cq *cq;

	REQUIRE_OK(moderate(p.b.recv_cq, 1000, 50000));
	REQUIRE_OK(ibv_req_notify_cq(p.b.recv_cq, 0));
	before = device_ns(p.dev);
	send_empty(&p);
	CHECK(cq_event_wait(channel, &cq, WAIT_MS));
	after = device_ns(p.dev);
	CHECK(after - before >= 50 * MS);
	CHECK(!cq_event_wait(channel, &cq, QUIET_MS));
	/* Moderation off. */
	REQUIRE_OK(moderate(p.b.recv_cq, 0, 0));
	REQUIRE_OK(ibv_req_notify_cq(p.b.recv_cq, 0));
	send_empty(&p);
	CHECK(cq_event_wait(channel, &cq, WAIT_MS));
}

/* ---- while completions arrive ---- */

#define MESSAGES	2000

static const int resize_to[] = { 64, 17, 500, 33, 4096, 100 };
/* How often the CQ has been resized; -1: it is not. */
static atomic_int resizes = -1;
static atomic_bool stop;

/* The traffic must not be over before the CQ has had each size. */
static void let_resize(int sent)
{
	int want = sent * (int)ARRAY_SIZE(resize_to) / MESSAGES;

	while (atomic_load(&resizes) >= 0 && atomic_load(&resizes) <= want)
		usleep(1000);
}

static void *traffic(void *arg)
{
	struct pair *p = arg;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < MESSAGES; i++) {
		let_resize(i);
		REQUIRE_OK(post_send(&p->a, &wr));
		wc = poll_get(p->a.send_cq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

/* Polls all completions; returns the number of the next one. */
static int drain(struct pair *p, int next)
{
	struct ibv_wc wc[8];
	int i, n;

	while ((n = ibv_poll_cq(p->b.recv_cq, 8, wc)) > 0) {
		for (i = 0; i < n; i++) {
			CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
			CHECK_EQ(wc[i].wr_id, next++);
			REQUIRE_OK(post_recv(&p->b, next + 15, NULL, 0));
		}
	}
	CHECK_EQ(n, 0);
	return next;
}

static void *resizer(void *arg)
{
	struct ibv_cq *cq = arg;
	int i;

	for (i = 0; !atomic_load(&stop); atomic_store(&resizes, ++i))
		REQUIRE_OK(ibv_resize_cq(cq, resize_to[i % ARRAY_SIZE(resize_to)]));
	test_note("%d resizes", i);
	return NULL;
}

/*
 * Receives everything, sleeping on the channel. A lost event ends in a timeout; a lost, duplicated
 * or misplaced completion shows by a wrong number.
 */
static void receive_by_events(struct pair *p)
{
	int i, next = 0, events = 0;
	pthread_t sender;
	struct ibv_cq *cq;

	for (i = 0; i < 16; i++)
		REQUIRE_OK(post_recv(&p->b, i, NULL, 0));
	REQUIRE(!pthread_create(&sender, NULL, traffic, p));
	while (next < MESSAGES) {
		REQUIRE_OK(ibv_req_notify_cq(p->b.recv_cq, 0));
		next = drain(p, next);
		if (next == MESSAGES)
			break;
		if (!cq_event_wait(channel, &cq, WAIT_MS)) {
			FAIL("no event after %d completions", next);
			break;
		}
		events++;
		next = drain(p, next);
	}
	pthread_join(sender, NULL);
	test_note("%d events", events);
	CHECK_EQ(next, MESSAGES);
	CHECK(events > 0);
	poll_empty(p->b.recv_cq);
}

TEST(resize_traffic, "C-026 C-019 resizing under traffic, armed: no completion lost, all in order")
{
	struct pair p = moderated_pair();
	pthread_t thread;

	test_timeout(100);
	atomic_store(&resizes, 0);
	REQUIRE(!pthread_create(&thread, NULL, resizer, p.b.recv_cq));
	receive_by_events(&p);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void *armer(void *arg)
{
	unsigned int i;

	for (i = 0; !atomic_load(&stop); i++)
		REQUIRE_OK(ibv_req_notify_cq(arg, i & 1));
	return NULL;
}

TEST(armers, "C-017 C-018 two threads arm at any time: the receiver loses no event")
{
	struct pair p = moderated_pair();
	pthread_t thread[2];
	int i;

	test_timeout(100);
	for (i = 0; i < 2; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, armer, p.b.recv_cq));
	receive_by_events(&p);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}
