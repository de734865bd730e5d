/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: EQs and CQs in a saved state, and which of them wait. Timers and
 * the line of the asynchronous EQ are in device/walk.c.
 */
#include "../save/save.h"
#include "events.h"

/* ---- EQs ---- */

static const struct vhca_snap_field eq_fields[] = {
    VHCA_SNAP_FLAG(struct vhca_eq, async, armed),
    VHCA_SNAP_ANY(struct vhca_eq, vector),
    VHCA_SNAP_MAX(struct vhca_eq, VHCA_EQ_LOG_MAX, log_size),
    VHCA_SNAP_ANY(struct vhca_eq, pi, ci),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_eq, 80);

/* Apply CREATE_EQ's checks. */
static bool eq_ok(const struct qhca_engine *e, const struct vhca_eq *eq)
{
    const struct qhca_cmd_create_eq r = {
        .flags = eq->async ? QHCA_EQ_ASYNC : 0, .vector = htole16(eq->vector),
        .log_size = eq->log_size,
    };

    return vhca_eq_check_create(e, &r) == QHCA_OK;
}

static void walk_eq(struct vhca_snap *s, struct vhca_eq *eq)
{
    struct qhca_engine *e = s->e;

    if (s->load) {
        memset(eq, 0, sizeof(*eq));
        vhca_list_init(&eq->pending);
        vhca_list_init(&eq->roomy);
    }
    vhca_snap_fields(s, eq_fields, eq);
    vhca_snap_check(s, eq_ok(e, eq), "vector");
    vhca_snap_check(s, eq->pi - eq->ci <= 1u << eq->log_size, "pi");
    vhca_snap_check(s, !s->load || !eq->async || !vhca_eq_async(e), "async");
    vhca_snap_mem(s, &eq->mem, sizeof(struct qhca_eqe) << eq->log_size);
    if (s->load && s->bad) {
        vhca_mem_release(e, &eq->mem);
    } else {
        eq->used = true;
    }
}

static void walk_eqs(struct vhca_snap *s)
{
    s->kind = "EQ";
    for (s->number = 1; s->number <= VHCA_MAX_EQ && !s->bad; s->number++) {
        struct vhca_eq *eq = &s->e->events->eq[s->number - 1];

        if (vhca_snap_num(s, "used", eq->used, 1, 1)) {
            walk_eq(s, eq);
        }
    }
    s->kind = NULL;
}

/* ---- CQs ---- */

static const struct vhca_snap_field cq_fields[] = {
    VHCA_SNAP_ANY(struct vhca_cq, uar),
    VHCA_SNAP_MAX(struct vhca_cq, VHCA_CQ_LOG_MAX, log_size),
    VHCA_SNAP_MAX(struct vhca_cq, QHCA_CQ_ERROR, state),
    VHCA_SNAP_MAX(struct vhca_cq, QHCA_CQ_ARM_NEXT, arm),
    VHCA_SNAP_ANY(struct vhca_cq, pi, ci, arm_sn, event_sn),
    VHCA_SNAP_FLAG(struct vhca_cq, ever_armed),
    VHCA_SNAP_ANY(struct vhca_cq, count, period),
    VHCA_SNAP_MAX(struct vhca_cq, VHCA_MAX_CQ_COUNT, held),
    VHCA_SNAP_FLAG(struct vhca_cq, owner_told),
    VHCA_SNAP_ANY(struct vhca_cq, qps_told, srqs_told),
    VHCA_SNAP_FLAG(struct vhca_cq, dbrec),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_cq, 184);

/* Apply the checks of CREATE_CQ and MODIFY_CQ. */
static bool cq_ok(struct qhca_engine *e, const struct vhca_cq *cq, uint32_t eqn)
{
    const struct qhca_cmd_create_cq r = {
        .eqn = htole32(eqn), .uar = htole32(cq->uar), .log_size = cq->log_size,
        .flags = cq->dbrec ? QHCA_CQ_DBREC : 0,
    };
    const struct qhca_cmd_modify_cq m = {
        .count = htole32(cq->count), .period = htole32(cq->period),
    };

    return vhca_cq_check_create(e, &r) == QHCA_OK &&
           vhca_cq_check_modify(&m) == QHCA_OK;
}

