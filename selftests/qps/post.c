// SPDX-License-Identifier: GPL-2.0
/* Immediate errors: requests that posting refuses, and that queue nothing. */
#include <limits.h>
#include <stdlib.h>

#include "lib/rdma.h"

static const struct {
	const char *name;
	enum ibv_qp_state state;
	int send, recv;		/* errno */
} states[] = {
	{ "A-001 RESET", IBV_QPS_RESET, EINVAL, EINVAL },
	{ "A-002 INIT", IBV_QPS_INIT, EINVAL, 0 },
	{ "A-003 RTR", IBV_QPS_RTR, EINVAL, 0 },
	{ "A-004 RTS", IBV_QPS_RTS, 0, 0 },
	{ "A-005 SQD", IBV_QPS_SQD, 0, 0 },
	{ "A-007 ERR", IBV_QPS_ERR, 0, 0 },
};

TEST_ROWS(state, "B-021 posting lists of two in state", states)
{
	struct dev *d = dev_open();
	struct end e = end_in(d, &QP_OPTS, row->state);
	struct ibv_send_wr next = wr_send(3, NULL, 0);
	struct ibv_send_wr wr = wr_send(1, NULL, 0), *bad = NULL;
	struct ibv_recv_wr next_rr = { .wr_id = 4 };
	struct ibv_recv_wr rr = { .wr_id = 2, .next = &next_rr }, *bad_rr = NULL;

	wr.next = &next;
	CHECK_ERR(ibv_post_recv(e.qp, &rr, &bad_rr), row->recv);
	if (row->recv)
		CHECK(bad_rr == &rr);
	CHECK_ERR(ibv_post_send(e.qp, &wr, &bad), row->send);
	if (row->send) {
		CHECK(bad == &wr);
		poll_none(e.send_cq);
	}
	CHECK_EQ(get_state(e.qp), row->state);
}

#define OP(opcode)	(1ull << IBV_WR_##opcode)
#define CONNECTED	(OP(SEND) | OP(SEND_WITH_IMM) | OP(RDMA_WRITE) |	\
			 OP(RDMA_WRITE_WITH_IMM) | OP(LOCAL_INV))
#define RELIABLE	(CONNECTED | OP(RDMA_READ) | OP(SEND_WITH_INV) |	\
			 OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))

/*
 * The opcodes that ibv_post_send() accepts on each type of QP: conformance B.1. BIND_MW needs a
 * window (see mw.c), FLUSH members that struct ibv_send_wr lacks.
 */
static const struct {
	const char *name;
	enum ibv_qp_type type;
	uint64_t ops;
} offers[] = {
	{ "RC", IBV_QPT_RC, RELIABLE | OP(ATOMIC_WRITE) },
	{ "XRC_SEND", IBV_QPT_XRC_SEND, RELIABLE },
	{ "UC", IBV_QPT_UC, CONNECTED },
	{ "UD", IBV_QPT_UD, OP(SEND) | OP(SEND_WITH_IMM) },
};

static bool is_offered(uint64_t ops, int opcode)
{
	return opcode >= 0 && opcode < 64 && ops >> opcode & 1;
}

TEST_ROWS(opcode, "B-014 B-020 every opcode, QP type", offers)
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	int opcode, last = 40;

	o.type = row->type;
	for (opcode = -1; opcode <= last; opcode++) {
		struct ibv_send_wr wr = wr_send(1, NULL, 0), *bad = NULL;
		bool offered = is_offered(row->ops, opcode);
		struct end e;

		if (opcode == IBV_WR_BIND_MW)
			continue;
		/* Use ERR, where every posted request completes. */
		e = end_in(d, &o, IBV_QPS_ERR);
		wr.opcode = opcode == last ? INT_MAX : opcode;
		if (row->type == IBV_QPT_UD)
			wr.wr.ud.ah = own_ah(d, d->pd);
		if (ibv_post_send(e.qp, &wr, &bad) != (offered ? 0 : EINVAL))
			FAIL("opcode %d", wr.opcode);
		CHECK(offered || bad == &wr);
		if (offered)
			poll_expect(e.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
		poll_empty(e.send_cq);
		REQUIRE_OK(ibv_destroy_qp(e.qp));
	}
}

TEST(opcode_left, "B-020 a QP that has refused an opcode still works")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_TSO;
	CHECK_ERR(post_send(&p.a, &wr), EINVAL);
	wr.opcode = IBV_WR_FLUSH;
	CHECK_ERR(post_send(&p.a, &wr), EINVAL);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	ping_pong(&p);
}

TEST(sges, "B-024 A-013 as many SGEs as requested at creation, not one more")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 4096, LOCAL);
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = wr_send(1, sge, 0);
	struct pair p;
	uint32_t i;

	o.send_sge = 3;
	o.recv_sge = 5;
	p = pair_new(d, &o, &CONN);
	for (i = 0; i < ARRAY_SIZE(sge); i++)
		sge[i] = buf_sge(&b, i, 1);
	REQUIRE(p.a.cap.max_send_sge < 64 && p.b.cap.max_recv_sge < 64);
	CHECK_ERR(post_recv(&p.b, 2, sge, p.b.cap.max_recv_sge + 1), EINVAL);
	CHECK_ERR(post_recv(&p.b, 2, sge, -1), EINVAL);
	CHECK_ERR(post_recv(&p.b, 2, sge, p.b.cap.max_recv_sge), 0);
	wr.num_sge = p.a.cap.max_send_sge + 1;
	CHECK_ERR(post_send(&p.a, &wr), EINVAL);
	wr.num_sge = -1;
	CHECK_ERR(post_send(&p.a, &wr), EINVAL);
	wr.num_sge = p.a.cap.max_send_sge;
	CHECK_ERR(post_send(&p.a, &wr), 0);
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
}

