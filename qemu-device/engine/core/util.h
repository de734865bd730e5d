/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what C lacks. */
#ifndef QHCA_ENGINE_CORE_UTIL_H
#define QHCA_ENGINE_CORE_UTIL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* An obligation of the caller, checked in test builds only. */
#ifdef QHCA_VERIFY
#define VHCA_ASSERT(what) assert(what)
#else
#define VHCA_ASSERT(what) ((void)sizeof(!(what)))
#endif

static inline bool vhca_is_zero(const uint8_t *p, size_t len)
{
    while (len > 0 && !p[len - 1]) {
        len--;
    }
    return !len;
}

/* ---- doubly linked lists with a head node ---- */

struct vhca_list {
    struct vhca_list *prev, *next;
};

static inline void vhca_list_init(struct vhca_list *l)
{
    l->prev = l->next = l;
}

static inline bool vhca_list_empty(const struct vhca_list *l)
{
    return l->next == l;
}

static inline void vhca_list_add_tail(struct vhca_list *head,
                                      struct vhca_list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

/*
 * Safe on a node that is on no list, as long as it was initialised. (The
 * analyzer does not see that a node is off the list when it is freed.)
 */
static inline void vhca_list_del(struct vhca_list *n)
{
    n->prev->next = n->next;    /* NOLINT(clang-analyzer-unix.Malloc) */
    n->next->prev = n->prev;
    vhca_list_init(n);
}

/* Visits every node of @head; the body must not take it off the list. */
#define vhca_list_each(head, node) \
    for ((node) = (head)->next; (node) != (head); (node) = (node)->next)

/* Append all of @from to @head. */
static inline void vhca_list_move(struct vhca_list *head,
                                  struct vhca_list *from)
{
    if (vhca_list_empty(from)) {
        return;
    }
    from->next->prev = head->prev;
    head->prev->next = from->next;
    from->prev->next = head;
    head->prev = from->prev;
    vhca_list_init(from);
}

static inline uint32_t vhca_list_length(const struct vhca_list *head)
{
    const struct vhca_list *node;
    uint32_t n = 0;

    vhca_list_each(head, node) {
        n++;
    }
    return n;
}

#endif /* QHCA_ENGINE_CORE_UTIL_H */
