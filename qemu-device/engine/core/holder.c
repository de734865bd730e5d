/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: objects that have only a number and a count of users.
 */
#include <stdlib.h>

#include "core.h"

int vhca_holder_alloc(struct vhca_table *t, size_t size, struct vhca_cmd_ctx *c)
{
    struct vhca_holder *h = calloc(1, size);

    if (!h) {
        return QHCA_ERR_NO_RESOURCE;
    }
    h->number = vhca_table_add(t, h);
    if (!h->number) {
        free(h);
        return QHCA_ERR_NO_RESOURCE;
    }
    c->obj = h->number;
    return QHCA_OK;
}

static void free_holder(struct vhca_table *t, struct vhca_holder *h)
{
    vhca_table_del(t, h->number);
    free(h);
}

int vhca_holder_dealloc(struct vhca_table *t, struct vhca_cmd_ctx *c)
{
    struct vhca_holder *h = vhca_table_get(t, le32toh(c->cmd->obj.obj));

    if (!h) {
        return QHCA_ERR_OBJ;
    }
    if (h->users) {
        return QHCA_ERR_BUSY;
    }
    free_holder(t, h);
    return QHCA_OK;
}

void vhca_holder_free_all(struct vhca_table *t)
{
    struct vhca_holder *h;

    vhca_table_each(t, h) {
        free_holder(t, h);
    }
}
