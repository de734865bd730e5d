/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPORTS 8           /* per case; the first ones matter */

static jmp_buf end_of_test;
static bool running;
static unsigned failures;
static const char *skipped;
static unsigned long long seed_in_use;
static bool seed_known;

static bool reported(void)
{
    return ++failures > MAX_REPORTS;
}

/* Defined only with sanitizers. */
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void say_seed(void)
{
    if (seed_known) {
        tap_note("seed %llu", seed_in_use);
    }
}

void tap_seed(unsigned long long seed)
{
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(say_seed);
    }
    seed_in_use = seed;
    seed_known = true;
}

void tap_fail(const char *file, int line, const char *what)
{
    if (!reported()) {
        printf("# %s:%d: %s\n", file, line, what);
    }
}

void tap_check_eq(const char *file, int line, const char *what, long long a,
                  long long b)
{
    if (a != b && !reported()) {
        printf("# %s:%d: %s: %lld (0x%llx) against %lld (0x%llx)\n", file, line,
               what, a, (unsigned long long)a, b, (unsigned long long)b);
    }
}

unsigned tap_failures(void)
{
    return failures;
}

void tap_end(void)
{
    if (!running) {
        fflush(stdout);
        abort();
    }
    longjmp(end_of_test, 1);
}

void tap_skip(const char *why)
{
    skipped = why;
    longjmp(end_of_test, 1);
}

void tap_note(const char *fmt, ...)
{
    va_list ap;

    printf("# ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

bool tap_quiet(const struct test *t, void (*cleanup)(void))
{
    failures = 0;
    skipped = NULL;
    seed_known = false;
    running = true;
    if (!setjmp(end_of_test)) {
        t->run();
    }
    running = false;
    if (failures) {
        say_seed();
    }
    cleanup();
    return !failures;
}

static bool run_one(const struct test *t, unsigned number,
                    void (*cleanup)(void))
{
    bool ok = tap_quiet(t, cleanup);

    printf("%s %u - %s", ok ? "ok" : "not ok", number, t->name);
    if (skipped) {
        printf(" # SKIP %s", skipped);
    }
    printf("\n");
    fflush(stdout);
    return ok;
}

int tap_main(int argc, char **argv, const struct test *tests, size_t n,
             void (*cleanup)(void))
{
    unsigned bad = 0, number = 0;
    size_t i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (i = 0; i < n; i++) {
        if (argc > 1 && !strstr(tests[i].name, argv[1])) {
            continue;
        }
        bad += !run_one(&tests[i], ++number, cleanup);
    }
    printf("1..%u\n", number);
    return bad ? 1 : 0;
}
