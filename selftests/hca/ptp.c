// SPDX-License-Identifier: GPL-2.0
/*
 * The PTP clock: that it can be read, set and adjusted. Each test leaves it with the system's time.
 * Needs root.
 */
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/phc.h"

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
