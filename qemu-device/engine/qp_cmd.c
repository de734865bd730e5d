/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the QP commands: create, modify, query, destroy.
 */
#include <stdlib.h>

#include "qp.h"

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

static int check_create(const struct qhca_create_qp *c)
{
    uint32_t sge = le32toh(c->max_send_sge), rsge = le32toh(c->max_recv_sge);
    uint32_t inl = le32toh(c->max_inline);
    int ret;

    if (c->type != QHCA_QPT_RC) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (c->flags & ~(QHCA_QP_FLAG_SIGNAL_ALL | QHCA_QP_FLAG_RESERVED_LKEY)) {
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

static int import_queue(struct qhca_engine *e, struct qhca_wq *wq,
                        const struct qhca_buf *buf, uint8_t log_size,
                        uint8_t log_stride, uint32_t max_sge)
{
    wq->present = le32toh(buf->num_blocks) != 0;
    if (!wq->present) {
        return QHCA_OK;
    }
    wq->log_size = log_size;
    wq->log_stride = log_stride;
    wq->max_sge = max_sge;
    return qhca_mem_import(e, &wq->mem, buf, 1ull << (log_size + log_stride));
}

static void free_qp(struct qhca_engine *e, struct qhca_qp *qp)
{
    qhca_timer_unreserve(e, 1);
    qhca_mem_release(e, &qp->sq.mem);
    qhca_mem_release(e, &qp->rq.mem);
    free(qp->req.swr);
    free(qp);
}

/* Finds the objects a QP refers to; the counts are taken when all is well. */
static int find_objects(struct qhca_engine *e, struct qhca_qp *qp,
                        const struct qhca_create_qp *c)
{
    qp->pd = qhca_table_get(&e->pd, le32toh(c->pdn));
    qp->scq = qhca_cq_get(e, le32toh(c->send_cqn));
    qp->rcq = qhca_cq_get(e, le32toh(c->recv_cqn));
    qp->uar = le32toh(c->uar);
    if (!qp->pd || !qp->scq || !qp->rcq) {
        return QHCA_ERR_OBJ;
    }
    if (qp->scq->state != QHCA_CQ_OK || qp->rcq->state != QHCA_CQ_OK) {
        return QHCA_ERR_STATE;          /* usable only for destroy (C-028) */
    }
    return qp->uar < e->cfg.num_uars ? QHCA_OK : QHCA_ERR_PARAM;
}

static int build_qp(struct qhca_engine *e, struct qhca_qp *qp,
                    const struct qhca_create_qp *c)
{
    int ret = find_objects(e, qp, c);

    if (!ret) {
        ret = import_queue(e, &qp->sq, &c->sq, c->sq_log_size,
                           c->sq_log_stride, le32toh(c->max_send_sge));
    }
    if (!ret) {
        ret = import_queue(e, &qp->rq, &c->rq, c->rq_log_size,
                           c->rq_log_stride, le32toh(c->max_recv_sge));
    }
    if (ret) {
        return ret;
    }
    if (qp->sq.present) {
        qp->req.swr = calloc(QHCA_INFLIGHT, sizeof(*qp->req.swr));
        if (!qp->req.swr) {
            return QHCA_ERR_NO_RESOURCE;
        }
    }
    qp->qpn = qhca_table_add(&e->qp, qp);
    return qp->qpn ? QHCA_OK : QHCA_ERR_NO_RESOURCE;
}

int qhca_cmd_create_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_create_qp c;
    struct qhca_qp *qp;
    int ret;

    memcpy(&c, ctx->mbox, sizeof(c));
    ret = check_create(&c);
    if (ret) {
        return ret;
    }
    if (e->qp.used == e->qp.size || !qhca_timer_reserve(e, 1)) {
        return QHCA_ERR_NO_RESOURCE;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp) {
        qhca_timer_unreserve(e, 1);
        return QHCA_ERR_NO_RESOURCE;
    }
    qhca_list_init(&qp->ready);
    qp->type = c.type;
    qp->flags = c.flags;
    qp->max_inline = le32toh(c.max_inline);
    qp->req.timer.fn = qhca_requester_timeout;
    ret = build_qp(e, qp, &c);
    if (ret) {
        free_qp(e, qp);
        return ret;
    }
    qp->user.pd = qp->pd;
    qp->user.reserved = qp->flags & QHCA_QP_FLAG_RESERVED_LKEY;
    qp->pd->users++;
    qp->scq->users++;
    qp->rcq->users++;
    ctx->obj = qp->qpn;
    return QHCA_OK;
}

int qhca_cmd_destroy_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(ctx->cmd->obj.obj));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    qhca_qp_clear(e, qp);
    qp->pd->users--;
    qp->scq->users--;
    qp->rcq->users--;
    qhca_table_del(&e->qp, qp->qpn);
    free_qp(e, qp);
    return QHCA_OK;
}

