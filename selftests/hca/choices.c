// SPDX-License-Identifier: GPL-2.0
/*
 * Behaviour in which adapters differ, whether or not the specification leaves it open.
 * Documentation/conformance.md gives the reasons for this device's choices under Decisions.
 */
#include <stdlib.h>

#include "lib/window.h"

#define PAGE	4096

/* The core refuses the first row itself, and leaves the others to drivers. */
static const struct {
	const char *name;
	size_t offset;
} places[] = {
	{ "at the start of a page", 0 },
	{ "one byte behind the start", 1 },
	{ "in the middle of a page", PAGE / 2 },
	{ "at the last byte of a page", PAGE - 1 },
};

TEST_ROWS(empty_region, "F-024 a region of 0 bytes can be neither registered nor re-registered",
	  places)
{
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, 2 * PAGE, LOCAL);
	uint8_t *page = (uint8_t *)(((uintptr_t)b.addr + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	struct ibv_mr *mr;

	errno = 0;
	CHECK(!ibv_reg_mr(d->pd, page + row->offset, 0, LOCAL));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, d->pd, page + row->offset, 0,
			   LOCAL));
	CHECK_EQ(errno, EINVAL);
	mr = ibv_reg_mr(d->pd, page + row->offset, 1, LOCAL);
	REQUIRE(mr);
	CHECK_ERR(ibv_dereg_mr(mr), 0);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} answered[] = {
	{ "RDMA READ", IBV_WR_RDMA_READ },
	{ "compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

TEST_ROWS(local_key, "I-003 no request is sent if the L_Key for its answer is bad", answered)
{
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	struct buf b = buf_new(d->pd, PAGE, REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	uint64_t *word = (uint64_t *)b.addr, before = *word, sent;
	struct ibv_sge sge = buf_sge(&b, 64, 8);
	struct ibv_send_wr wr;
	struct pair p;

	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	p = pair_new(d, &QP_OPTS, &c);
	sge.lkey ^= 1;
	wr = wr_rdma(1, row->opcode, &sge, 1, (uintptr_t)word, b.mr->rkey);
	if (row->opcode != IBV_WR_RDMA_READ) {
		wr.wr.atomic.compare_add = before;
		wr.wr.atomic.swap = ~before;
	}
	sent = hw_counter("tx_pkts");
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(hw_counter("tx_pkts"), sent);
	CHECK_EQ(*word, before);
	CHECK_EQ(get_state(p.b.qp), IBV_QPS_RTS);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} not_ud[] = {
	{ "RDMA WRITE", IBV_WR_RDMA_WRITE },
	{ "RDMA WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "RDMA READ", IBV_WR_RDMA_READ },
	{ "compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

TEST_ROWS(ud, "B-020 refused when posted to a UD QP, which stays in RTS", not_ud)
{
	struct qp_opts o = QP_OPTS;
	struct dev *d = dev_open_qhca();
	struct buf b = buf_new(d->pd, PAGE, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 8);
	struct ibv_send_wr wr, *bad = NULL;
	struct pair p;

	o.type = IBV_QPT_UD;
	p = pair_new(d, &o, &CONN);
	wr = wr_rdma(1, row->opcode, &sge, 1, (uintptr_t)b.addr, b.mr->rkey);
	CHECK_ERR(ibv_post_send(p.a.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	poll_empty(p.a.send_cq);
	CHECK_EQ(get_state(p.a.qp), IBV_QPS_RTS);
}

TEST(no_channel, "C-016 a CQ without a channel can be armed and raises no event")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	int i;

	for (i = 0; i < 3; i++) {
		CHECK_ERR(ibv_req_notify_cq(p.a.send_cq, 0), 0);
		CHECK_ERR(ibv_req_notify_cq(p.b.recv_cq, 1), 0);
		ping(&p.a, &p.b);
	}
	async_none(d->ctx);
}
