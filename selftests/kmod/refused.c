// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: requests that must fail, and how they fail. */
#include "kverbs.h"

/* struct kv_wrong - a rig and two regions, the first of which is Valid */
struct kv_wrong {
	struct kv_rig r;
	struct kv_buf buf;
	struct ib_mr *valid, *unused;
};

static struct ib_mr *kv_new_mr(struct kv *kv, struct kv_wrong *w)
{
	struct ib_mr *mr = ib_alloc_mr(w->r.pd, IB_MR_TYPE_MEM_REG, 4);

	if (!KV_CHECK(kv, !IS_ERR(mr)))
		return NULL;
	KV_CHECK_EQ(kv, ib_map_mr_sg(mr, w->buf.sgt.sgl, 2, NULL, PAGE_SIZE), 2);
	return mr;
}

static bool kv_wrong_open(struct kv *kv, struct kv_wrong *w)
{
	struct kv_done d;

	memset(w, 0, sizeof(*w));
	if (!(kv->dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		kv->skip = "no memory management extensions";
		return false;
	}
	if (!kv_rig_open(kv, &w->r, IB_POLL_WORKQUEUE) || !kv_buf_open(kv, &w->buf, 2))
		return false;
	w->valid = kv_new_mr(kv, w);
	w->unused = kv_new_mr(kv, w);
	if (!w->valid || !w->unused)
		return false;
	KV_CHECK_EQ(kv, kv_reg(&w->r.b, &d, w->valid, w->valid->rkey,
			       IB_ACCESS_REMOTE_READ), 0);
	return KV_CHECK_EQ(kv, kv_wait(&w->r, &w->r.b, &d), IB_WC_SUCCESS);
}

static void kv_wrong_close(struct kv *kv, struct kv_wrong *w)
{
	kv_rig_stop(&w->r);
	if (w->valid)
		KV_CHECK_EQ(kv, ib_dereg_mr(w->valid), 0);
	if (w->unused)
		KV_CHECK_EQ(kv, ib_dereg_mr(w->unused), 0);
	kv_buf_close(kv, &w->buf);
	kv_rig_close(kv, &w->r);
}

/* Renews the QPs: each mistake moves its QP to ERR. */
static int kv_again(struct kv_wrong *w, struct kv_done *d)
{
	return kv_reg(&w->r.b, d, w->valid, ib_inc_rkey(w->valid->rkey), 0);
}

static int kv_inv_unknown(struct kv_wrong *w, struct kv_done *d)
{
	return kv_local_inv(&w->r.b, d, w->valid->rkey ^ 0x5500);
}

static int kv_inv_variant(struct kv_wrong *w, struct kv_done *d)
{
	return kv_local_inv(&w->r.b, d, w->valid->rkey ^ 1);
}

static int kv_reg_nothing(struct kv_wrong *w, struct kv_done *d)
{
	w->unused->length = 0;
	return kv_reg(&w->r.b, d, w->unused, w->unused->rkey, 0);
}

static int kv_reg_too_long(struct kv_wrong *w, struct kv_done *d)
{
	w->unused->length = 2 * PAGE_SIZE + 1;
	return kv_reg(&w->r.b, d, w->unused, w->unused->rkey, 0);
}

static int kv_reg_write_alone(struct kv_wrong *w, struct kv_done *d)
{
	return kv_reg(&w->r.b, d, w->unused, w->unused->rkey, IB_ACCESS_REMOTE_WRITE);
}

static int (*const kv_wrongs[])(struct kv_wrong *w, struct kv_done *d) = {
	kv_again, kv_inv_unknown, kv_inv_variant, kv_reg_nothing, kv_reg_too_long,
	kv_reg_write_alone,
};

static void kv_bad_work(struct kv *kv)
{
	struct kv_wrong w;
	struct kv_done d;
	int i;

	for (i = 0; i < ARRAY_SIZE(kv_wrongs) && !kv->failed && !kv->skip; i++) {
		if (kv_wrong_open(kv, &w)) {
			KV_CHECK_EQ(kv, kv_wrongs[i](&w, &d), 0);
			KV_CHECK_EQ(kv, kv_wait(&w.r, &w.r.b, &d), IB_WC_MW_BIND_ERR);
		}
		kv_wrong_close(kv, &w);
	}
}

/* The peer gets an error, or no answer at all. */
static void kv_bad_peer(struct kv *kv)
{
	struct kv_done d, received;
	struct kv_wrong w;
	int i;

	for (i = 0; i < 3 && !kv->failed && !kv->skip; i++) {
		struct ib_sge sge = {};

		if (!kv_wrong_open(kv, &w))
			goto next;
		sge.addr = kv_dma(&w.buf, 0);
		sge.length = 8;
		sge.lkey = w.r.pd->local_dma_lkey;
		KV_CHECK_EQ(kv, kv_recv(&w.r.b, &received, NULL, 0), 0);
		if (i == 0)		/* not registered */
			KV_CHECK_EQ(kv, kv_rdma(&w.r.a, &d, IB_WR_RDMA_READ, &sge, 0,
						w.unused->rkey), 0);
		else if (i == 1)	/* no right */
			KV_CHECK_EQ(kv, kv_rdma(&w.r.a, &d, IB_WR_RDMA_WRITE, &sge,
						w.valid->iova, w.valid->rkey), 0);
		else			/* another key */
			KV_CHECK_EQ(kv, kv_send_inv(&w.r.a, &d, w.valid->rkey ^ 1), 0);
		/* A sender that invalidates a wrong key gets no answer: class J. */
		KV_CHECK_EQ(kv, kv_wait(&w.r, &w.r.a, &d),
			    i == 2 ? IB_WC_RETRY_EXC_ERR : IB_WC_REM_ACCESS_ERR);
		KV_CHECK_EQ(kv, kv_wait(&w.r, &w.r.b, &received),
			    i == 2 ? IB_WC_REM_INV_REQ_ERR : IB_WC_WR_FLUSH_ERR);
next:
		kv_wrong_close(kv, &w);
	}
}

/* Requests refused before they reach the device. */
static void kv_at_once(struct kv *kv)
{
	unsigned int max = kv->dev->attrs.max_fast_reg_page_list_len;
	struct kv_wrong w;
	struct kv_done d;
	struct ib_mr *mr;

	if (kv_wrong_open(kv, &w)) {
		KV_CHECK_EQ(kv, kv_reg(&w.r.b, &d, w.valid, w.unused->rkey, 0), -EINVAL);
		mr = ib_alloc_mr(w.r.pd, IB_MR_TYPE_MEM_REG, max + 1);
		KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(mr), -EINVAL);
		mr = ib_alloc_mr(w.r.pd, IB_MR_TYPE_SG_GAPS, max + 1);
		KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(mr), -EINVAL);
		mr = ib_alloc_mr(w.r.pd, IB_MR_TYPE_USER, 4);
		KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(mr), -EOPNOTSUPP);
		mr = w.r.pd->device->ops.get_dma_mr(w.r.pd, IB_ACCESS_REMOTE_WRITE);
		KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(mr), -EOPNOTSUPP);
	}
	kv_wrong_close(kv, &w);
}

