/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: shared receive queues. WQEs are read in order, once, by the next
 * QP that needs one. A WR that a QP has taken and will not complete (the QP
 * goes to RESET or is destroyed, or its CQ has failed) is written back into the
 * ring, in front of the others: no QP takes a WR away from them for good.
 */
#include <stdlib.h>

#include "rq.h"

struct vhca_srq *vhca_srq_get(struct qhca_engine *e, uint32_t srqn)
{
    return vhca_table_get(&e->rqs->srq, srqn);
}

/* ---- taking WRs ---- */

/* Return the number of WRs that a QP could take. */
static uint32_t available(const struct vhca_srq *srq)
{
    return srq->wq.pi - srq->wq.ci;
}

/* Let the SRQ fail, unless the access failed because the device was reset. */
static void ring_failed(struct qhca_engine *e, struct vhca_srq *srq)
{
    if (vhca_running(e)) {
        vhca_guest_error(e, "SRQ 0x%x: ring cannot be accessed", srq->srqn);
        vhca_srq_fail(e, srq);
    }
}

/* Learn of more WRs if fewer than @wanted are known; false: it has failed. */
static bool look(struct qhca_engine *e, struct vhca_srq *srq, uint32_t wanted)
{
    if (available(srq) >= wanted || vhca_rq_look(e, &srq->wq, srq->held)) {
        return true;
    }
    ring_failed(e, srq);
    return false;
}

/* The limit event is raised once, then disarmed (G-005). */
static void check_limit(struct qhca_engine *e, struct vhca_srq *srq)
{
    if (look(e, srq, srq->limit) && available(srq) < srq->limit) {
        srq->limit = 0;
        vhca_event(e, &srq->async, QHCA_EVENT_SRQ_LIMIT_REACHED);
    }
}

void vhca_srq_fail(struct qhca_engine *e, struct vhca_srq *srq)
{
    srq->failed = true;
    vhca_event(e, &srq->async, QHCA_EVENT_SRQ_ERR);             /* H-010 */
}

enum vhca_wqe_result vhca_srq_take(struct qhca_engine *e, struct vhca_qp *qp)
{
    struct vhca_srq *srq = qp->srq;
    enum vhca_wqe_result result;

    if (srq->failed || !look(e, srq, 1)) {
        return VHCA_WQE_UNREADABLE;
    }
    if (!available(srq)) {
        return VHCA_WQE_NONE;
    }
    result = vhca_rwr_fetch(e, &srq->wq, srq->wq.ci, &qp->rsp.rwr);
    if (result == VHCA_WQE_UNREADABLE) {
        ring_failed(e, srq);
        return result;
    }
    qp->rsp.rwr.srq = srq;
    srq->wq.ci++;
    srq->held++;
    check_limit(e, srq);
    return result;
}

void vhca_srq_release(struct vhca_rwr *rwr)
{
    VHCA_ASSERT(rwr->taken);
    rwr->srq->held--;
    vhca_recv_end(rwr);
}

void vhca_srq_give_back(struct qhca_engine *e, struct vhca_rwr *rwr)
{
    struct vhca_srq *srq = rwr->srq;

    vhca_srq_release(rwr);
    if (srq->failed) {
        return;
    }
    srq->moving = false;
    if (vhca_rwr_store(e, &srq->wq, srq->wq.ci - 1, rwr)) {
        srq->wq.ci--;
    } else {
        ring_failed(e, srq);
    }
}

/* ---- doorbell ---- */

bool vhca_srq_doorbell(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_srq *srq = vhca_srq_get(e, db->obj);

    if (!srq || srq->uar != db->page || srq->failed ||
        !vhca_wq_index_ok(&srq->wq, db->index, srq->held)) {
        return false;
    }
    srq->wq.pi = db->index;
    return true;
}

/* ---- commands ---- */

