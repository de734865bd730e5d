// SPDX-License-Identifier: GPL-2.0
/* Receive work queues, tables of them, and QPs that spread frames over them. */
#include <arpa/inet.h>
#include <pthread.h>

#include "lib/steer.h"

#define WRS	16

static const enum ibv_wq_state states[] = { IBV_WQS_RESET, IBV_WQS_RDY, IBV_WQS_ERR };

static struct ibv_wq *wq_new(struct dev *d, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = WRS, .max_sge = 1, .pd = d->pd, .cq = cq,
	};
	struct ibv_wq *wq = ibv_create_wq(d->ctx, &attr);

	REQUIRE(wq);
	CHECK(attr.max_wr >= WRS);
	return wq;
}

static int wq_set(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static int wq_recv(struct ibv_wq *wq, const struct buf *b, uint64_t id)
{
	struct ibv_sge sge = buf_sge(b, 0, 64);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_wq_recv(wq, &wr, &bad);
}

TEST(life, "WQ: states, and what they do to WRs")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	struct buf b = buf_new(d->pd, 4096, LOCAL);
	struct ibv_wq *wq = wq_new(d, cq);
	struct ibv_wc wc;
	uint64_t i;

	CHECK_ERR(wq_recv(wq, &b, 0), EINVAL);
	CHECK_ERR(wq_set(wq, IBV_WQS_ERR), EINVAL);
	REQUIRE_OK(wq_set(wq, IBV_WQS_RDY));
	for (i = 0; i < WRS; i++)
		CHECK_ERR(wq_recv(wq, &b, i), 0);
	CHECK_ERR(wq_recv(wq, &b, i), ENOMEM);
	REQUIRE_OK(wq_set(wq, IBV_WQS_ERR));
	for (i = 0; i < WRS; i++) {
		wc = poll_get(cq);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(wc.qp_num, wq->wq_num);
	}
	CHECK_ERR(wq_set(wq, IBV_WQS_RDY), EINVAL);
	REQUIRE_OK(wq_set(wq, IBV_WQS_RESET));
	REQUIRE_OK(wq_set(wq, IBV_WQS_RDY));
	CHECK_ERR(wq_recv(wq, &b, 1), 0);
	REQUIRE_OK(wq_set(wq, IBV_WQS_RESET));	/* without a completion */
	CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	CHECK_ERR(ibv_destroy_cq(cq), EBUSY);
	CHECK_ERR(ibv_destroy_wq(wq), 0);
	CHECK_ERR(ibv_destroy_cq(cq), 0);
}

TEST(steps, "WQ: every step from every state, with the state that it is said to have")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	size_t from, to;

	for (from = 0; from < ARRAY_SIZE(states); from++) {
		for (to = 0; to < ARRAY_SIZE(states); to++) {
			struct ibv_wq *wq = wq_new(d, cq);
			struct ibv_wq_attr attr = {
				.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				.wq_state = states[to],
				.curr_wq_state = states[(from + 1) % ARRAY_SIZE(states)],
			};
			bool legal = states[to] == IBV_WQS_RESET ||
				     (states[to] == IBV_WQS_RDY && states[from] != IBV_WQS_ERR) ||
				     (states[to] == IBV_WQS_ERR && states[from] != IBV_WQS_RESET);

			if (states[from] != IBV_WQS_RESET)
				REQUIRE_OK(wq_set(wq, IBV_WQS_RDY));
			if (states[from] == IBV_WQS_ERR)
				REQUIRE_OK(wq_set(wq, IBV_WQS_ERR));
			CHECK_ERR(ibv_modify_wq(wq, &attr), EINVAL);
			attr.curr_wq_state = states[from];
			CHECK_ERR(ibv_modify_wq(wq, &attr), legal ? 0 : EINVAL);
			CHECK_ERR(ibv_destroy_wq(wq), 0);
		}
	}
}

