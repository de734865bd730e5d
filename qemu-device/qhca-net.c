/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: the port's connection to a QEMU network backend.
 *
 * Both directions have back-pressure. Transmit: when the network cannot take a
 * frame now it keeps it, and is offered no other until it has sent this one.
 * Receive: while the guest's Ethernet ring is empty the network is asked to
 * wait, but not for long: RoCE arrives the same way, and works without the
 * guest's kernel.
 *
 * Frames from and to a tap have headers, by which the host's kernel takes TCP
 * segments that it cuts itself, or need not. It is not asked to leave anything
 * to the device.
 */
#include "qemu/osdep.h"
#include "hw/qdev-core.h"

#include "common/vnet.h"
#include "qhca-net.h"
#include "trace.h"

/* Whether the device takes a frame; if not, it is asked again in time. */
static bool qhca_net_may_receive(QHCANet *net)
{
    uint64_t again;
    bool ok = net->ops->can_receive(net->opaque, &again);

    if (!ok && again != UINT64_MAX) {
        timer_mod(net->rx_timer, again);
    }
    return ok;
}

static bool qhca_net_can_receive(NetClientState *nc)
{
    QHCANet *net = qemu_get_nic_opaque(nc);
    bool ok = qhca_net_may_receive(net);

    net->rx_blocked |= !ok;
    return ok;
}

static bool qhca_net_receive_one(NetClientState *nc, const uint8_t *buf,
                                 size_t size, bool more)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    /* The network calls can_receive only before the first of several frames. */
    if (!qhca_net_can_receive(nc)) {
        return false;
    }
    trace_qhca_net_rx(net->id, size);
    net->ops->receive(net->opaque, buf, size, more);
    return true;
}

/*
 * Returns false if some frames have to wait. The network cannot keep only
 * those, so it keeps the whole aggregate. Nothing is lost if it offers another
 * one first: this one then starts over, as a network may duplicate frames.
 */
static bool qhca_net_receive_many(NetClientState *nc, const uint8_t *buf,
                                  size_t size)
{
    QHCANet *net = qemu_get_nic_opaque(nc);
    size_t at = 0, next, following, len, more_len;
    const uint8_t *frame, *more;

    if (net->rx_at && net->rx_seq == vhca_aggregate_seq(buf)) {
        at = net->rx_at;
    }
    net->rx_seq = vhca_aggregate_seq(buf);
    next = at;
    frame = vhca_aggregate_next(buf, size, &next, &len);
    while (frame) {
        following = next;
        more = vhca_aggregate_next(buf, size, &following, &more_len);
        if (!qhca_net_receive_one(nc, frame, len, more)) {
            net->ops->event(net->opaque, QHCA_NET_LEFT_OFF);
            net->rx_at = at;
            return false;
        }
        at = next;
        next = following;
        frame = more;
        len = more_len;
    }
    net->rx_at = 0;
    return true;
}

static bool qhca_net_receive_frame(NetClientState *nc, const uint8_t *frame,
                                   size_t len)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    return net->tx && vhca_aggregate_is(frame, len) ?
           qhca_net_receive_many(nc, frame, len) :
           qhca_net_receive_one(nc, frame, len, false);
}

static ssize_t qhca_net_receive(NetClientState *nc, const uint8_t *buf,
                                size_t size)
{
    QHCANet *net = qemu_get_nic_opaque(nc);
    const uint8_t *frame = buf;
    size_t len = size;

    if (net->vnet) {
        frame = qhca_vnet_frame(buf, &len, net->room);
    }
    return !frame || qhca_net_receive_frame(nc, frame, len) ? size : 0;
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    net->ops->event(net->opaque, QHCA_NET_LINK_CHANGED);
}

static NetClientInfo qhca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = qhca_net_can_receive,
    .receive = qhca_net_receive,
    .link_status_changed = qhca_net_link_changed,
};

void qhca_dev_net_rx_update(QHCANet *net)
{
    if (net->rx_blocked && qhca_net_may_receive(net)) {
        net->ops->event(net->opaque, QHCA_NET_HOLDS_FRAMES);
    }
}

/* Of the netdev. Frames leave by the first one, and come from any. */
static unsigned qhca_net_queues(const QHCANet *net)
{
    return MAX(net->nic->conf->peers.queues, 1);
}

void qhca_dev_net_flush(QHCANet *net)
{
    timer_del(net->rx_timer);
    net->rx_blocked = false;
    for (unsigned i = 0; i < qhca_net_queues(net); i++) {
        qemu_flush_queued_packets(qemu_get_subqueue(net->nic, i));
    }
}

static void qhca_net_rx_timeout(void *opaque)
{
    QHCANet *net = opaque;

    net->ops->event(net->opaque, QHCA_NET_HOLDS_FRAMES);
}

/* Called any time after the network has queued a frame. */
static void qhca_net_sent(NetClientState *nc, ssize_t ret)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    trace_qhca_net_tx_done(net->id, ret);
    net->tx_blocked = false;
    if (net->tx_refused) {
        net->tx_refused = false;
        net->ops->event(net->opaque, QHCA_NET_TX_READY);
    }
}

