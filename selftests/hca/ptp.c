// SPDX-License-Identifier: GPL-2.0
/*
 * The PTP clock: that it can be read, set and adjusted, and that the timestamps of completions are
 * its time. Each test leaves it with the system's time. Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/phc.h"
#include "lib/uverbs.h"

static struct dev *dev;
static struct phc phc;

static void start(void)
{
	dev = dev_open_qhca();
	phc = phc_open(dev);
}

static void finish(void)
{
	close(phc.fd);
	phc = phc_open(dev);
	close(phc.fd);
}

/* struct moment - the clock, read between two looks at the device's time */
struct moment {
	int64_t before, ns, after;
};

static struct moment now(void)
{
	struct moment m = { .before = device_ns(dev) };

	m.ns = phc_ns(&phc);
	m.after = device_ns(dev);
	return m;
}

/* @ns at the rate of @ppm, which may be millions: rounded down. */
static int64_t at_rate(int64_t ns, long ppm)
{
	__int128 product = (__int128)ns * (1000000 + ppm);

	return product / 1000000;
}

/* Fails the test unless the clock has run at the rate of @ppm from @a to @b, and @step more. */
static void check_rate(const struct moment *a, const struct moment *b, long ppm, int64_t step)
{
	int64_t least = at_rate(b->before - a->after, ppm), passed = b->ns - a->ns - step;
	int64_t most = at_rate(b->after - a->before, ppm);

	/* The rate has a resolution of 2^-31. */
	if (passed < least - 2 - (least >> 31) || passed > most + 2 + (most >> 31))
		FAIL("%lld ns passed, not %lld to %lld", (long long)passed, (long long)least,
		     (long long)most);
}

/* ---- the clock ---- */

TEST(caps, "ptp: the clock says what it can do")
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
	const unsigned int hard = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
				  SOF_TIMESTAMPING_RAW_HARDWARE;
	struct ptp_clock_caps caps;

	start();
	REQUIRE(!ioctl(phc.fd, PTP_CLOCK_GETCAPS, &caps));
	CHECK_EQ(caps.max_adj, MAX_PPM * 1000);
	CHECK_EQ(caps.n_alarm, 0);
	CHECK_EQ(caps.n_ext_ts, 0);
	CHECK_EQ(caps.n_per_out, 0);
	CHECK_EQ(caps.pps, 0);
	CHECK_EQ(caps.n_pins, 0);
	CHECK_EQ(caps.cross_timestamping, 0);
	CHECK(ioctl(phc.fd, PTP_ENABLE_PPS, 1) && errno == EOPNOTSUPP);
	REQUIRE_OK(phc_if_ioctl(SIOCETHTOOL, &info));
	CHECK_EQ(info.phc_index, phc.index);
	CHECK_EQ(info.so_timestamping & hard, hard);
	CHECK_EQ(info.tx_types, 1 << HWTSTAMP_TX_OFF | 1 << HWTSTAMP_TX_ON);
	CHECK_EQ(info.rx_filters, 1 << HWTSTAMP_FILTER_NONE | 1 << HWTSTAMP_FILTER_ALL);
}

TEST_ROWS(set, "ptp: the clock can be set, and runs at the rate that was set", phc_eras)
{
	struct moment a, b;

	start();
	REQUIRE_OK(phc_rate(&phc, row->ppm * PPM));
	a.before = device_ns(dev);
	phc_set(&phc, row->ns);
	a.after = device_ns(dev);
	a.ns = row->ns;
	b = now();
	check_rate(&a, &b, row->ppm, 0);
	a = now();
	sleep_ms(300);
	b = now();
	check_rate(&a, &b, row->ppm, 0);
	finish();
}

TEST(no_step, "ptp: a new rate does not change the time")
{
	struct moment a, b;
	int i;

	start();
	for (i = 0; i < 50; i++) {
		long ppm = i % 2 ? MAX_PPM : -MAX_PPM;

		REQUIRE_OK(phc_rate(&phc, ppm * PPM));
		a = now();
		REQUIRE_OK(phc_rate(&phc, ppm * PPM));
		b = now();
		check_rate(&a, &b, ppm, 0);
	}
	finish();
}

