/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: completion queues.
 *
 * The device owns the producer index. The consumer index is in a doorbell
 * record behind the ring, and is read only when the ring seems full. Arms are
 * doorbells, or are read from that record after each CQE.
 */
#include <stdlib.h>

#include "../memory/memory.h"
#include "events.h"

static uint32_t cq_size(const struct vhca_cq *cq)
{
    return 1u << cq->log_size;
}

uint64_t vhca_cq_bytes(unsigned log_size)
{
    return ((uint64_t)sizeof(struct qhca_cqe) << log_size) +
           sizeof(struct qhca_cq_dbrec);
}

struct vhca_cq *vhca_cq_get(struct qhca_engine *e, uint32_t cqn)
{
    return vhca_table_get(&e->events->cq, cqn);
}

static bool read_record(struct qhca_engine *e, struct vhca_cq *cq, size_t off,
                        void *buf, size_t len)
{
    uint64_t record = (uint64_t)sizeof(struct qhca_cqe) << cq->log_size;

    return vhca_mem_read(e, &cq->mem, record + off, buf, len);
}

/* Read the consumer index; it may neither go back nor pass the producer. */
static bool read_ci(struct qhca_engine *e, struct vhca_cq *cq)
{
    uint32_t ci;

    if (!read_record(e, cq, offsetof(struct qhca_cq_dbrec, ci), &ci,
                     sizeof(ci))) {
        return false;
    }
    ci = le32toh(ci);
    if (cq->pi - ci > cq->pi - cq->ci) {
        vhca_guest_error(e,
                         "CQ 0x%x: consumer index %u, was %u, producer at %u",
                         cq->cqn, ci, cq->ci, cq->pi);
        return false;
    }
    cq->ci = ci;
    return true;
}

static void cq_fail(struct qhca_engine *e, struct vhca_cq *cq)
{
    if (!vhca_running(e)) {
        return;         /* the device stopped, not the CQ */
    }
    cq->state = QHCA_CQ_ERROR;
    vhca_list_add_tail(&e->events->failed, &cq->failed);
}

struct vhca_cq *vhca_cq_failed(struct qhca_engine *e)
{
    struct vhca_cq *cq = container_of(e->events->failed.next, struct vhca_cq,
                                      failed);

    if (!cq->owner_told) {
        cq->owner_told = true;
        vhca_event(e, &cq->async, QHCA_EVENT_CQ_ERR);
    }
    return cq;
}

static void arm(struct vhca_cq *cq, uint32_t sn, bool any)
{
    cq->arm_sn = sn;
    if (any || cq->arm == QHCA_CQ_ARM_NEXT) {                   /* C-018 */
        cq->arm = QHCA_CQ_ARM_NEXT;
    } else {
        cq->arm = QHCA_CQ_ARM_SOLICITED;
    }
}

/*
 * Learn of arms in the doorbell record. They are read after a CQE has been
 * written, and the consumer polls after it has armed. So either it finds the
 * CQE, or the arm is found here.
 */
static void look_for_arm(struct qhca_engine *e, struct vhca_cq *cq)
{
    uint32_t sn, any_sn;
    uint64_t raw;

    if (!cq->dbrec ||
        !read_record(e, cq, offsetof(struct qhca_cq_dbrec, arm), &raw,
                     sizeof(raw))) {
        return;
    }
    sn = (uint32_t)QHCA_GET(QHCA_CQ_ARM_SN, le64toh(raw));
    any_sn = (uint32_t)QHCA_GET(QHCA_CQ_ARM_ANY_SN, le64toh(raw));
    if (sn != cq->arm_sn) {
        arm(cq, sn, sn - any_sn < sn - cq->arm_sn);
    }
}

static void notify(struct qhca_engine *e, struct vhca_cq *cq)
{
    look_for_arm(e, cq);
    vhca_timer_cancel(e, &cq->timer);
    cq->held = 0;
    cq->arm = QHCA_CQ_NOT_ARMED;
    cq->event_sn = cq->arm_sn;
    vhca_eq_comp(e, cq);
}

void vhca_cq_moderation_timeout(struct qhca_engine *e, struct vhca_timer *t)
{
    notify(e, container_of(t, struct vhca_cq, timer));
}

/* Whether the CQE matches the arm, or an earlier one did and is held back. */
static bool is_due(struct qhca_engine *e, struct vhca_cq *cq,
                   const struct qhca_cqe *cqe, bool solicited)
{
    if (cq->held || cq->arm == QHCA_CQ_ARM_NEXT) {
        return true;
    }
    look_for_arm(e, cq);
    return cq->arm == QHCA_CQ_ARM_NEXT ||
           (cq->arm == QHCA_CQ_ARM_SOLICITED &&
            (solicited || cqe->status != QHCA_WC_SUCCESS));
}

/*
 * A CQE that matches the arm makes an event due; moderation holds it back until
 * enough CQEs have come, or enough time has passed.
 */
