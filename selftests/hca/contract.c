// SPDX-License-Identifier: GPL-2.0
/*
 * The device contract and the user ABI compile in a C program, with all their assertions, and the
 * numbers that they share with verbs are equal. Needs no device.
 */
#include <infiniband/verbs.h>

#include <qhca/cmd.h>
#include <qhca/counters.h>
#include <qhca/queues.h>
#include <qhca/regs.h>
#include <rdma/qhca-abi.h>

#include "lib/harness.h"

/* The largest WQEs fit the largest strides, and the smallest strides hold one SGE. */
_Static_assert(sizeof(struct qhca_sq_wqe) +
	       QHCA_MAX_SEND_SGE * sizeof(struct qhca_sge) <= QHCA_SQ_STRIDE_MAX,
	       "all send SGEs fit");
_Static_assert(sizeof(struct qhca_sq_wqe) + QHCA_MAX_INLINE <= QHCA_SQ_STRIDE_MAX,
	       "all inline data fits");
_Static_assert(sizeof(struct qhca_rq_wqe) +
	       QHCA_MAX_RECV_SGE * sizeof(struct qhca_sge) <= QHCA_RQ_STRIDE_MAX,
	       "all receive SGEs fit");
_Static_assert(sizeof(struct qhca_sq_wqe) + sizeof(struct qhca_sge) <=
	       QHCA_SQ_STRIDE_MIN, "one SGE fits the smallest send stride");
_Static_assert(sizeof(struct qhca_rq_wqe) + sizeof(struct qhca_sge) <=
	       QHCA_RQ_STRIDE_MIN, "one SGE fits the smallest receive stride");
_Static_assert(QHCA_PAGE_SIZE / 8 == QHCA_TABLE_ENTRIES, "a table is a page");
_Static_assert(sizeof(struct qhca_cqe) == sizeof(struct qhca_cq_dbrec),
	       "the doorbell record keeps the alignment of the ring");

/* No implicit padding at the end, and 64-bit members are aligned. */
_Static_assert(sizeof(struct qhca_alloc_ucontext_resp) == 48, "alloc_ucontext");
_Static_assert(sizeof(struct qhca_clock_info) == 32, "page of the clock");
_Static_assert(sizeof(struct qhca_alloc_pd_resp) == 8, "alloc_pd");
_Static_assert(sizeof(struct qhca_create_cq_req) == 24, "create_cq request");
_Static_assert(sizeof(struct qhca_create_cq_resp) == 8, "create_cq response");
_Static_assert(sizeof(struct qhca_resize_cq_req) == 16, "resize_cq request");
_Static_assert(sizeof(struct qhca_create_qp_req) == 80, "create_qp request");
_Static_assert(sizeof(struct qhca_create_wq_req) == 16, "create_wq request");
_Static_assert(sizeof(struct qhca_create_wq_resp) == 8, "create_wq response");
_Static_assert(sizeof(struct qhca_create_qp_resp) == 8, "create_qp response");

struct same {
	const char *name;
	long ours, theirs;
};

#define SAME(ours, theirs) { #ours, ours, theirs }

static const struct same wc_status[] = {
	SAME(QHCA_WC_SUCCESS, IBV_WC_SUCCESS),
	SAME(QHCA_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR),
	SAME(QHCA_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR),
	SAME(QHCA_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR),
	SAME(QHCA_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR),
	SAME(QHCA_WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR),
	SAME(QHCA_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR),
	SAME(QHCA_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR),
	SAME(QHCA_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR),
	SAME(QHCA_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR),
	SAME(QHCA_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR),
	SAME(QHCA_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR),
	SAME(QHCA_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR),
	SAME(QHCA_WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR),
	SAME(QHCA_WC_FATAL_ERR, IBV_WC_FATAL_ERR),
	SAME(QHCA_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR),
};

static const struct same qp_state[] = {
	SAME(QHCA_QPS_RESET, IBV_QPS_RESET),
	SAME(QHCA_QPS_INIT, IBV_QPS_INIT),
	SAME(QHCA_QPS_RTR, IBV_QPS_RTR),
	SAME(QHCA_QPS_RTS, IBV_QPS_RTS),
	SAME(QHCA_QPS_SQD, IBV_QPS_SQD),
	SAME(QHCA_QPS_SQE, IBV_QPS_SQE),
	SAME(QHCA_QPS_ERR, IBV_QPS_ERR),
	SAME(QHCA_QPT_RC, IBV_QPT_RC),
	SAME(QHCA_QPT_UC, IBV_QPT_UC),
	SAME(QHCA_QPT_UD, IBV_QPT_UD),
};

