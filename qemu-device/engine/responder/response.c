/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, sending responses in the order of the requests
 * (IBTA 9.7.5; D-013). The data of a READ are read from memory piece by piece
 * as they are sent, so a response of any length costs bounded work and memory.
 */
#include "responder.h"

static void count_ack(struct qhca_engine *e, const struct vhca_qp *qp,
                      uint8_t syndrome)
{
    static const enum qhca_counter nak[] = {
        QHCA_CNT_TX_NAK_SEQ, QHCA_CNT_TX_NAK_INV_REQ,
        QHCA_CNT_TX_NAK_ACCESS, QHCA_CNT_TX_NAK_OP,
    };

    if (AETH_TYPE(syndrome) == AETH_RNR_NAK) {
        vhca_count_qp(e, qp, QHCA_CNT_TX_RNR_NAK, 1);
    } else if (AETH_TYPE(syndrome) == AETH_NAK) {
        vhca_count_qp(e, qp, nak[AETH_CODE(syndrome) & 3], 1);
    } else {
        vhca_count_qp(e, qp, QHCA_CNT_TX_ACK, 1);
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

/* Whether the driver has refused the page that @r waited for. */
static bool denied(const struct vhca_qp *qp, const struct vhca_response *r)
{
    return qp->rsp.page_denied && qp->fault[QHCA_PAGE_RESPONSE].at == r->psn;
}

/*
 * Build the next packets of a READ response, one if they become frames. The key
 * is looked up every time, as it may have been invalidated (D-069).
 */
static enum vhca_mem_result build_read(struct qhca_engine *e,
                                       struct vhca_qp *qp,
                                       const struct vhca_response *r,
                                       uint32_t max, struct vhca_burst *burst)
{
    uint32_t left = r->length - r->done, len = MIN_OF(qp->mtu, left);
    uint64_t va = r->va + r->done;
    enum vhca_mem_result result;
    const struct vhca_mr *mr;
    struct vhca_key_user user;
    uint8_t *payload;
    bool copy, last;

    if (left && !vhca_xrc_user(e, qp, r->srqn, &user)) {
        return VHCA_MEM_DENIED;
    }
    if (left && burst->crosses && !r->early) {
        vhca_key_view(e, &user, r->rkey, va,
                      (size_t)MIN_OF(left, (uint64_t)max * qp->mtu),
                      QHCA_ACCESS_REMOTE_READ, &burst->view);
    }
    copy = !vhca_burst_in_place(burst, qp->mtu, left);
    last = copy ? len == left : burst->view.len == left;
    burst->p.opcode = vhca_qp_service(qp) | read_opcode(!r->done, last);
    if (!copy || !left) {
        return VHCA_MEM_OK;
    }
    mr = vhca_mr_check(e, &user, r->rkey, va, len, QHCA_ACCESS_REMOTE_READ);
    if (!mr || denied(qp, r)) {
        return VHCA_MEM_DENIED;
    }
    payload = vhca_burst_payload(burst, len);
    result = vhca_mr_read(e, mr, va, payload, len);
    vhca_early_use(e, qp, r, payload, len);
    if (result == VHCA_MEM_FAULT) {
        vhca_miss_extend(e, left - len);
    }
    return result;
}

static void build_ack(const struct vhca_qp *qp, uint8_t syndrome,
                      struct vhca_burst *burst)
{
    burst->p.opcode = vhca_qp_service(qp) | RC_ACKNOWLEDGE;
    burst->p.syndrome = syndrome;
}

static bool is_verdict(const struct vhca_burst *burst)
{
    return (burst->p.opcode & ~SVC_MASK) == RC_ACKNOWLEDGE;
}

bool vhca_response_next(struct qhca_engine *e, struct vhca_qp *qp, uint32_t max,
                        struct vhca_burst *burst)
{
    struct vhca_response *r = vhca_response_at(&qp->rsp, qp->rsp.q_head);
    enum vhca_mem_result result;

    if (r->kind == VHCA_RESP_READ && vhca_early_begin(e, qp, r)) {
        return false;
    }
    burst->p.psn = r->psn;
    burst->p.msn = r->msn;
    burst->p.syndrome = AETH_ACK;
    if (r->kind == VHCA_RESP_READ) {
        result = build_read(e, qp, r, max, burst);
        if (result == VHCA_MEM_FAULT) {
            qp->rsp.page_wait = true;
            vhca_qp_page_fault(e, qp, QHCA_PAGE_RESPONSE, r->psn, 0);
            return false;
        }
        if (result != VHCA_MEM_OK) {
            /*
             * The memory is not accessible any more. If the request is a late
             * duplicate, nothing follows from that; else refuse it after all.
             */
            const struct vhca_refusal *refusal =
                &vhca_refusals[vhca_rx_memory(result)];

            vhca_burst_payload(burst, 0);
            build_ack(qp, refusal->syndrome, burst);
            burst->fatal = !r->replay;
            burst->event = refusal->event;
        }
    } else if (r->kind == VHCA_RESP_ATOMIC) {
        burst->p.opcode = vhca_qp_service(qp) | RC_ATOMIC_ACKNOWLEDGE;
        burst->p.atomic_orig = r->orig;
    } else {
        build_ack(qp, r->syndrome, burst);
        burst->fatal = AETH_TYPE(r->syndrome) == AETH_NAK &&
                     r->syndrome != AETH_NAK_SEQ;
        burst->event = qp->rsp.fail_event;
    }
    return true;
}

void vhca_response_resume(struct qhca_engine *e, struct vhca_qp *qp, bool deny)
{
    if (qp->rsp.page_wait && qp->state != QHCA_QPS_ERR) {
        qp->rsp.page_wait = false;
        qp->rsp.page_denied = deny;
        vhca_qp_schedule(e, qp);
    }
}

void vhca_response_sent(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_burst *burst)
{
    struct vhca_responder *s = &qp->rsp;
    struct vhca_response *r = vhca_response_at(s, s->q_head);

    if (is_verdict(burst)) {
        count_ack(e, qp, burst->p.syndrome);
    }
    if (qp->state == QHCA_QPS_ERR) {
        return;         /* a fault rule on this response has ended the QP */
    }
    VHCA_ASSERT(s->q_head != s->q_tail);
    s->page_denied = false;
    if (r->kind == VHCA_RESP_READ && !is_verdict(burst)) {
        r->psn = psn_add(r->psn, burst->p.num_psn);
        r->done += (uint32_t)burst->p.payload_len;
        if (r->done != r->length) {
            return;
        }
    }
    if (burst->fatal) {
        vhca_qp_error(e, qp, burst->event);     /* drops all responses */
        return;
    }
    s->rd_pending -= r->kind != VHCA_RESP_ACK && !r->replay;
    s->q_head++;
}

bool vhca_response_is_data(struct vhca_qp *qp)
{
    return vhca_response_queued(qp) &&
           vhca_response_at(&qp->rsp, qp->rsp.q_head)->kind == VHCA_RESP_READ;
}
