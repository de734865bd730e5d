/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: seeds of random numbers, from options and the environment.
 */
#ifndef QHCA_TESTS_SEED_H
#define QHCA_TESTS_SEED_H

#include <stdint.h>

/* Distance between the seeds of two days. */
#define SEEDS_PER_DAY   100000u

/* A number, or "date": the first of today's seeds (UTC). */
uint64_t seed_parse(const char *text);
/* seed_parse() of environment variable @name; @otherwise if it is not set. */
uint64_t seed_from_env(const char *name, uint64_t otherwise);

#endif /* QHCA_TESTS_SEED_H */
