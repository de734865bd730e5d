/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: object numbers.
 *
 * Users of one device see each other's numbers, and memory keys contain them,
 * so no user must be able to predict the next one. Each is drawn at random from
 * all 2^24, and a hash table finds its object: the low bits name a bucket of a
 * few slots. There are twice as many slots as objects, so at least half of the
 * buckets have room for one more.
 */
#include <stdlib.h>

#include "core.h"

#define WAYS    8u              /* slots per bucket */
/* Bytes of a bucket: slots, numbers, when they were freed, what there is. */
#define BUCKET  (WAYS * (sizeof(void *) + 2 * sizeof(uint32_t)) + 1)

bool vhca_table_init(struct vhca_table *t, struct qhca_engine *e, uint32_t max)
{
    uint32_t size = WAYS;

    while (size < 2 * max) {
        size <<= 1;
    }
    t->max = max;
    t->size = size;
    t->used = t->frees = t->known = 0;
    t->e = e;
    /* In one piece, which the host provides page by page as it is touched. */
    t->slot = calloc(size / WAYS, BUCKET);
    if (!t->slot) {
        return false;
    }
    t->number = (uint32_t *)(t->slot + size);
    t->freed = t->number + size;
    t->bucket = (uint8_t *)(t->freed + size);
    return true;
}

void vhca_table_free(struct vhca_table *t)
{
    free(t->slot);
    memset(t, 0, sizeof(*t));
}

struct qhca_holding vhca_table_holding(const struct vhca_table *t,
                                       const char *what)
{
    return (struct qhca_holding) {
        .what = what,
        .size = BUCKET,
        .max = t->size / WAYS, .used = t->size / WAYS,
    };
}

/* Reserved numbers: 0 is no object, 1 is QP1, 0xffffff the multicast QPN. */
static bool is_reserved(uint32_t number)
{
    return number <= 1 || number == QHCA_OBJ_MASK;
}

void vhca_table_forget(struct vhca_table *t)
{
    /* Memory that no number has touched yet costs the host nothing. */
    for (uint32_t i = vhca_table_skip(t, 0); i < t->size;
         i = vhca_table_skip(t, i + WAYS)) {
        memset(&t->number[i], 0, WAYS * sizeof(*t->number));
        memset(&t->freed[i], 0, WAYS * sizeof(*t->freed));
        t->bucket[i / WAYS] = VHCA_BUCKET_UNUSED;
    }
    t->frees = t->known = 0;
}

void vhca_table_note(struct vhca_table *t, uint32_t i, uint32_t number)
{
    uint8_t *has = &t->bucket[i / WAYS];

    t->number[i] = number;
    if (*has == VHCA_BUCKET_UNUSED) {
        *has = VHCA_BUCKET_KNOWN;
        t->known++;
    }
}

void vhca_table_put(struct vhca_table *t, uint32_t i, void *obj)
{
    t->slot[i] = obj;
    t->bucket[i / WAYS] = VHCA_BUCKET_BUSY;
    t->used++;
}

/*
 * Every check of the invariants walks over the whole of large, nearly empty
 * tables: by words alone test_mr takes twice as long.
 */
uint32_t vhca_table_skip(const struct vhca_table *t, uint32_t i)
{
    static const uint8_t unused[2048];
    const uint8_t *at = t->bucket + i / WAYS;
    const uint8_t *end = t->bucket + t->size / WAYS;
    uint64_t some = 0;

    if (i % WAYS || i == t->size) {
        return i;
    }
    if (t->known == 0) {
        return t->size;
    }
    while (end - at >= (ptrdiff_t)sizeof(unused) &&
           !memcmp(at, unused, sizeof(unused))) {
        at += sizeof(unused);
    }
    while (end - at >= (ptrdiff_t)sizeof(some) &&
           (memcpy(&some, at, sizeof(some)), !some)) {
        at += sizeof(some);
    }
    while (at < end && *at == VHCA_BUCKET_UNUSED) {
        at++;
    }
    return (uint32_t)(at - t->bucket) * WAYS;
}

uint32_t vhca_table_skip_free(const struct vhca_table *t, uint32_t i)
{
    const uint8_t *next;

    if (i % WAYS || i == t->size) {
        return i;
    }
    next = memchr(t->bucket + i / WAYS, VHCA_BUCKET_BUSY,
                  (t->size - i) / WAYS);
    return next ? (uint32_t)(next - t->bucket) * WAYS : t->size;
}

