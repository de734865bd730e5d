/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the Ethernet port of an HCA, and the switch between ports.
 *
 * A frame that the switch passes on waits at its destination, because the
 * engine there may be the caller, or have no buffer. It is not lost between
 * ports: the sender waits if the destination is full, or the uplink, where it
 * goes there. Frames to all ports, and those from the uplink, are lost for the
 * ports that are full.
 *
 * An engine that waits sends nothing to others, either. So it does not wait for
 * long: frames to a destination that does not become half empty in a while are
 * lost until it is.
 */
#ifndef QHCA_SERVER_PORT_H
#define QHCA_SERVER_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct net;
struct qhca_long_frame;

#define PORT_QUEUE      256             /* frames */

/*
 * struct jam - what is known about a destination that has been full
 * @waiting: ports that wait until it has room, a bit for each
 * @until: they wait no longer than until then
 * @late: they did, and it has not become half empty since
 */
struct jam {
    uint64_t waiting, until;
    bool late;
};

/*
 * struct port - where frames for an HCA wait
 * @net: the switch it is plugged into, as @number
 */
struct port {
    struct net *net;
    unsigned number;
    struct frame *queue[PORT_QUEUE];
    unsigned head, num;
    struct jam jam;
    bool spoofchk;                      /* its own address, and no other */
    uint64_t sent, received, dropped;   /* frames */
    uint64_t spoofed;                   /* not sent, for their source address */
};

#define NET_MAX_PORTS   64
#define NET_LEARNED     1024

struct net *net_new(void);
void net_free(struct net *net);
/* Plug in an HCA; returns false if there are too many. */
bool net_plug(struct net *net, struct hca *hca);
/* Set whether a port keeps to its adapter's address, and no other gets it. */
void net_check(struct hca *hca, bool spoofchk);
/* Send a frame. Returns false if the engine has to wait for TX_READY. */
bool net_send(struct hca *from, const uint8_t *frame, size_t len);
/* The same for a long frame; false: it has to be cut. */
bool net_send_long(struct hca *from, const uint8_t *frame, size_t len,
                   const struct qhca_long_frame *how);
/* Deliver what waits for @hca. Returns when to call again, see hca_work(). */
uint64_t net_deliver(struct hca *hca, uint64_t now);
/* Drop what waits for @hca, a struct hca. */
void net_forget(void *hca);
/* The engine that frames from @smac to @dmac would reach directly, or NULL. */
struct qhca_engine *net_neighbour(struct hca *from, const uint8_t smac[6],
                                  const uint8_t dmac[6]);

/*
 * Connect the switch to other hosts, as QEMU's "-netdev @kind" does: see
 * uplink.c. With @aggregate frames may leave and come as aggregates. Returns
 * false after a message.
 */
bool net_uplink(struct net *net, const char *text, bool aggregate);
/* Send the frames to other hosts that have been collected so far. */
void net_uplink_push(struct net *net);
/* Watch over the uplink. Returns when to call again, as hca_work(). */
uint64_t net_uplink_watch(struct net *net, uint64_t now);
int net_uplink_fd(const struct net *net, short *events);
void net_uplink_input(struct net *net, short events);

#endif /* QHCA_SERVER_PORT_H */
