/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, responder: the receiving half of a QP. It executes requests and
 * sends the answers (IBTA 9.7.4, 9.9.3; of UC 9.8.2, of UD 9.8.3).
 */
#ifndef QHCA_ENGINE_RESPONDER_H
#define QHCA_ENGINE_RESPONDER_H

#include "../rq/rq.h"

/*
 * What executing a request comes to. From NO_WR on the request is refused; what
 * that means depends on the service.
 */
enum vhca_rx_result {
    QHCA_RX_DONE = 0,
    QHCA_RX_ANSWERED,           /* done, its answer is in line */
    QHCA_RX_REPEAT,             /* no room for its answer: as if it got lost */
    QHCA_RX_FIRST,              /* of several the first has to come alone */
    QHCA_RX_NO_WR,              /* no receive WR */
    QHCA_RX_BAD_WR,             /* the receive WQE breaks a rule */
    QHCA_RX_LOST_WR,            /* it cannot be read */
    QHCA_RX_BUFFER,             /* its buffers are bad */
    QHCA_RX_MEMORY,             /* the memory behind the R_Key failed */
    QHCA_RX_SEQUENCE,           /* its opcode cannot come here */
    QHCA_RX_DISABLED,           /* the QP does not allow such operations */
    QHCA_RX_XRCETH,             /* names no SRQ of its domain */
    QHCA_RX_RESOURCES,          /* more READs and atomics than agreed on */
    QHCA_RX_ALIGNMENT,          /* an odd address */
    QHCA_RX_FLUSH,              /* there is no such FLUSH */
    QHCA_RX_LENGTH,             /* of packet, request and WR do not fit */
    QHCA_RX_ACCESS,             /* the R_Key does not give that */
    QHCA_RX_KEY,                /* the key to invalidate must not go */
};

/*
 * struct vhca_refusal - what RC answers and reports (D-026), by rx_result
 * @syndrome: of the NAK; AETH_NAK_OP: the fault is on this side
 * @event: for the QP, if no receive WR is in use
 * @status: of the receive WR in use
 * @name: of the check that failed
 */
struct vhca_refusal {
    uint8_t syndrome, event, status;
    const char *name;
};

extern const struct vhca_refusal vhca_refusals[];

/* ---- responder.c, uc.c, datagram.c: a request of each service ---- */

/*
 * Of the packets that @p stands for, how many have been dealt with: all of
 * them, or, unless they need nothing special, the first.
 */
uint32_t vhca_responder_rx(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p);
uint32_t vhca_uc_rx(struct qhca_engine *e, struct vhca_qp *qp,
                    const struct roce_packet *p);
/*
 * Refuses a request with that AETH syndrome, whatever it is. False: it is not
 * the one that the QP expects.
 */
bool vhca_responder_refuse(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p, uint8_t syndrome);
void vhca_datagram_rx(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p);
/* A request of UC or UD is refused. */
void vhca_unreliable_refuse(struct qhca_engine *e, struct vhca_qp *qp,
                            const struct roce_packet *p,
                            enum vhca_rx_result why);

/* ---- message.c ---- */

/* Tells which check the request failed, if it has. */
void vhca_rx_trace(struct qhca_engine *e, const struct vhca_qp *qp,
                   const struct roce_packet *p, enum vhca_rx_result result);
enum vhca_rx_result vhca_rx_memory(enum vhca_mem_result result);
/* Takes the next receive WR, if none is in use. */
enum vhca_rx_result vhca_rx_take(struct qhca_engine *e, struct vhca_qp *qp);
/* The payload lengths of D-064 that the opcode alone decides. */
bool vhca_payload_ok(const struct vhca_qp *qp, const struct roce_packet *p);
/* Whether the QP's access flags allow what the packet asks for (D-063). */
bool vhca_operation_enabled(const struct vhca_qp *qp,
                            const struct roce_packet *p);
