/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: packets of QPs on their way out: where they go, what the address
 * vector puts into their headers, and whether there is room for them.
 */
#include "qp.h"

void qhca_packet_drop(struct qhca_engine *e, const struct qhca_qp *qp,
                      const struct roce_packet *p, enum qhca_counter why)
{
    qhca_count_qp(e, qp, why, 1);
    qhca_trace(e, QHCA_TRACE_DROP, p->dest_qp, why, p->psn);
}

void qhca_route(const struct qhca_engine *e, const struct qhca_av *av,
                bool *loop, bool *net)
{
    const struct qhca_gid *local = &e->port->gid[av->sgid_index];

    if (qhca_gid_is_multicast(av->dgid)) {
        *net = true;
        *loop = qhca_group_find(e, av->dgid);
        return;
    }
    *loop = !memcmp(local->gid, av->dgid, 16) ||
            qhca_gid_find(e, av->dgid, local->vlan) >= 0;
    *net = !*loop;
}

/*
 * What stays inside the port needs no frame, unless some are on their way that
 * it would overtake. Datagrams do: their receivers see the IP header.
 */
static bool goes_direct(const struct qhca_engine *e, const struct qhca_qp *qp,
                        const struct qhca_txbuf *b)
{
    return b->loop && !b->net && !b->lost && !e->cfg.frames &&
           !qhca_qp_is(qp, QHCA_DATAGRAM) && qhca_port_up(e) &&
           !qhca_fifo_used(&e->port->loop) &&
           qp->mtu <= qhca_port_path_mtu(e);
}

void qhca_packet_start_to(struct qhca_engine *e, struct qhca_qp *qp,
                          struct qhca_txbuf *b, const struct qhca_av *av,
                          uint32_t dest_qp, uint8_t opcode, uint32_t psn)
{
    const struct qhca_gid *local = &e->port->gid[av->sgid_index];
    struct roce_packet *p = &b->p;

    /*
     * A GID that was taken away sends nothing from anywhere (G-015). Another
     * one in its place is for datagrams that were posted before as little.
     */
    b->lost = !local->valid || local->ipv4 != qhca_gid_is_ipv4(av->dgid) ||
              (qhca_qp_is(qp, QHCA_DATAGRAM) &&
               !qhca_gid_allowed(e, qp->uar, av->sgid_index));
    qhca_route(e, av, &b->loop, &b->net);
    b->direct = goes_direct(e, qp, b);
    b->view.num_pieces = b->view.len = 0;
    memset(p, 0, sizeof(*p));
    p->vlan = local->vlan;
    p->ipv4 = local->ipv4;
    memcpy(p->sgid, local->gid, 16);
    memcpy(p->dgid, av->dgid, 16);
    p->tclass = av->tclass;
    p->dest_qp = dest_qp;
    if (!b->direct) {
        memcpy(p->smac, local->smac, 6);
        memcpy(p->dmac, av->dmac, 6);
        p->sl = av->sl & 7;
        p->hop_limit = av->hop_limit;
        p->flow_label = le32toh(av->flow_label) & 0xfffff;
        p->sport = roce_sport(p->flow_label, qp->qpn, dest_qp);
    }
    p->opcode = opcode;
    p->pkey = PKEY_DEFAULT;
    p->psn = psn;
    p->num_psn = 1;
}

void qhca_packet_start(struct qhca_engine *e, struct qhca_qp *qp,
                       struct qhca_txbuf *b, uint8_t opcode, uint32_t psn)
{
    qhca_packet_start_to(e, qp, b, &qp->attr.av, le32toh(qp->attr.dest_qpn),
                         qhca_qp_service(qp) | opcode, psn);
}

uint8_t *qhca_packet_payload(struct qhca_txbuf *b, size_t len)
{
    uint8_t *payload = b->frame + roce_payload_offset(&b->p);

    b->p.payload = payload;
    b->p.payload_len = len;
    b->p.num_pieces = 1;
    return payload;
}

static void trim(struct qhca_view *view, size_t len)
{
    while (view->len > len) {
        struct qhca_piece *last = &view->piece[view->num_pieces - 1];
        size_t cut = MIN_OF(view->len - len, last->len);

        last->len -= cut;
        view->len -= cut;
        view->num_pieces -= !last->len;
    }
}

bool qhca_packet_in_place(struct qhca_txbuf *b, uint32_t mtu, uint64_t left)
{
    struct qhca_view *view = &b->view;

    if (view->len < left) {
        trim(view, view->len - view->len % mtu);
    }
    b->p.num_psn = qhca_packets_of((uint32_t)view->len, mtu);
    b->p.piece = view->piece;
    b->p.num_pieces = view->num_pieces;
    b->p.payload_len = view->len;
    return view->len > 0;
}

static bool send_direct(struct qhca_engine *e, struct qhca_qp *qp,
                        struct qhca_txbuf *b)
{
    size_t len = roce_frames_len(&b->p);

    b->p.from = qp->qpn;
    b->p.direct = true;
    b->p.pad = -(unsigned)b->p.payload_len & 3;
    qhca_spend(e, 1);
    qhca_trace(e, QHCA_TRACE_TX, qp->qpn, b->p.opcode, b->p.psn);
    if (!e->qps->deliver(e, &b->p, len)) {
        return false;
    }
    qhca_pace_take(&e->port->pace, e->now, len);
    qhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, b->p.num_psn);
    qhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
    return true;
}

bool qhca_packet_out(struct qhca_engine *e, const struct qhca_qp *qp,
                     const struct qhca_txbuf *b, size_t len)
{
    bool looped = b->loop && qhca_tx(e, b->frame, len, qp->qpn);
    bool sent = b->net && qhca_tx(e, b->frame, len, 0);

    return looped || sent;
}

bool qhca_packet_send(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_txbuf *b)
{
    if (b->lost) {
        qhca_spend(e, 1);
        qhca_packet_drop(e, qp, &b->p, QHCA_CNT_TX_DROPPED);
        return true;
    }
    if (b->direct) {
        return send_direct(e, qp, b);
    }

    size_t len = roce_finish(&b->p, b->frame);

    qhca_trace(e, QHCA_TRACE_TX, qp->qpn, b->p.opcode, b->p.psn);
    if (qhca_faults_at(e, QHCA_FAULT_TX) ? qhca_fault_tx(e, qp, b, len) :
                                           qhca_packet_out(e, qp, b, len)) {
        qhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, 1);
        qhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
    }
    return true;
}

bool qhca_packet_room(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_av *av, unsigned reserve)
{
    bool here = qhca_tx_room(e, true, reserve + 1);
    bool there = qhca_tx_room(e, false, reserve + 1);
    bool loop = true, net = true;

    if (!here || !there) {
        qhca_route(e, av, &loop, &net);
    }
    /* The run loop empties the loopback FIFO; the network calls back. */
    qhca_list_del(&qp->tx_wait);
    if (!qhca_port_open(e) || (net && !there)) {
        qhca_qp_wait_tx(e, qp);
        return false;
    }
    return !loop || here;
}
