// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes everything that its cgroup allows (rdma.max), one kind of object after the other,
 * and keeps it. Further requests fail with EAGAIN, and another user works as if it were alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kinds.h"
#include "lib/steer.h"

#define HANDLES		KINDS_HANDLES
#define OBJECTS		KINDS_OBJECTS

static struct dev *d;

static void start(void)
{
	d = dev_open_qhca();
	kinds_use(d, cq_new(d, 16, NULL));
}

/* ---- the users */

/* Returns how much of the resource that @max limits the cgroup is charged with. */
static unsigned int charged(int max)
{
	unsigned int handles = 0, objects = 0;
	char line[200];

	cgroup_line("rdma.current", dev_name(), line, sizeof(line));
	if (*line)
		REQUIRE(sscanf(line, "%*s hca_handle=%u hca_object=%u", &handles, &objects) == 2);
	return max == HANDLES ? handles : objects;
}

/* Takes as many objects as it can get, and keeps them until it is killed. */
static void greedy(const void *arg)
{
	const struct kind *k = arg;
	unsigned int cost, before, after;
	int n;

	start();
	kind_prepare(k);
	cost = k->cost();
	before = charged(k->max);
	for (n = 0; k->make(n); n++)
		;
	shared->error = errno;
	after = charged(k->max);
	test_note("%d objects, each charged as %u", n, cost);
	CHECK(cost >= 1);
	/* The last QP may exist, but not be a member. */
	CHECK(after - before == n * cost || (cost > 1 && after - before == n * cost + 1));
	CHECK(after + cost > (unsigned int)k->max);
	fflush(stdout);
	atomic_store(&shared->done, 1);
	pause();
}

/* Creates one object of each kind, and sends a message. */
static void modest(const void *arg)
{
	const struct kind *k;
	struct ibv_context *second;
	struct pair p;
	struct buf b;

	d = dev_open_qhca();
	p = pair_new(d, &QP_OPTS, &CONN);
	kinds_use(d, p.a.send_cq);
	ping_pong(&p);
	b = buf_new(d->pd, 1 << 20, REMOTE);
	REQUIRE(b.mr);
	second = kinds->make(0);
	REQUIRE(second);
	for (k = kinds + 1; k < kinds + NUM_KINDS; k++)
		if (kind_offered(k) && !k->make(600))
			FAIL("no %s: %s", k->name, strerror(errno));
	CHECK(!ibv_close_device(second));
}

/* After the user has ended, its cgroup is charged with nothing. */
static void check_returned(void)
{
	int64_t end = time_ms() + WAIT_MS;

	do {
		if (!charged(HANDLES) && !charged(OBJECTS))
			return;
		sleep_ms(50);
	} while (time_ms() < end);
	FAIL("%u handles and %u objects are still charged", charged(HANDLES), charged(OBJECTS));
}

/* The administrator can add a rule with ethtool, and remove it. */
static void check_ethtool(void)
{
	if (!getenv("QHCA_IF"))
		return;
	CHECK_EQ(system("ethtool -N $QHCA_IF flow-type tcp4 dst-port 81 action 0 loc 250"), 0);
	CHECK_EQ(system("ethtool -N $QHCA_IF delete 250"), 0);
}

TEST_ROWS(others, "J-001 J-018 J-027 a user takes all of its share; another one works", kinds)
{
	pid_t pid;

	start();
	if (!kind_offered(row))
		test_skip("not offered");
	cgroup_open("+rdma");
	cgroup_limit("hca_handle=%d hca_object=%d", HANDLES, OBJECTS);
	pid = user_start(greedy, row, 10001, true);
	user_wait(pid, 1);
	CHECK_ERR(shared->error, EAGAIN);
	user_ended(user_start(modest, row, 10002, false), "the other user", 0);
	check_ethtool();
	user_stop(pid);
	check_returned();
	cgroup_remove();
}

/* Takes all flow rules that there are for QPs. */
static void take_flows(const void *arg)
{
	const struct kind *k = kind_named("flow rules");
	unsigned int n = 1;

	start();
	kind_prepare(k);	/* with a rule */
	while (k->make(n))
		n++;
	CHECK_ERR(errno, ENOMEM);
	CHECK_EQ(n, STEER_MAX_FLOWS);
	fflush(stdout);
	atomic_store(&shared->done, 1);
	pause();
}

TEST(ethtool, "J-027 a user without limits takes all flow rules; the administrator's remain")
{
	pid_t pid;

	cgroup_open("+rdma");
	pid = user_start(take_flows, NULL, 10001, false);
	user_wait(pid, 1);
	check_ethtool();
	user_stop(pid);
	cgroup_remove();
}

/* Leaves a group, and destroys the QP even if that failed. */
static void leaving(const void *arg)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct ibv_qp *qp;

	start();
	qp = kind_named("multicast groups")->make(1);
	REQUIRE(qp);
	if (ibv_detach_mcast(qp, &gid, 0))
		test_note("cannot leave the group");
	ibv_destroy_qp(qp);
}

TEST(left, "J-018 destroying a QP uncharges its multicast groups")
{
	cgroup_open("+rdma");
	cgroup_limit("hca_handle=%d hca_object=%d", HANDLES, OBJECTS);
	user_ended(user_start(leaving, NULL, 10001, true), "the leaving user", 0);
	check_returned();
	cgroup_remove();
}
