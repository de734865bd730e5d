// SPDX-License-Identifier: GPL-2.0
/* Uses and changes objects at random, rightly and wrongly: see churn.h. */
#include <sys/mman.h>

#include "churn.h"

/* Returns an SGE that may or may not be in the MR, and have its key. */
static struct ibv_sge some_sge(void)
{
	struct slot *s = use(MR);
	struct ibv_mr *mr = s ? s->obj : NULL;
	struct ibv_sge sge = { .addr = below(65536), .length = below(64), .lkey = below(65536) };

	if (mr) {
		sge.addr = (uintptr_t)mr->addr + below(one_in(20) ? BUF_LEN : mr->length + 1);
		sge.lkey = one_in(2) ? mr->lkey : mr->rkey;
		sge.length = one_in(20) ? some_number(BUF_LEN) : below(2048);
	}
	unuse(s);
	return sge;
}

static void some_target(struct ibv_send_wr *wr)
{
	struct ibv_sge to = some_sge();

	if (is_atomic(wr->opcode)) {
		wr->wr.atomic.remote_addr = one_in(10) ? to.addr : to.addr & ~7ull;
		wr->wr.atomic.rkey = to.lkey;
	} else {
		wr->wr.rdma.remote_addr = to.addr;
		wr->wr.rdma.rkey = to.lkey;
	}
}

/* struct held - objects that work requests may name, locked, or NULL */
struct held {
	struct slot *ah, *mw, *mr;
};

static bool some_bind(struct ibv_send_wr *wr, const struct held *held)
{
	struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (!held->mw)
		return false;
	wr->bind_mw.mw = held->mw->obj;
	wr->bind_mw.rkey = ibv_inc_rkey(wr->bind_mw.mw->rkey);
	if (held->mr) {
		info->mr = held->mr->obj;
		info->addr = (uintptr_t)info->mr->addr;
		info->length = below(4096);
		info->mw_access_flags = below(64);
	}
	return true;
}

/* Returns false if the WR needs an object that does not exist. */
static bool some_wr(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_sge *sge,
		    const struct held *held)
{
	*wr = (struct ibv_send_wr) {
		.wr_id = below(1000),
		.sg_list = sge,
		.num_sge = below(3),
		.opcode = one_in(40) ? below(64) : below(IBV_WR_BIND_MW + 1),
		.send_flags = below(32) & (one_in(3) ? 31 : 31 ^ IBV_SEND_INLINE),
	};
	sge[0] = some_sge();
	sge[1] = some_sge();
	/* Inline data is copied from here, so it has to exist. */
	if (wr->send_flags & IBV_SEND_INLINE) {
		sge[0] = (struct ibv_sge) { (uintptr_t)churn.slots[MR][0].mem, below(600), 0 };
		sge[1] = sge[0];
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		return some_bind(wr, held);
	if (qp->qp_type == IBV_QPT_UD) {
		if (!held->ah)
			return false;
		wr->wr.ud.ah = held->ah->obj;
		wr->wr.ud.remote_qpn = one_in(2) ? qp->qp_num : below(1 << 24);
		wr->wr.ud.remote_qkey = 0x11111111;
		return true;
	}
	some_target(wr);
	return true;
}

static void post_some(void *qp)
{
	struct held held = { use(AH), use(MW), use(MR) };
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sge[4][2];
	uint32_t i, n = 1 + below(ARRAY_SIZE(wr));
	bool ok = true;

	for (i = 0; ok && i < n; i++) {
		ok = some_wr(qp, &wr[i], sge[i], &held);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	if (ok)
		ibv_post_send(qp, wr, &bad);
	unuse(held.mr);
	unuse(held.mw);
	unuse(held.ah);
}

struct ibv_recv_wr some_recv(struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = below(3) };

	sge[0] = some_sge();
	sge[1] = some_sge();
	return wr;
}

static void post_one_recv(void *qp)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = some_recv(sge), *bad;

	ibv_post_recv(qp, &wr, &bad);
}

/* Moves a QP one state up, sometimes when it is in RTS; connects it to itself or any other QP. */
static void change_qp(void *obj)
{
	static const enum ibv_qp_state other[] = { IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_SQD, 7 };
	struct ibv_qp *qp = obj;
	struct conn c = CONN;
	struct ibv_qp_attr a;
	int mask;

	if (qp->state == IBV_QPS_RTS && !one_in(10))
		return;
	c.dest_qpn = one_in(10) ? below(1 << 24) : qp->qp_num;
	c.retry_cnt = below(3);
	c.rnr_retry = below(3);
	c.timeout = 8;
	c.rd_atomic = one_in(10) ? below(20) : 4;
	if (qp->state == IBV_QPS_RESET)
		mask = attr_init(&a, &c);
	else if (qp->state == IBV_QPS_INIT)
		mask = attr_rtr(&a, churn.dev, &c);
	else
		mask = attr_rts(&a, &c);
	mask = attr_mask(qp->qp_type, mask);
	if (qp->state >= IBV_QPS_RTS || one_in(30)) {
		a.qp_state = other[below(ARRAY_SIZE(other))];
		mask = IBV_QP_STATE;
	}
	if (one_in(30))
		mask ^= 1 << below(26);
	ibv_modify_qp(qp, &a, mask);
}

static void query_qp(void *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	ibv_query_qp(qp, &a, ~0, &init);
}

static const union ibv_gid mgid = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };

static void attach(void *qp)
{
	ibv_attach_mcast(qp, &mgid, 0);
}

static void detach(void *qp)
{
	ibv_detach_mcast(qp, &mgid, 0);
}

