/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: rates. */
#ifndef QHCA_ENGINE_CORE_PACE_H
#define QHCA_ENGINE_CORE_PACE_H

#include <stdint.h>

#define QHCA_PACE_NS        1000000u

/* struct vhca_pace - a rate, which holds on average */
struct vhca_pace {
    uint64_t cost;              /* picoseconds per piece; 0: no limit */
    uint64_t slack;             /* nanoseconds of it that may be owed */
    uint64_t paid;              /* when what has been taken will be paid for */
};

/* How many pieces may be taken at @now, of @max. */
unsigned vhca_pace_left(const struct vhca_pace *p, uint64_t now, unsigned max);
/* Takes @n, which may be more than that. */
void vhca_pace_take(struct vhca_pace *p, uint64_t now, uint64_t n);

#endif /* QHCA_ENGINE_CORE_PACE_H */
