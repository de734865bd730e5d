/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The PTP clock is arithmetic: struct qhca_clock_info says what time it is at some device time, and
 * how fast it runs. Plain arithmetic without a device, which the selftests also compile.
 */
#ifndef NET_QHCA_CLOCK_H
#define NET_QHCA_CLOCK_H

#include <linux/types.h>
#include <rdma/qhca-abi.h>

/* frac of 1 ns; mult of the nominal rate */
#define QHCA_CLOCK_ONE		((u64)1 << QHCA_CLOCK_SHIFT)

/* ns that the system's clock and the device's may drift apart while the device is down. */
#define QHCA_CLOCK_DRIFT	1000000000ll

/**
 * qhca_clock_convert - convert device time to the time of the PTP clock
 * @base: the clock
 * @cycles: device time, before or after @base
 * @frac: filled in with the fraction, in 1 / QHCA_CLOCK_ONE ns, or 0 before @base; or NULL
 *
 * Products have 96 bits, so unlike a struct timecounter the clock needs no refreshing, however long
 * a machine was stopped.
 *
 * Return: ns, rounded down.
 */
static inline u64 qhca_clock_convert(const struct qhca_clock_info *base, u64 cycles, u64 *frac)
{
	u64 delta = cycles - base->cycles;
	bool past = delta >> 63;
	u64 low, high;

	if (past)
		delta = -delta;
	low = (u64)(u32)delta * base->mult;
	high = (delta >> 32) * base->mult << (32 - QHCA_CLOCK_SHIFT);
	/* Round down in both directions. */
	low += past ? QHCA_CLOCK_ONE - 1 - base->frac : base->frac;
	if (frac)
		*frac = past ? 0 : low & (QHCA_CLOCK_ONE - 1);
	high += low >> QHCA_CLOCK_SHIFT;
	return past ? base->nsec - high : base->nsec + high;
}

/**
 * qhca_clock_go_on - go on after the device has been down
 * @base: the clock; changed if need be
 * @mark: device time before that
 * @now: device time after it
 * @slept: ns in between by the system's clock
 *
 * A reset does not stop the device's time. But after hibernation it is another device with an
 * unrelated time; then the clock advances by the system's.
 *
 * Return: whether @base has changed.
 */
static inline bool qhca_clock_go_on(struct qhca_clock_info *base, u64 mark, u64 now, u64 slept)
{
	s64 drift = now - mark - slept;

	if (drift > -QHCA_CLOCK_DRIFT && drift < QHCA_CLOCK_DRIFT)
		return false;
	base->nsec = qhca_clock_convert(base, mark, &base->frac) + slept;
	base->cycles = now;
	return true;
}

#endif /* NET_QHCA_CLOCK_H */
