/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the device room in a saved state, with what can only be walked
 * over when all objects are there: timers, and who waits for the asynchronous
 * EQ.
 */
#include "device.h"

/* ---- asynchronous events ---- */

#define EVENT(type) (1u << QHCA_EVENT_##type)

/* struct source - who has such events, and which */
struct source {
    const char *name;
    unsigned events;
    struct qhca_async *(*find)(struct qhca_engine *e, uint32_t number);
};

static struct qhca_async *cq_async(struct qhca_engine *e, uint32_t number)
{
    struct qhca_cq *cq = qhca_cq_get(e, number);

    return cq ? &cq->async : NULL;
}

static struct qhca_async *qp_async(struct qhca_engine *e, uint32_t number)
{
    struct qhca_qp *qp = qhca_qp_get(e, number);

    return qp ? &qp->async : NULL;
}

static struct qhca_async *srq_async(struct qhca_engine *e, uint32_t number)
{
    struct qhca_srq *srq = qhca_srq_get(e, number);

    return srq ? &srq->async : NULL;
}

static struct qhca_async *port_async(struct qhca_engine *e, uint32_t number)
{
    return number == e->port->async.obj ? &e->port->async : NULL;
}

static const struct source sources[] = {
    { "CQ", EVENT(CQ_ERR), cq_async },
    { "QP", EVENT(QP_FATAL) | EVENT(QP_REQ_ERR) | EVENT(QP_ACCESS_ERR) |
            EVENT(COMM_EST) | EVENT(SQ_DRAINED) | EVENT(LAST_WQE_REACHED),
      qp_async },
    { "SRQ", EVENT(SRQ_LIMIT_REACHED) | EVENT(SRQ_ERR), srq_async },
    { "port", EVENT(LINK_UP) | EVENT(LINK_DOWN), port_async },
};

static unsigned source_of(struct qhca_engine *e, const struct qhca_async *a)
{
    unsigned i = 0;

    while (i < ARRAY_SIZE(sources) && sources[i].find(e, a->obj) != a) {
        i++;
    }
    return i;
}

/* One event of each type at most. */
static void walk_types(struct qhca_snap *s, struct qhca_async *a, unsigned n,
                       unsigned events)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t type = (uint8_t)qhca_snap_num(s, "event", a->type[i], 1, 31);

        if (!qhca_snap_check(s, events >> type & 1, "event")) {
            return;
        }
        events &= ~(1u << type);
        a->type[i] = type;
    }
}

static struct qhca_async *walk_async(struct qhca_snap *s, struct qhca_async *a)
{
    unsigned source = a ? source_of(s->e, a) : 0, n;
    uint32_t obj;

    source = (unsigned)qhca_snap_num(s, "source", source, 1,
                                     ARRAY_SIZE(sources) - 1);
    s->kind = sources[source].name;
    obj = s->number = qhca_snap_u32(s, "number", a ? a->obj : 0, QHCA_OBJ_MASK);
    if (s->load) {
        a = sources[source].find(s->e, obj);
    }
    n = (unsigned)qhca_snap_num(s, "waiting", a ? a->waiting : 0, 1,
                                QHCA_ASYNC_TYPES);
    if (!qhca_snap_check(s, a && n && (!s->load || !a->waiting), "waiting")) {
        return NULL;
    }
    walk_types(s, a, n, sources[source].events);
    if (s->load && !s->bad) {
        a->waiting = (uint8_t)n;
    }
    return a;
}

static void walk_events(struct qhca_snap *s)
{
    struct qhca_eq *eq = qhca_eq_async(s->e);
    struct qhca_async *a = NULL;
    uint32_t n = 0;

    if (!s->load && eq) {
        for (struct qhca_list *at = eq->pending.next; at != &eq->pending;
             at = at->next) {
            n++;
        }
    }
    n = qhca_snap_count(s, "events", n, 6);
    qhca_snap_check(s, !n || eq, "events");
    for (; n > 0 && !s->bad; n--) {
        if (!s->load) {
            a = container_of(a ? a->node.next : eq->pending.next,
                             struct qhca_async, node);
            walk_async(s, a);
            continue;
        }
        a = walk_async(s, NULL);
        if (a && !s->bad) {
            qhca_list_add_tail(&eq->pending, &a->node);
        }
    }
    s->kind = NULL;
}

/* ---- the device room's own ---- */

static const struct qhca_snap_field device_fields[] = {
    QHCA_SNAP_ANY(struct qhca_device, clock_hi),
    QHCA_SNAP_FLAG(struct qhca_device, timers_due),
    QHCA_SNAP_FLAG(struct qhca_device, link_changed),
    QHCA_SNAP_FLAG(struct qhca_device, link_wanted),
    QHCA_SNAP_FLAG(struct qhca_device, run_wanted),
    QHCA_SNAP_FLAG(struct qhca_device, tx_wanted),
    { 0 }
};
QHCA_SNAP_KNOWS(struct qhca_device, 29744);

static void walk_state(struct qhca_snap *s)
{
    struct qhca_engine *e = s->e;
    uint8_t state = (uint8_t)qhca_snap_num(s, "state", e->state, 1,
                                           QHCA_STATE_FATAL);
    uint8_t fatal = (uint8_t)qhca_snap_num(s, "fatal", e->fatal, 1,
                                           QHCA_FATAL_INJECTED);

    qhca_snap_check(s, !fatal == (state != QHCA_STATE_FATAL), "fatal");
    qhca_snap_check(s, state != QHCA_STATE_RESET ||
                       !qhca_engine_num_objects(e), "state");
    qhca_cmdq_walk(s, state);
    if (s->load && !s->bad) {
        e->state = state;
        e->fatal = fatal;
    }
}

/* The state comes last: until then nothing that is there can do anything. */
void qhca_device_walk(struct qhca_snap *s)
{
    const struct qhca_snap_ref timers[] = {
        qhca_cq_timer_ref, qhca_requester_timer_ref
    };
    struct qhca_device *d = s->e->device;

    qhca_snap_fields(s, device_fields, d);
    qhca_run_walk(s);
    qhca_snap_fifo(s, "late", &d->late, 0);     /* as they came */
    walk_events(s);
    qhca_snap_timers(s, timers, ARRAY_SIZE(timers));
    qhca_transport_check_timers(s);
    walk_state(s);
}
