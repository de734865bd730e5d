// SPDX-License-Identifier: GPL-2.0
/*
 * A verbs program while fault rules make the device misbehave: each action of
 * Documentation/faults.rst, set by the guest through debugfs.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/faults.h"

#define LEN	1000

#define VLAN	"stall0"

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
	if (if_nametoindex(VLAN) && system("ip link del dev " VLAN))
		perror(VLAN);
}

/* Sets a rule in which %a and %b stand for the QPs of @p. */
static void rule(const struct pair *p, const char *text)
{
	char buf[256];
	size_t len = 0;

	for (; *text && len < sizeof(buf) - 16; text++) {
		if (text[0] == '%' && (text[1] == 'a' || text[1] == 'b'))
			len += (size_t)sprintf(buf + len, "%#x", *++text == 'a' ?
					       p->a.qp->qp_num : p->b.qp->qp_num);
		else
			buf[len++] = *text;
	}
	buf[len] = '\0';
	REQUIRE_OK(faults_set(buf));
}

/* struct scene - a connection, a message from a to b, and memory for it */
struct scene {
	struct pair p;
	struct buf src, dst;
};

static struct scene scene(const char *text)
{
	struct dev *d = faults_open();
	struct conn c = CONN;
	struct scene s;
	struct ibv_sge sge;

	c.timeout = 12;		/* 17 ms */
	c.retry_cnt = 2;
	c.rnr_retry = 2;
	s.p = pair_new(d, &QP_OPTS, &c);
	s.src = buf_new(d->pd, LEN, LOCAL);
	s.dst = buf_new(d->pd, LEN, REMOTE);
	fill(s.src.addr, LEN, 5);
	sge = buf_sge(&s.dst, 0, LEN);
	REQUIRE_OK(post_recv(&s.p.b, 100, &sge, 1));
	rule(&s.p, text);
	return s;
}

static void send_one(struct scene *s, uint64_t id)
{
	struct ibv_sge sge = buf_sge(&s->src, 0, LEN);
	struct ibv_send_wr wr = wr_send(id, &sge, 1);

	REQUIRE_OK(post_send(&s->p.a, &wr));
}

static void arrived(struct scene *s)
{
	poll_ok(s->p.a.send_cq, 1);
	poll_ok(s->p.b.recv_cq, 100);
	check_fill(s->dst.addr, LEN, 5, "message");
	CHECK_EQ(faults_hits(), 1);
}

/* ---- the transport recovers ---- */

static const struct {
	const char *name, *text;
} mends[] = {
	{ "request lost", "tx qpn=%a opcode=rc.send_only once drop" },
	{ "ACK lost", "rx qpn=%a opcode=rc.acknowledge once drop" },
	{ "twice", "rx qpn=%b opcode=rc.send_only once duplicate" },
	{ "late", "tx qpn=%a once delay=40ms" },
	{ "out of order", "tx qpn=%a once reorder" },
	{ "ICRC", "tx qpn=%a once corrupt=icrc" },
	{ "PSN", "rx qpn=%b once wrong-psn=3" },
	{ "RNR NAK", "rx qpn=%b opcode=rc.send_only once nak=rnr" },
	{ "NAK", "rx qpn=%b opcode=rc.send_only once nak=psn_seq_err" },
};

TEST_ROWS(mended, "the program does not notice", mends)
{
	struct scene s = scene(row->text);

	send_one(&s, 1);
	arrived(&s);
}

TEST(payload, "a damaged payload with a right ICRC")
{
	struct scene s = scene("rx qpn=%b once corrupt=payload");

	send_one(&s, 1);
	poll_ok(s.p.a.send_cq, 1);
	poll_ok(s.p.b.recv_cq, 100);
	CHECK_EQ(find_bad(s.dst.addr, LEN, 5), LEN / 2);
}

/* ---- the transport gives up ---- */

static const struct {
	const char *name, *text;
	enum ibv_wc_status status;
	enum ibv_event_type event;	/* event of b; IBV_EVENT_CLIENT_REREGISTER: none */
	int hits;
} refusals[] = {
	{ "retry exceeded", "tx qpn=%a drop", IBV_WC_RETRY_EXC_ERR,
	  IBV_EVENT_CLIENT_REREGISTER, 3 },
	{ "RNR retry exceeded", "rx qpn=%b opcode=rc.write_* nak=rnr",
	  IBV_WC_RNR_RETRY_EXC_ERR, IBV_EVENT_CLIENT_REREGISTER, 3 },
	{ "remote access error", "rx qpn=%b nak=rem_access_err", IBV_WC_REM_ACCESS_ERR,
	  IBV_EVENT_QP_ACCESS_ERR, 1 },
	{ "remote invalid request", "rx qpn=%b nak=inv_req", IBV_WC_REM_INV_REQ_ERR,
	  IBV_EVENT_QP_REQ_ERR, 1 },
	{ "remote operation error", "rx qpn=%b nak=rem_op_err", IBV_WC_REM_OP_ERR,
	  IBV_EVENT_QP_FATAL, 1 },
};

