// SPDX-License-Identifier: GPL-2.0
/* Datagrams and address handles. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/echo.h"

#define GRH	40
#define QKEY	0x12345678u

static struct dev *d;
static struct buf out, in;

static struct pair ud_pair_of(struct dev *dev)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;

	d = dev;
	o.type = IBV_QPT_UD;
	o.inline_data = 64;
	c.qkey = QKEY;
	out = buf_new(d->pd, 8192, LOCAL);
	in = buf_new(d->pd, 8192, LOCAL);
	fill(out.addr, out.len, 1);
	return pair_new(d, &o, &c);
}

static struct pair ud_pair(void)
{
	return ud_pair_of(dev_open());
}

static struct ibv_send_wr wr_ud(struct ibv_sge *sge, struct ibv_ah *ah,
				const struct end *to)
{
	struct ibv_send_wr wr = wr_send(1, sge, 1);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return wr;
}

static void send_len(struct pair *p, struct ibv_ah *ah, uint32_t len)
{
	struct ibv_sge sge = buf_sge(&out, 0, len);
	struct ibv_send_wr wr = wr_ud(&sge, ah, &p->b);

	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->a.send_cq, 1);
}

static void room(struct end *e, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = buf_sge(&in, 0, len);

	REQUIRE_OK(post_recv(e, id, &sge, 1));
}

static const struct message {
	const char *name;
	uint32_t len;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
} messages[] = {
	{ "B-001 SEND", 1000, IBV_WR_SEND, 0 },
	{ "B-002 SEND with immediate data", 0, IBV_WR_SEND_WITH_IMM, 0 },
	{ "B-001 B-002 inline, solicited", 63, IBV_WR_SEND_WITH_IMM,
	  IBV_SEND_INLINE | IBV_SEND_SOLICITED },
};

TEST_ROWS(message, "C-007 C-008 a datagram and its completions", messages)
{
	bool imm = row->opcode == IBV_WR_SEND_WITH_IMM;
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&out, 0, row->len);
	struct ibv_send_wr wr = wr_ud(&sge, own_ah(d, d->pd), &p.b);
	struct ibv_wc wc;

	wr.opcode = row->opcode;
	wr.send_flags |= row->flags;
	wr.imm_data = htobe32(0x01020304);
	room(&p.b, 2, GRH + row->len);
	REQUIRE_OK(post_send(&p.a, &wr));
	CHECK_EQ(poll_ok(p.a.send_cq, 1).opcode, IBV_WC_SEND);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, GRH + row->len);
	CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
	CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH | (imm ? IBV_WC_WITH_IMM : 0));
	CHECK(!imm || be32toh(wc.imm_data) == 0x01020304);
	check_fill(in.addr + GRH, row->len, 1, "payload");
}

/* Opens the device with the port's first IPv6 GID as its address. */
static struct dev *dev_open_v6(void)
{
	struct dev *v6 = dev_open();
	struct ibv_gid_entry e[256];
	ssize_t i, n = ibv_query_gid_table(v6->ctx, e, ARRAY_SIZE(e), 0);

	for (i = 0; i < n; i++)
		if (e[i].gid.raw[0] == 0xfe && e[i].gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	REQUIRE(i < n);
	v6->gid = e[i].gid;
	v6->gid_index = e[i].gid_index;
	return v6;
}

static const struct {
	const char *name;
	struct dev *(*open)(void);
} networks[] = {
	{ "IPv4", dev_open },
	{ "IPv6", dev_open_v6 },
};

/* Answers the sender, using only the completion and the GRH. */
TEST_ROWS(reply, "G-016 an address handle from a completion", networks)
{
	struct pair p = ud_pair_of(row->open());
	struct ibv_ah *ah = own_ah(d, d->pd);
	struct ibv_sge sge = buf_sge(&out, 0, 32);
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	room(&p.b, 2, GRH + 32);
	send_len(&p, ah, 32);
	wc = poll_ok(p.b.recv_cq, 2);
	ah = ibv_create_ah_from_wc(d->pd, &wc, (struct ibv_grh *)in.addr, PORT);
	REQUIRE(ah);
	wr = wr_ud(&sge, ah, &p.a);
	wr.wr.ud.remote_qpn = wc.src_qp;
	memset(in.addr, 0, 100);
	room(&p.a, 3, GRH + 32);
	REQUIRE_OK(post_send(&p.b, &wr));
	poll_ok(p.b.send_cq, 1);
	CHECK_EQ(poll_ok(p.a.recv_cq, 3).src_qp, p.b.qp->qp_num);
	check_fill(in.addr + GRH, 32, 1, "payload");
	CHECK_ERR(ibv_destroy_ah(ah), 0);
}

static struct ibv_port_attr port_now(void)
{
	struct ibv_port_attr port;

	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &port));
	return port;
}

