// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: the end of a QP with an SRQ when the device dies. A consumer that
 * drains such a QP stops it and waits up to a minute for LAST_WQE_REACHED.
 */
#include <linux/delay.h>

#include "kverbs.h"

#define KV_TOLD		(8 * HZ)	/* the driver polls the status of the device every 2 s */

/* struct kv_last - a QP, connected to itself, that takes its receives from an SRQ */
struct kv_last {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct kv_end e;
	struct completion told;
	atomic_t times;
};

static void kv_last_event(struct ib_event *event, void *context)
{
	struct kv_last *l = context;

	if (event->event != IB_EVENT_QP_LAST_WQE_REACHED)
		return;
	atomic_inc(&l->times);
	complete(&l->told);
}

static void kv_last_close(struct kv *kv, struct kv_last *l)
{
	if (l->e.qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(l->e.qp), 0);
	if (l->srq)
		ib_destroy_srq(l->srq);
	if (l->cq)
		ib_destroy_cq(l->cq);
	if (l->pd)
		ib_dealloc_pd(l->pd);
}

static bool kv_last_open(struct kv *kv, struct kv_last *l)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_cq_init_attr cq_attr = { .cqe = 16 };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.event_handler = kv_last_event,
		.qp_context = l,
		.cap = { .max_send_wr = 4 },
	};

	init_completion(&l->told);
	if (!KV_GET(kv, l->pd, ib_alloc_pd(kv->dev, 0)) ||
	    !KV_GET(kv, l->cq, ib_create_cq(kv->dev, NULL, NULL, NULL, &cq_attr)) ||
	    !KV_GET(kv, l->srq, ib_create_srq(l->pd, &attr)))
		return false;
	init.send_cq = l->cq;
	init.recv_cq = l->cq;
	init.srq = l->srq;
	return KV_GET(kv, l->e.qp, ib_create_qp(l->pd, &init)) &&
	       kv_connect(kv, &l->e, &l->e);
}

static void kv_last_stop(struct kv *kv, struct kv_last *l)
{
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };

	KV_CHECK_EQ(kv, ib_modify_qp(l->e.qp, &err, IB_QP_STATE), 0);
}

/*
 * A fault rule makes the device lose the event, so that when the device dies one QP is stopped and
 * waits for it. The other one is stopped when the device is already dead.
 */
static void kv_last_wqe(struct kv *kv)
{
	struct kv_last before = {}, after = {};
	int i;

	if (!kv->dev->attrs.max_srq) {
		kv->skip = "no SRQs";
		return;
	}
	if (!kv_last_open(kv, &before) || !kv_last_open(kv, &after))
		goto out;
	kv_last_stop(kv, &before);
	KV_CHECK(kv, !wait_for_completion_timeout(&before.told, HZ / 2));
	if (!kv_break(kv))
		goto out;
	KV_CHECK(kv, wait_for_completion_timeout(&before.told, KV_TOLD));
	KV_CHECK_EQ(kv, atomic_read(&after.times), 0);
	kv_last_stop(kv, &after);
	KV_CHECK(kv, wait_for_completion_timeout(&after.told, KV_TOLD));
	/* Stop them again: each has had its event. */
	for (i = 0; i < 3; i++) {
		kv_last_stop(kv, &before);
		kv_last_stop(kv, &after);
	}
	msleep(100);
	KV_CHECK_EQ(kv, atomic_read(&before.times), 1);
	KV_CHECK_EQ(kv, atomic_read(&after.times), 1);
out:
	kv_last_close(kv, &after);
	kv_last_close(kv, &before);
}

const struct kv_test kv_last_tests[] = {
	{ "A-102 H-008 a stopped QP reaches its last receive WQE when the device dies",
	  kv_last_wqe },
	{ }
};
