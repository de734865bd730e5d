// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell pages: a bad doorbell is counted and does no harm, and a page rings only the objects of
 * its own context.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "lib/uverbs.h"

#define PAGE	4096

static void ring_raw(void *page, uint32_t reg, uint64_t value)
{
	atomic_store_explicit((atomic_ullong *)((uint8_t *)page + reg), value,
			      memory_order_relaxed);
}

static void ring(void *page, uint32_t reg, uint64_t obj, uint32_t index)
{
	ring_raw(page, reg, QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj);
}

/* struct scene - a pair of libibverbs, and a raw context with a CQ and a QP in INIT */
struct scene {
	struct dev *d;
	struct pair p;
	struct uv uv;
	struct uv_cq cq;
	struct uv_qp qp;
	uint64_t bad;		/* bad_doorbell so far */
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
	uint8_t *db = s.uv.db;

	atomic_store_explicit((atomic_uint *)(db + QHCA_DB_SQ), s.qp.qpn,
			      memory_order_relaxed);
	atomic_store_explicit((atomic_uint *)(db + QHCA_DB_SQ + 4), 1,
			      memory_order_relaxed);
	atomic_store_explicit((atomic_ushort *)(db + QHCA_DB_RQ), 1,
			      memory_order_relaxed);
	atomic_store_explicit((atomic_uchar *)(db + QHCA_DB_CQ_ARM), 1,
			      memory_order_relaxed);
	check_counted(&s, 4);
}

TEST(junk, "J-020 ten thousand random doorbells do no harm")
{
	struct scene s = scene_new();
	unsigned int seed = 1, i;

	for (i = 0; i < 10000; i++) {
		uint64_t v = (uint64_t)rand_r(&seed) << 33 ^
			     (uint64_t)rand_r(&seed) << 8 ^ rand_r(&seed);

		ring_raw(s.uv.db, rand_r(&seed) & 0x78, v);
	}
	CHECK(hw_counter("bad_doorbell") - s.bad >= 9000);
	ping_pong(&s.p);
	CHECK(ibv_alloc_pd(s.d->ctx));
}
