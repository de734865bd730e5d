/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, duplicate requests (IBTA 9.7.5.1.4; D-050 to
 * D-055). READs are executed again, all others are only answered again.
 */
#include "responder.h"

/* The latest first: two long READs can have the same PSNs, a lap apart. */
static const struct vhca_rd_resource *find_resource(const struct vhca_qp *qp,
                                                    uint32_t psn)
{
    unsigned n = qp->attr.max_dest_rd_atomic;

    for (unsigned i = 0; i < n; i++) {
        const struct vhca_rd_resource *r =
            &qp->rsp.res[(qp->rsp.res_last + n - i) % n];

        if (r->valid && psn_add(psn, -r->psn) < r->num_psn) {
            return r;
        }
    }
    return NULL;
}

/*
 * Return the PSN of the ACK for a duplicate SEND or WRITE @psn: everything that
 * has been received, up to the next READ or atomic. The response to that may
 * have been lost, and acknowledging it would make the requester go back
 * (D-014).
 */
static uint32_t ack_psn(const struct vhca_qp *qp, uint32_t psn)
{
    uint32_t ack = psn_add(qp->rsp.epsn, -1u);

    for (unsigned i = 0; i < qp->attr.max_dest_rd_atomic; i++) {
        const struct vhca_rd_resource *r = &qp->rsp.res[i];

        if (r->valid && psn_diff(r->psn, psn) > 0 &&
            psn_diff(r->psn, ack) <= 0) {
            ack = psn_add(r->psn, -1u);
        }
    }
    return ack;
}

static void replay_read(struct vhca_qp *qp, const struct roce_packet *p)
{
    const struct vhca_rd_resource *res = find_resource(qp, p->psn);
    struct vhca_response r = {
        .kind = VHCA_RESP_READ, .replay = true, .psn = p->psn, .va = p->va,
        .rkey = p->rkey, .length = p->dma_len, .msn = qp->rsp.msn,
        .srqn = p->srqn,
    };
    uint64_t off;

    if (!res || res->op != OP_READ_REQ) {
        return;
    }
    /* Repeat only data of the original request, from some packet on (D-051). */
    off = (uint64_t)psn_add(p->psn, -res->psn) * qp->mtu;
    if (p->rkey == res->rkey && p->srqn == res->srqn &&
        p->va == res->va + off &&
        p->dma_len <= res->length - off) {
        vhca_response_repeat(qp, &r);
    }
}

/* Repeat the response: the value found, or that the request is done. */
static void replay_done(struct vhca_qp *qp, const struct roce_packet *p)
{
    const struct vhca_rd_resource *res = find_resource(qp, p->psn);
    uint8_t op = roce_opcode(p->opcode)->op;
    struct vhca_response r = {
        .kind = roce_opcode(p->opcode)->flags & OPF_ATOMICETH ?
                VHCA_RESP_ATOMIC : VHCA_RESP_READ,
        .replay = true, .psn = p->psn, .msn = qp->rsp.msn,
    };

    if (res && res->op == op) {
        r.orig = res->orig;
        vhca_response_repeat(qp, &r);
    }
}

void vhca_responder_duplicate(struct qhca_engine *e, struct vhca_qp *qp,
                              const struct roce_packet *p)
{
    vhca_count_qp(e, qp, QHCA_CNT_RX_DUPLICATE, 1);
    switch (roce_opcode(p->opcode)->op) {
    case OP_READ_REQ:
        replay_read(qp, p);
        break;
    case OP_CAS:
    case OP_FAA:
    case OP_FLUSH:
    case OP_ATOMIC_WRITE:
        replay_done(qp, p);
        break;
    default:
        vhca_response_ack(qp, AETH_ACK, ack_psn(qp, p->psn));
        break;
    }
}
