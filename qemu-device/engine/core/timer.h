/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: any number of deadlines on one host timer; rates. */
#ifndef QHCA_ENGINE_CORE_TIMER_H
#define QHCA_ENGINE_CORE_TIMER_H

#include "../engine.h"

struct vhca_timer {
    uint64_t deadline;
    uint32_t pos;               /* 1-based place in the heap; 0: not running */
    void (*fn)(struct qhca_engine *e, struct vhca_timer *t);
};

struct vhca_timers {
    struct vhca_timer **heap;   /* the one due first at [0] */
    uint32_t used, size;
    uint64_t armed;             /* deadline given to ops->set_timer */
};

/*
 * Ask for room for @num_timers more timers. Each room asks once, for all the
 * objects that it can have, so starting a timer cannot fail.
 */
void vhca_timers_provide(struct qhca_engine *e, uint32_t num_timers);
/* Make the room that was asked for. Returns false if there is no memory. */
bool vhca_timers_alloc(struct qhca_engine *e);
/* (Re)start @t to expire at @deadline, in a later tick if that has passed. */
void vhca_timer_set(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline);
/* (Re)start @t; if @deadline has passed, it may expire in the current tick. */
void vhca_timer_put(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline);
void vhca_timer_cancel(struct qhca_engine *e, struct vhca_timer *t);
/* Run timers that are due, a unit of work each; true: the budget ended. */
bool vhca_timers_expire(struct qhca_engine *e);
/* Return the next deadline, or UINT64_MAX. */
uint64_t vhca_timers_next(const struct qhca_engine *e);
/* Give ops->set_timer this deadline, unless it has that already. */
void vhca_timers_sync(struct qhca_engine *e, uint64_t next);

/* ---- rates ---- */

#define VHCA_PACE_NS        1000000u
/*
 * The longest time to pay for pieces that have been taken; more is forgiven. At
 * the lowest limits, a percent of the CPU and a Mbit/s, it pays for 200,000
 * units of work or a MiB of frames, more than any step takes.
 */
#define VHCA_DEBT_NS        10000000000ull

/*
 * struct vhca_pace - a rate, which holds on average: each piece takes time to
 * pay for, and up to @slack of that may be owed
 */
struct vhca_pace {
    uint64_t cost;              /* picoseconds per piece; 0: no limit */
    uint64_t slack;             /* nanoseconds that may be owed */
    uint64_t paid;              /* when everything taken will be paid for */
};

/*
 * Set the rate of a wire, in Mbit/s, with bytes as pieces; 0: no limit. This
 * forgives what is owed.
 */
void vhca_pace_set(struct vhca_pace *p, uint64_t now, uint32_t mbit);

/* For vhca_pace_left() and vhca_pace_take() when there is a limit. */
unsigned vhca_pace_room(const struct vhca_pace *p, uint64_t now, unsigned max);
void vhca_pace_spend(struct vhca_pace *p, uint64_t now, uint64_t n);

/* Return how many of @max pieces may be taken at @now. */
static inline unsigned vhca_pace_left(const struct vhca_pace *p, uint64_t now,
                                      unsigned max)
{
    return p->cost ? vhca_pace_room(p, now, max) : max;
}

/* Take @n pieces, which may be more than vhca_pace_left() says. */
static inline void vhca_pace_take(struct vhca_pace *p, uint64_t now, uint64_t n)
{
    if (p->cost && n > 0) {
        vhca_pace_spend(p, now, n);
    }
}

#endif /* QHCA_ENGINE_CORE_TIMER_H */
