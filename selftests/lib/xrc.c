// SPDX-License-Identifier: GPL-2.0
/* XRC domains, SRQs in them, connections. */
#include <fcntl.h>

#include "xrc.h"

struct ibv_xrcd *xrcd_open(struct dev *d, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(d->ctx, &attr);
}

struct ibv_xrcd *xrcd_new(struct dev *d, int fd, int oflags)
{
	struct ibv_xrcd *xrcd;

	if (!(d->attr.device_cap_flags & IBV_DEVICE_XRC))
		test_skip("no XRC here");
	xrcd = xrcd_open(d, fd, oflags);
	REQUIRE(xrcd);
	return xrcd;
}

static struct ibv_srq *create(struct dev *d, struct ibv_xrcd *xrcd, struct ibv_cq *cq,
			      uint32_t max_wr)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = max_wr, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = d->pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	if (xrcd)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	if (cq)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	errno = 0;
	return ibv_create_srq_ex(d->ctx, &attr);
}

struct ibv_srq *xsrq_try(struct dev *d, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	return create(d, xrcd, cq, 16);
}

struct xsrq xsrq_new(struct dev *d, struct ibv_xrcd *xrcd, uint32_t max_wr)
{
	struct xsrq s = { .cq = cq_new(d, 64, NULL) };

	s.srq = create(d, xrcd, s.cq, max_wr);
	REQUIRE(s.srq);
	REQUIRE_OK(ibv_get_srq_num(s.srq, &s.srqn));
	return s;
}

struct xrc xrc_new(struct dev *d, const struct conn *c)
{
	struct qp_opts o = QP_OPTS;
	struct xrc x = { .d = d, .xrcd = xrcd_new(d, -1, O_CREAT) };

	x.srq = xsrq_new(d, x.xrcd, 16);
	x.p.dev = d;
	o.inline_data = 64;
	o.type = IBV_QPT_XRC_SEND;
	x.p.a = end_new(d, &o);
	o.type = IBV_QPT_XRC_RECV;
	o.xrcd = x.xrcd;
	x.p.b = end_new(d, &o);
	pair_connect(&x.p, c);
	x.buf = buf_new(d->pd, XRC_BUF, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	fill(x.buf.addr, XRC_HALF, 1);
	return x;
}

struct ibv_send_wr xrc_wr(struct xrc *x, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
			  uint32_t len)
{
	struct ibv_send_wr wr = wr_rdma(100 + opcode, opcode, sge, 1,
					(uintptr_t)x->buf.addr + XRC_HALF, x->buf.mr->rkey);

	wr.qp_type.xrc.remote_srqn = x->srq.srqn;
	*sge = buf_sge(&x->buf, 0, len);
	return wr;
}
