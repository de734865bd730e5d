/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the receiving half of a QP in a saved state: the message in
 * progress, requests that can be replayed, queued responses.
 */
#include "../save/save.h"
#include "responder.h"

static const struct vhca_snap_field rsp_fields[] = {
    VHCA_SNAP_MAX(struct vhca_responder, PSN_MASK, epsn, msn),
    VHCA_SNAP_MAX(struct vhca_responder, OP_CNP, op),
    VHCA_SNAP_FLAG(struct vhca_responder, nak_sent, failing),
    VHCA_SNAP_ANY(struct vhca_responder, fail_event),
    VHCA_SNAP_FLAG(struct vhca_responder, comm_est),
    VHCA_SNAP_MAX(struct vhca_responder, VHCA_MAX_MSG, offset),
    VHCA_SNAP_ANY(struct vhca_responder, va, rkey, dma_len),
    VHCA_SNAP_MAX(struct vhca_responder, VHCA_MAX_RD_ATOMIC - 1, res_last),
    VHCA_SNAP_MAX(struct vhca_responder, VHCA_MAX_RD_ATOMIC, rd_pending),
    VHCA_SNAP_FLAG(struct vhca_responder, page_wait, page_denied),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_responder, 4456);

static const struct vhca_snap_field rwr_fields[] = {
    VHCA_SNAP_MAX(struct vhca_rwr, 0, bad),     /* a bad one is never kept */
    VHCA_SNAP_ANY(struct vhca_rwr, index, wr_id, length),
    VHCA_SNAP_MAX(struct vhca_rwr, QHCA_MAX_RECV_SGE, num_seg),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_rwr, 552);

static const struct vhca_snap_field res_fields[] = {
    VHCA_SNAP_MAX(struct vhca_rd_resource, OP_CNP, op),
    VHCA_SNAP_MAX(struct vhca_rd_resource, PSN_MASK, psn),
    VHCA_SNAP_ANY(struct vhca_rd_resource, num_psn, va, rkey, srqn),
    VHCA_SNAP_MAX(struct vhca_rd_resource, VHCA_MAX_MSG, length),
    VHCA_SNAP_ANY(struct vhca_rd_resource, orig),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_rd_resource, 48);

static const struct vhca_snap_field response_fields[] = {
    VHCA_SNAP_MAX(struct vhca_response, VHCA_RESP_ATOMIC, kind),
    VHCA_SNAP_ANY(struct vhca_response, syndrome),
    VHCA_SNAP_FLAG(struct vhca_response, replay),
    VHCA_SNAP_MAX(struct vhca_response, PSN_MASK, psn, msn),
    VHCA_SNAP_ANY(struct vhca_response, va, orig, rkey, srqn),
    VHCA_SNAP_MAX(struct vhca_response, VHCA_MAX_MSG, length, done),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_response, 48);

/*
 * It is from the SRQ that the QP has, and belongs to a message in progress, or
 * is kept. Older devices had others in use as well, of unreliable services, but
 * only of the QP's own queue, where it is the next one anyway.
 */
static void walk_owner(struct vhca_snap *s, struct vhca_qp *qp)
{
    struct vhca_rwr *rwr = &qp->rsp.rwr;
    bool kept = qp->rsp.op != OP_SEND;

    if (s->load) {
        rwr->srq = qp->srq;
        rwr->kept = kept;
    }
    vhca_snap_check(s, rwr->srq == qp->srq && rwr->kept == kept,
                    "owner of a receive WR");
    if (kept && !vhca_qp_is(qp, VHCA_RELIABLE) &&
        vhca_snap_check(s, s->load && !qp->srq, "receive WR")) {
        vhca_recv_end(rwr);
    }
}

static void walk_rwr(struct vhca_snap *s, struct vhca_qp *qp)
{
    const struct vhca_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
    struct vhca_rwr *rwr = &qp->rsp.rwr;
    uint64_t length;

    rwr->taken = vhca_snap_num(s, "rwr", rwr->taken, 1, 1);
    if (!rwr->taken) {
        return;
    }
    walk_owner(s, qp);
    vhca_snap_fields(s, rwr_fields, rwr);
    length = vhca_segs_walk(s, rwr->seg, rwr->num_seg);
    vhca_snap_check(s, length == rwr->length, "length of a receive WR");
    vhca_snap_check(s, wq->present && rwr->num_seg <= wq->max_sge,
                    "SGEs of a receive WR");
    vhca_snap_check(s, qp->srq || wq->pi != wq->ci, "receive WR");
}

static bool res_ok(const struct vhca_qp *qp, const struct vhca_rd_resource *r)
{
    uint32_t length = r->op == OP_READ_REQ ? r->length : 0;

    return qp->mtu && r->num_psn == vhca_packets_of(length, qp->mtu);
}

static void walk_resources(struct vhca_snap *s, struct vhca_qp *qp)
{
    for (unsigned i = 0; i < VHCA_MAX_RD_ATOMIC && !s->bad; i++) {
        struct vhca_rd_resource *r = &qp->rsp.res[i];

        r->valid = vhca_snap_num(s, "resource", r->valid, 1, 1);
        if (r->valid) {
            vhca_snap_fields(s, res_fields, r);
            vhca_snap_check(s, s->bad || res_ok(qp, r), "resource");
        }
    }
}

/*
 * Walk over queued responses. Each that is neither an ACK nor a replay has a
 * resource; the last place is for an ACK.
 */
static void walk_answers(struct vhca_snap *s, struct vhca_qp *qp)
{
    struct vhca_responder *rsp = &qp->rsp;
    uint32_t n = vhca_snap_u32(s, "answers", rsp->q_tail - rsp->q_head,
                               VHCA_RESPONSES), pending = 0, i;
    uint8_t kind = VHCA_RESP_ACK;

    if (s->load) {
        rsp->q_tail = n;
    }
    vhca_snap_check(s, !n || (qp->mtu && vhca_qp_is(qp, VHCA_RELIABLE)),
                    "answers");
    for (i = rsp->q_head; i != rsp->q_tail && !s->bad; i++) {
        struct vhca_response *r = &rsp->queue[i % VHCA_RESPONSES];

        vhca_snap_fields(s, response_fields, r);
        vhca_snap_check(s, r->done < r->length || (!r->done && !r->length),
                        "answer");
        pending += r->kind != VHCA_RESP_ACK && !r->replay;
        kind = r->kind;
    }
    vhca_snap_check(s, n < VHCA_RESPONSES || kind == VHCA_RESP_ACK, "answers");
    vhca_snap_check(s, pending <= rsp->rd_pending, "rd_pending");
}

void vhca_responder_walk(struct vhca_snap *s, struct vhca_qp *qp)
{
    struct vhca_responder *rsp = &qp->rsp;

    vhca_snap_fields(s, rsp_fields, rsp);
    vhca_snap_check(s, !rsp->fail_event ||
                       (rsp->fail_event >= QHCA_EVENT_QP_FATAL &&
                        rsp->fail_event <= QHCA_EVENT_QP_ACCESS_ERR),
                    "fail_event");
    walk_rwr(s, qp);
    walk_resources(s, qp);
    walk_answers(s, qp);
}
