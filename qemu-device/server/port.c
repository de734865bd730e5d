/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: the Ethernet port of an HCA, and the switch between ports. */
#include <glib.h>
#include <string.h>

#include "hca.h"
#include "trace.h"
#include "uplink.h"

/* How long a port waits for another, longer than a frame for a buffer there. */
#define JAM_NS          (2 * QHCA_RX_WAIT_NS)
/*
 * How long it waits for the uplink, where another process takes the frames, for
 * which this one may be without a CPU; shorter than peers are patient.
 */
#define UPLINK_JAM_NS   (10 * QHCA_RX_WAIT_NS)

struct frame {
    size_t len;
    uint8_t data[];
};

struct net *net_new(void)
{
    struct net *net = g_new0(struct net, 1);

    net->uplink.fd = -1;
    return net;
}

void net_free(struct net *net)
{
    uplink_close(&net->uplink);
    g_free(net);
}

static bool is_multicast(const uint8_t mac[6])
{
    return mac[0] & 1;
}

/*
 * Return the entry that @mac has, or would have. Addresses of the adapters have
 * entries of their own: no machine can make the switch forget one.
 */
static struct net_entry *net_slot(struct net *net, const uint8_t mac[6])
{
    unsigned hash = mac[5] | (unsigned)mac[4] << 8;

    for (unsigned i = 0; i < net->num; i++) {
        if (!memcmp(net->own[i].mac, mac, 6)) {
            return &net->own[i];
        }
    }
    return &net->learned[(hash ^ mac[3]) % NET_LEARNED];
}

/* Whether @entry is of an adapter with spoofchk, and not at @port. */
static bool net_keeps(const struct net *net, const struct net_entry *entry,
                      unsigned port)
{
    for (unsigned i = 0; i < net->num; i++) {
        if (entry == &net->own[i]) {
            return i != port && net->hca[i]->port.spoofchk;
        }
    }
    return false;
}

/* The switch knows where an address is from the frames that come from it. */
static void net_learn(struct net *net, const uint8_t mac[6], unsigned port)
{
    struct net_entry *entry = net_slot(net, mac);

    if (!is_multicast(mac) && !net_keeps(net, entry, port)) {
        memcpy(entry->mac, mac, 6);
        entry->port = port + 1;
    }
}

/* An adapter need not send a frame for its permanent address to be known. */
bool net_plug(struct net *net, struct hca *hca)
{
    if (net->num == NET_MAX_PORTS) {
        return false;
    }
    hca->port.net = net;
    hca->port.number = net->num;
    memcpy(net->own[net->num].mac, hca->mac, 6);
    net->hca[net->num++] = hca;
    net_learn(net, hca->mac, hca->port.number);
    return true;
}

/* Return the port of @mac, NET_UPLINK among them, or NET_ALL. */
static unsigned net_where(struct net *net, const uint8_t mac[6])
{
    const struct net_entry *entry = net_slot(net, mac);

    if (is_multicast(mac) || !entry->port || memcmp(entry->mac, mac, 6)) {
        return NET_ALL;
    }
    return entry->port - 1;
}

static bool port_is_full(const struct hca *hca)
{
    return hca->port.num == PORT_QUEUE;
}

static bool port_takes(const struct hca *hca)
{
    return hca->attached && hca->host.up;
}

static void port_queue(struct hca *hca, const uint8_t *frame, size_t len)
{
    struct port *p = &hca->port;
    struct frame *copy;

    if (!port_takes(hca) || port_is_full(hca)) {
        p->dropped++;
        return;
    }
    copy = g_malloc(sizeof(*copy) + len);
    copy->len = len;
    memcpy(copy->data, frame, len);
    p->queue[(p->head + p->num++) % PORT_QUEUE] = copy;
    hca->host.todo |= QHCA_TODO_RX;
}

/* Take out the frame that has waited longest; there is one. */
static struct frame *port_take(struct port *p)
{
    struct frame *frame = p->queue[p->head];

    p->head = (p->head + 1) % PORT_QUEUE;
    p->num--;
    return frame;
}

/* A frame from @from, which may be NET_UPLINK, to all others. */
static void net_flood(struct net *net, unsigned from, const uint8_t *frame,
                      size_t len)
{
    for (unsigned i = 0; i < net->num; i++) {
        if (i != from) {
            port_queue(net->hca[i], frame, len);
        }
    }
    if (from != NET_UPLINK) {
        uplink_send(&net->uplink, frame, len);
    }
}

/* Whether @port waits for a destination that is full; else frames are lost. */
static bool net_waits(struct jam *jam, unsigned port, uint64_t patience)
{
    if (jam->late) {
        return false;
    }
    if (!jam->waiting) {
        jam->until = hca_now() + patience;
    }
    jam->waiting |= (uint64_t)1 << port;
    return true;
}

