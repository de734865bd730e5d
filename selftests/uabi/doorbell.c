// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell pages, and doorbells in memory, which only devices that are another process offer: a bad
 * doorbell is counted and does no harm, and a page rings only the objects of its own context.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "lib/uverbs.h"

#define PAGE	4096
#define SLOTS	384

static void ring(void *page, uint32_t reg, uint64_t obj, uint32_t index)
{
	uv_ring(page, reg, QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj);
}

/* struct scene - a pair of libibverbs, and a raw context with a CQ and a QP in INIT */
struct scene {
	struct dev *d;
	struct pair p;
	struct uv uv;
	struct uv_cq cq;
	struct uv_qp qp;
	uint64_t bad;		/* bad_doorbell so far */
	struct qhca_shadow *shadow;	/* doorbells in memory, or NULL */
};

static struct scene scene_new(void)
{
	struct scene s = { .d = dev_open_qhca() };
	struct qhca_create_cq_req cq = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct qhca_create_qp_req qp = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };

	s.p = pair_new(s.d, &QP_OPTS, &CONN);
	s.uv = uv_open(s.d);
	REQUIRE_OK(uv_create_cq(&s.uv, 64, &cq, sizeof(cq), &s.cq));
	REQUIRE_OK(uv_create_qp(&s.uv, &s.cq, &cap, &qp, sizeof(qp), &s.qp));
	REQUIRE_OK(uv_qp_to_init(&s.uv, &s.qp));
	ping_pong(&s.p);
	s.bad = hw_counter("bad_doorbell");
	return s;
}

static void check_counted(struct scene *s, unsigned int n)
{
	uint64_t now = hw_counter("bad_doorbell");

	CHECK_EQ(now - s->bad, n);
	s->bad = now;
	ping_pong(&s->p);
	CHECK_EQ(get_state(s->p.a.qp), IBV_QPS_RTS);
}

TEST(own, "J-020 doorbells of the context's own objects are no errors")
{
	struct scene s = scene_new();

	ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, 1);
	ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, 16);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.cq.cqn, 1);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.cq.cqn, 1);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.cq.cqn | QHCA_DB_SOLICITED, 2);
	check_counted(&s, 0);
}

TEST(foreign_sq, "J-020 another context's page does not ring a send queue")
{
	struct scene s = scene_new();

	ring(s.uv.db, QHCA_DB_SQ, s.p.a.qp->qp_num, 2);
	check_counted(&s, 1);
	poll_none(s.p.a.send_cq);
}

TEST(foreign_rq, "J-020 another context's page does not ring a receive queue")
{
	struct scene s = scene_new();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	ring(s.uv.db, QHCA_DB_RQ, s.p.b.qp->qp_num, 2);
	CHECK_EQ(hw_counter("bad_doorbell") - s.bad, 1);
	/* If the doorbell had been accepted, the SEND would find an empty receive request. */
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_none(s.p.b.recv_cq);
	REQUIRE_OK(post_recv(&s.p.b, 2, NULL, 0));
	poll_ok(s.p.b.recv_cq, 2);
	poll_ok(s.p.a.send_cq, 1);
}

TEST(foreign_cq, "J-020 another context's page does not arm a CQ")
{
	struct scene s = scene_new();
	struct uv other = uv_open(s.d);

	ring(other.db, QHCA_DB_CQ_ARM, s.cq.cqn, 5);
	check_counted(&s, 1);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.cq.cqn, 5);
	check_counted(&s, 0);
}

static const struct {
	const char *name;
	uint32_t reg;
} no_object[] = {
	{ "SQ", QHCA_DB_SQ }, { "RQ", QHCA_DB_RQ }, { "SRQ", QHCA_DB_SRQ },
	{ "CQ arm", QHCA_DB_CQ_ARM },
};

TEST_ROWS(nobody, "J-020 numbers that no object has", no_object)
{
	const uint32_t number[] = { 0, 1, 2, 3, 0x123456, 0xfffffe, 0xffffff };
	struct scene s = scene_new();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(number); i++)
		ring(s.uv.db, row->reg, number[i], 1);
	check_counted(&s, ARRAY_SIZE(number));
}

TEST(wrong_kind, "J-020 the number of another kind of object")
{
	struct scene s = scene_new();
	struct qhca_create_qp_req req = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };
	struct uv_qp first = s.qp;

	if (s.cq.cqn == first.qpn) {
		REQUIRE_OK(uv_create_qp(&s.uv, &s.cq, &cap, &req, sizeof(req), &s.qp));
		REQUIRE_OK(uv_destroy_qp(&s.uv, &first));
	}
	REQUIRE(s.cq.cqn != s.qp.qpn);
	ring(s.uv.db, QHCA_DB_RQ, s.cq.cqn, 1);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.qp.qpn, 1);
	check_counted(&s, 2);
}

