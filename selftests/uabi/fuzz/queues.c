// SPDX-License-Identifier: GPL-2.0
/* Completion queues, queue pairs and shared receive queues, and XRC domains. */
#include <fcntl.h>

#include <qhca/queues.h>

#include "fuzz.h"

/* Returns mostly a small number; sometimes one around the device's limit, or nonsense. */
static uint32_t log_of(uint32_t usual, uint32_t max)
{
	uint32_t n = below(usual), limit = 31 - __builtin_clz(max | 1);

	if (odd())
		n = one_in(2) ? limit + below(3) - 1 : (uint32_t)nonsense();
	return n;
}

static uint64_t shifted(uint64_t n, uint32_t by)
{
	return by < 32 ? n << by : 0;
}

void cq_request(struct obj *o, struct qhca_create_cq_req *req, uint32_t *cqe)
{
	uint32_t n = log_of(9, fuzz.attr.max_cqe);
	uint64_t len = shifted(sizeof(struct qhca_cqe), n) + sizeof(struct qhca_cq_dbrec);

	*cqe = number(shifted(1, n) - (n ? below(shifted(1, n - 1) ?: 1) : 0), fuzz.attr.max_cqe);
	req->log_size = n;
	req->buf_len = number(len, len);
	req->buf_addr = address(len);
	o->ring[0] = (struct ring){ .mem = (void *)(uintptr_t)req->buf_addr, .log_size = n,
				    .log_stride = 6 };
}

static void cq_flags(struct qhca_create_cq_req *req)
{
	req->flags = number(fuzz.has_shadow && one_in(2) ? QHCA_CREATE_CQ_DBREC : 0, 2);
}

static bool fill_cq(struct call *c)
{
	struct ib_uverbs_create_cq *req = (void *)c->in;

	req->user_handle = chance();
	req->comp_channel = one_in(3) ? (int)handle(UVERBS_OBJECT_COMP_CHANNEL, c->ctx) : -1;
	req->comp_vector = number(0, 4);
	cq_request(&c->made, (void *)c->drv, &req->cqe);
	cq_flags((void *)c->drv);
	return true;
}

static bool fill_cq_ex(struct call *c)
{
	struct ib_uverbs_ex_create_cq *req = (void *)c->in;

	req->user_handle = chance();
	req->comp_channel = one_in(3) ? (int)handle(UVERBS_OBJECT_COMP_CHANNEL, c->ctx) : -1;
	req->comp_vector = number(0, 4);
	req->flags = number(below(2), 2);
	cq_request(&c->made, (void *)c->drv, &req->cqe);
	cq_flags((void *)c->drv);
	return true;
}

/* The driver's part follows the core's, which is longer in the extended response. */
static void done_cq(struct call *c)
{
	struct ib_uverbs_create_cq_resp *resp = (void *)c->out;
	struct qhca_create_cq_resp *drv = (void *)((uint8_t *)c->out + c->out_len);

	c->made.handle = resp->cq_handle;
	c->made.num = drv->cqn;
}

static bool fill_resize_cq(struct call *c)
{
	struct ib_uverbs_resize_cq *req = (void *)c->in;

	c->obj = live(UVERBS_OBJECT_CQ, c->ctx);
	req->cq_handle = c->obj && !odd() ? c->obj->handle : handle(UVERBS_OBJECT_CQ, c->ctx);
	cq_request(&c->made, (void *)c->drv, &req->cqe);
	return true;
}

static void done_resize(struct call *c)
{
	if (c->obj)
		c->obj->ring[0] = c->made.ring[0];
}

/* ---- queue pairs ---- */

uint32_t some_qp_type(void)
{
	static const uint8_t types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD,
		IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET, IBV_QPT_RAW_PACKET,
	};
	static const uint8_t others[] = { IBV_QPT_DRIVER, 0, 1, 11 };

	if (odd())
		return one_in(2) ? others[below(ARRAY_SIZE(others))] : chance() & 0xff;
	return types[below(ARRAY_SIZE(types))];
}

static uint32_t stride_log(uint32_t len, uint32_t min)
{
	uint32_t n = min;

	while (1u << n < len && n < 31)
		n++;
	return number(n, 10);
}

/* @tail: bytes behind the ring */
static void wq_request(struct ring *r, uint32_t wr, uint32_t stride, uint32_t tail,
		       uint64_t *addr, uint32_t *len)
{
	uint64_t bytes;

	r->log_stride = stride;
	r->log_size = number(31 - __builtin_clz(wr * 2 - 1 ?: 1), 14);
	bytes = shifted(shifted(1, r->log_size), stride) + tail;
	*len = number(bytes, bytes);
	*addr = address(bytes);
	r->mem = (void *)(uintptr_t)*addr;
}

