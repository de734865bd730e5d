// SPDX-License-Identifier: GPL-2.0
/* Completion events: arming, solicited events, channels, vectors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define NOT_ARMED	-1
#define ARM_ANY		0
#define ARM_SOLICITED	1

struct scene {
	struct pair p;
	struct ibv_comp_channel *ch;
};

/* Makes a pair whose four CQs all report to one channel. */
static struct scene scene_new(void)
{
	struct dev *d = dev_open();
	struct qp_opts o = QP_OPTS;
	struct scene s = { .p.dev = d };

	s.ch = ibv_create_comp_channel(d->ctx);
	REQUIRE(s.ch);
	o.send_cq = cq_new(d, 64, s.ch);
	o.recv_cq = cq_new(d, 64, s.ch);
	s.p.a = end_new(d, &o);
	o.send_cq = cq_new(d, 64, s.ch);
	o.recv_cq = cq_new(d, 64, s.ch);
	s.p.b = end_new(d, &o);
	pair_connect(&s.p, &CONN);
	return s;
}

static void arm(struct ibv_cq *cq, int how)
{
	if (how != NOT_ARMED)
		REQUIRE_OK(ibv_req_notify_cq(cq, how));
}

static void send_one(struct scene *s, int flags)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.send_flags = flags;
	REQUIRE_OK(post_recv(&s->p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&s->p.a, &wr));
	poll_ok(s->p.b.recv_cq, 2);
}

static void event_expect(struct scene *s, struct ibv_cq *want)
{
	struct ibv_cq *cq = NULL;

	if (!cq_event_wait(s->ch, &cq, WAIT_MS))
		FAIL("no completion event");
	else
		CHECK(cq == want);
}

static void event_none(struct scene *s)
{
	struct ibv_cq *cq;

	if (cq_event_wait(s->ch, &cq, QUIET_MS))
		FAIL("unexpected completion event");
}

#define BOTH (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)

static const struct {
	const char *name;
	int armed, flags;
	bool event;
} combinations[] = {
	{ "B-046 not armed, both flags", NOT_ARMED, BOTH, false },
	{ "B-047 solicited only, both flags", ARM_SOLICITED, BOTH, true },
	{ "B-048 not armed, no flag", NOT_ARMED, 0, false },
	{ "B-049 solicited only, no flag", ARM_SOLICITED, 0, false },
	{ "solicited only, SIGNALED", ARM_SOLICITED, IBV_SEND_SIGNALED, false },
	{ "solicited only, SOLICITED", ARM_SOLICITED, IBV_SEND_SOLICITED, true },
	{ "C-014 any, no flag", ARM_ANY, 0, true },
	{ "C-014 any, SIGNALED", ARM_ANY, IBV_SEND_SIGNALED, true },
	{ "C-014 any, SOLICITED", ARM_ANY, IBV_SEND_SOLICITED, true },
	{ "C-014 any, both flags", ARM_ANY, BOTH, true },
};

TEST_ROWS(combination, "event by arming and send flags", combinations)
{
	struct scene s = scene_new();
	uint32_t i, depth = s.p.a.cap.max_send_wr;

	for (i = 0; i < 3 * depth; i++) {
		struct ibv_send_wr wr = wr_send(7, NULL, 0);

		arm(s.p.b.recv_cq, row->armed);
		send_one(&s, row->flags);
		if (row->event)
			event_expect(&s, s.p.b.recv_cq);
		if (row->flags & IBV_SEND_SIGNALED) {
			poll_ok(s.p.a.send_cq, 1);
			continue;
		}
		/* Signal a message now and then, which frees the slots of the others. */
		if (i % (depth / 2))
			continue;
		REQUIRE_OK(post_recv(&s.p.b, 7, NULL, 0));
		REQUIRE_OK(post_send(&s.p.a, &wr));
		poll_ok(s.p.a.send_cq, 7);
		poll_ok(s.p.b.recv_cq, 7);
	}
	if (!row->event)
		event_none(&s);
	poll_none(s.p.a.send_cq);
}

TEST(wake_once, "B-050 C-015 armed for solicited events: a plain message raises none")
{
	struct scene s = scene_new();
	int i;

	for (i = 0; i < 20; i++) {
		arm(s.p.b.recv_cq, ARM_SOLICITED);
		send_one(&s, IBV_SEND_SIGNALED);
		poll_ok(s.p.a.send_cq, 1);
		if (!i)
			event_none(&s);
		send_one(&s, BOTH);
		poll_ok(s.p.a.send_cq, 1);
		event_expect(&s, s.p.b.recv_cq);
	}
	event_none(&s);
}

TEST(write_imm, "B-045 C-015 a solicited WRITE_WITH_IMM raises an event")
{
	struct scene s = scene_new();
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0,
					0, 0);

	arm(s.p.b.recv_cq, ARM_SOLICITED);
	wr.send_flags = BOTH;
	REQUIRE_OK(post_recv(&s.p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&s.p.a, &wr));
	event_expect(&s, s.p.b.recv_cq);
}

