// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: shared receive queues, and QPs that leave them. */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "kverbs.h"

#define KV_SRQ_WRS	256

/* struct kv_srq - an SRQ, and a QP that sends to itself; receives have their own CQ */
struct kv_srq {
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct kv_end e;
	unsigned int polled;
};

static void kv_srq_leave(struct kv *kv, struct kv_srq *s)
{
	if (s->e.qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(s->e.qp), 0);
	s->e.qp = NULL;
}

/* Undoes kv_srq_open(), even if that stopped half-way. */
static void kv_srq_close(struct kv *kv, struct kv_srq *s)
{
	kv_srq_leave(kv, s);
	if (s->srq)
		ib_destroy_srq(s->srq);
	if (s->send_cq)
		ib_destroy_cq(s->send_cq);
	if (s->recv_cq)
		ib_destroy_cq(s->recv_cq);
	if (s->pd)
		ib_dealloc_pd(s->pd);
}

static bool kv_srq_open(struct kv *kv, struct kv_srq *s)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = KV_SRQ_WRS, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_cq_init_attr cq_attr = { .cqe = KV_SRQ_WRS };

	memset(s, 0, sizeof(*s));
	if (!kv->dev->attrs.max_srq) {
		kv->skip = "no SRQs";
		return false;
	}
	if (KV_GET(kv, s->pd, ib_alloc_pd(kv->dev, 0)) &&
	    KV_GET(kv, s->send_cq, ib_create_cq(kv->dev, NULL, NULL, NULL, &cq_attr)) &&
	    KV_GET(kv, s->recv_cq, ib_create_cq(kv->dev, NULL, NULL, NULL, &cq_attr)) &&
	    KV_GET(kv, s->srq, ib_create_srq(s->pd, &attr)))
		return true;
	kv_srq_close(kv, s);
	return false;
}

static bool kv_srq_join(struct kv *kv, struct kv_srq *s)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = KV_SRQ_WRS },
	};

	return KV_GET(kv, s->e.qp, ib_create_qp(s->pd, &init)) && kv_connect(kv, &s->e, &s->e);
}

/* Posts until the SRQ is full. Returns how many WRs it took. */
static unsigned int kv_srq_fill(struct kv_srq *s)
{
	struct ib_recv_wr wr = {};
	unsigned int n = 0;

	while (n <= KV_SRQ_WRS && !ib_post_srq_recv(s->srq, &wr, NULL))
		n++;
	return n;
}

/* Sends one message for every WR of the SRQ, and waits until the last has arrived. */
static bool kv_srq_use(struct kv *kv, struct kv_srq *s)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	unsigned long end = jiffies + KV_WAIT;
	struct ib_wc wc;
	unsigned int i;

	for (i = 0; i < KV_SRQ_WRS; i++) {
		if (i == KV_SRQ_WRS - 1)
			wr.send_flags = IB_SEND_SIGNALED;
		if (!KV_CHECK_EQ(kv, ib_post_send(s->e.qp, &wr, NULL), 0))
			return false;
	}
	while (!ib_poll_cq(s->send_cq, 1, &wc))
		if (!KV_CHECK(kv, time_before(jiffies, end)))
			return false;
	return KV_CHECK_EQ(kv, wc.status, IB_WC_SUCCESS);
}

static int kv_srq_poll(void *data)
{
	struct kv_srq *s = data;
	struct ib_wc wc;

	while (!kthread_should_stop()) {
		s->polled += ib_poll_cq(s->recv_cq, 1, &wc);
		/* Leave CQEs for the moment when the QP is destroyed. */
		udelay(1);
	}
	return 0;
}

/* When the QP is destroyed, WRs of CQEs that were not polled become free in the SRQ. */
static void kv_leave(struct kv *kv)
{
	struct kv_srq s;
	struct ib_wc wc;

	if (!kv_srq_open(kv, &s))
		return;
	KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
	if (kv_srq_join(kv, &s) && kv_srq_use(kv, &s)) {
		KV_CHECK_EQ(kv, kv_srq_fill(&s), 0);
		kv_srq_leave(kv, &s);
		KV_CHECK_EQ(kv, ib_poll_cq(s.recv_cq, 1, &wc), 0);
		KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
	}
	kv_srq_close(kv, &s);
}

/* The same while another thread polls the CQ. */
static void kv_leave_polled(struct kv *kv)
{
	struct task_struct *poller;
	struct kv_srq s;
	int i;

	if (!kv_srq_open(kv, &s))
		return;
	for (i = 0; i < 100 && !kv->failed; i++) {
		KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
		if (!kv_srq_join(kv, &s) || !kv_srq_use(kv, &s))
			break;
		poller = kthread_run(kv_srq_poll, &s, "kv_srq_poll");
		if (!KV_CHECK(kv, !IS_ERR(poller)))
			break;
		kv_srq_leave(kv, &s);
		kthread_stop(poller);
	}
	KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
	seq_printf(kv->m, "# %u of %u polled\n", s.polled, i * KV_SRQ_WRS);
	kv_srq_close(kv, &s);
}

const struct kv_test kv_srq_tests[] = {
	{ "G-008 an SRQ when one of its QPs is destroyed", kv_leave },
	{ "G-008 an SRQ when one of its QPs is destroyed while its CQ is polled", kv_leave_polled },
	{ }
};
