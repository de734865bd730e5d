/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, qp: rings of WQEs; included by qp.h.
 */
#ifndef QHCA_ENGINE_WQ_H
#define QHCA_ENGINE_WQ_H

#include "../core/mem.h"

/* struct qhca_wq - a send or receive queue in guest memory */
struct qhca_wq {
    struct qhca_mem mem;
    bool present;
    bool dbrec;                 /* receive queue: has a doorbell record */
    bool rings;                 /* it says that doorbells are wanted */
    uint8_t log_size, log_stride;
    uint32_t max_sge;
    uint32_t pi;                /* from doorbell or doorbell record */
    uint32_t next;              /* send queue: next WQE to start */
    uint32_t ci;                /* oldest WQE not complete */
};

static inline uint32_t qhca_wq_size(const struct qhca_wq *wq)
{
    return wq->present ? 1u << wq->log_size : 0;
}

static inline uint64_t qhca_wq_ring_bytes(const struct qhca_wq *wq)
{
    return 1ull << (wq->log_size + wq->log_stride);
}

/* With the doorbell record behind the ring. */
static inline uint64_t qhca_wq_bytes(const struct qhca_wq *wq)
{
    return qhca_wq_ring_bytes(wq) +
           (wq->dbrec ? sizeof(struct qhca_rq_dbrec) : 0);
}

static inline uint64_t qhca_wq_offset(const struct qhca_wq *wq, uint32_t index)
{
    return (uint64_t)(index & (qhca_wq_size(wq) - 1)) << wq->log_stride;
}

/*
 * A producer index may only move forward, and not past the free entries; @held
 * of those before ci are not free.
 */
static inline bool qhca_wq_index_ok(const struct qhca_wq *wq, uint32_t pi,
                                    uint32_t held)
{
    uint32_t used = wq->pi - wq->ci + held;

    return wq->present && pi - wq->pi <= qhca_wq_size(wq) - used;
}

#endif /* QHCA_ENGINE_WQ_H */
