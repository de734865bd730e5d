// SPDX-License-Identifier: GPL-2.0
/* Tests of verbs in the kernel: connecting, memory, work requests. */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rdma/ib_cache.h>

#include "kverbs.h"

#define KV_DEPTH	64

/* ---- queue pairs ---- */

static int kv_to_init(struct kv_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int kv_to_rtr(struct kv *kv, struct kv_end *e, u32 peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = 0x4242,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
	};
	union ib_gid gid;
	int ret;

	ret = rdma_query_gid(kv->dev, 1, kv->gid_index, &gid);
	if (ret)
		return ret;
	attr.ah_attr.type = rdma_ah_find_type(kv->dev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, &gid, 0, kv->gid_index, 64, 0);
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			    IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			    IB_QP_MIN_RNR_TIMER);
}

static int kv_to_rts(struct kv_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0x4242,
		.max_rd_atomic = 4,
	};

	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static bool kv_connect_one(struct kv *kv, struct kv_end *e, struct kv_end *peer)
{
	e->init = KV_CHECK_EQ(kv, kv_to_init(e), 0);
	return e->init &&
	       KV_CHECK_EQ(kv, kv_to_rtr(kv, e, peer->qp->qp_num), 0) &&
	       KV_CHECK_EQ(kv, kv_to_rts(e), 0);
}

bool kv_connect(struct kv *kv, struct kv_end *a, struct kv_end *b)
{
	return kv_connect_one(kv, a, b) && (a == b || kv_connect_one(kv, b, a));
}

static bool kv_end_open(struct kv *kv, struct kv_rig *r, struct kv_end *e)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = KV_DEPTH,
			.max_recv_wr = KV_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
		},
	};

	e->cq = ib_alloc_cq(kv->dev, kv, 2 * KV_DEPTH + 2, 0, r->ctx);
	if (!KV_CHECK(kv, !IS_ERR(e->cq))) {
		e->cq = NULL;
		return false;
	}
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = ib_create_qp(r->pd, &init);
	if (!KV_CHECK(kv, !IS_ERR(e->qp))) {
		e->qp = NULL;
		return false;
	}
	return true;
}

static void kv_end_stop(struct kv_end *e)
{
	if (e->qp && e->init)
		ib_drain_qp(e->qp);
}

static void kv_end_close(struct kv *kv, struct kv_end *e)
{
	kv_end_stop(e);
	if (e->qp)
		KV_CHECK_EQ(kv, ib_destroy_qp(e->qp), 0);
	if (e->cq)
		ib_free_cq(e->cq);
}

bool kv_rig_open(struct kv *kv, struct kv_rig *r, enum ib_poll_context ctx)
{
	memset(r, 0, sizeof(*r));
	r->ctx = ctx;
	r->pd = ib_alloc_pd(kv->dev, 0);
	if (!KV_CHECK(kv, !IS_ERR(r->pd))) {
		r->pd = NULL;
		return false;
	}
	if (kv_end_open(kv, r, &r->a) && kv_end_open(kv, r, &r->b) &&
	    kv_connect(kv, &r->a, &r->b))
		return true;
	kv_rig_close(kv, r);
	return false;
}

void kv_rig_stop(struct kv_rig *r)
{
	kv_end_stop(&r->a);
	kv_end_stop(&r->b);
}

void kv_rig_close(struct kv *kv, struct kv_rig *r)
{
	kv_end_close(kv, &r->a);
	kv_end_close(kv, &r->b);
	if (r->pd)
		ib_dealloc_pd(r->pd);
	memset(r, 0, sizeof(*r));
}

/* ---- memory ---- */

bool kv_buf_open(struct kv *kv, struct kv_buf *b, unsigned int num_pages)
{
	struct scatterlist *sg;
	unsigned int i;

	memset(b, 0, sizeof(*b));
	b->va = kcalloc(num_pages, sizeof(*b->va), GFP_KERNEL);
	if (!KV_CHECK(kv, b->va) ||
	    !KV_CHECK_EQ(kv, sg_alloc_table(&b->sgt, num_pages, GFP_KERNEL), 0))
		goto err;
	for_each_sgtable_sg(&b->sgt, sg, i) {
		b->va[i] = dma_alloc_coherent(kv->dev->dma_device, PAGE_SIZE,
					      &sg_dma_address(sg), GFP_KERNEL);
		if (!KV_CHECK(kv, b->va[i]))
			goto err;
		sg_dma_len(sg) = PAGE_SIZE;
		b->num_pages++;
	}
	return true;
err:
	kv_buf_close(kv, b);
	return false;
}