TEST(send_side, "C-014 C-015 events of the send side")
{
	struct scene s = scene_new();

	arm(s.p.a.send_cq, ARM_SOLICITED);
	send_one(&s, BOTH);
	poll_ok(s.p.a.send_cq, 1);
	event_none(&s);		/* a successful send never raises one */
	arm(s.p.a.send_cq, ARM_ANY);
	send_one(&s, BOTH);
	poll_ok(s.p.a.send_cq, 1);
	event_expect(&s, s.p.a.send_cq);
}

TEST(error_event, "C-015 a failed completion counts as solicited")
{
	struct scene s = scene_new();
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, NULL, 1, 0, 0);
	struct ibv_sge sge = { .addr = 4096, .length = 8, .lkey = 0x4711 };

	wr.sg_list = &sge;
	arm(s.p.a.send_cq, ARM_SOLICITED);
	REQUIRE_OK(post_recv(&s.p.a, 3, NULL, 0));
	REQUIRE_OK(post_send(&s.p.a, &wr));
	event_expect(&s, s.p.a.send_cq);
	poll_expect(s.p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	poll_expect(s.p.a.recv_cq, 3, IBV_WC_WR_FLUSH_ERR);
	/* Receive side: a flushed WR. */
	arm(s.p.b.recv_cq, ARM_SOLICITED);
	REQUIRE_OK(post_recv(&s.p.b, 4, NULL, 0));
	REQUIRE_OK(set_state(s.p.b.qp, IBV_QPS_ERR));
	event_expect(&s, s.p.b.recv_cq);
}

TEST(one_shot, "C-017 one event per arm, for any number of completions")
{
	struct scene s = scene_new();
	int i;

	arm(s.p.b.recv_cq, ARM_ANY);
	for (i = 0; i < 10; i++) {
		send_one(&s, BOTH);
		poll_ok(s.p.a.send_cq, 1);
	}
	event_expect(&s, s.p.b.recv_cq);
	event_none(&s);
	send_one(&s, BOTH);
	event_none(&s);
	arm(s.p.b.recv_cq, ARM_ANY);
	send_one(&s, BOTH);
	event_expect(&s, s.p.b.recv_cq);
}

TEST(upgrade, "C-018 arming for all upgrades a solicited arm, the reverse changes nothing")
{
	struct scene s = scene_new();

	arm(s.p.b.recv_cq, ARM_SOLICITED);
	arm(s.p.b.recv_cq, ARM_ANY);
	send_one(&s, IBV_SEND_SIGNALED);
	event_expect(&s, s.p.b.recv_cq);
	arm(s.p.b.recv_cq, ARM_ANY);
	arm(s.p.b.recv_cq, ARM_SOLICITED);
	send_one(&s, IBV_SEND_SIGNALED);
	event_expect(&s, s.p.b.recv_cq);
	/* The upgrade does not outlive the event. */
	arm(s.p.b.recv_cq, ARM_SOLICITED);
	send_one(&s, IBV_SEND_SIGNALED);
	event_none(&s);
}

TEST(old_entries, "C-019 completions from before the arm raise no event")
{
	struct scene s = scene_new();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(post_recv(&s.p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	sleep_ms(50);
	arm(s.p.b.recv_cq, ARM_ANY);
	event_none(&s);
	poll_ok(s.p.b.recv_cq, 2);
	send_one(&s, 0);
	event_expect(&s, s.p.b.recv_cq);
}

#define ROUNDS 2000

static void *sender(void *arg)
{
	struct scene *s = arg;
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		wr.wr_id = i;
		if (post_send(&s->p.a, &wr) ||
		    !poll_wait(s->p.a.send_cq, &wc, WAIT_MS) || wc.status) {
			FAIL("send %d", i);
			break;
		}
	}
	return NULL;
}

/* This is the loop of every event-driven program; a lost wake-up makes it time out. */
TEST(no_lost_wakeup, "C-019 arm, then poll: no wake-up is lost")
{
	struct scene s = scene_new();
	struct ibv_wc wc[4];
	int n, i, got = 0;
	struct ibv_cq *cq;
	pthread_t t;

	for (i = 0; i < (int)s.p.b.cap.max_recv_wr; i++)
		REQUIRE_OK(post_recv(&s.p.b, i, NULL, 0));
	arm(s.p.b.recv_cq, ARM_ANY);
	REQUIRE_OK(pthread_create(&t, NULL, sender, &s));
	while (got < ROUNDS) {
		if (!cq_event_wait(s.ch, &cq, WAIT_MS)) {
			FAIL("lost wake-up after %d messages", got);
			break;
		}
		arm(s.p.b.recv_cq, ARM_ANY);
		while ((n = ibv_poll_cq(s.p.b.recv_cq, 4, wc)) > 0) {
			for (i = 0; i < n; i++)
				REQUIRE_OK(post_recv(&s.p.b, 0, NULL, 0));
			got += n;
		}
	}
	pthread_join(t, NULL);
}

TEST(channel, "C-022 many CQs on one channel: an event names the right one")
{
	struct dev *d = dev_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(d->ctx);
	struct scene s = { .p.dev = d, .ch = ch };
	struct qp_opts o = QP_OPTS;
	struct pair p[8];
	size_t i;

	REQUIRE(ch);
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		o.recv_cq = cq_new(d, 16, ch);
		o.send_cq = o.recv_cq;
		p[i] = pair_new(d, &o, &CONN);
	}
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		s.p = p[(i * 5) % ARRAY_SIZE(p)];
		arm(s.p.b.recv_cq, ARM_ANY);
		send_one(&s, 0);
		event_expect(&s, s.p.b.recv_cq);
	}
	event_none(&s);
}

