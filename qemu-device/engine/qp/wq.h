/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, qp: rings of WQEs; included by qp.h. */
#ifndef QHCA_ENGINE_WQ_H
#define QHCA_ENGINE_WQ_H

#include "../core/mem.h"

/* struct vhca_wq - a send or receive queue in guest memory */
struct vhca_wq {
    struct vhca_mem mem;
    bool present;
    bool dbrec;                 /* receive queue: has a doorbell record */
    bool rings;                 /* its record asks for doorbells */
    uint8_t log_size, log_stride;
    uint32_t max_sge;
    uint32_t pi;                /* from doorbell or doorbell record */
    uint32_t next;              /* send queue: next WQE to start */
    uint32_t ci;                /* oldest WQE not complete */
};

static inline uint32_t vhca_wq_size(const struct vhca_wq *wq)
{
    return wq->present ? 1u << wq->log_size : 0;
}

static inline uint64_t vhca_wq_ring_bytes(const struct vhca_wq *wq)
{
    return 1ull << (wq->log_size + wq->log_stride);
}

/* Return the bytes of the ring and of the doorbell record behind it. */
static inline uint64_t vhca_wq_bytes(const struct vhca_wq *wq)
{
    return vhca_wq_ring_bytes(wq) +
           (wq->dbrec ? sizeof(struct qhca_rq_dbrec) : 0);
}

static inline uint64_t vhca_wq_offset(const struct vhca_wq *wq, uint32_t index)
{
    return (uint64_t)(index & (vhca_wq_size(wq) - 1)) << wq->log_stride;
}

/*
 * Whether the producer index only moves forward, and not past the free entries;
 * @held entries before ci are not free.
 */
static inline bool vhca_wq_index_ok(const struct vhca_wq *wq, uint32_t pi,
                                    uint32_t held)
{
    uint32_t used = wq->pi - wq->ci + held;

    return wq->present && pi - wq->pi <= vhca_wq_size(wq) - used;
}

/* The result of reading a WQE. */
enum vhca_wqe_result {
    VHCA_WQE_OK = 0,
    VHCA_WQE_BAD,               /* breaks a rule: LOC_QP_OP_ERR */
    VHCA_WQE_UNREADABLE,        /* the ring cannot be read: QP_FATAL */
    VHCA_WQE_NONE,              /* receive: none has been posted */
};

#endif /* QHCA_ENGINE_WQ_H */
