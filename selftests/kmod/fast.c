// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: fast registration, as storage protocols use it. */
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "kverbs.h"

#define KV_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

/* struct kv_fast - a rig, memory, and an MR for all of it */
struct kv_fast {
	struct kv_rig r;
	struct kv_buf src, dst;
	struct ib_mr *mr;
};

static void kv_fast_close(struct kv *kv, struct kv_fast *f)
{
	kv_rig_stop(&f->r);
	if (f->mr)
		KV_CHECK_EQ(kv, ib_dereg_mr(f->mr), 0);
	kv_buf_close(kv, &f->src);
	kv_buf_close(kv, &f->dst);
	kv_rig_close(kv, &f->r);
}

static bool kv_fast_open(struct kv *kv, struct kv_fast *f, unsigned int num_pages)
{
	memset(f, 0, sizeof(*f));
	if (!(kv->dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		kv->skip = "no memory management extensions";
		return false;
	}
	if (!kv_rig_open(kv, &f->r, IB_POLL_SOFTIRQ))
		return false;
	if (kv_buf_open(kv, &f->src, num_pages) && kv_buf_open(kv, &f->dst, num_pages)) {
		f->mr = ib_alloc_mr(f->r.pd, IB_MR_TYPE_MEM_REG, num_pages);
		if (KV_CHECK(kv, !IS_ERR(f->mr)))
			return true;
		f->mr = NULL;
	}
	kv_fast_close(kv, f);
	return false;
}

static void kv_map(struct kv *kv, struct kv_fast *f, unsigned int offset)
{
	unsigned int sg_offset = offset;

	KV_CHECK_EQ(kv, ib_map_mr_sg(f->mr, f->dst.sgt.sgl, f->dst.num_pages, &sg_offset,
				     PAGE_SIZE), f->dst.num_pages);
	KV_CHECK_EQ(kv, f->mr->length, f->dst.num_pages * PAGE_SIZE - offset);
}

static void kv_reg_ok(struct kv *kv, struct kv_fast *f)
{
	struct kv_done d;

	ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	KV_CHECK_EQ(kv, kv_reg(&f->r.b, &d, f->mr, f->mr->rkey, KV_RIGHTS), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &d), IB_WC_SUCCESS);
	KV_CHECK_EQ(kv, d.wc.opcode, IB_WC_REG_MR);
}

/* Writes the first page of @f->src to @raddr through the MR; returns the status. */
static int kv_write(struct kv_fast *f, u64 raddr, u32 len, u32 rkey)
{
	struct ib_sge sge = {
		.addr = kv_dma(&f->src, 0),
		.length = len,
		.lkey = f->r.pd->local_dma_lkey,
	};
	struct kv_done d;
	int ret;

	ret = kv_rdma(&f->r.a, &d, IB_WR_RDMA_WRITE, &sge, raddr, rkey);
	return ret ? ret : kv_wait(&f->r, &f->r.a, &d);
}

/* The peer writes every page, then one of both sides invalidates the key. */
static void kv_cycle(struct kv *kv, struct kv_fast *f, int i)
{
	struct kv_done inv, received;
	unsigned int page;

	kv_fill(&f->src, i);
	kv_map(kv, f, 0);
	kv_reg_ok(kv, f);
	for (page = 0; page < f->dst.num_pages; page++)
		KV_CHECK_EQ(kv, kv_write(f, f->mr->iova + page * PAGE_SIZE, PAGE_SIZE,
					 f->mr->rkey), IB_WC_SUCCESS);
	for (page = 0; page < f->dst.num_pages; page++)
		KV_CHECK(kv, !memchr_inv(kv_page(&f->dst, page), (u8)i, PAGE_SIZE));
	if (i % 2) {
		KV_CHECK_EQ(kv, kv_local_inv(&f->r.b, &inv, f->mr->rkey), 0);
		KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &inv), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, inv.wc.opcode, IB_WC_LOCAL_INV);
		return;
	}
	KV_CHECK_EQ(kv, kv_recv(&f->r.b, &received, NULL, 0), 0);
	KV_CHECK_EQ(kv, kv_send_inv(&f->r.a, &inv, f->mr->rkey), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &received), IB_WC_SUCCESS);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.a, &inv), IB_WC_SUCCESS);
	KV_CHECK(kv, received.wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KV_CHECK_EQ(kv, received.wc.ex.invalidate_rkey, f->mr->rkey);
}