void qp_request(struct obj *o, struct qhca_create_qp_req *req, struct ib_uverbs_qp_cap *cap,
		bool has_rq)
{
	uint32_t payload;

	cap->max_send_wr = number(1 + below(40), fuzz.attr.max_qp_wr);
	cap->max_recv_wr = has_rq ? number(1 + below(40), fuzz.attr.max_qp_wr) : 0;
	cap->max_send_sge = number(below(5), fuzz.attr.max_sge);
	cap->max_recv_sge = number(below(5), fuzz.attr.max_sge);
	cap->max_inline_data = number(below(100), 512);
	o->ring[0].sge = cap->max_send_sge;
	o->ring[1].sge = cap->max_recv_sge;
	payload = cap->max_send_sge * sizeof(struct qhca_sge);
	if (payload < cap->max_inline_data)
		payload = cap->max_inline_data;
	if (cap->max_send_wr)
		wq_request(&o->ring[0], cap->max_send_wr,
			   stride_log(sizeof(struct qhca_sq_wqe) + payload, 7), 0,
			   (uint64_t *)&req->sq_addr, &req->sq_len);
	req->sq_log_size = o->ring[0].log_size;
	req->sq_log_stride = o->ring[0].log_stride;
	if (cap->max_recv_wr)
		wq_request(&o->ring[1], cap->max_recv_wr,
			   stride_log(16 + cap->max_recv_sge * sizeof(struct qhca_sge), 5),
			   sizeof(struct qhca_rq_dbrec), (uint64_t *)&req->rq_addr, &req->rq_len);
	/* A ring for a queue that does not exist. */
	if (odd())
		cap->max_recv_wr = 0;
	if (odd())
		req->reserved[below(4)] = 1;
	req->rq_log_size = o->ring[1].log_size;
	req->rq_log_stride = o->ring[1].log_stride;
}

/* Members that both forms of the command have, from pd_handle on. */
struct qp_common {
	uint32_t pd, send_cq, recv_cq, srq;
	struct ib_uverbs_qp_cap cap;
	uint8_t sig_all, type, is_srq, reserved;
};

static void fill_qp_common(struct call *c, void *at)
{
	struct qhca_create_qp_req drv = { 0 };
	struct qp_common q = { .sig_all = one_in(2), .type = some_qp_type() };
	bool sends = q.type != IBV_QPT_XRC_RECV;

	q.is_srq = (q.type == IBV_QPT_RC || q.type == IBV_QPT_UD ||
		    q.type == IBV_QPT_RAW_PACKET || odd()) && one_in(3);
	q.pd = handle(sends ? UVERBS_OBJECT_PD : UVERBS_OBJECT_XRCD, c->ctx);
	q.send_cq = handle(UVERBS_OBJECT_CQ, c->ctx);
	q.recv_cq = handle(UVERBS_OBJECT_CQ, c->ctx);
	q.srq = handle(UVERBS_OBJECT_SRQ, c->ctx);
	if (sends || odd())
		qp_request(&c->made, &drv, &q.cap, !q.is_srq && q.type != IBV_QPT_XRC_SEND);
	c->made.type = q.type;
	memcpy(at, &q, sizeof(q));
	memcpy(c->drv, &drv, sizeof(drv));
}

static bool fill_qp(struct call *c)
{
	struct ib_uverbs_create_qp *req = (void *)c->in;

	req->user_handle = chance();
	fill_qp_common(c, &req->pd_handle);
	return true;
}

static bool fill_qp_ex(struct call *c)
{
	struct ib_uverbs_ex_create_qp *req = (void *)c->in;

	req->user_handle = chance();
	fill_qp_common(c, &req->pd_handle);
	if (odd())
		req->create_flags = 1u << below(32);
	return true;
}

static void done_qp(struct call *c)
{
	struct ib_uverbs_create_qp_resp *resp = (void *)c->out;

	c->made.handle = resp->qp_handle;
	c->made.num = resp->qpn;
}

static bool fill_open_qp(struct call *c)
{
	struct ib_uverbs_open_qp *req = (void *)c->in;
	struct obj *o = live(UVERBS_OBJECT_QP, -1);

	req->user_handle = chance();
	req->pd_handle = handle(UVERBS_OBJECT_XRCD, c->ctx);
	while (o && o->type != IBV_QPT_XRC_RECV && !one_in(40))
		o = live(UVERBS_OBJECT_QP, -1);
	req->qpn = o && !odd() ? o->num : some_qpn();
	req->qp_type = number(IBV_QPT_XRC_RECV, 11);
	c->made.type = IBV_QPT_XRC_RECV;
	return true;
}

/* ---- shared receive queues ---- */

void srq_request(struct obj *o, struct qhca_create_srq_req *req, uint32_t *wr, uint32_t *sge)
{
	struct ring *r = &o->ring[0];

	*wr = number(1 + below(100), fuzz.attr.max_srq_wr);
	*sge = number(below(5), fuzz.attr.max_srq_sge);
	wq_request(r, *wr, stride_log(16 + *sge * sizeof(struct qhca_sge), 5),
		   sizeof(struct qhca_rq_dbrec), (uint64_t *)&req->buf_addr, &req->buf_len);
	r->sge = *sge;
	req->log_size = r->log_size;
	req->log_stride = r->log_stride;
}