static void maybe_notify(struct qhca_engine *e, struct vhca_cq *cq,
                         const struct qhca_cqe *cqe, bool solicited)
{
    if (!is_due(e, cq, cqe, solicited)) {
        return;
    }
    if (++cq->held >= cq->count || !cq->period) {
        notify(e, cq);
    } else if (cq->held == 1) {
        vhca_timer_set(e, &cq->timer, e->now + cq->period * 1000ull);
    }
}

void vhca_cq_overrun(struct qhca_engine *e, struct vhca_cq *cq)
{
    if (cq->state == QHCA_CQ_OK) {
        vhca_count(e, QHCA_CNT_CQ_OVERRUN);
        vhca_guest_error(e, "CQ 0x%x: overrun", cq->cqn);
        cq_fail(e, cq);
    }
}

bool vhca_cq_push(struct qhca_engine *e, struct vhca_cq *cq,
                  struct qhca_cqe *cqe, bool solicited)
{
    uint64_t off = (uint64_t)(cq->pi & (cq_size(cq) - 1)) * sizeof(*cqe);

    VHCA_ASSERT(cq->pi - cq->ci <= cq_size(cq));
    if (cq->state != QHCA_CQ_OK || !vhca_running(e)) {
        return false;
    }
    if (cq->pi - cq->ci == cq_size(cq) &&
        (!read_ci(e, cq) || cq->pi - cq->ci == cq_size(cq))) {
        vhca_cq_overrun(e, cq);
        return false;
    }
    vhca_late_finish(e, le32toh(cqe->qpn));
    cqe->timestamp = htole64(e->now);
    /* The owner byte makes the entry valid. */
    cqe->owner = (cq->pi >> cq->log_size) & 1 ? 0 : QHCA_OWNER_PHASE;
    vhca_tamper(e, VHCA_TOLD_CQE, cqe, sizeof(*cqe));
    if (!vhca_dma_write_entry(e, vhca_mem_addr(&cq->mem, off), cqe,
                              sizeof(*cqe))) {
        vhca_guest_error(e, "CQ 0x%x: ring cannot be written", cq->cqn);
        cq_fail(e, cq);
        return false;
    }
    cq->pi++;
    vhca_trace_cqe(e, cq->cqn, le32toh(cqe->qpn), cqe->status);
    maybe_notify(e, cq, cqe, solicited);
    return true;
}

bool vhca_cq_doorbell_arm(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_cq *cq = vhca_cq_get(e, db->obj);

    if (!cq || cq->uar != db->page || cq->dbrec) {
        return false;
    }
    if (!cq->ever_armed || db->index != cq->arm_sn) {
        arm(cq, db->index, !db->solicited);
    }
    cq->ever_armed = true;
    return true;
}

void vhca_cq_init(struct vhca_cq *cq, uint32_t cqn)
{
    cq->cqn = cqn;
    cq->timer.fn = vhca_cq_moderation_timeout;
    vhca_list_init(&cq->pending);
    vhca_list_init(&cq->failed);
    vhca_async_init(&cq->async, cqn);
}

int vhca_cq_check_create(struct qhca_engine *e,
                         const struct qhca_cmd_create_cq *r)
{
    const struct vhca_eq *eq = vhca_eq_get(e, le32toh(r->eqn));

    if (r->flags & ~QHCA_CQ_DBREC) {
        return QHCA_ERR_PARAM;
    }
    if (r->flags & QHCA_CQ_DBREC && !e->cfg.shadow) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (r->log_size > VHCA_CQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (!eq) {
        return QHCA_ERR_OBJ;
    }
    return le32toh(r->uar) < e->cfg.num_uars && !eq->async ? QHCA_OK :
                                                             QHCA_ERR_PARAM;
}

static int init_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                   struct vhca_cq *cq)
{
    const struct qhca_cmd_create_cq *r = &c->cmd->create_cq;
    int status = vhca_cq_check_create(e, r);

    if (status != QHCA_OK) {
        return status;
    }
    cq->uar = le32toh(r->uar);
    cq->eq = vhca_eq_get(e, le32toh(r->eqn));
    cq->log_size = r->log_size;
    cq->dbrec = r->flags & QHCA_CQ_DBREC;
    return vhca_import(e, &c->import[0], &r->buf, vhca_cq_bytes(r->log_size));
}

int vhca_do_create_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_cq *cq = calloc(1, sizeof(*cq));
    uint32_t cqn;
    int status;

    if (!cq) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = init_cq(e, c, cq);
    if (status == QHCA_OK) {
        cqn = vhca_table_add(&e->events->cq, cq);
        status = cqn ? QHCA_OK : QHCA_ERR_NO_RESOURCE;
    }
    if (status != QHCA_OK) {
        free(cq);
        return status;
    }
    cq->mem = vhca_import_take(&c->import[0]);
    vhca_cq_init(cq, cqn);
    cq->eq->users++;
    c->obj = cq->cqn;
    return QHCA_OK;
}

