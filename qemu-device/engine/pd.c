/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: protection domains. A PD is a number that QPs, MRs and address
 * handles must share; it has no other state than who is in it.
 */
#include <stdlib.h>

#include "internal.h"

/**
 * qhca_cmd_alloc_pd() - ALLOC_PD
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_alloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
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

/**
 * qhca_cmd_dealloc_pd() - DEALLOC_PD
 * @e: the engine
 * @c: the command
 */
int qhca_cmd_dealloc_pd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
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

/**
 * qhca_pd_free_all() - frees every PD (reset)
 * @e: the engine
 */
void qhca_pd_free_all(struct qhca_engine *e)
{
    struct qhca_pd *pd;

    qhca_table_each(&e->memory->pd, pd) {
        qhca_table_del(&e->memory->pd, pd->pdn);
        free(pd);
    }
}
