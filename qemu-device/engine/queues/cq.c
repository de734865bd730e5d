/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: completion queues.
 *
 * The device owns the producer index; the consumer index stands in a doorbell
 * record behind the ring and is looked at only when the ring seems full.
 */
#include <stdlib.h>

#include "queues.h"

static uint32_t cq_size(const struct qhca_cq *cq)
{
    return 1u << cq->log_size;
}

/* Ring and doorbell record. */
static uint64_t cq_bytes(unsigned log_size)
{
    return ((uint64_t)sizeof(struct qhca_cqe) << log_size) +
           sizeof(struct qhca_cq_dbrec);
}

struct qhca_cq *qhca_cq_get(struct qhca_engine *e, uint32_t cqn)
{
    return qhca_table_get(&e->queues->cq, cqn);
}

/* Reads the consumer index; it may neither go back nor pass the producer. */
static bool read_ci(struct qhca_engine *e, struct qhca_cq *cq)
{
    uint64_t off = (uint64_t)sizeof(struct qhca_cqe) << cq->log_size;
    uint32_t ci;

    if (!qhca_mem_read(e, &cq->mem, off, &ci, sizeof(ci))) {
        return false;
    }
    ci = le32toh(ci);
    if (cq->pi - ci > cq->pi - cq->ci) {
        qhca_guest_error(e,
                         "CQ 0x%x: consumer index %u, was %u, producer at %u",
                         cq->cqn, ci, cq->ci, cq->pi);
        return false;
    }
    cq->ci = ci;
    return true;
}

static void cq_fail(struct qhca_engine *e, struct qhca_cq *cq)
{
    if (!qhca_running(e)) {
        return;         /* the device stopped, not the CQ */
    }
    cq->state = QHCA_CQ_ERROR;
    qhca_list_add_tail(&e->queues->failed, &cq->failed);
}

struct qhca_cq *qhca_cq_take_failed(struct qhca_engine *e)
{
    struct qhca_cq *cq;

    if (qhca_list_empty(&e->queues->failed)) {
        return NULL;
    }
    cq = container_of(e->queues->failed.next, struct qhca_cq, failed);
    qhca_list_del(&cq->failed);
    qhca_event(e, &cq->async, QHCA_EVENT_CQ_ERR);
    return cq;
}

static bool put_cqe(struct qhca_engine *e, const struct qhca_mem *mem,
                    unsigned log_size, uint32_t index, struct qhca_cqe *cqe)
{
    uint64_t off = (uint64_t)(index & ((1u << log_size) - 1)) * sizeof(*cqe);
    const size_t owner = offsetof(struct qhca_cqe, owner);

    cqe->owner = (index >> log_size) & 1 ? 0 : QHCA_OWNER_PHASE;
    return qhca_mem_write(e, mem, off, cqe, owner) &&
           qhca_mem_write(e, mem, off + owner, &cqe->owner, 1);
}

static void notify(struct qhca_engine *e, struct qhca_cq *cq)
{
    qhca_timer_cancel(e, &cq->timer);
    cq->held = 0;
    cq->arm = QHCA_CQ_NOT_ARMED;
    cq->event_sn = cq->arm_sn;
    qhca_eq_comp(e, cq);
}

/* Too few CQEs arrived to reach the count: raise the event now. */
static void moderation_timeout(struct qhca_engine *e, struct qhca_timer *t)
{
    notify(e, container_of(t, struct qhca_cq, timer));
}

/*
 * A CQE that matches the arm makes an event due; moderation holds it back until
 * enough CQEs have come, or enough time has passed.
 */
static void maybe_notify(struct qhca_engine *e, struct qhca_cq *cq,
                         const struct qhca_cqe *cqe, bool solicited)
{
    if (!cq->held && cq->arm != QHCA_CQ_ARM_NEXT &&
        (cq->arm != QHCA_CQ_ARM_SOLICITED ||
         (!solicited && cqe->status == QHCA_WC_SUCCESS))) {
        return;
    }
    if (++cq->held >= cq->count || !cq->period) {
        notify(e, cq);
    } else if (cq->held == 1) {
        qhca_timer_set(e, &cq->timer, e->now + cq->period * 1000ull);
    }
}

