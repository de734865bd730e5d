/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: life cycle and entry points. What an entry point starts, run.c
 * carries on.
 */
#include <stdlib.h>

#include "device.h"

#define MAX_VECTORS     2048u   /* of MSI-X */
#define MAX_QP          (1u << 18)

/* struct house - an engine with all its rooms */
struct house {
    struct qhca_engine engine;
    struct qhca_faults faults;
    struct qhca_memory memory;
    struct qhca_queues queues;
    struct qhca_port port;
    struct qhca_qps qps;
    struct qhca_receive receive;
    struct qhca_eth eth;
    struct qhca_device device;
};

static void reset(struct qhca_engine *e)
{
    struct qhca_device *d = e->device;

    qhca_faults_end(e);
    qhca_fifo_free(&d->late);
    d->tx_wanted = d->run_wanted = d->timers_due = false;
    qhca_cmdq_reset(e);
}

static bool init(struct qhca_engine *e)
{
    qhca_run_init(e);
    qhca_faults_init(e);
    return true;
}

static unsigned holdings(const struct qhca_engine *e, struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "engine", false, sizeof(struct house), 1, 1
    };
    h[1] = qhca_fifo_holding(&e->device->late, "frames that came meanwhile");
    return 2;
}

static const struct qhca_room device_room = {
    .init = init,
    .reset = reset,
    .holdings = holdings,
    .commands = (const struct qhca_command *const[]) {
        qhca_device_commands, NULL
    },
    .section = "device",
    .version = 1,
    .oldest = 1,
    .walk = qhca_device_walk,
};

/* Made in this order, reset and taken down in the reverse one. */
const struct qhca_room *const qhca_rooms[] = {
    &qhca_core_room, &qhca_faults_room, &qhca_memory_room, &qhca_queues_room,
    &qhca_receive_room, &qhca_port_room, &qhca_qp_room, &qhca_eth_room,
    &qhca_transport_room, &device_room, NULL
};

#define NUM_ROOMS   (ARRAY_SIZE(qhca_rooms) - 1)

void qhca_reset(struct qhca_engine *e)
{
    /* Nothing that is freed below may cause DMA or an interrupt. */
    e->state = QHCA_STATE_RESET;
    e->fatal = QHCA_FATAL_NONE;
    for (size_t i = NUM_ROOMS; i-- > 0;) {
        qhca_rooms[i]->reset(e);
    }
    e->reset_wanted = false;
}

/* ---- life cycle ---- */

static bool config_ok(const struct qhca_engine_config *cfg)
{
    return cfg->num_vectors >= 2 && cfg->num_vectors <= MAX_VECTORS &&
           cfg->num_uars >= 1 && cfg->num_uars <= QHCA_DB_CAPS_PAGES &&
           cfg->log_db_stride >= QHCA_PAGE_SHIFT &&
           cfg->log_db_stride <= QHCA_DB_LOG_STRIDE_MAX &&
           cfg->max_qp >= 1 && cfg->max_qp <= MAX_QP && !(cfg->mac[0] & 1) &&
           cfg->cpu_share <= 100 && cfg->bandwidth <= QHCA_PORT_SPEED;
}

static bool ops_ok(const struct qhca_engine_ops *ops)
{
    return ops->dma_read && ops->dma_write && ops->dma_write_entry &&
           ops->dma_peek && ops->atomic_cas && ops->atomic_add &&
           ops->atomic_store && ops->send_frame && ops->raise_irq &&
           ops->set_timer && ops->schedule && ops->random && ops->remove &&
           ops->guest_error && ops->trace;
}

static struct qhca_engine *build(void)
{
    struct house *h = calloc(1, sizeof(*h));

    if (!h) {
        return NULL;
    }
    h->engine.faults = &h->faults;
    h->engine.memory = &h->memory;
    h->engine.queues = &h->queues;
    h->engine.port = &h->port;
    h->engine.qps = &h->qps;
    h->engine.receive = &h->receive;
    h->engine.eth = &h->eth;
    h->engine.device = &h->device;
    return &h->engine;
}

static void forget(struct qhca_engine *e)
{
    for (size_t i = NUM_ROOMS; i-- > 0;) {
        if (qhca_rooms[i]->fini) {
            qhca_rooms[i]->fini(e);
        }
    }
    free(container_of(e, struct house, engine));
}

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
    for (size_t i = 0; i < NUM_ROOMS; i++) {
        if (qhca_rooms[i]->init && !qhca_rooms[i]->init(e)) {
            forget(e);
            return NULL;
        }
    }
    qhca_reset(e);
    return e;
}

