// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable connections: which messages arrive and which are dropped. The sender succeeds in both
 * cases.
 */

#include "lib/rdma.h"

static struct pair uc_pair(struct dev *d)
{
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_UC;
	return pair_new(d, &o, &CONN);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
} messages[] = {
	{ "B-001 SEND, 0 bytes", IBV_WR_SEND, 0 },
	{ "B-001 SEND, 1 byte", IBV_WR_SEND, 1 },
	{ "B-001 SEND, one MTU", IBV_WR_SEND, 1024 },
	{ "B-001 SEND, 2 MiB", IBV_WR_SEND, 2 << 20 },
	{ "B-002 SEND_WITH_IMM, 0 bytes", IBV_WR_SEND_WITH_IMM, 0 },
	{ "B-002 SEND_WITH_IMM, 5000 bytes", IBV_WR_SEND_WITH_IMM, 5000 },
	{ "B-004 RDMA_WRITE, 1025 bytes", IBV_WR_RDMA_WRITE, 1025 },
	{ "B-004 RDMA_WRITE, 2 MiB", IBV_WR_RDMA_WRITE, 2 << 20 },
	{ "B-005 RDMA_WRITE_WITH_IMM, 0 bytes", IBV_WR_RDMA_WRITE_WITH_IMM, 0 },
	{ "B-005 RDMA_WRITE_WITH_IMM, 5000 bytes", IBV_WR_RDMA_WRITE_WITH_IMM, 5000 },
};

TEST_ROWS(message, "B-028 B-061 B-068 B-069 C-008 message", messages)
{
	struct pair p = uc_pair(dev_open());
	struct buf src = buf_new(p.dev->pd, row->len + 1, LOCAL);
	struct buf dst = buf_new(p.dev->pd, row->len + 1, REMOTE);
	bool write = row->opcode == IBV_WR_RDMA_WRITE ||
		     row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = row->opcode == IBV_WR_SEND_WITH_IMM ||
		   row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_sge out = buf_sge(&src, 0, row->len);
	struct ibv_sge in = buf_sge(&dst, 0, row->len);
	struct ibv_send_wr wr = wr_rdma(1, row->opcode, &out, 1,
					(uintptr_t)dst.addr, dst.mr->rkey);
	struct ibv_wc wc;
	int round;

	wr.imm_data = htobe32(0xdecade);
	for (round = 0; round < 3; round++) {
		fill(src.addr, row->len, round);
		REQUIRE_OK(post_recv(&p.b, 2, &in, write ? 0 : 1));
		REQUIRE_OK(post_send(&p.a, &wr));
		wc = poll_ok(p.a.send_cq, 1);
		CHECK_EQ(wc.opcode, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
		if (row->opcode == IBV_WR_RDMA_WRITE) {
			send_id(&p.a, 3);
			poll_ok(p.a.send_cq, 3);
		}
		wc = poll_ok(p.b.recv_cq, 2);
		check_fill(dst.addr, row->len, round, "message");
		CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
		if (row->opcode == IBV_WR_RDMA_WRITE)
			continue;
		CHECK_EQ(wc.byte_len, row->len);
		CHECK_EQ(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM :
					    IBV_WC_RECV);
		CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
		if (imm)
			CHECK_EQ(be32toh(wc.imm_data), 0xdecade);
	}
}

static const struct {
	const char *name;
	int opcode;
} not_uc[] = {
	{ "B-006 RDMA_READ", IBV_WR_RDMA_READ },
	{ "B-007 ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "B-008 ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "B-003 SEND_WITH_INV", IBV_WR_SEND_WITH_INV },
	{ "B-014 TSO", IBV_WR_TSO },
	{ "31", 31 }, { "-1", -1 },
};

TEST_ROWS(opcode, "B-020 opcode that UC does not have", not_uc)
{
	struct pair p = uc_pair(dev_open_qhca());
	struct ibv_send_wr wr = wr_send(1, NULL, 0), *bad = NULL;

	wr.opcode = row->opcode;
	CHECK_ERR(ibv_post_send(p.a.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	ping_pong(&p);
}

#define UC_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |	\
		 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)

static struct ibv_qp *qp_ex(struct dev *d, struct ibv_cq *cq, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 16, 16, 2, 2, 64 },
		.qp_type = IBV_QPT_UC, .pd = d->pd, .send_ops_flags = ops,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};

	errno = 0;
	return ibv_create_qp_ex(d->ctx, &init);
}

