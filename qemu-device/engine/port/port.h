/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, port: addresses and the way out. Settings and carrier, GID
 * table, multicast groups, and the frames that leave for the network or for the
 * port itself.
 */
#ifndef QHCA_ENGINE_PORT_H
#define QHCA_ENGINE_PORT_H

#include "../queues/queues.h"

#define QHCA_PORT_SPEED         100000u     /* Mbit/s */
#define QHCA_MAX_GID            128u
#define QHCA_MAX_MCAST          512u
#define QHCA_MAX_MCAST_GRP      512u
#define QHCA_MAX_MCAST_QP       128u

struct qhca_gid {
    bool valid;
    bool ipv4;                  /* ::ffff:a.b.c.d */
    uint8_t gid[16];
    uint8_t smac[6];
    uint16_t vlan;              /* QHCA_NO_VLAN: untagged */
};

struct qhca_qp;

/*
 * struct qhca_mcast_group - the QPs that have asked for packets to a GID, and
 * how often each has
 */
struct qhca_mcast_group {
    uint8_t gid[16];
    uint32_t num_qps;
    struct qhca_qp *qp[QHCA_MAX_MCAST_QP];
    uint32_t joins[QHCA_MAX_MCAST_QP];
};

struct qhca_port {
    struct qhca_gid gid[QHCA_MAX_GID];
    uint8_t (*allowed)[QHCA_MAX_GID / 8];   /* GIDs, per doorbell page */
    uint8_t mac[6];
    uint8_t flags;              /* QHCA_PORT_* */
    uint32_t mtu;
    bool link;                  /* carrier; survives a reset */
    struct qhca_async async;
    uint32_t num_gid;           /* one past the last valid entry */
    uint32_t num_mcast;
    uint8_t mcast[QHCA_MAX_MCAST][6];
    uint32_t bad_pkey, qkey_viol;
    uint32_t num_groups;
    struct qhca_mcast_group *group[QHCA_MAX_MCAST_GRP];
    struct qhca_fifo loop;      /* frames to the port itself */
    struct qhca_fifo tx;        /* frames the network did not take */
    bool tx_blocked;
    struct qhca_pace pace;      /* bytes out; survives a reset */
};

extern const struct qhca_room qhca_port_room;

/* ---- port.c ---- */

extern const struct qhca_command qhca_port_commands[];
/* Whether it can be set so; an MTU that is too large is not looked at. */
bool qhca_port_settings_ok(const uint8_t *mac, uint8_t flags, uint32_t mtu);
/* Whether there can be such an entry of the table. */
bool qhca_gid_entry_ok(const uint8_t *gid, const uint8_t *smac, uint16_t vlan);
/* The table has changed; lets a search stop behind the last valid entry. */
void qhca_port_count_gids(struct qhca_port *p);
/* Index of @gid (16 bytes) on VLAN @vlan in the port's table, or -1. */
int qhca_gid_find(const struct qhca_engine *e, const uint8_t *gid,
                  uint16_t vlan);
/* Whether datagrams of doorbell page @page may leave with that GID. */
bool qhca_gid_allowed(const struct qhca_engine *e, uint32_t page,
                      unsigned index);
/* Whether it is an IPv4 address, ::ffff:a.b.c.d. */
static inline bool qhca_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static inline bool qhca_gid_is_multicast(const uint8_t *gid)
{
    return qhca_gid_is_ipv4(gid) ? gid[12] >> 4 == 14 : gid[0] == 0xff;
}

/* Whether it (16 bytes) is one of the port's, on whatever VLAN. */
bool qhca_gid_is_own(const struct qhca_engine *e, const uint8_t *gid);
/* Whether the port has a GID on that VLAN. */
bool qhca_gid_on_vlan(const struct qhca_engine *e, uint16_t vlan);
/* Carrier came or went. */
void qhca_port_set_link(struct qhca_engine *e, bool up);
/* Largest payload of a packet, 0 if there is no room for any. */
uint32_t qhca_port_path_mtu(const struct qhca_engine *e);
/* Whether frames leave and arrive: enabled, and there is a carrier. */
bool qhca_port_up(const struct qhca_engine *e);

/* Whether the operator's limit of the bandwidth lets a frame out now. */
static inline bool qhca_port_open(const struct qhca_engine *e)
{
    return qhca_pace_left(&e->port->pace, e->now, 1);
}

/* ---- group.c: a group exists as long as a QP is in it ---- */

/* The group of @gid (16 bytes), or NULL: RoCE packets to it are not wanted. */
struct qhca_mcast_group *qhca_group_find(const struct qhca_engine *e,
                                         const uint8_t *gid);
bool qhca_group_has(const struct qhca_engine *e, const uint8_t *gid,
                    const struct qhca_qp *qp);
/* False: no room in the group, or for one more. */
bool qhca_group_join(struct qhca_engine *e, const uint8_t *gid,
                     struct qhca_qp *qp);
/* One that is in it leaves, if it has joined no more often. */
void qhca_group_leave(struct qhca_engine *e, const uint8_t *gid,
                      const struct qhca_qp *qp);
void qhca_group_free_all(struct qhca_engine *e);
/* The Ethernet address of a multicast GID (E-039). */
void qhca_group_mac(const uint8_t *gid, uint8_t *mac);

/* ---- snapshot.c ---- */

void qhca_port_walk(struct qhca_snap *s);

/* ---- tx.c ---- */

/*
 * Sends a frame: with the number of a QP in @from it goes to the port's own
 * receive path (processed by the run loop, never from inside this call), as one
 * that this QP has sent; with 0 it goes to the network, waiting in the transmit
 * FIFO while the network does not take frames. The frame is copied. One for a
 * port that is down goes nowhere, as on a cable that is not plugged in, and
 * counts as sent. False: no room; the caller keeps the packet and is scheduled
 * again when there is (requests, READ responses); an ACK that finds no room is
 * lost.
 */
bool qhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from);
/* Whether @n more frames of any size would fit. */
bool qhca_tx_room(struct qhca_engine *e, bool loop, unsigned n);
/* Hands the network what waits for it, as long as it takes frames. */
void qhca_tx_flush(struct qhca_engine *e);

#endif /* QHCA_ENGINE_PORT_H */
