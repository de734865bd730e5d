// SPDX-License-Identifier: GPL-2.0
/*
 * Rates of QPs: the limit of their owner, and congestion control. Rates are low enough that even
 * an emulated CPU could send much faster.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/faults.h"

#define LEN	(1u << 20)
#define KBIT	80000u		/* 1 MiB in 105 ms, and headers */
#define MS	105
#define BATCH	8u
#define PCI	"pci/$(lspci -D -n -d 1af4:10f0 | cut -d ' ' -f 1)"

/* Returns how many milliseconds @count WRITEs of LEN bytes take, each behind the one before. */
static unsigned int writes_ms(struct pair *p, const struct buf *from, const struct buf *to,
			      unsigned int count)
{
	struct ibv_sge sge = buf_sge(from, 0, LEN);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)to->addr,
					to->mr->rkey);
	int64_t start = time_ms();

	for (unsigned int i = 0; i < count; i++)
		REQUIRE_OK(post_send(&p->a, &wr));
	for (unsigned int i = 0; i < count; i++)
		poll_ok(p->a.send_cq, 1);
	return (unsigned int)(time_ms() - start);
}

/* The same of one, and whether the data are there. */
static unsigned int write_ms(struct pair *p, const struct buf *from, const struct buf *to)
{
	unsigned int ms;

	fill(from->addr, LEN, 1);
	ms = writes_ms(p, from, to, 1);
	check_fill(to->addr, LEN, 1, "what was written");
	return ms;
}

static int set_limit(struct ibv_qp *qp, uint32_t kbit)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = kbit };

	return ibv_modify_qp_rate_limit(qp, &attr);
}

TEST(caps, "rate: the device says which QPs can have a limit")
{
	struct dev *d = dev_open_qhca();
	struct ibv_device_attr_ex attr;
	const struct ibv_packet_pacing_caps *caps = &attr.packet_pacing_caps;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	CHECK_EQ(caps->qp_rate_limit_min, 1);
	CHECK_EQ(caps->qp_rate_limit_max, UINT32_MAX);
	CHECK_EQ(caps->supported_qpts, 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD |
		 1u << IBV_QPT_RAW_PACKET | 1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_XRC_RECV);
}

TEST(limit, "A-074 rate: a limit holds, a new one from then on, and none after that")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf from = buf_new(d->pd, LEN, LOCAL), to = buf_new(d->pd, LEN, REMOTE);
	unsigned int ms, free_ms;

	free_ms = write_ms(&p, &from, &to);
	REQUIRE_OK(set_limit(p.a.qp, KBIT));
	ms = write_ms(&p, &from, &to);
	CHECK(ms >= MS);
	REQUIRE_OK(set_limit(p.a.qp, KBIT / 4));
	CHECK(write_ms(&p, &from, &to) >= 4 * MS);
	REQUIRE_OK(set_limit(p.a.qp, 0));
	CHECK(write_ms(&p, &from, &to) < ms + 10 * free_ms);
}

TEST(answers, "rate: the limit of a responder is one of its READ data")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf to = buf_new(d->pd, LEN, LOCAL), from = buf_new(d->pd, LEN, REMOTE);
	struct ibv_sge sge = buf_sge(&to, 0, LEN);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1, (uintptr_t)from.addr,
					from.mr->rkey);
	int64_t start;

	REQUIRE_OK(set_limit(p.b.qp, KBIT));
	start = time_ms();
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	CHECK(time_ms() - start >= MS);
}

TEST(reset, "rate: a reset of the QP ends its limit")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);

	REQUIRE_OK(set_limit(p.a.qp, 1));	/* a packet takes seconds */
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
	pair_connect(&p, &CONN);
	for (int i = 0; i < 100; i++)
		ping_pong(&p);
}

