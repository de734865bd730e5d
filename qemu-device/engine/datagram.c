/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: datagrams: UD and the GSI QP (IBTA 9.8.3). A message is one
 * packet, and that it has left is all its sender learns.
 */
#include "packet.h"
#include "recv.h"

/* D-079, D-080 */
static uint32_t own_qkey(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_GSI ? QHCA_QKEY_GSI : le32toh(qp->attr.qkey);
}

bool qhca_datagram_send(struct qhca_engine *e, struct qhca_qp *qp,
                        struct qhca_swr *wr)
{
    struct qhca_requester *r = &qp->req;
    bool imm = wr->opcode == QHCA_WR_SEND_WITH_IMM;
    bool own = qp->type == QHCA_QPT_GSI || (wr->ud.qkey & QHCA_QKEY_OWN);
    struct qhca_txbuf b;
    uint8_t *payload = qhca_packet_start_to(e, qp, &b, &wr->ud.av, wr->ud.qpn,
                                            SVC_UD | (imm ? RC_SEND_ONLY_IMM :
                                                            RC_SEND_ONLY),
                                            r->snd_psn);

    /* Too long for any packet: complete, but not sent (B-030). */
    if (wr->length <= qhca_port_path_mtu(e)) {
        if (qhca_swr_gather(e, qp, wr, 0, payload, wr->length) != QHCA_SEG_OK) {
            return false;
        }
        b.p.payload_len = wr->length;
        b.p.imm = wr->imm;
        b.p.solicited = wr->flags & QHCA_WQE_SOLICITED;
        b.p.qkey = own ? own_qkey(qp) : wr->ud.qkey;
        b.p.src_qp = qp->qpn;
        qhca_packet_send(e, qp, &b);
    }
    r->snd_psn = psn_add(r->snd_psn, 1);
    return true;
}

bool qhca_datagram_allowed(const struct qhca_qp *qp,
                           const struct roce_packet *p)
{
    return p->qkey == own_qkey(qp);
}

void qhca_datagram_fill_cqe(struct qhca_cqe *cqe, const struct roce_packet *p)
{
    uint16_t flags = QHCA_CQE_GRH;

    if (p->ipv4) {
        flags |= QHCA_CQE_IPV4;
    }
    if (p->vlan != QHCA_NO_VLAN) {
        flags |= QHCA_CQE_VLAN;
        cqe->vlan_tci = htole16((uint16_t)(p->sl << 13 | p->vlan));
    }
    cqe->flags |= htole16(flags);
    cqe->src_qp = htole32(p->src_qp);
    cqe->sl = p->sl;
    memcpy(cqe->smac, p->smac, sizeof(cqe->smac));
}

/* GRH and payload, one behind the other. */
static bool scatter(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    uint8_t grh[GRH_LEN];

    roce_grh(p, grh);
    return qhca_recv_write(e, qp, 0, grh, GRH_LEN) == QHCA_SEG_OK &&
           qhca_recv_write(e, qp, GRH_LEN, p->payload, p->payload_len) ==
           QHCA_SEG_OK;
}

/*
 * The receive WR is too small. It stays for the next message (D-077), but one
 * of an SRQ, which is not the QP's to keep, fails (G-009).
 */
static void too_small(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_count_qp(e, qp, QHCA_CNT_RX_REFUSED, 1);
    if (qp->srq) {
        qhca_recv_fail(e, qp, QHCA_WC_LOC_LEN_ERR);
    }
}

void qhca_datagram_rx(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    uint64_t total = GRH_LEN + p->payload_len;

    if (((p->payload_len + p->pad) & 3) ||
        p->payload_len > qhca_port_path_mtu(e)) {
        qhca_count_qp(e, qp, QHCA_CNT_RX_REFUSED, 1);
        return;
    }
    if (!qhca_unreliable_take(e, qp)) {
        return;
    }
    if (total > qp->rsp.rwr.length) {
        too_small(e, qp);
    } else if (!scatter(e, qp, p)) {
        qhca_unreliable_fail(e, qp, QHCA_WC_LOC_PROT_ERR);
    } else {
        qhca_recv_complete(e, qp, p, QHCA_CQE_RECV, (uint32_t)total);
    }
}
