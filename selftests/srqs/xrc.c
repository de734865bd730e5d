// SPDX-License-Identifier: GPL-2.0
/*
 * XRC: work requests and completions of each operation, slots, objects in use. test_xrc.c and
 * test_xrc_bad.c of the engine have the packets, and what is refused.
 */
#include <fcntl.h>
#include <unistd.h>

#include "lib/xrc.h"

/* ---- traffic ---- */

static const struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode wc;
	bool message;		/* takes a receive WR */
} ops[] = {
	{ "B-001 SEND", IBV_WR_SEND, IBV_WC_SEND, true },
	{ "B-002 SEND with immediate data", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true },
	{ "B-004 RDMA WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false },
	{ "B-005 RDMA WRITE with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM,
	  IBV_WC_RDMA_WRITE, true },
	{ "B-006 RDMA READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false },
	{ "B-007 F-021 compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, false },
	{ "B-008 F-021 fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, false },
};

/* Expects the completion in the CQ of the SRQ, and in no other. */
static void expect_message(struct xrc *x, const struct op *op, uint32_t len)
{
	bool imm = op->opcode != IBV_WR_SEND;
	struct ibv_wc wc;

	if (!op->message) {
		poll_empty(x->srq.cq);
		return;
	}
	wc = poll_ok(x->srq.cq, 7);
	CHECK_EQ(wc.qp_num, x->p.b.qp->qp_num);
	CHECK_EQ(wc.byte_len, len);
	CHECK_EQ(wc.opcode, op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
			    IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, imm ? IBV_WC_WITH_IMM : 0);
	CHECK(!imm || wc.imm_data == htobe32(0x12345678));
	poll_empty(x->p.b.recv_cq);
}

static void transfer(struct xrc *x, const struct op *op, uint32_t len)
{
	uint8_t *to = x->buf.addr + XRC_HALF;
	uint64_t *word = (uint64_t *)to;
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(x, &sge, op->opcode, len);
	struct ibv_wc wc;

	wr.imm_data = htobe32(0x12345678);
	fill(x->buf.addr, XRC_HALF, 1);
	fill(to, XRC_HALF, 2);
	if (is_atomic(op->opcode)) {
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 9;
		*word = 5;
	}
	if (op->message)
		REQUIRE_OK(srq_post(x->srq.srq, 7, &x->buf, XRC_HALF, len));
	REQUIRE_OK(post_send(&x->p.a, &wr));
	wc = poll_ok(x->p.a.send_cq, wr.wr_id);
	CHECK_EQ(wc.qp_num, x->p.a.qp->qp_num);
	CHECK_EQ(wc.opcode, op->wc);
	expect_message(x, op, len);
	if (is_atomic(op->opcode)) {
		CHECK_EQ(*word, op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? 9 : 10);
		CHECK_EQ(*(uint64_t *)x->buf.addr, 5);
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		CHECK_EQ(wc.byte_len, len);
		check_fill(x->buf.addr, len, 2, "read");
	} else {
		check_fill(to, len, 1, "arrived");
	}
}

TEST_ROWS(operation, "G-012 a work request of each operation, its data and completions", ops)
{
	struct conn c = CONN;
	struct xrc x;

	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	x = xrc_new(dev_open(), &c);
	transfer(&x, row, is_atomic(row->opcode) ? 8 : 3000);
}

TEST(inline_data, "B-001 inline data and ibv_wr_set_xrc_srqn()")
{
	struct dev *d = dev_open();
	struct xrc x = xrc_new(d, &CONN);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = x.p.a.send_cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 32 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = d->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ,
	};
	struct pair p = { .dev = d, .b = x.p.b };
	struct ibv_qp_ex *ex;

	p.a = x.p.a;
	p.a.qp = ibv_create_qp_ex(d->ctx, &init);
	REQUIRE(p.a.qp);
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	pair_connect(&p, &CONN);
	ex = ibv_qp_to_qp_ex(p.a.qp);

	REQUIRE_OK(srq_post(x.srq.srq, 7, &x.buf, XRC_HALF, 32));
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, x.srq.srqn);
	ibv_wr_set_inline_data(ex, x.buf.addr, 32);
	ex->wr_id = 2;
	ibv_wr_rdma_read(ex, x.buf.mr->rkey, (uintptr_t)x.buf.addr);
	ibv_wr_set_xrc_srqn(ex, x.srq.srqn);
	ibv_wr_set_sge(ex, x.buf.mr->lkey, (uintptr_t)x.buf.addr + XRC_HALF + 64, 100);
	REQUIRE_OK(ibv_wr_complete(ex));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.a.send_cq, 2);
	poll_ok(x.srq.cq, 7);
	check_fill(x.buf.addr + XRC_HALF, 32, 1, "sent inline");
	check_fill(x.buf.addr + XRC_HALF + 64, 100, 1, "read");
}

TEST(slots, "G-002 A-013 the slots of an SRQ are used many times")
{
	struct xrc x = xrc_new(dev_open(), &CONN);
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, 32);
	int i, n;

	for (i = 0; i < 20; i++) {
		for (n = 0; n < 16; n++)
			REQUIRE_OK(srq_post(x.srq.srq, n, &x.buf, XRC_HALF, 32));
		CHECK_ERR(srq_post(x.srq.srq, n, &x.buf, XRC_HALF, 32), ENOMEM);
		for (n = 0; n < 16; n++) {
			REQUIRE_OK(post_send(&x.p.a, &wr));
			poll_ok(x.p.a.send_cq, wr.wr_id);
			poll_ok(x.srq.cq, n);
		}
	}
}

