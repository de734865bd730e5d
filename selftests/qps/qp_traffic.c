// SPDX-License-Identifier: GPL-2.0
/* Effects of the states of an RC QP on requests and messages: conformance A.4. */

#include "lib/rdma.h"

static int modify(struct end *e, enum ibv_qp_state state, int more,
		  struct ibv_qp_attr *a)
{
	a->qp_state = state;
	return ibv_modify_qp(e->qp, a, IBV_QP_STATE | more);
}

/* Makes two QPs that are connected to each other, each in its own state. */
static struct pair pair_in(enum ibv_qp_state a, enum ibv_qp_state b)
{
	struct dev *d = dev_open();
	struct pair p = { .dev = d, .a = end_new(d, &QP_OPTS),
			  .b = end_new(d, &QP_OPTS) };
	struct conn c = CONN;

	c.dest_qpn = p.b.qp->qp_num;
	qp_bring(&p.a, &c, a);
	c.dest_qpn = p.a.qp->qp_num;
	qp_bring(&p.b, &c, b);
	return p;
}

static void recv_ids(struct end *e, uint64_t from, int n)
{
	while (n--)
		REQUIRE_OK(post_recv(e, from++, NULL, 0));
}

TEST(responder, "A-003 A-081 a QP in RTR answers all requests")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTR);
	struct buf b = buf_new(p.dev->pd, 20000, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 10000);
	const enum ibv_wr_opcode opcode[] = { IBV_WR_RDMA_WRITE,
					      IBV_WR_RDMA_READ };
	size_t i;

	fill(b.addr, 10000, 1);
	for (i = 0; i < ARRAY_SIZE(opcode); i++) {
		struct ibv_send_wr wr = wr_rdma(i, opcode[i], &sge, 1,
						(uintptr_t)b.addr + 10000,
						b.mr->rkey);

		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, i);
		if (!i)
			memset(b.addr, 0, 10000);
	}
	check_fill(b.addr, 10000, 1, "written and read back");
	ping(&p.a, &p.b);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTR);
}

TEST(failed_early, "A-018 a QP that has failed in RTR does not become RTS, until it was reset")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTR);
	struct buf b = buf_new(p.dev->pd, 4096, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 4096);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)b.addr,
					b.mr->rkey ^ 0x100);
	struct conn c = CONN;
	struct ibv_qp_attr a;
	int mask = attr_mask(p.b.qp->qp_type, attr_rts(&a, &c));

	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_modify_qp(p.b.qp, &a, mask), EINVAL);
	CHECK_ERR(ibv_modify_qp(p.b.qp, &a, mask), EINVAL);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_ERR);
	CHECK_ERR(ibv_modify_qp(p.b.qp, &a, mask), EINVAL);
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	c.dest_qpn = p.b.qp->qp_num;
	qp_bring(&p.b, &c, IBV_QPS_RTS);
	ping(&p.b, &p.b);
}

TEST(comm_est, "A-082 H-005 COMM_EST: once, in RTR, and not in RTS")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTR);
	struct pair q;

	if (!p.dev->qhca)
		test_skip("qhca only");
	ping(&p.a, &p.b);
	async_expect(p.dev->ctx, IBV_EVENT_COMM_EST, p.b.qp);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTR);
	ping(&p.a, &p.b);
	async_none(p.dev->ctx);
	q = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);
	ping_pong(&q);
	async_none(q.dev->ctx);
}

TEST(held, "A-005 A-087 sends posted in SQD wait, and start in order in RTS")
{
	struct pair p = pair_in(IBV_QPS_SQD, IBV_QPS_RTS);
	int i;

	recv_ids(&p.b, 100, 5);
	for (i = 0; i < 5; i++)
		send_id(&p.a, i);
	poll_none(p.a.send_cq);
	poll_none(p.b.recv_cq);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_SQD);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	for (i = 0; i < 5; i++) {
		poll_ok(p.a.send_cq, i);
		poll_ok(p.b.recv_cq, 100 + i);
	}
}

TEST(drained, "A-085 H-006 SQ_DRAINED: at once on an idle queue, if requested")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);
	struct ibv_qp_attr a = { .en_sqd_async_notify = 1 };

	if (!p.dev->qhca)
		test_skip("qhca only");
	REQUIRE_OK(modify(&p.a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, &a));
	async_expect(p.dev->ctx, IBV_EVENT_SQ_DRAINED, p.a.qp);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_SQD));
	async_none(p.dev->ctx);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	a.en_sqd_async_notify = 0;
	REQUIRE_OK(modify(&p.a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, &a));
	async_none(p.dev->ctx);
}

