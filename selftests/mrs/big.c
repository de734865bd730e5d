// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes beyond the memory of the machine: the same few MiB are mapped many times, so that they back
 * gigabytes of addresses.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/xrc.h"

#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define PIECE		(16 * MIB)
#define MAX_MSG		(1u << 31)

/* Returns a file of huge pages, if there are any: they take a quarter of the time to pin. */
static int piece(void)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+");
	int have = 0, fd;

	if (f && fscanf(f, "%d", &have) == 1 && have < 32) {
		rewind(f);
		fprintf(f, "32\n");
	}
	if (f)
		fclose(f);
	fd = memfd_create("piece", MFD_HUGETLB);
	if (fd >= 0 && !ftruncate(fd, PIECE) && !fallocate(fd, 0, 0, PIECE))
		return fd;
	test_note("no huge pages");
	fd = memfd_create("piece", 0);
	REQUIRE(fd >= 0 && !ftruncate(fd, PIECE));
	return fd;
}

/*
 * Maps @len bytes, a multiple of PIECE. All pieces are the same memory, except for the last one,
 * which shows whether the end of a message arrived.
 */
static uint8_t *map_again(size_t len)
{
	int fd = piece(), last = piece();
	uint8_t *addr;
	size_t off;

	/* Reserve room to align to a huge page. */
	addr = mmap(NULL, len + PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(addr != MAP_FAILED);
	addr += -(uintptr_t)addr & (PIECE - 1);
	for (off = 0; off < len; off += PIECE)
		REQUIRE(mmap(addr + off, PIECE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, off + PIECE < len ? fd : last, 0) ==
			addr + off);
	close(fd);
	close(last);
	return addr;
}

static struct buf big_buf(struct dev *d, size_t len)
{
	struct buf b = { .addr = map_again(len), .len = len };

	b.mr = ibv_reg_mr(d->pd, b.addr, len, REMOTE);
	if (!b.mr && errno == ENOMEM)
		test_skip("this machine cannot pin so much");
	REQUIRE(b.mr);
	return b;
}

/* Executes one RDMA operation of @len bytes; returns its status. */
static enum ibv_wc_status rdma(struct pair *p, enum ibv_wr_opcode opcode,
			       const struct buf *local, uint32_t len,
			       uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = buf_sge(local, 0, len);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, raddr, rkey);
	struct ibv_wc wc;

	REQUIRE_OK(post_send(&p->a, &wr));
	wc = poll_get(p->a.send_cq);
	if (opcode == IBV_WR_RDMA_READ && wc.status == IBV_WC_SUCCESS)
		CHECK_EQ(wc.byte_len, len);
	return wc.status;
}

TEST(region, "F-014 an MR of 5 GiB: beyond 32 bits, to the last byte")
{
	const size_t len = 5 * GIB;
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 4096, LOCAL);
	struct buf big = big_buf(p.dev, len);
	const size_t at[] = { 0, 4 * GIB - 5, 4 * GIB + 3 * PIECE + 7, len - 10 };
	size_t i;

	test_timeout(120);
	fill(src.addr, 4096, 9);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		memset(big.addr + at[i], 0, 10);
		CHECK_EQ(rdma(&p, IBV_WR_RDMA_WRITE, &src, 10,
			      (uintptr_t)big.addr + at[i], big.mr->rkey),
			 IBV_WC_SUCCESS);
		check_fill(big.addr + at[i], 10, 9, "written");
	}
	CHECK_EQ(rdma(&p, IBV_WR_RDMA_WRITE, &src, 10,
		      (uintptr_t)big.addr + len - 9, big.mr->rkey),
		 IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(big.mr), 0);
}

/* struct way - a connection of one type, with its receive side */
struct way {
	struct pair p;
	struct xrc x;
	struct ibv_srq *srq;	/* SRQ for XRC */
	struct ibv_cq *cq;
};

static struct way way_new(struct dev *d, enum ibv_qp_type type)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct way w = {};

	c.mtu = d->port.active_mtu;
	c.timeout = 18;
	o.type = type;
	if (type != IBV_QPT_XRC_SEND) {
		w.p = pair_new(d, &o, &c);
		w.cq = w.p.b.recv_cq;
		return w;
	}
	w.x = xrc_new(d, &c);
	w.p = w.x.p;
	w.srq = w.x.srq.srq;
	w.cq = w.x.srq.cq;
	return w;
}

/* Makes source and sink of the longest message; only the source has a pattern. */
static void two_gib(struct dev *d, struct buf *src, struct buf *dst)
{
	test_timeout(180);
	*src = big_buf(d, MAX_MSG);
	*dst = big_buf(d, MAX_MSG);
	fill(src->addr, PIECE, 3);
	fill(src->addr + MAX_MSG - PIECE, PIECE, 4);
	memset(dst->addr, 0, PIECE);
	memset(dst->addr + MAX_MSG - PIECE, 0, PIECE);
}

static const struct op {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
} ops[] = {
	{ "RC, RDMA WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE },
	{ "RC, RDMA READ", IBV_QPT_RC, IBV_WR_RDMA_READ },
	{ "RC, SEND", IBV_QPT_RC, IBV_WR_SEND },
	{ "UC, RDMA WRITE", IBV_QPT_UC, IBV_WR_RDMA_WRITE },
	{ "UC, RDMA WRITE with immediate data", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "UC, SEND", IBV_QPT_UC, IBV_WR_SEND },
	{ "XRC, RDMA WRITE", IBV_QPT_XRC_SEND, IBV_WR_RDMA_WRITE },
	{ "XRC, RDMA READ", IBV_QPT_XRC_SEND, IBV_WR_RDMA_READ },
	{ "XRC, SEND", IBV_QPT_XRC_SEND, IBV_WR_SEND },
};

static bool takes_recv(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void recv_into(struct way *w, const struct buf *dst)
{
	struct ibv_sge in = buf_sge(dst, 0, MAX_MSG);

	if (w->srq)
		REQUIRE_OK(srq_post(w->srq, 2, dst, 0, MAX_MSG));
	else
		REQUIRE_OK(post_recv(&w->p.b, 2, &in, 1));
}

TEST_ROWS(message, "B-026 one message of 2^31 bytes", ops)
{
	struct dev *d = dev_open_qhca();
	struct way w = way_new(d, row->type);
	struct buf src, dst, *local = &src, *remote = &dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	two_gib(d, &src, &dst);
	if (row->opcode == IBV_WR_RDMA_READ) {
		local = &dst;
		remote = &src;
	}
	sge = buf_sge(local, 0, MAX_MSG);
	wr = wr_rdma(1, row->opcode, &sge, 1, (uintptr_t)remote->addr, remote->mr->rkey);
	wr.qp_type.xrc.remote_srqn = w.x.srq.srqn;
	if (takes_recv(row->opcode))
		recv_into(&w, &dst);
	REQUIRE_OK(post_send(&w.p.a, &wr));
	wc = poll_ok(w.p.a.send_cq, 1);
	if (row->opcode == IBV_WR_RDMA_READ)
		CHECK_EQ(wc.byte_len, MAX_MSG);
	if (takes_recv(row->opcode))
		CHECK_EQ(poll_ok(w.cq, 2).byte_len, MAX_MSG);
	if (row->type == IBV_QPT_UC && !takes_recv(row->opcode))
		ping(&w.p.a, &w.p.b);		/* completes after all earlier messages */
	check_fill(dst.addr, PIECE, 3, "sink");
	check_fill(dst.addr + MAX_MSG - PIECE, PIECE, 4, "end of the sink");
}
