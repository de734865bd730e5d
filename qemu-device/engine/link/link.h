/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, link: moves packets. It asks the halves of a QP for the next
 * ones and makes frames of them, or hands them across to a QP of the same port,
 * or of a neighbour's; and it finds the QP that a packet is for. Room on the
 * way out, the pace, faults, counters and traces of packets have their one
 * place here.
 */
#ifndef QHCA_ENGINE_LINK_H
#define QHCA_ENGINE_LINK_H

#include "../requester/requester.h"
#include "../responder/responder.h"

/* ---- route.c ---- */

/*
 * struct vhca_way - where packets of a QP go
 * @av: by which address vector
 * @dest_qp: to which QP there
 * @local: the GID they come from
 * @loop: to this very port
 * @net: to the network
 * @lost: the source GID is not there any more, or not for this QP
 * @peer: the QP that they may cross to, or NULL: all are frames, be it that the
 *        operator wants them to be
 * @at: the engine that @peer is in: this one, or a neighbour
 */
struct vhca_way {
    const struct qhca_av *av;
    uint32_t dest_qp;
    const struct vhca_gid *local;
    bool loop, net, lost;
    struct vhca_qp *peer;
    struct qhca_engine *at;
};

/* Where packets to @av go: to this port, to the network, or both. */
void vhca_route(const struct qhca_engine *e, const struct qhca_av *av,
                bool *loop, bool *net);
/* The way of packets to the peer of a connected QP. */
void vhca_way_to_peer(struct qhca_engine *e, struct vhca_qp *qp,
                      struct vhca_way *way);
/* That of a datagram, which never crosses: its receiver sees the IP header. */
void vhca_way_to(struct qhca_engine *e, struct vhca_qp *qp,
                 const struct qhca_av *av, uint32_t dest_qp,
                 struct vhca_way *way);
/* Whether a packet may cross to a neighbour now: see vhca_way_across(). */
bool vhca_way_far_across(const struct qhca_engine *e,
                         const struct vhca_way *way);
/* Whether a packet may cross to @way->peer now: none overtakes a frame. */
static inline bool vhca_way_across(const struct qhca_engine *e,
                                   const struct vhca_way *way)
{
    return way->peer && vhca_port_up(e) &&
           (way->at == e ? !vhca_fifo_used(&e->port->loop) :
                           vhca_way_far_across(e, way));
}
/* Whether @reserve + 1 frames of the QP can be sent that way; else it waits. */
bool vhca_way_room(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, unsigned reserve);
/*
 * Whether only the peer of the AV can have sent the packet (D-083): of what the
 * port sends to itself, only the QP it is connected to. The PSNs of others are
 * no secret on one machine, and neither neighbours here nor the network may
 * speak for a QP of this port.
 */
bool vhca_way_from_peer(const struct qhca_engine *e, const struct vhca_qp *qp,
                        const struct roce_packet *p);

/* ---- out.c ---- */

/*
 * Sends what the QP has to say, answers first, as far as room and budget go.
 * The peer that packets have crossed to is asked for its ACK at the end.
 */
void vhca_link_turn(struct qhca_engine *e, struct vhca_qp *qp);
/* Makes the frame of a packet, wherever its payload is. Returns its length. */
size_t vhca_link_finish(const struct vhca_qp *qp, const struct vhca_way *way,
                        struct vhca_burst *burst);
/* The finished frame, @len bytes, leaves. False: there is no room. */
bool vhca_link_frame(struct qhca_engine *e, const struct vhca_qp *qp,
                     const struct vhca_way *way,
                     const struct vhca_burst *burst, size_t len);

/* ---- in.c ---- */

/*
 * A frame whose Ethernet destination is the port's or a multicast one, whose IP
 * protocol is UDP with destination port 4791 and whose IP destination is a GID
 * of the port: from the network or looped back. @frame starts at the Ethernet
 * header, @len ends with the ICRC or Ethernet padding. @from: number of the QP
 * that has sent it, if it is looped back, else 0.
 */
void vhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from);
/* The same, past the fault rules. */
void vhca_roce_take(struct qhca_engine *e, const uint8_t *frame, size_t len,
                    uint32_t from);
/*
 * The responder refuses the request in it with that AETH syndrome. False: it is
 * none, or not the one that the QP expects.
 */
bool vhca_roce_refuse(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      uint32_t from, uint8_t syndrome);
/*
 * Packets cross from QP @by to its peer, and are counted for both. If something
 * is the matter with them the peer takes the first alone: @p is that one then.
 * Answers that have come in line are the caller's to ask for.
 */
void vhca_link_cross(struct qhca_engine *e, const struct vhca_qp *by,
                     const struct vhca_way *way, struct roce_packet *p);
/* The ACK of all up to @psn crosses to QP @qp from its peer. */
void vhca_link_ack(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, uint32_t psn);
/*
 * A request has been delivered to @qp, whose line of answers ended with @tail
 * before: whatever is owed gets in line, and what is new there a turn.
 */
static inline void vhca_link_answered(struct qhca_engine *e,
                                      struct vhca_qp *qp, uint32_t tail)
{
    vhca_response_settle(qp);
    if (qp->rsp.q_tail != tail) {
        vhca_qp_schedule(e, qp);
    }
}
/* Counts @n packets that have left, @len bytes in all. */
static inline void vhca_count_sent(struct qhca_engine *e,
                                   const struct vhca_qp *qp, uint32_t n,
                                   size_t len)
{
    vhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, n);
    vhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
}
/* Counts and traces a packet that nothing comes of; @qp may be NULL. */
void vhca_packet_drop(struct qhca_engine *e, const struct vhca_qp *qp,
                      const struct roce_packet *p, enum qhca_counter why);

/* ---- fault.c ---- */

/* vhca_roce_rx() where fault rules look. */
void vhca_fault_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from);
/* A frame that was held back arrives. */
void vhca_fault_take(struct qhca_engine *e, struct vhca_fault_held *h);
/*
 * vhca_link_frame() and vhca_link_cross() where fault rules look. A packet that
 * gets lost, or comes later, has left. One that crosses becomes a frame only if
 * a rule acts on it.
 */
void vhca_fault_tx(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, struct vhca_burst *burst,
                   size_t len);
void vhca_fault_cross(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_way *way, struct vhca_burst *burst);
/* One that was held back leaves, if there is room for it. */
void vhca_fault_send(struct qhca_engine *e, struct vhca_fault_held *h);

#endif /* QHCA_ENGINE_LINK_H */
