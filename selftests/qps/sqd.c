// SPDX-License-Identifier: GPL-2.0
/*
 * The purpose of SQD: attributes of a live connection change, and take effect for everything sent
 * or received afterwards. qp_traffic.c tests timeout and retry_cnt; test_sqd.c of the engine looks
 * at the frames.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "lib/rdma.h"

static void change(struct end *e, struct ibv_qp_attr *a, int mask)
{
	REQUIRE_OK(set_state(e->qp, IBV_QPS_SQD));
	a->qp_state = IBV_QPS_SQD;
	REQUIRE_OK(ibv_modify_qp(e->qp, a, IBV_QP_STATE | mask));
	REQUIRE_OK(set_state(e->qp, IBV_QPS_RTS));
}

static struct ibv_qp_attr query(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	REQUIRE_OK(ibv_query_qp(e->qp, &a, 2 * IBV_QP_DEST_QPN - 1, &init));
	return a;
}

static struct pair patient(enum ibv_qp_type type, struct conn *c)
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;

	o.type = type;
	return pair_new(d, &o, c);
}

static enum ibv_wc_status read_one(struct end *e, const struct buf *b)
{
	struct ibv_sge sge = buf_sge(b, 0, 100);
	struct ibv_send_wr wr = wr_rdma(9, IBV_WR_RDMA_READ, &sge, 1,
					(uintptr_t)b->addr + 200, b->mr->rkey);

	REQUIRE_OK(post_send(e, &wr));
	return poll_get(e->send_cq).status;
}

TEST(rd_atomic, "A-056 A-072 A-113 D-067 max_rd_atomic determines whether a READ can be sent")
{
	struct conn c = CONN;
	struct ibv_qp_attr a = { .max_rd_atomic = 1 };
	struct pair p;
	struct buf b;
	int i;

	c.rd_atomic = 0;
	p = patient(IBV_QPT_RC, &c);
	b = buf_new(p.dev->pd, 4096, REMOTE);
	ping_pong(&p);
	for (i = 1; i <= 4; i++) {
		a.max_rd_atomic = i;
		change(&p.a, &a, IBV_QP_MAX_QP_RD_ATOMIC);
		CHECK_EQ(query(&p.a).max_rd_atomic, i);
		CHECK_EQ(read_one(&p.a, &b), IBV_WC_SUCCESS);
	}
	a.max_rd_atomic = 0;
	change(&p.a, &a, IBV_QP_MAX_QP_RD_ATOMIC);
	CHECK_EQ(read_one(&p.a, &b), IBV_WC_LOC_QP_OP_ERR);
}

TEST(dest_rd_atomic, "A-056 A-072 A-113 D-068 max_dest_rd_atomic allows the answer to a READ")
{
	struct conn c = CONN;
	struct ibv_qp_attr a = { .max_dest_rd_atomic = 1 };
	struct pair p;
	struct buf b;

	c.dest_rd_atomic = 0;
	c.rd_atomic = 1;
	p = patient(IBV_QPT_RC, &c);
	b = buf_new(p.dev->pd, 4096, REMOTE);
	ping_pong(&p);
	change(&p.b, &a, IBV_QP_MAX_DEST_RD_ATOMIC);
	CHECK_EQ(query(&p.b).max_dest_rd_atomic, 1);
	CHECK_EQ(read_one(&p.a, &b), IBV_WC_SUCCESS);
	a.max_dest_rd_atomic = 0;
	change(&p.b, &a, IBV_QP_MAX_DEST_RD_ATOMIC);
	CHECK_EQ(read_one(&p.a, &b), IBV_WC_REM_INV_REQ_ERR);
}

/* Returns how long a message waits whose receive WR is posted right after it. */
static int64_t rnr_time(struct pair *p)
{
	int64_t start = time_ms();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(post_send(&p->a, &wr));
	sleep_ms(5);
	REQUIRE_OK(post_recv(&p->b, 2, NULL, 0));
	poll_ok(p->b.recv_cq, 2);
	poll_ok(p->a.send_cq, 1);
	return time_ms() - start;
}

TEST(min_rnr_timer, "A-056 A-072 A-113 D-031 min_rnr_timer: how long the peer waits")
{
	struct conn c = CONN;
	struct ibv_qp_attr a = { .min_rnr_timer = 0 };	/* 655.36 ms */
	struct pair p;

	c.min_rnr_timer = 1;				/* 0.01 ms */
	p = patient(IBV_QPT_RC, &c);
	test_note("%lld ms with 0.01 ms", (long long)rnr_time(&p));
	change(&p.b, &a, IBV_QP_MIN_RNR_TIMER);
	CHECK_EQ(query(&p.b).min_rnr_timer, 0);
	CHECK(rnr_time(&p) >= 655);
	a.min_rnr_timer = 30;				/* 327.68 ms */
	change(&p.b, &a, IBV_QP_MIN_RNR_TIMER);
	CHECK(rnr_time(&p) >= 327);
}

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

