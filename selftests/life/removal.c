// SPDX-License-Identifier: GPL-2.0
/*
 * The driver is removed while programs use it: they get events and errors, nothing hangs, and
 * nothing is left behind. Needs root; restores the driver.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/life.h"
#include "lib/phc.h"
#include "lib/xrc.h"

#define RDMA_DRIVER	"/sys/bus/auxiliary/drivers/qhca_ib.rdma"

static void put(const char *path, const char *text)
{
	int err = write_file(path, text);

	if (err)
		FAIL("%s to %s: %s", text, path, strerror(err));
}

/* Name of the auxiliary device that the RDMA driver is bound to. */
static char function[64];

static void find_function(void)
{
	glob_t g;

	if (geteuid())
		test_skip("needs root");
	if (glob(RDMA_DRIVER "/qhca.*", 0, NULL, &g))
		test_skip("nothing in %s", RDMA_DRIVER);
	snprintf(function, sizeof(function), "%s", strrchr(g.gl_pathv[0], '/') + 1);
	globfree(&g);
}

static void take_driver(void)
{
	put(RDMA_DRIVER "/unbind", function);
}

static void give_driver(void)
{
	put(RDMA_DRIVER "/bind", function);
}

static void nothing(void)
{
}

/* Ways to lose the device and to get it back. */
static const struct way {
	const char *name;
	void (*go)(void);
	void (*back)(void);
} ways[] = {
	{ "driver unbound", take_driver, give_driver },
	{ "function reset", device_reset, nothing },
	{ "fatal error, then reset", device_break, device_reset },
	{ "server killed, then another", server_kill, server_replace },
};

static void bring_back(const struct way *way, int gid_index)
{
	way->back();
	device_wait_back(gid_index);
}

static struct dev *start(void)
{
	struct dev *d = dev_open_qhca();

	test_timeout(120);
	find_function();
	return d;
}

/* When the core removes a failed device, it dispatches the event once more. */
static void check_no_more_events(struct ibv_context *ctx)
{
	int flags = fcntl(ctx->async_fd, F_GETFL);
	struct ibv_async_event ev;

	REQUIRE(!fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK));
	while (!ibv_get_async_event(ctx, &ev)) {
		if (ev.event_type != IBV_EVENT_DEVICE_FATAL)
			FAIL("%s after DEVICE_FATAL", ibv_event_type_str(ev.event_type));
		ibv_ack_async_event(&ev);
	}
}

TEST_ROWS(idle, "J-019 H-015 J-021 DEVICE_FATAL, then every verb fails", ways)
{
	struct dev *d = start();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, 4096, REMOTE);

	ping_pong(&p);
	row->go();
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!ibv_alloc_pd(d->ctx));
	CHECK(!ibv_reg_mr(d->pd, b.addr, 4096, REMOTE));
	CHECK(set_state(p.a.qp, IBV_QPS_ERR));
	/* Destroying succeeds, even for objects that have disappeared already. */
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	bring_back(row, d->gid_index);
	check_no_more_events(d->ctx);		/* DEVICE_FATAL was the last event */
}

TEST_ROWS(ptp, "ptp: the clock goes on, or is gone, and completions keep their time", ways)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	bool other = row->go == server_kill;
	struct ibv_poll_cq_attr attr = { 0 };
	struct pair p = { .dev = start() };
	struct qp_opts o = QP_OPTS;
	struct phc_past past;
	struct ibv_cq_ex *cq;
	struct timespec ts;
	struct phc phc;
	int64_t ns;

	phc = phc_open(p.dev);
	cq = ibv_create_cq_ex(p.dev->ctx, &init);
	REQUIRE(cq);
	p.a = end_new(p.dev, &o);
	o.recv_cq = ibv_cq_ex_to_cq(cq);
	p.b = end_new(p.dev, &o);
	pair_connect(&p, &CONN);
	past = phc_note(&phc);
	send_empty(&p);
	ns = phc_ns(&phc);
	row->go();
	async_expect(p.dev->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	/* The page stays, whatever has become of the clock. */
	REQUIRE_OK(ibv_start_poll(cq, &attr));
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) >= (uint64_t)past.ns);
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) <= (uint64_t)ns);
	ibv_end_poll(cq);
	bring_back(row, p.dev->gid_index);
	if (other)
		CHECK(clock_gettime(phc.id, &ts) && errno == ENODEV);
	else
		phc_check_went_on(&phc, &past);
}

