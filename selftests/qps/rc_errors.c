// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable connections: the completion errors of conformance I at both ends. After RESET the QPs
 * work again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define NONE	-1	/* no completion at that end */

enum kind {
	BAD_LKEY, DEAD_LKEY, FOREIGN_LKEY, BEYOND_LKEY, READ_ONLY_LKEY,
	BAD_RKEY, DEAD_RKEY, FOREIGN_RKEY, BEYOND_RKEY, NO_RIGHT,
	QP_NO_RIGHT, NO_DEPTH, SHORT_RR, RR_BAD_LKEY, RR_READ_ONLY, RR_FOREIGN,
	RR_DEAD_LKEY, BAD_RKEY_SHORT,
};

struct error {
	const char *name;
	enum kind kind;
	enum ibv_wr_opcode opcode;
	int want;		/* status at the requester */
	int want_rr;		/* status of the receive request at the responder */
	int event;		/* at the responder, or NONE */
};

#define LOCAL_ERROR(text, kind, op) \
	{ text, kind, op, IBV_WC_LOC_PROT_ERR, NONE, NONE }
#define REMOTE_ERROR(text, kind, op) \
	{ text, kind, op, IBV_WC_REM_ACCESS_ERR, NONE, IBV_EVENT_QP_ACCESS_ERR }

static const struct error errors[] = {
	LOCAL_ERROR("I-001 SEND, unknown lkey", BAD_LKEY, IBV_WR_SEND),
	LOCAL_ERROR("I-001 WRITE, unknown lkey", BAD_LKEY, IBV_WR_RDMA_WRITE),
	LOCAL_ERROR("I-001 SEND, lkey of a dead MR", DEAD_LKEY, IBV_WR_SEND),
	LOCAL_ERROR("I-001 SEND, lkey of another PD", FOREIGN_LKEY, IBV_WR_SEND),
	LOCAL_ERROR("I-001 WRITE, lkey of another PD", FOREIGN_LKEY,
		    IBV_WR_RDMA_WRITE),
	LOCAL_ERROR("I-002 SEND beyond the MR", BEYOND_LKEY, IBV_WR_SEND),
	LOCAL_ERROR("I-003 READ into a read-only MR", READ_ONLY_LKEY,
		    IBV_WR_RDMA_READ),
	LOCAL_ERROR("I-003 READ beyond the MR", BEYOND_LKEY, IBV_WR_RDMA_READ),
	LOCAL_ERROR("I-003 READ, unknown lkey", BAD_LKEY, IBV_WR_RDMA_READ),
	REMOTE_ERROR("I-004 WRITE, unknown rkey", BAD_RKEY, IBV_WR_RDMA_WRITE),
	REMOTE_ERROR("I-004 READ, unknown rkey", BAD_RKEY, IBV_WR_RDMA_READ),
	REMOTE_ERROR("I-007 WRITE, rkey of another PD", FOREIGN_RKEY,
		     IBV_WR_RDMA_WRITE),
	REMOTE_ERROR("I-007 READ, rkey of another PD", FOREIGN_RKEY,
		     IBV_WR_RDMA_READ),
	REMOTE_ERROR("I-007 WRITE, right missing", NO_RIGHT, IBV_WR_RDMA_WRITE),
	REMOTE_ERROR("I-007 READ, right missing", NO_RIGHT, IBV_WR_RDMA_READ),
	REMOTE_ERROR("I-007 WRITE beyond the MR", BEYOND_RKEY, IBV_WR_RDMA_WRITE),
	REMOTE_ERROR("I-007 READ beyond the MR", BEYOND_RKEY, IBV_WR_RDMA_READ),
	REMOTE_ERROR("I-010 WRITE, rkey of a dead MR", DEAD_RKEY,
		     IBV_WR_RDMA_WRITE),
	REMOTE_ERROR("I-010 READ, rkey of a dead MR", DEAD_RKEY,
		     IBV_WR_RDMA_READ),
	/* The last packet takes a receive request, but the key is in the first one. */
	{ "I-012 WRITE_WITH_IMM of one packet, unknown rkey", BAD_RKEY_SHORT,
	  IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_REM_ACCESS_ERR,
	  IBV_WC_LOC_ACCESS_ERR, NONE },
	REMOTE_ERROR("I-012 WRITE_WITH_IMM of several packets, unknown rkey",
		     BAD_RKEY, IBV_WR_RDMA_WRITE_WITH_IMM),
	{ "I-013 WRITE, QP does not allow it", QP_NO_RIGHT, IBV_WR_RDMA_WRITE,
	  IBV_WC_REM_INV_REQ_ERR, NONE, IBV_EVENT_QP_REQ_ERR },
	{ "I-013 READ, QP does not allow it", QP_NO_RIGHT, IBV_WR_RDMA_READ,
	  IBV_WC_REM_INV_REQ_ERR, NONE, IBV_EVENT_QP_REQ_ERR },
	{ "I-025 READ, responder depth 0", NO_DEPTH, IBV_WR_RDMA_READ,
	  IBV_WC_REM_INV_REQ_ERR, NONE, IBV_EVENT_QP_ACCESS_ERR },
	{ "I-014 SEND larger than the receive request", SHORT_RR, IBV_WR_SEND,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, NONE },
	{ "I-015 receive request with an unknown lkey", RR_BAD_LKEY, IBV_WR_SEND,
	  IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, NONE },
	{ "I-015 receive request into a read-only MR", RR_READ_ONLY,
	  IBV_WR_SEND, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, NONE },
	{ "I-015 receive request of another PD", RR_FOREIGN, IBV_WR_SEND,
	  IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, NONE },
	{ "I-015 receive request with the lkey of a dead MR", RR_DEAD_LKEY,
	  IBV_WR_SEND, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, NONE },
};

