// SPDX-License-Identifier: GPL-2.0
/* Rings and doorbells, which need no system call. */
#include <endian.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "fuzz.h"

/* Only rings in ordinary memory can be written. */
static bool usable(const struct ring *r)
{
	if (!r->mem || r->log_size > 14 || r->log_stride > 10)
		return false;
	return is_own(r->mem, ((size_t)1 << (r->log_size + r->log_stride)) + 64);
}

static uint8_t *slot(const struct ring *r, uint32_t index)
{
	return r->mem + ((size_t)(index & ((1u << r->log_size) - 1)) << r->log_stride);
}

/* Rings in memory, in any slot, rarely as the device expects it. */
static void ring_shadow(int ctx, uint32_t reg, uint64_t value)
{
	struct qhca_shadow *s = fuzz.shadow[ctx];
	uint32_t i = below(SLOTS);

	__atomic_store_n(&s->slot[i], htole64(value | QHCA_PREP(QHCA_DB_KIND, (uint64_t)reg / 8)),
			 __ATOMIC_RELEASE);
	__atomic_fetch_or(&s->rung[i / 64], one_in(20) ? chance() : htole64(1ull << i % 64),
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&s->look, one_in(20) ? chance() : htole64(1ull << i / 64),
			  __ATOMIC_SEQ_CST);
	if (one_in(40))
		__atomic_store_n(&s->ask, chance(), __ATOMIC_SEQ_CST);
	if (s->ask || one_in(10))
		__atomic_store_n((uint64_t *)(fuzz.db[ctx] + QHCA_DB_SHADOW), 0, __ATOMIC_RELEASE);
}

static void ring(int ctx, uint32_t reg, uint32_t num, uint32_t index, uint64_t flags)
{
	uint64_t value = (uint64_t)index << 32 | (num & QHCA_DB_OBJ) | flags;

	count(&fuzz.shared->rings);
	if (fuzz.shadow[ctx] && !one_in(4)) {
		ring_shadow(ctx, reg, value);
		return;
	}
	__atomic_store_n((uint64_t *)(fuzz.db[ctx] + reg), htole64(value), __ATOMIC_RELEASE);
}

/* Makes an SGE that is mostly within an MR. */
static void put_sge(struct qhca_sge *sge)
{
	struct obj *mr = live(UVERBS_OBJECT_MR, -1);
	bool good = mr && mr->len && !one_in(20);
	uint32_t len = below(one_in(4) ? 8192 : 64);

	if (good && len > mr->len)
		len = mr->len;
	sge->length = htole32(one_in(40) ? nonsense() : len);
	sge->lkey = htole32(good ? mr->num : some_key());
	sge->addr = htole64(good ? mr->key + (one_in(3) ? below(PAGE) : 0) : nonsense());
}

static void put_remote(struct qhca_sq_wqe *w)
{
	struct obj *mr = live(UVERBS_OBJECT_MR, -1), *srq = live(UVERBS_OBJECT_SRQ, -1);
	bool good = mr && !one_in(20);

	w->rdma.addr = htole64(good ? (mr->key + (one_in(3) ? below(PAGE) : 7)) & ~7ull :
				      nonsense());
	w->rdma.rkey = htole32(good ? mr->num : some_key());
	w->rdma.srqn = htole32(srq ? srq->num : 0);
}

static void put_ud(struct qhca_sq_wqe *w)
{
	memcpy(w->ud.av.dgid, &fuzz.gid, 16);
	w->ud.av.sgid_index = one_in(10) ? below(256) : (uint32_t)fuzz.gid_index;
	w->ud.av.hop_limit = 64;
	w->ud.av.port = one_in(20) ? below(3) : PORT;
	w->ud.av.pdn = htole32(one_in(4) ? below(64) : 0);
	w->ud.qpn = htole32(some_qpn());
	w->ud.qkey = htole32(one_in(10) ? nonsense() : 0x11111111);
}

/* Returns mostly an opcode that moves data. */
static uint8_t some_opcode(void)
{
	static const uint8_t usual[] = {
		QHCA_WR_SEND, QHCA_WR_SEND_WITH_IMM, QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ,
		QHCA_WR_RDMA_WRITE_WITH_IMM,
	};

	if (one_in(40))
		return chance();
	return one_in(3) ? below(QHCA_WR_MAX) :
			   usual[below(ARRAY_SIZE(usual))];
}

static void put_send_wqe(const struct obj *qp, struct qhca_sq_wqe *w, const struct ring *r)
{
	uint32_t stride = 1u << r->log_stride, n, i;
	uint32_t room = (stride - sizeof(*w)) / sizeof(struct qhca_sge);
	struct qhca_sge *sge = (void *)(w + 1);

	memset(w, 0, sizeof(*w));
	w->wr_id = chance();
	w->opcode = some_opcode();
	w->flags = one_in(40) ? chance() : below(8);
	n = below((r->sge < room ? r->sge : room) + 1);
	w->count = htole16(one_in(40) ? nonsense() : n);
	w->imm = htobe32(some_key());
	if (qp->type == IBV_QPT_UD)
		put_ud(w);
	else
		put_remote(w);
	for (i = 0; i < n; i++)
		put_sge(&sge[i]);
	if (one_in(8))
		w->flags |= QHCA_WQE_INLINE;
	if (one_in(40))
		((uint8_t *)w)[below(stride)] = chance();
}

