// SPDX-License-Identifier: GPL-2.0
/*
 * The PTP clock over all times that a counter of 64 bits can have, and when the device has been
 * down. Needs no device: it is the driver's arithmetic. ptp.c has the provider's.
 */
#include <linux/types.h>
#include <stdlib.h>

#include "lib/harness.h"

typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#include <net/qhca/clock.h>

#define SECOND	1000000000ull
#define NOW	(1795729543 * SECOND)

/* Up to 64 bits, small numbers as often as large ones. */
static u64 any(void)
{
	u64 x = (u64)random() << 33 ^ (u64)random() << 11 ^ random();

	return x >> random() % 64;
}

/* In units of 2^-31 ns. */
static __int128 exactly(const struct qhca_clock_info *base, u64 cycles)
{
	return ((__int128)base->nsec << QHCA_CLOCK_SHIFT) + base->frac +
	       (__int128)(s64)(cycles - base->cycles) * base->mult;
}

TEST(convert, "ptp: the conversion is exact for 292 years before and after")
{
	u64 cycles, ns, frac;
	int i;

	srandom(1);
	for (i = 0; i < 300000; i++) {
		struct qhca_clock_info base = {
			.mult = QHCA_CLOCK_ONE / 10 * (9 + random() % 3) + random() % 1000,
			.cycles = any(), .nsec = any(), .frac = any() % QHCA_CLOCK_ONE,
		};

		cycles = random() % 2 ? base.cycles + any() / 2 : base.cycles - any() / 2;
		ns = qhca_clock_convert(&base, cycles, &frac);
		if (ns != (u64)(exactly(&base, cycles) >> QHCA_CLOCK_SHIFT) ||
		    (cycles - base.cycles < INT64_MAX &&
		     frac != (u64)exactly(&base, cycles) % QHCA_CLOCK_ONE)) {
			FAIL("%#llx to %#llx with %#x is %#llx", base.cycles,
			     cycles, base.mult, ns);
			break;
		}
	}
}

static const struct down {
	const char *name;
	u64 mark, now, slept;
	u64 ns;			/* by which the clock advances */
} downs[] = {
	{ "for a moment", 7 * SECOND, 7 * SECOND + 5000, 4000, 5000 },
	{ "and the clocks drift apart", SECOND, 11 * SECOND, 10 * SECOND + 900000000, 10 * SECOND },
	{ "another device, which has just begun", 5000 * SECOND, SECOND, 86400 * SECOND,
	  86400 * SECOND },
	{ "another device, which began long ago", SECOND, 86400 * SECOND, 7 * SECOND, 7 * SECOND },
	{ "another device, whose counter is about to overflow", SECOND, -2ull, 3, 3 },
};

TEST_ROWS(go_on, "ptp: the clock goes on when the device has been down", downs)
{
	struct qhca_clock_info base = { .mult = QHCA_CLOCK_ONE, .cycles = SECOND / 2, .nsec = NOW };
	u64 before = qhca_clock_convert(&base, row->mark, NULL);

	CHECK_EQ(before, NOW + row->mark - SECOND / 2);
	CHECK_EQ(qhca_clock_go_on(&base, row->mark, row->now, row->slept),
		 row->now - row->mark != row->ns);
	CHECK_EQ(base.mult, QHCA_CLOCK_ONE);
	CHECK_EQ(qhca_clock_convert(&base, row->now, NULL) - before, row->ns);
	CHECK_EQ(qhca_clock_convert(&base, row->now + 1000, NULL) - before, row->ns + 1000);
}