static bool fill_srq(struct call *c)
{
	struct ib_uverbs_create_srq *req = (void *)c->in;

	req->user_handle = chance();
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->srq_limit = number(0, 100);
	srq_request(&c->made, (void *)c->drv, &req->max_wr, &req->max_sge);
	return true;
}

static bool fill_xsrq(struct call *c)
{
	struct ib_uverbs_create_xsrq *req = (void *)c->in;

	req->user_handle = chance();
	req->srq_type = number(one_in(4) ? IB_UVERBS_SRQT_BASIC : IB_UVERBS_SRQT_XRC, 3);
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->xrcd_handle = handle(UVERBS_OBJECT_XRCD, c->ctx);
	req->cq_handle = handle(UVERBS_OBJECT_CQ, c->ctx);
	srq_request(&c->made, (void *)c->drv, &req->max_wr, &req->max_sge);
	return true;
}

static void done_srq(struct call *c)
{
	struct ib_uverbs_create_srq_resp *resp = (void *)c->out;
	struct qhca_create_srq_resp *drv = (void *)((uint8_t *)c->out + c->out_len);

	c->made.handle = resp->srq_handle;
	c->made.num = drv->srqn;
}

static bool fill_xrcd(struct call *c)
{
	static const int flags[] = { O_CREAT, O_CREAT, O_CREAT | O_EXCL, 0, O_RDWR };
	struct ib_uverbs_open_xrcd *req = (void *)c->in;

	req->fd = number(one_in(2) ? fuzz.tmpfile : -1, 64);
	req->oflags = number(flags[below(ARRAY_SIZE(flags))], 0x1000);
	return true;
}

static void done_xrcd(struct call *c)
{
	struct ib_uverbs_open_xrcd_resp *resp = (void *)c->out;

	c->made.handle = resp->xrcd_handle;
}

#define DRV_OF(verb)								\
	.drv_len = sizeof(struct qhca_##verb##_req),				\
	.drv_out_len = sizeof(struct qhca_##verb##_resp)

static const struct method methods[] = {
	{ COMMAND(CREATE_CQ, struct ib_uverbs_create_cq, struct ib_uverbs_create_cq_resp),
	  .weight = 6, .fill = fill_cq, .done = done_cq, .makes = UVERBS_OBJECT_CQ,
	  DRV_OF(create_cq) },
	{ COMMAND_EX(CREATE_CQ, struct ib_uverbs_ex_create_cq,
		     struct ib_uverbs_ex_create_cq_resp),
	  .weight = 6, .fill = fill_cq_ex, .done = done_cq, .makes = UVERBS_OBJECT_CQ,
	  DRV_OF(create_cq) },
	{ COMMAND(RESIZE_CQ, struct ib_uverbs_resize_cq, struct ib_uverbs_resize_cq_resp),
	  .weight = 5, .fill = fill_resize_cq, .done = done_resize,
	  .drv_len = sizeof(struct qhca_resize_cq_req) },
	{ COMMAND(CREATE_QP, struct ib_uverbs_create_qp, struct ib_uverbs_create_qp_resp),
	  .weight = 10, .fill = fill_qp, .done = done_qp, .makes = UVERBS_OBJECT_QP,
	  DRV_OF(create_qp) },
	{ COMMAND_EX(CREATE_QP, struct ib_uverbs_ex_create_qp,
		     struct ib_uverbs_ex_create_qp_resp),
	  .weight = 10, .fill = fill_qp_ex, .done = done_qp, .makes = UVERBS_OBJECT_QP,
	  DRV_OF(create_qp) },
	{ COMMAND(OPEN_QP, struct ib_uverbs_open_qp, struct ib_uverbs_create_qp_resp),
	  .weight = 3, .fill = fill_open_qp, .done = done_qp, .makes = UVERBS_OBJECT_QP },
	{ COMMAND(CREATE_SRQ, struct ib_uverbs_create_srq, struct ib_uverbs_create_srq_resp),
	  .weight = 6, .fill = fill_srq, .done = done_srq, .makes = UVERBS_OBJECT_SRQ,
	  DRV_OF(create_srq) },
	{ COMMAND(CREATE_XSRQ, struct ib_uverbs_create_xsrq, struct ib_uverbs_create_srq_resp),
	  .weight = 6, .fill = fill_xsrq, .done = done_srq, .makes = UVERBS_OBJECT_SRQ,
	  DRV_OF(create_srq) },
	{ COMMAND(OPEN_XRCD, struct ib_uverbs_open_xrcd, struct ib_uverbs_open_xrcd_resp),
	  .weight = 4, .fill = fill_xrcd, .done = done_xrcd, .makes = UVERBS_OBJECT_XRCD },
};

const struct table queue_methods = { methods, ARRAY_SIZE(methods) };