TEST(fatal, "WQ: it fails with its CQ, which is told, and can be reset")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 8, NULL);
	struct ibv_wq *wq = wq_new(d, cq);
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RDY, .curr_wq_state = IBV_WQS_RDY,
	};
	struct pair p;
	struct ibv_async_event ev;

	REQUIRE_OK(wq_set(wq, IBV_WQS_RDY));
	p = pair_at(d, cq);
	pair_overflow(&p);
	do {
		REQUIRE(async_wait(d->ctx, &ev, WAIT_MS));
	} while (ev.event_type != IBV_EVENT_WQ_FATAL);
	CHECK(ev.element.wq == wq);
	CHECK_ERR(wq_set(wq, IBV_WQS_RDY), EINVAL);
	CHECK_ERR(ibv_modify_wq(wq, &attr), EINVAL);
	attr.wq_state = IBV_WQS_RESET;
	attr.curr_wq_state = IBV_WQS_ERR;
	CHECK_ERR(ibv_modify_wq(wq, &attr), 0);
	CHECK_ERR(ibv_destroy_wq(wq), 0);
}

static struct ibv_rwq_ind_table *table_new(struct dev *d, struct ibv_wq **wq, uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log_size, .ind_tbl = wq };

	return ibv_create_rwq_ind_table(d->ctx, &attr);
}

/* Zeros would hide what they meet. */
static uint8_t key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
	0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct ibv_qp *rss_new(struct dev *d, struct ibv_rwq_ind_table *table, uint64_t fields,
			      uint8_t key_len)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = d->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ, .rx_hash_key_len = key_len,
			.rx_hash_key = key, .rx_hash_fields_mask = fields,
		},
	};

	errno = 0;
	return ibv_create_qp_ex(d->ctx, &attr);
}

#define V4	(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define TCP	(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)

TEST(tables, "WQ: tables and QPs hold on to what they are made of")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	struct ibv_wq *wq[256];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wq); i++)
		wq[i] = i < 3 ? wq_new(d, cq) : wq[i % 3];
	CHECK(!table_new(d, wq, 8));
	table = table_new(d, wq, 7);
	REQUIRE(table);
	CHECK_ERR(ibv_destroy_wq(wq[0]), EBUSY);
	qp = rss_new(d, table, V4 | TCP, sizeof(key));
	REQUIRE(qp);
	CHECK_ERR(ibv_destroy_rwq_ind_table(table), EBUSY);
	REQUIRE_OK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT));
	REQUIRE_OK(ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
	CHECK_EQ(a.qp_state, IBV_QPS_INIT);
	CHECK_ERR(set_state(qp, IBV_QPS_RTS), EINVAL);
	CHECK_ERR(set_state(qp, IBV_QPS_RTR), 0);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
	CHECK_ERR(ibv_destroy_rwq_ind_table(table), 0);
	for (i = 0; i < 3; i++)
		CHECK_ERR(ibv_destroy_wq(wq[i]), 0);
}

static const struct {
	const char *name;
	uint64_t fields;
	uint8_t key_len;
	int err;
} hashes[] = {
	{ "nothing", 0, 40, 0 },
	{ "addresses", V4, 40, 0 },
	{ "one address", IBV_RX_HASH_SRC_IPV4, 40, EOPNOTSUPP },
	{ "ports without addresses", TCP, 40, EOPNOTSUPP },
	{ "one port", V4 | IBV_RX_HASH_SRC_PORT_TCP, 40, EOPNOTSUPP },
	{ "what is in a tunnel", V4 | IBV_RX_HASH_INNER, 40, EOPNOTSUPP },
	{ "a short key", V4, 39, EINVAL },
	{ "no key", V4, 0, EINVAL },
};

TEST_ROWS(hash, "WQ: what can be hashed", hashes)
{
	struct dev *d = dev_open_qhca();
	struct ibv_wq *wq = wq_new(d, cq_new(d, 64, NULL));
	struct ibv_rwq_ind_table *table = table_new(d, &wq, 0);
	struct ibv_qp *qp;

	REQUIRE(table);
	qp = rss_new(d, table, row->fields, row->key_len);
	CHECK_EQ(!qp, row->err != 0);
	if (!qp)
		CHECK_EQ(errno, row->err);
}

