/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca hosts: what each program around an engine does in the same way. */
#include <inttypes.h>
#include <stdio.h>

#include "host.h"

/* There is no such register, so the engine counts accesses to it. */
#define REG_NONE    (QHCA_BAR_REGS_SIZE - 4)

#define TRACE(h, point, ...) \
    do { \
        if ((h)->ops) { \
            (h)->ops->point(h, __VA_ARGS__); \
        } \
    } while (0)

void qhca_host_init(struct qhca_host *h, const struct qhca_props *props,
                    const struct qhca_host_ops *ops)
{
    *h = (struct qhca_host) {
        .props = props, .ops = ops, .deadline = UINT64_MAX, .up = true,
        .rx_budget = QHCA_RX_BUDGET,
    };
}

void qhca_host_seed(struct qhca_host *h, uint64_t seed)
{
    h->rng = seed * 2 + 1;
}

const char *qhca_host_start(struct qhca_host *h, const uint8_t mac[6],
                            bool removable, const struct qhca_engine_ops *ops)
{
    const char *wrong = qhca_props_wrong(h->props, mac);
    struct qhca_engine_config cfg;

    if (wrong) {
        return wrong;
    }
    cfg = qhca_props_config(h->props, mac);
    cfg.removable = removable;
    if (h->props->seed) {
        qhca_host_seed(h, h->props->seed);
    }
    h->engine = qhca_engine_new(&cfg, ops, h);
    return h->engine ? NULL :
           "no memory for the device, or 'max-qp' is too large";
}

void qhca_host_stop(struct qhca_host *h)
{
    qhca_engine_free(h->engine);
    h->engine = NULL;
}

/* ---- callbacks ---- */

/* xorshift64* */
uint64_t qhca_random_next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * 0x2545f4914f6cdd1dull;
}

bool qhca_host_random(struct qhca_host *h, uint32_t *bits)
{
    if (!h->rng) {
        return false;
    }
    *bits = (uint32_t)(qhca_random_next(&h->rng) >> 32);
    return true;
}

void qhca_host_set_timer(void *opaque, uint64_t deadline)
{
    struct qhca_host *h = opaque;

    TRACE(h, timer, deadline);
    h->deadline = deadline;
}

void qhca_host_schedule(void *opaque)
{
    struct qhca_host *h = opaque;

    h->todo |= QHCA_TODO_RUN;
}

void qhca_host_raise_irq(void *opaque, unsigned vector)
{
    struct qhca_host *h = opaque;

    if (vector < h->props->vectors) {
        TRACE(h, irq, vector);
        h->irqs |= (uint64_t)1 << vector;
    }
}

/* ---- work that is left ---- */

unsigned qhca_host_next_irq(struct qhca_host *h)
{
    unsigned vector = (unsigned)__builtin_ctzll(h->irqs);

    h->irqs &= h->irqs - 1;
    return vector;
}

void qhca_host_tick(struct qhca_host *h, uint64_t now)
{
    if (now >= h->deadline) {
        h->deadline = UINT64_MAX;
        qhca_engine_tick(h->engine, now);
    }
}

void qhca_host_forget(struct qhca_host *h)
{
    h->todo &= ~(unsigned)(QHCA_TODO_RUN | QHCA_TODO_TX_READY |
                           QHCA_TODO_FATAL);
    h->irqs = 0;
    h->give_up = 0;             /* until a ring has been filled */
    if (h->ops) {
        h->ops->drop_frames(h);
    }
}

void qhca_host_reset(struct qhca_host *h, uint64_t now)
{
    qhca_engine_reset(h->engine, now);
    qhca_host_forget(h);
    qhca_engine_set_link(h->engine, now, h->up);
}

void qhca_host_work(struct qhca_host *h, uint64_t now, unsigned todo)
{
    todo &= h->todo;
    h->todo &= ~todo;
    if (todo) {
        TRACE(h, bh, todo);
    }
    if (todo & QHCA_TODO_RESET) {
        qhca_host_reset(h, now);
    }
    if (todo & QHCA_TODO_LINK) {
        TRACE(h, net_link, h->up);
        qhca_engine_set_link(h->engine, now, h->up);
    }
    if (todo & QHCA_TODO_SPEED) {
        qhca_engine_set_bandwidth(h->engine, now, h->props->bandwidth);
    }
    if (todo & QHCA_TODO_FATAL) {
        qhca_engine_inject_fatal(h->engine, now);
    }
    if (todo & QHCA_TODO_TX_READY) {
        qhca_engine_tx_ready(h->engine, now);
    }
    if (todo & QHCA_TODO_RUN) {
        qhca_engine_run(h->engine, now);
    }
}

