/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: packets of QPs on their way out. The halves of a QP build
 * packets and are told when they have been sent; what happens in between is
 * here.
 */
#include <assert.h>

#include "link.h"

/*
 * Return how many packets may cross together: with a limit of the bandwidth or
 * the rate every packet waits for its time, and fault rules look at each.
 */
static uint32_t cross_max(const struct qhca_engine *e,
                          const struct vhca_way *way, bool paced)
{
    return vhca_port_limit(e) || paced || vhca_rules_between(e, way->at) ?
           1 : VHCA_SPAN;
}

/* Fill in the addresses, which only the receiver of a frame sees. */
static void address(const struct vhca_qp *qp, const struct vhca_way *way,
                    struct roce_packet *p)
{
    memcpy(p->sgid, way->local->gid, 16);
    memcpy(p->dgid, way->av->dgid, 16);
    memcpy(p->smac, way->local->smac, 6);
    memcpy(p->dmac, way->av->dmac, 6);
    p->sl = way->av->sl & 7;
    p->hop_limit = way->av->hop_limit;
    p->flow_label = le32toh(way->av->flow_label) & 0xfffff;
    p->sport = roce_sport(p->flow_label, qp->qpn, way->dest_qp);
}

/* Start a burst: empty, with its destination. */
static void open_burst(const struct qhca_engine *e, const struct vhca_qp *qp,
                       const struct vhca_way *way, struct vhca_burst *burst)
{
    struct roce_packet *p = &burst->p;

    assert(way->local);         /* datagrams set it in send_requests() */
    burst->crosses = vhca_way_crosses(e, way);
    burst->unsent = burst->fatal = false;
    burst->view.num_pieces = burst->view.len = 0;
    memset(p, 0, sizeof(*p));
    p->vlan = way->local->vlan;
    p->ipv4 = way->local->ipv4;
    p->tclass = way->av->tclass;
    if (vhca_cc(e, QHCA_CC_RP_ENABLE) && !(p->tclass & IP_ECN_MASK)) {
        p->tclass |= IP_ECN_ECT0;
    }
    p->dest_qp = way->dest_qp;
    p->pkey = PKEY_DEFAULT;
    p->num_psn = 1;
    if (!burst->crosses) {
        address(qp, way, p);
    }
}

size_t vhca_link_finish(const struct vhca_qp *qp, const struct vhca_way *way,
                        struct vhca_burst *burst)
{
    struct roce_packet *p = &burst->p;
    uint8_t *to = burst->frame + roce_payload_offset(p);

    VHCA_ASSERT(!p->payload_len || roce_opcode(p->opcode)->flags & OPF_PAYLOAD);
    if (burst->crosses) {
        address(qp, way, p);
    }
    for (size_t i = 0, off = 0; !p->payload && off < p->payload_len; i++) {
        struct vhca_piece at = roce_piece(p, i, off);

        memcpy(to + off, at.base, at.len);
        off += at.len;
    }
    return roce_finish(p, burst->frame);
}

bool vhca_link_frame(struct qhca_engine *e, const struct vhca_qp *qp,
                     const struct vhca_way *way,
                     const struct vhca_burst *burst, size_t len)
{
    bool looped = way->loop && vhca_tx(e, burst->frame, len, qp->qpn);
    bool sent = way->net && vhca_tx(e, burst->frame, len, 0);

    return looped || sent;
}

/* A neighbour's work on the packet counts as work of this call. */
static void cross_burst(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_way *way, struct vhca_burst *burst)
{
    burst->p.pad = -(unsigned)burst->p.payload_len & 3;
    vhca_spend(e, 1);
    vhca_trace_tx(e, qp->qpn, burst->p.opcode, burst->p.psn);
    if (vhca_rules_between(e, way->at)) {
        vhca_rule_cross(e, qp, way, burst);
    } else {
        vhca_link_cross(e, qp, way, &burst->p);
    }
    if (way->at != e) {
        vhca_spend(e, vhca_pay_visit(way->at));
    }
}

static void send_frame(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct vhca_way *way, struct vhca_burst *burst)
{
    size_t len = vhca_link_finish(qp, way, burst);
    bool sent = true;

    vhca_trace_tx(e, qp->qpn, burst->p.opcode, burst->p.psn);
    if (vhca_rules_at(e, VHCA_RULE_TX)) {
        vhca_rule_tx(e, qp, way, burst, len);
    } else {
        sent = vhca_link_frame(e, qp, way, burst, len);
    }
    if (sent) {
        vhca_count_sent(e, qp, 1, len);
    }
}

/*
 * Move a packet, as a frame or not; the caller has made sure that there is
 * room. A device stops if it cannot write the event that precedes a NAK: then
 * it sends no NAK either.
 */
static void move(struct qhca_engine *e, struct vhca_qp *qp,
                 const struct vhca_way *way, struct vhca_burst *burst)
{
    if (burst->unsent || !vhca_running(e)) {
        return;
    }
    if (way->lost) {
        vhca_spend(e, 1);
        vhca_packet_drop(e, qp, &burst->p, QHCA_CNT_TX_DROPPED);
    } else if (burst->crosses) {
        cross_burst(e, qp, way, burst);
    } else {
        send_frame(e, qp, way, burst);
    }
}

/* Charge the QP for the packets sent, which delays its next ones. */
static void pay(struct qhca_engine *e, struct vhca_qp *qp,
                const struct vhca_way *way, const struct vhca_burst *burst)
{
    vhca_qp_charge(e, qp, way->av->static_rate, roce_frames_len(&burst->p));
}

