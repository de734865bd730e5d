// SPDX-License-Identifier: GPL-2.0
/*
 * After an error of any kind the connection recovers, from SQE by RTS, otherwise through RESET, and
 * the failed operation succeeds when it is done right. rc_errors.c does the same for the errors of
 * plain RC requests.
 */
#include "lib/window.h"
#include "lib/wr_ex.h"
#include "lib/xrc.h"

#define LEN	4096
#define BAD_KEY	0x00471100
#define OPS	(IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW)
#define RIGHTS	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* struct scene - a connection within the device; a is the requester */
struct scene {
	struct dev *d;
	struct conn c;
	struct pair p;
	struct xrc x;		/* for XRC only */
	struct ibv_ah *ah;	/* for UD only */
	struct buf local, remote;
};

typedef enum ibv_wc_status (*attempt_fn)(struct scene *s, bool bad);

struct error {
	const char *name;
	enum ibv_qp_type type;
	/* Executes the operation, right or wrong; returns its status. */
	attempt_fn attempt;
	enum ibv_wc_status want;
	bool sqe;		/* only the send queue of the requester has stopped */
};

/* ---- operations, most of them with a good or a bad key ---- */

static enum ibv_wc_status finish(struct scene *s, struct ibv_send_wr *wr)
{
	REQUIRE_OK(post_send(&s->p.a, wr));
	return poll_get(s->p.a.send_cq).status;
}

static enum ibv_wc_status atomic(struct scene *s, uint32_t rkey, size_t off)
{
	struct ibv_sge sge = buf_sge(&s->local, 0, 8);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)s->remote.addr + off;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = 1;
	return finish(s, &wr);
}

static enum ibv_wc_status atomic_key(struct scene *s, bool bad)
{
	return atomic(s, bad ? BAD_KEY : s->remote.mr->rkey, 0);
}

static enum ibv_wc_status atomic_align(struct scene *s, bool bad)
{
	return atomic(s, s->remote.mr->rkey, bad ? 4 : 8);
}

static enum ibv_wc_status flush(struct scene *s, uint32_t rkey, uint8_t type)
{
	struct ibv_qp_ex *q = wr_start(&s->p.a, 1);

	ibv_wr_flush(q, rkey, (uintptr_t)s->remote.addr, 64, type, IBV_FLUSH_RANGE);
	REQUIRE_OK(ibv_wr_complete(q));
	return poll_get(s->p.a.send_cq).status;
}

static enum ibv_wc_status flush_key(struct scene *s, bool bad)
{
	return flush(s, bad ? BAD_KEY : s->remote.mr->rkey, IBV_FLUSH_GLOBAL);
}

static enum ibv_wc_status flush_type(struct scene *s, bool bad)
{
	return flush(s, s->remote.mr->rkey, bad ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL);
}

static enum ibv_wc_status store(struct scene *s, bool bad)
{
	const uint64_t word = 0x0123456789abcdef;
	struct ibv_qp_ex *q = wr_start(&s->p.a, 1);

	ibv_wr_atomic_write(q, bad ? BAD_KEY : s->remote.mr->rkey,
			    (uintptr_t)s->remote.addr, &word);
	REQUIRE_OK(ibv_wr_complete(q));
	return poll_get(s->p.a.send_cq).status;
}

static enum ibv_wc_status nobody_there(struct scene *s, bool bad)
{
	if (bad)
		REQUIRE_OK(set_state(s->p.b.qp, IBV_QPS_ERR));
	return rdma(&s->p.a, IBV_WR_RDMA_WRITE, &s->local, LEN, s->remote.addr,
		    s->remote.mr->rkey);
}

static enum ibv_wc_status not_ready(struct scene *s, bool bad)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	if (bad)
		return finish(s, &wr);
	REQUIRE_OK(post_recv(&s->p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&s->p.a, &wr));
	poll_ok(s->p.b.recv_cq, 2);
	return poll_get(s->p.a.send_cq).status;
}

static enum ibv_wc_status bind(struct scene *s, bool bad)
{
	struct buf plain = buf_new(s->d->pd, LEN, LOCAL);

	return mw_bind(&s->p.a, mw_new(s->d, IBV_MW_TYPE_2),
		       mw_part(bad ? &plain : &s->local, 0, LEN, MW_RW));
}

static struct ibv_mw *bound(struct scene *s, struct end *e)
{
	struct ibv_mw *mw = mw_new(s->d, IBV_MW_TYPE_2);

