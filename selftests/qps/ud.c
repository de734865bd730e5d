// SPDX-License-Identifier: GPL-2.0
/* Datagrams and address handles. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/echo.h"

#define GRH	40
#define QKEY	0x12345678u
#define OWN	0x80000000u	/* bit of a Q_Key: use the Q_Key of the QP */

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

static const struct len {
	const char *name;
	uint32_t len;
	unsigned int flags;
	bool imm;
} lens[] = {
	{ "B-001 nothing", 0, 0, false },
	{ "B-001 1 byte", 1, 0, false },
	{ "B-001 1024 bytes", 1024, 0, false },
	{ "B-002 immediate data", 100, 0, true },
	{ "B-002 immediate data only", 0, 0, true },
	{ "B-001 inline", 64, IBV_SEND_INLINE, false },
	{ "B-002 inline, immediate data, solicited", 63,
	  IBV_SEND_INLINE | IBV_SEND_SOLICITED, true },
};

TEST_ROWS(message, "D-075 D-076 C-007 C-008 message", lens)
{
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&out, 0, row->len);
	struct ibv_send_wr wr = wr_ud(&sge, own_ah(d, d->pd), &p.b);
	struct ibv_wc wc;

	wr.send_flags |= row->flags;
	if (row->imm) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(0x01020304);
	}
	room(&p.b, 2, GRH + row->len);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, GRH + row->len);
	CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
	CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK_EQ(!(wc.wc_flags & IBV_WC_WITH_IMM), !row->imm);
	if (row->imm)
		CHECK_EQ(be32toh(wc.imm_data), 0x01020304);
	check_fill(in.addr + GRH, row->len, 1, "payload");
}

TEST(path_mtu, "B-030 I-049 a message of the path MTU, and one of a byte more")
{
	struct pair p = ud_pair();
	struct ibv_ah *ah = own_ah(d, d->pd);
	uint32_t mtu = mtu_bytes(d->port.active_mtu);

	room(&p.b, 2, 8192);
	send_len(&p, ah, mtu + 1);
	poll_none(p.b.recv_cq);
	send_len(&p, ah, mtu);
	CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, GRH + mtu);
	check_fill(in.addr + GRH, mtu, 1, "payload");
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
	unsigned int sl;		/* C-007: type of the packet, for user space */
	unsigned int version;
} networks[] = {
	{ "IPv4", dev_open, 2, 4 },
	{ "IPv6", dev_open_v6, 1, 6 },
};

/* Answers the sender, using only the completion and the GRH. */
TEST_ROWS(reply, "G-016 D-076 an address handle from a completion", networks)
{
	struct pair p = ud_pair_of(row->open());
	struct ibv_ah *ah = own_ah(d, d->pd);
	struct ibv_sge sge = buf_sge(&out, 0, 32);
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	room(&p.b, 2, GRH + 32);
	send_len(&p, ah, 32);
	wc = poll_ok(p.b.recv_cq, 2);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK_EQ(wc.sl, row->sl);
	CHECK_EQ(in.addr[row->version == 4 ? 20 : 0] >> 4, row->version);
	if (row->version == 6) {
		CHECK(!memcmp(in.addr + 8, &d->gid, 16));	/* source */
		CHECK(!memcmp(in.addr + 24, &d->gid, 16));	/* destination */
	}
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

TEST(qkey, "I-047 D-078 D-079 J-016 matching and other Q_Keys")
{
	struct pair p = ud_pair();
	struct ibv_ah *ah = own_ah(d, d->pd);
	struct ibv_sge sge = buf_sge(&out, 0, 8);
	struct ibv_send_wr wr = wr_ud(&sge, ah, &p.b);
	struct ibv_qp_attr a = { .qkey = 0x42 };
	unsigned int before = port_now().qkey_viol_cntr;

	room(&p.b, 2, GRH + 8);
	room(&p.b, 3, GRH + 8);
	wr.wr.ud.remote_qkey = QKEY + 1;
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_none(p.b.recv_cq);
	CHECK_EQ(port_now().qkey_viol_cntr, before + 1);
	wr.wr.ud.remote_qkey = OWN;		/* use the Q_Key of a, which b also has */
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 2);
	REQUIRE_OK(ibv_modify_qp(p.b.qp, &a, IBV_QP_QKEY));	/* */
	wr.wr.ud.remote_qkey = 0x42;
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	poll_ok(p.b.recv_cq, 3);
	CHECK_EQ(port_now().qkey_viol_cntr, before + 1);
}

TEST(no_room, "I-048 D-077 no receive request, or one that is too small")
{
	struct pair p = ud_pair();
	struct ibv_ah *ah = own_ah(d, d->pd);

	send_len(&p, ah, 8);
	room(&p.b, 2, GRH + 7);
	send_len(&p, ah, 8);
	poll_none(p.b.recv_cq);
	send_len(&p, ah, 7);
	CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, GRH + 7);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
}

TEST(bad_recv, "I-050 a receive request with a bad key")
{
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&in, 0, 100);

	sge.lkey ^= 0x100;
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	room(&p.b, 3, 100);
	send_len(&p, own_ah(d, d->pd), 8);
	poll_expect(p.b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	poll_expect(p.b.recv_cq, 3, IBV_WC_WR_FLUSH_ERR);
	CHECK(wait_state(p.b.qp, IBV_QPS_ERR));
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
}

static const struct bad_send {
	const char *name;
	enum ibv_wc_status status;
} bad_sends[] = {
	{ "bad key", IBV_WC_LOC_PROT_ERR },
	{ "AH of another PD", IBV_WC_LOC_QP_OP_ERR },
};

TEST_ROWS(bad_send, "I-045 I-046 B-031 A-091 a bad send request", bad_sends)
{
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&out, 0, 8);
	struct ibv_send_wr wr;
	struct ibv_ah *ah;
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);

	REQUIRE(pd);
	if (row->status == IBV_WC_LOC_PROT_ERR) {
		sge.lkey ^= 0x100;
		ah = own_ah(d, d->pd);
	} else {
		ah = own_ah(d, pd);
	}
	room(&p.b, 2, 100);
	wr = wr_ud(&sge, ah, &p.b);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, row->status);
	CHECK(wait_state(p.a.qp, IBV_QPS_SQE));
	poll_none(p.b.recv_cq);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
	send_len(&p, own_ah(d, d->pd), 8);
	poll_ok(p.b.recv_cq, 2);
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

TEST(loop, "D-085 B-064 a QP connected to itself sends many messages in a row")
{
	struct pair p = ud_pair();
	struct ibv_sge sge = buf_sge(&out, 0, 16);
	struct ibv_send_wr wr = wr_ud(&sge, own_ah(d, d->pd), &p.a);
	struct ibv_wc wc;
	int i, j;

	for (i = 0; i < 50; i++) {
		for (j = 0; j < 16; j++)
			room(&p.a, 100 + j, GRH + 16);
		for (j = 0; j < 16; j++) {
			wr.wr_id = j;
			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = htobe32(j);
			REQUIRE_OK(post_send(&p.a, &wr));
		}
		for (j = 0; j < 16; j++) {
			poll_ok(p.a.send_cq, j);
			wc = poll_ok(p.a.recv_cq, 100 + j);
			CHECK_EQ(be32toh(wc.imm_data), j);
			CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
		}
	}
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
