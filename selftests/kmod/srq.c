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

/* ---- resizing ---- */

/* WRs that the thread has outstanding at most; some of the sizes below are smaller. */
#define KV_BUSY_WRS	200

static int kv_srq_resize(struct kv_srq *s, u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR);
}

static u32 kv_srq_size(struct kv *kv, struct kv_srq *s)
{
	struct ib_srq_attr attr = {};

	KV_CHECK_EQ(kv, ib_query_srq(s->srq, &attr), 0);
	return attr.max_wr;
}

static bool kv_srq_open_resizable(struct kv *kv, struct kv_srq *s)
{
	if (!(kv->dev->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE)) {
		kv->skip = "SRQs cannot be resized";
		return false;
	}
	return kv_srq_open(kv, s);
}

/* A full SRQ grows, one that is in use does not become smaller than what is in it. */
static void kv_resize(struct kv *kv)
{
	u32 max = kv->dev->attrs.max_srq_wr;
	struct kv_srq s;

	if (!kv_srq_open_resizable(kv, &s))
		return;
	KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
	KV_CHECK_EQ(kv, kv_srq_resize(&s, KV_SRQ_WRS / 2), -EINVAL);
	KV_CHECK_EQ(kv, kv_srq_resize(&s, 0), -EINVAL);
	KV_CHECK_EQ(kv, kv_srq_resize(&s, max + 1), -EINVAL);
	KV_CHECK_EQ(kv, kv_srq_size(kv, &s), KV_SRQ_WRS);
	KV_CHECK_EQ(kv, kv_srq_resize(&s, KV_SRQ_WRS + 1), 0);
	KV_CHECK_EQ(kv, kv_srq_size(kv, &s), 2 * KV_SRQ_WRS);
	KV_CHECK_EQ(kv, kv_srq_fill(&s), KV_SRQ_WRS);
	KV_CHECK_EQ(kv, kv_srq_resize(&s, max), 0);
	KV_CHECK_EQ(kv, kv_srq_size(kv, &s), max);
	kv_srq_close(kv, &s);
}

/* struct kv_busy - a thread that posts to an SRQ, and sends to it, all the time */
struct kv_busy {
	struct kv_srq s;
	u64 posted, sent, received;
	unsigned int full;
	int err;
};

/* WRs complete in the order in which they were posted; that shows what is lost or doubled. */
static void kv_busy_poll(struct kv_busy *b)
{
	struct ib_wc wc;

	while (ib_poll_cq(b->s.send_cq, 1, &wc) > 0)
		if (wc.status || wc.wr_id != b->sent++)
			b->err = -EBADMSG;
	while (ib_poll_cq(b->s.recv_cq, 1, &wc) > 0)
		if (wc.status || wc.wr_id != b->received++)
			b->err = -EBADMSG;
}

static void kv_busy_step(struct kv_busy *b)
{
	struct ib_send_wr send = { .wr_id = b->posted, .opcode = IB_WR_SEND,
				   .send_flags = IB_SEND_SIGNALED };
	struct ib_recv_wr recv = { .wr_id = b->posted };
	int ret;

	kv_busy_poll(b);
	/* A receive may complete long before its send does. */
	if (b->posted - min(b->sent, b->received) >= KV_BUSY_WRS)
		return;
	if (ib_post_srq_recv(b->s.srq, &recv, NULL)) {
		b->full++;
		return;
	}
	b->posted++;
	ret = ib_post_send(b->s.e.qp, &send, NULL);
	if (ret)
		b->err = ret;
}

static int kv_busy_run(void *data)
{
	struct kv_busy *b = data;

	while (!kthread_should_stop()) {
		if (!b->err)
			kv_busy_step(b);
		cond_resched();
	}
	return 0;
}

static void kv_busy_resize(struct kv *kv, struct kv_busy *b)
{
	static const u32 sizes[] = { 256, 512, 64, 1024, 128, 2048, 16 };
	unsigned int i, done = 0;
	unsigned long end;
	u64 before;
	int ret;

	for (i = 0; i < 50 * ARRAY_SIZE(sizes) && !b->err; i++) {
		ret = kv_srq_resize(&b->s, sizes[i % ARRAY_SIZE(sizes)]);
		/* It may hold more than that. */
		KV_CHECK(kv, !ret || (ret == -EINVAL && sizes[i % ARRAY_SIZE(sizes)] < 256));
		done += !ret;
		if (i % 8 == 0)
			usleep_range(100, 2000);
	}
	KV_CHECK(kv, done >= 100);
	KV_CHECK_EQ(kv, kv_srq_resize(&b->s, 256), 0);
	before = READ_ONCE(b->received);
	end = jiffies + KV_WAIT;
	while (READ_ONCE(b->received) == before && time_before(jiffies, end))
		msleep(20);
	KV_CHECK(kv, READ_ONCE(b->received) > before);
	KV_CHECK_EQ(kv, b->err, 0);
	seq_printf(kv->m, "# %u resizes, %llu messages, %u times full\n", done, b->received,
		   b->full);
}

static void kv_resize_busy(struct kv *kv)
{
	struct task_struct *thread;
	struct kv_busy b = {};

	if (!kv_srq_open_resizable(kv, &b.s))
		return;
	if (kv_srq_join(kv, &b.s)) {
		thread = kthread_run(kv_busy_run, &b, "kv_srq_busy");
		if (KV_CHECK(kv, !IS_ERR(thread))) {
			kv_busy_resize(kv, &b);
			kthread_stop(thread);
		}
	}
	kv_srq_close(kv, &b.s);
}

const struct kv_test kv_srq_tests[] = {
	{ "G-007 an SRQ of the kernel is resized", kv_resize },
	{ "G-007 an SRQ of the kernel is resized while it is in use", kv_resize_busy },
	{ "G-008 an SRQ when one of its QPs is destroyed", kv_leave },
	{ "G-008 an SRQ when one of its QPs is destroyed while its CQ is polled", kv_leave_polled },
	{ }
};