/* A fatal error alone does not remove the device, only the reset that follows. */
TEST_ROWS(cm, "K-017 DEVICE_REMOVAL for each identifier", ways)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_cm_id *id[4], *got[4] = {};
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct dev *d = start();
	struct rdma_cm_event *ev;
	struct pollfd pfd;
	size_t i, j;

	REQUIRE(ch);
	memcpy(&addr.sin_addr, d->gid.raw + 12, 4);
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		REQUIRE(!rdma_create_id(ch, &id[i], NULL, RDMA_PS_TCP));
		REQUIRE(!rdma_bind_addr(id[i], (struct sockaddr *)&addr));
		CHECK(id[i]->verbs);			/* K-001 */
		if (i % 2)
			REQUIRE(!rdma_listen(id[i], 1));
	}
	row->go();
	bring_back(row, d->gid_index);
	pfd = (struct pollfd){ .fd = ch->fd, .events = POLLIN };
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		REQUIRE(poll(&pfd, 1, WAIT_MS) == 1);
		REQUIRE(!rdma_get_cm_event(ch, &ev));
		CHECK_EQ(ev->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
		for (j = 0; j < i; j++)
			CHECK(got[j] != ev->id);
		got[i] = ev->id;
		rdma_ack_cm_event(ev);
	}
	CHECK_EQ(poll(&pfd, 1, QUIET_MS), 0);
	for (i = 0; i < ARRAY_SIZE(id); i++)
		CHECK(!rdma_destroy_id(id[i]));
}

TEST_ROWS(group, "J-019 G-019 a QP that is in a multicast group when the device is removed", ways)
{
	static const union ibv_gid mgid = {
		.raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 },
	};
	struct dev *d = start();
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.type = IBV_QPT_UD;
	e = end_new(d, &o);
	REQUIRE_OK(ibv_attach_mcast(e.qp, &mgid, 0));
	row->go();
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	ibv_detach_mcast(e.qp, &mgid, 0);
	CHECK_ERR(ibv_destroy_qp(e.qp), 0);
	bring_back(row, d->gid_index);
}

TEST_ROWS(memory, "J-019 device memory that is mapped when the device is removed", ways)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct dev *d = start();
	struct ibv_dm *dm = ibv_alloc_dm(d->ctx, &attr);
	uint32_t v = 1;

	if (!dm && errno == EOPNOTSUPP)
		test_skip("no device memory");
	REQUIRE(dm);
	REQUIRE_OK(ibv_memcpy_to_dm(dm, 0, &v, sizeof(v)));
	row->go();
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	/* The kernel has replaced the mapping. */
	CHECK_ERR(ibv_memcpy_to_dm(dm, 0, &v, sizeof(v)), 0);
	ibv_free_dm(dm);
	bring_back(row, d->gid_index);
}

/* Posts and polls until the verbs fail. */
static void *traffic(void *arg)
{
	struct pair *p = arg;
	struct buf b = buf_new(p->dev->pd, 4096, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 4096);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey);
	struct ibv_async_event ev;
	struct ibv_wc wc[16];
	long posted = 0;

	for (;;) {
		if (!post_send(&p->a, &wr))
			posted++;
		ibv_poll_cq(p->a.send_cq, ARRAY_SIZE(wc), wc);
		if (async_wait(p->dev->ctx, &ev, 0) &&
		    ev.event_type == IBV_EVENT_DEVICE_FATAL)
			return (void *)posted;
	}
}

TEST_ROWS(busy, "J-019 J-021 doorbells rung while the device is removed", ways)
{
	struct dev *d = start();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	pthread_t thread;
	void *posted;

	REQUIRE_OK(pthread_create(&thread, NULL, traffic, &p));
	sleep_ms(200);
	row->go();
	REQUIRE_OK(pthread_join(thread, &posted));
	CHECK((long)posted > 0);
	bring_back(row, d->gid_index);
}

TEST_ROWS(again, "J-019 J-021 the device works after each return", ways)
{
	int i;

	for (i = 0; i < 3; i++) {
		struct dev *d = start();
		struct pair p = pair_new(d, &QP_OPTS, &CONN);

		ping_pong(&p);
		row->go();
		bring_back(row, d->gid_index);
	}
}

TEST(dead_destroy, "J-021 every kind of object of a dead device can be destroyed")
{
	const struct way *fatal = &ways[2];
	struct dev *d = start();
	struct qp_opts o = QP_OPTS;
	struct buf b = buf_new(d->pd, 4096, REMOTE);
	struct xrc x = xrc_new(d, &CONN);
	struct end e;

	o.srq = srq_new(d, 4, 1);
	e = end_new(d, &o);
	fatal->go();
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK_ERR(ibv_destroy_qp(e.qp), 0);
	CHECK_ERR(ibv_destroy_srq(o.srq), 0);
	CHECK_ERR(ibv_destroy_cq(e.send_cq), 0);
	CHECK_ERR(ibv_destroy_cq(e.recv_cq), 0);
	CHECK_ERR(ibv_destroy_qp(x.p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(x.p.b.qp), 0);
	CHECK_ERR(ibv_destroy_srq(x.srq.srq), 0);
	CHECK_ERR(ibv_destroy_cq(x.srq.cq), 0);
	CHECK_ERR(ibv_close_xrcd(x.xrcd), 0);
	CHECK_ERR(ibv_dereg_mr(x.buf.mr), 0);
	CHECK_ERR(ibv_dereg_mr(b.mr), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
	bring_back(fatal, d->gid_index);
}
