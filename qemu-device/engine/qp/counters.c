/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: counters. The device counts everything; a set of counters also
 * counts what happens to the QPs that are bound to it.
 */
#include "qp.h"

void vhca_cntset_bind(struct vhca_qp *qp, struct vhca_cntset *set)
{
    if (qp->cntset) {
        qp->cntset->base.users--;
    }
    qp->cntset = set;
    if (set) {
        set->base.users++;
    }
}

int vhca_do_alloc_cntset(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_alloc(&e->qps->cntset, sizeof(struct vhca_cntset), c);
}

int vhca_do_dealloc_cntset(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_dealloc(&e->qps->cntset, c);
}

/* Bind the QP to a set, or to none. */
int vhca_do_bind_cntset(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_bind_cntset *r = &c->cmd->bind_cntset;
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(r->qpn));
    struct vhca_cntset *set = vhca_table_get(&e->qps->cntset,
                                             le32toh(r->cntset));

    if (!qp || (r->cntset && !set)) {
        return QHCA_ERR_OBJ;
    }
    vhca_cntset_bind(qp, set);
    return QHCA_OK;
}

static int counters_answer(struct vhca_cmd_ctx *c, const uint64_t *cnt,
                           const uint64_t *without)
{
    uint64_t v;

    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        v = htole64(cnt[i] - (without ? without[i] : 0));
        memcpy(c->mbox + i * sizeof(v), &v, sizeof(v));
    }
    return QHCA_OK;
}

/* Totals since the device was created. */
int vhca_do_query_counters(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return counters_answer(c, e->cnt, NULL);
}

/* Counters of a set; number 0: what no set has counted. */
int vhca_do_query_cntset(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    uint32_t number = le32toh(c->cmd->obj.obj);
    const struct vhca_cntset *set = vhca_table_get(&e->qps->cntset, number);

    if (!number) {
        return counters_answer(c, e->cnt, e->qps->set_cnt);
    }
    return set ? counters_answer(c, set->cnt, NULL) : QHCA_ERR_OBJ;
}
