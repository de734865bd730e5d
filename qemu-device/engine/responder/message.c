/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: responder, common to all services: reasons to refuse a request,
 * receive WRs, and the execution of SEND and WRITE.
 */
#include "responder.h"

#define BAD_REQUEST(event, name) \
    { AETH_NAK_INV_REQ, QHCA_EVENT_QP_##event, QHCA_WC_REM_INV_REQ_ERR, name }

const struct vhca_refusal vhca_refusals[] = {
    [VHCA_RX_NO_WR] = { .name = "no receive WR" },
    [VHCA_RX_BAD_WR] = {
        AETH_NAK_OP, QHCA_EVENT_QP_FATAL, QHCA_WC_LOC_QP_OP_ERR,
        "receive WQE breaks a rule"
    },
    [VHCA_RX_PAGE] = { .name = "absent page" },
    [VHCA_RX_LOST_WR] = {
        AETH_NAK_OP, QHCA_EVENT_QP_FATAL, QHCA_WC_FATAL_ERR,
        "receive queue cannot be read"
    },
    [VHCA_RX_BUFFER] = {
        AETH_NAK_OP, QHCA_EVENT_QP_FATAL, QHCA_WC_LOC_PROT_ERR,
        "receive buffer"
    },
    [VHCA_RX_MEMORY] = {
        AETH_NAK_OP, QHCA_EVENT_QP_FATAL, QHCA_WC_LOC_ACCESS_ERR,
        "memory behind the R_Key"
    },
    [VHCA_RX_SEQUENCE] = BAD_REQUEST(REQ_ERR, "opcode sequence"),
    [VHCA_RX_DISABLED] = BAD_REQUEST(REQ_ERR, "operation not enabled"),
    [VHCA_RX_XRCETH] = BAD_REQUEST(ACCESS_ERR, "XRCETH"),
    [VHCA_RX_RESOURCES] = BAD_REQUEST(ACCESS_ERR, "responder resources"),
    [VHCA_RX_ALIGNMENT] = BAD_REQUEST(ACCESS_ERR, "alignment"),
    [VHCA_RX_FLUSH] = BAD_REQUEST(ACCESS_ERR, "kind of FLUSH"),
    [VHCA_RX_LENGTH] = {
        AETH_NAK_INV_REQ, QHCA_EVENT_QP_ACCESS_ERR, QHCA_WC_LOC_LEN_ERR,
        "length"
    },
    [VHCA_RX_ACCESS] = {
        AETH_NAK_ACCESS, QHCA_EVENT_QP_ACCESS_ERR, QHCA_WC_LOC_ACCESS_ERR,
        "R_Key"
    },
    [VHCA_RX_KEY] = {
        0, 0, QHCA_WC_REM_INV_REQ_ERR, "key to invalidate"
    },
};

void vhca_rx_trace(struct qhca_engine *e, const struct vhca_qp *qp,
                   const struct roce_packet *p, enum vhca_rx_result result)
{
    if (result >= VHCA_RX_NO_WR) {
        vhca_trace_refuse(e, qp->qpn, vhca_refusals[result].name, p->psn);
    }
}

enum vhca_rx_result vhca_rx_memory(enum vhca_mem_result result)
{
    static const uint8_t map[] = {
        [VHCA_MEM_OK] = VHCA_RX_DONE,
        [VHCA_MEM_DENIED] = VHCA_RX_ACCESS,
        [VHCA_MEM_DMA] = VHCA_RX_MEMORY,
        [VHCA_MEM_FAULT] = VHCA_RX_PAGE,
    };

    return map[result];
}

enum vhca_rx_result vhca_rx_take(struct qhca_engine *e, struct vhca_qp *qp)
{
    static const uint8_t map[] = {
        [VHCA_WQE_OK] = VHCA_RX_DONE,
        [VHCA_WQE_NONE] = VHCA_RX_NO_WR,
        [VHCA_WQE_BAD] = VHCA_RX_BAD_WR,
        [VHCA_WQE_UNREADABLE] = VHCA_RX_LOST_WR,
    };

    return map[vhca_recv_take(e, qp)];
}

bool vhca_payload_ok(const struct vhca_qp *qp, const struct roce_packet *p)
{
    uint16_t flags = roce_opcode(p->opcode)->flags;
    size_t full = (size_t)qp->mtu * p->num_psn;

    if (((p->payload_len + p->pad) & 3) || p->payload_len > full) {
        return false;
    }
    if (!(flags & OPF_PAYLOAD)) {
        return p->payload_len == 0;
    }
    if (!(flags & OPF_LAST)) {
        return p->payload_len == full;
    }
    return ((flags & OPF_FIRST) && p->num_psn == 1) ||
           p->payload_len > full - qp->mtu;
}

/*
 * The right that a request needs in the QP's access flags, by enum roce_op
 * (D-063). For FLUSH, vhca_flush_access() gives the rights.
 */
static const uint16_t op_access[] = {
    [OP_WRITE] = QHCA_ACCESS_REMOTE_WRITE,
    [OP_READ_REQ] = QHCA_ACCESS_REMOTE_READ,
    [OP_CAS] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_FAA] = QHCA_ACCESS_REMOTE_ATOMIC,
    [OP_FLUSH] = 0,
    [OP_ATOMIC_WRITE] = QHCA_ACCESS_REMOTE_WRITE,
};

bool vhca_operation_enabled(const struct vhca_qp *qp,
                            const struct roce_packet *p)
{
    uint16_t access = op_access[roce_opcode(p->opcode)->op] |
                      vhca_flush_access(p->flush_type);

    return !(access & ~le16toh(qp->attr.access));
}

