/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: the port's connection to a QEMU network backend.
 *
 * It does not know the device, and of the engine only the format of aggregates
 * and what a long frame is. It calls the device through struct QHCANetOps. All
 * of it runs under the BQL.
 */
#ifndef HW_NET_QHCA_NET_H
#define HW_NET_QHCA_NET_H

#include "net/net.h"
#include "qemu/timer.h"
#include "engine/engine.h"
#include "engine/wire/aggregate.h"

/* Events of the network that the device acts on later. */
typedef enum QHCANetEvent {
    QHCA_NET_HOLDS_FRAMES,          /* qhca_dev_net_flush() gets them */
    QHCA_NET_TX_READY,              /* it takes frames again after refusing */
    QHCA_NET_LINK_CHANGED,
    QHCA_NET_LEFT_OFF,              /* no frame follows one that had @more */
} QHCANetEvent;

/*
 * struct QHCANetOps - what the network needs from the device
 * @can_receive: whether the device takes a frame now; if not, @again is when to
 *               ask again, or UINT64_MAX: qhca_dev_net_rx_update() follows
 * @receive: receive a frame, after @can_receive has returned true. @more:
 *           another frame follows now, or else QHCA_NET_LEFT_OFF
 * @event: report an event, maybe from within the functions below
 */
typedef struct QHCANetOps {
    bool (*can_receive)(void *opaque, uint64_t *again);
    void (*receive)(void *opaque, const uint8_t *frame, size_t len, bool more);
    void (*event)(void *opaque, QHCANetEvent event);
} QHCANetOps;

typedef struct QHCANet {
    NICState *nic;
    const char *id;                 /* names the device in traces */
    const QHCANetOps *ops;
    void *opaque;
    QEMUTimer *rx_timer;            /* bounds how long the network waits */
    bool rx_blocked;                /* the network was told to wait */
    bool tx_blocked;                /* a frame of ours is queued in the net */
    bool tx_refused;                /* the device waits for TX_READY */
    bool vnet;                      /* frames have headers */
    struct vhca_aggregate *tx;      /* frames being collected, or NULL */
    size_t rx_at;                   /* bytes received of an aggregate... */
    uint16_t rx_seq;                /* ...that the network still holds */
    uint8_t room[VHCA_MAX_FRAME];   /* for a frame that is not complete */
} QHCANet;

/* @aggregate: send frames as aggregates, and accept aggregates. */
void qhca_dev_net_init(QHCANet *net, DeviceState *dev, NICConf *conf,
                       const char *id, bool aggregate, const QHCANetOps *ops,
                       void *opaque);
/* Drop all frames that have not been sent. */
void qhca_dev_net_reset(QHCANet *net);
void qhca_dev_net_exit(QHCANet *net);

/* Send a frame. Returns false if it has to wait for QHCA_NET_TX_READY. */
bool qhca_dev_net_send(QHCANet *net, const uint8_t *frame, size_t len);
/* Send a long frame. Returns false if it has to be cut. */
bool qhca_dev_net_send_long(QHCANet *net, const uint8_t *frame, size_t len,
                            const struct qhca_long_frame *how);
/* Send the frames that have been collected, as no more follow for now. */
void qhca_dev_net_push(QHCANet *net);
/* Receive what the network holds for the device. */
void qhca_dev_net_flush(QHCANet *net);
/* The device may have become able to receive. */
void qhca_dev_net_rx_update(QHCANet *net);
bool qhca_dev_net_link_up(const QHCANet *net);

#endif /* HW_NET_QHCA_NET_H */
