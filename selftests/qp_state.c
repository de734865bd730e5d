// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine as modify sees it: conformance A.2 and A.3, one test per
 * cell and per row, for each type of QP.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

/*
 * A QP in @state that is connected to itself. Skips the test where there is no
 * such state or no such type.
 */
static struct end end_in(struct dev *d, enum ibv_qp_type type,
			 enum ibv_qp_state state)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct end e;

	if (type == IBV_QPT_RC && state == IBV_QPS_SQE)
		test_skip("an RC QP is never in SQE (A-091)");
	o.type = type;
	e = end_new(d, &o);
	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, state);
	CHECK_EQ(get_state(e.qp), state);
	return e;
}

/* All that there is, with values that are right everywhere. */
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
#define PKEY_PORT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RC_INIT		(PKEY_PORT | IBV_QP_ACCESS_FLAGS)
#define UC_INIT		RC_INIT
#define UD_INIT		(PKEY_PORT | IBV_QP_QKEY)
#define UC_RTR		(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
			 IBV_QP_RQ_PSN)
#define RC_RTR		(UC_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | \
			 IBV_QP_MIN_RNR_TIMER)
#define MAY_RTR		(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define UD_MAY_RTR	(IBV_QP_QKEY | IBV_QP_PKEY_INDEX)
#define RC_RTS		(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
			 IBV_QP_MAX_QP_RD_ATOMIC)
#define UC_MAY_RTS	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define RC_MAY_RTS	(UC_MAY_RTS | IBV_QP_MIN_RNR_TIMER)
#define UD_MAY_RTS	(IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define UC_MAY_SQD	(IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RC_MAY_SQD	(UC_MAY_SQD | IBV_QP_PORT | IBV_QP_TIMEOUT | \
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
			 IBV_QP_MIN_RNR_TIMER)
#define UD_MAY_SQD	UD_MAY_RTR
/*
 * The core lets these through in some steps, but a RoCE port has no path
 * migration: refused everywhere, but for the state MIGRATED, in which
 * every QP is.
 */
#define MIGRATION	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

struct step {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int need, may;
};

#define STEP(type, f, t, need, may) \
	{ #type ", " #f " to " #t, IBV_QPT_##type, IBV_QPS_##f, IBV_QPS_##t, \
	  need, may }

#define OUT(type, f, t)	STEP(type, f, t, 0, 0)