TEST(rate_limit, "ptp: a rate above the limit is refused, and changes nothing")
{
	struct moment a, b;

	start();
	REQUIRE_OK(phc_rate(&phc, 1000 * PPM));
	a = now();
	CHECK_ERR(phc_rate(&phc, (MAX_PPM + 1) * PPM), ERANGE);
	CHECK_ERR(phc_rate(&phc, -(MAX_PPM + 1) * PPM), ERANGE);
	sleep_ms(50);
	b = now();
	check_rate(&a, &b, 1000, 0);
	finish();
}

static const struct step {
	const char *name;
	int64_t ns;
} steps[] = {
	{ "forward", 3500000000ll },
	{ "back", -3500000001ll },
	{ "by a nanosecond", 1 },
};

TEST_ROWS(offset, "ptp: the clock can be moved", steps)
{
	struct moment a, b;

	start();
	a = now();
	phc_step(&phc, row->ns);
	b = now();
	check_rate(&a, &b, 0, row->ns);
	finish();
}

TEST(offsets, "ptp: offsets from the system's time can be measured")
{
	struct ptp_sys_offset_extended ext = { .n_samples = 5 };
	unsigned int i;

	start();
	REQUIRE(!ioctl(phc.fd, PTP_SYS_OFFSET_EXTENDED, &ext));
	for (i = 0; i < ext.n_samples; i++) {
		int64_t t[3];
		int j;

		for (j = 0; j < 3; j++)
			t[j] = ext.ts[i][j].sec * PHC_SECOND + ext.ts[i][j].nsec;
		CHECK(t[0] <= t[2]);
		/* It has just been set; emulated clocks may run at rates of their own. */
		CHECK(llabs(t[1] - t[0]) < PHC_SECOND);
	}
}

/* ---- completions ---- */

static struct ibv_cq_ex *wallclock_cq(void)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev->ctx, &init);

	REQUIRE(cq);
	return cq;
}

static struct pair wallclock_pair(struct ibv_cq_ex *cq)
{
	struct pair p = { .dev = dev };
	struct qp_opts o = QP_OPTS;

	p.a = end_new(dev, &o);
	o.recv_cq = ibv_cq_ex_to_cq(cq);
	p.b = end_new(dev, &o);
	pair_connect(&p, &CONN);
	return p;
}

/* Takes the completion; returns its time, and the device's in @raw. */
static int64_t take(struct ibv_cq_ex *cq, int64_t *raw)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int64_t ns;

	REQUIRE_OK(ibv_start_poll(cq, &attr));
	CHECK_EQ(cq->status, IBV_WC_SUCCESS);
	*raw = ibv_wc_read_completion_ts(cq);
	ns = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	return ns;
}

TEST_ROWS(completions, "ptp: C-030 completions have the time of the clock", phc_eras)
{
	struct ibv_cq_ex *cq;
	struct moment a, b;
	struct pair p;
	int i;

	start();
	cq = wallclock_cq();
	p = wallclock_pair(cq);
	REQUIRE_OK(phc_rate(&phc, row->ppm * PPM));
	phc_set(&phc, row->ns);
	for (i = 0; i < 20; i++) {
		struct moment m;

		a = now();
		send_empty(&p);
		b = now();
		m.ns = take(cq, &m.before);
		m.after = m.before;
		CHECK(a.ns <= m.ns && m.ns <= b.ns);
		check_rate(&a, &m, row->ppm, 0);
		check_rate(&m, &b, row->ppm, 0);
	}
	finish();
}

TEST_ROWS(before, "ptp: C-030 completions of before the clock was set have the new time", phc_eras)
{
	struct moment a, m;
	struct ibv_cq_ex *cq;
	struct pair p;

	start();
	cq = wallclock_cq();
	p = wallclock_pair(cq);
	send_empty(&p);
	sleep_ms(100);
	REQUIRE_OK(phc_rate(&phc, row->ppm * PPM));
	phc_set(&phc, row->ns);
	a = now();
	m.ns = take(cq, &m.before);
	m.after = m.before;
	CHECK(m.ns < row->ns);
	check_rate(&m, &a, row->ppm, 0);
	finish();
}

/* ---- the page ---- */

static long page;

static struct uv page_start(void)
{
	struct uv uv;

	start();
	uv = uv_open(dev);
	page = sysconf(_SC_PAGESIZE);
	REQUIRE(uv.ctx.clock_page_size == page);
	return uv;
}

static void *page_map(const struct uv *uv, size_t len, int prot, int flags)
{
	return mmap(NULL, len, prot, flags, uv->fd, uv->ctx.clock_mmap_key);
}

