/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: QPs in a saved state, and what refers to them: lines, multicast
 * groups, windows bound on them, receive WRs that they have taken.
 */
#include <stdlib.h>

#include "../save/save.h"
#include "verbs.h"

static const struct vhca_snap_field qp_fields[] = {
    VHCA_SNAP_ANY(struct vhca_qp, uar),
    VHCA_SNAP_MAX(struct vhca_qp, VHCA_NUM_QP_TYPES - 1, type),
    VHCA_SNAP_MAX(struct vhca_qp, QHCA_QP_FLAG_MASK, flags),
    VHCA_SNAP_MAX(struct vhca_qp, QHCA_QPS_ERR, state),
    VHCA_SNAP_FLAG(struct vhca_qp, sqd_notify, last_wqe_owed),
    VHCA_SNAP_MAX(struct vhca_qp, QHCA_MAX_INLINE, max_inline),
    VHCA_SNAP_RAW(struct vhca_qp, attr),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_qp, 5152);

/* ---- the objects it refers to ---- */

/* Return the parameters that CREATE_QP must have had. */
static struct qhca_create_qp as_created(const struct vhca_qp *qp)
{
    return (struct qhca_create_qp) {
        .type = qp->type, .flags = qp->flags, .uar = htole32(qp->uar),
        .srqn = htole32(qp->srq && !qp->xrcd ? qp->srq->srqn : 0),
        .xrcdn = htole32(vhca_holder_number(qp->xrcd)),
        .sq.num_blocks = htole32(qp->sq.present),
        .sq_log_size = qp->sq.log_size, .sq_log_stride = qp->sq.log_stride,
        .max_send_sge = htole32(qp->sq.max_sge),
        .max_inline = htole32(qp->max_inline),
        .rq.num_blocks = htole32(qp->rq.present),
        .rq_log_size = qp->rq.log_size, .rq_log_stride = qp->rq.log_stride,
        .max_recv_sge = htole32(qp->rq.max_sge),
    };
}

/* XRC_TGT: the SRQ of the last packet, which is gone if its number is 0. */
static bool find_objects(struct qhca_engine *e, struct vhca_qp *qp,
                         struct qhca_create_qp *c)
{
    uint32_t srqn = le32toh(c->srqn);

    if (!vhca_qp_is(qp, VHCA_HAS_XRCD)) {
        return vhca_qp_find_objects(e, qp, c) == QHCA_OK;
    }
    c->srqn = 0;
    if (vhca_qp_find_objects(e, qp, c) != QHCA_OK) {
        return false;
    }
    qp->srq = srqn ? vhca_srq_get(e, srqn) : NULL;
    return !srqn || (qp->srq && qp->srq->xrcd == qp->xrcd);
}

static void walk_refs(struct vhca_snap *s, struct vhca_qp *qp)
{
    struct qhca_create_qp c = { .uar = htole32(qp->uar), .type = qp->type };
    struct qhca_engine *e = s->e;
    uint32_t set;

    c.pdn = htole32(vhca_snap_obj(s, "pdn", vhca_holder_number(qp->pd)));
    c.send_cqn = htole32(vhca_snap_obj(s, "send_cqn",
                                       qp->scq ? qp->scq->cqn : 0));
    c.recv_cqn = htole32(vhca_snap_obj(s, "recv_cqn",
                                       qp->rcq ? qp->rcq->cqn : 0));
    c.xrcdn = htole32(vhca_snap_obj(s, "xrcdn", vhca_holder_number(qp->xrcd)));
    c.srqn = htole32(vhca_snap_obj(s, "srqn", qp->srq ? qp->srq->srqn : 0));
    set = vhca_snap_obj(s, "cntset", qp->cntset ? qp->cntset->base.number : 0);
    if (!s->load || s->bad) {
        return;
    }
    vhca_snap_check(s, find_objects(e, qp, &c), "objects");
    if (set && !s->bad) {
        struct vhca_cntset *cntset = vhca_table_get(&e->qps->cntset, set);

        vhca_snap_check(s, cntset, "cntset");
        vhca_cntset_bind(qp, cntset);
    }
}

/* ---- a QP ---- */

/* Apply CREATE_QP's checks. */
static bool shape_ok(const struct qhca_engine *e, const struct vhca_qp *qp)
{
    struct qhca_create_qp c = as_created(qp);

    return vhca_qp_check_create(&c) == QHCA_OK && !qp->sq.dbrec &&
           qp->rq.dbrec == !!(qp->flags & QHCA_QP_FLAG_RQ_DBREC) &&
           (qp->type != QHCA_QPT_GSI || !e->qps->gsi || e->qps->gsi == qp);
}

