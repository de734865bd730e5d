// SPDX-License-Identifier: GPL-2.0
/*
 * How often a vCPU leaves the guest for the device, and how often the device interrupts it: for
 * each message, command and second. Prints lines "# exits NAME EXITS INTERRUPTS".
 *
 * KVM counts exits, which qhca-host asks for, and the guest's kernel counts interrupts. Both do
 * not depend on how fast the host is. What asking costs, and setting up, is in a short run as well
 * as in a long one, whose difference is printed. The title of a test begins with the name by which
 * -t selects it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rdma.h"

#define DEPTH	32	/* messages in flight */
#define LIST	16	/* WRs posted by one call */
#define KIB64	65536

/* struct rig - what the rows use */
struct rig {
	struct pair p;
	struct buf src, dst;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
};

/* struct row - something that is done @n times */
struct row {
	const char *name;
	void (*run)(struct rig *r, const struct row *row, int n);
	enum ibv_wr_opcode opcode;
	uint32_t len;
	int list;		/* WRs of one call */
	int window;		/* messages in flight */
	int few, many;
};

struct counts {
	uint64_t exits, irqs;
};

/* Returns the number behind @name in @json. */
static uint64_t number(const char *json, const char *name)
{
	const char *at = strstr(json, name);

	REQUIRE(at);
	return strtoull(at + strlen(name) + strlen("\": "), NULL, 10);
}

/* Exits to QEMU, of all vCPUs. */
static uint64_t vcpu_exits(void)
{
	FILE *host = popen("qhca-host exits", "r");
	char reply[512] = "";

	REQUIRE(host);
	REQUIRE(fgets(reply, sizeof(reply), host));
	if (pclose(host))
		test_note("%s", reply);
	return number(reply, "\"mmio_exits") + number(reply, "\"io_exits");
}

/* Interrupts of the device, at all CPUs. */
static uint64_t irqs(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[1024], *at, *end;
	uint64_t sum = 0, n;

	REQUIRE(file);
	while (fgets(line, sizeof(line), file)) {
		at = strchr(line, ':');
		if (!at || !strstr(at, "qhca"))
			continue;
		for (at++; n = strtoull(at, &end, 10), end != at; at = end)
			sum += n;
	}
	fclose(file);
	return sum;
}

static struct counts counts(void)
{
	return (struct counts){ vcpu_exits(), irqs() };
}

/* ---- messages ---- */

/* Posts up to @n WRs by one call, and a receive for each that wants one. */
static int post(struct rig *r, const struct row *row, int n)
{
	struct ibv_sge sge = buf_sge(&r->src, 0, row->len);
	struct ibv_send_wr wr[LIST];
	int i;

	for (i = 0; i < n && i < row->list; i++) {
		wr[i] = row->opcode == IBV_WR_SEND ? wr_send(1, &sge, 1) :
			wr_rdma(1, row->opcode, &sge, 1, (uintptr_t)r->dst.addr, r->dst.mr->rkey);
		wr[i].next = NULL;
		if (i)
			wr[i - 1].next = &wr[i];
		if (row->opcode == IBV_WR_SEND) {
			struct ibv_sge room = buf_sge(&r->dst, 0, row->len);

			REQUIRE_OK(post_recv(&r->p.b, 2, &room, 1));
		}
	}
	REQUIRE_OK(post_send(&r->p.a, wr));
	return i;
}

static void stream(struct rig *r, const struct row *row, int n)
{
	bool both = row->opcode == IBV_WR_SEND;
	int posted = 0, sent = 0, received = 0;

	while (sent < n || (both && received < n)) {
		struct ibv_wc wc;

		if (posted < n && posted - sent <= row->window - row->list &&
		    (!both || posted - received <= row->window - row->list))
			posted += post(r, row, n - posted);
		while (ibv_poll_cq(r->p.a.send_cq, 1, &wc) > 0) {
			REQUIRE(wc.status == IBV_WC_SUCCESS);
			sent++;
		}
		while (both && ibv_poll_cq(r->p.b.recv_cq, 1, &wc) > 0) {
			REQUIRE(wc.status == IBV_WC_SUCCESS);
			received++;
		}
	}
}

/* The receiver sleeps until there is a message. */
static void events(struct rig *r, const struct row *row, int n)
{
	struct ibv_cq *cq;

	while (n--) {
		REQUIRE_OK(ibv_req_notify_cq(r->cq, 0));
		post(r, row, 1);
		REQUIRE(cq_event_wait(r->ch, &cq, WAIT_MS));
		poll_ok(r->cq, 2);
		poll_ok(r->p.a.send_cq, 1);
	}
}

