// SPDX-License-Identifier: GPL-2.0
/* Extended verbs: ibv_wr_*(), extended CQs. */
#include "lib/wr_ex.h"

#define ALL_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |	\
		 IBV_QP_EX_WITH_RDMA_WRITE |				\
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)

TEST(wr_ops, "B-035 every operation of ibv_wr_*, in one batch")
{
	struct pair p = pair_ex(dev_open(), ALL_OPS, &CONN);
	struct buf src = buf_new(p.dev->pd, 4096, REMOTE);
	struct buf dst = buf_new(p.dev->pd, 4096, REMOTE);
	uint64_t at = (uintptr_t)dst.addr;
	struct ibv_sge in = buf_sge(&dst, 0, 100), sge[3];
	struct ibv_data_buf inl[2] = { { "abc", 3 }, { "defgh", 5 } };
	struct ibv_qp_ex *q;
	struct ibv_wc wc;
	int i;

	fill(src.addr, src.len, 1);
	REQUIRE_OK(post_recv(&p.b, 100, &in, 1));
	in = buf_sge(&dst, 100, 100);
	REQUIRE_OK(post_recv(&p.b, 101, &in, 1));
	REQUIRE_OK(post_recv(&p.b, 102, NULL, 0));

	q = wr_start(&p.a, 0);
	ibv_wr_send(q);
	ibv_wr_set_sge(q, src.mr->lkey, (uintptr_t)src.addr, 100);
	q->wr_id = 1;
	ibv_wr_send_imm(q, htobe32(0x11223344));
	ibv_wr_set_inline_data_list(q, 2, inl);
	q->wr_id = 2;
	ibv_wr_rdma_write(q, dst.mr->rkey, at + 200);
	sge[0] = buf_sge(&src, 0, 10);
	sge[1] = buf_sge(&src, 10, 20);
	sge[2] = buf_sge(&src, 30, 30);
	ibv_wr_set_sge_list(q, 3, sge);
	q->wr_id = 3;
	ibv_wr_rdma_write_imm(q, dst.mr->rkey, at + 300, htobe32(0x55667788));
	ibv_wr_set_inline_data(q, "xyz", 3);
	q->wr_id = 4;
	ibv_wr_rdma_read(q, dst.mr->rkey, at + 200);
	ibv_wr_set_sge(q, src.mr->lkey, (uintptr_t)src.addr + 2000, 60);
	CHECK_ERR(ibv_wr_complete(q), 0);

	for (i = 0; i < 5; i++)
		poll_ok(p.a.send_cq, i);
	CHECK_EQ(poll_ok(p.b.recv_cq, 100).byte_len, 100);
	wc = poll_ok(p.b.recv_cq, 101);
	CHECK_EQ(wc.byte_len, 8);
	CHECK_EQ(be32toh(wc.imm_data), 0x11223344);
	wc = poll_ok(p.b.recv_cq, 102);
	CHECK_EQ(wc.byte_len, 3);
	CHECK_EQ(be32toh(wc.imm_data), 0x55667788);
	check_fill(dst.addr, 100, 1, "sent");
	CHECK(!memcmp(dst.addr + 100, "abcdefgh", 9));
	check_fill(dst.addr + 200, 60, 1, "written");
	CHECK(!memcmp(dst.addr + 300, "xyz", 4));
	check_fill(src.addr + 2000, 60, 1, "read back");
}

TEST(wr_abort, "B-035 abort discards the whole batch")
{
	struct pair p = pair_ex(dev_open(), ALL_OPS, &CONN);
	struct ibv_qp_ex *q;
	int i;

	for (i = 0; i < 40; i++) {
		q = wr_start(&p.a, 1);
		ibv_wr_send(q);
		ibv_wr_send(q);
		ibv_wr_abort(q);
	}
	poll_none(p.a.send_cq);
	ping_pong(&p);
}

TEST(wr_errors, "B-035 after an error ibv_wr_complete() fails and posts nothing")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_ex(d, ALL_OPS, &CONN);
	struct ibv_sge sge[64] = { 0 };
	char big[4096] = "";
	struct ibv_qp_ex *q;
	uint32_t i;

	q = wr_start(&p.a, 1);
	ibv_wr_send(q);
	ibv_wr_send(q);
	ibv_wr_set_sge_list(q, p.a.cap.max_send_sge + 1, sge);
	ibv_wr_send(q);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);

	q = wr_start(&p.a, 1);
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, big, p.a.cap.max_inline_data + 1);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);

	q = wr_start(&p.a, 1);
	ibv_wr_rdma_read(q, 0, 0);
	ibv_wr_set_inline_data(q, big, 1);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);

	q = wr_start(&p.a, 1);
	for (i = 0; i <= p.a.cap.max_send_wr; i++)
		ibv_wr_send(q);
	CHECK_ERR(ibv_wr_complete(q), ENOMEM);

	q = wr_start(&p.a, 1);
	CHECK_ERR(ibv_wr_complete(q), 0);
	poll_none(p.a.send_cq);
	ping_pong(&p);
	REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
	q = wr_start(&p.a, 1);
	ibv_wr_send(q);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
}

