// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events of conformance H: their causes, their receivers, and verbs that wait for
 * them. Events of CQs are in cq.c, of SRQs in srq.c and xrc.c, SQ_DRAINED is in qp_state.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/rdma.h"

/* Sends a WRITE from p->a that p->b refuses: no right on the QP, or a bad key. */
static void refused_write(struct pair *p, bool bad_key)
{
	struct buf b = buf_new(p->dev->pd, 64, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 64);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey);

	if (bad_key)
		wr.wr.rdma.rkey ^= 0x100;
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, bad_key ? IBV_WC_REM_ACCESS_ERR :
					       IBV_WC_REM_INV_REQ_ERR);
}

static struct pair pair_without_rights(struct dev *d)
{
	struct conn c = CONN;

	c.access = LOCAL;
	return pair_new(d, &QP_OPTS, &c);
}

TEST(req_err, "H-003 H-022 QP_REQ_ERR: a request that the QP does not allow")
{
	struct pair p = pair_without_rights(dev_open_qhca());

	refused_write(&p, false);
	async_expect(p.dev->ctx, IBV_EVENT_QP_REQ_ERR, p.b.qp);
	/* the state that the event reports is already visible. */
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
	async_none(p.dev->ctx);
}

TEST(access_err, "H-004 H-022 H-023 QP_ACCESS_ERR: a key that is not valid")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	refused_write(&p, true);
	async_expect(d->ctx, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
	/* The requester gets a completion, and therefore no event. */
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_ERR);
	async_none(d->ctx);
}

TEST(owner, "H-020 an affiliated event reaches the owner of the object only")
{
	struct dev *other = dev_open_qhca();
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct pair q = pair_new(other, &QP_OPTS, &CONN);

	refused_write(&p, true);
	async_expect(d->ctx, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	async_none(other->ctx);
	ping_pong(&q);
}

TEST(nonblocking, "H-021 without an event a nonblocking read returns at once")
{
	struct dev *d = dev_open();
	int flags = fcntl(d->ctx->async_fd, F_GETFL);
	struct ibv_async_event ev;

	REQUIRE(fcntl(d->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	while (!ibv_get_async_event(d->ctx, &ev))
		ibv_ack_async_event(&ev);	/* event of the port */
	CHECK_EQ(errno, EAGAIN);
}

/* Each function raises an event of an object that nothing else uses any more. */

static void *qp_with_event(struct dev *d)
{
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	refused_write(&p, true);
	return p.b.qp;
}

static void *srq_with_event(struct dev *d)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct ibv_srq *srq = srq_new(d, 4, 1);

	REQUIRE_OK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));	/* G-006 */
	return srq;
}

static void *cq_with_event(struct dev *d)
{
	struct ibv_cq *cq = cq_new(d, 1, NULL);
	struct qp_opts o = QP_OPTS;
	struct end e;
	int i;

	o.recv_wr = cq->cqe + 1;
	o.recv_cq = cq;
	e = end_new(d, &o);
	qp_bring(&e, &CONN, IBV_QPS_INIT);
	for (i = 0; i < cq->cqe + 1; i++)
		REQUIRE_OK(post_recv(&e, i, NULL, 0));
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	REQUIRE_OK(ibv_destroy_qp(e.qp));
	return cq;
}

static int destroy_qp(void *obj)
{
	return ibv_destroy_qp(obj);
}

static int destroy_srq(void *obj)
{
	return ibv_destroy_srq(obj);
}

static int destroy_cq(void *obj)
{
	return ibv_destroy_cq(obj);
}

static const struct object {
	const char *name;
	enum ibv_event_type type;
	void *(*make)(struct dev *d);
	int (*destroy)(void *obj);
} objects[] = {
	{ "a QP", IBV_EVENT_QP_ACCESS_ERR, qp_with_event, destroy_qp },
	{ "an SRQ", IBV_EVENT_SRQ_LIMIT_REACHED, srq_with_event, destroy_srq },
	{ "a CQ", IBV_EVENT_CQ_ERR, cq_with_event, destroy_cq },
};

struct destroyer {
	const struct object *object;
	void *obj;
	_Atomic bool done;
	int err;
};

static void *destroy(void *arg)
{
	struct destroyer *x = arg;

	x->err = x->object->destroy(x->obj);
	x->done = true;
	return NULL;
}

