// SPDX-License-Identifier: GPL-2.0
/* Values of QP attributes: which values are refused, and that query returns the values set. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

enum step { TO_INIT, TO_RTR, TO_RTS };

/* Attributes of one step on the way to RTS, so that a test can change one of them. */
static int mask_of(struct ibv_qp_attr *a, const struct end *e, enum step step)
{
	struct conn c = CONN;
	int mask;

	c.dest_qpn = e->qp->qp_num;
	switch (step) {
	case TO_INIT:
		mask = attr_init(a, &c);
		break;
	case TO_RTR:
		mask = attr_rtr(a, e->dev, &c);
		break;
	default:
		mask = attr_rts(a, &c);
		break;
	}
	return attr_mask(e->qp->qp_type, mask);
}

static struct end end_of_type(struct dev *d, enum ibv_qp_type type,
			      enum ibv_qp_state state)
{
	struct qp_opts o = QP_OPTS;

	o.type = type;
	return end_in(d, &o, state);
}

static enum ibv_qp_state state_before(enum step step)
{
	static const enum ibv_qp_state state[] = {
		[TO_INIT] = IBV_QPS_RESET,
		[TO_RTR] = IBV_QPS_INIT,
		[TO_RTS] = IBV_QPS_RTR,
	};

	return state[step];
}

static struct end end_before(struct dev *d, enum step step)
{
	return end_of_type(d, IBV_QPT_RC, state_before(step));
}

#define U8(member)	{ offsetof(struct ibv_qp_attr, member), 1 }
#define U16(member)	{ offsetof(struct ibv_qp_attr, member), 2 }
#define U32(member)	{ offsetof(struct ibv_qp_attr, member), 4 }

static const struct value {
	const char *name;
	enum step step;
	struct {
		size_t off, size;
	} at;
	uint32_t value;
	bool ok;
} values[] = {
	{ "A-063 port 0", TO_INIT, U8(port_num), 0, false },
	{ "A-063 port 2", TO_INIT, U8(port_num), 2, false },
	{ "A-063 P_Key index 1", TO_INIT, U16(pkey_index), 1, false },
	{ "A-063 P_Key index 65535", TO_INIT, U16(pkey_index), 65535, false },
	{ "A-063 unknown access flag", TO_INIT, U32(qp_access_flags), 1 << 15, false },
	{ "A-063 no access", TO_INIT, U32(qp_access_flags), 0, true },
	{ "A-063 path MTU 0", TO_RTR, U32(path_mtu), 0, false },
	{ "A-063 path MTU 6", TO_RTR, U32(path_mtu), 6, false },
	{ "A-063 path MTU 256", TO_RTR, U32(path_mtu), IBV_MTU_256, true },
	{ "A-063 destination QPN 2^24", TO_RTR, U32(dest_qp_num), 1 << 24, false },
	{ "A-063 destination QPN 2^24-1", TO_RTR, U32(dest_qp_num), 0xffffff, true },
	{ "A-063 RNR timer 31", TO_RTR, U8(min_rnr_timer), 31, true },
	{ "A-063 RNR timer 32", TO_RTR, U8(min_rnr_timer), 32, false },
	{ "A-063 RNR timer 255", TO_RTR, U8(min_rnr_timer), 255, false },
	{ "A-064 responder depth 0", TO_RTR, U8(max_dest_rd_atomic), 0, true },
	{ "A-064 responder depth 255", TO_RTR, U8(max_dest_rd_atomic), 255, false },
	{ "A-065 AV: port 2", TO_RTR, U8(ah_attr.port_num), 2, false },
	{ "A-065 AV: GID index 255", TO_RTR, U8(ah_attr.grh.sgid_index), 255, false },
	{ "A-074 AV: rate 2.5 Gb/s", TO_RTR, U8(ah_attr.static_rate), IBV_RATE_2_5_GBPS, true },
	{ "A-074 AV: static rate 1", TO_RTR, U8(ah_attr.static_rate), 1, false },
	{ "A-074 AV: static rate 255", TO_RTR, U8(ah_attr.static_rate), 255, false },
	{ "A-065 AV: no GRH", TO_RTR, U8(ah_attr.is_global), 0, false },
	{ "A-063 timeout 0", TO_RTS, U8(timeout), 0, true },
	{ "A-063 timeout 31", TO_RTS, U8(timeout), 31, true },
	{ "A-063 timeout 32", TO_RTS, U8(timeout), 32, false },
	{ "A-063 retries 7", TO_RTS, U8(retry_cnt), 7, true },
	{ "A-063 retries 8", TO_RTS, U8(retry_cnt), 8, false },
	{ "A-063 RNR retries 0", TO_RTS, U8(rnr_retry), 0, true },
	{ "A-063 RNR retries 8", TO_RTS, U8(rnr_retry), 8, false },
	{ "A-064 initiator depth 0", TO_RTS, U8(max_rd_atomic), 0, true },
	{ "A-064 initiator depth 255", TO_RTS, U8(max_rd_atomic), 255, false },
};

