// SPDX-License-Identifier: GPL-2.0
/*
 * The connection manager on this device: how it sets up QPs, and private data.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/cmpair.h"

#define REQ_DATA	56
#define REP_DATA	196
#define REJ_DATA	148
#define ATOMIC		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC)

static struct dev *d;

static void start(void)
{
	d = dev_open_qhca();
	start_in(d, RDMA_PS_TCP);
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

TEST(attributes, "K-005 K-006 K-007 attributes that the CM sets in both QPs")
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
	CHECK_EQ(p.rnr_retry, 6);	/* from the request */
	CHECK_EQ(a.rnr_retry, 4);	/* from the reply */
}

/*
 * The exponent of 4.096 us that the CM makes of how long a packet lives and how long the peer
 * takes: the larger one counts, and one more if both are about the same.
 */
static int ack_timeout(void)
{
	int both_ways = active.id->route.path_rec->packet_life_time + 1;
	int delay = d->attr.local_ca_ack_delay;

	return (both_ways > delay ? both_ways : delay) + (abs(both_ways - delay) <= 1);
}

TEST(timeout, "K-007 J-006 how long both sides wait for an answer")
{
	const struct rdma_conn_param param = { .retry_count = 7 };

	start();
	request(&param);
	accept_it(&param);
	CHECK_EQ(query(active.id).timeout, ack_timeout());
	CHECK_EQ(query(passive.id).timeout, ack_timeout());
}

TEST(timeout_asked, "K-007 how long a side waits that asks for a time of its own")
{
	const struct rdma_conn_param param = { .retry_count = 7 };
	uint8_t asked = 12;

	start();
	REQUIRE(!rdma_set_option(active.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &asked,
				 sizeof(asked)));
	request(&param);
	accept_it(&param);
	CHECK_EQ(query(active.id).timeout, asked);
	CHECK_EQ(query(passive.id).timeout, ack_timeout());
}

TEST(options, "A-075 the CM exchanges the options of both ends")
{
	struct ibv_ece offered, a, p;

	start();
	REQUIRE_OK(ibv_query_ece(active.id->qp, &offered));
	request(&(struct rdma_conn_param){ .retry_count = 7 });
	accept_it(&(struct rdma_conn_param){ .rnr_retry_count = 7 });
	/* Without an answer to its options the active side would have none. */
	REQUIRE_OK(ibv_query_ece(active.id->qp, &a));
	REQUIRE_OK(ibv_query_ece(passive.id->qp, &p));
	CHECK_EQ(a.options, offered.options);
	CHECK_EQ(p.options, offered.options);
}

/* Moves the QP @e to @state with the attributes that the CM provides. */
static void step(struct rdma_cm_id *id, struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	REQUIRE(!rdma_init_qp_attr(id, &attr, &mask));
	REQUIRE_OK(ibv_modify_qp(e->qp, &attr, mask));
}

/*
 * The application manages the QPs. The active side gets the reply instead of ESTABLISHED and sends
 * data, but no RTU; the passive QP is only in RTR.
 */
TEST(before_rtu, "K-008 A-082 H-005 data before the RTU: COMM_EST, then rdma_notify()")
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct pollfd pfd;
	struct pair p;

	start();
	rdma_destroy_qp(active.id);
	p = (struct pair){ .dev = d, .a = end_new(d, &QP_OPTS), .b = end_new(d, &QP_OPTS) };
	param.qp_num = p.a.qp->qp_num;
	request(&param);
	step(passive.id, &p.b, IBV_QPS_INIT);
	step(passive.id, &p.b, IBV_QPS_RTR);
	param.qp_num = p.b.qp->qp_num;
	REQUIRE(!rdma_accept(passive.id, &param));
	expect(&active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	step(active.id, &p.a, IBV_QPS_INIT);
	step(active.id, &p.a, IBV_QPS_RTR);
	step(active.id, &p.a, IBV_QPS_RTS);

	ping(&p.a, &p.b);
	async_expect(d->ctx, IBV_EVENT_COMM_EST, p.b.qp);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTR);
	pfd = (struct pollfd){ .fd = passive.ch->fd, .events = POLLIN };
	CHECK_EQ(poll(&pfd, 1, QUIET_MS), 0);
	REQUIRE(!rdma_notify(passive.id, IBV_EVENT_COMM_EST));
	expect(&passive, RDMA_CM_EVENT_ESTABLISHED);
	step(passive.id, &p.b, IBV_QPS_RTS);
	ping_pong(&p);
	/* The RTU arrives late and changes nothing. */
	REQUIRE(!rdma_establish(active.id));
	CHECK_EQ(poll(&pfd, 1, QUIET_MS), 0);
	ping_pong(&p);
	async_none(d->ctx);
}

