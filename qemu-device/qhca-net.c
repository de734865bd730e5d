/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: the port's connection to a QEMU network backend.
 *
 * Both directions have back-pressure. Transmit: when the network cannot take a
 * frame at once it keeps it, and no further frame is offered until it says that
 * this one is through. Receive: while the guest's Ethernet ring is empty the
 * network is asked to wait, but not for long: RoCE comes in by the same door,
 * and works without the guest's kernel.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"

#include "qhca.h"
#include "trace.h"

/* How long frames wait for a buffer in the Ethernet ring. */
#define QHCA_RX_WAIT_NS (10 * SCALE_MS)

/* Frames taken before the main loop gets a turn. */
#define QHCA_RX_BUDGET 256

static bool qhca_net_can_receive(NetClientState *nc)
{
    QHCAState *s = qemu_get_nic_opaque(nc);

    if (!s->busy && s->rx_budget &&
        (s->rx_giveup || qhca_engine_can_receive(s->engine))) {
        return true;
    }
    if (!s->rx_blocked) {
        trace_qhca_net_rx_wait(s->id);
        s->rx_blocked = true;
        timer_mod(s->rx_timer, qhca_dev_now() + QHCA_RX_WAIT_NS);
    }
    if (!s->rx_budget) {
        qhca_dev_kick(s, QHCA_TODO_RX_FLUSH);
    }
    return false;
}

static ssize_t qhca_net_receive(NetClientState *nc, const uint8_t *buf,
                                size_t size)
{
    QHCAState *s = qemu_get_nic_opaque(nc);

    /* The network asks only before the first of several frames. */
    if (!qhca_net_can_receive(nc)) {
        return 0;
    }
    trace_qhca_net_rx(s->id, size);
    s->rx_budget--;
    qhca_dev_enter(s);
    qhca_engine_rx_frame(s->engine, qhca_dev_now(), buf, size);
    qhca_dev_leave(s);
    qhca_dev_irqs_later(s);
    return size;
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QHCAState *s = qemu_get_nic_opaque(nc);

    trace_qhca_net_link(s->id, !nc->link_down);
    qhca_dev_kick(s, QHCA_TODO_LINK);
}

static NetClientInfo qhca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = qhca_net_can_receive,
    .receive = qhca_net_receive,
    .link_status_changed = qhca_net_link_changed,
};

/* The engine was left, and the network may not have to wait any more. */
void qhca_dev_net_rx_update(QHCAState *s)
{
    bool room = qhca_engine_can_receive(s->engine);

    if (s->rx_blocked && (room || s->rx_giveup)) {
        qhca_dev_kick(s, QHCA_TODO_RX_FLUSH);
    }
    if (room) {
        s->rx_giveup = false;
    }
}

/* From the bottom half: take what the network holds for us. */
void qhca_dev_net_flush(QHCAState *s)
{
    timer_del(s->rx_timer);
    s->rx_blocked = false;
    s->rx_budget = QHCA_RX_BUDGET;
    qemu_flush_queued_packets(qemu_get_queue(s->nic));
}

static void qhca_net_rx_timeout(void *opaque)
{
    QHCAState *s = opaque;

    trace_qhca_net_rx_giveup(s->id);
    s->rx_giveup = true;
    qhca_dev_kick(s, QHCA_TODO_RX_FLUSH);
}

/* Any time after qhca_dev_net_send() saw a frame queued. */
static void qhca_net_sent(NetClientState *nc, ssize_t ret)
{
    QHCAState *s = qemu_get_nic_opaque(nc);

    trace_qhca_net_tx_done(s->id, ret);
    s->tx_blocked = false;
    if (s->tx_refused) {
        s->tx_refused = false;
        qhca_dev_kick(s, QHCA_TODO_TX_READY);
    }
}

/*
 * The engine's send_frame. A frame that the network queues is taken: only the
 * one after it is refused.
 */
bool qhca_dev_net_send(void *opaque, const uint8_t *frame, size_t len)
{
    QHCAState *s = opaque;

    if (s->tx_blocked) {
        s->tx_refused = true;
    } else {
        s->tx_blocked = qemu_send_packet_async(qemu_get_queue(s->nic), frame,
                                               len, qhca_net_sent) == 0;
    }
    trace_qhca_net_tx(s->id, len, !s->tx_refused);
    return !s->tx_refused;
}

bool qhca_dev_net_link_up(QHCAState *s)
{
    return !qemu_get_queue(s->nic)->link_down;
}

void qhca_dev_net_init(QHCAState *s)
{
    DeviceState *dev = DEVICE(s);

    s->rx_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_net_rx_timeout, s);
    s->rx_giveup = true;
    s->rx_budget = QHCA_RX_BUDGET;
    s->nic = qemu_new_nic(&qhca_net_info, &s->conf, TYPE_QHCA, dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
}

/*
 * After a reset nothing of what was sent before may still go out, and there is
 * no ring to wait for until one has been filled.
 */
void qhca_dev_net_reset(QHCAState *s)
{
    s->tx_refused = false;
    s->rx_giveup = true;
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
}

void qhca_dev_net_exit(QHCAState *s)
{
    /* What the peer has queued would otherwise name a sender that is gone. */
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
    qemu_del_nic(s->nic);
    timer_free(s->rx_timer);
}