TEST(inline_limit, "B-054 inline: the limit, and opcodes that cannot have it")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open();
	struct buf b = buf_new(d->pd, 8192, REMOTE);
	struct ibv_sge sge[2];
	struct ibv_send_wr wr;
	struct pair p;
	uint32_t max;

	o.send_sge = 2;
	o.inline_data = 100;
	p = pair_new(d, &o, &CONN);
	max = p.a.cap.max_inline_data;
	REQUIRE(max < 4096);
	sge[0] = buf_sge(&b, 0, max);
	sge[1] = buf_sge(&b, 0, 1);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, sge, 1, (uintptr_t)b.addr + 4096,
		     b.mr->rkey);
	wr.send_flags |= IBV_SEND_INLINE;
	CHECK_ERR(post_send(&p.a, &wr), 0);
	poll_ok(p.a.send_cq, 1);
	wr.num_sge = 2;
	CHECK(post_send(&p.a, &wr));
	/* The sum of these lengths is small modulo 2^32. */
	sge[0].length = 0xffffffff;
	sge[1].length = 2;
	CHECK(post_send(&p.a, &wr));
	sge[0].length = 8;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	if (d->qhca)
		CHECK_ERR(post_send(&p.a, &wr), EINVAL);
	poll_none(p.a.send_cq);
	ping_pong(&p);
}

TEST(full_send, "B-023 B-077 A-013 a full send queue")
{
	struct dev *d = dev_open();
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_SQD);
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	uint32_t i;

	for (i = 0; i < e.cap.max_send_wr; i++) {
		wr.wr_id = i;
		REQUIRE_OK(post_send(&e, &wr));
	}
	CHECK_ERR(post_send(&e, &wr), ENOMEM);
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	/* A slot is free when its completion has been polled, not before. */
	if (d->qhca)
		CHECK_ERR(post_send(&e, &wr), ENOMEM);
	poll_expect(e.send_cq, 0, IBV_WC_WR_FLUSH_ERR);
	wr.wr_id = 1000;
	CHECK_ERR(post_send(&e, &wr), 0);
	if (d->qhca)
		CHECK_ERR(post_send(&e, &wr), ENOMEM);
	for (i = 1; i < e.cap.max_send_wr; i++)
		poll_expect(e.send_cq, i, IBV_WC_WR_FLUSH_ERR);
	poll_expect(e.send_cq, 1000, IBV_WC_WR_FLUSH_ERR);
}

TEST(full_recv, "B-023 B-077 A-013 a full receive queue")
{
	struct dev *d = dev_open();
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_INIT);
	uint32_t i;

	for (i = 0; i < e.cap.max_recv_wr; i++)
		REQUIRE_OK(post_recv(&e, i, NULL, 0));
	CHECK_ERR(post_recv(&e, i, NULL, 0), ENOMEM);
	REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	if (d->qhca)
		CHECK_ERR(post_recv(&e, 1000, NULL, 0), ENOMEM);
	poll_expect(e.recv_cq, 0, IBV_WC_WR_FLUSH_ERR);
	CHECK_ERR(post_recv(&e, 1000, NULL, 0), 0);
	if (d->qhca)
		CHECK_ERR(post_recv(&e, 1001, NULL, 0), ENOMEM);
	for (i = 1; i < e.cap.max_recv_wr; i++)
		poll_expect(e.recv_cq, i, IBV_WC_WR_FLUSH_ERR);
	poll_expect(e.recv_cq, 1000, IBV_WC_WR_FLUSH_ERR);
}

TEST(bad_in_list, "B-022 a list stops at its first bad request")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_recv_wr rr[4] = { 0 }, *bad_rr = NULL;
	int i;

	for (i = 0; i < 4; i++) {
		wr[i] = wr_send(i, NULL, 0);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
		rr[i].wr_id = i;
		rr[i].next = i < 3 ? &rr[i + 1] : NULL;
	}
	wr[2].num_sge = 1000;
	rr[2].num_sge = 1000;
	CHECK_ERR(ibv_post_recv(p.b.qp, rr, &bad_rr), EINVAL);
	CHECK(bad_rr == &rr[2]);
	CHECK_ERR(ibv_post_send(p.a.qp, wr, &bad), EINVAL);
	CHECK(bad == &wr[2]);
	for (i = 0; i < 2; i++) {
		poll_ok(p.b.recv_cq, i);
		poll_ok(p.a.send_cq, i);
	}
	poll_none(p.a.send_cq);
	poll_none(p.b.recv_cq);
	ping_pong(&p);
}

TEST(flags, "B-055 flags without meaning have no effect or are refused")
{
	struct pair p = pair_default();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	int err;

	wr.send_flags |= IBV_SEND_IP_CSUM | 1 << 20;
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	err = post_send(&p.a, &wr);
	if (!err) {
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.b.recv_cq, 2);
	} else {
		CHECK_EQ(err, EINVAL);
	}
}

TEST(no_queue, "B-023 a queue of size 0 is always full")
{
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct pair p;

	o.recv_wr = 0;
	o.recv_sge = 0;
	p = pair_new(dev_open_qhca(), &o, &CONN);
	CHECK_ERR(post_recv(&p.b, 1, NULL, 0), ENOMEM);
	o = QP_OPTS;
	o.send_wr = 0;
	o.send_sge = 0;
	p = pair_new(p.dev, &o, &CONN);
	CHECK_ERR(post_send(&p.b, &wr), ENOMEM);
}
