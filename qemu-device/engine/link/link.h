/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, link: moves packets. It asks the halves of a QP for the next
 * packets and makes frames of them, or hands them across to a QP of the same
 * port or of a neighbour; and it finds the QP that a packet is for. Room on the
 * way out, pace, fault rules, counters and traces of packets are handled only
 * here.
 */
#ifndef QHCA_ENGINE_LINK_H
#define QHCA_ENGINE_LINK_H

#include "../requester/requester.h"
#include "../responder/responder.h"

/* ---- route.c ---- */

/*
 * struct vhca_way - where packets of a QP go
 * @av: address vector
 * @dest_qp: number of the QP there
 * @local: source GID
 * @loop: to this very port
 * @net: to the network
 * @lost: the source GID is gone, or this QP must not use it
 * @peer: the QP that packets may cross to; NULL: all become frames
 * @at: the engine of @peer: this one, or a neighbour
 */
struct vhca_way {
    const struct qhca_av *av;
    uint32_t dest_qp;
    const struct vhca_gid *local;
    bool loop, net, lost;
    struct vhca_qp *peer;
    struct qhca_engine *at;
};

/* Find the way of packets to the peer of a connected QP. */
void vhca_way_to_peer(struct qhca_engine *e, struct vhca_qp *qp,
                      struct vhca_way *way);
/* Find the way of a datagram. It never crosses: receivers see the IP header. */
void vhca_way_to(struct qhca_engine *e, struct vhca_qp *qp,
                 const struct qhca_av *av, uint32_t dest_qp,
                 struct vhca_way *way);
/* vhca_way_crosses() for a peer in a neighbour. */
bool vhca_way_far_across(const struct qhca_engine *e,
                         const struct vhca_way *way);
/* Whether a packet may cross to @way->peer now, without overtaking a frame. */
static inline bool vhca_way_crosses(const struct qhca_engine *e,
                                    const struct vhca_way *way)
{
    return way->peer && vhca_port_up(e) &&
           (way->at == e ? !vhca_fifo_used(&e->port->loop) :
                           vhca_way_far_across(e, way));
}
/*
 * Whether there is room for @reserve + 1 frames with this traffic class, and
 * they are not paused; if not, @qp waits for it.
 */
bool vhca_way_room_as(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_way *way, uint8_t tclass,
                      unsigned reserve);
/* vhca_way_room_as() with the traffic class of the AV. */
bool vhca_way_room(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, unsigned reserve);
/*
 * Whether only the peer of the AV can have sent the packet (D-083); if the port
 * sent it to itself, only the QP that @qp is connected to. The PSNs of others
 * are no secret on one machine, and neither other QPs here nor the network may
 * speak for a QP of this port.
 */
bool vhca_way_from_peer(const struct qhca_engine *e, const struct vhca_qp *qp,
                        const struct roce_packet *p);

/* ---- turn.c ---- */

/*
 * Give the QP that is first in line its turn, within the budget. If it could go
 * on now, put it at the end of its page's line.
 */
void vhca_qp_turn(struct qhca_engine *e);

/* ---- out.c ---- */

/*
 * Send what the QP has to send, responses first, as far as room and budget
 * allow. If packets have crossed, ask the peer for its ACK in the end.
 */
void vhca_link_turn(struct qhca_engine *e, struct vhca_qp *qp);
/* Build the frame of a packet, wherever its payload is; returns its length. */
size_t vhca_link_finish(const struct vhca_qp *qp, const struct vhca_way *way,
                        struct vhca_burst *burst);
/* Send the finished frame of @len bytes. Returns false if there is no room. */
bool vhca_link_frame(struct qhca_engine *e, const struct vhca_qp *qp,
                     const struct vhca_way *way,
                     const struct vhca_burst *burst, size_t len);

/* ---- in.c ---- */

/*
 * Receive a RoCE frame from the network or the loopback FIFO. Its Ethernet
 * destination is the port's or a multicast one, its UDP destination port is
 * 4791, and its IP destination is a GID of the port. @frame starts at the
 * Ethernet header, @len ends with the ICRC or Ethernet padding. @from: number
 * of the QP that sent it if it is looped back, else 0.
 */
void vhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from);
/* vhca_roce_rx() without fault rules. */
void vhca_roce_take(struct qhca_engine *e, const uint8_t *frame, size_t len,
                    uint32_t from);
/* Deliver the frame that members of a group have not had yet. */
void vhca_group_go_on(struct qhca_engine *e);
/*
 * Let the responder refuse the request in @frame with AETH @syndrome. Returns
 * false if it is not a request, or not the one that the QP expects.
 */
bool vhca_roce_refuse(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      uint32_t from, uint8_t syndrome);
/*
 * Hand the packets in @p across from QP @by to its peer, and count them at
 * both. If they are anything special, the peer takes only the first, and @p is
 * reduced to that. The caller calls vhca_link_answered() for responses.
 */
void vhca_link_cross(struct qhca_engine *e, const struct vhca_qp *by,
                     const struct vhca_way *way, struct roce_packet *p);
/* Hand the ACK of everything up to @psn across to QP @qp from its peer. */
void vhca_link_ack(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, uint32_t psn);
/*
 * Call after delivering a request to @qp; @tail: end of its response queue
 * before. Queues an ACK that is owed, and schedules @qp if it has responses.
 */
static inline void vhca_link_answered(struct qhca_engine *e,
                                      struct vhca_qp *qp, uint32_t tail)
{
    vhca_response_settle(qp);
    if (qp->rsp.q_tail != tail) {
        vhca_qp_schedule(e, qp);
    }
}
/* Count @n packets sent, @len bytes in all. */
static inline void vhca_count_sent(struct qhca_engine *e,
                                   const struct vhca_qp *qp, uint32_t n,
                                   size_t len)
{
    vhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, n);
    vhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
}
/* Count and trace a packet that is dropped; @qp may be NULL. */
void vhca_packet_drop(struct qhca_engine *e, const struct vhca_qp *qp,
                      const struct roce_packet *p, enum qhca_counter why);

/* ---- rule.c ---- */

/* vhca_roce_rx() with fault rules. */
void vhca_rule_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from);
/* Receive a frame that was held back. */
void vhca_rule_take(struct qhca_engine *e, struct vhca_rule_held *h);
/*
 * vhca_link_frame() and vhca_link_cross() with fault rules. A packet that a
 * rule drops or holds back has been sent. One that crosses becomes a frame only
 * if a rule acts on it.
 */
void vhca_rule_tx(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, struct vhca_burst *burst,
                   size_t len);
void vhca_rule_cross(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_way *way, struct vhca_burst *burst);
/* Send a frame that was held back, if there is room for it. */
void vhca_rule_send(struct qhca_engine *e, struct vhca_rule_held *h);

#endif /* QHCA_ENGINE_LINK_H */
