/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: when the engine runs, its callbacks, and the network's.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "hw/pci/msix.h"

#include "qhca.h"
#include "trace.h"

uint64_t qhca_dev_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/*
 * Returns false if the engine is busy or the device is gone; then the engine
 * must not be called.
 *
 * Memory that the engine has peeked at must stay until qhca_dev_leave(). Only
 * the holder of the BQL changes the memory map, but that may be us: the guest
 * can aim the interrupt of a card that receives our frame at something that
 * unplugs memory. The RCU section delays that; MMIO is in one already.
 */
bool qhca_dev_enter(QHCAState *s)
{
    if (s->busy || s->gone) {
        return false;
    }
    rcu_read_lock();
    qhca_dev_hold(s);
    s->busy = true;
    return true;
}

/*
 * The engine moves its deadline with every packet, nearly always to a later
 * time, and moving a QEMU timer wakes up the main loop. So the timer is only
 * ever moved to an earlier time, and when it expires it checks whether the
 * deadline has come.
 */
static void qhca_arm_timer(QHCAState *s)
{
    if (s->host.deadline < s->armed) {
        s->armed = s->host.deadline;
        timer_mod(s->timer, MIN(s->armed, INT64_MAX));
    }
}

void qhca_dev_leave(QHCAState *s)
{
    if (!s->gone) {
        qhca_dev_net_push(&s->net);
    }
    s->busy = false;
    rcu_read_unlock();
    if (!s->gone) {
        qhca_dev_net_rx_update(&s->net);
        qhca_arm_timer(s);
        if (s->host.todo) {
            qemu_bh_schedule(s->bh);
        }
    }
    qhca_dev_release(s);
}

/* Keep the device while code that may unplug it is called. */
void qhca_dev_hold(QHCAState *s)
{
    s->held++;
}

/* If the device is gone, this may free the engine. */
void qhca_dev_release(QHCAState *s)
{
    if (!--s->held && s->gone) {
        qhca_dev_free(s);
    }
}

/* Leave work for the bottom half. */
void qhca_dev_kick(QHCAState *s, unsigned todo)
{
    if (!s->gone) {
        s->host.todo |= todo;
        qemu_bh_schedule(s->bh);
    }
}

/*
 * Send the messages of the interrupts that the engine has raised. The guest
 * chooses their addresses. One in the device's own BAR must not recurse, so the
 * device is busy during the call, and another may unplug it.
 */
void qhca_dev_send_irqs(QHCAState *s)
{
    if (!s->host.irqs || !runstate_is_running() || !qhca_dev_enter(s)) {
        return;
    }
    while (s->host.irqs && !s->gone) {
        msix_notify(PCI_DEVICE(s), qhca_host_next_irq(&s->host));
    }
    qhca_dev_leave(s);
}

void qhca_dev_do_todo(QHCAState *s)
{
    unsigned todo = s->host.todo;

    /*
     * A stopped machine's memory must not change any more: the work is done
     * when the machine continues. Only a reset must not wait.
     */
    if (!runstate_is_running()) {
        todo &= QHCA_TODO_RESET;
    }
    if (!todo || !qhca_dev_enter(s)) {
        return;
    }
    qhca_host_work(&s->host, qhca_dev_now(), todo);
    qhca_dev_leave(s);

    /* The network also delivers frames to others, who may unplug the device. */
    if ((todo & QHCA_TODO_RX) && !s->gone) {
        qhca_dev_hold(s);
        s->host.rx_budget = QHCA_RX_BUDGET;
        qhca_dev_net_flush(&s->net);
        qhca_dev_release(s);
    }
}

static void qhca_bh(void *opaque)
{
    QHCAState *s = opaque;

    qhca_dev_do_todo(s);
    qhca_dev_send_irqs(s);
}

static void qhca_vm_change(void *opaque, bool running, RunState state)
{
    QHCAState *s = opaque;

    if (running && (s->host.todo || s->host.irqs)) {
        qemu_bh_schedule(s->bh);
    }
    if (!running && qhca_dev_enter(s)) {
        qhca_engine_settle(s->host.engine);
        qhca_dev_leave(s);
    }
}

static void qhca_timer(void *opaque)
{
    QHCAState *s = opaque;

    s->armed = UINT64_MAX;
    if (qhca_dev_enter(s)) {
        qhca_host_tick(&s->host, qhca_dev_now());
        qhca_dev_leave(s);
    }
    qhca_dev_send_irqs(s);
}

static bool qhca_net_can_take(void *opaque, uint64_t *again)
{
    QHCAState *s = opaque;

    *again = UINT64_MAX;
    if (s->busy || s->gone) {
        return false;
    }
    if (!s->host.rx_budget) {
        qhca_dev_kick(s, QHCA_TODO_RX);
        return false;
    }
    return qhca_host_takes(&s->host, qhca_dev_now(), again);
}

