// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells in a process's memory: what is there is judged as in the doorbell page. Only devices
 * that are another process offer this.
 */
#include <qhca/queues.h>
#include <qhca/regs.h>

#include "lib/uverbs.h"

#define PAGE	4096
#define SLOTS	384

/* struct scene - a pair of libibverbs, and a raw context with a CQ, a QP in INIT and doorbells */
struct scene {
	struct dev *d;
	struct pair p;
	struct uv uv;
	struct uv_cq cq;
	struct uv_qp qp;
	struct qhca_shadow *shadow;	/* NULL: the device has none */
	uint64_t bad;			/* bad_doorbell so far */
};

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

static struct scene scene_new(void)
{
	struct scene s = { .d = dev_open_qhca() };
	struct qhca_create_cq_req cq = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct qhca_create_qp_req qp = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };
	struct qhca_create_shadow_req req;
	void *mem = uv_mem(PAGE);

	s.p = pair_new(s.d, &QP_OPTS, &CONN);
	s.uv = uv_open(s.d);
	REQUIRE_OK(uv_create_cq(&s.uv, 64, &cq, sizeof(cq), &s.cq));
	REQUIRE_OK(uv_create_qp(&s.uv, &s.cq, &cap, &qp, sizeof(qp), &s.qp));
	REQUIRE_OK(uv_qp_to_init(&s.uv, &s.qp));
	if (has_shadow(&s.uv)) {
		req = good_req(mem);
		REQUIRE_OK(uv_create_shadow(&s.uv, &req));
		s.shadow = mem;
	}
	ping_pong(&s.p);
	s.bad = hw_counter("bad_doorbell");
	return s;
}

static void ask(struct scene *s)
{
	__atomic_store_n((uint64_t *)((uint8_t *)s->uv.db + QHCA_DB_SHADOW), 0, __ATOMIC_RELEASE);
}

static void ring(struct scene *s, uint32_t slot, uint32_t reg, uint64_t obj, uint32_t index)
{
	uint64_t val = QHCA_PREP(QHCA_DB_INDEX, (uint64_t)index) | obj |
		       QHCA_PREP(QHCA_DB_KIND, (uint64_t)reg / 8);

	s->shadow->slot[slot] = val;
	__atomic_fetch_or(&s->shadow->rung[slot / 64], 1ull << slot % 64, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&s->shadow->look, 1ull << slot / 64, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->shadow->ask, __ATOMIC_SEQ_CST))
		ask(s);
}

/* The query of the counters is a command, before which the device looks. */
static void check_counted(struct scene *s, unsigned int n)
{
	uint64_t now = hw_counter("bad_doorbell");

	CHECK_EQ(now - s->bad, n);
	s->bad = now;
	ping_pong(&s->p);
	CHECK_EQ(get_state(s->p.a.qp), IBV_QPS_RTS);
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

TEST_ROWS(refused, "requests for doorbells in memory that are refused", bad_reqs)
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

TEST(own, "J-020 doorbells in memory for the context's own objects are no errors")
{
	struct scene s = scene_new();

	if (!s.shadow)
		return;
	ring(&s, 0, QHCA_DB_RQ, s.qp.qpn, 1);
	check_counted(&s, 0);
	ring(&s, 0, QHCA_DB_RQ, s.qp.qpn, 9);
	ring(&s, 0, QHCA_DB_RQ, s.qp.qpn, 16);
	check_counted(&s, 0);
	ring(&s, SLOTS - 1, QHCA_DB_RQ, s.qp.qpn, 15);
	check_counted(&s, 1);
}

TEST(foreign, "J-020 memory of one context does not ring for objects of another")
{
	struct scene s = scene_new();

	if (!s.shadow)
		return;
	ring(&s, 1, QHCA_DB_SQ, s.p.a.qp->qp_num, 2);
	ring(&s, 2, QHCA_DB_RQ, s.p.b.qp->qp_num, 2);
	ring(&s, 3, QHCA_DB_SQ, 0x123456, 1);
	check_counted(&s, 3);
	poll_none(s.p.a.send_cq);
}

TEST(kernel_doorbells, "J-020 a user rings doorbells in memory that it cannot")
{
	const uint32_t reg[] = {
		QHCA_DB_EQ, QHCA_DB_CMD, QHCA_DB_ETH, QHCA_DB_CQ_ARM, QHCA_DB_SHADOW, 0x3f8,
	};
	struct scene s = scene_new();
	uint32_t i;

	if (!s.shadow)
		return;
	for (i = 0; i < ARRAY_SIZE(reg); i++)
		ring(&s, i, reg[i], reg[i] == QHCA_DB_CQ_ARM ? s.cq.cqn : 0, 1);
	check_counted(&s, ARRAY_SIZE(reg));
	CHECK(ibv_alloc_pd(s.d->ctx));
}

TEST(nonsense, "J-020 bits without slots, and slots with nonsense")
{
	struct scene s = scene_new();

	if (!s.shadow)
		return;
	memset(s.shadow, 0xff, PAGE);
	ask(&s);
	check_counted(&s, SLOTS);
	memset(s.shadow, 0, PAGE);
	ring(&s, 5, QHCA_DB_RQ, s.qp.qpn, 16);
	check_counted(&s, 0);
}