static void free_cq(struct qhca_engine *e, struct vhca_cq *cq)
{
    vhca_timer_cancel(e, &cq->timer);
    vhca_list_del(&cq->pending);
    vhca_list_del(&cq->failed);
    vhca_async_del(&cq->async);
    vhca_table_del(&e->events->cq, cq->cqn);
    vhca_mem_release(e, &cq->mem);
    cq->eq->users--;
    free(cq);
}

int vhca_do_destroy_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_cq *cq = vhca_cq_get(e, le32toh(c->cmd->obj.obj));

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    if (cq->users) {
        return QHCA_ERR_BUSY;
    }
    free_cq(e, cq);
    return QHCA_OK;
}

void vhca_cq_free_all(struct qhca_engine *e)
{
    struct vhca_cq *cq;

    vhca_table_each(&e->events->cq, cq) {
        free_cq(e, cq);
    }
}

int vhca_do_query_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_cq *cq = vhca_cq_get(e, le32toh(c->cmd->obj.obj));
    struct qhca_cqc *out = (struct qhca_cqc *)(void *)c->mbox;

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    look_for_arm(e, cq);
    out->cqn = htole32(cq->cqn);
    out->uar = htole32(cq->uar);
    out->eqn = htole32(vhca_eqn(e, cq->eq));
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

int vhca_cq_check_modify(const struct qhca_cmd_modify_cq *r)
{
    return le32toh(r->count) > VHCA_MAX_CQ_COUNT ||
           le32toh(r->period) > VHCA_MAX_CQ_PERIOD ? QHCA_ERR_LIMIT : QHCA_OK;
}

/* Set how long events are held back. */
int vhca_do_modify_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_modify_cq *r = &c->cmd->modify_cq;
    struct vhca_cq *cq = vhca_cq_get(e, le32toh(r->cqn));
    int status = cq ? vhca_cq_check_modify(r) : QHCA_ERR_OBJ;

    if (status != QHCA_OK) {
        return status;
    }
    cq->count = le32toh(r->count);
    cq->period = le32toh(r->period);
    if (cq->held) {
        notify(e, cq);          /* raise what the old setting still held back */
    }
    return QHCA_OK;
}

/* CQEs moved at a time: a page of the new ring. */
#define MOVE_MAX        (QHCA_PAGE_SIZE / sizeof(struct qhca_cqe))

/*
 * Move CQEs that were not consumed to the start of the new ring, in order.
 * There can be millions, so move many at a time. Their owner bytes need not be
 * written last, because no consumer reads the new ring before the command
 * completes.
 */
static int move_pending(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                        const struct vhca_cq *cq)
{
    uint32_t i, at, n, pending = cq->pi - c->from;
    struct qhca_cqe cqe[MOVE_MAX];

    for (; c->done < pending; c->done += n) {
        at = (c->from + c->done) & (cq_size(cq) - 1);
        n = MIN_OF(pending - c->done, MIN_OF(cq_size(cq) - at, MOVE_MAX));
        if (!vhca_may_go_on(e)) {
            return VHCA_AGAIN;
        }
        if (!vhca_mem_read(e, &cq->mem, (uint64_t)at * sizeof(*cqe), cqe,
                           n * sizeof(*cqe))) {
            return QHCA_ERR_DMA;
        }
        for (i = 0; i < n; i++) {
            cqe[i].owner = QHCA_OWNER_PHASE;
        }
        if (!vhca_mem_write(e, &c->import[0].mem,
                            (uint64_t)c->done * sizeof(*cqe), cqe,
                            n * sizeof(*cqe))) {
            return QHCA_ERR_DMA;
        }
    }
    return QHCA_OK;
}

/*
 * The new ring starts with the CQEs that are pending, including those pushed
 * while they are moved, as entries 0, 1, 2 and so on of the first phase; both
 * indexes count from there.
 */
int vhca_do_resize_cq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_cq *r = &c->cmd->create_cq;
    struct vhca_cq *cq = vhca_cq_get(e, le32toh(r->cqn));
    int status;

    if (!cq) {
        return QHCA_ERR_OBJ;
    }
    if (r->log_size > VHCA_CQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (cq->state != QHCA_CQ_OK) {
        return QHCA_ERR_STATE;
    }
    if (!c->again) {
        if (!read_ci(e, cq)) {
            return QHCA_ERR_DMA;
        }
        c->from = cq->ci;
    }
    if (cq->pi - c->from > 1u << r->log_size) {
        return QHCA_ERR_STATE;
    }
    status = vhca_import(e, &c->import[0], &r->buf, vhca_cq_bytes(r->log_size));
    if (status == QHCA_OK) {
        status = move_pending(e, c, cq);
    }
    if (status != QHCA_OK) {
        return status;
    }
    vhca_mem_release(e, &cq->mem);
    cq->mem = vhca_import_take(&c->import[0]);
    cq->pi -= c->from;
    cq->ci -= c->from;
    cq->log_size = r->log_size;
    return QHCA_OK;
}
