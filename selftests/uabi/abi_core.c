// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of programs that are newer than the driver: what it does not know is refused unless it
 * says nothing, and of an answer it fills in all.
 */
#include "lib/uverbs.h"

#define PAGE	4096

static struct uv uv;

/* ---- verbs for which the driver has no request */

static int alloc_pd(const void *drv, size_t len, void *resp, size_t resp_len)
{
	struct ib_uverbs_alloc_pd req = {};

	return uv_command(&uv, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), drv, len, resp,
			  resp_len);
}

static int reg_mr(const void *drv, size_t len, void *resp, size_t resp_len)
{
	void *mem = uv_mem(PAGE);
	struct ib_uverbs_reg_mr req = {
		.start = (uintptr_t)mem, .length = PAGE, .hca_va = (uintptr_t)mem,
		.pd_handle = uv.pd, .access_flags = LOCAL,
	};

	return uv_command(&uv, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req), drv, len, resp,
			  resp_len);
}

static int alloc_mw(const void *drv, size_t len, void *resp, size_t resp_len)
{
	struct ib_uverbs_alloc_mw req = { .pd_handle = uv.pd, .mw_type = IBV_MW_TYPE_1 };

	return uv_command(&uv, IB_USER_VERBS_CMD_ALLOC_MW, &req, sizeof(req), drv, len, resp,
			  resp_len);
}

static int open_xrcd(const void *drv, size_t len, void *resp, size_t resp_len)
{
	struct ib_uverbs_open_xrcd req = { .fd = -1, .oflags = 0100 };	/* O_CREAT */

	return uv_command(&uv, IB_USER_VERBS_CMD_OPEN_XRCD, &req, sizeof(req), drv, len, resp,
			  resp_len);
}

static const struct {
	const char *name;
	int (*call)(const void *drv, size_t len, void *resp, size_t resp_len);
	size_t core, drv;	/* bytes of the answer */
} verbs[] = {
	{ "alloc_pd", alloc_pd, sizeof(struct ib_uverbs_alloc_pd_resp),
	  sizeof(struct qhca_alloc_pd_resp) },
	{ "reg_mr", reg_mr, sizeof(struct ib_uverbs_reg_mr_resp), 0 },
	{ "alloc_mw", alloc_mw, sizeof(struct ib_uverbs_alloc_mw_resp), 0 },
	{ "open_xrcd", open_xrcd, sizeof(struct ib_uverbs_open_xrcd_resp), 0 },
};

TEST_ROWS(no_request, "abi: a request that the driver does not have must be 0", verbs)
{
	uint32_t drv[4] = {}, resp[16];

	uv = uv_open(dev_open_qhca());
	CHECK_ERR(row->call(NULL, 0, resp, row->core + row->drv), 0);
	CHECK_ERR(row->call(drv, sizeof(drv), resp, row->core + row->drv), 0);
	drv[3] = 1;
	uv_check_refused(row->call(drv, sizeof(drv), resp, row->core + row->drv), EOPNOTSUPP);
}

TEST_ROWS(answer, "abi: an answer is filled with 0 behind what the driver knows", verbs)
{
	uint8_t resp[64];
	size_t i;

	uv = uv_open(dev_open_qhca());
	memset(resp, 0xee, sizeof(resp));
	CHECK_ERR(row->call(NULL, 0, resp, row->core + row->drv + 8), 0);
	for (i = row->core + row->drv; i < row->core + row->drv + 8; i++)
		CHECK_EQ(resp[i], 0);
	CHECK_EQ(resp[i], 0xee);
}

/* ---- memory of rings by attributes of the core, in the order of its enumeration */

static const struct {
	const char *name;
	uint16_t attr;
} ring_attrs[] = {
	{ "address", 8 }, { "length", 9 }, { "file", 10 }, { "offset", 11 }, { "memory", 12 },
};

TEST_ROWS(rings, "abi: create_cq with a ring that the core describes is refused", ring_attrs)
{
	struct qhca_create_cq_req req;

	uv = uv_open(dev_open_qhca());
	req = uv_cq_req(uv_mem(2 * PAGE), 6);
	CHECK_ERR(uv_create_cq_with(&uv, 64, &req, 0, 0), 0);
	uv_check_refused(uv_create_cq_with(&uv, 64, &req, row->attr, (uintptr_t)uv_mem(PAGE)), 0);
}
