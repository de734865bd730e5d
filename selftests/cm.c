// SPDX-License-Identifier: GPL-2.0
/*
 * The connection manager over this device: what it makes of a QP, and what it
 * carries. Both ends are in one process; their events come one after the other.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

#define REQ_DATA	56
#define REP_DATA	196
#define REJ_DATA	148

/* struct side - one end: an event channel, and the ids on it */
struct side {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rdma_cm_event *event;
};

static struct dev *d;
static struct sockaddr_in addr;
static struct side passive, active;
static struct rdma_cm_id *listener;

/* The next event of that channel, which must be @type; it stays unacknowledged. */
static void expect(struct side *s, enum rdma_cm_event_type type)
{
	struct pollfd pfd = { .fd = s->ch->fd, .events = POLLIN };

	if (s->event)
		rdma_ack_cm_event(s->event);
	s->event = NULL;
	REQUIRE(poll(&pfd, 1, WAIT_MS) == 1);
	REQUIRE(!rdma_get_cm_event(s->ch, &s->event));
	if (s->event->event != type)
		FAIL("%s, status %d, not %s", rdma_event_str(s->event->event),
		     s->event->status, rdma_event_str(type));
	REQUIRE(s->event->event == type);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	init.send_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	REQUIRE(init.send_cq);
	init.recv_cq = init.send_cq;
	REQUIRE(!rdma_create_qp(id, NULL, &init));
}

/* A listener, and an active side with a QP and a route to it. */
static void start(void)
{
	d = dev_open_qhca();
	addr.sin_family = AF_INET;
	addr.sin_port = htons(20000 + getpid() % 20000);
	memcpy(&addr.sin_addr, d->gid.raw + 12, 4);

	passive.ch = rdma_create_event_channel();
	active.ch = rdma_create_event_channel();
	REQUIRE(passive.ch && active.ch);
	REQUIRE(!rdma_create_id(passive.ch, &listener, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(listener, (struct sockaddr *)&addr));
	REQUIRE(!rdma_listen(listener, 4));

	REQUIRE(!rdma_create_id(active.ch, &active.id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(active.id, NULL, (struct sockaddr *)&addr, 5000));
	expect(&active, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(active.id, 5000));
	expect(&active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(active.id);
}

static void request(const struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;

	REQUIRE(!rdma_connect(active.id, &p));
	expect(&passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive.id = passive.event->id;
}

static void accept_it(const struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;

	make_qp(passive.id);
	REQUIRE(!rdma_accept(passive.id, &p));
	expect(&active, RDMA_CM_EVENT_ESTABLISHED);
	expect(&passive, RDMA_CM_EVENT_ESTABLISHED);
}

static struct ibv_qp_attr query(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT |
		   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
		   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PATH_MTU |
		   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
		   IBV_QP_DEST_QPN;

	REQUIRE_OK(ibv_query_qp(id->qp, &attr, mask, &init));
	return attr;
}

TEST(attributes, "K-005 K-006 K-007 what the CM sets in both QPs")
{
	const struct rdma_conn_param param = {
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
	};
	struct ibv_qp_attr a, p;

	start();
	request(&param);
	CHECK_EQ(passive.event->param.conn.initiator_depth, 3);
	CHECK_EQ(passive.event->param.conn.responder_resources, 2);
	accept_it(&(struct rdma_conn_param){
		.responder_resources = 2, .initiator_depth = 3,
		.rnr_retry_count = 4,
	});
	a = query(active.id);
	p = query(passive.id);
	CHECK_EQ(a.qp_state, IBV_QPS_RTS);
	CHECK_EQ(p.qp_state, IBV_QPS_RTS);
	CHECK_EQ(a.dest_qp_num, passive.id->qp->qp_num);
	CHECK_EQ(p.dest_qp_num, active.id->qp->qp_num);
	CHECK_EQ(a.sq_psn, p.rq_psn);
	CHECK_EQ(p.sq_psn, a.rq_psn);
	CHECK_EQ(a.path_mtu, p.path_mtu);
	CHECK_EQ(a.path_mtu, d->port.active_mtu);
	CHECK_EQ(a.max_dest_rd_atomic, 3);
	CHECK_EQ(a.max_rd_atomic, 2);
	CHECK_EQ(p.max_dest_rd_atomic, 2);
	CHECK_EQ(p.max_rd_atomic, 3);
	CHECK_EQ(a.min_rnr_timer, 0);
	CHECK_EQ(p.min_rnr_timer, 0);
	CHECK(a.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	CHECK(a.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	CHECK_EQ(a.retry_cnt, 5);
	CHECK_EQ(p.retry_cnt, 5);
	CHECK_EQ(p.rnr_retry, 6);	/* of the request */
	CHECK_EQ(a.rnr_retry, 4);	/* of the reply */
	/* Twice the time that the device says an answer takes, at least. */
	CHECK(a.timeout > d->attr.local_ca_ack_delay);
	CHECK(!rdma_disconnect(active.id));
	expect(&passive, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!rdma_disconnect(passive.id));	/* the answer */
	expect(&active, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_EQ(query(active.id).qp_state, IBV_QPS_ERR);	/* K-012 */
}

static uint8_t data[256];

static struct rdma_conn_param with_data(size_t len)
{
	fill(data, sizeof(data), 5);
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = len,
		.retry_count = 7,
	};
}

static void check_data(const struct side *s, size_t len)
{
	CHECK(s->event->param.conn.private_data_len >= len);
	check_fill(s->event->param.conn.private_data, len, 5, "private data");
}

TEST(private_data, "K-009 private data of a request and its reply")
{
	struct rdma_conn_param req = with_data(REQ_DATA);
	struct rdma_conn_param rep = with_data(REP_DATA);

	start();
	request(&req);
	check_data(&passive, REQ_DATA);
	make_qp(passive.id);
	REQUIRE(!rdma_accept(passive.id, &rep));
	expect(&active, RDMA_CM_EVENT_ESTABLISHED);
	check_data(&active, REP_DATA);
}

TEST(too_much, "K-009 more private data than fits is refused")
{
	struct rdma_conn_param req = with_data(REQ_DATA + 1);

	start();
	CHECK(rdma_connect(active.id, &req));
	CHECK_EQ(errno, EINVAL);
}

TEST(reject, "K-009 K-010 private data of a refusal")
{
	struct rdma_conn_param req = with_data(0);

	start();
	request(&req);
	REQUIRE(!rdma_reject(passive.id, data, REJ_DATA));
	expect(&active, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(active.event->status, 28);	/* consumer defined */
	check_data(&active, REJ_DATA);
}

TEST(nobody, "K-010 nobody listens")
{
	struct rdma_conn_param req = with_data(0);

	start();
	REQUIRE(!rdma_destroy_id(listener));
	REQUIRE(!rdma_connect(active.id, &req));
	expect(&active, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(active.event->status, 8);	/* invalid service id */
}
