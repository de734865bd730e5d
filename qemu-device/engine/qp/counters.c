/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: counters. Everything is counted once for the device; what
 * happens to a QP that is bound to a set of counters is counted there as well.
 */
#include "qp.h"

void qhca_cntset_bind(struct qhca_qp *qp, struct qhca_cntset *set)
{
    if (qp->cntset) {
        qp->cntset->base.users--;
    }
    qp->cntset = set;
    if (set) {
        set->base.users++;
    }
}

static int alloc_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_alloc(&e->qps->cntset, sizeof(struct qhca_cntset), c);
}

static int dealloc_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_dealloc(&e->qps->cntset, c);
}

/* From now on @set counts for the QP. */
static int bind_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const struct qhca_cmd_bind_cntset *r = &c->cmd->bind_cntset;
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(r->qpn));
    struct qhca_cntset *set = qhca_table_get(&e->qps->cntset,
                                             le32toh(r->cntset));

    if (!qp || (r->cntset && !set)) {
        return QHCA_ERR_OBJ;
    }
    qhca_cntset_bind(qp, set);
    return QHCA_OK;
}

static int answer(struct qhca_cmd_ctx *c, const uint64_t *cnt,
                  const uint64_t *without)
{
    uint64_t v;
    unsigned i;

    for (i = 0; i < QHCA_CNT_MAX; i++) {
        v = htole64(cnt[i] - (without ? without[i] : 0));
        memcpy(c->mbox + i * sizeof(v), &v, sizeof(v));
    }
    return QHCA_OK;
}

/* Totals since the device was made. */
static int query_counters(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return answer(c, e->cnt, NULL);
}

/* Of one set; number 0: what no set has counted. */
static int query_cntset(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    uint32_t number = le32toh(c->cmd->obj.obj);
    const struct qhca_cntset *set = qhca_table_get(&e->qps->cntset, number);

    if (!number) {
        return answer(c, e->cnt, e->qps->set_cnt);
    }
    return set ? answer(c, set->cnt, NULL) : QHCA_ERR_OBJ;
}

/* The counts of the sets that go fall back to set 0. */
void qhca_cntset_free_all(struct qhca_engine *e)
{
    qhca_holder_free_all(&e->qps->cntset);
    memset(e->qps->set_cnt, 0, sizeof(e->qps->set_cnt));
}

const struct qhca_command qhca_counter_commands[] = {
    QHCA_COMMAND_OUT(QUERY_COUNTERS, query_counters, __le64[QHCA_CNT_MAX]),
    QHCA_COMMAND(ALLOC_CNTSET, alloc_cntset),
    QHCA_COMMAND(DEALLOC_CNTSET, dealloc_cntset),
    QHCA_COMMAND_OUT(QUERY_CNTSET, query_cntset, __le64[QHCA_CNT_MAX]),
    QHCA_COMMAND(BIND_CNTSET, bind_cntset),
    { 0 }
};
