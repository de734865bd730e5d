// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable connections: receivers that are not ready, peers that do not answer, and errors in the
 * middle of a queue.
 */
#include <stdlib.h>

#include "lib/rdma.h"

static struct ibv_sge sge_of(struct buf *b)
{
	return buf_sge(b, 0, b->len);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	int rnr_retry, timer;
} not_ready[] = {
	{ "I-018 SEND, no retry", IBV_WR_SEND, 0, 1 },
	{ "I-018 SEND, 1 retry", IBV_WR_SEND, 1, 14 },
	{ "I-018 SEND, 6 retries", IBV_WR_SEND, 6, 12 },
	{ "I-020 WRITE_WITH_IMM, no retry", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1 },
	{ "I-020 WRITE_WITH_IMM, 2 retries", IBV_WR_RDMA_WRITE_WITH_IMM, 2, 12 },
};

/* Delays of D-035 to D-038 in microseconds, for the codes used here. */
static unsigned int rnr_us(int code)
{
	switch (code) {
	case 1:
		return 10;
	case 12:
		return 640;
	case 14:
		return 1280;
	default:
		return 0;
	}
}

TEST_ROWS(rnr, "D-031 D-032 no receive request", not_ready)
{
	struct dev *d = dev_open();
	struct buf b = buf_new(d->pd, 100, REMOTE);
	struct ibv_sge sge = sge_of(&b);
	struct ibv_send_wr wr = wr_rdma(1, row->opcode, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey);
	uint64_t naks = 0;
	struct conn c = CONN;
	struct pair p;
	int64_t start;

	c.rnr_retry = row->rnr_retry;
	c.min_rnr_timer = row->timer;
	p = pair_new(d, &QP_OPTS, &c);
	if (d->qhca)
		naks = hw_counter("rx_rnr_nak");
	start = time_ms();
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK((time_ms() - start + 1) * 1000 >=
	      row->rnr_retry * rnr_us(row->timer));
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_ERR);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
	poll_none(p.b.recv_cq);
	if (d->qhca)
		CHECK_EQ(hw_counter("rx_rnr_nak") - naks, row->rnr_retry + 1);
}

TEST(rnr_forever, "I-019 D-032 with an RNR retry count of 7 no receive request is too late")
{
	struct dev *d = dev_open();
	struct buf src = buf_new(d->pd, 5000, LOCAL);
	struct buf dst = buf_new(d->pd, 5000, LOCAL);
	struct ibv_sge out = sge_of(&src), in = sge_of(&dst);
	struct ibv_send_wr wr = wr_send(1, &out, 1);
	struct conn c = CONN;
	struct pair p;

	c.min_rnr_timer = 14;
	c.retry_cnt = 1;
	c.timeout = 10;		/* D-033: does not run during an RNR wait */
	p = pair_new(d, &QP_OPTS, &c);
	fill(src.addr, src.len, 1);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_none(p.a.send_cq);
	sleep_ms(300);
	poll_none(p.a.send_cq);
	REQUIRE_OK(post_recv(&p.b, 2, &in, 1));
	poll_ok(p.b.recv_cq, 2);
	poll_ok(p.a.send_cq, 1);
	check_fill(dst.addr, dst.len, 1, "message");
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
	ping_pong(&p);
}

TEST(rnr_reload, "D-034 the RNR retry counter starts again with every message")
{
	struct dev *d = dev_open();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;
	struct pair p;
	int i;

	c.min_rnr_timer = 26;	/* 81.92 ms */
	c.rnr_retry = 2;
	p = pair_new(d, &QP_OPTS, &c);
	for (i = 0; i < 4; i++) {
		REQUIRE_OK(post_send(&p.a, &wr));
		sleep_ms(20);
		REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
		poll_ok(p.b.recv_cq, 2);
		poll_ok(p.a.send_cq, 1);
	}
}

static const struct {
	const char *name;
	int state;	/* state of the peer; -1: destroyed */
} peers[] = {
	{ "peer destroyed", -1 },
	{ "peer in RESET", IBV_QPS_RESET },
	{ "peer in INIT", IBV_QPS_INIT },
	{ "peer in ERR", IBV_QPS_ERR },
};