static void put(struct ibv_qp_attr *a, const struct value *v)
{
	memcpy((uint8_t *)a + v->at.off, &v->value, v->at.size);
}

static void check_value(const struct value *v, enum ibv_qp_type type)
{
	struct dev *d = dev_open_qhca();
	struct end e = end_of_type(d, type, state_before(v->step));
	struct ibv_qp_attr a;
	int mask = mask_of(&a, &e, v->step), err;
	enum ibv_qp_state before = get_state(e.qp);

	put(&a, v);
	err = ibv_modify_qp(e.qp, &a, mask);
	if (v->ok) {
		CHECK_EQ(err, 0);
		return;
	}
	CHECK(err);
	if (v->at.off < offsetof(struct ibv_qp_attr, ah_attr) ||
	    v->at.off >= offsetof(struct ibv_qp_attr, alt_ah_attr))
		CHECK_EQ(err, EINVAL);
	CHECK_EQ(get_state(e.qp), before);
	/* The correct step still works. */
	mask = mask_of(&a, &e, v->step);
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), 0);
}

TEST_ROWS(value, "value", values)
{
	bool target = row->at.off == offsetof(struct ibv_qp_attr, min_rnr_timer) ||
		      row->at.off == offsetof(struct ibv_qp_attr, max_dest_rd_atomic);

	check_value(row, IBV_QPT_RC);
	/* Attributes that other types share with RC. */
	if (!target)
		check_value(row, IBV_QPT_XRC_SEND);
	if (row->step != TO_RTS || row->at.off == offsetof(struct ibv_qp_attr, timeout))
		check_value(row, IBV_QPT_XRC_RECV);
	if (row->step == TO_RTS || target)
		return;
	check_value(row, IBV_QPT_UC);
	if (row->step == TO_INIT &&
	    row->at.off != offsetof(struct ibv_qp_attr, qp_access_flags))
		check_value(row, IBV_QPT_UD);
}

TEST(empty_gid, "A-065 an AV with an empty GID index is refused")
{
	struct dev *d = dev_open();
	struct end e = end_before(d, TO_RTR);
	struct ibv_qp_attr a;
	int mask = mask_of(&a, &e, TO_RTR);

	a.ah_attr.grh.sgid_index = d->port.gid_tbl_len > 256 ? 255 :
				   d->port.gid_tbl_len - 1;
	CHECK(ibv_modify_qp(e.qp, &a, mask));
	CHECK_EQ(get_state(e.qp), IBV_QPS_INIT);
}

#define CUR(type, state, cur, err) \
	{ #type " in " #state ", CUR_STATE " #cur, IBV_QPT_##type, \
	  IBV_QPS_##state, IBV_QPS_##cur, err }

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	int cur, err;
} cur_states[] = {
	CUR(RC, RTS, RESET, EINVAL), CUR(RC, RTS, INIT, EINVAL),
	CUR(RC, RTS, RTR, EINVAL), CUR(RC, RTS, RTS, 0),
	CUR(RC, RTS, SQD, EINVAL), CUR(RC, RTS, ERR, EINVAL),
	CUR(RC, SQD, SQD, 0), CUR(RC, SQD, RTS, EINVAL),
	CUR(UC, RTS, RTS, 0), CUR(UC, RTS, SQE, EINVAL),
	CUR(UC, SQD, SQD, 0), CUR(UC, SQD, RTS, EINVAL),
	CUR(UC, SQE, SQE, 0), CUR(UC, SQE, RTS, EINVAL),
	CUR(UD, RTS, RTS, 0), CUR(UD, RTS, SQE, EINVAL),
	CUR(UD, SQD, SQD, 0), CUR(UD, SQD, RTS, EINVAL),
	CUR(UD, SQE, SQE, 0), CUR(UD, SQE, RTS, EINVAL),
};

