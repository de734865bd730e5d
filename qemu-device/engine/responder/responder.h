/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, responder: the receiving half of a QP. It executes requests and
 * sends the responses (IBTA 9.7.4, 9.9.3; of UC 9.8.2, of UD 9.8.3).
 */
#ifndef QHCA_ENGINE_RESPONDER_H
#define QHCA_ENGINE_RESPONDER_H

#include "../rq/rq.h"

/*
 * The result of executing a request. From NO_WR on the request is refused,
 * which each service does in its own way.
 */
enum vhca_rx_result {
    VHCA_RX_DONE = 0,
    VHCA_RX_ANSWERED,           /* done; its response is queued */
    VHCA_RX_REPEAT,             /* no room for the response: ask again */
    VHCA_RX_FIRST,              /* execute the first of several packets alone */
    VHCA_RX_NO_WR,              /* no receive WR */
    VHCA_RX_BAD_WR,             /* the receive WQE breaks a rule */
    VHCA_RX_LOST_WR,            /* the receive WQE cannot be read */
    VHCA_RX_PAGE,               /* a page is absent */
    VHCA_RX_BUFFER,             /* the buffers of the receive WR are bad */
    VHCA_RX_MEMORY,             /* the memory behind the R_Key failed */
    VHCA_RX_SEQUENCE,           /* this opcode cannot come now */
    VHCA_RX_DISABLED,           /* the QP does not allow such operations */
    VHCA_RX_XRCETH,             /* names no SRQ of the QP's domain */
    VHCA_RX_RESOURCES,          /* more READs and atomics than agreed on */
    VHCA_RX_ALIGNMENT,          /* the address is not aligned */
    VHCA_RX_FLUSH,              /* there is no such FLUSH */
    VHCA_RX_LENGTH,             /* lengths of packet, request, WR do not fit */
    VHCA_RX_ACCESS,             /* the R_Key does not allow it */
    VHCA_RX_KEY,                /* the key must not be invalidated */
};

/*
 * struct vhca_refusal - how RC refuses and reports (D-026), by rx_result
 * @syndrome: of the NAK; AETH_NAK_OP: the fault is on this side
 * @event: of the QP, if no receive WR is in use
 * @status: of the receive WR in use
 * @name: of the failed check
 */
struct vhca_refusal {
    uint8_t syndrome, event, status;
    const char *name;
};

extern const struct vhca_refusal vhca_refusals[];

/* ---- responder.c, unreliable.c: executing requests of each service ---- */

/*
 * Execute requests. Return how many of the packets in @p have been dealt with:
 * all, or, if one of them needs anything special, the first.
 */
uint32_t vhca_responder_rx(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p);
uint32_t vhca_uc_rx(struct qhca_engine *e, struct vhca_qp *qp,
                    const struct roce_packet *p);
/*
 * Refuse a request with AETH @syndrome, whatever it is. Returns false if it is
 * not the one that the QP expects.
 */
bool vhca_responder_refuse(struct qhca_engine *e, struct vhca_qp *qp,
                           const struct roce_packet *p, uint8_t syndrome);
/*
 * Answer the open page fault of the request that the QP expects: let the peer
 * send it again, or refuse it.
 */
void vhca_responder_resume(struct qhca_engine *e, struct vhca_qp *qp,
                           bool deny);
void vhca_datagram_rx(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct roce_packet *p);
/* Receive an Ethernet frame for a QP of type RAW; @tag is for the CQE. */
void vhca_raw_rx(struct qhca_engine *e, struct vhca_qp *qp,
                 const uint8_t *frame, size_t len, uint32_t tag, bool csum_ok);

/* ---- message.c ---- */

/* Trace which check the request failed, if it did. */
void vhca_rx_trace(struct qhca_engine *e, const struct vhca_qp *qp,
                   const struct roce_packet *p, enum vhca_rx_result result);
