// SPDX-License-Identifier: GPL-2.0
/* Memory of all kinds, for addresses in requests. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define OWN_LEN		(4u << 20)
#define FLAKY_LEN	(64u * PAGE)

/*
 * Map all of it far from other memory of the process, so that an address with a flipped bit points
 * to unmapped or to other memory of this window.
 */
#define WINDOW		0x100000000000ul
#define WINDOW_STEP	0x1000000ul	/* distance of two mappings */
#define HOLE		(WINDOW - WINDOW_STEP)
#define ANSWERS		(WINDOW + 0x40 * WINDOW_STEP)
#define ANSWER_LEN	(2u << 20)	/* more than header fields can name */

static uint8_t *own, *flaky, *read_only, *none, *edge, *file;
static _Thread_local void *answer;

static uint8_t *map(size_t len, int prot, int flags, int fd)
{
	static uintptr_t at = WINDOW;
	uint8_t *p = mmap((void *)at, len, prot, flags | MAP_FIXED_NOREPLACE, fd, 0);

	at += WINDOW_STEP;

	if (p == MAP_FAILED)
		_exit(2);
	return p;
}

void memory_init(void)
{
	const int anon = MAP_PRIVATE | MAP_ANONYMOUS, rw = PROT_READ | PROT_WRITE;
	int fd = memfd_create("fuzz", 0);

	if (fd < 0 || ftruncate(fd, 8 * PAGE))
		_exit(2);
	own = map(OWN_LEN, rw, anon, -1);
	flaky = map(FLAKY_LEN, rw, anon, -1);
	read_only = map(8 * PAGE, PROT_READ, anon, -1);
	none = map(8 * PAGE, PROT_NONE, anon, -1);
	/* Four pages, followed by four that cannot be accessed. */
	edge = map(8 * PAGE, rw, anon, -1);
	if (mprotect(edge + 4 * PAGE, 4 * PAGE, PROT_NONE))
		_exit(2);
	/* A mapping longer than its file. */
	file = map(16 * PAGE, rw, MAP_SHARED, fd);
	close(fd);
}

void memory_thread_init(uint32_t thread)
{
	answer = mmap((void *)(ANSWERS + thread * WINDOW_STEP), ANSWER_LEN, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (answer == MAP_FAILED)
		_exit(2);
}

void *doorbell_place(int ctx)
{
	return (void *)(ANSWERS - (ctx + 1) * WINDOW_STEP);
}

void *answer_area(void)
{
	return answer;
}

uint8_t *own_pages(size_t len)
{
	uint32_t pages = (len + PAGE - 1) / PAGE, all = OWN_LEN / PAGE;

	return own + (pages < all ? below(all - pages) : 0) * PAGE;
}

bool is_own(const uint8_t *p, size_t len)
{
	return p >= own && p < own + OWN_LEN && len <= (size_t)(own + OWN_LEN - p);
}

uint64_t odd_address(size_t len)
{
	const uint64_t places[] = {
		(uintptr_t)flaky + below(FLAKY_LEN / PAGE) * PAGE,
		(uintptr_t)flaky + below(FLAKY_LEN / PAGE) * PAGE,
		(uintptr_t)flaky + below(FLAKY_LEN / PAGE) * PAGE,
		(uintptr_t)read_only,
		(uintptr_t)none,
		(uintptr_t)edge + (4 - below(4)) * PAGE - (len < PAGE ? len : PAGE),
		(uintptr_t)edge + below(4) * PAGE,
		(uintptr_t)file + below(16) * PAGE,
		(uintptr_t)own + OWN_LEN - PAGE,
		(uintptr_t)own_pages(len) + below(PAGE),
		(uintptr_t)fuzz.db[below(CONTEXTS)],
		(uintptr_t)odd_address,
		HOLE, 0, 0xffff888000000000, 0x7ffffffff000, 0x800000000000, ~0xfffull,
	};

	return one_in(12) ? nonsense() : places[below(ARRAY_SIZE(places))];
}

uint64_t address(size_t len)
{
	return odd() ? odd_address(len) : (uintptr_t)own_pages(len);
}

/* Remaps pages that only the kernel accesses. */
void disturb(void)
{
	static const int prots[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE };
	uint32_t first = below(FLAKY_LEN / PAGE), n = 1 + below(FLAKY_LEN / PAGE - first);
	uint8_t *p = flaky + first * PAGE;

	switch (below(5)) {
	case 0:
		mmap(p, n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 1:
		mprotect(p, n * PAGE, prots[below(ARRAY_SIZE(prots))]);
		break;
	case 2:
		madvise(p, n * PAGE, one_in(2) ? MADV_DONTNEED : MADV_DONTFORK);
		break;
	default:
		mmap(p, n * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
}
