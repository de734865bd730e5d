/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: MODIFY_QP: which attributes a transition takes, which values
 * they can have, and what a new state starts. The state machine is a table
 * (conformance A.2 and A.3, after IBTA 11.2.5.2). The driver checks the same
 * with ib_core; the device checks again, because it trusts no driver.
 */
#include "verbs.h"

/* ---- transitions ---- */

#define ST(s)       (1u << QHCA_QPS_##s)
#define TY(t)       VHCA_TYPE(t)
#define XRC         (TY(XRC_INI) | TY(XRC_TGT))
#define CONNECTED   (TY(RC) | TY(UC) | XRC)
#define DATAGRAM    (TY(UD) | TY(GSI))
#define ANY_TYPE    (CONNECTED | DATAGRAM | TY(RAW))
#define ANY_STATE   0x7fu

#define RATE        QHCA_QP_RATE_LIMIT
#define PORT_PKEY   (QHCA_QP_PORT | QHCA_QP_PKEY_INDEX)
#define RTR_COMMON  (QHCA_QP_AV | QHCA_QP_PATH_MTU | QHCA_QP_DEST_QPN | \
                     QHCA_QP_RQ_PSN)
#define RTR_OPT     (QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX)
#define RTS_INITIATOR (QHCA_QP_TIMEOUT | QHCA_QP_RETRY_CNT | \
                       QHCA_QP_RNR_RETRY | QHCA_QP_SQ_PSN | \
                       QHCA_QP_MAX_QP_RD_ATOMIC)
#define RUN_OPT     (QHCA_QP_CUR_STATE | QHCA_QP_ACCESS_FLAGS | RATE)
#define SQD_COMMON  (QHCA_QP_PORT | QHCA_QP_AV | QHCA_QP_TIMEOUT | \
                     QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX)
#define SQD_INITIATOR (QHCA_QP_RETRY_CNT | QHCA_QP_RNR_RETRY | \
                       QHCA_QP_MAX_QP_RD_ATOMIC)
#define SQD_TARGET  (QHCA_QP_MAX_DEST_RD_ATOMIC | QHCA_QP_MIN_RNR_TIMER)

/* STATE itself is implied; a pair of states that no row names is illegal. */
static const struct {
    uint8_t from, to;           /* sets of states */
    uint16_t types;             /* set of QP types */
    uint32_t required, optional;
} transitions[] = {
    { ANY_STATE, ST(RESET), ANY_TYPE, 0, 0 },
    { ANY_STATE, ST(ERR), ANY_TYPE, 0, 0 },
    { ST(RESET), ST(INIT), CONNECTED, PORT_PKEY | QHCA_QP_ACCESS_FLAGS, 0 },
    { ST(RESET), ST(INIT), TY(UD), PORT_PKEY | QHCA_QP_QKEY, 0 },
    { ST(RESET), ST(INIT), TY(GSI), QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY, 0 },
    { ST(RESET), ST(INIT), TY(RAW), QHCA_QP_PORT, 0 },
    { ST(INIT), ST(INIT) | ST(RTR), TY(RAW), 0, 0 },
    { ST(RTR), ST(RTS), TY(RAW), 0, QHCA_QP_CUR_STATE | RATE },
    { ST(RTS) | ST(SQD) | ST(SQE), ST(RTS), TY(RAW), 0,
      QHCA_QP_CUR_STATE | RATE },
    { ST(SQD), ST(SQD), TY(RAW), 0, 0 },
    { ST(INIT), ST(INIT), CONNECTED, 0, PORT_PKEY | QHCA_QP_ACCESS_FLAGS },
    { ST(INIT), ST(INIT), TY(UD), 0, PORT_PKEY | QHCA_QP_QKEY },
    { ST(INIT), ST(INIT), TY(GSI), 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
    { ST(INIT), ST(RTR), TY(RC) | TY(XRC_TGT),
      RTR_COMMON | QHCA_QP_MAX_DEST_RD_ATOMIC | QHCA_QP_MIN_RNR_TIMER,
      RTR_OPT },
    { ST(INIT), ST(RTR), TY(UC) | TY(XRC_INI), RTR_COMMON, RTR_OPT },
    { ST(INIT), ST(RTR), DATAGRAM, 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
    { ST(RTR), ST(RTS), TY(RC), RTS_INITIATOR,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTR), ST(RTS), TY(XRC_INI), RTS_INITIATOR, RUN_OPT },
    { ST(RTR), ST(RTS), TY(XRC_TGT), QHCA_QP_TIMEOUT | QHCA_QP_SQ_PSN,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTR), ST(RTS), TY(UC), QHCA_QP_SQ_PSN, RUN_OPT },
    { ST(RTR), ST(RTS), DATAGRAM, QHCA_QP_SQ_PSN,
      QHCA_QP_CUR_STATE | QHCA_QP_QKEY | RATE },
    { ST(RTS) | ST(SQD), ST(RTS), TY(RC) | TY(XRC_TGT), 0,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTS) | ST(SQD), ST(RTS), TY(UC) | TY(XRC_INI), 0, RUN_OPT },
    { ST(RTS) | ST(SQD) | ST(SQE), ST(RTS), DATAGRAM, 0,
      QHCA_QP_CUR_STATE | QHCA_QP_QKEY | RATE },
    { ST(SQE), ST(RTS), TY(UC), 0, RUN_OPT },
    { ST(RTS), ST(SQD), ANY_TYPE, 0, QHCA_QP_EN_SQD_ASYNC_NOTIFY },
    { ST(SQD), ST(SQD), TY(RC), 0, SQD_COMMON | SQD_INITIATOR | SQD_TARGET },
    { ST(SQD), ST(SQD), TY(XRC_INI), 0, SQD_COMMON | SQD_INITIATOR },
    { ST(SQD), ST(SQD), TY(XRC_TGT), 0, SQD_COMMON | SQD_TARGET },
    { ST(SQD), ST(SQD), TY(UC), 0,
      QHCA_QP_AV | QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX },
    { ST(SQD), ST(SQD), DATAGRAM, 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
};

