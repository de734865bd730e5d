/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: receiving datagrams: UD and the GSI QP (IBTA 9.8.3).
 */
#include "responder.h"

/* GRH and payload, one behind the other. */
static bool scatter(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    uint8_t grh[GRH_LEN];

    roce_grh(p, grh);
    return qhca_recv_write(e, qp, 0, grh, GRH_LEN) == QHCA_MEM_OK &&
           qhca_recv_write(e, qp, GRH_LEN, p->payload, p->payload_len) ==
           QHCA_MEM_OK;
}

/*
 * The receive WR is too small. It stays for the next message (D-077), but one
 * of an SRQ, which is not the QP's to keep, fails (G-009).
 */
static void too_small(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_unreliable_refuse(e, qp, QHCA_RX_LENGTH);
    if (qp->srq) {
        qhca_recv_fail(e, qp, QHCA_WC_LOC_LEN_ERR);
    }
}

void qhca_datagram_rx(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    uint64_t total = GRH_LEN + p->payload_len;
    enum qhca_rx_result result = QHCA_RX_LENGTH;

    if (!((p->payload_len + p->pad) & 3) &&
        p->payload_len <= qhca_port_path_mtu(e)) {
        result = qhca_rx_take(e, qp);
    }
    if (result != QHCA_RX_DONE) {
        qhca_unreliable_refuse(e, qp, result);
    } else if (total > qp->rsp.rwr.length) {
        too_small(e, qp);
    } else if (!scatter(e, qp, p)) {
        qhca_unreliable_refuse(e, qp, QHCA_RX_BUFFER);
    } else {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    }
}
