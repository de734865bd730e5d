/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC and XRC responder, executing requests (IBTA 9.7.1 to 9.7.4).
 * The checks come in the order of D-060: PSN, opcode sequence, operation
 * enabled, XRCETH, receive WR available, length, R_Key.
 */
#include "recv.h"

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

static void refuse_request(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_REQ_ERR,
           QHCA_WC_REM_INV_REQ_ERR);
}

/* Too many READs, an odd address, or an XRCETH that is wrong (G-012). */
static void refuse_argument(struct qhca_engine *e, struct qhca_qp *qp,
                            const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_REM_INV_REQ_ERR);
}

static void refuse_length(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_LOC_LEN_ERR);
}

static void refuse_access(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    refuse(e, qp, p, AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR,
           QHCA_WC_LOC_ACCESS_ERR);
}

static void refuse_operation(struct qhca_engine *e, struct qhca_qp *qp,
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
        refuse_operation(e, qp, p, QHCA_WC_LOC_QP_OP_ERR);
        return false;
    default:
        refuse_operation(e, qp, p, QHCA_WC_FATAL_ERR);
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
    if (!qhca_payload_ok(qp, p) || total > s->rwr.length) {
        refuse_length(e, qp, p);
        return;
    }
    if (qhca_recv_write(e, qp, s->offset, p->payload, p->payload_len) !=
        QHCA_SEG_OK) {
        refuse_operation(e, qp, p, QHCA_WC_LOC_PROT_ERR);
        return;
    }
    /* The key goes before anyone is told (B-070), but after the data came. */
    if ((roce_opcode(p->opcode)->flags & OPF_IETH) &&
        !qhca_mr_invalidate(e, &qp->user, p->inv_key, true)) {
        refuse_access(e, qp, p);
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
        refuse_length(e, qp, p);
        return;
    }
    switch (qhca_write_payload(e, qp, p)) {
    case AETH_ACK:
        break;
    case AETH_NAK_ACCESS:
        refuse_access(e, qp, p);
        return;
    default:
        refuse_operation(e, qp, p, QHCA_WC_LOC_ACCESS_ERR);
        return;
    }
    accept_packet(e, qp, p);
    if (flags & OPF_IMM) {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV_RDMA_WITH_IMM, s->dma_len);
    }
}

/* ---- READ and atomics ---- */

/* Notes the request for replay, in the slot of the oldest one (D-055). */
static void keep_resource(struct qhca_qp *qp, const struct qhca_rd_resource *r)
{
    struct qhca_responder *s = &qp->rsp;

    s->res_last = (s->res_last + 1) % qp->attr.max_dest_rd_atomic;
    s->res[s->res_last] = *r;
    s->rd_pending++;
}

static bool has_resource(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct roce_packet *p)
{
    if (qp->rsp.rd_pending >= qp->attr.max_dest_rd_atomic) {
        refuse_argument(e, qp, p);
        return false;
    }
    return true;
}

static void rx_read(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    struct qhca_rd_resource res = {
        .valid = true, .psn = p->psn, .va = p->va, .rkey = p->rkey,
        .length = p->dma_len, .num_psn = qhca_packets_of(p->dma_len, qp->mtu),
        .srqn = p->srqn,
    };
    struct qhca_response r = {
        .kind = QHCA_RESP_READ, .psn = p->psn, .va = p->va, .rkey = p->rkey,
        .length = p->dma_len, .srqn = p->srqn,
    };

    if (!has_resource(e, qp, p)) {
        return;
    }
    if (!qhca_payload_ok(qp, p) || p->dma_len > QHCA_MAX_MSG) {
        refuse_length(e, qp, p);
        return;
    }
    if (p->dma_len && !qhca_mr_check(e, &qp->user, p->rkey, p->va, p->dma_len,
                                     QHCA_ACCESS_REMOTE_READ)) {
        refuse_access(e, qp, p);
        return;
    }
    r.msn = psn_add(s->msn, 1);
    if (!qhca_response_add(e, qp, &r)) {
        return;                /* replays crowd the line: it will be repeated */
    }
    keep_resource(qp, &res);
    s->msn = r.msn;
    s->epsn = psn_add(s->epsn, res.num_psn);
}

