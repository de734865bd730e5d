/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: receiving datagrams: UD and the GSI QP (IBTA 9.8.3).
 */
#include "responder.h"

/* Scatter GRH and payload. */
static bool scatter(struct qhca_engine *e, struct vhca_qp *qp,
                    const struct roce_packet *p)
{
    const struct vhca_key_user *user = vhca_recv_user(qp);
    const struct vhca_rwr *rwr = &qp->rsp.rwr;
    uint8_t grh[GRH_LEN];

    roce_grh(p, grh);
    return vhca_write_counted(e, vhca_segs_write(e, user, rwr->seg,
                                                 rwr->num_seg, 0, grh,
                                                 GRH_LEN)) == QHCA_MEM_OK &&
           vhca_scatter(e, user, rwr->seg, rwr->num_seg, GRH_LEN, p);
}

/*
 * The receive WR is too small. It stays in use for the next message (D-077),
 * but a WR of an SRQ, which the QP must not keep, fails (G-009).
 */
static void too_small(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p)
{
    vhca_unreliable_refuse(e, qp, p, QHCA_RX_LENGTH);
    if (qp->srq) {
        vhca_recv_fail(e, qp, QHCA_WC_LOC_LEN_ERR);
    }
}

void vhca_datagram_rx(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p)
{
    uint64_t total = GRH_LEN + p->payload_len;
    enum vhca_rx_result result = QHCA_RX_LENGTH;

    if (!((p->payload_len + p->pad) & 3) &&
        p->payload_len <= vhca_port_path_mtu(e)) {
        result = vhca_rx_take(e, qp);
    }
    if (result != QHCA_RX_DONE) {
        vhca_unreliable_refuse(e, qp, p, result);
    } else if (total > qp->rsp.rwr.length) {
        too_small(e, qp, p);
    } else if (!scatter(e, qp, p)) {
        vhca_unreliable_refuse(e, qp, p, QHCA_RX_BUFFER);
    } else {
        vhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    }
}