TEST_ROWS(cur_state, "A-066 to RTS with CUR_STATE", cur_states)
{
	struct end e = end_of_type(dev_open_qhca(), row->type, row->state);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .cur_qp_state = row->cur };

	CHECK_ERR(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE),
		  row->err);
	CHECK_EQ(get_state(e.qp), row->err ? row->state : IBV_QPS_RTS);
}

TEST(psn_mask, "A-067 a PSN above 24 bits is cut to 24 bits")
{
	struct dev *d = dev_open();
	struct end e = end_before(d, TO_RTR);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int mask = mask_of(&a, &e, TO_RTR);

	a.rq_psn = 0xab123456;
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), 0);
	mask = mask_of(&a, &e, TO_RTS);
	a.sq_psn = 0xcd654321;
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), 0);
	REQUIRE_OK(ibv_query_qp(e.qp, &a, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init));
	CHECK_EQ(a.rq_psn, 0x123456);
	CHECK_EQ(a.sq_psn, 0x654321);
}

static void check_av(const struct ibv_ah_attr *got, const struct ibv_ah_attr *want)
{
	CHECK(!memcmp(&got->grh.dgid, &want->grh.dgid, sizeof(got->grh.dgid)));
	CHECK_EQ(got->grh.sgid_index, want->grh.sgid_index);
	/* The core replaces the hop limit by the route's. */
	CHECK(got->grh.hop_limit);
	CHECK_EQ(got->grh.traffic_class, want->grh.traffic_class);
	CHECK_EQ(got->grh.flow_label, want->grh.flow_label);
	CHECK_EQ(got->sl, want->sl);
	CHECK_EQ(got->static_rate, want->static_rate);
	CHECK_EQ(got->port_num, want->port_num);
	CHECK_EQ(got->is_global, 1);
}

