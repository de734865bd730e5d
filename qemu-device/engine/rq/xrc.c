/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: XRC (IBTA annex A14): domains, and what differs for QPs and SRQs
 * in them.
 *
 * An XRC_TGT QP is an RC responder without receive queue, PD and CQ: each
 * request names an SRQ of the domain in its XRCETH, which has all of these. An
 * XRC_INI QP is an RC requester that puts the number in.
 */
#include "rq.h"

/* ---- domains ---- */

int vhca_do_alloc_xrcd(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_alloc(&e->rqs->xrcd, sizeof(struct vhca_holder), c);
}

int vhca_do_dealloc_xrcd(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    return vhca_holder_dealloc(&e->rqs->xrcd, c);
}

/* ---- requests to a QP of type XRC_TGT ---- */

static struct vhca_srq *find_srq(struct qhca_engine *e,
                                 const struct vhca_qp *qp, uint32_t srqn)
{
    struct vhca_srq *srq = vhca_srq_get(e, srqn);

    return srq && srq->xrcd == qp->xrcd && !srq->gone ? srq : NULL;
}

bool vhca_xrc_select(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p)
{
    struct vhca_srq *srq;

    if (!vhca_qp_is(qp, VHCA_HAS_XRCD)) {
        return true;
    }
    srq = find_srq(e, qp, p->srqn);
    if (!srq ||
        (!(roce_opcode(p->opcode)->flags & OPF_FIRST) && srq != qp->srq)) {
        return false;
    }
    qp->srq = srq;
    qp->user.pd = srq->pd;
    return true;
}

bool vhca_xrc_user(struct qhca_engine *e, const struct vhca_qp *qp,
                   uint32_t srqn, struct vhca_key_user *user)
{
    struct vhca_srq *srq;

    *user = qp->user;
    if (!vhca_qp_is(qp, VHCA_HAS_XRCD)) {
        return true;
    }
    srq = find_srq(e, qp, srqn);
    if (srq) {
        user->pd = srq->pd;
    }
    return srq;
}

/* ---- the end of SRQs ---- */

bool vhca_xrc_srq_gone(struct qhca_engine *e, struct vhca_srq *srq,
                       uint32_t *done)
{
    const struct vhca_table *t = &e->qps->table;
    struct vhca_qp *qp;

    srq->gone = true;
    while ((qp = vhca_table_scan(e, t, done)) != NULL) {
        if (qp->rsp.rwr.taken && qp->rsp.rwr.srq == srq) {
            vhca_srq_release(&qp->rsp.rwr);
        }
        if (qp->srq == srq) {
            qp->srq = NULL;
            qp->user.pd = NULL;
        }
    }
    return *done == t->size;
}

bool vhca_xrc_cq_failed(struct qhca_engine *e, struct vhca_cq *cq)
{
    const struct vhca_table *t = &e->rqs->srq;
    struct vhca_srq *srq;

    while ((srq = vhca_table_scan(e, t, &cq->srqs_told)) != NULL) {
        if (srq->cq == cq && !srq->failed) {
            vhca_srq_fail(e, srq);
        }
    }
    return cq->srqs_told == t->size;
}