TEST(offer, "J-004 WQ: query_device_ex says what can be hashed, no less and no more")
{
	struct dev *d = dev_open_qhca();
	struct ibv_wq *wq = wq_new(d, cq_new(d, 64, NULL));
	struct ibv_rwq_ind_table *table = table_new(d, &wq, 0);
	struct ibv_device_attr_ex attr = {};
	uint64_t mask;
	size_t i;

	REQUIRE(table);
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	mask = attr.rss_caps.rx_hash_fields_mask;
	CHECK_EQ(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	CHECK(rss_new(d, table, mask, sizeof(key)));
	for (i = 0; i < ARRAY_SIZE(hashes); i++)
		if (!hashes[i].err)
			CHECK_EQ(hashes[i].fields & ~mask, 0);
	for (i = 0; i < 64; i++)
		if (!(mask & 1ull << i))
			CHECK(!rss_new(d, table, mask | 1ull << i, sizeof(key)));
}

/* ---- under load ---- */

#define WQS	4
#define LEN	120
#define PLACE	128	/* for a frame of LEN bytes */
#define ROUNDS	300
#define UDP	(IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

/* struct load - a QP that sends, and WQs that share what it sends */
struct load {
	struct end tx;
	struct buf sent, got;
	struct ibv_cq *cq;
	struct ibv_wq *wq[WQS];
	bool end;
	int16_t wq_of[0x10000];		/* by source port; 0: not seen, else 1 more */
};

static struct ibv_flow *rule_new(struct ibv_qp *qp, const char *dmac, uint16_t priority)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = PORT, .priority = priority },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};
	struct ibv_flow *flow;

	memcpy(rule.eth.val.dst_mac, dmac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	flow = ibv_create_flow(qp, &rule.attr);
	REQUIRE(flow);
	return flow;
}

/* Rules that come first and match no frame of this test come and go. */
static void *other_rules(void *arg)
{
	struct load *l = arg;
	struct ibv_flow *flow[8];
	size_t i;

	while (!__atomic_load_n(&l->end, __ATOMIC_RELAXED)) {
		for (i = 0; i < ARRAY_SIZE(flow); i++)
			flow[i] = rule_new(l->tx.qp, STEER_SMAC, i % 3);
		for (i = 0; i < ARRAY_SIZE(flow); i++)
			REQUIRE_OK(ibv_destroy_flow(flow[i * 5 % ARRAY_SIZE(flow)]));
	}
	return NULL;
}

static void load_recv(struct load *l, size_t wq, size_t place)
{
	struct ibv_sge sge = buf_sge(&l->got, PLACE * (WRS * wq + place), LEN);
	struct ibv_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 }, *bad;

	REQUIRE_OK(ibv_post_wq_recv(l->wq[wq], &wr, &bad));
}

static void load_send(struct load *l, uint32_t round)
{
	struct ibv_send_wr wr[WRS], *bad;
	struct ibv_sge sge[WRS];
	int i;

	for (i = 0; i < WRS; i++) {
		sge[i] = buf_sge(&l->sent, PLACE * i, LEN);
		steer_frame(l->sent.addr + PLACE * i, LEN, (round * WRS + i) % 500, 7);
		wr[i] = wr_send(i, &sge[i], 1);
		wr[i].send_flags = i == WRS - 1 ? IBV_SEND_SIGNALED : 0;
		wr[i].next = i == WRS - 1 ? NULL : &wr[i + 1];
	}
	REQUIRE_OK(ibv_post_send(l->tx.qp, wr, &bad));
	poll_ok(l->tx.send_cq, WRS - 1);
}

