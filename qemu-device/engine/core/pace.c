/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: rates, as leaky buckets: each piece takes time to pay for, and
 * up to @slack of that may be owed.
 */
#include "core.h"

#define PS_PER_NS   1000u

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
    p->paid = MAX_OF(p->paid, now) + n * p->cost / PS_PER_NS;
}
