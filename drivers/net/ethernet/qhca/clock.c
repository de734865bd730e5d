// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: the PTP hardware clock.
 *
 * The device has a counter of nanoseconds, which stamps completions and cannot be set. So the clock
 * is arithmetic: struct qhca_clock_info converts device time to the time of the clock. Setting or
 * adjusting the clock replaces that structure.
 *
 * Processes that poll completions convert their timestamps themselves: a copy of the structure is
 * in a page that they map.
 */
#include <linux/ptp_clock_kernel.h>

#include <net/qhca/clock.h>

#include "qhca.h"

/* ppb; mult has 32 bits */
#define QHCA_CLOCK_MAX_ADJ	100000000

/**
 * qhca_clock_to_ns - convert device time to the time of the PTP clock
 * @dev: the function
 * @cycles: device time, of a CQE for instance
 *
 * Context: any.
 * Return: nanoseconds since the epoch, if the clock has been set to that.
 */
u64 qhca_clock_to_ns(struct qhca_dev *dev, u64 cycles)
{
	struct qhca_clock *clock = &dev->clock;
	unsigned int seq;
	u64 ns;

	do {
		seq = read_seqbegin(&clock->seq);
		ns = qhca_clock_convert(&clock->base, cycles, NULL);
	} while (read_seqretry(&clock->seq, seq));
	return ns;
}

/* Replace the conversion, here and in the page that processes map. Under @lock. */
static void qhca_clock_set(struct qhca_clock *clock, const struct qhca_clock_info *base)
{
	struct qhca_clock_info *page = clock->page;
	unsigned long flags;

	/* NAPI reads it, perhaps in an interrupt of this CPU. */
	write_seqlock_irqsave(&clock->seq, flags);
	clock->base = *base;
	clock->base.seq += 2;
	WRITE_ONCE(page->seq, clock->base.seq - 1);
	smp_wmb();	/* readers notice the odd number before anything else has changed */
	WRITE_ONCE(page->mult, base->mult);
	WRITE_ONCE(page->cycles, base->cycles);
	WRITE_ONCE(page->nsec, base->nsec);
	WRITE_ONCE(page->frac, base->frac);
	smp_wmb();	/* and the even one when all has */
	WRITE_ONCE(page->seq, clock->base.seq);
	write_sequnlock_irqrestore(&clock->seq, flags);
}

/* Read the device's time. Without a device there is nothing to be read. */
static int qhca_clock_read(struct qhca_dev *dev, struct ptp_system_timestamp *sts, u64 *cycles)
{
	*cycles = qhca_hw_clock(dev, sts);
	return qhca_hw_present(dev) ? 0 : -ENODEV;
}

/* The conversion, as of now: same time, same rate. Under @lock. */
static int qhca_clock_rebase(struct qhca_dev *dev, struct qhca_clock_info *base)
{
	u64 cycles;
	int ret = qhca_clock_read(dev, NULL, &cycles);

	if (ret)
		return ret;
	*base = dev->clock.base;
	base->nsec = qhca_clock_convert(&dev->clock.base, cycles, &base->frac);
	base->cycles = cycles;
	return 0;
}

/* ---- operations of the PTP clock ---- */

static struct qhca_dev *qhca_clock_dev(struct ptp_clock_info *info)
{
	return container_of(info, struct qhca_dev, clock.info);
}

static int qhca_clock_gettimex(struct ptp_clock_info *info, struct timespec64 *ts,
			       struct ptp_system_timestamp *sts)
{
	struct qhca_dev *dev = qhca_clock_dev(info);
	u64 cycles;
	int ret = qhca_clock_read(dev, sts, &cycles);

	if (!ret)
		*ts = ns_to_timespec64(qhca_clock_to_ns(dev, cycles));
	return ret;
}

static int qhca_clock_settime(struct ptp_clock_info *info, const struct timespec64 *ts)
{
	struct qhca_dev *dev = qhca_clock_dev(info);
	struct qhca_clock_info base;
	int ret;

	mutex_lock(&dev->clock.lock);
	ret = qhca_clock_rebase(dev, &base);
	if (!ret) {
		base.nsec = timespec64_to_ns(ts);
		base.frac = 0;
		qhca_clock_set(&dev->clock, &base);
	}
	mutex_unlock(&dev->clock.lock);
	return ret;
}

static int qhca_clock_adjtime(struct ptp_clock_info *info, s64 delta)
{
	struct qhca_clock *clock = &qhca_clock_dev(info)->clock;
	struct qhca_clock_info base;

	mutex_lock(&clock->lock);
	base = clock->base;
	base.nsec += delta;
	qhca_clock_set(clock, &base);
	mutex_unlock(&clock->lock);
	return 0;
}

