// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of new objects: their caller reads what it gave, used or not, and an object that a bit
 * of the mask promises must be there.
 */
#include <fcntl.h>

#include "lib/steer.h"
#include "lib/xrc.h"

static int context;	/* its address stands for an object */

static struct ibv_parent_domain_init_attr parent_attr(struct ibv_pd *pd)
{
	return (struct ibv_parent_domain_init_attr){ .pd = pd };
}

/* ---- what the caller reads ---- */

static struct ibv_qp_init_attr_ex qp_attr(struct dev *d, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = &context,
		.send_cq = cq_new(d, 16, NULL),
		.recv_cq = cq_new(d, 16, NULL),
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ibv_alloc_pd(d->ctx),
	};

	REQUIRE(attr.pd);
	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = xrcd_new(d, -1, O_CREAT);
	}
	return attr;
}

static void check_qp(const struct ibv_qp *qp, const struct dev *d,
		     const struct ibv_qp_init_attr_ex *attr, struct ibv_pd *pd)
{
	CHECK(qp->context == d->ctx);
	CHECK(qp->qp_context == attr->qp_context);
	CHECK(qp->pd == pd);
	CHECK(qp->send_cq == attr->send_cq);
	CHECK(qp->recv_cq == attr->recv_cq);
	CHECK(qp->srq == attr->srq);
	CHECK_EQ(qp->qp_type, attr->qp_type);
	CHECK_EQ(qp->state, IBV_QPS_RESET);
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
	{ "UD", IBV_QPT_UD },
	{ "XRC, sending", IBV_QPT_XRC_SEND },
	{ "XRC, receiving", IBV_QPT_XRC_RECV },
	{ "raw packets", IBV_QPT_RAW_PACKET },
};

TEST_ROWS(qps, "A-015 J-031 a QP has the PD, CQs and context that its caller gave", types)
{
	bool target = row->type == IBV_QPT_XRC_RECV;
	struct dev *d = dev_open_qhca();
	struct ibv_qp_init_attr_ex attr = qp_attr(d, row->type);
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &attr);

	REQUIRE(qp);
	check_qp(qp, d, &attr, attr.pd);
	/* An XRC target QP uses neither, so it does not keep them either. */
	CHECK_ERR(ibv_dealloc_pd(attr.pd), target ? 0 : EBUSY);
	CHECK_ERR(ibv_destroy_cq(attr.send_cq), target ? 0 : EBUSY);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
}

TEST(no_pd, "J-031 an XRC target QP without a PD: what is behind a bit not set is not read")
{
	struct dev *d = dev_open_qhca();
	struct ibv_qp_init_attr_ex attr = qp_attr(d, IBV_QPT_XRC_RECV);
	struct ibv_qp *qp;

	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp = ibv_create_qp_ex(d->ctx, &attr);
	REQUIRE(qp);
	check_qp(qp, d, &attr, NULL);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
}

TEST(shared_qp, "J-031 a QP that another one opened has its opener's context, and no PD or CQs")
{
	struct dev *d = dev_open_qhca();
	struct ibv_qp_init_attr_ex attr = qp_attr(d, IBV_QPT_XRC_RECV);
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.xrcd = attr.xrcd,
		.qp_context = &open,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &attr), *other;

	REQUIRE(qp);
	open.qp_num = qp->qp_num;
	other = ibv_open_qp(d->ctx, &open);
	REQUIRE(other);
	CHECK(other->qp_context == &open);
	CHECK(!other->pd && !other->send_cq && !other->recv_cq && !other->srq);
	CHECK_ERR(ibv_destroy_qp(other), 0);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
}

TEST(srqs, "J-031 an SRQ has the PD and context that its caller gave, of any kind")
{
	struct dev *d = dev_open_qhca();
	struct ibv_srq_init_attr plain = {
		.srq_context = &context, .attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = &context,
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = d->pd,
		.xrcd = xrcd_new(d, -1, O_CREAT),
		.cq = cq_new(d, 16, NULL),
	};
	struct ibv_srq *srq[2] = {
		ibv_create_srq(d->pd, &plain), ibv_create_srq_ex(d->ctx, &attr),
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(srq); i++) {
		REQUIRE(srq[i]);
		CHECK(srq[i]->context == d->ctx);
		CHECK(srq[i]->srq_context == &context);
		CHECK(srq[i]->pd == d->pd);
	}
}

