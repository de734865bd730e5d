/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: timers, as a binary heap of deadlines.
 *
 * The caller of the engine offers one timer. With a heap, setting, cancelling
 * and expiring any of tens of thousands is cheap, and costs nothing if none
 * runs.
 */
#include <assert.h>
#include <stdlib.h>

#include "core.h"

#define PS_PER_NS   1000u
#define PS_PER_US   1000000u

static void heap_put(struct vhca_timers *h, uint32_t i, struct vhca_timer *t)
{
    h->heap[i] = t;
    t->pos = i + 1;
}

/* Put @t where it belongs, starting from the hole at @i. */
static void settle(struct vhca_timers *h, uint32_t i, struct vhca_timer *t)
{
    uint32_t child;

    while (i > 0 && t->deadline < h->heap[(i - 1) / 2]->deadline) {
        heap_put(h, i, h->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    /* If it has come up, all below are later. */
    while ((child = 2 * i + 1) < h->used) {
        if (child + 1 < h->used &&
            h->heap[child + 1]->deadline < h->heap[child]->deadline) {
            child++;
        }
        if (t->deadline <= h->heap[child]->deadline) {
            break;
        }
        heap_put(h, i, h->heap[child]);
        i = child;
    }
    heap_put(h, i, t);
}

void vhca_timers_provide(struct qhca_engine *e, uint32_t num_timers)
{
    e->timers.size += num_timers;
}

bool vhca_timers_alloc(struct qhca_engine *e)
{
    e->timers.heap = calloc(e->timers.size, sizeof(*e->timers.heap));
    return e->timers.heap;
}

void vhca_timer_put(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline)
{
    struct vhca_timers *h = &e->timers;
    uint32_t i = t->pos ? t->pos - 1 : h->used;

    if (!t->pos) {
        assert(h->used < h->size);
        h->used++;
    }
    t->deadline = deadline;
    settle(h, i, t);
}

/* A timer that its own function sets again waits for another tick. */
void vhca_timer_set(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline)
{
    vhca_timer_put(e, t, MAX_OF(deadline, e->now + 1));
}

void vhca_timer_cancel(struct qhca_engine *e, struct vhca_timer *t)
{
    struct vhca_timers *h = &e->timers;
    uint32_t i = t->pos - 1;
    struct vhca_timer *last;

    if (!t->pos) {
        return;
    }
    t->pos = 0;
    last = h->heap[--h->used];
    if (last != t) {
        settle(h, i, last);
    }
}

bool vhca_timers_expire(struct qhca_engine *e)
{
    struct vhca_timers *h = &e->timers;
    struct vhca_timer *t;

    while (h->used > 0 && h->heap[0]->deadline <= e->now) {
        if (!vhca_may_go_on(e)) {
            return true;
        }
        vhca_spend(e, 1);
        t = h->heap[0];
        vhca_timer_cancel(e, t);
        t->fn(e, t);
    }
    return false;
}

uint64_t vhca_timers_next(const struct qhca_engine *e)
{
    return e->timers.used > 0 ? e->timers.heap[0]->deadline : UINT64_MAX;
}

void vhca_timers_sync(struct qhca_engine *e, uint64_t next)
{
    struct vhca_timers *h = &e->timers;

    if (!vhca_running(e)) {
        next = UINT64_MAX;
    }
    if (next != h->armed) {
        h->armed = next;
        e->ops->set_timer(e->opaque, next);
    }
}

/* ---- rates, as leaky buckets ---- */

void vhca_pace_set(struct vhca_pace *p, uint64_t now, uint32_t mbit)
{
    p->slack = VHCA_PACE_NS;
    p->cost = mbit ? 8 * PS_PER_US / mbit : 0;
    p->paid = MIN_OF(p->paid, now);
}

unsigned vhca_pace_room(const struct vhca_pace *p, uint64_t now, unsigned max)
{
    uint64_t owed = p->paid > now ? p->paid - now : 0;
    uint64_t room;

    if (owed >= p->slack) {
        return 0;
    }
    room = (p->slack - owed) * PS_PER_NS;
    /* Avoid the division in the common case. */
    return room >= max * p->cost ?
           max : (unsigned)((room + p->cost - 1) / p->cost);
}

void vhca_pace_spend(struct vhca_pace *p, uint64_t now, uint64_t n)
{
    uint64_t most = now + VHCA_DEBT_NS;

    p->paid = MIN_OF(MAX_OF(p->paid, now) + n * p->cost / PS_PER_NS, most);
}
