// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs return "the value of errno" or NULL, so errno is set after an error, whether the kernel or
 * the provider refused the request.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/window.h"
#include "lib/wr_ex.h"

/* struct rig - an object of each kind: a QP in RESET that uses the SRQ, and a pair in RTS */
struct rig {
	struct dev *d;
	struct ibv_td *td;
	struct ibv_pd *parent;
	struct ibv_srq *srq;
	struct end e;
	struct pair p;
};

static struct rig rig_new(void)
{
	struct rig r = { .d = dev_open_qhca() };
	struct ibv_td_init_attr td = {};
	struct ibv_parent_domain_init_attr pd = { .pd = r.d->pd };
	struct qp_opts o = QP_OPTS;

	r.td = ibv_alloc_td(r.d->ctx, &td);
	REQUIRE(r.td);
	pd.td = r.td;
	r.parent = ibv_alloc_parent_domain(r.d->ctx, &pd);
	REQUIRE(r.parent);
	r.srq = srq_new(r.d, 16, 1);
	o.srq = r.srq;
	o.pd = r.parent;
	r.e = end_new(r.d, &o);
	r.p = pair_ex(r.d, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ, &CONN);
	return r;
}

static int dealloc_pd(struct rig *r)
{
	return ibv_dealloc_pd(r->d->pd);
}

static int dealloc_parent(struct rig *r)
{
	return ibv_dealloc_pd(r->parent);
}

static int dealloc_td(struct rig *r)
{
	return ibv_dealloc_td(r->td);
}

static int destroy_cq(struct rig *r)
{
	return ibv_destroy_cq(r->e.send_cq);
}

static int destroy_srq(struct rig *r)
{
	return ibv_destroy_srq(r->srq);
}

static int resize_cq_none(struct rig *r)
{
	return ibv_resize_cq(r->e.send_cq, 0);
}

static int resize_cq_many(struct rig *r)
{
	return ibv_resize_cq(r->e.send_cq, r->d->attr.max_cqe + 1);
}

static int modify_cq(struct rig *r)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 1u << 31 };

	return ibv_modify_cq(r->e.send_cq, &attr);
}

static int resize_srq(struct rig *r)
{
	struct ibv_srq_attr attr = { .max_wr = r->d->attr.max_srq_wr + 1 };

	return ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR);
}

static int limit_srq(struct rig *r)
{
	struct ibv_srq_attr attr = { .srq_limit = r->d->attr.max_srq_wr + 1 };

	return ibv_modify_srq(r->srq, &attr, IBV_SRQ_LIMIT);
}

static int srq_num(struct rig *r)
{
	uint32_t num;

	return ibv_get_srq_num(r->srq, &num);
}

static int srq_recv(struct rig *r)
{
	struct ibv_recv_wr wr = { .num_sge = 1000 }, *bad;

	return ibv_post_srq_recv(r->srq, &wr, &bad);
}

static int recv_with_srq(struct rig *r)
{
	struct ibv_recv_wr wr = {}, *bad;

	return ibv_post_recv(r->e.qp, &wr, &bad);
}

static int recv_many_sges(struct rig *r)
{
	struct ibv_recv_wr wr = { .num_sge = 1000 }, *bad;

	return ibv_post_recv(r->p.a.qp, &wr, &bad);
}

static int send_in_reset(struct rig *r)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	return post_send(&r->e, &wr);
}

static int send_opcode(struct rig *r)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);

	wr.opcode = IBV_WR_TSO;
	return post_send(&r->p.a, &wr);
}

static int send_full(struct rig *r)
{
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	uint32_t i;
	int err = 0;

	wr.send_flags = 0;
	for (i = 0; i <= r->p.a.cap.max_send_wr && !err; i++)
		err = post_send(&r->p.a, &wr);
	return err;
}

static int send_ex(struct rig *r)
{
	struct ibv_qp_ex *q = wr_start(&r->p.a, 1);
	struct ibv_data_buf buf = { r, 4 };

	ibv_wr_rdma_read(q, 0, 0);
	ibv_wr_set_inline_data_list(q, 1, &buf);
	return ibv_wr_complete(q);
}

static int bind_zero_based(struct rig *r)
{
	struct ibv_mw *mw = mw_new(r->d, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED,
	};

	return ibv_bind_mw(r->p.a.qp, mw, &bind);
}