	CHECK_EQ(mw_bind(e, mw, mw_part(&s->remote, 0, LEN, MW_RW)), IBV_WC_SUCCESS);
	return mw;
}

static enum ibv_wc_status invalidate(struct scene *s, bool bad)
{
	return local_inv(&s->p.a, bad ? BAD_KEY : bound(s, &s->p.a)->rkey);
}

static enum ibv_wc_status send_inv(struct scene *s, bool bad)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = bad ? BAD_KEY : bound(s, &s->p.b)->rkey;
	REQUIRE_OK(post_recv(&s->p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&s->p.a, &wr));
	poll_expect(s->p.b.recv_cq, 2, bad ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
	return poll_get(s->p.a.send_cq).status;
}

static enum ibv_wc_status xrc_send(struct scene *s, uint32_t srqn, uint32_t lkey)
{
	struct ibv_sge in = buf_sge(&s->x.buf, XRC_HALF, 100), sge;
	struct ibv_send_wr wr = xrc_wr(&s->x, &sge, IBV_WR_SEND, 100);
	struct ibv_recv_wr rwr = { .sg_list = &in, .num_sge = 1 }, *bad;

	in.lkey = lkey;
	wr.qp_type.xrc.remote_srqn = srqn;
	REQUIRE_OK(ibv_post_srq_recv(s->x.srq.srq, &rwr, &bad));
	return finish(s, &wr);
}

static enum ibv_wc_status xrc_srq(struct scene *s, bool bad)
{
	return xrc_send(s, s->x.srq.srqn ^ (bad ? 0x800000 : 0), s->x.buf.mr->lkey);
}

static enum ibv_wc_status xrc_recv(struct scene *s, bool bad)
{
	return xrc_send(s, s->x.srq.srqn, bad ? BAD_KEY : s->x.buf.mr->lkey);
}

static enum ibv_wc_status xrc_key(struct scene *s, bool bad)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = xrc_wr(&s->x, &sge, IBV_WR_RDMA_READ, 100);

	wr.wr.rdma.rkey = bad ? BAD_KEY : wr.wr.rdma.rkey;
	return finish(s, &wr);
}

/* Sends a message from a to b over any service; returns the sender's status, and the receiver's. */
static enum ibv_wc_status message(struct scene *s, uint32_t lkey, uint32_t recv_lkey,
				  enum ibv_wc_status *received)
{
	struct ibv_sge out = buf_sge(&s->local, 0, 100), in = buf_sge(&s->remote, 0, 200);
	struct ibv_send_wr wr = wr_send(1, &out, 1);
	enum ibv_wc_status status;

	out.lkey = lkey;
	in.lkey = recv_lkey;
	if (s->ah) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->p.b.qp->qp_num;
		wr.wr.ud.remote_qkey = s->c.qkey;
	}
	REQUIRE_OK(post_recv(&s->p.b, 2, &in, 1));
	status = finish(s, &wr);
	if (status == IBV_WC_SUCCESS)
		*received = poll_get(s->p.b.recv_cq).status;
	return status;
}

static enum ibv_wc_status send_key(struct scene *s, bool bad)
{
	enum ibv_wc_status received;

	return message(s, bad ? BAD_KEY : s->local.mr->lkey, s->remote.mr->lkey, &received);
}

static enum ibv_wc_status recv_key(struct scene *s, bool bad)
{
	enum ibv_wc_status received;

	CHECK_EQ(message(s, s->local.mr->lkey, bad ? BAD_KEY : s->remote.mr->lkey, &received),
		 IBV_WC_SUCCESS);
	return received;
}

#define RC(what, fn, status) { what, IBV_QPT_RC, fn, IBV_WC_##status, false }
#define XRC(what, fn, status) { what, IBV_QPT_XRC_SEND, fn, IBV_WC_##status, false }

