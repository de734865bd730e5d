// SPDX-License-Identifier: GPL-2.0
/* The pattern that fills the memory of a message. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rdma.h"

#define PERIOD	(1u << 21)	/* bits 13 to 20 of a product repeat after it */

/* Returns a byte that depends on its position, but not with the period of a page. */
static uint8_t pattern(size_t i, uint32_t seed)
{
	return (uint8_t)((i + seed) * 2654435761u >> 13);
}

/* ---- of much memory, which an emulated CPU takes long for byte by byte ---- */

static uint8_t *period;

static void period_make(void)
{
	size_t i;

	period = mmap(NULL, PERIOD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(period != MAP_FAILED);
	for (i = 0; i < PERIOD; i++)
		period[i] = pattern(i, 0);
}

/* Returns the bytes from position @i on, *@n of them: not more than there may be. */
static const uint8_t *pattern_run(size_t i, uint32_t seed, size_t *n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t at = (i + seed) % PERIOD;

	pthread_once(&once, period_make);
	if (*n > PERIOD - at)
		*n = PERIOD - at;
	return period + at;
}

/* ---- */

void fill(void *p, size_t len, uint32_t seed)
{
	const uint8_t *run;
	uint8_t *b = p;
	size_t i, n;

	for (i = 0; len < PERIOD && i < len; i++)
		b[i] = pattern(i, seed);
	for (; i < len; i += n) {
		n = len - i;
		run = pattern_run(i, seed, &n);
		memcpy(b + i, run, n);
	}
}

ssize_t find_bad(const void *p, size_t len, uint32_t seed)
{
	const uint8_t *b = p, *run;
	size_t i, n;

	for (i = 0; len >= PERIOD && i < len; i += n) {
		n = len - i;
		run = pattern_run(i, seed, &n);
		if (memcmp(b + i, run, n))
			break;
	}
	for (; i < len; i++)
		if (b[i] != pattern(i, seed))
			return i;
	return -1;
}

void check_fill(const void *p, size_t len, uint32_t seed, const char *what)
{
	ssize_t bad = find_bad(p, len, seed);

	if (bad >= 0)
		FAIL("%s: byte %zd of %zu is %#x, not %#x", what, bad, len,
		     ((const uint8_t *)p)[bad], pattern(bad, seed));
}