enum vhca_rx_result vhca_rx_memory(enum vhca_mem_result result);
/* Take the next receive WR, if none is in use. */
enum vhca_rx_result vhca_rx_take(struct qhca_engine *e, struct vhca_qp *qp);
/* Check the payload length, as far as the opcode decides about it (D-064). */
bool vhca_payload_ok(const struct vhca_qp *qp, const struct roce_packet *p);
/* Whether the QP's access flags allow what the packet asks for (D-063). */
bool vhca_operation_enabled(const struct vhca_qp *qp,
                            const struct roce_packet *p);
/* A valid request came: raise COMM_EST if it is the first in RTR. */
void vhca_comm_established(struct qhca_engine *e, struct vhca_qp *qp);
/*
 * Execute the expected packets of a SEND or WRITE. FIRST: @p has several, and
 * one of them needs something special.
 */
enum vhca_rx_result vhca_rx_send(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p);
enum vhca_rx_result vhca_rx_write(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p);
/*
 * Return how many packets of @p @result is about: if they are refused, only the
 * first.
 */
static inline uint32_t vhca_rx_count(const struct roce_packet *p,
                                     enum vhca_rx_result result)
{
    return result == VHCA_RX_DONE || result == VHCA_RX_KEY ? p->num_psn : 1;
}
/* Continue the message after @p is DONE, or end it and complete its WR. */
void vhca_rx_advance(struct qhca_engine *e, struct vhca_qp *qp,
                     const struct roce_packet *p);

/* ---- rd_atomic.c ---- */

/*
 * The QP's max_dest_rd_atomic is another than @before: of the requests that are
 * remembered, keep the latest.
 */
void vhca_responder_limit(struct vhca_qp *qp, unsigned before);

/* Compare-and-swaps that a FETCH_ADD of a big-endian guest may take. */
#define VHCA_ADD_TRIES      256u

/* Each executes a new request of its kind and queues the response. */
enum vhca_rx_result vhca_rx_read(struct qhca_engine *e, struct vhca_qp *qp,
                                 const struct roce_packet *p);
enum vhca_rx_result vhca_rx_atomic(struct qhca_engine *e, struct vhca_qp *qp,
                                   const struct roce_packet *p);
enum vhca_rx_result vhca_rx_flush(struct qhca_engine *e, struct vhca_qp *qp,
                                  const struct roce_packet *p);
enum vhca_rx_result vhca_rx_atomic_write(struct qhca_engine *e,
                                         struct vhca_qp *qp,
                                         const struct roce_packet *p);
/* Return the rights (QHCA_ACCESS_*) that a FLUSH of @type needs. */
static inline uint16_t vhca_flush_access(uint8_t type)
{
    return (type & QHCA_FLUSH_GLOBAL ? QHCA_ACCESS_FLUSH_GLOBAL : 0) |
           (type & QHCA_FLUSH_PERSISTENT ? QHCA_ACCESS_FLUSH_PERSISTENT : 0);
}

/* ---- snapshot.c ---- */

/* Walk over the responder, after the QP's queues and the objects it uses. */
void vhca_responder_walk(struct vhca_snap *s, struct vhca_qp *qp);

/* ---- early.c: data of READs that are read early by a fault rule ---- */

/* Perhaps read some of the data of @r now; true: the others, after a wait. */
bool vhca_early_begin(struct qhca_engine *e, struct vhca_qp *qp,
                       struct vhca_response *r);
/* Put those among the next @len bytes of @r in their place. */
void vhca_early_use(const struct qhca_engine *e, const struct vhca_qp *qp,
                     const struct vhca_response *r, uint8_t *payload,
                     uint32_t len);
/* Forget them, and end all waits: QPs may be others from now on. */
void vhca_early_drop(struct qhca_engine *e);

/* ---- replay.c ---- */

/* Handle a request whose PSN is behind the ePSN. */
void vhca_responder_duplicate(struct qhca_engine *e, struct vhca_qp *qp,
                              const struct roce_packet *p);

/* ---- queue.c ---- */

