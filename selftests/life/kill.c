// SPDX-License-Identifier: GPL-2.0
/*
 * A process with 1,000 QPs is killed while they work, or while it creates them: nothing is left
 * behind, and other processes notice nothing. KILL_CYCLES says how often.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/chance.h"
#include "lib/rdma.h"

#define PAIRS	500
#define LEN	65536

/* Shared between both processes. */
static unsigned int *made, *written;

/* Creates one CQ and one region; all QPs write to the region for ever. */
static void victim(void)
{
	static struct pair p[PAIRS];
	struct dev *d = dev_open();
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct buf b;

	o.send_cq = cq_new(d, 4 * PAIRS, NULL);
	o.recv_cq = o.send_cq;
	b = buf_new(d->pd, LEN, REMOTE);
	sge = buf_sge(&b, 0, LEN);
	for (*made = 0; *made < PAIRS; ++*made)
		p[*made] = pair_new(d, &o, &CONN);
	for (*written = 0;; ++*written) {
		wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)b.addr, b.mr->rkey);
		if (*written >= PAIRS) {
			wc = poll_get(o.send_cq);
			REQUIRE(wc.status == IBV_WC_SUCCESS);
		}
		REQUIRE_OK(post_send(&p[*written % PAIRS].a, &wr));
	}
}

static void kill_one(unsigned int enough, const unsigned int *count)
{
	int64_t end = time_ms() + WAIT_MS;
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		victim();
		_exit(1);
	}
	while (*count < enough && time_ms() < end && !waitpid(pid, &status, WNOHANG))
		sleep_ms(1);
	CHECK(*count >= enough);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(kill_1000, "J-020 H-015 a process with 1,000 QPs is killed")
{
	long n, cycles = from_env("KILL_CYCLES", 4);
	char before[1024];
	struct pair bystander = pair_default();

	test_timeout(60 + cycles * 30);
	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(made != MAP_FAILED);
	written = made + 1;
	resources(before, sizeof(before));
	for (n = 0; n < cycles; n++) {
		*made = 0;
		*written = 0;
		if (n % 4 == 3)
			kill_one(1 + rand() % PAIRS, made);
		else
			kill_one(1 + rand() % (10 * PAIRS), written);
		ping_pong(&bystander);
		check_resources(before);
	}
	test_note("%ld times", n);
}