static void poll_nothing(struct rig *r, const struct row *row, int n)
{
	struct ibv_wc wc;

	while (n--)
		REQUIRE(!ibv_poll_cq(r->cq, 1, &wc));
}

static void arm(struct rig *r, const struct row *row, int n)
{
	while (n--)
		REQUIRE_OK(ibv_req_notify_cq(r->cq, 0));
}

/* ---- objects ---- */

static void reg_mr(struct rig *r, const struct row *row, int n)
{
	struct ibv_mr *mr;

	while (n--) {
		mr = ibv_reg_mr(r->p.dev->pd, r->src.addr, row->len, REMOTE);
		REQUIRE(mr);
		REQUIRE_OK(ibv_dereg_mr(mr));
	}
}

static void cq(struct rig *r, const struct row *row, int n)
{
	while (n--)
		REQUIRE_OK(ibv_destroy_cq(cq_new(r->p.dev, 64, NULL)));
}

static void qp(struct rig *r, const struct row *row, int n)
{
	struct qp_opts o = QP_OPTS;

	o.send_cq = r->p.a.send_cq;
	o.recv_cq = r->cq;
	while (n--)
		REQUIRE_OK(ibv_destroy_qp(end_in(r->p.dev, &o, IBV_QPS_RTS).qp));
}

static void ah(struct rig *r, const struct row *row, int n)
{
	while (n--)
		REQUIRE_OK(ibv_destroy_ah(own_ah(r->p.dev, r->p.dev->pd)));
}

static void idle(struct rig *r, const struct row *row, int n)
{
	sleep_ms(1000 * n);
}

#define MESSAGE(name, opcode, len, list, window) \
	{ name, stream, IBV_WR_ ## opcode, len, list, window, 200, 1200 }

static const struct row rows[] = {
	MESSAGE("write-8", RDMA_WRITE, 8, 1, DEPTH),
	MESSAGE("write-8-list", RDMA_WRITE, 8, LIST, DEPTH),
	MESSAGE("write-8-alone", RDMA_WRITE, 8, 1, 1),
	MESSAGE("write-64k", RDMA_WRITE, KIB64, 1, DEPTH),
	MESSAGE("read-8", RDMA_READ, 8, 1, DEPTH),
	MESSAGE("read-64k", RDMA_READ, KIB64, 1, DEPTH),
	MESSAGE("send-8", SEND, 8, 1, DEPTH),
	MESSAGE("send-64k", SEND, KIB64, 1, DEPTH),
	{ "send-8-event", events, IBV_WR_SEND, 8, 1, 1, 50, 250 },
	{ "poll-none", poll_nothing, .few = 200, .many = 1200 },
	{ "arm", arm, .few = 200, .many = 1200 },
	{ "reg-mr-4k", reg_mr, .len = 4096, .few = 50, .many = 150 },
	{ "reg-mr-1m", reg_mr, .len = 1 << 20, .few = 50, .many = 150 },
	{ "cq", cq, .few = 20, .many = 120 },
	{ "qp", qp, .few = 20, .many = 70 },
	{ "ah", ah, .few = 20, .many = 120 },
	{ "idle-second", idle, .few = 1, .many = 11 },
};

/* Counts before, between and behind the short run and the long one. */
static double per_one(const struct row *row, int64_t before, int64_t between, int64_t behind)
{
	return (double)((behind - between) - (between - before)) / (row->many - row->few);
}

TEST_ROWS(cost, "exits", rows)
{
	struct qp_opts o = QP_OPTS;
	struct counts at[3];
	struct rig r = { 0 };
	struct dev *d = dev_open_qhca();

	test_timeout(300);
	r.ch = ibv_create_comp_channel(d->ctx);
	REQUIRE(r.ch);
	r.cq = cq_new(d, 2 * DEPTH, r.ch);
	o.send_wr = DEPTH;
	o.recv_wr = DEPTH;
	o.recv_cq = r.cq;
	r.p = pair_new(d, &o, &CONN);
	r.src = buf_new(d->pd, 1 << 20, REMOTE);
	r.dst = buf_new(d->pd, KIB64, REMOTE);

	at[0] = counts();
	row->run(&r, row, row->few);
	at[1] = counts();
	row->run(&r, row, row->many);
	at[2] = counts();
	test_note("exits %s %.2f %.2f", row->name,
		  per_one(row, at[0].exits, at[1].exits, at[2].exits),
		  per_one(row, at[0].irqs, at[1].irqs, at[2].irqs));
}
