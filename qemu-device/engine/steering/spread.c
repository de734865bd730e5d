/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: spreads: QPs that share the frames of a rule. */
#include <stdlib.h>

#include "steering.h"
#include "../wire/wire.h"

struct vhca_qp *vhca_spread_choose(const struct vhca_spread *s,
                                   const uint8_t *frame, size_t len)
{
    uint32_t hash = 0;

    if (!vhca_frame_hash(s->key, s->types, frame, len, &hash)) {
        return s->qp[0];
    }
    return s->qp[hash & ((1u << s->log_size) - 1)];
}

struct vhca_qp *vhca_raw_target(struct qhca_engine *e, uint32_t qpn)
{
    struct vhca_qp *qp = vhca_qp_get(e, qpn);

    return qp && qp->type == QHCA_QPT_RAW ? qp : NULL;
}

int vhca_spread_find(struct qhca_engine *e, struct vhca_spread *s,
                     const struct qhca_spread *r)
{
    uint32_t types = le32toh(r->types);

    if (types & ~VHCA_RSS_TYPES) {
        return QHCA_ERR_PARAM;
    }
    if (r->log_size > QHCA_SPREAD_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    s->types = (uint8_t)types;
    s->log_size = r->log_size;
    memcpy(s->key, r->key, sizeof(s->key));
    for (unsigned i = 0; i < 1u << s->log_size; i++) {
        s->qp[i] = vhca_raw_target(e, le32toh(r->qpn[i]));
        if (!s->qp[i]) {
            return QHCA_ERR_OBJ;
        }
    }
    return QHCA_OK;
}

void vhca_spread_count(struct vhca_spread *s, int by)
{
    for (unsigned i = 0; i < 1u << s->log_size; i++) {
        s->qp[i]->groups += (uint32_t)by;
    }
}

int vhca_do_create_spread(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_table *t = &e->raw->spread;
    struct vhca_spread *s;
    struct qhca_spread r;
    int status;

    memcpy(&r, c->mbox, sizeof(r));
    s = t->used < t->max ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = vhca_spread_find(e, s, &r);
    if (status != QHCA_OK) {
        free(s);
        return status;
    }
    vhca_spread_count(s, 1);
    c->obj = s->number = vhca_table_add(t, s);
    return QHCA_OK;
}

int vhca_do_destroy_spread(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_table *t = &e->raw->spread;
    struct vhca_spread *s = vhca_table_get(t, le32toh(c->cmd->obj.obj));

    if (!s) {
        return QHCA_ERR_OBJ;
    }
    if (s->users) {
        return QHCA_ERR_BUSY;
    }
    vhca_spread_count(s, -1);
    vhca_table_del(t, s->number);
    free(s);
    return QHCA_OK;
}
