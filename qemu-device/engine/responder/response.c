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

/* The key is looked up for every packet: it may have gone (D-069). */
static enum qhca_mem_result read_memory(struct qhca_engine *e,
                                        struct qhca_qp *qp,
                                        const struct qhca_response *r,
                                        uint8_t *dst, size_t len)
{
    struct qhca_key_user user;

    if (!len) {
        return QHCA_MEM_OK;
    }
    if (!qhca_xrc_user(e, qp, r->srqn, &user)) {
        return QHCA_MEM_DENIED;
    }
    return qhca_key_read(e, &user, r->rkey, r->va + r->done, dst, len,
                         QHCA_ACCESS_REMOTE_READ);
}

/* One packet of a READ's answer; if not DONE, a NAK was sent instead. */
static enum qhca_rx_result send_read(struct qhca_engine *e, struct qhca_qp *qp,
                                     struct qhca_response *r)
{
    size_t len = MIN_OF(qp->mtu, r->length - r->done);
    bool last = r->done + len == r->length;
    struct qhca_txbuf b;
    uint8_t *payload = qhca_packet_start(e, qp, &b,
                                         read_opcode(r->done == 0, last),
                                         r->psn);
    enum qhca_rx_result result = qhca_rx_memory(read_memory(e, qp, r, payload,
                                                            len));

    if (result != QHCA_RX_DONE) {
        send_ack(e, qp, qhca_refusals[result].syndrome, r->psn, r->msn);
        return result;
    }
    b.p.payload_len = len;
    b.p.syndrome = AETH_ACK;
    b.p.msn = r->msn;
    qhca_packet_send(e, qp, &b);
    r->psn = psn_add(r->psn, 1);
    r->done += (uint32_t)len;
    return QHCA_RX_DONE;
}

/* Sends one packet of @r. True: @r is all sent, or the QP is in ERR. */
static bool send_one(struct qhca_engine *e, struct qhca_qp *qp,
                     struct qhca_response *r)
{
    struct qhca_responder *s = &qp->rsp;
    bool last = r->kind != QHCA_RESP_READ || r->done + qp->mtu >= r->length;

    if (r->kind == QHCA_RESP_READ) {
        enum qhca_rx_result result = send_read(e, qp, r);

        if (result != QHCA_RX_DONE && r->replay) {
            /* A late duplicate from a time when the key was valid. */
            s->q_head++;
            return true;
        }
        if (result != QHCA_RX_DONE) {
            qhca_qp_error(e, qp, qhca_refusals[result].event);
            return true;
        }
    } else if (r->kind == QHCA_RESP_ATOMIC) {
        send_atomic(e, qp, r);
    } else {
        uint8_t syndrome = r->syndrome;

        send_ack(e, qp, syndrome, r->psn, r->msn);
        if (AETH_TYPE(syndrome) == AETH_NAK && syndrome != AETH_NAK_SEQ) {
            qhca_qp_error(e, qp, s->fail_event);
            return true;
        }
    }
    if (last) {
        if (r->kind != QHCA_RESP_ACK && !r->replay) {
            s->rd_pending--;
        }
        s->q_head++;
    }
    return last;
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
