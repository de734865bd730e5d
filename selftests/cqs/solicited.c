// SPDX-License-Identifier: GPL-2.0
/* Solicited events of services other than RC, which is in notify.c. */
#include <fcntl.h>

#include "lib/xrc.h"

/* struct scene - the sender, and the CQ in which its messages complete */
struct scene {
	struct dev *d;
	struct ibv_comp_channel *ch;
	struct pair p;
	struct ibv_srq *srq;	/* NULL: the QP's own receive queue */
	uint32_t srqn;
	struct ibv_cq *cq;
	struct buf buf;
};

static void connect_xrc(struct scene *s, struct qp_opts *o)
{
	struct ibv_xrcd *xrcd = xrcd_new(s->d, -1, O_CREAT);

	s->srq = xsrq_try(s->d, xrcd, s->cq);
	REQUIRE(s->srq);
	REQUIRE_OK(ibv_get_srq_num(s->srq, &s->srqn));
	s->p.a = end_new(s->d, o);
	o->type = IBV_QPT_XRC_RECV;
	o->xrcd = xrcd;
	s->p.b = end_new(s->d, o);
	pair_connect(&s->p, &CONN);
}

static struct scene scene_new(enum ibv_qp_type type)
{
	struct scene s = { .d = dev_open() };
	struct qp_opts o = QP_OPTS;

	o.type = type;
	s.p.dev = s.d;
	s.ch = ibv_create_comp_channel(s.d->ctx);
	REQUIRE(s.ch);
	s.cq = cq_new(s.d, 64, s.ch);
	s.buf = buf_new(s.d->pd, 8192, REMOTE);
	if (type == IBV_QPT_XRC_SEND) {
		connect_xrc(&s, &o);
		return s;
	}
	o.recv_cq = s.cq;
	s.p = pair_new(s.d, &o, &CONN);
	return s;
}

/* Sends one message of @len bytes and polls its completions in both CQs. */
static void message(struct scene *s, enum ibv_wr_opcode opcode, uint32_t len, int flags)
{
	struct ibv_sge out = buf_sge(&s->buf, 0, len);
	struct ibv_sge in = buf_sge(&s->buf, 4096, 4096);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &out, 1, (uintptr_t)s->buf.addr + 4096,
					s->buf.mr->rkey);
	struct ibv_recv_wr rwr = { .wr_id = 2, .sg_list = &in, .num_sge = 1 }, *bad;

	wr.send_flags |= flags;
	wr.qp_type.xrc.remote_srqn = s->srqn;
	if (s->srq)
		REQUIRE_OK(ibv_post_srq_recv(s->srq, &rwr, &bad));
	else
		REQUIRE_OK(post_recv(&s->p.b, 2, &in, 1));
	REQUIRE_OK(post_send(&s->p.a, &wr));
	poll_ok(s->p.a.send_cq, 1);
	CHECK_EQ(poll_ok(s->cq, 2).byte_len, len);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	uint32_t len;
} services[] = {
	{ "UC, SEND", IBV_QPT_UC, IBV_WR_SEND, 10 },
	{ "UC, SEND of several packets", IBV_QPT_UC, IBV_WR_SEND, 4000 },
	{ "UC, SEND with immediate data", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM, 10 },
	{ "UC, WRITE with immediate data", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 4000 },
	{ "XRC, SEND", IBV_QPT_XRC_SEND, IBV_WR_SEND, 10 },
	{ "XRC, SEND of several packets", IBV_QPT_XRC_SEND, IBV_WR_SEND, 4000 },
	{ "XRC, SEND with immediate data", IBV_QPT_XRC_SEND, IBV_WR_SEND_WITH_IMM, 10 },
	{ "XRC, WRITE with immediate data", IBV_QPT_XRC_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, 4000 },
};

/* Sends a message without the solicited bit, then one with it. */
TEST_ROWS(service, "B-045 B-047 B-049 C-015 only a solicited message raises an event", services)
{
	struct scene s = scene_new(row->type);
	struct ibv_cq *cq = NULL;
	int i;

	for (i = 0; i < 20; i++) {
		REQUIRE_OK(ibv_req_notify_cq(s.cq, 1));
		message(&s, row->opcode, row->len, 0);
		if (cq_event_wait(s.ch, &cq, i ? 0 : QUIET_MS))
			FAIL("an event that was not requested");
		message(&s, row->opcode, row->len, IBV_SEND_SOLICITED);
		REQUIRE(cq_event_wait(s.ch, &cq, WAIT_MS));
		CHECK(cq == s.cq);
	}
	if (cq_event_wait(s.ch, &cq, QUIET_MS))
		FAIL("one event too many");
}
