// SPDX-License-Identifier: GPL-2.0
/* Memory windows. */
#include "window.h"

struct dev *dev_open_mw(enum ibv_mw_type type)
{
	struct dev *d = dev_open();
	unsigned int cap = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW :
						   IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	if (!(d->attr.device_cap_flags & cap))
		test_skip("no memory windows of type %d", type);
	return d;
}

struct ibv_mw *mw_new(struct dev *d, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, type);

	REQUIRE(mw);
	return mw;
}

struct ibv_mw_bind_info mw_part(const struct buf *b, size_t off, size_t len,
				int access)
{
	return (struct ibv_mw_bind_info){
		.mr = b->mr,
		.addr = (uintptr_t)b->addr + off,
		.length = len,
		.mw_access_flags = access,
	};
}

/* Type 2 only: binds with a key that the caller chooses. */
static enum ibv_wc_status bind_key(struct end *e, struct ibv_mw *mw, uint32_t rkey,
				   struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = info;
	REQUIRE_OK(post_send(e, &wr));
	mw->rkey = rkey;
	return poll_get(e->send_cq).status;
}

enum ibv_wc_status mw_bind(struct end *e, struct ibv_mw *mw,
			   struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = info,
	};

	if (mw->type == IBV_MW_TYPE_2)
		return bind_key(e, mw, ibv_inc_rkey(mw->rkey), info);
	REQUIRE_OK(ibv_bind_mw(e->qp, mw, &bind));
	return poll_get(e->send_cq).status;
}

enum ibv_wc_status local_inv(struct end *e, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = rkey;
	REQUIRE_OK(post_send(e, &wr));
	return poll_get(e->send_cq).status;
}

enum ibv_wc_status rdma(struct end *e, enum ibv_wr_opcode opcode,
			const struct buf *b, uint32_t len, const void *raddr,
			uint32_t rkey)
{
	struct ibv_sge sge = buf_sge(b, 0, len);
	struct ibv_send_wr wr = wr_rdma(1, opcode, &sge, 1, (uintptr_t)raddr,
					rkey);

	REQUIRE_OK(post_send(e, &wr));
	return poll_get(e->send_cq).status;
}
