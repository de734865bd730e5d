// SPDX-License-Identifier: GPL-2.0
/*
 * QPs of type RAW_PACKET, and flow rules. A frame for which the port has a rule does not leave the
 * machine, so one QP sends and others of the same device receive.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include <qhca/flow.h>

#include "lib/rawqp.h"

#define TAG	0x123456

TEST(takes, "raw: a rule takes frames of its address and port, and only while it exists")
{
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), rx = raw_new(d);
	struct rule rule = rule_new();
	struct ibv_flow *flow;

	put_frame(&tx.b, 1000);
	CHECK(!arrives(&tx, &rx));
	match_dmac(&rule);
	match_udp(&rule, 1000);
	flow = must(&rx, &rule);
	CHECK(arrives(&tx, &rx));
	put_frame(&tx.b, 1001);
	CHECK(!arrives(&tx, &rx));
	put_frame(&tx.b, 1000);
	tx.b.addr[5] ^= 1;
	CHECK(!arrives(&tx, &rx));
	tx.b.addr[5] ^= 1;
	CHECK(arrives(&tx, &rx));
	CHECK_ERR(ibv_destroy_qp(rx.e.qp), EBUSY);
	REQUIRE_OK(ibv_destroy_flow(flow));
	CHECK(!arrives(&tx, &rx));
	CHECK_ERR(ibv_destroy_qp(rx.e.qp), 0);
}

TEST(priority, "raw: the smallest priority has the frame, and DROP drops it")
{
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), a = raw_new(d), b = raw_new(d);
	struct rule low = rule_new(), high = rule_new(), drop = rule_new();
	struct ibv_flow_spec_action_drop spec = {
		.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(spec),
	};
	struct ibv_flow *flow;

	put_frame(&tx.b, 1000);
	match_dmac(&low);
	low.attr.priority = 7;
	match_dmac(&high);
	high.attr.priority = 3;
	must(&a, &low);
	CHECK(arrives(&tx, &a));
	flow = must(&b, &high);
	CHECK(arrives(&tx, &b));
	CHECK(!arrives(&tx, &a));
	REQUIRE_OK(ibv_destroy_flow(flow));
	CHECK(arrives(&tx, &a));
	match_dmac(&drop);
	rule_add(&drop, &spec, sizeof(spec));
	must(&b, &drop);
	CHECK(!arrives(&tx, &a));
	CHECK(!arrives(&tx, &b));
}

/* Bits of the frame that a specification of IPv4 looks at. */
static const struct {
	const char *name;
	size_t at;
} ipv4_bytes[] = {
	{ "source", 29 }, { "destination", 33 }, { "protocol", 23 }, { "TOS", 15 }, { "TTL", 22 },
};

TEST_ROWS(ipv4, "raw: IPv4", ipv4_bytes)
{
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), rx = raw_new(d);
	struct rule rule = rule_new();
	struct ibv_flow_spec_ipv4_ext ip = {
		.type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(ip),
		.val = { .src_ip = inet_addr("192.0.2.1"), .dst_ip = inet_addr("192.0.2.2"),
			 .proto = 17, .tos = 0x28, .ttl = 64 },
		.mask = { 0xffffffff, 0xffffffff, 0xff, 0xff, 0xff, 0 },
	};

	put_frame(&tx.b, 1000);
	match_dmac(&rule);
	rule_add(&rule, &ip, sizeof(ip));
	must(&rx, &rule);
	CHECK(arrives(&tx, &rx));
	tx.b.addr[row->at] ^= 2;
	CHECK(!arrives(&tx, &rx));
}

TEST(checksum, "raw: checksums are filled in, and found right; the tag of the rule")
{
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), rx = raw_new(d);
	struct rule rule = rule_new();
	struct ibv_wc wc;

	match_dmac(&rule);
	must(&rx, &rule);
	put_frame(&tx.b, 1000);
	raw_recv(&rx, 1);
	raw_send(&tx, 0);
	wc = poll_get(rx.e.recv_cq);
	CHECK(!(wc.wc_flags & IBV_WC_IP_CSUM_OK));
	raw_recv(&rx, 2);
	raw_send(&tx, IBV_SEND_IP_CSUM);
	wc = poll_get(rx.e.recv_cq);
	CHECK_EQ(wc.wr_id, 2);
	CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	CHECK(memcmp(rx.b.addr + LEN, tx.b.addr, LEN));
}

TEST(tag, "raw: an extended CQ has the tag of the rule")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &cq_attr);
	struct raw tx = raw_new(d), rx;
	struct ibv_flow_spec_action_tag spec = {
		.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(spec), .tag_id = TAG,
	};
	struct ibv_poll_cq_attr poll = {};
	struct rule rule = rule_new();

	REQUIRE(cq);
	rx = raw_new_at(d, ibv_cq_ex_to_cq(cq));
	match_dmac(&rule);
	rule_add(&rule, &spec, sizeof(spec));
	must(&rx, &rule);
	put_frame(&tx.b, 1);
	raw_recv(&rx, 5);
	raw_send(&tx, 0);
	REQUIRE_OK(ibv_start_poll(cq, &poll));
	CHECK_EQ(cq->wr_id, 5);
	CHECK_EQ(cq->status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_wc_read_flow_tag(cq), TAG);
	ibv_end_poll(cq);
}

