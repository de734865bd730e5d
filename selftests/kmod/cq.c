// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel: data with the local DMA key, completion queues in every polling
 * context, posting from every context, draining, address handles.
 */
#include <linux/delay.h>
#include <linux/irq_work.h>

#include <rdma/ib_cache.h>

#include "kverbs.h"

static struct ib_sge kv_sge(struct kv_rig *r, struct kv_buf *b, unsigned int page, u32 len)
{
	return (struct ib_sge){
		.addr = kv_dma(b, page),
		.length = len,
		.lkey = r->pd->local_dma_lkey,
	};
}

/* Sends messages of one page and a half, with SGEs in two pages, and checks each. */
static void kv_messages(struct kv *kv, enum ib_poll_context ctx)
{
	struct kv_done sent, received;
	struct ib_sge out[2], in[2];
	struct kv_buf src, dst;
	struct kv_rig r;
	int i;

	if (!kv_rig_open(kv, &r, ctx))
		return;
	if (!kv_buf_open(kv, &src, 2))
		goto out_rig;
	if (!kv_buf_open(kv, &dst, 2))
		goto out_src;
	for (i = 0; i < 2; i++) {
		out[i] = kv_sge(&r, &src, i, PAGE_SIZE);
		in[i] = kv_sge(&r, &dst, i, PAGE_SIZE);
	}
	for (i = 0; i < 1000 && !kv->failed; i++) {
		kv_fill(&src, i);
		KV_CHECK_EQ(kv, kv_recv(&r.b, &received, in, 2), 0);
		KV_CHECK_EQ(kv, kv_send(&r.a, &sent, out, 2), 0);
		KV_CHECK_EQ(kv, kv_wait(&r, &r.b, &received), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, kv_wait(&r, &r.a, &sent), IB_WC_SUCCESS);
		KV_CHECK_EQ(kv, received.wc.byte_len, 2 * PAGE_SIZE);
		KV_CHECK(kv, kv_is_filled(&dst, i));
	}
	kv_rig_stop(&r);
	kv_buf_close(kv, &dst);
out_src:
	kv_buf_close(kv, &src);
out_rig:
	kv_rig_close(kv, &r);
}

static void kv_direct(struct kv *kv)
{
	kv_messages(kv, IB_POLL_DIRECT);
}

static void kv_softirq(struct kv *kv)
{
	kv_messages(kv, IB_POLL_SOFTIRQ);
}

static void kv_workqueue(struct kv *kv)
{
	kv_messages(kv, IB_POLL_WORKQUEUE);
}

static void kv_unbound(struct kv *kv)
{
	kv_messages(kv, IB_POLL_UNBOUND_WORKQUEUE);
}

/* Everything outstanding is flushed before ib_drain_qp() returns. */
static void kv_drain(struct kv *kv)
{
	static struct kv_done d[60];
	struct kv_rig r;
	int i, round;

	for (round = 0; round < 20 && !kv->failed; round++) {
		if (!kv_rig_open(kv, &r, round % 2 ? IB_POLL_SOFTIRQ : IB_POLL_WORKQUEUE))
			return;
		for (i = 0; i < ARRAY_SIZE(d); i++)
			KV_CHECK_EQ(kv, i % 2 ? kv_send(&r.a, &d[i], NULL, 0) :
						kv_recv(&r.a, &d[i], NULL, 0), 0);
		ib_drain_qp(r.a.qp);
		for (i = 0; i < ARRAY_SIZE(d); i++) {
			KV_CHECK(kv, completion_done(&d[i].done));
			KV_CHECK_EQ(kv, d[i].wc.status, IB_WC_WR_FLUSH_ERR);
		}
		ib_drain_qp(r.a.qp);		/* draining twice does no harm */
		kv_rig_close(kv, &r);
	}
}

static void kv_pool(struct kv *kv)
{
	struct ib_cq *cq[8];
	int i;

	for (i = 0; i < ARRAY_SIZE(cq); i++) {
		cq[i] = ib_cq_pool_get(kv->dev, 128, -1, IB_POLL_SOFTIRQ);
		KV_CHECK(kv, !IS_ERR(cq[i]));
	}
	for (i = 0; i < ARRAY_SIZE(cq); i++)
		if (!IS_ERR(cq[i]))
			ib_cq_pool_put(cq[i], 128);
}

/* ---- a plain CQ, used in interrupts ---- */

struct kv_irq {
	struct irq_work work;
	struct ib_qp *qp;
	struct ib_cq *cq;
	int posted, polled, bad, events;
};

