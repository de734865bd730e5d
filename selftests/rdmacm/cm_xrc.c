// SPDX-License-Identifier: GPL-2.0
/*
 * XRC and SRQs by the connection manager, which makes QPs, domains and CQs itself and hands on what
 * it finds in them. One end is a thread.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "lib/rdma.h"

#define LEN	64

/* struct side - one end, its id and its memory */
struct side {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t msg[LEN];
};

static struct dev *d;
static char port[8];

static struct rdma_addrinfo *resolve(bool passive, enum ibv_qp_type type)
{
	struct rdma_addrinfo hints = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_port_space = type == IBV_QPT_RC ? RDMA_PS_TCP : RDMA_PS_IB,
		.ai_qp_type = type,
	};
	struct rdma_addrinfo *res;
	char ip[INET_ADDRSTRLEN];

	REQUIRE(inet_ntop(AF_INET, d->gid.raw + 12, ip, sizeof(ip)));
	REQUIRE(!rdma_getaddrinfo(ip, port, &hints, &res));
	return res;
}

static struct rdma_cm_id *listen_for(enum ibv_qp_type type, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo *res = resolve(true, type);
	struct rdma_cm_id *id;

	REQUIRE(!rdma_create_ep(&id, res, NULL, attr));
	rdma_freeaddrinfo(res);
	REQUIRE(!rdma_listen(id, 1));
	return id;
}

/* Both ends at the same time: each waits for the other. */
static void leave(struct side *s)
{
	rdma_disconnect(s->id);
	REQUIRE(!rdma_dereg_mr(s->mr));
	rdma_destroy_ep(s->id);
}

/* Connects, and sends one message to the SRQ whose number the other end tells. */
static void *xrc_client(void *arg)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1 }, .sq_sig_all = 1,
	};
	struct rdma_addrinfo *res = resolve(false, IBV_QPT_XRC_SEND);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct side *s = arg;
	struct ibv_wc wc;

	REQUIRE(!rdma_create_ep(&s->id, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	CHECK(s->id->pd && s->id->qp->pd == s->id->pd);
	fill(s->msg, LEN, 3);
	s->mr = rdma_reg_msgs(s->id, s->msg, LEN);
	REQUIRE(s->mr);
	REQUIRE(!rdma_connect(s->id, NULL));
	sge = (struct ibv_sge){ (uintptr_t)s->msg, LEN, s->mr->lkey };
	wr.sg_list = &sge;
	wr.qp_type.xrc.remote_srqn = ntohl(*(uint32_t *)s->id->event->param.conn.private_data);
	REQUIRE_OK(ibv_post_send(s->id->qp, &wr, &bad));
	REQUIRE(rdma_get_send_comp(s->id, &wc) == 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	leave(s);
	return NULL;
}

/* ---- who makes the SRQ ---- */

static void srq_by_default(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { 1, 1 }, .srq_context = id };

	REQUIRE(!rdma_create_srq(id, NULL, &attr));
}

static void srq_of_pd(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { 1, 1 }, .srq_context = id };

	REQUIRE(!rdma_create_srq(id, id->qp->pd, &attr));
}

static void srq_ex(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = id, .attr = { 1, 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC,
	};

	REQUIRE(!rdma_create_srq_ex(id, &attr));
}

static const struct {
	const char *name;
	void (*make)(struct rdma_cm_id *id);
} makers[] = {
	{ "rdma_create_srq() with no PD", srq_by_default },
	{ "rdma_create_srq() with the QP's PD", srq_of_pd },
	{ "rdma_create_srq_ex() with nothing given", srq_ex },
};

TEST_ROWS(xrc, "G-012 J-031 K-018 XRC by the connection manager:", makers)
{
	struct ibv_qp_init_attr attr = { .cap = { .max_recv_wr = 1, .max_recv_sge = 1 } };
	struct rdma_conn_param param = {};
	struct side s = {}, c = {};
	struct rdma_cm_id *listener;
	pthread_t client;
	struct ibv_wc wc;
	uint32_t srqn;

	d = dev_open_qhca();
	snprintf(port, sizeof(port), "%d", 20000 + getpid() % 20000);
	listener = listen_for(IBV_QPT_XRC_RECV, &attr);
	REQUIRE(!pthread_create(&client, NULL, xrc_client, &c));
	REQUIRE(!rdma_get_request(listener, &s.id));
	CHECK(s.id->pd && s.id->qp->pd == s.id->pd);
	row->make(s.id);
	CHECK(s.id->srq->pd == s.id->pd && s.id->srq->srq_context == s.id);
	REQUIRE_OK(ibv_get_srq_num(s.id->srq, &srqn));
	srqn = htonl(srqn);
	s.mr = rdma_reg_msgs(s.id, s.msg, LEN);
	REQUIRE(s.mr);
	REQUIRE(!rdma_post_recv(s.id, NULL, s.msg, LEN, s.mr));
	param.private_data = &srqn;
	param.private_data_len = sizeof(srqn);
	REQUIRE(!rdma_accept(s.id, &param));
	REQUIRE(rdma_get_recv_comp(s.id, &wc) == 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, LEN);
	check_fill(s.msg, LEN, 3, "message");
	leave(&s);
	REQUIRE(!pthread_join(client, NULL));
	rdma_destroy_ep(listener);
}

/* ---- QPs with all that can be given ---- */

static struct rdma_cm_id *resolved(enum ibv_qp_type type)
{
	struct rdma_addrinfo *res = resolve(false, type);
	struct rdma_cm_id *id;

	REQUIRE(!rdma_create_ep(&id, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	return id;
}

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC },
	{ "XRC, sending", IBV_QPT_XRC_SEND },
	{ "XRC, receiving", IBV_QPT_XRC_RECV },
};

TEST_ROWS(qp_ex, "J-031 K-018 rdma_create_qp_ex(): the id has what the QP has,", types)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = &attr,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = row->type,
	};
	struct rdma_cm_id *id;

	d = dev_open_qhca();
	snprintf(port, sizeof(port), "%d", 20000 + getpid() % 20000);
	id = resolved(row->type);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = ibv_alloc_pd(id->verbs);
	REQUIRE(attr.pd);
	REQUIRE(!rdma_create_qp_ex(id, &attr));
	CHECK(id->pd == attr.pd && id->qp->pd == attr.pd);
	CHECK(id->qp->qp_context == &attr);
	CHECK(id->qp->send_cq == id->send_cq && id->qp->recv_cq == id->recv_cq);
	rdma_destroy_qp(id);
	CHECK_ERR(ibv_dealloc_pd(attr.pd), 0);
	id->pd = NULL;
	rdma_destroy_ep(id);
}
