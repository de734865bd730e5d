// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic between addresses of a VLAN: consumers see the tag and its priority, and a VLAN is a
 * separate network. Needs root, to add a VLAN interface to the port's netdev; the last test removes
 * it.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

#define GRH	40
#define QKEY	0x12345678u
#define VID	9
#define NAME	"qhca-vlan9"
#define ADDR	"192.168.209.1/24"

static void remove_vlan(void)
{
	if (if_nametoindex(NAME) && system("ip link del dev " NAME))
		FAIL("%s stays", NAME);
}

/* Makes the interface and makes @d use its GID; @plain keeps the GID of the port itself. */
static void use_vlan(struct dev *d, struct dev *plain)
{
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_gid_entry e;
	char port[IF_NAMESIZE], cmd[256];
	unsigned int i;

	if (geteuid())
		test_skip("needs root");
	REQUIRE_OK(ibv_query_gid_ex(d->ctx, PORT, d->gid_index, &e, 0));
	REQUIRE(if_indextoname(e.ndev_ifindex, port));
	*plain = *d;
	remove_vlan();
	snprintf(cmd, sizeof(cmd), "ip link add link %s name " NAME " type vlan id %d", port, VID);
	if (system(cmd))
		test_skip("no VLAN interfaces here");
	REQUIRE(!system("ip addr add " ADDR " dev " NAME));
	REQUIRE(!system("ip link set dev " NAME " up"));
	for (; time_ms() < end; sleep_ms(20)) {
		for (i = 0; i < (unsigned int)d->port.gid_tbl_len; i++) {
			if (ibv_query_gid_ex(d->ctx, PORT, i, &e, 0) ||
			    e.ndev_ifindex != if_nametoindex(NAME) ||
			    e.gid_type != IBV_GID_TYPE_ROCE_V2 || e.gid.raw[0])
				continue;
			d->gid = e.gid;
			d->gid_index = i;
			return;
		}
	}
	FAIL("no GID for " NAME);
	test_die();
}

static struct ibv_cq_ex *cq_with_vlan(struct dev *d)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &attr);

	if (!cq && errno == EOPNOTSUPP)
		test_skip("completions do not report the VLAN");
	REQUIRE(cq);
	return cq;
}

static struct ibv_ah *ah_new(struct dev *d, uint8_t sl)
{
	struct ibv_ah_attr attr = own_address(d);
	struct ibv_ah *ah;

	attr.sl = sl;
	ah = ibv_create_ah(d->pd, &attr);
	REQUIRE(ah);
	return ah;
}

static void send_to(struct end *from, struct ibv_ah *ah, const struct end *to)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	REQUIRE_OK(post_send(from, &wr));
	poll_ok(from->send_cq, 1);
}

static struct pair ud_pair(struct dev *d, struct ibv_cq *recv_cq)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	o.type = IBV_QPT_UD;
	o.recv_cq = recv_cq;
	c.qkey = QKEY;
	return pair_new(d, &o, &c);
}

static const struct tag {
	const char *name;
	bool tagged;
	uint8_t sl;
} tags[] = {
	{ "priority 0", true, 0 },
	{ "priority 5", true, 5 },
	{ "priority 7", true, 7 },
	{ "no VLAN", false, 0 },
};

TEST_ROWS(tag, "C-030 E-001 a datagram's completion reports its VLAN and priority", tags)
{
	struct dev plain, *d = dev_open_qhca();
	struct ibv_cq_ex *cq = cq_with_vlan(d);
	struct ibv_poll_cq_attr attr = { 0 };
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_sge sge;
	struct buf in;
	struct pair p;
	int err;

	use_vlan(d, &plain);
	p = ud_pair(d, ibv_cq_ex_to_cq(cq));
	in = buf_new(d->pd, GRH, LOCAL);
	sge = buf_sge(&in, 0, GRH);
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	send_to(&p.a, ah_new(row->tagged ? d : &plain, row->sl), &p.b);

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT && time_ms() < end)
		sleep_ms(1);
	REQUIRE_OK(err);
	CHECK_EQ(cq->status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_wc_read_cvlan(cq), row->tagged ? row->sl << 13 | VID : 0);
	ibv_end_poll(cq);
}

TEST(answer, "G-016 an address made from a completion in a VLAN reaches the sender")
{
	struct dev plain, *d = dev_open();
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct buf in;
	struct pair p;

	use_vlan(d, &plain);
	p = ud_pair(d, NULL);
	in = buf_new(d->pd, GRH, LOCAL);
	sge = buf_sge(&in, 0, GRH);
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	REQUIRE_OK(post_recv(&p.a, 3, &sge, 1));
	send_to(&p.a, ah_new(d, 3), &p.b);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	ah = ibv_create_ah_from_wc(d->pd, &wc, (struct ibv_grh *)in.addr, PORT);
	REQUIRE(ah);
	send_to(&p.b, ah, &p.a);
	CHECK_EQ(poll_ok(p.a.recv_cq, 3).src_qp, p.b.qp->qp_num);
}

TEST(apart, "E-001 J-013 a connection needs both ends on the VLAN")
{
	struct dev plain, *d = dev_open_qhca();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct qp_opts o = QP_OPTS;
	struct ibv_qp_attr attr;
	struct conn c = CONN;
	struct pair p;
	int mask;

	use_vlan(d, &plain);
	p = pair_new(d, &o, &c);
	ping_pong(&p);

	/* The QPN is right, but the address is the port's, outside the VLAN. */
	c.retry_cnt = 1;
	c.timeout = 10;
	c.dest_qpn = p.b.qp->qp_num;
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	qp_bring(&p.a, &c, IBV_QPS_RTS);
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	c.dest_qpn = p.a.qp->qp_num;
	qp_bring(&p.b, &c, IBV_QPS_INIT);
	mask = attr_rtr(&attr, &plain, &c);
	REQUIRE_OK(ibv_modify_qp(p.b.qp, &attr, mask));
	mask = attr_rts(&attr, &c);
	REQUIRE_OK(ibv_modify_qp(p.b.qp, &attr, mask));
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	poll_empty(p.b.recv_cq);
}

TEST(gone, "J-014 the GID of a VLAN is removed with it, the others stay")
{
	struct dev plain, *d = dev_open();
	struct ibv_async_event ev;
	struct ibv_gid_entry e;
	int64_t end;

	use_vlan(d, &plain);
	while (async_wait(d->ctx, &ev, QUIET_MS))
		;
	remove_vlan();
	async_expect(d->ctx, IBV_EVENT_GID_CHANGE, NULL);
	for (end = time_ms() + WAIT_MS; time_ms() < end; sleep_ms(20))
		if (ibv_query_gid_ex(d->ctx, PORT, d->gid_index, &e, 0))
			break;
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, d->gid_index, &e, 0), ENODATA);
	REQUIRE_OK(ibv_query_gid_ex(d->ctx, PORT, plain.gid_index, &e, 0));
	CHECK(!memcmp(&e.gid, &plain.gid, sizeof(e.gid)));
}
