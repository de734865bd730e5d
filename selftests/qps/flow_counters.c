// SPDX-License-Identifier: GPL-2.0
/* Counters of flow rules. */
#include "lib/rawqp.h"

/* Lets @counters count the frames of a rule. */
static void count_frames(struct rule *r, struct ibv_counters *counters)
{
	struct ibv_flow_spec_counter_action spec = {
		.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(spec), .counters = counters,
	};

	rule_add(r, &spec, sizeof(spec));
}

static void attach(struct ibv_counters *counters, enum ibv_counter_description what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = what, .index = index };

	REQUIRE_OK(ibv_attach_counters_point_flow(counters, &attr, NULL));
}

/* Whether @counters, made by counters_new(), have counted @n frames. */
static bool counted(struct ibv_counters *counters, uint64_t n)
{
	uint64_t value[4] = { 1, 1, 1, 1 };

	REQUIRE_OK(ibv_read_counters(counters, value, ARRAY_SIZE(value), 0));
	CHECK(!value[0]);
	CHECK_EQ(value[3], value[1] + value[2]);
	return value[1] == n * LEN && value[2] == n;
}

/* Bytes, frames, and both of them together. */
static struct ibv_counters *counters_new(struct dev *d)
{
	struct ibv_counters_init_attr init = {};
	struct ibv_counters *counters = ibv_create_counters(d->ctx, &init);

	REQUIRE(counters);
	attach(counters, IBV_COUNTER_BYTES, 1);
	attach(counters, IBV_COUNTER_PACKETS, 2);
	attach(counters, IBV_COUNTER_PACKETS, 3);
	attach(counters, IBV_COUNTER_BYTES, 3);
	return counters;
}

TEST(counting, "J-024 J-037 raw: counters add up the frames of the rules that name them")
{
	struct dev *d = dev_open_qhca();
	struct raw tx = raw_new(d), a = raw_new(d), b = raw_new(d);
	struct ibv_counters *counters = counters_new(d);
	struct rule one = rule_new(), other = rule_new();
	struct ibv_flow *flow[2];
	uint64_t value[4];

	/* Without a rule they have nothing to read. */
	CHECK_ERR(ibv_read_counters(counters, value, ARRAY_SIZE(value), 0), EINVAL);
	match_dmac(&one);
	match_udp(&one, 1000);
	count_frames(&one, counters);
	match_dmac(&other);
	match_udp(&other, 1001);
	count_frames(&other, counters);
	flow[0] = must(&a, &one);
	flow[1] = must(&b, &other);
	CHECK(counted(counters, 0));
	put_frame(&tx.b, 1000);
	CHECK(arrives(&tx, &a));
	CHECK(arrives(&tx, &a));
	CHECK(counted(counters, 2));
	put_frame(&tx.b, 1001);
	CHECK(arrives(&tx, &b));
	raw_send(&tx, 0);		/* there is no room for it */
	CHECK(counted(counters, 4));
	put_frame(&tx.b, 1002);
	raw_send(&tx, 0);
	CHECK(counted(counters, 4));
	CHECK_ERR(ibv_read_counters(counters, value, 3, 0), EINVAL);
	CHECK_ERR(ibv_destroy_counters(counters), EBUSY);
	REQUIRE_OK(ibv_destroy_flow(flow[0]));
	CHECK(counted(counters, 4));
	REQUIRE_OK(ibv_destroy_flow(flow[1]));
	REQUIRE_OK(ibv_destroy_counters(counters));
}

TEST(not_counting, "J-037 raw: counters that cannot be")
{
	struct dev *d = dev_open_qhca();
	struct raw r = raw_new(d);
	struct ibv_counters *counters = counters_new(d);
	struct ibv_counters_init_attr init = { .comp_mask = 1 };
	struct ibv_counter_attach_attr attr = { .counter_desc = 2 };
	struct rule rule = rule_new();

	errno = 0;
	CHECK(!ibv_create_counters(d->ctx, &init));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK_EQ(ibv_attach_counters_point_flow(counters, &attr, NULL), EOPNOTSUPP);
	attr = (struct ibv_counter_attach_attr){ .index = 1 << 20 };
	CHECK_EQ(ibv_attach_counters_point_flow(counters, &attr, NULL), EINVAL);
	attr = (struct ibv_counter_attach_attr){ .comp_mask = 1 };
	CHECK_EQ(ibv_attach_counters_point_flow(counters, &attr, NULL), EOPNOTSUPP);
	match_dmac(&rule);
	count_frames(&rule, counters);
	count_frames(&rule, counters);
	errno = 0;
	CHECK(!ibv_create_flow(r.e.qp, &rule.attr));
	CHECK_EQ(errno, EINVAL);
	REQUIRE_OK(ibv_destroy_counters(counters));
}
