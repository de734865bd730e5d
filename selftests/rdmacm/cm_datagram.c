// SPDX-License-Identifier: GPL-2.0
/*
 * The UDP port space of the connection manager: datagrams and multicast groups.
 */
#include <arpa/inet.h>

#include "lib/cmpair.h"

#define SIDR_REQ_DATA	180
#define SIDR_REP_DATA	136
#define GRH		40

/* Sends to the peer whose address is in the event. */
static void send_datagram(const struct rdma_ud_param *to)
{
	struct buf b = buf_new(active.id->pd, 64, LOCAL);
	struct buf in = buf_new(passive.id->pd, 104, LOCAL);
	struct ibv_sge out_sge = buf_sge(&b, 0, 64), in_sge = buf_sge(&in, 0, 104);
	struct ibv_recv_wr rwr = { .wr_id = 1, .sg_list = &in_sge, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = wr_send(2, &out_sge, 1), *bad_send;
	struct ibv_ah_attr attr = to->ah_attr;

	fill(b.addr, 64, 8);
	wr.wr.ud.ah = ibv_create_ah(active.id->pd, &attr);
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	REQUIRE(wr.wr.ud.ah);
	REQUIRE_OK(ibv_post_recv(passive.id->qp, &rwr, &bad));
	REQUIRE_OK(ibv_post_send(active.id->qp, &wr, &bad_send));
	poll_ok(active.id->qp->send_cq, 2);
	poll_ok(passive.id->qp->recv_cq, 1);
	check_fill(in.addr + 40, 64, 8, "datagram");
}

TEST(datagrams, "K-009 K-014 UDP port space: private data, Q_Key and address of the peer")
{
	struct rdma_conn_param req = with_data(SIDR_REQ_DATA + 1);
	struct rdma_conn_param rep = with_data(SIDR_REP_DATA);

	start_in(dev_open_qhca(), RDMA_PS_UDP);
	CHECK(rdma_connect(active.id, &req));
	CHECK_EQ(errno, EINVAL);
	req = with_data(SIDR_REQ_DATA);
	request(&req);
	CHECK(passive.event->param.ud.private_data_len >= SIDR_REQ_DATA);
	check_fill(passive.event->param.ud.private_data, SIDR_REQ_DATA, 5, "request");
	make_qp(passive.id);
	CHECK_EQ(get_state(passive.id->qp), IBV_QPS_RTS);
	rep.qp_num = passive.id->qp->qp_num;
	REQUIRE(!rdma_accept(passive.id, &rep));
	expect(&active, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(active.event->param.ud.private_data_len >= SIDR_REP_DATA);
	check_fill(active.event->param.ud.private_data, SIDR_REP_DATA, 5, "reply");
	CHECK_EQ(active.event->param.ud.qp_num, passive.id->qp->qp_num);
	CHECK_EQ(active.event->param.ud.qkey, 0x01234567);
	send_datagram(&active.event->param.ud);
}

TEST(too_much_reply, "K-009 UDP port space: more private data than fits in a reply is refused")
{
	struct rdma_conn_param req = with_data(0), rep = with_data(SIDR_REP_DATA + 1);

	start_in(dev_open_qhca(), RDMA_PS_UDP);
	request(&req);
	make_qp(passive.id);
	rep.qp_num = passive.id->qp->qp_num;
	CHECK(rdma_accept(passive.id, &rep));
	CHECK_EQ(errno, EINVAL);
}

/* 239.1.3.@n */
static struct sockaddr_in group(unsigned int n)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010300 + n),
	};
}

/* Makes @s of an id that is bound to the device's address, with a QP. */
static void bound(struct side *s, const struct dev *d)
{
	struct sockaddr_in own = { .sin_family = AF_INET };

	memcpy(&own.sin_addr, d->gid.raw + 12, 4);
	s->ch = rdma_create_event_channel();
	REQUIRE(s->ch);
	REQUIRE(!rdma_create_id(s->ch, &s->id, NULL, RDMA_PS_UDP));
	REQUIRE(!rdma_bind_addr(s->id, (struct sockaddr *)&own));
	make_qp(s->id);
}

/* Has @s join @to. Returns how to send there. */
static struct rdma_ud_param join(struct side *s, struct sockaddr_in *to)
{
	struct rdma_ud_param ud;

	REQUIRE(!rdma_join_multicast(s->id, (struct sockaddr *)to, NULL));
	expect(s, RDMA_CM_EVENT_MULTICAST_JOIN);
	ud = s->event->param.ud;
	CHECK_EQ(ud.qp_num, 0xffffff);
	/* Who leaves waits for its events to be acknowledged. */
	REQUIRE(!rdma_ack_cm_event(s->event));
	s->event = NULL;
	return ud;
}

static void send_to_group(struct rdma_cm_id *id, struct ibv_ah *ah, uint32_t qkey)
{
	struct ibv_send_wr wr = wr_send(7, NULL, 0), *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = qkey;
	REQUIRE_OK(ibv_post_send(id->qp, &wr, &bad));
	poll_ok(id->qp->send_cq, 7);
}

TEST(group_left, "K-015 a group is joined with its QP, and left with it")
{
	struct sockaddr_in to = group(1);
	struct rdma_ud_param ud;
	struct dev *d;
	union ibv_gid gid;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct buf in;
	struct end e;

	d = dev_open_qhca();
	bound(&active, d);
	bound(&passive, d);
	ud = join(&active, &to);
	e = (struct end){ .qp = active.id->qp };
	in = buf_new(active.id->pd, GRH, LOCAL);
	gid = ud.ah_attr.grh.dgid;
	CHECK(!memcmp(gid.raw + 12, &to.sin_addr, 4));
	ah = ibv_create_ah(passive.id->pd, &ud.ah_attr);
	REQUIRE(ah);
	sge = buf_sge(&in, 0, GRH);
	REQUIRE_OK(post_recv(&e, 1, &sge, 1));
	REQUIRE_OK(post_recv(&e, 2, &sge, 1));
	send_to_group(passive.id, ah, ud.qkey);
	poll_ok(e.qp->recv_cq, 1);

	REQUIRE(!rdma_leave_multicast(active.id, (struct sockaddr *)&to));
	CHECK_ERR(ibv_detach_mcast(e.qp, &gid, 0), EINVAL);
	send_to_group(passive.id, ah, ud.qkey);
	poll_none(e.qp->recv_cq);
	CHECK(rdma_leave_multicast(active.id, (struct sockaddr *)&to));
	CHECK_EQ(errno, EADDRNOTAVAIL);
	/* And again, as if it had never been there. */
	ud = join(&active, &to);
	send_to_group(passive.id, ah, ud.qkey);
	poll_ok(e.qp->recv_cq, 2);
}

TEST(group_ipv6, "K-015 groups of IPv6 are refused, and leave nothing behind")
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = group(2);

	REQUIRE(inet_pton(AF_INET6, "ff0e::1:3", &to.sin6_addr) == 1);
	bound(&active, dev_open_qhca());
	CHECK(rdma_join_multicast(active.id, (struct sockaddr *)&to, NULL));
	CHECK_EQ(errno, 524);		/* the kernel's ENOTSUPP */
	join(&active, &v4);
	REQUIRE(!rdma_leave_multicast(active.id, (struct sockaddr *)&v4));
	CHECK_ERR(ibv_destroy_qp(active.id->qp), 0);
}
