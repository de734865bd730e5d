// SPDX-License-Identifier: GPL-2.0
/*
 * Paths through the states, with work queued and messages in flight: conformance,
 * and what each state does with posted WRs (A.1). For RC, UC and UD.
 */
#include <stdlib.h>

#include "lib/rdma.h"

#define GRH		40
#define ROOM		(GRH + 64)
#define MAX_STEPS	10
#define END		-1

/* struct walk - QP a moves through the states, its peer b is in RTS */
struct walk {
	struct pair p;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	struct conn c;
	struct buf buf;
	struct ibv_ah *ah;
	uint64_t rr, rr_done;		/* receive requests of a: posted, completed */
	uint64_t sr, sr_done;
};

#define RR_ID	1000
#define B_ID	7000

static struct walk walk_new(struct dev *d, enum ibv_qp_type type)
{
	struct walk w = { .p = { .dev = d }, .type = type, .c = CONN };
	struct qp_opts o = QP_OPTS;

	o.type = type;
	o.send_wr = 64;
	o.recv_wr = 64;
	o.cqe = 256;
	w.p.a = end_new(d, &o);
	w.p.b = end_new(d, &o);
	w.buf = buf_new(d->pd, ROOM, LOCAL);
	if (type == IBV_QPT_UD)
		w.ah = own_ah(d, d->pd);
	return w;
}

static int post_to(struct walk *w, struct end *from, struct end *to,
		   uint64_t id)
{
	struct ibv_send_wr wr = wr_send(id, NULL, 0);

	if (w->type == IBV_QPT_UD) {
		wr.wr.ud.ah = w->ah;
		wr.wr.ud.remote_qpn = to->qp->qp_num;
		wr.wr.ud.remote_qkey = w->c.qkey;
	}
	return post_send(from, &wr);
}

static int post_room(struct walk *w, struct end *e, uint64_t id)
{
	struct ibv_sge sge = buf_sge(&w->buf, 0, ROOM);

	return post_recv(e, id, &sge, 1);
}

static void post_sr(struct walk *w, int n)
{
	while (n--)
		REQUIRE_OK(post_to(w, &w->p.a, &w->p.b, w->sr++));
}

static void post_rr(struct walk *w, int n)
{
	while (n--)
		REQUIRE_OK(post_room(w, &w->p.a, RR_ID + w->rr++));
}

/* Everything queued at a completes with that status, in order. */
static void expect_sr(struct walk *w, enum ibv_wc_status status)
{
	while (w->sr_done < w->sr)
		poll_expect(w->p.a.send_cq, w->sr_done++, status);
}

static void expect_rr(struct walk *w, enum ibv_wc_status status)
{
	while (w->rr_done < w->rr)
		poll_expect(w->p.a.recv_cq, RR_ID + w->rr_done++, status);
}

/* Everything queued at a arrives at b, which has room. */
static void expect_sent(struct walk *w)
{
	while (w->sr_done < w->sr) {
		poll_ok(w->p.a.send_cq, w->sr_done++);
		poll_ok(w->p.b.recv_cq, B_ID);
		REQUIRE_OK(post_room(w, &w->p.b, B_ID));
	}
}

/* Sends a message to a, which takes its oldest receive request. */
static void receive(struct walk *w)
{
	post_rr(w, 1);
	REQUIRE_OK(post_to(w, &w->p.b, &w->p.a, 1));
	poll_ok(w->p.b.send_cq, 1);
	poll_ok(w->p.a.recv_cq, RR_ID + w->rr_done++);
}

/* Resets the peer whenever a is reset. */
static void bring_peer(struct walk *w)
{
	struct conn c = w->c;
	int i;

	REQUIRE_OK(set_state(w->p.b.qp, IBV_QPS_RESET));
	c.rq_psn = w->c.sq_psn;
	c.sq_psn = w->c.rq_psn;
	c.dest_qpn = w->p.a.qp->qp_num;
	qp_bring(&w->p.b, &c, IBV_QPS_RTS);
	for (i = 0; i < 8; i++)
		REQUIRE_OK(post_room(w, &w->p.b, B_ID));
}

/* Returns attributes that may be set without leaving the state. */
static int same_state_mask(const struct walk *w, enum ibv_qp_state state)
{
	bool ud = w->type == IBV_QPT_UD;

	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_PORT | IBV_QP_PKEY_INDEX |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTS:
		return ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_SQD:
		return ud ? IBV_QP_QKEY | IBV_QP_PKEY_INDEX :
			    IBV_QP_AV | IBV_QP_ACCESS_FLAGS;
	default:
		return 0;
	}
}

/* Sets the attributes of the step to @to. */
static int step_attr(struct walk *w, enum ibv_qp_state to,
		     struct ibv_qp_attr *a)
{
	struct ibv_qp_attr init;
	int mask;

