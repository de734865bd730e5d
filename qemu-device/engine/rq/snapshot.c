/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: XRC domains and SRQs in a saved state. The WRs of an SRQ that
 * QPs hold are counted when the QPs are loaded.
 */
#include "../save/save.h"
#include "rq.h"

static const struct vhca_snap_kind xrcd_kind = {
    "XRC domain", sizeof(struct vhca_holder), 0, NULL, vhca_snap_holder
};

static const struct vhca_snap_field srq_fields[] = {
    VHCA_SNAP_ANY(struct vhca_srq, uar),
    VHCA_SNAP_FLAG(struct vhca_srq, user.reserved, moving),
    VHCA_SNAP_ANY(struct vhca_srq, limit),
    VHCA_SNAP_FLAG(struct vhca_srq, failed, gone),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_srq, 176);

static void walk_refs(struct vhca_snap *s, struct vhca_srq *srq)
{
    struct qhca_cmd_create_srq r = { 0 };

    r.pdn = htole32(vhca_snap_obj(s, "pdn", vhca_holder_number(srq->pd)));
    r.xrcdn = htole32(vhca_snap_obj(s, "xrcdn",
                                    vhca_holder_number(srq->xrcd)));
    r.cqn = htole32(vhca_snap_obj(s, "cqn", srq->cq ? srq->cq->cqn : 0));
    if (s->load && !s->bad) {
        vhca_snap_check(s, vhca_srq_find_objects(s->e, srq, &r) == QHCA_OK,
                        "objects");
    }
}

/* Apply the checks of CREATE_SRQ and RESIZE_SRQ. */
static bool shape_ok(const struct qhca_engine *e, const struct vhca_srq *srq)
{
    const struct qhca_cmd_create_srq r = {
        .flags = (srq->user.reserved ? QHCA_SRQ_RESERVED_LKEY : 0) |
                 (srq->wq.dbrec ? QHCA_SRQ_DBREC : 0),
        .uar = htole32(srq->uar), .buf.num_blocks = htole32(srq->wq.present),
        .max_sge = htole32(srq->wq.max_sge), .log_size = srq->wq.log_size,
        .log_stride = srq->wq.log_stride,
    };

    return vhca_srq_check_create(e, &r) == QHCA_OK &&
           srq->limit <= vhca_wq_size(&srq->wq);
}

static void walk_srq(struct vhca_snap *s, void *obj)
{
    struct vhca_srq *srq = obj;

    vhca_snap_fields(s, srq_fields, srq);
    walk_refs(s, srq);
    vhca_wq_walk(s, "rq", &srq->wq);
    vhca_snap_check(s, s->bad || shape_ok(s->e, srq), "queue");
}

static void enlist_srq(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_srq *srq = obj;

    (void)e;
    srq->srqn = number;
    vhca_async_init(&srq->async, number);
    vhca_srq_count_users(srq, 1);
}

static const struct vhca_snap_kind srq_kind = {
    "SRQ", sizeof(struct vhca_srq), offsetof(struct vhca_srq, wq.mem), walk_srq,
    enlist_srq
};

void vhca_rq_walk(struct vhca_snap *s)
{
    vhca_snap_table(s, &s->e->rqs->xrcd, &xrcd_kind);
    vhca_snap_table(s, &s->e->rqs->srq, &srq_kind);
}

bool vhca_srq_counts_ok(const struct vhca_srq *srq)
{
    return srq->held == srq->counted && srq->held <= vhca_wq_size(&srq->wq) &&
           srq->wq.pi - srq->wq.ci <= vhca_wq_size(&srq->wq) - srq->held;
}
