/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the tables of the room.
 */
#include "receive.h"



static bool init(struct qhca_engine *e)
{
    return qhca_table_init(&e->receive->srq, QHCA_MAX_SRQ, &e->rng) &&
           qhca_table_init(&e->receive->xrcd, QHCA_MAX_XRCD, &e->rng);
}

static void reset(struct qhca_engine *e)
{
    qhca_srq_free_all(e);
    qhca_holder_free_all(&e->receive->xrcd);
}

static void fini(struct qhca_engine *e)
{
    qhca_table_free(&e->receive->srq);
    qhca_table_free(&e->receive->xrcd);
}

static unsigned num_objects(const struct qhca_engine *e)
{
    return e->receive->srq.used + e->receive->xrcd.used;
}

const struct qhca_room qhca_receive_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .num_objects = num_objects,
    .commands = (const struct qhca_command *const[]) {
        qhca_srq_commands, qhca_xrcd_commands, NULL
    },
};
