// SPDX-License-Identifier: GPL-2.0
/* Creates and destroys objects of all kinds at random: see churn.h. */
#include <fcntl.h>

#include "churn.h"

static const enum ibv_qp_type qp_types[] = {
	IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
};

struct churn churn;

/* ---- slots ---- */

struct slot *pick(enum kind kind)
{
	/* Few slots, so that objects have a chance to fit together. */
	static const uint32_t num[KINDS] = {
		[PD] = 2, [DM] = 2, [MR] = SLOTS, [CQ] = SLOTS, [SRQ] = 3, [MW] = 3,
		[AH] = 2, [QP] = SLOTS, [WQ] = 3, [TABLE] = 2, [FLOW] = 3,
		[COUNTERS] = 2,
	};

	return &churn.slots[kind][below(num[kind])];
}

struct slot *use(enum kind kind)
{
	struct slot *s = pick(kind);

	if (pthread_rwlock_tryrdlock(&s->lock))
		return NULL;
	if (s->obj)
		return s;
	pthread_rwlock_unlock(&s->lock);
	return NULL;
}

void unuse(struct slot *s)
{
	if (s)
		pthread_rwlock_unlock(&s->lock);
}

static int destroy(enum kind kind, void *obj)
{
	switch (kind) {
	case PD:
		return ibv_dealloc_pd(obj);
	case DM:
		return ibv_free_dm(obj);
	case MR:
		return ibv_dereg_mr(obj);
	case CQ:
		return ibv_destroy_cq(obj);
	case SRQ:
		return ibv_destroy_srq(obj);
	case MW:
		return ibv_dealloc_mw(obj);
	case AH:
		return ibv_destroy_ah(obj);
	case WQ:
		return ibv_destroy_wq(obj);
	case TABLE:
		return ibv_destroy_rwq_ind_table(obj);
	case FLOW:
		return ibv_destroy_flow(obj);
	case COUNTERS:
		return ibv_destroy_counters(obj);
	default:
		return ibv_destroy_qp(obj);
	}
}

/* ---- making objects ---- */

static void *new_dm(void)
{
	struct ibv_alloc_dm_attr a = {
		.length = one_in(20) ? some_number(1 << 20) : below(BUF_LEN),
		.log_align_req = below(14),
	};

	return ibv_alloc_dm(churn.dev->ctx, &a);
}

static void *new_mr(struct ibv_pd *pd, uint8_t *mem)
{
	static const int access[] = {
		0, LOCAL, REMOTE, REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
		LOCAL | IBV_ACCESS_ZERO_BASED, IBV_ACCESS_REMOTE_WRITE, 1 << 15,
		IBV_ACCESS_ON_DEMAND, REMOTE | IBV_ACCESS_ON_DEMAND,
		REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND,
	};
	size_t off = below(BUF_LEN), len = one_in(30) ? some_number(0) : below(BUF_LEN - off);
	int rights = access[below(ARRAY_SIZE(access))];
	struct slot *dm = one_in(4) ? use(DM) : NULL;
	void *mr;

	if (dm)
		mr = ibv_reg_dm_mr(pd, dm->obj, off, len, rights | IBV_ACCESS_ZERO_BASED);
	else
		mr = ibv_reg_mr(pd, mem + off, len, rights);
	unuse(dm);
	return mr;
}

static void *new_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr a = {
		.attr = {
			.max_wr = some_number(churn.dev->attr.max_srq_wr),
			.max_sge = some_number(churn.dev->attr.max_srq_sge) % 40,
		},
	};

	return ibv_create_srq(pd, &a);
}

static void *new_ah(struct ibv_pd *pd)
{
	struct ibv_ah_attr a = {
		.is_global = !one_in(20),
		.grh = {
			.dgid = churn.dev->gid,
			.sgid_index = one_in(20) ? (int)below(300) : churn.dev->gid_index,
			.hop_limit = 64,
		},
		.port_num = one_in(20) ? below(4) : PORT,
		.sl = below(8),
	};

	return ibv_create_ah(pd, &a);
}

static void *new_qp(struct ibv_pd *pd)
{
	struct slot *send_cq = use(CQ), *recv_cq = use(CQ), *srq = one_in(3) ? use(SRQ) : NULL;
	struct ibv_qp_init_attr a = {
		.qp_type = qp_types[below(ARRAY_SIZE(qp_types))],
		.send_cq = send_cq ? send_cq->obj : NULL,
		.recv_cq = recv_cq ? recv_cq->obj : NULL,
		.srq = srq ? srq->obj : NULL,
		.sq_sig_all = below(2),
		.cap = {
			.max_send_wr = some_number(churn.dev->attr.max_qp_wr),
			.max_recv_wr = some_number(churn.dev->attr.max_qp_wr),
			.max_send_sge = some_number(churn.dev->attr.max_sge) % 8,
			.max_recv_sge = some_number(churn.dev->attr.max_sge) % 8,
			.max_inline_data = some_number(512),
		},
	};
	void *qp = NULL;

	if (send_cq && recv_cq)
		qp = ibv_create_qp(pd, &a);
	unuse(srq);
	unuse(recv_cq);
	unuse(send_cq);
	return qp;
}

static void *new_of_pd(enum kind kind, struct ibv_pd *pd, uint8_t *mem)
{
	switch (kind) {
	case MR:
		return new_mr(pd, mem);
	case SRQ:
		return new_srq(pd);
	case MW:
		return ibv_alloc_mw(pd, 1 + below(3));
	case AH:
		return new_ah(pd);
	case WQ:
		return new_wq(pd);
	default:
		return one_in(6) ? new_spread(pd) : new_qp(pd);
	}
}

static void make(enum kind kind, struct slot *s)
{
	struct slot *pd;

	if (kind == PD) {
		s->obj = ibv_alloc_pd(churn.dev->ctx);
	} else if (kind == DM) {
		s->obj = new_dm();
	} else if (kind == CQ) {
		s->obj = ibv_create_cq(churn.dev->ctx, some_number(MAX_CQE), NULL,
				       churn.channel, one_in(20) ? some_number(0) : 0);
	} else if (kind == TABLE) {
		s->obj = new_table();
	} else if (kind == FLOW) {
		s->obj = new_flow();
	} else if (kind == COUNTERS) {
		s->obj = new_counters();
	} else {
		pd = use(PD);
		if (pd)
			s->obj = new_of_pd(kind, pd->obj, s->mem);
		unuse(pd);
	}
}

void make_or_destroy(void *unused)
{
	enum kind kind = below(KINDS);
	struct slot *s = pick(kind);

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!s->obj)
		make(kind, s);
	else if (one_in(3) && !destroy(kind, s->obj))
		s->obj = NULL;
	unuse(s);
}

void churn_open(uint32_t *ops)
{
	int i, j;

	churn.ops = ops;
	churn.dev = dev_open();
	churn.channel = ibv_create_comp_channel(churn.dev->ctx);
	REQUIRE(churn.channel);
	fcntl(churn.channel->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < KINDS; i++)
		for (j = 0; j < SLOTS; j++)
			pthread_rwlock_init(&churn.slots[i][j].lock, NULL);
	for (j = 0; j < SLOTS; j++)
		churn.slots[MR][j].mem = buf_new(churn.dev->pd, 2 * BUF_LEN, LOCAL).addr;
}
