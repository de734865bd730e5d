/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: QPs in a saved state, and what refers to them: lines, groups,
 * windows that are bound to them, receive WRs that they have taken.
 */
#include <stdlib.h>

#include "transport.h"

static const struct qhca_snap_field qp_fields[] = {
    QHCA_SNAP_ANY(struct qhca_qp, uar),
    QHCA_SNAP_MAX(struct qhca_qp, type, QHCA_NUM_QP_TYPES - 1),
    QHCA_SNAP_MAX(struct qhca_qp, flags,
                  QHCA_QP_FLAG_SIGNAL_ALL | QHCA_QP_FLAG_RESERVED_LKEY |
                  QHCA_QP_FLAG_RQ_DBREC),
    QHCA_SNAP_MAX(struct qhca_qp, state, QHCA_QPS_ERR),
    QHCA_SNAP_FLAG(struct qhca_qp, sqd_notify),
    QHCA_SNAP_FLAG(struct qhca_qp, last_wqe_owed),
    QHCA_SNAP_MAX(struct qhca_qp, max_inline, QHCA_MAX_INLINE),
    QHCA_SNAP_RAW(struct qhca_qp, attr),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_qp, 4880);

/* ---- the objects it refers to ---- */

/* What CREATE_QP has said. */
static struct qhca_create_qp as_created(const struct qhca_qp *qp)
{
    return (struct qhca_create_qp) {
        .type = qp->type, .flags = qp->flags, .uar = htole32(qp->uar),
        .srqn = htole32(qp->srq && !qp->xrcd ? qp->srq->srqn : 0),
        .xrcdn = htole32(qp->xrcd ? qp->xrcd->base.number : 0),
        .sq.num_blocks = htole32(qp->sq.present),
        .sq_log_size = qp->sq.log_size, .sq_log_stride = qp->sq.log_stride,
        .max_send_sge = htole32(qp->sq.max_sge),
        .max_inline = htole32(qp->max_inline),
        .rq.num_blocks = htole32(qp->rq.present),
        .rq_log_size = qp->rq.log_size, .rq_log_stride = qp->rq.log_stride,
        .max_recv_sge = htole32(qp->rq.max_sge),
    };
}

/* The SRQ of an XRC_TGT QP is that of the last packet, if it is there still. */
static bool find_objects(struct qhca_engine *e, struct qhca_qp *qp,
                         struct qhca_create_qp *c)
{
    uint32_t srqn = le32toh(c->srqn);

    if (!qhca_qp_is(qp, QHCA_HAS_XRCD)) {
        return qhca_qp_find_objects(e, qp, c) == QHCA_OK;
    }
    c->srqn = 0;
    if (qhca_qp_find_objects(e, qp, c) != QHCA_OK) {
        return false;
    }
    qp->srq = srqn ? qhca_srq_get(e, srqn) : NULL;
    return !srqn || (qp->srq && qp->srq->xrcd == qp->xrcd);
}

static void walk_refs(struct qhca_snap *s, struct qhca_qp *qp)
{
    struct qhca_create_qp c = { .uar = htole32(qp->uar), .type = qp->type };
    struct qhca_engine *e = s->e;
    uint32_t set;

    c.pdn = htole32(qhca_snap_u32(s, "pdn", qp->pd ? qp->pd->base.number : 0,
                                  QHCA_OBJ_MASK));
    c.send_cqn = htole32(qhca_snap_u32(s, "send_cqn",
                                       qp->scq ? qp->scq->cqn : 0,
                                       QHCA_OBJ_MASK));
    c.recv_cqn = htole32(qhca_snap_u32(s, "recv_cqn",
                                       qp->rcq ? qp->rcq->cqn : 0,
                                       QHCA_OBJ_MASK));
    c.xrcdn = htole32(qhca_snap_u32(s, "xrcdn",
                                    qp->xrcd ? qp->xrcd->base.number : 0,
                                    QHCA_OBJ_MASK));
    c.srqn = htole32(qhca_snap_u32(s, "srqn", qp->srq ? qp->srq->srqn : 0,
                                   QHCA_OBJ_MASK));
    set = qhca_snap_u32(s, "cntset", qp->cntset ? qp->cntset->base.number : 0,
                        QHCA_OBJ_MASK);
    if (!s->load || s->bad) {
        return;
    }
    qhca_snap_check(s, find_objects(e, qp, &c), "objects");
    if (set && !s->bad) {
        struct qhca_cntset *cntset = qhca_table_get(&e->qps->cntset, set);

        qhca_snap_check(s, cntset, "cntset");
        qhca_cntset_bind(qp, cntset);
    }
}