#define LEN 3000

/* struct scene - everything that a case may change */
struct scene {
	struct pair p;
	struct buf local, remote;
	struct ibv_sge out, in;
	struct ibv_send_wr wr;
};

static uint32_t dead_key(struct dev *d, bool remote)
{
	struct buf b = buf_new(d->pd, LEN, REMOTE);
	uint32_t key = remote ? b.mr->rkey : b.mr->lkey;

	REQUIRE_OK(ibv_dereg_mr(b.mr));
	return key;
}

static void spoil_local(struct scene *s, enum kind kind)
{
	struct dev *d = s->p.dev;
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);

	REQUIRE(pd);
	if (kind == BAD_LKEY)
		s->out.lkey = 0x00471100;
	if (kind == DEAD_LKEY)
		s->out.lkey = dead_key(d, false);
	if (kind == FOREIGN_LKEY)
		s->out.lkey = ibv_reg_mr(pd, s->local.addr, LEN, REMOTE)->lkey;
	if (kind == READ_ONLY_LKEY)
		s->out.lkey = ibv_reg_mr(d->pd, s->local.addr, LEN, 0)->lkey;
	if (kind == BEYOND_LKEY)
		s->out.addr++;
}

static void spoil_remote(struct scene *s, enum kind kind)
{
	struct dev *d = s->p.dev;
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	const int other = s->wr.opcode == IBV_WR_RDMA_READ ?
			  LOCAL | IBV_ACCESS_REMOTE_WRITE :
			  LOCAL | IBV_ACCESS_REMOTE_READ;
	uint32_t *rkey = &s->wr.wr.rdma.rkey;

	REQUIRE(pd);
	if (kind == BAD_RKEY || kind == BAD_RKEY_SHORT)
		*rkey = 0x00471100;
	if (kind == BAD_RKEY_SHORT)
		s->out.length = 100;
	if (kind == DEAD_RKEY)
		*rkey = dead_key(d, true);
	if (kind == FOREIGN_RKEY)
		*rkey = ibv_reg_mr(pd, s->remote.addr, LEN, REMOTE)->rkey;
	if (kind == NO_RIGHT)
		*rkey = ibv_reg_mr(d->pd, s->remote.addr, LEN, other)->rkey;
	if (kind == BEYOND_RKEY)
		s->wr.wr.rdma.remote_addr++;
}

static void spoil_receive(struct scene *s, enum kind kind)
{
	struct dev *d = s->p.dev;
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);

	REQUIRE(pd);
	if (kind == SHORT_RR)
		s->in.length = LEN - 1;
	if (kind == RR_BAD_LKEY)
		s->in.lkey = 0x00471100;
	if (kind == RR_DEAD_LKEY)
		s->in.lkey = dead_key(d, false);
	if (kind == RR_READ_ONLY)
		s->in.lkey = ibv_reg_mr(d->pd, s->remote.addr, LEN, 0)->lkey;
	if (kind == RR_FOREIGN)
		s->in.lkey = ibv_reg_mr(pd, s->remote.addr, LEN, REMOTE)->lkey;
}

static struct scene scene_new(const struct error *row)
{
	struct scene s = { 0 };
	struct conn c = CONN;

	if (row->kind == QP_NO_RIGHT)
		c.access = row->opcode == IBV_WR_RDMA_READ ?
			   LOCAL | IBV_ACCESS_REMOTE_WRITE :
			   LOCAL | IBV_ACCESS_REMOTE_READ;
	if (row->kind == NO_DEPTH)
		c.dest_rd_atomic = 0;
	s.p = pair_new(dev_open(), &QP_OPTS, &c);
	s.local = buf_new(s.p.dev->pd, LEN, REMOTE);
	s.remote = buf_new(s.p.dev->pd, LEN, REMOTE);
	s.out = buf_sge(&s.local, 0, LEN);
	s.in = buf_sge(&s.remote, 0, LEN);
	s.wr = wr_rdma(10, row->opcode, NULL, 1, (uintptr_t)s.remote.addr,
		       s.remote.mr->rkey);
	if (row->opcode == IBV_WR_RDMA_READ) {
		/* The memory under test is the destination of the READ. */
		fill(s.remote.addr, LEN, 1);
		fill(s.local.addr, LEN, 2);
	} else {
		fill(s.local.addr, LEN, 1);
		fill(s.remote.addr, LEN, 2);
	}
	spoil_local(&s, row->kind);
	spoil_remote(&s, row->kind);
	spoil_receive(&s, row->kind);
	return s;
}

