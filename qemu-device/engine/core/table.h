/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: objects of one kind by number. */
#ifndef QHCA_ENGINE_CORE_TABLE_H
#define QHCA_ENGINE_CORE_TABLE_H

#include "../engine.h"

/*
 * struct vhca_table - objects of one kind by number
 *
 * Numbers are below 2^24 and random, and one that was freed does not come back
 * soon (conformance A-022). Iteration is by slot.
 */
struct vhca_table {
    void **slot;                /* in buckets, by the low bits of the number */
    uint32_t *number;           /* in use, or last used, per slot; 0: never */
    uint32_t *freed;            /* @frees when it was freed, per slot */
    bool *known;                /* per bucket: whether any of it has a number */
    uint32_t max;               /* objects */
    uint32_t size;              /* slots */
    uint32_t used, frees;
    struct qhca_engine *e;
};

/* 32 bits from ops->random. */
uint32_t vhca_random(struct qhca_engine *e);
/* For up to @max objects, of 2^20 at most. False: no memory. */
bool vhca_table_init(struct vhca_table *t, struct qhca_engine *e, uint32_t max);
void vhca_table_free(struct vhca_table *t);
/* Gives @obj a number, never 0, 1 or 0xffffff; 0 if the table is full. */
uint32_t vhca_table_add(struct vhca_table *t, void *obj);
/* The object of a number, or NULL; the number may come from the guest. */
void *vhca_table_get(const struct vhca_table *t, uint32_t number);
/* Takes the object of a number that is in use out of the table. */
void vhca_table_del(struct vhca_table *t, uint32_t number);
/* Nothing is remembered of the numbers of before; there are no objects. */
void vhca_table_forget(struct vhca_table *t);
/* Whether @number, which no object has or had, can be that of slot @i. */
bool vhca_table_fits(const struct vhca_table *t, uint32_t i, uint32_t number);
/* Slot @i has @number from now on, which fits there. */
void vhca_table_note(struct vhca_table *t, uint32_t i, uint32_t number);
/* @i, or the first slot behind a row of buckets, from @i on, never used. */
uint32_t vhca_table_skip(const struct vhca_table *t, uint32_t i);
/* What its slots take. */
struct qhca_holding vhca_table_holding(const struct vhca_table *t,
                                       const char *what);
/* The object in slot *@i or the next one that has any; *@i goes behind it. */
static inline void *vhca_table_next(const struct vhca_table *t, uint32_t *i)
{
    while (t->used > 0 && (*i = vhca_table_skip(t, *i)) < t->size) {
        void *obj = t->slot[(*i)++];

        if (obj) {
            return obj;
        }
    }
    return NULL;
}

/* Visits every object of @t; the body may delete the one it is given. */
#define vhca_table_each(t, obj) \
    for (uint32_t i_ = 0; ((obj) = vhca_table_next((t), &i_)) != NULL;)

/*
 * vhca_table_next() as far as the budget goes, a unit for some slots; NULL also
 * if that is at its end before *@i is.
 */
void *vhca_table_scan(struct qhca_engine *e, const struct vhca_table *t,
                      uint32_t *i);

#endif /* QHCA_ENGINE_CORE_TABLE_H */
