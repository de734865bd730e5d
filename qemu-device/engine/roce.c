/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: where RoCE packets enter and leave: finding the QP a packet is
 * for, and addressing a packet to a QP's peer.
 */
#include "packet.h"

uint64_t qhca_rnr_ns(uint8_t code)
{
    /* Units of 10 us. */
    static const uint32_t timer[32] = {
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
        256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
        16384, 24576, 32768, 49152,
    };

    return timer[code & 31] * 10000ull;
}

/* Transport service of the QP's type: SVC_*, part of all its opcodes. */
static uint8_t service_of(const struct qhca_qp *qp)
{
    static const uint8_t service[] = {
        [QHCA_QPT_RC] = SVC_RC,
        [QHCA_QPT_UC] = SVC_UC,
        [QHCA_QPT_UD] = SVC_UD,
        [QHCA_QPT_GSI] = SVC_UD,
        [QHCA_QPT_XRC_INI] = SVC_XRC,
        [QHCA_QPT_XRC_TGT] = SVC_XRC,
    };

    return service[qp->type];
}

/*
 * Whether the packet is of the QP's service. Of the opcodes that belong to none
 * RC has those that are known.
 */
static bool of_service(const struct qhca_qp *qp, const struct roce_packet *p)
{
    uint8_t service = p->opcode & SVC_MASK;

    return service == service_of(qp) ||
           (service == SVC_VENDOR && qp->type == QHCA_QPT_RC &&
            roce_opcode(p->opcode)->op != OP_NONE);
}

/* ---- in ---- */

static void drop(struct qhca_engine *e, const struct qhca_qp *qp,
                 const struct roce_packet *p, enum qhca_counter why)
{
    qhca_count_qp(e, qp, why, 1);
    qhca_trace(e, QHCA_TRACE_DROP, p->dest_qp, why, p->psn);
}

/* Where packets to @av go: to this port, to the network, or both. */
static void route(const struct qhca_engine *e, const struct qhca_av *av,
                  bool *loop, bool *net)
{
    const struct qhca_gid *local = &e->port->gid[av->sgid_index];

    if (qhca_gid_is_multicast(av->dgid)) {
        *net = true;
        *loop = qhca_mcast_wanted(e, av->dgid);
        return;
    }
    *loop = !memcmp(local->gid, av->dgid, 16) ||
            qhca_gid_find(e, av->dgid, local->vlan) >= 0;
    *net = !*loop;
}

/*
 * Only the peer of the AV may talk to a connected QP (D-083): of what the port
 * sends to itself, only the QP it is connected to. The PSNs of others are no
 * secret on one machine, and neither neighbours here nor the network may speak
 * for a QP of this port.
 */
static bool from_peer(const struct qhca_engine *e, const struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    const struct qhca_gid *local = &e->port->gid[qp->attr.av.sgid_index];
    bool loop, net;

    if (!local->valid || p->vlan != local->vlan ||
        memcmp(p->dgid, local->gid, 16) != 0 ||
        memcmp(p->sgid, qp->attr.av.dgid, 16) != 0) {
        return false;
    }
    route(e, &qp->attr.av, &loop, &net);
    return loop ? p->from == le32toh(qp->attr.dest_qpn) : !p->from;
}

/* States in which requests and responses are looked at. */
static const struct {
    bool request, response;
} takes[] = {
    [QHCA_QPS_RTR] = { true, false },
    [QHCA_QPS_RTS] = { true, true },
    [QHCA_QPS_SQD] = { true, true },
    [QHCA_QPS_SQE] = { true, false },
    [QHCA_QPS_ERR] = { false, false },
};

