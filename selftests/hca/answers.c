// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs that this device does not support fail as their manual pages say, and query_device agrees.
 */
#include "lib/rdma.h"

static struct ibv_device_attr_ex query_ex(struct dev *d)
{
	struct ibv_device_attr_ex attr = {};

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return attr;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode op;
} ordered_ops[] = {
	{ "RDMA WRITE", IBV_WR_RDMA_WRITE },
	{ "RDMA READ", IBV_WR_RDMA_READ },
	{ "SEND", IBV_WR_SEND },
};

/* The device copies a packet with the host's memcpy(), which may use any order. */
TEST_ROWS(in_order, "F-023 in-order arrival of the bytes of a message is not promised", ordered_ops)
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	CHECK_EQ(ibv_query_qp_data_in_order(p.a.qp, row->op, 0), 0);
	CHECK_EQ(ibv_query_qp_data_in_order(p.a.qp, row->op,
					    IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS), 0);
}

TEST(flows, "connected QPs have no flows")
{
	struct dev *d = dev_open_qhca();
	struct ibv_flow_attr flow = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.size = sizeof(flow),
		.port = PORT,
	};
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	errno = 0;
	CHECK(!ibv_create_flow(p.a.qp, &flow));
	CHECK_EQ(errno, EINVAL);
}

TEST(device, "J-004 query_device_ex offers no TSO or tag matching, and not all of raw packets")
{
	struct ibv_device_attr_ex attr = query_ex(dev_open_qhca());

	CHECK_EQ(attr.tso_caps.max_tso, 0);
	CHECK_EQ(attr.rss_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	CHECK_EQ(attr.max_wq_type_rq, attr.orig_attr.max_qp);
	CHECK_EQ(attr.raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM);
	CHECK_EQ(attr.tm_caps.max_num_tags, 0);
	CHECK_EQ(attr.pci_atomic_caps.fetch_add, 0);
}
