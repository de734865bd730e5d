// SPDX-License-Identifier: GPL-2.0
/*
 * Both ends of a connection of the CM in one process.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "cmpair.h"

struct side passive, active;
struct rdma_cm_id *listener;

void expect(struct side *s, enum rdma_cm_event_type type)
{
	if (s->event)
		rdma_ack_cm_event(s->event);
	s->event = cm_event(s->ch, type);
}

void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	init.send_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	REQUIRE(init.send_cq);
	init.recv_cq = init.send_cq;
	REQUIRE(!rdma_create_qp(id, NULL, &init));
}

void start_in(const struct dev *d, enum rdma_port_space space)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(20000 + getpid() % 20000),
	};

	memcpy(&addr.sin_addr, d->gid.raw + 12, 4);

	passive.ch = rdma_create_event_channel();
	active.ch = rdma_create_event_channel();
	REQUIRE(passive.ch && active.ch);
	REQUIRE(!rdma_create_id(passive.ch, &listener, NULL, space));
	REQUIRE(!rdma_bind_addr(listener, (struct sockaddr *)&addr));
	REQUIRE(!rdma_listen(listener, 4));

	REQUIRE(!rdma_create_id(active.ch, &active.id, NULL, space));
	REQUIRE(!rdma_resolve_addr(active.id, NULL, (struct sockaddr *)&addr, 5000));
	expect(&active, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(active.id, 5000));
	expect(&active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(active.id);
}

void request(const struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;

	REQUIRE(!rdma_connect(active.id, &p));
	expect(&passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive.id = passive.event->id;
}

void accept_it(const struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;

	make_qp(passive.id);
	REQUIRE(!rdma_accept(passive.id, &p));
	expect(&active, RDMA_CM_EVENT_ESTABLISHED);
	expect(&passive, RDMA_CM_EVENT_ESTABLISHED);
}

static uint8_t data[256];

struct rdma_conn_param with_data(size_t len)
{
	fill(data, sizeof(data), 5);
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = len,
		.retry_count = 7,
	};
}

void check_data(const struct side *s, size_t len)
{
	CHECK(s->event->param.conn.private_data_len >= len);
	check_fill(s->event->param.conn.private_data, len, 5, "private data");
}
