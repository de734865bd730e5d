// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: XRC. Kernel consumers can create the receiving
 * objects, but nothing in the kernel can send to them, so this tests only their
 * life cycle.
 */
#include "kverbs.h"

/* struct kv_xrc - a domain and its objects */
struct kv_xrc {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_xrcd *xrcd;
	struct ib_srq *srq;
	struct ib_qp *tgt;
};

static struct ib_srq *kv_xsrq(struct kv_xrc *x, struct ib_xrcd *xrcd)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IB_SRQT_XRC,
		.ext.cq = x->cq,
		.ext.xrc.xrcd = xrcd,
	};

	return ib_create_srq(x->pd, &attr);
}

static struct ib_qp *kv_xqp(struct kv_xrc *x, enum ib_qp_type type, struct ib_xrcd *xrcd)
{
	struct ib_qp_init_attr attr = {
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.xrcd = xrcd,
	};

	if (type != IB_QPT_XRC_TGT)
		attr.send_cq = x->cq;
	return ib_create_qp(x->pd, &attr);
}

/* Undoes kv_xrc_open(), even if that stopped half-way. */
static void kv_xrc_close(struct kv *kv, struct kv_xrc *x)
{
	if (x->tgt)
		KV_CHECK_EQ(kv, ib_destroy_qp(x->tgt), 0);
	if (x->srq)
		ib_destroy_srq(x->srq);
	if (x->xrcd)
		KV_CHECK_EQ(kv, ib_dealloc_xrcd_user(x->xrcd, NULL), 0);
	if (x->cq)
		ib_free_cq(x->cq);
	if (x->pd)
		ib_dealloc_pd(x->pd);
	memset(x, 0, sizeof(*x));
}

static bool kv_xrc_open(struct kv *kv, struct kv_xrc *x)
{
	memset(x, 0, sizeof(*x));
	if (!(kv->dev->attrs.device_cap_flags & IB_DEVICE_XRC)) {
		kv->skip = "no XRC";
		return false;
	}
	if (KV_GET(kv, x->pd, ib_alloc_pd(kv->dev, 0)) &&
	    KV_GET(kv, x->cq, ib_alloc_cq(kv->dev, NULL, 16, 0, IB_POLL_WORKQUEUE)) &&
	    KV_GET(kv, x->xrcd, ib_alloc_xrcd_user(kv->dev, NULL, NULL)) &&
	    KV_GET(kv, x->srq, kv_xsrq(x, x->xrcd)) &&
	    KV_GET(kv, x->tgt, kv_xqp(x, IB_QPT_XRC_TGT, x->xrcd)))
		return true;
	kv_xrc_close(kv, x);
	return false;
}

static void kv_life(struct kv *kv)
{
	struct ib_qp_attr a = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
	};
	struct ib_qp_init_attr init;
	struct kv_xrc x;
	int i;

	for (i = 0; i < 10 && kv_xrc_open(kv, &x); i++) {
		KV_CHECK(kv, x.srq->ext.xrc.srq_num);
		a.qp_state = IB_QPS_INIT;
		KV_CHECK_EQ(kv, ib_modify_qp(x.tgt, &a, IB_QP_STATE | IB_QP_PORT |
					     IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS), 0);
		a.qp_state = IB_QPS_ERR;
		KV_CHECK_EQ(kv, ib_modify_qp(x.tgt, &a, IB_QP_STATE), 0);
		KV_CHECK_EQ(kv, ib_query_qp(x.tgt, &a, IB_QP_STATE, &init), 0);
		KV_CHECK_EQ(kv, a.qp_state, IB_QPS_ERR);
		KV_CHECK_EQ(kv, init.qp_type, IB_QPT_XRC_TGT);
		a.qp_state = IB_QPS_RESET;
		KV_CHECK_EQ(kv, ib_modify_qp(x.tgt, &a, IB_QP_STATE), 0);
		kv_xrc_close(kv, &x);
	}
}

/* The SRQ accepts as many WRs as its ring has room for. */
static void kv_posts(struct kv *kv)
{
	struct kv_xrc x;
	struct kv_done d;
	struct ib_recv_wr wr = { .wr_cqe = &d.cqe };
	int i;

	if (!kv_xrc_open(kv, &x))
		return;
	kv_expect(&d);
	for (i = 0; i < 8; i++)
		KV_CHECK_EQ(kv, ib_post_srq_recv(x.srq, &wr, NULL), 0);
	KV_CHECK_EQ(kv, ib_post_srq_recv(x.srq, &wr, NULL), -ENOMEM);
	KV_CHECK(kv, ib_post_recv(x.tgt, &wr, NULL));
	kv_xrc_close(kv, &x);
	KV_CHECK(kv, !completion_done(&d.done));
}

static void kv_xrc_refused(struct kv *kv)
{
	struct kv_xrc x;

	if (!kv_xrc_open(kv, &x))
		return;
	KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(kv_xsrq(&x, NULL)), -EINVAL);
	/* struct ib_send_wr has no member for the SRQ. */
	KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(kv_xqp(&x, IB_QPT_XRC_INI, NULL)), -EOPNOTSUPP);
	KV_CHECK_EQ(kv, ib_dealloc_xrcd_user(x.xrcd, NULL), -EBUSY);
	kv_xrc_close(kv, &x);
}

const struct kv_test kv_xrc_tests[] = {
	{ "G-012 life of XRC domains, SRQs and QPs", kv_life },
	{ "G-001 G-012 posting to an XRC SRQ", kv_posts },
	{ "G-012 refused XRC objects, and objects in use", kv_xrc_refused },
	{ }
};
