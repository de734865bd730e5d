/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: objects whose whole life is a number and a count of users.
 */
#include <stdlib.h>

#include "core.h"

int qhca_holder_alloc(struct qhca_table *t, size_t size, struct qhca_cmd_ctx *c)
{
    struct qhca_holder *h = calloc(1, size);

    if (!h) {
        return QHCA_ERR_NO_RESOURCE;
    }
    h->number = qhca_table_add(t, h);
    if (!h->number) {
        free(h);
        return QHCA_ERR_NO_RESOURCE;
    }
    c->obj = h->number;
    return QHCA_OK;
}

static void free_holder(struct qhca_table *t, struct qhca_holder *h)
{
    qhca_table_del(t, h->number);
    free(h);
}

int qhca_holder_dealloc(struct qhca_table *t, struct qhca_cmd_ctx *c)
{
    struct qhca_holder *h = qhca_table_get(t, le32toh(c->cmd->obj.obj));

    if (!h) {
        return QHCA_ERR_OBJ;
    }
    if (h->users) {
        return QHCA_ERR_BUSY;
    }
    free_holder(t, h);
    return QHCA_OK;
}

void qhca_holder_free_all(struct qhca_table *t)
{
    struct qhca_holder *h;

    qhca_table_each(t, h) {
        free_holder(t, h);
    }
}
