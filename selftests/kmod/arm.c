// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: what arming a CQ returns, and whether an arm survives when the
 * queues of the CQ are replaced.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/kprobes.h>
#include <linux/pci.h>

#include "kverbs.h"

#define KV_VECTOR	1	/* the first completion vector */
#define KV_CQES		64
#define KV_EVENT	(10 * HZ)	/* time for an event to arrive */

/*
 * struct kv_arm - a CQ for either the receives or the sends of a QP that sends to itself
 * @polled: CQ for the other half
 */
struct kv_arm {
	struct ib_pd *pd;
	struct ib_cq *polled, *cq;
	bool sends;
	struct kv_end e;
};

static bool kv_arm_open(struct kv *kv, struct kv_arm *a)
{
	struct ib_cq_init_attr attr = { .cqe = KV_CQES };

	return KV_GET(kv, a->pd, ib_alloc_pd(kv->dev, 0)) &&
	       KV_GET(kv, a->polled, ib_create_cq(kv->dev, NULL, NULL, NULL, &attr));
}

static void kv_arm_leave(struct kv *kv, struct kv_arm *a)
{
	if (a->e.qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(a->e.qp), 0);
	a->e.qp = NULL;
}

static void kv_arm_close(struct kv *kv, struct kv_arm *a)
{
	kv_arm_leave(kv, a);
	if (a->polled)
		ib_destroy_cq(a->polled);
	if (a->pd)
		ib_dealloc_pd(a->pd);
}

/* Makes a QP that is connected to itself, and completes one half in @a->cq. */
static bool kv_arm_join(struct kv *kv, struct kv_arm *a)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.send_cq = a->sends ? a->cq : a->polled,
		.recv_cq = a->sends ? a->polled : a->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
	};

	return KV_GET(kv, a->e.qp, ib_create_qp(a->pd, &init)) && kv_connect(kv, &a->e, &a->e);
}

/* Sends a message. @d is the completion in @a->cq; the other half has completed. */
static bool kv_arm_message(struct kv *kv, struct kv_arm *a, struct kv_done *d)
{
	unsigned long end = jiffies + KV_WAIT;
	struct kv_done other;
	struct ib_wc wc = {};
	int n = 0;

	if (!KV_CHECK_EQ(kv, kv_recv(&a->e, a->sends ? &other : d, NULL, 0), 0) ||
	    !KV_CHECK_EQ(kv, kv_send(&a->e, a->sends ? d : &other, NULL, 0), 0))
		return false;
	while (!n && time_before(jiffies, end)) {
		n = ib_poll_cq(a->polled, 1, &wc);
		cond_resched();
	}
	return KV_CHECK_EQ(kv, n, 1) && KV_CHECK_EQ(kv, wc.status, IB_WC_SUCCESS);
}

/* ---- the return value ---- */

static int kv_clock_reads;

static int kv_clock_read(struct kprobe *p, struct pt_regs *regs)
{
	kv_clock_reads++;
	return 0;
}

static const struct {
	const char *name;
	enum ib_cq_notify_flags flags;
} kv_arms[] = {
	{ "next", IB_CQ_NEXT_COMP },
	{ "solicited", IB_CQ_SOLICITED },
};

static void kv_missed_one(struct kv *kv, struct kv_arm *a, enum ib_cq_notify_flags arm)
{
	enum ib_cq_notify_flags report = arm | IB_CQ_REPORT_MISSED_EVENTS;
	struct kv_done d;
	struct ib_wc wc;

	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, report), 0);
	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, arm), 0);
	if (!kv_arm_message(kv, a, &d))
		return;
	/* Repeat the call: it must not consume the CQEs that it reports. */
	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, report), 1);
	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, report), 1);
	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, arm), 0);
	KV_CHECK_EQ(kv, ib_poll_cq(a->cq, 1, &wc), 1);
	KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, report), 0);
}

static void kv_no_event(struct ib_cq *cq, void *context)
{
}

static void kv_missed(struct kv *kv)
{
	struct ib_cq_init_attr attr = { .cqe = KV_CQES };
	struct kv_arm a = {};
	int i;

	if (kv_arm_open(kv, &a) &&
	    KV_GET(kv, a.cq, ib_create_cq(kv->dev, kv_no_event, NULL, NULL, &attr))) {
		if (kv_arm_join(kv, &a))
			for (i = 0; i < 2 * ARRAY_SIZE(kv_arms) && !kv->failed; i++)
				kv_missed_one(kv, &a, kv_arms[i / 2].flags);
		kv_arm_leave(kv, &a);
		ib_destroy_cq(a.cq);
	}
	kv_arm_close(kv, &a);
}

