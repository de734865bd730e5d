// SPDX-License-Identifier: GPL-2.0
/* Counters of QPs that rdma(8) binds and shows: "rdma statistic qp". */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define LEN	3000			/* up to three packets of 1024 bytes */
#define BYTES	(LEN + 3 * (14 + 20 + 8 + 12 + 4))	/* Ethernet, IPv4, UDP, BTH, ICRC */

static char shown[1 << 16];

/* Runs "rdma statistic qp ..." on the port and stores its output in shown. */
__attribute__((format(printf, 2, 3)))
static bool stat_qp(const char *what, const char *fmt, ...)
{
	char args[100], cmd[200];
	va_list ap;
	size_t n;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(args, sizeof(args), fmt, ap);
	va_end(ap);
	snprintf(cmd, sizeof(cmd), "rdma statistic qp %s link %s/%d %s 2>&1", what, dev_name(),
		 PORT, args);
	f = popen(cmd, "r");
	REQUIRE(f);
	n = fread(shown, 1, sizeof(shown) - 1, f);
	shown[n] = '\0';
	return !pclose(f);
}

/* Returns the number after @name in the output; ends the test if there is none. */
static unsigned long long number(const char *name)
{
	char text[64];
	const char *at;

	snprintf(text, sizeof(text), "%s ", name);
	at = strstr(shown, text);
	if (!at) {
		FAIL("no %s in: %.300s", name, shown);
		test_die();
	}
	return strtoull(at + strlen(text), NULL, 10);
}

static unsigned int sets_shown(void)
{
	unsigned int n = 0;
	const char *at;

	REQUIRE(stat_qp("show", "%s", ""));
	for (at = shown; (at = strstr(at, "cntn ")); at++)
		n++;
	return n;
}

static unsigned long long of_set(unsigned int set, const char *name)
{
	REQUIRE(stat_qp("show", "cntn %u", set));
	return number(name);
}

/* Binds the QP to a new set. */
static unsigned int bind_new(const struct end *e)
{
	if (!stat_qp("bind", "lqpn %u", e->qp->qp_num)) {
		FAIL("bind: %.200s", shown);
		test_die();
	}
	REQUIRE(stat_qp("show", "%s", ""));
	return number("cntn");
}

static void unbind_one(unsigned int set, const struct end *e)
{
	if (!stat_qp("unbind", "cntn %u lqpn %u", set, e->qp->qp_num))
		FAIL("unbind failed: %.200s", shown);
}

static void send_some(struct pair *p, struct buf *b, int n)
{
	struct ibv_sge sge = buf_sge(b, 0, LEN);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	while (n--) {
		REQUIRE_OK(post_recv(&p->b, 2, &sge, 1));
		REQUIRE_OK(post_send(&p->a, &wr));
		poll_ok(p->b.recv_cq, 2);
		poll_ok(p->a.send_cq, 1);
	}
}

TEST(traffic, "J-025 a set counts exactly the packets of its QPs")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN), other = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, LEN, LOCAL);
	uint64_t tx = hw_counter("tx_pkts"), bytes = hw_counter("tx_bytes");
	unsigned int set = bind_new(&p.a);

	CHECK_EQ(number("tx_pkts"), 0);
	send_some(&p, &b, 10);
	send_some(&other, &b, 5);
	CHECK_EQ(of_set(set, "tx_pkts"), 30);
	CHECK_EQ(number("tx_bytes"), 10 * BYTES);
	CHECK_EQ(number("tx_ack"), 0);
	CHECK(number("rx_pkts") >= 10 && number("rx_pkts") <= 30);
	CHECK_EQ(number("retransmit"), 0);
	/* Add a second QP to the set, the receiver: all its packets are ACKs. */
	CHECK(stat_qp("bind", "lqpn %u cntn %u", p.b.qp->qp_num, set));
	send_some(&p, &b, 10);
	CHECK_EQ(of_set(set, "tx_pkts") - number("tx_ack"), 60);
	unbind_one(set, &p.a);
	send_some(&p, &b, 10);
	CHECK_EQ(of_set(set, "tx_pkts") - number("tx_ack"), 60);
	/* The port counts all packets. */
	CHECK(hw_counter("tx_pkts") - tx >= 105 + 35);
	CHECK(hw_counter("tx_bytes") - bytes > 35 * BYTES);
	unbind_one(set, &p.b);
	CHECK_EQ(sets_shown(), 0);
	CHECK(hw_counter("tx_pkts") - tx >= 105 + 35);
}

TEST(errors, "J-025 J-017 errors are counted for their QP")
{
	struct dev *d = dev_open_qhca();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct conn c = CONN;
	struct pair p;
	unsigned int set;

	c.rnr_retry = 1;
	c.min_rnr_timer = 1;
	p = pair_new(d, &QP_OPTS, &c);
	set = bind_new(&p.a);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK_EQ(of_set(set, "tx_pkts"), 2);
	CHECK_EQ(number("rx_rnr_nak"), 2);
	CHECK_EQ(number("retransmit"), 1);
	CHECK_EQ(number("rnr_retry_exc"), 1);
	CHECK_EQ(number("rx_nak_fatal"), 0);
	unbind_one(set, &p.a);
}

TEST(gone, "J-025 J-021 counts of QPs remain after they and their set are destroyed")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, LEN, LOCAL);
	uint64_t tx = hw_counter("tx_pkts"), now;

	bind_new(&p.a);
	send_some(&p, &b, 10);
	now = hw_counter("tx_pkts");
	CHECK(now - tx >= 40 && now - tx <= 60);
	REQUIRE_OK(ibv_destroy_qp(p.a.qp));
	CHECK_EQ(sets_shown(), 0);
	CHECK_EQ(hw_counter("tx_pkts"), now);
	CHECK(!stat_qp("bind", "lqpn %u", 0xfffff));
}

TEST(automatic, "J-025 one set for all QPs of a type and process")
{
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, LEN, LOCAL);
	struct pair p[2];

	if (!stat_qp("set", "auto type on")) {
		FAIL("set: %.200s", shown);
		test_die();
	}
	p[0] = pair_new(d, &QP_OPTS, &CONN);
	p[1] = pair_new(d, &QP_OPTS, &CONN);
	send_some(&p[0], &b, 4);
	send_some(&p[1], &b, 6);
	CHECK_EQ(sets_shown(), 1);
	CHECK_EQ(number("tx_pkts") - number("tx_ack"), 30);
	CHECK_EQ(number("rx_pkts"), number("tx_pkts"));
	CHECK(stat_qp("set", "auto off"));
	ibv_destroy_qp(p[0].a.qp);
	ibv_destroy_qp(p[0].b.qp);
	ibv_destroy_qp(p[1].a.qp);
	ibv_destroy_qp(p[1].b.qp);
	CHECK_EQ(sets_shown(), 0);
}
