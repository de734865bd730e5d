// SPDX-License-Identifier: GPL-2.0
/*
 * A server for connections of the CM that sends every message back. Its connections share SRQs;
 * each connection has a window for the client's RDMA.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "echo.h"

#define SRQS		2
#define DEPTH		32	/* WRs of an SRQ */
#define RIGHTS		(REMOTE | IBV_ACCESS_REMOTE_ATOMIC)

/* struct served - the accepting side of a connection */
struct served {
	struct rdma_cm_id *id;
	struct buf win, out;
	struct served *next;
};

/* struct counter - an SRQ, the buffer of its messages, and the thread that answers them */
struct counter {
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct buf in;
	pthread_t thread;
};

struct echo echo;

static struct {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener;
	struct counter counters[SRQS];
	pthread_mutex_t lock;		/* protects the list */
	struct served *list;
	pthread_t thread;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_bool closed;
static atomic_ulong connections;

struct rdma_conn_param echo_param(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 4, .initiator_depth = 4, .retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void serve_request(struct rdma_cm_id *id)
{
	struct counter *c = &server.counters[atomic_load(&connections) % SRQS];
	struct served *s = calloc(1, sizeof(*s));
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.srq = c->srq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct rdma_conn_param p = echo_param();
	struct echo_window w;

	REQUIRE(s);
	s->id = id;
	REQUIRE(!rdma_create_qp(id, echo.pd, &init));
	s->win = buf_new(echo.pd, ECHO_MSG + 8, RIGHTS);
	s->out = buf_new(echo.pd, ECHO_MSG, LOCAL);
	w = (struct echo_window){ (uintptr_t)s->win.addr, s->win.mr->rkey };
	p.private_data = &w;
	p.private_data_len = sizeof(w);
	id->context = s;
	pthread_mutex_lock(&server.lock);
	s->next = server.list;
	server.list = s;
	pthread_mutex_unlock(&server.lock);
	REQUIRE(!rdma_accept(id, &p));
	atomic_fetch_add(&connections, 1);
}

static void serve_goodbye(struct rdma_cm_id *id)
{
	struct served *s = id->context, **p;

	rdma_disconnect(id);		/* answers, if the client waits for it */
	pthread_mutex_lock(&server.lock);
	for (p = &server.list; *p != s; p = &(*p)->next)
		;
	*p = s->next;
	rdma_destroy_qp(id);
	pthread_mutex_unlock(&server.lock);
	REQUIRE(!rdma_destroy_id(id));
	buf_free(&s->win);
	buf_free(&s->out);
	free(s);
}

static void *serve_events(void *unused)
{
	struct pollfd pfd = { .fd = server.ch->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	while (!atomic_load(&closed) || server.list) {
		if (poll(&pfd, 1, 20) != 1)
			continue;
		REQUIRE(!rdma_get_cm_event(server.ch, &event));
		type = event->event;
		id = event->id;
		REQUIRE(!rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			serve_request(id);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			serve_goodbye(id);
		} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
			/* The device is removed: this connection will never disconnect. */
			FAIL("server: %s", rdma_event_str(type));
			test_die();
		}
	}
	return NULL;
}

static struct served *who(uint32_t qpn)
{
	struct served *s = server.list;

	while (s && s->id->qp->qp_num != qpn)
		s = s->next;
	return s;
}

static void answer(struct counter *c, const struct ibv_wc *wc)
{
	struct served *s = who(wc->qp_num);
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_send(DEPTH, &sge, 1), *bad;

	if (!s || wc->wr_id == DEPTH)
		return;		/* disconnected since; or the completion of our own message */
	if (wc->status) {
		FAIL("server: %s", ibv_wc_status_str(wc->status));
		return;
	}
	sge = buf_sge(&s->out, 0, wc->byte_len);
	memcpy(s->out.addr, c->in.addr + wc->wr_id * ECHO_MSG, wc->byte_len);
	/* If the peer did not wait for the message, it never arrives. */
	ibv_post_send(s->id->qp, &wr, &bad);
}

static void *serve_messages(void *counter)
{
	struct counter *c = counter;
	struct ibv_wc wc;
	int n;

	while (!atomic_load(&closed)) {
		pthread_mutex_lock(&server.lock);
		n = ibv_poll_cq(c->cq, 1, &wc);
		REQUIRE(n >= 0);
		if (n)
			answer(c, &wc);
		pthread_mutex_unlock(&server.lock);
		if (n && wc.wr_id < DEPTH)
			REQUIRE_OK(srq_post(c->srq, wc.wr_id, &c->in, wc.wr_id * ECHO_MSG,
					    ECHO_MSG));
		if (!n)
			usleep(100);
	}
	return NULL;
}

void echo_open(const struct dev *d)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	int i, n;

	echo.addr.sin_family = AF_INET;
	echo.addr.sin_port = htons(20000 + getpid() % 20000);
	memcpy(&echo.addr.sin_addr, d->gid.raw + 12, 4);
	server.ch = rdma_create_event_channel();
	REQUIRE(server.ch);
	REQUIRE(!rdma_create_id(server.ch, &server.listener, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(server.listener, (struct sockaddr *)&echo.addr));
	echo.verbs = server.listener->verbs;
	echo.pd = ibv_alloc_pd(echo.verbs);
	REQUIRE(echo.pd);
	for (i = 0; i < SRQS; i++) {
		struct counter *c = &server.counters[i];

		c->cq = ibv_create_cq(echo.verbs, 256, NULL, NULL, 0);
		c->srq = ibv_create_srq(echo.pd, &init);
		REQUIRE(c->cq && c->srq);
		c->in = buf_new(echo.pd, DEPTH * ECHO_MSG, LOCAL);
		for (n = 0; n < DEPTH; n++)
			REQUIRE_OK(srq_post(c->srq, n, &c->in, n * ECHO_MSG, ECHO_MSG));
		REQUIRE_OK(pthread_create(&c->thread, NULL, serve_messages, c));
	}
	REQUIRE(!rdma_listen(server.listener, 64));
	REQUIRE_OK(pthread_create(&server.thread, NULL, serve_events, NULL));
}

unsigned long echo_close(void)
{
	int i;

	atomic_store(&closed, true);
	pthread_join(server.thread, NULL);
	for (i = 0; i < SRQS; i++) {
		pthread_join(server.counters[i].thread, NULL);
		CHECK_ERR(ibv_destroy_srq(server.counters[i].srq), 0);
		CHECK_ERR(ibv_destroy_cq(server.counters[i].cq), 0);
		buf_free(&server.counters[i].in);
	}
	CHECK_ERR(ibv_dealloc_pd(echo.pd), 0);
	CHECK(!rdma_destroy_id(server.listener));
	rdma_destroy_event_channel(server.ch);
	return atomic_load(&connections);
}

struct rdma_cm_event *cm_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	REQUIRE(poll(&pfd, 1, WAIT_MS) == 1);
	REQUIRE(!rdma_get_cm_event(ch, &event));
	if (event->event != type)
		FAIL("%s, status %d, not %s", rdma_event_str(event->event), event->status,
		     rdma_event_str(type));
	REQUIRE(event->event == type);
	return event;
}