static void move(struct end *e, const struct ibv_gid_entry *gid)
{
	struct ibv_qp_attr a = {
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = { .dgid = gid->gid, .sgid_index = gid->gid_index,
				 .hop_limit = 64, .traffic_class = 0x48,
				 .flow_label = 0x12345 },
		},
	}, got;

	change(e, &a, IBV_QP_AV);
	got = query(e);
	CHECK(!memcmp(&got.ah_attr.grh.dgid, &gid->gid, sizeof(gid->gid)));
	CHECK_EQ(got.ah_attr.grh.sgid_index, gid->gid_index);
	CHECK_EQ(got.ah_attr.grh.traffic_class, 0x48);
	CHECK_EQ(got.ah_attr.grh.flow_label, 0x12345);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} connected[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
};

/* Moves from IPv4 to IPv6. A QP accepts packets of its peer's address only (D-083). */
TEST_ROWS(address, "A-056 A-057 A-072 A-113 D-083 a connection moves to other addresses",
	  connected)
{
	struct conn c = CONN;
	struct pair p = patient(row->type, &c);
	struct ibv_gid_entry gid = { 0 };
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	if (!other_gid(p.dev, &gid))
		test_skip("no link-local address");
	ping_pong(&p);
	move(&p.b, &gid);
	if (row->type == IBV_QPT_UC) {
		REQUIRE_OK(post_recv(&p.b, 3, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
		poll_none(p.b.recv_cq);		/* sent from the old address */
		move(&p.a, &gid);
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.b.recv_cq, 3);
	} else {
		move(&p.a, &gid);
	}
	ping_pong(&p);
}

TEST(address_lost, "A-072 A-113 D-083 an address that the peer does not know")
{
	struct conn c = CONN;
	struct ibv_gid_entry gid = { 0 };
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct pair p;

	c.retry_cnt = 1;
	c.timeout = 12;
	p = patient(IBV_QPT_RC, &c);
	if (!other_gid(p.dev, &gid))
		test_skip("no link-local address");
	ping_pong(&p);
	move(&p.a, &gid);
	REQUIRE_OK(post_recv(&p.b, 3, NULL, 0));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	poll_empty(p.b.recv_cq);
}

/* Maps the same memory many times, for half a GiB of addresses. */
static struct buf large(struct dev *d)
{
	const size_t piece = 8 << 20;
	struct buf b = { .len = 512 << 20 };
	int fd = memfd_create("piece", 0);
	size_t off;

	REQUIRE(fd >= 0 && !ftruncate(fd, piece));
	b.addr = mmap(NULL, b.len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(b.addr != MAP_FAILED);
	for (off = 0; off < b.len; off += piece)
		REQUIRE(mmap(b.addr + off, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     fd, 0) == b.addr + off);
	close(fd);
	b.mr = ibv_reg_mr(d->pd, b.addr, b.len, REMOTE);
	REQUIRE(b.mr);
	return b;
}

/*
 * Sends a long message whose last bytes lose their region after the QP has moved to SQD. Returns
 * its completion. On a busy machine the message may complete before that.
 */
static struct ibv_wc spoil_in_sqd(struct pair *p, const struct buf *b)
{
	struct buf last = buf_new(p->dev->pd, 8, LOCAL);
	struct ibv_sge sge[] = { buf_sge(b, 0, b->len - 8), buf_sge(&last, 0, 8) };
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, sge, 2, (uintptr_t)b->addr,
					b->mr->rkey);

	REQUIRE_OK(post_send(&p->a, &wr));
	REQUIRE_OK(set_state(p->a.qp, IBV_QPS_SQD));
	send_id(&p->a, 2);
	REQUIRE_OK(ibv_dereg_mr(last.mr));
	return poll_get(p->a.send_cq);
}

TEST(to_sqe, "A-091 A-092 a send error in SQD leads to SQE")
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct ibv_wc wc;
	struct pair p;
	struct buf b;
	int tries;

	o.type = IBV_QPT_UC;
	o.send_sge = 2;
	c.mtu = IBV_MTU_256;
	p = pair_new(dev_open_qhca(), &o, &c);
	b = large(p.dev);
	for (tries = 0; tries < 20; tries++) {
		wc = spoil_in_sqd(&p, &b);
		CHECK_EQ(wc.wr_id, 1);
		if (wc.status != IBV_WC_SUCCESS)
			break;
		REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
		poll_ok(p.a.send_cq, 2);
	}
	test_note("the message completed too early %d times", tries);
	CHECK_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_SQE);	/* */
	poll_expect(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
	async_none(p.dev->ctx);				/* no SQ_DRAINED, either */
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	REQUIRE_OK(post_recv(&p.b, 3, NULL, 0));
	send_id(&p.a, 4);
	poll_ok(p.a.send_cq, 4);
	poll_ok(p.b.recv_cq, 3);
}