TEST(qkey, "J-016 a datagram with a wrong Q_Key is counted")
{
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&out, 0, 8);
	struct ibv_send_wr wr = wr_ud(&sge, own_ah(d, d->pd), &p.b);
	unsigned int before = port_now().qkey_viol_cntr;

	room(&p.b, 2, GRH + 8);
	wr.wr.ud.remote_qkey = QKEY + 1;
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	send_len(&p, wr.wr.ud.ah, 8);
	poll_ok(p.b.recv_cq, 2);
	poll_empty(p.b.recv_cq);
	CHECK_EQ(port_now().qkey_viol_cntr, before + 1);
}

static const struct bad_ah {
	const char *name;
	bool no_grh, empty_gid;
	uint8_t port;
	int gid_index;
	uint8_t rate;
} bad_ahs[] = {
	{ "no GRH", true, false, PORT, -1 },
	{ "port 0", false, false, 0, -1 },
	{ "port 2", false, false, 2, -1 },
	{ "GID index 255", false, false, PORT, 255 },
	{ "empty GID entry", false, true, PORT, -1 },
	{ "static rate 1", false, false, PORT, -1, 1 },
	{ "static rate 255", false, false, PORT, -1, 255 },
};

static int empty_gid(void)
{
	struct ibv_gid_entry e;
	int i;

	for (i = 0; i < d->port.gid_tbl_len; i++)
		if (ibv_query_gid_ex(d->ctx, PORT, i, &e, 0) == ENODATA)
			return i;
	test_skip("the GID table is full");
}

TEST_ROWS(bad_ah, "G-014 A-065 a bad address handle", bad_ahs)
{
	struct ibv_ah_attr attr;

	d = dev_open();
	attr = own_address(d);
	attr.is_global = !row->no_grh;
	attr.port_num = row->port;
	if (row->gid_index >= 0)
		attr.grh.sgid_index = row->gid_index;
	if (row->empty_gid)
		attr.grh.sgid_index = empty_gid();
	attr.static_rate = row->rate;
	CHECK(!ibv_create_ah(d->pd, &attr));
}

/* The kernel makes address handles itself, for a request of the CM and its rejection. */
static void rejected_request(const struct ibv_ah_attr *attr)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(19999) };
	struct rdma_cm_id *id;

	memcpy(&addr.sin_addr, attr->grh.dgid.raw + 12, 4);
	REQUIRE(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 5000));
	rdma_ack_cm_event(cm_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED));
	REQUIRE(!rdma_resolve_route(id, 5000));
	rdma_ack_cm_event(cm_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED));
	REQUIRE(!rdma_connect(id, &param));
	rdma_ack_cm_event(cm_event(ch, RDMA_CM_EVENT_REJECTED));
	REQUIRE(!rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}

TEST(many_ahs, "J-001 G-017 as many address handles as promised; the PD is busy")
{
	struct ibv_ah_attr attr;
	struct ibv_ah **ah, *other;
	struct ibv_pd *pd;
	int i, n;

	d = dev_open_qhca();
	test_timeout(400);
	n = d->attr.max_ah;
	REQUIRE(n > 0);
	pd = ibv_alloc_pd(d->ctx);
	ah = calloc(n, sizeof(*ah));
	REQUIRE(pd && ah);
	attr = own_address(d);
	for (i = 0; i < n; i++) {
		ah[i] = ibv_create_ah(pd, &attr);
		REQUIRE(ah[i]);
	}
	CHECK(!ibv_create_ah(pd, &attr));
	CHECK_EQ(errno, ENOMEM);
	/* The limit does not affect other contexts. */
	other = ibv_create_ah(dev_open_qhca()->pd, &attr);
	REQUIRE(other);
	REQUIRE_OK(ibv_destroy_ah(other));
	rejected_request(&attr);
	CHECK_ERR(ibv_dealloc_pd(pd), EBUSY);
	for (i = 0; i < n; i++)
		REQUIRE_OK(ibv_destroy_ah(ah[i]));
	CHECK_ERR(ibv_dealloc_pd(pd), 0);
}

TEST(gsi, "A-015 E-043 only the kernel can create QP 1")
{
	struct ibv_qp_init_attr init = { .qp_type = 1 };	/* IB_QPT_GSI */
	struct ibv_cq *cq;

	d = dev_open();
	cq = cq_new(d, 4, NULL);
	init.send_cq = cq;
	init.recv_cq = cq;
	CHECK(!ibv_create_qp(d->pd, &init));
}
