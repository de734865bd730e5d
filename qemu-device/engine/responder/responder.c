/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC and XRC responder, executing requests (IBTA 9.7.1 to 9.7.4).
 * The checks are in the order of D-060: PSN, opcode sequence, operation
 * enabled, XRCETH, receive WR available, length, R_Key.
 */
#include "responder.h"

/*
 * Refuse a request for good: queue a NAK, and go to ERR with an event when it
 * has been sent (D-026). A receive WR in use completes with the reason.
 */
static void refuse(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct roce_packet *p, enum vhca_rx_result why)
{
    const struct vhca_refusal *r = &vhca_refusals[why];
    struct vhca_responder *s = &qp->rsp;

    VHCA_ASSERT(!s->rwr.kept);
    s->failing = true;
    s->fail_event = r->event;
    if (s->rwr.taken) {
        s->fail_event = 0;      /* the CQE reports it */
        vhca_recv_fail(e, qp, r->status);
    }
    if (qp->state != QHCA_QPS_ERR) {
        vhca_response_ack(qp, r->syndrome, p->psn);
    }
}

/* ---- results ---- */

/*
 * The request waits for a page. The NAK follows when the page is there, so that
 * there is one for each; but a peer that asks again, because its timer has
 * expired, must not lose a retry each time, and is told to wait. A receive WR
 * that the request has taken is kept for it.
 */
static void absent_page(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct roce_packet *p)
{
    const struct vhca_page_fault *f = &qp->fault[QHCA_PAGE_REQUEST];

    qp->rsp.nak_sent = true;
    qp->rsp.rwr.kept = qp->rsp.rwr.taken && qp->rsp.op != OP_SEND;
    vhca_qp_page_fault(e, qp, QHCA_PAGE_REQUEST, p->psn,
                       roce_opcode(p->opcode)->op == OP_SEND ?
                       VHCA_RX_BUFFER : VHCA_RX_ACCESS);
    if (f->repeats) {
        vhca_response_ack(qp, vhca_page_rnr(f->repeats), p->psn);
    }
}

/*
 * The request that was expected has come, and need not be the one that has
 * waited for a page: a peer may begin again with the same PSN. A receive WR
 * that this one has not used goes back, and if it does not wait for a page,
 * the answer to the fault is not about it.
 */
static void forget_waiting(struct qhca_engine *e, struct vhca_qp *qp,
                           enum vhca_rx_result result)
{
    if (qp->rsp.rwr.kept) {
        vhca_recv_give_back(e, qp);
    }
    if (qp->rsp.nak_sent && result != VHCA_RX_PAGE) {
        qp->fault[QHCA_PAGE_REQUEST].at = VHCA_NO_PSN;
    }
    qp->rsp.nak_sent = false;
}

static void conclude(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p, enum vhca_rx_result result)
{
    uint32_t missed = vhca_response_recall(qp);

    vhca_rx_trace(e, qp, p, result);
    forget_waiting(e, qp, result);
    switch (result) {
    case VHCA_RX_DONE:
        /* Expect the next one, and answer if asked to. */
        qp->rsp.epsn = psn_add(p->psn, p->num_psn);
        vhca_rx_advance(e, qp, p);
        if (p->ackreq && qp->state != QHCA_QPS_ERR) {
            vhca_response_owe(qp);
        }
        break;
    case VHCA_RX_ANSWERED:
        break;
    case VHCA_RX_REPEAT:
        /* There is room when the NAK has been sent. */
        vhca_response_missed(qp, psn_add(p->psn, 1));
        break;
    case VHCA_RX_NO_WR:
        /* ePSN stays; whatever follows is dropped without a NAK (D-030). */
        qp->rsp.nak_sent = true;
        vhca_response_ack(qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, p->psn);
        break;
    case VHCA_RX_PAGE:
        absent_page(e, qp, p);
        break;
    case VHCA_RX_KEY:
        /*
         * A class J fault (IBTA 9.9.6.3): the message itself was fine, so there
         * is no NAK; the fault is reported to the owner of the key.
         */
        vhca_recv_fail(e, qp, vhca_refusals[result].status);
        vhca_qp_error(e, qp, 0);
        break;
    default:
        refuse(e, qp, p, result);
        break;
    }
    if (!qp->rsp.failing && qp->state != QHCA_QPS_ERR) {
        vhca_response_missed(qp, missed);
    }
}

/* ---- receiving requests ---- */

