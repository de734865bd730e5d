// SPDX-License-Identifier: GPL-2.0
/*
 * A program passes arbitrary requests through the user ABI: it gets only errors, and good requests
 * work afterwards.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include <qhca/queues.h>

#include "lib/uverbs.h"

#define PAGE	4096

static struct dev *dev;

static struct uv open_raw(void)
{
	dev = dev_open_qhca();
	return uv_open(dev);
}

#define CQ_FIELD(member)	UV_FIELD(qhca_create_cq_req, member)
#define QP_FIELD(member)	UV_FIELD(qhca_create_qp_req, member)

static const struct uv_change cq_changes[] = {
	{ "unaligned address", CQ_FIELD(buf_addr), 0x10000040, EINVAL },
	{ "address 0", CQ_FIELD(buf_addr), 0, 0 },
	{ "unmapped address", CQ_FIELD(buf_addr), 0x10000000, EFAULT },
	{ "kernel address", CQ_FIELD(buf_addr), 0xffff888000000000, 0 },
	{ "length 0", CQ_FIELD(buf_len), 0, EINVAL },
	{ "no room for the doorbell record", CQ_FIELD(buf_len),
	  64 * 64 + 63, EINVAL },
	{ "length beyond the mapping", CQ_FIELD(buf_len), 0x7fffffff, EFAULT },
	{ "fewer entries than requested", CQ_FIELD(log_size), 5, EINVAL },
	{ "log size 24", CQ_FIELD(log_size), 24, EINVAL },
	{ "log size 32", CQ_FIELD(log_size), 32, EINVAL },
	{ "log size 2^32-1", CQ_FIELD(log_size), ~0u, EINVAL },
	{ "unknown flags", CQ_FIELD(flags), 2, EOPNOTSUPP },
	{ "reserved bytes", CQ_FIELD(reserved), 1, EOPNOTSUPP },
};

TEST_ROWS(create_cq, "abi: create_cq, bad request", cq_changes)
{
	struct uv uv = open_raw();
	void *mem = uv_mem(2 * PAGE);
	struct qhca_create_cq_req req = uv_cq_req(mem, 6);
	struct uv_cq cq;

	uv_apply(&req, row);
	uv_check_refused(uv_create_cq(&uv, 64, &req, sizeof(req), &cq), row->err);
	req = uv_cq_req(mem, 6);
	CHECK_ERR(uv_create_cq(&uv, 64, &req, sizeof(req), &cq), 0);
	CHECK_EQ(cq.cqe, 64);
}

TEST_ROWS(resize_cq, "abi: resize_cq, bad request", cq_changes)
{
	struct uv uv = open_raw();
	void *old = uv_mem(2 * PAGE), *mem = uv_mem(2 * PAGE);
	struct qhca_create_cq_req req = uv_cq_req(old, 6);
	struct uv_cq cq;

	REQUIRE_OK(uv_create_cq(&uv, 64, &req, sizeof(req), &cq));
	req = uv_cq_req(mem, 6);
	uv_apply(&req, row);
	uv_check_refused(uv_resize_cq(&uv, &cq, 64, &req, sizeof(req)), row->err);
	CHECK_EQ(cq.cqe, 64);
	req = uv_cq_req(mem, 6);
	CHECK_ERR(uv_resize_cq(&uv, &cq, 64, &req, sizeof(req)), 0);
	CHECK_ERR(uv_destroy_cq(&uv, &cq), 0);
}

static const struct uv_change qp_changes[] = {
	{ "unaligned SQ address", QP_FIELD(sq_addr), 0x10000800, EINVAL },
	{ "unaligned RQ address", QP_FIELD(rq_addr), 0x10000800, EINVAL },
	{ "unmapped SQ address", QP_FIELD(sq_addr), 0x10000000, EFAULT },
	{ "unmapped RQ address", QP_FIELD(rq_addr), 0x10000000, EFAULT },
	{ "SQ length 0", QP_FIELD(sq_len), 0, EINVAL },
	{ "RQ length 0", QP_FIELD(rq_len), 0, EINVAL },
	{ "SQ length one short", QP_FIELD(sq_len), 16 * 128 - 1, EINVAL },
	{ "RQ length one short", QP_FIELD(rq_len), 16 * 32 + 63, EINVAL },
	{ "SQ smaller than requested", QP_FIELD(sq_log_size), 3, EINVAL },
	{ "RQ smaller than requested", QP_FIELD(rq_log_size), 3, EINVAL },
	{ "SQ log size 20", QP_FIELD(sq_log_size), 20, EINVAL },
	{ "RQ log size 255", QP_FIELD(rq_log_size), 255, EINVAL },
	{ "SQ stride 64", QP_FIELD(sq_log_stride), 6, EINVAL },
	{ "SQ stride 2048", QP_FIELD(sq_log_stride), 11, EINVAL },
	{ "SQ stride 2^64", QP_FIELD(sq_log_stride), 64, EINVAL },
	{ "RQ stride 16", QP_FIELD(rq_log_stride), 4, EINVAL },
	{ "RQ stride 2048", QP_FIELD(rq_log_stride), 11, EINVAL },
	{ "RQ stride 2^255", QP_FIELD(rq_log_stride), 255, EINVAL },
	{ "reserved bytes", QP_FIELD(reserved), 1, 0 },
	{ "a hash without a table", QP_FIELD(rx_hash_types), 1, 0 },
	{ "more reserved bytes", QP_FIELD(reserved2), 1, 0 },
};

static const struct ibv_qp_cap qp_cap = { 16, 16, 4, 1, 0 };

static struct uv_cq good_cq(struct uv *uv)
{
	struct qhca_create_cq_req req = uv_cq_req(uv_mem(2 * PAGE), 6);
	struct uv_cq cq;

	REQUIRE_OK(uv_create_cq(uv, 64, &req, sizeof(req), &cq));
	return cq;
}

TEST_ROWS(create_qp, "abi: create_qp, bad request", qp_changes)
{
	struct uv uv = open_raw();
	struct uv_cq cq = good_cq(&uv);
	void *sq = uv_mem(PAGE), *rq = uv_mem(PAGE);
	struct qhca_create_qp_req req = uv_qp_req(sq, rq, 4);
	struct uv_qp qp;

	uv_apply(&req, row);
	uv_check_refused(uv_create_qp(&uv, &cq, &qp_cap, &req, sizeof(req), &qp),
			 row->err);
	req = uv_qp_req(sq, rq, 4);
	CHECK_ERR(uv_create_qp(&uv, &cq, &qp_cap, &req, sizeof(req), &qp), 0);
	CHECK_ERR(uv_destroy_cq(&uv, &cq), EBUSY);
	CHECK_ERR(uv_destroy_qp(&uv, &qp), 0);
	CHECK_ERR(uv_destroy_cq(&uv, &cq), 0);
}

TEST(stride_caps, "abi: create_qp, SGEs and inline data beyond the stride")
{
	const struct ibv_qp_cap caps[] = {
		{ 16, 16, 5, 1, 0 }, { 16, 16, 4, 2, 0 }, { 16, 16, 4, 1, 65 },
	};
	struct uv uv = open_raw();
	struct uv_cq cq = good_cq(&uv);
	struct qhca_create_qp_req req = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4);
	struct uv_qp qp;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caps); i++)
		uv_check_refused(uv_create_qp(&uv, &cq, &caps[i], &req,
					      sizeof(req), &qp), EINVAL);
}

TEST(lengths, "abi: requests that are too short, or longer with a tail")
{
	struct uv uv = open_raw();
	struct uv_cq cq;
	struct uv_qp qp;
	struct {
		struct qhca_create_cq_req req;
		uint32_t tail[2];
	} c = { .req = uv_cq_req(uv_mem(2 * PAGE), 6) };
	struct {
		struct qhca_create_qp_req req;
		uint32_t tail[2];
	} q = { .req = uv_qp_req(uv_mem(PAGE), uv_mem(PAGE), 4) };
	size_t len;

	for (len = 0; len < offsetof(struct qhca_create_cq_req, flags); len += 4)
		uv_check_refused(uv_create_cq(&uv, 64, &c.req, len, &cq), EINVAL);
	CHECK_ERR(uv_create_cq(&uv, 64, &c.req, len, &cq), 0);
	/* A request of a newer provider is accepted if all unknown bytes are zero. */
	CHECK_ERR(uv_create_cq(&uv, 64, &c, sizeof(c), &cq), 0);
	c.tail[1] = 1;
	uv_check_refused(uv_create_cq(&uv, 64, &c, sizeof(c), &cq), 0);
	c.tail[1] = 0;
	REQUIRE_OK(uv_create_cq(&uv, 64, &c, sizeof(c), &cq));
	for (len = 0; len < offsetof(struct qhca_create_qp_req, rx_hash_types); len += 4)
		uv_check_refused(uv_create_qp(&uv, &cq, &qp_cap, &q.req, len, &qp),
				 EINVAL);
	q.tail[0] = 1;
	uv_check_refused(uv_create_qp(&uv, &cq, &qp_cap, &q, sizeof(q), &qp), 0);
	q.tail[0] = 0;
	CHECK_ERR(uv_create_qp(&uv, &cq, &qp_cap, &q, sizeof(q), &qp), 0);
}