TEST(query, "A-017 A-074 query returns every attribute as it was set")
{
	struct dev *d = dev_open_qhca();
	struct end e = end_before(d, TO_INIT);
	struct ibv_qp_attr init, rtr, rts, got = { 0 };
	struct ibv_qp_init_attr created = { 0 };
	int mask;

	mask = mask_of(&init, &e, TO_INIT);
	init.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	REQUIRE_OK(ibv_modify_qp(e.qp, &init, mask));
	mask = mask_of(&rtr, &e, TO_RTR);
	rtr.path_mtu = IBV_MTU_512;
	rtr.dest_qp_num = 0x00abcdef;
	rtr.rq_psn = 0xfffffe;
	rtr.max_dest_rd_atomic = 3;
	rtr.min_rnr_timer = 21;
	rtr.ah_attr.grh.traffic_class = 0x5c;
	rtr.ah_attr.grh.flow_label = 0xabcde;
	rtr.ah_attr.sl = 5;
	rtr.ah_attr.static_rate = IBV_RATE_10_GBPS;
	REQUIRE_OK(ibv_modify_qp(e.qp, &rtr, mask));
	mask = mask_of(&rts, &e, TO_RTS);
	rts.timeout = 19;
	rts.retry_cnt = 3;
	rts.rnr_retry = 6;
	rts.sq_psn = 0x800001;
	rts.max_rd_atomic = 5;
	REQUIRE_OK(ibv_modify_qp(e.qp, &rts, mask));

	REQUIRE_OK(ibv_query_qp(e.qp, &got, 2 * IBV_QP_DEST_QPN - 1, &created));
	CHECK_EQ(got.qp_state, IBV_QPS_RTS);
	CHECK_EQ(got.cur_qp_state, IBV_QPS_RTS);
	CHECK_EQ(got.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	CHECK_EQ(got.pkey_index, 0);
	CHECK_EQ(got.port_num, PORT);
	CHECK_EQ(got.path_mtu, rtr.path_mtu);
	CHECK_EQ(got.dest_qp_num, rtr.dest_qp_num);
	CHECK_EQ(got.rq_psn, rtr.rq_psn);
	CHECK_EQ(got.max_dest_rd_atomic, rtr.max_dest_rd_atomic);
	CHECK_EQ(got.min_rnr_timer, rtr.min_rnr_timer);
	check_av(&got.ah_attr, &rtr.ah_attr);
	CHECK_EQ(got.timeout, rts.timeout);
	CHECK_EQ(got.retry_cnt, rts.retry_cnt);
	CHECK_EQ(got.rnr_retry, rts.rnr_retry);
	CHECK_EQ(got.sq_psn, rts.sq_psn);
	CHECK_EQ(got.max_rd_atomic, rts.max_rd_atomic);
	CHECK_EQ(got.sq_draining, 0);
	CHECK_EQ(created.cap.max_send_wr, e.cap.max_send_wr);
	CHECK_EQ(created.cap.max_recv_wr, e.cap.max_recv_wr);
	CHECK_EQ(created.cap.max_send_sge, e.cap.max_send_sge);
	CHECK_EQ(created.cap.max_recv_sge, e.cap.max_recv_sge);
	CHECK_EQ(created.cap.max_inline_data, e.cap.max_inline_data);
	CHECK_EQ(created.qp_type, IBV_QPT_RC);
	CHECK_EQ(created.sq_sig_all, 0);
}

TEST(query_uc, "A-017 query of a UC QP")
{
	struct end e = end_of_type(dev_open_qhca(), IBV_QPT_UC, IBV_QPS_RESET);
	struct ibv_qp_attr init, rtr, rts, got = { 0 };
	struct ibv_qp_init_attr created = { 0 };
	int mask;

	mask = mask_of(&init, &e, TO_INIT);
	init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	REQUIRE_OK(ibv_modify_qp(e.qp, &init, mask));
	mask = mask_of(&rtr, &e, TO_RTR);
	rtr.path_mtu = IBV_MTU_256;
	rtr.dest_qp_num = 0x00fedcba;
	rtr.rq_psn = 0x7fffff;
	rtr.ah_attr.grh.traffic_class = 0x20;
	rtr.ah_attr.grh.flow_label = 0x12345;
	rtr.ah_attr.sl = 3;
	rtr.ah_attr.static_rate = IBV_RATE_2_5_GBPS;
	REQUIRE_OK(ibv_modify_qp(e.qp, &rtr, mask));
	mask = mask_of(&rts, &e, TO_RTS);
	rts.sq_psn = 0xffffff;
	REQUIRE_OK(ibv_modify_qp(e.qp, &rts, mask));

	REQUIRE_OK(ibv_query_qp(e.qp, &got, 2 * IBV_QP_DEST_QPN - 1, &created));
	CHECK_EQ(got.qp_state, IBV_QPS_RTS);
	CHECK_EQ(got.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(got.path_mtu, rtr.path_mtu);
	CHECK_EQ(got.dest_qp_num, rtr.dest_qp_num);
	CHECK_EQ(got.rq_psn, rtr.rq_psn);
	CHECK_EQ(got.sq_psn, rts.sq_psn);
	CHECK_EQ(got.port_num, PORT);
	check_av(&got.ah_attr, &rtr.ah_attr);
	CHECK_EQ(created.qp_type, IBV_QPT_UC);
}

TEST(query_ud, "A-017 query of a UD QP")
{
	struct end e = end_of_type(dev_open_qhca(), IBV_QPT_UD, IBV_QPS_RESET);
	struct ibv_qp_init_attr created = { 0 };
	struct ibv_qp_attr a, got = { 0 };
	int mask;

	mask = mask_of(&a, &e, TO_INIT);
	a.qkey = 0x7fedcba9;
	REQUIRE_OK(ibv_modify_qp(e.qp, &a, mask));
	mask = mask_of(&a, &e, TO_RTR);
	REQUIRE_OK(ibv_modify_qp(e.qp, &a, mask));
	mask = mask_of(&a, &e, TO_RTS);
	a.sq_psn = 0x123456;
	REQUIRE_OK(ibv_modify_qp(e.qp, &a, mask));
	REQUIRE_OK(ibv_query_qp(e.qp, &got, 2 * IBV_QP_DEST_QPN - 1, &created));
	CHECK_EQ(got.qp_state, IBV_QPS_RTS);
	CHECK_EQ(got.qkey, 0x7fedcba9);
	CHECK_EQ(got.sq_psn, 0x123456);
	CHECK_EQ(got.port_num, PORT);
	CHECK_EQ(got.pkey_index, 0);
	CHECK_EQ(created.qp_type, IBV_QPT_UD);
}

TEST(query_sig_all, "A-017 query returns sq_sig_all")
{
	struct qp_opts o = QP_OPTS;
	struct ibv_qp_init_attr init = { 0 };
	struct ibv_qp_attr a;
	struct end e;

	o.sig_all = 1;
	e = end_new(dev_open_qhca(), &o);
	REQUIRE_OK(ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init));
	CHECK_EQ(init.sq_sig_all, 1);
}
