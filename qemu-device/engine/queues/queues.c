/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the tables of the room.
 */
#include "queues.h"



static bool init(struct qhca_engine *e)
{
    return qhca_timers_provide(e, QHCA_MAX_CQ) &&
           qhca_table_init(&e->queues->cq, QHCA_MAX_CQ, &e->rng);
}

static void reset(struct qhca_engine *e)
{
    qhca_cq_free_all(e);
    qhca_eq_free_all(e);
    qhca_list_init(&e->queues->failed);
}

static void fini(struct qhca_engine *e)
{
    qhca_table_free(&e->queues->cq);
}

static unsigned num_objects(const struct qhca_engine *e)
{
    unsigned n = e->queues->cq.used;

    for (unsigned i = 0; i < QHCA_MAX_EQ; i++) {
        n += e->queues->eq[i].used;
    }
    return n;
}

const struct qhca_room qhca_queues_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .num_objects = num_objects,
    .commands = (const struct qhca_command *const[]) {
        qhca_cq_commands, qhca_eq_commands, NULL
    },
};