/* Operations by type: conformance B.1. */
#define CONNECTED_OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |	\
			 IBV_QP_EX_WITH_RDMA_WRITE |				\
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |			\
			 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

#define RELIABLE_OPS	(CONNECTED_OPS | IBV_QP_EX_WITH_RDMA_READ |		\
			 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |			\
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |			\
			 IBV_QP_EX_WITH_SEND_WITH_INV)

static const struct {
	const char *name;
	enum ibv_qp_type type;
	uint64_t ops;
} offers[] = {
	{ "RC", IBV_QPT_RC, RELIABLE_OPS | IBV_QP_EX_WITH_FLUSH |
	  IBV_QP_EX_WITH_ATOMIC_WRITE },
	{ "XRC_SEND", IBV_QPT_XRC_SEND, RELIABLE_OPS },
	{ "UC", IBV_QPT_UC, CONNECTED_OPS },
	{ "UD", IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM },
};

/* Creates a QP for the operations @ops; returns 0 or errno. */
static int try_ops(struct dev *d, struct ibv_cq *cq, enum ibv_qp_type type,
		   uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 },
		.qp_type = type, .pd = d->pd, .send_ops_flags = ops,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(d->ctx, &init);
	return qp ? ibv_destroy_qp(qp) : errno;
}

TEST_ROWS(wr_offered, "B-014 B-036 every operation requested at creation, type", offers)
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	uint64_t ops = row->ops;
	unsigned int bit;

	if (!has_flush(d->ctx))
		ops &= ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
	for (bit = 0; bit < 64; bit++) {
		uint64_t op = 1ull << bit;
		int err = try_ops(d, cq, row->type, op);

		if (err != (ops & op ? 0 : EOPNOTSUPP))
			FAIL("operation 0x%llx: %s", (unsigned long long)op,
			     strerror(err));
		/* One operation that is not offered makes the whole set fail. */
		CHECK_ERR(try_ops(d, cq, row->type, ops | op),
			  ops & op ? 0 : EOPNOTSUPP);
	}
	CHECK_ERR(try_ops(d, cq, row->type, 0), 0);
}

static struct ibv_cq_ex *cq_ex(struct dev *d, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 32, .wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	return ibv_create_cq_ex(d->ctx, &attr);
}

static const struct {
	const char *name;
	uint32_t flags;
} locking[] = {
	{ "plain", 0 },
	{ "single threaded", IBV_CREATE_CQ_ATTR_SINGLE_THREADED },
};

TEST_ROWS(poll_ex, "C-030 extended CQ", locking)
{
	struct dev *d = dev_open();
	struct ibv_cq_ex *cq = cq_ex(d, IBV_WC_STANDARD_FLAGS, row->flags);
	struct ibv_poll_cq_attr attr = { 0 };
	struct pair p = { .dev = d };
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr = wr_send(7, NULL, 0);
	int round, i;

	if (!cq && errno == EOPNOTSUPP)
		test_skip("no extended CQs here");
	REQUIRE(cq);
	p.a = end_new(d, &o);
	o.recv_cq = ibv_cq_ex_to_cq(cq);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	CHECK_ERR(ibv_start_poll(cq, &attr), ENOENT);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0xfeed);
	for (round = 0; round < 30; round++) {
		for (i = 0; i < 5; i++) {
			REQUIRE_OK(post_recv(&p.b, i, NULL, 0));
			REQUIRE_OK(post_send(&p.a, &wr));
			poll_ok(p.a.send_cq, 7);
		}
		sleep_ms(round ? 0 : 50);
		REQUIRE_OK(ibv_start_poll(cq, &attr));
		for (i = 0; i < 5; i++) {
			CHECK_EQ(cq->wr_id, i);
			CHECK_EQ(cq->status, IBV_WC_SUCCESS);
			CHECK_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
			CHECK_EQ(ibv_wc_read_byte_len(cq), 0);
			CHECK_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
			CHECK_EQ(be32toh(ibv_wc_read_imm_data(cq)), 0xfeed);
			CHECK_EQ(ibv_wc_read_qp_num(cq), p.b.qp->qp_num);
			CHECK_EQ(ibv_next_poll(cq), i < 4 ? 0 : ENOENT);
		}
		ibv_end_poll(cq);
		CHECK_ERR(ibv_start_poll(cq, &attr), ENOENT);
	}
	/* ibv_poll_cq() also works on an extended CQ. */
	ping_pong(&p);
	attr.comp_mask = 1;
	CHECK_ERR(ibv_start_poll(cq, &attr), EINVAL);
}

TEST(cq_ex_flags, "C-030 flags that an extended CQ does not offer")
{
	const uint64_t wc[] = { IBV_WC_EX_WITH_TM_INFO, 1ull << 30 };
	struct dev *d = dev_open_qhca();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wc); i++)
		CHECK(!cq_ex(d, wc[i], 0));
	CHECK(!cq_ex(d, 0, 1 << 5));
	CHECK(!cq_ex(d, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
}