static int modify_qp(struct rig *r)
{
	return set_state(r->e.qp, IBV_QPS_RTS);
}

static int rt_values(struct rig *r)
{
	struct ibv_values_ex values = { .comp_mask = 1u << 31 };

	return ibv_query_rt_values_ex(r->d->ctx, &values);
}

static int memcpy_dm(struct rig *r)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(r->d->ctx, &attr);
	char buf[8] = {};

	if (!dm && errno == EOPNOTSUPP)
		test_skip("no device memory");
	REQUIRE(dm);
	errno = 0;
	return ibv_memcpy_to_dm(dm, 64, buf, 4);
}

static int query_port(struct rig *r)
{
	struct ibv_port_attr attr;

	return ibv_query_port(r->d->ctx, 2, &attr);
}

static const struct {
	const char *name;
	int (*call)(struct rig *r);
	int err;
} calls[] = {
	{ "ibv_dealloc_pd, in use", dealloc_pd, EBUSY },
	{ "ibv_dealloc_pd of a parent domain in use", dealloc_parent, EBUSY },
	{ "ibv_dealloc_td, in use", dealloc_td, EBUSY },
	{ "ibv_destroy_cq, in use", destroy_cq, EBUSY },
	{ "ibv_destroy_srq, in use", destroy_srq, EBUSY },
	{ "ibv_resize_cq to nothing", resize_cq_none, EINVAL },
	{ "ibv_resize_cq beyond the limit", resize_cq_many, EINVAL },
	{ "ibv_modify_cq, unknown attribute", modify_cq, EINVAL },
	{ "ibv_modify_srq, size beyond the limit", resize_srq, EINVAL },
	{ "ibv_modify_srq, limit beyond the size", limit_srq, EINVAL },
	{ "ibv_get_srq_num of a basic SRQ", srq_num, EINVAL },
	{ "ibv_post_srq_recv, too many SGEs", srq_recv, EINVAL },
	{ "ibv_post_recv to a QP with an SRQ", recv_with_srq, EINVAL },
	{ "ibv_post_recv, too many SGEs", recv_many_sges, EINVAL },
	{ "ibv_post_send in RESET", send_in_reset, EINVAL },
	{ "ibv_post_send, unknown opcode", send_opcode, EINVAL },
	{ "ibv_post_send, queue full", send_full, ENOMEM },
	{ "ibv_wr_complete, READ with inline data", send_ex, EINVAL },
	{ "ibv_bind_mw, zero-based", bind_zero_based, EINVAL },
	{ "ibv_modify_qp, RESET to RTS", modify_qp, EINVAL },
	{ "ibv_query_rt_values_ex, unknown value", rt_values, EINVAL },
	{ "ibv_memcpy_to_dm behind its end", memcpy_dm, EFAULT },
	{ "ibv_query_port, no such port", query_port, EINVAL },
};

TEST_ROWS(value, "J-022 a verb returns the value of errno", calls)
{
	struct rig r = rig_new();
	int err;

	errno = 0;
	err = row->call(&r);
	CHECK_EQ(errno, row->err);
	CHECK_EQ(err, row->err);
}

static void *no_cq(struct rig *r)
{
	return ibv_create_cq(r->d->ctx, 0, NULL, NULL, 0);
}

static void *big_cq(struct rig *r)
{
	return ibv_create_cq(r->d->ctx, r->d->attr.max_cqe + 1, NULL, NULL, 0);
}

static void *big_srq(struct rig *r)
{
	struct ibv_srq_init_attr init = { .attr.max_wr = r->d->attr.max_srq_wr + 1 };

	return ibv_create_srq(r->d->pd, &init);
}

static void *big_qp(struct rig *r)
{
	struct ibv_qp_init_attr init = {
		.send_cq = r->e.send_cq,
		.recv_cq = r->e.send_cq,
		.cap.max_send_wr = r->d->attr.max_qp_wr + 1,
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(r->d->pd, &init);
}

static void *cq_mask(struct rig *r)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 1, .comp_mask = 1u << 31 };

	return ibv_create_cq_ex(r->d->ctx, &init);
}

