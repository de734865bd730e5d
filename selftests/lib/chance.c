// SPDX-License-Identifier: GPL-2.0
/* Chance: see chance.h. */
#include "chance.h"
#include "harness.h"

static _Thread_local uint64_t rng;

void chance_seed(uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ull | 1;
}

/* xorshift64*. */
uint64_t chance(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * 0x2545f4914f6cdd1dull;
}

uint32_t below(uint32_t n)
{
	return (chance() >> 32) % n;
}

bool one_in(uint32_t n)
{
	return !below(n);
}

uint32_t some_number(uint32_t max)
{
	static const uint32_t odd[] = { 0, ~0u, 0x7fffffff, 0x80000000, 65536, 65535 };

	if (one_in(30))
		return odd[below(ARRAY_SIZE(odd))];
	if (one_in(30))
		return max + below(3) - 1;
	return below(40);
}

void do_one_of(const struct op *ops, size_t n, void *obj)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += ops[i].weight;
	sum = below(sum);
	for (i = 0; sum >= ops[i].weight; i++)
		sum -= ops[i].weight;
	ops[i].fn(obj);
}
