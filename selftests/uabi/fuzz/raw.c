// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues, tables of them, QPs that spread frames over a table, flow rules, and their
 * counters. Only processes with rights can have such QPs and rules.
 */
#include "fuzz.h"

/* ---- WQs ---- */

static void wq_request(struct call *c, uint32_t *wr, uint32_t *sge)
{
	struct qhca_create_srq_req ring = { 0 };
	struct qhca_create_wq_req req;

	srq_request(&c->made, &ring, wr, sge);
	req = (struct qhca_create_wq_req){
		.buf_addr = ring.buf_addr, .buf_len = ring.buf_len,
		.log_size = ring.log_size, .log_stride = ring.log_stride,
	};
	if (odd())
		req.reserved[below(2)] = 1;
	c->made.ring[1] = c->made.ring[0];
	c->made.ring[0] = (struct ring){ 0 };
	memcpy(c->drv, &req, sizeof(req));
}

static bool fill_wq(struct call *c)
{
	struct ib_uverbs_ex_create_wq *req = (void *)c->in;

	req->user_handle = chance();
	req->wq_type = number(IBV_WQT_RQ, 2);
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->cq_handle = handle(UVERBS_OBJECT_CQ, c->ctx);
	req->create_flags = number(0, 16);
	wq_request(c, &req->max_wr, &req->max_sge);
	return true;
}

static void done_wq(struct call *c)
{
	struct ib_uverbs_ex_create_wq_resp *resp = (void *)c->out;

	c->made.handle = resp->wq_handle;
	c->made.num = resp->wqn;
}

static bool fill_wq_ioctl(struct call *c)
{
	uint32_t wr, sge, flags = odd() ? 1u << below(32) : 0;

	wq_request(c, &wr, &sge);
	attr_obj(c, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	attr_obj(c, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	attr_obj(c, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, handle(UVERBS_OBJECT_CQ, c->ctx));
	attr_number(c, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, chance());
	attr_number(c, UVERBS_ATTR_CREATE_WQ_TYPE, number(IBV_WQT_RQ, 2));
	if (one_in(3))
		attr_obj(c, UVERBS_ATTR_CREATE_WQ_EVENT_FD,
			 handle(UVERBS_OBJECT_ASYNC_EVENT, CONTEXTS));
	attr_in(c, UVERBS_ATTR_CREATE_WQ_MAX_WR, &wr, sizeof(wr));
	attr_in(c, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &sge, sizeof(sge));
	attr_in(c, UVERBS_ATTR_CREATE_WQ_FLAGS, &flags, sizeof(flags));
	attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4);
	attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4);
	attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4);
	attr_in(c, UVERBS_ATTR_UHW_IN, c->drv,
		spoil_length(sizeof(struct qhca_create_wq_req), 1));
	attr_out(c, UVERBS_ATTR_UHW_OUT, sizeof(struct qhca_create_wq_resp));
	return true;
}

static void done_wq_ioctl(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_CREATE_WQ_HANDLE);
	c->made.num = c->out[2];
}

static bool fill_modify_wq(struct call *c)
{
	struct ib_uverbs_ex_modify_wq *req = (void *)c->in;

	c->obj = live(UVERBS_OBJECT_WQ, c->ctx);
	req->wq_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_WQ, c->ctx);
	req->attr_mask = number(IBV_WQ_ATTR_STATE | (one_in(3) ? IBV_WQ_ATTR_CURR_STATE : 0), 8);
	req->wq_state = number(below(3), 2);
	req->curr_wq_state = number(c->obj ? c->obj->state : 0, 2);
	req->flags = number(0, 16);
	req->flags_mask = number(0, 16);
	c->made.state = req->wq_state;
	return true;
}

static void done_modify_wq(struct call *c)
{
	if (!c->obj)
		return;
	c->obj->state = c->made.state;
	if (c->made.state == IBV_WQS_RESET)
		c->obj->ring[1].pi = 0;
}

/* ---- tables, and QPs with one ---- */

static bool fill_table(struct call *c)
{
	struct ib_uverbs_ex_create_rwq_ind_table *req = (void *)c->in;
	uint32_t i, n, log = below(4);

	req->log_ind_tbl_size = number(log, 8);
	n = 1u << log;
	for (i = 0; i < n; i++)
		req->wq_handles[i] = handle(UVERBS_OBJECT_WQ, c->ctx);
	c->in_len += (4 * n + 7) & ~7u;
	return true;
}

static void done_table(struct call *c)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp *resp = (void *)c->out;

	c->made.handle = resp->ind_tbl_handle;
	c->made.num = resp->ind_tbl_num;
}