void qhca_qp_free_all(struct qhca_engine *e)
{
    for (uint32_t i = 0; i < e->qp.size; i++) {
        struct qhca_qp *qp = qhca_table_at(&e->qp, i);

        if (qp) {
            qhca_qp_clear(e, qp);
            qhca_table_del(&e->qp, qp->qpn);
            free_qp(e, qp);
        }
    }
}

/* ---- modify ---- */

/* Where each attribute stands, and the largest value of the one-byte ones. */
#define ATTR(bit, field, max) \
    { QHCA_QP_##bit, offsetof(struct qhca_qp_attr, field), \
      sizeof(((struct qhca_qp_attr *)0)->field), max }

static const struct {
    uint32_t bit;
    size_t off, len;
    uint8_t max;
} attrs[] = {
    ATTR(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, 1),
    ATTR(ACCESS_FLAGS, access, 0),
    ATTR(PKEY_INDEX, pkey_index, 0),
    ATTR(PORT, port, 1),
    ATTR(QKEY, qkey, 0),
    ATTR(AV, av, 0),
    ATTR(PATH_MTU, path_mtu, 5),
    ATTR(TIMEOUT, timeout, 31),
    ATTR(RETRY_CNT, retry_cnt, 7),
    ATTR(RNR_RETRY, rnr_retry, 7),
    ATTR(RQ_PSN, rq_psn, 0),
    ATTR(SQ_PSN, sq_psn, 0),
    ATTR(MAX_QP_RD_ATOMIC, max_rd_atomic, QHCA_MAX_RD_ATOMIC),
    ATTR(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, QHCA_MAX_RD_ATOMIC),
    ATTR(MIN_RNR_TIMER, min_rnr_timer, 31),
    ATTR(DEST_QPN, dest_qpn, 0),
};

#define ATTRS_KNOWN 0x0013bfffu     /* the bits above, STATE and CUR_STATE */

/* A GID of this port to send from, and a peer of the same family. */
static bool av_ok(const struct qhca_engine *e, const struct qhca_av *av)
{
    static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };
    const struct qhca_gid *local;

    if (av->port != 1 || av->sgid_index >= QHCA_MAX_GID) {
        return false;
    }
    local = &e->port.gid[av->sgid_index];
    return local->valid &&
           local->ipv4 == !memcmp(av->dgid, v4_prefix, sizeof(v4_prefix));
}

/* Value checks of. */
static bool values_ok(const struct qhca_engine *e, const struct qhca_qp_attr *a,
                      uint32_t mask)
{
    for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
        if ((mask & attrs[i].bit) && attrs[i].len == 1 &&
            ((const uint8_t *)a)[attrs[i].off] > attrs[i].max) {
            return false;
        }
    }
    if (((mask & QHCA_QP_PORT) && a->port != 1) ||
        ((mask & QHCA_QP_PATH_MTU) && !a->path_mtu) ||
        ((mask & QHCA_QP_PKEY_INDEX) && le16toh(a->pkey_index)) ||
        ((mask & QHCA_QP_DEST_QPN) && le32toh(a->dest_qpn) > QHCA_OBJ_MASK) ||
        ((mask & QHCA_QP_ACCESS_FLAGS) &&
         (le16toh(a->access) & ~QHCA_ACCESS_MASK))) {
        return false;
    }
    return !(mask & QHCA_QP_AV) || av_ok(e, &a->av);
}