/* ---- answers ---- */

static uint8_t cnp_tclass(const struct qhca_engine *e)
{
    return (uint8_t)(vhca_cc(e, QHCA_CC_NP_DSCP) << IP_DSCP_SHIFT |
                     IP_ECN_ECT0);
}

/* Tell the peer that the network has marked what it sent (E-040). */
static void notify(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, struct vhca_burst *burst)
{
    open_burst(e, qp, way, burst);
    burst->p.opcode = ROCE_CNP;
    burst->p.tclass = cnp_tclass(e);
    memset(vhca_burst_payload(burst, CNP_LEN), 0, CNP_LEN);
    move(e, qp, way, burst);
    vhca_count_qp(e, qp, QHCA_CNT_NP_CNP_SENT, 1);
    qp->gate.cnp_owed = false;
}

static void out_answer(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct vhca_way *way, struct vhca_burst *burst,
                       bool data)
{
    bool paced;

    open_burst(e, qp, way, burst);
    paced = data && vhca_qp_paced(qp, way->av->static_rate);
    if (!vhca_response_next(e, qp, cross_max(e, way, paced), burst)) {
        return;
    }
    if (burst->fatal) {
        /* The event of the error must precede the NAK. */
        vhca_response_sent(e, qp, burst);
        move(e, qp, way, burst);
        return;
    }
    move(e, qp, way, burst);
    if (paced) {
        pay(e, qp, way, burst);
    }
    vhca_response_sent(e, qp, burst);
}

static void send_answers(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct vhca_way *way, struct vhca_burst *burst)
{
    if (qp->rated && qp->gate.cnp_owed &&
        vhca_way_room_as(e, qp, way, cnp_tclass(e), 0)) {
        notify(e, qp, way, burst);
    }
    while (vhca_may_go_on(e) && vhca_response_ready(qp)) {
        bool data = vhca_response_is_data(qp);

        /*
         * READ data, like requests, wait at the gate, and leave room for the
         * ACKs of other QPs.
         */
        if ((data && !vhca_qp_gate_open(e, qp)) ||
            !vhca_way_room(e, qp, way, data ? VHCA_TX_RESERVE / 2 : 0)) {
            break;
        }
        out_answer(e, qp, way, burst, data);
    }
}

/* ---- requests ---- */

/*
 * Send the next packets at the cursor. Returns false if their WR failed, or
 * waits.
 */
static bool request(struct qhca_engine *e, struct vhca_qp *qp,
                    const struct vhca_way *way, struct vhca_burst *burst)
{
    bool paced;

    open_burst(e, qp, way, burst);
    paced = vhca_qp_paced(qp, way->av->static_rate);
    if (!vhca_requester_next(e, qp, cross_max(e, way, paced), burst)) {
        return false;
    }
    move(e, qp, way, burst);
    vhca_requester_sent(e, qp, &burst->p);
    if (paced) {
        pay(e, qp, way, burst);
        /* The time for the answer begins now. */
        vhca_requester_timer(e, qp);
    }
    return true;
}

static void send_requests(struct qhca_engine *e, struct vhca_qp *qp,
                          struct vhca_way *way, struct vhca_burst *burst)
{
    bool datagram = vhca_qp_is(qp, VHCA_DATAGRAM);

    while (vhca_requester_poll(e, qp)) {
        if (datagram) {
            const struct vhca_swr *wr = vhca_swr_at(qp, qp->req.snd_wqe);

            vhca_way_to(e, qp, &wr->ud.av, wr->ud.qpn, way);
        }
        if (!vhca_qp_gate_open(e, qp) ||
            !vhca_way_room(e, qp, way, VHCA_TX_RESERVE) ||
            !request(e, qp, way, burst)) {
            break;
        }
    }
}

/*
 * Ask the peer for its responses to the requests that have crossed; @tail: end
 * of its response queue before. An ACK of all of them crosses now, without a
 * packet. Other responses wait for the peer's turn, and so does the ACK where
 * each packet is moved alone. A peer that had responses before is in line.
 */
static void ask(struct qhca_engine *e, struct vhca_qp *qp,
                const struct vhca_way *way, uint32_t tail)
{
    struct qhca_engine *at = way->at;
    struct vhca_qp *peer = way->peer;
    bool paced = vhca_qp_paced(qp, way->av->static_rate);

    if (peer->rsp.ack_owed && cross_max(e, way, paced) > 1 &&
        !vhca_port_limit(at) && vhca_running(e) && vhca_way_crosses(e, way)) {
        vhca_link_ack(e, qp, way, vhca_response_take_ack(at, peer));
    }
    vhca_link_answered(at, peer, tail);
}

void vhca_link_turn(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_way way = { .at = e };
    struct vhca_burst burst;
    uint32_t tail;

    if (!vhca_qp_is(qp, VHCA_DATAGRAM)) {
        vhca_way_to_peer(e, qp, &way);
    }
    if (way.at != e) {
        vhca_enter_neighbour(e, way.at);
    }
    tail = way.peer ? way.peer->rsp.q_tail : 0;
    send_answers(e, qp, &way, &burst);
    if (qp->state != QHCA_QPS_ERR) {
        send_requests(e, qp, &way, &burst);
        if (way.peer) {
            ask(e, qp, &way, tail);
        }
    }
    if (way.at != e) {
        vhca_leave_neighbour(way.at);
    }
}
