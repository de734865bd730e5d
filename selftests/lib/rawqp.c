// SPDX-License-Identifier: GPL-2.0
/* QPs of type RAW_PACKET, and flow rules: see rawqp.h. */
#include <arpa/inet.h>

#include "rawqp.h"

void put_frame(const struct buf *b, uint16_t dport)
{
	steer_frame(b->addr, LEN, 0x1234, dport);
}

void raw_bring_up(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = PORT };

	REQUIRE_OK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT));
	REQUIRE_OK(set_state(qp, IBV_QPS_RTR));
}

struct raw raw_new_at(struct dev *d, struct ibv_cq *cq)
{
	struct qp_opts o = QP_OPTS;
	struct raw r = { .d = d };

	o.type = IBV_QPT_RAW_PACKET;
	o.recv_cq = cq;
	r.e = end_new(d, &o);
	r.b = buf_new(d->pd, 4096, LOCAL);
	raw_bring_up(r.e.qp);
	REQUIRE_OK(set_state(r.e.qp, IBV_QPS_RTS));
	return r;
}

struct raw raw_new(struct dev *d)
{
	return raw_new_at(d, NULL);
}

void raw_recv(struct raw *r, uint64_t id)
{
	struct ibv_sge sge = buf_sge(&r->b, LEN, LEN);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(r->b.addr + LEN, 0, LEN);
	REQUIRE_OK(ibv_post_recv(r->e.qp, &wr, &bad));
}

void raw_send(struct raw *r, unsigned int flags)
{
	struct ibv_sge sge = buf_sge(&r->b, 0, LEN);
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	}, *bad;

	REQUIRE_OK(ibv_post_send(r->e.qp, &wr, &bad));
	CHECK_EQ(poll_get(r->e.send_cq).status, IBV_WC_SUCCESS);
}

bool arrives(struct raw *from, struct raw *to)
{
	struct ibv_wc wc;
	int n;

	raw_recv(to, 9);
	raw_send(from, 0);
	n = ibv_poll_cq(to->e.recv_cq, 1, &wc);
	if (n == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, LEN);
		CHECK_EQ(wc.qp_num, to->e.qp->qp_num);
		CHECK(!memcmp(to->b.addr + LEN, from->b.addr, LEN));
		return true;
	}
	REQUIRE_OK(set_state(to->e.qp, IBV_QPS_RESET));	/* takes the WR back */
	raw_bring_up(to->e.qp);
	return false;
}

struct rule rule_new(void)
{
	return (struct rule){
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(struct ibv_flow_attr),
			  .port = PORT },
	};
}

void rule_add(struct rule *r, const void *spec, size_t size)
{
	uint8_t *at = (uint8_t *)r + r->attr.size;

	REQUIRE(r->attr.size + size <= sizeof(*r));
	memcpy(at, spec, size);
	r->attr.size += size;
	r->attr.num_of_specs++;
}

void match_dmac(struct rule *r)
{
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth) };

	memcpy(eth.val.dst_mac, STEER_DMAC, 6);
	memset(eth.mask.dst_mac, 0xff, 6);
	rule_add(r, &eth, sizeof(eth));
}

void match_udp(struct rule *r, uint16_t dport)
{
	struct ibv_flow_spec_tcp_udp udp = {
		.type = IBV_FLOW_SPEC_UDP, .size = sizeof(udp),
		.val.dst_port = htons(dport), .mask.dst_port = 0xffff,
	};

	rule_add(r, &udp, sizeof(udp));
}

struct ibv_flow *must(struct raw *r, const struct rule *rule)
{
	struct ibv_flow *flow = ibv_create_flow(r->e.qp, (struct ibv_flow_attr *)&rule->attr);

	REQUIRE(flow);
	return flow;
}
