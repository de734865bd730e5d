/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: objects of one kind by number. */
#ifndef QHCA_ENGINE_CORE_TABLE_H
#define QHCA_ENGINE_CORE_TABLE_H

#include "command.h"

/* The slots of a bucket have nothing, at most numbers, or also objects. */
enum vhca_bucket { VHCA_BUCKET_UNUSED, VHCA_BUCKET_KNOWN, VHCA_BUCKET_BUSY };

/*
 * struct vhca_table - objects of one kind by number
 *
 * Numbers are below 2^24 and random, and one that was freed does not come back
 * soon (conformance A-022). Iteration is by slot.
 */
struct vhca_table {
    void **slot;                /* in buckets, by the low bits of the number */
    uint32_t *number;           /* in use or last used, per slot; 0: unused */
    uint32_t *freed;            /* value of @frees at the last free, per slot */
    uint8_t *bucket;            /* enum vhca_bucket, per bucket */
    uint32_t max;               /* objects */
    uint32_t size;              /* slots */
    uint32_t used, frees;
    uint32_t known;             /* buckets that are not unused */
    struct qhca_engine *e;
};

/* Make a table for up to 2^20 objects. Returns false if there is no memory. */
bool vhca_table_init(struct vhca_table *t, struct qhca_engine *e, uint32_t max);
void vhca_table_free(struct vhca_table *t);
/* Give @obj a number, never 0, 1 or 0xffffff. Returns 0 if @t is full. */
uint32_t vhca_table_add(struct vhca_table *t, void *obj);
/* Return the object of a number (which need not exist), or NULL. */
void *vhca_table_get(const struct vhca_table *t, uint32_t number);
/* Remove the object of a number, which must exist, from the table. */
void vhca_table_del(struct vhca_table *t, uint32_t number);
/* Forget all numbers used before; the table must have no objects. */
void vhca_table_forget(struct vhca_table *t);
/* Whether slot @i can get @number, which no object has or had. */
bool vhca_table_fits(const struct vhca_table *t, uint32_t i, uint32_t number);
/* Give slot @i @number, which must fit there. */
void vhca_table_note(struct vhca_table *t, uint32_t i, uint32_t number);
/* Put @obj into slot @i, which has its number. */
void vhca_table_put(struct vhca_table *t, uint32_t i, void *obj);
/* Return @i, or the first slot behind the unused buckets that begin at @i. */
uint32_t vhca_table_skip(const struct vhca_table *t, uint32_t i);
/* vhca_table_skip() for buckets without an object. */
uint32_t vhca_table_skip_free(const struct vhca_table *t, uint32_t i);
/* Return the memory that the slots hold. */
struct qhca_holding vhca_table_holding(const struct vhca_table *t,
                                       const char *what);
/* Return the object in slot *@i or the next one; move *@i behind it. */
static inline void *vhca_table_next(const struct vhca_table *t, uint32_t *i)
{
    while (t->used > 0 && (*i = vhca_table_skip_free(t, *i)) < t->size) {
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
 * vhca_table_next() within the budget, at a unit of work for VHCA_UNIT_OBJECTS
 * slots. NULL with *@i below @t->size means that the budget ended.
 */
void *vhca_table_scan(struct qhca_engine *e, const struct vhca_table *t,
                      uint32_t *i);

/* ---- objects that have only a number and a count of users ---- */

/*
 * struct vhca_holder - a PD or XRC domain, or the head of a set of counters
 * @number: the object's number in its table
 * @users: how many objects belong to it; it can be freed when there are none
 */
struct vhca_holder {
    uint32_t number, users;
};

/* Return the number of @h, 0 if it is NULL. */
static inline uint32_t vhca_holder_number(const struct vhca_holder *h)
{
    return h ? h->number : 0;
}

/*
 * Handle ALLOC of an object of @size bytes, zeroed, or DEALLOC of the object
 * that the command names. Both return enum qhca_cmd_status.
 */
int vhca_holder_alloc(struct vhca_table *t, size_t size,
                      struct vhca_cmd_ctx *c);
int vhca_holder_dealloc(struct vhca_table *t, struct vhca_cmd_ctx *c);
/* Free all objects, for a reset. */
void vhca_holder_free_all(struct vhca_table *t);

#endif /* QHCA_ENGINE_CORE_TABLE_H */
