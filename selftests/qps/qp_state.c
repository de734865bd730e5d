// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine through verbs: uverbs, the core, the driver and the device each have a table of
 * steps and attributes (conformance A.3), which must agree; and what a QP has behind the driver's
 * back or leaves behind. test_qp_state.c of the engine has every pair of states and every mask.
 */
#include <stdlib.h>

#include "lib/rdma.h"

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC }, { "UC", IBV_QPT_UC }, { "UD", IBV_QPT_UD },
	{ "XRC_SEND", IBV_QPT_XRC_SEND }, { "XRC_RECV", IBV_QPT_XRC_RECV },
};

#define T(type)		(1 << IBV_QPT_##type)
#define INI		T(XRC_SEND)
#define TGT		T(XRC_RECV)

static struct end end_of_type(struct dev *d, enum ibv_qp_type type,
			      enum ibv_qp_state state)
{
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.type = type;
	e = end_in(d, &o, state);
	CHECK_EQ(get_state(e.qp), state);
	return e;
}

/* Sets all attributes to values that are valid in every state. */
static struct ibv_qp_attr good_attr(const struct end *e, int from, int to)
{
	struct conn c = CONN;
	struct ibv_qp_attr a, b;

	c.dest_qpn = e->qp->qp_num;
	attr_rtr(&a, e->dev, &c);
	attr_rts(&b, &c);
	a.qp_state = to;
	a.cur_qp_state = from;
	a.path_mig_state = IBV_MIG_REARM;
	a.qkey = 0x1111;
	a.sq_psn = b.sq_psn;
	a.timeout = b.timeout;
	a.retry_cnt = b.retry_cnt;
	a.rnr_retry = b.rnr_retry;
	a.max_rd_atomic = b.max_rd_atomic;
	a.qp_access_flags = REMOTE;
	a.port_num = PORT;
	a.cap = e->cap;
	a.alt_ah_attr = a.ah_attr;
	a.alt_port_num = PORT;
	a.alt_timeout = 14;
	return a;
}

/* ---- attributes that a step takes ---- */