static const struct bad_map {
	const char *name;
	int pages, prot, flags, err;
} bad_maps[] = {
	{ "for writing", 1, PROT_READ | PROT_WRITE, MAP_SHARED, EPERM },
	{ "for execution", 1, PROT_READ | PROT_EXEC, MAP_SHARED, EPERM },
	{ "as a copy", 1, PROT_READ, MAP_PRIVATE, EINVAL },
	{ "two pages", 2, PROT_READ, MAP_SHARED, EINVAL },
};

TEST_ROWS(bad_map, "ptp: the page of the clock is refused", bad_maps)
{
	struct uv uv = page_start();

	errno = 0;
	CHECK(page_map(&uv, row->pages * page, row->prot, row->flags) == MAP_FAILED);
	CHECK_EQ(errno, row->err);
}

TEST(read_only, "ptp: nothing makes the page of the clock writable, or larger")
{
	struct uv uv = page_start();
	void *p = page_map(&uv, page, PROT_READ, MAP_SHARED);
	uint64_t ones = -1ull;
	int fd;

	REQUIRE(p != MAP_FAILED);
	CHECK(mprotect(p, page, PROT_READ | PROT_WRITE) && errno == EACCES);
	CHECK(mprotect(p, page, PROT_READ | PROT_EXEC) && errno == EACCES);
	CHECK(mremap(p, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED);
	fd = open("/proc/self/mem", O_RDWR);
	REQUIRE(fd >= 0);
	CHECK(pwrite(fd, &ones, sizeof(ones), (uintptr_t)p) < 0);
	close(fd);
	CHECK(!ibv_reg_mr(dev->pd, p, page, LOCAL));
}

/* Time at device time @cycles, in units of 2^-31 ns. */
static __int128 exactly(const struct qhca_clock_info *info, uint64_t cycles)
{
	return ((__int128)info->nsec << QHCA_CLOCK_SHIFT) + info->frac +
	       (__int128)(int64_t)(cycles - info->cycles) * info->mult;
}

TEST(exact, "ptp: C-030 new rates lose no fraction of a nanosecond, and completions are exact")
{
	struct uv uv = page_start();
	const struct qhca_clock_info *info = page_map(&uv, page, PROT_READ, MAP_SHARED);
	struct qhca_clock_info was;
	struct ibv_cq_ex *cq;
	struct pair p;
	int64_t raw, ns;
	long i;

	REQUIRE(info != MAP_FAILED);
	cq = wallclock_cq();
	p = wallclock_pair(cq);
	for (i = 0; i < 200; i++) {
		was = *info;
		/* Completions of before the new rate, and of after it. */
		if (i % 2)
			send_empty(&p);
		REQUIRE_OK(phc_rate(&phc, i * 7919 % (2 * MAX_PPM) * PPM - MAX_PPM * PPM + i));
		CHECK(info->frac < 1u << QHCA_CLOCK_SHIFT);
		CHECK(exactly(&was, info->cycles) == exactly(info, info->cycles));
		if (i % 2 == 0)
			send_empty(&p);
		ns = take(cq, &raw);
		CHECK((raw < (int64_t)info->cycles) == i % 2);
		CHECK_EQ(ns, exactly(info, raw) >> QHCA_CLOCK_SHIFT);
	}
	finish();
}

TEST_ROWS(content, "ptp: the page of the clock has the time", phc_eras)
{
	struct uv uv = page_start();
	const struct qhca_clock_info *info = page_map(&uv, page, PROT_READ, MAP_SHARED);
	struct moment a, b;
	uint32_t seq;

	REQUIRE(info != MAP_FAILED);
	seq = info->seq;
	REQUIRE_OK(phc_rate(&phc, row->ppm * PPM));
	phc_set(&phc, row->ns);
	CHECK_EQ(info->seq % 2, 0);
	CHECK_EQ(info->seq - seq, 4);
	CHECK_EQ(info->nsec, row->ns);
	CHECK_EQ(info->frac, 0);
	a = (struct moment){ info->cycles, info->nsec, info->cycles };
	b = now();
	check_rate(&a, &b, row->ppm, 0);
	/* A context that is gone takes no mapping away. */
	close(uv.fd);
	CHECK_EQ(info->nsec, row->ns);
	finish();
}
