// SPDX-License-Identifier: GPL-2.0
/* Queries and changes of objects; multicast groups. */
#include "fuzz.h"

/* ---- queue pairs ---- */

/* Returns mostly the next state on the way to RTS. */
static uint32_t next_state(uint32_t now)
{
	static const uint8_t next[][4] = {
		[IBV_QPS_RESET] = { IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_INIT },
		[IBV_QPS_INIT] = { IBV_QPS_RTR, IBV_QPS_RTR, IBV_QPS_RTR, IBV_QPS_INIT },
		[IBV_QPS_RTR] = { IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPS_ERR },
		[IBV_QPS_RTS] = { IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR, IBV_QPS_RTS },
		[IBV_QPS_SQD] = { IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR },
		[IBV_QPS_SQE] = { IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET },
		[IBV_QPS_ERR] = { IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_RESET, IBV_QPS_ERR },
	};

	if (now >= ARRAY_SIZE(next) || one_in(10))
		return below(7);
	return next[now][below(4)];
}

static uint32_t step_mask(uint32_t now, uint32_t next, uint32_t type)
{
	const uint32_t rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const uint32_t rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC;
	uint32_t mask = IBV_QP_STATE;

	if (next == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	else if (next == IBV_QPS_RTR)
		mask |= rtr;
	else if (next == IBV_QPS_RTS && now == IBV_QPS_RTR)
		mask |= rts;
	else if (next == IBV_QPS_SQD && now == IBV_QPS_SQD)
		mask |= 1u << below(21);
	else if (next == IBV_QPS_SQD && one_in(2))
		mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
	else if (next == IBV_QPS_RTS && one_in(2))
		mask |= IBV_QP_CUR_STATE | (one_in(2) ? IBV_QP_MIN_RNR_TIMER : 0);
	if (odd())
		mask ^= 1u << below(32);
	if (odd())
		mask = nonsense();
	return attr_mask(type, mask);
}

static void fill_dest(struct ib_uverbs_qp_dest *d)
{
	memcpy(d->dgid, &fuzz.gid, 16);
	d->sgid_index = number(fuzz.gid_index, 256);
	d->hop_limit = 64;
	d->is_global = number(1, 1);
	d->port_num = number(PORT, PORT);
	d->sl = number(0, 15);
	d->static_rate = number(0, 20);
	/* Do this rarely: the kernel may spend a second on resolving the address. */
	if (odd() && one_in(10))
		d->dgid[below(16)] = chance();
}

static void fill_modify(struct call *c, struct ib_uverbs_modify_qp *req)
{
	uint32_t now, type;

	c->obj = live(UVERBS_OBJECT_QP, c->ctx);
	now = c->obj ? c->obj->state : 0;
	type = c->obj ? c->obj->type : IBV_QPT_RC;
	req->qp_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_QP, c->ctx);
	req->qp_state = next_state(now);
	req->attr_mask = step_mask(now, req->qp_state, type);
	req->cur_qp_state = number(now, 7);
	fill_dest(&req->dest);
	req->qkey = number(0x11111111, 0x80010000);
	/* Use mostly the same PSN, so that packets fit. */
	req->rq_psn = number(one_in(10), 0xffffff);
	req->sq_psn = number(one_in(10), 0xffffff);
	req->dest_qp_num = c->obj && one_in(2) ? c->obj->num : some_qpn();
	req->qp_access_flags = number(one_in(4) ? below(16) : 15, 1 << 10);
	req->pkey_index = number(0, 1);
	req->path_mtu = number(1 + below(5), 5);
	req->max_rd_atomic = number(below(5), fuzz.attr.max_qp_rd_atom);
	req->max_dest_rd_atomic = number(below(5), fuzz.attr.max_qp_rd_atom);
	req->min_rnr_timer = number(1 + below(12), 31);
	req->port_num = number(PORT, PORT);
	/* 0 would be an infinite timeout. */
	req->timeout = number(1 + below(14), 31);
	req->retry_cnt = number(below(8), 7);
	req->rnr_retry = number(below(8), 7);
	req->en_sqd_async_notify = number(below(2), 1);
	c->made.state = req->qp_state;
}

static bool fill_modify_qp(struct call *c)
{
	fill_modify(c, (void *)c->in);
	return true;
}

static bool fill_modify_qp_ex(struct call *c)
{
	struct ib_uverbs_ex_modify_qp *req = (void *)c->in;

	fill_modify(c, &req->base);
	req->rate_limit = number(0, 1000);
	return true;
}

static void done_modify(struct call *c)
{
	if (!c->obj)
		return;
	if (c->made.state == IBV_QPS_RESET) {
		c->obj->ring[0].pi = 0;
		c->obj->ring[1].pi = 0;
	}
	c->obj->state = c->made.state;
}

static bool fill_query_qp(struct call *c)
{
	struct ib_uverbs_query_qp *req = (void *)c->in;

	c->obj = live(UVERBS_OBJECT_QP, c->ctx);
	req->qp_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_QP, c->ctx);
	req->attr_mask = number(0x1fffff, 0x1fffff);
	return true;
}

