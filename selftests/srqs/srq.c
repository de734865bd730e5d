// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: creating, posting, and which QP gets which WR. Events and limits are in
 * srq_events.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define MSG	64

/* Makes @n pairs whose b ends receive from @srq. */
static void pairs_new(struct dev *d, struct pair *p, int n, struct ibv_srq *srq)
{
	struct qp_opts o = QP_OPTS;
	int i;

	for (i = 0; i < n; i++) {
		p[i].dev = d;
		o.srq = NULL;
		p[i].a = end_new(d, &o);
		o.srq = srq;
		p[i].b = end_new(d, &o);
		pair_connect(&p[i], &CONN);
	}
}

/* Sends a message with @seed's pattern from p->a. */
static void send(struct pair *p, struct buf *b, uint32_t seed)
{
	struct ibv_sge sge = buf_sge(b, 0, MSG);
	struct ibv_send_wr wr = wr_send(seed, &sge, 1);

	fill(b->addr, MSG, seed);
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->a.send_cq, seed);
}

TEST(create, "G-001 sizes: requested, granted and refused")
{
	struct dev *d = dev_open();
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 5, .max_sge = 2 } };
	struct ibv_srq *srq = srq_new(d, 5, 2);
	struct ibv_srq_attr attr;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	CHECK(attr.max_wr >= 5);
	CHECK(attr.max_sge >= 2);
	if (d->qhca)	/* same as for QPs, see qp_caps in device.c */
		CHECK_EQ(attr.max_sge, 2);
	CHECK_EQ(attr.srq_limit, 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);

	init.attr.max_wr = 0;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
	init.attr.max_wr = d->attr.max_srq_wr + 1;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
	init.attr.max_wr = 1;
	init.attr.max_sge = d->attr.max_srq_sge + 1;
	CHECK(!ibv_create_srq(d->pd, &init) && errno == EINVAL);
}

TEST(full_size, "G-001 J-035 B-023 the largest SRQ takes max_srq_wr WRs of max_srq_sge SGEs")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, d->attr.max_srq_wr, d->attr.max_srq_sge);
	struct ibv_sge sge[128] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = d->attr.max_srq_sge };
	struct ibv_recv_wr *bad;
	struct ibv_srq_attr attr;
	uint32_t i;

	CHECK(d->attr.max_srq_wr >= 4096);
	REQUIRE(d->attr.max_srq_sge < (int)ARRAY_SIZE(sge));
	REQUIRE_OK(ibv_query_srq(srq, &attr));
	for (i = 0; i < attr.max_wr; i++)
		REQUIRE_OK(ibv_post_srq_recv(srq, &wr, &bad));
	CHECK_ERR(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	CHECK(bad == &wr);
	wr.num_sge = attr.max_sge + 1;
	CHECK_ERR(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
}

TEST(order, "G-002 QPs take WRs in posting order")
{
	static const int who[] = { 2, 0, 0, 1, 2, 1, 0, 2 };
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 8, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, 8 * MSG, LOCAL);
	struct pair p[3];
	int i, round;

	pairs_new(d, p, 3, srq);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 8; i++)
			REQUIRE_OK(srq_post(srq, 100 + i, &rx, i * MSG, MSG));
		for (i = 0; i < 8; i++) {
			struct ibv_wc wc;

			send(&p[who[i]], &tx, round * 8 + i);
			wc = poll_ok(p[who[i]].b.recv_cq, 100 + i);
			CHECK_EQ(wc.qp_num, p[who[i]].b.qp->qp_num);
			CHECK_EQ(wc.byte_len, MSG);
			check_fill(rx.addr + i * MSG, MSG, round * 8 + i, "message");
		}
	}
}