/* ---- frames from the network ---- */

bool qhca_host_takes(struct qhca_host *h, uint64_t now, uint64_t *again)
{
    *again = UINT64_MAX;
    if (!qhca_engine_has_time(h->engine, now)) {
        return false;
    }
    if (qhca_engine_can_receive(h->engine)) {
        h->give_up = UINT64_MAX;
        return true;
    }
    if (h->give_up == UINT64_MAX) {
        h->give_up = now + QHCA_RX_WAIT_NS;
        TRACE(h, net_rx_wait, h->give_up);
    }
    if (h->give_up > now) {
        *again = h->give_up;
        return false;
    }
    if (h->give_up) {
        TRACE(h, net_rx_giveup, h->give_up);
        h->give_up = 0;
    }
    return true;
}

void qhca_host_receive(struct qhca_host *h, uint64_t now, const uint8_t *frame,
                       size_t len, bool more)
{
    unsigned work = (more ? qhca_engine_rx_more : qhca_engine_rx_frame)(
                        h->engine, now, frame, len);

    h->rx_budget -= work < h->rx_budget ? work : h->rx_budget;
}

/* ---- BARs ---- */

static void bad_access(struct qhca_host *h, const char *bar, uint64_t off,
                       unsigned size, bool write)
{
    char msg[80];

    TRACE(h, mmio_bad, bar, off, size, write);
    if (h->ops) {
        snprintf(msg, sizeof(msg), "%s+0x%" PRIx64 ": bad %s of %u bytes", bar,
                 off, write ? "write" : "read", size);
        h->ops->guest_error(h, msg);
    }
}

uint32_t qhca_host_reg_read(struct qhca_host *h, uint64_t now, uint64_t off,
                            unsigned size)
{
    uint32_t val;

    if (size != 4 || off % 4) {
        bad_access(h, "regs", off, size, false);
        qhca_engine_reg_read(h->engine, now, REG_NONE);
        return 0;
    }
    val = qhca_engine_reg_read(h->engine, now, (unsigned)off);
    TRACE(h, reg_read, (unsigned)off, val);
    return val;
}

void qhca_host_reg_write(struct qhca_host *h, uint64_t now, uint64_t off,
                         unsigned size, uint32_t val)
{
    if (size != 4 || off % 4) {
        bad_access(h, "regs", off, size, true);
        qhca_engine_reg_write(h->engine, now, REG_NONE, 0);
        return;
    }
    TRACE(h, reg_write, (unsigned)off, val);
    qhca_engine_reg_write(h->engine, now, (unsigned)off, val);
    if (off == QHCA_REG_RESET && val == QHCA_RESET_KEY) {
        qhca_host_forget(h);
    }
}

void qhca_host_db_read(struct qhca_host *h, uint64_t off, unsigned size)
{
    bad_access(h, "db", off, size, false);
    qhca_engine_bad_doorbell(h->engine);
}

void qhca_host_db_write(struct qhca_host *h, uint64_t now, uint64_t off,
                        unsigned size, uint64_t val)
{
    uint64_t stride = h->props->db_stride;

    if (size != 8 || off % 8) {
        bad_access(h, "db", off, size, true);
        qhca_engine_bad_doorbell(h->engine);
        return;
    }
    qhca_engine_doorbell(h->engine, now, (unsigned)(off / stride),
                         (unsigned)(off % stride), val);
}

/* ---- the operator ---- */

const char *qhca_host_set_faults(struct qhca_host *h, uint64_t now,
                                 const char *text)
{
    if (qhca_engine_set_faults(h->engine, now, text, &h->wrong)) {
        return NULL;
    }
    snprintf(h->why, sizeof(h->why), "faults: line %u, column %u: %s",
             h->wrong.line, h->wrong.column, h->wrong.what);
    return h->why;
}
