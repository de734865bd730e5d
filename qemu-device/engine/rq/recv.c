/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: receive work requests: taking one off the receive queue,
 * completing it, flushing; and the doorbell records of receive queues.
 */
#include "rq.h"

enum vhca_wqe_result vhca_rwr_fetch(struct qhca_engine *e,
                                    const struct vhca_wq *wq, uint32_t index,
                                    struct vhca_rwr *rwr)
{
    uint8_t raw[QHCA_RQ_STRIDE_MAX];
    struct qhca_rq_wqe w;

    rwr->srq = NULL;
    if (!vhca_mem_read(e, &wq->mem, vhca_wq_offset(wq, index), raw,
                       1u << wq->log_stride)) {
        return VHCA_WQE_UNREADABLE;
    }
    memcpy(&w, raw, sizeof(w));
    rwr->taken = true;
    rwr->index = index;
    rwr->wr_id = le64toh(w.wr_id);
    rwr->num_seg = le16toh(w.num_sge);
    rwr->length = 0;
    rwr->bad = rwr->num_seg > wq->max_sge;
    if (rwr->bad) {
        vhca_count(e, QHCA_CNT_BAD_WQE);
        vhca_guest_error(e, "receive WQE %u: %u SGEs, more than %u", index,
                         rwr->num_seg, wq->max_sge);
        rwr->num_seg = 0;
        return VHCA_WQE_BAD;
    }
    rwr->length = vhca_segs_parse(rwr->seg, raw + sizeof(w), rwr->num_seg);
    return VHCA_WQE_OK;
}

bool vhca_rwr_store(struct qhca_engine *e, const struct vhca_wq *wq,
                    uint32_t index, const struct vhca_rwr *rwr)
{
    uint8_t raw[QHCA_RQ_STRIDE_MAX];
    struct qhca_rq_wqe w = {
        .wr_id = htole64(rwr->wr_id),
        .num_sge = htole16(rwr->bad ? UINT16_MAX : (uint16_t)rwr->num_seg),
    };
    size_t len = sizeof(w) + rwr->num_seg * sizeof(struct qhca_sge);

    VHCA_ASSERT(rwr->num_seg <= wq->max_sge);
    if (len > 1u << wq->log_stride) {
        return false;           /* it would overwrite other WQEs */
    }
    memcpy(raw, &w, sizeof(w));
    vhca_segs_format(raw + sizeof(w), rwr->seg, rwr->num_seg);
    return vhca_mem_write(e, &wq->mem, vhca_wq_offset(wq, index), raw, len);
}

void vhca_recv_give_back(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_rwr *rwr = &qp->rsp.rwr;

    if (rwr->taken && rwr->srq) {
        vhca_srq_give_back(e, rwr);
    }
    vhca_recv_end(rwr);
}

enum vhca_wqe_result vhca_recv_take(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_rwr *rwr = &qp->rsp.rwr;

    if (rwr->taken && rwr->srq != qp->srq) {
        vhca_recv_give_back(e, qp);
    }
    if (rwr->taken) {
        VHCA_ASSERT(!rwr->bad);
        rwr->kept = false;
        return VHCA_WQE_OK;
    }
    if (qp->srq) {
        return vhca_srq_take(e, qp);
    }
    if (qp->rq.ci == qp->rq.pi && !vhca_rq_look(e, &qp->rq, 0)) {
        return VHCA_WQE_UNREADABLE;
    }
    if (qp->rq.ci == qp->rq.pi) {
        return VHCA_WQE_NONE;
    }
    return vhca_rwr_fetch(e, &qp->rq, qp->rq.ci, rwr);
}

/* A receive WR of an XRC SRQ completes on the SRQ's CQ. */
static bool push(struct qhca_engine *e, struct vhca_qp *qp,
                 struct qhca_cqe *cqe, bool solicited)
{
    const struct vhca_srq *srq = qp->xrcd ? qp->rsp.rwr.srq : NULL;

