/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: QPs by number, their turns, the way to ERR, doorbells.
 */
#include <stdlib.h>

#include "qp.h"

const struct qhca_qp_kind qhca_qp_kinds[QHCA_NUM_QP_TYPES] = {
    [QHCA_QPT_GSI] = { QHCA_HAS_SQ | QHCA_HAS_RQ | QHCA_DATAGRAM, SVC_UD },
    [QHCA_QPT_RC] = {
        QHCA_HAS_SQ | QHCA_HAS_RQ | QHCA_MAY_SRQ | QHCA_RELIABLE, SVC_RC
    },
    [QHCA_QPT_UC] = { QHCA_HAS_SQ | QHCA_HAS_RQ, SVC_UC },
    [QHCA_QPT_UD] = {
        QHCA_HAS_SQ | QHCA_HAS_RQ | QHCA_MAY_SRQ | QHCA_DATAGRAM, SVC_UD
    },
    [QHCA_QPT_XRC_INI] = { QHCA_HAS_SQ | QHCA_RELIABLE, SVC_XRC },
    [QHCA_QPT_XRC_TGT] = { QHCA_HAS_XRCD | QHCA_RELIABLE, SVC_XRC },
};

struct qhca_qp *qhca_qp_get(struct qhca_engine *e, uint32_t qpn)
{
    struct qhca_qp *qp = qpn == QHCA_QPN_GSI ?
                         e->qps->gsi : qhca_table_get(&e->qps->table, qpn);

    return qp && qp->qpn == qpn ? qp : NULL;
}

/* ---- lines ---- */

static bool lines_init(struct qhca_lines *l, unsigned pages)
{
    l->page = calloc(pages, sizeof(*l->page));
    return l->page;
}

static void lines_reset(struct qhca_lines *l, unsigned pages)
{
    qhca_list_init(&l->busy);
    for (unsigned i = 0; i < pages; i++) {
        qhca_list_init(&l->page[i].node);
        qhca_list_init(&l->page[i].qps);
    }
}

/* To the end of the page's line, unless it is in it. */
static void lines_add(struct qhca_lines *l, uint32_t page,
                      struct qhca_list *node)
{
    if (!qhca_list_empty(node)) {
        return;
    }
    qhca_list_add_tail(&l->page[page].qps, node);
    if (qhca_list_empty(&l->page[page].node)) {
        qhca_list_add_tail(&l->busy, &l->page[page].node);
    }
}

/* Takes out who is next; NULL: those of the page whose turn it is have gone. */
static struct qhca_list *lines_next(struct qhca_lines *l)
{
    struct qhca_line *line = container_of(l->busy.next, struct qhca_line, node);
    struct qhca_list *node = line->qps.next;

    qhca_list_del(&line->node);
    if (qhca_list_empty(&line->qps)) {
        return NULL;
    }
    qhca_list_del(node);
    if (!qhca_list_empty(&line->qps)) {
        qhca_list_add_tail(&l->busy, &line->node);
    }
    return node;
}

void qhca_qp_schedule(struct qhca_engine *e, struct qhca_qp *qp)
{
    lines_add(&e->qps->ready, qp->uar, &qp->ready);
}

struct qhca_qp *qhca_qp_next(struct qhca_engine *e)
{
    struct qhca_list *node = lines_next(&e->qps->ready);

    return node ? container_of(node, struct qhca_qp, ready) : NULL;
}

void qhca_qp_wait_tx(struct qhca_engine *e, struct qhca_qp *qp)
{
    lines_add(&e->qps->tx_wait, qp->uar, &qp->tx_wait);
}

void qhca_qp_tx_ready(struct qhca_engine *e)
{
    struct qhca_list *node = lines_next(&e->qps->tx_wait);

    if (node) {
        qhca_qp_schedule(e, container_of(node, struct qhca_qp, tx_wait));
    }
}

/* ---- states and doorbells ---- */