static bool fill_spread(struct call *c)
{
	struct ib_uverbs_ex_create_qp *req = (void *)c->in;
	struct qhca_create_qp_req drv = { .rx_hash_types = number(below(64), 64) };

	req->user_handle = chance();
	req->qp_type = number(IBV_QPT_RAW_PACKET, 11);
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->comp_mask = number(IB_UVERBS_CREATE_QP_MASK_IND_TABLE, 2);
	req->rwq_ind_tbl_handle = handle(UVERBS_OBJECT_RWQ_IND_TBL, c->ctx);
	req->max_send_wr = number(0, 16);
	drv.rx_hash_key[below(40)] = chance();
	if (odd())
		drv.sq_log_size = 4;
	if (odd())
		drv.reserved2[below(4)] = 1;
	memcpy(c->drv, &drv, sizeof(drv));
	c->made.type = IBV_QPT_RAW_PACKET;
	return true;
}

static void done_spread(struct call *c)
{
	struct ib_uverbs_ex_create_qp_resp *resp = (void *)c->out;

	c->made.handle = resp->base.qp_handle;
	c->made.num = resp->base.qpn;
}

/* ---- flow rules ---- */

/* Adds that counters count the frames. */
static void add_counters(struct call *c, struct ib_uverbs_create_flow *req, void *at)
{
	struct ib_uverbs_flow_spec_action_count *spec = at;

	if (!live(UVERBS_OBJECT_COUNTERS, c->ctx))
		return;
	spec->type = IBV_FLOW_SPEC_ACTION_COUNT;
	spec->size = number(sizeof(*spec), sizeof(*spec));
	spec->handle = handle(UVERBS_OBJECT_COUNTERS, c->ctx);
	req->flow_attr.num_of_specs++;
	req->flow_attr.size += sizeof(*spec);
	c->in_len += sizeof(*spec);
}

/* Requests one specification or two, of Ethernet; no other test uses the address. */
static bool fill_flow(struct call *c)
{
	struct ib_uverbs_create_flow *req = (void *)c->in;
	struct ib_uverbs_flow_spec_eth *spec = (void *)(req + 1);
	uint32_t i, n = one_in(8) ? 0 : 1 + below(2);
	struct obj *qp = live(UVERBS_OBJECT_QP, c->ctx);

	for (i = 0; i < 8 && qp && qp->type != IBV_QPT_RAW_PACKET; i++)
		qp = live(UVERBS_OBJECT_QP, c->ctx);
	req->qp_handle = qp && !odd() ? qp->handle : handle(UVERBS_OBJECT_QP, c->ctx);
	req->flow_attr.type = number(n ? IBV_FLOW_ATTR_NORMAL : 1 + below(2), 4);
	req->flow_attr.size = number(n * sizeof(*spec), 128);
	req->flow_attr.num_of_specs = number(n, 10);
	req->flow_attr.priority = number(below(4), 0x10000);
	req->flow_attr.port = number(PORT, PORT);
	req->flow_attr.flags = number(0, 4);
	for (i = 0; i < n; i++) {
		spec[i].type = number(i ? 0x40 : IBV_FLOW_SPEC_ETH, 0x1003);
		spec[i].size = number(sizeof(*spec), sizeof(*spec));
		spec[i].val.dst_mac[0] = 2;
		spec[i].val.dst_mac[5] = below(4);
		memset(spec[i].mask.dst_mac, 0xff, 6);
	}
	c->in_len += n * sizeof(*spec);
	if (n && one_in(2))
		add_counters(c, req, spec + n);
	return true;
}

static void done_flow(struct call *c)
{
	struct ib_uverbs_create_flow_resp *resp = (void *)c->out;

	c->made.handle = resp->flow_handle;
}

/* ---- destroying: the handle is behind a mask ---- */

static bool fill_destroy(struct call *c, int kind)
{
	uint32_t *in = (uint32_t *)c->in;

	c->obj = live(kind, c->ctx);
	if (!c->obj)
		return false;
	in[1] = odd() ? handle(kind, c->ctx) : c->obj->handle;
	return true;
}

static bool destroy_wq(struct call *c)
{
	return fill_destroy(c, UVERBS_OBJECT_WQ);
}

static bool destroy_table(struct call *c)
{
	return fill_destroy(c, UVERBS_OBJECT_RWQ_IND_TBL);
}

static bool destroy_flow(struct call *c)
{
	return fill_destroy(c, UVERBS_OBJECT_FLOW);
}

