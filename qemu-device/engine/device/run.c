/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the run loop. The sources of work take turns, each with a share
 * of the budget; the budget bounds what the callers are kept busy with.
 */
#include "device.h"

/*
 * Units of work, see qhca_spend(). What one entry point does at most; a
 * millisecond's work or less.
 */
#define ENTRY_UNITS     2048u
/*
 * What all of them together do before the caller's main loop has its turn, or
 * time has passed. Who moves data as fast as the device can should rarely meet
 * it: work that waits for the main loop takes several times as long.
 */
#define SLICE_UNITS     65536u
#define SLICE_NS        (8 * QHCA_PACE_NS)
/* Of a source of work, in its turn. */
#define TURN_UNITS      128u

/* ---- sources of work ---- */

static bool failed_ready(const struct qhca_engine *e)
{
    return !qhca_list_empty(&e->queues->failed);
}

static bool eq_ready(const struct qhca_engine *e)
{
    return !qhca_list_empty(&e->queues->roomy);
}

static void timers_work(struct qhca_engine *e)
{
    e->device->timers_due = qhca_timers_expire(e);
}

/* Steers the frames in @f as far as the budget goes. */
static void drain(struct qhca_engine *e, struct qhca_fifo *f)
{
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    while (qhca_may_go_on(e) && (frame = qhca_fifo_peek(f, &len, &from))) {
        qhca_steer(e, frame, len, from);
        qhca_fifo_pop(f);
    }
}

static bool loop_ready(const struct qhca_engine *e)
{
    return qhca_fifo_used(&e->port->loop);
}

static void loop_work(struct qhca_engine *e)
{
    drain(e, &e->port->loop);
}

static bool late_ready(const struct qhca_engine *e)
{
    return qhca_fifo_used(&e->device->late);
}

static void late_work(struct qhca_engine *e)
{
    drain(e, &e->device->late);
}

static bool tx_ready(const struct qhca_engine *e)
{
    return !qhca_list_empty(&e->qps->tx_wait.busy) && !e->port->tx_blocked &&
           qhca_port_open(e);
}

static bool qp_ready(const struct qhca_engine *e)
{
    return !qhca_list_empty(&e->qps->ready.busy);
}

enum { TIMERS, FAILED, LOOP, LATE, EQ, CMDQ, TX, QP, ETH, NUM_SOURCES };

/* What is ready makes progress when it has its turn. */
static void (*const work[NUM_SOURCES])(struct qhca_engine *e) = {
    [TIMERS] = timers_work,
    [FAILED] = qhca_qp_cq_failed,
    [LOOP] = loop_work,
    [LATE] = late_work,
    [EQ] = qhca_eq_serve,
    [CMDQ] = qhca_cmdq_work,
    [TX] = qhca_qp_tx_ready,
    [QP] = qhca_qp_turn,
    [ETH] = qhca_eth_tx_work,
};

/* Those that are, a bit each. */
static unsigned sources_ready(const struct qhca_engine *e)
{
    return (unsigned)e->device->timers_due << TIMERS |
           (unsigned)failed_ready(e) << FAILED |
           (unsigned)loop_ready(e) << LOOP |
           (unsigned)late_ready(e) << LATE |
           (unsigned)eq_ready(e) << EQ |
           (unsigned)qhca_cmdq_ready(e) << CMDQ |
           (unsigned)tx_ready(e) << TX |
           (unsigned)qp_ready(e) << QP |
           (unsigned)qhca_eth_tx_ready(e) << ETH;
}

/* Goes on to the next one that has any; false: none has. */
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

/* What arrived at the entry points while one of them was busy. */
static void serve_late_calls(struct qhca_engine *e)
{
    if (e->device->link_changed) {
        e->device->link_changed = false;
        if (!e->faults->link_back) {
            qhca_port_set_link(e, e->device->link_wanted);
        }
    }
    if (e->device->run_wanted) {
        e->device->run_wanted = false;
        e->device->timers_due = true;
    }
    if (e->device->tx_wanted) {
        e->device->tx_wanted = false;
        qhca_tx_flush(e);
    }
}

static bool late_calls(const struct qhca_engine *e)
{
    return e->device->run_wanted || e->device->tx_wanted ||
           e->device->link_changed;
}

void qhca_run_init(struct qhca_engine *e)
{
    const uint64_t ps = QHCA_PACE_NS * 1000ull;

    e->device->slice.slack = SLICE_NS;
    e->device->slice.cost = SLICE_NS * 1000ull / SLICE_UNITS;
    e->device->share.slack = QHCA_PACE_NS;
    if (e->cfg.cpu_share) {
        e->device->share.cost = ps / ENTRY_UNITS * 100 / e->cfg.cpu_share;
    }
}

void qhca_run_slice(struct qhca_engine *e)
{
    e->device->slice.paid = e->now;
}

uint64_t qhca_run_wake(const struct qhca_engine *e)
{
    uint64_t wake = UINT64_MAX;

    if (!qhca_run_has_time(e, e->now)) {
        wake = e->device->share.paid;
    }
    return qhca_port_open(e) ? wake : MIN_OF(wake, e->port->pace.paid);
}

bool qhca_run_has_time(const struct qhca_engine *e, uint64_t now)
{
    return qhca_pace_left(&e->device->share, now, 1);
}

void qhca_run_pay(struct qhca_engine *e)
{
    qhca_pace_take(&e->device->slice, e->now, e->spent);
    qhca_pace_take(&e->device->share, e->now, e->spent);
}

void qhca_run(struct qhca_engine *e)
{
    struct qhca_device *d = e->device;
    unsigned budget = qhca_pace_left(&d->slice, e->now, ENTRY_UNITS);
    bool more = false;

    budget = qhca_pace_left(&d->share, e->now, budget);
    serve_late_calls(e);
    while (qhca_running(e) && (more = find_work(e)) && e->spent < budget) {
        e->limit = MIN_OF(budget, e->spent + TURN_UNITS);
        work[d->source](e);
        qhca_spend(e, 1);
        d->source = (d->source + 1) % NUM_SOURCES;
    }
    qhca_run_pay(e);
    if (qhca_running(e) && qhca_run_has_time(e, e->now) &&
        (more || late_calls(e))) {
        e->ops->schedule(e->opaque);
    }
}

void qhca_run_walk(struct qhca_snap *s)
{
    struct qhca_device *d = s->e->device;

    d->source = qhca_snap_u32(s, "source", d->source, NUM_SOURCES - 1);
    qhca_snap_pace(s, &d->slice);
    qhca_snap_pace(s, &d->share);
}
