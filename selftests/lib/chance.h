/* SPDX-License-Identifier: GPL-2.0 */
/* Random choices; the seed of a thread determines its choices. */
#ifndef SELFTESTS_CHANCE_H
#define SELFTESTS_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void chance_seed(uint64_t seed);
uint64_t chance(void);
/* Returns a number below @n. */
uint32_t below(uint32_t n);
bool one_in(uint32_t n);
/* Returns mostly a small number, sometimes one around @max, sometimes nonsense. */
uint32_t some_number(uint32_t max);

/* struct op - an operation on an object, and how often to choose it */
struct op {
	uint32_t weight;
	void (*fn)(void *obj);
};

/* Executes one of the @n operations. */
void do_one_of(const struct op *ops, size_t n, void *obj);

#endif /* SELFTESTS_CHANCE_H */