/* Check the queues against the state. */
static bool queues_ok(const struct vhca_qp *qp)
{
    return (!qp->rq.rings || qp->state == QHCA_QPS_ERR) &&
           (qp->state != QHCA_QPS_RESET || qp->rq.pi == qp->rq.ci);
}

/* Whether it has a peer that it may owe a notification, sent or given up. */
static bool may_notify(const struct vhca_qp *qp)
{
    return !vhca_qp_is(qp, VHCA_DATAGRAM | VHCA_RAW) &&
           qp->state >= QHCA_QPS_RTR;
}

static void walk_parts(struct vhca_snap *s, struct vhca_qp *qp)
{
    vhca_snap_fields(s, qp_fields, qp);
    if (!vhca_snap_check(s, vhca_qp_attr_ok(&qp->attr, qp->type, qp->state),
                         "attributes")) {
        return;
    }
    if (s->load) {
        qp->mtu = qp->attr.path_mtu ? 128u << qp->attr.path_mtu : 0;
        qp->user.reserved = qp->flags & QHCA_QP_FLAG_RESERVED_LKEY;
    }
    walk_refs(s, qp);
    vhca_wq_walk(s, "sq", &qp->sq);
    vhca_wq_walk(s, "rq", &qp->rq);
    if (!s->bad) {
        vhca_snap_check(s, shape_ok(s->e, qp) && queues_ok(qp), "queues");
    }
    if (!s->bad) {
        vhca_responder_walk(s, qp);
    }
    if (!s->bad) {
        vhca_requester_walk(s, qp);
    }
    if (!s->bad) {
        vhca_page_faults_walk(s, qp);
    }
    if (!s->bad) {
        vhca_gate_walk(s, &qp->gate);
        vhca_snap_check(s, !qp->gate.cnp_owed || may_notify(qp), "cnp_owed");
    }
}

static void walk_qp(struct vhca_snap *s, void *obj)
{
    struct vhca_qp *qp = obj;

    if (s->load) {
        vhca_qp_init(qp);
    }
    walk_parts(s, qp);
    if (s->load && s->bad) {
        free(qp->req.swr);
        vhca_qp_release(s->e, qp);
    }
}

static void enlist_qp(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_qp *qp = obj;

    qp->slot = number;
    e->qps->num_swr += qp->req.swr != NULL;
    vhca_qp_enlist(e, qp);
}

static const struct vhca_snap_kind qp_kind = {
    "QP", sizeof(struct vhca_qp), 0, walk_qp, enlist_qp
};

/* ---- multicast groups ---- */

static void walk_member(struct vhca_snap *s, struct vhca_mcast_group *grp,
                        const uint8_t *gid, uint32_t i)
{
    uint32_t slot = vhca_snap_obj(s, "QP", grp ? grp->qp[i]->slot : 0);
    uint32_t joins = vhca_snap_u32(s, "joins", grp ? grp->joins[i] : 0,
                                   UINT32_MAX);
    struct vhca_qp *qp = vhca_table_get(&s->e->qps->table, slot);

    if (grp || !vhca_snap_check(s, joins && qp && qp->type == QHCA_QPT_UD &&
                                   !vhca_group_has(s->e, gid, qp), "member")) {
        return;
    }
    if (!vhca_group_join(s->e, gid, qp)) {
        vhca_snap_refuse(s, "member", "does not fit into the group");
        return;
    }
    vhca_group_find(s->e, gid)->joins[i] = joins;
    qp->groups++;
}

static void walk_groups(struct vhca_snap *s)
{
    struct vhca_port *p = s->e->port;
    uint32_t n = vhca_snap_u32(s, "groups", p->num_groups, VHCA_MAX_MCAST_GRP);

    for (uint32_t g = 0; g < n && !s->bad; g++) {
        struct vhca_mcast_group *grp = s->load ? NULL : p->group[g];
        uint8_t gid[16] = { 0 };

        if (grp) {
            memcpy(gid, grp->gid, sizeof(gid));
        }
        vhca_snap_raw(s, "group", gid, sizeof(gid));
        uint32_t members = vhca_snap_u32(s, "members", grp ? grp->num_qps : 0,
                                         VHCA_MAX_MCAST_QP);

        vhca_snap_check(s, members && vhca_gid_is_multicast(gid) &&
                           (grp || !vhca_group_find(s->e, gid)), "group");
        for (uint32_t i = 0; i < members && !s->bad; i++) {
            walk_member(s, grp, gid, i);
        }
    }
}

