// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * write_test DEVICE GID-INDEX: what this project wants to be sure of, in TAP.
 *
 * Two queue pairs of one process, connected to each other. One writes into memory of the
 * other, within its bounds and beyond them.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	65536
#define WINDOW	40000		/* so much of the buffer is open to the peer */

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *peer;
	struct ibv_mr *from, *to;
	unsigned char *here, *there;
};

static void need(bool good, const char *what)
{
	if (!good) {
		printf("Bail out! %s\n", what);
		exit(1);
	}
}

static void check(bool good, const char *what)
{
	static int number;

	printf("%sok %d - %s\n", good ? "" : "not ", ++number, what);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer, union ibv_gid gid, int gid_index)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1 };

	need(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "to INIT");
	need(!ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), "to RTR");
	need(!ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "to RTS");
}

static struct pair set_up(const char *device, int gid_index)
{
	struct pair p = { .ctx = open_device(device), .here = malloc(SIZE), .there = calloc(1, SIZE) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4,
		.max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	union ibv_gid gid;

	need(p.ctx, device);
	p.pd = ibv_alloc_pd(p.ctx);
	p.cq = ibv_create_cq(p.ctx, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = p.cq;
	p.qp = ibv_create_qp(p.pd, &init);
	p.peer = ibv_create_qp(p.pd, &init);
	p.from = ibv_reg_mr(p.pd, p.here, SIZE, 0);
	p.to = ibv_reg_mr(p.pd, p.there, WINDOW, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(p.cq && p.qp && p.peer && p.from && p.to, "objects");
	need(!ibv_query_gid(p.ctx, 1, gid_index, &gid), "ibv_query_gid");
	connect_qp(p.qp, p.peer->qp_num, gid, gid_index);
	connect_qp(p.peer, p.qp->qp_num, gid, gid_index);
	for (int i = 0; i < SIZE; i++)
		p.here[i] = i * 7 + i / 256;
	return p;
}

static enum ibv_wc_status write_to(struct pair *p, size_t offset, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)p->here, length, p->from->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p->there + offset, p->to->rkey } };
	struct ibv_wc wc;

	need(!ibv_post_send(p->qp, &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(p->cq, 1, &wc))
		;
	return wc.status;
}

static bool only_zeros(const unsigned char *at, size_t length)
{
	while (length--)
		if (*at++)
			return false;
	return true;
}

static void tear_down(struct pair *p)
{
	check(!ibv_destroy_qp(p->qp) && !ibv_destroy_qp(p->peer) && !ibv_destroy_cq(p->cq) &&
	      !ibv_dereg_mr(p->from) && !ibv_dereg_mr(p->to) && !ibv_dealloc_pd(p->pd) &&
	      !ibv_close_device(p->ctx), "everything can be destroyed");
	free(p->here);
	free(p->there);
}

int main(int argc, char **argv)
{
	struct pair p;

	setvbuf(stdout, NULL, _IOLBF, 0);
	need(argc == 3, "usage: write_test DEVICE GID-INDEX");
	printf("1..5\n");
	p = set_up(argv[1], atoi(argv[2]));
	check(write_to(&p, 100, 30000) == IBV_WC_SUCCESS, "a WRITE completes");
	check(!memcmp(p.there + 100, p.here, 30000), "its bytes have arrived");
	check(only_zeros(p.there, 100) && only_zeros(p.there + 30100, SIZE - 30100),
	      "and no others");
	check(write_to(&p, WINDOW - 8, 9) == IBV_WC_REM_ACCESS_ERR,
	      "a WRITE beyond the region is refused");
	tear_down(&p);
	return 0;
}
