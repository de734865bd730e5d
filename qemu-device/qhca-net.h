/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: the port's connection to a QEMU network backend.
 *
 * Does not know the device, and of the engine only how frames travel together.
 * It asks for what it needs through struct QHCANetOps. All of it runs under the
 * BQL.
 */
#ifndef HW_NET_QHCA_NET_H
#define HW_NET_QHCA_NET_H

#include "net/net.h"
#include "qemu/timer.h"
#include "engine/wire/aggregate.h"

/* What the network tells the device, which acts on it later. */
typedef enum QHCANetEvent {
    QHCA_NET_HOLDS_FRAMES,          /* qhca_dev_net_flush() gets them */
    QHCA_NET_TX_READY,              /* it takes frames again, and had refused */
    QHCA_NET_LINK_CHANGED,
    QHCA_NET_LEFT_OFF,              /* after a frame with more to follow */
} QHCANetEvent;

/*
 * struct QHCANetOps - what the network asks of the device
 * @can_receive: whether the device takes a frame now; if not @urgent, a frame
 *               that needs a buffer of the Ethernet ring must find one
 * @receive: here is one; only after @can_receive said yes. Returns what work it
 *           was, in units of the engine. @more: another one follows at once, or
 *           the event that none does
 * @event: called from anywhere, the device's own calls below included
 */
typedef struct QHCANetOps {
    bool (*can_receive)(void *opaque, bool urgent);
    unsigned (*receive)(void *opaque, const uint8_t *frame, size_t len,
                        bool more);
    void (*event)(void *opaque, QHCANetEvent event);
} QHCANetOps;

typedef struct QHCANet {
    NICState *nic;
    const char *id;                 /* names the device in traces */
    const QHCANetOps *ops;
    void *opaque;
    QEMUTimer *rx_timer;            /* bounds how long the network waits */
    unsigned rx_budget;             /* units of work until the next flush */
    bool rx_blocked;                /* the network was told to wait */
    bool rx_giveup;                 /* it need not wait any more */
    bool tx_blocked;                /* a frame of ours is queued in the net */
    bool tx_refused;                /* the device waits for TX_READY */
    struct vhca_aggregate *tx;      /* frames that leave together, or NULL */
    size_t rx_at;                   /* how far an aggregate has come in... */
    uint16_t rx_seq;                /* ...which the network still holds */
} QHCANet;

/* @aggregate: frames leave together, and come in like that. */
void qhca_dev_net_init(QHCANet *net, DeviceState *dev, NICConf *conf,
                       const char *id, bool aggregate, const QHCANetOps *ops,
                       void *opaque);
/* Nothing sent so far goes out any more. */
void qhca_dev_net_reset(QHCANet *net);
void qhca_dev_net_exit(QHCANet *net);

/* False: not now, and QHCA_NET_TX_READY follows. */
bool qhca_dev_net_send(QHCANet *net, const uint8_t *frame, size_t len);
/* No more frames follow for now: what was to leave with them leaves. */
void qhca_dev_net_push(QHCANet *net);
/* Receive what the network holds for the device. */
void qhca_dev_net_flush(QHCANet *net);
/* The device may have become able to receive; @room: Ethernet frames, too. */
void qhca_dev_net_rx_update(QHCANet *net, bool room);
bool qhca_dev_net_link_up(const QHCANet *net);

#endif /* HW_NET_QHCA_NET_H */
