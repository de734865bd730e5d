// SPDX-License-Identifier: GPL-2.0
/* Methods that exist as ioctls. */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

/* ---- the device ---- */

static bool fill_query_port(struct call *c)
{
	attr_number(c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, number(PORT, PORT));
	attr_out(c, UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex));
	return true;
}

static bool fill_query_context(struct call *c)
{
	attr_out(c, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4);
	attr_out(c, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8);
	attr_out(c, QHCA_ATTR_QUERY_CONTEXT_RESP, sizeof(struct qhca_alloc_ucontext_resp));
	return true;
}

/* Doorbells in memory: in a page, which may be used for other things as well. */
static bool fill_create_shadow(struct call *c)
{
	struct qhca_create_shadow_req req = {
		.addr = address(PAGE),
		.len = number(PAGE, PAGE),
		.slots = number(SLOTS, QHCA_SHADOW_SLOTS_MAX),
	};

	c->made.ring[0].mem = (void *)(uintptr_t)req.addr;
	attr_in(c, QHCA_ATTR_CREATE_SHADOW_REQ, memcpy(c->in, &req, sizeof(req)), sizeof(req));
	return true;
}

static void done_create_shadow(struct call *c)
{
	if (is_own(c->made.ring[0].mem, PAGE))
		fuzz.shadow[c->ctx] = (void *)c->made.ring[0].mem;
}

static bool fill_get_context(struct call *c)
{
	attr_out(c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4);
	attr_out(c, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8);
	attr_out(c, UVERBS_ATTR_UHW_OUT, sizeof(struct qhca_alloc_ucontext_resp));
	return true;
}

static bool fill_gid_table(struct call *c)
{
	uint32_t flags = number(0, 1);

	attr_number(c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE,
		    number(sizeof(struct ib_uverbs_gid_entry), 64));
	attr_in(c, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, &flags, sizeof(flags));
	attr_out(c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
		 16 * sizeof(struct ib_uverbs_gid_entry));
	attr_out(c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8);
	return true;
}

static bool fill_gid_entry(struct call *c)
{
	uint32_t flags = number(0, 1);

	attr_number(c, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, number(PORT, PORT));
	attr_number(c, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, number(fuzz.gid_index, 256));
	attr_in(c, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, &flags, sizeof(flags));
	attr_out(c, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(struct ib_uverbs_gid_entry));
	return true;
}

static bool fill_handles(struct call *c)
{
	attr_number(c, UVERBS_ATTR_INFO_OBJECT_ID, number(1 + below(KINDS - 1), KINDS));
	attr_out(c, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4);
	attr_out(c, UVERBS_ATTR_INFO_HANDLES_LIST, 4 * (1 + below(64)));
	return true;
}