static void *srq_with(struct rig *r, uint32_t bit)
{
	struct ibv_srq_init_attr_ex init = {
		.attr.max_wr = 1, .attr.max_sge = 1, .pd = r->d->pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | bit,
	};

	return ibv_create_srq_ex(r->d->ctx, &init);
}

static void *srq_mask(struct rig *r)
{
	return srq_with(r, 1u << 31);
}

/* Which libibverbs knows, and we do not. */
static void *srq_tags(struct rig *r)
{
	return srq_with(r, IBV_SRQ_INIT_ATTR_TM);
}

static void *td_mask(struct rig *r)
{
	struct ibv_td_init_attr init = { .comp_mask = 1 };

	return ibv_alloc_td(r->d->ctx, &init);
}

static void *parent_of_parent(struct rig *r)
{
	struct ibv_parent_domain_init_attr init = { .pd = r->parent };

	return ibv_alloc_parent_domain(r->d->ctx, &init);
}

static void *mw_type(struct rig *r)
{
	return ibv_alloc_mw(r->d->pd, 3);
}

static void *ah_port(struct rig *r)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 2 };

	return ibv_create_ah(r->d->pd, &attr);
}

static void *mr_access(struct rig *r)
{
	return ibv_reg_mr(r->d->pd, &r->e, 8, IBV_ACCESS_REMOTE_WRITE);
}

static const struct {
	const char *name;
	void *(*call)(struct rig *r);
	int err;
} nothings[] = {
	{ "ibv_create_cq of no entries", no_cq, EINVAL },
	{ "ibv_create_cq beyond the limit", big_cq, EINVAL },
	{ "ibv_create_srq beyond the limit", big_srq, EINVAL },
	{ "ibv_create_qp beyond the limit", big_qp, EINVAL },
	{ "ibv_create_cq_ex, unknown attribute", cq_mask, EOPNOTSUPP },
	{ "ibv_create_srq_ex, unknown attribute", srq_mask, EOPNOTSUPP },
	{ "ibv_create_srq_ex, tag matching", srq_tags, EOPNOTSUPP },
	{ "ibv_alloc_td, unknown attribute", td_mask, EOPNOTSUPP },
	{ "ibv_alloc_parent_domain around one", parent_of_parent, EINVAL },
	{ "ibv_alloc_mw, unknown type", mw_type, EINVAL },
	{ "ibv_create_ah, no such port", ah_port, EINVAL },
	{ "ibv_reg_mr, remote write without local", mr_access, EINVAL },
};

TEST_ROWS(null, "J-022 errno gives the reason if a verb returns NULL", nothings)
{
	struct rig r = rig_new();

	errno = 0;
	CHECK(!row->call(&r));
	CHECK_EQ(errno, row->err);
}

/* ---- the reason, in the kernel's log ---- */

#define DYNDBG	"/proc/dynamic_debug/control"

/* Whether the log has a new line with @text since the last read from @fd. */
static bool logged(int fd, const char *text)
{
	char line[2048];
	bool found = false;
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = '\0';
		found |= strstr(line, dev_name()) && strstr(line, text);
	}
	return found;
}

static int bad_mtu(struct end *e)
{
	struct ibv_qp_attr a;
	int mask = attr_rtr(&a, e->dev, &CONN);

	a.path_mtu = 7;
	return ibv_modify_qp(e->qp, &a, mask);
}

TEST(reason, "dynamic debug: the kernel's log says why a request was refused")
{
	struct end e = end_in(dev_open_qhca(), &QP_OPTS, IBV_QPS_INIT);
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	if (fd < 0 || access(DYNDBG, W_OK))
		test_skip("needs root, and a kernel with dynamic debug");
	REQUIRE(lseek(fd, 0, SEEK_END) >= 0);
	CHECK_ERR(bad_mtu(&e), EINVAL);
	CHECK(!logged(fd, "path MTU"));
	REQUIRE_OK(write_file(DYNDBG, "module qhca_ib +p"));
	CHECK_ERR(bad_mtu(&e), EINVAL);
	CHECK(logged(fd, "modify QP: path MTU"));
	CHECK_ERR(set_state(e.qp, IBV_QPS_RTS), EINVAL);
	CHECK(logged(fd, "modify QP: type 2, state 1 to 3"));
	REQUIRE_OK(write_file(DYNDBG, "module qhca_ib -p"));
}
