/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "oom.h"
#include "tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Defined only with AddressSanitizer, which then guards the blocks' headers. */
void __asan_poison_memory_region(const void *p, size_t n)
    __attribute__((weak));
void __asan_unpoison_memory_region(const void *p, size_t n)
    __attribute__((weak));

/* struct block - the header of an allocation */
struct block {
    _Alignas(max_align_t) size_t size;
    struct heap *heap;
};

static unsigned countdown;
static bool single;
static int happened;
static struct heap nobodys;
static struct heap *current = &nobodys;

void oom_after(unsigned nth)
{
    countdown = nth;
    happened = 0;
    single = false;
}

void oom_once(unsigned nth)
{
    oom_after(nth);
    single = true;
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
    countdown = !single;
    return 1;
}

struct heap *heap_use(struct heap *heap)
{
    struct heap *before = current;

    current = heap ? heap : &nobodys;
    return before;
}

static void poison(struct block *b)
{
    if (__asan_poison_memory_region) {
        __asan_poison_memory_region(b, sizeof(*b));
    }
}

/* The header of allocation @p, made accessible. */
static struct block *block_of(void *p)
{
    struct block *b = (struct block *)p - 1;

    if (__asan_unpoison_memory_region) {
        __asan_unpoison_memory_region(b, sizeof(*b));
    }
    return b;
}

static void *give(struct block *b, size_t n)
{
    if (!b) {
        return NULL;
    }
    b->size = n;
    b->heap = current;
    current->bytes += n;
    current->blocks++;
    poison(b);
    return b + 1;
}

void *heap_malloc(size_t n)
{
    return fails() ? NULL : give(malloc(sizeof(struct block) + n), n);
}

void *heap_calloc(size_t n, size_t size)
{
    if (fails() || (size && n > (SIZE_MAX - sizeof(struct block)) / size)) {
        return NULL;
    }
    return give(calloc(1, sizeof(struct block) + n * size), n * size);
}

void heap_free(void *p)
{
    struct block *b;

    if (!p) {
        return;
    }
    b = block_of(p);
    b->heap->bytes -= b->size;
    b->heap->blocks--;
    free(b);
}

void *heap_realloc(void *p, size_t n)
{
    void *new = heap_malloc(n);

    if (p && new) {
        struct block *b = block_of(p);

        memcpy(new, p, b->size < n ? b->size : n);
        heap_free(p);
    }
    return new;
}

/* Defined only with MemorySanitizer, which makes the report. */
void __msan_check_mem_is_initialized(const void *p, size_t n)
    __attribute__((weak));

void heap_check_known(const void *buf, size_t len)
{
    if (__msan_check_mem_is_initialized) {
        __msan_check_mem_is_initialized(buf, len);
    }
}

void heap_check_freed(const struct heap *heap)
{
    if (heap->blocks) {
        tap_note("%zu bytes, %zu blocks", heap->bytes, heap->blocks);
        tap_fail(__FILE__, __LINE__, "an engine that leaves memory behind");
    }
}
