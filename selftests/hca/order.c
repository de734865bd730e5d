// SPDX-License-Identifier: GPL-2.0
/*
 * Guarantees that a program has when data reach memory in any legal order, and some that it has not
 * (Documentation/faults.rst, The order of data).
 */
#include <unistd.h>

#include "lib/faults.h"

#define LEN	4096
#define TRIES	200

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
}

/* struct scene - a connection, and a buffer for WRITEs from a to b */
struct scene {
	struct pair p;
	struct buf src, dst, message;
};

static struct scene scene(const char *rule)
{
	struct dev *d = faults_open();
	struct scene s;

	s.p = pair_new(d, &QP_OPTS, &CONN);
	s.src = buf_new(d->pd, LEN, LOCAL);
	s.dst = buf_new(d->pd, LEN, REMOTE);
	s.message = buf_new(d->pd, LEN, REMOTE);
	memset(s.src.addr, 0xff, LEN);
	REQUIRE_OK(faults_set(rule));
	return s;
}

static void write_to(struct scene *s, const struct buf *dst, uint32_t len)
{
	struct ibv_sge sge = buf_sge(&s->src, 0, len);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)dst->addr,
					dst->mr->rkey);

	REQUIRE_OK(post_send(&s->p.a, &wr));
}

/* Waits for a message behind all WRITEs. */
static void sync_both(struct scene *s)
{
	struct ibv_sge sge = buf_sge(&s->message, 0, LEN), out = buf_sge(&s->src, 0, LEN);
	struct ibv_send_wr wr = wr_send(2, &out, 1);

	REQUIRE_OK(post_recv(&s->p.b, 100, &sge, 1));
	REQUIRE_OK(post_send(&s->p.a, &wr));
	poll_ok(s->p.b.recv_cq, 100);
}

static bool is_all(const struct buf *b, size_t len)
{
	const uint8_t *p = b->addr;

	for (size_t i = 0; i < len; i++) {
		if (__atomic_load_n(&p[i], __ATOMIC_RELAXED) != 0xff)
			return false;
	}
	return true;
}

/* How often the last of @len bytes is there before the others. */
static unsigned int torn(const char *rule, uint32_t len)
{
	struct scene s = scene(rule);
	const uint8_t *last = (uint8_t *)s.dst.addr + len - 1;
	unsigned int n = 0;

	for (int i = 0; i < TRIES; i++) {
		memset(s.dst.addr, 0, LEN);
		write_to(&s, &s.dst, len);
		while (!__atomic_load_n(last, __ATOMIC_ACQUIRE))
			;
		n += !is_all(&s.dst, len);
		sync_both(&s);
		CHECK(is_all(&s.dst, len));
		poll_ok(s.p.a.send_cq, 1);
		poll_ok(s.p.a.send_cq, 2);
	}
	return n;
}

TEST(last_byte, "the last byte of a WRITE says nothing about the others")
{
	unsigned int n = torn("port order=adversarial within=200us", LEN);

	test_note("%u of %d WRITEs", n, TRIES);
	CHECK(n > 0);
}

TEST(word, "with a grain of 8 bytes, aligned words are whole")
{
	CHECK_EQ(torn("port order=adversarial within=200us grain=8", 8), 0);
}

TEST(flag, "a flag that is written behind the data says nothing about them")
{
	struct scene s = scene("port order=adversarial within=200us");
	const uint8_t *seen = s.message.addr;
	unsigned int n = 0;

	for (int i = 0; i < TRIES; i++) {
		memset(s.dst.addr, 0, LEN);
		memset(s.message.addr, 0, LEN);
		write_to(&s, &s.dst, LEN);
		write_to(&s, &s.message, 1);
		while (!__atomic_load_n(seen, __ATOMIC_ACQUIRE))
			;
		n += !is_all(&s.dst, LEN);
		poll_ok(s.p.a.send_cq, 1);
		poll_ok(s.p.a.send_cq, 1);
	}
	test_note("%u of %d flags", n, TRIES);
	CHECK(n > 0);
}

TEST(message, "a message behind the data says that they are there")
{
	struct scene s = scene("port order=adversarial within=200us");

	for (int i = 0; i < TRIES; i++) {
		memset(s.dst.addr, 0, LEN);
		memset(s.message.addr, 0, LEN);
		write_to(&s, &s.dst, LEN);
		sync_both(&s);
		CHECK(is_all(&s.dst, LEN) && is_all(&s.message, LEN));
		poll_ok(s.p.a.send_cq, 1);
		poll_ok(s.p.a.send_cq, 2);
	}
}

TEST(deregistered, "nothing is written to a region that has been deregistered")
{
	struct scene s = scene("port order=adversarial within=200us");
	struct buf b;

	for (int i = 0; i < TRIES; i++) {
		b = buf_new(s.p.dev->pd, LEN, REMOTE);
		write_to(&s, &b, LEN);
		poll_ok(s.p.a.send_cq, 1);
		REQUIRE_OK(ibv_dereg_mr(b.mr));
		CHECK(is_all(&b, LEN));
		memset(b.addr, 0, LEN);
		usleep(300);
		CHECK(!is_all(&b, 1));
	}
}
