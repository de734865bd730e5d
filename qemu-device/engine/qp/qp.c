/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: QPs by number, their turns, way to ERR, doorbells, rules. */
#include <stdlib.h>

#include "qp.h"

const struct vhca_qp_kind vhca_qp_kinds[VHCA_NUM_QP_TYPES] = {
    [QHCA_QPT_GSI] = { VHCA_HAS_SQ | VHCA_HAS_RQ | VHCA_DATAGRAM, SVC_UD },
    [QHCA_QPT_RC] = {
        VHCA_HAS_SQ | VHCA_HAS_RQ | VHCA_MAY_SRQ | VHCA_RELIABLE, SVC_RC
    },
    [QHCA_QPT_UC] = { VHCA_HAS_SQ | VHCA_HAS_RQ, SVC_UC },
    [QHCA_QPT_UD] = {
        VHCA_HAS_SQ | VHCA_HAS_RQ | VHCA_MAY_SRQ | VHCA_DATAGRAM, SVC_UD
    },
    [QHCA_QPT_RAW] = {
        VHCA_HAS_SQ | VHCA_HAS_RQ | VHCA_MAY_SRQ | VHCA_RAW, 0xff
    },
    [QHCA_QPT_XRC_INI] = { VHCA_HAS_SQ | VHCA_RELIABLE, SVC_XRC },
    [QHCA_QPT_XRC_TGT] = { VHCA_HAS_XRCD | VHCA_RELIABLE, SVC_XRC },
};

struct vhca_qp *vhca_qp_get(struct qhca_engine *e, uint32_t qpn)
{
    struct vhca_qp *qp = qpn == QHCA_QPN_GSI ?
                         e->qps->gsi : vhca_table_get(&e->qps->table, qpn);

    return qp && qp->qpn == qpn ? qp : NULL;
}

/* ---- lines ---- */

static bool lines_init(struct vhca_lines *l, unsigned pages)
{
    l->page = calloc(pages, sizeof(*l->page));
    return l->page;
}

static void lines_reset(struct vhca_lines *l, unsigned pages)
{
    vhca_list_init(&l->busy);
    for (unsigned i = 0; i < pages; i++) {
        vhca_list_init(&l->page[i].node);
        vhca_list_init(&l->page[i].qps);
    }
}

/* Append to the line of @page, unless the node is in it. */
static void lines_add(struct vhca_lines *l, uint32_t page,
                      struct vhca_list *node)
{
    if (!vhca_list_empty(node)) {
        return;
    }
    vhca_list_add_tail(&l->page[page].qps, node);
    if (vhca_list_empty(&l->page[page].node)) {
        vhca_list_add_tail(&l->busy, &l->page[page].node);
    }
}

/* Remove and return the next node; NULL: its page's line was empty. */
static struct vhca_list *lines_next(struct vhca_lines *l)
{
    struct vhca_line *line = container_of(l->busy.next, struct vhca_line, node);
    struct vhca_list *node = line->qps.next;

    vhca_list_del(&line->node);
    if (vhca_list_empty(&line->qps)) {
        return NULL;
    }
    vhca_list_del(node);
    if (!vhca_list_empty(&line->qps)) {
        vhca_list_add_tail(&l->busy, &line->node);
    }
    return node;
}

void vhca_qp_schedule(struct qhca_engine *e, struct vhca_qp *qp)
{
    lines_add(&e->qps->ready, qp->uar, &qp->ready);
}

struct vhca_qp *vhca_qp_next(struct qhca_engine *e)
{
    struct vhca_list *node = lines_next(&e->qps->ready);

    return node ? container_of(node, struct vhca_qp, ready) : NULL;
}

