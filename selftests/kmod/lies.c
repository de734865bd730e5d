// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel consumer of a device that lies. This is not a test: it prints one line for each step,
 * with its errno or the status of its completion. Each step ends, whatever the device does;
 * guest/lies.sh knows the right outcome for each lie.
 */
#include <rdma/ib_cache.h>

#include <qhca/cmd.h>
#include <qhca/queues.h>

#include "kverbs.h"

#define KV_LIE_LEN	64u
#define KV_LIE_QKEY	0x1234

/* struct kv_lie - QPs that send to themselves; receives have their own CQ */
struct kv_lie {
	struct kv *kv;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_ah *ah;
	struct kv_end idle, rc, shared, ud;
	struct kv_buf buf;
};

static bool kv_say(struct kv_lie *l, const char *what, int ret)
{
	seq_printf(l->kv->m, "%s %d\n", what, ret);
	return !ret;
}

/* Makes an object, and prints whether that worked. */
#define KV_MAKE(l, what, to, call)					\
	({								\
		(to) = (call);						\
		kv_say(l, what, PTR_ERR_OR_ZERO(to));			\
		if (IS_ERR(to))						\
			(to) = NULL;					\
		(to);							\
	})

/* The driver never reports more than the interface allows, even if the device does. */
static bool kv_lie_limits(struct kv_lie *l)
{
	const struct ib_device_attr *a = &l->kv->dev->attrs;
	const int max = BIT(QHCA_RING_LOG_MAX);
	bool ok = a->max_qp > 0 && a->max_cq > 0 && a->max_mr > 0 && a->max_pd > 0 &&
		  a->max_cqe > 0 && a->max_cqe <= max &&
		  a->max_qp_wr > 0 && a->max_qp_wr <= max &&
		  a->max_srq_wr >= 0 && a->max_srq_wr <= max &&
		  a->max_send_sge <= QHCA_MAX_SEND_SGE && a->max_recv_sge <= QHCA_MAX_RECV_SGE &&
		  a->max_srq_sge <= QHCA_MAX_RECV_SGE &&
		  a->max_qp_rd_atom <= U8_MAX && a->max_qp_init_rd_atom <= U8_MAX &&
		  a->max_fast_reg_page_list_len <= QHCA_TABLE_MAX_BLOCKS;

	return kv_say(l, "limits", ok ? 0 : -ERANGE);
}

