/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the tables of the room, protection domains, and the two keys
 * that are always there.
 */
#include "memory.h"



static bool init(struct qhca_engine *e)
{
    struct qhca_memory *m = e->memory;

    m->reserved_mr.key = QHCA_RESERVED_LKEY;
    m->reserved_mr.type = QHCA_MR_DMA;
    m->reserved_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    m->null_mr.key = QHCA_NULL_LKEY;
    m->null_mr.type = QHCA_MR_NULL;
    m->null_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    return qhca_table_init(&m->pd, e, QHCA_MAX_PD) &&
           qhca_table_init(&m->mr, e, QHCA_MAX_MR + QHCA_MAX_MW);
}

static int alloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_alloc(&e->memory->pd, sizeof(struct qhca_pd), c);
}

static int dealloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_dealloc(&e->memory->pd, c);
}

static const struct qhca_command pd_commands[] = {
    QHCA_COMMAND(ALLOC_PD, alloc_pd),
    QHCA_COMMAND(DEALLOC_PD, dealloc_pd),
    { 0 }
};

static void reset(struct qhca_engine *e)
{
    qhca_mw_free_all(e);
    qhca_mr_free_all(e);
    qhca_holder_free_all(&e->memory->pd);
}

static void fini(struct qhca_engine *e)
{
    qhca_table_free(&e->memory->pd);
    qhca_table_free(&e->memory->mr);
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    const struct qhca_memory *m = e->memory;

    h[0] = (struct qhca_holding) {
        "PD", true, sizeof(struct qhca_pd), QHCA_MAX_PD, m->pd.used
    };
    h[1] = (struct qhca_holding) {
        "MR", true, sizeof(struct qhca_mr), QHCA_MAX_MR,
        m->mr.used - m->num_mw
    };
    h[2] = (struct qhca_holding) {
        "MW", true, sizeof(struct qhca_mr), QHCA_MAX_MW, m->num_mw
    };
    h[3] = qhca_table_holding(&m->pd, "PD numbers");
    h[4] = qhca_table_holding(&m->mr, "keys");
    return 5;
}

const struct qhca_room qhca_memory_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        pd_commands, qhca_mr_commands, qhca_mw_commands, NULL
    },
    .section = "memory",
    .version = 1,
    .oldest = 1,
    .walk = qhca_memory_walk,
};