TEST(cqs, "J-031 a CQ has the channel and context that its caller gave")
{
	struct dev *d = dev_open_qhca();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(d->ctx);
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .cq_context = &context, .channel = ch };
	struct ibv_cq *plain = ibv_create_cq(d->ctx, 4, &context, ch, 0);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(d->ctx, &attr);

	REQUIRE(ch && plain && ex);
	CHECK(plain->context == d->ctx && ex->context == d->ctx);
	CHECK(plain->cq_context == &context && ex->cq_context == &context);
	CHECK(plain->channel == ch && ex->channel == ch);
	CHECK(plain->cqe >= 4 && ex->cqe >= 4);
}

TEST(wqs, "J-031 WQs, tables and QPs of them have what their caller gave")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 16, NULL);
	struct ibv_wq_init_attr attr = {
		.wq_context = &context, .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
		.pd = d->pd, .cq = cq,
	};
	struct ibv_wq *wq = ibv_create_wq(d->ctx, &attr);
	struct steer s;

	REQUIRE(wq);
	CHECK(wq->context == d->ctx && wq->wq_context == &context);
	CHECK(wq->pd == d->pd && wq->cq == cq);
	CHECK_EQ(wq->wq_type, IBV_WQT_RQ);
	CHECK_EQ(wq->state, IBV_WQS_RESET);
	REQUIRE_OK(steer_make(d, cq, &s));
	CHECK(s.table->context == d->ctx);
	CHECK(s.qp->context == d->ctx && s.qp->pd == d->pd);
	CHECK(!s.qp->send_cq && !s.qp->recv_cq && !s.qp->srq);
	CHECK(s.flow->context == d->ctx);
	REQUIRE_OK(steer_unmake(&s));
}

TEST(others, "J-031 MRs, windows, address handles and domains have what their caller gave")
{
	struct dev *d = dev_open_qhca();
	struct ibv_parent_domain_init_attr parent = parent_attr(d->pd);
	struct ibv_pd *pd = ibv_alloc_parent_domain(d->ctx, &parent);
	struct buf b = buf_new(pd, 4096, LOCAL);
	struct ibv_mr *null = ibv_alloc_null_mr(pd);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_ah *ah = own_ah(d, pd);

	REQUIRE(pd && null && mw && ah);
	CHECK(pd->context == d->ctx);
	CHECK(b.mr->context == d->ctx && b.mr->pd == pd);
	CHECK(b.mr->addr == b.addr && b.mr->length == b.len);
	CHECK(null->context == d->ctx && null->pd == pd);
	CHECK(mw->context == d->ctx && mw->pd == pd);
	CHECK_EQ(mw->type, IBV_MW_TYPE_1);
	CHECK(ah->context == d->ctx && ah->pd == pd);
	CHECK(xrcd_new(d, -1, O_CREAT)->context == d->ctx);
}

/* ---- what the mask promises ---- */

static bool qp_without(struct dev *d, enum ibv_qp_type type, uint32_t mask)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(d, type);

	attr.comp_mask |= mask;
	attr.pd = mask & IBV_QP_INIT_ATTR_PD ? NULL : attr.pd;
	attr.xrcd = NULL;
	return ibv_create_qp_ex(d->ctx, &attr);
}

static bool qp_pd(struct dev *d)
{
	/* With a second bit, or libibverbs reads the context of the PD. */
	return qp_without(d, IBV_QPT_RC,
			  IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
}

static bool target_pd(struct dev *d)
{
	return qp_without(d, IBV_QPT_XRC_RECV, IBV_QP_INIT_ATTR_PD);
}

static bool qp_xrcd(struct dev *d)
{
	return qp_without(d, IBV_QPT_XRC_RECV, IBV_QP_INIT_ATTR_XRCD);
}

static bool rss_qp(struct dev *d, struct ibv_pd *pd, struct ibv_rwq_ind_table *table,
		   uint32_t send_wr)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = send_wr },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
		},
	};

	return ibv_create_qp_ex(d->ctx, &attr);
}

static bool rss_table(struct dev *d)
{
	return rss_qp(d, d->pd, NULL, 0);
}

