// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: adaptive moderation. With "rdma dev set … adaptive-moderation on"
 * the core measures each CQ that it polls, and makes the driver change how many CQEs raise an
 * event.
 */
#include <linux/dim.h>
#include <linux/ktime.h>

#include "kverbs.h"

#define KV_BURST	32

/* More events than the core uses for one measurement. */
#define KV_ROUNDS	100

/* Sends @burst messages in one go, KV_ROUNDS times. */
static void kv_load(struct kv *kv, struct kv_rig *r, int burst)
{
	static struct kv_done sent[KV_BURST], received[KV_BURST];
	int round, i;

	for (round = 0; round < KV_ROUNDS && !kv->failed; round++) {
		for (i = 0; i < burst; i++)
			KV_CHECK_EQ(kv, kv_recv(&r->b, &received[i], NULL, 0), 0);
		for (i = 0; i < burst; i++)
			KV_CHECK_EQ(kv, kv_send(&r->a, &sent[i], NULL, 0), 0);
		for (i = 0; i < burst && !kv->failed; i++) {
			KV_CHECK_EQ(kv, kv_wait(r, &r->b, &received[i]), IB_WC_SUCCESS);
			KV_CHECK_EQ(kv, kv_wait(r, &r->a, &sent[i]), IB_WC_SUCCESS);
		}
	}
}

/*
 * Alternates light and heavy load; the profile shows the core's decisions. A kernel with debug
 * checks runs fewer phases, because they take longer, and a machine that is slow as well gets more
 * time for the three changes.
 */
static void kv_adapts(struct kv *kv, enum ib_poll_context ctx)
{
	unsigned long end = jiffies + KV_WAIT, late = end + 3 * KV_WAIT;
	unsigned int changes = 0, phase;
	struct kv_rig r;
	int last = 0;

	if (!kv_rig_open(kv, &r, ctx))
		return;
	if (!KV_CHECK(kv, r.a.cq->dim && r.b.cq->dim))
		goto out;
	KV_CHECK_EQ(kv, r.b.cq->dim->profile_ix, 0);
	for (phase = 0; !kv->failed; phase++) {
		if (changes < 3 ? time_after(jiffies, late) :
				  phase >= 20 || time_after(jiffies, end))
			break;
		kv_load(kv, &r, phase % 2 ? KV_BURST : 1);
		if (READ_ONCE(r.b.cq->dim->profile_ix) == last)
			continue;
		last = READ_ONCE(r.b.cq->dim->profile_ix);
		changes++;
	}
	KV_CHECK(kv, changes >= 3);
	seq_printf(kv->m, "# %u changes in %u phases\n", changes, phase);
out:
	kv_rig_close(kv, &r);
}

static void kv_adapts_softirq(struct kv *kv)
{
	kv_adapts(kv, IB_POLL_SOFTIRQ);
}

static void kv_adapts_workqueue(struct kv *kv)
{
	kv_adapts(kv, IB_POLL_WORKQUEUE);
}

/* The core does not moderate a CQ that is polled without events. */
static void kv_direct_has_none(struct kv *kv)
{
	struct kv_rig r;

	if (!kv_rig_open(kv, &r, IB_POLL_DIRECT))
		return;
	KV_CHECK(kv, !r.a.cq->dim);
	kv_load(kv, &r, KV_BURST);
	kv_rig_close(kv, &r);
}

const struct kv_test kv_dim_tests[] = {
	{ "C-032 C-034 moderation by load, polled in softirq", kv_adapts_softirq },
	{ "C-032 C-034 moderation by load, polled in a work queue", kv_adapts_workqueue },
	{ "C-034 none for a CQ polled by hand", kv_direct_has_none },
	{ }
};
