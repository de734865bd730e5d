// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of requests, lists of SGEs, inline data and signaling as the provider writes them into the
 * rings, which wrap around.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/wr_ex.h"

/* Divides the first @len bytes of @b into @n SGEs of different lengths. */
static void cut(struct ibv_sge *sge, int n, const struct buf *b, uint32_t len)
{
	uint32_t done = 0, part;
	int i;

	for (i = 0; i < n; i++) {
		part = i == n - 1 ? len - done : (len / n) / 2 + i;
		if (part > len - done)
			part = len - done;
		sge[i] = buf_sge(b, done, part);
		done += part;
	}
}

TEST(sges, "A-013 gather and scatter with as many SGEs as the device has")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open();
	int max = d->attr.max_sge, n;
	struct buf src = buf_new(d->pd, 100000, REMOTE);
	struct buf dst = buf_new(d->pd, 100000, REMOTE);
	struct ibv_sge out[256], in[256];
	struct pair p;

	REQUIRE(max <= 256);
	o.send_sge = max;
	o.recv_sge = max;
	p = pair_new(d, &o, &CONN);
	for (n = 1; n <= max; n++) {
		uint32_t len = 40000 + 1111 * n;
		struct ibv_send_wr wr = wr_send(n, out, n);

		fill(src.addr, src.len, n);
		memset(dst.addr, 0, dst.len);
		cut(out, n, &src, len);
		cut(in, max + 1 - n, &dst, len);
		REQUIRE_OK(post_recv(&p.b, n, in, max + 1 - n));
		REQUIRE_OK(post_send(&p.a, &wr));
		CHECK_EQ(poll_ok(p.b.recv_cq, n).byte_len, len);
		poll_ok(p.a.send_cq, n);
		check_fill(dst.addr, len, n, "message");
		CHECK_EQ(dst.addr[len], 0);
	}
	max = d->attr.max_sge_rd;
	memset(src.addr, 0, src.len);
	fill(dst.addr, dst.len, 1);
	cut(in, max, &src, 60000);
	struct ibv_send_wr read = wr_rdma(1, IBV_WR_RDMA_READ, in, max,
					  (uintptr_t)dst.addr, dst.mr->rkey);
	REQUIRE_OK(post_send(&p.a, &read));
	poll_ok(p.a.send_cq, 1);
	check_fill(src.addr, 60000, 1, "read");
}

TEST(inline_data, "B-053 inline: copied at once, key unused, all lengths")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open();
	struct buf dst = buf_new(d->pd, 65536, REMOTE);
	uint8_t src[4096];
	struct pair p;
	uint32_t len;

	o.inline_data = 64;
	o.send_sge = 3;
	p = pair_new(d, &o, &CONN);
	REQUIRE(p.a.cap.max_inline_data < sizeof(src));
	for (len = 0; len <= p.a.cap.max_inline_data; len++) {
		uint32_t one = len / 3, two = len / 2 - len / 3;
		struct ibv_sge out[3] = {
			{ (uintptr_t)src, one, 0x4711 },
			{ (uintptr_t)src + one, two, 0 },
			{ (uintptr_t)src + one + two, len - one - two, ~0u },
		};
		struct ibv_send_wr wr = wr_rdma(len, IBV_WR_RDMA_WRITE_WITH_IMM,
						out, 3, (uintptr_t)dst.addr,
						dst.mr->rkey);

		wr.send_flags |= IBV_SEND_INLINE;
		fill(src, len, len);
		dst.addr[len] = 0xa5;
		REQUIRE_OK(post_recv(&p.b, len, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &wr));
		memset(src, 0, sizeof(src));
		CHECK_EQ(poll_ok(p.b.recv_cq, len).byte_len, len);
		poll_ok(p.a.send_cq, len);
		check_fill(dst.addr, len, len, "inline data");
		CHECK_EQ(dst.addr[len], 0xa5);
	}
}

/* Fills the queue with one list and polls all completions, more than three times. */
TEST(wrap, "B-037 B-023 full queues, posted as one list, wrap around")
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open();
	struct ibv_send_wr *send, *bad;
	struct ibv_recv_wr *recv, *bad_recv;
	struct ibv_sge *in, *out;
	struct buf src, dst;
	struct pair p;
	uint32_t i, n, round;

	o.send_wr = 24;
	o.recv_wr = 24;
	o.cqe = 256;
	p = pair_new(d, &o, &CONN);
	n = p.a.cap.max_send_wr < p.b.cap.max_recv_wr ?
	    p.a.cap.max_send_wr : p.b.cap.max_recv_wr;
	REQUIRE(n <= 128);
	src = buf_new(d->pd, n * 100, LOCAL);
	dst = buf_new(d->pd, n * 100, LOCAL);
	send = calloc(n, sizeof(*send));
	recv = calloc(n, sizeof(*recv));
	out = calloc(n, sizeof(*out));
	in = calloc(n, sizeof(*in));
	for (round = 0; round < 10; round++) {
		fill(src.addr, src.len, round);
		for (i = 0; i < n; i++) {
			out[i] = buf_sge(&src, i * 100, 100);
			in[i] = buf_sge(&dst, i * 100, 100);
			send[i] = wr_send(i, &out[i], 1);
			send[i].next = i + 1 < n ? &send[i + 1] : NULL;
			recv[i] = (struct ibv_recv_wr){
				i, i + 1 < n ? &recv[i + 1] : NULL, &in[i], 1
			};
		}
		CHECK_ERR(ibv_post_recv(p.b.qp, recv, &bad_recv), 0);
		CHECK_ERR(ibv_post_send(p.a.qp, send, &bad), 0);
		for (i = 0; i < n; i++) {
			poll_ok(p.a.send_cq, i);
			poll_ok(p.b.recv_cq, i);
		}
		check_fill(dst.addr, dst.len, round, "all messages");
	}
}