TEST(read_only_rings, "abi: rings in memory that cannot be written")
{
	struct uv uv = open_raw();
	struct uv_cq good = good_cq(&uv), cq;
	void *ro = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	struct qhca_create_cq_req req = uv_cq_req(ro, 6);
	struct qhca_create_qp_req qreq = uv_qp_req(ro, uv_mem(PAGE), 4);
	struct uv_qp qp;

	uv_check_refused(uv_create_cq(&uv, 64, &req, sizeof(req), &cq), EFAULT);
	uv_check_refused(uv_create_qp(&uv, &good, &qp_cap, &qreq, sizeof(qreq),
				      &qp), EFAULT);
}

static bool can_map(struct uv *uv, off_t off, size_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, flags, uv->fd, off);

	if (p == MAP_FAILED)
		return false;
	munmap(p, len);
	return true;
}

TEST(map_page, "J-020 the command file maps only one doorbell page")
{
	struct uv uv = open_raw(), other = uv_open(dev);
	off_t key = uv.ctx.db_mmap_key, off;

	CHECK_EQ(uv.ctx.db_page_size, PAGE);
	CHECK_EQ(key % PAGE, 0);
	CHECK(can_map(&uv, key, PAGE, PROT_WRITE, MAP_SHARED));
	CHECK(!can_map(&uv, key, 2 * PAGE, PROT_WRITE, MAP_SHARED));
	CHECK(!can_map(&uv, key, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE));
	for (off = 0; off < 64 * PAGE; off += PAGE)
		if (off != key)
			CHECK(!can_map(&uv, off, PAGE, PROT_WRITE, MAP_SHARED));
	/* Both contexts may use the same offset for their pages. */
	if ((off_t)other.ctx.db_mmap_key != key)
		CHECK(!can_map(&uv, other.ctx.db_mmap_key, PAGE, PROT_WRITE,
			       MAP_SHARED));
}

TEST(limits, "abi: alloc_ucontext reports what create_qp accepts")
{
	struct uv uv = open_raw();
	struct qp_opts o = QP_OPTS;
	struct end e;

	CHECK_EQ(uv.ctx.max_send_sge, dev->attr.max_sge);
	o.send_sge = uv.ctx.max_send_sge;
	o.recv_sge = uv.ctx.max_recv_sge;
	o.inline_data = uv.ctx.max_inline;
	e = end_new(dev, &o);
	CHECK_EQ(e.cap.max_inline_data, uv.ctx.max_inline);
}
