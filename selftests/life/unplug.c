// SPDX-License-Identifier: GPL-2.0
/*
 * One of several adapters is pulled while all of them work: its programs get events and errors,
 * the others' notice nothing. UNPLUG is the command that pulls RDMA_DEVICE, QHCA_DEVS are all
 * devices. Bringing it back is up to the caller.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define MAX_OTHERS	7
#define SIZE		65536

static atomic_bool enough;

struct other {
	struct dev *dev;
	struct pair pair;
	struct buf src, dst;
	pthread_t thread;
	atomic_long moved;
};

/* Moves data and looks at it, for as long as the test takes. */
static void *go_on(void *arg)
{
	struct other *o = arg;
	struct ibv_sge sge = buf_sge(&o->src, 0, SIZE);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)o->dst.addr, o->dst.mr->rkey);

	for (uint32_t seed = 1; !enough; seed++) {
		fill(o->src.addr, SIZE, seed);
		REQUIRE_OK(post_send(&o->pair.a, &wr));
		poll_ok(o->pair.a.send_cq, 1);
		check_fill(o->dst.addr, SIZE, seed, "WRITE");
		o->moved++;
	}
	return NULL;
}

static int start_others(struct other *others, const char *lost)
{
	char list[256], *name, *rest = list;
	int n = 0;

	snprintf(list, sizeof(list), "%s", getenv("QHCA_DEVS") ?: "");
	while ((name = strsep(&rest, " ")) && n < MAX_OTHERS) {
		struct other *o = &others[n];

		if (!*name || !strcmp(name, lost))
			continue;
		setenv("RDMA_DEVICE", name, 1);
		o->dev = dev_open();
		o->pair = pair_new(o->dev, &QP_OPTS, &CONN);
		o->src = buf_new(o->dev->pd, SIZE, REMOTE);
		o->dst = buf_new(o->dev->pd, SIZE, REMOTE);
		n++;
	}
	for (int i = 0; i < n; i++)
		REQUIRE_OK(pthread_create(&others[i].thread, NULL, go_on, &others[i]));
	setenv("RDMA_DEVICE", lost, 1);
	return n;
}

/* Each of the others moves something from now on. */
static void check_go_on(struct other *others, int n, const char *when)
{
	for (int i = 0; i < n; i++) {
		long before = others[i].moved;
		int64_t end = time_ms() + 10000;

		while (others[i].moved < before + 3 && time_ms() < end)
			sleep_ms(1);
		if (others[i].moved < before + 3)
			FAIL("%s: nothing moves over %s", when,
			     ibv_get_device_name(others[i].dev->ctx->device));
	}
}

/*
 * Posts and polls until there is the event. The core destroys a program's objects in reverse order,
 * so requests may fail for want of their region; after the first failure none succeeds.
 */
static void use_until_fatal(struct dev *d, struct pair *p, const struct buf *b)
{
	struct ibv_sge sge = buf_sge(b, 0, 4096);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b->addr, b->mr->rkey);
	struct ibv_async_event ev = { .event_type = IBV_EVENT_PORT_ACTIVE };
	enum ibv_wc_status failed = IBV_WC_SUCCESS;
	int64_t end = time_ms() + 60000;
	struct ibv_wc wc;

	while (ev.event_type != IBV_EVENT_DEVICE_FATAL && time_ms() < end) {
		post_send(&p->a, &wr);
		if (ibv_poll_cq(p->a.send_cq, 1, &wc) == 1) {
			if (failed)
				CHECK(wc.status != IBV_WC_SUCCESS);
			else
				failed = wc.status;
		}
		async_wait(d->ctx, &ev, 0);
	}
	CHECK_EQ(ev.event_type, IBV_EVENT_DEVICE_FATAL);
	test_note("its requests: %s", ibv_wc_status_str(failed));
}

TEST(pulled, "J-019 J-021 one of several is pulled: DEVICE_FATAL there, nothing elsewhere")
{
	static struct other others[MAX_OTHERS];
	struct ibv_async_event ev;
	const char *lost = strdup(dev_name()), *command = getenv("UNPLUG");
	struct dev *d;
	struct pair p;
	struct buf b;
	int i, n;

	if (!command)
		test_skip("UNPLUG is not set");
	test_timeout(120);
	d = dev_open();
	p = pair_new(d, &QP_OPTS, &CONN);
	b = buf_new(d->pd, 4096, REMOTE);
	REQUIRE_OK(post_recv(&p.b, 7, NULL, 0));
	n = start_others(others, lost);
	REQUIRE(n);
	check_go_on(others, n, "before");
	REQUIRE(!system(command));
	use_until_fatal(d, &p, &b);
	check_go_on(others, n, "while it is gone");
	CHECK(!ibv_alloc_pd(d->ctx));
	CHECK(set_state(p.a.qp, IBV_QPS_ERR));
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	poll_empty(p.b.recv_cq);	/* the kernel has destroyed the QP, which flushes nothing */
	check_go_on(others, n, "afterwards");
	enough = true;
	for (i = 0; i < n; i++) {
		REQUIRE_OK(pthread_join(others[i].thread, NULL));
		while (async_wait(others[i].dev->ctx, &ev, 0))
			if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
				FAIL("DEVICE_FATAL of another device");
		CHECK_EQ(get_state(others[i].pair.a.qp), IBV_QPS_RTS);
		test_note("%s: %ld WRITEs",
			  ibv_get_device_name(others[i].dev->ctx->device), others[i].moved);
	}
}