/* A CQ of several SRQs, one of which is destroyed with completions in the CQ. */
TEST(gone, "C-023 G-012 completions of a destroyed SRQ")
{
	struct dev *d = dev_open();
	struct xrc x = xrc_new(d, &CONN);
	struct ibv_srq *other = xsrq_try(d, x.xrcd, x.srq.cq);
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, 32);
	uint32_t srqn;
	int i;

	REQUIRE(other);
	REQUIRE_OK(ibv_get_srq_num(other, &srqn));
	for (i = 0; i < 8; i++) {
		REQUIRE_OK(srq_post(i & 1 ? other : x.srq.srq, i, &x.buf, XRC_HALF, 32));
		wr.qp_type.xrc.remote_srqn = i & 1 ? srqn : x.srq.srqn;
		REQUIRE_OK(post_send(&x.p.a, &wr));
		poll_ok(x.p.a.send_cq, wr.wr_id);
	}
	REQUIRE_OK(ibv_destroy_srq(other));
	for (i = 0; i < 8; i += 2)
		poll_ok(x.srq.cq, i);
	poll_empty(x.srq.cq);
}

/* A CQ that fails takes its SRQ with it. */
TEST(srq_err, "H-010 C-029 SRQ_ERR and CQ_ERR: the CQ of an SRQ has overrun")
{
	struct xrc x = xrc_new(dev_open_qhca(), &CONN);
	struct ibv_srq_attr attr = { .max_wr = 2 * x.srq.cq->cqe };
	int cq_errs = 0, srq_errs = 0, i;
	struct ibv_async_event ev;
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, 8);

	REQUIRE_OK(ibv_modify_srq(x.srq.srq, &attr, IBV_SRQ_MAX_WR));
	for (i = 0; i <= x.srq.cq->cqe; i++) {
		REQUIRE_OK(srq_post(x.srq.srq, i, &x.buf, 0, 8));
		REQUIRE_OK(post_send(&x.p.a, &wr));
		poll_get(x.p.a.send_cq);
	}
	while (async_wait(x.d->ctx, &ev, 5 * QUIET_MS)) {
		cq_errs += ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == x.srq.cq;
		srq_errs += ev.event_type == IBV_EVENT_SRQ_ERR && ev.element.srq == x.srq.srq;
	}
	CHECK_EQ(cq_errs, 1);
	CHECK_EQ(srq_errs, 1);
	CHECK_ERR(ibv_query_srq(x.srq.srq, &attr), EINVAL);	/* G-010 */
	CHECK_ERR(ibv_destroy_srq(x.srq.srq), 0);
	CHECK_ERR(ibv_destroy_cq(x.srq.cq), 0);
}

/* ---- objects ---- */