/* Returns one end in the form that tests without the CM use. */
static struct end end_of(struct rdma_cm_id *id)
{
	struct dev *dev = calloc(1, sizeof(*dev));

	REQUIRE(dev);
	dev->pd = id->pd;
	return (struct end){
		.dev = dev, .qp = id->qp, .send_cq = id->qp->send_cq,
		.recv_cq = id->qp->recv_cq,
	};
}

TEST(hundred, "K-016 100 messages each way, each checked and answered")
{
	const struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct pair p;
	int i;

	start();
	request(&param);
	accept_it(&param);
	p = (struct pair){ .dev = d, .a = end_of(active.id), .b = end_of(passive.id) };
	for (i = 0; i < 100; i++)
		ping_pong(&p);
	poll_none(active.id->qp->send_cq);
	poll_empty(passive.id->qp->send_cq);
}

TEST(no_resources, "K-006 a peer that may neither read nor use atomics")
{
	const struct rdma_conn_param param = { .retry_count = 7 };

	start();
	request(&param);
	accept_it(&param);
	CHECK_EQ(query(active.id).qp_access_flags & ATOMIC, IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(query(passive.id).qp_access_flags & ATOMIC, IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(query(active.id).max_dest_rd_atomic, 0);
}

TEST(disconnect, "K-012 disconnect: DISCONNECTED, flush and TIMEWAIT_EXIT at both ends")
{
	const struct rdma_conn_param param = { .retry_count = 7 };
	struct side *s[] = { &active, &passive };
	struct ibv_recv_wr wr = { .wr_id = 5 }, *bad;
	size_t i;

	test_timeout(60);
	start();
	request(&param);
	accept_it(&param);
	for (i = 0; i < ARRAY_SIZE(s); i++)
		REQUIRE_OK(ibv_post_recv(s[i]->id->qp, &wr, &bad));
	CHECK(!rdma_disconnect(active.id));
	expect(&passive, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!rdma_disconnect(passive.id));	/* answers the disconnect */
	expect(&active, RDMA_CM_EVENT_DISCONNECTED);
	for (i = 0; i < ARRAY_SIZE(s); i++) {
		CHECK_EQ(query(s[i]->id).qp_state, IBV_QPS_ERR);
		poll_expect(s[i]->id->qp->recv_cq, 5, IBV_WC_WR_FLUSH_ERR);
	}
	for (i = 0; i < ARRAY_SIZE(s); i++)
		expect(s[i], RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static atomic_bool destroyed;

static void *destroy(void *arg)
{
	rdma_destroy_id(arg);
	atomic_store(&destroyed, true);
	return NULL;
}

TEST(unacked, "K-013 destroying an identifier waits for its events to be acknowledged")
{
	const struct rdma_conn_param param = { .retry_count = 7 };
	pthread_t thread;

	start();
	request(&param);
	accept_it(&param);
	rdma_destroy_qp(active.id);
	REQUIRE_OK(pthread_create(&thread, NULL, destroy, active.id));
	sleep_ms(QUIET_MS);
	CHECK(!atomic_load(&destroyed));
	REQUIRE(!rdma_ack_cm_event(active.event));	/* ESTABLISHED */
	REQUIRE_OK(pthread_join(thread, NULL));
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

	struct rdma_conn_param rep = with_data(REP_DATA + 1);

	start();
	CHECK(rdma_connect(active.id, &req));
	CHECK_EQ(errno, EINVAL);
	req = with_data(REQ_DATA);
	request(&req);
	make_qp(passive.id);
	CHECK(rdma_reject(passive.id, req.private_data, REJ_DATA + 1));
	CHECK_EQ(errno, EINVAL);
	CHECK(rdma_accept(passive.id, &rep));
	CHECK_EQ(errno, EINVAL);
	/* The kernel rejects the request for an id that cannot accept. */
	expect(&active, RDMA_CM_EVENT_REJECTED);
}

TEST(reject, "K-009 K-010 private data of a refusal")
{
	struct rdma_conn_param req = with_data(0);

	start();
	request(&req);
	REQUIRE(!rdma_reject(passive.id, req.private_data, REJ_DATA));
	expect(&active, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(active.event->status, 28);	/* consumer defined */
	check_data(&active, REJ_DATA);
}

TEST(nobody, "K-019 connecting to a port without a listener")
{
	struct rdma_conn_param req = with_data(0);

	start();
	REQUIRE(!rdma_destroy_id(listener));
	REQUIRE(!rdma_connect(active.id, &req));
	expect(&active, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(active.event->status, 8);	/* invalid service id */
}