/*
 * A frame that the network queues has been sent; the next one is refused.
 * Returns false if the network does not take it at all. @hdr: for a tap
 */
static bool qhca_net_out(QHCANet *net, const struct qhca_vnet *hdr,
                         const uint8_t *frame, size_t len)
{
    struct iovec iov[] = {
        { .iov_base = (void *)hdr, .iov_len = sizeof(*hdr) },
        { .iov_base = (void *)frame, .iov_len = len },
    };
    unsigned from = net->vnet ? 0 : 1;
    ssize_t ret = qemu_sendv_packet_async(qemu_get_queue(net->nic), iov + from,
                                          ARRAY_SIZE(iov) - from,
                                          qhca_net_sent);

    net->tx_blocked = ret == 0;
    return ret >= 0;
}

static void qhca_net_out_frame(QHCANet *net, const uint8_t *frame, size_t len)
{
    static const struct qhca_vnet complete;

    qhca_net_out(net, &complete, frame, len);
}

void qhca_dev_net_push(QHCANet *net)
{
    const uint8_t *frame = NULL;
    size_t len;

    if (net->tx) {
        frame = vhca_aggregate_take(net->tx, &len);
    }
    if (frame) {
        qhca_net_out_frame(net, frame, len);
    }
}

/* Frames are collected only while the network is not blocked. */
static bool qhca_net_take(QHCANet *net, const uint8_t *frame, size_t len)
{
    if (!net->tx_blocked && net->tx &&
        vhca_aggregate_add(net->tx, frame, len)) {
        return true;
    }
    qhca_dev_net_push(net);
    if (net->tx_blocked) {
        return false;
    }
    if (!net->tx || !vhca_aggregate_add(net->tx, frame, len)) {
        qhca_net_out_frame(net, frame, len);
    }
    return true;
}

bool qhca_dev_net_send(QHCANet *net, const uint8_t *frame, size_t len)
{
    net->tx_refused = !qhca_net_take(net, frame, len);
    trace_qhca_net_tx(net->id, len, !net->tx_refused);
    return !net->tx_refused;
}

bool qhca_dev_net_send_long(QHCANet *net, const uint8_t *frame, size_t len,
                            const struct qhca_long_frame *how)
{
    const struct qhca_vnet hdr = qhca_vnet_long(how);
    bool taken = net->vnet && !net->tx && !net->tx_blocked &&
                 qhca_net_out(net, &hdr, frame, len);

    trace_qhca_net_tx_long(net->id, len, how->mss, taken);
    return taken;
}

bool qhca_dev_net_link_up(const QHCANet *net)
{
    return !qemu_get_queue(net->nic)->link_down;
}

/*
 * Either all of the netdev's queues have headers or none. QEMU has no way back:
 * the netdev has them from now on, for all its users. An earlier user may have
 * let the kernel leave out work.
 */
static void qhca_net_use_vnet(QHCANet *net)
{
    size_t len = sizeof(struct qhca_vnet);
    NetClientState *peer;

    net->vnet = true;
    for (unsigned i = 0; i < qhca_net_queues(net); i++) {
        peer = qemu_get_subqueue(net->nic, i)->peer;
        net->vnet &= qemu_has_vnet_hdr(peer) &&
                     qemu_has_vnet_hdr_len(peer, len);
    }
    for (unsigned i = 0; net->vnet && i < qhca_net_queues(net); i++) {
        peer = qemu_get_subqueue(net->nic, i)->peer;
        qemu_set_vnet_hdr_len(peer, len);
        qemu_set_offload(peer, 0, 0, 0, 0, 0, 0, 0);
    }
}

void qhca_dev_net_init(QHCANet *net, DeviceState *dev, NICConf *conf,
                       const char *id, bool aggregate, const QHCANetOps *ops,
                       void *opaque)
{
    net->id = id;
    net->ops = ops;
    net->opaque = opaque;
    net->rx_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_net_rx_timeout, net);
    net->tx = aggregate ? g_new0(struct vhca_aggregate, 1) : NULL;
    net->nic = qemu_new_nic(&qhca_net_info, conf,
                            object_get_typename(OBJECT(dev)), dev->id,
                            &dev->mem_reentrancy_guard, net);
    qemu_format_nic_info_str(qemu_get_queue(net->nic), conf->macaddr.a);
    qhca_net_use_vnet(net);
}

void qhca_dev_net_reset(QHCANet *net)
{
    net->tx_refused = false;
    if (net->tx) {
        net->tx->frames = 0;
    }
    qemu_purge_queued_packets(qemu_get_queue(net->nic));
}

void qhca_dev_net_exit(QHCANet *net)
{
    /* Frames queued at the peer must not refer to a sender that is gone. */
    qemu_purge_queued_packets(qemu_get_queue(net->nic));
    qemu_del_nic(net->nic);
    g_free(net->tx);
    timer_free(net->rx_timer);
}
