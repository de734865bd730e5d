// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging of a process whose threads map and unmap memory all the time: its address space
 * is locked, or a thread waits for the lock, whenever a page is needed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "lib/ondemand.h"

#define LEN	(4ul << 20)
#define THREADS	8

static bool stop;

static void *map_and_unmap(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint8_t *m = odp_map(16 * PAGE);

		m[0] = 1;
		munmap(m, 16 * PAGE);
	}
	return NULL;
}

static const struct {
	const char *name;
	bool implicit;
} kinds[] = {
	{ "implicit", true },
	{ "explicit", false },
};

TEST_ROWS(busy, "F-063 no page is refused because threads map and unmap memory", kinds)
{
	unsigned int i, rounds = from_env("ODP_ROUNDS", 100);
	struct dev *d = odp_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf to = buf_new(d->pd, PAGE, REMOTE);
	int64_t worst = 0, begin;
	pthread_t thread[THREADS];
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint8_t *mem;

	test_timeout(120);
	mem = odp_map(LEN);
	mr = row->implicit ? odp_reg(d, NULL, SIZE_MAX, 0) : odp_reg(d, mem, LEN, 0);
	for (i = 0; i < THREADS; i++)
		REQUIRE_OK(pthread_create(&thread[i], NULL, map_and_unmap, NULL));
	for (i = 0; i < rounds; i++) {
		begin = time_ms();
		odp_post_write(&p, mem + i * PAGE % LEN, mr, &to);
		wc = poll_get(p.a.send_cq);
		begin = time_ms() - begin;
		worst = begin > worst ? begin : worst;
		if (wc.status != IBV_WC_SUCCESS) {
			FAIL("page %u: %s after %d ms", i, ibv_wc_status_str(wc.status),
			     (int)begin);
			break;
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	test_note("the slowest of %u pages took %d ms", rounds, (int)worst);
}
