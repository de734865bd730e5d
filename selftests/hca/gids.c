// SPDX-License-Identifier: GPL-2.0
/*
 * The GIDs that every port has: a link-local one, and one for an IPv4 address. A consumer that does
 * not choose gets one of them, so both must work.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define GRH	40
#define QKEY	0x12345678u
#define MSG	3000

/* SL values that providers of adapters report in a datagram's completion. */
#define PKT_IPV6	1
#define PKT_IPV4	2
#define PKT_MASK	7

enum { LINK_LOCAL, IPV4 };

static const struct family {
	const char *name;
	uint8_t prefix[12];
	size_t len;		/* length of the prefix */
	uint8_t pkt;
} families[] = {
	[LINK_LOCAL] = { "link-local", { 0xfe, 0x80 }, 2, PKT_IPV6 },
	[IPV4] = { "IPv4", { [10] = 0xff, [11] = 0xff }, 12, PKT_IPV4 },
};

static struct ibv_ah *ah_try(struct dev *d)
{
	struct ibv_ah_attr attr = own_address(d);

	return ibv_create_ah(d->pd, &attr);
}

/*
 * IPv6 does not answer for a new link-local address until duplicate address detection ends, a
 * second or two after the netdev is up, but its GID exists immediately.
 */
static void wait_address(struct dev *d)
{
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_ah *ah;

	while (!(ah = ah_try(d)) && time_ms() < end)
		sleep_ms(20);
	REQUIRE(ah);
	REQUIRE_OK(ibv_destroy_ah(ah));
}

/* Returns the device with the first GID of that family selected. */
static struct dev *dev_with(struct dev *d, const struct family *f)
{
	struct ibv_gid_entry e[256];
	ssize_t i, n;

	n = ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
	for (i = 0; i < n; i++) {
		if (e[i].port_num != PORT || e[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(e[i].gid.raw, f->prefix, f->len))
			continue;
		d->gid = e[i].gid;
		d->gid_index = e[i].gid_index;
		wait_address(d);
		return d;
	}
	FAIL("no such GID");
	test_die();
}

static const struct service {
	const char *name;
	enum ibv_qp_type type;
	int gid;		/* index in families */
} services[] = {
	{ "RC, link-local", IBV_QPT_RC, LINK_LOCAL },
	{ "RC, IPv4", IBV_QPT_RC, IPV4 },
	{ "UC, link-local", IBV_QPT_UC, LINK_LOCAL },
	{ "UC, IPv4", IBV_QPT_UC, IPV4 },
};

TEST_ROWS(connected, "J-013 E-002 messages of three packets", services)
{
	struct dev *d = dev_with(dev_open(), &families[row->gid]);
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct buf out, in;
	struct ibv_wc wc;
	struct pair p;

	o.type = row->type;
	p = pair_new(d, &o, &c);
	out = buf_new(d->pd, MSG, LOCAL);
	in = buf_new(d->pd, MSG, LOCAL);
	fill(out.addr, MSG, 7);
	sge = buf_sge(&in, 0, MSG);
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	sge = buf_sge(&out, 0, MSG);
	wr = wr_send(1, &sge, 1);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK_EQ(wc.byte_len, MSG);
	/* Only datagrams say how they came. */
	CHECK_EQ(wc.sl, 0);
	CHECK(!(wc.wc_flags & IBV_WC_GRH));
	check_fill(in.addr, MSG, 7, "message");
}

/* Sends a datagram from one QP of a pair to the other and checks its payload. */
static void datagram(struct pair *p, struct buf *in)
{
	struct buf out = buf_new(p->dev->pd, 1000, LOCAL);
	struct ibv_sge sge = buf_sge(&out, 0, 1000);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	*in = buf_new(p->dev->pd, GRH + 1000, LOCAL);
	fill(out.addr, out.len, 3);
	sge = buf_sge(in, 0, GRH + 1000);
	REQUIRE_OK(post_recv(&p->b, 2, &sge, 1));
	sge = buf_sge(&out, 0, 1000);
	wr.wr.ud.ah = own_ah(p->dev, p->dev->pd);
	wr.wr.ud.remote_qpn = p->b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->a.send_cq, 1);
}

static struct pair ud_pair(const struct family *f, struct ibv_cq_ex **cq)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct dev *d = dev_with(dev_open_qhca(), f);
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	o.type = IBV_QPT_UD;
	c.qkey = QKEY;
	if (cq) {
		*cq = ibv_create_cq_ex(d->ctx, &attr);
		REQUIRE(*cq);
		o.recv_cq = ibv_cq_ex_to_cq(*cq);
	}
	return pair_new(d, &o, &c);
}

TEST_ROWS(type, "C-007 D-076 a datagram's completion says which IP version it used", families)
{
	struct pair p = ud_pair(row, NULL);
	struct ibv_wc wc;
	struct buf in;

	datagram(&p, &in);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK_EQ(wc.sl & PKT_MASK, row->pkt);
	CHECK_EQ(in.addr[row->pkt == PKT_IPV4 ? 20 : 0] >> 4, row->pkt == PKT_IPV4 ? 4 : 6);
	check_fill(in.addr + GRH, 1000, 3, "payload");
}

TEST_ROWS(type_ex, "C-030 C-007 an extended CQ says which IP version it used", families)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_cq_ex *cq;
	struct pair p = ud_pair(row, &cq);
	struct buf in;
	int err;

	datagram(&p, &in);
	while ((err = ibv_start_poll(cq, &attr)) == ENOENT && time_ms() < end)
		sleep_ms(1);
	REQUIRE_OK(err);
	CHECK_EQ(cq->status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_wc_read_sl(cq) & PKT_MASK, row->pkt);
	CHECK_EQ(ibv_wc_read_src_qp(cq), p.a.qp->qp_num);
	ibv_end_poll(cq);
}
