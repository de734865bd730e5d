/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, memory: the tables of the room, protection domains, and the two
 * keys that always exist.
 */
#include "memory.h"

static bool memory_init(struct qhca_engine *e)
{
    struct vhca_memory *m = e->memory;

    m->reserved_mr.type = QHCA_MR_DMA;
    m->reserved_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    m->null_mr.type = QHCA_MR_NULL;
    m->null_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    vhca_late_init(e);
    return vhca_table_init(&m->pd, e, VHCA_MAX_PD) &&
           vhca_table_init(&m->mr, e, VHCA_MAX_MR + VHCA_MAX_MW);
}

int vhca_do_alloc_pd(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_alloc(&e->memory->pd, sizeof(struct vhca_holder), c);
}

int vhca_do_dealloc_pd(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_dealloc(&e->memory->pd, c);
}

static void memory_reset(struct qhca_engine *e)
{
    vhca_late_forget(e);
    vhca_mw_free_all(e);
    vhca_mr_free_all(e);
    vhca_holder_free_all(&e->memory->pd);
}

static void memory_fini(struct qhca_engine *e)
{
    vhca_table_free(&e->memory->pd);
    vhca_table_free(&e->memory->mr);
}

static unsigned memory_holdings(const struct qhca_engine *e,
                                struct qhca_holding *h)
{
    const struct vhca_memory *m = e->memory;

    h[0] = (struct qhca_holding) {
        "PD", true, sizeof(struct vhca_holder), VHCA_MAX_PD, m->pd.used
    };
    h[1] = (struct qhca_holding) {
        "MR", true, sizeof(struct vhca_mr), VHCA_MAX_MR,
        m->mr.used - m->num_mw
    };
    h[2] = (struct qhca_holding) {
        "MW", true, sizeof(struct vhca_mr), VHCA_MAX_MW, m->num_mw
    };
    h[3] = vhca_table_holding(&m->pd, "PD numbers");
    h[4] = vhca_table_holding(&m->mr, "keys");
    return 5;
}

const struct vhca_room vhca_memory_room = {
    .init = memory_init, .reset = memory_reset, .fini = memory_fini,
    .holdings = memory_holdings,
    .section = "memory", .version = 1, .walk = vhca_memory_walk,
};