static const struct same attr_mask[] = {
	SAME(QHCA_QP_STATE, IBV_QP_STATE),
	SAME(QHCA_QP_CUR_STATE, IBV_QP_CUR_STATE),
	SAME(QHCA_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY),
	SAME(QHCA_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS),
	SAME(QHCA_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX),
	SAME(QHCA_QP_PORT, IBV_QP_PORT),
	SAME(QHCA_QP_QKEY, IBV_QP_QKEY),
	SAME(QHCA_QP_AV, IBV_QP_AV),
	SAME(QHCA_QP_PATH_MTU, IBV_QP_PATH_MTU),
	SAME(QHCA_QP_TIMEOUT, IBV_QP_TIMEOUT),
	SAME(QHCA_QP_RETRY_CNT, IBV_QP_RETRY_CNT),
	SAME(QHCA_QP_RNR_RETRY, IBV_QP_RNR_RETRY),
	SAME(QHCA_QP_RQ_PSN, IBV_QP_RQ_PSN),
	SAME(QHCA_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC),
	SAME(QHCA_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER),
	SAME(QHCA_QP_SQ_PSN, IBV_QP_SQ_PSN),
	SAME(QHCA_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC),
	SAME(QHCA_QP_DEST_QPN, IBV_QP_DEST_QPN),
};

static void compare(const struct same *s, size_t n)
{
	for (; n; n--, s++)
		if (s->ours != s->theirs)
			FAIL("%s is %ld, verbs has %ld", s->name, s->ours,
			     s->theirs);
}

TEST(statuses, "contract: completion statuses are those of verbs")
{
	compare(wc_status, ARRAY_SIZE(wc_status));
}

TEST(states, "contract: QP states and types are those of verbs")
{
	compare(qp_state, ARRAY_SIZE(qp_state));
}

TEST(masks, "contract: attribute masks are those of verbs")
{
	compare(attr_mask, ARRAY_SIZE(attr_mask));
}

TEST(fields, "contract: QHCA_PREP and QHCA_GET undo each other")
{
	const uint64_t masks[] = {
		QHCA_DB_OBJ, QHCA_DB_SOLICITED, QHCA_DB_INDEX,
		QHCA_VERSION_MAJOR, QHCA_VERSION_MINOR, QHCA_EQ_CAPS_LOG_MAX,
		QHCA_STATUS_LINK_UP,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		uint64_t max = QHCA_GET(masks[i], ~0ull), v;

		for (v = 0; v <= 3; v++) {
			uint64_t want = v == 3 ? max : v & max;

			CHECK_EQ(QHCA_GET(masks[i], QHCA_PREP(masks[i], want)),
				 want);
			CHECK_EQ(QHCA_PREP(masks[i], want) & ~masks[i], 0);
		}
		CHECK_EQ(QHCA_PREP(masks[i], max), masks[i]);
	}
}

TEST(doorbell, "contract: doorbell fields do not overlap and fill offsets of 8")
{
	const unsigned int regs[] = {
		QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_SRQ, QHCA_DB_CQ_ARM,
		QHCA_DB_EQ, QHCA_DB_CMD, QHCA_DB_ETH,
	};
	size_t i, j;

	CHECK_EQ(QHCA_DB_OBJ & QHCA_DB_SOLICITED, 0);
	CHECK_EQ((QHCA_DB_OBJ | QHCA_DB_SOLICITED) & QHCA_DB_INDEX, 0);
	CHECK_EQ(QHCA_DB_OBJ, QHCA_OBJ_MASK);
	for (i = 0; i < ARRAY_SIZE(regs); i++) {
		CHECK_EQ(regs[i] % 8, 0);
		CHECK(regs[i] < QHCA_DB_PAGE_SIZE);
		for (j = 0; j < i; j++)
			CHECK(regs[i] != regs[j]);
	}
}

TEST(overlay, "contract: members that share an offset")
{
	struct qhca_sq_wqe wqe = { 0 };
	struct qhca_cmd cmd = { 0 };

	/* The key to invalidate is in the place of immediate data. */
	CHECK_EQ(offsetof(struct qhca_sq_wqe, imm),
		 offsetof(struct qhca_sq_wqe, inv_key));
	CHECK_EQ(offsetof(struct qhca_cqe, imm),
		 offsetof(struct qhca_cqe, inv_key));
	/* RDMA and atomics have address and key at the same offsets. */
	CHECK_EQ(offsetof(struct qhca_sq_wqe, rdma.addr),
		 offsetof(struct qhca_sq_wqe, atomic.addr));
	CHECK_EQ(offsetof(struct qhca_sq_wqe, rdma.rkey),
		 offsetof(struct qhca_sq_wqe, atomic.rkey));
	/* Every command body fits its 48 bytes. */
	CHECK_EQ(sizeof(cmd.body), 48);
	CHECK(sizeof(cmd.reg_mr) <= sizeof(cmd.body));
	CHECK(sizeof(cmd.create_cq) <= sizeof(cmd.body));
	CHECK(sizeof(cmd.set_gid) <= sizeof(cmd.body));
	CHECK_EQ(sizeof(wqe.ud), 48);
}

TEST(counters, "contract: every counter has a different name")
{
	int i, j;

	for (i = 0; i < QHCA_CNT_MAX; i++) {
		REQUIRE(qhca_counter_names[i]);
		for (j = 0; j < i; j++)
			CHECK(strcmp(qhca_counter_names[i],
				     qhca_counter_names[j]));
	}
}
