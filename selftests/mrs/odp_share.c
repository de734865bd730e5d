// SPDX-License-Identifier: GPL-2.0
/*
 * An implicit region has a fixed number of pieces of memory at a time, however much of its process
 * is used: others go, and come back when they are needed.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "lib/ondemand.h"

#define PIECE	(8ul << 20)
#define PIECES	300		/* more than a region has */
#define SGES	8

static struct pair p;
static struct buf pinned;
static struct ibv_mr *odp;
static uint8_t *mem;

static void start(void)
{
	struct qp_opts o = QP_OPTS;
	size_t i;

	p.dev = odp_open();
	test_timeout(120);
	o.send_sge = SGES;
	p = pair_new(p.dev, &o, &CONN);
	pinned = buf_new(p.dev->pd, PAGE, REMOTE);
	odp = odp_reg(p.dev, NULL, SIZE_MAX, REMOTE);
	mem = odp_map(PIECES * PIECE);
	for (i = 0; i < PIECES; i++)
		fill(mem + i * PIECE, 64, i);
}

static void write_from(size_t i)
{
	struct ibv_sge sge = { (uintptr_t)mem + i * PIECE, 64, odp->lkey };
	struct ibv_send_wr wr = wr_rdma(i, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)pinned.addr,
					pinned.mr->rkey);

	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, i);
	check_fill(pinned.addr, 64, i, "from a piece");
}

TEST(pieces, "F-018 J-027 an implicit region of which more is used than it can have at a time")
{
	size_t i;
	int round;

	start();
	for (round = 0; round < 2; round++)
		for (i = 0; i < PIECES; i++)
			write_from(i);
	/* In an order in which each comes back right after it has gone. */
	for (i = 0; i < 40; i++)
		write_from(i * 7 % PIECES);
	REQUIRE_OK(ibv_dereg_mr(odp));
}

TEST(at_once, "F-018 J-027 one message from more pieces than one fault provides")
{
	struct ibv_sge sge[SGES];
	struct ibv_send_wr wr;
	size_t i, n;

	start();
	for (n = 0; n + SGES <= PIECES; n += SGES) {
		for (i = 0; i < SGES; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)mem + (n + i) * PIECE, 64,
						   odp->lkey };
		wr = wr_rdma(n, IBV_WR_RDMA_WRITE, sge, SGES, (uintptr_t)pinned.addr,
			     pinned.mr->rkey);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, n);
		for (i = 0; i < SGES; i++)
			check_fill(pinned.addr + i * 64, 64, n + i, "from one of many pieces");
	}
}