static void kv_cycles(struct kv *kv)
{
	struct kv_fast f;
	int i;

	if (!kv_fast_open(kv, &f, 3))
		return;
	for (i = 0; i < 1000 && !kv->failed; i++)
		kv_cycle(kv, &f, i);
	kv_fast_close(kv, &f);
}

/* Posts REG_MR, a SEND of the registered memory and LOCAL_INV in one list. */
static void kv_chain(struct kv *kv)
{
	struct kv_done d[3], received;
	struct ib_sge sge, in;
	struct kv_fast f;
	int i;

	if (!kv_fast_open(kv, &f, 2))
		return;
	in.addr = kv_dma(&f.src, 0);
	in.length = PAGE_SIZE;
	in.lkey = f.r.pd->local_dma_lkey;
	for (i = 0; i < 200 && !kv->failed; i++) {
		kv_fill(&f.dst, i);
		kv_map(kv, &f, 100);
		ib_update_fast_reg_key(f.mr, ib_inc_rkey(f.mr->rkey));
		sge.addr = f.mr->iova;
		sge.length = PAGE_SIZE;
		sge.lkey = f.mr->lkey;
		KV_CHECK_EQ(kv, kv_recv(&f.r.a, &received, &in, 1), 0);
		KV_CHECK_EQ(kv, kv_reg(&f.r.b, &d[0], f.mr, f.mr->lkey, KV_RIGHTS), 0);
		KV_CHECK_EQ(kv, kv_send(&f.r.b, &d[1], &sge, 1), 0);
		KV_CHECK_EQ(kv, kv_local_inv(&f.r.b, &d[2], f.mr->lkey), 0);
		KV_CHECK_EQ(kv, kv_wait(&f.r, &f.r.b, &d[0]), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, kv_wait(&f.r, &f.r.b, &d[1]), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, kv_wait(&f.r, &f.r.b, &d[2]), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, kv_wait(&f.r, &f.r.a, &received), IB_WC_SUCCESS);
		KV_CHECK(kv, !memchr_inv(kv_page(&f.src, 0), (u8)i, PAGE_SIZE - 100));
		KV_CHECK(kv, !memchr_inv(kv_page(&f.src, 0) + PAGE_SIZE - 100, (u8)(i + 1),
					 100));
	}
	kv_fast_close(kv, &f);
}

static void kv_iova(struct kv *kv)
{
	static const u64 iovas[] = { 0, 0x123456789abc, 1 };
	struct kv_done d;
	struct kv_fast f;
	int i;

	if (!kv_fast_open(kv, &f, 2))
		return;
	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		kv_fill(&f.src, 50 + i);
		kv_fill(&f.dst, 0);
		kv_map(kv, &f, 200);
		f.mr->iova = iovas[i];
		kv_reg_ok(kv, &f);
		KV_CHECK_EQ(kv, kv_write(&f, iovas[i], 100, f.mr->rkey), IB_WC_SUCCESS);
		KV_CHECK(kv, !memchr_inv(kv_page(&f.dst, 0), 0, 200));
		KV_CHECK(kv, !memchr_inv(kv_page(&f.dst, 0) + 200, 50 + i, 100));
		KV_CHECK(kv, !memchr_inv(kv_page(&f.dst, 0) + 300, 0, PAGE_SIZE - 300));
		KV_CHECK_EQ(kv, kv_local_inv(&f.r.b, &d, f.mr->rkey), 0);
		KV_CHECK_EQ(kv, kv_wait(&f.r, &f.r.b, &d), IB_WC_SUCCESS);
	}
	kv_fast_close(kv, &f);
}