TEST(wr_ops, "B-035 B-036 ibv_wr_*: only UC's operations")
{
	const uint64_t others[] = { IBV_QP_EX_WITH_RDMA_READ,
				    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
				    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
				    IBV_QP_EX_WITH_SEND_WITH_INV };
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	struct buf b = buf_new(d->pd, 4096, REMOTE);
	struct pair p = { .dev = d, .a = { d, .send_cq = cq, .recv_cq = cq } };
	struct qp_opts o = QP_OPTS;
	struct ibv_qp_ex *q;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		CHECK(!qp_ex(d, cq, UC_OPS | others[i]));
		CHECK_EQ(errno, EOPNOTSUPP);
	}
	o.type = IBV_QPT_UC;
	p.a.qp = qp_ex(d, cq, UC_OPS);
	REQUIRE(p.a.qp);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	fill(b.addr, 1000, 1);
	for (i = 0; i < 3; i++)
		REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
	q = ibv_qp_to_qp_ex(p.a.qp);
	REQUIRE(q);
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	q->wr_id = 0;
	ibv_wr_send(q);
	q->wr_id = 1;
	ibv_wr_send_imm(q, htobe32(1));
	q->wr_id = 2;
	ibv_wr_rdma_write(q, b.mr->rkey, (uintptr_t)b.addr + 2000);
	ibv_wr_set_sge(q, b.mr->lkey, (uintptr_t)b.addr, 1000);
	q->wr_id = 3;
	ibv_wr_rdma_write_imm(q, b.mr->rkey, (uintptr_t)b.addr + 3000,
			      htobe32(3));
	ibv_wr_set_inline_data(q, b.addr, 50);
	CHECK_ERR(ibv_wr_complete(q), 0);
	for (i = 0; i < 4; i++)
		poll_ok(cq, i);
	for (i = 0; i < 3; i++)
		poll_ok(p.b.recv_cq, i);
	check_fill(b.addr + 2000, 1000, 1, "written");
	check_fill(b.addr + 3000, 50, 1, "written inline");
}