	w->c.dest_qpn = w->p.b.qp->qp_num;
	if (w->state == to) {
		attr_init(&init, &w->c);
		attr_rtr(a, w->p.dev, &w->c);
		a->port_num = init.port_num;
		a->qp_access_flags = init.qp_access_flags;
		a->qkey = init.qkey;
		mask = IBV_QP_STATE | same_state_mask(w, to);
	} else if (w->state == IBV_QPS_RESET && to == IBV_QPS_INIT) {
		mask = attr_mask(w->type, attr_init(a, &w->c));
	} else if (to == IBV_QPS_RTR) {
		mask = attr_mask(w->type, attr_rtr(a, w->p.dev, &w->c));
	} else if (w->state == IBV_QPS_RTR && to == IBV_QPS_RTS) {
		mask = attr_mask(w->type, attr_rts(a, &w->c));
	} else {
		mask = IBV_QP_STATE;
	}
	a->qp_state = to;
	return mask;
}

static void in_rts(struct walk *w, enum ibv_qp_state from)
{
	if (from == IBV_QPS_SQE)
		expect_sr(w, IBV_WC_WR_FLUSH_ERR);
	expect_sent(w);				/* requests held in SQD */
	post_sr(w, 2);
	expect_sent(w);
	receive(w);
}

static void in_sqd(struct walk *w)
{
	uint64_t sent;

	receive(w);				/* */
	sent = hw_counter("tx_pkts");
	post_sr(w, 2);
	poll_none(w->p.a.send_cq);
	CHECK_EQ(hw_counter("tx_pkts"), sent);	/* */
}

static void in_sqe(struct walk *w)
{
	post_sr(w, 2);
	expect_sr(w, IBV_WC_WR_FLUSH_ERR);
	receive(w);				/* */
}

static void in_err(struct walk *w)
{
	post_sr(w, w->sr ? 2 : 0);		/* only if it has ever sent */
	post_rr(w, 2);
	expect_sr(w, IBV_WC_WR_FLUSH_ERR);
	expect_rr(w, IBV_WC_WR_FLUSH_ERR);
	poll_empty(w->p.a.send_cq);
	poll_empty(w->p.a.recv_cq);
}

static void in_reset(struct walk *w)
{
	poll_empty(w->p.a.send_cq);		/* */
	poll_empty(w->p.a.recv_cq);
	w->sr = 0;
	w->sr_done = 0;
	w->rr = 0;
	w->rr_done = 0;
	CHECK_ERR(post_to(w, &w->p.a, &w->p.b, 0), EINVAL);
	CHECK_ERR(post_room(w, &w->p.a, 0), EINVAL);
}

static void step(struct walk *w, enum ibv_qp_state to)
{
	enum ibv_qp_state from = w->state;
	struct ibv_qp_attr a = { 0 };
	int mask;

	if (to == IBV_QPS_RESET && from == IBV_QPS_RTS) {
		post_sr(w, 1);	/* leave a completion for RESET */
		poll_ok(w->p.b.recv_cq, B_ID);
	}
	if (to == IBV_QPS_SQE) {
		qp_spoil(&w->p.a);
	} else {
		mask = step_attr(w, to, &a);
		REQUIRE_OK(ibv_modify_qp(w->p.a.qp, &a, mask));
	}
	w->state = to;
	CHECK_EQ(get_state(w->p.a.qp), to);
	switch (to) {
	case IBV_QPS_RESET:
		in_reset(w);
		break;
	case IBV_QPS_INIT:
		if (from == IBV_QPS_RESET)
			bring_peer(w);
		post_rr(w, 2);
		CHECK_ERR(post_to(w, &w->p.a, &w->p.b, 0), EINVAL);
		break;
	case IBV_QPS_RTR:
		receive(w);		/* */
		CHECK_ERR(post_to(w, &w->p.a, &w->p.b, 0), EINVAL);
		break;
	case IBV_QPS_RTS:
		in_rts(w, from);
		break;
	case IBV_QPS_SQD:
		if (from == to)
			break;
		in_sqd(w);
		break;
	case IBV_QPS_SQE:
		in_sqe(w);
		break;
	default:
		in_err(w);
		break;
	}
}

struct path {
	const char *name;
	enum ibv_qp_type type;
	int states[MAX_STEPS];
};

enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR };

