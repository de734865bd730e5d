// SPDX-License-Identifier: GPL-2.0
/* Enhanced connection establishment: options that the ends of a connection tell each other. */
#include "lib/rdma.h"

#define VENDOR		0x1af4
#define FLUSH		1
#define ATOMIC_WRITE	2
#define UNKNOWN		0x80000000u

static uint32_t options_of(struct ibv_qp *qp)
{
	struct ibv_ece ece = { .comp_mask = ~0u };

	REQUIRE_OK(ibv_query_ece(qp, &ece));
	CHECK_EQ(ece.vendor_id, VENDOR);
	CHECK_EQ(ece.comp_mask, 0);
	return ece.options;
}

TEST(offered, "A-075 options of a new QP are the requests that its device executes")
{
	struct dev *d = dev_open_qhca();
	struct end e = end_new(d, &QP_OPTS);
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	CHECK_EQ(attr.orig_attr.vendor_id, VENDOR);
	CHECK_EQ(!(options_of(e.qp) & FLUSH), !has_flush(d->ctx));
	CHECK_EQ(!(options_of(e.qp) & ATOMIC_WRITE),
		 !(attr.device_cap_flags_ex & (1ull << 40)));
	CHECK_EQ(options_of(e.qp) & ~(uint32_t)(FLUSH | ATOMIC_WRITE), 0);
}

TEST(both, "A-075 set_ece leaves what both ends have, until RESET")
{
	struct dev *d = dev_open_qhca();
	struct end e = end_new(d, &QP_OPTS);
	uint32_t all = options_of(e.qp);
	struct ibv_ece ece = { .vendor_id = VENDOR, .options = UNKNOWN | ATOMIC_WRITE };

	REQUIRE_OK(ibv_set_ece(e.qp, &ece));
	CHECK_EQ(ece.options, all & ATOMIC_WRITE);
	CHECK_EQ(options_of(e.qp), all & ATOMIC_WRITE);
	ece.options = 0;
	REQUIRE_OK(ibv_set_ece(e.qp, &ece));
	CHECK_EQ(options_of(e.qp), 0);
	REQUIRE_OK(set_state(e.qp, IBV_QPS_RESET));
	CHECK_EQ(options_of(e.qp), all);
}

TEST(refused, "A-075 set_ece refuses another vendor and unknown members, and changes nothing")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	uint32_t all = options_of(p.a.qp);
	struct ibv_ece ece = { .vendor_id = 0x15b3 };

	CHECK_ERR(ibv_set_ece(p.a.qp, &ece), EINVAL);
	ece.vendor_id = 0;
	CHECK(ibv_set_ece(p.a.qp, &ece) != 0);
	ece.vendor_id = VENDOR;
	ece.comp_mask = 1;
	CHECK_ERR(ibv_set_ece(p.a.qp, &ece), EINVAL);
	CHECK_EQ(options_of(p.a.qp), all);
	ping_pong(&p);
}

TEST(other_types, "A-075 a UD QP has no options")
{
	struct qp_opts opts = QP_OPTS;
	struct ibv_ece ece = { .vendor_id = VENDOR, .options = ~0u };
	struct end e;

	opts.type = IBV_QPT_UD;
	e = end_new(dev_open_qhca(), &opts);
	CHECK_EQ(options_of(e.qp), 0);
	REQUIRE_OK(ibv_set_ece(e.qp, &ece));
	CHECK_EQ(ece.options, 0);
}
