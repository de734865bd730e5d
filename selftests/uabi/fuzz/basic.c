// SPDX-License-Identifier: GPL-2.0
/* Contexts, queries, PDs, address handles, channels; destroying by command. */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

/* ---- the device and contexts ---- */

static bool fill_query_port(struct call *c)
{
	struct ib_uverbs_query_port *req = (void *)c->in;

	req->port_num = number(PORT, PORT);
	return true;
}

static bool fill_nothing(struct call *c)
{
	return true;
}

/* ---- PDs, address handles, channels ---- */

static void done_pd(struct call *c)
{
	struct ib_uverbs_alloc_pd_resp *resp = (void *)c->out;

	c->made.handle = resp->pd_handle;
}

static bool fill_ah(struct call *c)
{
	struct ib_uverbs_create_ah *req = (void *)c->in;

	req->user_handle = chance();
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	memcpy(req->attr.grh.dgid, &fuzz.gid, 16);
	req->attr.grh.sgid_index = number(fuzz.gid_index, 256);
	req->attr.grh.hop_limit = 64;
	req->attr.is_global = number(1, 1);
	req->attr.port_num = number(PORT, PORT);
	req->attr.sl = number(0, 15);
	req->attr.static_rate = number(0, 18);
	return true;
}

static void done_ah(struct call *c)
{
	struct ib_uverbs_create_ah_resp *resp = (void *)c->out;

	c->made.handle = resp->ah_handle;
}

static void done_channel(struct call *c)
{
	struct ib_uverbs_create_comp_channel_resp *resp = (void *)c->out;

	fcntl(resp->fd, F_SETFL, O_NONBLOCK);
	c->made.handle = resp->fd;
}

/* ---- destroying: these commands need only a handle ---- */

static bool fill_destroy(struct call *c, int kind, uint32_t word)
{
	uint32_t *in = (uint32_t *)c->in;

	c->obj = live(kind, c->ctx);
	if (!c->obj)
		return false;
	in[word] = odd() ? handle(kind, c->ctx) : c->obj->handle;
	return true;
}

static void done_destroy(struct call *c)
{
	c->obj->life = STALE;
}

#define FILL_DESTROY(kind, word)						\
	static bool fill_destroy_##kind(struct call *c)				\
	{									\
		return fill_destroy(c, UVERBS_OBJECT_##kind, word);		\
	}
FILL_DESTROY(PD, 0)
FILL_DESTROY(AH, 0)
FILL_DESTROY(MR, 0)
FILL_DESTROY(MW, 0)
FILL_DESTROY(XRCD, 0)
/* The handle is behind the address of the response. */
FILL_DESTROY(CQ, 2)
FILL_DESTROY(QP, 2)
FILL_DESTROY(SRQ, 2)

#define DESTROY(cmd, kind, in, out)						\
	{ COMMAND(cmd, in, out), .weight = 3, .fill = fill_destroy_##kind,	\
	  .done = done_destroy }

static const struct method methods[] = {
	{ COMMAND(GET_CONTEXT, struct ib_uverbs_get_context, struct ib_uverbs_get_context_resp),
	  .weight = 1, .refused = true, .fill = fill_nothing,
	  .drv_out_len = sizeof(struct qhca_alloc_ucontext_resp) },
	{ COMMAND(QUERY_DEVICE, struct ib_uverbs_query_device,
		  struct ib_uverbs_query_device_resp), .weight = 1, .fill = fill_nothing },
	{ COMMAND_EX(QUERY_DEVICE, struct ib_uverbs_ex_query_device,
		     struct ib_uverbs_ex_query_device_resp), .weight = 2, .fill = fill_nothing,
	  .drv_out_len = sizeof(struct qhca_query_device_ex_resp) },
	{ COMMAND(QUERY_PORT, struct ib_uverbs_query_port, struct ib_uverbs_query_port_resp),
	  .weight = 1, .fill = fill_query_port },
	{ COMMAND(ALLOC_PD, struct ib_uverbs_alloc_pd, struct ib_uverbs_alloc_pd_resp),
	  .weight = 6, .fill = fill_nothing, .done = done_pd, .makes = UVERBS_OBJECT_PD,
	  .drv_out_len = sizeof(struct qhca_alloc_pd_resp) },
	{ COMMAND(CREATE_AH, struct ib_uverbs_create_ah, struct ib_uverbs_create_ah_resp),
	  .weight = 6, .also = NO_ADDRESS, .fill = fill_ah, .done = done_ah,
	  .makes = UVERBS_OBJECT_AH,
	  .drv_out_len = sizeof(struct qhca_create_ah_resp) },
	{ COMMAND(CREATE_COMP_CHANNEL, struct ib_uverbs_create_comp_channel,
		  struct ib_uverbs_create_comp_channel_resp),
	  .weight = 3, .fill = fill_nothing, .done = done_channel,
	  .makes = UVERBS_OBJECT_COMP_CHANNEL },
	DESTROY(DEALLOC_PD, PD, struct ib_uverbs_dealloc_pd, NOTHING),
	DESTROY(DESTROY_AH, AH, struct ib_uverbs_destroy_ah, NOTHING),
	DESTROY(DEREG_MR, MR, struct ib_uverbs_dereg_mr, NOTHING),
	DESTROY(DEALLOC_MW, MW, struct ib_uverbs_dealloc_mw, NOTHING),
	DESTROY(CLOSE_XRCD, XRCD, struct ib_uverbs_close_xrcd, NOTHING),
	DESTROY(DESTROY_CQ, CQ, struct ib_uverbs_destroy_cq, struct ib_uverbs_destroy_cq_resp),
	DESTROY(DESTROY_QP, QP, struct ib_uverbs_destroy_qp, struct ib_uverbs_destroy_qp_resp),
	DESTROY(DESTROY_SRQ, SRQ, struct ib_uverbs_destroy_srq,
		struct ib_uverbs_destroy_srq_resp),
};

const struct table basic_methods = { methods, ARRAY_SIZE(methods) };
