// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Post to and poll queues that no device reads, so that callgrind counts the
 * instructions of the provider: queues ROW COUNT. The provider makes the queues; the
 * functions here stand in for the kernel and the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../qhca/cq.h"
#include "../qhca/qhca-abi.h"

#define QPN		17
#define BATCH		16
#define QUEUE_SIZE	256

static uint8_t doorbells[QHCA_DB_PAGE_SIZE] __attribute__((aligned(4096)));
static struct qhca_context ctx;
static struct qhca_pd pd;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp;
static struct ibv_srq *srq;
static uint32_t cqes;		/* CQEs in the CQ being polled, since the start */
static char data[64];
static struct ibv_sge sge = { .lkey = 1 };
static struct ibv_send_wr wrs[BATCH];
static struct ibv_recv_wr recv_wr = { .sg_list = &sge, .num_sge = 1 };

/* ---- the kernel; ../qhca/compat.h removes arguments for older releases ---- */

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_create_cq_prov_attr *prov_attr,
			 struct verbs_cq *vcq, struct ibv_create_cq_ex *cmd,
			 size_t cmd_size, struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags)
{
	vcq->cq.context = context;
	vcq->cq.cqe = attr->cqe;
	return 0;
}

int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *vqp,
			  struct ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *cmd, size_t cmd_size,
			  struct ib_uverbs_ex_create_qp_resp *resp, size_t resp_size,
			  struct ibv_command_buffer *driver)
{
	vqp->qp.context = context;
	vqp->qp.pd = attr->pd;
	vqp->qp.send_cq = attr->send_cq;
	vqp->qp.recv_cq = attr->recv_cq;
	vqp->qp.qp_type = attr->qp_type;
	vqp->qp.qp_num = QPN;
	vqp->qp.state = IBV_QPS_RTS;
	return 0;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *vsrq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	vsrq->srq.context = context;
	return 0;
}

/* ---- the device ---- */

/* Complete all posted work requests. */
static void finish(void)
{
	to_qqp(qp)->sq.ci = to_qqp(qp)->sq.pi;
	to_qqp(qp)->rq.ci = to_qqp(qp)->rq.pi;
	to_qsrq(srq)->wq.ci = to_qsrq(srq)->wq.pi;
}

static void put_cqes(struct ibv_cq *ibcq, unsigned int count)
{
	struct qhca_cq *qcq = to_qcq(ibcq);
	struct qhca_cqe *cqe;

	while (count--) {
		cqe = cqe_at(qcq, cqes);
		*cqe = (struct qhca_cqe){
			.qpn = htole32(QPN),
			.byte_len = htole32(8),
			.wqe_index = htole32(cqes),
			.flags = htole16(QHCA_CQE_SQ),
			.opcode = QHCA_CQE_RDMA_WRITE,
			.owner = cqes >> qcq->log_size & 1 ? 0 : QHCA_OWNER_PHASE,
		};
		cqes++;
	}
}

static void put_1(void) { put_cqes(cq, 1); }
static void put_16(void) { put_cqes(cq, BATCH); }
static void put_16_ex(void) { put_cqes(ibv_cq_ex_to_cq(cq_ex), BATCH); }

/* ---- the program ---- */

static void must(bool done)
{
	if (!done)
		abort();
}

static void post_send(void)
{
	struct ibv_send_wr *bad;

	must(!ibv_post_send(qp, wrs, &bad));
}

static void wr_start(void)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
}

static void wr_write_64k(void)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	wr_start();
	ibv_wr_rdma_write(qpx, 2, (uintptr_t)data);
	ibv_wr_set_sge(qpx, 1, (uintptr_t)data, 65536);
	must(!ibv_wr_complete(qpx));
}

static void wr_send_inline(void)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	wr_start();
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, sizeof(data));
	must(!ibv_wr_complete(qpx));
}

static void post_recv(void)
{
	struct ibv_recv_wr *bad;

	must(!ibv_post_recv(qp, &recv_wr, &bad));
}

static void post_srq_recv(void)
{
	struct ibv_recv_wr *bad;

	must(!ibv_post_srq_recv(srq, &recv_wr, &bad));
}

static void poll_none(void)
{
	struct ibv_wc wc;

	must(ibv_poll_cq(cq, 1, &wc) == 0);
}

static void poll_1(void)
{
	struct ibv_wc wc;

	must(ibv_poll_cq(cq, 1, &wc) == 1);
}

static void poll_16(void)
{
	struct ibv_wc wc[BATCH];

	must(ibv_poll_cq(cq, BATCH, wc) == BATCH);
}