static int draining(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	REQUIRE_OK(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init));
	return a.sq_draining;
}

/* Makes a pair whose end a has a message in flight that the peer has no room for. */
static struct pair pair_busy(void)
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);

	if (!p.dev->qhca)
		test_skip("qhca only");
	send_id(&p.a, 1);
	poll_none(p.a.send_cq);
	return p;
}

TEST(draining_message, "A-019 A-084 A-085 A-088 SQD while a message is in flight")
{
	struct pair p = pair_busy();
	struct ibv_qp_attr a = { .en_sqd_async_notify = 1 };

	REQUIRE_OK(modify(&p.a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, &a));
	send_id(&p.a, 2);
	CHECK_EQ(draining(&p.a), 1);
	async_none(p.dev->ctx);
	CHECK(set_state(p.a.qp, IBV_QPS_RTS));
	CHECK(set_state(p.a.qp, IBV_QPS_SQD));
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_SQD);
	recv_ids(&p.b, 100, 2);
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 100);
	async_expect(p.dev->ctx, IBV_EVENT_SQ_DRAINED, p.a.qp);
	async_none(p.dev->ctx);
	CHECK_EQ(draining(&p.a), 0);
	poll_none(p.a.send_cq);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	poll_ok(p.a.send_cq, 2);
	poll_ok(p.b.recv_cq, 101);
}

TEST(drain_to_err, "A-088 A-114 SQD to ERR while a message is in flight")
{
	struct pair p = pair_busy();

	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_SQD));
	send_id(&p.a, 2);
	recv_ids(&p.a, 10, 2);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_ERR));
	poll_expect(p.a.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
	poll_expect(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
	poll_expect(p.a.recv_cq, 10, IBV_WC_WR_FLUSH_ERR);
	poll_expect(p.a.recv_cq, 11, IBV_WC_WR_FLUSH_ERR);
	poll_none(p.a.send_cq);
}

TEST(drain_to_reset, "A-088 SQD to RESET while a message is in flight")
{
	struct pair p = pair_busy();

	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_SQD));
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	poll_none(p.a.send_cq);
	pair_connect(&p, &CONN);
	ping_pong(&p);
}

TEST(drain_fails, "A-090 retries run out in SQD: ERR, and no SQ_DRAINED")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_INIT);
	struct ibv_qp_attr a = { .en_sqd_async_notify = 1 };

	if (!p.dev->qhca)
		test_skip("qhca only");
	send_id(&p.a, 1);
	REQUIRE_OK(modify(&p.a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, &a));
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_ERR);
	async_none(p.dev->ctx);
}

TEST(sqd_receives, "A-089 in SQD the receive side continues")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_SQD);
	struct buf b = buf_new(p.dev->pd, 8192, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 4000);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1,
					(uintptr_t)b.addr + 4096, b.mr->rkey);

	ping(&p.a, &p.b);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	ping(&p.a, &p.b);
}

TEST(flush, "A-007 A-097 A-098 A-099 ERR flushes both queues in order")
{
	struct pair p = pair_in(IBV_QPS_SQD, IBV_QPS_RTS);
	struct ibv_send_wr quiet = wr_send(2, NULL, 0);
	int i;

	quiet.send_flags = 0;
	send_id(&p.a, 1);
	REQUIRE_OK(post_send(&p.a, &quiet));
	recv_ids(&p.a, 10, 3);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_ERR));
	/* Post one more request behind each queue, whose completion marks the end. */
	send_id(&p.a, 3);
	recv_ids(&p.a, 13, 1);
	for (i = 1; i <= 3; i++)
		poll_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
	for (i = 10; i <= 13; i++)
		poll_expect(p.a.recv_cq, i, IBV_WC_WR_FLUSH_ERR);
	/* moving to ERR again has no effect. */
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_ERR));
	poll_none(p.a.send_cq);
	poll_empty(p.a.recv_cq);
}

TEST(no_write_after_flush, "A-100 the buffer of a flushed request does not change")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);
	struct buf src = buf_new(p.dev->pd, 100000, LOCAL);
	struct buf dst = buf_new(p.dev->pd, 100000, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, src.len);
	struct ibv_sge in = buf_sge(&dst, 0, dst.len);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	fill(src.addr, src.len, 1);
	REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_ERR));
	poll_expect(p.b.recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
	fill(dst.addr, dst.len, 2);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	check_fill(dst.addr, dst.len, 2, "buffer of the flushed request");
}

