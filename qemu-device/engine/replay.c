/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, duplicate requests (IBTA 9.7.5.1.4; D-050 to D-055).
 * SENDs, WRITEs and atomics are not executed again; READs are.
 */
#include "qp.h"

static struct qhca_rd_resource *find_resource(struct qhca_qp *qp, uint32_t psn)
{
    for (unsigned i = 0; i < qp->attr.max_dest_rd_atomic; i++) {
        struct qhca_rd_resource *r = &qp->rsp.res[i];

        if (r->valid && psn_add(psn, -r->psn) < r->num_psn) {
            return r;
        }
    }
    return NULL;
}

/* An answer still in line will cover @psn without being asked again. */
static bool answer_in_line(const struct qhca_qp *qp, uint32_t psn)
{
    const struct qhca_responder *s = &qp->rsp;

    for (uint32_t i = s->q_head; i != s->q_tail; i++) {
        const struct qhca_response *r = &s->queue[i % QHCA_RESPONSES];
        uint32_t left = r->kind == QHCA_RESP_READ ?
                        qhca_packets_of(r->length - r->done, qp->mtu) : 1;

        if (r->kind != QHCA_RESP_ACK && psn_add(psn, -r->psn) < left) {
            return true;
        }
    }
    return false;
}

static void replay_read(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p)
{
    struct qhca_rd_resource *res = find_resource(qp, p->psn);
    struct qhca_response r = {
        .kind = QHCA_RESP_READ, .replay = true, .psn = p->psn, .va = p->va,
        .rkey = p->rkey, .length = p->dma_len, .msn = qp->rsp.msn,
    };

    /* Only what the original request covered (D-051). */
    if (!res || res->atomic || p->rkey != res->rkey || p->va < res->va ||
        p->va - res->va > res->length ||
        p->dma_len > res->length - (p->va - res->va)) {
        return;
    }
    qhca_response_add(e, qp, &r);
}

static void replay_atomic(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p)
{
    struct qhca_rd_resource *res = find_resource(qp, p->psn);
    struct qhca_response r = {
        .kind = QHCA_RESP_ATOMIC, .replay = true, .psn = p->psn,
        .msn = qp->rsp.msn,
    };

    if (res && res->atomic) {
        r.orig = res->orig;
        qhca_response_add(e, qp, &r);
    }
}

void qhca_responder_duplicate(struct qhca_engine *e, struct qhca_qp *qp,
                              const struct roce_packet *p)
{
    qhca_count(e, QHCA_CNT_RX_DUPLICATE);
    switch (roce_opcode(p->opcode)->op) {
    case OP_READ_REQ:
        if (!answer_in_line(qp, p->psn)) {
            replay_read(e, qp, p);
        }
        break;
    case OP_CAS:
    case OP_FAA:
        if (!answer_in_line(qp, p->psn)) {
            replay_atomic(e, qp, p);
        }
        break;
    default:
        qhca_response_ack(e, qp, AETH_ACK, psn_add(qp->rsp.epsn, -1u));
        break;
    }
}