#define PATH(type, name, ...) \
	{ #type ", " name, IBV_QPT_##type, { __VA_ARGS__, END } }

static const struct path paths[] = {
	PATH(RC, "A-080 A-110", INIT, INIT, RTR, RTS),
	PATH(UC, "A-080 A-110", INIT, INIT, RTR, RTS),
	PATH(UD, "A-080 A-110", INIT, INIT, RTR, RTS),
	PATH(RC, "A-111", INIT, RTR, RTS, RTS),
	PATH(UC, "A-111", INIT, RTR, RTS, RTS),
	PATH(UD, "A-111", INIT, RTR, RTS, RTS),
	PATH(RC, "A-112 A-119", INIT, RTR, RTS, SQD, RTS),
	PATH(UC, "A-112 A-119", INIT, RTR, RTS, SQD, RTS),
	PATH(UD, "A-112 A-119", INIT, RTR, RTS, SQD, RTS),
	PATH(RC, "SQD to SQD", INIT, RTR, RTS, SQD, SQD, RTS),
	PATH(UC, "SQD to SQD", INIT, RTR, RTS, SQD, SQD, RTS),
	PATH(UD, "SQD to SQD", INIT, RTR, RTS, SQD, SQD, RTS),
	PATH(RC, "A-114", INIT, RTR, RTS, SQD, ERR),
	PATH(UC, "A-114", INIT, RTR, RTS, SQD, ERR),
	PATH(UD, "A-114", INIT, RTR, RTS, SQD, ERR),
	PATH(RC, "A-098 A-099 A-101 A-115 I-039", INIT, RTR, RTS, ERR, ERR),
	PATH(UC, "A-098 A-099 A-101 A-115 I-039", INIT, RTR, RTS, ERR, ERR),
	PATH(UD, "A-098 A-099 A-101 A-115 I-039", INIT, RTR, RTS, ERR, ERR),
	PATH(RC, "A-116", INIT, RTR, ERR),
	PATH(UC, "A-116", INIT, RTR, ERR),
	PATH(UD, "A-116", INIT, RTR, ERR),
	PATH(RC, "A-117", INIT, ERR, RESET, INIT, RTR, RTS),
	PATH(UC, "A-117", INIT, ERR, RESET, INIT, RTR, RTS),
	PATH(UD, "A-117", INIT, ERR, RESET, INIT, RTR, RTS),
	PATH(RC, "A-118", INIT, RTR, RTS, ERR, RESET, INIT, RTR, RTS),
	PATH(UC, "A-118", INIT, RTR, RTS, ERR, RESET, INIT, RTR, RTS),
	PATH(UD, "A-118", INIT, RTR, RTS, ERR, RESET, INIT, RTR, RTS),
	PATH(RC, "A-120 A-103", INIT, RTR, RTS, RESET, INIT, RTR, RTS),
	PATH(UC, "A-120 A-103", INIT, RTR, RTS, RESET, INIT, RTR, RTS),
	PATH(UD, "A-120 A-103", INIT, RTR, RTS, RESET, INIT, RTR, RTS),
	PATH(UC, "A-093 A-094", INIT, RTR, RTS, SQE, RTS, SQE, RTS),
	PATH(UD, "A-093 A-094", INIT, RTR, RTS, SQE, RTS, SQE, RTS),
	PATH(UC, "A-092 SQE and ERR", INIT, RTR, RTS, SQE, ERR, RESET),
	PATH(UD, "A-092 SQE and ERR", INIT, RTR, RTS, SQE, ERR, RESET),
	PATH(UC, "A-104 SQE and RESET", INIT, RTR, RTS, SQE, RESET, INIT, RTR,
	     RTS),
	PATH(UD, "A-104 SQE and RESET", INIT, RTR, RTS, SQE, RESET, INIT, RTR,
	     RTS),
};

TEST_ROWS(path, "path", paths)
{
	struct walk w = walk_new(dev_open_qhca(), row->type);
	int i;

	in_reset(&w);
	for (i = 0; row->states[i] != END; i++)
		step(&w, row->states[i]);
	poll_none(w.p.a.send_cq);
	poll_empty(w.p.a.recv_cq);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC }, { "UC", IBV_QPT_UC }, { "UD", IBV_QPT_UD },
};

TEST_ROWS(loop, "A-105 100 lives of a QP, ended in each way", types)
{
	const enum ibv_qp_state last[] = { IBV_QPS_RESET, IBV_QPS_ERR,
					   IBV_QPS_SQE };
	struct walk w = walk_new(dev_open_qhca(), row->type);
	unsigned int ends = row->type == IBV_QPT_RC ? 2 : 3;
	int i;

	for (i = 0; i < 100; i++) {
		w.c.sq_psn = (i * 0x23456 + 0xffffff) & 0xffffff;
		w.c.rq_psn = ~w.c.sq_psn & 0xffffff;
		step(&w, IBV_QPS_INIT);
		step(&w, IBV_QPS_RTR);
		step(&w, IBV_QPS_RTS);
		if (last[i % ends] != IBV_QPS_RESET)
			step(&w, last[i % ends]);
		step(&w, IBV_QPS_RESET);
	}
}
