// SPDX-License-Identifier: GPL-2.0
/*
 * Each attribute of a QP reaches the device in its own place, as what the QP then does shows: query
 * would also return two that have changed places. qp_attr.c has their values.
 */
#include "lib/window.h"

static void change(struct end *e, struct ibv_qp_attr *a, int mask)
{
	REQUIRE_OK(set_state(e->qp, IBV_QPS_SQD));
	a->qp_state = IBV_QPS_SQD;
	REQUIRE_OK(ibv_modify_qp(e->qp, a, IBV_QP_STATE | mask));
	REQUIRE_OK(set_state(e->qp, IBV_QPS_RTS));
}

static enum ibv_wc_status request(struct end *e, enum ibv_wr_opcode opcode, const struct buf *b)
{
	return rdma(e, opcode, b, 8, b->addr + 64, b->mr->rkey);
}

/* ---- retries ---- */

/* Four transmissions, each followed by a wait of one to four timeouts. */
TEST(timeout, "D-045 D-046 I-021 timeout and retry_cnt")
{
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	uint64_t timeouts = hw_counter("timeout");
	struct pair p;
	int64_t start;

	c.timeout = 13;		/* 33.6 ms */
	c.retry_cnt = 3;
	p = pair_new(d, &QP_OPTS, &c);
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	start = time_ms();
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK(time_ms() - start >= 4 * 33);
	CHECK(time_ms() - start <= 4 * 4 * 34 + 1000);
	CHECK_EQ(hw_counter("timeout") - timeouts, 4);
}

static const struct {
	const char *name;
	uint8_t timer;
	int64_t ms;		/* in both waits */
} rnr_timers[] = {
	{ "14", 14, 2 }, { "0, in SQD", 0, 1310 },
};

TEST_ROWS(rnr, "A-056 A-072 A-113 D-031 D-032 I-018 rnr_retry, and min_rnr_timer", rnr_timers)
{
	struct dev *d = dev_open_qhca();
	struct ibv_qp_attr a = { .min_rnr_timer = row->timer };
	uint64_t naks = hw_counter("rx_rnr_nak");
	struct conn c = CONN;
	struct pair p;
	int64_t start;

	c.rnr_retry = 2;
	c.min_rnr_timer = row->timer ? row->timer : 1;
	p = pair_new(d, &QP_OPTS, &c);
	if (!row->timer)
		change(&p.b, &a, IBV_QP_MIN_RNR_TIMER);
	start = time_ms();
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(time_ms() - start >= row->ms);
	CHECK_EQ(hw_counter("rx_rnr_nak") - naks, 3);
}

/* ---- numbers ---- */

/* A mistake that both ends make is one here: of the four PSNs only those from b to a match. */
TEST(psns, "D-001 D-002 sq_psn and rq_psn")
{
	struct dev *d = dev_open();
	struct pair p = { .dev = d, .a = end_new(d, &QP_OPTS), .b = end_new(d, &QP_OPTS) };
	struct conn a = CONN, b = CONN, c = CONN;

	a.dest_qpn = p.b.qp->qp_num;
	a.sq_psn = 1000;
	a.timeout = 8;
	a.retry_cnt = 1;
	b.dest_qpn = p.a.qp->qp_num;
	b.rq_psn = 900;
	qp_bring(&p.a, &a, IBV_QPS_RTS);
	qp_bring(&p.b, &b, IBV_QPS_RTS);
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	poll_none(p.b.recv_cq);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	c.sq_psn = 0xfffffe;
	c.rq_psn = 0x5a5a5a;
	pair_connect(&p, &c);
	ping_pong(&p);
}

static const struct {
	const char *name;
	enum ibv_mtu mtu;
} mtus[] = {
	{ "256", IBV_MTU_256 }, { "512", IBV_MTU_512 }, { "1024", IBV_MTU_1024 },
	{ "2048", IBV_MTU_2048 }, { "4096", IBV_MTU_4096 },
};

TEST_ROWS(mtu, "D-004 path_mtu: packets of a message, with", mtus)
{
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 8192, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 8192);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)b.addr,
					b.mr->rkey);
	struct conn c = CONN;
	uint64_t sent, acks;
	struct pair p;

	if (row->mtu > d->port.active_mtu)
		test_skip("the port's MTU is %u", mtu_bytes(d->port.active_mtu));
	c.mtu = row->mtu;
	p = pair_new(d, &QP_OPTS, &c);
	sent = hw_counter("tx_pkts");
	acks = hw_counter("tx_ack");
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	acks = hw_counter("tx_ack") - acks;
	CHECK_EQ(hw_counter("tx_pkts") - sent - acks, 8192 / mtu_bytes(row->mtu));
}

