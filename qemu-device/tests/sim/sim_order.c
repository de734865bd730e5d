/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: data that reach memory late, in any order. Some schedules
 * have devices that do so. Then a WRITE can be complete and its data not there,
 * but they are when anything else says that it has been executed behind it.
 */
#include "sim.h"

#include <stdio.h>

void sim_order_draw(struct sim *s)
{
    static const char *const some[] = {
        "port order=adversarial",
        "port order=adversarial within=2us",
        "port order=adversarial within=1ms grain=8",
        "port order=adversarial within=200us grain=64",
    };
    uint64_t rng = s->rng;

    sim_stream(s, SIM_STREAM_ORDER);
    s->order = s->has & SIM_HAS(ORDER) ? some[sim_rand(s, ARRAY_SIZE(some))] :
                                         "";
    s->rng = rng;
}

void sim_rules(struct sim *s, struct guest *g, const char *text)
{
    char all[256];

    snprintf(all, sizeof(all), "seed=%llu\n%s\n%s",
             (unsigned long long)s->seed, text, s->order);
    guest_set_faults(g, all);
}

static bool is_there(struct sim_qp *q, const struct sim_wr *w)
{
    return guest_has_pattern(q->peer->q.n->g, w->remote, w->len, w->seed);
}

void sim_judge_write(struct sim *s, struct sim_qp *q, unsigned i)
{
    struct sim_wr *w = &q->wr[i];

    if (is_there(q, w)) {
        return;
    }
    if (!*s->order || w->wr.opcode != QHCA_WR_RDMA_WRITE) {
        sim_fail(s, "WR %u is complete, its data not there", i);
        return;
    }
    w->late = true;
    s->saw[SIM_SAW_LATE]++;
}

void sim_judge_late(struct sim *s, struct sim_qp *q, unsigned end)
{
    for (unsigned i = 0; i < end; i++) {
        struct sim_wr *w = &q->wr[i];

        if (w->late && !is_there(q, w) && !sim_node_gone(s, q->peer->q.n)) {
            sim_fail(s, "what is behind WR %u is complete, its data not there",
                     i);
        }
        w->late = false;
    }
}
