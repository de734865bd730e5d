// SPDX-License-Identifier: GPL-2.0
/* Imports contexts, PDs and MRs. */
#include <stdlib.h>
#include <unistd.h>

#include "import.h"

struct dev *dev_import(struct dev *from)
{
	struct dev *d = malloc(sizeof(*d));
	int fd = dup(from->ctx->cmd_fd);

	REQUIRE(d && fd >= 0);
	*d = *from;
	d->ctx = ibv_import_device(fd);
	REQUIRE(d->ctx);
	d->pd = ibv_import_pd(d->ctx, from->pd->handle);
	REQUIRE(d->pd);
	return d;
}

struct buf buf_import(struct dev *d, const struct buf *from)
{
	struct buf b = *from;

	b.mr = ibv_import_mr(d->pd, from->mr->handle);
	REQUIRE(b.mr);
	return b;
}

struct pair pair_across(struct dev *a, struct dev *b, enum ibv_qp_type type)
{
	struct qp_opts o = QP_OPTS;
	struct pair p = { .dev = a };

	o.type = type;
	p.a = end_new(a, &o);
	p.b = end_new(b, &o);
	pair_connect(&p, &CONN);
	return p;
}

void write_half(struct end *from, const struct buf *b, uint32_t seed)
{
	struct ibv_sge sge = buf_sge(b, 0, IMPORT_MSG);
	uint64_t to = (uintptr_t)b->addr + b->len / 2;
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, to,
					b->mr->rkey);

	fill(b->addr, IMPORT_MSG, seed);
	REQUIRE_OK(post_send(from, &wr));
	poll_ok(from->send_cq, 1);
	check_fill(b->addr + b->len / 2, IMPORT_MSG, seed, "written");
}