static void poll_16_ex(void)
{
	struct ibv_poll_cq_attr attr = {};
	unsigned int i;

	must(!ibv_start_poll(cq_ex, &attr));
	for (i = 0; i < BATCH; i++) {
		must(ibv_wc_read_opcode(cq_ex) == IBV_WC_RDMA_WRITE &&
		     ibv_wc_read_qp_num(cq_ex) == QPN);
		must(!ibv_next_poll(cq_ex) == (i + 1 < BATCH));
	}
	ibv_end_poll(cq_ex);
}

static void arm(void)
{
	must(!ibv_req_notify_cq(cq, 0));
}

#define POST(what, how)	{ .name = what, .counted = how, .after = finish }
#define SEND(what, op, send_flags, bytes, count) \
	{ .name = what, .counted = post_send, .after = finish, \
	  .opcode = IBV_WR_##op, .flags = send_flags, .len = bytes, .wrs = count }

static const struct row {
	const char *name;
	void (*before)(void);
	void (*counted)(void);
	void (*after)(void);
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint32_t len;
	unsigned int wrs;
} rows[] = {
	SEND("write-8", RDMA_WRITE, 0, 8, 1),
	SEND("write-64k", RDMA_WRITE, 0, 65536, 1),
	SEND("write-8-16", RDMA_WRITE, 0, 8, BATCH),
	SEND("send-inline", SEND, IBV_SEND_INLINE, sizeof(data), 1),
	POST("wr-write-64k", wr_write_64k),
	POST("wr-send-inline", wr_send_inline),
	POST("recv", post_recv),
	POST("srq-recv", post_srq_recv),
	{ .name = "poll-none", .counted = poll_none },
	{ .name = "poll-1", .before = put_1, .counted = poll_1 },
	{ .name = "poll-16", .before = put_16, .counted = poll_16 },
	{ .name = "poll-16-ex", .before = put_16_ex, .counted = poll_16_ex },
	{ .name = "arm", .counted = arm },
};

static void make_wrs(const struct row *row)
{
	unsigned int i;

	sge.addr = (uintptr_t)data;
	sge.length = row->len;
	for (i = 0; i < row->wrs; i++)
		wrs[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < row->wrs ? &wrs[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = row->opcode,
			.send_flags = IBV_SEND_SIGNALED | row->flags,
			.wr.rdma = { (uintptr_t)data, 2 },
		};
}

static void make_context(void)
{
	struct ibv_context_ops *ops = &ctx.ibv_ctx.context.ops;

	ctx.db = doorbells;
	ctx.send_ops = ~0u;
	ctx.max_cqe = ctx.max_qp_wr = ctx.max_srq_wr = QUEUE_SIZE;
	ctx.max_send_sge = ctx.max_recv_sge = ctx.max_srq_sge = 4;
	ctx.max_inline = sizeof(data);
	ctx.wc_flags = IBV_WC_STANDARD_FLAGS;
	ops->post_send = qhca_post_send;
	ops->post_recv = qhca_post_recv;
	ops->post_srq_recv = qhca_post_srq_recv;
	ops->poll_cq = qhca_poll_cq;
	ops->req_notify_cq = qhca_req_notify_cq;
	pd.ibv_pd.context = &ctx.ibv_ctx.context;
}

static void make_queues(bool extended)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = QUEUE_SIZE };
	struct ibv_srq_init_attr srq_attr = { .attr = { QUEUE_SIZE, 1 } };
	struct ibv_qp_init_attr_ex qp_attr = {
		.cap = { QUEUE_SIZE, QUEUE_SIZE, 1, 1, sizeof(data) },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = &pd.ibv_pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};

	cq = qhca_create_cq(pd.ibv_pd.context, QUEUE_SIZE, NULL, 0);
	cq_ex = qhca_create_cq_ex(pd.ibv_pd.context, &cq_attr);
	srq = qhca_create_srq(&pd.ibv_pd, &srq_attr);
	must(cq && cq_ex && srq);
	qp_attr.send_cq = extended ? ibv_cq_ex_to_cq(cq_ex) : cq;
	qp_attr.recv_cq = qp_attr.send_cq;
	qp = qhca_create_qp_ex(pd.ibv_pd.context, &qp_attr);
	must(qp);
}

/* callgrind counts this function and all functions that it calls. */
static __attribute__((noipa)) void counted(void (*what)(void))
{
	what();
}

static void run(const struct row *row, unsigned int count)
{
	make_context();
	make_queues(row->counted == poll_16_ex);
	make_wrs(row);
	while (count--) {
		if (row->before)
			row->before();
		counted(row->counted);
		if (row->after)
			row->after();
	}
}

int main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; argc == 3 && i < ARRAY_SIZE(rows); i++) {
		if (!strcmp(argv[1], rows[i].name)) {
			run(&rows[i], atoi(argv[2]));
			return 0;
		}
	}
	fprintf(stderr, "usage: queues ROW COUNT\n");
	return 2;
}
