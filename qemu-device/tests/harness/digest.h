/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: one number for all that engines have done: memory they
 * have written, frames, interrupts, in order. A change that is to change
 * nothing leaves the digests of all seeds as they are ("make digest").
 */
#ifndef QHCA_TESTS_DIGEST_H
#define QHCA_TESTS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether QHCA_TEST_DIGEST names a file for them. */
bool digest_wanted(void);
/* What engines do from here on counts. */
void digest_begin(void);
/* One thing an engine has done, as @what, @where and @len bytes say. */
void digest_feed(char what, uint64_t where, const void *buf, size_t len);
/* A line of the file: what was played, and the digest. */
__attribute__((format(printf, 1, 2)))
void digest_end(const char *fmt, ...);

#endif /* QHCA_TESTS_DIGEST_H */
