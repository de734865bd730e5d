/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the commands that create, query and destroy QPs, and attach them
 * to multicast groups; MODIFY_QP has a file of its own.
 */
#include <stdlib.h>

#include "verbs.h"

/* ---- create and destroy ---- */

/* Check the shape of a queue; one that the QP lacks has zero blocks. */
static int check_queue(const struct qhca_buf *buf, uint8_t log_size,
                       uint8_t log_stride, uint32_t min, uint32_t max,
                       uint32_t needed)
{
    if (!le32toh(buf->num_blocks)) {
        return QHCA_OK;
    }
    if (log_size > VHCA_WQ_LOG_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (log_stride > 31 || 1u << log_stride < min || 1u << log_stride > max ||
        1u << log_stride < needed) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* Whether the type has these parts, and not both RQ and SRQ. */
static bool parts_ok(const struct qhca_create_qp *c)
{
    uint8_t parts = vhca_qp_kinds[c->type].parts;

    return (parts & VHCA_HAS_SQ || !le32toh(c->sq.num_blocks)) &&
           (parts & VHCA_HAS_RQ || !le32toh(c->rq.num_blocks)) &&
           (!c->srqn || (parts & VHCA_MAY_SRQ && !le32toh(c->rq.num_blocks))) &&
           (le32toh(c->rq.num_blocks) || !(c->flags & QHCA_QP_FLAG_RQ_DBREC)) &&
           (c->type == QHCA_QPT_UD ||
            !(c->flags & QHCA_QP_FLAG_NO_OWN_MCAST)) &&
           (parts & VHCA_HAS_XRCD || !c->xrcdn);
}

int vhca_qp_check_create(const struct qhca_create_qp *c)
{
    uint32_t sge = le32toh(c->max_send_sge), rsge = le32toh(c->max_recv_sge);
    uint32_t inl = le32toh(c->max_inline);
    int ret;

    if (c->type >= VHCA_NUM_QP_TYPES || !vhca_qp_kinds[c->type].parts) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (c->flags & ~QHCA_QP_FLAG_MASK || !parts_ok(c)) {
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

static int import_queue(struct qhca_engine *e, struct vhca_import *im,
                        struct vhca_wq *wq, const struct qhca_buf *buf,
                        uint8_t log_size, uint8_t log_stride, uint32_t max_sge)
{
    wq->present = le32toh(buf->num_blocks) != 0;
    if (!wq->present) {
        return QHCA_OK;
    }
    wq->log_size = log_size;
    wq->log_stride = log_stride;
    wq->max_sge = max_sge;
    return vhca_import(e, im, buf, vhca_wq_bytes(wq));
}

/* Remove the QP from the table, and free it. */
static void free_qp(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (e->qps->gsi == qp) {
        e->qps->gsi = NULL;
    }
    vhca_table_del(&e->qps->table, qp->slot);
    vhca_async_del(&qp->async);
    vhca_qp_release(e, qp);
    free(qp);
}

void vhca_qp_release(struct qhca_engine *e, struct vhca_qp *qp)
{
    vhca_cntset_bind(qp, NULL);
    vhca_mem_release(e, &qp->sq.mem);
    vhca_mem_release(e, &qp->rq.mem);
}

/* A CQ in ERROR can only be destroyed (C-028). */
static bool cq_ok(const struct vhca_cq *cq)
{
    return !cq || cq->state == QHCA_CQ_OK;
}

int vhca_qp_find_objects(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct qhca_create_qp *c)
{
    uint8_t parts = vhca_qp_kinds[c->type].parts;
    bool found = true;

    qp->uar = le32toh(c->uar);
    if (parts & VHCA_HAS_SQ) {
        qp->pd = vhca_table_get(&e->memory->pd, le32toh(c->pdn));
        qp->scq = vhca_cq_get(e, le32toh(c->send_cqn));
        found = qp->pd && qp->scq;
    }
    if (parts & VHCA_HAS_RQ) {
        qp->rcq = vhca_cq_get(e, le32toh(c->recv_cqn));
        found = found && qp->rcq;
    }
    if (parts & VHCA_HAS_XRCD) {
        qp->xrcd = vhca_table_get(&e->rqs->xrcd, le32toh(c->xrcdn));
        found = qp->xrcd;
    }
    if (c->srqn) {
        qp->srq = vhca_srq_get(e, le32toh(c->srqn));
        found = found && qp->srq;
    }
    if (!found) {
        return QHCA_ERR_OBJ;
    }
    if (qp->srq && qp->srq->xrcd) {
        return QHCA_ERR_PARAM;          /* only packets name it */
    }
    return qp->uar < e->cfg.num_uars ? QHCA_OK : QHCA_ERR_PARAM;
}

/* Add @by to the user counts of the objects that the QP refers to. */
static void count_users(struct vhca_qp *qp, int by)
{
    if (qp->pd) {
        qp->pd->users += (uint32_t)by;
    }
    if (qp->scq) {
        qp->scq->users += (uint32_t)by;
    }
    if (qp->rcq) {
        qp->rcq->users += (uint32_t)by;
    }
    if (qp->xrcd) {
        qp->xrcd->users += (uint32_t)by;
    } else if (qp->srq) {
        qp->srq->users += (uint32_t)by;
    }
}

void vhca_qp_init(struct vhca_qp *qp)
{
    vhca_list_init(&qp->ready);
    vhca_list_init(&qp->tx_wait);
    vhca_list_init(&qp->user.windows);
    qp->req.timer.fn = vhca_requester_timeout;
    qp->gate.timer.fn = vhca_qp_gate_due;
}

void vhca_qp_enlist(struct qhca_engine *e, struct vhca_qp *qp)
{
    bool gsi = qp->type == QHCA_QPT_GSI;

    VHCA_ASSERT(qp->slot);
    qp->qpn = gsi ? QHCA_QPN_GSI : qp->slot;
    qp->user.pd = qp->xrcd && qp->srq ? qp->srq->pd : qp->pd;
    qp->user.qpn = qp->qpn;
    qp->user.reserved = qp->flags & QHCA_QP_FLAG_RESERVED_LKEY;
    vhca_async_init(&qp->async, qp->qpn);
    count_users(qp, 1);
    if (gsi) {
        e->qps->gsi = qp;
    }
}

static int build_qp(struct qhca_engine *e, struct vhca_cmd_ctx *ctx,
                    struct vhca_qp *qp, const struct qhca_create_qp *c)
{
    int ret = vhca_qp_find_objects(e, qp, c);

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
    qp->sq.mem = vhca_import_take(&ctx->import[0]);
    qp->rq.mem = vhca_import_take(&ctx->import[1]);
    qp->slot = vhca_table_add(&e->qps->table, qp);
    return qp->slot ? QHCA_OK : QHCA_ERR_NO_RESOURCE;
}

int vhca_do_create_qp(struct qhca_engine *e, struct vhca_cmd_ctx *ctx)
{
    struct qhca_create_qp c;
    struct vhca_qp *qp;
    int ret;

    memcpy(&c, ctx->mbox, sizeof(c));
    ret = vhca_qp_check_create(&c);
    if (ret) {
        return ret;
    }
    if (e->qps->table.used == e->qps->table.max ||
        (c.type == QHCA_QPT_GSI && e->qps->gsi)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp) {
        return QHCA_ERR_NO_RESOURCE;
    }
    vhca_qp_init(qp);
    qp->type = c.type;
    qp->flags = c.flags;
    qp->rq.dbrec = c.flags & QHCA_QP_FLAG_RQ_DBREC;
    qp->max_inline = le32toh(c.max_inline);
    ret = build_qp(e, ctx, qp, &c);
    if (ret) {
        vhca_qp_release(e, qp);
        free(qp);
        return ret;
    }
    vhca_qp_enlist(e, qp);
    ctx->obj = qp->qpn;
    return QHCA_OK;
}

int vhca_do_destroy_qp(struct qhca_engine *e, struct vhca_cmd_ctx *ctx)
{
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(ctx->cmd->obj.obj));
    int status;

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    if (qp->groups) {
        return QHCA_ERR_BUSY;           /* */
    }
    status = vhca_mw_release_user(e, &qp->user);
    if (status != QHCA_OK) {
        return status;
    }
    vhca_qp_clear(e, qp);
    count_users(qp, -1);
    free_qp(e, qp);
    return QHCA_OK;
}

static void verbs_reset(struct qhca_engine *e)
{
    struct vhca_qp *qp;

    vhca_table_each(&e->qps->table, qp) {
        vhca_qp_clear(e, qp);
        free_qp(e, qp);
    }
}

/* ---- query ---- */

int vhca_do_query_qp(struct qhca_engine *e, struct vhca_cmd_ctx *ctx)
{
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(ctx->cmd->obj.obj));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    if (qp->state != QHCA_QPS_RESET) {
        (void)vhca_rq_look(e, &qp->rq, 0);
    }

    struct qhca_qpc qpc = {
        .attr = qp->attr,
        .qpn = htole32(qp->qpn),
        .pdn = htole32(vhca_holder_number(qp->pd)),
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
        .sq_draining = vhca_qp_draining(qp),
        .retries_left = qp->req.retries,
        .rnr_retries_left = qp->req.rnr_retries,
        .srqn = htole32(qp->srq ? qp->srq->srqn : 0),
        .xrcdn = htole32(vhca_holder_number(qp->xrcd)),
    };

    qpc.attr.state = qpc.attr.cur_state = qp->state;
    memcpy(ctx->mbox, &qpc, sizeof(qpc));
    return QHCA_OK;
}

/* ---- multicast groups of UD QPs ---- */

/* Find the QP of the command, and check the command. */
static int parse(struct qhca_engine *e, const struct qhca_cmd_mcast *r,
                 struct vhca_qp **qp)
{
    *qp = vhca_qp_get(e, le32toh(r->qpn));
    if (!*qp) {
        return QHCA_ERR_OBJ;
    }
    if ((*qp)->type != QHCA_QPT_UD || !vhca_gid_is_multicast(r->gid)) {
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

/* Attaching again gives no second copy, but must be undone as often (G-018). */
int vhca_do_attach_mcast(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct vhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);
    bool first;

    if (status != QHCA_OK) {
        return status;
    }
    first = !vhca_group_has(e, gid, qp);
    if (!vhca_group_join(e, gid, qp)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp->groups += first;
    return QHCA_OK;
}

int vhca_do_detach_mcast(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const uint8_t *gid = c->cmd->mcast.gid;
    struct vhca_qp *qp;
    int status = parse(e, &c->cmd->mcast, &qp);

    if (status != QHCA_OK) {
        return status;
    }
    if (!vhca_group_has(e, gid, qp)) {
        return QHCA_ERR_STATE;
    }
    vhca_group_leave(e, gid, qp, qp->qpn);
    qp->groups -= !vhca_group_has(e, gid, qp);
    return QHCA_OK;
}

/* ---- the room ---- */

static unsigned verbs_holdings(const struct qhca_engine *e,
                               struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "send WRs of a QP", false, VHCA_INFLIGHT * sizeof(struct vhca_swr),
        e->qps->table.max, e->qps->num_swr
    };
    return 1;
}

const struct vhca_room vhca_qps_room = {
    .reset = verbs_reset, .holdings = verbs_holdings,
    .section = "transport", .version = 1,
    .walk = vhca_qps_walk,
};