void kv_buf_close(struct kv *kv, struct kv_buf *b)
{
	unsigned int i;

	for (i = 0; i < b->num_pages; i++)
		dma_free_coherent(kv->dev->dma_device, PAGE_SIZE, b->va[i], kv_dma(b, i));
	sg_free_table(&b->sgt);
	kfree(b->va);
	memset(b, 0, sizeof(*b));
}

static struct scatterlist *kv_sg(struct kv_buf *b, unsigned int i)
{
	struct scatterlist *sg = b->sgt.sgl;

	while (i--)
		sg = sg_next(sg);
	return sg;
}

void *kv_page(struct kv_buf *b, unsigned int i)
{
	return b->va[i];
}

dma_addr_t kv_dma(struct kv_buf *b, unsigned int i)
{
	return sg_dma_address(kv_sg(b, i));
}

void kv_fill(struct kv_buf *b, u8 seed)
{
	unsigned int i;

	for (i = 0; i < b->num_pages; i++)
		memset(kv_page(b, i), (u8)(seed + i), PAGE_SIZE);
}

bool kv_is_filled(struct kv_buf *b, u8 seed)
{
	unsigned int i;

	for (i = 0; i < b->num_pages; i++)
		if (memchr_inv(kv_page(b, i), (u8)(seed + i), PAGE_SIZE))
			return false;
	return true;
}

/* ---- work requests ---- */

static void kv_completed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kv_done *d = container_of(wc->wr_cqe, struct kv_done, cqe);

	d->wc = *wc;
	complete(&d->done);
}

void kv_expect(struct kv_done *d)
{
	memset(&d->wc, 0, sizeof(d->wc));
	d->cqe.done = kv_completed;
	init_completion(&d->done);
}

int kv_wait(struct kv_rig *r, struct kv_end *e, struct kv_done *d)
{
	unsigned long end = jiffies + KV_WAIT;

	while (r->ctx == IB_POLL_DIRECT && !completion_done(&d->done) &&
	       time_before(jiffies, end)) {
		ib_process_cq_direct(e->cq, -1);
		cond_resched();
	}
	if (wait_for_completion_timeout(&d->done, KV_WAIT))
		return d->wc.status;
	/* The work request belongs to the caller, who will not wait for it any more. */
	kv_end_stop(e);
	return -ETIMEDOUT;
}

int kv_recv(struct kv_end *e, struct kv_done *d, struct ib_sge *sge, int num_sge)
{
	struct ib_recv_wr wr = { .wr_cqe = &d->cqe, .sg_list = sge, .num_sge = num_sge };

	kv_expect(d);
	return ib_post_recv(e->qp, &wr, NULL);
}

static int kv_post(struct kv_end *e, struct kv_done *d, struct ib_send_wr *wr)
{
	wr->wr_cqe = &d->cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	kv_expect(d);
	return ib_post_send(e->qp, wr, NULL);
}

int kv_send(struct kv_end *e, struct kv_done *d, struct ib_sge *sge, int num_sge)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = num_sge };

	return kv_post(e, d, &wr);
}

int kv_send_inv(struct kv_end *e, struct kv_done *d, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = rkey };

	return kv_post(e, d, &wr);
}

int kv_rdma(struct kv_end *e, struct kv_done *d, enum ib_wr_opcode opcode,
	    struct ib_sge *sge, u64 raddr, u32 rkey)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = sge, .num_sge = 1 },
		.remote_addr = raddr,
		.rkey = rkey,
	};

	return kv_post(e, d, &wr.wr);
}

int kv_reg(struct kv_end *e, struct kv_done *d, struct ib_mr *mr, u32 key, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.key = key,
		.access = access,
	};

	return kv_post(e, d, &wr.wr);
}

int kv_local_inv(struct kv_end *e, struct kv_done *d, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };

	return kv_post(e, d, &wr);
}

/* ---- the netdev of the port ---- */

struct net_device *kv_netdev(struct kv *kv)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(kv->dev, 1, kv->gid_index);
	struct net_device *netdev;

	if (!KV_CHECK(kv, !IS_ERR(attr)))
		return NULL;
	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(netdev))
		netdev = NULL;
	dev_hold(netdev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	KV_CHECK(kv, netdev);
	return netdev;
}
