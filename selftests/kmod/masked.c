// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: masked atomics, which only the kernel can post. */
#include <linux/string.h>

#include "kverbs.h"

#define KV_CAS		IB_WR_MASKED_ATOMIC_CMP_AND_SWP
#define KV_FAA		IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
#define KV_ATOMIC	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define KV_RESULT	256		/* offset of a result in its page */
#define KV_WORD		64

/* struct kv_word - a rig, a page for results, and a registered page of the peer */
struct kv_word {
	struct kv_rig r;
	struct kv_buf src, dst;
	struct ib_mr *mr;
};

static void kv_word_close(struct kv *kv, struct kv_word *w)
{
	kv_rig_stop(&w->r);
	if (w->mr)
		KV_CHECK_EQ(kv, ib_dereg_mr(w->mr), 0);
	kv_buf_close(kv, &w->src);
	kv_buf_close(kv, &w->dst);
	kv_rig_close(kv, &w->r);
}

static bool kv_word_reg(struct kv *kv, struct kv_word *w, int access)
{
	struct kv_done d;

	w->mr = ib_alloc_mr(w->r.pd, IB_MR_TYPE_MEM_REG, 1);
	if (!KV_CHECK(kv, !IS_ERR(w->mr))) {
		w->mr = NULL;
		return false;
	}
	KV_CHECK_EQ(kv, ib_map_mr_sg(w->mr, w->dst.sgt.sgl, 1, NULL, PAGE_SIZE), 1);
	KV_CHECK_EQ(kv, kv_reg(&w->r.b, &d, w->mr, w->mr->rkey, access), 0);
	return KV_CHECK_EQ(kv, kv_wait(&w->r, &w->r.b, &d), IB_WC_SUCCESS);
}

static bool kv_word_open(struct kv *kv, struct kv_word *w, int access)
{
	memset(w, 0, sizeof(*w));
	if (kv->dev->attrs.masked_atomic_cap == IB_ATOMIC_NONE) {
		kv->skip = "no masked atomics";
		return false;
	}
	if (kv_rig_open(kv, &w->r, IB_POLL_WORKQUEUE) && kv_buf_open(kv, &w->src, 1) &&
	    kv_buf_open(kv, &w->dst, 1) && kv_word_reg(kv, w, access))
		return true;
	kv_word_close(kv, w);
	return false;
}

/* Posts @wr with a result of @len bytes, for the word at @off. Returns the error or the status. */
static int kv_word_do(struct kv_word *w, struct kv_done *d, struct ib_atomic_wr *wr,
		      u32 off, u32 len)
{
	struct ib_sge sge = {
		.addr = kv_dma(&w->src, 0) + KV_RESULT,
		.length = len,
		.lkey = w->r.pd->local_dma_lkey,
	};
	int ret;

	wr->wr.sg_list = &sge;
	wr->wr.num_sge = 1;
	wr->remote_addr = w->mr->iova + off;
	wr->rkey = w->mr->rkey;
	ret = kv_atomic(&w->r.a, d, wr);
	return ret ? ret : kv_wait(&w->r, &w->r.a, d);
}

static const struct {
	enum ib_wr_opcode opcode;
	u64 word, compare_add, swap, compare_add_mask, swap_mask, result;
} kv_masked_ops[] = {
	/* All bits and no boundaries: the same as without masks. */
	{ KV_CAS, 5, 5, 9, ~0ull, ~0ull, 9 },
	{ KV_CAS, 5, 4, 9, ~0ull, ~0ull, 5 },
	{ KV_FAA, ~0ull, 3, 0, 0, 0, 2 },
	/* Compare and swap of different bits. */
	{ KV_CAS, 0x1234, 0xff34, 0xabcd, 0x00ff, 0xff00, 0xab34 },
	{ KV_CAS, 0x1234, 0xff35, 0xabcd, 0x00ff, 0xff00, 0x1234 },
	{ KV_CAS, 0x1234, 0x5678, 0xabcd, 0, ~0ull, 0xabcd },
	{ KV_CAS, 0x1234, 0x1234, 0xabcd, ~0ull, 0, 0x1234 },
	/* Fields: two of 32 bits, eight bytes, single bits. */
	{ KV_FAA, ~0ull, 0x100000001, 0, 0x8000000080000000, 0, 0 },
	{ KV_FAA, 0xffffffff, 1, 0, 0x80000000, 0, 0 },
	{ KV_FAA, 0xff01fe80ff7f0055, 0x01ff03800101ff11, 0, 0x8080808080808080, 0,
	  0x000001000080ff66 },
	{ KV_FAA, 0x0f0f, 0x00ff, 0, ~0ull, 0, 0x0ff0 },
};

