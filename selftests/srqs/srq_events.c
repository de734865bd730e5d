// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: limit, resize, and WRs that QPs in ERR and RESET leave there. */
#include <stdlib.h>

#include <qhca/queues.h>

#include "lib/xrc.h"

#define MSG	64

static struct dev *d;
static struct ibv_srq *srq;
static struct buf tx, rx;
static struct pair pair;

static void setup(uint32_t max_wr)
{
	struct qp_opts o = QP_OPTS;

	d = dev_open();
	srq = srq_new(d, max_wr, 1);
	tx = buf_new(d->pd, 4 * 4096, LOCAL);
	rx = buf_new(d->pd, 4 * 4096, LOCAL);
	pair.dev = d;
	pair.a = end_new(d, &o);
	o.srq = srq;
	pair.b = end_new(d, &o);
	pair_connect(&pair, &CONN);
}

static void post(uint64_t id)
{
	REQUIRE_OK(srq_post(srq, id, &rx, 0, MSG));
}

static void send(uint64_t id)
{
	struct ibv_sge sge = buf_sge(&tx, 0, MSG);
	struct ibv_send_wr wr = wr_send(id, &sge, 1);

	REQUIRE_OK(post_send(&pair.a, &wr));
	poll_ok(pair.a.send_cq, id);
	poll_ok(pair.b.recv_cq, id);
}

static int set_limit(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int resize(uint32_t max_wr, int limit)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr,
			      IBV_SRQ_MAX_WR | (limit < 0 ? 0 : IBV_SRQ_LIMIT));
}

static struct ibv_srq_attr query(void)
{
	struct ibv_srq_attr attr;

	REQUIRE_OK(ibv_query_srq(srq, &attr));
	return attr;
}

