/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: saving and loading what consists of objects: tables, lists and
 * timers.
 */
#include <stdlib.h>

#include "save.h"

/* Smallest size of a saved slot or timer, in bytes. */
#define ENTRY_SIZE      13u

/* Return the next slot from @i on that has an object, or had one. */
static uint32_t next_slot(const struct vhca_snap *s, const struct vhca_table *t,
                          uint32_t i)
{
    if (s->brief) {
        while ((i = vhca_table_skip_free(t, i)) < t->size && !t->slot[i]) {
            i++;
        }
        return i;
    }
    while ((i = vhca_table_skip(t, i)) < t->size && !t->number[i]) {
        i++;
    }
    return i;
}

static uint32_t num_slots(const struct vhca_snap *s, const struct vhca_table *t)
{
    uint32_t n = 0;

    for (uint32_t i = next_slot(s, t, 0); i < t->size;
         i = next_slot(s, t, i + 1)) {
        n++;
    }
    return n;
}

/* Load an object, and put it into its slot when all of it is right. */
static void load_object(struct vhca_snap *s, struct vhca_table *t, uint32_t i,
                        const struct vhca_snap_kind *kind)
{
    char *obj;

    if (!vhca_snap_check(s, t->used < t->max, "number")) {
        return;
    }
    obj = calloc(1, kind->size);
    if (!obj) {
        vhca_snap_refuse(s, "object", "cannot be allocated");
        return;
    }
    if (kind->walk_one) {
        kind->walk_one(s, obj);
    }
    if (!s->bad) {
        kind->enlist(s->e, obj, t->number[i]);
        vhca_table_put(t, i, obj);
        return;
    }
    if (kind->mem) {
        vhca_mem_release(s->e, (struct vhca_mem *)(void *)(obj + kind->mem));
    }
    free(obj);
}

static void walk_object(struct vhca_snap *s, struct vhca_table *t, uint32_t i,
                        const struct vhca_snap_kind *kind)
{
    s->kind = kind->name;
    s->number = t->number[i];
    if (s->load) {
        load_object(s, t, i, kind);
    } else if (kind->walk_one) {
        kind->walk_one(s, t->slot[i]);
    }
    s->kind = NULL;
}

void vhca_snap_table(struct vhca_snap *s, struct vhca_table *t,
                     const struct vhca_snap_kind *kind)
{
    uint32_t n = vhca_snap_count(s, kind->name, num_slots(s, t), ENTRY_SIZE);
    uint32_t next = 0;

    if (s->brief) {
        vhca_snap_check(s, n == t->used, kind->name);
    }
    if (s->load) {
        vhca_table_forget(t);
    }
    t->frees = vhca_snap_u32(s, "frees", t->frees, UINT32_MAX);
    for (; n > 0 && !s->bad; n--) {
        uint32_t i = s->load ? 0 : next_slot(s, t, next);
        bool used;

        i = vhca_snap_u32(s, "slot", i, UINT32_MAX);
        if (!vhca_snap_check(s, i >= next && i < t->size, "slot")) {
            return;
        }
        uint32_t number = vhca_snap_obj(s, "number", t->number[i]);

        if (s->load && !vhca_table_fits(t, i, number)) {
            vhca_snap_refuse(s, "number", "0x%x of a %s in slot %u", number,
                             kind->name, i);
            return;
        }
        if (s->load) {
            vhca_table_note(t, i, number);
        }
        t->freed[i] = vhca_snap_u32(s, "freed", t->freed[i], UINT32_MAX);
        used = vhca_snap_num(s, "used", t->slot[i] != NULL, 1, 1);
        if (used && !s->bad) {
            walk_object(s, t, i, kind);
        }
        next = i + 1;
    }
}

void vhca_snap_holder(struct qhca_engine *e, void *obj, uint32_t number)
{
    (void)e;
    ((struct vhca_holder *)obj)->number = number;
}

/* ---- lists ---- */

/* Walk over a reference; returns @obj, or on load the object, or NULL. */
static void *walk_ref(struct vhca_snap *s, const struct vhca_snap_ref *ref,
                      void *obj)
{
    uint32_t number = obj ? ref->number(s->e, obj) : 0;

    number = vhca_snap_u32(s, ref->name, number, UINT32_MAX);
    if (s->load) {
        obj = s->bad ? NULL : ref->find(s->e, number);
    }
    if (!obj) {
        vhca_snap_refuse(s, ref->name, "0x%x does not exist", number);
    }
    return obj;
}

void vhca_snap_list(struct vhca_snap *s, const char *field,
                    struct vhca_list *head, const struct vhca_snap_ref *ref)
{
    uint32_t n = vhca_snap_count(s, field, vhca_list_length(head), sizeof(n));
    struct vhca_list *node = head;

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
        node = (struct vhca_list *)(void *)(obj + ref->off);
        if (vhca_snap_check(s, vhca_list_empty(node), field)) {
            vhca_list_add_tail(head, node);
        }
    }
}

/* ---- timers ---- */

/* Return the index in @refs, or @n: timers of fault rules are not saved. */
static unsigned kind_of(const struct vhca_timer *t,
                        const struct vhca_snap_ref *refs, unsigned n)
{
    unsigned i = 0;

    while (i < n && refs[i].fn != t->fn) {
        i++;
    }
    return i;
}

static void walk_timer(struct vhca_snap *s, struct vhca_timer *t,
                       const struct vhca_snap_ref *refs, unsigned n)
{
    unsigned kind = (unsigned)vhca_snap_num(s, "kind of timer",
                                            t ? kind_of(t, refs, n) : 0, 1,
                                            n - 1);
    char *obj = walk_ref(s, &refs[kind], t ? (char *)t - refs[kind].off : NULL);
    uint64_t deadline = vhca_snap_time(s, "deadline", t ? t->deadline : 0);

    if (!obj || s->bad || !s->load) {
        return;
    }
    t = (struct vhca_timer *)(void *)(obj + refs[kind].off);
    if (vhca_snap_check(s, !t->pos, "timer")) {
        vhca_timer_put(s->e, t, deadline);
    }
}

/*
 * In the order of the heap: inserting in that order builds the same heap, so
 * timers due at the same time expire in the order they would have.
 */
void vhca_snap_timers(struct vhca_snap *s, const struct vhca_snap_ref *refs,
                      unsigned n)
{
    struct vhca_timers *h = &s->e->timers;
    uint32_t num = 0;

    for (uint32_t i = 0; i < h->used; i++) {
        num += kind_of(h->heap[i], refs, n) < n;
    }
    num = vhca_snap_count(s, "timers", num, ENTRY_SIZE);
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
