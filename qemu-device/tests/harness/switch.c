/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: the switch. */
#include "debug.h"
#include "switch.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How long @bytes take on a link. */
static uint64_t takes(const struct net_switch *s, uint64_t bytes)
{
    return bytes * 8000 / s->mbit;
}

uint64_t switch_in(struct net *n, unsigned from, size_t len)
{
    struct net_switch *s = n->switched;

    s->in[from] = later(s->in[from], n->clock) + takes(s, len);
    return s->in[from];
}

/* Whether a packet that finds @queued bytes before it is to be marked. */
static bool to_mark(struct net *n, unsigned queued)
{
    const struct net_switch *s = n->switched;

    if (queued <= s->kmin || queued >= s->kmax) {
        return queued >= s->kmax;
    }
    return (test_random(&n->rng) >> 20) % 1000000 * (s->kmax - s->kmin) <
           (uint64_t)s->ppm * (queued - s->kmin);
}

/* Marks the IPv4 packet if its sender allows that. */
static bool mark(uint8_t *frame)
{
    uint8_t *ip = frame + ETH_LEN;

    if (!(ip[1] & IP_ECN_MASK)) {
        return false;
    }
    roce_set_ecn(ip, true, IP_ECN_CE);
    return true;
}

uint64_t switch_out(struct net *n, unsigned to, uint8_t *frame, size_t len)
{
    struct net_switch *s = n->switched;
    uint64_t waits = later(s->out[to], n->clock) - n->clock;
    unsigned queued = (unsigned)(waits * s->mbit / 8000);

    if (queued + len > s->limit) {
        s->lost++;
        return 0;
    }
    if (to_mark(n, queued) && mark(frame)) {
        s->marked++;
    }
    s->deepest = queued > s->deepest ? queued : s->deepest;
    s->area += queued * takes(s, len);
    s->out[to] = n->clock + waits + takes(s, len);
    return s->out[to];
}
