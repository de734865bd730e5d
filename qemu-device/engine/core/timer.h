/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: any number of deadlines on one host timer. */
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
 * Make room for @num_timers more timers. Each room asks once, for all the
 * objects that it can have, so starting a timer cannot fail. Returns false if
 * there is no memory.
 */
bool vhca_timers_provide(struct qhca_engine *e, uint32_t num_timers);
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

#endif /* QHCA_ENGINE_CORE_TIMER_H */