    if (!srq) {
        return vhca_cq_push(e, qp->rcq, cqe, solicited);
    }
    cqe->flags |= htole16(QHCA_CQE_XRC);
    cqe->srqn = htole32(srq->srqn);
    return vhca_cq_push(e, srq->cq, cqe, solicited);
}

/* Complete the receive WR in use with a CQE filled in by the caller. */
static void complete(struct qhca_engine *e, struct vhca_qp *qp,
                     struct qhca_cqe *cqe, bool solicited)
{
    struct vhca_rwr *rwr = &qp->rsp.rwr;
    bool pushed;

    cqe->wr_id = htole64(rwr->wr_id);
    cqe->qpn = htole32(qp->qpn);
    cqe->wqe_index = htole32(rwr->index);
    if (rwr->srq) {
        cqe->flags |= htole16(QHCA_CQE_SRQ);
    }
    pushed = push(e, qp, cqe, solicited);
    if (!rwr->srq) {
        vhca_recv_end(rwr);
        qp->rq.ci++;
    } else if (pushed) {
        vhca_srq_release(rwr);
    } else {
        vhca_srq_give_back(e, rwr);
    }
    if (!pushed) {
        /*
         * Move the QP to ERR before it could acknowledge the message. The event
         * follows from the run loop, which picks up the CQ that has failed,
         * unless it did so before the QP began anew. The CQ of an XRC SRQ does
         * not know the QP (H-002).
         */
        bool follows = !qp->xrcd && !vhca_list_empty(&qp->rcq->failed);

        vhca_qp_error(e, qp, follows ? 0 : QHCA_EVENT_QP_FATAL);
    }
}

/* Fill in where a datagram came from (C-007, C-008). */
static void fill_datagram(struct qhca_cqe *cqe, const struct roce_packet *p)
{
    uint16_t flags = QHCA_CQE_GRH;

    if (p->ipv4) {
        flags |= QHCA_CQE_IPV4;
    }
    if (p->vlan != QHCA_NO_VLAN) {
        flags |= QHCA_CQE_VLAN;
        cqe->vlan_tci = htole16((uint16_t)(p->sl << 13 | p->vlan));
    }
    cqe->flags |= htole16(flags);
    cqe->src_qp = htole32(p->src_qp);
    cqe->sl = p->sl;
    memcpy(cqe->smac, p->smac, sizeof(cqe->smac));
}

/*
 * Let the receive WR in use fail, and with it the QP, if a fault rule says so.
 */
static bool is_failed(struct qhca_engine *e, struct vhca_qp *qp,
                      uint8_t opcode)
{
    struct vhca_cq *cq = qp->xrcd ? qp->rsp.rwr.srq->cq : qp->rcq;
    enum qhca_cqe_status status = vhca_rule_cqe(e, qp, cq, opcode);

    if (status == QHCA_WC_SUCCESS) {
        return false;
    }
    vhca_recv_fail(e, qp, status);
    vhca_qp_error(e, qp, 0);
    return true;
}

void vhca_recv_complete(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct roce_packet *p, uint8_t opcode,
                        uint32_t byte_len)
{
    struct qhca_cqe cqe = {
        .opcode = opcode,
        .byte_len = htole32(byte_len),
        .src_qp = qp->attr.dest_qpn,
    };
    uint16_t flags = p->solicited ? QHCA_CQE_SOLICITED : 0;

    VHCA_ASSERT(qp->rsp.rwr.taken);
    if (vhca_rules_at(e, VHCA_RULE_CQE) && is_failed(e, qp, opcode)) {
        return;
    }
    if (roce_opcode(p->opcode)->flags & OPF_IMM) {
        flags |= QHCA_CQE_IMM;
        cqe.imm = p->imm;
    }
    if (roce_opcode(p->opcode)->flags & OPF_IETH) {
        flags |= QHCA_CQE_INV;
        cqe.inv_key = htole32(p->inv_key);
    }
    cqe.flags = htole16(flags);
    if (vhca_qp_is(qp, VHCA_DATAGRAM)) {
        fill_datagram(&cqe, p);
    }
    complete(e, qp, &cqe, p->solicited);
}

