/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the run loop. One turn gives every source of work its share; a
 * budget bounds what one doorbell or frame can keep the caller busy with.
 */
#include "device.h"

/*
 * Units of work (packets, frames, WQEs) per entry: about a millisecond of it.
 */
#define RUN_BUDGET      256u
/* Ethernet WQEs per turn. */
#define ETH_SHARE       16u

/* What arrived at the entry points while one of them was busy. */
static void serve_late_calls(struct qhca_engine *e)
{
    if (e->device->link_changed) {
        e->device->link_changed = false;
        qhca_port_set_link(e, e->device->link_wanted);
    }
    if (e->device->run_wanted) {
        e->device->run_wanted = false;
        qhca_timers_expire(e);
    }
    if (e->device->tx_wanted) {
        e->device->tx_wanted = false;
        qhca_tx_flush(e);
        if (!e->port->tx_blocked) {
            qhca_qp_tx_ready(e);
        }
    }
}

/*
 * Steers the frames that are in @f now, not those they bring about, and no more
 * than cost what a full FIFO of frames for one QP each does. Returns the cost.
 */
static unsigned drain(struct qhca_engine *e, struct qhca_fifo *f)
{
    unsigned n, cost = 0, used = qhca_fifo_used(f);
    const uint8_t *frame;
    uint32_t from;
    size_t len;

    for (n = 0; n < used && cost < QHCA_FIFO_FRAMES && qhca_running(e); n++) {
        frame = qhca_fifo_peek(f, &len, &from);
        cost += qhca_steer(e, frame, len, from);
        qhca_fifo_pop(f);
    }
    return cost;
}

/* Failed CQs come first, so that their QPs stop before they do more work. */
static unsigned run_failed_cqs(struct qhca_engine *e)
{
    struct qhca_cq *cq = qhca_cq_take_failed(e);

    if (!cq) {
        return 0;
    }
    qhca_qp_cq_failed(e, cq);
    return 1;
}

static unsigned turn(struct qhca_engine *e)
{
    unsigned cost = run_failed_cqs(e);

    cost += drain(e, &e->port->loop);
    cost += drain(e, &e->device->late);
    if (qhca_running(e)) {
        cost += qhca_qp_turn(e);
    }
    if (qhca_running(e)) {
        cost += qhca_eth_tx_work(e, ETH_SHARE);
    }
    return cost;
}

static bool work_left(const struct qhca_engine *e)
{
    return !qhca_list_empty(&e->qps->ready) ||
           !qhca_list_empty(&e->queues->failed) ||
           qhca_fifo_used(&e->port->loop) || qhca_fifo_used(&e->device->late) ||
           qhca_eth_tx_ready(e) || e->device->run_wanted ||
           e->device->tx_wanted ||
           e->device->link_changed;
}

void qhca_run(struct qhca_engine *e, unsigned spent)
{
    unsigned cost;

    serve_late_calls(e);
    do {
        cost = qhca_running(e) ? turn(e) : 0;
        spent += cost;
    } while (cost > 0 && spent < RUN_BUDGET);
    if (qhca_running(e) && work_left(e)) {
        e->ops->schedule(e->opaque);
    }
}
