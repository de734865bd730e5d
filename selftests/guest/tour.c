// SPDX-License-Identifier: GPL-2.0
/*
 * tour DEVICE GID-INDEX: what scripts/docs/tour.py follows through all layers: one RDMA
 * WRITE and one SEND between two queue pairs of this process.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_ID	0x1111
#define SEND_ID		0x2222
#define RECV_ID		0x3333

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	need(list != NULL, "ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	need(ctx != NULL, name);
	return ctx;
}

static void connect_qp(struct ibv_qp *qp, uint32_t psn, uint32_t peer, uint32_t peer_psn,
		       union ibv_gid gid, int gid_index)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer, .rq_psn = peer_psn, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = 18,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };

	need(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "to INIT");
	need(!ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), "to RTR");
	need(!ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "to RTS");
}

static struct ibv_wc completion(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	printf("%s: wr_id 0x%llx, %s, %u bytes\n", what, (unsigned long long)wc.wr_id,
	       ibv_wc_status_str(wc.status), wc.byte_len);
	need(wc.status == IBV_WC_SUCCESS, what);
	return wc;
}

int main(int argc, char **argv)
{
	static char here[32] = "one-sided: nobody was asked", there[32];
	int gid_index = argc == 3 ? atoi(argv[2]) : -1;
	struct ibv_context *ctx = open_device(argc == 3 ? argv[1] : "DEVICE GID-INDEX");
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *from = ibv_reg_mr(pd, here, sizeof(here), 0);
	struct ibv_mr *to = ibv_reg_mr(pd, there, sizeof(there),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq_a = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_cq *cq_b = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init_a = { .send_cq = cq_a, .recv_cq = cq_a, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_init_attr init_b = init_a;
	struct ibv_sge from_sge = { (uintptr_t)here, sizeof(here), from ? from->lkey : 0 };
	struct ibv_sge to_sge = { (uintptr_t)there, sizeof(there), to ? to->lkey : 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &from_sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = RECV_ID, .sg_list = &to_sge, .num_sge = 1 };
	struct ibv_qp *a, *b;
	union ibv_gid gid;

	init_b.send_cq = init_b.recv_cq = cq_b;
	a = ibv_create_qp(pd, &init_a);
	b = ibv_create_qp(pd, &init_b);
	need(from && to && cq_a && cq_b && a && b, "objects");
	need(!ibv_query_gid(ctx, 1, gid_index, &gid), "ibv_query_gid");
	connect_qp(a, 0x100, b->qp_num, 0x900, gid, gid_index);
	connect_qp(b, 0x900, a->qp_num, 0x100, gid, gid_index);
	printf("QP a is 0x%x with CQ 0x%x, QP b is 0x%x with CQ 0x%x\n", a->qp_num,
	       cq_a->handle, b->qp_num, cq_b->handle);

	wr.wr_id = WRITE_ID;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)there;
	wr.wr.rdma.rkey = to->rkey;
	need(!ibv_post_send(a, &wr, &bad), "ibv_post_send, WRITE");
	completion(cq_a, "WRITE");
	printf("there: %s\n", there);

	strcpy(here, "two-sided: somebody waited");
	need(!ibv_post_recv(b, &recv, &bad_recv), "ibv_post_recv");
	wr.wr_id = SEND_ID;
	wr.opcode = IBV_WR_SEND;
	need(!ibv_post_send(a, &wr, &bad), "ibv_post_send, SEND");
	completion(cq_b, "RECV");
	completion(cq_a, "SEND");
	printf("there: %s\n", there);

	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq_a);
	ibv_destroy_cq(cq_b);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	return 0;
}