TEST_ROWS(fatal, "a WRITE fails, and later requests are flushed", refusals)
{
	struct scene s = scene(row->text);
	struct ibv_sge sge = buf_sge(&s.src, 0, LEN);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)s.dst.addr, s.dst.mr->rkey);

	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_expect(s.p.a.send_cq, 1, row->status);
	send_one(&s, 2);
	poll_expect(s.p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(get_state(s.p.a.qp), IBV_QPS_ERR);
	CHECK_EQ(faults_hits(), row->hits);
	if (row->event == IBV_EVENT_CLIENT_REREGISTER) {
		CHECK_EQ(get_state(s.p.b.qp), IBV_QPS_RTS);
		return;
	}
	async_expect(s.p.dev->ctx, row->event, s.p.b.qp);
	CHECK_EQ(get_state(s.p.b.qp), IBV_QPS_ERR);
	poll_expect(s.p.b.recv_cq, 100, IBV_WC_WR_FLUSH_ERR);
}

/* ---- completions ---- */

static const struct {
	const char *name, *text;
	enum ibv_wc_status status;
} failures[] = {
	{ "loc_prot_err", "cqe qpn=%a once fail=loc_prot_err", IBV_WC_LOC_PROT_ERR },
	{ "bad_resp_err", "cqe qpn=%a once fail=bad_resp_err", IBV_WC_BAD_RESP_ERR },
	{ "retry_exc_err", "cqe qpn=%a once fail=retry_exc_err", IBV_WC_RETRY_EXC_ERR },
	{ "general_err", "cqe qpn=%a once fail=general_err", IBV_WC_GENERAL_ERR },
};

TEST_ROWS(send_fails, "a send completes with an error", failures)
{
	struct scene s = scene(row->text);

	send_one(&s, 1);
	poll_expect(s.p.a.send_cq, 1, row->status);
	CHECK_EQ(get_state(s.p.a.qp), IBV_QPS_ERR);
}