/* First those that need attributes, then those that may have some. */
static const struct step steps[] = {
	STEP(RC, RESET, INIT, RC_INIT, 0),
	STEP(UC, RESET, INIT, UC_INIT, 0),
	STEP(UD, RESET, INIT, UD_INIT, 0),
	STEP(RC, INIT, RTR, RC_RTR, MAY_RTR),
	STEP(UC, INIT, RTR, UC_RTR, MAY_RTR),
	STEP(RC, RTR, RTS, RC_RTS, RC_MAY_RTS),
	STEP(UC, RTR, RTS, IBV_QP_SQ_PSN, UC_MAY_RTS),
	STEP(UD, RTR, RTS, IBV_QP_SQ_PSN, UD_MAY_RTS),
#define NUM_NEED	8
	STEP(UD, INIT, RTR, 0, UD_MAY_RTR),
	STEP(RC, INIT, INIT, 0, RC_INIT),
	STEP(UC, INIT, INIT, 0, UC_INIT),
	STEP(UD, INIT, INIT, 0, UD_INIT),
	STEP(RC, RTS, RTS, 0, RC_MAY_RTS),
	STEP(UC, RTS, RTS, 0, UC_MAY_RTS),
	STEP(UD, RTS, RTS, 0, UD_MAY_RTS),
	STEP(RC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP(UC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP(UD, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP(RC, SQD, RTS, 0, RC_MAY_RTS),
	STEP(UC, SQD, RTS, 0, UC_MAY_RTS),
	STEP(UD, SQD, RTS, 0, UD_MAY_RTS),
	STEP(RC, SQD, SQD, 0, RC_MAY_SQD),
	STEP(UC, SQD, SQD, 0, UC_MAY_SQD),
	STEP(UD, SQD, SQD, 0, UD_MAY_SQD),
	STEP(UC, SQE, RTS, 0, UC_MAY_RTS),
	STEP(UD, SQE, RTS, 0, UD_MAY_RTS),
#define NUM_MAY		26
	/* nothing goes with the ways out. */
	OUT(RC, RESET, RESET), OUT(UC, RESET, RESET), OUT(UD, RESET, RESET),
	OUT(RC, INIT, RESET), OUT(UC, INIT, RESET), OUT(UD, INIT, RESET),
	OUT(RC, RTR, RESET), OUT(UC, RTR, RESET), OUT(UD, RTR, RESET),
	OUT(RC, RTS, RESET), OUT(UC, RTS, RESET), OUT(UD, RTS, RESET),
	OUT(RC, SQD, RESET), OUT(UC, SQD, RESET), OUT(UD, SQD, RESET),
	OUT(RC, SQE, RESET), OUT(UC, SQE, RESET), OUT(UD, SQE, RESET),
	OUT(RC, ERR, RESET), OUT(UC, ERR, RESET), OUT(UD, ERR, RESET),
	OUT(RC, INIT, ERR), OUT(UC, INIT, ERR), OUT(UD, INIT, ERR),
	OUT(RC, RTR, ERR), OUT(UC, RTR, ERR), OUT(UD, RTR, ERR),
	OUT(RC, RTS, ERR), OUT(UC, RTS, ERR), OUT(UD, RTS, ERR),
	OUT(RC, SQD, ERR), OUT(UC, SQD, ERR), OUT(UD, SQD, ERR),
	OUT(RC, SQE, ERR), OUT(UC, SQE, ERR), OUT(UD, SQE, ERR),
	OUT(RC, ERR, ERR), OUT(UC, ERR, ERR), OUT(UD, ERR, ERR),
};

static const struct step *find_step(int type, int from, int to)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if ((int)steps[i].type == type && (int)steps[i].from == from &&
		    (int)steps[i].to == to)
			return &steps[i];
	return NULL;
}

#define ALL_ATTRS (2 * IBV_QP_DEST_QPN - 1)

#define CELL(type, f, t) \
	{ #type ", " #f " to " #t, IBV_QPT_##type, IBV_QPS_##f, IBV_QPS_##t }

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
} cells[] = {
	CELL(RC, RESET, RESET), CELL(UC, RESET, RESET), CELL(UD, RESET, RESET),
	CELL(RC, RESET, INIT), CELL(UC, RESET, INIT), CELL(UD, RESET, INIT),
	CELL(RC, RESET, RTR), CELL(UC, RESET, RTR), CELL(UD, RESET, RTR),
	CELL(RC, RESET, RTS), CELL(UC, RESET, RTS), CELL(UD, RESET, RTS),
	CELL(RC, RESET, SQD), CELL(UC, RESET, SQD), CELL(UD, RESET, SQD),
	CELL(RC, RESET, SQE), CELL(UC, RESET, SQE), CELL(UD, RESET, SQE),
	CELL(RC, RESET, ERR), CELL(UC, RESET, ERR), CELL(UD, RESET, ERR),
	CELL(RC, INIT, RESET), CELL(UC, INIT, RESET), CELL(UD, INIT, RESET),
	CELL(RC, INIT, INIT), CELL(UC, INIT, INIT), CELL(UD, INIT, INIT),
	CELL(RC, INIT, RTR), CELL(UC, INIT, RTR), CELL(UD, INIT, RTR),
	CELL(RC, INIT, RTS), CELL(UC, INIT, RTS), CELL(UD, INIT, RTS),
	CELL(RC, INIT, SQD), CELL(UC, INIT, SQD), CELL(UD, INIT, SQD),
	CELL(RC, INIT, SQE), CELL(UC, INIT, SQE), CELL(UD, INIT, SQE),
	CELL(RC, INIT, ERR), CELL(UC, INIT, ERR), CELL(UD, INIT, ERR),
	CELL(RC, RTR, RESET), CELL(UC, RTR, RESET), CELL(UD, RTR, RESET),
	CELL(RC, RTR, INIT), CELL(UC, RTR, INIT), CELL(UD, RTR, INIT),
	CELL(RC, RTR, RTR), CELL(UC, RTR, RTR), CELL(UD, RTR, RTR),
	CELL(RC, RTR, RTS), CELL(UC, RTR, RTS), CELL(UD, RTR, RTS),
	CELL(RC, RTR, SQD), CELL(UC, RTR, SQD), CELL(UD, RTR, SQD),
	CELL(RC, RTR, SQE), CELL(UC, RTR, SQE), CELL(UD, RTR, SQE),
	CELL(RC, RTR, ERR), CELL(UC, RTR, ERR), CELL(UD, RTR, ERR),
	CELL(RC, RTS, RESET), CELL(UC, RTS, RESET), CELL(UD, RTS, RESET),
	CELL(RC, RTS, INIT), CELL(UC, RTS, INIT), CELL(UD, RTS, INIT),
	CELL(RC, RTS, RTR), CELL(UC, RTS, RTR), CELL(UD, RTS, RTR),
	CELL(RC, RTS, RTS), CELL(UC, RTS, RTS), CELL(UD, RTS, RTS),
	CELL(RC, RTS, SQD), CELL(UC, RTS, SQD), CELL(UD, RTS, SQD),
	CELL(RC, RTS, SQE), CELL(UC, RTS, SQE), CELL(UD, RTS, SQE),
	CELL(RC, RTS, ERR), CELL(UC, RTS, ERR), CELL(UD, RTS, ERR),
	CELL(RC, SQD, RESET), CELL(UC, SQD, RESET), CELL(UD, SQD, RESET),
	CELL(RC, SQD, INIT), CELL(UC, SQD, INIT), CELL(UD, SQD, INIT),
	CELL(RC, SQD, RTR), CELL(UC, SQD, RTR), CELL(UD, SQD, RTR),
	CELL(RC, SQD, RTS), CELL(UC, SQD, RTS), CELL(UD, SQD, RTS),
	CELL(RC, SQD, SQD), CELL(UC, SQD, SQD), CELL(UD, SQD, SQD),
	CELL(RC, SQD, SQE), CELL(UC, SQD, SQE), CELL(UD, SQD, SQE),
	CELL(RC, SQD, ERR), CELL(UC, SQD, ERR), CELL(UD, SQD, ERR),
	CELL(RC, SQE, RESET), CELL(UC, SQE, RESET), CELL(UD, SQE, RESET),
	CELL(RC, SQE, INIT), CELL(UC, SQE, INIT), CELL(UD, SQE, INIT),
	CELL(RC, SQE, RTR), CELL(UC, SQE, RTR), CELL(UD, SQE, RTR),
	CELL(RC, SQE, RTS), CELL(UC, SQE, RTS), CELL(UD, SQE, RTS),
	CELL(RC, SQE, SQD), CELL(UC, SQE, SQD), CELL(UD, SQE, SQD),
	CELL(RC, SQE, SQE), CELL(UC, SQE, SQE), CELL(UD, SQE, SQE),
	CELL(RC, SQE, ERR), CELL(UC, SQE, ERR), CELL(UD, SQE, ERR),
	CELL(RC, ERR, RESET), CELL(UC, ERR, RESET), CELL(UD, ERR, RESET),
	CELL(RC, ERR, INIT), CELL(UC, ERR, INIT), CELL(UD, ERR, INIT),
	CELL(RC, ERR, RTR), CELL(UC, ERR, RTR), CELL(UD, ERR, RTR),
	CELL(RC, ERR, RTS), CELL(UC, ERR, RTS), CELL(UD, ERR, RTS),
	CELL(RC, ERR, SQD), CELL(UC, ERR, SQD), CELL(UD, ERR, SQD),
	CELL(RC, ERR, SQE), CELL(UC, ERR, SQE), CELL(UD, ERR, SQE),
	CELL(RC, ERR, ERR), CELL(UC, ERR, ERR), CELL(UD, ERR, ERR),
};

TEST_ROWS(transition, "A-030..A-036 transition", cells)
{
	/* Everything each target could want. */
	static const int sets[] = { 0, RC_INIT, UD_INIT, RC_RTR, UC_RTR, RC_RTS,
				    IBV_QP_SQ_PSN };
	const struct step *step = find_step(row->type, row->from, row->to);
	struct dev *d = dev_open();
	struct end e = end_in(d, row->type, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to);
	size_t i;

	if (step) {
		CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | step->need), 0);
		CHECK_EQ(get_state(e.qp), row->to);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(sets); i++)
		CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | sets[i]),
			  EINVAL);
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
	struct end e = end_in(d, row->type, row->from);
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
		e = end_in(d, row->type, row->from);
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
	struct end e = end_in(d, row->type, row->from);
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