TEST(limit, "G-005 H-009 10 posted, limit 7: the fourth message raises the event")
{
	int i;

	setup(16);
	for (i = 0; i < 10; i++)
		post(i);
	REQUIRE_OK(set_limit(7));
	for (i = 0; i < 3; i++)
		send(i);
	async_none(d->ctx);
	CHECK_EQ(query().srq_limit, 7);
	send(3);
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	CHECK_EQ(query().srq_limit, 0);
	send(4);
	async_none(d->ctx);
	REQUIRE_OK(set_limit(5));
	send(5);
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

TEST(limit_below, "G-006 a limit that is already passed raises the event at once")
{
	setup(16);
	post(0);
	REQUIRE_OK(set_limit(1));
	async_none(d->ctx);
	REQUIRE_OK(set_limit(2));
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	CHECK_EQ(query().srq_limit, 0);
}

TEST(limit_bad, "G-007 a limit above the size is refused and changes nothing")
{
	struct ibv_srq_attr attr = { 0 };

	setup(16);
	post(0);
	REQUIRE_OK(set_limit(1));
	CHECK_ERR(set_limit(query().max_wr + 1), EINVAL);
	CHECK_EQ(query().srq_limit, 1);
	CHECK(ibv_modify_srq(srq, &attr, 4) != 0);
	CHECK_EQ(query().srq_limit, 1);
	send(0);
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

static void need_resize(void)
{
	setup(8);
	if (!(d->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		test_skip("no resizing here");
}

TEST(grow, "G-007 resize: pending WRs are kept, in order")
{
	int i;

	need_resize();
	for (i = 0; i < 8; i++)
		post(i);
	send(0);
	REQUIRE_OK(resize(100, -1));
	CHECK(query().max_wr >= 100);
	for (i = 8; i < 101; i++)
		post(i);
	for (i = 1; i < 101; i++)
		send(i);
	for (i = 101; i < 300; i++) {
		post(i);
		send(i);
	}
}

TEST(shrink, "G-007 resize below the number of pending WRs, or below the limit, is refused")
{
	uint32_t max;
	int i;

	need_resize();
	max = query().max_wr;
	for (i = 0; i < 5; i++)
		post(i);
	CHECK_ERR(resize(4, -1), EINVAL);
	CHECK_ERR(resize(0, -1), EINVAL);
	CHECK_ERR(resize(d->attr.max_srq_wr + 1, -1), EINVAL);
	CHECK_EQ(query().max_wr, max);
	for (i = 0; i < 3; i++)
		send(i);
	REQUIRE_OK(set_limit(2));
	CHECK_ERR(resize(1, -1), EINVAL);
	CHECK_ERR(resize(2, 3), EINVAL);
	CHECK_EQ(query().max_wr, max);
	CHECK_EQ(query().srq_limit, 2);
	REQUIRE_OK(resize(2, 1));
	CHECK_EQ(query().srq_limit, 1);
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	send(3);
	async_none(d->ctx);
	send(4);
	async_expect(d->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	for (i = 5; i < 20; i++) {
		post(i);
		send(i);
	}
}

/* WRs whose completions were not polled are outstanding: their slots are not free. */
TEST(shrink_unpolled, "G-007 resize below the outstanding count is refused")
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int i;

	need_resize();
	sge = buf_sge(&tx, 0, MSG);
	for (i = 0; i < 5; i++) {
		post(i);
		wr = wr_send(i, &sge, 1);
		REQUIRE_OK(post_send(&pair.a, &wr));
		poll_ok(pair.a.send_cq, i);
	}
	CHECK_ERR(resize(4, -1), EINVAL);
	poll_ok(pair.b.recv_cq, 0);
	REQUIRE_OK(resize(4, -1));
	CHECK_ERR(srq_post(srq, 9, &rx, 0, MSG), ENOMEM);
	for (i = 1; i < 5; i++)
		poll_ok(pair.b.recv_cq, i);
	for (i = 5; i < 9; i++)
		post(i);
	for (i = 5; i < 9; i++)
		send(i);
}

TEST(last_wqe, "A-102 H-008 LAST_WQE_REACHED once per way into ERR; WRs stay in the SRQ")
{
	int i;

	setup(16);
	for (i = 0; i < 4; i++)
		post(i);
	send(0);
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_ERR));
	async_expect(d->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp);
	poll_empty(pair.b.recv_cq);
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_ERR));
	async_none(d->ctx);

	REQUIRE_OK(set_state(pair.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_RESET));
	pair_connect(&pair, &CONN);
	for (i = 1; i < 4; i++)
		send(i);
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_ERR));
	async_expect(d->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp);
}

TEST(last_wqe_error, "A-102 LAST_WQE_REACHED follows the CQE of an error")
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	setup(16);
	sge = buf_sge(&tx, 0, 2 * MSG);
	wr = wr_send(1, &sge, 1);
	post(1);
	post(2);
	REQUIRE_OK(post_send(&pair.a, &wr));	/* too long for its WR */
	async_expect(d->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp);
	poll_expect(pair.b.recv_cq, 1, IBV_WC_LOC_LEN_ERR);
	poll_empty(pair.b.recv_cq);
	poll_expect(pair.a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	REQUIRE_OK(set_state(pair.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(pair.b.qp, IBV_QPS_RESET));
	pair_connect(&pair, &CONN);
	send(2);
}

TEST(imm, "G-002 RDMA WRITE with immediate data takes a WR of the SRQ")
{
	struct buf target;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	setup(4);
	target = buf_new(d->pd, MSG, REMOTE);
	sge = buf_sge(&tx, 0, MSG);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1,
		     (uintptr_t)target.addr, target.mr->rkey);
	wr.imm_data = htobe32(77);
	post(3);
	REQUIRE_OK(post_send(&pair.a, &wr));
	poll_ok(pair.a.send_cq, 1);
	wc = poll_ok(pair.b.recv_cq, 3);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(be32toh(wc.imm_data), 77);
}

/* ---- an SRQ that fails ---- */

static uint8_t *ring;

static void *ring_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			uint64_t resource_type)
{
	void *mem;

	REQUIRE_OK(posix_memalign(&mem, alignment, size));
	memset(mem, 0, size);
	ring = mem;
	return mem;
}

static void ring_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
	free(ptr);
}

