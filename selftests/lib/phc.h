/* SPDX-License-Identifier: GPL-2.0 */
/* The PTP clock of the device under test. */
#ifndef SELFTESTS_PHC_H
#define SELFTESTS_PHC_H

#include <time.h>

#include "rdma.h"

#define PHC_SECOND	1000000000ll	/* ns */

#define PPM		65536l			/* as phc_rate() wants it */
#define MAX_PPM		100000l
#define Y2001		(1000000000 * PHC_SECOND)
#define Y2100		(4102444800 * PHC_SECOND)

/* struct phc - /dev/ptpN */
struct phc {
	int fd;
	int index;
	clockid_t id;
};

/* Returns false if the kernel has no PTP clock for the device. */
bool phc_find(const struct dev *d, struct phc *phc);
/* Skips the test if there is none, or without root; sets it to the system's time and rate. */
struct phc phc_open(const struct dev *d);
/* Ends the test if the clock cannot be read. */
int64_t phc_ns(const struct phc *phc);
void phc_set(const struct phc *phc, int64_t ns);
/* Returns 0 or an errno value; @ppm has a fraction of 16 bits. */
int phc_rate(const struct phc *phc, long ppm);
/* Moves the clock by @ns. */
void phc_step(const struct phc *phc, int64_t ns);

/* struct phc_past - the time of the clock and of the system, sleep included */
struct phc_past {
	int64_t ns, boot;
};

struct phc_past phc_note(const struct phc *phc);
/* Fails the test unless the clock has advanced as the system has, but for the drift of either. */
void phc_check_went_on(const struct phc *phc, const struct phc_past *past);

/* An ioctl of the network interface, which QHCA_IF names. Returns 0 or an errno value. */
int phc_if_ioctl(unsigned long request, void *data);

/* The device's own time. */
int64_t device_ns(const struct dev *d);

/* struct phc_era - a time to set the clock to, and a rate */
static const struct phc_era {
	const char *name;
	int64_t ns;
	long ppm;
} phc_eras[] = {
	{ "2001, faster", Y2001, MAX_PPM },
	{ "2100, slower", Y2100, -MAX_PPM },
	{ "2001, a little faster", Y2001, 7 },
	{ "2100", Y2100, 0 },
};

#endif /* SELFTESTS_PHC_H */