TEST_ROWS(no_peer, "I-021 D-045 D-046 A-020 no answer", peers)
{
	struct dev *d = dev_open();
	struct end a = end_new(d, &QP_OPTS), b = end_new(d, &QP_OPTS);
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;
	uint64_t timeouts = 0;
	int64_t start, took;

	c.timeout = 13;		/* 33.6 ms */
	c.retry_cnt = 3;
	c.dest_qpn = b.qp->qp_num;
	qp_bring(&a, &c, IBV_QPS_RTS);
	if (row->state < 0)
		REQUIRE_OK(ibv_destroy_qp(b.qp));
	else
		qp_bring(&b, &c, row->state);
	if (d->qhca)
		timeouts = hw_counter("timeout");
	start = time_ms();
	REQUIRE_OK(post_send(&a, &wr));
	poll_expect(a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	took = time_ms() - start;
	CHECK_EQ(get_state(a.qp), IBV_QPS_ERR);
	/* Four transmissions, each followed by a wait of one to four timeouts. */
	CHECK(took >= 4 * 33);
	if (d->qhca) {
		CHECK(took <= 4 * 4 * 34 + 1000);
		CHECK_EQ(hw_counter("timeout") - timeouts, 4);
	}
}

TEST(no_timeout, "D-045 timeout 0 waits for ever")
{
	struct dev *d = dev_open();
	struct end a = end_new(d, &QP_OPTS), b = end_new(d, &QP_OPTS);
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;

	c.timeout = 0;
	c.dest_qpn = b.qp->qp_num;
	qp_bring(&a, &c, IBV_QPS_RTS);
	REQUIRE_OK(post_send(&a, &wr));
	sleep_ms(500);
	poll_none(a.send_cq);
	CHECK_EQ(get_state(a.qp), IBV_QPS_RTS);
	REQUIRE_OK(set_state(a.qp, IBV_QPS_ERR));
	poll_expect(a.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
}

TEST(late_peer, "I-023 a peer that appears within the retries is reached")
{
	struct dev *d = dev_open();
	struct pair p = { .dev = d, .a = end_new(d, &QP_OPTS),
			  .b = end_new(d, &QP_OPTS) };
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;

	c.timeout = 16;		/* 268 ms */
	c.dest_qpn = p.b.qp->qp_num;
	qp_bring(&p.a, &c, IBV_QPS_RTS);
	REQUIRE_OK(post_send(&p.a, &wr));
	sleep_ms(100);
	c.dest_qpn = p.a.qp->qp_num;
	qp_bring(&p.b, &c, IBV_QPS_INIT);
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	struct ibv_qp_attr a;
	int mask = attr_rtr(&a, d, &c);

	REQUIRE_OK(ibv_modify_qp(p.b.qp, &a, mask));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
}

TEST(idle, "D-047 an idle connection does not time out")
{
	struct dev *d = dev_open();
	struct conn c = CONN;
	struct pair p;

	c.timeout = 8;		/* 1 ms */
	c.retry_cnt = 0;
	p = pair_new(d, &QP_OPTS, &c);
	ping_pong(&p);
	sleep_ms(500);
	ping_pong(&p);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
}

TEST(middle, "I-052 an error in the middle: success before it, flush behind it")
{
	const int n = 12, bad = 5;
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, 256, REMOTE);
	struct ibv_sge sge = sge_of(&b);
	struct ibv_send_wr wr[12];
	int i;

	for (i = 0; i < n; i++) {
		wr[i] = wr_rdma(i, IBV_WR_RDMA_WRITE, &sge, 1,
				(uintptr_t)b.addr, b.mr->rkey);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		if (i == bad)
			wr[i].wr.rdma.rkey ^= 0x100;
	}
	REQUIRE_OK(post_send(&p.a, wr));
	for (i = 0; i < bad; i++)
		poll_ok(p.a.send_cq, i);
	poll_expect(p.a.send_cq, bad, IBV_WC_REM_ACCESS_ERR);
	for (i = bad + 1; i < n; i++)
		poll_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
	poll_none(p.a.send_cq);
}

TEST(unsignaled_fails, "B-044 an unsignaled request that fails completes")
{
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, 256, REMOTE);
	struct ibv_sge sge = sge_of(&b);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey ^ 0x100);

	wr.send_flags = 0;
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

TEST(others, "I-001 an error of one QP does not affect others")
{
	struct dev *d = dev_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct pair q = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, 256, REMOTE);
	struct ibv_sge sge = sge_of(&b);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey ^ 0x100);

	REQUIRE_OK(post_send(&p.a, &wr));
	ping_pong(&q);
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ping_pong(&q);
}
