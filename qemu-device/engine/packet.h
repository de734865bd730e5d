/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: packets of QPs, on their way in and out.
 */
#ifndef QHCA_ENGINE_PACKET_H
#define QHCA_ENGINE_PACKET_H

#include "qp.h"

/* ---- roce.c ---- */

/* Gives @qp a packet of @len bytes if it is one that the QP takes. */
void qhca_roce_deliver(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p, size_t len);

/* struct qhca_txbuf - a packet under construction */
struct qhca_txbuf {
    struct roce_packet p;
    bool loop, net;             /* to this very port, to the network */
    bool lost;                  /* its source GID is not there any more */
    uint8_t frame[ROCE_MAX_FRAME];
};

/*
 * Fills in addressing and BTH of a packet to the peer of a connected QP;
 * @opcode is that of RC. Returns where its payload goes.
 */
uint8_t *qhca_packet_start(struct qhca_engine *e, struct qhca_qp *qp,
                           struct qhca_txbuf *b, uint8_t opcode, uint32_t psn);
/* The same for a packet to QP @dest_qp at @av, and any opcode. */
uint8_t *qhca_packet_start_to(struct qhca_engine *e, struct qhca_qp *qp,
                              struct qhca_txbuf *b, const struct qhca_av *av,
                              uint32_t dest_qp, uint8_t opcode, uint32_t psn);
/* Finishes and sends it. The caller has made sure that there is room. */
void qhca_packet_send(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_txbuf *b);
/*
 * Whether @reserve + 1 frames of this QP to @av can be sent now; else it waits.
 */
bool qhca_packet_room(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct qhca_av *av, unsigned reserve);
/* RNR timer code to nanoseconds (IBTA table 45; D-035 to D-038). */
uint64_t qhca_rnr_ns(uint8_t code);

/* ---- mcast.c ---- */

/* A copy of the packet for every QP of the group (D-084). */
void qhca_mcast_rx(struct qhca_engine *e, const struct roce_packet *p,
                   size_t len);

/* ---- datagram.c ---- */

/* Sends the message, one packet; false: its buffers are bad. */
bool qhca_datagram_send(struct qhca_engine *e, struct qhca_qp *qp,
                        struct qhca_swr *wr);
/* Whether the packet knows the QP's Q_Key (D-078). */
bool qhca_datagram_allowed(const struct qhca_qp *qp,
                           const struct roce_packet *p);
void qhca_datagram_rx(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p);
/* What a CQE says of where the message came from (C-007, C-008). */
void qhca_datagram_fill_cqe(struct qhca_cqe *cqe, const struct roce_packet *p);

#endif /* QHCA_ENGINE_PACKET_H */
