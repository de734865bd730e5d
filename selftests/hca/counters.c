// SPDX-License-Identifier: GPL-2.0
/* Hardware counters of the port and of the device. */
#include <stdlib.h>
#include <sys/mman.h>

#include <qhca/counters.h>

#include "lib/uverbs.h"

static void read_all(uint64_t *value)
{
	size_t i;

	for (i = 0; i < QHCA_CNT_MAX; i++)
		value[i] = hw_counter(qhca_counter_names[i]);
}

TEST(exist, "J-017 every counter can be read")
{
	size_t i;

	dev_open_qhca();
	for (i = 0; i < QHCA_CNT_MAX; i++)
		if (!hw_counter_exists(qhca_counter_names[i]))
			FAIL("no counter %s", qhca_counter_names[i]);
}

static void one_send(struct pair *p, uint32_t len)
{
	struct buf src = buf_new(p->dev->pd, len, LOCAL);
	struct buf dst = buf_new(p->dev->pd, len, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, len), in = buf_sge(&dst, 0, len);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	REQUIRE_OK(post_recv(&p->b, 2, &in, 1));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->b.recv_cq, 2);
	poll_ok(p->a.send_cq, 1);
}

TEST(traffic, "J-017 packets and bytes of one message")
{
	const uint32_t len = 3000;	/* 3 packets of up to 1024 bytes */
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	uint64_t tx = hw_counter("tx_pkts"), rx = hw_counter("rx_pkts");
	uint64_t tx_bytes = hw_counter("tx_bytes"), rx_bytes = hw_counter("rx_bytes");
	uint64_t ack = hw_counter("tx_ack");
	uint64_t acks, pkts, bytes;

	one_send(&p, len);
	acks = hw_counter("tx_ack") - ack;
	pkts = hw_counter("tx_pkts") - tx;
	bytes = hw_counter("tx_bytes") - tx_bytes;
	CHECK(acks >= 1 && acks <= 3);
	CHECK_EQ(pkts, 3 + acks);
	CHECK_EQ(hw_counter("rx_pkts") - rx, pkts);
	CHECK_EQ(hw_counter("rx_bytes") - rx_bytes, bytes);
	CHECK(bytes >= len + pkts * 48);
	CHECK(bytes <= len + pkts * 80);
}

/* Causes of errors; each must count in its own counter. */

static void rnr(struct pair *p, struct buf *b)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void no_peer(struct pair *p, struct buf *b)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(set_state(p->b.qp, IBV_QPS_ERR));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

static void gone_peer(struct pair *p, struct buf *b)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(ibv_destroy_qp(p->b.qp));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

