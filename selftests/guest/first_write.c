// SPDX-License-Identifier: GPL-2.0
/*
 * first_write DEVICE GID-INDEX: Documentation/tutorial.rst explains it line by line.
 *
 * Two queue pairs of one process, connected to each other; one writes into a buffer
 * that the other side has offered.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
	static char here[64] = "Hello, remote memory", there[64];
	int gid_index = argc == 3 ? atoi(argv[2]) : -1;
	struct ibv_context *ctx = open_device(argc == 3 ? argv[1] : "DEVICE GID-INDEX");
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *from = ibv_reg_mr(pd, here, sizeof(here), 0);
	struct ibv_mr *to = ibv_reg_mr(pd, there, sizeof(there),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init), *peer = ibv_create_qp(pd, &init);
	struct ibv_send_wr *bad, wr = { .wr_id = 42, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED };
	union ibv_gid gid;
	struct ibv_wc wc;

	need(from && to && cq && qp && peer, "objects");
	need(!ibv_query_gid(ctx, 1, gid_index, &gid), "ibv_query_gid");
	connect_qp(qp, peer->qp_num, gid, gid_index);
	connect_qp(peer, qp->qp_num, gid, gid_index);

	wr.sg_list = &(struct ibv_sge){ (uintptr_t)here, sizeof(here), from->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)there;
	wr.wr.rdma.rkey = to->rkey;
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	printf("work request %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
	printf("there: %s\n", there);

	ibv_destroy_qp(qp);
	ibv_destroy_qp(peer);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	return wc.status != IBV_WC_SUCCESS;
}