TEST(reset_discards, "A-103 A-104 RESET discards queued requests")
{
	struct pair p = pair_in(IBV_QPS_SQD, IBV_QPS_RTS);
	int i;

	for (i = 0; i < 8; i++)
		send_id(&p.a, i);
	recv_ids(&p.a, 100, 8);
	recv_ids(&p.b, 200, 3);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	poll_none(p.a.send_cq);
	poll_none(p.a.recv_cq);
	poll_empty(p.b.recv_cq);
	pair_connect(&p, &CONN);
	ping_pong(&p);
	/* All slots are free again. */
	recv_ids(&p.a, 300, p.a.cap.max_recv_wr);
}

TEST(reset_loop, "A-105 100 lives of a QP, with new PSNs and new peers")
{
	struct dev *d = dev_open();
	struct end e[3];
	struct conn c = CONN;
	struct pair p = { .dev = d };
	int i;

	for (i = 0; i < 3; i++)
		e[i] = end_new(d, &QP_OPTS);
	for (i = 0; i < 100; i++) {
		p.a = e[i % 3];
		p.b = e[(i + 1) % 3];
		c.sq_psn = i * 0x23456 & 0xffffff;
		c.rq_psn = ~c.sq_psn & 0xffffff;
		pair_connect(&p, &c);
		ping_pong(&p);
		REQUIRE_OK(set_state(p.a.qp, i & 1 ? IBV_QPS_ERR : IBV_QPS_RESET));
		REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
		REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	}
}

TEST(rights, "A-072 A-111 rights withdrawn in RTS are missing for the next request")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);
	struct buf b = buf_new(p.dev->pd, 64, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 8);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr + 32, b.mr->rkey);
	struct ibv_qp_attr a = { .qp_access_flags = LOCAL };

	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	REQUIRE_OK(modify(&p.b, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS, &a));
	a.qp_access_flags = REMOTE;
	REQUIRE_OK(modify(&p.b, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS, &a));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	a.qp_access_flags = LOCAL;
	REQUIRE_OK(modify(&p.b, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS, &a));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
}

TEST(sqd_attributes, "A-056 A-072 A-113 attributes changed from SQD to SQD take effect")
{
	struct pair p = pair_in(IBV_QPS_SQD, IBV_QPS_RTS);
	struct ibv_qp_attr a = { .timeout = 8, .retry_cnt = 1 }, got;
	struct ibv_qp_init_attr init;
	int64_t start;

	if (!p.dev->qhca)
		test_skip("qhca only");
	REQUIRE_OK(modify(&p.a, IBV_QPS_SQD, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT,
			  &a));
	REQUIRE_OK(ibv_query_qp(p.a.qp, &got, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT,
				&init));
	CHECK_EQ(got.timeout, 8);
	CHECK_EQ(got.retry_cnt, 1);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	ping_pong(&p);
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_ERR));
	start = time_ms();
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	/* 2 times 1 ms to 2 times 4 ms; with the old values it would be 8 times 67 ms. */
	CHECK(time_ms() - start < 300);
}

static const struct {
	const char *name;
	enum ibv_qp_state state;
} ends[] = {
	{ "RESET", IBV_QPS_RESET }, { "INIT", IBV_QPS_INIT },
	{ "RTR", IBV_QPS_RTR }, { "RTS", IBV_QPS_RTS },
	{ "SQD", IBV_QPS_SQD }, { "ERR", IBV_QPS_ERR },
};

TEST_ROWS(destroy, "A-020 destroy, with work queued, from", ends)
{
	struct pair p = pair_in(row->state, IBV_QPS_RTS);

	if (row->state != IBV_QPS_RESET)
		recv_ids(&p.a, 1, 3);
	if (row->state >= IBV_QPS_RTS)
		send_id(&p.a, 4);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	CHECK_ERR(ibv_destroy_cq(p.a.send_cq), 0);
	CHECK_ERR(ibv_destroy_cq(p.a.recv_cq), 0);
	CHECK_ERR(ibv_destroy_cq(p.b.send_cq), 0);
	CHECK_ERR(ibv_destroy_cq(p.b.recv_cq), 0);
	CHECK_ERR(ibv_dealloc_pd(p.dev->pd), 0);
	CHECK_ERR(ibv_close_device(p.dev->ctx), 0);
}
