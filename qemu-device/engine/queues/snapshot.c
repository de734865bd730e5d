/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: EQs and CQs in a saved state, and which of them wait. Timers,
 * and who waits for the asynchronous EQ, are in device/snapshot.c.
 */
#include <stdlib.h>

#include "queues.h"

/* ---- EQs ---- */

static const struct qhca_snap_field eq_fields[] = {
    QHCA_SNAP_FLAG(struct qhca_eq, async),
    QHCA_SNAP_FLAG(struct qhca_eq, armed),
    QHCA_SNAP_ANY(struct qhca_eq, vector),
    QHCA_SNAP_MAX(struct qhca_eq, log_size, QHCA_EQ_LOG_MAX),
    QHCA_SNAP_ANY(struct qhca_eq, pi),
    QHCA_SNAP_ANY(struct qhca_eq, ci),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_eq, 80);

/* What CREATE_EQ has said. */
static bool eq_ok(const struct qhca_engine *e, const struct qhca_eq *eq)
{
    const struct qhca_cmd_create_eq r = {
        .flags = eq->async ? QHCA_EQ_ASYNC : 0, .vector = htole16(eq->vector),
        .log_size = eq->log_size,
    };

    return qhca_eq_check_create(e, &r) == QHCA_OK;
}

static void walk_eq(struct qhca_snap *s, struct qhca_eq *eq)
{
    struct qhca_engine *e = s->e;

    if (s->load) {
        memset(eq, 0, sizeof(*eq));
        qhca_list_init(&eq->pending);
        qhca_list_init(&eq->roomy);
    }
    qhca_snap_fields(s, eq_fields, eq);
    qhca_snap_check(s, eq_ok(e, eq), "vector");
    qhca_snap_check(s, eq->pi - eq->ci <= 1u << eq->log_size, "pi");
    qhca_snap_check(s, !s->load || !eq->async || !qhca_eq_async(e), "async");
    qhca_snap_mem(s, &eq->mem, sizeof(struct qhca_eqe) << eq->log_size);
    if (s->load && s->bad) {
        qhca_mem_release(e, &eq->mem);
    } else {
        eq->used = true;
    }
}

static void walk_eqs(struct qhca_snap *s)
{
    s->kind = "EQ";
    for (s->number = 1; s->number <= QHCA_MAX_EQ && !s->bad; s->number++) {
        struct qhca_eq *eq = &s->e->queues->eq[s->number - 1];

        if (qhca_snap_num(s, "used", eq->used, 1, 1)) {
            walk_eq(s, eq);
        }
    }
    s->kind = NULL;
}

/* ---- CQs ---- */

static const struct qhca_snap_field cq_fields[] = {
    QHCA_SNAP_ANY(struct qhca_cq, uar),
    QHCA_SNAP_MAX(struct qhca_cq, log_size, QHCA_CQ_LOG_MAX),
    QHCA_SNAP_MAX(struct qhca_cq, state, QHCA_CQ_ERROR),
    QHCA_SNAP_MAX(struct qhca_cq, arm, QHCA_CQ_ARM_NEXT),
    QHCA_SNAP_ANY(struct qhca_cq, pi),
    QHCA_SNAP_ANY(struct qhca_cq, ci),
    QHCA_SNAP_ANY(struct qhca_cq, arm_sn),
    QHCA_SNAP_ANY(struct qhca_cq, event_sn),
    QHCA_SNAP_FLAG(struct qhca_cq, ever_armed),
    QHCA_SNAP_ANY(struct qhca_cq, count),
    QHCA_SNAP_ANY(struct qhca_cq, period),
    QHCA_SNAP_MAX(struct qhca_cq, held, QHCA_MAX_CQ_COUNT),
    QHCA_SNAP_FLAG(struct qhca_cq, owner_told),
    QHCA_SNAP_ANY(struct qhca_cq, qps_told),
    QHCA_SNAP_ANY(struct qhca_cq, srqs_told),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_cq, 184);