static bool kv_lie_qp(struct kv_lie *l, const char *what, struct kv_end *e,
		      enum ib_qp_type type, struct ib_srq *srq)
{
	struct ib_qp_init_attr init = {
		.qp_type = type,
		.send_cq = l->send_cq,
		.recv_cq = l->recv_cq,
		.srq = srq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return KV_MAKE(l, what, e->qp, ib_create_qp(l->pd, &init));
}

static bool kv_lie_open(struct kv_lie *l)
{
	struct ib_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ib_device *dev = l->kv->dev;

	return KV_MAKE(l, "pd", l->pd, ib_alloc_pd(dev, 0)) &&
	       KV_MAKE(l, "mr", l->mr, ib_alloc_mr(l->pd, IB_MR_TYPE_MEM_REG, 4)) &&
	       KV_MAKE(l, "cq", l->send_cq, ib_alloc_cq(dev, l, 16, 0, IB_POLL_DIRECT)) &&
	       KV_MAKE(l, "cq", l->recv_cq, ib_alloc_cq(dev, l, 16, 0, IB_POLL_DIRECT)) &&
	       KV_MAKE(l, "srq", l->srq, ib_create_srq(l->pd, &srq)) &&
	       kv_lie_qp(l, "qp", &l->idle, IB_QPT_RC, NULL) &&
	       kv_lie_qp(l, "qp", &l->rc, IB_QPT_RC, NULL) &&
	       kv_lie_qp(l, "qp", &l->shared, IB_QPT_RC, l->srq) &&
	       kv_lie_qp(l, "qp", &l->ud, IB_QPT_UD, NULL);
}

static void kv_lie_destroy_qp(struct kv_lie *l, struct kv_end *e)
{
	if (e->qp && ib_destroy_qp(e->qp))
		kv_say(l, "destroy", -EBUSY);
}

/* Closes without draining: destroyed QPs do not use memory, either. */
static void kv_lie_close(struct kv_lie *l)
{
	kv_lie_destroy_qp(l, &l->ud);
	kv_lie_destroy_qp(l, &l->shared);
	kv_lie_destroy_qp(l, &l->rc);
	kv_lie_destroy_qp(l, &l->idle);
	if (l->ah)
		rdma_destroy_ah(l->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (l->srq)
		ib_destroy_srq(l->srq);
	if (l->recv_cq)
		ib_free_cq(l->recv_cq);
	if (l->send_cq)
		ib_free_cq(l->send_cq);
	if (l->mr)
		ib_dereg_mr(l->mr);
	if (l->pd)
		ib_dealloc_pd(l->pd);
	kv_buf_close(l->kv, &l->buf);
}

/* Waits for the completion; after -ETIMEDOUT it may still come until the QP is destroyed. */
static bool kv_lie_wait_for(struct kv_lie *l, const char *what, struct kv_done *d,
			    unsigned long limit)
{
	unsigned long end = jiffies + limit;

	do {
		ib_process_cq_direct(l->send_cq, -1);
		ib_process_cq_direct(l->recv_cq, -1);
		if (completion_done(&d->done))
			return kv_say(l, what, d->wc.status);
		cond_resched();
	} while (time_before(jiffies, end));
	return kv_say(l, what, -ETIMEDOUT);
}

static bool kv_lie_wait(struct kv_lie *l, const char *what, struct kv_done *d)
{
	return kv_lie_wait_for(l, what, d, KV_WAIT);
}

static struct ib_sge kv_lie_sge(struct kv_lie *l, unsigned int page, u32 len)
{
	return (struct ib_sge) { .addr = kv_dma(&l->buf, page), .length = len,
				 .lkey = l->pd->local_dma_lkey };
}

/* Queries the state of a QP that has done nothing yet, and stops the QP. */
static bool kv_lie_stop(struct kv_lie *l)
{
	struct ib_qp_attr attr, reset = { .qp_state = IB_QPS_RESET };
	struct ib_qp_init_attr init;

	return kv_say(l, "query", ib_query_qp(l->idle.qp, &attr, IB_QP_STATE, &init)) &&
	       kv_say(l, "stop", ib_modify_qp(l->idle.qp, &reset, IB_QP_STATE));
}

/* Of two sends only the second is signaled, and its CQE completes both. */
static bool kv_lie_rc(struct kv_lie *l, struct kv_done d[4])
{
	struct ib_sge to = kv_lie_sge(l, 0, KV_LIE_LEN), from = kv_lie_sge(l, 1, KV_LIE_LEN);
	struct ib_send_wr wr = { .wr_cqe = &d[2].cqe, .opcode = IB_WR_SEND, .sg_list = &from,
				 .num_sge = 1 };
	bool ok;

	kv_expect(&d[2]);
	if (!kv_connect(l->kv, &l->rc, &l->rc) ||
	    !kv_say(l, "post", kv_recv(&l->rc, &d[0], &to, 1)) ||
	    !kv_say(l, "post", kv_recv(&l->rc, &d[1], &to, 1)) ||
	    !kv_say(l, "post", ib_post_send(l->rc.qp, &wr, NULL)) ||
	    !kv_say(l, "post", kv_send(&l->rc, &d[3], &from, 1)))
		return false;
	ok = kv_lie_wait(l, "send", &d[3]);
	ok &= kv_lie_wait(l, "recv", &d[0]);
	ok &= kv_lie_wait(l, "recv", &d[1]);
	if (completion_done(&d[2].done))
		ok &= kv_say(l, "unsignaled", d[2].wc.status);
	return ok;
}

static bool kv_lie_shared(struct kv_lie *l, struct kv_done d[2])
{
	struct ib_sge to = kv_lie_sge(l, 0, KV_LIE_LEN), from = kv_lie_sge(l, 1, KV_LIE_LEN);
	struct ib_recv_wr wr = { .wr_cqe = &d[0].cqe, .sg_list = &to, .num_sge = 1 };

	kv_expect(&d[0]);
	return kv_connect(l->kv, &l->shared, &l->shared) &&
	       kv_say(l, "post", ib_post_srq_recv(l->srq, &wr, NULL)) &&
	       kv_say(l, "post", kv_send(&l->shared, &d[1], &from, 1)) &&
	       kv_lie_wait(l, "send", &d[1]) &&
	       /* Its CQE precedes the send's; WRs of an SRQ are never flushed. */
	       kv_lie_wait_for(l, "shared", &d[0], HZ / 5);
}

static int kv_lie_ud_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1,
				   .qkey = KV_LIE_QKEY };
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* Makes an address handle for the port itself. */
static struct ib_ah *kv_lie_ah(struct kv_lie *l)
{
	struct rdma_ah_attr attr = { .type = rdma_ah_find_type(l->kv->dev, 1) };
	const struct ib_gid_attr *gid;
	union ib_gid dgid;
	int ret;