int vhca_srq_check_create(const struct qhca_engine *e,
                          const struct qhca_cmd_create_srq *r)
{
    if (r->flags & ~(QHCA_SRQ_RESERVED_LKEY | QHCA_SRQ_DBREC) ||
        le32toh(r->uar) >= e->cfg.num_uars || !le32toh(r->buf.num_blocks)) {
        return QHCA_ERR_PARAM;
    }
    if (le32toh(r->max_sge) > QHCA_MAX_RECV_SGE ||
        r->log_size > VHCA_SRQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (r->log_stride > 31 || 1u << r->log_stride < QHCA_RQ_STRIDE_MIN ||
        1u << r->log_stride > QHCA_RQ_STRIDE_MAX ||
        1u << r->log_stride < sizeof(struct qhca_rq_wqe) +
                              le32toh(r->max_sge) * sizeof(struct qhca_sge)) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

void vhca_srq_count_users(struct vhca_srq *srq, int by)
{
    srq->pd->users += (uint32_t)by;
    if (srq->xrcd) {
        srq->xrcd->users += (uint32_t)by;
        srq->cq->users += (uint32_t)by;
    }
}

int vhca_srq_find_objects(struct qhca_engine *e, struct vhca_srq *srq,
                          const struct qhca_cmd_create_srq *r)
{
    srq->pd = vhca_table_get(&e->memory->pd, le32toh(r->pdn));
    srq->user.pd = srq->pd;
    if (!srq->pd) {
        return QHCA_ERR_OBJ;
    }
    if (r->xrcdn) {
        srq->xrcd = vhca_table_get(&e->rqs->xrcd, le32toh(r->xrcdn));
        srq->cq = vhca_cq_get(e, le32toh(r->cqn));
        if (!srq->xrcd || !srq->cq) {
            return QHCA_ERR_OBJ;
        }
    }
    return QHCA_OK;
}

static int build_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                     struct vhca_srq *srq)
{
    const struct qhca_cmd_create_srq *r = &c->cmd->create_srq;
    int status = vhca_srq_find_objects(e, srq, r);

    if (status != QHCA_OK) {
        return status;
    }
    if (srq->cq && srq->cq->state != QHCA_CQ_OK) {
        return QHCA_ERR_STATE;          /* usable only for destroy (C-028) */
    }
    srq->uar = le32toh(r->uar);
    srq->user.reserved = r->flags & QHCA_SRQ_RESERVED_LKEY;
    srq->wq.present = true;
    srq->wq.dbrec = r->flags & QHCA_SRQ_DBREC;
    srq->wq.log_size = r->log_size;
    srq->wq.log_stride = r->log_stride;
    srq->wq.max_sge = le32toh(r->max_sge);
    status = vhca_import(e, &c->import[0], &r->buf, vhca_wq_bytes(&srq->wq));
    if (status != QHCA_OK) {
        return status;
    }
    srq->srqn = vhca_table_add(&e->rqs->srq, srq);
    if (!srq->srqn) {
        return QHCA_ERR_NO_RESOURCE;
    }
    srq->wq.mem = vhca_import_take(&c->import[0]);
    vhca_async_init(&srq->async, srq->srqn);
    return QHCA_OK;
}

int vhca_do_create_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_srq *r = &c->cmd->create_srq;
    int status = vhca_srq_check_create(e, r);
    struct vhca_srq *srq;

    if (status != QHCA_OK) {
        return status;
    }
    srq = calloc(1, sizeof(*srq));
    if (!srq) {
        return QHCA_ERR_NO_RESOURCE;
    }
    status = build_srq(e, c, srq);
    if (status != QHCA_OK) {
        free(srq);
        return status;
    }
    vhca_srq_count_users(srq, 1);
    c->obj = srq->srqn;
    return QHCA_OK;
}

static void free_srq(struct qhca_engine *e, struct vhca_srq *srq)
{
    vhca_srq_count_users(srq, -1);
    vhca_async_del(&srq->async);
    vhca_table_del(&e->rqs->srq, srq->srqn);
    vhca_mem_release(e, &srq->wq.mem);
    free(srq);
}

int vhca_do_destroy_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_srq *srq = vhca_srq_get(e, le32toh(c->cmd->obj.obj));

    if (!srq) {
        return QHCA_ERR_OBJ;
    }
    if (srq->users) {
        return QHCA_ERR_BUSY;
    }
    if (srq->xrcd && !vhca_xrc_srq_gone(e, srq, &c->done)) {
        return VHCA_AGAIN;
    }
    free_srq(e, srq);
    return QHCA_OK;
}

void vhca_srq_free_all(struct qhca_engine *e)
{
    struct vhca_srq *srq;

    vhca_table_each(&e->rqs->srq, srq) {
        free_srq(e, srq);
    }
}

/* Arm the limit. */
int vhca_do_modify_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_srq *srq = vhca_srq_get(e, le32toh(c->cmd->modify_srq.srqn));
    uint32_t limit = le32toh(c->cmd->modify_srq.limit);

    if (!srq) {
        return QHCA_ERR_OBJ;
    }
    if (srq->failed) {
        return QHCA_ERR_STATE;
    }
    if (limit > vhca_wq_size(&srq->wq)) {
        return QHCA_ERR_PARAM;
    }
    srq->limit = limit;
    check_limit(e, srq);                                        /* G-006 */
    return QHCA_OK;
}