/* One frame has arrived, whole, where earlier ones of its flow have. */
static void load_take(struct load *l)
{
	struct ibv_wc wc = poll_get(l->cq);
	uint8_t want[LEN], *p;
	uint16_t sport;
	size_t wq;

	for (wq = 0; wq < WQS - 1 && l->wq[wq]->wq_num != wc.qp_num; wq++)
		;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.qp_num, l->wq[wq]->wq_num);
	CHECK_EQ(wc.byte_len, LEN);
	p = l->got.addr + PLACE * (WRS * wq + wc.wr_id);
	sport = p[34] << 8 | p[35];
	steer_frame(want, LEN, sport, 7);
	CHECK(!memcmp(p, want, LEN));
	if (!l->wq_of[sport])
		l->wq_of[sport] = wq + 1;
	CHECK_EQ(l->wq_of[sport], wq + 1);
	load_recv(l, wq, wc.wr_id);
}

static void load_new(struct load *l, struct dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	struct ibv_rwq_ind_table *table;
	struct qp_opts o = QP_OPTS;
	size_t i, k;

	o.type = IBV_QPT_RAW_PACKET;
	l->tx = end_new(d, &o);
	REQUIRE_OK(ibv_modify_qp(l->tx.qp, &a, IBV_QP_STATE | IBV_QP_PORT));
	REQUIRE_OK(set_state(l->tx.qp, IBV_QPS_RTR));
	REQUIRE_OK(set_state(l->tx.qp, IBV_QPS_RTS));
	l->sent = buf_new(d->pd, PLACE * WRS, LOCAL);
	l->got = buf_new(d->pd, PLACE * WRS * WQS, LOCAL);
	l->cq = cq_new(d, WRS * WQS, NULL);
	for (i = 0; i < WQS; i++) {
		l->wq[i] = wq_new(d, l->cq);
		REQUIRE_OK(wq_set(l->wq[i], IBV_WQS_RDY));
		for (k = 0; k < WRS; k++)
			load_recv(l, i, k);
	}
	table = table_new(d, l->wq, 2);
	REQUIRE(table);
	rule_new(rss_new(d, table, V4 | UDP, sizeof(key)), STEER_DMAC, 9);
}

/* Whether the flows are spread: each WQ has some. */
static void load_spread(const struct load *l)
{
	int flows[WQS + 1] = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(l->wq_of); i++)
		flows[l->wq_of[i]]++;
	for (i = 1; i <= WQS; i++)
		CHECK(flows[i] > 0);
}

TEST(load, "WQ: each frame of many flows arrives once, in its WQ, while rules come and go")
{
	static struct load l;
	pthread_t thread;
	uint32_t round;
	int i;

	load_new(&l, dev_open_qhca());
	REQUIRE_OK(pthread_create(&thread, NULL, other_rules, &l));
	for (round = 0; round < ROUNDS; round++) {
		load_send(&l, round);
		for (i = 0; i < WRS; i++)
			load_take(&l);
		poll_empty(l.cq);
	}
	__atomic_store_n(&l.end, true, __ATOMIC_RELAXED);
	REQUIRE_OK(pthread_join(thread, NULL));
	load_spread(&l);
}

TEST(bad, "WQ: attributes that are refused")
{
	struct dev *d = dev_open_qhca();
	const struct ibv_wq_init_attr good = {
		.wq_type = IBV_WQT_RQ, .max_wr = WRS, .max_sge = 1, .pd = d->pd,
		.cq = cq_new(d, 64, NULL),
	};
	struct ibv_wq_init_attr attr = good;

	attr.max_wr = 0;
	CHECK(!ibv_create_wq(d->ctx, &attr));
	attr.max_wr = (uint32_t)d->attr.max_qp_wr + 1;
	CHECK(!ibv_create_wq(d->ctx, &attr));
	attr = good;
	attr.max_sge = 33;
	CHECK(!ibv_create_wq(d->ctx, &attr));
	attr = good;
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	CHECK(!ibv_create_wq(d->ctx, &attr));
}