TEST_ROWS(unacked, "H-021 destroying waits for events to be acknowledged", objects)
{
	struct dev *d = dev_open_qhca();
	struct destroyer x = { .object = row, .obj = row->make(d) };
	struct ibv_async_event ev;
	pthread_t thread;

	do {
		REQUIRE_OK(ibv_get_async_event(d->ctx, &ev));
		if (ev.event_type != row->type)
			ibv_ack_async_event(&ev);	/* event of the port */
	} while (ev.event_type != row->type);
	CHECK(ev.element.qp == x.obj);
	REQUIRE_OK(pthread_create(&thread, NULL, destroy, &x));
	sleep_ms(QUIET_MS);
	CHECK(!x.done);
	ibv_ack_async_event(&ev);
	REQUIRE_OK(pthread_join(thread, NULL));
	CHECK_ERR(x.err, 0);
	async_none(d->ctx);
}

TEST(gone, "H-021 no event of a destroyed QP")
{
	struct dev *d = dev_open_qhca();
	int i;

	for (i = 0; i < 20; i++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		refused_write(&p, true);
		REQUIRE_OK(ibv_destroy_qp(p.b.qp));
		REQUIRE_OK(ibv_destroy_qp(p.a.qp));
	}
	async_none(d->ctx);
}

#define WAITERS		3
#define EVENTS		30

/* struct waiter - a thread that blocks for events, and the SRQs whose events it received */
struct waiter {
	struct ibv_context *ctx;
	struct ibv_srq *last;	/* SRQ of the event that ends the thread */
	struct ibv_srq *got[EVENTS + WAITERS];
	int n;
	pthread_t thread;
};

static void *wait_for_events(void *arg)
{
	struct waiter *w = arg;
	struct ibv_async_event ev = {};

	while (ev.element.srq != w->last && w->n < (int)ARRAY_SIZE(w->got) &&
	       !ibv_get_async_event(w->ctx, &ev)) {
		ibv_ack_async_event(&ev);
		if (ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			w->got[w->n++] = ev.element.srq;
	}
	return NULL;
}

static int times_got(const struct waiter *w, const struct ibv_srq *srq)
{
	int i, j, n = 0;

	for (i = 0; i < WAITERS; i++)
		for (j = 0; j < w[i].n; j++)
			n += w[i].got[j] == srq;
	return n;
}

TEST(threads, "H-021 threads block for events, and each event goes to one of them")
{
	struct dev *d = dev_open_qhca();
	struct ibv_srq_attr one = { .srq_limit = 1 };
	struct ibv_srq *srq[EVENTS], *last = srq_new(d, 4, 1);
	struct waiter w[WAITERS] = {};
	int i;

	for (i = 0; i < EVENTS; i++)
		srq[i] = srq_new(d, 4, 1);
	for (i = 0; i < WAITERS; i++) {
		w[i].ctx = d->ctx;
		w[i].last = last;
		REQUIRE_OK(pthread_create(&w[i].thread, NULL, wait_for_events, &w[i]));
	}
	sleep_ms(QUIET_MS);
	for (i = 0; i < EVENTS; i++)
		REQUIRE_OK(ibv_modify_srq(srq[i], &one, IBV_SRQ_LIMIT));
	/* Raise one more event for each thread, to end it. */
	for (i = 0; i < WAITERS; i++)
		REQUIRE_OK(ibv_modify_srq(last, &one, IBV_SRQ_LIMIT));
	for (i = 0; i < WAITERS; i++)
		REQUIRE_OK(pthread_join(w[i].thread, NULL));
	for (i = 0; i < EVENTS; i++)
		CHECK_EQ(times_got(w, srq[i]), 1);
	CHECK_EQ(times_got(w, last), WAITERS);
	async_none(d->ctx);
}

#define MANY 200

TEST(many, "H-022 many events at once: none is lost")
{
	struct dev *d = dev_open_qhca();
	struct pair *p = calloc(MANY, sizeof(*p));
	struct ibv_async_event ev;
	bool seen[MANY] = { 0 };
	int i, n;

	test_timeout(120);
	REQUIRE(p);
	for (i = 0; i < MANY; i++)
		p[i] = pair_new(d, &QP_OPTS, &CONN);
	for (i = 0; i < MANY; i++)
		refused_write(&p[i], true);
	for (n = 0; n < MANY && async_wait(d->ctx, &ev, WAIT_MS); ) {
		if (ev.event_type != IBV_EVENT_QP_ACCESS_ERR)
			continue;	/* event of the port */
		n++;
		for (i = 0; i < MANY; i++) {
			if (ev.element.qp != p[i].b.qp)
				continue;
			CHECK(!seen[i]);
			seen[i] = true;
		}
	}
	CHECK_EQ(n, MANY);
	async_none(d->ctx);
}