static int qhca_clock_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	struct qhca_dev *dev = qhca_clock_dev(info);
	struct qhca_clock_info base;
	int ret;

	mutex_lock(&dev->clock.lock);
	ret = qhca_clock_rebase(dev, &base);
	if (!ret) {
		base.mult = adjust_by_scaled_ppm(QHCA_CLOCK_ONE, scaled_ppm);
		qhca_clock_set(&dev->clock, &base);
	}
	mutex_unlock(&dev->clock.lock);
	return ret;
}

/* There are no pins, alarms or pulses. */
static int qhca_clock_enable(struct ptp_clock_info *info, struct ptp_clock_request *req, int on)
{
	return -EOPNOTSUPP;
}

static const struct ptp_clock_info qhca_clock_ops = {
	.owner = THIS_MODULE,
	.name = QHCA_DRV_NAME,
	.max_adj = QHCA_CLOCK_MAX_ADJ,
	.gettimex64 = qhca_clock_gettimex,
	.settime64 = qhca_clock_settime,
	.adjtime = qhca_clock_adjtime,
	.adjfine = qhca_clock_adjfine,
	.enable = qhca_clock_enable,
};

/* ---- its life ---- */

/**
 * qhca_clock_mark - note the time before the device is taken down
 * @dev: the function
 *
 * Context: process.
 */
void qhca_clock_mark(struct qhca_dev *dev)
{
	u64 cycles;

	/* A device that has gone already keeps the last mark. */
	if (qhca_clock_read(dev, NULL, &cycles))
		return;
	dev->clock.mark = cycles;
	dev->clock.mark_boot = ktime_get_boottime_ns();
}

/**
 * qhca_clock_resume - go on after the device has been down
 * @dev: the function, up
 *
 * Context: process.
 */
void qhca_clock_resume(struct qhca_dev *dev)
{
	struct qhca_clock *clock = &dev->clock;
	struct qhca_clock_info base;
	u64 mark = clock->mark;
	u64 slept;

	slept = ktime_get_boottime_ns() - clock->mark_boot;
	qhca_clock_mark(dev);
	mutex_lock(&clock->lock);
	base = clock->base;
	if (qhca_clock_go_on(&base, mark, clock->mark, slept))
		qhca_clock_set(clock, &base);
	mutex_unlock(&clock->lock);
}

/**
 * qhca_clock_index - number of the PTP clock
 * @dev: the function
 *
 * Return: N of /dev/ptpN; -1 if there is none.
 */
int qhca_clock_index(const struct qhca_dev *dev)
{
	return dev->clock.ptp ? ptp_clock_index(dev->clock.ptp) : -1;
}

/**
 * qhca_clock_page - the page with the conversion of device time
 * @dev: the function
 *
 * A mapping needs a reference of its own, taken before the auxiliary device is removed.
 *
 * Return: the page, or NULL if there is no PTP clock.
 */
struct page *qhca_clock_page(struct qhca_dev *dev)
{
	return dev->clock.ptp ? virt_to_page(dev->clock.page) : NULL;
}
EXPORT_SYMBOL(qhca_clock_page);

/**
 * qhca_clock_init - create the PTP clock, which starts with the system's time
 * @dev: the function, up
 *
 * Context: process.
 * Return: 0, also if the kernel has no PTP clocks, or -ENOMEM.
 */
int qhca_clock_init(struct qhca_dev *dev)
{
	struct qhca_clock *clock = &dev->clock;
	struct qhca_clock_info base = { .mult = QHCA_CLOCK_ONE };

	clock->page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!clock->page)
		return -ENOMEM;
	mutex_init(&clock->lock);
	seqlock_init(&clock->seq);
	qhca_clock_mark(dev);
	base.cycles = clock->mark;
	base.nsec = ktime_get_real_ns();
	qhca_clock_set(clock, &base);
	clock->info = qhca_clock_ops;
	clock->ptp = ptp_clock_register(&clock->info, &dev->pdev->dev);
	if (IS_ERR(clock->ptp)) {
		dev_warn(&dev->pdev->dev, "no PTP clock: %pe\n", clock->ptp);
		clock->ptp = NULL;
	}
	return 0;
}

/**
 * qhca_clock_cleanup - undo qhca_clock_init()
 * @dev: the function, without users
 *
 * Context: process. Processes may go on reading the page for as long as they map it.
 */
void qhca_clock_cleanup(struct qhca_dev *dev)
{
	if (dev->clock.ptp)
		ptp_clock_unregister(dev->clock.ptp);
	free_page((unsigned long)dev->clock.page);
}
