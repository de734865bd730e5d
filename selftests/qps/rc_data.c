// SPDX-License-Identifier: GPL-2.0
/* Reliable connections: every operation moves exactly the bytes it should. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/rdma.h"

#define GUARD	64
#define IMM	0x12345678

struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done, arrived;
	bool recv, imm, rdma, read;
};

static const struct op ops[] = {
	{ "SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, .recv = true },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV,
	  .recv = true, .imm = true },
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, .rdma = true },
	{ "RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	  IBV_WC_RECV_RDMA_WITH_IMM, .recv = true, .imm = true, .rdma = true },
	{ "RDMA_READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, .rdma = true,
	  .read = true },
};

/* Executes one operation of @len bytes on p->a; local and remote memory have guards. */
static void transfer(struct pair *p, const struct op *op, struct buf *local,
		     struct buf *remote, uint32_t len)
{
	struct ibv_sge sge = buf_sge(local, GUARD, len);
	struct ibv_sge in = buf_sge(remote, GUARD, len);
	struct ibv_send_wr wr = wr_rdma(len, op->opcode, &sge, len ? 1 : 0,
					(uintptr_t)remote->addr + GUARD,
					remote->mr->rkey);
	struct buf *to = op->read ? local : remote;
	struct buf *from = op->read ? remote : local;
	struct ibv_wc wc;

	fill(from->addr + GUARD, len, len + 1);
	memset(to->addr, 0xa5, len + 2 * GUARD);
	if (op->imm)
		wr.imm_data = htobe32(IMM);
	/* B-069: WRITE_IMM takes a receive request, even one without memory. */
	if (op->recv)
		REQUIRE_OK(post_recv(&p->b, ~0ull, &in, len && !op->rdma));
	REQUIRE_OK(post_send(&p->a, &wr));
	if (op->recv) {
		wc = poll_ok(p->b.recv_cq, ~0ull);
		CHECK_EQ(wc.opcode, op->arrived);
		CHECK_EQ(wc.byte_len, len);
		CHECK_EQ(wc.qp_num, p->b.qp->qp_num);
		CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM,
			 op->imm ? IBV_WC_WITH_IMM : 0);
		if (op->imm)
			CHECK_EQ(be32toh(wc.imm_data), IMM);
	}
	wc = poll_ok(p->a.send_cq, len);
	CHECK_EQ(wc.opcode, op->done);
	CHECK_EQ(wc.qp_num, p->a.qp->qp_num);
	if (op->read)
		CHECK_EQ(wc.byte_len, len);	/* C-009 */
	check_fill(to->addr + GUARD, len, len + 1, op->name);
	CHECK_EQ(to->addr[GUARD - 1], 0xa5);
	CHECK_EQ(to->addr[GUARD + len], 0xa5);
}

struct combination {
	const char *name;
	int op;
	enum ibv_mtu mtu;
};

