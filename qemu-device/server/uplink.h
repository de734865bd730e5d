/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the switch's connection to other hosts.
 *
 * It speaks what QEMU's netdevs do, so the other end can be one of them, a
 * switch of theirs, or another server.
 */
#ifndef QHCA_SERVER_UPLINK_H
#define QHCA_SERVER_UPLINK_H

#include <glib.h>

#include "../engine/wire/aggregate.h"
#include "port.h"

/*
 * Bytes of a stream that wait to be sent; with more the uplink is full. Of
 * datagrams and of a tap there is one that waits.
 */
#define UPLINK_FULL     (256u << 10)
/* No frame of QEMU's network is longer. */
#define UPLINK_MAX      (4096u + 65536u)

/*
 * struct uplink - the connection
 * @wanted: there is one, or was
 * @fd: -1 if there is none
 * @stream: each frame is after its length, 4 bytes, big-endian
 * @vnet: each frame is behind a struct qhca_vnet
 * @collected: frames that are to leave as one, or NULL: each leaves alone
 * @error: why the last frame was lost; 0: it was not
 */
struct uplink {
    bool wanted;
    int fd;
    bool stream, vnet;
    GByteArray *in, *out;
    struct vhca_aggregate *collected;
    struct jam jam;
    int error;
    uint64_t sent, received, dropped;   /* an aggregate, a long one: one */
};

/*
 * struct net - the switch; a port's number is its place in @hca
 * @own: where the permanent addresses of the adapters are
 */
struct net {
    struct hca *hca[NET_MAX_PORTS];
    unsigned num;
    struct uplink uplink;
    struct net_entry {
        uint8_t mac[6];
        unsigned port;                  /* + 1; 0: none */
    } own[NET_MAX_PORTS], learned[NET_LEARNED];
};

#define NET_UPLINK      NET_MAX_PORTS
#define NET_ALL         (NET_MAX_PORTS + 1)

void uplink_close(struct uplink *up);
bool uplink_is_full(const struct uplink *up);
/*
 * Send a frame, perhaps not before net_uplink_push(), or drop it if the uplink
 * is full or absent.
 */
void uplink_send(struct uplink *up, const uint8_t *frame, size_t len);

/* Send a long frame, unless it has to be cut: then return false. */
bool uplink_send_long(struct uplink *up, const uint8_t *frame, size_t len,
                      const struct qhca_long_frame *how);

/* port.c: a frame from the uplink */
void net_receive(struct net *net, const uint8_t *frame, size_t len);
/*
 * port.c: let the ports that wait for a destination try again if it has @room,
 * or if they have waited long enough. Returns when to call again, as
 * hca_work().
 */
uint64_t net_clear(struct net *net, struct jam *jam, bool room, uint64_t now);

#endif /* QHCA_SERVER_UPLINK_H */
