// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes without privileges attack a third one, of another user, whose numbers, keys,
 * addresses and PSNs they all know. They do not reach it: its memory and its queues do not change,
 * and its transfers continue.
 *
 * TENANTS_MS is the duration.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/attack.h"

#define CANARY		0xca
#define LEN		8192
#define MSG		3000	/* three packets */
#define SECRET_QKEY	0x2badcafe

static struct shared {
	struct target target;
	atomic_int ready, stop, rounds, attacks;
} *shared;

/* ---- the victim */

struct victim {
	struct dev *d;
	struct pair live, rc, srq, uc;
	struct end ud;
	struct ibv_srq *q;
	struct buf canary, local, data;
};

/* Returns a number that "rdma resource show" prints for this process's first object of @type. */
static uint32_t own_number(const char *type, const char *key)
{
	static char text[1 << 20];
	char args[64], pid[32], *at;

	snprintf(args, sizeof(args), "-dd -j resource show %s", type);
	snprintf(pid, sizeof(pid), "\"pid\":%d,", getpid());
	REQUIRE(rdma_tool("", args, text, sizeof(text)));
	at = strstr(text, pid);
	REQUIRE(at);
	*strchrnul(at, '\n') = '\0';
	at = strstr(at, key);
	/* Older kernels do not ask drivers about SRQs. */
	if (!at && !strcmp(type, "srq") && kernel_before(6, 7))
		return 1;
	REQUIRE(at);
	return strtoul(at + strlen(key), NULL, 10);
}

/* Posts receive requests that no attacker may complete. */
static void post_bait(struct victim *v)
{
	struct ibv_sge sge = buf_sge(&v->canary, 0, LEN);

	REQUIRE_OK(post_recv(&v->rc.a, 1, &sge, 1));
	REQUIRE_OK(post_recv(&v->rc.b, 1, &sge, 1));
	REQUIRE_OK(post_recv(&v->uc.b, 1, &sge, 1));
	REQUIRE_OK(post_recv(&v->ud, 1, &sge, 1));
	REQUIRE_OK(srq_post(v->q, 1, &v->canary, 0, LEN));
}

static void tell(const struct victim *v, struct target *t)
{
	const struct end *ends[NUM_QPS] = {
		&v->live.a, &v->live.b, &v->rc.a, &v->rc.b, &v->srq.a, &v->srq.b,
		&v->uc.a, &v->uc.b, &v->ud,
	};
	int i;

	for (i = 0; i < NUM_QPS; i++)
		t->qpn[i] = ends[i]->qp->qp_num;
	t->pdn = own_number("mr", "\"drv_pdn\":");
	t->cqn = own_number("cq", "\"drv_hw_cqn\":");
	t->srqn = own_number("srq", "\"drv_hw_srqn\":");
	t->addr = (uintptr_t)v->canary.addr;
	t->len = LEN;
	atomic_store(&t->psn, CONN.sq_psn);
	t->keys[0] = v->canary.mr->rkey;
	t->keys[1] = v->canary.mr->lkey;
	t->keys[2] = v->local.mr->lkey;
	t->keys[3] = v->data.mr->rkey;
}

static struct victim victim_new(void)
{
	struct victim v = { .d = dev_open_qhca() };
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	v.canary = buf_new(v.d->pd, LEN, ANY_ACCESS);
	v.local = buf_new(v.d->pd, LEN, LOCAL);
	v.data = buf_new(v.d->pd, 2 * LEN, ANY_ACCESS);
	fill(v.canary.addr, LEN, CANARY);
	fill(v.local.addr, LEN, CANARY);
	v.live = pair_new(v.d, &o, &c);
	v.rc = pair_new(v.d, &o, &c);
	v.q = srq_new(v.d, 4, 1);
	o.srq = v.q;
	v.srq = pair_new(v.d, &o, &c);
	o.srq = NULL;
	o.type = IBV_QPT_UC;
	v.uc = pair_new(v.d, &o, &c);
	o.type = IBV_QPT_UD;
	c.qkey = SECRET_QKEY;
	v.ud = end_new(v.d, &o);
	qp_bring(&v.ud, &c, IBV_QPS_RTS);
	post_bait(&v);
	return v;
}

