/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: object numbers.
 *
 * A number is its slot in the low bits and a generation above. Slots are taken
 * from a shuffled FIFO and generations start at random, so numbers cannot be
 * guessed from one another, and a stale number is told from the current one.
 */
#include <stdlib.h>

#include "core.h"

uint64_t qhca_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle_free_slots(struct qhca_table *t)
{
    uint32_t i, j, tmp;

    for (i = 0; i < t->size; i++) {
        t->free_slot[i] = i;
    }
    for (i = t->size - 1; i > 0; i--) {
        j = (uint32_t)(qhca_random(t->rng) % (i + 1));
        tmp = t->free_slot[i];
        t->free_slot[i] = t->free_slot[j];
        t->free_slot[j] = tmp;
    }
}

bool qhca_table_init(struct qhca_table *t, uint32_t size, uint64_t *rng)
{
    uint32_t i, span = 1;

    while (span < size) {
        span <<= 1;
    }
    t->size = size;
    t->slot_mask = span - 1;
    t->used = t->head = 0;
    t->rng = rng;
    t->slot = calloc(size, sizeof(*t->slot));
    t->number = calloc(size, sizeof(*t->number));
    t->free_slot = calloc(size, sizeof(*t->free_slot));
    if (!t->slot || !t->number || !t->free_slot) {
        qhca_table_free(t);
        return false;
    }
    shuffle_free_slots(t);
    for (i = 0; i < size; i++) {
        t->number[i] = (uint32_t)qhca_random(rng) & QHCA_OBJ_MASK;
    }
    return true;
}

void qhca_table_free(struct qhca_table *t)
{
    free(t->slot);
    free(t->number);
    free(t->free_slot);
    t->slot = NULL;
    t->number = NULL;
    t->free_slot = NULL;
    t->size = t->used = 0;
}

struct qhca_holding qhca_table_holding(const struct qhca_table *t,
                                       const char *what)
{
    return (struct qhca_holding) {
        .what = what,
        .size = sizeof(*t->slot) + sizeof(*t->number) + sizeof(*t->free_slot),
        .max = t->size, .used = t->size,
    };
}

/* Reserved numbers: 0 is no object, 1 is QP1, 0xffffff the multicast QPN. */
static bool is_reserved(uint32_t number)
{
    return number <= 1 || number == QHCA_OBJ_MASK;
}

static uint32_t next_number(const struct qhca_table *t, uint32_t slot)
{
    uint32_t number = (t->number[slot] & ~t->slot_mask) | slot;

    do {
        number = (number + t->slot_mask + 1) & QHCA_OBJ_MASK;
    } while (is_reserved(number));
    return number;
}

uint32_t qhca_table_add(struct qhca_table *t, void *obj)
{
    uint32_t slot;

    if (t->used == t->size) {
        return 0;
    }
    slot = t->free_slot[t->head];
    t->head = (t->head + 1) % t->size;
    t->used++;
    t->slot[slot] = obj;
    t->number[slot] = next_number(t, slot);
    return t->number[slot];
}

void *qhca_table_get(const struct qhca_table *t, uint32_t number)
{
    uint32_t slot = number & t->slot_mask;

    if (slot >= t->size || !t->slot[slot] || t->number[slot] != number) {
        return NULL;
    }
    return t->slot[slot];
}

void *qhca_table_scan(struct qhca_engine *e, const struct qhca_table *t,
                      uint32_t *i)
{
    void *obj = NULL;

    while (!obj && *i < t->size && qhca_may_go_on(e)) {
        if (*i % QHCA_UNIT_OBJECTS == 0) {
            qhca_spend(e, 1);
        }
        obj = t->slot[(*i)++];
    }
    return obj;
}

void qhca_table_del(struct qhca_table *t, uint32_t number)
{
    uint32_t slot = number & t->slot_mask;
    uint32_t tail = (t->head + (t->size - t->used)) % t->size;

    t->slot[slot] = NULL;
    t->free_slot[tail] = slot;
    t->used--;
}