static const struct combination combinations[] = {
	{ "B-001 SEND, MTU 256", 0, IBV_MTU_256 },
	{ "B-002 SEND_WITH_IMM, MTU 256", 1, IBV_MTU_256 },
	{ "B-004 RDMA_WRITE, MTU 256", 2, IBV_MTU_256 },
	{ "B-005 RDMA_WRITE_WITH_IMM, MTU 256", 3, IBV_MTU_256 },
	{ "B-006 RDMA_READ, MTU 256", 4, IBV_MTU_256 },
	{ "B-001 SEND, MTU 512", 0, IBV_MTU_512 },
	{ "B-002 SEND_WITH_IMM, MTU 512", 1, IBV_MTU_512 },
	{ "B-004 RDMA_WRITE, MTU 512", 2, IBV_MTU_512 },
	{ "B-005 RDMA_WRITE_WITH_IMM, MTU 512", 3, IBV_MTU_512 },
	{ "B-006 RDMA_READ, MTU 512", 4, IBV_MTU_512 },
	{ "B-001 SEND, MTU 1024", 0, IBV_MTU_1024 },
	{ "B-002 SEND_WITH_IMM, MTU 1024", 1, IBV_MTU_1024 },
	{ "B-004 RDMA_WRITE, MTU 1024", 2, IBV_MTU_1024 },
	{ "B-005 RDMA_WRITE_WITH_IMM, MTU 1024", 3, IBV_MTU_1024 },
	{ "B-006 RDMA_READ, MTU 1024", 4, IBV_MTU_1024 },
	{ "B-001 SEND, MTU 2048", 0, IBV_MTU_2048 },
	{ "B-002 SEND_WITH_IMM, MTU 2048", 1, IBV_MTU_2048 },
	{ "B-004 RDMA_WRITE, MTU 2048", 2, IBV_MTU_2048 },
	{ "B-005 RDMA_WRITE_WITH_IMM, MTU 2048", 3, IBV_MTU_2048 },
	{ "B-006 RDMA_READ, MTU 2048", 4, IBV_MTU_2048 },
	{ "B-001 SEND, MTU 4096", 0, IBV_MTU_4096 },
	{ "B-002 SEND_WITH_IMM, MTU 4096", 1, IBV_MTU_4096 },
	{ "B-004 RDMA_WRITE, MTU 4096", 2, IBV_MTU_4096 },
	{ "B-005 RDMA_WRITE_WITH_IMM, MTU 4096", 3, IBV_MTU_4096 },
	{ "B-006 RDMA_READ, MTU 4096", 4, IBV_MTU_4096 },
};

TEST_ROWS(lengths, "C-007 D-004 lengths from 0 to MiB", combinations)
{
	const uint32_t mtu = mtu_bytes(row->mtu);
	const uint32_t len[] = { 0, 1, 3, 4, 5, mtu - 1, mtu, mtu + 1,
				 2 * mtu, 64 * mtu, 65 * mtu + 1, 65536 + 3,
				 (3 << 20) + 1 };
	struct dev *d = dev_open();
	struct buf local = buf_new(d->pd, (4 << 20), REMOTE);
	struct buf remote = buf_new(d->pd, (4 << 20), REMOTE);
	struct conn c = CONN;
	struct pair p;
	size_t i;

	if (row->mtu > d->port.active_mtu)
		test_skip("the port's MTU is %u", mtu_bytes(d->port.active_mtu));
	c.mtu = row->mtu;
	p = pair_new(d, &QP_OPTS, &c);
	for (i = 0; i < ARRAY_SIZE(len); i++)
		transfer(&p, &ops[row->op], &local, &remote, len[i]);
	poll_empty(p.a.send_cq);
	poll_empty(p.b.recv_cq);
}

TEST_ROWS(large, "B-026 one message of 64 MiB", ops)
{
	const uint32_t len = 64 << 20;
	struct pair p = pair_default();
	struct buf local = buf_new(p.dev->pd, len + 2 * GUARD, REMOTE);
	struct buf remote = buf_new(p.dev->pd, len + 2 * GUARD, REMOTE);

	test_timeout(180);
	transfer(&p, row, &local, &remote, len);
}

static const struct {
	const char *name;
	uint32_t psn;
} psns[] = {
	{ "0", 0 }, { "1", 1 }, { "0x7fffff", 0x7fffff },
	{ "0x800000", 0x800000 }, { "0xfffffe", 0xfffffe },
	{ "0xffffff", 0xffffff }, { "0xffff00", 0xffff00 },
};

TEST_ROWS(psn, "D-001 D-003 start PSN", psns)
{
	const uint32_t len[] = { 0, 1, 4096, 300000 };
	struct dev *d = dev_open();
	struct buf local = buf_new(d->pd, 1 << 19, REMOTE);
	struct buf remote = buf_new(d->pd, 1 << 19, REMOTE);
	struct conn c = CONN;
	struct pair p;
	size_t i, j;

	c.sq_psn = row->psn;
	c.rq_psn = row->psn ^ 0x5a5a5a;
	c.mtu = IBV_MTU_256;
	p = pair_new(d, &QP_OPTS, &c);
	for (i = 0; i < ARRAY_SIZE(len); i++)
		for (j = 0; j < ARRAY_SIZE(ops); j++)
			transfer(&p, &ops[j], &local, &remote, len[i]);
	ping_pong(&p);
}