/* Whether @number can be a receiver of the frame that is being delivered. */
static bool may_get(struct qhca_engine *e, const struct vhca_delivery *d,
                    uint32_t number)
{
    const struct vhca_qp *qp;

    if (d->kind == VHCA_TO_RULES) {
        return vhca_flow_may_get(e, d, number);
    }
    qp = vhca_qp_get(e, number);
    return qp && vhca_group_has(e, d->gid, qp);
}

/* ---- windows of type 2 ---- */

static uint32_t mw_number(const struct qhca_engine *e, const void *obj)
{
    (void)e;
    return ((const struct vhca_mr *)obj)->key >> 8;
}

static void *find_mw(struct qhca_engine *e, uint32_t number)
{
    struct vhca_mr *mw = vhca_table_get(&e->memory->mr, number);

    return mw && mw->window > QHCA_MW_1 && mw->valid ? mw : NULL;
}

static const struct vhca_snap_ref bound_ref = {
    "window", offsetof(struct vhca_mr, bound), mw_number, find_mw, NULL
};

/* Every bound window of type 2 must be on the list of a QP. */
static void walk_windows(struct vhca_snap *s)
{
    const struct vhca_list *at;
    struct vhca_qp *qp;
    struct vhca_mr *mw;

    vhca_table_each(&s->e->qps->table, qp) {
        if (s->bad) {
            return;
        }
        vhca_snap_list(s, "windows", &qp->user.windows, &bound_ref);
        vhca_list_each(&qp->user.windows, at) {
            container_of(at, struct vhca_mr, bound)->binder = &qp->user;
        }
    }
    vhca_table_each(&s->e->memory->mr, mw) {
        vhca_snap_check(s, mw->window <= QHCA_MW_1 || !mw->valid || mw->binder,
                        "windows");
    }
}

/* ---- the section ---- */

static void check_counts(struct vhca_snap *s)
{
    struct qhca_engine *e = s->e;
    struct vhca_srq *srq;
    struct vhca_qp *qp;
    struct vhca_cq *cq;

    vhca_table_each(&e->rqs->srq, srq) {
        srq->counted = 0;
    }
    vhca_table_each(&e->qps->table, qp) {
        if (qp->rsp.rwr.taken && qp->rsp.rwr.srq) {
            qp->rsp.rwr.srq->counted++;
        }
    }
    vhca_table_each(&e->rqs->srq, srq) {
        srq->held = s->load ? srq->counted : srq->held;
        vhca_snap_check(s, vhca_srq_counts_ok(srq), "WRs of an SRQ");
    }
    vhca_table_each(&e->events->cq, cq) {
        vhca_snap_check(s, cq->qps_told <= e->qps->table.size &&
                           cq->srqs_told <= e->rqs->srq.size,
                        "told of a CQ");
    }
}

void vhca_qps_walk(struct vhca_snap *s)
{
    vhca_snap_table(s, &s->e->qps->table, &qp_kind);
    vhca_congestion_walk(s);
    if (!s->bad) {
        walk_groups(s);
        vhca_raw_walk(s);
        vhca_delivery_walk(s, may_get);
        walk_windows(s);
        vhca_lines_walk(s);
        check_counts(s);
    }
}

void vhca_qps_check_timers(struct vhca_snap *s)
{
    struct vhca_qp *qp;
    struct vhca_cq *cq;

    vhca_table_each(&s->e->qps->table, qp) {
        vhca_snap_check(s, vhca_requester_timer_ok(qp), "timer of a QP");
        vhca_snap_check(s, !qp->gate.timer.pos ||
                           (qp->state >= QHCA_QPS_RTR &&
                            qp->state != QHCA_QPS_ERR), "gate of a QP");
        if (s->load) {
            qp->rated = vhca_qp_rated(s->e, qp);
        }
        vhca_snap_check(s, qp->rated || !vhca_qp_rated(s->e, qp), "rated");
    }
    vhca_table_each(&s->e->events->cq, cq) {
        vhca_snap_check(s, !cq->timer.pos == !cq->held, "timer of a CQ");
    }
}