TEST(sqe, "A-006 A-018 A-091 A-092 A-093 A-094 I-042 I-052 a send error, SQE, and RTS again")
{
	struct pair p = uc_pair(dev_open_qhca());
	struct ibv_sge sge = { .addr = 64, .length = 8, .lkey = 0x77 };
	struct ibv_send_wr wr[4];
	int i;

	for (i = 0; i < 8; i++)
		REQUIRE_OK(post_recv(&p.b, 100 + i, NULL, 0));
	REQUIRE_OK(post_recv(&p.a, 200, NULL, 0));
	for (i = 0; i < 4; i++) {
		wr[i] = wr_send(i, NULL, 0);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[1].sg_list = &sge;
	wr[1].num_sge = 1;
	wr[1].send_flags = 0;
	wr[2].send_flags = 0;
	REQUIRE_OK(post_send(&p.a, wr));
	poll_ok(p.a.send_cq, 0);
	poll_expect(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_SQE);
	poll_expect(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
	poll_expect(p.a.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
	for (i = 4; i < 7; i++) {
		send_id(&p.a, i);
		poll_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
	}
	/* Receiving continues, with requests posted before and after the error. */
	REQUIRE_OK(post_recv(&p.a, 201, NULL, 0));
	for (i = 0; i < 2; i++) {
		send_id(&p.b, i);
		poll_ok(p.b.send_cq, i);
		poll_ok(p.a.recv_cq, 200 + i);
	}
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_SQE);
	CHECK_ERR(set_state(p.a.qp, IBV_QPS_SQD), EINVAL);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	send_id(&p.a, 7);
	poll_ok(p.a.send_cq, 7);
	poll_ok(p.b.recv_cq, 100);
	poll_ok(p.b.recv_cq, 101);
	poll_none(p.a.send_cq);
	poll_empty(p.b.recv_cq);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
}

TEST(sqe_to_err, "A-095 A-096 I-044 a receive error, in SQE and in RTS")
{
	struct pair p;
	struct ibv_sge bad = { .addr = 64, .length = 100, .lkey = 0x77 };
	struct buf b;
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_send(1, &sge, 1);
	int in_sqe;

	for (in_sqe = 0; in_sqe < 2; in_sqe++) {
		p = uc_pair(dev_open_qhca());
		b = buf_new(p.dev->pd, 64, LOCAL);
		sge = buf_sge(&b, 0, 64);
		REQUIRE_OK(post_recv(&p.b, 10, &bad, 1));
		REQUIRE_OK(post_recv(&p.b, 11, NULL, 0));
		if (in_sqe)
			qp_spoil(&p.b);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
		poll_expect(p.b.recv_cq, 10, IBV_WC_LOC_PROT_ERR);
		poll_expect(p.b.recv_cq, 11, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
		CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
		send_id(&p.a, 2);
		poll_ok(p.a.send_cq, 2);
	}
}

enum drop { BAD_RKEY, OUT_OF_RANGE, NO_RIGHT, NO_RR, RR_SMALL, IMM_NO_RR };

static const struct {
	const char *name;
	enum drop why;
} drops[] = {
	{ "bad R_Key", BAD_RKEY },
	{ "a byte out of range", OUT_OF_RANGE },
	{ "WRITE not enabled", NO_RIGHT },
	{ "no receive request", NO_RR },
	{ "receive request too small", RR_SMALL },
	{ "WRITE_WITH_IMM without receive request", IMM_NO_RR },
};

TEST_ROWS(dropped, "D-072 I-043 dropped, with success at the sender", drops)
{
	struct pair p = uc_pair(dev_open_qhca());
	struct buf src = buf_new(p.dev->pd, 4096, LOCAL);
	struct buf dst = buf_new(p.dev->pd, 4096, REMOTE);
	struct ibv_sge out = buf_sge(&src, 0, 4096), in = buf_sge(&dst, 0, 4095);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &out, 1,
					(uintptr_t)dst.addr, dst.mr->rkey);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	uint64_t before = hw_counter("rx_refused");

	fill(dst.addr, 4096, 9);
	switch (row->why) {
	case BAD_RKEY:
		wr.wr.rdma.rkey ^= 1;
		break;
	case OUT_OF_RANGE:
		wr.wr.rdma.remote_addr++;
		break;
	case NO_RIGHT:
		REQUIRE_OK(ibv_modify_qp(p.b.qp, &a, IBV_QP_STATE |
						     IBV_QP_ACCESS_FLAGS));
		break;
	case RR_SMALL:
		REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
		wr.opcode = IBV_WR_SEND;
		break;
	case NO_RR:
		wr.opcode = IBV_WR_SEND;
		break;
	case IMM_NO_RR:
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		break;
	}
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_none(p.b.recv_cq);
	CHECK_EQ(hw_counter("rx_refused"), before + 1);
	if (row->why < NO_RR)
		check_fill(dst.addr, 4096, 9, "target");
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
	if (row->why == RR_SMALL) {	/* the next message takes it */
		send_id(&p.a, 3);
		poll_ok(p.a.send_cq, 3);
		CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, 0);
	}
	ping_pong(&p);
}

static const struct {
	const char *name;
	enum ibv_qp_state state;
} deaf[] = {
	{ "RESET", IBV_QPS_RESET }, { "INIT", IBV_QPS_INIT },
	{ "ERR", IBV_QPS_ERR },
};

TEST_ROWS(no_peer, "A-001 A-002 A-007 B-061 the peer is in", deaf)
{
	struct dev *d = dev_open();
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end a, b;

	o.type = IBV_QPT_UC;
	a = end_new(d, &o);
	b = end_new(d, &o);
	c.dest_qpn = b.qp->qp_num;
	qp_bring(&a, &c, IBV_QPS_RTS);
	c.dest_qpn = a.qp->qp_num;
	qp_bring(&b, &c, row->state);
	send_id(&a, 1);
	poll_ok(a.send_cq, 1);
	CHECK_EQ(get_state(a.qp), IBV_QPS_RTS);
	CHECK_EQ(get_state(b.qp), row->state);
}

TEST(comm_est, "A-081 A-082 H-005 COMM_EST of a UC QP, once")
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end a, b;

	o.type = IBV_QPT_UC;
	a = end_new(d, &o);
	b = end_new(d, &o);
	c.dest_qpn = b.qp->qp_num;
	qp_bring(&a, &c, IBV_QPS_RTS);
	c.dest_qpn = a.qp->qp_num;
	qp_bring(&b, &c, IBV_QPS_RTR);
	ping(&a, &b);
	async_expect(d->ctx, IBV_EVENT_COMM_EST, b.qp);
	ping(&a, &b);
	async_none(d->ctx);
	CHECK_EQ(get_state(b.qp), IBV_QPS_RTR);
}

TEST(self, "D-085 a UC QP talks to itself")
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end e;

	o.type = IBV_QPT_UC;
	e = end_new(dev_open(), &o);
	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, IBV_QPS_RTS);
	ping(&e, &e);
}