TEST(destroyed, "J-020 numbers of destroyed objects")
{
	struct scene s = scene_new();

	REQUIRE_OK(uv_destroy_qp(&s.uv, &s.qp));
	REQUIRE_OK(uv_destroy_cq(&s.uv, &s.cq));
	ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, 1);
	ring(s.uv.db, QHCA_DB_SQ, s.qp.qpn, 1);
	ring(s.uv.db, QHCA_DB_CQ_ARM, s.cq.cqn, 1);
	check_counted(&s, 3);
}

static const struct {
	const char *name;
	uint32_t first, index;
} indexes[] = {
	{ "one beyond the ring", 0, 17 },
	{ "far beyond the ring", 0, 0x80000000 },
	{ "all ones", 0, 0xffffffff },
	{ "one back", 8, 7 },
	{ "back to the start", 8, 0 },
	{ "one ring and one ahead", 8, 17 },
};

TEST_ROWS(ring_index, "J-020 an index outside the ring", indexes)
{
	struct scene s = scene_new();

	if (row->first)
		ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, row->first);
	check_counted(&s, 0);
	ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, row->index);
	check_counted(&s, 1);
	/* The right index still works. */
	ring(s.uv.db, QHCA_DB_RQ, s.qp.qpn, 16);
	check_counted(&s, 0);
}

TEST(kernel_doorbells, "J-020 a user rings the kernel's doorbells")
{
	const uint32_t reg[] = { QHCA_DB_EQ, QHCA_DB_CMD, QHCA_DB_ETH };
	struct scene s = scene_new();
	uint32_t obj, i;

	for (i = 0; i < ARRAY_SIZE(reg); i++)
		for (obj = 0; obj < 4; obj++)
			ring(s.uv.db, reg[i], obj, 1);
	check_counted(&s, ARRAY_SIZE(reg) * 4);
	/* Commands and events still work. */
	CHECK(ibv_alloc_pd(s.d->ctx));
}

TEST(other_offsets, "J-020 offsets without a meaning")
{
	struct scene s = scene_new();
	uint32_t off, n = 0;

	for (off = QHCA_DB_CQ_ARM + 8; off < QHCA_DB_PAGE_SIZE; off += 8) {
		if (off > 0x60 && off % 0x200)
			continue;
		if (off >= QHCA_DB_EQ && off <= QHCA_DB_ETH)
			continue;
		ring(s.uv.db, off, s.qp.qpn, 1);
		n++;
	}
	check_counted(&s, n);
}

TEST(other_sizes, "J-020 accesses other than 64-bit writes")
{
	struct scene s = scene_new();
	const uint64_t one = htole64(1), qpn = htole64(s.qp.qpn);
	uint8_t *db = s.uv.db;

	uv_store(db + QHCA_DB_SQ, &qpn, 4);
	uv_store(db + QHCA_DB_SQ + 4, &one, 4);
	uv_store(db + QHCA_DB_RQ, &one, 2);
	uv_store(db + QHCA_DB_CQ_ARM, &one, 1);
	check_counted(&s, 4);
}

TEST(junk, "J-020 ten thousand random doorbells do no harm")
{
	struct scene s = scene_new();
	unsigned int seed = 1, i;

	for (i = 0; i < 10000; i++) {
		uint64_t v = (uint64_t)rand_r(&seed) << 33 ^
			     (uint64_t)rand_r(&seed) << 8 ^ rand_r(&seed);

		uv_ring(s.uv.db, rand_r(&seed) & 0x78, v);
	}
	CHECK(hw_counter("bad_doorbell") - s.bad >= 9000);
	ping_pong(&s.p);
	CHECK(ibv_alloc_pd(s.d->ctx));
}

/* ---- doorbells in memory ---- */

static struct qhca_create_shadow_req good_req(void *mem)
{
	return (struct qhca_create_shadow_req){
		.addr = (uintptr_t)mem, .len = PAGE, .slots = SLOTS,
	};
}

/* Whether the context can have doorbells in memory. */
static bool has_shadow(struct uv *uv)
{
	const struct qhca_create_shadow_req req = good_req(uv_mem(PAGE));

	if (uv->ctx.max_shadow_slots)
		return true;
	CHECK_EQ(uv_create_shadow(uv, &req), EOPNOTSUPP);
	return false;
}

static struct scene scene_with_shadow(void)
{
	struct scene s = scene_new();
	struct qhca_create_shadow_req req;

	if (has_shadow(&s.uv)) {
		s.shadow = uv_mem(PAGE);
		req = good_req(s.shadow);
		REQUIRE_OK(uv_create_shadow(&s.uv, &req));
	}
	return s;
}

static void ask(struct scene *s)
{
	atomic_thread_fence(memory_order_release);
	uv_ring(s->uv.db, QHCA_DB_SHADOW, 0);
}

static void ring_slot(struct scene *s, uint32_t slot, uint32_t reg, uint64_t obj, uint32_t index)
{
	uint64_t val = QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj |
		       QHCA_PREP(QHCA_DB_KIND, (uint64_t)reg / 8);

	s->shadow->slot[slot] = htole64(val);
	__atomic_fetch_or(&s->shadow->rung[slot / 64], htole64(1ull << slot % 64),
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&s->shadow->look, htole64(1ull << slot / 64), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->shadow->ask, __ATOMIC_SEQ_CST))
		ask(s);
}