static const struct error errors[] = {
	RC("I-004 atomic, unknown rkey", atomic_key, REM_ACCESS_ERR),
	RC("I-017 atomic, misaligned", atomic_align, REM_INV_REQ_ERR),
	RC("B-012 FLUSH, unknown rkey", flush_key, REM_ACCESS_ERR),
	RC("I-038 FLUSH, PERSISTENT", flush_type, REM_INV_REQ_ERR),
	RC("B-074 ATOMIC WRITE, unknown rkey", store, REM_ACCESS_ERR),
	RC("I-021 retries exhausted", nobody_there, RETRY_EXC_ERR),
	RC("I-018 RNR retries exhausted", not_ready, RNR_RETRY_EXC_ERR),
	RC("I-034 BIND_MW of a region without the right", bind, MW_BIND_ERR),
	RC("I-035 LOCAL_INV of an unknown key", invalidate, MW_BIND_ERR),
	RC("I-033 SEND_WITH_INV of an unknown key", send_inv, RETRY_EXC_ERR),
	XRC("G-012 XRC, no such SRQ", xrc_srq, REM_INV_REQ_ERR),
	XRC("I-004 XRC READ, unknown rkey", xrc_key, REM_ACCESS_ERR),
	XRC("I-015 XRC, receive WR with an unknown lkey", xrc_recv, REM_OP_ERR),
	{ "I-042 UC, unknown lkey", IBV_QPT_UC, send_key, IBV_WC_LOC_PROT_ERR, true },
	{ "I-044 UC, receive WR with an unknown lkey", IBV_QPT_UC, recv_key,
	  IBV_WC_LOC_PROT_ERR, false },
	{ "I-045 UD, unknown lkey", IBV_QPT_UD, send_key, IBV_WC_LOC_PROT_ERR, true },
	{ "I-050 UD, receive WR with an unknown lkey", IBV_QPT_UD, recv_key,
	  IBV_WC_LOC_PROT_ERR, false },
};

/* ---- recovery ---- */

static struct scene scene_new(const struct error *row)
{
	bool flushes = row->attempt == flush_key || row->attempt == flush_type;
	int rights = flushes ? RIGHTS | IBV_ACCESS_FLUSH_GLOBAL : RIGHTS;
	struct scene s = { .d = dev_open_qhca(), .c = CONN };
	enum ibv_qp_type type = row->type;
	uint64_t ops = flushes ? OPS | IBV_QP_EX_WITH_FLUSH : OPS;
	struct qp_opts o = QP_OPTS;

	s.c.access = rights & ~IBV_ACCESS_MW_BIND;
	s.c.rnr_retry = 1;
	o.type = type;
	s.local = buf_new(s.d->pd, LEN, RIGHTS);
	s.remote = buf_new(s.d->pd, LEN, rights);
	if (type == IBV_QPT_XRC_SEND) {
		s.x = xrc_new(s.d, &s.c);
		s.p = s.x.p;
	} else if (type == IBV_QPT_RC) {
		s.p = pair_ex(s.d, ops, &s.c);
	} else {
		s.p = pair_new(s.d, &o, &s.c);
		s.ah = type == IBV_QPT_UD ? own_ah(s.d, s.d->pd) : NULL;
	}
	return s;
}

/* Only the completions of the error are left over. */
static void recover(struct scene *s, const struct error *row)
{
	struct ibv_wc wc;

	if (row->sqe) {
		CHECK_EQ(get_state(s->p.a.qp), IBV_QPS_SQE);
		REQUIRE_OK(set_state(s->p.a.qp, IBV_QPS_RTS));
		poll_empty(s->p.b.recv_cq);
		return;
	}
	CHECK(wait_state(row->want == IBV_WC_LOC_PROT_ERR ? s->p.b.qp : s->p.a.qp,
			 IBV_QPS_ERR));
	REQUIRE_OK(set_state(s->p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(s->p.b.qp, IBV_QPS_RESET));
	poll_empty(s->p.a.send_cq);
	poll_empty(s->p.a.recv_cq);
	poll_empty(s->p.b.send_cq);
	poll_empty(s->p.b.recv_cq);
	while (s->x.srq.cq && ibv_poll_cq(s->x.srq.cq, 1, &wc))
		;			/* of an SRQ, which has not failed */
	pair_connect(&s->p, &s->c);
}

TEST_ROWS(error, "A-105 A-118 A-120 recovery", errors)
{
	struct scene s = scene_new(row);
	int i;

	for (i = 0; i < 3; i++) {
		CHECK_EQ(row->attempt(&s, false), IBV_WC_SUCCESS);
		CHECK_EQ(row->attempt(&s, true), row->want);
		recover(&s, row);
		CHECK_EQ(row->attempt(&s, false), IBV_WC_SUCCESS);
	}
	if (row->type == IBV_QPT_RC)
		ping_pong(&s.p);
}