static void walk_cq(struct vhca_snap *s, void *obj)
{
    struct qhca_engine *e = s->e;
    struct vhca_cq *cq = obj;

    vhca_snap_fields(s, cq_fields, cq);
    uint32_t eqn = vhca_snap_u32(s, "eqn", s->load ? 0 : vhca_eqn(e, cq->eq),
                                 VHCA_MAX_EQ);

    if (vhca_snap_check(s, cq_ok(e, cq, eqn), "eqn, uar or dbrec") && s->load) {
        cq->eq = vhca_eq_get(e, eqn);
    }
    vhca_snap_check(s, cq->pi - cq->ci <= 1u << cq->log_size, "pi");
    vhca_snap_mem(s, &cq->mem, vhca_cq_bytes(cq->log_size));
}

static void enlist_cq(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_cq *cq = obj;

    (void)e;
    vhca_cq_init(cq, number);
    cq->eq->users++;
}

static const struct vhca_snap_kind cq_kind = {
    "CQ", sizeof(struct vhca_cq), offsetof(struct vhca_cq, mem), walk_cq,
    enlist_cq
};

/* ---- lists ---- */

static uint32_t cq_number(const struct qhca_engine *e, const void *obj)
{
    (void)e;
    return ((const struct vhca_cq *)obj)->cqn;
}

static void *find_cq(struct qhca_engine *e, uint32_t number)
{
    return vhca_cq_get(e, number);
}

static uint32_t eq_number(const struct qhca_engine *e, const void *obj)
{
    return vhca_eqn(e, obj);
}

static void *find_eq(struct qhca_engine *e, uint32_t number)
{
    return vhca_eq_get(e, number);
}

const struct vhca_snap_ref vhca_cq_timer_ref = {
    "CQ", offsetof(struct vhca_cq, timer), cq_number, find_cq,
    vhca_cq_moderation_timeout
};
static const struct vhca_snap_ref pending_ref = {
    "CQ", offsetof(struct vhca_cq, pending), cq_number, find_cq, NULL
};
static const struct vhca_snap_ref failed_ref = {
    "CQ", offsetof(struct vhca_cq, failed), cq_number, find_cq, NULL
};
static const struct vhca_snap_ref roomy_ref = {
    "EQ", offsetof(struct vhca_eq, roomy), eq_number, find_eq, NULL
};

static void walk_failed(struct vhca_snap *s)
{
    struct vhca_list *head = &s->e->events->failed;
    const struct vhca_list *at;

    vhca_snap_list(s, "failed", head, &failed_ref);
    vhca_list_each(head, at) {
        vhca_snap_check(s, container_of(at, struct vhca_cq, failed)->state ==
                           QHCA_CQ_ERROR, "failed");
    }
}

void vhca_events_walk(struct vhca_snap *s)
{
    struct vhca_events *q = s->e->events;
    const struct vhca_list *at;

    walk_eqs(s);
    vhca_snap_table(s, &q->cq, &cq_kind);
    for (unsigned i = 0; i < VHCA_MAX_EQ && !s->bad; i++) {
        struct vhca_eq *eq = &q->eq[i];

        if (!eq->used || eq->async) {
            continue;
        }
        vhca_snap_list(s, "pending", &eq->pending, &pending_ref);
        vhca_list_each(&eq->pending, at) {
            vhca_snap_check(s, container_of(at, struct vhca_cq,
                                            pending)->eq == eq, "pending");
        }
    }
    walk_failed(s);
    vhca_snap_list(s, "roomy", &q->roomy, &roomy_ref);
}