static const struct uv_change bad_reqs[] = {
	{ "no slots", UV_FIELD(qhca_create_shadow_req, slots), 0, EINVAL },
	{ "more slots than memory", UV_FIELD(qhca_create_shadow_req, slots), SLOTS + 1, EINVAL },
	{ "too many slots", UV_FIELD(qhca_create_shadow_req, slots), QHCA_SHADOW_SLOTS_MAX + 1,
	  EINVAL },
	{ "all slots", UV_FIELD(qhca_create_shadow_req, slots), UINT32_MAX, EINVAL },
	{ "no memory", UV_FIELD(qhca_create_shadow_req, len), 0, EINVAL },
	{ "address 0", UV_FIELD(qhca_create_shadow_req, addr), 0, 0 },
	{ "address of nobody", UV_FIELD(qhca_create_shadow_req, addr), 1ull << 62, 0 },
	{ "address 8", UV_FIELD(qhca_create_shadow_req, addr), 8, EINVAL },
};

TEST_ROWS(refused_slots, "requests for doorbells in memory that are refused", bad_reqs)
{
	struct uv uv = uv_open(dev_open_qhca());
	struct qhca_create_shadow_req req = good_req(uv_mem(PAGE));

	if (!has_shadow(&uv))
		return;
	uv_apply(&req, row);
	uv_check_refused(uv_create_shadow(&uv, &req), row->err);
	req = good_req(uv_mem(PAGE));
	CHECK_EQ(uv_create_shadow(&uv, &req), 0);
	CHECK_EQ(uv_create_shadow(&uv, &req), EBUSY);
}

TEST(own_slots, "J-020 doorbells in memory for the context's own objects are no errors")
{
	struct scene s = scene_with_shadow();

	if (!s.shadow)
		return;
	ring_slot(&s, 0, QHCA_DB_RQ, s.qp.qpn, 1);
	check_counted(&s, 0);
	ring_slot(&s, 0, QHCA_DB_RQ, s.qp.qpn, 9);
	ring_slot(&s, 0, QHCA_DB_RQ, s.qp.qpn, 16);
	check_counted(&s, 0);
	ring_slot(&s, SLOTS - 1, QHCA_DB_RQ, s.qp.qpn, 15);
	check_counted(&s, 1);
}

TEST(foreign_slots, "J-020 memory of one context does not ring for objects of another")
{
	struct scene s = scene_with_shadow();

	if (!s.shadow)
		return;
	ring_slot(&s, 1, QHCA_DB_SQ, s.p.a.qp->qp_num, 2);
	ring_slot(&s, 2, QHCA_DB_RQ, s.p.b.qp->qp_num, 2);
	ring_slot(&s, 3, QHCA_DB_SQ, 0x123456, 1);
	check_counted(&s, 3);
	poll_none(s.p.a.send_cq);
}

TEST(arms_in_record, "J-020 no doorbell arms a CQ that has its arms in memory")
{
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct scene s = scene_new();
	struct uv_cq cq;

	req.flags = QHCA_CREATE_CQ_DBREC;
	if (!has_shadow(&s.uv)) {
		CHECK_ERR(uv_create_cq(&s.uv, 64, &req, sizeof(req), &cq), EOPNOTSUPP);
		return;
	}
	REQUIRE_OK(uv_create_cq(&s.uv, 64, &req, sizeof(req), &cq));
	ring(s.uv.db, QHCA_DB_CQ_ARM, cq.cqn, 1);
	check_counted(&s, 1);
}

TEST(kernel_slots, "J-020 a user rings doorbells in memory that it cannot")
{
	const uint32_t reg[] = {
		QHCA_DB_EQ, QHCA_DB_CMD, QHCA_DB_ETH, QHCA_DB_CQ_ARM, QHCA_DB_SHADOW, 0x3f8,
	};
	struct scene s = scene_with_shadow();
	uint32_t i;

	if (!s.shadow)
		return;
	for (i = 0; i < ARRAY_SIZE(reg); i++)
		ring_slot(&s, i, reg[i], reg[i] == QHCA_DB_CQ_ARM ? s.cq.cqn : 0, 1);
	check_counted(&s, ARRAY_SIZE(reg));
	CHECK(ibv_alloc_pd(s.d->ctx));
}

TEST(nonsense_slots, "J-020 bits without slots, and slots with nonsense")
{
	struct scene s = scene_with_shadow();

	if (!s.shadow)
		return;
	memset(s.shadow, 0xff, PAGE);
	ask(&s);
	check_counted(&s, SLOTS);
	memset(s.shadow, 0, PAGE);
	ring_slot(&s, 5, QHCA_DB_RQ, s.qp.qpn, 16);
	check_counted(&s, 0);
}