#define PKEY_PORT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RC_INIT		(PKEY_PORT | IBV_QP_ACCESS_FLAGS)
#define UD_INIT		(PKEY_PORT | IBV_QP_QKEY)
#define UC_RTR		(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
			 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RC_RTR		(UC_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define UD_RTR		(IBV_QP_QKEY | IBV_QP_PKEY_INDEX)
#define UC_STAY		(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define RC_STAY		(UC_STAY | IBV_QP_MIN_RNR_TIMER)
#define UD_STAY		(IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define RC_RTS		(RC_STAY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define UC_SQD		(IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RC_SQD		(UC_SQD | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | \
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

struct step {
	const char *name;
	int types;
	enum ibv_qp_state from, to;
	int mask;
};

#define STEP(id, types, f, t, mask) \
	{ id ", " #f " to " #t, types, IBV_QPS_##f, IBV_QPS_##t, mask }

/*
 * Required and optional attributes of each step. XRC QPs are given those of RC, of which uverbs
 * removes what their half does not have.
 */
static const struct step steps[] = {
	STEP("A-040 A-071", T(RC) | T(UC) | INI | TGT, RESET, INIT, RC_INIT),
	STEP("A-041", T(UD), RESET, INIT, UD_INIT),
	STEP("A-043", T(RC) | T(UC) | INI | TGT, INIT, INIT, RC_INIT),
	STEP("A-043 UD", T(UD), INIT, INIT, UD_INIT),
	STEP("A-044 A-045 A-071", T(RC) | INI | TGT, INIT, RTR, RC_RTR),
	STEP("A-045", T(UC), INIT, RTR, UC_RTR),
	STEP("A-046", T(UD), INIT, RTR, UD_RTR),
	STEP("A-047 A-050 A-071", T(RC) | INI | TGT, RTR, RTS, RC_RTS),
	STEP("A-048", T(UC), RTR, RTS, UC_STAY | IBV_QP_SQ_PSN),
	STEP("A-049", T(UD), RTR, RTS, UD_STAY | IBV_QP_SQ_PSN),
	STEP("A-051 A-052 A-071", T(RC) | INI | TGT, RTS, RTS, RC_STAY),
	STEP("A-051 A-052 A-071", T(RC) | INI | TGT, SQD, RTS, RC_STAY),
	STEP("A-052", T(UC), RTS, RTS, UC_STAY),
	STEP("A-052", T(UC), SQD, RTS, UC_STAY),
	STEP("A-053", T(UD), RTS, RTS, UD_STAY),
	STEP("A-053", T(UD), SQD, RTS, UD_STAY),
	STEP("A-053", T(UD), SQE, RTS, UD_STAY),
	STEP("A-054", T(UC), SQE, RTS, UC_STAY),
	STEP("A-055", ~0, RTS, SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-056 A-071", T(RC) | INI | TGT, SQD, SQD, RC_SQD),
	STEP("A-057", T(UC), SQD, SQD, UC_SQD),
	STEP("A-058", T(UD), SQD, SQD, UD_RTR),
};

TEST_ROWS(taken, "every attribute at once", steps)
{
	struct dev *d = dev_open_qhca();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct ibv_qp_attr a;
		struct end e;
		int err;

		if (!(row->types & 1 << types[i].type))
			continue;
		e = end_of_type(d, types[i].type, row->from);
		a = good_attr(&e, row->from, row->to);
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->mask);
		if (err)
			FAIL("%s: %s", types[i].name, strerror(err));
		CHECK_EQ(get_state(e.qp), row->to);
	}
}

/* ---- requests that are refused, and those without STATE ---- */

#define STATE	IBV_QP_STATE
#define MODIFY(what, type, f, t, mask, err) \
	{ what ", " #type, IBV_QPT_##type, IBV_QPS_##f, IBV_QPS_##t, mask, err }

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int mask;
	int err;
} requests[] = {
	MODIFY("A-030 RESET to ERR", RC, RESET, ERR, STATE, EINVAL),
	MODIFY("A-032 RTR to SQD", UC, RTR, SQD, STATE, EINVAL),
	MODIFY("A-036 ERR to RTS", UD, ERR, RTS, STATE, EINVAL),
	MODIFY("A-060 INIT to RTR without a PSN", RC, INIT, RTR, STATE | (RC_RTR & ~IBV_QP_RQ_PSN),
	       EINVAL),
	MODIFY("A-061 RTR to RTS with a timeout", UC, RTR, RTS,
	       STATE | UC_STAY | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, EINVAL),
	MODIFY("A-068 an alternate path", RC, INIT, RTR, STATE | RC_RTR | IBV_QP_ALT_PATH, EINVAL),
	MODIFY("A-068 PATH_MIG_STATE", RC, RTS, RTS, STATE | IBV_QP_PATH_MIG_STATE, EINVAL),
	MODIFY("A-069 CAP", RC, RTS, RTS, STATE | IBV_QP_CAP, EINVAL),
	MODIFY("A-073 RESET, access", RC, RESET, RESET, IBV_QP_ACCESS_FLAGS, EINVAL),
	MODIFY("A-073 RTS, timeout", XRC_SEND, RTS, RTS, IBV_QP_TIMEOUT, EINVAL),
	MODIFY("A-073 SQE, access", UC, SQE, SQE, IBV_QP_ACCESS_FLAGS, EINVAL),
	MODIFY("A-073 RTS, access", RC, RTS, RTS, IBV_QP_ACCESS_FLAGS, 0),
	MODIFY("A-073 SQD, address", UC, SQD, SQD, IBV_QP_AV, 0),
	MODIFY("A-073 RTS, Q_Key", UD, RTS, RTS, IBV_QP_QKEY, 0),
};

static void snapshot(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	struct ibv_qp_init_attr init;

	memset(a, 0, sizeof(*a));
	REQUIRE_OK(ibv_query_qp(qp, a, 2 * IBV_QP_DEST_QPN - 1, &init));
}

TEST_ROWS(request, "A-062 modify", requests)
{
	struct end e = end_of_type(dev_open_qhca(), row->type, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to);
	struct ibv_qp_attr before, now;
	int err;

	snapshot(e.qp, &before);
	err = ibv_modify_qp(e.qp, &a, row->mask);
	/* The core has an errno of its own for a port without path migration. */
	if (row->mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
		CHECK(err);
	else
		CHECK_ERR(err, row->err);
	snapshot(e.qp, &now);
	if (row->err && memcmp(&now, &before, sizeof(now)))
		FAIL("a refused modify changed an attribute");
	CHECK_EQ(now.qp_state, row->from);
	CHECK_EQ(now.path_mig_state, IBV_MIG_MIGRATED);
}

/* ---- what the QP and the driver think ---- */

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

static int draining(struct end *e)
{
	struct ibv_qp_attr a;

	snapshot(e->qp, &a);
	return a.sq_draining;
}

TEST(drained, "A-019 A-085 A-088 H-006 sq_draining, and SQ_DRAINED where it was requested")
{
	struct pair p = pair_in(IBV_QPS_RTS, IBV_QPS_RTS);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	const int mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;

	if (!p.dev->qhca)
		test_skip("qhca only");
	send_id(&p.a, 1);		/* the peer has no room for it */
	REQUIRE_OK(ibv_modify_qp(p.a.qp, &a, mask));
	CHECK_EQ(draining(&p.a), 1);
	CHECK_ERR(set_state(p.a.qp, IBV_QPS_RTS), EINVAL);
	async_none(p.dev->ctx);
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	poll_ok(p.a.send_cq, 1);
	async_expect(p.dev->ctx, IBV_EVENT_SQ_DRAINED, p.a.qp);
	CHECK_EQ(draining(&p.a), 0);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	a.en_sqd_async_notify = 0;
	REQUIRE_OK(ibv_modify_qp(p.a.qp, &a, mask));
	async_none(p.dev->ctx);
}

/* The provider and the device count WRs; after RESET both begin anew. */
TEST(reset, "A-103 A-104 A-105 RESET empties full queues, from SQD and from ERR")
{
	struct pair p = pair_in(IBV_QPS_RESET, IBV_QPS_RESET);
	struct conn c = CONN;
	uint32_t i, round;

	for (round = 0; round < 4; round++) {
		struct ibv_send_wr wr = wr_send(99, NULL, 0);

		c.sq_psn = 0xffffff - round;
		c.rq_psn = round << 20;
		pair_connect(&p, &c);
		ping_pong(&p);
		REQUIRE_OK(set_state(p.a.qp, IBV_QPS_SQD));
		for (i = 0; i < p.a.cap.max_send_wr; i++)
			send_id(&p.a, i);
		for (i = 0; i < p.a.cap.max_recv_wr; i++)
			REQUIRE_OK(post_recv(&p.a, i, NULL, 0));
		CHECK_ERR(post_send(&p.a, &wr), ENOMEM);
		CHECK_ERR(post_recv(&p.a, 99, NULL, 0), ENOMEM);
		if (round & 1)
			REQUIRE_OK(set_state(p.a.qp, IBV_QPS_ERR));
		REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
		REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
		poll_empty(p.a.send_cq);
		poll_empty(p.a.recv_cq);
	}
	pair_connect(&p, &CONN);
	ping_pong(&p);
}
