// SPDX-License-Identifier: GPL-2.0
/* Receive work queues, tables of them, and QPs that spread frames over them. */
#include "lib/rdma.h"

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

static struct ibv_rwq_ind_table *table_new(struct dev *d, struct ibv_wq **wq, uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log_size, .ind_tbl = wq };

	return ibv_create_rwq_ind_table(d->ctx, &attr);
}

static uint8_t key[40] = { 1, 2, 3 };

static struct ibv_qp *rss_new(struct dev *d, struct ibv_rwq_ind_table *table, uint64_t fields,
			      uint8_t key_len)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
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