/* What CREATE_CQ and MODIFY_CQ have said. */
static bool cq_ok(struct qhca_engine *e, const struct qhca_cq *cq, uint32_t eqn)
{
    const struct qhca_cmd_create_cq r = {
        .eqn = htole32(eqn), .uar = htole32(cq->uar), .log_size = cq->log_size,
    };
    const struct qhca_cmd_modify_cq m = {
        .count = htole32(cq->count), .period = htole32(cq->period),
    };

    return qhca_cq_check_create(e, &r) == QHCA_OK &&
           qhca_cq_check_modify(&m) == QHCA_OK;
}

static void walk_cq_body(struct qhca_snap *s, struct qhca_cq *cq)
{
    struct qhca_engine *e = s->e;

    qhca_snap_fields(s, cq_fields, cq);
    uint32_t eqn = qhca_snap_u32(s, "eqn", s->load ? 0 : qhca_eqn(e, cq->eq),
                                 QHCA_MAX_EQ);

    if (qhca_snap_check(s, cq_ok(e, cq, eqn), "eqn or uar") && s->load) {
        cq->eq = qhca_eq_get(e, eqn);
    }
    qhca_snap_check(s, cq->pi - cq->ci <= 1u << cq->log_size, "pi");
    qhca_snap_mem(s, &cq->mem, qhca_cq_bytes(cq->log_size));
}

static void *walk_cq(struct qhca_snap *s, void *obj, uint32_t number)
{
    struct qhca_cq *cq = obj ? obj : calloc(1, sizeof(*cq));

    if (!cq) {
        return NULL;
    }
    walk_cq_body(s, cq);
    if (!s->load) {
        return cq;
    }
    if (s->bad) {
        qhca_mem_release(s->e, &cq->mem);
        free(cq);
        return NULL;
    }
    qhca_cq_init(cq, number);
    cq->eq->users++;
    return cq;
}

static const struct qhca_snap_kind cq_kind = { "CQ", walk_cq };

/* ---- who waits ---- */

static uint32_t cq_number(const struct qhca_engine *e, const void *obj)
{
    (void)e;
    return ((const struct qhca_cq *)obj)->cqn;
}

static void *find_cq(struct qhca_engine *e, uint32_t number)
{
    return qhca_cq_get(e, number);
}

static uint32_t eq_number(const struct qhca_engine *e, const void *obj)
{
    return qhca_eqn(e, obj);
}

static void *find_eq(struct qhca_engine *e, uint32_t number)
{
    return qhca_eq_get(e, number);
}

const struct qhca_snap_ref qhca_cq_timer_ref = {
    "CQ", offsetof(struct qhca_cq, timer), cq_number, find_cq,
    qhca_cq_moderation_timeout
};
static const struct qhca_snap_ref pending_ref = {
    "CQ", offsetof(struct qhca_cq, pending), cq_number, find_cq, NULL
};
static const struct qhca_snap_ref failed_ref = {
    "CQ", offsetof(struct qhca_cq, failed), cq_number, find_cq, NULL
};
static const struct qhca_snap_ref roomy_ref = {
    "EQ", offsetof(struct qhca_eq, roomy), eq_number, find_eq, NULL
};

static void walk_pending(struct qhca_snap *s, struct qhca_eq *eq)
{
    const struct qhca_list *at;

    qhca_snap_list(s, "pending", &eq->pending, &pending_ref);
    for (at = eq->pending.next; at != &eq->pending; at = at->next) {
        qhca_snap_check(s, container_of(at, struct qhca_cq, pending)->eq == eq,
                        "pending");
    }
}

static void walk_failed(struct qhca_snap *s)
{
    struct qhca_list *head = &s->e->queues->failed;
    const struct qhca_list *at;

    qhca_snap_list(s, "failed", head, &failed_ref);
    for (at = head->next; at != head; at = at->next) {
        qhca_snap_check(s, container_of(at, struct qhca_cq, failed)->state ==
                           QHCA_CQ_ERROR, "failed");
    }
}

void qhca_queues_walk(struct qhca_snap *s)
{
    struct qhca_queues *q = s->e->queues;

    walk_eqs(s);
    qhca_snap_table(s, &q->cq, &cq_kind);
    for (unsigned i = 0; i < QHCA_MAX_EQ && !s->bad; i++) {
        if (q->eq[i].used && !q->eq[i].async) {
            walk_pending(s, &q->eq[i]);
        }
    }
    walk_failed(s);
    qhca_snap_list(s, "roomy", &q->roomy, &roomy_ref);
}
