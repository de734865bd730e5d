// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events of conformance H: what raises them, who gets them, and what
 * waits for whom. Those of completion queues are in cq.c, of states in qp_traffic.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/rdma.h"

/* A WRITE from p->a that p->b refuses: right of the QP, or key. */
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
	/* what the event reports can be seen by then. */
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
	async_none(p.dev->ctx, IBV_EVENT_QP_REQ_ERR);
}

TEST(access_err, "H-004 H-022 H-023 QP_ACCESS_ERR: a key that is not valid")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	refused_write(&p, true);
	async_expect(d->ctx, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
	/* The requester has its completion: no event says it again. */
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_ERR);
	async_none(d->ctx, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(owner, "H-020 an affiliated event reaches the owner of the object only")
{
	struct dev *other = dev_open_qhca();
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct pair q = pair_new(other, &QP_OPTS, &CONN);

	refused_write(&p, true);
	async_expect(d->ctx, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	async_none(other->ctx, IBV_EVENT_QP_ACCESS_ERR);
	ping_pong(&q);
}

TEST(nonblocking, "H-021 no event, nobody waits")
{
	struct dev *d = dev_open();
	int flags = fcntl(d->ctx->async_fd, F_GETFL);
	struct ibv_async_event ev;

	REQUIRE(fcntl(d->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	while (!ibv_get_async_event(d->ctx, &ev))
		ibv_ack_async_event(&ev);	/* of the port */
	CHECK_EQ(errno, EAGAIN);
}

struct destroyer {
	struct ibv_qp *qp;
	_Atomic bool done;
	int err;
};

static void *destroy(void *arg)
{
	struct destroyer *x = arg;

	x->err = ibv_destroy_qp(x->qp);
	x->done = true;
	return NULL;
}

TEST(unacked, "H-021 destroying a QP waits for its events to be acknowledged")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct destroyer x = { .qp = p.b.qp };
	struct ibv_async_event ev;
	pthread_t thread;

	refused_write(&p, true);
	REQUIRE_OK(ibv_get_async_event(d->ctx, &ev));
	CHECK_EQ(ev.event_type, IBV_EVENT_QP_ACCESS_ERR);
	REQUIRE_OK(pthread_create(&thread, NULL, destroy, &x));
	sleep_ms(QUIET_MS);
	CHECK(!x.done);
	ibv_ack_async_event(&ev);
	REQUIRE_OK(pthread_join(thread, NULL));
	CHECK_ERR(x.err, 0);
}

TEST(gone, "H-021 no event of a QP that is gone")
{
	struct dev *d = dev_open_qhca();
	int i;

	for (i = 0; i < 20; i++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		refused_write(&p, true);
		REQUIRE_OK(ibv_destroy_qp(p.b.qp));
		REQUIRE_OK(ibv_destroy_qp(p.a.qp));
	}
	async_none(d->ctx, IBV_EVENT_QP_ACCESS_ERR);
}

#define MANY 200

TEST(many, "H-022 many at once, none is lost")
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
			continue;	/* of the port */
		n++;
		for (i = 0; i < MANY; i++) {
			if (ev.element.qp != p[i].b.qp)
				continue;
			CHECK(!seen[i]);
			seen[i] = true;
		}
	}
	CHECK_EQ(n, MANY);
	async_none(d->ctx, IBV_EVENT_QP_ACCESS_ERR);
}
