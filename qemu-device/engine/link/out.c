/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: packets of QPs on their way out. The halves of a QP build them
 * and are told when they have left; in between is all there is to moving one.
 */
#include <assert.h>

#include "link.h"

/*
 * How many may go as one. With a limit of the bandwidth each waits for room,
 * and fault rules look at each.
 */
static uint32_t at_once(const struct qhca_engine *e)
{
    return e->cfg.bandwidth || qhca_faults_at_packets(e) ? 1 : QHCA_SPAN;
}

/* What the receiver of a frame gets to know of where it goes. */
static void address(const struct qhca_qp *qp, const struct qhca_way *way,
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

/* An empty burst: nothing in it but where it goes. */
static void open_burst(const struct qhca_engine *e, const struct qhca_qp *qp,
                       const struct qhca_way *way, struct qhca_burst *burst)
{
    struct roce_packet *p = &burst->p;

    assert(way->local);         /* a datagram has its own way, and no answer */
    burst->across = qhca_way_across(e, way);
    burst->unsent = burst->fatal = false;
    burst->view.num_pieces = burst->view.len = 0;
    memset(p, 0, sizeof(*p));
    p->vlan = way->local->vlan;
    p->ipv4 = way->local->ipv4;
    p->tclass = way->av->tclass;
    p->dest_qp = way->dest_qp;
    p->pkey = PKEY_DEFAULT;
    p->num_psn = 1;
    if (!burst->across) {
        address(qp, way, p);
    }
}

size_t qhca_link_finish(const struct qhca_qp *qp, const struct qhca_way *way,
                        struct qhca_burst *burst)
{
    struct roce_packet *p = &burst->p;
    uint8_t *to = burst->frame + roce_payload_offset(p);

    if (burst->across) {
        address(qp, way, p);
    }
    for (size_t i = 0, off = 0; !p->payload && off < p->payload_len; i++) {
        struct qhca_piece at = roce_piece(p, i, off);

        memcpy(to + off, at.base, at.len);
        off += at.len;
    }
    return roce_finish(p, burst->frame);
}

bool qhca_link_frame(struct qhca_engine *e, const struct qhca_qp *qp,
                     const struct qhca_way *way,
                     const struct qhca_burst *burst, size_t len)
{
    bool looped = way->loop && qhca_tx(e, burst->frame, len, qp->qpn);
    bool sent = way->net && qhca_tx(e, burst->frame, len, 0);

    return looped || sent;
}

static void cross(struct qhca_engine *e, struct qhca_qp *qp,
                  const struct qhca_way *way, struct qhca_burst *burst)
{
    burst->p.pad = -(unsigned)burst->p.payload_len & 3;
    qhca_spend(e, 1);
    qhca_trace(e, QHCA_TRACE_TX, qp->qpn, burst->p.opcode, burst->p.psn);
    if (qhca_faults_at_packets(e)) {
        qhca_fault_cross(e, qp, way, burst);
    } else {
        qhca_link_cross(e, qp, way->peer, &burst->p);
    }
}

static void send_frame(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct qhca_way *way, struct qhca_burst *burst)
{
    size_t len = qhca_link_finish(qp, way, burst);
    bool sent = true;

    qhca_trace(e, QHCA_TRACE_TX, qp->qpn, burst->p.opcode, burst->p.psn);
    if (qhca_faults_at(e, QHCA_FAULT_TX)) {
        qhca_fault_tx(e, qp, way, burst, len);
    } else {
        sent = qhca_link_frame(e, qp, way, burst, len);
    }
    if (sent) {
        qhca_count_sent(e, qp, 1, len);
    }
}

/* The one place where a packet moves. There is room for it. */
static void move(struct qhca_engine *e, struct qhca_qp *qp,
                 const struct qhca_way *way, struct qhca_burst *burst)
{
    if (burst->unsent) {
        return;
    }
    if (way->lost) {
        qhca_spend(e, 1);
        qhca_packet_drop(e, qp, &burst->p, QHCA_CNT_TX_DROPPED);
    } else if (burst->across) {
        cross(e, qp, way, burst);
    } else {
        send_frame(e, qp, way, burst);
    }
}

/* ---- answers ---- */

static void answer(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct qhca_way *way, struct qhca_burst *burst)
{
    open_burst(e, qp, way, burst);
    qhca_response_next(e, qp, at_once(e), burst);
    if (burst->fatal) {
        /* Its event comes before the NAK. */
        qhca_response_sent(e, qp, burst);
        move(e, qp, way, burst);
    } else {
        move(e, qp, way, burst);
        qhca_response_sent(e, qp, burst);
    }
}

static void send_answers(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct qhca_way *way, struct qhca_burst *burst)
{
    while (qhca_may_go_on(e) && qhca_response_ready(qp) &&
           qhca_way_room(e, qp, way, qhca_response_reserve(qp))) {
        answer(e, qp, way, burst);
    }
}

/* ---- requests ---- */

/* The next packets at the cursor. False: their WR failed locally. */
static bool request(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct qhca_way *way, struct qhca_burst *burst)
{
    open_burst(e, qp, way, burst);
    if (!qhca_requester_next(e, qp, at_once(e), burst)) {
        return false;
    }
    move(e, qp, way, burst);
    qhca_requester_sent(e, qp, burst);
    return true;
}

static void send_requests(struct qhca_engine *e, struct qhca_qp *qp,
                          struct qhca_way *way, struct qhca_burst *burst)
{
    bool datagram = qhca_qp_is(qp, QHCA_DATAGRAM);

    while (qhca_requester_poll(e, qp)) {
        if (datagram) {
            const struct qhca_swr *wr = qhca_requester_wr(qp);

            qhca_way_to(e, qp, &wr->ud.av, wr->ud.qpn, way);
        }
        if (!qhca_way_room(e, qp, way, QHCA_TX_RESERVE) ||
            !request(e, qp, way, burst)) {
            break;
        }
    }
}

/*
 * What the peer has to say of the requests that crossed to it since its line of
 * answers ended with @tail. An ACK of all of them crosses at once and needs no
 * packet; anything else, and where each packet counts that as well, waits for
 * the peer's turn. A peer that had something to say before has a place in line.
 */
static void ask(struct qhca_engine *e, struct qhca_qp *qp,
                const struct qhca_way *way, uint32_t tail)
{
    struct qhca_qp *peer = way->peer;

    if (peer->rsp.ack_owed && at_once(e) > 1 && qhca_way_across(e, way)) {
        qhca_link_ack(e, peer, qp, qhca_response_take_ack(e, peer));
    }
    qhca_link_answered(e, peer, tail);
}

void qhca_link_turn(struct qhca_engine *e, struct qhca_qp *qp)
{
    struct qhca_way way = { 0 };
    struct qhca_burst burst;
    uint32_t tail;

    if (!qhca_qp_is(qp, QHCA_DATAGRAM)) {
        qhca_way_to_peer(e, qp, &way);
    }
    tail = way.peer ? way.peer->rsp.q_tail : 0;
    send_answers(e, qp, &way, &burst);
    if (qp->state == QHCA_QPS_ERR) {
        return;
    }
    send_requests(e, qp, &way, &burst);
    if (way.peer) {
        ask(e, qp, &way, tail);
    }
}
