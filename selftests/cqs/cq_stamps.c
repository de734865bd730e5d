// SPDX-License-Identifier: GPL-2.0
/* Timestamps of completions. hca/ptp.c has more about those by the PTP clock. */
#define _LARGEFILE64_SOURCE	/* mmap64() */
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/phc.h"

#define MS	1000000ull		/* ns */

/* Wall-clock time of completions is the PTP clock's, or else the system's. */
static uint64_t wall_ns(struct dev *d)
{
	struct timespec ts;
	struct phc phc;

	if (!phc_find(d, &phc)) {
		clock_gettime(CLOCK_REALTIME, &ts);
	} else {
		REQUIRE(!clock_gettime(phc.id, &ts));
		close(phc.fd);
	}
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

TEST(raw_clock, "C-030 the device's clock runs, in nanoseconds")
{
	struct ibv_values_ex v = { .comp_mask = 0 };
	struct dev *d = dev_open_qhca();
	struct ibv_device_attr_ex attr;
	uint64_t before, after;
	int64_t wall;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	CHECK(attr.completion_timestamp_mask == UINT64_MAX);
	CHECK_EQ(attr.hca_core_clock, 1000000);		/* kHz */
	wall = time_ms();
	before = device_ns(d);
	sleep_ms(100);
	after = device_ns(d);
	wall = time_ms() - wall;
	/* The clock of an emulated machine may be badly calibrated. */
	CHECK(after - before >= 50 * MS);
	CHECK(after - before <= 2 * wall * MS);
	CHECK_ERR(ibv_query_rt_values_ex(d->ctx, &v), 0);
	v.comp_mask = 1 << 5;
	CHECK_ERR(ibv_query_rt_values_ex(d->ctx, &v), EINVAL);
}

TEST(timestamps, "C-030 completions carry device time and wall-clock time")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq_init_attr_ex init = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &init);
	struct ibv_poll_cq_attr attr = { 0 };
	struct pair p = { .dev = d };
	struct qp_opts o = QP_OPTS;
	uint64_t last = 0;
	int i;

	REQUIRE(cq);
	p.a = end_new(d, &o);
	o.recv_cq = ibv_cq_ex_to_cq(cq);
	p.b = end_new(d, &o);
	pair_connect(&p, &CONN);
	for (i = 0; i < 20; i++) {
		uint64_t before = device_ns(d), wall_before = wall_ns(d);
		uint64_t ts, wall, after, wall_after;

		send_empty(&p);
		after = device_ns(d);
		wall_after = wall_ns(d);
		REQUIRE_OK(ibv_start_poll(cq, &attr));
		ts = ibv_wc_read_completion_ts(cq);
		wall = ibv_wc_read_completion_wallclock_ns(cq);
		ibv_end_poll(cq);
		CHECK(before <= ts && ts <= after && ts >= last);
		/* The device reads the two clocks one after the other. */
		CHECK(wall + 50 * MS >= wall_before);
		CHECK(wall <= wall_after + 50 * MS);
		last = ts;
	}
}

/* Counts calls of the kernel: libibverbs uses these functions for them. */
static int kernel_calls;

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	kernel_calls++;
	return syscall(SYS_ioctl, fd, request, arg);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	kernel_calls++;
	return syscall(SYS_write, fd, buf, len);
}

/* The page of the PTP clock is the only one that is mapped just for reading. */
static bool no_clock;

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (no_clock && prot == PROT_READ && flags == MAP_SHARED) {
		errno = EPERM;
		return MAP_FAILED;
	}
	return mmap64(addr, len, prot, flags, fd, off);		/* the library's own */
}

static const struct clock {
	const char *name;
	bool mapped;
} clocks[] = {
	{ "the PTP clock's", true },
	{ "the system's", false },
};

/*
 * The clock of the system is compared with the device's only now and then, so use two CQs; the one
 * without wall-clock time never needs the comparison.
 */
TEST_ROWS(clock_unlocked, "C-030 a CQ is not locked during the system call for the time", clocks)
{
	const uint64_t wall = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	struct ibv_poll_cq_attr attr = { 0 };
	struct qp_opts o = QP_OPTS;
	struct phc phc;
	struct dev *d;
	int i;

	no_clock = !row->mapped;
	d = dev_open_qhca();
	if (row->mapped && !phc_find(d, &phc))
		test_skip("no PTP clock");
	for (i = 0; i < 2; i++) {
		struct ibv_cq_init_attr_ex init = {
			.cqe = 64,
			.wc_flags = IBV_WC_STANDARD_FLAGS | (i ? wall : 0),
		};
		struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &init);
		struct pair p = { .dev = d };
		int locked, before;

		REQUIRE(cq);
		p.a = end_new(d, &o);
		o.recv_cq = ibv_cq_ex_to_cq(cq);
		p.b = end_new(d, &o);
		o.recv_cq = NULL;
		pair_connect(&p, &CONN);
		send_empty(&p);
		before = kernel_calls;
		REQUIRE_OK(ibv_start_poll(cq, &attr));
		locked = kernel_calls;
		if (i)
			CHECK(ibv_wc_read_completion_wallclock_ns(cq) != 0);
		CHECK_EQ(kernel_calls, locked);
		ibv_end_poll(cq);
		CHECK_EQ(kernel_calls - before, row->mapped ? 0 : i);
	}
}
