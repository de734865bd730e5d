/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC and XRC responder, executing requests (IBTA 9.7.1 to 9.7.4).
 * The checks come in the order of D-060: PSN, opcode sequence, operation
 * enabled, XRCETH, receive WR available, length, R_Key.
 */
#include "responder.h"

/* ---- refusing ---- */

/*
 * Refuses the packet for good: NAK in its turn, and ERR with @event when that
 * has left (D-026). A receive WR in use completes with @status.
 */
static void refuse(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct roce_packet *p, uint8_t syndrome, uint8_t event,
                   enum qhca_cqe_status status)
{
    struct qhca_responder *s = &qp->rsp;

    s->failing = true;
    s->fail_event = event;
    if (s->rwr.taken) {
        s->fail_event = 0;      /* the CQE says it */
        qhca_recv_fail(e, qp, status);
    }
    if (qp->state != QHCA_QPS_ERR) {
        qhca_response_ack(e, qp, syndrome, p->psn);
    }
}

void qhca_refuse_request(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR,
           QHCA_WC_REM_INV_REQ_ERR);
}

void qhca_refuse_invalid(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_REM_INV_REQ_ERR);
}

void qhca_refuse_length(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_LOC_LEN_ERR);
}

void qhca_refuse_access(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_LOC_ACCESS_ERR);
}

void qhca_refuse_operation(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p,
                           enum qhca_cqe_status status)
{
    refuse(e, qp, p, AETH_NAK_OP, QHCA_EVENT_QP_FATAL, status);
}

/* ---- receive WRs ---- */

/* Takes the next receive WR. False: there is none, or it is bad; dealt with. */
static bool take_rwr(struct qhca_engine *e, struct qhca_qp *qp,
                     const struct roce_packet *p)
{
    switch (qhca_recv_take(e, qp)) {
    case QHCA_WQE_OK:
        return true;
    case QHCA_WQE_NONE:
        /* ePSN stays; whatever follows is dropped without a NAK (D-030). */
        qp->rsp.nak_sent = true;
        qhca_response_ack(e, qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, p->psn);
        return false;
    case QHCA_WQE_BAD:
        qhca_refuse_operation(e, qp, p, QHCA_WC_LOC_QP_OP_ERR);
        return false;
    default:
        qhca_refuse_operation(e, qp, p, QHCA_WC_FATAL_ERR);
        return false;
    }
}

/* ---- moving on ---- */

bool qhca_payload_ok(const struct qhca_qp *qp, const struct roce_packet *p)
{
    uint16_t flags = roce_opcode(p->opcode)->flags;

    if (((p->payload_len + p->pad) & 3) || p->payload_len > qp->mtu) {
        return false;
    }
    if (!(flags & OPF_PAYLOAD)) {
        return p->payload_len == 0;
    }
    if (!(flags & OPF_LAST)) {
        return p->payload_len == qp->mtu;
    }
    return (flags & OPF_FIRST) || p->payload_len > 0;
}

bool qhca_send_length_ok(const struct qhca_qp *qp, const struct roce_packet *p)
{
    const struct qhca_responder *s = &qp->rsp;

    /* Segments can have room for more than a message can be long. */
    return qhca_payload_ok(qp, p) &&
           s->offset + p->payload_len <= MIN_OF(s->rwr.length,
                                                (uint64_t)QHCA_MAX_MSG);
}

/* The packet has been executed: expect the next, answer if asked. */
static void accept_packet(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    const struct roce_opcode_info *info = roce_opcode(p->opcode);

    s->epsn = psn_add(s->epsn, 1);
    s->op = info->flags & OPF_LAST ? OP_NONE : info->op;
    s->offset += p->payload_len;
    if (info->flags & OPF_LAST) {
        s->offset = 0;
        s->msn = psn_add(s->msn, 1);
    }
    if (p->ackreq && qp->state != QHCA_QPS_ERR) {
        qhca_response_ack(e, qp, AETH_ACK, p->psn);
    }
}

/* ---- SEND ---- */

static void rx_send(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    bool last = roce_opcode(p->opcode)->flags & OPF_LAST;
    uint64_t total = s->offset + p->payload_len;

    if (!take_rwr(e, qp, p)) {
        return;
    }
    if (!qhca_send_length_ok(qp, p)) {
        qhca_refuse_length(e, qp, p);
        return;
    }
    if (qhca_recv_write(e, qp, s->offset, p->payload, p->payload_len) !=
        QHCA_SEG_OK) {
        qhca_refuse_operation(e, qp, p, QHCA_WC_LOC_PROT_ERR);
        return;
    }
    /* The key goes before anyone is told (B-070), but after the data came. */
    if ((roce_opcode(p->opcode)->flags & OPF_IETH) &&
        !qhca_mr_invalidate(e, &qp->user, p->inv_key, true)) {
        /*
         * A class J fault (IBTA 9.9.6.3): the message itself was fine, so it is
         * the owner of the key who hears of it; there is no NAK.
         */
        qhca_recv_fail(e, qp, QHCA_WC_REM_INV_REQ_ERR);
        qhca_qp_error(e, qp, 0);
        return;
    }
    accept_packet(e, qp, p);
    if (last) {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    }
}

/* ---- WRITE ---- */