	gid = rdma_get_gid_attr(l->kv->dev, 1, l->kv->gid_index);
	if (IS_ERR(gid))
		return ERR_CAST(gid);
	dgid = gid->gid;
	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, &dgid, 0, l->kv->gid_index, 64, 0);
	ret = rdma_read_gid_l2_fields(gid, NULL, attr.roce.dmac);
	rdma_put_gid_attr(gid);
	return ret ? ERR_PTR(ret) : rdma_create_ah(l->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

static bool kv_lie_ud(struct kv_lie *l, struct kv_done d[2])
{
	struct ib_sge to = kv_lie_sge(l, 0, sizeof(struct ib_grh) + KV_LIE_LEN);
	struct ib_sge from = kv_lie_sge(l, 1, KV_LIE_LEN);
	struct ib_ud_wr wr = {
		.wr = { .wr_cqe = &d[1].cqe, .opcode = IB_WR_SEND, .sg_list = &from, .num_sge = 1,
			.send_flags = IB_SEND_SIGNALED },
		.remote_qpn = l->ud.qp->qp_num,
		.remote_qkey = KV_LIE_QKEY,
	};

	kv_expect(&d[1]);
	if (!KV_MAKE(l, "ah", l->ah, kv_lie_ah(l)) ||
	    !kv_say(l, "rts", kv_lie_ud_rts(l->ud.qp)) ||
	    !kv_say(l, "post", kv_recv(&l->ud, &d[0], &to, 1)))
		return false;
	wr.ah = l->ah;
	return kv_say(l, "post", ib_post_send(l->ud.qp, &wr.wr, NULL)) &&
	       kv_lie_wait(l, "send", &d[1]) &&
	       kv_lie_wait(l, "datagram", &d[0]);
}

/**
 * kv_lies - make one object of each kind, and use it
 * @kv: the device and the report
 *
 * Context: process. Stops at the first step that fails.
 */
void kv_lies(struct kv *kv)
{
	struct kv_lie l = { .kv = kv };
	struct kv_done *d = kcalloc(8, sizeof(*d), GFP_KERNEL);

	if (!d)
		return;
	if (kv_buf_open(kv, &l.buf, 2) && kv_lie_limits(&l) && kv_lie_open(&l) && kv_lie_stop(&l) &&
	    kv_lie_rc(&l, d) && kv_lie_shared(&l, d + 4) && kv_lie_ud(&l, d + 6))
		kv_say(&l, "all", 0);
	kv_lie_close(&l);
	kfree(d);
}
