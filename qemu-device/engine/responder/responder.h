/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, responder: the receiving half of a QP. It executes requests and
 * sends the answers (IBTA 9.7.4, 9.9.3; of UC 9.8.2, of UD 9.8.3).
 */
#ifndef QHCA_ENGINE_RESPONDER_H
#define QHCA_ENGINE_RESPONDER_H

#include "../receive/receive.h"

/* ---- a request of each service ---- */

void qhca_responder_rx(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct roce_packet *p);
void qhca_uc_rx(struct qhca_engine *e, struct qhca_qp *qp,
                const struct roce_packet *p);
/*
 * Takes the next receive WR of a QP that is not RC. False: there is none, and
 * the message is refused, or it is bad, and the QP in ERR.
 */
bool qhca_unreliable_take(struct qhca_engine *e, struct qhca_qp *qp);
/* The fault is on this side: ERR; the receive WR in use says why (I-044). */
void qhca_unreliable_fail(struct qhca_engine *e, struct qhca_qp *qp,
                          enum qhca_cqe_status status);
void qhca_datagram_rx(struct qhca_engine *e, struct qhca_qp *qp,
                      const struct roce_packet *p);

/* ---- what RC and UC responders have in common ---- */

/* The payload lengths of D-064 that the opcode alone decides. */
bool qhca_payload_ok(const struct qhca_qp *qp, const struct roce_packet *p);
/* The same, and that the message so far fits the receive WR (D-066). */
bool qhca_send_length_ok(const struct qhca_qp *qp, const struct roce_packet *p);
/* Whether the QP's access flags allow what the packet asks for (D-063). */
bool qhca_operation_enabled(const struct qhca_qp *qp,
                            const struct roce_packet *p);
/* A request was found valid: COMM_EST, if it is the first in RTR. */
void qhca_comm_established(struct qhca_engine *e, struct qhca_qp *qp);
/* The first packet of a WRITE says where it goes. */
void qhca_write_begin(struct qhca_qp *qp, const struct roce_packet *p);
/* D-064, as far as a WRITE is concerned. */
bool qhca_write_length_ok(const struct qhca_qp *qp,
                          const struct roce_packet *p);
/* Writes the payload; AETH_ACK, or the NAK that says why not. */
uint8_t qhca_write_payload(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p);
/* ---- responder.c: the packet is refused for good (D-026) ---- */

/* NAK Invalid Request: not allowed here, or not in this place. */
void qhca_refuse_request(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct roce_packet *p);
/* The same NAK: too many, an odd address, a wrong XRCETH (G-012), and such. */
void qhca_refuse_invalid(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct roce_packet *p);
/* The same NAK: lengths do not fit each other or the receive WR. */
void qhca_refuse_length(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p);
/* NAK Remote Access Error: the R_Key does not give that. */
void qhca_refuse_access(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct roce_packet *p);
/* NAK Remote Operational Error: the fault is on this side. */
void qhca_refuse_operation(struct qhca_engine *e, struct qhca_qp *qp,
                           const struct roce_packet *p,
                           enum qhca_cqe_status status);

/* ---- rd_atomic.c ---- */

/* Compare-and-swaps that a masked atomic may take. */
#define QHCA_MASKED_TRIES   256u

/* Each executes a new request of its kind and puts its answer in line. */
void qhca_rx_read(struct qhca_engine *e, struct qhca_qp *qp,
                  const struct roce_packet *p);
void qhca_rx_atomic(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct roce_packet *p);
void qhca_rx_flush(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct roce_packet *p);
void qhca_rx_atomic_write(struct qhca_engine *e, struct qhca_qp *qp,
                          const struct roce_packet *p);
/* The rights in QHCA_ACCESS_* that a FLUSH of @type needs. */
static inline uint16_t qhca_flush_access(uint8_t type)
{
    return (type & QHCA_FLUSH_GLOBAL ? QHCA_ACCESS_FLUSH_GLOBAL : 0) |
           (type & QHCA_FLUSH_PERSISTENT ? QHCA_ACCESS_FLUSH_PERSISTENT : 0);
}

/* ---- replay.c, response.c ---- */

/* A request whose PSN is behind the ePSN. */
void qhca_responder_duplicate(struct qhca_engine *e, struct qhca_qp *qp,
                              const struct roce_packet *p);
/* Puts an ACK or NAK of @psn in line, in the place of one right before it. */
void qhca_response_ack(struct qhca_engine *e, struct qhca_qp *qp,
                       uint8_t syndrome, uint32_t psn);
/* Puts an answer in line; false: no room, drop the request. */
bool qhca_response_add(struct qhca_engine *e, struct qhca_qp *qp,
                       const struct qhca_response *r);
/* Sends up to @budget packets of answers; returns how many. */
unsigned qhca_response_work(struct qhca_engine *e, struct qhca_qp *qp,
                            unsigned budget);
static inline bool qhca_response_ready(const struct qhca_qp *qp)
{
    return qp->rsp.q_head != qp->rsp.q_tail;
}
/*
 * Whether one would fit: the last place is kept for the ACK or NAK that
 * follows.
 */
static inline bool qhca_response_room(const struct qhca_qp *qp)
{
    return qp->rsp.q_tail - qp->rsp.q_head < QHCA_RESPONSES - 1;
}

#endif /* QHCA_ENGINE_RESPONDER_H */