uint64_t net_clear(struct net *net, struct jam *jam, bool room, uint64_t now)
{
    bool over = jam->waiting && now >= jam->until;

    if (room) {
        jam->late = false;
    } else if (over) {
        jam->late = true;
    }
    for (unsigned i = 0; (room || over) && jam->waiting && i < net->num; i++) {
        if (jam->waiting & (uint64_t)1 << i) {
            net->hca[i]->host.todo |= QHCA_TODO_TX_READY;
        }
    }
    if (room || over) {
        jam->waiting = 0;
    }
    return jam->waiting ? jam->until : UINT64_MAX;
}

static bool is_spoofed(const struct hca *hca, const uint8_t smac[6])
{
    return hca->port.spoofchk && memcmp(smac, hca->mac, 6);
}

void net_check(struct hca *hca, bool spoofchk)
{
    hca->port.spoofchk = spoofchk;
    if (spoofchk) {
        net_learn(hca->port.net, hca->mac, hca->port.number);
    }
}

/*
 * Whether it is for the other end of the cable, as one that asks for a pause:
 * no switch passes it on, and this one does not pause.
 */
static bool is_control(const uint8_t *frame)
{
    return frame[12] == 0x88 && frame[13] == 0x08;
}

bool net_send(struct hca *from, const uint8_t *frame, size_t len)
{
    struct net *net = from->port.net;
    unsigned self = from->port.number, to = net_where(net, frame);

    if (!from->host.up || is_control(frame)) {
        return true;
    }
    if (is_spoofed(from, frame + 6)) {
        from->port.spoofed++;
        return true;
    }
    if (to >= NET_UPLINK && uplink_is_full(&net->uplink) &&
        net_waits(&net->uplink.jam, self, UPLINK_JAM_NS)) {
        return false;
    }
    if (to < net->num && to != self && port_takes(net->hca[to]) &&
        port_is_full(net->hca[to]) &&
        net_waits(&net->hca[to]->port.jam, self, JAM_NS)) {
        return false;
    }
    net_learn(net, frame + 6, self);
    from->port.sent++;
    if (to == NET_UPLINK) {
        uplink_send(&net->uplink, frame, len);
    } else if (to == NET_ALL) {
        net_flood(net, self, frame, len);
    } else if (to != self) {
        port_queue(net->hca[to], frame, len);
    }
    return true;
}

/*
 * Only a frame that goes nowhere but to the uplink need not be cut. A faulty
 * frame, or one that has to wait, shows when its pieces come.
 */
bool net_send_long(struct hca *from, const uint8_t *frame, size_t len,
                   const struct qhca_long_frame *how)
{
    struct net *net = from->port.net;

    if (!from->host.up || is_spoofed(from, frame + 6) ||
        net_where(net, frame) != NET_UPLINK ||
        !uplink_send_long(&net->uplink, frame, len, how)) {
        return false;
    }
    net_learn(net, frame + 6, from->port.number);
    from->port.sent += (len - how->hdr_len + how->mss - 1) / how->mss;
    return true;
}

void net_receive(struct net *net, const uint8_t *frame, size_t len)
{
    unsigned to;

    if (len < 14 || is_control(frame)) {
        return;
    }
    to = net_where(net, frame);
    net_learn(net, frame + 6, NET_UPLINK);
    if (to == NET_ALL) {
        net_flood(net, NET_UPLINK, frame, len);
    } else if (to < net->num) {
        port_queue(net->hca[to], frame, len);
    }
}

uint64_t net_deliver(struct hca *hca, uint64_t now)
{
    uint64_t again = UINT64_MAX;
    struct port *p = &hca->port;
    struct frame *frame;

    hca->host.rx_budget = QHCA_RX_BUDGET;
    while (p->num && qhca_host_takes(&hca->host, now, &again)) {
        if (!hca->host.rx_budget) {
            return 0;
        }
        frame = port_take(p);
        p->received++;
        trace_qhca_net_rx(hca->name, frame->len);
        qhca_host_receive(&hca->host, now, frame->data, frame->len, false);
        g_free(frame);
    }
    if (!p->num) {
        again = UINT64_MAX;
    }
    return MIN(again, net_clear(p->net, &p->jam, p->num < PORT_QUEUE / 2, now));
}

void net_forget(void *opaque)
{
    struct hca *hca = opaque;
    struct port *p = &hca->port;

    while (p->num) {
        g_free(port_take(p));
    }
    if (p->net) {
        net_learn(p->net, hca->mac, p->number);
        net_clear(p->net, &p->jam, true, 0);
    }
}

/* There may be no frame on its way between the two: it would be overtaken. */
struct qhca_engine *net_neighbour(struct hca *from, const uint8_t smac[6],
                                  const uint8_t dmac[6])
{
    struct net *net = from->port.net;
    unsigned to = net_where(net, dmac);
    struct hca *hca = to < net->num ? net->hca[to] : NULL;

    return hca && hca != from && from->host.up && port_takes(hca) &&
           !is_spoofed(from, smac) && !hca->port.num && !from->port.num &&
           qhca_engine_has_time(hca->host.engine, hca_now()) ?
           hca->host.engine : NULL;
}