TEST(states, "rate: RTS and SQD, and the way to RTS, take a limit")
{
	struct dev *d = dev_open_qhca();
	static const struct {
		enum ibv_qp_state state;
		bool takes;
	} rows[] = {
		{ IBV_QPS_RESET, false }, { IBV_QPS_INIT, false }, { IBV_QPS_RTR, false },
		{ IBV_QPS_RTS, true }, { IBV_QPS_ERR, false },
	};
	struct conn c = CONN;

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct end e = end_new(d, &QP_OPTS);

		c.dest_qpn = e.qp->qp_num;
		if (rows[i].state != IBV_QPS_RESET)
			qp_bring(&e, &c, rows[i].state);
		CHECK_EQ(set_limit(e.qp, 1000), rows[i].takes ? 0 : EINVAL);
	}

	struct end e = end_new(d, &QP_OPTS);
	struct ibv_qp_attr a;
	int mask;

	c.dest_qpn = e.qp->qp_num;
	qp_bring(&e, &c, IBV_QPS_RTR);
	mask = attr_rts(&a, &c);
	a.rate_limit = 1000;
	CHECK_EQ(ibv_modify_qp(e.qp, &a, mask | IBV_QP_RATE_LIMIT), 0);
}

TEST(others, "rate: sizes of bursts, and what is not known, are refused")
{
	struct dev *d = dev_open_qhca();
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_RTS);
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000, .max_burst_sz = 4096 };

	CHECK_ERR(ibv_modify_qp_rate_limit(e.qp, &attr), EOPNOTSUPP);
	attr.max_burst_sz = 0;
	attr.typical_pkt_sz = 64;
	CHECK_ERR(ibv_modify_qp_rate_limit(e.qp, &attr), EOPNOTSUPP);
	attr.typical_pkt_sz = 0;
	attr.comp_mask = 1;
	CHECK_ERR(ibv_modify_qp_rate_limit(e.qp, &attr), EINVAL);
}

/* ---- congestion control ---- */

/* Returns whether devlink takes the value; what it says is of no interest. */
static bool set_param(const char *name, unsigned int value)
{
	char cmd[200];

	snprintf(cmd, sizeof(cmd),
		 "devlink dev param set " PCI " name %s value %u cmode runtime >/dev/null 2>&1",
		 name, value);
	return system(cmd) == 0;
}

/* Settings would outlast the test: restore them to the state after a reset. */
__attribute__((destructor))
static void clean_up(void)
{
	faults_clear();
	set_param("np_enable", 0);
	set_param("rp_enable", 0);
	set_param("rp_min_rate", 10);
	set_param("rp_time_reset", 55);
}

static struct dev *cc_open(void)
{
	struct dev *d = faults_open();

	if (!set_param("np_enable", 1))
		test_skip("no devlink");
	REQUIRE(set_param("rp_enable", 0));
	return d;
}

TEST(params, "rate: devlink sets parameters between their limits")
{
	cc_open();
	CHECK(set_param("rp_enable", 1));
	CHECK(!set_param("rp_enable", 2));
	CHECK(!set_param("rp_threshold", 0));
	CHECK(set_param("rp_threshold", 31));
	CHECK(!set_param("rp_threshold", 32));
	CHECK(set_param("rp_threshold", 5));
	CHECK(!set_param("no_such_name", 1));
}

TEST(control, "rate: marks become notifications, and those slow a QP down")
{
	struct dev *d = cc_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf from = buf_new(d->pd, LEN, LOCAL), to = buf_new(d->pd, LEN, REMOTE);
	uint64_t marked = hw_counter("np_ecn_marked_roce_packets");
	uint64_t sent = hw_counter("np_cnp_sent"), handled = hw_counter("rp_cnp_handled");
	uint64_t ignored = hw_counter("rp_cnp_ignored");
	unsigned int ms = 0;

	REQUIRE_OK(faults_set("rx opcode=rc.write_* mark=ce"));
	write_ms(&p, &from, &to);
	CHECK_EQ(hw_counter("np_ecn_marked_roce_packets") - marked, LEN / 1024);
	CHECK(hw_counter("np_cnp_sent") > sent);
	CHECK(hw_counter("rp_cnp_ignored") > ignored);
	CHECK_EQ(hw_counter("rp_cnp_handled"), handled);
	CHECK(set_param("rp_min_rate", 40));
	CHECK(set_param("rp_time_reset", 100000));
	CHECK(set_param("rp_enable", 1));
	/*
	 * As every packet is marked, the rate falls to the lowest: 1 MiB in 210 ms. It would rise
	 * while the device waits for this machine to have a CPU.
	 */
	for (unsigned int i = 0; i < 50 && ms < 2 * MS; i++)
		ms = writes_ms(&p, &from, &to, BATCH) / BATCH;
	CHECK(ms >= 2 * MS);
	CHECK(hw_counter("rp_cnp_handled") > handled);
}