static const struct {
	enum ib_wr_opcode opcode;
	int flags;
} kv_bad_sends[] = {
	{ IB_WR_LSO },
	{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP },
	{ IB_WR_MASKED_ATOMIC_FETCH_AND_ADD },
	{ IB_WR_ATOMIC_CMP_AND_SWP, IB_SEND_INLINE },
	{ IB_WR_ATOMIC_FETCH_AND_ADD, IB_SEND_INLINE },
};

/* Opcodes that the device does not have, and atomics with no memory for their results. */
static void kv_bad_opcodes(struct kv *kv)
{
	const struct ib_send_wr *bad;
	struct kv_rig r;
	int i;

	KV_CHECK_EQ(kv, kv->dev->attrs.masked_atomic_cap, IB_ATOMIC_NONE);
	if (!kv_rig_open(kv, &r, IB_POLL_WORKQUEUE))
		return;
	for (i = 0; i < ARRAY_SIZE(kv_bad_sends); i++) {
		struct ib_atomic_wr wr = {
			.wr.opcode = kv_bad_sends[i].opcode,
			.wr.send_flags = kv_bad_sends[i].flags,
		};

		bad = NULL;
		KV_CHECK_EQ(kv, ib_post_send(r.a.qp, &wr.wr, &bad), -EINVAL);
		KV_CHECK(kv, bad == &wr.wr);
	}
	kv_rig_close(kv, &r);
}

/* The peer cannot use the local DMA key. */
static void kv_dma_key(struct kv *kv)
{
	struct ib_sge sge = { .length = 8 };
	struct kv_buf buf;
	struct kv_done d;
	struct kv_rig r;

	if (!kv_rig_open(kv, &r, IB_POLL_WORKQUEUE))
		return;
	if (kv_buf_open(kv, &buf, 1)) {
		sge.addr = kv_dma(&buf, 0);
		sge.lkey = r.pd->local_dma_lkey;
		KV_CHECK_EQ(kv, kv_rdma(&r.a, &d, IB_WR_RDMA_READ, &sge, sge.addr,
					r.pd->local_dma_lkey), 0);
		KV_CHECK_EQ(kv, kv_wait(&r, &r.a, &d), IB_WC_REM_ACCESS_ERR);
		kv_rig_stop(&r);
		kv_buf_close(kv, &buf);
	}
	kv_rig_close(kv, &r);
}

/* The kernel can create the largest CQ from whatever pages it gets, see rings.c. */
static void kv_cq_limit(struct kv *kv)
{
	struct ib_cq_init_attr attr = { .cqe = kv->dev->attrs.max_cqe };
	struct ib_cq *cq = ib_create_cq(kv->dev, NULL, NULL, NULL, &attr);

	if (KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(cq), kv_large_err(kv)) && !IS_ERR(cq)) {
		KV_CHECK(kv, cq->cqe >= attr.cqe);
		ib_destroy_cq(cq);
	}
	attr.cqe++;
	cq = ib_create_cq(kv->dev, NULL, NULL, NULL, &attr);
	KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(cq), -EINVAL);
}

const struct kv_test kv_refused_tests[] = {
	{ "C-001 J-035 the largest CQ, and one CQE more", kv_cq_limit },
	{ "F-026 F-028 F-029 I-035 invalid work requests", kv_bad_work },
	{ "F-025 F-056 I-010 I-033 requests that the peer must not make", kv_bad_peer },
	{ "F-026 F-030 refused at once", kv_at_once },
	{ "B-014 B-054 opcodes that there are not, inline atomics", kv_bad_opcodes },
	{ "F-016 the peer cannot use the local DMA key", kv_dma_key },
	{ }
};
