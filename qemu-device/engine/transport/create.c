/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the QP commands create, query and destroy; MODIFY_QP has a file
 * of its own.
 */
#include <stdlib.h>

#include "transport.h"

/* ---- create and destroy ---- */

/*
 * Shape of one queue; a queue the QP does not have is described by zero blocks.
 */
static int check_queue(const struct qhca_buf *buf, uint8_t log_size,
                       uint8_t log_stride, uint32_t min, uint32_t max,
                       uint32_t needed)
{
    if (!le32toh(buf->num_blocks)) {
        return QHCA_OK;
    }
    if (log_size > QHCA_WQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (log_stride > 31 || 1u << log_stride < min || 1u << log_stride > max ||
        1u << log_stride < needed) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* a queue the type does not have, or an SRQ and one more. */
static bool parts_ok(const struct qhca_create_qp *c)
{
    uint8_t parts = qhca_qp_kinds[c->type].parts;

    return (parts & QHCA_HAS_SQ || !le32toh(c->sq.num_blocks)) &&
           (parts & QHCA_HAS_RQ || !le32toh(c->rq.num_blocks)) &&
           (!c->srqn || (parts & QHCA_MAY_SRQ && !le32toh(c->rq.num_blocks))) &&
           (le32toh(c->rq.num_blocks) || !(c->flags & QHCA_QP_FLAG_RQ_DBREC)) &&
           (parts & QHCA_HAS_XRCD || !c->xrcdn);
}

int qhca_qp_check_create(const struct qhca_create_qp *c)
{
    uint32_t sge = le32toh(c->max_send_sge), rsge = le32toh(c->max_recv_sge);
    uint32_t inl = le32toh(c->max_inline);
    int ret;

    if (c->type >= QHCA_NUM_QP_TYPES || !qhca_qp_kinds[c->type].parts) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (c->flags & ~(QHCA_QP_FLAG_SIGNAL_ALL | QHCA_QP_FLAG_RESERVED_LKEY |
                     QHCA_QP_FLAG_RQ_DBREC) ||
        !parts_ok(c)) {
        return QHCA_ERR_PARAM;
    }
    if (sge > QHCA_MAX_SEND_SGE || rsge > QHCA_MAX_RECV_SGE ||
        inl > QHCA_MAX_INLINE) {
        return QHCA_ERR_LIMIT;
    }
    ret = check_queue(&c->sq, c->sq_log_size, c->sq_log_stride,
                      QHCA_SQ_STRIDE_MIN, QHCA_SQ_STRIDE_MAX,
                      (uint32_t)sizeof(struct qhca_sq_wqe) +
                      MAX_OF(sge * (uint32_t)sizeof(struct qhca_sge), inl));
    if (ret) {
        return ret;
    }
    return check_queue(&c->rq, c->rq_log_size, c->rq_log_stride,
                       QHCA_RQ_STRIDE_MIN, QHCA_RQ_STRIDE_MAX,
                       (uint32_t)sizeof(struct qhca_rq_wqe) +
                       rsge * (uint32_t)sizeof(struct qhca_sge));
}

static int import_queue(struct qhca_engine *e, struct qhca_import *im,
                        struct qhca_wq *wq, const struct qhca_buf *buf,
                        uint8_t log_size, uint8_t log_stride, uint32_t max_sge)
{
    wq->present = le32toh(buf->num_blocks) != 0;
    if (!wq->present) {
        return QHCA_OK;
    }
    wq->log_size = log_size;
    wq->log_stride = log_stride;
    wq->max_sge = max_sge;
    return qhca_import(e, im, buf, qhca_wq_bytes(wq));
}

/* Removes the QP from the table, so that nobody finds it. */
static void unlist(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (e->qps->gsi == qp) {
        e->qps->gsi = NULL;
    }
    qhca_table_del(&e->qps->table, qp->slot);
    qhca_async_del(&qp->async);
}

void qhca_qp_free(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_cntset_bind(qp, NULL);
    qhca_mem_release(e, &qp->sq.mem);
    qhca_mem_release(e, &qp->rq.mem);
    free(qp);
}

/* A CQ in ERROR is usable only for destroy (C-028). */
static bool cq_ok(const struct qhca_cq *cq)
{
    return !cq || cq->state == QHCA_CQ_OK;
}

int qhca_qp_find_objects(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct qhca_create_qp *c)
{
    uint8_t parts = qhca_qp_kinds[c->type].parts;
    bool found = true;

    qp->uar = le32toh(c->uar);
    if (parts & QHCA_HAS_SQ) {
        qp->pd = qhca_table_get(&e->memory->pd, le32toh(c->pdn));
        qp->scq = qhca_cq_get(e, le32toh(c->send_cqn));
        found = qp->pd && qp->scq;
    }
    if (parts & QHCA_HAS_RQ) {
        qp->rcq = qhca_cq_get(e, le32toh(c->recv_cqn));
        found = found && qp->rcq;
    }
    if (parts & QHCA_HAS_XRCD) {
        qp->xrcd = qhca_xrcd_get(e, le32toh(c->xrcdn));
        found = qp->xrcd;
    }
    if (c->srqn) {
        qp->srq = qhca_srq_get(e, le32toh(c->srqn));
        found = found && qp->srq;
    }
    if (!found) {
        return QHCA_ERR_OBJ;
    }
    if (qp->srq && qp->srq->xrcd) {
        return QHCA_ERR_PARAM;          /* named by packets only */
    }
    return qp->uar < e->cfg.num_uars ? QHCA_OK : QHCA_ERR_PARAM;
}

/* Adds @by to the user counts of the objects the QP refers to. */
static void count_users(struct qhca_qp *qp, int by)
{
    if (qp->pd) {
        qp->pd->base.users += (uint32_t)by;
    }
    if (qp->scq) {
        qp->scq->users += (uint32_t)by;
    }
    if (qp->rcq) {
        qp->rcq->users += (uint32_t)by;
    }
    if (qp->xrcd) {
        qp->xrcd->base.users += (uint32_t)by;
    } else if (qp->srq) {
        qp->srq->users += (uint32_t)by;
    }
}

struct qhca_qp *qhca_qp_alloc(void)
{
    struct qhca_qp *qp = calloc(1, sizeof(*qp));

    if (qp) {
        qhca_list_init(&qp->ready);
        qhca_list_init(&qp->tx_wait);
        qhca_list_init(&qp->user.windows);
        qp->req.timer.fn = qhca_requester_timeout;
    }
    return qp;
}

void qhca_qp_enlist(struct qhca_engine *e, struct qhca_qp *qp)
{
    bool gsi = qp->type == QHCA_QPT_GSI;

    qp->qpn = gsi ? QHCA_QPN_GSI : qp->slot;
    qp->user.pd = qp->xrcd && qp->srq ? qp->srq->pd : qp->pd;
    qp->user.qpn = qp->qpn;
    qp->user.reserved = qp->flags & QHCA_QP_FLAG_RESERVED_LKEY;
    qhca_async_init(&qp->async, qp->qpn);
    count_users(qp, 1);
    if (gsi) {
        e->qps->gsi = qp;
    }
}

static int build_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx,
                    struct qhca_qp *qp, const struct qhca_create_qp *c)
{
    int ret = qhca_qp_find_objects(e, qp, c);

    if (!ret && (!cq_ok(qp->scq) || !cq_ok(qp->rcq))) {
        ret = QHCA_ERR_STATE;
    }
    if (!ret) {
        ret = import_queue(e, &ctx->import[0], &qp->sq, &c->sq, c->sq_log_size,
                           c->sq_log_stride, le32toh(c->max_send_sge));
    }
    if (!ret) {
        ret = import_queue(e, &ctx->import[1], &qp->rq, &c->rq, c->rq_log_size,
                           c->rq_log_stride, le32toh(c->max_recv_sge));
    }
    if (ret) {
        return ret;
    }
    qp->sq.mem = qhca_import_take(&ctx->import[0]);
    qp->rq.mem = qhca_import_take(&ctx->import[1]);
    qp->slot = qhca_table_add(&e->qps->table, qp);
    return qp->slot ? QHCA_OK : QHCA_ERR_NO_RESOURCE;
}

static int create_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_create_qp c;
    struct qhca_qp *qp;
    int ret;

    memcpy(&c, ctx->mbox, sizeof(c));
    ret = qhca_qp_check_create(&c);
    if (ret) {
        return ret;
    }
    if (e->qps->table.used == e->qps->table.max ||
        (c.type == QHCA_QPT_GSI && e->qps->gsi)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp = qhca_qp_alloc();
    if (!qp) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp->type = c.type;
    qp->flags = c.flags;
    qp->rq.dbrec = c.flags & QHCA_QP_FLAG_RQ_DBREC;
    qp->max_inline = le32toh(c.max_inline);
    ret = build_qp(e, ctx, qp, &c);
    if (ret) {
        qhca_qp_free(e, qp);
        return ret;
    }
    qhca_qp_enlist(e, qp);
    ctx->obj = qp->qpn;
    return QHCA_OK;
}

static int destroy_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(ctx->cmd->obj.obj));
    int status;

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    if (qp->groups) {
        return QHCA_ERR_BUSY;           /* */
    }
    status = qhca_mw_release_user(e, &qp->user);
    if (status != QHCA_OK) {
        return status;
    }
    qhca_qp_clear(e, qp);
    count_users(qp, -1);
    unlist(e, qp);
    qhca_qp_free(e, qp);
    return QHCA_OK;
}

