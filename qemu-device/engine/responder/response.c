/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, sending the answers in the order of the requests
 * (IBTA 9.7.5; D-013). A READ is read from memory piece by piece when its turn
 * comes, so an answer of any length costs bounded work and memory.
 */
#include "responder.h"

static struct qhca_response *response_at(struct qhca_responder *s, uint32_t i)
{
    return &s->queue[i % QHCA_RESPONSES];
}

bool qhca_response_add(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct qhca_response *r)
{
    struct qhca_responder *s = &qp->rsp;

    if (!qhca_response_room(qp)) {
        return false;
    }
    *response_at(s, s->q_tail++) = *r;
    qhca_qp_schedule(e, qp);
    return true;
}

void qhca_response_ack(struct qhca_engine *e, struct qhca_qp *qp,
                       uint8_t syndrome, uint32_t psn)
{
    struct qhca_responder *s = &qp->rsp;
    struct qhca_response r = {
        .kind = QHCA_RESP_ACK,
        .syndrome = syndrome,
        .psn = psn,
        .msn = s->msn,
    };

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
    qhca_qp_schedule(e, qp);
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

static void send_ack(struct qhca_engine *e, struct qhca_qp *qp,
                     uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct qhca_txbuf b;

    qhca_packet_start(e, qp, &b, RC_ACKNOWLEDGE, psn);
    b.p.syndrome = syndrome;
    b.p.msn = msn;
    count_ack(e, qp, syndrome);
    qhca_packet_send(e, qp, &b);
}

static void send_atomic(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct qhca_response *r)
{
    struct qhca_txbuf b;

    qhca_packet_start(e, qp, &b, RC_ATOMIC_ACKNOWLEDGE, r->psn);
    b.p.syndrome = AETH_ACK;
    b.p.msn = r->msn;
    b.p.atomic_orig = r->orig;
    qhca_packet_send(e, qp, &b);
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
 * The next packet of a READ's answer, for up to @max if it stays inside the
 * port. The key is looked up every time: it may have gone (D-069).
 */
static enum qhca_mem_result build_read(struct qhca_engine *e,
                                       struct qhca_qp *qp,
                                       const struct qhca_response *r,
                                       uint32_t max, struct qhca_txbuf *b)
{
    uint32_t left = r->length - r->done, len = MIN_OF(qp->mtu, left);
    uint64_t va = r->va + r->done;
    struct qhca_key_user user;
    bool copy;

    qhca_packet_start(e, qp, b, 0, r->psn);
    b->p.syndrome = AETH_ACK;
    b->p.msn = r->msn;
    if (left && !qhca_xrc_user(e, qp, r->srqn, &user)) {
        return QHCA_MEM_DENIED;
    }
    if (left && b->direct) {
        qhca_key_view(e, &user, r->rkey, va,
                      (size_t)MIN_OF(left, (uint64_t)max * qp->mtu),
                      QHCA_ACCESS_REMOTE_READ, &b->view);
    }
    copy = !qhca_packet_in_place(b, qp->mtu, left);
    b->p.opcode |= read_opcode(!r->done,
                               copy ? len == left : b->view.len == left);
    return !copy || !left ? QHCA_MEM_OK :
           qhca_key_read(e, &user, r->rkey, va, qhca_packet_payload(b, len),
                         len, QHCA_ACCESS_REMOTE_READ);
}

/*
 * The memory is not there any more. A late duplicate, from a time when it was,
 * is forgotten; else it is as if the request were refused now.
 */
static void lost_memory(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct qhca_response *r, enum qhca_rx_result why)
{
    const struct qhca_refusal *refusal = &qhca_refusals[why];
    uint32_t psn = r->psn, msn = r->msn;

    if (r->replay) {
        qp->rsp.q_head++;
    } else {
        qhca_qp_error(e, qp, refusal->event);
    }
    send_ack(e, qp, refusal->syndrome, psn, msn);
}

/* Part of a READ's answer. False: there is no more to say. */
static bool send_read(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_response *r)
{
    uint32_t max = qhca_packets_at_once(e);
    enum qhca_mem_result result;
    struct qhca_txbuf b;

    do {
        result = build_read(e, qp, r, max, &b);
        max = 1;        /* again: something is the matter with one of them */
    } while (result == QHCA_MEM_OK && !qhca_packet_send(e, qp, &b));
    if (result != QHCA_MEM_OK) {
        lost_memory(e, qp, r, qhca_rx_memory(result));
        return false;
    }
    r->psn = psn_add(r->psn, b.p.num_psn);
    r->done += (uint32_t)b.p.payload_len;
    return true;
}

/* An ACK or NAK; after a fatal one the QP is in ERR. */
static void send_verdict(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct qhca_response *r)
{
    uint8_t syndrome = r->syndrome;
    uint32_t psn = r->psn, msn = r->msn;

    /* Before it leaves: the QP may be its own peer. */
    if (AETH_TYPE(syndrome) == AETH_NAK && syndrome != AETH_NAK_SEQ) {
        qhca_qp_error(e, qp, qp->rsp.fail_event);
    }
    send_ack(e, qp, syndrome, psn, msn);
}

static void send_one(struct qhca_engine *e, struct qhca_qp *qp,
                     struct qhca_response *r)
{
    bool said = true;

    if (r->kind == QHCA_RESP_READ) {
        said = send_read(e, qp, r) && r->done == r->length;
    } else if (r->kind == QHCA_RESP_ATOMIC) {
        send_atomic(e, qp, r);
    } else {
        send_verdict(e, qp, r);
    }
    /* A QP in ERR has no answers in line. */
    if (said && qp->state != QHCA_QPS_ERR) {
        qp->rsp.rd_pending -= r->kind != QHCA_RESP_ACK && !r->replay;
        qp->rsp.q_head++;
    }
}

void qhca_response_work(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_responder *s = &qp->rsp;

    while (qhca_may_go_on(e) && qhca_response_ready(qp)) {
        struct qhca_response *r = response_at(s, s->q_head);
        /* READ data leaves room for others' ACKs, as requests do. */
        unsigned reserve = r->kind == QHCA_RESP_READ ? QHCA_TX_RESERVE / 2 : 0;

        if (!qhca_packet_room(e, qp, &qp->attr.av, reserve)) {
            break;
        }
        send_one(e, qp, r);
    }
}