bool vhca_qp_tx_room(struct qhca_engine *e, struct vhca_qp *qp, bool loop,
                     bool net, unsigned class, unsigned reserve)
{
    bool here = !loop || vhca_tx_room(e, true, reserve + 1);
    bool there = !net || vhca_tx_room(e, false, reserve + 1);

    /* The run loop empties the loopback FIFO, unless it waits for a time. */
    vhca_list_del(&qp->tx_wait);
    if (net && vhca_paused(e, class)) {
        vhca_list_add_tail(&e->port->pause.held, &qp->tx_wait);
        return false;
    }
    if (!vhca_port_open(e) || !there || (!here && vhca_loop_waits(e))) {
        lines_add(&e->qps->tx_wait, qp->uar, &qp->tx_wait);
        return false;
    }
    return here;
}

void vhca_qp_tx_ready(struct qhca_engine *e)
{
    struct vhca_list *node = e->port->pause.let_go.next;

    if (node != &e->port->pause.let_go) {
        vhca_list_del(node);
    } else {
        node = lines_next(&e->qps->tx_wait);
    }
    if (node) {
        vhca_qp_schedule(e, container_of(node, struct vhca_qp, tx_wait));
    }
}

/* ---- states and doorbells ---- */

void vhca_qp_error(struct qhca_engine *e, struct vhca_qp *qp, unsigned event)
{
    if (qp->state == QHCA_QPS_ERR) {
        return;
    }
    vhca_trace_qp_state(e, qp->qpn, qp->state, QHCA_QPS_ERR);
    qp->state = QHCA_QPS_ERR;
    vhca_timer_cancel(e, &qp->req.timer);
    vhca_timer_cancel(e, &qp->gate.timer);
    qp->sqd_notify = false;
    qp->last_wqe_owed = vhca_qp_shares_rq(qp);
    qp->rsp.q_head = qp->rsp.q_tail;
    qp->rsp.ack_owed = false;
    if (event) {
        vhca_event(e, &qp->async, (enum qhca_event)event);
    }
    vhca_qp_schedule(e, qp);
}

void vhca_qp_check_drained(struct qhca_engine *e, struct vhca_qp *qp)
{
    if (qp->sqd_notify && qp->state == QHCA_QPS_SQD && !vhca_qp_draining(qp)) {
        qp->sqd_notify = false;
        vhca_event(e, &qp->async, QHCA_EVENT_SQ_DRAINED);
    }
}

void vhca_qp_page_fault(struct qhca_engine *e, struct vhca_qp *qp,
                        enum qhca_page_fault_kind kind, uint32_t at,
                        uint8_t why)
{
    const struct vhca_miss *miss = &e->memory->miss;
    struct vhca_page_fault *f = &qp->fault[kind];
    bool same = f->open && f->at == at && f->miss.key == miss->key &&
                f->miss.off >> miss->shift == miss->off >> miss->shift &&
                f->miss.write == miss->write;

    /* Count a fault once, even if the QP meets it again while it is open. */
    vhca_count_qp(e, qp, QHCA_CNT_PAGE_FAULT, !same);
    vhca_trace_page_fault(e, qp->qpn, kind, miss->key, miss->off);
    f->sn += !same;
    if (!f->open || f->at != at) {
        f->repeats = 0;
    } else if (f->repeats < VHCA_PAGE_REPEATS) {
        f->repeats++;
    }
    f->miss = *miss;
    f->at = at;
    f->why = why;
    if (!f->open || e->now - f->told >= VHCA_PAGE_WAIT_NS) {
        f->open = true;
        f->told = e->now;
        vhca_event(e, &qp->async, QHCA_EVENT_PAGE_FAULT);
    }
}

void vhca_qp_gate_due(struct qhca_engine *e, struct vhca_timer *t)
{
    vhca_qp_schedule(e, container_of(t, struct vhca_qp, gate.timer));
}

/* States in which a doorbell means anything. */
static const bool takes_sq[] = {
    [QHCA_QPS_RTS] = true, [QHCA_QPS_SQD] = true, [QHCA_QPS_SQE] = true,
    [QHCA_QPS_ERR] = true,
};

bool vhca_qp_doorbell_sq(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_qp *qp = vhca_qp_get(e, db->obj);

    if (!qp || qp->uar != db->page || !takes_sq[qp->state] ||
        !vhca_wq_index_ok(&qp->sq, db->index, 0)) {
        return false;
    }
    qp->sq.pi = db->index;
    vhca_qp_schedule(e, qp);
    return true;
}