/* Whether the sender may talk to the QP; if not, that is counted. */
static bool sender_ok(struct qhca_engine *e, const struct qhca_qp *qp,
                      const struct roce_packet *p)
{
    bool datagram = qhca_qp_is_datagram(qp);

    if ((p->pkey & 0x7fff) != (PKEY_DEFAULT & 0x7fff)) {
        e->port->bad_pkey += e->port->bad_pkey < 0xffff;
        drop(e, qp, p, QHCA_CNT_RX_BAD_PKEY);
        return false;
    }
    if (!datagram && !from_peer(e, qp, p)) {
        drop(e, qp, p, QHCA_CNT_RX_BAD_ADDR);
        return false;
    }
    if (datagram && (roce_opcode(p->opcode)->flags & OPF_DETH) &&
        !qhca_datagram_allowed(qp, p)) {
        e->port->qkey_viol += e->port->qkey_viol < 0xffff;
        drop(e, qp, p, QHCA_CNT_RX_BAD_QKEY);
        return false;
    }
    return true;
}

static void accept(struct qhca_engine *e, const struct qhca_qp *qp,
                   const struct roce_packet *p, size_t len)
{
    qhca_count_qp(e, qp, QHCA_CNT_RX_PKTS, 1);
    qhca_count_qp(e, qp, QHCA_CNT_RX_BYTES, len);
    if ((p->tclass & IP_ECN_MASK) == IP_ECN_CE) {
        qhca_count_qp(e, qp, QHCA_CNT_RX_ECN_MARKED, 1);
    }
    qhca_trace(e, QHCA_TRACE_RX, qp->qpn, p->opcode, p->psn);
}

/*
 * A congestion notification: the peer got a packet of this QP that the network
 * had marked. There is no rate control to tell, so it is counted and touches
 * nothing of the QP (E-041).
 */
static void cnp_rx(struct qhca_engine *e, const struct qhca_qp *qp,
                   const struct roce_packet *p, size_t len)
{
    if (p->payload_len != CNP_LEN || p->pad) {
        drop(e, qp, p, QHCA_CNT_RX_MALFORMED);
    } else if (!takes[qp->state].request) {
        drop(e, qp, p, QHCA_CNT_RX_BAD_STATE);
    } else if (sender_ok(e, qp, p)) {
        accept(e, qp, p, len);
        qhca_count_qp(e, qp, QHCA_CNT_RX_CNP, 1);
    }
}

static void execute(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p)
{
    if (roce_opcode(p->opcode)->flags & OPF_RESPONSE) {
        qhca_completer_rx(e, qp, p);    /* only reliable services have them */
    } else if (qhca_qp_is_reliable(qp)) {
        qhca_responder_rx(e, qp, p);
    } else if (qp->type == QHCA_QPT_UC) {
        qhca_uc_rx(e, qp, p);
    } else {
        qhca_datagram_rx(e, qp, p);
    }
}

/* Each QP of XRC has one half only: it takes the packets of that (E-045). */
static bool has_half(const struct qhca_qp *qp, bool response)
{
    return qp->type != (response ? QHCA_QPT_XRC_TGT : QHCA_QPT_XRC_INI);
}

void qhca_roce_deliver(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p, size_t len)
{
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    bool response = info->flags & OPF_RESPONSE;

    if (!of_service(qp, p) || !has_half(qp, response)) {
        drop(e, qp, p, QHCA_CNT_RX_NO_QP);
        return;
    }
    if (qhca_qp_is_datagram(qp) && info->op == OP_NONE) {
        drop(e, qp, p, QHCA_CNT_RX_MALFORMED);      /* nothing says no to it */
        return;
    }
    if (response ? !takes[qp->state].response : !takes[qp->state].request) {
        drop(e, qp, p, QHCA_CNT_RX_BAD_STATE);
        return;
    }
    if (!sender_ok(e, qp, p)) {
        return;
    }
    accept(e, qp, p, len);
    execute(e, qp, p);
}