static bool execute_atomic(struct qhca_engine *e, struct qhca_mr *mr,
                           const struct roce_packet *p, uint64_t *orig)
{
    if (roce_opcode(p->opcode)->op == OP_CAS) {
        return qhca_mr_cas(e, mr, p->va, p->compare, p->swap_add, orig);
    }
    return qhca_mr_add(e, mr, p->va, p->swap_add, orig);
}

static void rx_atomic(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    struct qhca_rd_resource res = {
        .valid = true, .atomic = true, .psn = p->psn, .num_psn = 1,
    };
    struct qhca_response r = { .kind = QHCA_RESP_ATOMIC, .psn = p->psn };
    struct qhca_mr *mr;

    if (!has_resource(e, qp, p)) {
        return;
    }
    if (!qhca_payload_ok(qp, p)) {
        refuse_length(e, qp, p);
        return;
    }
    if (p->va & 7) {
        refuse_argument(e, qp, p);
        return;
    }
    mr = qhca_mr_check(e, &qp->user, p->rkey, p->va, 8,
                       QHCA_ACCESS_REMOTE_ATOMIC);
    if (!mr) {
        refuse_access(e, qp, p);
        return;
    }
    if (!qhca_response_room(qp)) {
        return;                 /* before memory changes */
    }
    if (!execute_atomic(e, mr, p, &res.orig)) {
        refuse_operation(e, qp, p, QHCA_WC_LOC_ACCESS_ERR);
        return;
    }
    s->msn = psn_add(s->msn, 1);
    r.orig = res.orig;
    r.msn = s->msn;
    qhca_response_add(e, qp, &r);
    keep_resource(qp, &res);
    s->epsn = psn_add(s->epsn, 1);
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
 * The right a request needs in the QP's access flags, by enum roce_op (D-063).
 */
static const uint16_t op_access[] = {
    [OP_WRITE] = QHCA_ACCESS_REMOTE_WRITE,
    [OP_READ_REQ] = QHCA_ACCESS_REMOTE_READ,
    [OP_CAS] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_FAA] = QHCA_ACCESS_REMOTE_ATOMIC,
};

bool qhca_operation_enabled(const struct qhca_qp *qp,
                            const struct roce_packet *p)
{
    return !(op_access[roce_opcode(p->opcode)->op] &
             ~le16toh(qp->attr.access));
}

void qhca_comm_established(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_RTR && !qp->rsp.comm_est) {
        qp->rsp.comm_est = true;
        qhca_event(e, QHCA_EVENT_COMM_EST, qp->qpn);
    }
}

static void execute(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    if (!sequence_ok(qp, p) || !qhca_operation_enabled(qp, p)) {
        refuse_request(e, qp, p);
        return;
    }
    if (!qhca_xrc_select(e, qp, p)) {
        refuse_argument(e, qp, p);
        return;
    }
    qhca_comm_established(e, qp);
    switch (roce_opcode(p->opcode)->op) {
    case OP_SEND:
        rx_send(e, qp, p);
        break;
    case OP_WRITE:
        rx_write(e, qp, p);
        break;
    case OP_READ_REQ:
        rx_read(e, qp, p);
        break;
    default:
        rx_atomic(e, qp, p);
        break;
    }
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
        qhca_count(e, QHCA_CNT_RX_OUT_OF_SEQ);
        if (!s->nak_sent) {     /* once per gap (D-020) */
            s->nak_sent = true;
            qhca_response_ack(e, qp, AETH_NAK_SEQ, s->epsn);
        }
        return;
    }
    s->nak_sent = false;
    execute(e, qp, p);
}
