/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: one number for everything that engines do: memory written,
 * frames, interrupts, in order. A change without effect on behaviour leaves the
 * digests of all seeds as they are ("make digest").
 */
#ifndef QHCA_TESTS_DIGEST_H
#define QHCA_TESTS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether QHCA_TEST_DIGEST names a file for them. */
bool digest_wanted(void);
/* Starts a new digest, if it is wanted. */
void digest_begin(void);
/* Starts one in any case; digest_value() ends it. */
void digest_start(void);
uint64_t digest_value(void);
/* One thing an engine has done, as @what, @where and @len bytes say. */
void digest_feed(char what, uint64_t where, const void *buf, size_t len);
/* A line of the file: what was played, and the digest. */
__attribute__((format(printf, 1, 2)))
void digest_end(const char *fmt, ...);

#endif /* QHCA_TESTS_DIGEST_H */
