/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a test case is a function; its results are printed in the
 * Test Anything Protocol.
 */
#ifndef QHCA_TESTS_TAP_H
#define QHCA_TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>

struct test {
    const char *name;
    void (*run)(void);
};

/* Notes a failure and goes on. */
#define CHECK(cond) \
    ((cond) ? (void)0 : tap_fail(__FILE__, __LINE__, #cond))
/* Notes a failure and ends the test case. */
#define REQUIRE(cond) \
    ((cond) ? (void)0 : (tap_fail(__FILE__, __LINE__, #cond), tap_end()))
/* Equality of integers, with both values in the message. */
#define CHECK_EQ(a, b) \
    tap_check_eq(__FILE__, __LINE__, #a " == " #b, (long long)(a), \
                 (long long)(b))

void tap_fail(const char *file, int line, const char *what);
void tap_check_eq(const char *file, int line, const char *what, long long a,
                  long long b);
__attribute__((noreturn)) void tap_end(void);
/* Failures noted since the test case began, or the program if it has none. */
unsigned tap_failures(void);
/* Skips the case, because it cannot run here. */
__attribute__((noreturn)) void tap_skip(const char *why);
/* Adds to the diagnostics of a failure, printf-formatted. */
__attribute__((format(printf, 1, 2))) void tap_note(const char *fmt, ...);

/* Names the random seed in use, for the report of a failure. */
void tap_seed(unsigned long long seed);

/*
 * main() of a test program: runs all of @tests, or those whose name contains
 * argv[1], and @cleanup after each. Returns the exit status.
 */
int tap_main(int argc, char **argv, const struct test *tests, size_t n,
             void (*cleanup)(void));

/* Runs one case without printing its result; false: it failed. */
bool tap_quiet(const struct test *t, void (*cleanup)(void));

#endif /* QHCA_TESTS_TAP_H */
