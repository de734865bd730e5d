/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: sending datagrams: UD and the GSI QP (IBTA 9.8.3). A message is
 * one packet, and that it has left is all its sender learns.
 */
#include "requester.h"

bool qhca_datagram_send(struct qhca_engine *e, struct qhca_qp *qp,
                        struct qhca_swr *wr)
{
    struct qhca_requester *r = &qp->req;
    bool imm = wr->opcode == QHCA_WR_SEND_WITH_IMM;
    bool own = qp->type == QHCA_QPT_GSI || (wr->ud.qkey & QHCA_QKEY_OWN);
    struct qhca_txbuf b;
    uint8_t *payload;

    qhca_packet_start_to(e, qp, &b, &wr->ud.av, wr->ud.qpn,
                         SVC_UD | (imm ? RC_SEND_ONLY_IMM : RC_SEND_ONLY),
                         r->snd_psn);
    payload = qhca_packet_payload(&b, wr->length);
    /* Too long for any packet: complete, but not sent (B-030). */
    if (wr->length <= qhca_port_path_mtu(e)) {
        if (qhca_swr_gather(e, qp, wr, 0, payload, wr->length) != QHCA_MEM_OK) {
            return false;
        }
        b.p.imm = wr->imm;
        b.p.solicited = wr->flags & QHCA_WQE_SOLICITED;
        b.p.qkey = own ? qhca_qp_qkey(qp) : wr->ud.qkey;
        b.p.src_qp = qp->qpn;
        qhca_packet_send(e, qp, &b);
    }
    r->snd_psn = psn_add(r->snd_psn, 1);
    return true;
}