TEST(slots, "B-077 a slot is in use until its CQE has been polled")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_srq_attr attr;
	struct pair p[2];
	uint32_t i;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	pairs_new(d, p, 2, srq);
	for (i = 0; i < attr.max_wr; i++)
		REQUIRE_OK(srq_post(srq, i, &rx, 0, MSG));
	send(&p[0], &tx, 1);
	send(&p[1], &tx, 2);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	poll_ok(p[1].b.recv_cq, 1);		/* completes out of order */
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), 0);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	poll_ok(p[0].b.recv_cq, 0);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), 0);
}

TEST(own_recv, "A-014 a QP with an SRQ has no receive queue")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_sge sge = buf_sge(&rx, 0, MSG);
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.srq = srq;
	o.recv_wr = d->attr.max_qp_wr + 1;	/* ignored */
	o.recv_sge = d->attr.max_sge + 1;
	e = end_new(d, &o);
	qp_bring(&e, &CONN, IBV_QPS_INIT);
	CHECK(post_recv(&e, 1, &sge, 1) != 0);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} others[] = {
	{ "UC", IBV_QPT_UC },
};

TEST_ROWS(types, "A-015 SRQs are for RC and UD QPs only", others)
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = row->type,
		.srq = srq_new(d, 4, 1),
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};

	CHECK(!ibv_create_qp(d->pd, &init));
}

TEST(basic_ex, "G-001 ibv_create_srq_ex: the basic type, no tag matching")
{
	struct dev *d = dev_open_qhca();
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.pd = d->pd,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(d->ctx, &init);

	REQUIRE(srq);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	init.srq_type = IBV_SRQT_TM;
	init.comp_mask |= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
	init.cq = cq_new(d, 4, NULL);
	CHECK(!ibv_create_srq_ex(d->ctx, &init) && errno == EOPNOTSUPP);
}

TEST(keys, "G-003 F-006 L_Keys belong to the PD of the SRQ, not of the QP")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct buf foreign = buf_new(pd, MSG, LOCAL);
	struct ibv_sge sge = buf_sge(&tx, 0, MSG);
	struct ibv_send_wr wr;
	struct qp_opts o = QP_OPTS;
	struct pair p = { .dev = d };

	p.a = end_new(d, &o);
	o.srq = srq;
	o.pd = pd;
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	REQUIRE_OK(srq_post(srq, 1, &rx, 0, MSG));
	send(&p, &tx, 7);
	poll_ok(p.b.recv_cq, 1);
	check_fill(rx.addr, MSG, 7, "message");

	REQUIRE_OK(srq_post(srq, 2, &foreign, 0, MSG));
	wr = wr_send(2, &sge, 1);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	poll_expect(p.a.send_cq, 2, IBV_WC_REM_OP_ERR);
}

TEST(empty, "G-004 an empty SRQ: the sender waits")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_sge sge = buf_sge(&tx, 0, MSG);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);
	uint64_t naks = d->qhca ? hw_counter("rx_rnr_nak") : 0;
	struct pair p;

	pairs_new(d, &p, 1, srq);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_none(p.a.send_cq);
	if (d->qhca)
		CHECK(hw_counter("rx_rnr_nak") > naks);
	REQUIRE_OK(srq_post(srq, 5, &rx, 0, MSG));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 5);
}

TEST(busy, "G-008 G-017 busy: an SRQ with a QP, a PD with an SRQ")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.srq = srq;
	e = end_new(d, &o);
	CHECK_ERR(ibv_destroy_srq(srq), EBUSY);
	CHECK_ERR(ibv_destroy_qp(e.qp), 0);
	CHECK(ibv_dealloc_pd(d->pd) != 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
}

TEST(unpolled, "B-077 G-008 CQEs that are removed with their QP free their slots")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, MSG, LOCAL);
	struct ibv_srq_attr attr;
	struct pair p[2];
	uint32_t i, round;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	for (round = 0; round < 10; round++) {
		pairs_new(d, p, 2, srq);
		for (i = 0; i < attr.max_wr; i++)
			REQUIRE_OK(srq_post(srq, i, &rx, 0, MSG));
		for (i = 0; i < attr.max_wr; i++)
			send(&p[i & 1], &tx, i);
		REQUIRE_OK(set_state(p[0].b.qp, IBV_QPS_RESET));
		poll_empty(p[0].b.recv_cq);
		REQUIRE_OK(ibv_destroy_qp(p[1].b.qp));
		REQUIRE_OK(ibv_destroy_qp(p[0].b.qp));
	}
}

