/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a hash of everything that engines do: memory written,
 * frames, interrupts, in order. A change that leaves behaviour alone does not
 * change the digest of any seed ("make digest").
 */
#ifndef QHCA_TESTS_DIGEST_H
#define QHCA_TESTS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether QHCA_TEST_DIGEST names a file for digests. */
bool digest_wanted(void);
/* Starts a new digest if digest_wanted(). */
void digest_begin(void);
/* Starts a digest in any case; digest_value() ends it. */
void digest_start(void);
uint64_t digest_value(void);
/* Hashes one action of an engine: its kind, its place and its data. */
void digest_feed(char what, uint64_t where, const void *buf, size_t len);
/* Ends the digest and appends it to the file, after the text of @fmt. */
__attribute__((format(printf, 1, 2)))
void digest_end(const char *fmt, ...);

#endif /* QHCA_TESTS_DIGEST_H */
