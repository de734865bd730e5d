/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, the answers in the order of the requests (IBTA
 * 9.7.5; D-013). A READ is read from memory piece by piece when its turn comes,
 * so an answer of any length costs bounded work and memory.
 */
#include "responder.h"

static struct qhca_response *response_at(struct qhca_responder *s, uint32_t i)
{
    return &s->queue[i % QHCA_RESPONSES];
}

/* The PSN of an ACK of all that has been executed. */
static uint32_t executed(const struct qhca_qp *qp)
{
    return psn_add(qp->rsp.epsn, -1u);
}

void qhca_response_owe(struct qhca_qp *qp)
{
    if (qhca_response_ready(qp)) {
        qhca_response_ack(qp, AETH_ACK, executed(qp));
    } else {
        qp->rsp.ack_owed = true;
    }
}

void qhca_response_settle(struct qhca_qp *qp)
{
    if (qp->rsp.ack_owed) {
        qp->rsp.ack_owed = false;
        qhca_response_ack(qp, AETH_ACK, executed(qp));
    }
}

uint32_t qhca_response_take_ack(struct qhca_engine *e, struct qhca_qp *qp)
{
    qp->rsp.ack_owed = false;
    qhca_count_qp(e, qp, QHCA_CNT_TX_ACK, 1);
    return executed(qp);
}

bool qhca_response_add(struct qhca_qp *qp, const struct qhca_response *r)
{
    struct qhca_responder *s = &qp->rsp;

    qhca_response_settle(qp);
    if (!qhca_response_room(qp)) {
        return false;
    }
    *response_at(s, s->q_tail++) = *r;
    return true;
}

void qhca_response_ack(struct qhca_qp *qp, uint8_t syndrome, uint32_t psn)
{
    struct qhca_responder *s = &qp->rsp;
    struct qhca_response r = {
        .kind = QHCA_RESP_ACK,
        .syndrome = syndrome,
        .psn = psn,
        .msn = s->msn,
    };

    qhca_response_settle(qp);
    if (s->q_head != s->q_tail) {
        struct qhca_response *last = response_at(s, s->q_tail - 1);

        /*
         * ACKs are cumulative: replace the tail, unless this one acknowledges a
         * duplicate and would erase a NAK. Two never stand in a row, so the
         * place that qhca_response_add() leaves free is enough.
         */
        if (last->kind == QHCA_RESP_ACK) {
            if (psn_diff(psn, last->psn) >= 0) {
                *last = r;
            }
            return;
        }
    }
    *response_at(s, s->q_tail++) = r;
}

static void count_ack(struct qhca_engine *e, const struct qhca_qp *qp,
                      uint8_t syndrome)
{
    static const enum qhca_counter nak[] = {
        QHCA_CNT_TX_NAK_SEQ, QHCA_CNT_TX_NAK_INV_REQ,
        QHCA_CNT_TX_NAK_ACCESS, QHCA_CNT_TX_NAK_OP,
    };

    if (AETH_TYPE(syndrome) == AETH_RNR_NAK) {
        qhca_count_qp(e, qp, QHCA_CNT_TX_RNR_NAK, 1);
    } else if (AETH_TYPE(syndrome) == AETH_NAK) {
        qhca_count_qp(e, qp, nak[AETH_CODE(syndrome) & 3], 1);
    } else {
        qhca_count_qp(e, qp, QHCA_CNT_TX_ACK, 1);
    }
}

static uint8_t read_opcode(bool first, bool last)
{
    static const uint8_t opcode[] = {
        RC_READ_RESP_MIDDLE, RC_READ_RESP_FIRST,
        RC_READ_RESP_LAST, RC_READ_RESP_ONLY,
    };

    return opcode[(unsigned)last * 2 + first];
}

/*
 * The next packets of a READ's answer, one if they become frames. The key is
 * looked up every time: it may have gone (D-069).
 */
