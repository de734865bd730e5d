// SPDX-License-Identifier: GPL-2.0
/*
 * Invalidation by LOCAL_INV and SEND_WITH_INV, of keys of memory windows, the only keys that a
 * process can invalidate.
 */
#include <stdlib.h>

#include "lib/window.h"

#define PAGE	4096

/* struct rig - a window of type 2 bound on end b, which end a can use */
struct rig {
	struct pair p;
	struct buf src, dst;
	struct ibv_mw *mw;
};

static void rig_bind(struct rig *r)
{
	CHECK_EQ(mw_bind(&r->p.b, r->mw, mw_part(&r->dst, 0, PAGE, MW_RW)),
		 IBV_WC_SUCCESS);
}

static struct rig rig_new(void)
{
	struct dev *d = dev_open_mw(IBV_MW_TYPE_2);
	struct qp_opts o = QP_OPTS;
	struct rig r = {};

	o.inline_data = 64;
	r.p = pair_new(d, &o, &CONN);
	r.src = buf_new(d->pd, 2 * PAGE, REMOTE);
	r.dst = buf_new(d->pd, 2 * PAGE, BINDABLE);
	r.mw = mw_new(d, IBV_MW_TYPE_2);
	fill(r.src.addr, r.src.len, 1);
	rig_bind(&r);
	return r;
}

static enum ibv_wc_status use(struct rig *r)
{
	return rdma(&r->p.a, IBV_WR_RDMA_WRITE, &r->src, 16, r->dst.addr,
		    r->mw->rkey);
}

/* Makes a SEND_WITH_INV from end a to end b. */
static struct ibv_send_wr wr_inv(struct ibv_sge *sge, int num_sge, uint32_t key)
{
	struct ibv_send_wr wr = wr_send(5, sge, num_sge);

	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = key;
	return wr;
}

static const struct {
	const char *name;
	uint32_t len;
	bool inl;
} messages[] = {
	{ "no data", 0, false },
	{ "one packet", 100, false },
	{ "inline", 50, true },
	{ "several packets", 5000, false },
};

TEST_ROWS(send_inv, "B-003 B-070 SEND_WITH_INV", messages)
{
	struct rig r = rig_new();
	struct buf mail = buf_new(r.p.dev->pd, 2 * PAGE, LOCAL);
	struct ibv_sge in = buf_sge(&mail, 0, mail.len);
	struct ibv_sge out = buf_sge(&r.src, 0, row->len);
	struct ibv_send_wr wr = wr_inv(&out, 1, r.mw->rkey);
	struct ibv_wc wc;

	wr.send_flags |= row->inl ? IBV_SEND_INLINE : 0;
	CHECK_EQ(use(&r), IBV_WC_SUCCESS);
	REQUIRE_OK(post_recv(&r.p.b, 6, &in, 1));
	REQUIRE_OK(post_send(&r.p.a, &wr));
	wc = poll_ok(r.p.b.recv_cq, 6);
	CHECK_EQ(wc.wc_flags, IBV_WC_WITH_INV);
	CHECK_EQ(wc.invalidated_rkey, r.mw->rkey);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, row->len);
	check_fill(mail.addr, row->len, 1, "message");
	wc = poll_ok(r.p.a.send_cq, 5);
	CHECK_EQ(wc.opcode, IBV_WC_SEND);
	rig_bind(&r);			/* the window is Free */
	CHECK_EQ(use(&r), IBV_WC_SUCCESS);
}

TEST(dead, "B-070 F-052 I-010 the key is invalid after SEND_WITH_INV")
{
	struct rig r = rig_new();
	struct ibv_send_wr wr = wr_inv(NULL, 0, r.mw->rkey);

	REQUIRE_OK(post_recv(&r.p.b, 6, NULL, 0));
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_ok(r.p.b.recv_cq, 6);
	poll_ok(r.p.a.send_cq, 5);
	CHECK_EQ(use(&r), IBV_WC_REM_ACCESS_ERR);
	CHECK_ERR(ibv_dereg_mr(r.dst.mr), 0);
}

TEST(local, "B-010 B-071 LOCAL_INV")
{
	struct rig r = rig_new();
	struct ibv_send_wr wr = wr_send(9, NULL, 0);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 100; i++) {
		CHECK_EQ(use(&r), IBV_WC_SUCCESS);
		CHECK_EQ(local_inv(&r.p.b, r.mw->rkey), IBV_WC_SUCCESS);
		rig_bind(&r);
	}
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = r.mw->rkey;
	REQUIRE_OK(post_send(&r.p.b, &wr));
	wc = poll_ok(r.p.b.send_cq, 9);
	CHECK_EQ(wc.opcode, IBV_WC_LOCAL_INV);
	CHECK_EQ(use(&r), IBV_WC_REM_ACCESS_ERR);
}

enum target { OWN_MR, BAD_KEY, TYPE_1, OTHER_QP, OLD_VARIANT };

static const struct {
	const char *name;
	enum target target;
} targets[] = {
	{ "a region", OWN_MR },
	{ "no such key", BAD_KEY },
	{ "another variant", OLD_VARIANT },
	{ "window of type 1", TYPE_1 },
	{ "bound on another QP", OTHER_QP },
};

/* struct forbidden - a key that end b must not invalidate, and the end that can use it */
struct forbidden {
	struct pair other;
	uint32_t key;
	const struct buf *target;	/* memory that the key gives access to, or NULL */
};

static struct forbidden forbidden(struct rig *r, enum target target)
{
	struct forbidden f = { .other = pair_new(r->p.dev, &QP_OPTS, &CONN) };
	struct ibv_mw *mw;