/* Registers as many pages as the device supports, and uses them to the last byte. */
static void kv_full(struct kv *kv)
{
	unsigned int max = kv->dev->attrs.max_fast_reg_page_list_len;
	struct kv_fast f;

	KV_CHECK(kv, max >= 257 ||
		 !(kv->dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS));
	if (!kv_fast_open(kv, &f, max))
		return;
	kv_fill(&f.src, 9);
	kv_map(kv, &f, 0);
	kv_reg_ok(kv, &f);
	KV_CHECK_EQ(kv, kv_write(&f, f.mr->iova + (max - 1) * PAGE_SIZE, PAGE_SIZE,
				 f.mr->rkey), IB_WC_SUCCESS);
	KV_CHECK(kv, !memchr_inv(kv_page(&f.dst, max - 1), 9, PAGE_SIZE));
	KV_CHECK(kv, !memchr_inv(kv_page(&f.dst, max - 2), 0, PAGE_SIZE));
	KV_CHECK_EQ(kv, kv_write(&f, f.mr->iova + max * PAGE_SIZE - 1, 2, f.mr->rkey),
		    IB_WC_REM_ACCESS_ERR);
	kv_fast_close(kv, &f);
}

/* map_mr_sg stops where the list is full, and where pages have a gap. */
static void kv_gaps(struct kv *kv)
{
	struct scatterlist *sg;
	unsigned int offset;
	struct kv_fast f;
	struct ib_mr *mr;

	if (!kv_fast_open(kv, &f, 6))
		return;
	mr = ib_alloc_mr(f.r.pd, IB_MR_TYPE_MEM_REG, 4);
	if (KV_CHECK(kv, !IS_ERR(mr))) {
		KV_CHECK_EQ(kv, ib_map_mr_sg(mr, f.dst.sgt.sgl, 6, NULL, PAGE_SIZE), 4);
		KV_CHECK_EQ(kv, mr->length, 4 * PAGE_SIZE);
		KV_CHECK_EQ(kv, ib_dereg_mr(mr), 0);
	}
	sg = sg_next(sg_next(f.dst.sgt.sgl));
	sg_dma_len(sg) -= 8;
	KV_CHECK_EQ(kv, ib_map_mr_sg(f.mr, f.dst.sgt.sgl, 6, NULL, PAGE_SIZE), 3);
	KV_CHECK_EQ(kv, f.mr->length, 3 * PAGE_SIZE - 8);
	sg_dma_len(sg) += 8;
	offset = 8;
	KV_CHECK_EQ(kv, ib_map_mr_sg(f.mr, f.dst.sgt.sgl, 1, &offset, PAGE_SIZE), 1);
	KV_CHECK_EQ(kv, f.mr->length, PAGE_SIZE - 8);
	KV_CHECK(kv, ib_map_mr_sg(f.mr, f.dst.sgt.sgl, 1, NULL, 2048) < 0);
	kv_fast_close(kv, &f);
}

/* READs @remote into the whole MR of @f and invalidates @key; returns the status. */
static int kv_read_inv(struct kv_fast *f, struct kv_done *d, const struct ib_mr *remote, u32 key)
{
	struct ib_sge sge = {
		.addr = f->mr->iova,
		.length = f->mr->length,
		.lkey = f->mr->lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &d->cqe,
			.opcode = IB_WR_RDMA_READ_WITH_INV,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.ex.invalidate_rkey = key,
		},
		.remote_addr = remote->iova,
		.rkey = remote->rkey,
	};
	int ret;

	kv_expect(d);
	ret = ib_post_send(f->r.b.qp, &wr.wr, NULL);
	return ret ? ret : kv_wait(&f->r, &f->r.b, d);
}