/* Reading a register is a round trip over the bus, or an exit of the virtual CPU. */
static void kv_cheap(struct kv *kv)
{
	struct kprobe probe = { .symbol_name = "qhca_read_clock", .pre_handler = kv_clock_read };
	struct ib_cq_init_attr attr = { .cqe = KV_CQES };
	struct ib_cq *cq;
	int ret, i;

	kv_clock_reads = 0;
	ret = register_kprobe(&probe);
	if (ret == -EOPNOTSUPP) {
		kv->skip = "a kernel without probes";
		return;
	}
	if (!KV_CHECK_EQ(kv, ret, 0))
		return;
	if (KV_GET(kv, cq, ib_create_cq(kv->dev, kv_no_event, NULL, NULL, &attr))) {
		for (i = 0; i < 100; i++)
			KV_CHECK_EQ(kv, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
							 IB_CQ_REPORT_MISSED_EVENTS), 0);
		ib_destroy_cq(cq);
	}
	unregister_kprobe(&probe);
	KV_CHECK_EQ(kv, kv_clock_reads, 0);
}

/* ---- a CQ of the pool: the core arms it once, and again after it has polled ---- */

/*
 * A message arrives while the interrupt is disabled, and then its QP is destroyed. With @rearm the
 * consumer has already taken the CQE and armed once more.
 */
static bool kv_late_event(struct kv *kv, struct kv_arm *a, bool rearm)
{
	struct pci_dev *pdev = to_pci_dev(kv->dev->dev.parent);
	int irq = pci_irq_vector(pdev, KV_VECTOR + a->cq->comp_vector);
	unsigned long end = jiffies + KV_WAIT;
	struct kv_done d;
	struct ib_wc wc;
	int n = 0;

	if (!KV_CHECK(kv, irq > 0))
		return false;
	disable_irq(irq);
	if (kv_arm_message(kv, a, &d) && rearm) {
		/* The ACK of the received message may still be in flight. */
		while (!n && time_before(jiffies, end))
			n = ib_poll_cq(a->cq, 1, &wc);
		KV_CHECK_EQ(kv, n, 1);
		KV_CHECK_EQ(kv, ib_req_notify_cq(a->cq, IB_CQ_NEXT_COMP), 0);
	}
	kv_arm_leave(kv, a);
	enable_irq(irq);
	/* The event arrives now, while the CQ has no queue. */
	msleep(50);
	synchronize_irq(irq);
	return !kv->failed;
}

static void kv_next_qp(struct kv *kv, bool sends, bool rearm)
{
	struct kv_arm a = { .sends = sends };
	struct kv_done d;
	int i;

	if (!kv_arm_open(kv, &a))
		goto out;
	if (!KV_GET(kv, a.cq, ib_cq_pool_get(kv->dev, KV_CQES, 0, IB_POLL_WORKQUEUE)))
		goto out;
	for (i = 0; i < 3 && !kv->failed; i++) {
		if (!kv_arm_join(kv, &a) || !kv_late_event(kv, &a, rearm) ||
		    !kv_arm_join(kv, &a) || !kv_arm_message(kv, &a, &d))
			break;
		if (KV_CHECK(kv, wait_for_completion_timeout(&d.done, KV_EVENT)))
			KV_CHECK_EQ(kv, d.wc.status, IB_WC_SUCCESS);
		kv_arm_leave(kv, &a);
	}
	kv_arm_leave(kv, &a);
	/* The work item may have taken a CQE of the previous QP. */
	flush_work(&a.cq->work);
	ib_cq_pool_put(a.cq, KV_CQES);
out:
	kv_arm_close(kv, &a);
}

static void kv_late(struct kv *kv)
{
	kv_next_qp(kv, false, false);
}

static void kv_late_rearmed(struct kv *kv)
{
	kv_next_qp(kv, false, true);
}

static void kv_late_sent(struct kv *kv)
{
	kv_next_qp(kv, true, false);
}

static void kv_late_sent_rearmed(struct kv *kv)
{
	kv_next_qp(kv, true, true);
}

const struct kv_test kv_arm_tests[] = {
	{ "C-020 whether events were missed", kv_missed },
	{ "C-020 arming reads no register", kv_cheap },
	{ "C-017 events for the next QP of a CQ: its last QP left an event", kv_late },
	{ "C-017 events for the next QP of a CQ: armed again before one", kv_late_rearmed },
	{ "C-017 events for the next QP of a send CQ: its last QP left one", kv_late_sent },
	{ "C-017 events for the next QP of a send CQ: armed again", kv_late_sent_rearmed },
	{ }
};
