// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD for perftest where only the data counts. For each size and each
 * report it measures the CPU's frequency for 0.2 s of gettimeofday(), and it fills
 * its buffers, up to 256 MiB, with one rand() per byte: many times what the
 * transfer takes. With this the frequency comes out as "unknown", and figures as 0
 * or infinite; nothing else in perftest looks at either.
 */
#include <sys/time.h>

static unsigned int state = 1;

void srand(unsigned int seed)
{
	state = seed;
}

int rand(void)
{
	state = state * 1103515245 + 12345;
	return state >> 16 & 0x7fff;
}

/* 1 ms later at each call. */
int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	static long ms;

	(void)tz;
	ms++;
	tv->tv_sec = ms / 1000;
	tv->tv_usec = ms % 1000 * 1000;
	return 0;
}
