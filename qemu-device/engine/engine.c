/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: life cycle and entry points. What an entry point starts, run.c
 * carries on.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define MAX_VECTORS     2048u   /* of MSI-X */
#define MAX_QP          (1u << 18)

/* struct house - an engine and all its rooms */
struct house {
    struct qhca_engine engine;
    struct qhca_memory memory;
    struct qhca_queues queues;
    struct qhca_port port;
    struct qhca_qps qps;
    struct qhca_receive receive;
    struct qhca_eth eth;
    struct qhca_device device;
};

/* ---- services ---- */

/**
 * qhca_guest_error() - a line for the author of the guest's driver
 * @e: the engine
 * @fmt: as printf()
 */
void qhca_guest_error(struct qhca_engine *e, const char *fmt, ...)
{
    char msg[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    e->ops->guest_error(e->opaque, msg);
}

/**
 * qhca_raise_irq() - raises an interrupt, unless all must be silent
 * @e: the engine
 * @vector: MSI-X vector
 */
void qhca_raise_irq(struct qhca_engine *e, unsigned vector)
{
    if (qhca_running(e)) {
        e->ops->raise_irq(e->opaque, vector);
    }
}

/**
 * qhca_fatal() - stops the device
 * @e: the engine
 * @reason: why
 */
void qhca_fatal(struct qhca_engine *e, enum qhca_fatal reason)
{
    if (e->fatal) {
        return;
    }
    e->fatal = (uint8_t)reason;
    qhca_trace(e, QHCA_TRACE_FATAL, reason, 0, 0);
    if (qhca_running(e)) {
        qhca_eq_fatal(e);
    }
    e->state = QHCA_STATE_FATAL;
}

/**
 * qhca_reset() - back to power-on
 * @e: the engine
 */
void qhca_reset(struct qhca_engine *e)
{
    /* Nothing that is freed below may cause DMA or an interrupt. */
    e->state = QHCA_STATE_RESET;
    e->fatal = QHCA_FATAL_NONE;
    qhca_mcast_free_all(e);
    qhca_mw_free_all(e);    /* they hold on to their QPs */
    qhca_qp_free_all(e);
    qhca_srq_free_all(e);
    qhca_eth_free_all(e);
    qhca_cq_free_all(e);
    qhca_eq_free_all(e);
    qhca_mr_free_all(e);
    qhca_pd_free_all(e);
    qhca_xrcd_free_all(e);
    qhca_cntset_free_all(e);
    qhca_list_init(&e->qps->ready);
    qhca_list_init(&e->qps->tx_wait);
    qhca_list_init(&e->queues->failed);
    qhca_fifo_free(&e->device->late);
    qhca_port_reset(e);
    e->timers.used = e->timers.reserved = 0;
    e->reset_wanted = e->device->tx_wanted = e->device->run_wanted = false;
    memset(&e->device->cmdq, 0, sizeof(e->device->cmdq));
}

/* ---- life cycle ---- */

static bool config_ok(const struct qhca_engine_config *cfg)
{
    return cfg->num_vectors >= 2 && cfg->num_vectors <= MAX_VECTORS &&
           cfg->num_uars >= 1 && cfg->num_uars <= QHCA_DB_CAPS_PAGES &&
           cfg->max_qp >= 1 && cfg->max_qp <= MAX_QP && !(cfg->mac[0] & 1);
}

static bool ops_ok(const struct qhca_engine_ops *ops)
{
    return ops->dma_read && ops->dma_write && ops->atomic_cas &&
           ops->atomic_add && ops->atomic_store && ops->send_frame &&
           ops->raise_irq && ops->set_timer && ops->schedule &&
           ops->guest_error && ops->trace;
}

static bool init_tables(struct qhca_engine *e)
{
    return qhca_table_init(&e->memory->pd, QHCA_MAX_PD, &e->rng) &&
           qhca_table_init(&e->memory->mr, QHCA_MAX_MR + QHCA_MAX_MW,
                           &e->rng) &&
           qhca_table_init(&e->queues->cq, QHCA_MAX_CQ, &e->rng) &&
           qhca_table_init(&e->receive->srq, QHCA_MAX_SRQ, &e->rng) &&
           qhca_table_init(&e->receive->xrcd, QHCA_MAX_XRCD, &e->rng) &&
           qhca_table_init(&e->qps->cntset, QHCA_MAX_CNTSET, &e->rng) &&
           qhca_table_init(&e->qps->table, e->cfg.max_qp, &e->rng);
}

static struct qhca_engine *build(void)
{
    struct house *h = calloc(1, sizeof(*h));

    if (!h) {
        return NULL;
    }
    h->engine.memory = &h->memory;
    h->engine.queues = &h->queues;
    h->engine.port = &h->port;
    h->engine.qps = &h->qps;
    h->engine.receive = &h->receive;
    h->engine.eth = &h->eth;
    h->engine.device = &h->device;
    return &h->engine;
}

/**
 * qhca_engine_new() - a device, in reset, with a carrier
 * @cfg: copied
 * @ops: every member set; must outlive the device
 * @opaque: handed to the callbacks
 */
struct qhca_engine *qhca_engine_new(const struct qhca_engine_config *cfg,
                                    const struct qhca_engine_ops *ops,
                                    void *opaque)
{
    struct qhca_engine *e;

    if (!config_ok(cfg) || !ops_ok(ops)) {
        return NULL;
    }
    e = build();
    if (!e) {
        return NULL;
    }
    e->cfg = *cfg;
    e->ops = ops;
    e->opaque = opaque;
    e->rng = cfg->seed;
    e->timers.armed = UINT64_MAX;
    e->port->link = true;
    e->memory->reserved_mr.key = QHCA_RESERVED_LKEY;
    e->memory->reserved_mr.type = QHCA_MR_DMA;
    e->memory->reserved_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    e->memory->null_mr.key = QHCA_NULL_LKEY;
    e->memory->null_mr.type = QHCA_MR_NULL;
    e->memory->null_mr.access = QHCA_ACCESS_LOCAL_WRITE;
    if (!init_tables(e)) {
        qhca_engine_free(e);
        return NULL;
    }
    qhca_reset(e);
    return e;
}

/**
 * qhca_engine_free() - frees a device and all it has
 * @e: the engine, or NULL
 */
void qhca_engine_free(struct qhca_engine *e)
{
    if (!e) {
        return;
    }
    if (e->qps->table.slot) {       /* the last of the tables: all are there */
        qhca_reset(e);
    }
    qhca_table_free(&e->memory->pd);
    qhca_table_free(&e->memory->mr);
    qhca_table_free(&e->queues->cq);
    qhca_table_free(&e->receive->srq);
    qhca_table_free(&e->receive->xrcd);
    qhca_table_free(&e->qps->cntset);
    qhca_table_free(&e->qps->table);
    free(e->timers.heap);
    free(container_of(e, struct house, engine));
}

/**
 * qhca_engine_num_objects() - live objects of all kinds
 * @e: the engine
 */
unsigned qhca_engine_num_objects(const struct qhca_engine *e)
{
    unsigned i, n = e->memory->pd.used + e->memory->mr.used +
                    e->queues->cq.used + e->receive->srq.used +
                    e->qps->table.used + e->receive->xrcd.used +
                    e->qps->cntset.used;

    for (i = 0; i < QHCA_MAX_EQ; i++) {
        n += e->queues->eq[i].used;
    }
    for (i = 0; i < QHCA_MAX_ETHQ; i++) {
        n += e->eth->queue[i].used;
    }
    return n;
}

/* ---- entry points: each is enter(), what it is about, leave() ---- */

static bool enter(struct qhca_engine *e, uint64_t now)
{
    if (e->device->busy) {
        return false;
    }
    e->device->busy = true;
    e->now = MAX_OF(e->now, now);
    return true;
}

static void leave(struct qhca_engine *e)
{
    qhca_run(e);
    if (e->reset_wanted) {
        qhca_reset(e);
    }
    qhca_timers_sync(e);
    e->device->busy = false;
}

/**
 * qhca_engine_reset() - back to power-on, from outside (FLR, machine reset)
 * @e: the engine
 * @now: time
 */
void qhca_engine_reset(struct qhca_engine *e, uint64_t now)
{
    if (!enter(e, now)) {
        e->reset_wanted = true;     /* silent from here on, reset in leave() */
        return;
    }
    qhca_reset(e);
    leave(e);
}

/**
 * qhca_engine_reg_read() - the guest reads a register
 * @e: the engine
 * @now: time
 * @off: offset in BAR0
 */
uint32_t qhca_engine_reg_read(struct qhca_engine *e, uint64_t now, unsigned off)
{
    uint32_t val;

    if (!enter(e, now)) {
        qhca_count(e, QHCA_CNT_BAD_REG);
        return UINT32_MAX;
    }
    val = qhca_reg_read(e, off);
    e->device->busy = false;            /* a read starts nothing */
    return val;
}

/**
 * qhca_engine_reg_write() - the guest writes a register
 * @e: the engine
 * @now: time
 * @off: offset in BAR0
 * @val: the value
 */
void qhca_engine_reg_write(struct qhca_engine *e, uint64_t now, unsigned off,
                           uint32_t val)
{
    if (!enter(e, now)) {
        qhca_count(e, QHCA_CNT_BAD_REG);
        return;
    }
    qhca_reg_write(e, off, val);
    leave(e);
}

/**
 * qhca_engine_doorbell() - the guest rings
 * @e: the engine
 * @now: time
 * @page: doorbell page
 * @off: offset in it
 * @val: value written
 */
void qhca_engine_doorbell(struct qhca_engine *e, uint64_t now, unsigned page,
                          unsigned off, uint64_t val)
{
    if (!enter(e, now)) {
        qhca_count(e, QHCA_CNT_BAD_DOORBELL);
        return;
    }
    qhca_doorbell(e, page, off, val);
    leave(e);
}

/**
 * qhca_engine_bad_doorbell() - a doorbell access that means nothing
 * @e: the engine
 */
void qhca_engine_bad_doorbell(struct qhca_engine *e)
{
    qhca_count(e, QHCA_CNT_BAD_DOORBELL);
    qhca_guest_error(e, "doorbell access of another kind than a 64-bit write");
}

/**
 * qhca_engine_rx_frame() - a frame arrived
 * @e: the engine
 * @now: time
 * @frame: the frame, without FCS
 * @len: its length
 */
void qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                          const uint8_t *frame, size_t len)
{
    if (!enter(e, now)) {
        /* Full: the network loses it. */
        qhca_fifo_push(&e->device->late, frame, len, 0);
        return;
    }
    qhca_steer(e, frame, len, 0);
    leave(e);
}

