// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine, tested through modify: conformance A.2 and A.3, one test for each cell and
 * each row, for each type of QP.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

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

/* Conformance A.3: attributes that a legal step requires, and optional ones. */
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
/* Attributes of the half that an XRC QP lacks; the core removes them silently. */
#define NO_SEND		(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define NO_RECV		(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY)
/*
 * The core accepts these in some steps, but a RoCE port has no path migration, so they are
 * refused in every state.
 */
#define MIGRATION	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

struct step {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int need, may;
};

#define STEP(id, type, f, t, need, may) \
	{ id " " #type ", " #f " to " #t, IBV_QPT_##type, IBV_QPS_##f, IBV_QPS_##t, \
	  need, may }

/* First the steps that require attributes, then those that only allow some. */
static const struct step steps[] = {
	STEP("A-040", RC, RESET, INIT, RC_INIT, 0),
	STEP("A-040", UC, RESET, INIT, UC_INIT, 0),
	STEP("A-041", UD, RESET, INIT, UD_INIT, 0),
	STEP("A-044", RC, INIT, RTR, RC_RTR, MAY_RTR),
	STEP("A-045", UC, INIT, RTR, UC_RTR, MAY_RTR),
	STEP("A-047", RC, RTR, RTS, RC_RTS, RC_MAY_RTS),
	STEP("A-048", UC, RTR, RTS, IBV_QP_SQ_PSN, UC_MAY_RTS),
	STEP("A-049", UD, RTR, RTS, IBV_QP_SQ_PSN, UD_MAY_RTS),
	STEP("A-040", XRC_SEND, RESET, INIT, RC_INIT, 0),
	STEP("A-040", XRC_RECV, RESET, INIT, RC_INIT, 0),
	STEP("A-045", XRC_SEND, INIT, RTR, UC_RTR, MAY_RTR),
	STEP("A-044", XRC_RECV, INIT, RTR, RC_RTR, MAY_RTR),
	STEP("A-047", XRC_SEND, RTR, RTS, RC_RTS, UC_MAY_RTS),
	STEP("A-050", XRC_RECV, RTR, RTS, RC_RTS & ~NO_RECV, RC_MAY_RTS),
#define NUM_NEED	14
	STEP("A-046", UD, INIT, RTR, 0, UD_MAY_RTR),
	STEP("A-043", RC, INIT, INIT, 0, RC_INIT),
	STEP("A-043", UC, INIT, INIT, 0, UC_INIT),
	STEP("A-043", UD, INIT, INIT, 0, UD_INIT),
	STEP("A-051", RC, RTS, RTS, 0, RC_MAY_RTS),
	STEP("A-052", UC, RTS, RTS, 0, UC_MAY_RTS),
	STEP("A-053", UD, RTS, RTS, 0, UD_MAY_RTS),
	STEP("A-055", RC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-055", UC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-055", UD, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-051", RC, SQD, RTS, 0, RC_MAY_RTS),
	STEP("A-052", UC, SQD, RTS, 0, UC_MAY_RTS),
	STEP("A-053", UD, SQD, RTS, 0, UD_MAY_RTS),
	STEP("A-056", RC, SQD, SQD, 0, RC_MAY_SQD),
	STEP("A-057", UC, SQD, SQD, 0, UC_MAY_SQD),
	STEP("A-058", UD, SQD, SQD, 0, UD_MAY_SQD),
	STEP("A-054", UC, SQE, RTS, 0, UC_MAY_RTS),
	STEP("A-053", UD, SQE, RTS, 0, UD_MAY_RTS),
	STEP("A-043", XRC_SEND, INIT, INIT, 0, RC_INIT),
	STEP("A-043", XRC_RECV, INIT, INIT, 0, RC_INIT),
	STEP("A-052", XRC_SEND, RTS, RTS, 0, UC_MAY_RTS),
	STEP("A-051", XRC_RECV, RTS, RTS, 0, RC_MAY_RTS),
	STEP("A-055", XRC_SEND, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-055", XRC_RECV, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	STEP("A-052", XRC_SEND, SQD, RTS, 0, UC_MAY_RTS),
	STEP("A-051", XRC_RECV, SQD, RTS, 0, RC_MAY_RTS),
	STEP("A-056", XRC_SEND, SQD, SQD, 0, RC_MAY_SQD & ~NO_SEND),
	STEP("A-056", XRC_RECV, SQD, SQD, 0, RC_MAY_SQD & ~NO_RECV),
};

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
	{ "UD", IBV_QPT_UD },
	{ "XRC_SEND", IBV_QPT_XRC_SEND },
	{ "XRC_RECV", IBV_QPT_XRC_RECV },
};

static const char *const states[] = {
	[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS", [IBV_QPS_SQD] = "SQD", [IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

/* Every pair of states for every type; the steps to RESET and ERR are A-059. */
#define NUM_STATES	ARRAY_SIZE(states)
#define MAX_CELLS	(NUM_STATES * NUM_STATES * ARRAY_SIZE(types))
#define MAX_OUTS	((2 * NUM_STATES - 1) * ARRAY_SIZE(types))

static struct step cells[MAX_CELLS], outs[MAX_OUTS];
static size_t num_cells, num_outs;
static char names[MAX_CELLS][40];

/* RC and XRC move to ERR where other types move to SQE. */
static bool can_be_in(enum ibv_qp_type type, int state)
{
	return state != IBV_QPS_SQE || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

static bool leads_out(int from, int to)
{
	return to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
}

/* Runs before the harness lists the tests, because their names use the cells. */
__attribute__((constructor(101))) static void make_cells(void)
{
	struct step *cell = cells;
	size_t i;

	for (i = 0; i < MAX_CELLS; i++) {
		size_t type = i % ARRAY_SIZE(types), pair = i / ARRAY_SIZE(types);
		int from = pair / NUM_STATES, to = pair % NUM_STATES;

		if (!can_be_in(types[type].type, from))
			continue;
		snprintf(names[i], sizeof(names[i]), "A-%03d %s, %s to %s", 30 + from,
			 types[type].name, states[from], states[to]);
		*cell = (struct step){ names[i], types[type].type, from, to, 0, 0 };
		if (leads_out(from, to))
			outs[num_outs++] = *cell;
		cell++;
	}
	num_cells = cell - cells;
}

static bool is_step(const struct step *s, int type, int from, int to)
{
	return (int)s->type == type && (int)s->from == from && (int)s->to == to;
}

static const struct step *find_step(int type, int from, int to)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if (is_step(&steps[i], type, from, to))
			return &steps[i];
	for (i = 0; i < num_outs; i++)
		if (is_step(&outs[i], type, from, to))
			return &outs[i];
	return NULL;
}

#define ALL_ATTRS (2 * IBV_QP_DEST_QPN - 1)

TEST_SOME_ROWS(transition, "transition", cells, num_cells)
{
	/* All attributes that any target state takes. */
	static const int sets[] = { 0, RC_INIT, UD_INIT, RC_RTR, UC_RTR, RC_RTS,
				    IBV_QP_SQ_PSN };
	const struct step *step = find_step(row->type, row->from, row->to);
	struct dev *d = dev_open();
	struct end e = end_of_type(d, row->type, row->from);
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
	struct end e = end_of_type(d, row->type, row->from);
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

TEST_ROWS(optional, "each optional attribute is accepted", steps)
{
	struct dev *d = dev_open();
	int bit, err;

	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		struct end e;
		struct ibv_qp_attr a;

		if (!(row->may & bit))
			continue;
		e = end_of_type(d, row->type, row->from);
		a = good_attr(&e, row->from, row->to);
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->need | bit);
		if (err)
			FAIL("with attribute %#x: %s", bit, strerror(err));
		else
			CHECK_EQ(get_state(e.qp), row->to);
	}
}

static void no_others(const struct step *row)
{
	const int reserved = 1 << 14 | 1 << 21;
	int taken_away = row->type == IBV_QPT_XRC_SEND ? NO_SEND :
			 row->type == IBV_QPT_XRC_RECV ? NO_RECV : 0;
	struct dev *d = dev_open_qhca();
	struct end e = end_of_type(d, row->type, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to), before;
	int bit, err;

	snapshot(e.qp, &before);
	for (bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if ((row->need | row->may | reserved | taken_away) & bit)
			continue;
		err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->need | bit);
		if (err != EINVAL && !(bit & MIGRATION && err))
			FAIL("with attribute %#x: %s", bit,
			     err ? strerror(err) : "accepted");
		unchanged(e.qp, &before);
	}
	CHECK_EQ(get_state(e.qp), row->from);
}

TEST_ROWS(forbidden, "A-061 A-068 no other attribute is accepted", steps)
{
	no_others(row);
}

TEST_SOME_ROWS(forbidden_out, "A-059 A-061 A-068 RESET and ERR accept no attribute",
	       outs, num_outs)
{
	no_others(row);
}

static const struct {
	const char *name;
	enum ibv_mig_state state;
} migration[] = {
	{ "MIGRATED", IBV_MIG_MIGRATED },
	{ "REARM", IBV_MIG_REARM },
	{ "ARMED", IBV_MIG_ARMED },
};

TEST_ROWS(migration_state, "A-068 PATH_MIG_STATE is refused", migration)
{
	struct dev *d = dev_open_qhca();
	struct end e = end_of_type(d, IBV_QPT_RC, IBV_QPS_RTS);
	struct ibv_qp_attr a = good_attr(&e, IBV_QPS_RTS, IBV_QPS_RTS), now;

	a.path_mig_state = row->state;
	CHECK(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
	snapshot(e.qp, &now);
	CHECK_EQ(now.path_mig_state, IBV_MIG_MIGRATED);
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
	STATELESS(XRC_SEND, SQD, "timeout", IBV_QP_TIMEOUT, 0),
	STATELESS(XRC_SEND, RTS, "timeout", IBV_QP_TIMEOUT, EINVAL),
	STATELESS(XRC_RECV, RTS, "RNR timer", IBV_QP_MIN_RNR_TIMER, 0),
	STATELESS(XRC_RECV, RTR, "access", IBV_QP_ACCESS_FLAGS, EINVAL),
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
	struct end e = end_of_type(d, row->type, row->state);
	struct ibv_qp_attr a = good_attr(&e, row->state, row->state);

	CHECK_ERR(ibv_modify_qp(e.qp, &a, row->mask), row->err);
	CHECK_EQ(get_state(e.qp), row->state);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int mask;
} halves[] = {
	{ "XRC_SEND, INIT to RTR", IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR },
	{ "XRC_SEND, SQD to SQD", IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, RC_MAY_SQD },
	{ "XRC_RECV, RTR to RTS", IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS },
	{ "XRC_RECV, SQD to SQD", IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, RC_MAY_SQD },
};

TEST_ROWS(half, "A-071 attributes of the half that an XRC QP lacks are ignored", halves)
{
	struct dev *d = dev_open_qhca();
	struct end e = end_of_type(d, row->type, row->from);
	struct ibv_qp_attr a = good_attr(&e, row->from, row->to);

	CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | row->mask), 0);
	CHECK_EQ(get_state(e.qp), row->to);
}