static bool destroy_flow_ioctl(struct call *c)
{
	c->obj = live(UVERBS_OBJECT_FLOW, c->ctx);
	if (!c->obj)
		return false;
	attr_obj(c, 0, odd() ? handle(UVERBS_OBJECT_FLOW, c->ctx) : c->obj->handle);
	return true;
}

/* ---- counters ---- */

static bool fill_counters(struct call *c)
{
	attr_obj(c, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	return true;
}

static void done_counters(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_CREATE_COUNTERS_HANDLE);
}

/* That is not refused if a rule names them. */
static bool fill_read_counters(struct call *c)
{
	uint32_t flags = number(below(2), 2);

	attr_obj(c, UVERBS_ATTR_READ_COUNTERS_HANDLE, handle(UVERBS_OBJECT_COUNTERS, c->ctx));
	attr_out(c, UVERBS_ATTR_READ_COUNTERS_BUFF, 8 * number(1 + below(2), 3));
	attr_in(c, UVERBS_ATTR_READ_COUNTERS_FLAGS, &flags, sizeof(flags));
	return true;
}

static bool destroy_counters(struct call *c)
{
	c->obj = live(UVERBS_OBJECT_COUNTERS, c->ctx);
	if (!c->obj)
		return false;
	attr_obj(c, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE,
		 odd() ? handle(UVERBS_OBJECT_COUNTERS, c->ctx) : c->obj->handle);
	return true;
}

static void done_destroy(struct call *c)
{
	c->obj->life = STALE;
}

#define DRV_OF(verb)								\
	.drv_len = sizeof(struct qhca_##verb##_req),				\
	.drv_out_len = sizeof(struct qhca_##verb##_resp)

static const struct method methods[] = {
	{ COMMAND_EX(CREATE_WQ, struct ib_uverbs_ex_create_wq, struct ib_uverbs_ex_create_wq_resp),
	  .weight = 6, .fill = fill_wq, .done = done_wq, .makes = UVERBS_OBJECT_WQ,
	  DRV_OF(create_wq) },
	{ COMMAND_EX(MODIFY_WQ, struct ib_uverbs_ex_modify_wq, NOTHING), .weight = 10,
	  .fill = fill_modify_wq, .done = done_modify_wq },
	{ COMMAND_EX(DESTROY_WQ, struct ib_uverbs_ex_destroy_wq,
		     struct ib_uverbs_ex_destroy_wq_resp),
	  .weight = 3, .fill = destroy_wq, .done = done_destroy },
	{ COMMAND_EX(CREATE_RWQ_IND_TBL, struct ib_uverbs_ex_create_rwq_ind_table,
		     struct ib_uverbs_ex_create_rwq_ind_table_resp),
	  .weight = 6, .fill = fill_table, .done = done_table,
	  .makes = UVERBS_OBJECT_RWQ_IND_TBL },
	{ COMMAND_EX(DESTROY_RWQ_IND_TBL, struct ib_uverbs_ex_destroy_rwq_ind_table, NOTHING),
	  .weight = 3, .fill = destroy_table, .done = done_destroy },
	{ COMMAND_EX(CREATE_QP, struct ib_uverbs_ex_create_qp, struct ib_uverbs_ex_create_qp_resp),
	  .weight = 6, .fill = fill_spread, .done = done_spread, .makes = UVERBS_OBJECT_QP,
	  DRV_OF(create_qp) },
	{ COMMAND_EX(CREATE_FLOW, struct ib_uverbs_create_flow, struct ib_uverbs_create_flow_resp),
	  .weight = 8, .fill = fill_flow, .done = done_flow, .makes = UVERBS_OBJECT_FLOW },
	{ COMMAND_EX(DESTROY_FLOW, struct ib_uverbs_destroy_flow, NOTHING),
	  .weight = 4, .fill = destroy_flow, .done = done_destroy },
	{ IOCTL(WQ, WQ_CREATE), .weight = 4, .fill = fill_wq_ioctl, .done = done_wq_ioctl,
	  .makes = UVERBS_OBJECT_WQ },
	{ IOCTL(FLOW, FLOW_DESTROY), .weight = 2, .fill = destroy_flow_ioctl,
	  .done = done_destroy },
	{ IOCTL(COUNTERS, COUNTERS_CREATE), .weight = 3, .fill = fill_counters,
	  .done = done_counters, .makes = UVERBS_OBJECT_COUNTERS },
	{ IOCTL(COUNTERS, COUNTERS_READ), .weight = 6, .fill = fill_read_counters },
	{ IOCTL(COUNTERS, COUNTERS_DESTROY), .weight = 1, .fill = destroy_counters,
	  .done = done_destroy },
};

const struct table raw_methods = { methods, ARRAY_SIZE(methods) };
