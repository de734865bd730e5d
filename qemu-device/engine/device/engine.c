/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: life and entry points. run.c carries on what they start. */
#include <stdlib.h>

#include "../save/save.h"
#include "device.h"

#define MAX_VECTORS     2048u   /* of MSI-X */
#define MAX_QP          (1u << 18)

/* struct house - an engine with all its rooms */
struct house {
    struct qhca_engine engine;
    struct vhca_rules rules;
    struct vhca_memory memory;
    struct vhca_events events;
    struct vhca_port port;
    struct vhca_congestion congestion;
    struct vhca_qps qps;
    struct vhca_rqs rqs;
    struct vhca_eth eth;
    struct vhca_raw raw;
    struct vhca_cmdq cmdq;
    struct vhca_shadows shadows;
    struct vhca_device device;
};

/* ---- fault rules: what they do later, from the timer ---- */

static void move_link(struct qhca_engine *e, bool down)
{
    struct vhca_rules *f = e->rules;

    if (down) {
        f->link_back = MAX_OF(f->link_back, e->now + f->link_ns);
        vhca_port_set_link(e, false);
    } else if (f->link_back && f->link_back <= e->now) {
        f->link_back = 0;
        vhca_port_set_link(e, e->device->link_wanted);
    }
}

static void fault_due(struct qhca_engine *e, struct vhca_timer *t)
{
    struct vhca_rules *f = e->rules;
    struct vhca_rule_held *h;
    unsigned wanted;

    (void)t;
    vhca_rules_tick(e);
    wanted = f->wanted;
    f->wanted = 0;
    while (vhca_may_go_on(e) && (h = vhca_rule_due(e)) != NULL &&
           (h->point == VHCA_RULE_TX || !vhca_delivering(e))) {
        (h->point == VHCA_RULE_TX ? vhca_rule_send : vhca_rule_take)(e, h);
    }
    move_link(e, wanted & 1u << VHCA_RULE_LINK_DOWN);
    vhca_pause(e, f->pause_classes, f->pause_ns);
    f->pause_classes = 0;
    if (f->stalled && f->stalled <= e->now) {
        f->stalled = 0;
        e->cmdq->stalled = false;
    }
    if (wanted & 1u << VHCA_RULE_REMOVE) {
        e->ops->remove(e->opaque);
    }
    if (wanted & 1u << VHCA_RULE_FATAL) {
        vhca_fatal(e, QHCA_FATAL_INJECTED);
    }
    vhca_rules_update(e);
}

/* ---- the room ---- */

static void device_reset(struct qhca_engine *e)
{
    if (e->rules->link_back) {         /* a rule has taken the link down */
        e->port->link = e->device->link_wanted;
    }
    e->device->timers_due = false;
}

static bool device_init(struct qhca_engine *e)
{
    vhca_run_init(e);
    e->rules->timer.fn = fault_due;
    e->device->link_wanted = true;
    return true;
}

static unsigned device_holdings(const struct qhca_engine *e,
                                struct qhca_holding *h)
{
    (void)e;
    *h = (struct qhca_holding) { "engine", false, sizeof(struct house), 1, 1 };
    return 1;
}

static const struct vhca_room device_room = {
    .init = device_init, .reset = device_reset, .holdings = device_holdings,
    .section = "device", .version = 1, .walk = vhca_device_walk,
};

/* Created in this order, reset and freed in the reverse one. */
const struct vhca_room *const vhca_rooms[] = {
    &vhca_core_room, &vhca_save_room, &vhca_rules_room, &vhca_memory_room,
    &vhca_events_room, &vhca_rq_room, &vhca_port_room, &vhca_congestion_room,
    &vhca_qp_room, &vhca_eth_room, &vhca_raw_room, &vhca_qps_room,
    &vhca_driver_room, &device_room, NULL
};

#define NUM_ROOMS   (ARRAY_SIZE(vhca_rooms) - 1)

void vhca_reset(struct qhca_engine *e)
{
    /* Nothing that is freed below may cause DMA or an interrupt. */
    e->state = QHCA_STATE_RESET;
    e->fatal = QHCA_FATAL_NONE;
    for (size_t i = NUM_ROOMS; i-- > 0;) {
        if (vhca_rooms[i]->reset) {
            vhca_rooms[i]->reset(e);
        }
    }
}

/* ---- life cycle ---- */

