// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: creating, connecting, and moving through the states. */
#include <fcntl.h>
#include <stdlib.h>

#include "rdma.h"
#include "xrc.h"

struct ibv_cq *cq_new(struct dev *d, int cqe, struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, cqe, NULL, ch, 0);

	REQUIRE(cq);
	return cq;
}

/* A QP of type XRC_RECV has only a domain. */
static struct ibv_qp *xrc_recv_new(struct dev *d, const struct qp_opts *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = o->xrcd ? o->xrcd : xrcd_new(d, -1, O_CREAT),
	};

	return ibv_create_qp_ex(d->ctx, &init);
}

struct end end_new(struct dev *d, const struct qp_opts *o)
{
	struct end e = { .dev = d };
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = o->send_wr,
			.max_recv_wr = o->recv_wr,
			.max_send_sge = o->send_sge,
			.max_recv_sge = o->recv_sge,
			.max_inline_data = o->inline_data,
		},
		.qp_type = o->type,
		.sq_sig_all = o->sig_all,
		.srq = o->srq,
	};

	e.send_cq = o->send_cq ? o->send_cq : cq_new(d, o->cqe, NULL);
	e.recv_cq = o->recv_cq ? o->recv_cq : cq_new(d, o->cqe, NULL);
	init.send_cq = e.send_cq;
	init.recv_cq = e.recv_cq;
	e.qp = o->type == IBV_QPT_XRC_RECV ? xrc_recv_new(d, o) :
	       ibv_create_qp(o->pd ? o->pd : d->pd, &init);
	if (!e.qp && errno == EOPNOTSUPP && o->type != IBV_QPT_RC)
		test_skip("the device has no such QPs");
	REQUIRE(e.qp);
	e.cap = init.cap;
	return e;
}

struct ibv_srq *srq_new(struct dev *d, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
	};
	struct ibv_srq *srq = ibv_create_srq(d->pd, &init);

	if (!srq && errno == EOPNOTSUPP)
		test_skip("no SRQs here");
	REQUIRE(srq);
	return srq;
}

int srq_post(struct ibv_srq *srq, uint64_t id, const struct buf *b, size_t off,
	     uint32_t len)
{
	struct ibv_sge sge = buf_sge(b, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

int attr_init(struct ibv_qp_attr *a, const struct conn *c)
{
	*a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = c->access,
		.qkey = c->qkey,
	};
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

struct ibv_ah_attr own_address(const struct dev *d)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.grh = {
			.dgid = d->gid,
			.sgid_index = d->gid_index,
			.hop_limit = 64,
		},
	};
}

struct ibv_ah *own_ah(const struct dev *d, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = own_address(d);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	REQUIRE(ah);
	return ah;
}

int attr_rtr(struct ibv_qp_attr *a, const struct dev *d, const struct conn *c)
{
	*a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = c->mtu,
		.dest_qp_num = c->dest_qpn,
		.rq_psn = c->rq_psn,
		.max_dest_rd_atomic = c->dest_rd_atomic,
		.min_rnr_timer = c->min_rnr_timer,
		.ah_attr = own_address(d),
	};
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER;
}

int attr_rts(struct ibv_qp_attr *a, const struct conn *c)
{
	*a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.sq_psn = c->sq_psn,
		.max_rd_atomic = c->rd_atomic,
	};
	return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
}

int attr_mask(enum ibv_qp_type type, int mask)
{
	const int rc_only = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
			    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_ACCESS_FLAGS;

	if (type == IBV_QPT_RC)
		return mask;
	if (type == IBV_QPT_RAW_PACKET)
		return mask & (IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PORT |
			       IBV_QP_EN_SQD_ASYNC_NOTIFY);
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY);
	mask &= ~rc_only;
	if (type == IBV_QPT_UC)
		return mask;
	/* UD takes its Q_Key in the steps in which other types take their rights. */
	if (mask & IBV_QP_ACCESS_FLAGS)
		mask |= IBV_QP_QKEY;
	return mask & ~connected;
}

int set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

enum ibv_qp_state get_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	REQUIRE_OK(ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
	return a.qp_state;
}