TEST(many, "raw: as many rules as there can be, and again when they are gone")
{
	struct ibv_flow *flow[STEER_MAX_FLOWS];
	struct dev *d = dev_open_qhca();
	struct raw r = raw_new(d);
	struct rule rule = rule_new();
	size_t i;

	match_dmac(&rule);
	for (i = 0; i < STEER_MAX_FLOWS; i++) {
		rule.attr.priority = i % 5;
		flow[i] = must(&r, &rule);
	}
	errno = 0;
	CHECK(!ibv_create_flow(r.e.qp, &rule.attr));
	CHECK_EQ(errno, ENOMEM);
	for (i = 0; i < STEER_MAX_FLOWS; i++)
		REQUIRE_OK(ibv_destroy_flow(flow[i * 5 % STEER_MAX_FLOWS]));
	REQUIRE_OK(ibv_destroy_flow(must(&r, &rule)));
}

TEST(twice, "raw: specifications of the same kind all count, and must not contradict")
{
	struct ibv_flow_spec_eth smac = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(smac) };
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), rx = raw_new(d);
	struct rule rule = rule_new();

	memcpy(smac.val.src_mac, STEER_SMAC, 6);
	memset(smac.mask.src_mac, 0xff, 6);
	match_dmac(&rule);
	rule_add(&rule, &smac, sizeof(smac));
	must(&rx, &rule);
	put_frame(&tx.b, 1000);
	CHECK(arrives(&tx, &rx));
	tx.b.addr[5] ^= 1;
	CHECK(!arrives(&tx, &rx));
	tx.b.addr[5] ^= 1;
	tx.b.addr[11] ^= 1;
	CHECK(!arrives(&tx, &rx));
	smac.val.src_mac[5] ^= 1;
	rule_add(&rule, &smac, sizeof(smac));
	errno = 0;
	CHECK(!ibv_create_flow(rx.e.qp, &rule.attr));
	CHECK_EQ(errno, EINVAL);
}

static const struct {
	const char *name;
	int err;
	enum ibv_flow_attr_type type;
	uint32_t flags;
	uint8_t port;
	uint32_t spec;
} bad_rules[] = {
	{ "a sniffer", EOPNOTSUPP, IBV_FLOW_ATTR_SNIFFER, 0, PORT, 0 },
	{ "do not trap", EOPNOTSUPP, IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, PORT, 0 },
	{ "on the way out", EOPNOTSUPP, IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_EGRESS, PORT, 0 },
	{ "port 2", EINVAL, IBV_FLOW_ATTR_NORMAL, 0, 2, 0 },
	{ "a tunnel", EOPNOTSUPP, IBV_FLOW_ATTR_NORMAL, 0, PORT, IBV_FLOW_SPEC_VXLAN_TUNNEL },
	{ "all the rest, but of one address", EINVAL, IBV_FLOW_ATTR_ALL_DEFAULT, 0, PORT,
	  IBV_FLOW_SPEC_ETH },
};

TEST_ROWS(refused, "raw: rules that are refused", bad_rules)
{
	struct dev *d = dev_open_qhca();
	struct raw r = raw_new(d);
	struct rule rule = rule_new();
	struct ibv_flow_spec_tunnel tunnel = {
		.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(tunnel),
		.val.tunnel_id = htonl(1), .mask.tunnel_id = htonl(0xffffff),
	};

	rule.attr.type = row->type;
	rule.attr.flags = row->flags;
	rule.attr.port = row->port;
	if (row->spec == IBV_FLOW_SPEC_ETH)
		match_dmac(&rule);
	else if (row->spec)
		rule_add(&rule, &tunnel, sizeof(tunnel));
	errno = 0;
	CHECK(!ibv_create_flow(r.e.qp, &rule.attr));
	CHECK_EQ(errno, row->err);
}

TEST(rights, "raw: neither QPs nor rules without CAP_NET_RAW")
{
	struct dev *d = dev_open_qhca();
	struct raw r = raw_new(d);
	struct rule rule = rule_new();
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = r.e.send_cq, .recv_cq = r.e.recv_cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	match_dmac(&rule);
	REQUIRE_OK(setuid(65534));
	errno = 0;
	CHECK(!ibv_create_qp(d->pd, &attr));
	CHECK_EQ(errno, EPERM);
	errno = 0;
	CHECK(!ibv_create_flow(r.e.qp, &rule.attr));
	CHECK_EQ(errno, EPERM);
}

TEST(only_frames, "raw: other operations, other types' rules")
{
	struct dev *d = dev_open_qhca();
	struct raw r = raw_new(d);
	struct end rc = end_new(d, &QP_OPTS);
	struct rule rule = rule_new();
	struct ibv_sge sge = buf_sge(&r.b, 0, LEN);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
	}, *bad;

	CHECK_ERR(ibv_post_send(r.e.qp, &wr, &bad), EINVAL);
	match_dmac(&rule);
	errno = 0;
	CHECK(!ibv_create_flow(rc.qp, &rule.attr));
	CHECK(errno == EINVAL || errno == EOPNOTSUPP);
}