static bool config_ok(const struct qhca_engine_config *cfg)
{
    return cfg->num_vectors >= 2 && cfg->num_vectors <= MAX_VECTORS &&
           cfg->num_uars >= 1 && cfg->num_uars <= QHCA_DB_CAPS_PAGES &&
           cfg->log_db_stride >= QHCA_PAGE_SHIFT &&
           cfg->log_db_stride <= QHCA_DB_LOG_STRIDE_MAX &&
           cfg->eth_queues >= 1 && cfg->eth_queues <= VHCA_MAX_ETH_PAIRS &&
           !(cfg->eth_queues & (cfg->eth_queues - 1)) &&
           cfg->max_qp >= 1 && cfg->max_qp <= MAX_QP && !(cfg->mac[0] & 1) &&
           cfg->cpu_share <= 100 && cfg->bandwidth <= VHCA_PORT_SPEED;
}

static bool ops_ok(const struct qhca_engine_ops *ops)
{
    return ops->dma_read && ops->dma_write && ops->dma_write_entry &&
           ops->dma_peek && ops->atomic_cas && ops->atomic_add &&
           ops->atomic_store && ops->send_frame && ops->raise_irq &&
           ops->set_timer && ops->schedule && ops->random && ops->guest_error;
}

static struct qhca_engine *build(void)
{
    struct house *h = calloc(1, sizeof(*h));

    if (!h) {
        return NULL;
    }
    h->engine.rules = &h->rules;
    h->engine.memory = &h->memory;
    h->engine.events = &h->events;
    h->engine.port = &h->port;
    h->engine.congestion = &h->congestion;
    h->engine.qps = &h->qps;
    h->engine.rqs = &h->rqs;
    h->engine.eth = &h->eth;
    h->engine.raw = &h->raw;
    h->engine.cmdq = &h->cmdq;
    h->engine.shadows = &h->shadows;
    h->engine.device = &h->device;
    return &h->engine;
}

static void forget(struct qhca_engine *e)
{
    for (size_t i = NUM_ROOMS; i-- > 0;) {
        if (vhca_rooms[i]->fini) {
            vhca_rooms[i]->fini(e);
        }
    }
    free(container_of(e, struct house, engine));
}

struct qhca_engine *qhca_engine_new(const struct qhca_engine_config *cfg,
                                    const struct qhca_engine_ops *ops,
                                    void *opaque)
{
    struct qhca_engine *e;

    if (!config_ok(cfg) || !ops_ok(ops) || (cfg->removable && !ops->remove)) {
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
        if (vhca_rooms[i]->init && !vhca_rooms[i]->init(e)) {
            forget(e);
            return NULL;
        }
    }
    if (!vhca_timers_alloc(e)) {
        forget(e);
        return NULL;
    }
    vhca_reset(e);
    return e;
}

void qhca_engine_free(struct qhca_engine *e)
{
    if (e) {
        vhca_reset(e);
        forget(e);
    }
}

unsigned qhca_engine_holdings(const struct qhca_engine *e,
                              struct qhca_holding h[VHCA_MAX_HOLDINGS])
{
    unsigned n = 0;

    for (size_t i = 0; i < NUM_ROOMS; i++) {
        n += vhca_rooms[i]->holdings ? vhca_rooms[i]->holdings(e, h + n) : 0;
    }
    return n;
}

size_t qhca_engine_get_faults(const struct qhca_engine *e, char *buf,
                              size_t size)
{
    return vhca_rules_print(e, 0, e->rules->num_host, buf, size);
}

uint64_t qhca_engine_memory(const struct qhca_engine *e, uint64_t *max)
{
    struct qhca_holding h[VHCA_MAX_HOLDINGS];
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
    struct qhca_holding h[VHCA_MAX_HOLDINGS];
    unsigned n = 0;

    for (unsigned i = qhca_engine_holdings(e, h); i-- > 0;) {
        n += h[i].object ? h[i].used : 0;
    }
    return n;
}

/* ---- entry points: enter(), their task, leave() ---- */

static void enter(struct qhca_engine *e, uint64_t now)
{
    VHCA_ASSERT(!e->inside);
    e->inside = true;
    e->now = MAX_OF(e->now, now);
    e->spent = 0;
}

/* Leave without having worked, so do not put off the deadline before. */
static void depart(struct qhca_engine *e)
{
    vhca_timers_sync(e, MIN_OF(e->timers.armed, vhca_run_wake(e)));
    e->inside = false;
}

