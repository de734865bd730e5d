// SPDX-License-Identifier: GPL-2.0
/* On-demand paging: a region of all memory of a process that has ended, whose keys others know. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ondemand.h"

/* Where other processes have memory, but neither the one that registers nor this one. */
#define PLACE	0x10000000ul
#define OTHERS	8
#define ODP	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND)

/* The key of a region of all memory of a child, which has ended when this returns. */
static uint32_t key_of_child(struct dev *d)
{
	int fds[2], status;
	uint32_t key = 0;
	pid_t pid;

	REQUIRE(!pipe(fds));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		struct ibv_mr *mr = ibv_reg_mr(d->pd, NULL, SIZE_MAX, ODP);

		if (mr)
			key = mr->rkey;
		_exit(write(fds[1], &key, sizeof(key)) != sizeof(key));
	}
	REQUIRE(read(fds[0], &key, sizeof(key)) == sizeof(key));
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(!status && key);
	close(fds[0]);
	close(fds[1]);
	return key;
}

/* A process that has memory at PLACE, and waits to be told to look at it. */
struct other {
	pid_t pid;
	int tell;
};

static void other_main(int fd)
{
	uint8_t *mem = mmap((void *)PLACE, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char c;

	if (mem == MAP_FAILED)
		_exit(2);
	memset(mem, 0x5a, PAGE);
	_exit(read(fd, &c, 1) != 1 || mem[0] != 0x5a);
}

static struct other other_new(void)
{
	struct other o;
	int fds[2];

	REQUIRE(!pipe2(fds, O_CLOEXEC));
	o.pid = fork();
	REQUIRE(o.pid >= 0);
	if (!o.pid) {
		close(fds[1]);
		other_main(fds[0]);
	}
	close(fds[0]);
	o.tell = fds[1];
	return o;
}

/* Returns whether its memory is as it was. */
static bool other_end(struct other *o)
{
	int status;

	REQUIRE(write(o->tell, "", 1) == 1);
	close(o->tell);
	REQUIRE(waitpid(o->pid, &status, 0) == o->pid);
	if (status == 2 << 8)
		test_skip("the place is in use");
	return !status;
}

static enum ibv_wc_status rdma(struct pair *p, enum ibv_wr_opcode opcode, struct buf *b,
			       uint32_t key)
{
	struct ibv_sge sge = buf_sge(b, 0, 64);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, PLACE, key);

	REQUIRE_OK(post_send(&p->a, &wr));
	return poll_get(p->a.send_cq).status;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} kinds[] = {
	{ "READ", IBV_WR_RDMA_READ },
	{ "WRITE", IBV_WR_RDMA_WRITE },
};

/*
 * The kernel may give a later process what it has freed of the one that has ended; KASAN finds
 * every use of that.
 */
TEST_ROWS(ended, "F-061 a region does not outlive the memory of its process", kinds)
{
	struct dev *d = odp_open();
	struct buf b = buf_new(d->pd, PAGE, REMOTE);
	unsigned int i, k, rounds = from_env("ODP_ROUNDS", 12);

	test_timeout(120);
	for (i = 0; i < rounds; i++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);
		uint32_t key = key_of_child(d);
		struct other others[OTHERS];

		for (k = 0; k < OTHERS; k++)
			others[k] = other_new();
		sleep_ms(30);
		memset(b.addr, 0, PAGE);
		CHECK_EQ(rdma(&p, row->opcode, &b, key), IBV_WC_REM_ACCESS_ERR);
		CHECK_EQ(b.addr[0], 0);
		for (k = 0; k < OTHERS; k++)
			CHECK(other_end(&others[k]));
	}
}
