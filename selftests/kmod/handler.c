// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: when a completion handler may be called, and when not. (The core's
 * rules for drivers: Documentation/infiniband/core_locking.rst.)
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/local_lock.h>
#include <linux/percpu.h>

#include "kverbs.h"

#define KV_DEPTH	32
#define KV_POSTERS	2

/*
 * The thread that is in a verb on this CPU: a handler that runs in this thread was called by the
 * verb. Interrupts are off, or, on PREEMPT_RT, handlers are threads of their own.
 */
struct kv_verb {
	local_lock_t lock;
	struct task_struct *task;
};

static DEFINE_PER_CPU(struct kv_verb, kv_verb) = { .lock = INIT_LOCAL_LOCK(lock) };

/* struct kv_watch - a CQ whose handler checks how it is called */
struct kv_watch {
	struct ib_cq *cq;
	struct ib_pd *pd;
	unsigned int delay;	/* duration of the handler, us */
	unsigned int pause;	/* pause between messages of a poster, us */
	int messages;		/* messages of each poster */
	atomic_t running;	/* number of handlers running now */
	atomic_t calls, together, nested;
	atomic_t completed, bad;
};

/* struct kv_poster - a thread that keeps a QP, connected to itself, busy */
struct kv_poster {
	struct kv_watch *w;
	struct kv_end e;
	struct task_struct *task;
	atomic_t done;		/* completions of this QP */
	int refused;
};

static void kv_drain_cq(struct kv_watch *w)
{
	struct ib_wc wc[8];
	int i, n;

	while ((n = ib_poll_cq(w->cq, ARRAY_SIZE(wc), wc)) > 0)
		for (i = 0; i < n; i++) {
			struct kv_poster *p = wc[i].qp->qp_context;

			if (wc[i].status)
				atomic_inc(&w->bad);
			atomic_inc(&p->done);
			atomic_inc(&w->completed);
		}
}

/* Arms first, so that the next event arrives while this one is handled. */
static void kv_watch_comp(struct ib_cq *cq, void *context)
{
	struct kv_watch *w = context;

	if (this_cpu_read(kv_verb.task) == current)
		atomic_inc(&w->nested);
	if (atomic_inc_return(&w->running) > 1)
		atomic_inc(&w->together);
	atomic_inc(&w->calls);
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	udelay(w->delay);
	kv_drain_cq(w);
	atomic_dec(&w->running);
}

/* Sends a message, and from time to time polls or arms the CQ like a consumer. */
static void kv_post_one(struct kv_poster *p, int i)
{
	struct ib_send_wr swr = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct ib_recv_wr rwr = {};
	unsigned long flags;

	local_lock_irqsave(&kv_verb.lock, flags);
	this_cpu_write(kv_verb.task, current);
	if (ib_post_recv(p->e.qp, &rwr, NULL) || ib_post_send(p->e.qp, &swr, NULL))
		p->refused++;
	if (i % 3 == 0)
		ib_req_notify_cq(p->w->cq, IB_CQ_NEXT_COMP);
	if (i % 5 == 0)
		kv_drain_cq(p->w);
	this_cpu_write(kv_verb.task, NULL);
	local_unlock_irqrestore(&kv_verb.lock, flags);
}

static int kv_poster(void *arg)
{
	unsigned long end = jiffies + KV_WAIT;
	struct kv_poster *p = arg;
	int i = 0;

	while (!kthread_should_stop()) {
		if (i < p->w->messages && time_before(jiffies, end) &&
		    !atomic_read(&p->w->bad) && 2 * i - atomic_read(&p->done) < KV_DEPTH) {
			kv_post_one(p, i++);
			cond_resched();
			if (!p->w->pause)
				continue;
		}
		usleep_range(p->w->pause + 20, p->w->pause + 50);
	}
	return 0;
}

static bool kv_poster_open(struct kv *kv, struct kv_watch *w, struct kv_poster *p)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.qp_context = p,
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.cap = { .max_send_wr = KV_DEPTH, .max_recv_wr = KV_DEPTH },
	};

	p->w = w;
	p->e.qp = ib_create_qp(w->pd, &init);
	if (!KV_CHECK(kv, !IS_ERR(p->e.qp))) {
		p->e.qp = NULL;
		return false;
	}
	return kv_connect(kv, &p->e, &p->e);
}

