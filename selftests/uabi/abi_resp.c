// SPDX-License-Identifier: GPL-2.0
/*
 * User ABI between a driver and a provider of different versions: the response is shorter or longer
 * than the driver expects.
 */
#include <stdlib.h>

#include "lib/uverbs.h"

#define PAGE	4096
#define FILL	0xee
#define MORE	16

static struct uv open_with_pd(void)
{
	return uv_open(dev_open_qhca());
}

static struct uv open_file(void)
{
	return uv_open_file(dev_open_qhca());
}

static int alloc_pd(struct uv *uv)
{
	uint32_t handle;

	return uv_alloc_pd(uv, &handle);
}

static int create_cq(struct uv *uv)
{
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct uv_cq cq;

	return uv_create_cq(uv, 64, &req, sizeof(req), &cq);
}

static int create_qp(struct uv *uv)
{
	const struct ibv_qp_cap cap = { 16, 16, 4, 1, 0 };
	struct qhca_create_cq_req cq_req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct qhca_create_qp_req req = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	struct uv plain = *uv;
	struct uv_cq cq;
	struct uv_qp qp;

	plain.resp = NULL;
	plain.resp_more = 0;
	REQUIRE_OK(uv_create_cq(&plain, 64, &cq_req, sizeof(cq_req), &cq));
	return uv_create_qp(uv, &cq, &cap, &req, sizeof(req), &qp);
}

static int create_srq(struct uv *uv)
{
	struct qhca_create_srq_req req = {
		.buf_addr = (uintptr_t)uv_mem(PAGE),
		.buf_len = PAGE,
		.log_size = 4,
		.log_stride = 5,
	};
	struct uv_srq srq;

	return uv_create_srq(uv, 16, 1, &req, sizeof(req), &srq);
}

#define ROW(call, core, drv, open)						\
	{ #call, call, open,							\
	  offsetof(struct { struct core c; struct drv d; }, d), sizeof(struct drv) }

static const struct verb {
	const char *name;
	int (*call)(struct uv *uv);
	struct uv (*open)(void);
	size_t at, len;		/* where the response has the driver's part */
} verbs[] = {
	ROW(uv_get_context, ib_uverbs_get_context_resp, qhca_alloc_ucontext_resp, open_file),
	ROW(alloc_pd, ib_uverbs_alloc_pd_resp, qhca_alloc_pd_resp, open_with_pd),
	ROW(create_cq, ib_uverbs_create_cq_resp, qhca_create_cq_resp, open_with_pd),
	ROW(create_qp, ib_uverbs_create_qp_resp, qhca_create_qp_resp, open_with_pd),
	ROW(create_srq, ib_uverbs_create_srq_resp, qhca_create_srq_resp, open_with_pd),
};

/* Make the response @more bytes longer than the driver expects, and return the driver's part. */
static uint8_t *answer(const struct verb *v, int more)
{
	struct uv uv = v->open();
	uint8_t *buf = malloc(512);

	REQUIRE(buf);
	memset(buf, FILL, 512);
	uv.resp = buf;
	uv.resp_more = more;
	REQUIRE_OK(v->call(&uv));
	return buf + v->at;
}

static bool all(const uint8_t *p, size_t len, uint8_t val)
{
	while (len && *p == val) {
		p++;
		len--;
	}
	return !len;
}

TEST_ROWS(shorter, "abi: an older provider has less room for the response", verbs)
{
	size_t len;
	uint8_t *p;

	for (len = 0; len <= row->len; len += 4) {
		p = answer(row, (int)len - (int)row->len);
		CHECK(all(p + len, MORE, FILL));
		/* All of it is written, be it with zeroes. */
		CHECK(!len || !all(p, 4, FILL));
		CHECK(len < row->len || !all(p + len - 4, 4, FILL));
	}
}

TEST_ROWS(longer, "abi: a newer provider finds zeroes in unknown members", verbs)
{
	uint8_t *p = answer(row, MORE);

	CHECK(!all(p, 4, FILL));
	CHECK(all(p + row->len, MORE, 0));
	CHECK(all(p + row->len + MORE, MORE, FILL));
}
