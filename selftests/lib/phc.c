// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include "phc.h"

bool phc_find(const struct dev *d, struct phc *phc)
{
	char path[128];
	glob_t g;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/ptp/ptp*",
		 ibv_get_device_name(d->ctx->device));
	if (glob(path, 0, NULL, &g))
		return false;
	phc->index = atoi(strrchr(g.gl_pathv[0], '/') + strlen("/ptp"));
	globfree(&g);
	snprintf(path, sizeof(path), "/dev/ptp%d", phc->index);
	phc->fd = open(path, O_RDWR | O_CLOEXEC);
	if (phc->fd < 0)
		return false;
	phc->id = ~phc->fd << 3 | 3;		/* FD_TO_CLOCKID of clock_gettime(2) */
	return true;
}

struct phc phc_open(const struct dev *d)
{
	struct timespec ts;
	struct phc phc;

	if (geteuid())
		test_skip("needs root");
	if (!phc_find(d, &phc))
		test_skip("no PTP clock");
	REQUIRE_OK(phc_rate(&phc, 0));
	REQUIRE(!clock_gettime(CLOCK_REALTIME, &ts));
	REQUIRE(!clock_settime(phc.id, &ts));
	return phc;
}

int64_t phc_ns(const struct phc *phc)
{
	struct timespec ts;

	REQUIRE(!clock_gettime(phc->id, &ts));
	return ts.tv_sec * PHC_SECOND + ts.tv_nsec;
}

void phc_set(const struct phc *phc, int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / PHC_SECOND, .tv_nsec = ns % PHC_SECOND };

	REQUIRE(!clock_settime(phc->id, &ts));
}

int phc_rate(const struct phc *phc, long ppm)
{
	struct timex tx = { .modes = ADJ_FREQUENCY, .freq = ppm };

	return clock_adjtime(phc->id, &tx) < 0 ? errno : 0;
}

void phc_step(const struct phc *phc, int64_t ns)
{
	struct timex tx = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	/* The fraction is not negative. */
	tx.time.tv_sec = ns / PHC_SECOND - (ns % PHC_SECOND < 0);
	tx.time.tv_usec = ns - tx.time.tv_sec * PHC_SECOND;
	REQUIRE(clock_adjtime(phc->id, &tx) >= 0);
}

struct phc_past phc_note(const struct phc *phc)
{
	struct timespec ts;

	REQUIRE(!clock_gettime(CLOCK_BOOTTIME, &ts));
	return (struct phc_past){ phc_ns(phc), ts.tv_sec * PHC_SECOND + ts.tv_nsec };
}

void phc_check_went_on(const struct phc *phc, const struct phc_past *past)
{
	struct phc_past now = phc_note(phc);
	int64_t passed = now.ns - past->ns, slept = now.boot - past->boot;

	/* Clocks of emulated machines may be badly calibrated. */
	if (passed < slept / 2 || passed > 2 * slept)
		FAIL("the clock has advanced by %lld ms, the system's by %lld ms",
		     (long long)passed / 1000000, (long long)slept / 1000000);
}

int64_t device_ns(const struct dev *d)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	REQUIRE_OK(ibv_query_rt_values_ex(d->ctx, &v));
	CHECK(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK);
	return v.raw_clock.tv_nsec;
}

int phc_if_ioctl(unsigned long request, void *data)
{
	int ret, fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = { .ifr_data = data };
	const char *name = getenv("QHCA_IF");

	if (!name)
		test_skip("QHCA_IF does not name the network interface");
	REQUIRE(fd >= 0);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ret = ioctl(fd, request, &ifr) ? errno : 0;
	close(fd);
	return ret;
}