/* ---- a QP ---- */

/* What it was created as. */
static bool shape_ok(const struct qhca_engine *e, const struct qhca_qp *qp)
{
    struct qhca_create_qp c = as_created(qp);

    return qhca_qp_check_create(&c) == QHCA_OK && !qp->sq.dbrec &&
           qp->rq.dbrec == !!(qp->flags & QHCA_QP_FLAG_RQ_DBREC) &&
           (qp->type != QHCA_QPT_GSI || !e->qps->gsi || e->qps->gsi == qp);
}

/* What has come of that since. */
static bool queues_ok(const struct qhca_qp *qp)
{
    return (!qp->rq.rings || qp->state == QHCA_QPS_ERR) &&
           (qp->state != QHCA_QPS_RESET || qp->rq.pi == qp->rq.ci);
}

static void walk_qp_body(struct qhca_snap *s, struct qhca_qp *qp)
{
    qhca_snap_fields(s, qp_fields, qp);
    if (!qhca_snap_check(s, qhca_qp_attr_ok(&qp->attr, qp->type, qp->state),
                         "attributes")) {
        return;
    }
    if (s->load) {
        qp->mtu = qp->attr.path_mtu ? 128u << qp->attr.path_mtu : 0;
        qp->user.reserved = qp->flags & QHCA_QP_FLAG_RESERVED_LKEY;
    }
    walk_refs(s, qp);
    qhca_wq_walk(s, "sq", &qp->sq);
    qhca_wq_walk(s, "rq", &qp->rq);
    if (!s->bad) {
        qhca_snap_check(s, shape_ok(s->e, qp) && queues_ok(qp), "queues");
    }
    if (!s->bad) {
        qhca_responder_walk(s, qp);
    }
    if (!s->bad) {
        qhca_requester_walk(s, qp);
    }
}

static void *walk_qp(struct qhca_snap *s, void *obj, uint32_t number)
{
    struct qhca_qp *qp = obj ? obj : qhca_qp_alloc();

    if (!qp) {
        return NULL;
    }
    walk_qp_body(s, qp);
    if (!s->load) {
        return qp;
    }
    if (s->bad) {
        free(qp->req.swr);
        qhca_qp_free(s->e, qp);
        return NULL;
    }
    qp->slot = number;
    s->e->qps->num_swr += qp->req.swr != NULL;
    qhca_qp_enlist(s->e, qp);
    return qp;
}

static const struct qhca_snap_kind qp_kind = { "QP", walk_qp };

/* ---- multicast groups ---- */

static void walk_member(struct qhca_snap *s, struct qhca_mcast_group *grp,
                        const uint8_t *gid, uint32_t i)
{
    uint32_t slot = qhca_snap_u32(s, "QP", grp ? grp->qp[i]->slot : 0,
                                  QHCA_OBJ_MASK);
    uint32_t joins = qhca_snap_u32(s, "joins", grp ? grp->joins[i] : 0,
                                   UINT32_MAX);
    struct qhca_qp *qp = qhca_table_get(&s->e->qps->table, slot);

    if (grp || !qhca_snap_check(s, joins && qp && qp->type == QHCA_QPT_UD &&
                                   !qhca_group_has(s->e, gid, qp), "member")) {
        return;
    }
    if (!qhca_group_join(s->e, gid, qp)) {
        qhca_snap_refuse(s, "member", "finds no room");
        return;
    }
    qhca_group_find(s->e, gid)->joins[i] = joins;
    qp->groups++;
}

