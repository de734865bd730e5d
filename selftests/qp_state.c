// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of RC QPs as modify sees it: conformance A.2 and A.3, one
 * test per cell and per row.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

/* A QP in @state that is connected to itself. */
static struct end end_in(struct dev *d, enum ibv_qp_state state)
{
	struct end e = end_new(d, &QP_OPTS);
	struct conn c = CONN;

	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, state);
	CHECK_EQ(get_state(e.qp), state);
	return e;
}

/* All that RC knows, with values that are right everywhere. */
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

/* Conformance A.3: what a legal step needs and what it may have besides. */
#define NEED_INIT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define NEED_RTR	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
			 IBV_QP_MIN_RNR_TIMER)
#define NEED_RTS	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define MAY_RTS		(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | \
			 IBV_QP_MIN_RNR_TIMER)
#define MAY_SQD		(IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | \
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
			 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | \
			 IBV_QP_MIN_RNR_TIMER)
/*
 * The core lets these through in some steps, but a RoCE port has no path
 * migration: refused everywhere, but for the state MIGRATED, in which
 * every QP is.
 */
#define MIGRATION	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

struct step {
	const char *name;
	enum ibv_qp_state from, to;
	int need, may;
};

#define STEP(f, t, need, may) \
	{ #f " to " #t, IBV_QPS_##f, IBV_QPS_##t, need, may }

/* First those that need attributes, then those that may have some. */
static const struct step steps[] = {
	STEP(RESET, INIT, NEED_INIT, 0),
	STEP(INIT, RTR, NEED_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
	STEP(RTR, RTS, NEED_RTS, MAY_RTS),
	STEP(INIT, INIT, 0, NEED_INIT),
	STEP(RTS, RTS, 0, MAY_RTS),
	STEP(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP(SQD, RTS, 0, MAY_RTS),
	STEP(SQD, SQD, 0, MAY_SQD),
	STEP(RESET, RESET, 0, 0),
	STEP(INIT, RESET, 0, 0),
	STEP(RTR, RESET, 0, 0),
	STEP(RTS, RESET, 0, 0),
	STEP(SQD, RESET, 0, 0),
	STEP(ERR, RESET, 0, 0),
	STEP(INIT, ERR, 0, 0),
	STEP(RTR, ERR, 0, 0),
	STEP(RTS, ERR, 0, 0),
	STEP(SQD, ERR, 0, 0),
	STEP(ERR, ERR, 0, 0),
};

#define NUM_NEED	3
#define NUM_MAY		8

static const struct step *find_step(int from, int to)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if ((int)steps[i].from == from && (int)steps[i].to == to)
			return &steps[i];
	return NULL;
}

#define ALL_ATTRS (2 * IBV_QP_DEST_QPN - 1)

#define ROW(f, t) { #f " to " #t, IBV_QPS_##f, IBV_QPS_##t }

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
} cells[] = {
	ROW(RESET, RESET), ROW(RESET, INIT), ROW(RESET, RTR), ROW(RESET, RTS),
	ROW(RESET, SQD), ROW(RESET, SQE), ROW(RESET, ERR),
	ROW(INIT, RESET), ROW(INIT, INIT), ROW(INIT, RTR), ROW(INIT, RTS),
	ROW(INIT, SQD), ROW(INIT, SQE), ROW(INIT, ERR),
	ROW(RTR, RESET), ROW(RTR, INIT), ROW(RTR, RTR), ROW(RTR, RTS),
	ROW(RTR, SQD), ROW(RTR, SQE), ROW(RTR, ERR),
	ROW(RTS, RESET), ROW(RTS, INIT), ROW(RTS, RTR), ROW(RTS, RTS),
	ROW(RTS, SQD), ROW(RTS, SQE), ROW(RTS, ERR),
	ROW(SQD, RESET), ROW(SQD, INIT), ROW(SQD, RTR), ROW(SQD, RTS),
	ROW(SQD, SQD), ROW(SQD, SQE), ROW(SQD, ERR),
	ROW(SQE, RESET), ROW(SQE, INIT), ROW(SQE, RTR), ROW(SQE, RTS),
	ROW(SQE, SQD), ROW(SQE, SQE), ROW(SQE, ERR),
	ROW(ERR, RESET), ROW(ERR, INIT), ROW(ERR, RTR), ROW(ERR, RTS),
	ROW(ERR, SQD), ROW(ERR, SQE), ROW(ERR, ERR),
};

TEST_ROWS(transition, "A-030..A-036 transition", cells)
{
	const struct step *step = find_step(row->from, row->to);
	struct ibv_qp_attr a;
	struct dev *d;
	struct end e;
	int mask;

	if (row->from == IBV_QPS_SQE)
		test_skip("an RC QP is never in SQE (A-091)");
	d = dev_open();
	e = end_in(d, row->from);
	a = good_attr(&e, row->from, row->to);
	if (step) {
		CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | step->need), 0);
		CHECK_EQ(get_state(e.qp), row->to);
		return;
	}
	/* With nothing, and with everything each target could want. */
	CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), EINVAL);
	for (mask = 0; mask < 3; mask++) {
		const int sets[] = { NEED_INIT, NEED_RTR, NEED_RTS };

		CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | sets[mask]),
			  EINVAL);
	}
	CHECK_EQ(get_state(e.qp), row->from);
}

