// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: queues larger than memory in one piece. */
#include <linux/swiotlb.h>

#include "kverbs.h"

/*
 * A ring too large for one piece is made of single pages, unless DMA is bounced: then they
 * would need a synchronisation that nobody does.
 */
int kv_large_err(struct kv *kv)
{
	return is_swiotlb_force_bounce(kv->dev->dma_device) ? -ENOMEM : 0;
}

/* It has 16 MiB. Several times, to show leaks, and what is freed twice. */
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

const struct kv_test kv_rings_tests[] = {
	{ "J-001 the largest send queue", kv_large },
	{ }
};
