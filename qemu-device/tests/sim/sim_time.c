/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: how long a schedule may take. The bound follows from what
 * there is to do and from what got in the way: a timer that runs where a packet
 * would do makes it late.
 */
#include "sim.h"

#define US              1000ull
/* Posting, polling and waiting for a receive WR, on average of a WR. */
#define WR_NS           (400 * US)
/* A network that is blocked makes that longer. */
#define SLOW_FACTOR     3
/* Waiting for a page whose event is forgotten, and asking again. */
#define FAULT_NS        (12000 * US)
/* A loss costs a timeout at most, and what comes of that. */
#define LOSS_NS         (2 * (4096ull << 10))

static uint64_t count(const struct sim *s, enum qhca_counter which)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < s->num_nodes; i++) {
        sum += counter(s->node[i].g, which);
    }
    return sum;
}

/* Losses: most hits of a rule also lose a packet. */
static uint64_t lost(const struct sim *s)
{
    uint64_t sum = s->net->lost + s->net->corrupted;

    for (unsigned i = 0; i < s->num_nodes; i++) {
        sum += guest_fault_hits(s->node[i].g);
    }
    return sum;
}

void sim_time_begin(struct sim *s)
{
    s->begin = s->net->clock;
    s->faults_before = count(s, QHCA_CNT_PAGE_FAULT);
    s->lost_before = lost(s);
}

static uint64_t bytes_of(const struct sim_qp *q)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < q->num_wr; i++) {
        bytes += q->wr[i].len + 100;
    }
    return bytes;
}

uint64_t sim_time_bound(const struct sim *s)
{
    /* One QP at a time goes to SQD or back. */
    unsigned slow = sim_drains(s->kind) ? SLOW_FACTOR * s->num_qps :
                    sim_blocks(s->kind) ? SLOW_FACTOR : 1;
    uint64_t bytes = 0, most = 0;

    if (sim_both_slow(s)) {
        return UINT64_MAX;      /* each round lets a long time pass */
    }
    for (unsigned i = 0; i < s->num_qps; i++) {
        bytes += bytes_of(&s->qp[i]);
        most = MAX_OF(most, s->qp[i].num_wr);
    }
    return 10000 * US + most * WR_NS * slow +
           (s->mbit ? 2 * bytes * 8000 / s->mbit : 0) +
           (s->untimed ? 0 : (lost(s) - s->lost_before) * LOSS_NS) +
           (s->paged ? (count(s, QHCA_CNT_PAGE_FAULT) - s->faults_before) *
                       FAULT_NS : 0);
}
