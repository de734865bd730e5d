/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: RC responder, what its files share: how requests are refused,
 * and where those that take a resource go.
 */
#ifndef QHCA_ENGINE_RESPONDER_H
#define QHCA_ENGINE_RESPONDER_H

#include "recv.h"

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

/* ---- resource.c ---- */

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

#endif /* QHCA_ENGINE_RESPONDER_H */
