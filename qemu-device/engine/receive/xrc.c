/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: XRC (IBTA annex A14): domains, and what is particular about QPs
 * and SRQs in them.
 *
 * An XRC_TGT QP is an RC responder without receive queue, PD and CQ: each
 * request names an SRQ of the domain in its XRCETH, and that has all of them.
 * An XRC_INI QP is an RC requester that puts the number in.
 */
#include "receive.h"

/* ---- domains ---- */

struct qhca_xrcd *qhca_xrcd_get(struct qhca_engine *e, uint32_t xrcdn)
{
    return qhca_table_get(&e->receive->xrcd, xrcdn);
}

static int alloc_xrcd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_alloc(&e->receive->xrcd, sizeof(struct qhca_xrcd), c);
}

static int dealloc_xrcd(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    return qhca_holder_dealloc(&e->receive->xrcd, c);
}

/* ---- requests to a QP of type XRC_TGT ---- */

static struct qhca_srq *find_srq(struct qhca_engine *e,
                                 const struct qhca_qp *qp, uint32_t srqn)
{
    struct qhca_srq *srq = qhca_srq_get(e, srqn);

    return srq && srq->xrcd == qp->xrcd && !srq->gone ? srq : NULL;
}

bool qhca_xrc_select(struct qhca_engine *e, struct qhca_qp *qp,
                     const struct roce_packet *p)
{
    struct qhca_srq *srq;

    if (!qhca_qp_is(qp, QHCA_HAS_XRCD)) {
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

bool qhca_xrc_user(struct qhca_engine *e, const struct qhca_qp *qp,
                   uint32_t srqn, struct qhca_key_user *user)
{
    struct qhca_srq *srq;

    *user = qp->user;
    if (!qhca_qp_is(qp, QHCA_HAS_XRCD)) {
        return true;
    }
    srq = find_srq(e, qp, srqn);
    if (srq) {
        user->pd = srq->pd;
    }
    return srq;
}

/* ---- the end of SRQs ---- */

bool qhca_xrc_srq_gone(struct qhca_engine *e, struct qhca_srq *srq,
                       uint32_t *done)
{
    const struct qhca_table *t = &e->qps->table;
    struct qhca_qp *qp;

    srq->gone = true;
    while ((qp = qhca_table_scan(e, t, done)) != NULL) {
        if (qp->srq != srq) {
            continue;
        }
        if (qp->rsp.rwr.taken) {
            qhca_srq_release(qp);
        }
        qp->srq = NULL;
        qp->user.pd = NULL;
    }
    return *done == t->size;
}

bool qhca_xrc_cq_failed(struct qhca_engine *e, struct qhca_cq *cq)
{
    const struct qhca_table *t = &e->receive->srq;
    struct qhca_srq *srq;

    while ((srq = qhca_table_scan(e, t, &cq->srqs_told)) != NULL) {
        if (srq->cq == cq && !srq->failed) {
            qhca_srq_fail(e, srq);
        }
    }
    return cq->srqs_told == t->size;
}

const struct qhca_command qhca_xrcd_commands[] = {
    QHCA_COMMAND(ALLOC_XRCD, alloc_xrcd),
    QHCA_COMMAND(DEALLOC_XRCD, dealloc_xrcd),
    { 0 }
};
