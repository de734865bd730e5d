// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <sys/mman.h>

#include "ondemand.h"

struct dev *odp_open(void)
{
	struct dev *d = dev_open();
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		test_skip("no implicit on-demand paging");
	return d;
}

struct ibv_mr *odp_reg(struct dev *d, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, addr, len, access | IBV_ACCESS_ON_DEMAND);

	REQUIRE(mr);
	return mr;
}

uint8_t *odp_map(size_t len)
{
	void *m = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	REQUIRE(m != MAP_FAILED);
	madvise(m, len, MADV_NOHUGEPAGE);
	return m;
}

void odp_post_write(struct pair *p, const void *from, struct ibv_mr *mr, struct buf *to)
{
	struct ibv_sge sge = { (uintptr_t)from, 64, mr->lkey };
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)to->addr,
					to->mr->rkey);

	REQUIRE_OK(post_send(&p->a, &wr));
}
