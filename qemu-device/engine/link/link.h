/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, link: moves packets. It asks the halves of a QP for the next
 * ones and makes frames of them, or hands them across to a QP of the same port;
 * and it finds the QP that a packet is for. Room on the way out, the pace,
 * faults, counters and traces of packets have their one place here.
 */
#ifndef QHCA_ENGINE_LINK_H
#define QHCA_ENGINE_LINK_H

#include "../requester/requester.h"
#include "../responder/responder.h"

/* ---- route.c ---- */

/*
 * struct qhca_way - where packets of a QP go
 * @av: by which address vector
 * @dest_qp: to which QP there
 * @local: the GID they come from
 * @loop: to this very port
 * @net: to the network
 * @lost: the source GID is not there any more, or not for this QP
 * @peer: the QP of this port that they may cross to, or NULL: all are frames,
 *        be it that the operator wants them to be
 */
struct qhca_way {
    const struct qhca_av *av;
    uint32_t dest_qp;
    const struct qhca_gid *local;
    bool loop, net, lost;
    struct qhca_qp *peer;
};

/* Where packets to @av go: to this port, to the network, or both. */
void qhca_route(const struct qhca_engine *e, const struct qhca_av *av,
                bool *loop, bool *net);
/* The way of packets to the peer of a connected QP. */
void qhca_way_to_peer(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_way *way);
/* That of a datagram, which never crosses: its receiver sees the IP header. */
void qhca_way_to(struct qhca_engine *e, struct qhca_qp *qp,
                 const struct qhca_av *av, uint32_t dest_qp,
                 struct qhca_way *way);
/* Whether a packet may cross to @way->peer now: none overtakes a frame. */
static inline bool qhca_way_across(const struct qhca_engine *e,
                                   const struct qhca_way *way)
{
    return way->peer && !qhca_fifo_used(&e->port->loop) && qhca_port_up(e);
}
/* Whether @reserve + 1 frames of the QP can be sent that way; else it waits. */
bool qhca_way_room(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct qhca_way *way, unsigned reserve);
/*
 * Whether only the peer of the AV can have sent the packet (D-083): of what the
 * port sends to itself, only the QP it is connected to. The PSNs of others are
 * no secret on one machine, and neither neighbours here nor the network may
 * speak for a QP of this port.
 */
bool qhca_way_from_peer(const struct qhca_engine *e, const struct qhca_qp *qp,
                        const struct roce_packet *p);

/* ---- out.c ---- */

/*
 * Sends what the QP has to say, answers first, as far as room and budget go.
 * The peer that packets have crossed to is asked for its ACK at the end.
 */
void qhca_link_turn(struct qhca_engine *e, struct qhca_qp *qp);
/* Makes the frame of a packet, wherever its payload is. Returns its length. */
size_t qhca_link_finish(const struct qhca_qp *qp, const struct qhca_way *way,
                        struct qhca_burst *burst);
/* The finished frame, @len bytes, leaves. False: there is no room. */
bool qhca_link_frame(struct qhca_engine *e, const struct qhca_qp *qp,
                     const struct qhca_way *way,
                     const struct qhca_burst *burst, size_t len);

/* ---- in.c ---- */

/*
 * A frame whose Ethernet destination is the port's or a multicast one, whose IP
 * protocol is UDP with destination port 4791 and whose IP destination is a GID
 * of the port: from the network or looped back. @frame starts at the Ethernet
 * header, @len ends with the ICRC or Ethernet padding. @from: number of the QP
 * that has sent it, if it is looped back, else 0.
 */
void qhca_roce_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  uint32_t from);
/* The same, past the fault rules. */
void qhca_roce_take(struct qhca_engine *e, const uint8_t *frame, size_t len,
                    uint32_t from);
/*
 * The responder refuses the request in it with that AETH syndrome. False: it is
 * none, or not the one that the QP expects.
 */
bool qhca_roce_refuse(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      uint32_t from, uint8_t syndrome);
/*
 * Packets cross from QP @by to its peer @qp, and are counted for both. If
 * something is the matter with them @qp takes the first alone: @p is that one
 * then. Answers that have come in line are the caller's to ask for.
 */
void qhca_link_cross(struct qhca_engine *e, const struct qhca_qp *by,
                     struct qhca_qp *qp, struct roce_packet *p);
/* The ACK of all up to @psn crosses from QP @by to its peer @qp. */
void qhca_link_ack(struct qhca_engine *e, const struct qhca_qp *by,
                   struct qhca_qp *qp, uint32_t psn);
/*
 * A request has been delivered to @qp, whose line of answers ended with @tail
 * before: whatever is owed gets in line, and what is new there a turn.
 */
static inline void qhca_link_answered(struct qhca_engine *e,
                                      struct qhca_qp *qp, uint32_t tail)
{
    qhca_response_settle(qp);
    if (qp->rsp.q_tail != tail) {
        qhca_qp_schedule(e, qp);
    }
}
/* Counts @n packets that have left, @len bytes in all. */
static inline void qhca_count_sent(struct qhca_engine *e,
                                   const struct qhca_qp *qp, uint32_t n,
                                   size_t len)
{
    qhca_count_qp(e, qp, QHCA_CNT_TX_PKTS, n);
    qhca_count_qp(e, qp, QHCA_CNT_TX_BYTES, len);
}
/* Counts and traces a packet that nothing comes of; @qp may be NULL. */
void qhca_packet_drop(struct qhca_engine *e, const struct qhca_qp *qp,
                      const struct roce_packet *p, enum qhca_counter why);

/* ---- fault.c ---- */

/* qhca_roce_rx() where fault rules look. */
void qhca_fault_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   uint32_t from);
/* A frame that was held back arrives. */
void qhca_fault_take(struct qhca_engine *e, struct qhca_fault_held *h);
/*
 * qhca_link_frame() and qhca_link_cross() where fault rules look. A packet that
 * gets lost, or comes later, has left. One that crosses becomes a frame only if
 * a rule acts on it.
 */
void qhca_fault_tx(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct qhca_way *way, struct qhca_burst *burst,
                   size_t len);
void qhca_fault_cross(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_way *way, struct qhca_burst *burst);
/* One that was held back leaves, if there is room for it. */
void qhca_fault_send(struct qhca_engine *e, struct qhca_fault_held *h);

#endif /* QHCA_ENGINE_LINK_H */
