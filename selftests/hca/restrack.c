// SPDX-License-Identifier: GPL-2.0
/*
 * "rdma resource show": its output about objects, which users see it, and its output while objects
 * are created and destroyed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

#define NOBODY	"setpriv --reuid 65534 --regid 65534 --clear-groups"

static char text[1 << 20];

/* Stores the output of "rdma resource show" in @text. Returns whether it succeeded. */
static bool res_show(const char *prefix, const char *options, const char *type)
{
	char args[64];

	snprintf(args, sizeof(args), "%s resource show %s", options, type);
	return rdma_tool(prefix, args, text, sizeof(text));
}

/* Returns the first object of process @pid in the JSON, as a line of @text; or NULL. */
static char *object_of(pid_t pid)
{
	char key[32], *line, *end;

	snprintf(key, sizeof(key), "\"pid\":%d,", pid);
	line = strstr(text, key);
	end = line ? strchr(line, '\n') : NULL;
	if (end)
		*end = '\0';
	/* The object begins before its pid. */
	while (line && line > text && line[-1] != '\n')
		line--;
	return line;
}

/* Names of PSNs and of indices of a connection; the core's names have no "drv_". */
static const char *const secrets[] = {
	"psn\":", "msn\":", "pi\":", "ci\":", "next\":", "held\":",
};

/* Returns where @object shows @secret with a value other than 0, or NULL. */
static const char *shown_secret(const char *object, const char *secret)
{
	const char *at = object;

	while ((at = strstr(at, secret))) {
		at += strlen(secret);
		if (*at != '0')
			return at;
	}
	return NULL;
}

static const struct kind {
	const char *name;
	const char *type;
	const char *detail;	/* proves that the object is complete */
} kinds[] = {
	{ "QPs", "qp", "\"drv_sq_size\":" },
	{ "CQs", "cq", "\"drv_hw_cqn\":" },
	{ "SRQs", "srq", "\"drv_hw_srqn\":" },
	{ "MRs", "mr", "\"drv_pdn\":" },
};

/* Whether the driver's part is there. Kernels before 6.7 do not ask drivers about SRQs. */
static bool is_whole(const char *object, const struct kind *kind)
{
	return strstr(object, kind->detail) ||
	       (!strcmp(kind->type, "srq") && kernel_before(6, 7));
}

static void no_secrets(const struct kind *kind)
{
	const char *own;
	size_t i;

	REQUIRE(res_show(NOBODY, "-dd -j", kind->type));
	own = object_of(getpid());
	REQUIRE(own && is_whole(own, kind));
	for (i = 0; i < ARRAY_SIZE(secrets); i++)
		if (shown_secret(own, secrets[i]))
			FAIL("%s: %s%s", kind->type, secrets[i], shown_secret(own, secrets[i]));
}

TEST(psns, "D-086 only administrators see PSNs and values from which they follow")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, 4096, LOCAL);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	size_t i;

	ping_pong(&p);
	REQUIRE_OK(srq_post(srq_new(p.dev, 4, 1), 1, &b, 0, 8));
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		no_secrets(&kinds[i]);
	CHECK(res_show("", "-r", "qp"));
	CHECK(strstr(text, dev_name()));
	CHECK(!res_show(NOBODY, "-r", "qp"));
	CHECK(!strstr(text, dev_name()));
	/* A process that has the QP asks for the PSNs explicitly. */
	REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init));
	CHECK_EQ(a.rq_psn, CONN.rq_psn);
	CHECK_EQ(a.sq_psn, CONN.sq_psn);
}

/* Makes one object of each kind. */
static struct end make(struct dev *d, struct ibv_srq **srq)
{
	struct qp_opts o = QP_OPTS;

	*srq = srq_new(d, 4, 1);
	o.srq = *srq;
	return end_new(d, &o);
}

#define ROUNDS	10

/* Moves an MR to @pd; it keeps its keys. */
static void move(struct buf *b, struct ibv_pd *pd)
{
	REQUIRE(!ibv_rereg_mr(b->mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
}

/*
 * Makes another object of each kind, destroys the one before, and moves an MR to another PD and
 * back, until it is killed.
 */
static void come_and_go(atomic_int *rounds)
{
	struct dev *d = dev_open();
	struct buf b = buf_new(d->pd, 4096, LOCAL);
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	struct ibv_srq *srq, *old_srq;
	struct end e, old;

	REQUIRE(pd);
	for (old = make(d, &old_srq);; old = e, old_srq = srq) {
		e = make(d, &srq);
		move(&b, pd);
		move(&b, d->pd);
		REQUIRE_OK(ibv_destroy_qp(old.qp));
		REQUIRE_OK(ibv_destroy_srq(old_srq));
		REQUIRE_OK(ibv_destroy_cq(old.send_cq));
		REQUIRE_OK(ibv_destroy_cq(old.recv_cq));
		atomic_fetch_add(rounds, 1);
	}
}

TEST_ROWS(shown, "J-021 shown while others are created and destroyed", kinds)
{
	atomic_int *rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct dev *d = dev_open_qhca();
	int64_t start = time_ms();
	int times = 0, theirs = 0;
	struct ibv_srq *srq;
	char *own;
	pid_t pid;

	REQUIRE(rounds != MAP_FAILED);
	make(d, &srq);
	buf_new(d->pd, 4096, LOCAL);
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
		REQUIRE(own && is_whole(own, row));
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

/* Returns the PD number that "rdma resource show" prints for the only MR of this process. */
static int shown_pdn(void)
{
	const char *own;

	REQUIRE(res_show("", "-dd -j", "mr"));
	own = object_of(getpid());
	REQUIRE(own);
	own = strstr(own, "\"drv_pdn\":");
	REQUIRE(own);
	return atoi(own + strlen("\"drv_pdn\":"));
}

TEST(moved, "F-012 J-021 an MR is shown with the PD that it has been moved to")
{
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 4096, LOCAL);
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	int first = shown_pdn();

	REQUIRE(pd);
	move(&b, pd);
	CHECK(shown_pdn() != first);
	REQUIRE_OK(ibv_dealloc_pd(d->pd));	/* the MR does not use it any more */
	CHECK(shown_pdn() != first);
}
