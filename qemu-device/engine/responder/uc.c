/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: UC responder (IBTA 9.8.2). It answers nothing: what cannot be
 * executed is dropped, with the rest of its message, and the next message is
 * tried afresh. A receive WR that a dropped SEND had in use stays in use for
 * the next one (D-070).
 */
#include "responder.h"

/*
 * Packets so little behind the ePSN have been overtaken or doubled on the way.
 * Any other gap means loss, be it in this direction or, seen after 2^24
 * packets, in the other.
 */
#define LATE_WINDOW     1024

static void drop_message(struct qhca_qp *qp)
{
    qp->rsp.op = OP_NONE;
    qp->rsp.offset = 0;
}

/* What the sender asks for cannot be done (D-072, I-043). */
static void refuse(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_count_qp(e, qp, QHCA_CNT_RX_REFUSED, 1);
    drop_message(qp);
}

void qhca_unreliable_fail(struct qhca_engine *e, struct qhca_qp *qp,
                          enum qhca_cqe_status status)
{
    bool told = qp->rsp.rwr.taken;

    if (told) {
        qhca_recv_fail(e, qp, status);
    }
    qhca_qp_error(e, qp, told ? 0 : QHCA_EVENT_QP_FATAL);
}

bool qhca_unreliable_take(struct qhca_engine *e, struct qhca_qp *qp)
{
    switch (qhca_recv_take(e, qp)) {
    case QHCA_WQE_OK:
        return true;
    case QHCA_WQE_NONE:
        refuse(e, qp);
        return false;
    case QHCA_WQE_BAD:
        qhca_unreliable_fail(e, qp, QHCA_WC_LOC_QP_OP_ERR);
        return false;
    default:
        qhca_unreliable_fail(e, qp, QHCA_WC_FATAL_ERR);
        return false;
    }
}

static bool rx_send(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    struct qhca_responder *s = &qp->rsp;
    uint64_t total = s->offset + p->payload_len;

    if (!qhca_unreliable_take(e, qp)) {
        return false;
    }
    if (!qhca_send_length_ok(qp, p)) {
        refuse(e, qp);
        return false;
    }
    if (qhca_recv_write(e, qp, s->offset, p->payload, p->payload_len) !=
        QHCA_SEG_OK) {
        qhca_unreliable_fail(e, qp, QHCA_WC_LOC_PROT_ERR);
        return false;
    }
    if (roce_opcode(p->opcode)->flags & OPF_LAST) {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    }
    return true;
}

static bool rx_write(struct qhca_engine *e, struct qhca_qp *qp,
                     const struct roce_packet *p)
{
    bool imm = roce_opcode(p->opcode)->flags & OPF_IMM;

    if (imm && !qhca_unreliable_take(e, qp)) {
        return false;
    }
    qhca_write_begin(qp, p);
    if (!qhca_write_length_ok(qp, p)) {
        refuse(e, qp);
        return false;
    }
    switch (qhca_write_payload(e, qp, p)) {
    case AETH_ACK:
        break;
    case AETH_NAK_ACCESS:
        refuse(e, qp);
        return false;
    default:
        qhca_unreliable_fail(e, qp, QHCA_WC_LOC_ACCESS_ERR);
        return false;
    }
    if (imm) {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV_RDMA_WITH_IMM,
                           qp->rsp.dma_len);
    }
    return true;
}

/*
 * Whether the packet goes on with the message in progress, or begins one. What
 * was in progress is lost if it does neither.
 */
static bool in_sequence(struct qhca_qp *qp, const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    bool first = info->flags & OPF_FIRST;

    if (info->op != OP_NONE && qp->rsp.op == (first ? OP_NONE : info->op)) {
        return true;
    }
    drop_message(qp);
    return first;
}

/* Whether the PSN is one to look at; a gap costs the message in progress. */
static bool psn_ok(struct qhca_engine *e, struct qhca_qp *qp, uint32_t psn)
{
    int32_t ahead = psn_diff(psn, qp->rsp.epsn);

    if (ahead < 0 && ahead >= -LATE_WINDOW) {
        qhca_count_qp(e, qp, QHCA_CNT_RX_DUPLICATE, 1);
        return false;
    }
    if (ahead) {
        qhca_count_qp(e, qp, QHCA_CNT_RX_OUT_OF_SEQ, 1);
        drop_message(qp);
    }
    return true;
}

void qhca_uc_rx(struct qhca_engine *e, struct qhca_qp *qp,
                const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    struct qhca_responder *s = &qp->rsp;
    bool done;

    if (!psn_ok(e, qp, p->psn)) {
        return;
    }
    s->epsn = psn_add(p->psn, 1);
    if (!in_sequence(qp, p)) {
        return;
    }
    if (!qhca_operation_enabled(qp, p)) {
        refuse(e, qp);
        return;
    }
    qhca_comm_established(e, qp);
    done = info->op == OP_SEND ? rx_send(e, qp, p) : rx_write(e, qp, p);
    if (!done) {
        return;
    }
    s->offset += p->payload_len;
    s->op = info->op;
    if (info->flags & OPF_LAST) {
        drop_message(qp);       /* executed: none is in progress */
        s->msn = psn_add(s->msn, 1);
    }
}