/*
 * Posts a receive and a send to itself, arms and polls, all in hard IRQ, or on PREEMPT_RT in a
 * thread.
 */
static void kv_in_irq(struct irq_work *work)
{
	struct kv_irq *irq = container_of(work, struct kv_irq, work);
	struct ib_send_wr swr = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct ib_recv_wr rwr = {};
	struct ib_wc wc[4];
	int i, n;

	if (irq->posted < 500) {
		if (ib_post_recv(irq->qp, &rwr, NULL) || ib_post_send(irq->qp, &swr, NULL))
			irq->bad++;
		irq->posted++;
	}
	ib_req_notify_cq(irq->cq, IB_CQ_NEXT_COMP);
	n = ib_poll_cq(irq->cq, ARRAY_SIZE(wc), wc);
	for (i = 0; i < n; i++)
		irq->bad += wc[i].status != IB_WC_SUCCESS;
	irq->polled += n;
	irq->bad += !IS_ENABLED(CONFIG_PREEMPT_RT) && !in_hardirq();
}

static void kv_comp(struct ib_cq *cq, void *context)
{
	struct kv_irq *irq = context;

	irq->events++;
}

static void kv_hard_irq(struct kv *kv)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 256 };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64 },
	};
	struct kv_irq irq = { .work = IRQ_WORK_INIT(kv_in_irq) };
	unsigned long end = jiffies + KV_WAIT;
	struct kv_end e = {};
	struct ib_pd *pd;

	pd = ib_alloc_pd(kv->dev, 0);
	if (!KV_CHECK(kv, !IS_ERR(pd)))
		return;
	irq.cq = ib_create_cq(kv->dev, kv_comp, NULL, &irq, &cq_attr);
	if (!KV_CHECK(kv, !IS_ERR(irq.cq)))
		goto out_pd;
	init.send_cq = irq.cq;
	init.recv_cq = irq.cq;
	irq.qp = ib_create_qp(pd, &init);
	if (!KV_CHECK(kv, !IS_ERR(irq.qp)))
		goto out_cq;
	e.qp = irq.qp;
	if (!kv_connect(kv, &e, &e))
		goto out_qp;

	while (irq.polled < 1000 && !irq.bad && time_before(jiffies, end)) {
		irq_work_queue(&irq.work);
		irq_work_sync(&irq.work);
		usleep_range(50, 100);
	}
	KV_CHECK_EQ(kv, irq.bad, 0);
	KV_CHECK_EQ(kv, irq.polled, 1000);
	KV_CHECK(kv, irq.events > 0);
out_qp:
	KV_CHECK_EQ(kv, ib_destroy_qp(irq.qp), 0);
out_cq:
	ib_destroy_cq(irq.cq);
out_pd:
	ib_dealloc_pd(pd);
}

/* ---- address handles ---- */

static DEFINE_SPINLOCK(kv_ah_lock);	/* held where the caller must not sleep */

static int kv_ah_at_once(struct ib_pd *pd, struct rdma_ah_attr *attr)
{
	struct ib_ah *ah = rdma_create_ah(pd, attr, 0);

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	rdma_destroy_ah(ah, 0);
	return 0;
}

/* Queries the attributes of a handle. */
static void kv_ah_query(struct kv *kv, struct ib_pd *pd, struct rdma_ah_attr *attr)
{
	struct rdma_ah_attr got = {};
	struct ib_ah *ah;

	rdma_ah_set_static_rate(attr, IB_RATE_10_GBPS);
	ah = rdma_create_ah(pd, attr, 0);
	if (!KV_CHECK(kv, !IS_ERR(ah)))
		return;
	KV_CHECK_EQ(kv, rdma_query_ah(ah, &got), 0);
	KV_CHECK_EQ(kv, rdma_ah_get_static_rate(&got), IB_RATE_10_GBPS);
	KV_CHECK_EQ(kv, got.grh.sgid_index, kv->gid_index);
	KV_CHECK(kv, !memcmp(&got.grh.dgid, &attr->grh.dgid, sizeof(got.grh.dgid)));
	rdma_destroy_ah(ah, 0);
	rdma_ah_set_static_rate(attr, 1);
	KV_CHECK_EQ(kv, kv_ah_at_once(pd, attr), -EINVAL);
	rdma_ah_set_static_rate(attr, IB_RATE_PORT_CURRENT);
}