TEST(halves, "B-001 A-014 each QP has only one half")
{
	struct xrc x = xrc_new(dev_open_qhca(), &CONN);
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, 32);

	CHECK(post_send(&x.p.b, &wr));
	CHECK(post_recv(&x.p.a, 1, &sge, 1));
	CHECK(post_recv(&x.p.b, 1, &sge, 1));
}

TEST(use, "G-012 C-023 G-017 objects in use cannot be destroyed")
{
	struct dev *d = dev_open_qhca();
	struct xrc x = xrc_new(d, &CONN);

	CHECK_ERR(ibv_close_xrcd(x.xrcd), EBUSY);
	CHECK_ERR(ibv_destroy_cq(x.srq.cq), EBUSY);
	REQUIRE_OK(ibv_destroy_qp(x.p.b.qp));
	CHECK_ERR(ibv_close_xrcd(x.xrcd), EBUSY);
	REQUIRE_OK(ibv_destroy_srq(x.srq.srq));
	CHECK_ERR(ibv_destroy_cq(x.srq.cq), 0);
	CHECK_ERR(ibv_close_xrcd(x.xrcd), 0);
	CHECK_ERR(ibv_destroy_qp(x.p.a.qp), 0);
}

TEST(creation, "G-012 A-014 A-015 creation with wrong parameters")
{
	struct dev *d = dev_open_qhca();
	struct xrc x = xrc_new(d, &CONN);
	struct ibv_srq *basic = srq_new(d, 16, 1);
	struct ibv_qp_init_attr rc = {
		.send_cq = x.srq.cq,
		.recv_cq = x.srq.cq,
		.srq = x.srq.srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr_ex recv = { .qp_type = IBV_QPT_XRC_RECV };
	uint32_t num;

	CHECK(!xsrq_try(d, x.xrcd, NULL) && errno == EINVAL);
	CHECK(!xsrq_try(d, NULL, x.srq.cq) && errno == EINVAL);
	CHECK_ERR(ibv_get_srq_num(basic, &num), EINVAL);
	errno = 0;
	CHECK(!ibv_create_qp(d->pd, &rc) && errno == EINVAL);
	errno = 0;
	CHECK(!ibv_create_qp_ex(d->ctx, &recv) && errno == EINVAL);
	recv.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	recv.xrcd = x.xrcd;
	recv.send_ops_flags = IBV_QP_EX_WITH_SEND;
	errno = 0;
	CHECK(!ibv_create_qp_ex(d->ctx, &recv) && errno == EINVAL);
}

/* ---- query ---- */

TEST(query, "A-017 query of both QPs and of the SRQ")
{
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq;
	struct ibv_qp_attr a;
	struct xrc x;

	c.rd_atomic = 3;
	c.retry_cnt = 2;
	c.min_rnr_timer = 9;
	c.dest_rd_atomic = 5;
	x = xrc_new(d, &c);
	REQUIRE_OK(ibv_query_qp(x.p.a.qp, &a, 2 * IBV_QP_DEST_QPN - 1, &init));
	CHECK_EQ(init.qp_type, IBV_QPT_XRC_SEND);
	CHECK_EQ(init.cap.max_send_wr, x.p.a.cap.max_send_wr);
	CHECK_EQ(init.cap.max_recv_wr, 0);
	CHECK_EQ(a.qp_state, IBV_QPS_RTS);
	CHECK_EQ(a.max_rd_atomic, 3);
	CHECK_EQ(a.retry_cnt, 2);
	CHECK_EQ(a.dest_qp_num, x.p.b.qp->qp_num);
	REQUIRE_OK(ibv_query_qp(x.p.b.qp, &a, 2 * IBV_QP_DEST_QPN - 1, &init));
	CHECK_EQ(init.qp_type, IBV_QPT_XRC_RECV);
	CHECK_EQ(init.cap.max_send_wr, 0);
	CHECK_EQ(init.cap.max_recv_wr, 0);
	CHECK_EQ(a.qp_state, IBV_QPS_RTS);
	CHECK_EQ(a.max_dest_rd_atomic, 5);
	CHECK_EQ(a.min_rnr_timer, 9);
	CHECK_EQ(a.dest_qp_num, x.p.a.qp->qp_num);
	REQUIRE_OK(ibv_query_srq(x.srq.srq, &srq));
	CHECK_EQ(srq.max_wr, 16);
}