static void reset(struct qhca_engine *e)
{
    struct qhca_qp *qp;

    qhca_table_each(&e->qps->table, qp) {
        qhca_qp_clear(e, qp);
        unlist(e, qp);
        qhca_qp_free(e, qp);
    }
}

/* ---- query ---- */

static int query_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(ctx->cmd->obj.obj));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    if (qp->state != QHCA_QPS_RESET) {
        (void)qhca_rq_look(e, &qp->rq, 0);
    }

    struct qhca_qpc qpc = {
        .attr = qp->attr,
        .qpn = htole32(qp->qpn),
        .pdn = htole32(qp->pd ? qp->pd->base.number : 0),
        .uar = htole32(qp->uar),
        .send_cqn = htole32(qp->scq ? qp->scq->cqn : 0),
        .recv_cqn = htole32(qp->rcq ? qp->rcq->cqn : 0),
        .sq_pi = htole32(qp->sq.pi),
        .sq_next = htole32(qp->sq.next),
        .sq_ci = htole32(qp->sq.ci),
        .rq_pi = htole32(qp->rq.pi),
        .rq_ci = htole32(qp->rq.ci),
        .next_psn = htole32(qp->req.next_psn),
        .una_psn = htole32(qp->req.una_psn),
        .epsn = htole32(qp->rsp.epsn),
        .msn = htole32(qp->rsp.msn),
        .type = qp->type,
        .flags = qp->flags,
        .sq_draining = qhca_qp_draining(qp),
        .retries_left = qp->req.retries,
        .rnr_retries_left = qp->req.rnr_retries,
        .srqn = htole32(qp->srq ? qp->srq->srqn : 0),
        .xrcdn = htole32(qp->xrcd ? qp->xrcd->base.number : 0),
    };

    qpc.attr.state = qpc.attr.cur_state = qp->state;
    memcpy(ctx->mbox, &qpc, sizeof(qpc));
    return QHCA_OK;
}

const struct qhca_command qhca_qp_commands[] = {
    QHCA_COMMAND_IN(CREATE_QP, create_qp, struct qhca_create_qp),
    QHCA_COMMAND_OUT(QUERY_QP, query_qp, struct qhca_qpc),
    QHCA_COMMAND(DESTROY_QP, destroy_qp),
    { 0 }
};

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "send WRs of a QP", false, QHCA_INFLIGHT * sizeof(struct qhca_swr),
        e->qps->table.max, e->qps->num_swr
    };
    return 1;
}

const struct qhca_room qhca_transport_room = {
    .reset = reset,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        qhca_qp_commands, qhca_modify_commands, qhca_mcast_commands, NULL
    },
    .section = "transport",
    .version = 1,
    .oldest = 1,
    .walk = qhca_transport_walk,
};
