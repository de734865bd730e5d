// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: details that the driver adds to "rdma resource show". */
#include <net/netlink.h>

#include "kverbs.h"

static struct sk_buff *kv_show_mr(struct kv *kv, struct ib_mr *mr)
{
	struct sk_buff *msg = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!KV_CHECK(kv, msg))
		return NULL;
	KV_CHECK_EQ(kv, kv->dev->ops.fill_res_mr_entry(msg, mr), 0);
	KV_CHECK(kv, msg->len);
	return msg;
}

/*
 * Re-registration may replace the PD of an MR, and free the old one, while another process queries
 * the MR. So the driver must not follow the pointer to the PD.
 */
static void kv_mr_pd(struct kv *kv)
{
	struct sk_buff *before, *after;
	struct ib_pd *pd, *other;
	struct ib_mr *mr;

	if (!KV_GET(kv, pd, ib_alloc_pd(kv->dev, 0)))
		return;
	if (!KV_GET(kv, other, ib_alloc_pd(kv->dev, 0)))
		goto out_pd;
	if (!KV_GET(kv, mr, ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1)))
		goto out_other;
	before = kv_show_mr(kv, mr);
	mr->pd = other;
	after = kv_show_mr(kv, mr);
	mr->pd = pd;
	if (before && after)
		KV_CHECK(kv, before->len == after->len &&
			 !memcmp(before->data, after->data, after->len));
	nlmsg_free(after);
	nlmsg_free(before);
	KV_CHECK_EQ(kv, ib_dereg_mr(mr), 0);
out_other:
	ib_dealloc_pd(other);
out_pd:
	ib_dealloc_pd(pd);
}

const struct kv_test kv_restrack_tests[] = {
	{ "F-012 J-021 an MR is shown without a look at its PD", kv_mr_pd },
	{ }
};