/* A request was found valid: COMM_EST, if it is the first in RTR. */
void vhca_comm_established(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Execute a packet of a SEND or WRITE, whose turn it is. FIRST: it stands for
 * several, and something is the matter with one of them.
 */
enum vhca_rx_result vhca_rx_send(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p);
enum vhca_rx_result vhca_rx_write(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p);
/*
 * How many of the packets that @p stands for @result is about: of those that
 * cannot be executed it is the first.
 */
static inline uint32_t vhca_rx_count(const struct roce_packet *p,
                                     enum vhca_rx_result result)
{
    return result == QHCA_RX_DONE || result == QHCA_RX_KEY ? p->num_psn : 1;
}
/* One that is DONE: the message goes on, or ends and completes its WR. */
void vhca_rx_advance(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p);

/* ---- rd_atomic.c ---- */

/* Compare-and-swaps that a masked atomic may take. */
#define QHCA_MASKED_TRIES   256u

/* Each executes a new request of its kind and puts its answer in line. */
enum vhca_rx_result vhca_rx_read(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p);
enum vhca_rx_result vhca_rx_atomic(struct qhca_engine *e, struct vhca_qp *qp,
                                   const struct roce_packet *p);
enum vhca_rx_result vhca_rx_flush(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p);
enum vhca_rx_result vhca_rx_atomic_write(struct qhca_engine *e,
                                         struct vhca_qp *qp,
                                         const struct roce_packet *p);
/* The rights in QHCA_ACCESS_* that a FLUSH of @type needs. */
static inline uint16_t vhca_flush_access(uint8_t type)
{
    return (type & QHCA_FLUSH_GLOBAL ? QHCA_ACCESS_FLUSH_GLOBAL : 0) |
           (type & QHCA_FLUSH_PERSISTENT ? QHCA_ACCESS_FLUSH_PERSISTENT : 0);
}

/* ---- snapshot.c ---- */

/* What the QP refers to is there, and its queues. */
void vhca_responder_walk(struct vhca_snap *s, struct vhca_qp *qp);

/* ---- replay.c, response.c ---- */

/* A request whose PSN is behind the ePSN. */
void vhca_responder_duplicate(struct qhca_engine *e, struct vhca_qp *qp,
                              const struct roce_packet *p);
/* Puts an ACK or NAK of @psn in line, in the place of one right before it. */
void vhca_response_ack(struct vhca_qp *qp, uint8_t syndrome, uint32_t psn);
/* Puts an answer in line; false: no room, drop the request. */
bool vhca_response_add(struct vhca_qp *qp, const struct vhca_response *r);
static inline bool vhca_response_ready(const struct vhca_qp *qp)
{
    return qp->rsp.q_head != qp->rsp.q_tail;
}
/*
 * All before the ePSN is to be acknowledged. If nothing else is to be said the
 * ACK need not get in line: whoever has delivered the request takes it, or
 * settles what is owed.
 */
void vhca_response_owe(struct vhca_qp *qp);
/* The ACK that is owed counts as sent; returns its PSN. */
uint32_t vhca_response_take_ack(struct qhca_engine *e, struct vhca_qp *qp);
/* An ACK that is owed gets in line. */
void vhca_response_settle(struct vhca_qp *qp);
/*
 * Builds a packet of the answer that is first in line in @burst, or up to @max
 * that follow each other, if they go across; nothing changes but @burst.
 */
void vhca_response_next(struct qhca_engine *e, struct vhca_qp *qp, uint32_t max,
                        struct vhca_burst *burst);
/* They are about to leave. One that is fatal moves the QP to ERR. */
void vhca_response_sent(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_burst *burst);
/* Frames that must be left free for others behind the next packet. */
unsigned vhca_response_reserve(struct vhca_qp *qp);
/*
 * Whether one would fit: the last place is kept for the ACK or NAK that
 * follows.
 */
static inline bool vhca_response_room(const struct vhca_qp *qp)
{
    return qp->rsp.q_tail - qp->rsp.q_head < QHCA_RESPONSES - 1;
}

#endif /* QHCA_ENGINE_RESPONDER_H */