/* The functions that execute requests, by enum roce_op. */
static enum vhca_rx_result (*const rx[])(struct qhca_engine *e,
                                         struct vhca_qp *qp,
                                         const struct roce_packet *p) = {
    [OP_SEND] = vhca_rx_send,
    [OP_WRITE] = vhca_rx_write,
    [OP_READ_REQ] = vhca_rx_read,
    [OP_CAS] = vhca_rx_atomic,
    [OP_FAA] = vhca_rx_atomic,
    [OP_FLUSH] = vhca_rx_flush,
    [OP_ATOMIC_WRITE] = vhca_rx_atomic_write,
};

static enum vhca_rx_result responder_execute(struct qhca_engine *e,
                                             struct vhca_qp *qp,
                                             const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    uint8_t expected = info->flags & OPF_FIRST ? OP_NONE : info->op;

    if (info->op == OP_NONE || qp->rsp.op != expected) {    /* D-061, D-062 */
        return VHCA_RX_SEQUENCE;
    }
    if (!vhca_operation_enabled(qp, p)) {
        return VHCA_RX_DISABLED;
    }
    if (!vhca_xrc_select(e, qp, p)) {
        return VHCA_RX_XRCETH;
    }
    vhca_comm_established(e, qp);
    return rx[info->op](e, qp, p);
}

/* Execute the expected request, or several in one. */
static uint32_t in_order(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct roce_packet *p)
{
    enum vhca_rx_result result = responder_execute(e, qp, p);
    struct roce_packet first;

    if (result == VHCA_RX_FIRST) {
        first = roce_first_of(p);
        p = &first;
        result = responder_execute(e, qp, p);
    }
    conclude(e, qp, p, result);
    return vhca_rx_count(p, result);
}

uint32_t vhca_responder_rx(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p)
{
    struct vhca_responder *s = &qp->rsp;
    int32_t ahead = psn_diff(p->psn, s->epsn);

    if (s->failing) {
        vhca_trace_refuse(e, qp->qpn, "an earlier request has failed", p->psn);
        return 1;
    }
    if (!ahead) {
        return in_order(e, qp, p);
    }
    if (ahead < 0) {
        if (!s->page_wait || !vhca_response_wait(e, qp, p->psn)) {
            vhca_responder_duplicate(e, qp, p);
        }
        return 1;
    }
    vhca_count_qp(e, qp, QHCA_CNT_RX_OUT_OF_SEQ, 1);
    vhca_trace_refuse(e, qp->qpn, "PSN", p->psn);
    vhca_response_missed(qp, psn_add(p->psn, 1));
    return 1;
}

bool vhca_responder_refuse(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p, uint8_t syndrome)
{
    static const uint8_t why[] = {
        [AETH_CODE(AETH_NAK_INV_REQ)] = VHCA_RX_SEQUENCE,
        [AETH_CODE(AETH_NAK_ACCESS)] = VHCA_RX_ACCESS,
        [AETH_CODE(AETH_NAK_OP)] = VHCA_RX_LOST_WR,
    };
    struct vhca_responder *s = &qp->rsp;

    if (s->failing || p->psn != s->epsn) {
        return false;
    }
    if (syndrome == AETH_NAK_SEQ) {
        s->nak_sent = false;
        vhca_response_missed(qp, psn_add(p->psn, 1));
    } else if (AETH_TYPE(syndrome) == AETH_RNR_NAK) {
        conclude(e, qp, p, VHCA_RX_NO_WR);
    } else {
        conclude(e, qp, p, (enum vhca_rx_result)why[AETH_CODE(syndrome)]);
    }
    return true;
}

/* RNR timer code of the NAK after a page fault: 0.01 ms, the shortest. */
#define PAGE_RNR_TIMER  1

void vhca_responder_resume(struct qhca_engine *e, struct vhca_qp *qp, bool deny)
{
    const struct vhca_page_fault *f = &qp->fault[QHCA_PAGE_REQUEST];
    struct roce_packet p = { .psn = qp->rsp.epsn };

    if (qp->state == QHCA_QPS_ERR || qp->rsp.failing ||
        f->at != qp->rsp.epsn || !vhca_qp_is(qp, VHCA_RELIABLE)) {
        return;
    }
    if (deny) {
        qp->rsp.rwr.kept = false;
        refuse(e, qp, &p, (enum vhca_rx_result)f->why);
    } else if (!f->repeats) {   /* else the peer comes back by itself */
        vhca_response_ack(qp, AETH_RNR_NAK | PAGE_RNR_TIMER, p.psn);
    }
    vhca_qp_schedule(e, qp);
}