	if (target == BAD_KEY || target == OLD_VARIANT) {
		f.key = target == BAD_KEY ? r->src.mr->rkey ^ 0x5a5a00 : r->mw->rkey ^ 1;
		return f;
	}
	f.target = target == OWN_MR ? &r->src : &r->dst;
	f.key = r->src.mr->rkey;
	if (target == OWN_MR)
		return f;
	mw = mw_new(r->p.dev, target == TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	CHECK_EQ(mw_bind(&f.other.b, mw, mw_part(&r->dst, 0, PAGE, MW_RW)), 0);
	f.key = mw->rkey;
	return f;
}

/* Checks that neither this nor the other window has changed. */
static void check_alive(struct rig *r, struct forbidden *f)
{
	if (f->target)
		CHECK_EQ(rdma(&f->other.a, IBV_WR_RDMA_WRITE, &r->src, 16,
			      f->target->addr, f->key), IBV_WC_SUCCESS);
	CHECK_ERR(ibv_dereg_mr(r->dst.mr), EBUSY);
}

TEST_ROWS(local_bad, "F-029 F-049 F-050 I-035 LOCAL_INV of a key that the QP must not invalidate",
	  targets)
{
	struct rig r = rig_new();
	struct forbidden f = forbidden(&r, row->target);

	CHECK_EQ(local_inv(&r.p.b, f.key), IBV_WC_MW_BIND_ERR);
	CHECK(wait_state(r.p.b.qp, IBV_QPS_ERR));
	check_alive(&r, &f);
}

TEST_ROWS(send_bad, "F-049 F-050 F-056 I-033 SEND_WITH_INV of a key that must not be invalidated",
	  targets)
{
	struct rig r = rig_new();
	struct forbidden f = forbidden(&r, row->target);
	struct ibv_send_wr wr = wr_inv(NULL, 0, f.key);

	REQUIRE_OK(post_recv(&r.p.b, 6, NULL, 0));
	REQUIRE_OK(post_send(&r.p.a, &wr));
	poll_expect(r.p.b.recv_cq, 6, IBV_WC_REM_INV_REQ_ERR);
	poll_expect(r.p.a.send_cq, 5, IBV_WC_RETRY_EXC_ERR);	/* it got no answer */
	CHECK(wait_state(r.p.b.qp, IBV_QPS_ERR));
	check_alive(&r, &f);
	async_none(r.p.dev->ctx);	/* H-023: the completion reports it */
}

TEST(order, "B-052 LOCAL_INV between WRITEs that do not need its key")
{
	struct rig r = rig_new();
	struct ibv_sge sge = buf_sge(&r.src, 0, 2 * PAGE);
	struct ibv_send_wr wr[3];
	int i;

	wr[0] = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)r.src.addr,
			r.src.mr->rkey);
	wr[1] = wr_send(2, NULL, 0);
	wr[1].opcode = IBV_WR_LOCAL_INV;
	wr[1].invalidate_rkey = r.mw->rkey;
	wr[2] = wr[0];
	wr[2].wr_id = 3;
	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	REQUIRE_OK(post_send(&r.p.b, wr));
	for (i = 1; i <= 3; i++)
		poll_ok(r.p.b.send_cq, i);
}

TEST(extended, "B-035 B-003 B-009 B-010 binding and invalidation with ibv_wr_*()")
{
	struct dev *d = dev_open_mw(IBV_MW_TYPE_2);
	struct ibv_cq *cq = cq_new(d, 16, NULL);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 8, 8, 1, 1, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = d->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW,
	};
	struct pair p = { d, { d, NULL, cq, cq, {} }, { d, NULL, cq, cq, {} } };
	struct buf dst = buf_new(d->pd, PAGE, BINDABLE);
	struct ibv_mw_bind_info info = mw_part(&dst, 0, PAGE, MW_RW);
	struct ibv_mw *mw = mw_new(d, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_qp_ex *q;
	struct ibv_wc wc;

	p.a.qp = ibv_create_qp_ex(d->ctx, &init);
	p.b.qp = ibv_create_qp_ex(d->ctx, &init);
	REQUIRE(p.a.qp && p.b.qp);
	pair_connect(&p, &CONN);
	q = ibv_qp_to_qp_ex(p.b.qp);
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	q->wr_id = 1;
	ibv_wr_bind_mw(q, mw, key, &info);
	q->wr_id = 2;
	ibv_wr_local_inv(q, key);
	q->wr_id = 3;
	ibv_wr_bind_mw(q, mw, key, &info);
	REQUIRE_OK(ibv_wr_complete(q));
	CHECK_EQ(poll_ok(cq, 1).opcode, IBV_WC_BIND_MW);
	CHECK_EQ(poll_ok(cq, 2).opcode, IBV_WC_LOCAL_INV);
	poll_ok(cq, 3);

	REQUIRE_OK(post_recv(&p.b, 4, NULL, 0));
	q = ibv_qp_to_qp_ex(p.a.qp);
	ibv_wr_start(q);
	q->wr_flags = 0;
	ibv_wr_send_inv(q, key);
	ibv_wr_set_sge(q, 0, 0, 0);
	REQUIRE_OK(ibv_wr_complete(q));
	wc = poll_ok(cq, 4);
	CHECK_EQ(wc.invalidated_rkey, key);
	CHECK_ERR(ibv_dereg_mr(dst.mr), 0);

	ibv_wr_start(q);
	info.mw_access_flags = IBV_ACCESS_MW_BIND;
	ibv_wr_bind_mw(q, mw, key, &info);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
}