static void kv_ah(struct kv *kv)
{
	struct rdma_ah_attr attr = { .type = rdma_ah_find_type(kv->dev, 1) };
	struct ib_pd *pd = ib_alloc_pd(kv->dev, 0);
	int good, no_grh, no_gid;
	union ib_gid gid;

	if (!KV_CHECK(kv, !IS_ERR(pd)))
		return;
	KV_CHECK_EQ(kv, rdma_query_gid(kv->dev, 1, kv->gid_index, &gid), 0);
	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, &gid, 0, kv->gid_index, 64, 0);
	kv_ah_query(kv, pd, &attr);
	spin_lock_irq(&kv_ah_lock);
	good = kv_ah_at_once(pd, &attr);
	attr.grh.sgid_index = 255;
	no_gid = kv_ah_at_once(pd, &attr);
	rdma_ah_set_ah_flags(&attr, 0);
	no_grh = kv_ah_at_once(pd, &attr);
	spin_unlock_irq(&kv_ah_lock);
	KV_CHECK_EQ(kv, good, 0);
	KV_CHECK(kv, no_gid < 0);
	KV_CHECK_EQ(kv, no_grh, -EINVAL);
	ib_dealloc_pd(pd);
}

#define KV_RING		16

static struct ib_qp *kv_on_ring(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = KV_RING, .max_recv_wr = KV_RING },
	};

	return ib_create_qp(pd, &init);
}

/* Sends a message from the QP to itself; only the receive completes. */
static void kv_ring_add(struct kv *kv, struct kv_end *e, u64 id)
{
	struct ib_recv_wr recv = { .wr_id = id };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };

	KV_CHECK_EQ(kv, ib_post_recv(e->qp, &recv, NULL), 0);
	KV_CHECK_EQ(kv, ib_post_send(e->qp, &send, NULL), 0);
}

static void kv_ring_next(struct kv *kv, struct ib_cq *cq, u64 id)
{
	unsigned long end = jiffies + KV_WAIT;
	struct ib_wc wc;

	while (!ib_poll_cq(cq, 1, &wc))
		if (!KV_CHECK(kv, time_before(jiffies, end)))
			return;
	KV_CHECK_EQ(kv, wc.status, IB_WC_SUCCESS);
	KV_CHECK_EQ(kv, wc.wr_id, id);
}

/* Completions of two QPs alternate in a ring that wraps among them; one QP is destroyed. */
static void kv_ring_run(struct kv *kv, struct ib_cq *cq, struct kv_end *e)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 11; i++) {
		kv_ring_add(kv, &e[0], i);
		kv_ring_next(kv, cq, i);
	}
	for (i = 0; i < 8; i++)
		kv_ring_add(kv, &e[i % 2], 100 + i);
	msleep(100);
	KV_CHECK_EQ(kv, ib_destroy_qp(e[1].qp), 0);
	e[1].qp = NULL;
	for (i = 0; i < 8 && !kv->failed; i += 2)
		kv_ring_next(kv, cq, 100 + i);
	KV_CHECK_EQ(kv, ib_poll_cq(cq, 1, &wc), 0);
}

static void kv_ring_clean(struct kv *kv)
{
	struct ib_cq_init_attr attr = { .cqe = KV_RING };
	struct kv_end e[2] = {};
	struct ib_cq *cq = NULL;
	struct ib_pd *pd;

	if (KV_GET(kv, pd, ib_alloc_pd(kv->dev, 0)) &&
	    KV_GET(kv, cq, ib_create_cq(kv->dev, NULL, NULL, NULL, &attr)) &&
	    KV_GET(kv, e[0].qp, kv_on_ring(pd, cq)) && KV_GET(kv, e[1].qp, kv_on_ring(pd, cq)) &&
	    kv_connect(kv, &e[0], &e[0]) && kv_connect(kv, &e[1], &e[1]))
		kv_ring_run(kv, cq, e);
	if (e[0].qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(e[0].qp), 0);
	if (e[1].qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(e[1].qp), 0);
	if (cq)
		ib_destroy_cq(cq);
	if (pd)
		ib_dealloc_pd(pd);
}

const struct kv_test kv_cq_tests[] = {
	{ "F-016 local_dma_lkey, CQ polled by hand", kv_direct },
	{ "C-020 CQ polled in softirq", kv_softirq },
	{ "C-020 CQ polled in a work queue", kv_workqueue },
	{ "C-020 CQ polled in an unbound work queue", kv_unbound },
	{ "A-099 ib_drain_qp", kv_drain },
	{ "A-024 destroying a QP removes its completions from a ring that wraps", kv_ring_clean },
	{ "CQ pool", kv_pool },
	{ "B-034 post, poll and notify in hard IRQ", kv_hard_irq },
	{ "G-014 A-074 address handles, also in atomic context", kv_ah },
	{ }
};
