// SPDX-License-Identifier: GPL-2.0
/* On-demand paging: what query_device_ex offers beside the operations of an RC QP, see odp.c. */
#define _GNU_SOURCE
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

#include "lib/ondemand.h"
#include "lib/wr_ex.h"
#include "lib/xrc.h"

#define LEN	4096u
#define GRH	40
#define ODP	(REMOTE | IBV_ACCESS_ON_DEMAND)

static struct dev *d;
static uint8_t *page;		/* not pinned, and absent */
static struct ibv_mr *odp;

static void start(int access)
{
	struct ibv_device_attr_ex attr;

	d = dev_open_qhca();
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		test_skip("no on-demand paging");
	page = odp_map(LEN);
	odp = odp_reg(d, page, LEN, access);
}

static struct ibv_sge odp_sge(uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)page, len, odp->lkey };
}

/* A page that is absent has zeroes. */
static void send_page(struct pair *p, struct ibv_send_wr *wr, uint32_t head)
{
	struct buf b = buf_new(d->pd, head + LEN, LOCAL);
	struct ibv_sge sge = buf_sge(&b, 0, head + 1000);

	fill(b.addr, b.len, 1);
	REQUIRE_OK(post_recv(&p->b, 2, &sge, 1));
	REQUIRE_OK(post_send(&p->a, wr));
	poll_ok(p->a.send_cq, 1);
	CHECK_EQ(poll_ok(p->b.recv_cq, 2).byte_len, head + 1000);
	CHECK_EQ(b.addr[head], 0);
	CHECK(!memcmp(b.addr + head, b.addr + head + 1, 999));
}

static void uc_send(void)
{
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	start(ODP);
	o.type = IBV_QPT_UC;
	p = pair_new(d, &o, &CONN);
	sge = odp_sge(1000);
	wr = wr_send(1, &sge, 1);
	send_page(&p, &wr, 0);
}

static void ud_send(void)
{
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	start(ODP);
	o.type = IBV_QPT_UD;
	p = pair_new(d, &o, &CONN);
	sge = odp_sge(1000);
	wr = wr_send(1, &sge, 1);
	wr.wr.ud.ah = own_ah(d, d->pd);
	wr.wr.ud.remote_qpn = p.b.qp->qp_num;
	wr.wr.ud.remote_qkey = CONN.qkey;
	send_page(&p, &wr, GRH);
}

static void srq_recv(void)
{
	struct qp_opts o = QP_OPTS;
	struct ibv_recv_wr rr, *bad;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	struct buf b;

	start(ODP);
	o.srq = srq_new(d, 4, 1);
	p = pair_new(d, &o, &CONN);
	b = buf_new(d->pd, LEN, LOCAL);
	fill(b.addr, LEN, 1);
	sge = odp_sge(LEN);
	rr = (struct ibv_recv_wr){ .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	REQUIRE_OK(ibv_post_srq_recv(o.srq, &rr, &bad));
	sge = buf_sge(&b, 0, LEN);
	wr = wr_send(1, &sge, 1);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
	check_fill(page, LEN, 1, "received by the SRQ");
}

static void xrc_both(void)
{
	struct ibv_recv_wr rr, *bad;
	struct ibv_send_wr wr;
	struct ibv_sge sge, in;
	struct xrc x;

	start(ODP);
	x = xrc_new(d, &CONN);
	fill(x.buf.addr, LEN, 1);
	/* The SRQ's memory is of the domain's PD, which is the device's. */
	in = odp_sge(LEN);
	rr = (struct ibv_recv_wr){ .wr_id = 7, .sg_list = &in, .num_sge = 1 };
	REQUIRE_OK(ibv_post_srq_recv(x.srq.srq, &rr, &bad));
	wr = xrc_wr(&x, &sge, IBV_WR_SEND, LEN);
	REQUIRE_OK(post_send(&x.p.a, &wr));
	poll_ok(x.p.a.send_cq, wr.wr_id);
	poll_ok(x.srq.cq, 7);
	check_fill(page, LEN, 1, "received by the SRQ of a domain");
	REQUIRE_OK(madvise(page, LEN, MADV_DONTNEED));
	REQUIRE_OK(srq_post(x.srq.srq, 8, &x.buf, XRC_HALF, LEN));
	sge = odp_sge(LEN);
	REQUIRE_OK(post_send(&x.p.a, &wr));
	poll_ok(x.p.a.send_cq, wr.wr_id);
	poll_ok(x.srq.cq, 8);
	CHECK_EQ(x.buf.addr[XRC_HALF] | x.buf.addr[XRC_HALF + LEN - 1], 0);
}

static struct pair placing(uint64_t ops, int access)
{
	struct conn c = CONN;

	c.access = access;
	return pair_ex(d, ops, &c);
}

static void atomic_write(void)
{
	const uint8_t word[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct ibv_qp_ex *q;
	struct pair p;

	start(ODP);
	p = placing(IBV_QP_EX_WITH_ATOMIC_WRITE, REMOTE);
	q = wr_start(&p.a, 1);
	ibv_wr_atomic_write(q, odp->rkey, (uintptr_t)page + 8, word);
	REQUIRE_OK(ibv_wr_complete(q));
	poll_ok(p.a.send_cq, 1);
	CHECK(!memcmp(page + 8, word, 8));
}

static void flush(void)
{
	struct ibv_qp_ex *q;
	struct pair p;

	need_flush(dev_open_qhca()->ctx);
	start(ODP | IBV_ACCESS_FLUSH_GLOBAL);
	p = placing(IBV_QP_EX_WITH_FLUSH, REMOTE | IBV_ACCESS_FLUSH_GLOBAL);
	q = wr_start(&p.a, 1);
	ibv_wr_flush(q, odp->rkey, (uintptr_t)page, LEN, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	REQUIRE_OK(ibv_wr_complete(q));
	CHECK_EQ(poll_ok(p.a.send_cq, 1).opcode, IBV_WC_FLUSH);
	CHECK_EQ(page[0], 0);
}

static const struct {
	const char *name;
	void (*use)(void);
	bool faults;		/* FLUSH needs no page */
} uses[] = {
	{ "UC, SEND", uc_send, true },
	{ "UD, SEND", ud_send, true },
	{ "RC, a receive of an SRQ", srq_recv, true },
	{ "XRC, SEND and receive", xrc_both, true },
	{ "RC, ATOMIC WRITE", atomic_write, true },
	{ "RC, FLUSH", flush, false },
};

TEST_ROWS(use, "F-018 J-034 a page that is absent", uses)
{
	uint64_t before;

	dev_open_qhca();
	before = hw_counter("page_fault");
	row->use();
	if (row->faults)
		CHECK(hw_counter("page_fault") > before);
}
