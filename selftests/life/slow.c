// SPDX-License-Identifier: GPL-2.0
/*
 * Commands of users give the device more work than it can do in the time that one command may take.
 * The device does all of it, and no user loses the device.
 *
 * On most devices this takes a second, and proves nothing. With cpu-share=1,cmd-timeout-ms=250 the
 * device has little time, and has to answer commands soon. SLOW_MS is the time that the slowest
 * command must have taken then.
 */
#include <pthread.h>
#include <stdlib.h>

#include <qhca/queues.h>

#include "lib/rdma.h"

#define CQS	8
#define CQES	16384u
#define BATCH	128
#define ROUNDS	3

/* struct user - a user with a full CQ, and the result of resizing it */
struct user {
	struct ibv_cq *cq;
	struct qhca_cqe *ring;	/* ring of that CQ */
	int64_t worst;		/* ms */
	int err;
};

static void *ring_mem;

static void *ring_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			uint64_t resource_type)
{
	REQUIRE_OK(posix_memalign(&ring_mem, alignment, size));
	return ring_mem;
}

static void ring_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
}

/* Makes a CQ whose ring is memory of this program, so that it sees when the ring is full. */
static void user_cq(struct dev *d, struct user *u)
{
	struct ibv_parent_domain_init_attr pd = {
		.pd = d->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = ring_alloc, .free = ring_free,
	};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQES, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = ibv_alloc_parent_domain(d->ctx, &pd),
	};
	struct ibv_cq_ex *cq;

	REQUIRE(attr.parent_domain);
	cq = ibv_create_cq_ex(d->ctx, &attr);
	REQUIRE(cq && ring_mem);
	u->cq = ibv_cq_ex_to_cq(cq);
	u->ring = ring_mem;
}

static void wait_full(const struct user *u)
{
	const uint8_t *last = &u->ring[CQES - 1].owner;
	int64_t end = time_ms() + 3 * WAIT_MS;

	while (!(__atomic_load_n(last, __ATOMIC_ACQUIRE) & QHCA_OWNER_PHASE)) {
		REQUIRE(time_ms() < end);
		sleep_ms(10);
	}
}

/* Flushes @n receive WRs of a new QP to @cq. */
static void flush_to(struct dev *d, struct ibv_cq *cq, uint32_t n)
{
	struct ibv_recv_wr wr[BATCH] = {}, *bad;
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end e;
	uint32_t i, k;

	o.recv_wr = n;
	o.recv_cq = cq;
	e = end_new(d, &o);
	qp_bring(&e, &c, IBV_QPS_INIT);
	for (; n; n -= k) {
		k = n < BATCH ? n : BATCH;
		for (i = 0; i < k; i++)
			wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
		REQUIRE_OK(ibv_post_recv(e.qp, wr, &bad));
	}
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
}

static void *resize(void *arg)
{
	struct user *u = arg;
	int64_t begin, ms;
	int i;

	for (i = 0; i < ROUNDS && !u->err; i++) {
		begin = time_ms();
		u->err = ibv_resize_cq(u->cq, u->cq->cqe);
		ms = time_ms() - begin;
		u->worst = ms > u->worst ? ms : u->worst;
	}
	return NULL;
}

/* All users resize their CQs together. Returns the time of the slowest command in ms. */
static int64_t resize_all(struct user *users)
{
	pthread_t id[CQS];
	int64_t worst = 0;
	int i;

	for (i = 0; i < CQS; i++)
		REQUIRE_OK(pthread_create(&id[i], NULL, resize, &users[i]));
	for (i = 0; i < CQS; i++) {
		REQUIRE_OK(pthread_join(id[i], NULL));
		CHECK_ERR(users[i].err, 0);
		worst = users[i].worst > worst ? users[i].worst : worst;
	}
	return worst;
}

static void drain(struct ibv_cq *cq, uint32_t n)
{
	int64_t end = time_ms() + 60000;
	struct ibv_wc wc[BATCH];
	int got;

	for (; n; n -= got) {
		got = ibv_poll_cq(cq, n < BATCH ? n : BATCH, wc);
		REQUIRE(got >= 0 && time_ms() < end);
	}
	poll_empty(cq);
}

TEST(resizes, "C-026 the driver waits for commands beyond the timeout of one")
{
	struct dev *d = dev_open_qhca(), *other = dev_open_qhca();
	struct pair p = pair_new(other, &QP_OPTS, &CONN);
	struct user users[CQS] = {};
	int64_t worst;
	int i;

	test_timeout(300);
	for (i = 0; i < CQS; i++) {
		user_cq(d, &users[i]);
		flush_to(d, users[i].cq, CQES);
	}
	for (i = 0; i < CQS; i++)
		wait_full(&users[i]);
	ping_pong(&p);
	worst = resize_all(users);
	test_note("the slowest command took %lld ms", (long long)worst);
	CHECK(worst >= from_env("SLOW_MS", 0));
	ping_pong(&p);
	async_none(other->ctx);
	for (i = 0; i < CQS; i++)
		drain(users[i].cq, CQES);
}
