/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: receiving RoCE packets: find the QP that a packet is for, and
 * judge whether the QP, in its state, takes it from this sender.
 */
#include "link.h"

/* States in which requests and responses are taken. */
static const struct {
    bool request, response;
} takes[] = {
    [QHCA_QPS_RTR] = { true, false },
    [QHCA_QPS_RTS] = { true, true },
    [QHCA_QPS_SQD] = { true, true },
    [QHCA_QPS_SQE] = { true, false },
    [QHCA_QPS_ERR] = { false, false },
};

/* Return what is wrong with the sender, or QHCA_CNT_MAX. */
static enum qhca_counter sender_wrong(const struct qhca_engine *e,
                                      const struct vhca_qp *qp,
                                      const struct roce_packet *p)
{
    bool datagram = vhca_qp_is(qp, VHCA_DATAGRAM);

    if ((p->pkey & 0x7fff) != (PKEY_DEFAULT & 0x7fff)) {
        return QHCA_CNT_RX_BAD_PKEY;
    }
    if (!datagram && !vhca_way_from_peer(e, qp, p)) {
        return QHCA_CNT_RX_BAD_ADDR;
    }
    if (datagram && (roce_opcode(p->opcode)->flags & OPF_DETH) &&
        p->qkey != vhca_qp_qkey(qp)) {                          /* D-078 */
        return QHCA_CNT_RX_BAD_QKEY;
    }
    return QHCA_CNT_MAX;
}

void vhca_packet_drop(struct qhca_engine *e, const struct vhca_qp *qp,
                      const struct roce_packet *p, enum qhca_counter why)
{
    vhca_count_qp(e, qp, why, 1);
    vhca_trace_drop(e, p->dest_qp, qhca_counter_name(why), p->psn);
}

/* Drop the packet, and count it for QUERY_PORT if that has a counter. */
static void drop(struct qhca_engine *e, const struct vhca_qp *qp,
                 const struct roce_packet *p, enum qhca_counter why)
{
    struct vhca_port *port = e->port;

    port->bad_pkey += why == QHCA_CNT_RX_BAD_PKEY && port->bad_pkey < 0xffff;
    port->qkey_viol += why == QHCA_CNT_RX_BAD_QKEY && port->qkey_viol < 0xffff;
    vhca_packet_drop(e, qp, p, why);
}

/*
 * Count @n packets taken, @len bytes in all. If the network has marked them,
 * tell the peer, but do not answer notifications with notifications.
 */
static void count_taken(struct qhca_engine *e, struct vhca_qp *qp,
                        uint8_t opcode, uint8_t tclass, uint32_t n, size_t len)
{
    vhca_count_qp(e, qp, QHCA_CNT_RX_PKTS, n);
    vhca_count_qp(e, qp, QHCA_CNT_RX_BYTES, len);
    if ((tclass & IP_ECN_MASK) == IP_ECN_CE) {
        vhca_count_qp(e, qp, QHCA_CNT_NP_ECN_MARKED_ROCE_PACKETS, n);
        if (opcode != ROCE_CNP && !vhca_qp_is(qp, VHCA_DATAGRAM) &&
            vhca_gate_marked(e, &qp->gate)) {
            qp->rated = true;
            vhca_qp_schedule(e, qp);
        }
    }
}

static void accept(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct roce_packet *p, size_t len)
{
    count_taken(e, qp, p->opcode, p->tclass, p->num_psn, len);
    vhca_trace_rx(e, qp->qpn, p->opcode, p->psn);
}

/* Return why the QP cannot take such a packet, or QHCA_CNT_MAX. */
static enum qhca_counter not_taken(const struct vhca_qp *qp,
                                   const struct roce_packet *p)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    bool response = info->flags & OPF_RESPONSE;

    if (info->op == OP_CNP && p->dest_qp == qp->qpn &&
        !vhca_qp_is(qp, VHCA_RAW)) {
        if (p->payload_len != CNP_LEN || p->pad) {
            return QHCA_CNT_RX_MALFORMED;
        }
    } else if ((p->opcode & SVC_MASK) != vhca_qp_service(qp) ||
               !vhca_qp_is(qp, response ? VHCA_HAS_SQ :
                                          VHCA_HAS_RQ | VHCA_HAS_XRCD)) {
        return QHCA_CNT_RX_NO_QP;       /* XRC: it has only one half (E-045) */
    } else if (vhca_qp_is(qp, VHCA_DATAGRAM) && info->op == OP_NONE) {
        return QHCA_CNT_RX_MALFORMED;   /* the responder would not refuse it */
    }
    if (response ? !takes[qp->state].response : !takes[qp->state].request) {
        return QHCA_CNT_RX_BAD_STATE;
    }
    return QHCA_CNT_MAX;
}