void vhca_recv_complete_frame(struct qhca_engine *e, struct vhca_qp *qp,
                              uint32_t byte_len, uint32_t tag, uint16_t flags)
{
    struct qhca_cqe cqe = {
        .opcode = QHCA_CQE_RECV,
        .byte_len = htole32(byte_len),
        .flow_tag = htole32(tag),
        .flags = htole16(flags),
    };

    VHCA_ASSERT(qp->rsp.rwr.taken);
    if (!vhca_rules_at(e, VHCA_RULE_CQE) ||
        !is_failed(e, qp, QHCA_CQE_RECV)) {
        complete(e, qp, &cqe, false);
    }
}

void vhca_recv_fail(struct qhca_engine *e, struct vhca_qp *qp,
                    enum qhca_cqe_status status)
{
    struct qhca_cqe cqe = {
        .opcode = QHCA_CQE_RECV,
        .status = (uint8_t)status,
    };

    complete(e, qp, &cqe, false);
}

bool vhca_recv_to_flush(const struct vhca_qp *qp)
{
    if (vhca_qp_shares_rq(qp)) {
        return qp->last_wqe_owed;
    }
    return qp->rq.ci != qp->rq.pi || qp->rq.dbrec != qp->rq.rings;
}

void vhca_recv_flush_one(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (vhca_qp_shares_rq(qp)) {
        if (qp->rsp.rwr.taken) {
            vhca_recv_fail(e, qp, QHCA_WC_WR_FLUSH_ERR);
        }
        qp->last_wqe_owed = false;
        vhca_event(e, &qp->async, QHCA_EVENT_LAST_WQE_REACHED);     /* H-008 */
        return;
    }
    if (!qp->rsp.rwr.taken) {
        qp->rsp.rwr.wr_id = 0;
        (void)vhca_rwr_fetch(e, &qp->rq, qp->rq.ci, &qp->rsp.rwr);
        qp->rsp.rwr.index = qp->rq.ci;  /* also if it cannot be read */
    }
    vhca_recv_fail(e, qp, QHCA_WC_WR_FLUSH_ERR);
}

/* ---- doorbell records: posting without a doorbell ---- */

/*
 * The device reads the producer index when it needs a WQE. A QP in ERR needs
 * none, but has to flush those that are posted, so it asks for doorbells. The
 * device writes its wish before it reads the index, and the producer writes the
 * index before it reads the wish, so at least one of them sees the other's.
 */
static uint64_t record(const struct vhca_wq *wq, size_t field)
{
    return vhca_wq_ring_bytes(wq) + field;
}

bool vhca_rq_look(struct qhca_engine *e, struct vhca_wq *wq, uint32_t held)
{
    uint32_t pi;

    if (!wq->dbrec) {
        return true;
    }
    if (!vhca_mem_read(e, &wq->mem, record(wq, 0), &pi, sizeof(pi))) {
        return false;
    }
    pi = le32toh(pi);
    if (!vhca_wq_index_ok(wq, pi, held)) {
        vhca_count(e, QHCA_CNT_BAD_DOORBELL);
        vhca_guest_error(e, "receive queue: producer index %u, was %u", pi,
                         wq->pi);
        return false;
    }
    wq->pi = pi;
    return true;
}

void vhca_recv_stop(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_wq *rq = &qp->rq;
    const uint32_t ring = htole32(1);

    if (!rq->dbrec || rq->rings) {
        return;
    }
    rq->rings = true;
    if (vhca_mem_write(e, &rq->mem,
                       record(rq, offsetof(struct qhca_rq_dbrec, ring)), &ring,
                       sizeof(ring))) {
        (void)vhca_rq_look(e, rq, 0);
    }
}

void vhca_recv_reset(struct qhca_engine *e, struct vhca_qp *qp)
{
    const struct qhca_rq_dbrec none = { 0 };

    if (qp->rq.dbrec) {
        (void)vhca_mem_write(e, &qp->rq.mem, record(&qp->rq, 0), &none,
                             sizeof(none));
    }
}