bool wait_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	int64_t end = time_ms() + WAIT_MS;

	while (get_state(qp) != state) {
		if (time_ms() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

void qp_spoil(struct end *e)
{
	struct ibv_sge bad = { .addr = 4096, .length = 8, .lkey = 0x5a };
	struct ibv_send_wr wr = wr_send(0xbad, &bad, 1);

	if (e->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = own_ah(e->dev, e->qp->pd);
		wr.wr.ud.remote_qpn = e->qp->qp_num;
	}
	REQUIRE_OK(post_send(e, &wr));
	poll_expect(e->send_cq, 0xbad, IBV_WC_LOC_PROT_ERR);
	if (wr.wr.ud.ah && e->qp->qp_type == IBV_QPT_UD)
		ibv_destroy_ah(wr.wr.ud.ah);
	REQUIRE(get_state(e->qp) == IBV_QPS_SQE);	/* */
}

void qp_bring(struct end *e, const struct conn *c, enum ibv_qp_state state)
{
	enum ibv_qp_type type = e->qp->qp_type;
	struct ibv_qp_attr a;
	int mask;

	if (state == IBV_QPS_RESET)
		return;
	mask = attr_mask(type, attr_init(&a, c));
	REQUIRE_OK(ibv_modify_qp(e->qp, &a, mask));
	if (state == IBV_QPS_ERR)
		REQUIRE_OK(set_state(e->qp, IBV_QPS_ERR));
	if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return;
	mask = attr_mask(type, attr_rtr(&a, e->dev, c));
	REQUIRE_OK(ibv_modify_qp(e->qp, &a, mask));
	if (state == IBV_QPS_RTR)
		return;
	mask = attr_mask(type, attr_rts(&a, c));
	REQUIRE_OK(ibv_modify_qp(e->qp, &a, mask));
	if (state == IBV_QPS_SQD)
		REQUIRE_OK(set_state(e->qp, IBV_QPS_SQD));
	if (state == IBV_QPS_SQE)
		qp_spoil(e);
}

struct end end_in(struct dev *d, const struct qp_opts *o, enum ibv_qp_state state)
{
	struct end e = end_new(d, o);
	struct conn c = CONN;

	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, state);
	return e;
}

void pair_connect(struct pair *p, const struct conn *c)
{
	struct conn a = *c, b = *c;

	a.dest_qpn = p->b.qp->qp_num;
	b.dest_qpn = p->a.qp->qp_num;
	b.rq_psn = c->sq_psn;
	b.sq_psn = c->rq_psn;
	qp_bring(&p->a, &a, IBV_QPS_RTR);
	qp_bring(&p->b, &b, IBV_QPS_RTR);
	struct ibv_qp_attr attr;
	int mask = attr_mask(p->a.qp->qp_type, attr_rts(&attr, &a));

	REQUIRE_OK(ibv_modify_qp(p->a.qp, &attr, mask));
	mask = attr_mask(p->b.qp->qp_type, attr_rts(&attr, &b));
	REQUIRE_OK(ibv_modify_qp(p->b.qp, &attr, mask));
}

struct pair pair_new(struct dev *d, const struct qp_opts *o,
		     const struct conn *c)
{
	struct pair p = { .dev = d };

	p.a = end_new(d, o);
	p.b = end_new(d, o);
	pair_connect(&p, c);
	return p;
}

struct pair pair_default(void)
{
	return pair_new(dev_open(), &QP_OPTS, &CONN);
}

struct pair pair_at(struct dev *d, struct ibv_cq *cq)
{
	struct qp_opts o = QP_OPTS;

	o.recv_cq = cq;
	o.send_wr = 2 * cq->cqe;
	o.recv_wr = 2 * cq->cqe;
	o.cqe = 4 * cq->cqe;
	return pair_new(d, &o, &CONN);
}

void pair_overflow(struct pair *p)
{
	struct ibv_send_wr wr = wr_send(0, NULL, 0);
	int i;

	for (i = 0; i <= p->b.recv_cq->cqe; i++) {
		REQUIRE_OK(post_recv(&p->b, i, NULL, 0));
		REQUIRE_OK(post_send(&p->a, &wr));
	}
}