static void kv_masked_values(struct kv *kv)
{
	struct kv_word w;
	struct kv_done d;
	u64 *word, *old;
	int i;

	if (!kv_word_open(kv, &w, KV_ATOMIC))
		return;
	KV_CHECK_EQ(kv, kv->dev->attrs.masked_atomic_cap, kv->dev->attrs.atomic_cap);
	word = kv_page(&w.dst, 0) + KV_WORD;
	old = kv_page(&w.src, 0) + KV_RESULT;
	for (i = 0; i < ARRAY_SIZE(kv_masked_ops); i++) {
		bool swap = kv_masked_ops[i].opcode == KV_CAS;
		struct ib_atomic_wr wr = {
			.wr.opcode = kv_masked_ops[i].opcode,
			.compare_add = kv_masked_ops[i].compare_add,
			.swap = kv_masked_ops[i].swap,
			.compare_add_mask = kv_masked_ops[i].compare_add_mask,
			.swap_mask = kv_masked_ops[i].swap_mask,
		};

		*word = kv_masked_ops[i].word;
		*old = ~*word;
		KV_CHECK_EQ(kv, kv_word_do(&w, &d, &wr, KV_WORD, 8), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, d.wc.opcode, swap ? IB_WC_MASKED_COMP_SWAP :
						    IB_WC_MASKED_FETCH_ADD);
		KV_CHECK_EQ(kv, d.wc.byte_len, 8);
		KV_CHECK_EQ(kv, *old, kv_masked_ops[i].word);
		KV_CHECK_EQ(kv, *word, kv_masked_ops[i].result);
		KV_CHECK(kv, !word[-1] && !word[1]);
	}
	kv_word_close(kv, &w);
}

static const struct {
	int access;
	u32 off, len;
	int status;
} kv_bad_masked[] = {
	{ KV_ATOMIC, 4, 8, IB_WC_REM_INV_REQ_ERR },
	{ KV_ATOMIC, PAGE_SIZE, 8, IB_WC_REM_ACCESS_ERR },
	{ IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0, 8, IB_WC_REM_ACCESS_ERR },
	{ KV_ATOMIC, 0, 4, IB_WC_LOC_LEN_ERR },
	{ KV_ATOMIC, 0, 16, IB_WC_LOC_LEN_ERR },
};

static void kv_masked_errors(struct kv *kv)
{
	static const enum ib_wr_opcode opcodes[] = { KV_CAS, KV_FAA };
	struct kv_word w;
	struct kv_done d;
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(kv_bad_masked); i++) {
		struct ib_atomic_wr wr = {
			.wr.opcode = opcodes[i % 2], .compare_add = 1, .swap = 1,
			.swap_mask = ~0ull,
		};

		if (!kv_word_open(kv, &w, kv_bad_masked[i / 2].access))
			return;
		KV_CHECK_EQ(kv, kv_word_do(&w, &d, &wr, kv_bad_masked[i / 2].off,
					   kv_bad_masked[i / 2].len),
			    kv_bad_masked[i / 2].status);
		KV_CHECK(kv, !memchr_inv(kv_page(&w.dst, 0), 0, PAGE_SIZE));
		kv_word_close(kv, &w);
	}
}

/* A masked atomic with inline data has no memory for its result. */
static void kv_masked_inline(struct kv *kv)
{
	static const enum ib_wr_opcode opcodes[] = { KV_CAS, KV_FAA };
	const struct ib_send_wr *bad;
	struct kv_rig r;
	int i;

	if (kv->dev->attrs.masked_atomic_cap == IB_ATOMIC_NONE) {
		kv->skip = "no masked atomics";
		return;
	}
	if (!kv_rig_open(kv, &r, IB_POLL_WORKQUEUE))
		return;
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ib_atomic_wr wr = {
			.wr.opcode = opcodes[i], .wr.send_flags = IB_SEND_INLINE,
		};

		bad = NULL;
		KV_CHECK_EQ(kv, ib_post_send(r.a.qp, &wr.wr, &bad), -EINVAL);
		KV_CHECK(kv, bad == &wr.wr);
	}
	kv_rig_close(kv, &r);
}

const struct kv_test kv_masked_tests[] = {
	{ "B-015 B-075 J-005 masked atomics, values and masks", kv_masked_values },
	{ "B-032 B-033 I-007 I-017 invalid masked atomics", kv_masked_errors },
	{ "B-054 no masked atomics with inline data", kv_masked_inline },
	{ }
};