bool qhca_cq_push(struct qhca_engine *e, struct qhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited)
{
    if (cq->state != QHCA_CQ_OK || !qhca_running(e)) {
        return false;
    }
    if (cq->pi - cq->ci == cq_size(cq) &&
        (!read_ci(e, cq) || cq->pi - cq->ci == cq_size(cq))) {
        qhca_count(e, QHCA_CNT_CQ_OVERRUN);
        qhca_guest_error(e, "CQ 0x%x: overrun", cq->cqn);
        cq_fail(e, cq);
        return false;
    }
    cqe->timestamp = htole64(e->now);
    if (!put_cqe(e, &cq->mem, cq->log_size, cq->pi, cqe)) {
        qhca_guest_error(e, "CQ 0x%x: ring cannot be written", cq->cqn);
        cq_fail(e, cq);
        return false;
    }
    cq->pi++;
    qhca_trace(e, QHCA_TRACE_CQE, cq->cqn, le32toh(cqe->qpn), cqe->status);
    maybe_notify(e, cq, cqe, solicited);
    return true;
}

bool qhca_cq_doorbell_arm(struct qhca_engine *e, unsigned page, uint32_t cqn,
                          bool solicited, uint32_t sn)
{
    struct qhca_cq *cq = qhca_cq_get(e, cqn);

    if (!cq || cq->uar != page) {
        return false;
    }
    if (cq->ever_armed && sn == cq->arm_sn) {
        return true;
    }
    cq->ever_armed = true;
    cq->arm_sn = sn;
    if (!solicited || cq->arm == QHCA_CQ_ARM_NEXT) {    /* C-018 */
        cq->arm = QHCA_CQ_ARM_NEXT;
    } else {
        cq->arm = QHCA_CQ_ARM_SOLICITED;
    }
    return true;
}

static int init_cq(struct qhca_engine *e, struct qhca_cq *cq,
                   const struct qhca_cmd_create_cq *r)
{
    cq->uar = le32toh(r->uar);
    cq->eq = qhca_eq_get(e, le32toh(r->eqn));
    cq->log_size = r->log_size;
    qhca_list_init(&cq->pending);
    qhca_list_init(&cq->failed);
    cq->timer.fn = moderation_timeout;
    if (cq->log_size > QHCA_CQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (!cq->eq) {
        return QHCA_ERR_OBJ;
    }
    if (cq->uar >= e->cfg.num_uars || cq->eq->async) {
        return QHCA_ERR_PARAM;
    }
    return qhca_mem_import(e, &cq->mem, &r->buf, cq_bytes(r->log_size));
}

static int create_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_cq *cq = calloc(1, sizeof(*cq));
    int status;

    if (!cq) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = init_cq(e, cq, &c->cmd->create_cq);
    if (status == QHCA_OK) {
        cq->cqn = qhca_table_add(&e->queues->cq, cq);
        if (!cq->cqn) {
            qhca_mem_release(e, &cq->mem);
            status = QHCA_ERR_NO_RESOURCE;
        }
        qhca_async_init(&cq->async, cq->cqn);
    }
    if (status != QHCA_OK) {
        free(cq);
        return status;
    }
    cq->eq->users++;
    c->obj = cq->cqn;
    return QHCA_OK;
}

static void free_cq(struct qhca_engine *e, struct qhca_cq *cq)
{
    qhca_timer_cancel(e, &cq->timer);
    qhca_list_del(&cq->pending);
    qhca_list_del(&cq->failed);
    qhca_async_del(&cq->async);
    qhca_table_del(&e->queues->cq, cq->cqn);
    qhca_mem_release(e, &cq->mem);
    cq->eq->users--;
    free(cq);
}

static int destroy_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_cq *cq = qhca_cq_get(e, le32toh(c->cmd->obj.obj));

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    if (cq->users) {
        return QHCA_ERR_BUSY;
    }
    free_cq(e, cq);
    return QHCA_OK;
}

void qhca_cq_free_all(struct qhca_engine *e)
{
    struct qhca_cq *cq;

    qhca_table_each(&e->queues->cq, cq) {
        free_cq(e, cq);
    }
}