/* Return the first slot of a number's bucket. */
static uint32_t bucket(const struct vhca_table *t, uint32_t number)
{
    return number * WAYS & (t->size - 1);
}

/*
 * Return the slot for a new object of that number: the slot of its bucket that
 * has been free for longest, as a number is remembered until its slot is taken.
 * Returns t->size if the number is or was in use, or if the bucket is full.
 */
static uint32_t table_place(const struct vhca_table *t, uint32_t number)
{
    uint32_t first = bucket(t, number), best = t->size, best_age = 0;

    for (uint32_t i = first; i < first + WAYS; i++) {
        if (t->number[i] == number) {
            return t->size;
        }
        if (!t->slot[i] &&
            (best == t->size || t->frees - t->freed[i] > best_age)) {
            best = i;
            best_age = t->frees - t->freed[i];
        }
    }
    return best;
}

bool vhca_table_fits(const struct vhca_table *t, uint32_t i, uint32_t number)
{
    uint32_t first = bucket(t, number);

    return !is_reserved(number) && i >= first && i < first + WAYS &&
           table_place(t, number) != t->size;
}

uint32_t vhca_table_add(struct vhca_table *t, void *obj)
{
    uint32_t number, i;

    if (t->used == t->max) {
        return 0;
    }
    do {
        number = t->e->ops->random(t->e->opaque) & QHCA_OBJ_MASK;
        i = is_reserved(number) ? t->size : table_place(t, number);
    } while (i == t->size);
    vhca_table_note(t, i, number);
    vhca_table_put(t, i, obj);
    return number;
}

/* Return the slot of a number that is in use, else t->size. */
static inline uint32_t find(const struct vhca_table *t, uint32_t number)
{
    uint32_t first = bucket(t, number);

    for (uint32_t i = first; i < first + WAYS; i++) {
        if (t->number[i] == number && t->slot[i]) {
            return i;
        }
    }
    return t->size;
}

void *vhca_table_get(const struct vhca_table *t, uint32_t number)
{
    uint32_t i = find(t, number);

    return i < t->size ? t->slot[i] : NULL;
}

void *vhca_table_scan(struct qhca_engine *e, const struct vhca_table *t,
                      uint32_t *i)
{
    void *obj = NULL;

    while (!obj && *i < t->size && vhca_may_go_on(e)) {
        if (*i % VHCA_UNIT_OBJECTS == 0) {
            vhca_spend(e, 1);
        }
        obj = t->slot[(*i)++];
    }
    return obj;
}

void vhca_table_del(struct vhca_table *t, uint32_t number)
{
    uint32_t first = bucket(t, number), i = find(t, number);
    uint8_t has = VHCA_BUCKET_KNOWN;

    VHCA_ASSERT(vhca_table_get(t, number));
    t->slot[i] = NULL;
    t->freed[i] = ++t->frees;
    t->used--;
    for (i = first; i < first + WAYS; i++) {
        has = t->slot[i] ? VHCA_BUCKET_BUSY : has;
    }
    t->bucket[first / WAYS] = has;
}

/* ---- objects that have only a number and a count of users ---- */

int vhca_holder_alloc(struct vhca_table *t, size_t size, struct vhca_cmd_ctx *c)
{
    struct vhca_holder *h = calloc(1, size);

    if (!h) {
        return QHCA_ERR_NO_RESOURCE;
    }
    h->number = vhca_table_add(t, h);
    if (!h->number) {
        free(h);
        return QHCA_ERR_NO_RESOURCE;
    }
    c->obj = h->number;
    return QHCA_OK;
}

static void free_holder(struct vhca_table *t, struct vhca_holder *h)
{
    vhca_table_del(t, h->number);
    free(h);
}

int vhca_holder_dealloc(struct vhca_table *t, struct vhca_cmd_ctx *c)
{
    struct vhca_holder *h = vhca_table_get(t, le32toh(c->cmd->obj.obj));

    if (!h) {
        return QHCA_ERR_OBJ;
    }
    if (h->users) {
        return QHCA_ERR_BUSY;
    }
    free_holder(t, h);
    return QHCA_OK;
}

void vhca_holder_free_all(struct vhca_table *t)
{
    struct vhca_holder *h;

    vhca_table_each(t, h) {
        free_holder(t, h);
    }
}
