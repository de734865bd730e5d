/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: shared receive queues.
 */
#ifndef QHCA_TESTS_SRQ_H
#define QHCA_TESTS_SRQ_H

#include "rc.h"

/* struct gsrq - a shared receive queue */
struct gsrq {
    struct node *n;
    uint32_t srqn, uar;             /* doorbell page */
    unsigned log, stride, sges;     /* log2 of size and stride */
    struct gbuf ring;
    uint32_t pi;
    struct gcq cq;                  /* XRC: for completions of its WRs */
};

/* An SRQ in PD @pdn, on doorbell page 1. */
struct gsrq srq_create(struct node *n, uint32_t pdn, unsigned log,
                       unsigned sges);
/* An SRQ on doorbell page @uar. */
struct gsrq srq_create_on(struct node *n, uint32_t pdn, unsigned log,
                          unsigned sges, uint32_t uar);
/* An SRQ in XRC domain @xrcdn, on doorbell page 1, with a CQ of its own. */
struct gsrq srq_create_xrc(struct node *n, uint32_t pdn, unsigned log,
                           unsigned sges, uint32_t xrcdn);
uint32_t xrcd_create(struct guest *g);
void srq_put(struct gsrq *q, uint64_t wr_id, unsigned num_sge,
             const struct qhca_seg_le *sge);
void srq_ring(struct gsrq *q);
/* Puts a WR of @len bytes at @off of the node's memory, and rings. */
void srq_post(struct gsrq *q, uint64_t wr_id, uint64_t off, uint32_t len);
/* Posts WRs 0 to @n - 1, of @len bytes at the start of the memory. */
void srq_fill(struct gsrq *q, unsigned n, uint32_t len);
/* These return the status of the command. */
int srq_limit(struct gsrq *q, uint32_t limit);
int srq_query(struct gsrq *q, struct qhca_srqc *c);
/* RESIZE_SRQ; @flags as in the command. The ring changes on success. */
int srq_resize(struct gsrq *q, unsigned log, unsigned flags, uint32_t limit);
int srq_destroy(struct gsrq *q);

#endif /* QHCA_TESTS_SRQ_H */