/* Three times round the ring, half of the requests unsignaled; then none is signaled. */
TEST(signaled, "B-040 B-042 B-043 B-077 only signaled requests complete, and free all slots")
{
	struct pair p = pair_default();
	uint32_t depth = p.a.cap.max_send_wr, i;
	struct ibv_send_wr plain = wr_send(1, NULL, 0), wr = wr_send(0, NULL, 0);

	plain.send_flags = 0;
	for (i = 0; i < 3 * depth; i++) {
		wr.wr_id = 1000 + i;
		REQUIRE_OK(post_recv(&p.b, 2 * i, NULL, 0));
		REQUIRE_OK(post_recv(&p.b, 2 * i + 1, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &plain));
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, 1000 + i);
		poll_ok(p.b.recv_cq, 2 * i);
		poll_ok(p.b.recv_cq, 2 * i + 1);
	}
	for (i = 0; i < depth; i++) {
		REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &plain));
		poll_ok(p.b.recv_cq, i);
	}
	poll_none(p.a.send_cq);
	if (p.dev->qhca)
		CHECK_ERR(post_send(&p.a, &plain), ENOMEM);
}

TEST(sig_all, "B-040 with sq_sig_all every request completes")
{
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	struct pair p;
	int i;

	o.sig_all = 1;
	p = pair_new(dev_open(), &o, &CONN);
	for (i = 0; i < 40; i++) {
		wr.wr_id = i;
		wr.send_flags = i & 1 ? IBV_SEND_SIGNALED : 0;
		REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
		REQUIRE_OK(post_send(&p.a, &wr));
		poll_ok(p.a.send_cq, i);
		poll_ok(p.b.recv_cq, i);
	}
}

#define POSTERS		4
#define PER_POSTER	200

struct poster {
	struct pair *p;
	int id;
	pthread_t thread;
};

static atomic_bool posted;

/* Half of the threads use the extended verbs. */
static int post_one(struct poster *t, uint64_t id)
{
	struct ibv_send_wr wr = wr_send(id, NULL, 0);
	struct ibv_qp_ex *q;

	if (t->id % 2)
		return post_send(&t->p->a, &wr);
	q = wr_start(&t->p->a, id);
	ibv_wr_send(q);
	ibv_wr_set_sge_list(q, 0, NULL);
	return ibv_wr_complete(q);
}

static void *poster(void *arg)
{
	struct poster *t = arg;
	int i, err;

	for (i = 0; i < PER_POSTER; i++) {
		do {
			err = post_one(t, t->id * PER_POSTER + i);
			if (err == ENOMEM)
				sleep_ms(1);
		} while (err == ENOMEM);
		if (err) {
			FAIL("post: %s", strerror(err));
			return NULL;
		}
	}
	return NULL;
}

TEST(threads, "B-034 several threads post to one QP: no request is lost or duplicated")
{
	struct poster t[POSTERS];
	uint8_t seen[POSTERS * PER_POSTER] = { 0 };
	int last[POSTERS], n, who;
	struct pair p = pair_ex(dev_open(), IBV_QP_EX_WITH_SEND, &CONN);
	unsigned int i;

	for (i = 0; i < p.b.cap.max_recv_wr; i++)
		REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
	for (i = 0; i < POSTERS; i++) {
		last[i] = -1;
		t[i] = (struct poster){ .p = &p, .id = i };
		REQUIRE_OK(pthread_create(&t[i].thread, NULL, poster, &t[i]));
	}
	for (n = 0; n < POSTERS * PER_POSTER; n++) {
		struct ibv_wc wc = poll_get(p.a.send_cq);

		REQUIRE(wc.status == IBV_WC_SUCCESS);
		REQUIRE(wc.wr_id < sizeof(seen));
		CHECK_EQ(seen[wc.wr_id]++, 0);
		who = wc.wr_id / PER_POSTER;
		CHECK((int)wc.wr_id > last[who]);
		last[who] = wc.wr_id;
		wc = poll_get(p.b.recv_cq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		REQUIRE_OK(post_recv(&p.b, wc.wr_id, NULL, 0));
	}
	for (i = 0; i < POSTERS; i++)
		pthread_join(t[i].thread, NULL);
	poll_none(p.a.send_cq);
}

static void *post_once(void *arg)
{
	struct poster *t = arg;

	CHECK_ERR(post_one(t, t->id), 0);
	atomic_store(&posted, true);
	return NULL;
}

TEST(held, "B-034 from ibv_wr_start() to ibv_wr_complete() no other thread posts")
{
	struct poster t = { 0 };
	struct pair p = pair_ex(dev_open(), IBV_QP_EX_WITH_SEND, &CONN);
	struct ibv_qp_ex *q;

	t.p = &p;
	for (t.id = 0; t.id < 2; t.id++) {
		REQUIRE_OK(post_recv(&p.b, 0, NULL, 0));
		REQUIRE_OK(post_recv(&p.b, 1, NULL, 0));
		atomic_store(&posted, false);
		q = wr_start(&p.a, 9);
		REQUIRE_OK(pthread_create(&t.thread, NULL, post_once, &t));
		sleep_ms(QUIET_MS);
		CHECK(!atomic_load(&posted));
		ibv_wr_send(q);
		ibv_wr_set_sge_list(q, 0, NULL);
		REQUIRE_OK(ibv_wr_complete(q));
		REQUIRE_OK(pthread_join(t.thread, NULL));
		poll_ok(p.a.send_cq, 9);
		poll_ok(p.a.send_cq, t.id);
		poll_ok(p.b.recv_cq, 0);
		poll_ok(p.b.recv_cq, 1);
	}
}