bool vhca_qp_transition_ok(uint8_t type, uint8_t from, uint8_t to,
                           uint32_t mask)
{
    mask &= ~(uint32_t)QHCA_QP_STATE;
    for (unsigned i = 0; i < ARRAY_SIZE(transitions); i++) {
        if ((transitions[i].from & 1u << from) &&
            (transitions[i].to & 1u << to) &&
            (transitions[i].types & 1u << type)) {
            uint32_t required = transitions[i].required;

            return (mask & required) == required &&
                   !(mask & ~(required | transitions[i].optional));
        }
    }
    return false;
}

/* Return the attributes set before @state; ERR requires none. */
static uint32_t required_before(uint8_t type, uint8_t state)
{
    unsigned last = state == QHCA_QPS_ERR ? QHCA_QPS_RESET :
                    MIN_OF(state, (uint8_t)QHCA_QPS_RTS);
    uint32_t required = 0;

    for (unsigned from = QHCA_QPS_RESET; from < last; from++) {
        for (unsigned i = 0; i < ARRAY_SIZE(transitions); i++) {
            if ((transitions[i].from & 1u << from) &&
                (transitions[i].to & 1u << (from + 1)) &&
                (transitions[i].types & 1u << type)) {
                required |= transitions[i].required;
            }
        }
    }
    return required;
}

/* ---- values ---- */

/* Position of each attribute, and the largest value of one-byte ones. */
#define ATTR(bit, field, max) \
    { QHCA_QP_##bit, offsetof(struct qhca_qp_attr, field), \
      sizeof_field(struct qhca_qp_attr, field), max }

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
    ATTR(MAX_QP_RD_ATOMIC, max_rd_atomic, VHCA_MAX_RD_ATOMIC),
    ATTR(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, VHCA_MAX_RD_ATOMIC),
    ATTR(MIN_RNR_TIMER, min_rnr_timer, 31),
    ATTR(DEST_QPN, dest_qpn, 0),
    ATTR(RATE_LIMIT, rate_limit, 0),
};

#define ATTRS_KNOWN 0x0213bfffu     /* the bits above, STATE and CUR_STATE */

/* Whether the GID is valid, and the peer's is of the same family. */
static bool av_ok(const struct qhca_engine *e, const struct qhca_av *av)
{
    const struct vhca_gid *local = &e->port->gid[av->sgid_index];

    return local->valid &&
           local->ipv4 == vhca_gid_is_ipv4(av->dgid);
}

/* Check the values, except for the GID: see av_ok(). */
static bool values_ok(const struct qhca_qp_attr *a, uint32_t mask)
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
         (le16toh(a->access) &
          ~(QHCA_ACCESS_MASK | QHCA_ACCESS_FLUSH_PERSISTENT)))) {
        return false;
    }
    return !(mask & QHCA_QP_AV) ||
           (a->av.port == 1 && a->av.sgid_index < VHCA_MAX_GID);
}

bool vhca_qp_attr_ok(const struct qhca_qp_attr *a, uint8_t type, uint8_t state)
{
    uint32_t mask = required_before(type, state);

    for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
        if (!vhca_is_zero((const uint8_t *)a + attrs[i].off, attrs[i].len)) {
            mask |= attrs[i].bit;
        }
    }
    return values_ok(a, mask) && le32toh(a->rq_psn) <= PSN_MASK &&
           le32toh(a->sq_psn) <= PSN_MASK;
}