static void walk_groups(struct qhca_snap *s)
{
    struct qhca_port *p = s->e->port;
    uint32_t n = qhca_snap_u32(s, "groups", p->num_groups, QHCA_MAX_MCAST_GRP);

    for (uint32_t g = 0; g < n && !s->bad; g++) {
        struct qhca_mcast_group *grp = s->load ? NULL : p->group[g];
        uint8_t gid[16] = { 0 };

        if (grp) {
            memcpy(gid, grp->gid, sizeof(gid));
        }
        qhca_snap_raw(s, "group", gid, sizeof(gid));
        uint32_t members = qhca_snap_u32(s, "members", grp ? grp->num_qps : 0,
                                         QHCA_MAX_MCAST_QP);

        qhca_snap_check(s, members && qhca_gid_is_multicast(gid) &&
                           (grp || !qhca_group_find(s->e, gid)), "group");
        for (uint32_t i = 0; i < members && !s->bad; i++) {
            walk_member(s, grp, gid, i);
        }
    }
}

/* ---- windows of type 2 ---- */

static uint32_t mw_number(const struct qhca_engine *e, const void *obj)
{
    (void)e;
    return ((const struct qhca_mr *)obj)->key >> 8;
}

static void *find_mw(struct qhca_engine *e, uint32_t number)
{
    struct qhca_mr *mw = qhca_table_get(&e->memory->mr, number);

    return mw && mw->window > QHCA_MW_1 && mw->valid ? mw : NULL;
}

static const struct qhca_snap_ref bound_ref = {
    "window", offsetof(struct qhca_mr, bound), mw_number, find_mw, NULL
};

/* Each of them that is valid is bound to a QP. */
static void walk_windows(struct qhca_snap *s)
{
    const struct qhca_list *at;
    struct qhca_qp *qp;
    struct qhca_mr *mw;

    qhca_table_each(&s->e->qps->table, qp) {
        if (s->bad) {
            return;
        }
        qhca_snap_list(s, "windows", &qp->user.windows, &bound_ref);
        for (at = qp->user.windows.next; at != &qp->user.windows;
             at = at->next) {
            container_of(at, struct qhca_mr, bound)->binder = &qp->user;
        }
    }
    qhca_table_each(&s->e->memory->mr, mw) {
        qhca_snap_check(s, mw->window <= QHCA_MW_1 || !mw->valid || mw->binder,
                        "windows");
    }
}

/* ---- all of it ---- */

static void check_counts(struct qhca_snap *s)
{
    struct qhca_engine *e = s->e;
    struct qhca_srq *srq;
    struct qhca_qp *qp;
    struct qhca_cq *cq;

    qhca_table_each(&e->qps->table, qp) {
        if (s->load && qp->srq && qp->rsp.rwr.taken) {
            qp->srq->held++;
        }
    }
    qhca_table_each(&e->receive->srq, srq) {
        qhca_snap_check(s, qhca_srq_counts_ok(srq), "WRs of an SRQ");
    }
    qhca_table_each(&e->queues->cq, cq) {
        qhca_snap_check(s, cq->qps_told <= e->qps->table.size &&
                           cq->srqs_told <= e->receive->srq.size,
                        "told of a CQ");
    }
}

void qhca_transport_walk(struct qhca_snap *s)
{
    qhca_snap_table(s, &s->e->qps->table, &qp_kind);
    if (!s->bad) {
        walk_groups(s);
        walk_windows(s);
        qhca_lines_walk(s);
        check_counts(s);
    }
}

void qhca_transport_check_timers(struct qhca_snap *s)
{
    struct qhca_qp *qp;
    struct qhca_cq *cq;

    qhca_table_each(&s->e->qps->table, qp) {
        qhca_snap_check(s, qhca_requester_timer_ok(qp), "timer of a QP");
    }
    qhca_table_each(&s->e->queues->cq, cq) {
        qhca_snap_check(s, !cq->timer.pos == !cq->held, "timer of a CQ");
    }
}
