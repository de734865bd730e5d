/* SPDX-License-Identifier: GPL-2.0 */
/* Random choices; those of a thread follow from its seed. */
#ifndef SELFTESTS_CHANCE_H
#define SELFTESTS_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void chance_seed(uint64_t seed);
uint64_t chance(void);
/* A number below @n. */
uint32_t below(uint32_t n);
bool one_in(uint32_t n);
/* Mostly small, sometimes around @max, sometimes nonsense. */
uint32_t some_number(uint32_t max);

/* struct op - something to be done to an object, and how often */
struct op {
	uint32_t weight;
	void (*fn)(void *obj);
};

/* One of @n. */
void do_one_of(const struct op *ops, size_t n, void *obj);

#endif /* SELFTESTS_CHANCE_H */
