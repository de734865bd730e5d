// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: what verbs take and refuse, and how many there are. test_mcast.c of the engine
 * has who gets which copy.
 */
#include <stdlib.h>

#include "lib/rdma.h"

#define GRH	40
#define QKEY	0x12345678u
#define MCAST	0xffffff

static struct dev *d;
static struct buf out, in;

/* 239.1.2.@n */
static union ibv_gid group(unsigned int n)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, n } };

	return gid;
}

static struct pair ud_pair(void)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	d = dev_open();
	if (!d->attr.max_mcast_grp)
		test_skip("no multicast");
	o.type = IBV_QPT_UD;
	c.qkey = QKEY;
	out = buf_new(d->pd, 1024, LOCAL);
	in = buf_new(d->pd, 1024, LOCAL);
	fill(out.addr, out.len, 1);
	return pair_new(d, &o, &c);
}

static void room(struct end *e, uint64_t id)
{
	struct ibv_sge sge = buf_sge(&in, 0, GRH + 64);

	REQUIRE_OK(post_recv(e, id, &sge, 1));
}

static void send_to(struct end *from, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = own_address(d);
	struct ibv_sge sge = buf_sge(&out, 0, 64);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);
	struct ibv_ah *ah;

	attr.grh.dgid = *gid;
	attr.grh.hop_limit = 1;
	ah = ibv_create_ah(d->pd, &attr);
	REQUIRE(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = MCAST;
	wr.wr.ud.remote_qkey = QKEY;
	REQUIRE_OK(post_send(from, &wr));
	poll_ok(from->send_cq, 1);
	CHECK_ERR(ibv_destroy_ah(ah), 0);
}

static struct end end_with_flags(enum ibv_qp_type type, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = d->pd,
		.create_flags = flags,
		.sq_sig_all = 1,
	};
	struct end e = { .dev = d };

	e.send_cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	e.recv_cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	REQUIRE(e.send_cq && e.recv_cq);
	init.send_cq = e.send_cq;
	init.recv_cq = e.recv_cq;
	errno = 0;
	e.qp = ibv_create_qp_ex(d->ctx, &init);
	return e;
}

TEST(no_own, "D-089 a QP that wants no copies of its own is made as such")
{
	struct pair p = ud_pair();
	union ibv_gid gid = group(3);
	struct conn c = CONN;
	struct end e;

	e = end_with_flags(IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	if (!e.qp && !d->qhca)
		test_skip("not offered");
	REQUIRE(e.qp);
	c.qkey = QKEY;
	qp_bring(&e, &c, IBV_QPS_RTS);
	CHECK_ERR(ibv_attach_mcast(e.qp, &gid, 0), 0);
	CHECK_ERR(ibv_attach_mcast(p.b.qp, &gid, 0), 0);
	room(&e, 1);
	room(&p.b, 2);
	send_to(&e, &gid);
	poll_ok(p.b.recv_cq, 2);
	poll_none(e.recv_cq);
	CHECK_ERR(ibv_detach_mcast(e.qp, &gid, 0), 0);
	CHECK_ERR(ibv_destroy_qp(e.qp), 0);
}

TEST(flags, "D-089 flags of creation that a QP does not have")
{
	d = dev_open_qhca();
	REQUIRE(end_with_flags(IBV_QPT_UD, 0).qp);
	CHECK(!end_with_flags(IBV_QPT_RC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).qp);
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK(!end_with_flags(IBV_QPT_UD, IBV_QP_CREATE_SCATTER_FCS).qp);
	CHECK_EQ(errno, EOPNOTSUPP);
}

TEST(checks, "G-018 G-019 A-021 refused attach, detach and destroy")
{
	struct pair p = ud_pair();
	struct end rc = end_new(d, &QP_OPTS);
	union ibv_gid gid = group(1);

	CHECK_ERR(ibv_attach_mcast(p.a.qp, &d->gid, 0), EINVAL);
	CHECK_ERR(ibv_attach_mcast(rc.qp, &gid, 0), EINVAL);
	CHECK_ERR(ibv_detach_mcast(p.a.qp, &gid, 0), EINVAL);
	CHECK_ERR(ibv_attach_mcast(p.a.qp, &gid, 0), 0);
	CHECK_ERR(ibv_detach_mcast(p.b.qp, &gid, 0), EINVAL);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), EBUSY);
	CHECK_ERR(ibv_detach_mcast(p.a.qp, &gid, 0), 0);
	CHECK_ERR(ibv_detach_mcast(p.a.qp, &gid, 0), EINVAL);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
}

/*
 * On Ethernet LIDs mean nothing, but the core has one entry for each LID, and it never frees a QP
 * with an entry that cannot be removed.
 */
TEST(lids, "D-084 G-018 G-019 J-018 attach with several LIDs, one copy, detach as often")
{
	struct pair p = ud_pair();
	union ibv_gid gid = group(1);
	struct ibv_wc wc;
	uint16_t lid;

	for (lid = 0; lid < 3; lid++)
		CHECK_ERR(ibv_attach_mcast(p.a.qp, &gid, lid), 0);
	room(&p.a, 1);
	room(&p.a, 2);
	for (lid = 0; lid < 2; lid++)
		CHECK_ERR(ibv_detach_mcast(p.a.qp, &gid, lid), 0);
	send_to(&p.b, &gid);
	wc = poll_ok(p.a.recv_cq, 1);
	CHECK_EQ(wc.src_qp, p.b.qp->qp_num);
	CHECK_EQ(wc.byte_len, GRH + 64);
	check_fill(in.addr + GRH, 64, 1, "payload");
	CHECK_ERR(ibv_detach_mcast(p.a.qp, &gid, 2), 0);
	send_to(&p.b, &gid);
	poll_none(p.a.recv_cq);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
}

TEST(none, "a device without groups refuses the first one, others accept it")
{
	struct qp_opts o = QP_OPTS;
	union ibv_gid gid = group(1);

	d = dev_open();
	o.type = IBV_QPT_UD;
	CHECK_ERR(ibv_attach_mcast(end_new(d, &o).qp, &gid, 0),
		  d->attr.max_mcast_grp ? 0 : ENOMEM);
}

/* The end of the process leaves the groups; done twice, so that leftovers would show. */
TEST(limit, "J-001 as many groups as promised")
{
	struct pair p = ud_pair();
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };
	int i;

	for (i = 0; i <= d->attr.max_mcast_grp; i++) {
		gid.raw[14] = i >> 8;
		gid.raw[15] = i;
		CHECK_ERR(ibv_attach_mcast(p.a.qp, &gid, 0),
			  i < d->attr.max_mcast_grp ? 0 : ENOMEM);
	}
}

TEST(again, "J-018 the end of a process leaves its groups")
{
	limit();
}
