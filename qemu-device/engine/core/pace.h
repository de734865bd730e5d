/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: rates. */
#ifndef QHCA_ENGINE_CORE_PACE_H
#define QHCA_ENGINE_CORE_PACE_H

#include <stdint.h>

#define QHCA_PACE_NS        1000000u

/* struct vhca_pace - a rate, which holds on average */
struct vhca_pace {
    uint64_t cost;              /* picoseconds per piece; 0: no limit */
    uint64_t slack;             /* nanoseconds that may be owed */
    uint64_t paid;              /* when everything taken will be paid for */
};

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

#endif /* QHCA_ENGINE_CORE_PACE_H */