static void send(struct obj *qp)
{
	struct ring *r = &qp->ring[0];

	if (!usable(r) || r->log_stride < 7)
		return;
	put_send_wqe(qp, (void *)slot(r, r->pi), r);
	ring(qp->ctx, QHCA_DB_SQ, qp->num, ++r->pi, 0);
}

static void put_recv(struct obj *o, struct ring *r, uint32_t reg)
{
	struct qhca_rq_dbrec *rec;
	uint32_t room, n, i;
	struct qhca_rq_wqe *w;

	if (!usable(r) || r->log_stride < 5)
		return;
	room = ((1u << r->log_stride) - sizeof(*w)) / sizeof(struct qhca_sge);
	w = (void *)slot(r, r->pi);
	n = below((r->sge < room ? r->sge : room) + 1);
	w->wr_id = chance();
	w->num_sge = htole16(one_in(40) ? nonsense() : n);
	for (i = 0; i < n; i++)
		put_sge((struct qhca_sge *)(w + 1) + i);
	r->pi++;
	rec = (void *)(r->mem + ((size_t)1 << (r->log_size + r->log_stride)));
	__atomic_store_n(&rec->pi, htole32(one_in(40) ? (uint32_t)nonsense() : r->pi),
			 __ATOMIC_SEQ_CST);
	if (rec->ring || one_in(4))
		ring(o->ctx, reg, o->num, r->pi, 0);
}

static bool cqe_there(const struct ring *r)
{
	const struct qhca_cqe *cqe = (void *)slot(r, r->pi);
	uint8_t phase = r->pi >> r->log_size & 1 ? 0 : QHCA_OWNER_PHASE;

	return (__atomic_load_n(&cqe->owner, __ATOMIC_RELAXED) & QHCA_OWNER_PHASE) == phase;
}

/* Consumes CQEs, or pretends to, and arms the CQ. */
static void consume(struct obj *cq)
{
	struct ring *r = &cq->ring[0];
	struct qhca_cq_dbrec *rec;
	bool right = !one_in(20);

	if (usable(r)) {
		rec = (void *)(r->mem + ((size_t)1 << (r->log_size + r->log_stride)));
		while (cqe_there(r))
			r->pi++;
		__atomic_store_n(&rec->ci, htole32(right ? r->pi : (uint32_t)nonsense()),
				 __ATOMIC_RELEASE);
		if (one_in(3))
			__atomic_store_n(&rec->arm, htole64(one_in(4) ? nonsense() :
					 (uint64_t)below(1000) << 32 | below(1000)),
					 __ATOMIC_RELEASE);
	}
	if (one_in(3))
		ring(cq->ctx, QHCA_DB_CQ_ARM, cq->num, one_in(10) ? nonsense() : below(1000),
		     one_in(4) ? QHCA_DB_SOLICITED : 0);
}

/* Writes any bytes of any ring, while the device may read them. */
static void scribble(void)
{
	uint8_t *p = own_pages(PAGE);
	uint64_t n = chance();

	memcpy(p + below(PAGE - 8), &n, 1 + below(8));
}

static void random_doorbell(void)
{
	static const uint32_t regs[] = {
		QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_SRQ, QHCA_DB_CQ_ARM, QHCA_DB_SHADOW, QHCA_DB_EQ,
		QHCA_DB_CMD, QHCA_DB_ETH,
	};
	static const uint8_t kinds[] = {
		UVERBS_OBJECT_QP, UVERBS_OBJECT_SRQ, UVERBS_OBJECT_CQ, UVERBS_OBJECT_WQ,
	};
	struct obj *o = live(kinds[below(ARRAY_SIZE(kinds))], -1);
	uint32_t reg = one_in(4) ? below(PAGE / 8) * 8 : regs[below(ARRAY_SIZE(regs))];
	int ctx = below(CONTEXTS);
	uint8_t *at = fuzz.db[ctx] + reg;

	if (one_in(10)) {
		/* Write other than 64 bits. */
		if (one_in(2))
			__atomic_store_n((uint32_t *)at, chance(), __ATOMIC_RELAXED);
		else
			__atomic_store_n(at + 3, chance(), __ATOMIC_RELAXED);
		return;
	}
	ring(ctx, reg, o && !one_in(4) ? o->num : some_qpn(), nonsense(),
	     one_in(8) ? chance() & 0xff000000 : 0);
}

void ring_something(void)
{
	struct obj *qp = live(UVERBS_OBJECT_QP, -1), *srq = live(UVERBS_OBJECT_SRQ, -1);
	struct obj *cq = live(UVERBS_OBJECT_CQ, -1), *wq = live(UVERBS_OBJECT_WQ, -1);

	switch (below(11)) {
	case 0:
		scribble();
		break;
	case 1:
		random_doorbell();
		break;
	case 2:
	case 3:
		if (cq)
			consume(cq);
		break;
	case 4:
		if (srq)
			put_recv(srq, &srq->ring[0], QHCA_DB_SRQ);
		break;
	case 5:
	case 6:
		if (qp)
			put_recv(qp, &qp->ring[1], QHCA_DB_RQ);
		break;
	case 7:
		if (wq)
			put_recv(wq, &wq->ring[1], QHCA_DB_RQ);
		break;
	default:
		if (qp)
			send(qp);
	}
}
