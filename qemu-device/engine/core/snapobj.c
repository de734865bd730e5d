/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: walking over the state, what is made of objects: tables, lists,
 * timers.
 */
#include <stdlib.h>

#include "core.h"

/* Bytes of an entry that there are at least. */
#define ENTRY_SIZE      13u

/* The next slot from @i on that has, or had, an object. */
static uint32_t next_known(const struct qhca_table *t, uint32_t i)
{
    while ((i = qhca_table_skip(t, i)) < t->size && !t->number[i]) {
        i++;
    }
    return i;
}

static uint32_t num_known(const struct qhca_table *t)
{
    uint32_t n = 0;

    for (uint32_t i = next_known(t, 0); i < t->size; i = next_known(t, i + 1)) {
        n++;
    }
    return n;
}

static void walk_object(struct qhca_snap *s, struct qhca_table *t, uint32_t i,
                        const struct qhca_snap_kind *kind)
{
    s->kind = kind->name;
    s->number = t->number[i];
    if (s->load && !qhca_snap_check(s, t->used < t->max, "number")) {
        return;
    }
    void *obj = kind->walk(s, t->slot[i], t->number[i]);

    if (s->load && obj) {
        t->slot[i] = obj;
        t->used++;
    } else if (!obj) {
        qhca_snap_refuse(s, "it", "finds no memory");
    }
    s->kind = NULL;
}

void qhca_snap_table(struct qhca_snap *s, struct qhca_table *t,
                     const struct qhca_snap_kind *kind)
{
    uint32_t n = qhca_snap_count(s, kind->name, num_known(t), ENTRY_SIZE);
    uint32_t next = 0;

    if (s->load) {
        qhca_table_forget(t);
    }
    t->frees = qhca_snap_u32(s, "frees", t->frees, UINT32_MAX);
    for (; n > 0 && !s->bad; n--) {
        uint32_t i = qhca_snap_u32(s, "slot", s->load ? 0 : next_known(t, next),
                                   UINT32_MAX);
        bool used;

        if (!qhca_snap_check(s, i >= next && i < t->size, "slot")) {
            return;
        }
        uint32_t number = qhca_snap_u32(s, "number", t->number[i],
                                        QHCA_OBJ_MASK);

        if (s->load && !qhca_table_fits(t, i, number)) {
            qhca_snap_refuse(s, "number", "0x%x of a %s in slot %u", number,
                             kind->name, i);
            return;
        }
        t->number[i] = number;
        t->freed[i] = qhca_snap_u32(s, "freed", t->freed[i], UINT32_MAX);
        used = qhca_snap_num(s, "used", t->slot[i] != NULL, 1, 1);
        if (used && !s->bad) {
            walk_object(s, t, i, kind);
        }
        next = i + 1;
    }
}

void *qhca_snap_holder(void *obj, uint32_t number, size_t size)
{
    struct qhca_holder *h = obj ? obj : calloc(1, size);

    if (h) {
        h->number = number;
    }
    return h;
}

/* ---- lists ---- */

static uint32_t length(const struct qhca_list *head)
{
    uint32_t n = 0;

    for (const struct qhca_list *at = head->next; at != head; at = at->next) {
        n++;
    }
    return n;
}

/* @obj, or on load the one that was in its place, which may not be there. */
static void *walk_ref(struct qhca_snap *s, const struct qhca_snap_ref *ref,
                      void *obj)
{
    uint32_t number = obj ? ref->number(s->e, obj) : 0;

    number = qhca_snap_u32(s, ref->name, number, UINT32_MAX);
    if (s->load) {
        obj = s->bad ? NULL : ref->find(s->e, number);
    }
    if (!obj) {
        qhca_snap_refuse(s, ref->name, "0x%x does not exist", number);
    }
    return obj;
}

void qhca_snap_list(struct qhca_snap *s, const char *field,
                    struct qhca_list *head, const struct qhca_snap_ref *ref)
{
    uint32_t n = qhca_snap_count(s, field, s->load ? 0 : length(head),
                                 sizeof(uint32_t));
    struct qhca_list *node = head;

    for (; n > 0 && !s->bad; n--) {
        char *obj;

        if (!s->load) {
            node = node->next;
            walk_ref(s, ref, (char *)node - ref->off);
            continue;
        }
        obj = walk_ref(s, ref, NULL);
        if (!obj) {
            return;
        }
        node = (struct qhca_list *)(void *)(obj + ref->off);
        if (qhca_snap_check(s, qhca_list_empty(node), field)) {
            qhca_list_add_tail(head, node);
        }
    }
}

/* ---- timers ---- */

/* Those of fault rules are not the device's. */
static unsigned kind_of(const struct qhca_timer *t,
                        const struct qhca_snap_ref *refs, unsigned n)
{
    unsigned i = 0;

    while (i < n && refs[i].fn != t->fn) {
        i++;
    }
    return i;
}

static uint32_t num_timers(const struct qhca_timers *h,
                           const struct qhca_snap_ref *refs, unsigned n)
{
    uint32_t num = 0;

    for (uint32_t i = 0; i < h->used; i++) {
        num += kind_of(h->heap[i], refs, n) < n;
    }
    return num;
}

static void walk_timer(struct qhca_snap *s, struct qhca_timer *t,
                       const struct qhca_snap_ref *refs, unsigned n)
{
    unsigned kind = (unsigned)qhca_snap_num(s, "kind of timer",
                                            t ? kind_of(t, refs, n) : 0, 1,
                                            n - 1);
    char *obj = walk_ref(s, &refs[kind], t ? (char *)t - refs[kind].off : NULL);
    uint64_t deadline = qhca_snap_time(s, "deadline", t ? t->deadline : 0);

    if (!obj || s->bad || !s->load) {
        return;
    }
    t = (struct qhca_timer *)(void *)(obj + refs[kind].off);
    if (qhca_snap_check(s, !t->pos, "timer")) {
        qhca_timer_put(s->e, t, deadline);
    }
}

/*
 * In the order of the heap: what is put into one in that order makes the same,
 * so those due at the same time expire in the order in which they would have.
 */
void qhca_snap_timers(struct qhca_snap *s, const struct qhca_snap_ref *refs,
                      unsigned n)
{
    struct qhca_timers *h = &s->e->timers;
    uint32_t num = qhca_snap_count(s, "timers", num_timers(h, refs, n),
                                   ENTRY_SIZE);

    if (!s->load) {
        for (uint32_t i = 0; i < h->used; i++) {
            if (kind_of(h->heap[i], refs, n) < n) {
                walk_timer(s, h->heap[i], refs, n);
            }
        }
        return;
    }
    for (; num > 0 && !s->bad; num--) {
        walk_timer(s, NULL, refs, n);
    }
}