TEST(recv_fails, "a receive completes with an error")
{
	struct scene s = scene("cqe qpn=%b opcode=recv once fail=loc_len_err");

	send_one(&s, 1);
	poll_expect(s.p.b.recv_cq, 100, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(get_state(s.p.b.qp), IBV_QPS_ERR);
	poll_expect(s.p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

TEST(overrun, "a CQ overruns")
{
	struct scene s = scene("cqe qpn=%a once overrun");

	send_one(&s, 1);
	async_expect(s.p.dev->ctx, IBV_EVENT_CQ_ERR, s.p.a.send_cq);
	async_expect(s.p.dev->ctx, IBV_EVENT_QP_FATAL, s.p.a.qp);
	CHECK_EQ(get_state(s.p.a.qp), IBV_QPS_ERR);
	poll_none(s.p.a.send_cq);
}

/* ---- events and interrupts ---- */

TEST(event, "events without a cause")
{
	struct scene s = scene("rx qpn=%b opcode=rc.send_only once event=sq_drained");

	send_one(&s, 1);
	async_expect(s.p.dev->ctx, IBV_EVENT_SQ_DRAINED, s.p.b.qp);
	arrived(&s);
	rule(&s.p, "tx qpn=%a once event=qp_fatal");
	send_one(&s, 2);
	async_expect(s.p.dev->ctx, IBV_EVENT_QP_FATAL, s.p.a.qp);
	CHECK_EQ(get_state(s.p.a.qp), IBV_QPS_ERR);
	poll_expect(s.p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
}

/* Makes a pair whose receive CQ has an event channel. */
static struct pair pair_with_channel(struct ibv_comp_channel **ch)
{
	struct dev *d = faults_open();
	struct qp_opts o = QP_OPTS;
	struct pair p;

	*ch = ibv_create_comp_channel(d->ctx);
	REQUIRE(*ch);
	o.recv_cq = cq_new(d, 16, *ch);
	p = pair_new(d, &o, &CONN);
	REQUIRE_OK(ibv_req_notify_cq(o.recv_cq, 0));
	REQUIRE_OK(post_recv(&p.b, 100, NULL, 0));
	return p;
}

TEST(lost_event, "a lost completion event")
{
	struct ibv_comp_channel *ch;
	struct pair p = pair_with_channel(&ch);
	struct ibv_cq *cq;

	rule(&p, "event type=comp once drop");
	send_id(&p.a, 1);
	CHECK(!cq_event_wait(ch, &cq, 500));
	poll_ok(p.b.recv_cq, 100);	/* polling finds the completion */
	REQUIRE_OK(ibv_req_notify_cq(p.b.recv_cq, 0));
	REQUIRE_OK(post_recv(&p.b, 101, NULL, 0));
	send_id(&p.a, 2);
	CHECK(cq_event_wait(ch, &cq, WAIT_MS));
}

TEST(lost_irq, "a lost interrupt: the driver finds the event a little later")
{
	struct ibv_comp_channel *ch;
	struct pair p = pair_with_channel(&ch);
	int64_t start = time_ms();
	struct ibv_cq *cq;

	rule(&p, "irq vector=1-63 once drop");
	send_id(&p.a, 1);
	CHECK(cq_event_wait(ch, &cq, WAIT_MS));
	CHECK(time_ms() - start > 500);
}

/* ---- commands ---- */

TEST(cmd_fails, "a command that is refused")
{
	struct dev *d = faults_open();
	struct ibv_pd *pd;

	rule(NULL, "cmd opcode=alloc_pd once fail=no_resource");
	pd = ibv_alloc_pd(d->ctx);
	CHECK(!pd);
	CHECK_EQ(errno, ENOMEM);
	pd = ibv_alloc_pd(d->ctx);
	REQUIRE(pd);
	REQUIRE_OK(ibv_dealloc_pd(pd));
}

TEST(cmd_stalls, "a command that takes long")
{
	struct dev *d = faults_open();
	int64_t start;

	rule(NULL, "cmd opcode=alloc_pd once stall=700ms");
	start = time_ms();
	REQUIRE(ibv_alloc_pd(d->ctx));
	CHECK(time_ms() - start >= 650);
}

#define GID_STALL	5000	/* ms */

/*
 * When a netdev, also of a VLAN, gets a new MAC address, the driver sets all GIDs again. This waits
 * for the device. Destroying a QP, perhaps to free memory, waits for its events. (A new MAC address
 * of the port itself would move GIDs in use to another index.)
 */
#define ADD	"ip link add link $QHCA_IF name " VLAN " type vlan id 77 && " \
		"ip link set dev " VLAN " addr 52:54:00:77:00:01"

TEST(gids_stall, "H-022 J-014 an event of a QP does not wait for GIDs to be set")
{
	struct dev *d = faults_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	int64_t start;

	if (!getenv("QHCA_IF"))
		test_skip("QHCA_IF does not name the interface");
	REQUIRE_OK(post_recv(&p.b, 100, NULL, 0));
	rule(&p, "cmd opcode=set_gid once stall=5s; tx qpn=%a once event=sq_drained");
	start = time_ms();
	REQUIRE(!system(ADD));
	send_id(&p.a, 1);
	async_expect(d->ctx, IBV_EVENT_SQ_DRAINED, p.a.qp);
	CHECK(time_ms() - start < GID_STALL);
	/* This is also a command: if it is not before the one for the GID, the stall has ended. */
	while (!faults_hits() && time_ms() - start < GID_STALL)
		sleep_ms(10);
	CHECK_EQ(faults_hits(), 1);
	CHECK(time_ms() - start >= GID_STALL);
}

/* ---- the device as a whole ---- */

TEST(link_flap, "the connection survives when the link goes down and up")
{
	struct dev *d = faults_open();
	struct ibv_async_event ev;
	struct conn c = CONN;
	struct pair p;

	c.retry_cnt = 7;
	c.timeout = 18;		/* 1 s */
	p = pair_new(d, &QP_OPTS, &c);
	rule(NULL, "timer link-down=500ms");
	REQUIRE(async_wait(d->ctx, &ev, WAIT_MS));
	CHECK_EQ(ev.event_type, IBV_EVENT_PORT_ERR);
	REQUIRE_OK(post_recv(&p.b, 100, NULL, 0));
	send_id(&p.a, 1);
	poll_none(p.a.send_cq);
	poll_ok(p.b.recv_cq, 100);
	poll_ok(p.a.send_cq, 1);
	do
		REQUIRE(async_wait(d->ctx, &ev, WAIT_MS));
	while (ev.event_type != IBV_EVENT_PORT_ACTIVE);
}

/* ---- the file ---- */

TEST(wrong, "a wrong rule is refused, and the file says where")
{
	faults_open();
	rule(NULL, "tx qpn=1 drop");
	CHECK_EQ(faults_set("tx qpn=1 lose"), EINVAL);
	CHECK(!strcmp(faults_text(), "# tx qpn=1 lose\n#          ^ no such word: lose\n"
				     "seed=1\ntx qpn=1 drop  # hits 0\n"));
	CHECK_EQ(faults_set("timer remove"), EINVAL);
	CHECK(strstr(faults_text(), "remove is not for the guest"));
	rule(NULL, "\n");
	CHECK(!strcmp(faults_text(), ""));
}