static bool rss_pd(struct dev *d)
{
	struct steer s;

	REQUIRE_OK(steer_make(d, cq_new(d, 16, NULL), &s));
	return rss_qp(d, NULL, s.table, 0);
}

/* Room for sends, but no CQ for them. */
static bool rss_send_cq(struct dev *d)
{
	struct steer s;

	REQUIRE_OK(steer_make(d, cq_new(d, 16, NULL), &s));
	return rss_qp(d, d->pd, s.table, 4);
}

static bool srq_without(struct dev *d, uint32_t mask)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = mask & IBV_SRQ_INIT_ATTR_PD ? NULL : d->pd,
		.xrcd = mask & IBV_SRQ_INIT_ATTR_XRCD ? NULL : xrcd_new(d, -1, O_CREAT),
		.cq = mask & IBV_SRQ_INIT_ATTR_CQ ? NULL : cq_new(d, 16, NULL),
	};

	return ibv_create_srq_ex(d->ctx, &attr);
}

static bool srq_pd(struct dev *d)
{
	return srq_without(d, IBV_SRQ_INIT_ATTR_PD);
}

static bool srq_xrcd(struct dev *d)
{
	return srq_without(d, IBV_SRQ_INIT_ATTR_XRCD);
}

static bool srq_cq(struct dev *d)
{
	return srq_without(d, IBV_SRQ_INIT_ATTR_CQ);
}

static bool cq_domain(struct dev *d)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };

	return ibv_create_cq_ex(d->ctx, &attr);
}

static bool wq_without(struct dev *d, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq,
	};

	return ibv_create_wq(d->ctx, &attr);
}

static bool wq_pd(struct dev *d)
{
	return wq_without(d, NULL, cq_new(d, 16, NULL));
}

static bool wq_cq(struct dev *d)
{
	return wq_without(d, d->pd, NULL);
}

static bool table_of(struct dev *d, struct ibv_wq **wq, uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log_size, .ind_tbl = wq };

	return ibv_create_rwq_ind_table(d->ctx, &attr);
}

static bool table_wq(struct dev *d)
{
	struct ibv_wq *wq[2] = { NULL };

	return table_of(d, wq, 1);
}

static bool table_wqs(struct dev *d)
{
	return table_of(d, NULL, 0);
}

/* libibverbs would copy so many handles to its stack. */
static bool table_size(struct dev *d)
{
	struct ibv_wq *wq[1] = { NULL };

	return table_of(d, wq, 31);
}

static bool domain_pd(struct dev *d)
{
	struct ibv_parent_domain_init_attr attr = parent_attr(NULL);

	return ibv_alloc_parent_domain(d->ctx, &attr);
}

static bool domain_alloc(struct dev *d)
{
	struct ibv_parent_domain_init_attr attr = parent_attr(d->pd);

	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	return ibv_alloc_parent_domain(d->ctx, &attr);
}

static bool open_xrcd(struct dev *d)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(d->ctx, &attr);
}

static const struct {
	const char *name;
	bool (*make)(struct dev *d);	/* whether there is a new object */
} without[] = {
	{ "a QP without its PD", qp_pd },
	{ "an XRC target QP without its PD", target_pd },
	{ "an XRC target QP without its XRC domain", qp_xrcd },
	{ "a QP of a table, without the table", rss_table },
	{ "a QP of a table, without its PD", rss_pd },
	{ "a QP of a table that sends", rss_send_cq },
	{ "an SRQ without its PD", srq_pd },
	{ "an SRQ without its XRC domain", srq_xrcd },
	{ "an SRQ without its CQ", srq_cq },
	{ "a CQ without its parent domain", cq_domain },
	{ "a WQ without its PD", wq_pd },
	{ "a WQ without its CQ", wq_cq },
	{ "a table without a WQ", table_wq },
	{ "a table without WQs", table_wqs },
	{ "a table of 2^31 WQs", table_size },
	{ "a parent domain without a PD", domain_pd },
	{ "a parent domain without its allocators", domain_alloc },
	{ "an open QP without its XRC domain", open_xrcd },
};

TEST_ROWS(refused, "J-032 EINVAL for", without)
{
	struct dev *d = dev_open_qhca();

	errno = 0;
	CHECK(!row->make(d));
	CHECK_EQ(errno, EINVAL);
}
