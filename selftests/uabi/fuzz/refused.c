// SPDX-License-Identifier: GPL-2.0
/*
 * Methods that this device does not support. They include the kernel's data path: the kernel must
 * not post to or poll a user's queues.
 */
#include "fuzz.h"

static bool fill_post(struct call *c, int kind)
{
	/* All three requests begin in the same way. */
	struct ib_uverbs_post_send *req = (void *)c->in;

	req->qp_handle = handle(kind, c->ctx);
	req->wr_count = number(below(2), 1);
	req->sge_count = number(0, 1);
	req->wqe_size = number(sizeof(struct ib_uverbs_send_wr), 128);
	c->in_len += req->wr_count % 2 * sizeof(struct ib_uverbs_send_wr);
	return true;
}

static bool fill_post_qp(struct call *c)
{
	return fill_post(c, UVERBS_OBJECT_QP);
}

static bool fill_post_srq(struct call *c)
{
	return fill_post(c, UVERBS_OBJECT_SRQ);
}

static bool fill_poll(struct call *c)
{
	struct ib_uverbs_poll_cq *req = (void *)c->in;

	req->cq_handle = handle(UVERBS_OBJECT_CQ, c->ctx);
	req->ne = number(1, 100);
	c->out_len += sizeof(struct ib_uverbs_wc);
	return true;
}

static bool fill_notify(struct call *c)
{
	struct ib_uverbs_req_notify_cq *req = (void *)c->in;

	req->cq_handle = handle(UVERBS_OBJECT_CQ, c->ctx);
	req->solicited_only = number(0, 1);
	return true;
}

static bool fill_numbers(struct call *c)
{
	uint32_t i;

	for (i = 0; i < c->in_len / 4; i++)
		((uint32_t *)c->in)[i] = number(below(4), 4);
	return true;
}

static bool fill_new(struct call *c)
{
	attr_obj(c, 0, 0);
	return true;
}

/* Uses numbers of commands that do not exist, or not any more; below 50 and above. */
static bool fill_unknown(struct call *c)
{
	c->in_len = 4 * below(16);
	return fill_numbers(c);
}

#define UNKNOWN(cmd_, ex_)							\
	{ .name = #cmd_, .cmd = cmd_, .ex = ex_, .weight = 1,	\
	  .refused = true, .out_len = 8, .fill = fill_unknown }
#define REFUSED .weight = 1, .refused = true

static const struct method methods[] = {
	{ COMMAND(POST_SEND, struct ib_uverbs_post_send, struct ib_uverbs_post_send_resp), REFUSED,
	  .fill = fill_post_qp },
	{ COMMAND(POST_RECV, struct ib_uverbs_post_recv, struct ib_uverbs_post_recv_resp), REFUSED,
	  .fill = fill_post_qp },
	{ COMMAND(POST_SRQ_RECV, struct ib_uverbs_post_srq_recv,
		  struct ib_uverbs_post_srq_recv_resp), REFUSED, .fill = fill_post_srq },
	{ COMMAND(POLL_CQ, struct ib_uverbs_poll_cq, struct ib_uverbs_poll_cq_resp), REFUSED,
	  .fill = fill_poll },
	{ COMMAND(REQ_NOTIFY_CQ, struct ib_uverbs_req_notify_cq, NOTHING), REFUSED,
	  .fill = fill_notify },
	UNKNOWN(IB_USER_VERBS_CMD_MODIFY_AH, false),
	UNKNOWN(IB_USER_VERBS_CMD_BIND_MW, false),
	UNKNOWN(IB_USER_VERBS_CMD_PEEK_CQ, false),
	UNKNOWN(IB_USER_VERBS_CMD_THRESHOLD - 1, true),
	UNKNOWN(IB_USER_VERBS_CMD_COMMAND_MASK, false),
	{ IOCTL(FLOW_ACTION, FLOW_ACTION_ESP_CREATE), REFUSED, .fill = fill_new },
};

const struct table refused_methods = { methods, ARRAY_SIZE(methods) };