/* Return why the QP does not take a packet from a frame, or QHCA_CNT_MAX. */
static enum qhca_counter frame_not_taken(const struct qhca_engine *e,
                                         const struct vhca_qp *qp,
                                         const struct roce_packet *p)
{
    enum qhca_counter why = not_taken(qp, p);

    return why == QHCA_CNT_MAX ? sender_wrong(e, qp, p) : why;
}

/*
 * A congestion notification: the peer got a packet of this QP that the network
 * had marked. It changes the QP's rate and nothing else (E-041). Anybody can
 * say that a datagram was marked, so that does not slow down the others.
 */
static void take_cnp(struct qhca_engine *e, struct vhca_qp *qp)
{
    bool slower = !vhca_qp_is(qp, VHCA_DATAGRAM) &&
                  vhca_gate_cnp(e, &qp->gate);

    qp->rated = qp->rated || slower;
    vhca_count_qp(e, qp, slower ? QHCA_CNT_RP_CNP_HANDLED :
                                  QHCA_CNT_RP_CNP_IGNORED, 1);
}

static void link_execute(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct roce_packet *p)
{
    uint32_t tail = qp->rsp.q_tail;

    if (p->opcode == ROCE_CNP) {
        take_cnp(e, qp);
    } else if (roce_opcode(p->opcode)->flags & OPF_RESPONSE) {
        /* Only reliable services have responses. */
        vhca_completer_rx(e, qp, p);
    } else if (vhca_qp_is(qp, VHCA_RELIABLE)) {
        vhca_responder_rx(e, qp, p);
        vhca_link_answered(e, qp, tail);
    } else if (qp->type == QHCA_QPT_UC) {
        vhca_uc_rx(e, qp, p);
    } else {
        vhca_datagram_rx(e, qp, p);
    }
}

bool vhca_roce_refuse(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      uint32_t from, uint8_t syndrome)
{
    struct roce_packet p;
    struct vhca_qp *qp;
    uint32_t tail;

    if (roce_parse(&p, frame, len) != ROCE_OK) {
        return false;
    }
    p.from = from;
    qp = vhca_qp_get(e, p.dest_qp);
    tail = qp ? qp->rsp.q_tail : 0;
    if (!qp || !vhca_qp_is(qp, VHCA_RELIABLE) ||
        roce_opcode(p.opcode)->flags & OPF_RESPONSE ||
        frame_not_taken(e, qp, &p) != QHCA_CNT_MAX ||
        !vhca_responder_refuse(e, qp, &p, syndrome)) {
        return false;
    }
    vhca_link_answered(e, qp, tail);
    accept(e, qp, &p, len);
    return true;
}

static void in_deliver(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct roce_packet *p, size_t len)
{
    enum qhca_counter why = frame_not_taken(e, qp, p);

    if (why != QHCA_CNT_MAX) {
        drop(e, qp, p, why);
        return;
    }
    accept(e, qp, p, len);
    link_execute(e, qp, p);
}

/* Return how many of the packets in @p were executed, at least 1. */
static uint32_t cross_execute(struct qhca_engine *e, struct vhca_qp *qp,
                              const struct roce_packet *p)
{
    if (roce_opcode(p->opcode)->flags & OPF_RESPONSE) {
        return vhca_completer_rx(e, qp, p);
    }
    if (p->opcode == ROCE_CNP) {
        take_cnp(e, qp);
        return 1;
    }
    return vhca_qp_is(qp, VHCA_RELIABLE) ? vhca_responder_rx(e, qp, p) :
                                           vhca_uc_rx(e, qp, p);
}

void vhca_link_cross(struct qhca_engine *e, const struct vhca_qp *by,
                     const struct vhca_way *way, struct roce_packet *p)
{
    struct qhca_engine *at = way->at;
    struct vhca_qp *qp = way->peer;
    enum qhca_counter why = not_taken(qp, p);
    uint32_t n = 1;
    size_t len;

    VHCA_ASSERT(!vhca_qp_is(qp, VHCA_DATAGRAM));
    if (why == QHCA_CNT_MAX) {
        vhca_trace_rx(at, qp->qpn, p->opcode, p->psn);
        n = cross_execute(at, qp, p);
    }
    if (n < p->num_psn) {
        *p = roce_first_of(p);
    }
    len = roce_frames_len(p);
    vhca_port_pay(e, len);
    vhca_count_sent(e, by, n, len);
    if (why == QHCA_CNT_MAX) {
        count_taken(at, qp, p->opcode, p->tclass, n, len);
    } else {
        drop(at, qp, p, why);
    }
}

