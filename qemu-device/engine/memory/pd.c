/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: protection domains. A PD is a number that QPs, MRs and address
 * handles must share; it has no other state than who is in it.
 */
#include <stdlib.h>

#include "memory.h"

static int alloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_pd *pd = calloc(1, sizeof(*pd));

    if (!pd) {
        return QHCA_ERR_NO_RESOURCE;
    }
    pd->pdn = qhca_table_add(&e->memory->pd, pd);
    if (!pd->pdn) {
        free(pd);
        return QHCA_ERR_NO_RESOURCE;
    }
    c->obj = pd->pdn;
    return QHCA_OK;
}

static int dealloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_pd *pd = qhca_table_get(&e->memory->pd,
                                        le32toh(c->cmd->obj.obj));

    if (!pd) {
        return QHCA_ERR_OBJ;
    }
    if (pd->users) {
        return QHCA_ERR_BUSY;
    }
    qhca_table_del(&e->memory->pd, pd->pdn);
    free(pd);
    return QHCA_OK;
}

void qhca_pd_free_all(struct qhca_engine *e)
{
    struct qhca_pd *pd;

    qhca_table_each(&e->memory->pd, pd) {
        qhca_table_del(&e->memory->pd, pd->pdn);
        free(pd);
    }
}

const struct qhca_command qhca_pd_commands[] = {
    QHCA_COMMAND(ALLOC_PD, alloc_pd),
    QHCA_COMMAND(DEALLOC_PD, dealloc_pd),
    { 0 }
};