/* What entering a state sets going, after the attributes have been taken. */
static void enter_state(struct qhca_engine *e, struct qhca_qp *qp, uint8_t from,
                        uint8_t to, uint32_t mask)
{
    qp->state = to;
    if (from != to) {
        qhca_trace(e, QHCA_TRACE_QP_STATE, qp->qpn, from, to);
    }
    if (to == QHCA_QPS_RTR) {
        qp->rsp.epsn = le32toh(qp->attr.rq_psn) & PSN_MASK;
    }
    if (from == QHCA_QPS_RTR && to == QHCA_QPS_RTS) {
        uint32_t psn = le32toh(qp->attr.sq_psn) & PSN_MASK;

        qp->req.next_psn = qp->req.snd_psn = psn;
        qp->req.max_psn = qp->req.una_psn = psn;
    }
    if (to == QHCA_QPS_RTS) {
        qp->req.retries = qp->attr.retry_cnt;
        qp->req.rnr_retries = qp->attr.rnr_retry;
    }
    if (from == QHCA_QPS_RTS && to == QHCA_QPS_SQD) {
        qhca_requester_hold(qp);
        qp->sqd_notify = (mask & QHCA_QP_EN_SQD_ASYNC_NOTIFY) &&
                         qp->attr.en_sqd_async_notify;
        qhca_qp_check_drained(e, qp);
    }
    qhca_qp_schedule(e, qp);
}

static void take_attrs(struct qhca_qp *qp, const struct qhca_qp_attr *a,
                       uint32_t mask)
{
    for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
        if (mask & attrs[i].bit) {
            memcpy((uint8_t *)&qp->attr + attrs[i].off,
                   (const uint8_t *)a + attrs[i].off, attrs[i].len);
        }
    }
    qp->attr.rq_psn &= htole32(PSN_MASK);       /* */
    qp->attr.sq_psn &= htole32(PSN_MASK);
    if (mask & QHCA_QP_PATH_MTU) {
        qp->mtu = 128u << a->path_mtu;
    }
}

int qhca_cmd_modify_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(ctx->cmd->modify_qp.qpn));
    uint32_t mask = le32toh(ctx->cmd->modify_qp.attr_mask);
    struct qhca_qp_attr a;

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    memcpy(&a, ctx->mbox, sizeof(a));

    uint8_t from = qp->state;
    uint8_t to = mask & QHCA_QP_STATE ? a.state : from;

    if ((mask & ~ATTRS_KNOWN) || to > QHCA_QPS_ERR || !values_ok(e, &a, mask)) {
        return QHCA_ERR_PARAM;
    }
    if (((mask & QHCA_QP_CUR_STATE) && a.cur_state != from) ||
        !qhca_qp_transition_ok(qp->type, from, to, mask)) {
        return QHCA_ERR_STATE;
    }
    if (to == QHCA_QPS_RESET) {
        qhca_trace(e, QHCA_TRACE_QP_STATE, qp->qpn, from, to);
        qp->state = to;
        qhca_qp_clear(e, qp);
        return QHCA_OK;
    }
    if (to == QHCA_QPS_ERR) {
        qhca_qp_error(e, qp, 0);
        return QHCA_OK;
    }
    if (qhca_qp_draining(qp)) {                 /* */
        return QHCA_ERR_STATE;
    }
    take_attrs(qp, &a, mask);
    enter_state(e, qp, from, to, mask);
    return QHCA_OK;
}

/* ---- query ---- */

int qhca_cmd_query_qp(struct qhca_engine *e, struct qhca_cmd_ctx *ctx)
{
    struct qhca_qp *qp = qhca_qp_get(e, le32toh(ctx->cmd->obj.obj));

    if (!qp) {
        return QHCA_ERR_OBJ;
    }

    struct qhca_qpc qpc = {
        .attr = qp->attr,
        .qpn = htole32(qp->qpn),
        .pdn = htole32(qp->pd->pdn),
        .uar = htole32(qp->uar),
        .send_cqn = htole32(qp->scq->cqn),
        .recv_cqn = htole32(qp->rcq->cqn),
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
    };

    qpc.attr.state = qpc.attr.cur_state = qp->state;
    memcpy(ctx->mbox, &qpc, sizeof(qpc));
    return QHCA_OK;
}
