/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: receive work requests: taking one off the receive queue,
 * completing it, flushing.
 */
#include "qp.h"

/* Reads receive WQE @index; wr_id is valid unless UNREADABLE. */
static enum qhca_wqe_result fetch(struct qhca_engine *e, struct qhca_qp *qp,
                                  uint32_t index, struct qhca_rwr *rwr)
{
    uint8_t raw[QHCA_RQ_STRIDE_MAX];
    struct qhca_rq_wqe w;
    uint64_t off = (uint64_t)(index & (qhca_wq_size(&qp->rq) - 1))
                   << qp->rq.log_stride;

    if (!qhca_mem_read(e, &qp->rq.mem, off, raw, 1u << qp->rq.log_stride)) {
        return QHCA_WQE_UNREADABLE;
    }
    memcpy(&w, raw, sizeof(w));
    rwr->taken = true;
    rwr->wr_id = le64toh(w.wr_id);
    rwr->num_seg = le16toh(w.num_sge);
    rwr->length = 0;
    if (rwr->num_seg > qp->rq.max_sge) {
        qhca_count(e, QHCA_CNT_BAD_WQE);
        qhca_guest_error(e, "QP 0x%x: receive WQE with too many SGEs", qp->qpn);
        rwr->num_seg = 0;
        return QHCA_WQE_BAD;
    }
    rwr->length = qhca_wqe_parse_sges(rwr->seg, raw + sizeof(w), rwr->num_seg);
    return QHCA_WQE_OK;
}

enum qhca_wqe_result qhca_recv_take(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->rsp.rwr.taken) {
        return QHCA_WQE_OK;
    }
    if (qp->rq.ci == qp->rq.pi) {
        return QHCA_WQE_NONE;
    }
    return fetch(e, qp, qp->rq.ci, &qp->rsp.rwr);
}

/* Completes the receive WR in use with a CQE filled in by the caller. */
static void complete(struct qhca_engine *e, struct qhca_qp *qp,
                     struct qhca_cqe *cqe, bool solicited)
{
    cqe->wr_id = htole64(qp->rsp.rwr.wr_id);
    cqe->qpn = htole32(qp->qpn);
    cqe->wqe_index = htole32(qp->rq.ci);
    qp->rsp.rwr.taken = false;
    qp->rq.ci++;
    qhca_cq_push(e, qp->rcq, cqe, solicited);
}

void qhca_recv_complete(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p, uint8_t opcode,
                        uint32_t byte_len)
{
    struct qhca_cqe cqe = {
        .opcode = opcode,
        .byte_len = htole32(byte_len),
        .src_qp = qp->attr.dest_qpn,
        .imm = p->imm,
    };
    uint16_t flags = p->solicited ? QHCA_CQE_SOLICITED : 0;

    if (roce_opcode(p->opcode)->flags & OPF_IMM) {
        flags |= QHCA_CQE_IMM;
    }
    if (roce_opcode(p->opcode)->flags & OPF_IETH) {
        flags |= QHCA_CQE_INV;
        cqe.inv_key = htole32(p->inv_key);
    }
    cqe.flags = htole16(flags);
    complete(e, qp, &cqe, p->solicited);
}

void qhca_recv_fail(struct qhca_engine *e, struct qhca_qp *qp,
                    enum qhca_cqe_status status)
{
    struct qhca_cqe cqe = {
        .opcode = QHCA_CQE_RECV,
        .status = (uint8_t)status,
    };

    complete(e, qp, &cqe, false);
}

void qhca_recv_flush_one(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (!qp->rsp.rwr.taken) {
        qp->rsp.rwr.wr_id = 0;
        (void)fetch(e, qp, qp->rq.ci, &qp->rsp.rwr);
    }
    qhca_recv_fail(e, qp, QHCA_WC_WR_FLUSH_ERR);
}