static void resize(struct ibv_cq *cq, int cqe)
{
	int err = ibv_resize_cq(cq, cqe);

	if (err == EOPNOTSUPP)
		test_skip("no resizing here");
	CHECK_ERR(err, 0);
}

TEST(resized, "C-026 resizing keeps the arm, and brings back no old one")
{
	struct scene s = scene_new();
	int i;

	for (i = 0; i < 20; i++) {
		arm(s.p.b.recv_cq, i % 2 ? ARM_ANY : ARM_SOLICITED);
		resize(s.p.b.recv_cq, 100 + i);
		send_one(&s, BOTH);
		poll_ok(s.p.a.send_cq, 1);
		event_expect(&s, s.p.b.recv_cq);
		resize(s.p.b.recv_cq, 200);
		send_one(&s, BOTH);
		poll_ok(s.p.a.send_cq, 1);
	}
	event_none(&s);
}

static void *destroyer(void *arg)
{
	return (void *)(intptr_t)ibv_destroy_cq(arg);
}

TEST(unacked, "C-023 destroying a CQ waits for its unacknowledged events")
{
	struct scene s = scene_new();
	struct ibv_cq *cq = s.p.b.recv_cq, *got;
	pthread_t t;
	void *ret;

	arm(cq, ARM_ANY);
	send_one(&s, 0);
	REQUIRE_OK(ibv_get_cq_event(s.ch, &got, &ret));
	REQUIRE_OK(ibv_destroy_qp(s.p.b.qp));
	REQUIRE_OK(pthread_create(&t, NULL, destroyer, cq));
	sleep_ms(QUIET_MS);
	CHECK_EQ(pthread_tryjoin_np(t, &ret), EBUSY);
	ibv_ack_cq_events(cq, 1);
	REQUIRE_OK(pthread_join(t, &ret));
	CHECK_EQ((intptr_t)ret, 0);
}

/* Counts interrupts of each line of /proc/interrupts that names the driver. */
static int irqs(unsigned long *count, int max)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[1024], *s, *end;
	int n = 0;

	REQUIRE(f);
	while (n < max && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "qhca"))
			continue;
		s = strchr(line, ':') + 1;
		for (count[n] = 0;; s = end) {
			unsigned long v = strtoul(s, &end, 10);

			if (end == s)
				break;
			count[n] += v;
		}
		n++;
	}
	fclose(f);
	return n;
}

/*
 * Returns the line that rose most, or -1 if none did. It need not rise with every event: one
 * interrupt handles all events until its handler ends.
 */
static int busiest(const unsigned long *before, const unsigned long *after, int n)
{
	unsigned long most = 0;
	int line, used = -1;

	for (line = 0; line < n; line++) {
		if (after[line] - before[line] <= most)
			continue;
		most = after[line] - before[line];
		used = line;
	}
	return used;
}

TEST(vectors, "C-025 every completion vector has its own interrupt")
{
	struct dev *d = dev_open_qhca();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(d->ctx);
	unsigned long before[16], after[16];
	int v, i, n, used[2] = { -1, -1 };

	for (v = 0; v < 2; v++) {
		struct qp_opts o = QP_OPTS;
		struct scene s = { .ch = ch };

		o.recv_cq = ibv_create_cq(d->ctx, 16, NULL, ch, v);
		REQUIRE(o.recv_cq);
		s.p = pair_new(d, &o, &CONN);
		n = irqs(before, ARRAY_SIZE(before));
		for (i = 0; i < 20; i++) {
			arm(o.recv_cq, ARM_ANY);
			send_one(&s, IBV_SEND_SIGNALED);
			poll_ok(s.p.a.send_cq, 1);
			event_expect(&s, o.recv_cq);
		}
		REQUIRE(irqs(after, ARRAY_SIZE(after)) == n);
		used[v] = busiest(before, after, n);
	}
	test_note("vectors 0 and 1 use lines %d and %d of %d", used[0], used[1],
		  n);
	CHECK(used[0] >= 0);
	CHECK(used[1] >= 0);
	CHECK(used[0] != used[1]);
}