/* The device may have changed the state by itself. */
static void done_query(struct call *c)
{
	const struct ib_uverbs_query_qp_resp *resp = (void *)c->out;

	if (c->obj)
		c->obj->state = resp->qp_state;
}

/* ---- other objects ---- */

static bool fill_modify_srq(struct call *c)
{
	struct ib_uverbs_modify_srq *req = (void *)c->in;
	struct qhca_create_srq_req create = { 0 };
	struct qhca_modify_srq_req drv;
	uint32_t sge;

	c->obj = live(UVERBS_OBJECT_SRQ, c->ctx);
	req->srq_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_SRQ, c->ctx);
	req->attr_mask = number(1 + below(3), 3);
	srq_request(&c->made, &create, &req->max_wr, &sge);
	req->srq_limit = number(below(20), fuzz.attr.max_srq_wr);
	if (!(req->attr_mask & IBV_SRQ_MAX_WR) && !odd()) {
		c->drv_len = 0;
		return true;
	}
	/* The stride is the old ring's: leave room for the largest one. */
	drv = (struct qhca_modify_srq_req){
		.buf_addr = create.buf_addr, .buf_len = number(create.buf_len * 8, create.buf_len),
		.log_size = create.log_size,
	};
	memcpy(c->drv, &drv, sizeof(drv));
	return true;
}

static void done_modify_srq(struct call *c)
{
	if (!c->obj || !c->drv_len)
		return;
	c->obj->ring[0].mem = c->made.ring[0].mem;
	c->obj->ring[0].log_size = c->made.ring[0].log_size;
}

static bool fill_query_srq(struct call *c)
{
	struct ib_uverbs_query_srq *req = (void *)c->in;

	req->srq_handle = handle(UVERBS_OBJECT_SRQ, c->ctx);
	return true;
}

static bool fill_modify_cq(struct call *c)
{
	struct ib_uverbs_ex_modify_cq *req = (void *)c->in;

	req->cq_handle = handle(UVERBS_OBJECT_CQ, c->ctx);
	req->attr_mask = number(1, 1);
	req->attr.cq_count = number(below(100), 0xffff);
	req->attr.cq_period = number(below(100), 0xffff);
	return true;
}

/* Names one of a few groups, IPv4 or IPv6; attach and detach have the same request. */
static bool fill_mcast(struct call *c)
{
	struct ib_uverbs_attach_mcast *req = (void *)c->in;
	int i;

	c->obj = live(UVERBS_OBJECT_QP, c->ctx);
	for (i = 0; i < 8 && c->obj && c->obj->type != IBV_QPT_UD; i++)
		c->obj = live(UVERBS_OBJECT_QP, c->ctx);
	req->qp_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_QP, c->ctx);
	req->gid[0] = 0xff;
	req->gid[1] = 0x0e;
	if (one_in(2)) {
		req->gid[10] = 0xff;
		req->gid[11] = 0xff;
		req->gid[12] = 239;
	}
	req->gid[15] = below(3);
	req->mlid = number(0, 0xffff);
	if (odd())
		req->gid[below(16)] = chance();
	return true;
}

static const struct method methods[] = {
	{ COMMAND(MODIFY_QP, struct ib_uverbs_modify_qp, NOTHING),
	  .weight = 30, .also = NO_ADDRESS, .fill = fill_modify_qp, .done = done_modify },
	{ COMMAND_EX(MODIFY_QP, struct ib_uverbs_ex_modify_qp,
		     struct ib_uverbs_ex_modify_qp_resp),
	  .weight = 12, .also = NO_ADDRESS, .fill = fill_modify_qp_ex, .done = done_modify },
	{ COMMAND(QUERY_QP, struct ib_uverbs_query_qp, struct ib_uverbs_query_qp_resp),
	  .weight = 6, .fill = fill_query_qp, .done = done_query },
	{ COMMAND(MODIFY_SRQ, struct ib_uverbs_modify_srq, NOTHING),
	  .weight = 5, .fill = fill_modify_srq, .done = done_modify_srq,
	  .drv_len = sizeof(struct qhca_modify_srq_req) },
	{ COMMAND(QUERY_SRQ, struct ib_uverbs_query_srq, struct ib_uverbs_query_srq_resp),
	  .weight = 3, .fill = fill_query_srq },
	{ COMMAND_EX(MODIFY_CQ, struct ib_uverbs_ex_modify_cq, NOTHING),
	  .weight = 3, .fill = fill_modify_cq },
	{ COMMAND(ATTACH_MCAST, struct ib_uverbs_attach_mcast, NOTHING),
	  .weight = 4, .fill = fill_mcast },
	{ COMMAND(DETACH_MCAST, struct ib_uverbs_detach_mcast, NOTHING),
	  .weight = 4, .fill = fill_mcast },
};

const struct table change_methods = { methods, ARRAY_SIZE(methods) };
