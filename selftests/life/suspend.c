// SPDX-License-Identifier: GPL-2.0
/* The machine sleeps while programs use the device. Needs root. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/life.h"
#include "lib/phc.h"

#define TEST_DELAY	"/sys/module/suspend/parameters/pm_test_delay"
#define POWER		"/sys/power/"

/* Suspends up to @level, and resumes after a second. */
static void rehearse(const char *state, const char *level)
{
	if (write_file(POWER "pm_test", level) || write_file(TEST_DELAY, "1"))
		test_skip("the kernel has no pm_test");
	CHECK_ERR(write_file(POWER "state", state), 0);
	REQUIRE_OK(write_file(POWER "pm_test", "none"));
}

static void rehearse_devices(const char *state)
{
	rehearse(state, "devices");
}

/* Suspends until interrupts are off and devices are in their sleep state. */
static void rehearse_platform(const char *state)
{
	rehearse(state, "platform");
}

/* Skips the test if the machine does not support @state. */
static void need(const char *state)
{
	char states[128] = {};
	int fd = open(POWER "state", O_RDONLY);

	if (geteuid())
		test_skip("needs root");
	if (fd < 0 || read(fd, states, sizeof(states) - 1) < 0 || !strstr(states, state))
		test_skip("no state %s", state);
	close(fd);
	test_timeout(120);
}

static const struct way {
	const char *name;
	void (*go)(const char *state);
} ways[] = {
	{ "rehearsed up to the devices", rehearse_devices },
	{ "rehearsed up to the platform", rehearse_platform },
};

/* struct load - a thread that writes to its peer all the time */
struct load {
	struct pair p;
	long done;
	bool stop;
	pthread_t thread;
};

static void *load_run(void *arg)
{
	struct load *l = arg;
	struct buf b = buf_new(l->p.dev->pd, 65536, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 32768);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr + 32768, b.mr->rkey);

	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		REQUIRE_OK(post_send(&l->p.a, &wr));
		poll_ok(l->p.a.send_cq, 1);
		__atomic_fetch_add(&l->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static long load_done(struct load *l)
{
	return __atomic_load_n(&l->done, __ATOMIC_RELAXED);
}

static void load_start(struct load *l, struct dev *d)
{
	l->p = pair_new(d, &QP_OPTS, &CONN);
	REQUIRE_OK(pthread_create(&l->thread, NULL, load_run, l));
	while (load_done(l) < 10)
		sleep_ms(10);
}

static void load_stop(struct load *l)
{
	long before = load_done(l);
	int64_t end = time_ms() + WAIT_MS;

	while (load_done(l) < before + 10 && time_ms() < end)
		sleep_ms(10);
	CHECK(load_done(l) >= before + 10);
	__atomic_store_n(&l->stop, true, __ATOMIC_RELAXED);
	REQUIRE_OK(pthread_join(l->thread, NULL));
}

TEST_ROWS(idle, "J-023 suspend to idle: contexts, connections and arms survive", ways)
{
	struct dev *d = dev_open_qhca();
	struct ibv_comp_channel *ch;
	struct load l = {};
	struct ibv_cq *cq;
	struct qp_opts o = QP_OPTS;
	struct pair p;
	struct buf b;
	int i;

	need("freeze");
	ch = ibv_create_comp_channel(d->ctx);
	REQUIRE(ch);
	o.recv_cq = cq_new(d, 64, ch);
	p = pair_new(d, &o, &CONN);
	b = buf_new(d->pd, 4096, REMOTE);
	load_start(&l, d);
	for (i = 0; i < 2; i++) {
		struct ibv_sge from = buf_sge(&b, 0, 1024), to = buf_sge(&b, 2048, 1024);
		struct ibv_send_wr wr = wr_send(2, &from, 1);

		fill(b.addr, 1024, i);
		REQUIRE_OK(post_recv(&p.b, 1, &to, 1));
		REQUIRE_OK(ibv_req_notify_cq(o.recv_cq, 0));
		row->go("freeze");
		async_none(d->ctx);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 2);
		CHECK(cq_event_wait(ch, &cq, WAIT_MS));
		poll_ok(o.recv_cq, 1);
		check_fill(b.addr + 2048, 1024, i, "the message");
		CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
		buf_new(d->pd, 4096, REMOTE);		/* commands work */
	}
	load_stop(&l);
	async_none(d->ctx);
}

/* The firmware removes the power of the device. */
TEST_ROWS(firmware, "J-023 J-019 suspend to RAM: DEVICE_FATAL, then the device works again", ways)
{
	struct dev *d = dev_open_qhca();
	struct pair p;

	need("mem");
	p = pair_new(d, &QP_OPTS, &CONN);
	ping_pong(&p);
	row->go("mem");
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!ibv_alloc_pd(d->ctx));
	device_wait_back(d->gid_index);
	p = pair_new(dev_open_qhca(), &QP_OPTS, &CONN);
	ping_pong(&p);
}

static const struct sleep {
	const char *name;
	const char *state;
} sleeps[] = {
	{ "to idle", "freeze" },
	{ "to RAM", "mem" },
};

TEST_ROWS(ptp, "ptp: J-023 the clock advances while the machine sleeps", sleeps)
{
	struct dev *d = dev_open_qhca();
	struct phc_past past;
	struct phc phc;

	need(row->state);
	phc = phc_open(d);
	REQUIRE_OK(phc_rate(&phc, 100000l << 16));
	past = phc_note(&phc);
	rehearse_platform(row->state);
	if (!strcmp(row->state, "mem"))
		device_wait_back(d->gid_index);
	phc_check_went_on(&phc, &past);
	phc_open(d);
}

/* The device behaves as if it had lost its state during the sleep. */
TEST_ROWS(dead, "J-023 J-019 a device found dead at resume is restarted", ways)
{
	struct dev *d = dev_open_qhca();
	struct pair p;

	need("freeze");
	p = pair_new(d, &QP_OPTS, &CONN);
	device_break();
	row->go("freeze");
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!ibv_alloc_pd(d->ctx));
	device_wait_back(d->gid_index);
	p = pair_new(dev_open_qhca(), &QP_OPTS, &CONN);
	ping_pong(&p);
}
