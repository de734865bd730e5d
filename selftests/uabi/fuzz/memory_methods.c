// SPDX-License-Identifier: GPL-2.0
/* Memory regions, windows, device memory. */
#include "fuzz.h"

static uint32_t access_flags(void)
{
	static const uint32_t flags[] = {
		0, IBV_ACCESS_LOCAL_WRITE, REMOTE, REMOTE, REMOTE | IBV_ACCESS_REMOTE_ATOMIC,
		REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING,
		REMOTE | IBV_ACCESS_FLUSH_GLOBAL, REMOTE | IBV_ACCESS_ON_DEMAND,
		REMOTE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return odd() ? (one_in(2) ? 1u << below(32) : (uint32_t)nonsense()) :
		       flags[below(ARRAY_SIZE(flags))];
}

/* Returns mostly a few pages, at any offset. */
static void range(uint64_t *start, uint64_t *length, uint64_t *iova)
{
	uint32_t len = 1 + below(one_in(8) ? 2u << 20 : 20 * PAGE);

	*length = number(len, fuzz.attr.max_mr_size);
	*start = address(len) + below(PAGE);
	*iova = *start;
	if (one_in(3))
		*iova = (chance() & ~(uint64_t)(PAGE - 1)) + *start % PAGE;
	if (odd())
		*iova = nonsense();
}

static bool fill_mr(struct call *c)
{
	struct ib_uverbs_reg_mr *req = (void *)c->in;
	uint64_t start, length, iova;

	range(&start, &length, &iova);
	req->start = start;
	req->length = length;
	req->hca_va = iova;
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->access_flags = access_flags();
	if (req->access_flags & IBV_ACCESS_ON_DEMAND && one_in(3)) {
		/* All memory of the process. */
		iova = 0;
		req->start = 0;
		req->hca_va = 0;
		req->length = UINT64_MAX;
		length = 1ull << 40;
	}
	c->made.type = req->access_flags;
	c->made.key = req->access_flags & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	c->made.len = length;
	return true;
}

static void done_mr(struct call *c)
{
	struct ib_uverbs_reg_mr_resp *resp = (void *)c->out;

	c->made.handle = resp->mr_handle;
	c->made.num = resp->lkey;
}

static bool fill_rereg(struct call *c)
{
	struct ib_uverbs_rereg_mr *req = (void *)c->in;
	uint64_t start, length, iova;

	range(&start, &length, &iova);
	req->mr_handle = handle(UVERBS_OBJECT_MR, c->ctx);
	req->flags = number(1 + below(7), 8);
	req->start = start;
	req->length = length;
	req->hca_va = iova;
	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->access_flags = access_flags();
	return true;
}

static bool fill_mw(struct call *c)
{
	struct ib_uverbs_alloc_mw *req = (void *)c->in;

	req->pd_handle = handle(UVERBS_OBJECT_PD, c->ctx);
	req->mw_type = number(1 + below(2), 3);
	c->made.type = req->mw_type;
	return true;
}

static void done_mw(struct call *c)
{
	struct ib_uverbs_alloc_mw_resp *resp = (void *)c->out;

	c->made.handle = resp->mw_handle;
	c->made.num = resp->rkey;
}

/* ---- by ioctl ---- */

static bool fill_dm(struct call *c)
{
	uint64_t len = number(1 + below(1u << 16), fuzz.attr.max_mr_size);
	uint32_t align = number(below(13), 20);

	attr_obj(c, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	attr_number(c, UVERBS_ATTR_ALLOC_DM_LENGTH, len);
	attr_in(c, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &align, sizeof(align));
	attr_out(c, QHCA_ATTR_ALLOC_DM_RESP, sizeof(struct qhca_alloc_dm_resp));
	return true;
}

static void done_dm(struct call *c)
{
	const struct qhca_alloc_dm_resp *resp = (void *)c->out;

	c->made.handle = attr_result(c, UVERBS_ATTR_ALLOC_DM_HANDLE);
	c->made.key = resp->mmap_key;
	c->made.len = resp->mmap_len;
}

static bool fill_dm_query(struct call *c)
{
	attr_obj(c, QHCA_ATTR_DM_QUERY_HANDLE, handle(UVERBS_OBJECT_DM, c->ctx));
	attr_out(c, QHCA_ATTR_DM_QUERY_RESP, sizeof(struct qhca_query_dm_resp));
	return true;
}

static bool fill_dm_mr(struct call *c)
{
	struct obj *dm = live(UVERBS_OBJECT_DM, c->ctx);
	/* If the answer was written to another address, the length may be nonsense. */
	uint32_t len = dm && (uint32_t)dm->len ? dm->len : PAGE;
	uint64_t offset = number(below(len), len), length = number(below(len - offset % len), len);
	uint32_t access = access_flags() | (odd() ? 0 : IBV_ACCESS_ZERO_BASED);

	attr_obj(c, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	attr_number(c, UVERBS_ATTR_REG_DM_MR_OFFSET, offset);
	attr_number(c, UVERBS_ATTR_REG_DM_MR_LENGTH, length);
	attr_obj(c, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	attr_in(c, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &access, sizeof(access));
	attr_obj(c, UVERBS_ATTR_REG_DM_MR_DM_HANDLE,
		 dm && !odd() ? dm->handle : handle(UVERBS_OBJECT_DM, c->ctx));
	attr_out(c, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4);
	attr_out(c, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4);
	c->made.len = length;
	return true;
}

/* Used for both kinds of region. */
static void done_ioctl_mr(struct call *c)
{
	c->made.handle = attr_result(c, UVERBS_ATTR_REG_DM_MR_HANDLE);
	c->made.num = c->out[0];
}

static bool fill_dmabuf(struct call *c)
{
	uint64_t offset = below(2 * PAGE), len = number(1 + below(2 * PAGE), 4 * PAGE);
	uint64_t iova = (uint64_t)below(1 << 20) * PAGE + offset % PAGE;
	uint32_t access = access_flags(), fd = number(fuzz.dmabuf, 64);

	if (fuzz.dmabuf < 0)
		return false;
	attr_obj(c, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	attr_obj(c, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	attr_number(c, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, number(offset, 4 * PAGE));
	attr_number(c, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, len);
	attr_number(c, UVERBS_ATTR_REG_DMABUF_MR_IOVA, odd() ? nonsense() : iova);
	attr_in(c, UVERBS_ATTR_REG_DMABUF_MR_FD, &fd, sizeof(fd));
	attr_in(c, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &access, sizeof(access));
	attr_out(c, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4);
	attr_out(c, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4);
	c->made.key = iova;
	c->made.len = len;
	return true;
}

static bool fill_query_mr(struct call *c)
{
	attr_obj(c, UVERBS_ATTR_QUERY_MR_HANDLE, handle(UVERBS_OBJECT_MR, c->ctx));
	attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4);
	attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4);
	attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8);
	attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8);
	return true;
}

static bool fill_advise(struct call *c)
{
	struct ib_uverbs_sge *sge = (void *)c->in;
	uint32_t flags = number(below(2), 1);
	struct obj *mr = NULL;
	unsigned int i;

	for (i = 0; i < 8 && !(mr && mr->type & IBV_ACCESS_ON_DEMAND); i++)
		mr = live(UVERBS_OBJECT_MR, c->ctx);
	sge->addr = mr && mr->key && !one_in(4) ? mr->key : address(PAGE);
	sge->length = number(1 + below(PAGE), mr ? mr->len : PAGE);
	sge->lkey = mr && !odd() ? mr->num : some_key();
	attr_obj(c, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, handle(UVERBS_OBJECT_PD, c->ctx));
	attr_number(c, UVERBS_ATTR_ADVISE_MR_ADVICE, number(below(3), 3));
	attr_in(c, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags));
	attr_in(c, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, sizeof(*sge));
	return true;
}

static const struct method methods[] = {
	{ COMMAND(REG_MR, struct ib_uverbs_reg_mr, struct ib_uverbs_reg_mr_resp),
	  .weight = 10, .also = { EOVERFLOW }, .fill = fill_mr, .done = done_mr,
	  .makes = UVERBS_OBJECT_MR },
	{ COMMAND(REREG_MR, struct ib_uverbs_rereg_mr, struct ib_uverbs_rereg_mr_resp),
	  .weight = 8, .also = { EOVERFLOW }, .fill = fill_rereg },
	{ COMMAND(ALLOC_MW, struct ib_uverbs_alloc_mw, struct ib_uverbs_alloc_mw_resp),
	  .weight = 5, .fill = fill_mw, .done = done_mw, .makes = UVERBS_OBJECT_MW },
	{ IOCTL(DM, DM_ALLOC), .weight = 5, .fill = fill_dm, .done = done_dm,
	  .makes = UVERBS_OBJECT_DM },
	{ .name = "ioctl DM_QUERY", .ioctl = true, .object = UVERBS_OBJECT_DM,
	  .cmd = QHCA_METHOD_DM_QUERY, .weight = 2, .fill = fill_dm_query },
	{ IOCTL(MR, DM_MR_REG), .weight = 4, .fill = fill_dm_mr, .done = done_ioctl_mr,
	  .makes = UVERBS_OBJECT_MR },
	{ IOCTL(MR, REG_DMABUF_MR), .weight = 4, .fill = fill_dmabuf, .done = done_ioctl_mr,
	  .makes = UVERBS_OBJECT_MR },
	{ IOCTL(MR, QUERY_MR), .weight = 2, .fill = fill_query_mr },
	{ IOCTL(MR, ADVISE_MR), .weight = 4, .fill = fill_advise },
};

const struct table memory_methods = { methods, ARRAY_SIZE(methods) };