/* Makes an SRQ whose ring is memory of this program, with the doorbell record behind the WQEs. */
static struct qhca_rq_dbrec *own_srq(void)
{
	struct ibv_parent_domain_init_attr pd = {
		.pd = d->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = ring_alloc, .free = ring_free,
	};
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 1 } };
	struct ibv_pd *parent = ibv_alloc_parent_domain(d->ctx, &pd);
	size_t wqe;

	REQUIRE(parent);
	srq = ibv_create_srq(parent, &init);
	REQUIRE(srq && ring);
	wqe = sizeof(struct qhca_rq_wqe) + init.attr.max_sge * sizeof(struct qhca_sge);
	return (struct qhca_rq_dbrec *)(ring + init.attr.max_wr * wqe);
}

/* Makes a pair of which only end b has the SRQ. */
static struct pair pair_with_srq(void)
{
	struct qp_opts o = QP_OPTS;
	struct pair p = { .dev = d, .a = end_new(d, &o) };

	o.srq = srq;
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	return p;
}

/* A QP that needs a WR of the SRQ gets none and fails; its peer gets an error. */
static void fails(struct pair *p, bool first)
{
	send_id(&p->a, 1);
	poll_expect(p->a.send_cq, 1, IBV_WC_REM_OP_ERR);
	if (first)
		async_expect(d->ctx, IBV_EVENT_SRQ_ERR, srq);
	async_expect(d->ctx, IBV_EVENT_QP_FATAL, p->b.qp);
	async_expect(d->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, p->b.qp);
	CHECK_EQ(get_state(p->b.qp), IBV_QPS_ERR);
	poll_empty(p->b.recv_cq);
}

TEST(srq_err, "H-010 G-010 SRQ_ERR, once: an invalid producer index")
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct qhca_rq_dbrec *record;
	struct pair p, q;

	d = dev_open_qhca();
	record = own_srq();
	rx = buf_new(d->pd, 4096, LOCAL);
	p = pair_with_srq();
	q = pair_with_srq();
	post(1);
	send_id(&p.a, 1);
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 1);

	REQUIRE(le32toh(record->pi) == 1);
	record->pi = htole32(1000);	/* the ring has 64 */
	fails(&p, true);
	/* Other QPs notice when they need a WR; the event is not raised again. */
	CHECK_EQ(get_state(q.b.qp), IBV_QPS_RTS);
	fails(&q, false);
	async_none(d->ctx);
	CHECK_ERR(ibv_query_srq(srq, &attr), EINVAL);
	CHECK_ERR(set_limit(1), EINVAL);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	CHECK_ERR(ibv_destroy_qp(q.b.qp), 0);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
}

TEST(xrc_cq, "H-010 C-029 SRQ_ERR: the CQ of an XRC SRQ has overrun")
{
	struct conn c = CONN;
	struct xrc x = xrc_new(dev_open_qhca(), &c);
	int cq_errs = 0, srq_errs = 0, i;
	struct ibv_async_event ev;
	struct ibv_sge sge;

	d = x.d;
	srq = x.srq.srq;
	REQUIRE_OK(resize(2 * x.srq.cq->cqe, -1));
	for (i = 0; i <= x.srq.cq->cqe; i++) {
		struct ibv_send_wr wr = xrc_wr(&x, &sge, IBV_WR_SEND, 8);

		REQUIRE_OK(srq_post(srq, i, &x.buf, 0, 8));
		REQUIRE_OK(post_send(&x.p.a, &wr));
		poll_get(x.p.a.send_cq);
	}
	while (async_wait(d->ctx, &ev, 5 * QUIET_MS)) {
		cq_errs += ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == x.srq.cq;
		srq_errs += ev.event_type == IBV_EVENT_SRQ_ERR && ev.element.srq == srq;
	}
	CHECK_EQ(cq_errs, 1);
	CHECK_EQ(srq_errs, 1);
	CHECK_ERR(ibv_destroy_srq(srq), 0);
	CHECK_ERR(ibv_destroy_cq(x.srq.cq), 0);
}