static void kv_reads_inv(struct kv *kv, struct kv_fast *f, struct ib_mr *remote)
{
	struct kv_done d;
	int i;

	KV_CHECK_EQ(kv, ib_map_mr_sg(remote, f->src.sgt.sgl, 2, NULL, PAGE_SIZE), 2);
	KV_CHECK_EQ(kv, kv_reg(&f->r.a, &d, remote, remote->rkey, KV_RIGHTS), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.a, &d), IB_WC_SUCCESS);
	for (i = 0; i < 100 && !kv->failed; i++) {
		kv_fill(&f->src, i);
		kv_fill(&f->dst, ~i);
		kv_map(kv, f, 0);
		/* This would fail if the last key were still valid. */
		kv_reg_ok(kv, f);
		KV_CHECK_EQ(kv, kv_read_inv(f, &d, remote, f->mr->lkey), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, d.wc.opcode, IB_WC_RDMA_READ);
		KV_CHECK_EQ(kv, d.wc.byte_len, 2 * PAGE_SIZE);
		KV_CHECK(kv, kv_is_filled(&f->dst, i));
	}
	kv_reg_ok(kv, f);
	KV_CHECK_EQ(kv, kv_read_inv(f, &d, remote, f->r.pd->local_dma_lkey), IB_WC_MW_BIND_ERR);
}

static void kv_read_with_inv(struct kv *kv)
{
	struct ib_mr *remote;
	struct kv_fast f;

	if (!kv_fast_open(kv, &f, 2))
		return;
	remote = ib_alloc_mr(f.r.pd, IB_MR_TYPE_MEM_REG, 2);
	if (KV_CHECK(kv, !IS_ERR(remote))) {
		kv_reads_inv(kv, &f, remote);
		kv_rig_stop(&f.r);
		KV_CHECK_EQ(kv, ib_dereg_mr(remote), 0);
	}
	kv_fast_close(kv, &f);
}

/* ---- memory with gaps ---- */

#define KV_PIECES	4

static const unsigned int kv_piece_at[KV_PIECES] = { 1, 100, 0, 4000 };
static const unsigned int kv_piece_len[KV_PIECES] = { 3, 2001, PAGE_SIZE, 96 };

/* Makes @sgl name these parts of the pages of @f->dst, the last page first. */
static unsigned int kv_cut(struct kv_fast *f, struct scatterlist *sgl)
{
	unsigned int i, len = 0;

	sg_init_table(sgl, KV_PIECES);
	for (i = 0; i < KV_PIECES; i++) {
		sg_dma_address(&sgl[i]) = kv_dma(&f->dst, KV_PIECES - 1 - i) + kv_piece_at[i];
		sg_dma_len(&sgl[i]) = kv_piece_len[i];
		len += kv_piece_len[i];
	}
	return len;
}

static u8 kv_piece_byte(struct kv_fast *f, unsigned int off)
{
	unsigned int i = 0;

	for (; off >= kv_piece_len[i]; i++)
		off -= kv_piece_len[i];
	return ((u8 *)kv_page(&f->dst, KV_PIECES - 1 - i))[kv_piece_at[i] + off];
}

/* Writes @len bytes that count up to the region at @off, a page at a time. */
static void kv_write_pieces(struct kv *kv, struct kv_fast *f, const struct ib_mr *mr,
			    unsigned int skip)
{
	unsigned int len = mr->length, off, n, i;
	u8 *src = kv_page(&f->src, 0);

	for (off = 0; off < len; off += n) {
		n = min_t(unsigned int, len - off, 1999);
		for (i = 0; i < n; i++)
			src[i] = off + i + 7;
		KV_CHECK_EQ(kv, kv_write(f, mr->iova + off, n, mr->rkey), IB_WC_SUCCESS);
	}
	for (i = 0; i < len && !kv->failed; i++)
		KV_CHECK_EQ(kv, kv_piece_byte(f, skip + i), (u8)(i + 7));
	KV_CHECK_EQ(kv, ((u8 *)kv_page(&f->dst, KV_PIECES - 1))[0], 0);
	KV_CHECK_EQ(kv, ((u8 *)kv_page(&f->dst, KV_PIECES - 1))[4], 0);
	KV_CHECK_EQ(kv, ((u8 *)kv_page(&f->dst, KV_PIECES - 2))[99], 0);
	KV_CHECK_EQ(kv, ((u8 *)kv_page(&f->dst, KV_PIECES - 2))[2101], 0);
	KV_CHECK_EQ(kv, ((u8 *)kv_page(&f->dst, 0))[3999], 0);
}