static void bad_rkey(struct pair *p, struct buf *b)
{
	struct ibv_sge sge = buf_sge(b, 0, 8);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b->addr, b->mr->rkey ^ 1);

	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static void short_rr(struct pair *p, struct buf *b)
{
	struct ibv_sge sge = buf_sge(b, 0, 8);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	REQUIRE_OK(post_recv(&p->b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
}

static void bad_rr(struct pair *p, struct buf *b)
{
	struct ibv_sge out = buf_sge(b, 0, 8), in = buf_sge(b, 0, 8);
	struct ibv_send_wr wr = wr_send(1, &out, 1);

	in.lkey ^= 1;
	REQUIRE_OK(post_recv(&p->b, 2, &in, 1));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_REM_OP_ERR);
}

static void wrong_psn(struct pair *p, struct buf *b)
{
	struct conn c = CONN;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	/* The peer expects an earlier packet. */
	REQUIRE_OK(set_state(p->b.qp, IBV_QPS_RESET));
	c.dest_qpn = p->a.qp->qp_num;
	c.rq_psn = c.sq_psn - 1;
	qp_bring(&p->b, &c, IBV_QPS_RTS);
	REQUIRE_OK(post_recv(&p->b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_expect(p->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

static void duplicate(struct pair *p, struct buf *b)
{
	struct conn c = CONN;
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	/* The peer expects a later packet, so it treats this one as a duplicate. */
	REQUIRE_OK(set_state(p->b.qp, IBV_QPS_RESET));
	c.dest_qpn = p->a.qp->qp_num;
	c.rq_psn = c.sq_psn + 1;
	qp_bring(&p->b, &c, IBV_QPS_RTS);
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_get(p->a.send_cq);
}

/* A message over UC that has no receive WR. */
static void refused(struct pair *p, struct buf *b)
{
	struct qp_opts o = QP_OPTS;
	struct pair uc;

	o.type = IBV_QPT_UC;
	uc = pair_new(p->dev, &o, &CONN);
	send_id(&uc.a, 1);
	poll_ok(uc.a.send_cq, 1);
	send_empty(&uc);
	poll_ok(uc.b.recv_cq, 2);
}

static const struct {
	const char *name;
	void (*provoke)(struct pair *p, struct buf *b);
	const char *counter[4];
	uint64_t at_least;
} causes[] = {
	{ "receiver not ready", rnr,
	  { "tx_rnr_nak", "rx_rnr_nak" }, 2 },
	{ "RNR retries exceeded", rnr, { "rnr_retry_exc" }, 1 },
	{ "peer in ERR", no_peer,
	  { "rx_bad_state", "timeout", "retransmit" }, 1 },
	{ "retries exceeded", no_peer, { "retry_exc" }, 1 },
	{ "peer gone", gone_peer, { "rx_no_qp" }, 2 },
	{ "bad rkey", bad_rkey,
	  { "tx_nak_access", "rx_nak_fatal", "bad_key" }, 1 },
	{ "short receive request", short_rr,
	  { "tx_nak_inv_req", "rx_nak_fatal" }, 1 },
	{ "bad receive request", bad_rr,
	  { "tx_nak_op", "rx_nak_fatal", "bad_key" }, 1 },
	/* The NAK has a PSN that was never sent, so the requester does not count it (D-015). */
	{ "sequence error", wrong_psn, { "rx_out_of_seq", "tx_nak_seq" }, 1 },
	{ "duplicate", duplicate, { "rx_duplicate" }, 1 },
	{ "dropped message", refused, { "rx_refused" }, 1 },
};

TEST_ROWS(cause, "J-017 each cause counts in its own counter", causes)
{
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 64, REMOTE);
	uint64_t before[ARRAY_SIZE(row->counter)], now;
	struct conn c = CONN;
	struct pair p;
	size_t i, n;

	c.rnr_retry = 1;
	c.min_rnr_timer = 1;
	c.timeout = 10;
	c.retry_cnt = 2;
	p = pair_new(d, &QP_OPTS, &c);
	for (n = 0; n < ARRAY_SIZE(row->counter) && row->counter[n]; n++)
		before[n] = hw_counter(row->counter[n]);
	row->provoke(&p, &b);
	for (i = 0; i < n; i++) {
		now = hw_counter(row->counter[i]);
		if (now - before[i] < row->at_least)
			FAIL("%s: %llu, was %llu", row->counter[i],
			     (unsigned long long)now,
			     (unsigned long long)before[i]);
	}
}

TEST(monotonic, "J-017 counters never decrease")
{
	uint64_t before[QHCA_CNT_MAX], after[QHCA_CNT_MAX];
	struct dev *d = dev_open_qhca();
	size_t i;
	int n;

	test_timeout(120);
	read_all(before);
	for (n = 0; n < 3; n++) {
		struct pair p = pair_new(d, &QP_OPTS, &CONN);
		struct buf b = buf_new(d->pd, 64, REMOTE);

		one_send(&p, 100000);
		bad_rkey(&p, &b);
		read_all(after);
		for (i = 0; i < QHCA_CNT_MAX; i++)
			if (after[i] < before[i])
				FAIL("%s went back", qhca_counter_names[i]);
		memcpy(before, after, sizeof(before));
	}
}

TEST(quiet, "J-017 a connection without errors counts none")
{
	static const char *const errors[] = {
		"rx_icrc", "rx_malformed", "rx_no_qp", "rx_bad_state",
		"rx_bad_addr", "rx_bad_pkey", "rx_bad_qkey", "rx_duplicate",
		"rx_out_of_seq", "tx_nak_seq", "tx_nak_inv_req",
		"tx_nak_access", "tx_nak_op", "rx_nak_fatal", "timeout",
		"retransmit", "bad_doorbell", "bad_cmd", "bad_wqe", "bad_key",
		"dma_err", "bad_reg",
	};
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	uint64_t before[ARRAY_SIZE(errors)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		before[i] = hw_counter(errors[i]);
	for (i = 0; i < 50; i++)
		one_send(&p, 100000);
	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (hw_counter(errors[i]) != before[i])
			FAIL("%s moved", errors[i]);
}

/* ---- verbs that fail: the driver's part of the request is missing or invalid ---- */

static int bad_create_cq(struct dev *d, struct uv *uv)
{
	struct uv_cq cq;

	return uv_create_cq(uv, 16, NULL, 0, &cq);
}

static struct uv_cq small_cq(struct uv *uv)
{
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * 4096), 4);
	struct uv_cq cq;

	REQUIRE_OK(uv_create_cq(uv, 16, &req, sizeof(req), &cq));
	return cq;
}

static int bad_resize_cq(struct dev *d, struct uv *uv)
{
	struct uv_cq cq = small_cq(uv);

	return uv_resize_cq(uv, &cq, 16, NULL, 0);
}

static int bad_create_qp(struct dev *d, struct uv *uv)
{
	const struct ibv_qp_cap cap = { 16, 16, 1, 1, 0 };
	struct uv_cq cq = small_cq(uv);
	struct uv_qp qp;

	return uv_create_qp(uv, &cq, &cap, NULL, 0, &qp);
}

static int bad_modify_qp(struct dev *d, struct uv *uv)
{
	struct end e = end_new(d, &QP_OPTS);

	return set_state(e.qp, IBV_QPS_RTS);
}

static int bad_create_srq(struct dev *d, struct uv *uv)
{
	struct uv_srq srq;

	return uv_create_srq(uv, 16, 1, NULL, 0, &srq);
}

static int bad_modify_srq(struct dev *d, struct uv *uv)
{
	struct ibv_srq_attr attr = { .srq_limit = d->attr.max_srq_wr + 1 };

	return ibv_modify_srq(srq_new(d, 16, 1), &attr, IBV_SRQ_LIMIT);
}

static int bad_reg_mr(struct dev *d, struct uv *uv)
{
	return ibv_reg_mr(d->pd, (void *)0x10000000, 4096, LOCAL) ? 0 : errno;
}

static int bad_rereg_mr(struct dev *d, struct uv *uv)
{
	struct buf b = buf_new(d->pd, 4096, LOCAL);

	return ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)0x10000000, 4096,
			    0) ? errno : 0;
}

static bool has_dm(struct dev *d)
{
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return attr.max_dm_size;
}

static int bad_alloc_dm(struct dev *d, struct uv *uv)
{
	struct ibv_alloc_dm_attr attr = { .length = 1ull << 40 };

	return ibv_alloc_dm(d->ctx, &attr) ? 0 : errno;
}

static int bad_create_ah(struct dev *d, struct uv *uv)
{
	struct ibv_ah_attr attr = own_address(d);

	attr.static_rate = 1;
	return ibv_create_ah(d->pd, &attr) ? 0 : errno;
}

static int bad_mmap(struct dev *d, struct uv *uv)
{
	return mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, uv->fd, 4096ull << 30) != MAP_FAILED ?
	       0 : errno;
}

