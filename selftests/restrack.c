// SPDX-License-Identifier: GPL-2.0
/*
 * What "rdma resource show" prints about objects, to whom, and while objects come and
 * go.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

#define NOBODY	"setpriv --reuid 65534 --regid 65534 --clear-groups"

static char text[1 << 20];

/* "rdma resource show", into @text; true if it succeeds. */
static bool res_show(const char *prefix, const char *options, const char *type)
{
	char args[64];

	snprintf(args, sizeof(args), "%s resource show %s", options, type);
	return rdma_tool(prefix, args, text, sizeof(text));
}

/* The first object of process @pid in JSON, a line of @text, which ends there; or NULL. */
static char *object_of(pid_t pid)
{
	char key[32], *line, *end;

	snprintf(key, sizeof(key), "\"pid\":%d,", pid);
	line = strstr(text, key);
	end = line ? strchr(line, '\n') : NULL;
	if (end)
		*end = '\0';
	return line;
}

/* The core shows everybody the initial PSNs; the current ones must stay hidden. */
TEST(psns, "D-086 PSNs of packets to come are shown to administrators only")
{
	struct pair p = pair_default();
	char next[16], *own;

	ping_pong(&p);
	snprintf(next, sizeof(next), ":%u,", CONN.sq_psn + 1);
	REQUIRE(res_show(NOBODY, "-dd -j", "qp"));
	own = object_of(getpid());
	REQUIRE(own);
	CHECK(strstr(own, "\"drv_sq_pi\":"));
	CHECK(!strstr(own, next));
	for (own = strstr(own, "drv_"); own; own = strstr(own + 1, "drv_"))
		CHECK(!memmem(own, strcspn(own, "\""), "psn", 3));
	CHECK(res_show("", "-r", "qp"));
	CHECK(strstr(text, dev_name()));
	CHECK(!res_show(NOBODY, "-r", "qp"));
	CHECK(!strstr(text, dev_name()));
}

static const struct kind {
	const char *name;
	const char *type;
	const char *detail;
} kinds[] = {
	{ "QPs", "qp", "\"drv_sq_size\":" },
	{ "CQs", "cq", "\"drv_hw_cqn\":" },
	{ "SRQs", "srq", "\"drv_hw_srqn\":" },
};

/* One of each kind. */
static struct end make(struct dev *d, struct ibv_srq **srq)
{
	struct qp_opts o = QP_OPTS;

	*srq = srq_new(d, 4, 1);
	o.srq = *srq;
	return end_new(d, &o);
}

#define ROUNDS	10

/* Makes one more of each kind and destroys the one before, until it is killed. */
static void come_and_go(atomic_int *rounds)
{
	struct dev *d = dev_open();
	struct ibv_srq *srq, *old_srq;
	struct end e, old;

	for (old = make(d, &old_srq);; old = e, old_srq = srq) {
		e = make(d, &srq);
		REQUIRE_OK(ibv_destroy_qp(old.qp));
		REQUIRE_OK(ibv_destroy_srq(old_srq));
		REQUIRE_OK(ibv_destroy_cq(old.send_cq));
		REQUIRE_OK(ibv_destroy_cq(old.recv_cq));
		atomic_fetch_add(rounds, 1);
	}
}

TEST_ROWS(shown, "J-021 shown while others are made and destroyed", kinds)
{
	atomic_int *rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t start = time_ms();
	int times = 0, theirs = 0;
	struct ibv_srq *srq;
	char *own;
	pid_t pid;

	REQUIRE(rounds != MAP_FAILED);
	make(dev_open_qhca(), &srq);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		come_and_go(rounds);
	}
	do {
		REQUIRE(res_show("", "-dd -j", row->type));
		theirs += !!object_of(pid);
		REQUIRE(res_show("", "-dd -j", row->type));
		own = object_of(getpid());
		REQUIRE(own && strstr(own, row->detail));
		times += 2;
	} while (time_ms() - start < 3000 ||
		 ((!theirs || atomic_load(rounds) < ROUNDS) && time_ms() - start < WAIT_MS));
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	test_note("made %d times, shown %d times, seen %d times", atomic_load(rounds), times,
		  theirs);
	CHECK(atomic_load(rounds) >= ROUNDS);
	CHECK(theirs);
	REQUIRE(res_show("", "-dd -j", row->type));
	CHECK(!object_of(pid));
}