#define STATELESS(type, state, what, mask, err) \
	{ #type ", " #state ", " what, IBV_QPT_##type, IBV_QPS_##state, mask, \
	  err }

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	int mask;
	int err;
} stateless[] = {
	STATELESS(RC, INIT, "access", IBV_QP_ACCESS_FLAGS, 0),
	STATELESS(RC, RTS, "RNR timer", IBV_QP_MIN_RNR_TIMER, 0),
	STATELESS(RC, SQD, "timeout", IBV_QP_TIMEOUT, 0),
	STATELESS(RC, RESET, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
	STATELESS(RC, RTR, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
	STATELESS(RC, RTS, "timeout", IBV_QP_TIMEOUT, EINVAL),
	STATELESS(RC, RTS, "address", IBV_QP_AV, EINVAL),
	STATELESS(RC, ERR, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
	STATELESS(UC, RTS, "access", IBV_QP_ACCESS_FLAGS, 0),
	STATELESS(UC, SQD, "address", IBV_QP_AV, 0),
	STATELESS(UC, SQD, "timeout", IBV_QP_TIMEOUT, EINVAL),
	STATELESS(UC, SQE, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
	STATELESS(UD, INIT, "Q_Key", IBV_QP_QKEY, 0),
	STATELESS(UD, RTS, "Q_Key", IBV_QP_QKEY, 0),
	STATELESS(UD, RTS, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
	STATELESS(UD, SQE, "Q_Key", IBV_QP_QKEY, EINVAL),
};

TEST_ROWS(same_state, "A-073 modify without STATE", stateless)
{
	struct dev *d = dev_open_qhca();
	struct end e = end_in(d, row->type, row->state);
	struct ibv_qp_attr a = good_attr(&e, row->state, row->state);

	CHECK_ERR(ibv_modify_qp(e.qp, &a, row->mask), row->err);
	CHECK_EQ(get_state(e.qp), row->state);
}
