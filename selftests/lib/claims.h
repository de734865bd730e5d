/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statements of the device about itself: tables of fields and bits. Each row has a proof, which is
 * a list of tests, "program: function, program: function", that use it to its limit and find more
 * refused; or, in parentheses, why it cannot be used.
 */
#ifndef SELFTESTS_CLAIMS_H
#define SELFTESTS_CLAIMS_H

#include "harness.h"

/* struct claim - a field of an answer: it has the value @want, or any but zero */
struct claim {
	const char *name;
	size_t at, size;
	const char *proof;
	bool any;
	uint64_t want;
};

/* A field with this value, one that is not zero, and bytes behind a field that belong to none. */
#define CLAIM(type, member, value, proof)				\
	{ #member, offsetof(type, member), sizeof(((type *)0)->member), proof, false, value }
#define CLAIM_ANY(type, member, proof)					\
	{ #member, offsetof(type, member), sizeof(((type *)0)->member), proof, true }
#define CLAIM_GAP(type, member, bytes)					\
	{ "behind " #member, offsetof(type, member) + sizeof(((type *)0)->member), bytes,	\
	  "(padding)" }

/*
 * Compares all fields of an answer of @len bytes with the table, and fails if the table lacks one
 * of the bytes: a field that is new in the headers.
 */
void check_claims(const void *answer, size_t len, const struct claim *claims, size_t n);

/* Fails unless all tests of a proof exist. */
void check_proof(const char *name, const char *proof);

#endif /* SELFTESTS_CLAIMS_H */