void qhca_engine_free(struct qhca_engine *e)
{
    if (e) {
        qhca_reset(e);
        forget(e);
    }
}

unsigned qhca_engine_holdings(const struct qhca_engine *e,
                              struct qhca_holding h[QHCA_MAX_HOLDINGS])
{
    unsigned n = 0;

    for (size_t i = 0; i < NUM_ROOMS; i++) {
        n += qhca_rooms[i]->holdings(e, h + n);
    }
    return n;
}

size_t qhca_engine_get_faults(const struct qhca_engine *e, char *buf,
                              size_t size)
{
    return qhca_faults_print(e, 0, e->faults->num_host, buf, size);
}

uint64_t qhca_engine_memory(const struct qhca_engine *e, uint64_t *max)
{
    struct qhca_holding h[QHCA_MAX_HOLDINGS];
    unsigned n = qhca_engine_holdings(e, h);
    uint64_t now = 0;

    *max = 0;
    for (unsigned i = 0; i < n; i++) {
        now += (uint64_t)h[i].size * h[i].used;
        *max += (uint64_t)h[i].size * h[i].max;
    }
    return now;
}

unsigned qhca_engine_num_objects(const struct qhca_engine *e)
{
    struct qhca_holding h[QHCA_MAX_HOLDINGS];
    unsigned n = 0;

    for (unsigned i = qhca_engine_holdings(e, h); i-- > 0;) {
        n += h[i].object ? h[i].used : 0;
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
    e->spent = 0;
    return true;
}

static void depart(struct qhca_engine *e)
{
    if (e->reset_wanted) {
        qhca_reset(e);
    }
    qhca_timers_sync(e, qhca_run_wake(e));
    e->device->busy = false;
}

static void leave(struct qhca_engine *e)
{
    qhca_run(e);
    depart(e);
}

void qhca_engine_reset(struct qhca_engine *e, uint64_t now)
{
    if (!enter(e, now)) {
        e->reset_wanted = true;     /* silent from here on, reset in leave() */
        return;
    }
    qhca_reset(e);
    leave(e);
}

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

void qhca_engine_bad_doorbell(struct qhca_engine *e)
{
    qhca_count(e, QHCA_CNT_BAD_DOORBELL);
    qhca_guest_error(e, "doorbell access of another kind than a 64-bit write");
}

static bool receive(struct qhca_engine *e, uint64_t now, const uint8_t *frame,
                    size_t len)
{
    if (!enter(e, now)) {
        /* Full: the network loses it. */
        qhca_fifo_push(&e->device->late, frame, len, 0);
        return false;
    }
    qhca_steer(e, frame, len, 0);
    return true;
}

unsigned qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                              const uint8_t *frame, size_t len)
{
    if (!receive(e, now, frame, len)) {
        return 1;
    }
    leave(e);
    return e->spent;
}

unsigned qhca_engine_rx_more(struct qhca_engine *e, uint64_t now,
                             const uint8_t *frame, size_t len)
{
    if (!receive(e, now, frame, len)) {
        return 1;
    }
    qhca_run_pay(e);
    depart(e);
    return e->spent;
}

bool qhca_engine_has_time(const struct qhca_engine *e, uint64_t now)
{
    return qhca_run_has_time(e, MAX_OF(e->now, now));
}

void qhca_engine_tx_ready(struct qhca_engine *e, uint64_t now)
{
    e->device->tx_wanted = true;
    qhca_engine_run(e, now);
}

void qhca_engine_tick(struct qhca_engine *e, uint64_t now)
{
    e->timers.armed = UINT64_MAX;       /* it is spent */
    if (!enter(e, now)) {
        e->device->run_wanted = true;
        return;
    }
    e->device->timers_due = true;
    leave(e);
}

void qhca_engine_run(struct qhca_engine *e, uint64_t now)
{
    if (!enter(e, now)) {
        e->device->run_wanted = true;
        return;
    }
    qhca_run_slice(e);
    leave(e);
}

void qhca_engine_set_link(struct qhca_engine *e, uint64_t now, bool up)
{
    e->device->link_changed = true;
    e->device->link_wanted = up;
    qhca_engine_run(e, now);
}

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

bool qhca_engine_set_faults(struct qhca_engine *e, uint64_t now,
                            const char *text, struct qhca_fault_error *err)
{
    bool ok;

    if (!enter(e, now)) {
        *err = (struct qhca_fault_error) { 1, 1, "the device is busy" };
        return false;
    }
    ok = qhca_faults_set(e, false, text, err);
    leave(e);
    return ok;
}