TEST(psn_mismatch, "D-002 with the wrong start PSN no message arrives")
{
	struct dev *d = dev_open();
	struct pair p = { .dev = d, .a = end_new(d, &QP_OPTS),
			  .b = end_new(d, &QP_OPTS) };
	struct conn a = CONN, b = CONN;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	a.dest_qpn = p.b.qp->qp_num;
	a.sq_psn = 1000;
	a.timeout = 8;
	a.retry_cnt = 1;
	b.dest_qpn = p.a.qp->qp_num;
	b.rq_psn = 900;
	qp_bring(&p.a, &a, IBV_QPS_RTS);
	qp_bring(&p.b, &b, IBV_QPS_RTS);
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	poll_none(p.b.recv_cq);
}

TEST(self, "D-085 a QP that is connected to itself")
{
	struct dev *d = dev_open();
	struct end e = end_new(d, &QP_OPTS);
	struct buf local = buf_new(d->pd, 65536, REMOTE);
	struct buf remote = buf_new(d->pd, 65536, REMOTE);
	struct conn c = CONN;
	struct pair p;
	size_t i;

	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, IBV_QPS_RTS);
	p = (struct pair){ .dev = d, .a = e, .b = e };
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		transfer(&p, &ops[i], &local, &remote, 10000);
}

TEST(zero_key, "B-028 B-029 without data any remote address and key are valid")
{
	const enum ibv_wr_opcode opcode[] = { IBV_WR_RDMA_WRITE,
					      IBV_WR_RDMA_READ };
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, 64, LOCAL);
	struct ibv_sge none = buf_sge(&b, 0, 0);
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		for (n = 0; n < 2; n++) {
			struct ibv_send_wr wr = wr_rdma(n, opcode[i], &none, n,
							0xdead0000beefull, 0x77);

			REQUIRE_OK(post_send(&p.a, &wr));
			poll_ok(p.a.send_cq, n);
		}
	}
	ping_pong(&p);
}

TEST(write_send, "B-066 a message arrives after the WRITE before it")
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 100000, LOCAL);
	struct buf dst = buf_new(p.dev->pd, 100000, REMOTE);
	struct ibv_sge sge = buf_sge(&src, 0, src.len);
	struct ibv_send_wr send = wr_send(2, NULL, 0);
	struct ibv_send_wr write = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					   (uintptr_t)dst.addr, dst.mr->rkey);
	int i;

	write.next = &send;
	for (i = 0; i < 20; i++) {
		fill(src.addr, src.len, i);
		REQUIRE_OK(post_recv(&p.b, 3, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &write));
		poll_ok(p.b.recv_cq, 3);
		check_fill(dst.addr, dst.len, i, "written before the message");
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.a.send_cq, 2);
	}
}

#ifdef __x86_64__
static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} writers[] = {
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE },
	{ "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

/* Whether an emulated CPU cannot know that the device, another process, writes code. */
static bool cpu_is_blind(void)
{
	const char *variant = getenv("QHCA_VARIANT"), *accel = getenv("QHCA_ACCEL");

	return variant && strstr(variant, "server") && accel && !strcmp(accel, "tcg");
}

/* An emulated CPU must not execute an old translation of the code. */
TEST_ROWS(code, "B-004 B-072 code that is overwritten by RDMA runs as written", writers)
{
	const uint8_t mov_ret[] = { 0xb8, 0, 0, 0, 0, 0xc3, 0, 0 };
	const uint64_t one = 1 << 8;	/* adds to the operand of mov */
	struct dev *d;
	struct conn c = CONN;
	uint32_t i, regs[4];
	struct ibv_send_wr wr;
	struct buf src, code;
	struct ibv_sge sge;
	struct pair p;

	if (cpu_is_blind())
		test_skip("TCG does not see code that another process writes");
	d = dev_open();
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	p = pair_new(d, &QP_OPTS, &c);
	src = buf_new(d->pd, 4096, LOCAL);
	code = buf_new(d->pd, 4096, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	sge = buf_sge(&src, 0, sizeof(mov_ret));
	wr = wr_rdma(1, row->opcode, &sge, 1, (uintptr_t)code.addr,
		     code.mr->rkey);
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)code.addr;
		wr.wr.atomic.rkey = code.mr->rkey;
		wr.wr.atomic.compare_add = one;
	}
	REQUIRE_OK(mprotect(code.addr, code.len,
			    PROT_READ | PROT_WRITE | PROT_EXEC));
	memcpy(code.addr, mov_ret, sizeof(mov_ret));
	memcpy(src.addr, mov_ret, sizeof(mov_ret));
	for (i = 0; i < 20; i++) {
		__cpuid(0, regs[0], regs[1], regs[2], regs[3]); /* serialises */
		CHECK_EQ(((uint32_t (*)(void))code.addr)(), i);
		src.addr[1] = i + 1;
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
	}
}
#endif