static void poll_some(void *cq)
{
	struct ibv_wc wc[8];

	ibv_poll_cq(cq, 1 + below(8), wc);
}

static void arm(void *cq)
{
	ibv_req_notify_cq(cq, below(2));
}

static void resize_cq(void *cq)
{
	ibv_resize_cq(cq, some_number(MAX_CQE));
}

static void moderate(void *cq)
{
	struct ibv_modify_cq_attr a = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { below(20), below(2000) },
	};

	ibv_modify_cq(cq, &a);
}

static void take_event(void *unused)
{
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(churn.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

static void post_one_srq_recv(void *srq)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = some_recv(sge), *bad;

	ibv_post_srq_recv(srq, &wr, &bad);
}

static void change_srq(void *srq)
{
	struct ibv_srq_attr a = {
		.max_wr = some_number(churn.dev->attr.max_srq_wr),
		.srq_limit = below(20),
	};

	ibv_modify_srq(srq, &a, one_in(10) ? below(8) : 1u << below(2));
}

static void query_srq(void *srq)
{
	struct ibv_srq_attr a;

	ibv_query_srq(srq, &a);
}

void use_one(enum kind kind, const struct op *ops, size_t n)
{
	struct slot *s = use(kind);

	if (s)
		do_one_of(ops, n, s->obj);
	unuse(s);
}

static void use_qp(void *unused)
{
	static const struct op ops[] = {
		{ 4, post_some }, { 2, post_one_recv }, { 3, change_qp }, { 1, query_qp },
		{ 1, attach }, { 1, detach },
	};

	use_one(QP, ops, ARRAY_SIZE(ops));
}

static void use_cq(void *unused)
{
	static const struct op ops[] = {
		{ 4, poll_some }, { 1, arm }, { 1, resize_cq }, { 1, moderate }, { 1, take_event },
	};

	use_one(CQ, ops, ARRAY_SIZE(ops));
}

static void use_srq(void *unused)
{
	static const struct op ops[] = {
		{ 3, post_one_srq_recv }, { 2, change_srq }, { 1, query_srq },
	};

	use_one(SRQ, ops, ARRAY_SIZE(ops));
}

/* Changing the PD would need more locks than an application uses. */
static void change_mr(void *unused)
{
	int flags = one_in(10) ? below(16) & ~IBV_REREG_MR_CHANGE_PD :
		    one_in(2) ? IBV_REREG_MR_CHANGE_ACCESS : IBV_REREG_MR_CHANGE_TRANSLATION;
	struct slot *s = pick(MR);

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (s->obj)
		ibv_rereg_mr(s->obj, flags, NULL, s->mem + below(4096), below(8192),
			     one_in(2) ? REMOTE : LOCAL);
	unuse(s);
}

static void copy_dm(void *unused)
{
	uint64_t off = below(BUF_LEN) & (one_in(20) ? ~0u : ~3u);
	struct slot *s = use(DM);
	uint8_t data[256] = { 0 };
	size_t len = 4 * below(sizeof(data) / 4);

	if (s && one_in(2))
		ibv_memcpy_to_dm(s->obj, off, data, len);
	else if (s)
		ibv_memcpy_from_dm(data, s->obj, off, len);
	unuse(s);
}

/*
 * The command fd can map a doorbell page and device memory; doorbells there ring only objects of
 * this process.
 */
static void map(void *unused)
{
	size_t len = 4096u << below(2);
	struct slot *s = use(QP);
	uint64_t number = s ? ((struct ibv_qp *)s->obj)->qp_num : below(1 << 24);
	uint32_t off = 8 * below(512);
	uint64_t *page;

	page = mmap(NULL, len, PROT_READ | PROT_WRITE, one_in(4) ? MAP_PRIVATE : MAP_SHARED,
		    churn.dev->ctx->cmd_fd, (off_t)4096 * below(4));
	if (page != MAP_FAILED) {
		if (one_in(4))
			page[(one_in(2) ? off : below(4) * 8) / 8] =
				(uint64_t)below(64) << 32 | number;
		munmap(page, len);
	}
	unuse(s);
}

/* Takes away pages of the memory of an MR, or the right to write to them. */
static void steal(void *unused)
{
	uint8_t *mem = pick(MR)->mem + (below(BUF_LEN) & ~4095u);
	size_t len = below(BUF_LEN);

	switch (below(4)) {
	case 0:
		mprotect(mem, len, PROT_READ);
		mprotect(mem, len, PROT_READ | PROT_WRITE);
		break;
	case 1:
		madvise(mem, len, MADV_PAGEOUT);
		break;
	default:
		madvise(mem, len, MADV_DONTNEED);
		break;
	}
}

static void advise(void *unused)
{
	struct slot *pd = use(PD);
	struct ibv_sge sge[2] = { some_sge(), some_sge() };

	if (pd)
		ibv_advise_mr(pd->obj, below(one_in(10) ? 5 : 3), below(2), sge, below(3));
	unuse(pd);
}

void *churn_thread(void *seed)
{
	static const struct op ops[] = {
		{ 4, make_or_destroy }, { 6, use_qp }, { 3, use_cq }, { 1, use_srq },
		{ 2, use_wq },
		{ 1, use_counters },
		{ 1, change_mr }, { 1, map }, { 1, copy_dm }, { 2, steal }, { 1, advise },
	};

	chance_seed((uintptr_t)seed);
	for (;; __atomic_fetch_add(churn.ops, 1, __ATOMIC_RELAXED))
		do_one_of(ops, ARRAY_SIZE(ops), NULL);
	return NULL;
}