/* A message may change the network, so none is sent while that is running. */
static void qhca_net_frame(void *opaque, const uint8_t *frame, size_t len,
                           bool more)
{
    QHCAState *s = opaque;

    /* The engine is free: qhca_net_can_take() has just checked that. */
    if (qhca_dev_enter(s)) {
        qhca_host_receive(&s->host, qhca_dev_now(), frame, len, more);
        qhca_dev_leave(s);
        if (s->host.irqs) {
            qemu_bh_schedule(s->bh);
        }
    }
}

static void qhca_net_event(void *opaque, QHCANetEvent event)
{
    static const unsigned todo[] = {
        [QHCA_NET_HOLDS_FRAMES] = QHCA_TODO_RX,
        [QHCA_NET_TX_READY] = QHCA_TODO_TX_READY,
        [QHCA_NET_LINK_CHANGED] = QHCA_TODO_LINK,
        [QHCA_NET_LEFT_OFF] = QHCA_TODO_RUN,
    };
    QHCAState *s = opaque;

    s->host.up = qhca_dev_net_link_up(&s->net);
    qhca_dev_kick(s, todo[event]);
}

const QHCANetOps qhca_dev_net_callbacks = {
    .can_receive = qhca_net_can_take,
    .receive = qhca_net_frame,
    .event = qhca_net_event,
};

static bool qhca_send_frame(void *opaque, const uint8_t *frame, size_t len)
{
    QHCAState *s = qhca_dev_of(opaque);

    return !s->gone && qhca_dev_net_send(&s->net, frame, len);
}

static bool qhca_send_long(void *opaque, const uint8_t *frame, size_t len,
                           const struct qhca_long_frame *how)
{
    QHCAState *s = qhca_dev_of(opaque);

    return !s->gone && qhca_dev_net_send_long(&s->net, frame, len, how);
}

static void qhca_raise_irq(void *opaque, unsigned vector)
{
    qhca_host_raise_irq(opaque,
                        qhca_dev_tamper_irq(qhca_dev_of(opaque), vector));
}

static uint32_t qhca_random(void *opaque)
{
    uint32_t bits;

    if (!qhca_host_random(opaque, &bits)) {
        /* Follows -seed, and is replayed by record/replay. */
        qemu_guest_getrandom_nofail(&bits, sizeof(bits));
    }
    return bits;
}

static void qhca_guest_error(void *opaque, const char *msg)
{
    QHCAState *s = qhca_dev_of(opaque);

    qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", s->id, msg);
}

#define QHCA_ON(name, params, args) \
static void qhca_on_##name(void *opaque, params) \
{ \
    trace_qhca_##name(qhca_dev_of(opaque)->id, args); \
}
#define VHCA_TRACE QHCA_ON
#include "engine/trace.def"
#define VHCA_TRACE QHCA_ON
#include "common/trace.def"

static const struct qhca_engine_traces qhca_traces = {
#define VHCA_TRACE(name, params, args) .name = qhca_on_##name,
#include "engine/trace.def"
};

static void qhca_drop_frames(void *opaque)
{
    qhca_dev_net_reset(&qhca_dev_of(opaque)->net);
}

const struct qhca_host_ops qhca_dev_host_callbacks = {
    .guest_error = qhca_guest_error,
    .drop_frames = qhca_drop_frames,
#define VHCA_TRACE(name, params, args) .name = qhca_on_##name,
#include "common/trace.def"
};

const struct qhca_engine_ops qhca_dev_callbacks = {
    .dma_read = qhca_dev_dma_read,
    .dma_write = qhca_dev_dma_write,
    .dma_write_entry = qhca_dev_dma_write_entry,
    .dma_peek = qhca_dev_dma_peek,
    .atomic_cas = qhca_dev_dma_cas,
    .atomic_add = qhca_dev_dma_add,
    .atomic_store = qhca_dev_dma_store,
    .send_frame = qhca_send_frame,
    .send_long = qhca_send_long,
    .loop_frame = qhca_dev_capture,
    .raise_irq = qhca_raise_irq,
    .set_timer = qhca_host_set_timer,
    .schedule = qhca_host_schedule,
    .random = qhca_random,
    .remove = qhca_dev_remove,
    .guest_error = qhca_guest_error,
    .trace = &qhca_traces,
#ifdef QHCA_HOSTILE
    .tamper = qhca_dev_tamper,
#endif
};

void qhca_dev_run_init(QHCAState *s)
{
    DeviceState *dev = DEVICE(s);

    s->armed = UINT64_MAX;
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_timer, s);
    s->bh = qemu_bh_new_guarded(qhca_bh, s, &dev->mem_reentrancy_guard);
    s->vm_change = qdev_add_vm_change_state_handler(dev, qhca_vm_change, s);
}

void qhca_dev_run_exit(QHCAState *s)
{
    qemu_del_vm_change_state_handler(s->vm_change);
    qemu_bh_delete(s->bh);
    timer_free(s->timer);
}
