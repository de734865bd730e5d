// SPDX-License-Identifier: GPL-2.0
/*
 * A program that survives faults: it sends numbered messages over a reliable connection and
 * continues after any failure of it. The example of Documentation/faults.rst, run with each of its
 * faults.
 *
 * A completion with an error, or an event of the QP, ends a connection. The sender cannot know
 * which of the messages in flight have arrived: it sends them again over the next connection, and
 * the receiver knows by their numbers which of them it has.
 */
#include "lib/faults.h"

#define MESSAGES	500
#define WINDOW		16	/* messages in flight, and receives posted */

/* ---- the example ---- */

struct link {
	struct pair p;
	struct conn c;
	struct ibv_cq *cq[2];		/* CQs for sends and for receives */
	struct buf out, in;		/* room for WINDOW numbers each */
	uint64_t acked, sent;		/* number of sends completed, and posted */
	uint64_t received;		/* number of the next message expected */
	unsigned int recoveries;
};

static void post_place(struct link *l, uint64_t place)
{
	struct ibv_sge sge = buf_sge(&l->in, place * 8, 8);

	post_recv(&l->p.b, place, &sge, 1);
}

static void post_number(struct link *l)
{
	uint64_t place = l->sent % WINDOW;
	struct ibv_sge sge = buf_sge(&l->out, place * 8, 8);
	struct ibv_send_wr wr = wr_send(l->sent, &sge, 1);

	memcpy(l->out.addr + place * 8, &l->sent, 8);
	/* A QP in ERR accepts the request as well, and flushes it. */
	post_send(&l->p.a, &wr);
	l->sent++;
}

/* Polls all completions. Returns false if the connection has failed. */
static bool progress(struct link *l)
{
	struct ibv_wc wc;
	uint64_t number;
	bool good = true;

	while (ibv_poll_cq(l->cq[0], 1, &wc) > 0) {
		if (wc.status == IBV_WC_SUCCESS)
			l->acked = wc.wr_id + 1;
		else
			good = false;
	}
	while (ibv_poll_cq(l->cq[1], 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS) {
			good = false;
			continue;
		}
		memcpy(&number, l->in.addr + wc.wr_id * 8, 8);
		CHECK(number <= l->received);	/* no message is missing */
		if (number == l->received)
			l->received++;
		post_place(l, wc.wr_id);
	}
	return good;
}

/* Whether a QP or a CQ has raised a fatal event, after which it cannot be used. */
static bool has_event(struct link *l)
{
	struct ibv_async_event ev;

	while (async_wait(l->p.dev->ctx, &ev, 0))
		if (ev.event_type < IBV_EVENT_COMM_EST || ev.event_type == IBV_EVENT_QP_FATAL)
			return true;
	return false;
}

/*
 * In ERR no message arrives any more. A message that has arrived may have been acknowledged, so it
 * counts: poll the CQs before RESET removes the completions of the QPs. CQEs that are left after
 * RESET belong to the old connection.
 */
static void connect_again(struct link *l)
{
	struct ibv_wc wc;
	int i;

	l->recoveries++;
	REQUIRE_OK(set_state(l->p.a.qp, IBV_QPS_ERR));
	REQUIRE_OK(set_state(l->p.b.qp, IBV_QPS_ERR));
	progress(l);
	REQUIRE_OK(set_state(l->p.a.qp, IBV_QPS_RESET));
	REQUIRE_OK(set_state(l->p.b.qp, IBV_QPS_RESET));
	for (i = 0; i < 2; i++)
		while (ibv_poll_cq(l->cq[i], 1, &wc) > 0)
			;
	pair_connect(&l->p, &l->c);
	for (i = 0; i < WINDOW; i++)
		post_place(l, i);
	l->sent = l->acked;
}

static void send_all(struct link *l)
{
	int64_t end = time_ms() + 60000;

	while (l->acked < MESSAGES && time_ms() < end) {
		while (l->sent < MESSAGES && l->sent - l->acked < WINDOW)
			post_number(l);
		if (!progress(l) || has_event(l))
			connect_again(l);
	}
	CHECK_EQ(l->acked, MESSAGES);
	CHECK_EQ(l->received, MESSAGES);
}

/* ---- the faults ---- */

__attribute__((destructor)) static void clear(void)
{
	faults_clear();
}

static const struct {
	const char *name;
	const char *text;
	bool ends;		/* ends connections */
} foes[] = {
	{ "a bad network", "tx prob=2% drop; rx prob=2% duplicate; rx prob=2% reorder;"
			   "tx prob=1% corrupt=icrc", false },
	{ "receiver not ready", "rx opcode=rc.send_only nth=50 nak=rnr", false },
	{ "link flaps", "rx opcode=rc.send_only nth=200 link-down=20ms", false },
	/* Four times a window: all that is sent before a connection ends. */
	{ "peer does not answer", "rx opcode=rc.acknowledge after=100 times=64 drop;"
				  "tx after=200 times=64 drop", true },
	{ "remote errors", "rx opcode=rc.send_only nth=70 nak=rem_op_err", true },
	{ "invalid requests", "rx opcode=rc.send_only nth=90 nak=inv_req", true },
	{ "sends fail", "cqe opcode=send nth=60 fail=general_err", true },
	{ "receives fail", "cqe opcode=recv nth=80 fail=loc_prot_err", true },
	{ "QPs fail", "rx opcode=rc.send_only nth=100 event=qp_fatal", true },
};

TEST_ROWS(survive, "a program survives", foes)
{
	struct dev *d = faults_open();
	struct qp_opts o = QP_OPTS;
	struct link l = { .c = CONN };
	int i;

	test_timeout(90);
	l.c.timeout = 12;	/* 17 ms */
	l.c.retry_cnt = 3;
	o.send_wr = WINDOW;
	o.recv_wr = WINDOW;
	l.p = pair_new(d, &o, &l.c);
	l.cq[0] = l.p.a.send_cq;
	l.cq[1] = l.p.b.recv_cq;
	l.out = buf_new(d->pd, WINDOW * 8, LOCAL);
	l.in = buf_new(d->pd, WINDOW * 8, LOCAL);
	for (i = 0; i < WINDOW; i++)
		post_place(&l, i);
	REQUIRE_OK(faults_set(row->text));
	send_all(&l);
	REQUIRE_OK(faults_set("\n"));
	test_note("%u recoveries", l.recoveries);
	CHECK_EQ(l.recoveries > 0, row->ends);
}