static bool fill_async(struct call *c)
{
	attr_obj(c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	return true;
}

static void done_async(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	fcntl(c->made.handle, F_SETFL, O_NONBLOCK);
}

/* ---- queues ---- */

static bool fill_cq(struct call *c)
{
	uint32_t cqe, flags = number(below(2), 2), vector = number(0, 4);

	cq_request(&c->made, (void *)c->drv, &cqe);
	attr_obj(c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	attr_in(c, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	attr_number(c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, chance());
	if (one_in(3))
		attr_obj(c, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL,
			 handle(UVERBS_OBJECT_COMP_CHANNEL, c->ctx));
	attr_in(c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	attr_in(c, UVERBS_ATTR_CREATE_CQ_FLAGS, &flags, sizeof(flags));
	if (one_in(3))
		attr_obj(c, UVERBS_ATTR_CREATE_CQ_EVENT_FD,
			 handle(UVERBS_OBJECT_ASYNC_EVENT, CONTEXTS));
	attr_out(c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4);
	attr_in(c, UVERBS_ATTR_UHW_IN, c->drv,
		spoil_length(sizeof(struct qhca_create_cq_req), 1));
	attr_out(c, UVERBS_ATTR_UHW_OUT, sizeof(struct qhca_create_cq_resp));
	return true;
}

/* The answers are where attr_out() has put them, 8 bytes each. */
static void done_cq(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_CREATE_CQ_HANDLE);
	c->made.num = c->out[1];
}

static bool fill_qp(struct call *c)
{
	struct ib_uverbs_qp_cap cap = { 0 };
	uint64_t type = some_qp_type();
	uint32_t flags = odd() ? 1u << below(32) : 0;
	bool sends = type != IBV_QPT_XRC_RECV, srq = one_in(3) && (type == IBV_QPT_RC || odd());

	if (sends || odd())
		qp_request(&c->made, (void *)c->drv, &cap, !srq && type != IBV_QPT_XRC_SEND);
	attr_obj(c, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	if (!sends || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, handle(UVERBS_OBJECT_XRCD, c->ctx));
	if (sends || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	if (srq)
		attr_obj(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, handle(UVERBS_OBJECT_SRQ, c->ctx));
	if (sends || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE,
			 handle(UVERBS_OBJECT_CQ, c->ctx));
	if ((sends && type != IBV_QPT_XRC_SEND) || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE,
			 handle(UVERBS_OBJECT_CQ, c->ctx));
	attr_number(c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, chance());
	attr_in(c, UVERBS_ATTR_CREATE_QP_CAP, memcpy(c->in, &cap, sizeof(cap)), sizeof(cap));
	attr_number(c, UVERBS_ATTR_CREATE_QP_TYPE, type);
	if (flags)
		attr_in(c, UVERBS_ATTR_CREATE_QP_FLAGS, &flags, sizeof(flags));
	attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap));
	attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4);
	if (sends || odd()) {
		attr_in(c, UVERBS_ATTR_UHW_IN, c->drv,
			spoil_length(sizeof(struct qhca_create_qp_req), 1));
		attr_out(c, UVERBS_ATTR_UHW_OUT, sizeof(struct qhca_create_qp_resp));
	}
	c->made.type = type;
	return true;
}

static void done_qp(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_CREATE_QP_HANDLE);
	c->made.num = c->out[3];		/* behind the 20 bytes of the capacities */
}

static bool fill_srq(struct call *c)
{
	uint32_t wr, sge, limit = number(0, 100);
	uint64_t type = number(below(2), 3);

	srq_request(&c->made, (void *)c->drv, &wr, &sge);
	attr_obj(c, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	attr_obj(c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	if (type == IB_UVERBS_SRQT_XRC || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, handle(UVERBS_OBJECT_XRCD, c->ctx));
	if (type == IB_UVERBS_SRQT_XRC || odd())
		attr_obj(c, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, handle(UVERBS_OBJECT_CQ, c->ctx));
	attr_number(c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, chance());
	attr_in(c, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &wr, sizeof(wr));
	attr_in(c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &sge, sizeof(sge));
	attr_in(c, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit));
	attr_number(c, UVERBS_ATTR_CREATE_SRQ_TYPE, type);
	attr_out(c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4);
	attr_out(c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4);
	if (type == IB_UVERBS_SRQT_XRC)
		attr_out(c, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4);
	attr_in(c, UVERBS_ATTR_UHW_IN, c->drv,
		spoil_length(sizeof(struct qhca_create_srq_req), 1));
	attr_out(c, UVERBS_ATTR_UHW_OUT, sizeof(struct qhca_create_srq_resp));
	c->made.type = type;
	return true;
}

static void done_srq(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_CREATE_SRQ_HANDLE);
	c->made.num = c->out[c->made.type == IB_UVERBS_SRQT_XRC ? 3 : 2];
}

/* ---- destroying: a handle, and for some objects an answer ---- */

static bool fill_destroy(struct call *c, int kind, uint16_t len)
{
	/* The attribute has the same number for all kinds of objects. */
	c->obj = live(kind, c->ctx);
	if (!c->obj)
		return false;
	attr_obj(c, 0, odd() ? handle(kind, c->ctx) : c->obj->handle);
	if (len)
		attr_out(c, 1, len);
	return true;
}

static void done_destroy(struct call *c)
{
	c->obj->life = STALE;
}

#define FILL_DESTROY(kind, len)							\
	static bool destroy_##kind(struct call *c)				\
	{									\
		return fill_destroy(c, UVERBS_OBJECT_##kind, len);		\
	}
FILL_DESTROY(PD, 0)
FILL_DESTROY(CQ, 8)
FILL_DESTROY(QP, 4)
FILL_DESTROY(SRQ, 4)
FILL_DESTROY(AH, 0)
FILL_DESTROY(MR, 0)
FILL_DESTROY(MW, 0)
FILL_DESTROY(XRCD, 0)
FILL_DESTROY(DM, 0)

static bool fill_pd_query(struct call *c)
{
	attr_obj(c, QHCA_ATTR_PD_QUERY_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	attr_out(c, QHCA_ATTR_PD_QUERY_RESP, sizeof(struct qhca_alloc_pd_resp));
	return true;
}

#define DESTROY(kind, method) \
	{ IOCTL(kind, method), .weight = 2, .fill = destroy_##kind, .done = done_destroy }

static const struct method methods[] = {
	{ IOCTL(DEVICE, QUERY_PORT), .weight = 1, .fill = fill_query_port },
	{ IOCTL(DEVICE, GET_CONTEXT), .weight = 1, .fill = fill_get_context, .refused = true },
	{ IOCTL(DEVICE, QUERY_CONTEXT), .weight = 2, .fill = fill_query_context },
	{ IOCTL(DEVICE, QUERY_GID_TABLE), .weight = 1, .fill = fill_gid_table },
	{ IOCTL(DEVICE, QUERY_GID_ENTRY), .weight = 1, .also = { ENODATA },
	  .fill = fill_gid_entry },
	{ IOCTL(DEVICE, INFO_HANDLES), .weight = 2, .also = { ENOMSG }, .fill = fill_handles },
	{ IOCTL(ASYNC_EVENT, ASYNC_EVENT_ALLOC), .weight = 2, .fill = fill_async,
	  .done = done_async, .makes = UVERBS_OBJECT_ASYNC_EVENT },
	{ IOCTL(CQ, CQ_CREATE), .weight = 6, .fill = fill_cq, .done = done_cq,
	  .makes = UVERBS_OBJECT_CQ },
	{ IOCTL(QP, QP_CREATE), .weight = 10, .fill = fill_qp, .done = done_qp,
	  .makes = UVERBS_OBJECT_QP },
	{ IOCTL(SRQ, SRQ_CREATE), .weight = 6, .fill = fill_srq, .done = done_srq,
	  .makes = UVERBS_OBJECT_SRQ },
	DESTROY(PD, PD_DESTROY),
	DESTROY(CQ, CQ_DESTROY),
	DESTROY(QP, QP_DESTROY),
	DESTROY(SRQ, SRQ_DESTROY),
	DESTROY(AH, AH_DESTROY),
	DESTROY(MR, MR_DESTROY),
	DESTROY(MW, MW_DESTROY),
	DESTROY(XRCD, XRCD_DESTROY),
	DESTROY(DM, DM_FREE),
	{ .name = "ioctl CREATE_SHADOW", .ioctl = true, .object = UVERBS_OBJECT_DEVICE,
	  .cmd = QHCA_METHOD_CREATE_SHADOW, .weight = 2, .also = { EBUSY, EOPNOTSUPP },
	  .fill = fill_create_shadow, .done = done_create_shadow },
	{ .name = "ioctl PD_QUERY", .ioctl = true, .object = UVERBS_OBJECT_PD,
	  .cmd = QHCA_METHOD_PD_QUERY, .weight = 2, .fill = fill_pd_query },
};

const struct table ioctl_methods = { methods, ARRAY_SIZE(methods) };
