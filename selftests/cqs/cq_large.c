// SPDX-License-Identifier: GPL-2.0
/*
 * The largest CQ, filled to the last entry. Most completions are of flushed receive WRs, which is
 * the fastest way to make that many.
 */
#include <stdlib.h>

#include "lib/rdma.h"

#define BATCH	128
#define MAX_QPS	1024

/* The next wr_id that each QP completes; each QP has @per_qp of them. */
static uint64_t expected[MAX_QPS];
static uint32_t num_qps, per_qp;

/* Posts @n receive WRs with wr_ids from @id to @e. */
static void post_many(struct end *e, uint64_t id, uint32_t n)
{
	struct ibv_recv_wr wr[BATCH] = {}, *bad;
	uint32_t i, k;

	for (; n; n -= k, id += k) {
		k = n < BATCH ? n : BATCH;
		for (i = 0; i < k; i++) {
			wr[i].wr_id = id + i;
			wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
		}
		REQUIRE_OK(ibv_post_recv(e->qp, wr, &bad));
	}
}

/*
 * Makes @n completions on @cq, with wr_ids from 0, of QPs that stay. The device writes them when it
 * has time, and for different QPs in any order.
 */
static void flush_many(struct dev *d, struct ibv_cq *cq, uint32_t n)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	uint64_t id = 0;
	struct end e;
	uint32_t k;

	per_qp = d->attr.max_qp_wr;
	for (num_qps = 0; n; n -= k, id += k) {
		REQUIRE(num_qps < MAX_QPS);
		k = n < per_qp ? n : per_qp;
		o.recv_wr = k;
		o.recv_cq = cq;
		e = end_new(d, &o);
		qp_bring(&e, &c, IBV_QPS_INIT);
		post_many(&e, id, k);
		expected[num_qps++] = id;
		REQUIRE_OK(set_state(e.qp, IBV_QPS_ERR));
	}
}

static bool is_expected(const struct ibv_wc *wc)
{
	uint64_t qp = wc->wr_id / per_qp;

	return qp < num_qps && expected[qp]++ == wc->wr_id &&
	       wc->status == IBV_WC_WR_FLUSH_ERR;
}

static void poll_many(struct ibv_cq *cq, uint32_t n)
{
	int64_t end = time_ms() + 60000;
	struct ibv_wc wc[BATCH];
	int got, i;

	for (; n; n -= got) {
		got = ibv_poll_cq(cq, n < BATCH ? n : BATCH, wc);
		REQUIRE(got >= 0);
		if (!got && time_ms() > end) {
			FAIL("%u completions are missing", n);
			test_die();
		}
		for (i = 0; i < got; i++) {
			if (is_expected(&wc[i]))
				continue;
			FAIL("unexpected completion %llu: %s",
			     (unsigned long long)wc[i].wr_id,
			     ibv_wc_status_str(wc[i].status));
			test_die();
		}
	}
}

/* Resizes a CQ to the same size and notes how long that takes, with and without CQEs to move. */
static void resize_timed(struct ibv_cq *cq, const char *what)
{
	int64_t begin = time_ms();

	CHECK_ERR(ibv_resize_cq(cq, cq->cqe), 0);
	test_note("%s, resized in %lld ms", what, (long long)(time_ms() - begin));
}

static struct ibv_cq *full_cq(struct dev *d)
{
	struct ibv_cq *cq = cq_new(d, d->attr.max_cqe, NULL);

	test_timeout(300);
	resize_timed(cq, "empty");
	CHECK(d->attr.max_cqe >= 196608);	/* libfabric's verbs;ofi_rxm */
	CHECK_EQ(cq->cqe, d->attr.max_cqe);
	flush_many(d, cq, cq->cqe);
	async_none(d->ctx);
	return cq;
}

TEST(holds, "C-001 C-002 J-035 a CQ of max_cqe entries holds as many, and no more")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = full_cq(d);

	poll_many(cq, cq->cqe);
	poll_empty(cq);
	flush_many(d, cq, 100);
	poll_many(cq, 100);
	flush_many(d, cq, cq->cqe + 1);
	async_expect(d->ctx, IBV_EVENT_CQ_ERR, cq);
}

TEST(resize, "C-026 resizing a CQ that is full loses nothing")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = full_cq(d);

	resize_timed(cq, "full");
	poll_many(cq, cq->cqe - 30);
	sleep_ms(1000);			/* wait for the last completions */
	CHECK_ERR(ibv_resize_cq(cq, 16), EINVAL);
	CHECK_ERR(ibv_resize_cq(cq, 32), 0);
	poll_many(cq, 30);
	poll_empty(cq);
}