/* Start what a new state implies, after the attributes have been set. */
static void enter_state(struct qhca_engine *e, struct vhca_qp *qp, uint8_t from,
                        uint8_t to, uint32_t mask)
{
    qp->state = to;
    if (from != to) {
        vhca_trace_qp_state(e, qp->qpn, from, to);
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
    if (from == QHCA_QPS_SQE) {
        /* Flush the WRs that have been posted already. */
        qp->req.flush_to = qp->sq.pi;
        qp->req.flushing = qp->sq.pi != qp->sq.ci;
    }
    if (from == QHCA_QPS_RTS && to == QHCA_QPS_SQD) {
        vhca_requester_hold(qp);
        qp->sqd_notify = (mask & QHCA_QP_EN_SQD_ASYNC_NOTIFY) &&
                         qp->attr.en_sqd_async_notify;
        vhca_qp_check_drained(e, qp);
    }
    vhca_qp_schedule(e, qp);
}

static void take_attrs(struct qhca_engine *e, struct vhca_qp *qp,
                       const struct qhca_qp_attr *a, uint32_t mask)
{
    unsigned limit = qp->attr.max_dest_rd_atomic;

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
    if (mask & QHCA_QP_MAX_DEST_RD_ATOMIC) {
        vhca_responder_limit(qp, limit);
    }
    if (mask & QHCA_QP_RATE_LIMIT) {
        vhca_gate_reset(e, &qp->gate);
        qp->rated = true;
    }
}

void vhca_qp_clear(struct qhca_engine *e, struct vhca_qp *qp)
{
    vhca_timer_cancel(e, &qp->req.timer);
    vhca_timer_cancel(e, &qp->gate.timer);
    vhca_list_del(&qp->ready);
    vhca_list_del(&qp->tx_wait);
    vhca_recv_give_back(e, qp);                                 /* G-008 */
    vhca_requester_forget(e, qp);
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->rsp, 0, sizeof(qp->rsp));
    memset(qp->fault, 0, sizeof(qp->fault));
    memset(&qp->gate, 0, sizeof(qp->gate));
    qp->rated = false;
    qp->req.timer.fn = vhca_requester_timeout;
    qp->gate.timer.fn = vhca_qp_gate_due;
    qp->sq.pi = qp->sq.next = qp->sq.ci = 0;
    qp->rq.pi = qp->rq.ci = 0;
    qp->rq.rings = false;
    qp->sqd_notify = qp->last_wqe_owed = false;
    qp->mtu = 0;
    if (qp->xrcd) {
        qp->srq = NULL;
        qp->user.pd = NULL;
    }
    memset(&qp->attr, 0, sizeof(qp->attr));
}

void vhca_qp_cq_failed(struct qhca_engine *e)
{
    struct vhca_cq *cq = vhca_cq_failed(e);
    const struct vhca_table *t = &e->qps->table;
    struct vhca_qp *qp;

    while ((qp = vhca_table_scan(e, t, &cq->qps_told)) != NULL) {
        if (qp->scq != cq && qp->rcq != cq) {
            continue;
        }
        if (qp->state == QHCA_QPS_ERR) {
            /* Its flush completions are lost: say it again. */
            vhca_event(e, &qp->async, QHCA_EVENT_QP_FATAL);
        }
        vhca_qp_error(e, qp, QHCA_EVENT_QP_FATAL);
    }
    if (cq->qps_told == t->size && vhca_xrc_cq_failed(e, cq)) {
        vhca_list_del(&cq->failed);
    }
}

int vhca_do_modify_qp(struct qhca_engine *e, struct vhca_cmd_ctx *ctx)
{
    struct vhca_qp *qp = vhca_qp_get(e, le32toh(ctx->cmd->modify_qp.qpn));
    uint32_t mask = le32toh(ctx->cmd->modify_qp.attr_mask);
    struct qhca_qp_attr a;

    if (!qp) {
        return QHCA_ERR_OBJ;
    }
    memcpy(&a, ctx->mbox, sizeof(a));

    uint8_t from = qp->state;
    uint8_t to = mask & QHCA_QP_STATE ? a.state : from;

    if ((mask & ~ATTRS_KNOWN) || to > QHCA_QPS_ERR || !values_ok(&a, mask) ||
        ((mask & QHCA_QP_AV) && !av_ok(e, &a.av))) {
        return QHCA_ERR_PARAM;
    }
    if (((mask & QHCA_QP_CUR_STATE) && a.cur_state != from) ||
        !vhca_qp_transition_ok(qp->type, from, to, mask)) {
        return QHCA_ERR_STATE;
    }
    if (to == QHCA_QPS_RESET) {
        vhca_trace_qp_state(e, qp->qpn, from, to);
        qp->state = to;
        vhca_qp_clear(e, qp);
        vhca_recv_reset(e, qp);
        return QHCA_OK;
    }
    if (to == QHCA_QPS_ERR) {
        vhca_qp_error(e, qp, 0);
        return QHCA_OK;
    }
    if (vhca_qp_draining(qp)) {                 /* */
        return QHCA_ERR_STATE;
    }
    take_attrs(e, qp, &a, mask);
    enter_state(e, qp, from, to, mask);
    return QHCA_OK;
}
