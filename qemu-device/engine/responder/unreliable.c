/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: responder of UC (IBTA 9.8.2), and of UD and the GSI QP (9.8.3).
 * It sends no responses: a packet that cannot be executed is dropped with the
 * rest of its message, and the next message starts afresh. The receive WR of a
 * dropped SEND is the next one's (D-070).
 */
#include "responder.h"

/*
 * Packets up to this far behind the ePSN have been overtaken or duplicated. Any
 * other gap is a loss, be it forwards or, after 2^24 packets, backwards. Only a
 * first packet of a message ends the gap: others may be very late, and say
 * nothing about what comes next.
 */
#define LATE_WINDOW     0x10000

static void drop_message(struct qhca_engine *e, struct vhca_qp *qp)
{
    qp->rsp.op = OP_NONE;
    qp->rsp.offset = 0;
    vhca_recv_give_back(e, qp);
}

/*
 * Drop a request that cannot be executed (D-072, I-043). If the fault is on
 * this side, the QP goes to ERR, and the receive WR in use says why (I-044).
 */
static void refuse(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct roce_packet *p, enum vhca_rx_result why)
{
    const struct vhca_refusal *r = &vhca_refusals[why];
    bool told = qp->rsp.rwr.taken;

    vhca_rx_trace(e, qp, p, why);
    if (why == VHCA_RX_PAGE) {
        /* The message is lost, but the next one may find the page. */
        vhca_qp_page_fault(e, qp, QHCA_PAGE_REQUEST, p->psn, VHCA_RX_ACCESS);
    }
    if (r->syndrome != AETH_NAK_OP) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_REFUSED, 1);
        drop_message(e, qp);
        return;
    }
    if (told) {
        vhca_recv_fail(e, qp, r->status);
    }
    vhca_qp_error(e, qp, told ? 0 : r->event);
}

/*
 * Whether the packet continues the message in progress or begins one. If it
 * does neither, the message in progress is dropped.
 */
static bool in_sequence(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    bool first = info->flags & OPF_FIRST;

    if (info->op != OP_NONE && qp->rsp.op == (first ? OP_NONE : info->op)) {
        return true;
    }
    drop_message(e, qp);
    return first;
}

/* Whether to execute the packet; a gap drops the message in progress. */
static bool psn_ok(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct roce_packet *p)
{
    int32_t ahead = psn_diff(p->psn, qp->rsp.epsn);

    if (ahead < 0 && ahead >= -LATE_WINDOW) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_DUPLICATE, 1);
        return false;
    }
    if (ahead) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_OUT_OF_SEQ, 1);
        drop_message(e, qp);
    }
    return !ahead || roce_opcode(p->opcode)->flags & OPF_FIRST;
}

static enum vhca_rx_result unreliable_execute(struct qhca_engine *e,
                                              struct vhca_qp *qp,
                                              const struct roce_packet *p)
{
    if (!vhca_operation_enabled(qp, p)) {
        return VHCA_RX_DISABLED;
    }
    vhca_comm_established(e, qp);
    return roce_opcode(p->opcode)->op == OP_SEND ? vhca_rx_send(e, qp, p) :
                                                   vhca_rx_write(e, qp, p);
}

uint32_t vhca_uc_rx(struct qhca_engine *e, struct vhca_qp *qp,
                    const struct roce_packet *p)
{
    enum vhca_rx_result result = VHCA_RX_DONE;
    struct roce_packet first;
    uint32_t n;

    if (!psn_ok(e, qp, p)) {
        vhca_trace_refuse(e, qp->qpn, "PSN", p->psn);
        return 1;
    }
    if (!in_sequence(e, qp, p)) {
        vhca_rx_trace(e, qp, p, VHCA_RX_SEQUENCE);
        qp->rsp.epsn = psn_add(p->psn, 1);
        return 1;
    }
    result = unreliable_execute(e, qp, p);
    if (result == VHCA_RX_FIRST) {
        first = roce_first_of(p);
        p = &first;
        result = unreliable_execute(e, qp, p);
    }
    n = vhca_rx_count(p, result);
    qp->rsp.epsn = psn_add(p->psn, n);
    if (result == VHCA_RX_DONE) {
        vhca_rx_advance(e, qp, p);
    } else {
        refuse(e, qp, p, result);
    }
    return n;
}