void vhca_comm_established(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->state == QHCA_QPS_RTR && !qp->rsp.comm_est) {
        qp->rsp.comm_est = true;
        vhca_event(e, &qp->async, QHCA_EVENT_COMM_EST);
    }
}

/* ---- several packets together ---- */

/* Return FIRST if there are several packets, else @why. */
static enum vhca_rx_result unless_many(const struct roce_packet *p,
                                       enum vhca_rx_result why)
{
    return p->num_psn > 1 ? VHCA_RX_FIRST : why;
}

/* ---- SEND ---- */

/* Whether the payload is right and fits the rest of the receive WR (D-066). */
static bool send_length_ok(const struct vhca_qp *qp,
                           const struct roce_packet *p)
{
    const struct vhca_responder *s = &qp->rsp;

    /* The segments may hold more than the longest message. */
    return vhca_payload_ok(qp, p) &&
           s->offset + p->payload_len <= MIN_OF(s->rwr.length,
                                                (uint64_t)VHCA_MAX_MSG);
}

enum vhca_rx_result vhca_rx_send(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p)
{
    enum vhca_rx_result result = vhca_rx_take(e, qp);
    const struct vhca_rwr *rwr = &qp->rsp.rwr;
    enum vhca_mem_result scattered;

    if (result != VHCA_RX_DONE) {
        return result;
    }
    if (!vhca_same_mtu(qp, p) || !send_length_ok(qp, p)) {
        return unless_many(p, VHCA_RX_LENGTH);
    }
    scattered = vhca_scatter(e, qp->qpn, vhca_recv_user(qp), rwr->seg,
                             rwr->num_seg, qp->rsp.offset, p);
    if (scattered != VHCA_MEM_OK) {
        return unless_many(p, scattered == VHCA_MEM_FAULT ? VHCA_RX_PAGE :
                                                            VHCA_RX_BUFFER);
    }
    /* Invalidate after the data has arrived, before the completion (B-070). */
    if ((roce_opcode(p->opcode)->flags & OPF_IETH) &&
        !vhca_mr_invalidate(e, &qp->user, p->inv_key, true)) {
        return VHCA_RX_KEY;
    }
    return VHCA_RX_DONE;
}

/* ---- WRITE ---- */

/* Check the lengths of a WRITE (D-064). */
static bool write_length_ok(const struct vhca_qp *qp,
                            const struct roce_packet *p)
{
    const struct vhca_responder *s = &qp->rsp;
    uint64_t total = s->offset + p->payload_len;
    bool last = roce_opcode(p->opcode)->flags & OPF_LAST;

    return vhca_payload_ok(qp, p) && s->dma_len <= VHCA_MAX_MSG &&
           (last ? total == s->dma_len : total < s->dma_len);
}

/*
 * The first packet checks the whole range (D-065); the others check theirs, as
 * the region may be gone. A failure is not counted if @p has several packets.
 */
static enum vhca_mem_result write_payload(struct qhca_engine *e,
                                          struct vhca_qp *qp,
                                          const struct roce_packet *p)
{
    const struct vhca_responder *s = &qp->rsp;
    bool first = roce_opcode(p->opcode)->flags & OPF_FIRST;
    enum vhca_mem_result result;
    uint64_t va = s->va + s->offset, len = first ? s->dma_len : p->payload_len;
    const struct vhca_mr *mr;
    struct vhca_piece at;

    if (!p->payload_len) {
        return VHCA_MEM_OK;
    }
    mr = vhca_mr_find(e, &qp->user, s->rkey, va, len, QHCA_ACCESS_REMOTE_WRITE);
    result = mr ? VHCA_MEM_OK : VHCA_MEM_DENIED;
    for (size_t i = 0, n = 0; n < p->payload_len && result == VHCA_MEM_OK;
         i++, n += at.len) {
        at = roce_piece(p, i, n);
        result = vhca_mr_write(e, qp->qpn, mr, va + n, at.base, at.len);
        if (result == VHCA_MEM_FAULT) {
            vhca_miss_extend(e, s->dma_len - s->offset - n - at.len);
        }
    }
    return p->num_psn > 1 ? result : vhca_write_counted(e, result);
}

enum vhca_rx_result vhca_rx_write(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p)
{
    struct vhca_responder *s = &qp->rsp;
    uint16_t flags = roce_opcode(p->opcode)->flags;
    enum vhca_rx_result result = VHCA_RX_DONE;

    /* The packet that takes a receive WR goes alone, see build_data(). */
    if (flags & OPF_IMM) {
        result = p->num_psn > 1 ? VHCA_RX_FIRST : vhca_rx_take(e, qp);
    }
    if (result != VHCA_RX_DONE) {
        return result;
    }
    if (flags & OPF_FIRST) {
        s->va = p->va;
        s->rkey = p->rkey;
        s->dma_len = p->dma_len;
    }
    if (!vhca_same_mtu(qp, p) || !write_length_ok(qp, p)) {
        return unless_many(p, VHCA_RX_LENGTH);
    }
    result = vhca_rx_memory(write_payload(e, qp, p));
    return result == VHCA_RX_DONE ? result : unless_many(p, result);
}

/* ---- the end of a packet, and of a message ---- */

void vhca_rx_advance(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    struct vhca_responder *s = &qp->rsp;
    uint64_t total = s->offset + p->payload_len;

    if (!(info->flags & OPF_LAST)) {
        s->op = info->op;
        s->offset = total;
        return;
    }
    s->op = OP_NONE;
    s->offset = 0;
    s->msn = psn_add(s->msn, 1);
    if (info->op == OP_SEND) {
        vhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    } else if (info->flags & OPF_IMM) {
        vhca_recv_complete(e, qp, p, QHCA_CQE_RECV_RDMA_WITH_IMM,
                           (uint32_t)total);
    }
}