/* The other requests of the QP are flushed, each of them once. */
static void check_flushed(struct ibv_cq *cq, int from, int to)
{
	for (; from <= to; from++)
		poll_expect(cq, from, IBV_WC_WR_FLUSH_ERR);
	poll_none(cq);
}

/* Receive requests 20 and 21 are posted at the responder. */
static void check_responder(struct scene *s, const struct error *row)
{
	if (row->want == IBV_WC_LOC_PROT_ERR) {
		poll_none(s->p.b.recv_cq);
		CHECK_EQ(get_state(s->p.b.qp), IBV_QPS_RTS);
		return;
	}
	poll_expect(s->p.b.recv_cq, 20,
		    row->want_rr == NONE ? IBV_WC_WR_FLUSH_ERR : row->want_rr);
	check_flushed(s->p.b.recv_cq, 21, 21);
	CHECK_EQ(get_state(s->p.b.qp), IBV_QPS_ERR);
	if (row->event != NONE)
		async_expect(s->p.dev->ctx, row->event, s->p.b.qp);
}

static void recover(struct pair *p)
{
	REQUIRE_OK(set_state(p->a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p->b.qp, IBV_QPS_RESET));
	poll_empty(p->a.send_cq);
	poll_empty(p->b.recv_cq);
	pair_connect(p, &CONN);
	ping_pong(p);
}

TEST_ROWS(error, "A-106 D-065 error", errors)
{
	struct scene s = scene_new(row);
	struct ibv_send_wr next[2] = { wr_send(11, NULL, 0),
				       wr_send(12, NULL, 0) };
	const uint8_t last = s.remote.addr[LEN - 1];
	int i;

	if (!s.p.dev->qhca)
		test_skip("qhca only");
	s.wr.sg_list = &s.out;
	s.wr.next = &next[0];
	next[0].next = &next[1];
	next[1].send_flags = 0;		/* B-044: completes nevertheless */
	for (i = 0; i < 2; i++)
		REQUIRE_OK(post_recv(&s.p.b, 20 + i, &s.in, 1));
	REQUIRE_OK(post_recv(&s.p.a, 30, NULL, 0));
	REQUIRE_OK(post_send(&s.p.a, &s.wr));
	poll_expect(s.p.a.send_cq, 10, row->want);
	check_flushed(s.p.a.send_cq, 11, 12);
	check_flushed(s.p.a.recv_cq, 30, 30);
	CHECK_EQ(get_state(s.p.a.qp), IBV_QPS_ERR);
	check_responder(&s, row);
	/* H-023: no event at an end with a completion, and at most one at the other. */
	async_none(s.p.dev->ctx);
	/* D-065, A-106: no other memory has changed. */
	if (row->want != IBV_WC_LOC_PROT_ERR && row->kind != SHORT_RR) {
		if (row->opcode == IBV_WR_RDMA_READ)
			check_fill(s.local.addr, LEN, 2, "local memory");
		else
			check_fill(s.remote.addr, LEN, 2, "remote memory");
	}
	CHECK_EQ(s.remote.addr[LEN - 1], last);
	recover(&s.p);
}

TEST(read_depth_zero, "D-067 a READ with initiator depth 0 fails at once")
{
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	struct pair p;
	struct buf b = buf_new(d->pd, 64, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 64);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey);

	c.rd_atomic = 0;
	p = pair_new(d, &QP_OPTS, &c);
	ping_pong(&p);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	recover(&p);
}

TEST(too_long, "B-027 I-032 more than 2^31 bytes are refused, not truncated")
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	struct buf b;
	struct pair p;
	int err;

	o.send_sge = 2;
	p = pair_new(d, &o, &CONN);
	b = buf_new(d->pd, 4096, REMOTE);
	sge[0] = (struct ibv_sge){ (uintptr_t)b.addr, 0xffffffff, b.mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)b.addr, 4096, b.mr->lkey };
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, sge, 2, (uintptr_t)b.addr,
		     b.mr->rkey);
	err = post_send(&p.a, &wr);
	if (err)
		CHECK_EQ(err, EINVAL);
	else
		poll_expect(p.a.send_cq, 1, IBV_WC_LOC_LEN_ERR);
}
