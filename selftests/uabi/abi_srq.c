// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: a program passes arbitrary requests through the user ABI, and rings
 * arbitrary doorbells.
 */
#include <endian.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "lib/uverbs.h"

#define PAGE	4096
#define MAX_WR	UV_RING_WR
#define MAX_SGE	UV_RING_SGE

static struct dev *dev;

static struct uv open_raw(void)
{
	dev = dev_open_qhca();
	return uv_open(dev);
}

static struct qhca_create_srq_req good_req(void)
{
	return (struct qhca_create_srq_req){
		.buf_addr = (uintptr_t)uv_mem(PAGE),
		.buf_len = 64 * MAX_WR + sizeof(struct qhca_rq_dbrec),
		.log_size = 5, .log_stride = 6,
	};
}

static struct uv_srq good_srq(struct uv *uv)
{
	struct qhca_create_srq_req req = good_req();
	struct uv_srq srq;

	REQUIRE_OK(uv_create_srq(uv, MAX_WR, MAX_SGE, &req, sizeof(req), &srq));
	return srq;
}

#define MODIFY(member)	UV_FIELD(qhca_modify_srq_req, member)

static const struct uv_change creations[] = { UV_RING_CHANGES(qhca_create_srq_req) };

TEST_ROWS(create, "abi: create_srq, bad request", creations)
{
	struct uv uv = open_raw();
	struct qhca_create_srq_req req = good_req();
	struct uv_srq srq;

	uv_apply(&req, row);
	uv_check_refused(uv_create_srq(&uv, MAX_WR, MAX_SGE, &req, sizeof(req),
				       &srq), row->err);
	srq = good_srq(&uv);
	CHECK_ERR(uv_destroy_srq(&uv, &srq), 0);
}

static const struct uv_change resizes[] = {
	{ "unaligned address", MODIFY(buf_addr), 0x10000040, EINVAL },
	{ "unmapped address", MODIFY(buf_addr), 0x10000000, EFAULT },
	{ "length 0", MODIFY(buf_len), 0, EINVAL },
	{ "no room for the doorbell record", MODIFY(buf_len), 64 * 64 + 63, EINVAL },
	{ "fewer WQEs than requested", MODIFY(log_size), 5, EINVAL },
	{ "log size 15", MODIFY(log_size), 15, EINVAL },
	{ "log size 2^32-1", MODIFY(log_size), ~0u, EINVAL },
};

TEST_ROWS(resize, "abi: modify_srq, bad request", resizes)
{
	struct uv uv = open_raw();
	struct uv_srq srq = good_srq(&uv);
	struct qhca_modify_srq_req good = {
		.buf_addr = (uintptr_t)uv_mem(2 * PAGE),
		.buf_len = 64 * 64 + sizeof(struct qhca_rq_dbrec), .log_size = 6,
	};
	struct qhca_modify_srq_req req = good;

	uv_apply(&req, row);
	uv_check_refused(uv_resize_srq(&uv, &srq, 64, &req, sizeof(req)), row->err);
	CHECK_ERR(uv_resize_srq(&uv, &srq, 64, &good, sizeof(good)), 0);
	CHECK_ERR(uv_destroy_srq(&uv, &srq), 0);
}

TEST(lengths, "abi: SRQ requests that are too short, or longer with a tail")
{
	struct uv uv = open_raw();
	struct {
		struct qhca_create_srq_req req;
		uint32_t tail[2];
	} c = { .req = good_req() };
	struct uv_srq srq;
	size_t len;

	for (len = 0; len < sizeof(c.req); len += 4)
		uv_check_refused(uv_create_srq(&uv, MAX_WR, MAX_SGE, &c.req, len,
					       &srq), EINVAL);
	c.tail[1] = 1;
	uv_check_refused(uv_create_srq(&uv, MAX_WR, MAX_SGE, &c, sizeof(c), &srq),
			 EOPNOTSUPP);
	c.tail[1] = 0;
	CHECK_ERR(uv_create_srq(&uv, MAX_WR, MAX_SGE, &c, sizeof(c), &srq), 0);
	for (len = 0; len < sizeof(struct qhca_modify_srq_req); len += 4)
		uv_check_refused(uv_resize_srq(&uv, &srq, 64, &c, len), EINVAL);
}

static void ring(void *page, uint32_t number, uint32_t index)
{
	uv_ring(page, QHCA_DB_SRQ, (uint64_t)index << 32 | number);
}

/* The device executes the command that reads the counter after the doorbells. */
TEST(doorbells, "J-020 doorbells of an SRQ: only on its own page, only for free entries")
{
	struct uv uv = open_raw(), other = uv_open(dev);
	struct uv_srq srq = good_srq(&uv);
	uint64_t bad = hw_counter("bad_doorbell");

	ring(uv.db, srq.srqn, 1);
	ring(uv.db, srq.srqn, 1);
	ring(uv.db, srq.srqn, 10);
	CHECK_EQ(hw_counter("bad_doorbell") - bad, 0);
	ring(uv.db, srq.srqn, 9);		/* backwards */
	ring(uv.db, srq.srqn, 33);		/* beyond the ring */
	ring(uv.db, srq.srqn, 0x80000000);
	ring(other.db, srq.srqn, 11);		/* page of another context */
	CHECK_EQ(hw_counter("bad_doorbell") - bad, 4);
	ring(uv.db, srq.srqn, 32);
	CHECK_EQ(hw_counter("bad_doorbell") - bad, 4);
	REQUIRE_OK(uv_destroy_srq(&uv, &srq));
	ring(uv.db, srq.srqn, 32);
	CHECK_EQ(hw_counter("bad_doorbell") - bad, 5);
}