static const struct {
	const char *name;
	int (*fail)(struct dev *d, struct uv *uv);
} verbs[] = {
	{ "create_cq_err", bad_create_cq },
	{ "modify_cq_err", bad_resize_cq },
	{ "create_qp_err", bad_create_qp },
	{ "modify_qp_err", bad_modify_qp },
	{ "create_srq_err", bad_create_srq },
	{ "modify_srq_err", bad_modify_srq },
	{ "reg_mr_err", bad_reg_mr },
	{ "rereg_mr_err", bad_rereg_mr },
	{ "alloc_dm_err", bad_alloc_dm },
	{ "create_ah_err", bad_create_ah },
	{ "mmap_err", bad_mmap },
};

TEST_ROWS(verb, "J-017 a verb that fails counts in its own counter, and in no other", verbs)
{
	struct dev *d = dev_open_qhca();
	struct uv uv = uv_open(d);
	uint64_t want[ARRAY_SIZE(verbs)];
	size_t i;

	if (row->fail == bad_alloc_dm && !has_dm(d))
		test_skip("no device memory");
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		want[i] = dev_counter(verbs[i].name);
	want[row - verbs]++;
	CHECK(row->fail(d, &uv) != 0);
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		if (dev_counter(verbs[i].name) != want[i])
			FAIL("%s", verbs[i].name);
}
