// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: queues that are larger than contiguous memory. */
#include <linux/kprobes.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/swiotlb.h>

#include <net/qhca/core.h>

#include "kverbs.h"

/*
 * A ring too large for one allocation consists of single pages, unless DMA is bounced, because
 * pages would then need a synchronisation that the driver does not do.
 */
int kv_large_err(struct kv *kv)
{
	return is_swiotlb_force_bounce(kv->dev->dma_device) ? -ENOMEM : 0;
}

/* The largest send queue has 16 MiB. Repeated, to show leaks and double frees. */
static void kv_large(struct kv *kv)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = kv->dev->attrs.max_qp_wr,
			.max_send_sge = kv->dev->attrs.max_send_sge,
			.max_recv_wr = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_pd *pd = ib_alloc_pd(kv->dev, 0);
	struct ib_cq *cq;
	struct ib_qp *qp;
	int i;

	if (!KV_CHECK(kv, !IS_ERR(pd)))
		return;
	cq = ib_alloc_cq(kv->dev, kv, 16, 0, IB_POLL_DIRECT);
	if (!KV_CHECK(kv, !IS_ERR(cq)))
		goto out_pd;
	init.send_cq = cq;
	init.recv_cq = cq;
	for (i = 0; i < 4; i++) {
		qp = ib_create_qp(pd, &init);
		KV_CHECK_EQ(kv, PTR_ERR_OR_ZERO(qp), kv_large_err(kv));
		if (!IS_ERR(qp))
			KV_CHECK_EQ(kv, ib_destroy_qp(qp), 0);
	}
	ib_free_cq(cq);
out_pd:
	ib_dealloc_pd(pd);
}

/* The device overwrites the addresses in the table of a ring, which it can access, with this. */
#define KV_NOT_OURS	0x5a5a5a5a000ull

static atomic_t kv_unmapped, kv_unmapped_wrong;

static int kv_unmap(struct kprobe *p, struct pt_regs *regs)
{
	atomic_inc(&kv_unmapped);
	if (regs_get_kernel_argument(regs, 1) == KV_NOT_OURS)
		atomic_inc(&kv_unmapped_wrong);
	return 0;
}

static void kv_unmap_run(struct kv *kv)
{
	struct qhca_dev *dev = pci_get_drvdata(to_pci_dev(kv->dev->dev.parent));
	struct qhca_ring_mem mem;
	struct qhca_buf buf;
	u32 i, num;

	/* If large queues fail on this machine, this must fail in the same way, without a ring. */
	if (!KV_CHECK_EQ(kv, qhca_ring_mem_alloc(dev, &mem, SZ_8M, &buf), kv_large_err(kv)) ||
	    !mem.va)
		return;
	num = buf.depth ? le32_to_cpu(buf.num_blocks) : 0;
	for (i = 0; i < num; i++)
		qhca_table_set(&mem.table, i, KV_NOT_OURS);
	qhca_ring_mem_free(dev, &mem);
	if (!num)
		kv->skip = "memory comes in large pieces";
	else
		KV_CHECK(kv, atomic_read(&kv_unmapped) >= num);
	KV_CHECK_EQ(kv, atomic_read(&kv_unmapped_wrong), 0);
}

/* The driver must not use addresses of the table, which the device could have changed. */
static void kv_unmap_own(struct kv *kv)
{
	struct kprobe probe = { .symbol_name = "dma_unmap_page_attrs", .pre_handler = kv_unmap };
	int ret;

	atomic_set(&kv_unmapped, 0);
	atomic_set(&kv_unmapped_wrong, 0);
	ret = register_kprobe(&probe);
	if (ret == -EOPNOTSUPP) {
		kv->skip = "a kernel without probes";
	} else if (KV_CHECK_EQ(kv, ret, 0)) {
		kv_unmap_run(kv);
		unregister_kprobe(&probe);
	}
}

const struct kv_test kv_rings_tests[] = {
	{ "J-035 the largest send queue", kv_large },
	{ "pages of a ring are unmapped at the addresses where they were mapped", kv_unmap_own },
	{ }
};