static enum qhca_mem_result build_read(struct qhca_engine *e,
                                       struct qhca_qp *qp,
                                       const struct qhca_response *r,
                                       uint32_t max, struct qhca_burst *burst)
{
    uint32_t left = r->length - r->done, len = MIN_OF(qp->mtu, left);
    uint64_t va = r->va + r->done;
    struct qhca_key_user user;
    bool copy, last;

    if (left && !qhca_xrc_user(e, qp, r->srqn, &user)) {
        return QHCA_MEM_DENIED;
    }
    if (left && burst->across) {
        qhca_key_view(e, &user, r->rkey, va,
                      (size_t)MIN_OF(left, (uint64_t)max * qp->mtu),
                      QHCA_ACCESS_REMOTE_READ, &burst->view);
    }
    copy = !qhca_burst_in_place(burst, qp->mtu, left);
    last = copy ? len == left : burst->view.len == left;
    burst->p.opcode = qhca_qp_service(qp) | read_opcode(!r->done, last);
    return !copy || !left ? QHCA_MEM_OK :
           qhca_key_read(e, &user, r->rkey, va, qhca_burst_payload(burst, len),
                         len, QHCA_ACCESS_REMOTE_READ);
}

static void build_ack(const struct qhca_qp *qp, uint8_t syndrome,
                      struct qhca_burst *burst)
{
    burst->p.opcode = qhca_qp_service(qp) | RC_ACKNOWLEDGE;
    burst->p.syndrome = syndrome;
}

/*
 * The memory is not there any more. A late duplicate, from a time when it was,
 * is forgotten; else it is as if the request were refused now.
 */
static void build_refusal(const struct qhca_qp *qp,
                          const struct qhca_response *r,
                          enum qhca_rx_result why, struct qhca_burst *burst)
{
    const struct qhca_refusal *refusal = &qhca_refusals[why];

    build_ack(qp, refusal->syndrome, burst);
    burst->fatal = !r->replay;
    burst->event = refusal->event;
}

static bool is_verdict(const struct qhca_burst *burst)
{
    return (burst->p.opcode & ~SVC_MASK) == RC_ACKNOWLEDGE;
}

void qhca_response_next(struct qhca_engine *e, struct qhca_qp *qp, uint32_t max,
                        struct qhca_burst *burst)
{
    const struct qhca_response *r = response_at(&qp->rsp, qp->rsp.q_head);
    enum qhca_mem_result result;

    burst->p.psn = r->psn;
    burst->p.msn = r->msn;
    burst->p.syndrome = AETH_ACK;
    if (r->kind == QHCA_RESP_READ) {
        result = build_read(e, qp, r, max, burst);
        if (result != QHCA_MEM_OK) {
            build_refusal(qp, r, qhca_rx_memory(result), burst);
        }
    } else if (r->kind == QHCA_RESP_ATOMIC) {
        burst->p.opcode = qhca_qp_service(qp) | RC_ATOMIC_ACKNOWLEDGE;
        burst->p.atomic_orig = r->orig;
    } else {
        build_ack(qp, r->syndrome, burst);
        burst->fatal = AETH_TYPE(r->syndrome) == AETH_NAK &&
                     r->syndrome != AETH_NAK_SEQ;
        burst->event = qp->rsp.fail_event;
    }
}

void qhca_response_sent(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct qhca_burst *burst)
{
    struct qhca_responder *s = &qp->rsp;
    struct qhca_response *r = response_at(s, s->q_head);

    if (is_verdict(burst)) {
        count_ack(e, qp, burst->p.syndrome);
    } else if (r->kind == QHCA_RESP_READ) {
        r->psn = psn_add(r->psn, burst->p.num_psn);
        r->done += (uint32_t)burst->p.payload_len;
        if (r->done != r->length) {
            return;
        }
    }
    if (burst->fatal) {
        qhca_qp_error(e, qp, burst->event);       /* no answers are left */
        return;
    }
    s->rd_pending -= r->kind != QHCA_RESP_ACK && !r->replay;
    s->q_head++;
}

unsigned qhca_response_reserve(struct qhca_qp *qp)
{
    /* READ data leaves room for others' ACKs, as requests do. */
    return response_at(&qp->rsp, qp->rsp.q_head)->kind == QHCA_RESP_READ ?
           QHCA_TX_RESERVE / 2 : 0;
}