static void leave(struct qhca_engine *e)
{
    vhca_run(e);
    vhca_timers_sync(e, vhca_run_wake(e));
    e->inside = false;
}

void qhca_engine_reset(struct qhca_engine *e, uint64_t now)
{
    enter(e, now);
    vhca_reset(e);
    leave(e);
}

uint32_t qhca_engine_reg_read(struct qhca_engine *e, uint64_t now, unsigned off)
{
    uint32_t val;

    enter(e, now);
    val = vhca_reg_read(e, off);
    e->inside = false;          /* a read starts nothing */
    return val;
}

void qhca_engine_reg_write(struct qhca_engine *e, uint64_t now, unsigned off,
                           uint32_t val)
{
    enter(e, now);
    vhca_reg_write(e, off, val);
    leave(e);
}

void qhca_engine_doorbell(struct qhca_engine *e, uint64_t now, unsigned page,
                          unsigned off, uint64_t val)
{
    enter(e, now);
    vhca_doorbell(e, page, off, val);
    leave(e);
}

bool qhca_engine_look(struct qhca_engine *e, uint64_t now)
{
    bool found;

    enter(e, now);
    found = vhca_shadow_look(e);
    if (found) {
        leave(e);
        return true;
    }
    /* Not with the slice: the caller has as many turns as looks. */
    vhca_pace_take(&e->share, e->now, e->spent);
    depart(e);
    return false;
}

bool qhca_engine_rest(struct qhca_engine *e, uint64_t now)
{
    bool idle;

    enter(e, now);
    idle = vhca_shadow_rest(e);
    leave(e);
    return idle;
}

void qhca_engine_bad_doorbell(struct qhca_engine *e)
{
    vhca_count(e, QHCA_CNT_BAD_DOORBELL);
    vhca_guest_error(e, "doorbell access that is not a 64-bit write");
}

unsigned qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                              const uint8_t *frame, size_t len)
{
    enter(e, now);
    vhca_run_receive(e, frame, len);
    leave(e);
    return e->spent;
}

unsigned qhca_engine_rx_more(struct qhca_engine *e, uint64_t now,
                             const uint8_t *frame, size_t len)
{
    enter(e, now);
    vhca_run_receive(e, frame, len);
    vhca_pay(e);
    depart(e);
    return e->spent;
}

bool qhca_engine_has_time(const struct qhca_engine *e, uint64_t now)
{
    return vhca_has_time(e, MAX_OF(e->now, now)) && !vhca_rx_waits(e);
}

void qhca_engine_tx_ready(struct qhca_engine *e, uint64_t now)
{
    enter(e, now);
    vhca_run_slice(e);
    vhca_tx_flush(e);
    leave(e);
}

void qhca_engine_tick(struct qhca_engine *e, uint64_t now)
{
    e->timers.armed = UINT64_MAX;       /* that deadline has passed */
    enter(e, now);
    e->device->timers_due = true;
    leave(e);
}

void qhca_engine_run(struct qhca_engine *e, uint64_t now)
{
    enter(e, now);
    vhca_run_slice(e);
    leave(e);
}

void qhca_engine_settle(struct qhca_engine *e)
{
    VHCA_ASSERT(!e->inside);
    vhca_late_finish(e, VHCA_EVERY_QP);
    vhca_early_drop(e);
}

void qhca_engine_set_link(struct qhca_engine *e, uint64_t now, bool up)
{
    enter(e, now);
    vhca_run_slice(e);
    e->device->link_wanted = up;
    if (!e->rules->link_back) {
        vhca_port_set_link(e, up);
    }
    leave(e);
}

bool qhca_engine_set_bandwidth(struct qhca_engine *e, uint64_t now,
                               unsigned mbit)
{
    bool ok = mbit <= VHCA_PORT_SPEED;

    enter(e, now);
    if (ok) {
        vhca_port_set_bandwidth(e, mbit);
    }
    leave(e);
    return ok;
}

void qhca_engine_inject_fatal(struct qhca_engine *e, uint64_t now)
{
    enter(e, now);
    if (e->state == QHCA_STATE_RUNNING) {
        vhca_fatal(e, QHCA_FATAL_INJECTED);
    }
    leave(e);
}

bool qhca_engine_set_faults(struct qhca_engine *e, uint64_t now,
                            const char *text, struct qhca_fault_error *err)
{
    bool ok;

    enter(e, now);
    ok = vhca_rules_set(e, false, text, err);
    leave(e);
    return ok;
}