void qhca_qp_error(struct qhca_engine *e, struct qhca_qp *qp, unsigned event)
{
    if (qp->state == QHCA_QPS_ERR) {
        return;
    }
    qhca_trace(e, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, QHCA_QPS_ERR);
    qp->state = QHCA_QPS_ERR;
    qhca_timer_cancel(e, &qp->req.timer);
    qp->sqd_notify = false;
    qp->last_wqe_owed = qhca_qp_shares_rq(qp);
    qp->rsp.q_head = qp->rsp.q_tail;
    qp->rsp.ack_owed = false;
    if (event) {
        qhca_event(e, &qp->async, (enum qhca_event)event);
    }
    qhca_qp_schedule(e, qp);
}

void qhca_qp_check_drained(struct qhca_engine *e, struct qhca_qp *qp)
{
    if (qp->sqd_notify && qp->state == QHCA_QPS_SQD && !qhca_qp_draining(qp)) {
        qp->sqd_notify = false;
        qhca_event(e, &qp->async, QHCA_EVENT_SQ_DRAINED);
    }
}

/* States in which a doorbell means anything. */
static const bool takes_sq[] = {
    [QHCA_QPS_RTS] = true, [QHCA_QPS_SQD] = true, [QHCA_QPS_SQE] = true,
    [QHCA_QPS_ERR] = true,
};

bool qhca_qp_doorbell_sq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (!qp || qp->uar != page || !takes_sq[qp->state] ||
        !qhca_wq_index_ok(&qp->sq, pi, 0)) {
        return false;
    }
    qp->sq.pi = pi;
    qhca_qp_schedule(e, qp);
    return true;
}

bool qhca_qp_doorbell_rq(struct qhca_engine *e, unsigned page, uint32_t qpn,
                         uint32_t pi)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (!qp || qp->uar != page || qp->state == QHCA_QPS_RESET ||
        !qhca_wq_index_ok(&qp->rq, pi, 0)) {
        return false;
    }
    qp->rq.pi = pi;
    if (qp->state == QHCA_QPS_ERR) {
        qhca_qp_schedule(e, qp);
    }
    return true;
}

static bool init(struct qhca_engine *e)
{
    return lines_init(&e->qps->ready, e->cfg.num_uars) &&
           lines_init(&e->qps->tx_wait, e->cfg.num_uars) &&
           qhca_timers_provide(e, e->cfg.max_qp) &&
           qhca_table_init(&e->qps->cntset, e, QHCA_MAX_CNTSET) &&
           qhca_table_init(&e->qps->table, e, e->cfg.max_qp);
}

static void reset(struct qhca_engine *e)
{
    free(e->qps->spare_swr);
    e->qps->spare_swr = NULL;
    e->qps->num_swr = 0;
    qhca_cntset_free_all(e);
    lines_reset(&e->qps->ready, e->cfg.num_uars);
    lines_reset(&e->qps->tx_wait, e->cfg.num_uars);
}

static void fini(struct qhca_engine *e)
{
    free(e->qps->ready.page);
    free(e->qps->tx_wait.page);
    qhca_table_free(&e->qps->cntset);
    qhca_table_free(&e->qps->table);
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    const struct qhca_qps *q = e->qps;

    h[0] = (struct qhca_holding) {
        "QP", true, sizeof(struct qhca_qp), q->table.max, q->table.used
    };
    h[1] = (struct qhca_holding) {
        "counter set", true, sizeof(struct qhca_cntset), QHCA_MAX_CNTSET,
        q->cntset.used
    };
    h[2] = qhca_table_holding(&q->table, "QP numbers");
    h[3] = qhca_table_holding(&q->cntset, "counter set numbers");
    h[4] = (struct qhca_holding) {
        "line of a doorbell page", false, sizeof(struct qhca_line),
        2 * e->cfg.num_uars, 2 * e->cfg.num_uars
    };
    return 5;
}

const struct qhca_room qhca_qp_room = {
    .init = init,
    .reset = reset,
    .fini = fini,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        qhca_counter_commands, NULL
    },
    .section = "qp",
    .version = 1,
    .oldest = 1,
    .walk = qhca_qps_walk,
};
