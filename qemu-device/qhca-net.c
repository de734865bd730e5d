/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: the port's connection to a QEMU network backend.
 *
 * Both directions have back-pressure. Transmit: when the network cannot take a
 * frame at once it keeps it, and is offered no other until it has sent this
 * one. Receive: while the guest's Ethernet ring is empty the network is asked
 * to wait, but not for long: RoCE arrives the same way, and works without the
 * guest's kernel.
 *
 * Frames from and to a tap have headers (struct virtio_net_hdr), by which the
 * host's kernel takes TCP segments that it cuts itself, or need not. It is not
 * asked to leave anything to the device.
 */
#include "qemu/osdep.h"
#include "hw/qdev-core.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "standard-headers/linux/virtio_net.h"

#include "qhca-net.h"
#include "trace.h"

/* How long frames wait for a buffer in the Ethernet ring. */
#define QHCA_RX_WAIT_NS (10 * SCALE_MS)

/* Units of work on frames before the main loop has a turn: an entry point's. */
#define QHCA_RX_BUDGET 2048

static bool qhca_net_can_receive(NetClientState *nc)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    if (net->rx_budget && net->ops->can_receive(net->opaque, net->rx_giveup)) {
        return true;
    }
    if (!net->rx_blocked) {
        trace_qhca_net_rx_wait(net->id);
        net->rx_blocked = true;
        timer_mod(net->rx_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                 QHCA_RX_WAIT_NS);
    }
    if (!net->rx_budget) {
        net->ops->event(net->opaque, QHCA_NET_HOLDS_FRAMES);
    }
    return false;
}

static bool qhca_net_receive_one(NetClientState *nc, const uint8_t *buf,
                                 size_t size, bool more)
{
    QHCANet *net = qemu_get_nic_opaque(nc);
    unsigned work;

    /* The network calls can_receive only before the first of several frames. */
    if (!qhca_net_can_receive(nc)) {
        return false;
    }
    trace_qhca_net_rx(net->id, size);
    work = net->ops->receive(net->opaque, buf, size, more);
    net->rx_budget -= MIN(work, net->rx_budget);
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

/* Add the checksum that a frame lacks. One whose header is wrong is dropped. */
static bool qhca_net_receive_unsummed(NetClientState *nc,
                                      const struct virtio_net_hdr *hdr,
                                      const uint8_t *frame, size_t len)
{
    size_t start = hdr->csum_start, at = start + hdr->csum_offset, padded;
    g_autofree uint8_t *copy = NULL;

    if (at + sizeof(uint16_t) > len) {
        return true;
    }
    padded = MAX(len, ETH_ZLEN);
    copy = g_malloc0(padded);
    memcpy(copy, frame, len);
    stw_be_p(copy + at, net_checksum_finish_nozero(
                            net_checksum_add(len - start, copy + start)));
    return qhca_net_receive_one(nc, copy, padded, false);
}

/*
 * A frame behind its header. The kernel was not asked to leave out checksums,
 * but may be by whoever else has the tap.
 */
static bool qhca_net_receive_vnet(NetClientState *nc, const uint8_t *buf,
                                  size_t size)
{
    uint8_t padded[ETH_ZLEN];
    size_t len = sizeof(padded);
    struct virtio_net_hdr hdr;

    if (size < sizeof(hdr)) {
        return true;
    }
    memcpy(&hdr, buf, sizeof(hdr));
    buf += sizeof(hdr);
    size -= sizeof(hdr);
    if (hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
        return qhca_net_receive_unsummed(nc, &hdr, buf, size);
    }
    if (eth_pad_short_frame(padded, &len, buf, size)) {
        return qhca_net_receive_one(nc, padded, len, false);
    }
    return qhca_net_receive_one(nc, buf, size, false);
}

static ssize_t qhca_net_receive(NetClientState *nc, const uint8_t *buf,
                                size_t size)
{
    QHCANet *net = qemu_get_nic_opaque(nc);
    bool taken;

    if (net->vnet) {
        taken = qhca_net_receive_vnet(nc, buf, size);
    } else if (net->tx && vhca_aggregate_is(buf, size)) {
        taken = qhca_net_receive_many(nc, buf, size);
    } else {
        taken = qhca_net_receive_one(nc, buf, size, false);
    }
    return taken ? size : 0;
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QHCANet *net = qemu_get_nic_opaque(nc);

    trace_qhca_net_link(net->id, !nc->link_down);
    net->ops->event(net->opaque, QHCA_NET_LINK_CHANGED);
}

static NetClientInfo qhca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = qhca_net_can_receive,
    .receive = qhca_net_receive,
    .link_status_changed = qhca_net_link_changed,
};

void qhca_dev_net_rx_update(QHCANet *net, bool room)
{
    if (net->rx_blocked && (room || net->rx_giveup)) {
        net->ops->event(net->opaque, QHCA_NET_HOLDS_FRAMES);
    }
    if (room) {
        net->rx_giveup = false;
    }
}

void qhca_dev_net_flush(QHCANet *net)
{
    timer_del(net->rx_timer);
    net->rx_blocked = false;
    net->rx_budget = QHCA_RX_BUDGET;
    qemu_flush_queued_packets(qemu_get_queue(net->nic));
}

static void qhca_net_rx_timeout(void *opaque)
{
    QHCANet *net = opaque;

    trace_qhca_net_rx_giveup(net->id);
    net->rx_giveup = true;
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
static bool qhca_net_out(QHCANet *net, const struct virtio_net_hdr *hdr,
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
    static const struct virtio_net_hdr complete;

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
    const struct virtio_net_hdr hdr = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = how->ipv4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
                                VIRTIO_NET_HDR_GSO_TCPV6,
        .hdr_len = how->hdr_len,
        .gso_size = how->mss,
        .csum_start = how->csum_start,
        .csum_offset = how->csum_offset,
    };
    bool taken = net->vnet && !net->tx_blocked &&
                 qhca_net_out(net, &hdr, frame, len);

    trace_qhca_net_tx_long(net->id, len, how->mss, taken);
    return taken;
}

bool qhca_dev_net_link_up(const QHCANet *net)
{
    return !qemu_get_queue(net->nic)->link_down;
}

/* QEMU has no way back: @peer has headers from now on, for whoever uses it. */
static void qhca_net_use_vnet(QHCANet *net, NetClientState *peer)
{
    size_t len = sizeof(struct virtio_net_hdr);

    net->vnet = !net->tx && qemu_has_vnet_hdr(peer) &&
                qemu_has_vnet_hdr_len(peer, len);
    if (net->vnet) {
        qemu_set_vnet_hdr_len(peer, len);
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
    net->rx_giveup = true;
    net->rx_budget = QHCA_RX_BUDGET;
    net->tx = aggregate ? g_new0(struct vhca_aggregate, 1) : NULL;
    net->nic = qemu_new_nic(&qhca_net_info, conf,
                            object_get_typename(OBJECT(dev)), dev->id,
                            &dev->mem_reentrancy_guard, net);
    qemu_format_nic_info_str(qemu_get_queue(net->nic), conf->macaddr.a);
    qhca_net_use_vnet(net, qemu_get_queue(net->nic)->peer);
}

/* Frames do not wait for a ring until one has been filled. */
void qhca_dev_net_reset(QHCANet *net)
{
    net->tx_refused = false;
    net->rx_giveup = true;
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