bool vhca_qp_doorbell_rq(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_qp *qp = vhca_qp_get(e, db->obj);

    if (!qp || qp->uar != db->page || qp->state == QHCA_QPS_RESET ||
        !vhca_wq_index_ok(&qp->rq, db->index, 0)) {
        return false;
    }
    qp->rq.pi = db->index;
    if (qp->state == QHCA_QPS_ERR) {
        vhca_qp_schedule(e, qp);
    }
    return true;
}

/* ---- fault rules ---- */

void vhca_rule_raise(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_effect *does)
{
    enum qhca_event type = (enum qhca_event)does->value;

    if (type <= QHCA_EVENT_QP_ACCESS_ERR) {
        vhca_qp_error(e, qp, type);
    } else {
        vhca_event(e, &qp->async, type);
    }
}

enum qhca_cqe_status vhca_rule_cqe(struct qhca_engine *e, struct vhca_qp *qp,
                                    struct vhca_cq *cq, uint8_t opcode)
{
    struct vhca_rule_at at = { .point = VHCA_RULE_CQE, .kind = opcode };
    struct vhca_effect does;

    at.field[VHCA_RULE_QPN] = qp->qpn;
    at.field[VHCA_RULE_CQN] = cq->cqn;
    does = vhca_rule_judge(e, &at);
    if (does.action == VHCA_RULE_FAIL) {
        return (enum qhca_cqe_status)does.value;
    }
    if (does.action == VHCA_RULE_OVERRUN) {
        vhca_cq_overrun(e, cq);
    } else if (does.action == VHCA_RULE_RAISE) {
        vhca_rule_raise(e, qp, &does);
    }
    return QHCA_WC_SUCCESS;
}

/* ---- the room ---- */

static bool qp_init(struct qhca_engine *e)
{
    vhca_timers_provide(e, 2 * e->cfg.max_qp);
    return lines_init(&e->qps->ready, e->cfg.num_uars) &&
           lines_init(&e->qps->tx_wait, e->cfg.num_uars) &&
           vhca_table_init(&e->qps->cntset, e, VHCA_MAX_CNTSET) &&
           vhca_table_init(&e->qps->table, e, e->cfg.max_qp);
}

static void qp_reset(struct qhca_engine *e)
{
    free(e->qps->spare_swr);
    e->qps->spare_swr = NULL;
    e->qps->num_swr = 0;
    /* Without sets, set 0 has the counts that they had. */
    vhca_holder_free_all(&e->qps->cntset);
    memset(e->qps->set_cnt, 0, sizeof(e->qps->set_cnt));
    lines_reset(&e->qps->ready, e->cfg.num_uars);
    lines_reset(&e->qps->tx_wait, e->cfg.num_uars);
}

static void qp_fini(struct qhca_engine *e)
{
    free(e->qps->ready.page);
    free(e->qps->tx_wait.page);
    vhca_table_free(&e->qps->cntset);
    vhca_table_free(&e->qps->table);
}

static unsigned qp_holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    const struct vhca_qps *q = e->qps;

    h[0] = (struct qhca_holding) {
        "QP", true, sizeof(struct vhca_qp), q->table.max, q->table.used
    };
    h[1] = (struct qhca_holding) {
        "counter set", true, sizeof(struct vhca_cntset), VHCA_MAX_CNTSET,
        q->cntset.used
    };
    h[2] = vhca_table_holding(&q->table, "QP numbers");
    h[3] = vhca_table_holding(&q->cntset, "counter set numbers");
    h[4] = (struct qhca_holding) {
        "line of a doorbell page", false, sizeof(struct vhca_line),
        2 * e->cfg.num_uars, 2 * e->cfg.num_uars
    };
    return 5;
}

const struct vhca_room vhca_qp_room = {
    .init = qp_init, .reset = qp_reset, .fini = qp_fini,
    .holdings = qp_holdings,
    .section = "qp", .version = 1, .walk = vhca_cntsets_walk,
};
