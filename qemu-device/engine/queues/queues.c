/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the tables of the room.
 */
#include "queues.h"



static bool init(struct qhca_engine *e)
{
    return qhca_timers_provide(e, QHCA_MAX_CQ) &&
           qhca_table_init(&e->queues->cq, e, QHCA_MAX_CQ);
}

static void reset(struct qhca_engine *e)
{
    qhca_cq_free_all(e);
    qhca_eq_free_all(e);
    qhca_list_init(&e->queues->failed);
    qhca_list_init(&e->queues->roomy);
}

static void fini(struct qhca_engine *e)
{
    qhca_table_free(&e->queues->cq);
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    unsigned eqs = 0;

    for (unsigned i = 0; i < QHCA_MAX_EQ; i++) {
        eqs += e->queues->eq[i].used;
    }
    /* In the engine itself. */
    h[0] = (struct qhca_holding) { "EQ", true, 0, QHCA_MAX_EQ, eqs };
    h[1] = (struct qhca_holding) {
        "CQ", true, sizeof(struct qhca_cq), QHCA_MAX_CQ, e->queues->cq.used
    };
    h[2] = qhca_table_holding(&e->queues->cq, "CQ numbers");
    return 3;
}

const struct qhca_room qhca_queues_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        qhca_cq_commands, qhca_eq_commands, NULL
    },
    .section = "queues",
    .version = 1,
    .oldest = 1,
    .walk = qhca_queues_walk,
};