TEST(write_read, "B-067 a READ sees the WRITE before it")
{
	struct pair p = pair_default();
	struct buf src = buf_new(p.dev->pd, 50000, LOCAL);
	struct buf dst = buf_new(p.dev->pd, 50000, REMOTE);
	struct buf back = buf_new(p.dev->pd, 50000, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, src.len);
	struct ibv_sge in = buf_sge(&back, 0, back.len);
	struct ibv_send_wr read = wr_rdma(2, IBV_WR_RDMA_READ, &in, 1,
					  (uintptr_t)dst.addr, dst.mr->rkey);
	struct ibv_send_wr write = wr_rdma(1, IBV_WR_RDMA_WRITE, &out, 1,
					   (uintptr_t)dst.addr, dst.mr->rkey);
	int i;

	write.next = &read;
	for (i = 0; i < 20; i++) {
		fill(src.addr, src.len, i);
		REQUIRE_OK(post_send(&p.a, &write));
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.a.send_cq, 2);
		check_fill(back.addr, back.len, i, "read back");
	}
}

TEST(fence, "B-051 a fenced request sees the data of the READ before it")
{
	struct pair p = pair_default();
	struct buf mid = buf_new(p.dev->pd, 50000, LOCAL);
	struct buf src = buf_new(p.dev->pd, 50000, REMOTE);
	struct buf dst = buf_new(p.dev->pd, 50000, REMOTE);
	struct ibv_sge sge = buf_sge(&mid, 0, mid.len);
	struct ibv_send_wr write = wr_rdma(2, IBV_WR_RDMA_WRITE, &sge, 1,
					   (uintptr_t)dst.addr, dst.mr->rkey);
	struct ibv_send_wr read = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1,
					  (uintptr_t)src.addr, src.mr->rkey);
	int i;

	read.next = &write;
	write.send_flags |= IBV_SEND_FENCE;
	for (i = 0; i < 20; i++) {
		fill(src.addr, src.len, i);
		REQUIRE_OK(post_send(&p.a, &read));
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.a.send_cq, 2);
		check_fill(dst.addr, dst.len, i, "written after the READ");
	}
}

TEST(read_depth, "D-067 more READs than may be outstanding wait")
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct dev *d = dev_open();
	struct buf src = buf_new(d->pd, 64 * 5000, REMOTE);
	struct buf dst = buf_new(d->pd, 64 * 5000, LOCAL);
	struct pair p;
	int i;

	o.send_wr = 64;
	c.rd_atomic = 1;
	c.dest_rd_atomic = 1;
	p = pair_new(d, &o, &c);
	fill(src.addr, src.len, 1);
	for (i = 0; i < 64; i++) {
		struct ibv_sge sge = buf_sge(&dst, i * 5000, 5000);
		struct ibv_send_wr wr = wr_rdma(i, IBV_WR_RDMA_READ, &sge, 1,
						(uintptr_t)src.addr + i * 5000,
						src.mr->rkey);

		REQUIRE_OK(post_send(&p.a, &wr));
	}
	for (i = 0; i < 64; i++)
		poll_ok(p.a.send_cq, i);
	check_fill(dst.addr, dst.len, 1, "all READs");
}
