// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues, tables of them, QPs that spread frames over a table, flow rules and their
 * counters at random: see churn.h.
 */
#include "churn.h"

#define MAX_LOG	3	/* of a table */

void *new_wq(struct ibv_pd *pd)
{
	struct slot *cq = use(CQ);
	struct ibv_wq_init_attr a = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = some_number(churn.dev->attr.max_qp_wr),
		.max_sge = some_number(churn.dev->attr.max_sge) % 8,
		.pd = pd,
		.cq = cq ? cq->obj : NULL,
	};
	void *wq = cq ? ibv_create_wq(churn.dev->ctx, &a) : NULL;

	unuse(cq);
	return wq;
}

void *new_table(void)
{
	struct slot *held[1 << MAX_LOG];
	struct ibv_wq *wq[1 << MAX_LOG];
	struct ibv_rwq_ind_table_init_attr a = {
		.log_ind_tbl_size = below(MAX_LOG + 1), .ind_tbl = wq,
	};
	uint32_t i, n = 0, size = 1u << a.log_ind_tbl_size;
	void *table = NULL;

	for (i = 0; i < size; i++) {
		held[i] = use(WQ);
		if (held[i])
			wq[n++] = held[i]->obj;
	}
	if (n == size)
		table = ibv_create_rwq_ind_table(churn.dev->ctx, &a);
	while (i)
		unuse(held[--i]);
	return table;
}

void *new_spread(struct ibv_pd *pd)
{
	static uint8_t key[40] = { 1, 2, 3 };
	struct slot *table = use(TABLE);
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table ? table->obj : NULL,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = one_in(20) ? below(64) : sizeof(key),
			.rx_hash_key = key, .rx_hash_fields_mask = one_in(4) ? below(256) : 3,
		},
	};
	void *qp = table ? ibv_create_qp_ex(churn.dev->ctx, &a) : NULL;

	unuse(table);
	return qp;
}

/*
 * No other frames match: not those to the address of the interface, whose bit 3 is 0, and none to
 * groups. Memory that has been taken away and come back is 0.
 */
void *new_flow(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
		struct ibv_flow_spec_action_drop drop;
	} r = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(r), .port = PORT,
			  .priority = below(3), .num_of_specs = 1 + below(3) },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(r.count) },
		.drop = { .type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(r.drop) },
	};
	struct slot *qp = use(QP), *counters = use(COUNTERS);
	void *flow = NULL;

	if (one_in(2)) {
		r.eth.val.dst_mac[0] = 8;
		r.eth.mask.dst_mac[0] = 9;
	} else {
		memset(r.eth.mask.dst_mac, 0xff, 6);
	}
	if (counters)
		r.count.counters = counters->obj;
	else
		r.attr.num_of_specs = 1;
	if (qp)
		flow = ibv_create_flow(qp->obj, &r.attr);
	unuse(counters);
	unuse(qp);
	return flow;
}

void *new_counters(void)
{
	struct ibv_counters_init_attr init = {};
	struct ibv_counter_attach_attr attr = { .index = below(40) };
	struct ibv_counters *counters = ibv_create_counters(churn.dev->ctx, &init);

	if (counters)
		ibv_attach_counters_point_flow(counters, &attr, NULL);
	return counters;
}

/* ---- using them ---- */

static void post_one_wq_recv(void *wq)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = some_recv(sge), *bad;

	ibv_post_wq_recv(wq, &wr, &bad);
}

/* Only to states that exist: see what testing.rst says about the user ABI. */
static void change_wq(void *wq)
{
	struct ibv_wq_attr a = {
		.attr_mask = IBV_WQ_ATTR_STATE | (one_in(8) ? 1u << below(4) : 0),
		.wq_state = one_in(4) ? below(3) : IBV_WQS_RDY,
		.curr_wq_state = below(3),
	};

	ibv_modify_wq(wq, &a);
}

void use_wq(void *unused)
{
	static const struct op ops[] = { { 4, post_one_wq_recv }, { 1, change_wq } };

	use_one(WQ, ops, ARRAY_SIZE(ops));
}

static void read_counters(void *counters)
{
	uint64_t value[40];

	ibv_read_counters(counters, value, below(ARRAY_SIZE(value)), below(4));
}

void use_counters(void *unused)
{
	static const struct op ops[] = { { 1, read_counters } };

	use_one(COUNTERS, ops, ARRAY_SIZE(ops));
}