/* Deliver the packet of @frame to members that have not had it yet. */
static void deliver_to_members(struct qhca_engine *e,
                               const struct roce_packet *p,
                               const uint8_t *frame, size_t len)
{
    uint32_t qpn;

    while ((qpn = vhca_delivery_next(e)) != 0) {
        vhca_spend(e, 1);
        in_deliver(e, vhca_qp_get(e, qpn), p, len);
    }
    vhca_delivery_stop(e, frame, len, false);
}

/* Deliver the packet to every QP of the group (D-084). */
static void deliver_to_group(struct qhca_engine *e, const struct roce_packet *p,
                             const uint8_t *frame, size_t len)
{
    const struct vhca_mcast_group *grp = vhca_group_find(e, p->dgid);

    VHCA_ASSERT(!vhca_delivering(e));
    memcpy(e->port->delivery.gid, p->dgid, sizeof(e->port->delivery.gid));
    /* The last member may have left since the frame was sent. */
    for (uint32_t i = 0; grp && i < grp->num_qps; i++) {
        const struct vhca_qp *qp = grp->qp[i];

        /* Some senders want no copy of what they send. */
        if (!(qp->flags & QHCA_QP_FLAG_NO_OWN_MCAST) || p->from != qp->qpn) {
            vhca_delivery_add(e, VHCA_TO_MEMBERS, qp->qpn);
        }
    }
    deliver_to_members(e, p, frame, len);
}

void vhca_group_go_on(struct qhca_engine *e)
{
    const struct vhca_delivery *d = &e->port->delivery;
    struct roce_packet p;

    vhca_spend_bytes(e, d->len, VHCA_UNIT_FRAME);
    (void)roce_parse(&p, d->frame, d->len);     /* it was well-formed */
    deliver_to_members(e, &p, d->frame, d->len);
}

static void find_taker(struct qhca_engine *e, const struct roce_packet *p,
                       const uint8_t *frame, size_t len)
{
    struct vhca_qp *qp = vhca_qp_get(e, p->dest_qp);
    bool group = vhca_gid_is_multicast(p->dgid);

    /* QPN and GID must both be multicast, or neither (E-045). */
    if (group && p->dest_qp == QHCA_QPN_MCAST) {
        deliver_to_group(e, p, frame, len);
    } else if (group) {
        vhca_packet_drop(e, NULL, p, QHCA_CNT_RX_BAD_ADDR);
    } else if (!qp) {
        vhca_packet_drop(e, NULL, p, QHCA_CNT_RX_NO_QP);
    } else {
        in_deliver(e, qp, p, len);
    }
}

void vhca_link_ack(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, uint32_t psn)
{
    const struct vhca_qp *by = way->peer;
    const struct qhca_av *av = &by->attr.av;
    const struct vhca_gid *local = &way->at->port->gid[av->sgid_index];
    uint8_t opcode = vhca_qp_service(by) | RC_ACKNOWLEDGE;
    size_t len = roce_ack_len(local->ipv4, local->vlan);

    vhca_spend(e, 1);
    vhca_trace_tx(way->at, by->qpn, opcode, psn);
    vhca_count_sent(way->at, by, 1, len);
    if (!takes[qp->state].response) {
        vhca_count_qp(e, qp, QHCA_CNT_RX_BAD_STATE, 1);
        vhca_trace_drop(e, qp->qpn,
                        qhca_counter_name(QHCA_CNT_RX_BAD_STATE), psn);
        return;
    }
    vhca_trace_rx(e, qp->qpn, opcode, psn);
    count_taken(e, qp, opcode, av->tclass, 1, len);
    vhca_completer_ack(e, qp, psn);
}

void vhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from)
{
    if (vhca_rules_at(e, VHCA_RULE_RX)) {
        vhca_rule_rx(e, frame, len, from);
    } else {
        vhca_roce_take(e, frame, len, from);
    }
}

void vhca_roce_take(struct qhca_engine *e, const uint8_t *frame, size_t len,
                    uint32_t from)
{
    struct roce_packet p;

    switch (roce_parse(&p, frame, len)) {
    case ROCE_OK:
        p.from = from;
        find_taker(e, &p, frame, len);
        break;
    case ROCE_BAD_ICRC:
        vhca_packet_drop(e, NULL, &p, QHCA_CNT_RX_ICRC);
        break;
    default:
        vhca_packet_drop(e, NULL, &p, QHCA_CNT_RX_MALFORMED);
        break;
    }
}
