/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: sending datagrams: UD and the GSI QP (IBTA 9.8.3). A message is
 * one packet, and its sender learns only that it has been sent.
 */
#include "requester.h"

bool vhca_datagram_build(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct vhca_swr *wr, struct vhca_burst *burst)
{
    bool imm = wr->opcode == QHCA_WR_SEND_WITH_IMM;
    bool own = qp->type == QHCA_QPT_GSI || (wr->ud.qkey & QHCA_QKEY_OWN);
    struct roce_packet *p = &burst->p;

    p->opcode = SVC_UD | (imm ? RC_SEND_ONLY_IMM : RC_SEND_ONLY);
    p->imm = wr->imm;
    p->solicited = wr->flags & QHCA_WQE_SOLICITED;
    p->qkey = own ? vhca_qp_qkey(qp) : wr->ud.qkey;
    p->src_qp = qp->qpn;
    /* A message too long for a packet completes, but is not sent (B-030). */
    burst->unsent = wr->length > vhca_port_path_mtu(e);
    return burst->unsent ||
           vhca_swr_gather(e, qp, wr, 0, vhca_burst_payload(burst, wr->length),
                           wr->length) == QHCA_MEM_OK;
}