/**
 * qhca_engine_tx_ready() - the network takes frames again
 * @e: the engine
 * @now: time
 */
void qhca_engine_tx_ready(struct qhca_engine *e, uint64_t now)
{
    e->device->tx_wanted = true;
    qhca_engine_run(e, now);
}

/**
 * qhca_engine_tick() - the deadline has come
 * @e: the engine
 * @now: time
 */
void qhca_engine_tick(struct qhca_engine *e, uint64_t now)
{
    e->timers.armed = UINT64_MAX;       /* it is spent */
    if (!enter(e, now)) {
        e->device->run_wanted = true;
        return;
    }
    qhca_timers_expire(e);
    leave(e);
}

/**
 * qhca_engine_run() - goes on with what was cut off
 * @e: the engine
 * @now: time
 */
void qhca_engine_run(struct qhca_engine *e, uint64_t now)
{
    if (!enter(e, now)) {
        e->device->run_wanted = true;
        return;
    }
    leave(e);
}

/**
 * qhca_engine_set_link() - carrier of the port
 * @e: the engine
 * @now: time
 * @up: there is one
 */
void qhca_engine_set_link(struct qhca_engine *e, uint64_t now, bool up)
{
    e->device->link_changed = true;
    e->device->link_wanted = up;
    qhca_engine_run(e, now);
}

/**
 * qhca_engine_inject_fatal() - the operator stops the device
 * @e: the engine
 * @now: time
 */
void qhca_engine_inject_fatal(struct qhca_engine *e, uint64_t now)
{
    if (!enter(e, now)) {
        return;
    }
    if (e->state == QHCA_STATE_RUNNING) {
        qhca_fatal(e, QHCA_FATAL_INJECTED);
    }
    leave(e);
}