/* A WRITE and the SEND that announces it: four packets. */
static void live_round(struct victim *v, uint32_t round)
{
	struct ibv_sge sge = buf_sge(&v->data, 0, MSG);
	struct ibv_send_wr wr = wr_rdma(round, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)v->data.addr + LEN, v->data.mr->rkey);

	fill(v->data.addr, MSG, round);
	REQUIRE_OK(post_send(&v->live.a, &wr));
	poll_ok(v->live.a.send_cq, round);
	ping(&v->live.a, &v->live.b);
	check_fill(v->data.addr + LEN, MSG, round, "the victim's message");
	atomic_store(&shared->target.psn, (CONN.sq_psn + 4 * (round + 1)) & 0xffffff);
	atomic_fetch_add(&shared->rounds, 1);
}

static void unharmed(struct victim *v)
{
	const struct end *ends[] = { &v->live.a, &v->live.b, &v->rc.a, &v->rc.b, &v->srq.a,
				     &v->srq.b, &v->uc.a, &v->uc.b, &v->ud };
	struct ibv_async_event ev;
	size_t i;

	check_fill(v->canary.addr, LEN, CANARY, "canaries");
	check_fill(v->local.addr, LEN, CANARY, "canaries without remote access");
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		CHECK_EQ(get_state(ends[i]->qp), IBV_QPS_RTS);
		poll_empty(ends[i]->send_cq);
		poll_empty(ends[i]->recv_cq);
	}
	if (async_wait(v->d->ctx, &ev, 0))
		FAIL("event %d", ev.event_type);
}

/* Checks that the PSNs have not changed, and that the old receive requests are next. */
static void still_works(struct victim *v)
{
	struct ibv_send_wr wr = wr_send(7, NULL, 0);
	struct end *from[] = { &v->rc.a, &v->srq.a, &v->uc.a };
	struct end *to[] = { &v->rc.b, &v->srq.b, &v->uc.b };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		REQUIRE_OK(post_send(from[i], &wr));
		poll_ok(from[i]->send_cq, 7);
		poll_ok(to[i]->recv_cq, 1);
	}
	wr.wr.ud.ah = own_ah(v->d, v->d->pd);
	wr.wr.ud.remote_qpn = v->ud.qp->qp_num;
	wr.wr.ud.remote_qkey = SECRET_QKEY;
	REQUIRE_OK(post_send(&v->ud, &wr));
	poll_ok(v->ud.send_cq, 7);
	poll_ok(v->ud.recv_cq, 1);
}

static void live(void)
{
	struct victim v = victim_new();
	uint32_t round = 0;

	tell(&v, &shared->target);
	atomic_store(&shared->ready, 1);
	while (!atomic_load(&shared->stop))
		live_round(&v, round++);
	unharmed(&v);
	still_works(&v);
}

/* ---- the three processes */

static void bad(void)
{
	attack(&shared->target, from_env("TENANTS_MS", 5000), &shared->attacks);
}

static pid_t start(void (*fn)(void), uid_t uid)
{
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (pid)
		return pid;
	REQUIRE(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fn();
	fflush(stdout);
	_exit(0);
}

static void ended(pid_t pid, const char *who)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status)
		FAIL("%s: status %#x", who, status);
}

/* Counters that show the attempts. */
static const char *const counters[] = {
	"rx_bad_addr", "rx_no_qp", "rx_bad_qkey", "bad_doorbell", "bad_key", "bad_wqe",
};

TEST(tenants, "D-086 I-010 J-020 two users attack a third one without any effect")
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t before[ARRAY_SIZE(counters)];
	pid_t victim, others[2];
	size_t i;

	if (geteuid())
		test_skip("needs root, to become three users");
	test_timeout(120);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED && !setrlimit(RLIMIT_MEMLOCK, &all));
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		before[i] = hw_counter(counters[i]);
	victim = start(live, 10001);
	while (!atomic_load(&shared->ready) && !waitpid(victim, NULL, WNOHANG))
		sleep_ms(10);
	REQUIRE(atomic_load(&shared->ready));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = start(bad, 10002 + i);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		ended(others[i], "an attacker");
	atomic_store(&shared->stop, 1);
	ended(victim, "the victim");
	test_note("%d rounds of attacks, %d of the victim", atomic_load(&shared->attacks),
		  atomic_load(&shared->rounds));
	CHECK(atomic_load(&shared->rounds) > 1);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (hw_counter(counters[i]) == before[i])
			FAIL("%s has not counted", counters[i]);
}
