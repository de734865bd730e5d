/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, events: the tables of the room. */
#include "events.h"

static bool events_init(struct qhca_engine *e)
{
    vhca_timers_provide(e, VHCA_MAX_CQ);
    return vhca_table_init(&e->events->cq, e, VHCA_MAX_CQ);
}

static void events_reset(struct qhca_engine *e)
{
    vhca_cq_free_all(e);
    vhca_eq_free_all(e);
    vhca_list_init(&e->events->failed);
    vhca_list_init(&e->events->roomy);
}

static void events_fini(struct qhca_engine *e)
{
    vhca_table_free(&e->events->cq);
}

static unsigned events_holdings(const struct qhca_engine *e,
                                struct qhca_holding *h)
{
    unsigned eqs = 0;

    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        eqs += e->events->eq[i].used;
    }
    /* EQs are members of the engine, and cost nothing extra. */
    h[0] = (struct qhca_holding) { "EQ", true, 0, VHCA_MAX_EQ, eqs };
    h[1] = (struct qhca_holding) {
        "CQ", true, sizeof(struct vhca_cq), VHCA_MAX_CQ, e->events->cq.used
    };
    h[2] = vhca_table_holding(&e->events->cq, "CQ numbers");
    return 3;
}

const struct vhca_room vhca_events_room = {
    .init = events_init, .reset = events_reset, .fini = events_fini,
    .holdings = events_holdings,
    .section = "queues", .version = 1, .walk = vhca_events_walk,
};