#define GRH	40

TEST(datagrams, "G-002 G-004 G-009 datagrams: with a WR, without one, and with one too small")
{
	struct dev *d = dev_open();
	struct ibv_srq *srq = srq_new(d, 4, 1);
	struct buf tx = buf_new(d->pd, MSG, LOCAL);
	struct buf rx = buf_new(d->pd, GRH + MSG, LOCAL);
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct pair p = { .dev = d };
	struct ibv_sge sge = buf_sge(&tx, 0, MSG);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	o.type = IBV_QPT_UD;
	c.qkey = 0x1234;
	p.a = end_new(d, &o);
	o.srq = srq;
	p.b = end_new(d, &o);
	pair_connect(&p, &c);
	wr.wr.ud.ah = own_ah(d, d->pd);
	wr.wr.ud.remote_qpn = p.b.qp->qp_num;
	wr.wr.ud.remote_qkey = c.qkey;
	fill(tx.addr, MSG, 3);

	REQUIRE_OK(post_send(&p.a, &wr));	/* dropped by the receiver */
	poll_ok(p.a.send_cq, 1);
	REQUIRE_OK(srq_post(srq, 5, &rx, 0, GRH + MSG));
	REQUIRE_OK(srq_post(srq, 6, &rx, 0, GRH + MSG - 1));
	REQUIRE_OK(srq_post(srq, 7, &rx, 0, GRH + MSG));
	poll_none(p.b.recv_cq);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 5);
	check_fill(rx.addr + GRH, MSG, 3, "datagram");
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.b.recv_cq, 6, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.b.recv_cq, 7);
}

static struct ibv_srq *shared;
static struct buf shared_rx;
static atomic_int seen[4096];

static void *receiver(void *arg)
{
	struct pair *p = arg;
	int i;

	for (i = 0; i < 1000; i++) {
		struct ibv_wc wc = poll_get(p->b.recv_cq);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		atomic_fetch_add(&seen[wc.wr_id], 1);
		/* Post the same WR again, while other threads do the same. */
		REQUIRE_OK(srq_post(shared, wc.wr_id, &shared_rx,
				    wc.wr_id * MSG, MSG));
	}
	return NULL;
}

static void *sender(void *arg)
{
	struct pair *p = arg;
	struct buf tx = buf_new(p->dev->pd, MSG, LOCAL);
	int i;

	for (i = 0; i < 1000; i++)
		send(p, &tx, i);
	return NULL;
}

TEST(threads, "G-002 one SRQ, four QPs and CQs, eight threads: no WR is used twice")
{
	struct dev *d = dev_open();
	pthread_t rx[4], tx[4];
	struct pair p[4];
	int i, sum = 0;

	test_timeout(100);
	shared = srq_new(d, 64, 1);
	shared_rx = buf_new(d->pd, 64 * MSG, LOCAL);
	pairs_new(d, p, 4, shared);
	for (i = 0; i < 64; i++)
		REQUIRE_OK(srq_post(shared, i, &shared_rx, i * MSG, MSG));
	for (i = 0; i < 4; i++) {
		REQUIRE(!pthread_create(&rx[i], NULL, receiver, &p[i]));
		REQUIRE(!pthread_create(&tx[i], NULL, sender, &p[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(tx[i], NULL);
		pthread_join(rx[i], NULL);
	}
	for (i = 0; i < 64; i++)
		sum += seen[i];
	CHECK_EQ(sum, 4000);
	for (i = 0; i < 4; i++)
		poll_empty(p[i].b.recv_cq);
}