void qhca_write_begin(struct qhca_qp *qp, const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;

    if (roce_opcode(p->opcode)->flags & OPF_FIRST) {
        s->va = p->va;
        s->rkey = p->rkey;
        s->dma_len = p->dma_len;
    }
}

bool qhca_write_length_ok(const struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    const struct qhca_responder *s = &qp->rsp;
    uint64_t total = s->offset + p->payload_len;
    bool last = roce_opcode(p->opcode)->flags & OPF_LAST;

    return qhca_payload_ok(qp, p) && s->dma_len <= QHCA_MAX_MSG &&
           (last ? total == s->dma_len : total < s->dma_len);
}

uint8_t qhca_write_payload(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    /*
     * The first packet checks the whole range (D-065), then all check theirs:
     * the region may have gone.
     */
    bool first = roce_opcode(p->opcode)->flags & OPF_FIRST;
    struct qhca_mr *mr;

    if (!p->payload_len) {
        return AETH_ACK;
    }
    mr = qhca_mr_check(e, &qp->user, s->rkey, s->va + s->offset,
                       first ? s->dma_len : p->payload_len,
                       QHCA_ACCESS_REMOTE_WRITE);
    if (!mr) {
        return AETH_NAK_ACCESS;
    }
    return qhca_mr_write(e, mr, s->va + s->offset, p->payload,
                         p->payload_len) ? AETH_ACK : AETH_NAK_OP;
}

static void rx_write(struct qhca_engine *e, struct qhca_qp *qp,
                     const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    uint16_t flags = roce_opcode(p->opcode)->flags;

    if ((flags & OPF_IMM) && !take_rwr(e, qp, p)) {
        return;
    }
    qhca_write_begin(qp, p);
    if (!qhca_write_length_ok(qp, p)) {
        qhca_refuse_length(e, qp, p);
        return;
    }
    switch (qhca_write_payload(e, qp, p)) {
    case AETH_ACK:
        break;
    case AETH_NAK_ACCESS:
        qhca_refuse_access(e, qp, p);
        return;
    default:
        qhca_refuse_operation(e, qp, p, QHCA_WC_LOC_ACCESS_ERR);
        return;
    }
    accept_packet(e, qp, p);
    if (flags & OPF_IMM) {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV_RDMA_WITH_IMM, s->dma_len);
    }
}

/* ---- the way in ---- */

/* D-061, D-062 */
static bool sequence_ok(const struct qhca_qp *qp, const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    uint8_t expected = info->flags & OPF_FIRST ? OP_NONE : info->op;

    return info->op != OP_NONE && qp->rsp.op == expected;
}

/*
 * The right a request needs in the QP's access flags, by enum roce_op (D-063);
 * what kind of FLUSH it is says more.
 */
static const uint16_t op_access[] = {
    [OP_WRITE] = QHCA_ACCESS_REMOTE_WRITE,
    [OP_READ_REQ] = QHCA_ACCESS_REMOTE_READ,
    [OP_CAS] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_FAA] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_MASKED_CAS] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_MASKED_FAA] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_FLUSH] = 0,
    [OP_ATOMIC_WRITE] = QHCA_ACCESS_REMOTE_WRITE,
};

bool qhca_operation_enabled(const struct qhca_qp *qp,
                            const struct roce_packet *p)
{
    uint16_t access = op_access[roce_opcode(p->opcode)->op] |
                      qhca_flush_access(p->flush_type);

    return !(access & ~le16toh(qp->attr.access));
}

void qhca_comm_established(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_RTR && !qp->rsp.comm_est) {
        qp->rsp.comm_est = true;
        qhca_event(e, &qp->async, QHCA_EVENT_COMM_EST);
    }
}

/* By enum roce_op. */
static void (*const rx[])(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p) = {
    [OP_SEND] = rx_send,
    [OP_WRITE] = rx_write,
    [OP_READ_REQ] = qhca_rx_read,
    [OP_CAS] = qhca_rx_atomic,
    [OP_FAA] = qhca_rx_atomic,
    [OP_MASKED_CAS] = qhca_rx_atomic,
    [OP_MASKED_FAA] = qhca_rx_atomic,
    [OP_FLUSH] = qhca_rx_flush,
    [OP_ATOMIC_WRITE] = qhca_rx_atomic_write,
};

static void execute(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    if (!sequence_ok(qp, p) || !qhca_operation_enabled(qp, p)) {
        qhca_refuse_request(e, qp, p);
        return;
    }
    if (!qhca_xrc_select(e, qp, p)) {
        qhca_refuse_invalid(e, qp, p);
        return;
    }
    qhca_comm_established(e, qp);
    rx[roce_opcode(p->opcode)->op](e, qp, p);
}

void qhca_responder_rx(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    int32_t ahead = psn_diff(p->psn, s->epsn);

    if (s->failing) {
        return;
    }
    if (ahead < 0) {
        qhca_responder_duplicate(e, qp, p);
        return;
    }
    if (ahead > 0) {
        qhca_count_qp(e, qp, QHCA_CNT_RX_OUT_OF_SEQ, 1);
        if (!s->nak_sent) {     /* once per gap (D-020) */
            s->nak_sent = true;
            qhca_response_ack(e, qp, AETH_NAK_SEQ, s->epsn);
        }
        return;
    }
    s->nak_sent = false;
    execute(e, qp, p);
}