static bool kv_watch_open(struct kv *kv, struct kv_watch *w, struct kv_poster *p,
			  unsigned int vector)
{
	struct ib_cq_init_attr attr = {
		.cqe = 2 * KV_POSTERS * KV_DEPTH,
		.comp_vector = vector,
	};
	struct ib_pd *pd = ib_alloc_pd(kv->dev, 0);
	struct ib_cq *cq;
	int i;

	if (!KV_CHECK(kv, !IS_ERR(pd)))
		return false;
	w->pd = pd;
	cq = ib_create_cq(kv->dev, kv_watch_comp, NULL, w, &attr);
	if (!KV_CHECK(kv, !IS_ERR(cq)))
		return false;
	w->cq = cq;
	for (i = 0; i < KV_POSTERS; i++)
		if (!kv_poster_open(kv, w, &p[i]))
			return false;
	return true;
}

static void kv_watch_close(struct kv *kv, struct kv_watch *w, struct kv_poster *p)
{
	int i;

	for (i = 0; i < KV_POSTERS; i++)
		if (p[i].e.qp)
			KV_CHECK_EQ(kv, ib_destroy_qp(p[i].e.qp), 0);
	if (w->cq)
		ib_destroy_cq(w->cq);
	if (w->pd)
		ib_dealloc_pd(w->pd);
}

/* Runs traffic until all messages have completed or one has failed. */
static void kv_watch_run(struct kv *kv, struct kv_watch *w, struct kv_poster *p)
{
	unsigned long end = jiffies + KV_WAIT;
	int i;

	KV_CHECK(kv, ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP) >= 0);
	for (i = 0; i < KV_POSTERS; i++) {
		p[i].task = kthread_create_on_cpu(kv_poster, &p[i], i % num_online_cpus(),
						  "kv_poster/%u");
		if (KV_CHECK(kv, !IS_ERR(p[i].task)))
			wake_up_process(p[i].task);
		else
			p[i].task = NULL;
	}
	while (atomic_read(&w->completed) < KV_POSTERS * 2 * w->messages &&
	       !atomic_read(&w->bad) && time_before(jiffies, end))
		msleep(20);
	for (i = 0; i < KV_POSTERS; i++)
		if (p[i].task)
			kthread_stop(p[i].task);
	KV_CHECK(kv, atomic_read(&w->calls) > 100);
	KV_CHECK_EQ(kv, atomic_read(&w->together), 0);
	KV_CHECK_EQ(kv, atomic_read(&w->nested), 0);
}

static void kv_handlers(struct kv *kv)
{
	struct kv_watch w = { .delay = 20, .messages = 3000 };
	struct kv_poster p[KV_POSTERS] = {};
	int i;

	if (kv_watch_open(kv, &w, p, 0)) {
		kv_watch_run(kv, &w, p);
		KV_CHECK_EQ(kv, atomic_read(&w.completed), KV_POSTERS * 2 * w.messages);
		KV_CHECK_EQ(kv, atomic_read(&w.bad), 0);
		for (i = 0; i < KV_POSTERS; i++)
			KV_CHECK_EQ(kv, p[i].refused, 0);
	}
	kv_watch_close(kv, &w, p);
}

/*
 * The thread that runs this test makes the device die. The driver then wakes consumers that get no
 * interrupt any more, but never while an interrupt does the same. The handler is slow, arms first,
 * and runs half of the time. Its vector should be on another CPU than the one that detects the
 * death.
 */
static void kv_death(struct kv *kv)
{
	struct kv_watch w = { .delay = 1000, .pause = 6000, .messages = 1 << 20 };
	struct kv_poster p[KV_POSTERS] = {};

	if (kv_watch_open(kv, &w, p, 0)) {
		kv_watch_run(kv, &w, p);
		KV_CHECK(kv, atomic_read(&w.bad));	/* flushed completions */
	}
	kv_watch_close(kv, &w, p);
}

const struct kv_test kv_handler_tests[] = {
	{ "C-024 one handler of a CQ at a time, none called by a verb", kv_handlers },
	{ }
};

const struct kv_test kv_death_tests[] = {
	{ "C-024 one handler of a CQ at a time, while the device dies", kv_death },
	{ }
};