/* ---- datagrams ---- */

/* Scatter the GRH, if @head, its length, is not 0, and the payload. */
static enum vhca_mem_result scatter(struct qhca_engine *e, struct vhca_qp *qp,
                                    const struct roce_packet *p, size_t head)
{
    const struct vhca_key_user *user = vhca_recv_user(qp);
    const struct vhca_rwr *rwr = &qp->rsp.rwr;
    enum vhca_mem_result result = VHCA_MEM_OK;
    uint8_t grh[GRH_LEN];

    if (head) {
        roce_grh(p, grh);
        result = vhca_segs_write(e, qp->qpn, user, rwr->seg, rwr->num_seg, 0,
                                 grh, head);
        result = vhca_write_counted(e, result);
    }
    return result != VHCA_MEM_OK ? result :
           vhca_scatter(e, qp->qpn, user, rwr->seg, rwr->num_seg, head, p);
}

/*
 * Put a datagram, behind a GRH of @head bytes, where the next receive WR says.
 * Returns whether that WR is to be completed.
 */
static bool unreliable_place(struct qhca_engine *e, struct vhca_qp *qp,
                             const struct roce_packet *p, size_t head)
{
    enum vhca_rx_result result = vhca_rx_take(e, qp);
    enum vhca_mem_result scattered;

    if (result != VHCA_RX_DONE) {
        refuse(e, qp, p, result);
        return false;
    }
    if (head + p->payload_len > qp->rsp.rwr.length) {
        /*
         * The receive WR serves the next message (D-077), but one of an SRQ,
         * where it would be in the way of other QPs, fails (G-009).
         */
        if (qp->srq) {
            vhca_recv_fail(e, qp, QHCA_WC_LOC_LEN_ERR);
        }
        refuse(e, qp, p, VHCA_RX_LENGTH);
        return false;
    }
    scattered = scatter(e, qp, p, head);
    if (scattered != VHCA_MEM_OK) {
        refuse(e, qp, p, scattered == VHCA_MEM_FAULT ? VHCA_RX_PAGE :
                                                       VHCA_RX_BUFFER);
    }
    return scattered == VHCA_MEM_OK;
}

void vhca_datagram_rx(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p)
{
    if ((p->payload_len + p->pad) & 3 ||
        p->payload_len > vhca_port_path_mtu(e)) {
        refuse(e, qp, p, VHCA_RX_LENGTH);
    } else if (unreliable_place(e, qp, p, GRH_LEN)) {
        vhca_recv_complete(e, qp, p, QHCA_CQE_RECV,
                           (uint32_t)(GRH_LEN + p->payload_len));
    }
}

/* States in which frames are taken, a bit each. */
#define TAKES_FRAMES    (1u << QHCA_QPS_RTR | 1u << QHCA_QPS_RTS | \
                         1u << QHCA_QPS_SQD | 1u << QHCA_QPS_SQE)

void vhca_raw_rx(struct qhca_engine *e, struct vhca_qp *qp,
                 const uint8_t *frame, size_t len, uint32_t tag, bool csum_ok)
{
    struct roce_packet p = {
        .opcode = SVC_UD | RC_SEND_ONLY, .num_psn = 1, .payload = frame,
        .payload_len = len,
    };

    if (!(TAKES_FRAMES & 1u << qp->state)) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_BAD_STATE, 1);
        return;
    }
    if (unreliable_place(e, qp, &p, 0)) {
        vhca_count_qp(e, qp, QHCA_CNT_ETH_RX_PKTS, 1);
        vhca_count_qp(e, qp, QHCA_CNT_ETH_RX_BYTES, len);
        vhca_recv_complete_frame(e, qp, (uint32_t)len, tag,
                                 csum_ok ? QHCA_CQE_CSUM_OK : 0);
    }
}