int vhca_do_query_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_srq *srq = vhca_srq_get(e, le32toh(c->cmd->obj.obj));
    struct qhca_srqc *out = (struct qhca_srqc *)(void *)c->mbox;

    if (!srq) {
        return QHCA_ERR_OBJ;
    }
    if (srq->failed || !look(e, srq, UINT32_MAX)) {
        return QHCA_ERR_STATE;
    }
    out->srqn = htole32(srq->srqn);
    out->pdn = htole32(srq->pd->number);
    out->uar = htole32(srq->uar);
    out->pi = htole32(srq->wq.pi);
    out->ci = htole32(srq->wq.ci);
    out->held = htole32(srq->held);
    out->limit = htole32(srq->limit);
    out->max_sge = htole32(srq->wq.max_sge);
    out->users = htole32(srq->users);
    out->log_size = srq->wq.log_size;
    out->log_stride = srq->wq.log_stride;
    out->flags = (srq->user.reserved ? QHCA_SRQ_RESERVED_LKEY : 0) |
                 (srq->wq.dbrec ? QHCA_SRQ_DBREC : 0);
    out->xrcdn = htole32(vhca_holder_number(srq->xrcd));
    out->cqn = htole32(srq->cq ? srq->cq->cqn : 0);
    return QHCA_OK;
}

/*
 * Copy the WQEs that no QP has taken to their place in the new ring, up to a
 * page at a time.
 */
static int copy_posted(struct qhca_engine *e, struct vhca_cmd_ctx *c,
                       const struct vhca_wq *from, const struct vhca_wq *to)
{
    uint8_t raw[QHCA_PAGE_SIZE];
    uint32_t i, n, max = (uint32_t)sizeof(raw) >> from->log_stride;

    for (; c->done != from->pi - c->from; c->done += n) {
        i = c->from + c->done;
        n = MIN_OF(from->pi - i, max);
        n = MIN_OF(n, vhca_wq_size(from) - (i & (vhca_wq_size(from) - 1)));
        n = MIN_OF(n, vhca_wq_size(to) - (i & (vhca_wq_size(to) - 1)));
        if (!vhca_may_go_on(e)) {
            return VHCA_AGAIN;
        }
        if (!vhca_mem_read(e, &from->mem, vhca_wq_offset(from, i), raw,
                           (size_t)n << from->log_stride) ||
            !vhca_mem_write(e, &to->mem, vhca_wq_offset(to, i), raw,
                            (size_t)n << from->log_stride)) {
            return QHCA_ERR_DMA;
        }
    }
    return QHCA_OK;
}

/* Check the parameters of RESIZE_SRQ (G-007); @limit: the one to be set. */
static int check_resize(const struct vhca_srq *srq,
                        const struct qhca_cmd_create_srq *r, uint32_t limit)
{
    if (r->flags & ~QHCA_SRQ_LIMIT || !le32toh(r->buf.num_blocks)) {
        return QHCA_ERR_PARAM;
    }
    if (r->log_size > VHCA_SRQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (limit > 1u << r->log_size) {
        return QHCA_ERR_PARAM;
    }
    if (srq->failed || available(srq) + srq->held > 1u << r->log_size) {
        return QHCA_ERR_STATE;
    }
    return QHCA_OK;
}

/*
 * Unlike in a resized CQ, indexes do not restart: the consumer knows how many
 * WRs it has posted, but not how many of them QPs have taken.
 */
int vhca_do_resize_srq(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_srq *r = &c->cmd->create_srq;
    struct vhca_srq *srq = vhca_srq_get(e, le32toh(r->srqn));
    struct vhca_wq wq;
    uint32_t limit;
    int status;

    if (!srq) {
        return QHCA_ERR_OBJ;
    }
    if (!c->again && !srq->failed && !vhca_rq_look(e, &srq->wq, srq->held)) {
        return QHCA_ERR_DMA;
    }
    limit = r->flags & QHCA_SRQ_LIMIT ? le32toh(r->limit) : srq->limit;
    status = check_resize(srq, r, limit);
    if (status != QHCA_OK) {
        return status;
    }
    if (!c->again) {
        c->from = srq->wq.ci;
        srq->moving = true;
    }
    if (!srq->moving) {
        return QHCA_ERR_STATE;          /* the copy lacks a WR given back */
    }
    wq = srq->wq;
    wq.log_size = r->log_size;
    status = vhca_import(e, &c->import[0], &r->buf, vhca_wq_bytes(&wq));
    wq.mem = c->import[0].mem;
    if (status == QHCA_OK) {
        status = copy_posted(e, c, &srq->wq, &wq);
    }
    if (status != QHCA_OK) {
        return status;
    }
    vhca_mem_release(e, &srq->wq.mem);
    wq.mem = vhca_import_take(&c->import[0]);
    srq->wq = wq;
    srq->limit = limit;
    check_limit(e, srq);
    return QHCA_OK;
}
