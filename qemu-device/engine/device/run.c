/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the run loop. The sources of work take turns, each with a share
 * of the budget, which bounds how long callers are kept busy.
 */
#include "../save/save.h"
#include "device.h"

/*
 * Units of work, see vhca_spend(), that an entry point does at most: a
 * millisecond or less.
 */
#define ENTRY_UNITS     2048u
/*
 * Units that all entry points do before the caller's main loop has a turn, or
 * this time passes. Data moved at full speed should rarely reach it: work that
 * waits for the main loop takes several times as long.
 */
#define SLICE_UNITS     65536u
#define SLICE_NS        (8 * VHCA_PACE_NS)
/* Units that a source of work does in its turn. */
#define TURN_UNITS      128u

/* ---- sources of work ---- */

static void timers_work(struct qhca_engine *e)
{
    e->device->timers_due = vhca_timers_expire(e);
}

static void (*const deliver[VHCA_NUM_RECEIVERS])(struct qhca_engine *e) = {
    [VHCA_TO_MEMBERS] = vhca_group_go_on,
    [VHCA_TO_RULES] = vhca_flow_go_on,
};

static void loop_work(struct qhca_engine *e)
{
    struct vhca_fifo *f = &e->port->loop;
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    if (vhca_delivering(e)) {
        deliver[e->port->delivery.kind](e);
    }
    while (!vhca_delivering(e) && vhca_may_go_on(e) &&
           vhca_fifo_due(f) <= e->now) {
        frame = vhca_fifo_peek(f, &len, &from);
        vhca_steer(e, frame, len, from);
        vhca_loop_pop(e);
    }
}

enum { TIMERS, FAILED, LOOP, EQ, CMDQ, TX, QP, ETH, SHADOW, NUM_SOURCES };

/* A source that is ready makes progress in its turn. */
static void (*const work[NUM_SOURCES])(struct qhca_engine *e) = {
    [TIMERS] = timers_work,
    [FAILED] = vhca_qp_cq_failed,
    [LOOP] = loop_work,
    [EQ] = vhca_eq_serve,
    [CMDQ] = vhca_cmdq_work,
    [TX] = vhca_qp_tx_ready,
    [QP] = vhca_qp_turn,
    [ETH] = vhca_eth_tx_work,
    [SHADOW] = vhca_doorbells_in_memory,
};

/* Return the sources that are ready, a bit each. */
static unsigned sources_ready(const struct qhca_engine *e)
{
    return (unsigned)e->device->timers_due << TIMERS |
           (unsigned)!vhca_list_empty(&e->events->failed) << FAILED |
           (unsigned)(vhca_delivering(e) ||
                      vhca_fifo_due(&e->port->loop) <= e->now) << LOOP |
           (unsigned)!vhca_list_empty(&e->events->roomy) << EQ |
           (unsigned)vhca_cmdq_ready(e) << CMDQ |
           (unsigned)(!vhca_list_empty(&e->port->pause.let_go) ||
                      (!vhca_list_empty(&e->qps->tx_wait.busy) &&
                       vhca_tx_free(e))) << TX |
           (unsigned)!vhca_list_empty(&e->qps->ready.busy) << QP |
           (unsigned)vhca_eth_tx_ready(e) << ETH |
           (unsigned)vhca_shadow_busy(e) << SHADOW;
}

/* Advance to the next source that is ready; false: there is none. */
static bool find_work(struct qhca_engine *e)
{
    unsigned *source = &e->device->source;
    unsigned ready = sources_ready(e), later = ready >> *source;

    if (!ready) {
        *source = 0;
        return false;
    }
    *source = later ? *source + (unsigned)__builtin_ctz(later) :
                      (unsigned)__builtin_ctz(ready);
    return true;
}

/* ---- the loop ---- */

void vhca_run_init(struct qhca_engine *e)
{
    const uint64_t ps = VHCA_PACE_NS * 1000ull;

    e->slice.slack = SLICE_NS;
    e->slice.cost = SLICE_NS * 1000ull / SLICE_UNITS;
    e->share.slack = VHCA_PACE_NS;
    if (e->cfg.cpu_share) {
        e->share.cost = ps / ENTRY_UNITS * 100 / e->cfg.cpu_share;
    }
}

void vhca_run_slice(struct qhca_engine *e)
{
    e->slice.paid = e->now;
}

void vhca_run_receive(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    e->limit = vhca_pace_left(&e->share, e->now, ENTRY_UNITS);
    if (vhca_rx_waits(e) && len >= ETH_LEN && len <= VHCA_MAX_FRAME) {
        vhca_rx_keep(e, frame, len);
    } else {
        vhca_steer(e, frame, len, 0);
    }
}

uint64_t vhca_run_wake(const struct qhca_engine *e)
{
    uint64_t next = vhca_timers_next(e);

    if (!vhca_has_time(e, e->now)) {
        return e->share.paid;
    }
    return vhca_port_open(e) ? next :
           MIN_OF(next, MAX_OF(e->port->pace.paid, e->rules->pace.paid));
}

void vhca_run(struct qhca_engine *e)
{
    struct vhca_device *d = e->device;
    unsigned budget = vhca_pace_left(&e->slice, e->now, ENTRY_UNITS);
    bool more = false, late = false;

    budget = vhca_pace_left(&e->share, e->now, budget);
    vhca_verify(e);
    while (vhca_running(e) && (more = find_work(e)) && e->spent < budget &&
           !late) {
        e->limit = MIN_OF(budget, e->spent + TURN_UNITS);
        work[d->source](e);
        vhca_spend(e, 1);
        vhca_verify(e);
        d->source = (d->source + 1) % NUM_SOURCES;
        late = e->ops->enough && e->ops->enough(e->opaque);
    }
    vhca_pay(e);
    if (vhca_running(e) && vhca_has_time(e, e->now) && more) {
        e->ops->schedule(e->opaque);
    }
}

void vhca_run_walk(struct vhca_snap *s)
{
    struct vhca_device *d = s->e->device;

    d->source = vhca_snap_u32(s, "source", d->source, SHADOW);
    vhca_snap_pace(s, &s->e->slice);
    vhca_snap_pace(s, &s->e->share);
}
