// SPDX-License-Identifier: GPL-2.0
/* Frames, and a WQ, a table, a QP and a rule: see steer.h. */
#include "steer.h"

void steer_frame(uint8_t *at, size_t len, uint16_t sport, uint16_t dport)
{
	const uint8_t ip[28] = {
		0x45, 0x28, 0, (uint8_t)(len - 14), 0, 1, 0x40, 0, 64, 17, 0, 0,
		192, 0, 2, 1, 192, 0, 2, 2, sport >> 8, (uint8_t)sport, dport >> 8, (uint8_t)dport,
		0, (uint8_t)(len - 34),
	};

	fill(at, len, 1);
	memcpy(at, STEER_DMAC STEER_SMAC "\x08\x00", 14);
	memcpy(at + 14, ip, sizeof(ip));
}

static uint8_t key[40] = { 1, 2, 3 };

static int make_wq(struct dev *d, struct ibv_cq *cq, struct steer *s)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 500, .max_sge = 2, .pd = d->pd, .cq = cq,
	};
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY,
	};

	s->wq = ibv_create_wq(d->ctx, &init);
	return s->wq ? ibv_modify_wq(s->wq, &attr) : errno;
}

/* With two entries the request has no padding, which the core needs memory to look at. */
static int make_table(struct dev *d, struct steer *s)
{
	struct ibv_wq *wq[] = { s->wq, s->wq };
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1, .ind_tbl = wq };

	s->table = ibv_create_rwq_ind_table(d->ctx, &init);
	return s->table ? 0 : errno;
}

int steer_qp(struct dev *d, struct steer *s)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = d->pd,
		.rwq_ind_tbl = s->table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
		},
	};

	s->qp = ibv_create_qp_ex(d->ctx, &init);
	return s->qp ? 0 : errno;
}

int steer_rule(struct steer *s)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = PORT },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	memcpy(rule.eth.val.dst_mac, STEER_RULE_DMAC, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	s->flow = ibv_create_flow(s->qp, &rule.attr);
	return s->flow ? 0 : errno;
}

int steer_make(struct dev *d, struct ibv_cq *cq, struct steer *s)
{
	int err;

	*s = (struct steer){};
	err = make_wq(d, cq, s);
	if (!err)
		err = make_table(d, s);
	if (!err)
		err = steer_qp(d, s);
	if (!err)
		err = steer_rule(s);
	if (err)
		REQUIRE_OK(steer_unmake(s));
	return err;
}

int steer_unmake(struct steer *s)
{
	int err = s->flow ? ibv_destroy_flow(s->flow) : 0;

	if (err)
		return err;
	s->flow = NULL;
	err = s->qp ? ibv_destroy_qp(s->qp) : 0;
	if (err)
		return err;
	s->qp = NULL;
	err = s->table ? ibv_destroy_rwq_ind_table(s->table) : 0;
	if (err)
		return err;
	s->table = NULL;
	err = s->wq ? ibv_destroy_wq(s->wq) : 0;
	if (!err)
		s->wq = NULL;
	return err;
}
