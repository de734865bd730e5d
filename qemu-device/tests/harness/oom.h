/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the heap of engines. It runs out of memory when a test
 * wants it to, and counts what is in use. The engine is compiled to call these
 * functions in place of malloc(), calloc(), realloc() and free().
 */
#ifndef QHCA_TESTS_OOM_H
#define QHCA_TESTS_OOM_H

#include <stddef.h>

/* The @nth allocation from now on fails, and all that follow; 0: none does. */
void oom_after(unsigned nth);
/* Only the @nth fails. */
void oom_once(unsigned nth);
/* Whether an allocation has failed since. */
int oom_happened(void);

/* struct heap - how much of a heap is in use */
struct heap {
    size_t bytes, blocks;
};

/*
 * From now on allocations are from @heap, or from a common heap if that is
 * NULL. Returns the heap used before. Memory is freed to the heap it is from.
 */
struct heap *heap_use(struct heap *heap);

void *heap_malloc(size_t n);
void *heap_calloc(size_t n, size_t size);
void *heap_realloc(void *p, size_t n);
void heap_free(void *p);

/* Fails the test if an engine that is gone has left memory in @heap. */
void heap_check_freed(const struct heap *heap);
/* With MemorySanitizer: reports bytes of @buf that were never initialised. */
void heap_check_known(const void *buf, size_t len);

#endif /* QHCA_TESTS_OOM_H */
