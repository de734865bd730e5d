/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A test program is a list of TEST() functions and this harness, which has main(): it runs each
 * test in a separate process and reports TAP 13.
 *
 *	prog [-l] [-v] [-t TEXT]...	list them; show details; run only names with TEXT
 *
 * A name starts with the conformance statement that the test covers.
 */
#ifndef SELFTESTS_HARNESS_H
#define SELFTESTS_HARNESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define KSFT_PASS	0
#define KSFT_FAIL	1
#define KSFT_SKIP	4

void test_add(int line, const char *function, const char *title, const char *row_name,
	      void (*fn)(const void *row), const void *row);
void test_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
__attribute__((noreturn)) void test_die(void);
void test_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How many times slower this kernel may be than usual: KSELFTEST_PATIENCE, default 1. */
unsigned int test_patience(void);
/* Sets the timeout of this test, in units of test_patience(). */
void test_timeout(unsigned int seconds);

/* TEST(function, "A-000 what it shows") { ... } */
#define TEST(fn, title)							\
	static void fn(void);						\
	static void fn##_run(const void *row)				\
	{								\
		(void)row;						\
		fn();							\
	}								\
	__attribute__((constructor)) static void fn##_add(void)		\
	{								\
		test_add(__LINE__, #fn, title, NULL, fn##_run, NULL);	\
	}								\
	static void fn(void)

/*
 * TEST_ROWS(function, "A-000 what it shows", rows) { ... row->member ... }
 * One test per element of the array @rows, whose type has a member "name".
 */
#define TEST_ROWS(fn, title, rows) \
	TEST_SOME_ROWS(fn, title, rows, ARRAY_SIZE(rows))
/* Only the first @n rows. */
#define TEST_SOME_ROWS(fn, title, rows, n)				\
	static void fn(const __typeof__((rows)[0]) row[]);		\
	static void fn##_run(const void *row)				\
	{								\
		fn(row);						\
	}								\
	__attribute__((constructor)) static void fn##_add(void)		\
	{								\
		for (size_t i = 0; i < (n); i++)			\
			test_add(__LINE__, #fn, title, (rows)[i].name,	\
				 fn##_run, &(rows)[i]);			\
	}								\
	static void fn(const __typeof__((rows)[0]) row[])

/* Reports a failure; the test continues. */
#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(cond)							\
	do {								\
		if (!(cond))						\
			FAIL("%s", #cond);				\
	} while (0)

/* Reports a failure and ends the test. */
#define REQUIRE(cond)							\
	do {								\
		if (!(cond)) {						\
			FAIL("%s (errno: %s)", #cond, strerror(errno));	\
			test_die();					\
		}							\
	} while (0)

#define CHECK_EQ(a, b)							\
	do {								\
		long long a_ = (long long)(a), b_ = (long long)(b);	\
		if (a_ != b_)						\
			FAIL("%s is %lld (%#llx), not %lld (%#llx)",	\
			     #a, a_, a_, b_, b_);			\
	} while (0)

/* Checks a call that returns an errno value, as most verbs do. */
#define CHECK_ERR(call, want)						\
	do {								\
		int got_ = (call), want_ = (want);			\
		if (got_ != want_)					\
			FAIL("%s: %s, not %s", #call,			\
			     got_ ? strerror(got_) : "success",		\
			     want_ ? strerror(want_) : "success");	\
	} while (0)

#define REQUIRE_OK(call)						\
	do {								\
		int got_ = (call);					\
		if (got_) {						\
			FAIL("%s: %s", #call, strerror(got_));		\
			test_die();					\
		}							\
	} while (0)

#endif /* SELFTESTS_HARNESS_H */
