// SPDX-License-Identifier: GPL-2.0
/* Work requests, completions and events. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include "rdma.h"

struct ibv_send_wr wr_send(uint64_t id, struct ibv_sge *sge, int num_sge)
{
	return (struct ibv_send_wr){
		.wr_id = id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

struct ibv_send_wr wr_rdma(uint64_t id, enum ibv_wr_opcode opcode,
			   struct ibv_sge *sge, int num_sge, uint64_t raddr,
			   uint32_t rkey)
{
	struct ibv_send_wr wr = wr_send(id, sge, num_sge);

	wr.opcode = opcode;
	if (is_atomic(opcode)) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

int post_send(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

int post_recv(struct end *e, uint64_t id, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr wr = {
		.wr_id = id, .sg_list = sge, .num_sge = num_sge
	}, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

void send_id(struct end *e, uint64_t id)
{
	struct ibv_send_wr wr = wr_send(id, NULL, 0);

	REQUIRE_OK(post_send(e, &wr));
}

bool poll_wait(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	int64_t end = time_ms() + ms;
	unsigned int spins = 0;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		REQUIRE(n >= 0);
		if (n)
			return true;
		if (time_ms() >= end)
			return false;
		if (++spins > 1000)
			sleep_ms(1);
		else
			sched_yield();
	}
}

struct ibv_wc poll_get(struct ibv_cq *cq)
{
	struct ibv_wc wc = { 0 };

	if (!poll_wait(cq, &wc, WAIT_MS)) {
		FAIL("no completion within %d ms", WAIT_MS);
		test_die();
	}
	return wc;
}

struct ibv_wc poll_expect_at(struct ibv_cq *cq, uint64_t id,
			     enum ibv_wc_status status, const char *file,
			     int line)
{
	struct ibv_wc wc = { 0 };

	if (!poll_wait(cq, &wc, WAIT_MS)) {
		test_fail(file, line, "no completion of %llu within %d ms",
			  (unsigned long long)id, WAIT_MS);
		test_die();
	}
	if (wc.wr_id != id || wc.status != status)
		test_fail(file, line,
			  "completion of %llu: %s (vendor_err %#x), not of %llu: %s",
			  (unsigned long long)wc.wr_id,
			  ibv_wc_status_str(wc.status), wc.vendor_err,
			  (unsigned long long)id, ibv_wc_status_str(status));
	return wc;
}

void poll_none_at(struct ibv_cq *cq, int ms, const char *file, int line)
{
	struct ibv_wc wc;

	if (poll_wait(cq, &wc, ms))
		test_fail(file, line, "completion of %llu (%s), expected none",
			  (unsigned long long)wc.wr_id,
			  ibv_wc_status_str(wc.status));
}

void ping(struct end *from, struct end *to)
{
	struct buf src = buf_new(from->dev->pd, 64, LOCAL);
	struct buf dst = buf_new(to->dev->pd, 64, LOCAL);
	struct ibv_sge out = buf_sge(&src, 0, 64), in = buf_sge(&dst, 0, 64);
	struct ibv_send_wr wr = wr_send(0x51, &out, 1);
	struct ibv_wc wc;

	fill(src.addr, 64, 7);
	REQUIRE_OK(post_recv(to, 0x52, &in, 1));
	REQUIRE_OK(post_send(from, &wr));
	wc = poll_ok(to->recv_cq, 0x52);
	CHECK_EQ(wc.byte_len, 64);
	poll_ok(from->send_cq, 0x51);
	check_fill(dst.addr, 64, 7, "message");
	buf_free(&src);
	buf_free(&dst);
}

void ping_pong(struct pair *p)
{
	ping(&p->a, &p->b);
	ping(&p->b, &p->a);
}

void send_empty(struct pair *p)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	REQUIRE_OK(post_recv(&p->b, 2, NULL, 0));
	REQUIRE_OK(post_send(&p->a, &wr));
	poll_ok(p->a.send_cq, 1);
}

static bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

bool cq_event_wait(struct ibv_comp_channel *ch, struct ibv_cq **cq, int ms)
{
	void *context;

	if (!readable(ch->fd, ms))
		return false;
	REQUIRE_OK(ibv_get_cq_event(ch, cq, &context));
	ibv_ack_cq_events(*cq, 1);
	return true;
}

bool async_wait(struct ibv_context *ctx, struct ibv_async_event *ev, int ms)
{
	if (!readable(ctx->async_fd, ms))
		return false;
	REQUIRE_OK(ibv_get_async_event(ctx, ev));
	ibv_ack_async_event(ev);
	return true;
}

/* Port events can come at any time, because the machine changes its addresses and link. */
static bool of_port(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

void async_expect(struct ibv_context *ctx, enum ibv_event_type type,
		  void *element)
{
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_async_event ev;

	while (async_wait(ctx, &ev, end > time_ms() ? end - time_ms() : 0)) {
		if (ev.event_type == type) {
			if (element && ev.element.qp != element)
				FAIL("%s for another object", ibv_event_type_str(type));
			return;
		}
		if (!of_port(ev.event_type))
			FAIL("%s, not %s", ibv_event_type_str(ev.event_type),
			     ibv_event_type_str(type));
	}
	FAIL("no event: %s", ibv_event_type_str(type));
}

void async_none(struct ibv_context *ctx)
{
	struct ibv_async_event ev;

	while (async_wait(ctx, &ev, QUIET_MS))
		if (!of_port(ev.event_type))
			FAIL("unexpected event: %s", ibv_event_type_str(ev.event_type));
}