static void snapshot(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	struct ibv_qp_init_attr init;

	memset(a, 0, sizeof(*a));
	REQUIRE_OK(ibv_query_qp(qp, a, ALL_ATTRS, &init));
}

static void unchanged(struct ibv_qp *qp, const struct ibv_qp_attr *before)
{
	struct ibv_qp_attr now;

	snapshot(qp, &now);
	if (memcmp(&now, before, sizeof(now)))
		FAIL("a refused modify changed an attribute");
}

TEST_SOME_ROWS(required, "A-060 A-062 each required attribute is required",
	       steps, NUM_NEED)
{
	struct dev *d = dev_open();
	struct end e = end_in(d, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to), before;
	int bit, err;

	snapshot(e.qp, &before);
	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if (!(row->need & bit))
			continue;
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | (row->need & ~bit));
		if (err != EINVAL)
			FAIL("without attribute %#x: %s", bit,
			     err ? strerror(err) : "accepted");
		unchanged(e.qp, &before);
	}
	CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->need), 0);
}

TEST_SOME_ROWS(optional, "A-040..A-059 each optional attribute is accepted",
	       steps, NUM_MAY)
{
	struct dev *d = dev_open();
	int bit, err;

	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		struct end e;
		struct ibv_qp_attr a;

		if (!(row->may & bit))
			continue;
		e = end_in(d, row->from);
		a = good_attr(&e, row->from, row->to);
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->need | bit);
		if (err)
			FAIL("with attribute %#x: %s", bit, strerror(err));
		else
			CHECK_EQ(get_state(e.qp), row->to);
	}
}

TEST_ROWS(forbidden, "A-061 A-068 no other attribute is accepted", steps)
{
	const int reserved = 1 << 14 | 1 << 21;
	struct dev *d = dev_open_qhca();
	struct end e = end_in(d, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to), before;
	int bit, err;

	snapshot(e.qp, &before);
	for (bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if ((row->need | row->may | reserved) & bit)
			continue;
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->need | bit);
		if (err != EINVAL && !(bit & MIGRATION && err))
			FAIL("with attribute %#x: %s", bit,
			     err ? strerror(err) : "accepted");
		unchanged(e.qp, &before);
	}
	CHECK_EQ(get_state(e.qp), row->from);
}

static const struct {
	const char *name;
	enum ibv_qp_state state;
	int mask;
	int err;
} stateless[] = {
	{ "INIT, access", IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS, 0 },
	{ "RTS, RNR timer", IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER, 0 },
	{ "SQD, timeout", IBV_QPS_SQD, IBV_QP_TIMEOUT, 0 },
	{ "RESET, access", IBV_QPS_RESET, IBV_QP_ACCESS_FLAGS, EINVAL },
	{ "RTR, access", IBV_QPS_RTR, IBV_QP_ACCESS_FLAGS, EINVAL },
	{ "RTS, timeout", IBV_QPS_RTS, IBV_QP_TIMEOUT, EINVAL },
	{ "RTS, address", IBV_QPS_RTS, IBV_QP_AV, EINVAL },
	{ "ERR, access", IBV_QPS_ERR, IBV_QP_ACCESS_FLAGS, EINVAL },
};

TEST_ROWS(same_state, "A-073 modify without STATE", stateless)
{
	struct dev *d = dev_open_qhca();
	struct end e = end_in(d, row->state);
	struct ibv_qp_attr a = good_attr(&e, row->state, row->state);

	CHECK_ERR(ibv_modify_qp(e.qp, &a, row->mask), row->err);
	CHECK_EQ(get_state(e.qp), row->state);
}