static void kv_reg_pieces(struct kv *kv, struct kv_fast *f, struct ib_mr *mr)
{
	struct scatterlist sgl[KV_PIECES];
	unsigned int len = kv_cut(f, sgl), offset = 2;
	struct kv_done d;

	/* From the third byte on, then all of it at another address. */
	KV_CHECK_EQ(kv, ib_map_mr_sg(mr, sgl, KV_PIECES, &offset, PAGE_SIZE), KV_PIECES);
	KV_CHECK_EQ(kv, offset, 0);
	KV_CHECK_EQ(kv, mr->length, len - 2);
	KV_CHECK_EQ(kv, mr->iova, sg_dma_address(sgl) + 2);
	KV_CHECK_EQ(kv, kv_reg(&f->r.b, &d, mr, mr->rkey, KV_RIGHTS), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &d), IB_WC_SUCCESS);
	kv_write_pieces(kv, f, mr, 2);
	KV_CHECK_EQ(kv, kv_local_inv(&f->r.b, &d, mr->rkey), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &d), IB_WC_SUCCESS);

	KV_CHECK_EQ(kv, ib_map_mr_sg(mr, sgl, KV_PIECES, NULL, PAGE_SIZE), KV_PIECES);
	mr->iova = 0x123456789abc;
	KV_CHECK_EQ(kv, kv_reg(&f->r.b, &d, mr, mr->rkey, KV_RIGHTS), 0);
	KV_CHECK_EQ(kv, kv_wait(&f->r, &f->r.b, &d), IB_WC_SUCCESS);
	kv_write_pieces(kv, f, mr, 0);
	KV_CHECK_EQ(kv, kv_write(f, mr->iova + len - 1, 2, mr->rkey), IB_WC_REM_ACCESS_ERR);
}

static void kv_sg_gaps(struct kv *kv)
{
	struct scatterlist sgl[KV_PIECES];
	struct ib_mr *mr, *small;
	struct kv_fast f;

	if (!(kv->dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG)) {
		kv->skip = "no MRs with gaps";
		return;
	}
	if (!kv_fast_open(kv, &f, KV_PIECES))
		return;
	kv_fill(&f.dst, 0);
	memset(kv_page(&f.dst, 0), 0, PAGE_SIZE);
	memset(kv_page(&f.dst, KV_PIECES - 2), 0, PAGE_SIZE);
	memset(kv_page(&f.dst, KV_PIECES - 1), 0, PAGE_SIZE);
	if (KV_GET(kv, small, ib_alloc_mr(f.r.pd, IB_MR_TYPE_SG_GAPS, KV_PIECES - 1))) {
		kv_cut(&f, sgl);
		KV_CHECK_EQ(kv, ib_map_mr_sg(small, sgl, KV_PIECES, NULL, PAGE_SIZE),
			    KV_PIECES - 1);
		KV_CHECK_EQ(kv, ib_dereg_mr(small), 0);
	}
	if (KV_GET(kv, mr, ib_alloc_mr(f.r.pd, IB_MR_TYPE_SG_GAPS, KV_PIECES))) {
		kv_reg_pieces(kv, &f, mr);
		kv_rig_stop(&f.r);
		KV_CHECK_EQ(kv, ib_dereg_mr(mr), 0);
	}
	kv_fast_close(kv, &f);
}

const struct kv_test kv_fast_tests[] = {
	{ "F-031 registration of memory with gaps", kv_sg_gaps },
	{ "F-025 F-027 B-003 B-010 B-011 1,000 registrations", kv_cycles },
	{ "F-027 B-052 REG_MR, SEND and LOCAL_INV posted at once", kv_chain },
	{ "B-016 B-076 READ with invalidate", kv_read_with_inv },
	{ "F-011 B-011 an iova of the consumer's choice", kv_iova },
	{ "F-030 as many pages as the device supports", kv_full },
	{ "F-030 map_mr_sg stops at gaps", kv_gaps },
	{ }
};