/* ---- rights and depths ---- */

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	int right;
} rights[] = {
	{ "WRITE", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ "READ", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ "atomics", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
};

TEST_ROWS(access, "A-072 A-111 I-013 each right is enough for, and needed by", rights)
{
	const int all = REMOTE | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_attr a = { .qp_access_flags = all & ~row->right };
	struct conn c = CONN;
	struct pair p;
	struct buf b;

	c.access = row->right;
	p = pair_new(dev_open_qhca(), &QP_OPTS, &c);
	b = buf_new(p.dev->pd, 4096, all);
	CHECK_EQ(request(&p.a, row->opcode, &b), IBV_WC_SUCCESS);
	REQUIRE_OK(ibv_modify_qp(p.b.qp, &a, IBV_QP_ACCESS_FLAGS));
	CHECK_EQ(request(&p.a, row->opcode, &b), IBV_WC_REM_INV_REQ_ERR);
	async_expect(p.dev->ctx, IBV_EVENT_QP_REQ_ERR, p.b.qp);
}

/* From 0, which allows no READ, to 1 and back, at one end after the other. */
TEST(depths, "A-056 A-072 A-113 D-067 D-068 max_rd_atomic and max_dest_rd_atomic")
{
	const int mask[] = { IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC };
	const int status[] = { IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_INV_REQ_ERR };
	struct ibv_qp_attr one = { .max_rd_atomic = 1, .max_dest_rd_atomic = 1 }, none = { 0 };
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 4096, REMOTE);
	struct conn c = CONN;
	struct pair p;
	int i;

	for (i = 0; i < 2; i++) {
		c.rd_atomic = i;
		c.dest_rd_atomic = !i;
		p = pair_new(d, &QP_OPTS, &c);
		change(i ? &p.b : &p.a, &one, mask[i]);
		CHECK_EQ(request(&p.a, IBV_WR_RDMA_READ, &b), IBV_WC_SUCCESS);
		change(i ? &p.b : &p.a, &none, mask[i]);
		CHECK_EQ(request(&p.a, IBV_WR_RDMA_READ, &b), status[i]);
	}
}

/* ---- addresses ---- */

/* Finds a GID of the port that is of the other address family. */
static bool other_gid(struct dev *d, struct ibv_gid_entry *found)
{
	struct ibv_gid_entry e[256];
	ssize_t i, n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);

	for (i = 0; i < n; i++) {
		if (e[i].port_num != PORT || e[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    e[i].gid.raw[0] != 0xfe)
			continue;
		*found = e[i];
		return true;
	}
	return false;
}

static void move(struct end *e, const union ibv_gid *gid, uint32_t index)
{
	struct ibv_qp_attr a = {
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 64,
				 .traffic_class = 0x48, .flow_label = 0x12345 },
		},
	}, got;
	struct ibv_qp_init_attr init;

	change(e, &a, IBV_QP_AV);
	REQUIRE_OK(ibv_query_qp(e->qp, &got, IBV_QP_AV, &init));
	CHECK(!memcmp(&got.ah_attr.grh.dgid, gid, sizeof(*gid)));
	CHECK_EQ(got.ah_attr.grh.sgid_index, index);
	CHECK_EQ(got.ah_attr.grh.traffic_class, 0x48);
	CHECK_EQ(got.ah_attr.grh.flow_label, 0x12345);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wc_status lost;	/* of a message that does not arrive */
} connected[] = {
	{ "RC", IBV_QPT_RC, IBV_WC_RETRY_EXC_ERR },
	{ "UC", IBV_QPT_UC, IBV_WC_SUCCESS },
};

/*
 * Both ends move from IPv4 to IPv6, then one moves back. A QP accepts packets of its peer's address
 * only. Uverbs adds to the AV the port, which UC may not change in SQD: the driver leaves it out.
 */
TEST_ROWS(address, "A-056 A-057 A-072 A-113 D-083 a connection moves to other addresses", connected)
{
	struct ibv_gid_entry gid = { 0 };
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct pair p;

	o.type = row->type;
	c.retry_cnt = 3;
	p = pair_new(dev_open_qhca(), &o, &c);
	if (!other_gid(p.dev, &gid))
		test_skip("no link-local address");
	ping_pong(&p);
	move(&p.b, &gid.gid, gid.gid_index);
	move(&p.a, &gid.gid, gid.gid_index);
	ping_pong(&p);
	move(&p.a, &p.dev->gid, p.dev->gid_index);
	REQUIRE_OK(post_recv(&p.b, 3, NULL, 0));
	send_id(&p.a, 1);
	poll_expect(p.a.send_cq, 1, row->lost);
	poll_none(p.b.recv_cq);
}
