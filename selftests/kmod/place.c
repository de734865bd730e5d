// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: ATOMIC WRITE; FLUSH, which it cannot post. */
#include <linux/string.h>

#include "kverbs.h"

/* struct kv_place - a rig, data, and a registered page of the peer */
struct kv_place {
	struct kv_rig r;
	struct kv_buf src, dst;
	struct ib_mr *mr;
};

static void kv_place_close(struct kv *kv, struct kv_place *p)
{
	kv_rig_stop(&p->r);
	if (p->mr)
		KV_CHECK_EQ(kv, ib_dereg_mr(p->mr), 0);
	kv_buf_close(kv, &p->src);
	kv_buf_close(kv, &p->dst);
	kv_rig_close(kv, &p->r);
}

static bool kv_place_reg(struct kv *kv, struct kv_place *p, int access)
{
	struct kv_done d;

	p->mr = ib_alloc_mr(p->r.pd, IB_MR_TYPE_MEM_REG, 1);
	if (!KV_CHECK(kv, !IS_ERR(p->mr))) {
		p->mr = NULL;
		return false;
	}
	KV_CHECK_EQ(kv, ib_map_mr_sg(p->mr, p->dst.sgt.sgl, 1, NULL, PAGE_SIZE), 1);
	KV_CHECK_EQ(kv, kv_reg(&p->r.b, &d, p->mr, p->mr->rkey, access), 0);
	return KV_CHECK_EQ(kv, kv_wait(&p->r, &p->r.b, &d), IB_WC_SUCCESS);
}

static bool kv_place_open(struct kv *kv, struct kv_place *p, int access)
{
	const u64 need = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_ATOMIC_WRITE;

	memset(p, 0, sizeof(*p));
	if ((kv->dev->attrs.device_cap_flags & need) != need) {
		kv->skip = "no ATOMIC WRITE, or no fast registration";
		return false;
	}
	if (kv_rig_open(kv, &p->r, IB_POLL_WORKQUEUE) && kv_buf_open(kv, &p->src, 1) &&
	    kv_buf_open(kv, &p->dst, 1) && kv_place_reg(kv, p, access))
		return true;
	kv_place_close(kv, p);
	return false;
}

/* Posts @opcode with the first @len bytes; returns the error or the status. */
static int kv_place_post(struct kv_place *p, struct kv_done *d, enum ib_wr_opcode opcode,
			 u32 off, u32 len)
{
	struct ib_sge sge = {
		.addr = kv_dma(&p->src, 0),
		.length = len,
		.lkey = p->r.pd->local_dma_lkey,
	};
	int ret;

	ret = kv_rdma(&p->r.a, d, opcode, &sge, p->mr->iova + off, p->mr->rkey);
	return ret ? ret : kv_wait(&p->r, &p->r.a, d);
}

#define KV_WRITABLE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

static void kv_store(struct kv *kv)
{
	struct kv_place p;
	struct kv_done d;
	u8 *dst;
	int i;

	if (!kv_place_open(kv, &p, KV_WRITABLE))
		return;
	dst = kv_page(&p.dst, 0);
	for (i = 1; i < 200; i++) {
		u32 off = i * 8 % PAGE_SIZE;

		kv_fill(&p.src, i);
		KV_CHECK_EQ(kv, kv_place_post(&p, &d, IB_WR_ATOMIC_WRITE, off, 8),
			    IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, d.wc.opcode, IB_WC_ATOMIC_WRITE);
		KV_CHECK(kv, !memchr_inv(dst + off, i, 8));
		memset(dst + off, 0, 8);
		KV_CHECK(kv, !memchr_inv(dst, 0, PAGE_SIZE));
	}
	kv_place_close(kv, &p);
}

static const struct {
	int access;
	u32 off, len;
	int status;
} kv_bad_stores[] = {
	{ KV_WRITABLE, 4, 8, IB_WC_REM_INV_REQ_ERR },
	{ KV_WRITABLE, PAGE_SIZE, 8, IB_WC_REM_ACCESS_ERR },
	{ IB_ACCESS_REMOTE_READ, 0, 8, IB_WC_REM_ACCESS_ERR },
	{ KV_WRITABLE, 0, 4, IB_WC_LOC_LEN_ERR },
	{ KV_WRITABLE, 0, 16, IB_WC_LOC_LEN_ERR },
};

static void kv_bad_store(struct kv *kv)
{
	struct kv_place p;
	struct kv_done d;
	int i;

	for (i = 0; i < ARRAY_SIZE(kv_bad_stores); i++) {
		if (!kv_place_open(kv, &p, kv_bad_stores[i].access))
			return;
		kv_fill(&p.src, 0x55);
		KV_CHECK_EQ(kv, kv_place_post(&p, &d, IB_WR_ATOMIC_WRITE,
					      kv_bad_stores[i].off, kv_bad_stores[i].len),
			    kv_bad_stores[i].status);
		KV_CHECK(kv, !memchr_inv(kv_page(&p.dst, 0), 0, PAGE_SIZE));
		kv_place_close(kv, &p);
	}
}

/* struct ib_send_wr has no members for the type and level of a FLUSH. */
static void kv_flush(struct kv *kv)
{
	struct kv_place p;
	struct kv_done d;

	if (!kv_place_open(kv, &p, KV_WRITABLE | IB_ACCESS_FLUSH_GLOBAL))
		return;
	KV_CHECK_EQ(kv, kv_place_post(&p, &d, IB_WR_FLUSH, 0, 8), -EINVAL);
	KV_CHECK_EQ(kv, kv_place_post(&p, &d, IB_WR_ATOMIC_WRITE, 0, 8), IB_WC_SUCCESS);
	kv_place_close(kv, &p);
}

const struct kv_test kv_place_tests[] = {
	{ "B-013 B-074 ATOMIC WRITE of registered memory", kv_store },
	{ "B-074 I-007 I-032 I-038 invalid ATOMIC WRITE", kv_bad_store },
	{ "B-012 FLUSH is refused at once", kv_flush },
	{ }
};
