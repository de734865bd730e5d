/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the device room in a saved state, and what can only be walked
 * over when all objects are there: timers, and the line of the asynchronous EQ.
 */
#include "../save/save.h"
#include "device.h"

/* ---- asynchronous events ---- */

/* The source of each type of event: a row of sources[]. */
enum { OF_NONE, OF_CQ, OF_QP, OF_SRQ, OF_PORT };

#define QHCA_EVENT(id, name, number, of)    [number] = OF_##of,
static const uint8_t event_of[32] = {
#include "qhca/events.def"
};

/* struct source - a kind of object with asynchronous events */
struct source {
    const char *name;
    struct vhca_async *(*find)(struct qhca_engine *e, uint32_t number);
};

#define FIND(kind) \
    static struct vhca_async *kind##_async(struct qhca_engine *e, uint32_t n) \
    { \
        struct vhca_##kind *obj = vhca_##kind##_get(e, n); \
        \
        return obj ? &obj->async : NULL; \
    }

FIND(cq)
FIND(qp)
FIND(srq)

static struct vhca_async *port_async(struct qhca_engine *e, uint32_t number)
{
    return number == e->port->async.obj ? &e->port->async : NULL;
}

static const struct source sources[] = {
    { "CQ", cq_async },
    { "QP", qp_async },
    { "SRQ", srq_async },
    { "port", port_async },
};

/* Walk over the waiting events of an object, at most one of each type. */
static void walk_types(struct vhca_snap *s, struct vhca_async *a, unsigned n,
                       unsigned source)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < n; i++) {
        uint8_t type = (uint8_t)vhca_snap_num(s, "event", a->type[i], 1, 31);

        if (!vhca_snap_check(s, event_of[type] == OF_CQ + source &&
                                !(seen >> type & 1), "event")) {
            return;
        }
        seen |= 1u << type;
        a->type[i] = type;
    }
}

static struct vhca_async *walk_async(struct vhca_snap *s, struct vhca_async *a)
{
    unsigned source = 0, n;
    uint32_t obj;

    while (a && source < ARRAY_SIZE(sources) &&
           sources[source].find(s->e, a->obj) != a) {
        source++;
    }
    source = (unsigned)vhca_snap_num(s, "source", source, 1,
                                     ARRAY_SIZE(sources) - 1);
    if (s->bad) {
        return NULL;
    }
    s->kind = sources[source].name;
    obj = s->number = vhca_snap_obj(s, "number", a ? a->obj : 0);
    if (s->load) {
        a = sources[source].find(s->e, obj);
    }
    n = (unsigned)vhca_snap_num(s, "waiting", a ? a->waiting : 0, 1,
                                VHCA_ASYNC_TYPES);
    if (!vhca_snap_check(s, a && n && (!s->load || !a->waiting), "waiting")) {
        return NULL;
    }
    walk_types(s, a, n, source);
    if (s->load && !s->bad) {
        a->waiting = (uint8_t)n;
    }
    return a;
}

static void walk_events(struct vhca_snap *s)
{
    struct vhca_eq *eq = vhca_eq_async(s->e);
    struct vhca_async *a = NULL;
    uint32_t n = vhca_snap_count(s, "events",
                                 eq ? vhca_list_length(&eq->pending) : 0, 6);

    if (!eq) {
        vhca_snap_check(s, !n, "events");
        return;
    }
    for (; n > 0 && !s->bad; n--) {
        if (!s->load) {
            a = container_of(a ? a->node.next : eq->pending.next,
                             struct vhca_async, node);
            walk_async(s, a);
            continue;
        }
        a = walk_async(s, NULL);
        if (a && !s->bad) {
            vhca_list_add_tail(&eq->pending, &a->node);
        }
    }
    s->kind = NULL;
}

/* ---- the section ---- */

static const struct vhca_snap_field device_fields[] = {
    VHCA_SNAP_ANY(struct vhca_device, clock_hi),
    VHCA_SNAP_FLAG(struct vhca_device, timers_due, link_wanted),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_device, 12);

static void walk_state(struct vhca_snap *s)
{
    struct qhca_engine *e = s->e;
    uint8_t state = (uint8_t)vhca_snap_num(s, "state", e->state, 1,
                                           QHCA_STATE_FATAL);
    uint8_t fatal = (uint8_t)vhca_snap_num(s, "fatal", e->fatal, 1,
                                           QHCA_FATAL_INJECTED);
    bool big = vhca_snap_num(s, "big-endian", e->big_endian, 1, true);

    vhca_snap_check(s, !fatal == (state != QHCA_STATE_FATAL), "fatal");
    vhca_snap_check(s, state != QHCA_STATE_RESET ||
                       (!big && !qhca_engine_num_objects(e)), "state");
    vhca_cmdq_walk(s, state);
    if (s->load && !s->bad) {
        e->state = state;
        e->fatal = fatal;
        e->big_endian = big;
    }
}

/* The state is the last: until it is set nothing can start to work. */
void vhca_device_walk(struct vhca_snap *s)
{
    const struct vhca_snap_ref timers[] = {
        vhca_cq_timer_ref, vhca_requester_timer_ref, vhca_qp_gate_ref
    };
    struct vhca_device *d = s->e->device;

    vhca_snap_fields(s, device_fields, d);
    vhca_run_walk(s);
    walk_events(s);
    vhca_snap_timers(s, timers, ARRAY_SIZE(timers));
    vhca_qps_check_timers(s);
    vhca_shadow_walk(s);
    walk_state(s);
}