static inline struct vhca_response *vhca_response_at(struct vhca_responder *s,
                                                     uint32_t i)
{
    return &s->queue[i % VHCA_RESPONSES];
}
/*
 * Queue an ACK or NAK of @psn, before the responses to later requests; it
 * replaces one in the same place.
 */
void vhca_response_ack(struct vhca_qp *qp, uint8_t syndrome, uint32_t psn);
/*
 * Requests before @end are dropped, because what comes before them is missing:
 * queue a sequence NAK, once, unless an RNR NAK makes the peer send them again.
 */
void vhca_response_missed(struct vhca_qp *qp, uint32_t end);
/*
 * The request that a NAK waits for is here: take the NAK back. Returns the end
 * of what has been dropped behind it, for vhca_response_missed(), or the ePSN.
 */
uint32_t vhca_response_recall(struct vhca_qp *qp);
/*
 * Queue the response to a new request, before a NAK that waits; false: there is
 * no room, drop the request.
 */
bool vhca_response_add(struct vhca_qp *qp, const struct vhca_response *r);
/*
 * Queue the response @r, which is changed, to a repeated request in its place,
 * as far as the queue does not have it. If the queue has only the rest of the
 * same response, @r replaces the rest.
 */
void vhca_response_repeat(struct vhca_qp *qp, struct vhca_response *r);
static inline bool vhca_response_queued(const struct vhca_qp *qp)
{
    return qp->rsp.q_head != qp->rsp.q_tail;
}
/* Whether one can be sent now. */
static inline bool vhca_response_ready(const struct vhca_qp *qp)
{
    return vhca_response_queued(qp) && !qp->rsp.page_wait &&
           !qp->rsp.early_wait;
}
/*
 * Owe an ACK of everything before the ePSN. It is queued if there are responses
 * already; if not, vhca_response_take_ack() may take it without a packet, or
 * vhca_response_settle() queues it.
 */
void vhca_response_owe(struct vhca_qp *qp);
/* Count the owed ACK as sent; returns its PSN. */
uint32_t vhca_response_take_ack(struct qhca_engine *e, struct vhca_qp *qp);
/* Queue an ACK that is owed. */
void vhca_response_settle(struct vhca_qp *qp);
/* Return the RNR NAK for a peer that asks for the @n-th time again, n > 0. */
static inline uint8_t vhca_page_rnr(unsigned n)
{
    /* From 10.24 ms (code 20) to 327.68 ms (30), always twice as long. */
    return (uint8_t)(AETH_RNR_NAK | (18 + 2 * MIN_OF(n, VHCA_PAGE_REPEATS)));
}
/*
 * The first response waits for a page, and the peer asks for @psn again: try
 * the page again. Returns whether @psn needs no other answer, because it is not
 * behind that response: the peer is told to wait.
 */
bool vhca_response_wait(struct qhca_engine *e, struct vhca_qp *qp,
                        uint32_t psn);
/* Whether a response fits; the last place is for an ACK or NAK behind it. */
static inline bool vhca_response_room(const struct vhca_qp *qp)
{
    return qp->rsp.q_tail - qp->rsp.q_head < VHCA_RESPONSES - 1;
}

/* ---- response.c ---- */

/*
 * Build a packet of the first queued response in @burst, or up to @max that
 * follow each other if they go across; nothing else changes. Returns false if
 * it has to wait, for a page or because of a rule for the order.
 */
bool vhca_response_next(struct qhca_engine *e, struct vhca_qp *qp, uint32_t max,
                        struct vhca_burst *burst);
/* Answer the page fault of the first response. */
void vhca_response_resume(struct qhca_engine *e, struct vhca_qp *qp, bool deny);
/* Dequeue what is being sent. A fatal response moves the QP to ERR. */
void vhca_response_sent(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_burst *burst);
/* Whether the next response is, in the main, the data of a READ. */
bool vhca_response_is_data(struct vhca_qp *qp);

#endif /* QHCA_ENGINE_RESPONDER_H */
