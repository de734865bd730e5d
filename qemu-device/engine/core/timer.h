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
 * Room for @num_timers more. Each room asks once, for all the objects that it
 * can have, so that starting a timer cannot fail. False: no memory.
 */
bool vhca_timers_provide(struct qhca_engine *e, uint32_t num_timers);
/* (Re)starts @t to expire at @deadline. */
void vhca_timer_set(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline);
/* The same if that is over: it expires with what is due. */
void vhca_timer_put(struct qhca_engine *e, struct vhca_timer *t,
                    uint64_t deadline);
void vhca_timer_cancel(struct qhca_engine *e, struct vhca_timer *t);
/* Runs what is due, a unit each; false: all of that has been run. */
bool vhca_timers_expire(struct qhca_engine *e);
/*
 * Tells ops->set_timer when that is next, or that it is @wake if that is
 * sooner, if it has changed.
 */
void vhca_timers_sync(struct qhca_engine *e, uint64_t wake);

#endif /* QHCA_ENGINE_CORE_TIMER_H */
