// SPDX-License-Identifier: GPL-2.0
/* Posting with ibv_wr_*(). */
#include "wr_ex.h"

struct end end_ex(struct dev *d, struct ibv_pd *pd, struct ibv_cq *cq,
		  uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 16, 16, 3, 3, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = ops,
	};
	struct end e = { .dev = d, .send_cq = cq, .recv_cq = cq };

	e.qp = ibv_create_qp_ex(d->ctx, &init);
	if (!e.qp && errno == EOPNOTSUPP)
		test_skip("no such extended QPs here");
	REQUIRE(e.qp);
	e.cap = init.cap;
	return e;
}

struct pair pair_ex(struct dev *d, uint64_t ops, const struct conn *c)
{
	struct pair p = { .dev = d };

	p.a = end_ex(d, d->pd, cq_new(d, 64, NULL), ops);
	p.b = end_ex(d, d->pd, cq_new(d, 64, NULL), ops);
	pair_connect(&p, c);
	return p;
}

struct ibv_qp_ex *wr_start(struct end *e, uint64_t id)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(e->qp);

	REQUIRE(q);
	ibv_wr_start(q);
	q->wr_id = id;
	q->wr_flags = IBV_SEND_SIGNALED;
	return q;
}
