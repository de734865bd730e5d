// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: events whose interrupt is lost. The driver looks for them
 * periodically and calls the handlers itself. Destroying a QP or CQ has to wait for such a handler
 * as for one in an interrupt.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/kprobes.h>
#include <linux/pci.h>
#include <linux/sizes.h>

#include "kverbs.h"

#define KV_VECTOR	1	/* the first completion vector */
#define KV_LINGER_MS	300

/*
 * struct kv_lost - a CQ of a QP that sends to itself
 * @probe: probes the function that looks up the CQ for the handler, if @lookup
 * @lookup: delay the lookup instead of the handler
 * @begun: the delay has begun
 * @gone: the object in use has been destroyed
 * @early: @gone was set before the delay ended
 * @unsafe: the handler was called with softirqs on, or as if spinlocks did not sleep
 */
struct kv_lost {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct kv_end e;
	struct kretprobe probe;
	bool lookup;
	atomic_t lingers;
	struct completion begun;
	bool gone;
	bool early;
	bool unsafe;
};

static void kv_lost_linger(struct kv_lost *l)
{
	if (atomic_xchg(&l->lingers, 1))
		return;
	complete(&l->begun);
	mdelay(KV_LINGER_MS);
	WRITE_ONCE(l->early, READ_ONCE(l->gone));
}

/* With softirqs on, a softirq raised here would wait for the next interrupt. */
static void kv_lost_comp(struct ib_cq *cq, void *context)
{
	struct kv_lost *l = context;

	if (!in_interrupt() || (IS_ENABLED(CONFIG_PREEMPT_RT) && irqs_disabled()))
		l->unsafe = true;
	if (!l->lookup)
		kv_lost_linger(l);
}

/* The lookup returns the address of a member of the CQ. */
static int kv_lost_found(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kv_lost *l = container_of(get_kretprobe(ri), struct kv_lost, probe);

	if (regs_return_value(regs) - (unsigned long)l->cq < SZ_1K)
		kv_lost_linger(l);
	return 0;
}

static bool kv_lost_open(struct kv *kv, struct kv_lost *l)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
	};

	init_completion(&l->begun);
	if (!KV_GET(kv, l->pd, ib_alloc_pd(kv->dev, 0)) ||
	    !KV_GET(kv, l->cq, ib_create_cq(kv->dev, kv_lost_comp, NULL, l, &attr)))
		return false;
	init.send_cq = l->cq;
	init.recv_cq = l->cq;
	return KV_GET(kv, l->e.qp, ib_create_qp(l->pd, &init)) && kv_connect(kv, &l->e, &l->e);
}

static void kv_lost_destroy_qp(struct kv *kv, struct kv_lost *l)
{
	if (l->e.qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(l->e.qp), 0);
	l->e.qp = NULL;
}

static void kv_lost_close(struct kv *kv, struct kv_lost *l)
{
	kv_lost_destroy_qp(kv, l);
	if (l->cq)
		ib_destroy_cq(l->cq);
	if (l->pd)
		ib_dealloc_pd(l->pd);
}

/* Sends a message whose event has no interrupt, then destroys an object that its handler uses. */
static void kv_lost_run(struct kv *kv, struct kv_lost *l)
{
	int irq = pci_irq_vector(to_pci_dev(kv->dev->dev.parent), KV_VECTOR);
	struct kv_done d[2];

	if (!KV_CHECK(kv, irq > 0))
		return;
	disable_irq(irq);
	if (KV_CHECK_EQ(kv, ib_req_notify_cq(l->cq, IB_CQ_NEXT_COMP), 0) &&
	    KV_CHECK_EQ(kv, kv_recv(&l->e, &d[0], NULL, 0), 0) &&
	    KV_CHECK_EQ(kv, kv_send(&l->e, &d[1], NULL, 0), 0) &&
	    KV_CHECK(kv, wait_for_completion_timeout(&l->begun, KV_WAIT))) {
		kv_lost_destroy_qp(kv, l);
		if (l->lookup) {
			ib_destroy_cq(l->cq);
			l->cq = NULL;
		}
		WRITE_ONCE(l->gone, true);
		msleep(2 * KV_LINGER_MS);
		KV_CHECK(kv, !READ_ONCE(l->early));
		KV_CHECK(kv, !l->unsafe);
	}
	enable_irq(irq);
}

static void kv_lost_handler(struct kv *kv)
{
	struct kv_lost l = {};

	if (kv_lost_open(kv, &l))
		kv_lost_run(kv, &l);
	kv_lost_close(kv, &l);
}

static void kv_lost_lookup(struct kv *kv)
{
	struct kv_lost l = {
		.lookup = true,
		.probe = { .kp.symbol_name = "xa_load", .handler = kv_lost_found },
	};
	int ret;

	if (kv_lost_open(kv, &l)) {
		ret = register_kretprobe(&l.probe);
		if (ret == -EOPNOTSUPP) {
			kv->skip = "a kernel without probes";
		} else if (KV_CHECK_EQ(kv, ret, 0)) {
			kv_lost_run(kv, &l);
			unregister_kretprobe(&l.probe);
		}
	}
	kv_lost_close(kv, &l);
}

const struct kv_test kv_lost_tests[] = {
	{ "C-024 destroying a QP waits for a handler without interrupt", kv_lost_handler },
	{ "destroying a CQ waits for a lookup without interrupt", kv_lost_lookup },
	{ }
};