static void find_taker(struct qhca_engine *e, const struct roce_packet *p,
                       size_t len)
{
    struct qhca_qp *qp = qhca_qp_get(e, p->dest_qp);
    bool group = qhca_gid_is_multicast(p->dgid);

    /* Both must name a group, or neither (E-045). */
    if (group && p->dest_qp == QHCA_QPN_MCAST) {
        qhca_mcast_rx(e, p, len);
    } else if (group) {
        drop(e, NULL, p, QHCA_CNT_RX_BAD_ADDR);
    } else if (!qp) {
        drop(e, NULL, p, QHCA_CNT_RX_NO_QP);
    } else if (roce_opcode(p->opcode)->op == OP_CNP) {
        cnp_rx(e, qp, p, len);
    } else {
        qhca_roce_deliver(e, qp, p, len);
    }
}

void qhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from)
{
    struct roce_packet p;

    switch (roce_parse(&p, frame, len)) {
    case ROCE_OK:
        p.from = from;
        find_taker(e, &p, len);
        break;
    case ROCE_BAD_ICRC:
        drop(e, NULL, &p, QHCA_CNT_RX_ICRC);
        break;
    default:
        drop(e, NULL, &p, QHCA_CNT_RX_MALFORMED);
        break;
    }
}

/* ---- out ---- */

uint8_t *qhca_packet_start_to(struct qhca_engine *e, struct qhca_qp *qp,
                              struct qhca_txbuf *b, const struct qhca_av *av,
                              uint32_t dest_qp, uint8_t opcode, uint32_t psn)
{
    const struct qhca_gid *local = &e->port->gid[av->sgid_index];
    struct roce_packet *p = &b->p;

    /* A GID that was taken away sends nothing from anywhere (G-015). */
    b->lost = !local->valid || local->ipv4 != qhca_gid_is_ipv4(av->dgid);
    route(e, av, &b->loop, &b->net);
    memset(p, 0, sizeof(*p));
    memcpy(p->smac, local->smac, 6);
    memcpy(p->dmac, av->dmac, 6);
    p->vlan = local->vlan;
    p->sl = av->sl & 7;
    p->ipv4 = local->ipv4;
    memcpy(p->sgid, local->gid, 16);
    memcpy(p->dgid, av->dgid, 16);
    p->tclass = av->tclass;
    p->hop_limit = av->hop_limit;
    p->flow_label = le32toh(av->flow_label) & 0xfffff;
    p->dest_qp = dest_qp;
    p->sport = roce_sport(p->flow_label, qp->qpn, dest_qp);
    p->opcode = opcode;
    p->pkey = PKEY_DEFAULT;
    p->psn = psn;
    return b->frame + roce_payload_offset(p);
}

uint8_t *qhca_packet_start(struct qhca_engine *e, struct qhca_qp *qp,
                           struct qhca_txbuf *b, uint8_t opcode, uint32_t psn)
{
    return qhca_packet_start_to(e, qp, b, &qp->attr.av,
                                le32toh(qp->attr.dest_qpn),
                                service_of(qp) | opcode, psn);
}

void qhca_packet_send(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_txbuf *b)
{
    if (b->lost) {
        drop(e, qp, &b->p, QHCA_CNT_RX_BAD_ADDR);
        return;
    }

    size_t len = roce_finish(&b->p, b->frame);
    bool looped = b->loop && qhca_tx(e, b->frame, len, qp->qpn);
    bool sent = b->net && qhca_tx(e, b->frame, len, 0);

    qhca_trace(e, QHCA_TRACE_TX, qp->qpn, b->p.opcode, b->p.psn);
    if (looped || sent) {
        qhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, 1);
        qhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
    }
}

bool qhca_packet_room(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_av *av, unsigned reserve)
{
    bool loop, net;

    route(e, av, &loop, &net);
    /* The run loop empties the loopback FIFO; the network calls back. */
    qhca_list_del(&qp->tx_wait);
    if (net && !qhca_tx_room(e, false, reserve + 1)) {
        qhca_list_add_tail(&e->qps->tx_wait, &qp->tx_wait);
        return false;
    }
    return !loop || qhca_tx_room(e, true, reserve + 1);
}