static int query_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    struct qhca_cq *cq = qhca_cq_get(e, le32toh(c->cmd->obj.obj));
    struct qhca_cqc *out = (struct qhca_cqc *)(void *)c->mbox;

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    out->cqn = htole32(cq->cqn);
    out->uar = htole32(cq->uar);
    out->eqn = htole32(qhca_eqn(e, cq->eq));
    out->pi = htole32(cq->pi);
    out->ci = htole32(cq->ci);
    out->arm_sn = htole32(cq->arm_sn);
    out->log_size = cq->log_size;
    out->state = cq->state;
    out->arm = cq->arm;
    out->users = htole32(cq->users);
    out->count = htole32(cq->count);
    out->period = htole32(cq->period);
    return QHCA_OK;
}

/* How long events are held back. */
static int modify_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const struct qhca_cmd_modify_cq *r = &c->cmd->modify_cq;
    struct qhca_cq *cq = qhca_cq_get(e, le32toh(r->cqn));

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    if (le32toh(r->count) > QHCA_MAX_CQ_COUNT ||
        le32toh(r->period) > QHCA_MAX_CQ_PERIOD) {
        return QHCA_ERR_LIMIT;
    }
    cq->count = le32toh(r->count);
    cq->period = le32toh(r->period);
    if (cq->held) {
        notify(e, cq);          /* raise what the old setting still held back */
    }
    return QHCA_OK;
}

/* CQEs that are moved at a time: a page of the new ring. */
#define MOVE_MAX        (QHCA_PAGE_SIZE / sizeof(struct qhca_cqe))

/*
 * Moves what was not consumed to the start of the new ring, in order. There can
 * be millions, so not one by one; nobody looks at the new ring before the
 * command has completed, so their owner bytes need not be written last.
 */
static int copy_pending(struct qhca_engine *e, const struct qhca_cq *cq,
                        const struct qhca_mem *mem)
{
    uint32_t i, at, n, done, pending = cq->pi - cq->ci;
    struct qhca_cqe cqe[MOVE_MAX];

    for (done = 0; done < pending; done += n) {
        at = (cq->ci + done) & (cq_size(cq) - 1);
        n = MIN_OF(pending - done, MIN_OF(cq_size(cq) - at, MOVE_MAX));
        if (!qhca_mem_read(e, &cq->mem, (uint64_t)at * sizeof(*cqe), cqe,
                           n * sizeof(*cqe))) {
            return QHCA_ERR_DMA;
        }
        for (i = 0; i < n; i++) {
            cqe[i].owner = QHCA_OWNER_PHASE;
        }
        if (!qhca_mem_write(e, mem, (uint64_t)done * sizeof(*cqe), cqe,
                            n * sizeof(*cqe))) {
            return QHCA_ERR_DMA;
        }
    }
    return QHCA_OK;
}

/*
 * The new ring begins anew: the CQEs that were pending are its entries 0, 1, 2
 * and so on in their first phase, and both indexes count from 0.
 */
static int resize_cq(struct qhca_engine *e, struct qhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_cq *r = &c->cmd->create_cq;
    struct qhca_cq *cq = qhca_cq_get(e, le32toh(r->cqn));
    struct qhca_mem mem;
    int status;

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    if (r->log_size > QHCA_CQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (cq->state != QHCA_CQ_OK) {
        return QHCA_ERR_STATE;
    }
    if (!read_ci(e, cq)) {
        return QHCA_ERR_DMA;
    }
    if (cq->pi - cq->ci > 1u << r->log_size) {
        return QHCA_ERR_STATE;
    }
    status = qhca_mem_import(e, &mem, &r->buf, cq_bytes(r->log_size));
    if (status != QHCA_OK) {
        return status;
    }
    status = copy_pending(e, cq, &mem);
    if (status != QHCA_OK) {
        qhca_mem_release(e, &mem);
        return status;
    }
    qhca_mem_release(e, &cq->mem);
    cq->mem = mem;
    cq->pi -= cq->ci;
    cq->ci = 0;
    cq->log_size = r->log_size;
    return QHCA_OK;
}

const struct qhca_command qhca_cq_commands[] = {
    QHCA_COMMAND(CREATE_CQ, create_cq),
    QHCA_COMMAND(DESTROY_CQ, destroy_cq),
    QHCA_COMMAND_OUT(QUERY_CQ, query_cq, struct qhca_cqc),
    QHCA_COMMAND(RESIZE_CQ, resize_cq),
    QHCA_COMMAND(MODIFY_CQ, modify_cq),
    { 0 }
};
