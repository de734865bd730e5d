/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: allocation functions that fail on demand; the linker puts
 * them in front of the real ones (--wrap).
 */
#include "oom.h"

#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static unsigned countdown;
static int happened;

void oom_after(unsigned nth)
{
    countdown = nth;
    happened = 0;
}

int oom_happened(void)
{
    return happened;
}

static int fails(void)
{
    if (countdown == 0) {
        return 0;
    }
    if (countdown > 1) {
        countdown--;
        return 0;
    }
    happened = 1;
    return 1;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}
