/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, port: addresses and the way out: settings and carrier, GID
 * table, multicast groups, and the frames sent to the network or to the port
 * itself.
 */
#ifndef QHCA_ENGINE_PORT_H
#define QHCA_ENGINE_PORT_H

#include "../events/events.h"

#define VHCA_PORT_SPEED         100000u     /* Mbit/s */
#define VHCA_MAX_GID            128u
#define VHCA_MAX_MCAST          512u
#define VHCA_MAX_MCAST_GRP      512u
#define VHCA_MAX_MCAST_QP       128u
#define VHCA_CLASSES            8u      /* of traffic */
#define VHCA_PAUSE_NS           10000000000ull  /* the longest pause */

/* Frames that a request leaves free, so that responses always find room. */
#define VHCA_TX_RESERVE         64u

struct vhca_gid {
    bool valid;
    bool ipv4;                  /* ::ffff:a.b.c.d */
    uint8_t gid[16];
    uint8_t smac[6];
    uint16_t vlan;              /* QHCA_NO_VLAN: untagged */
};

/*
 * struct vhca_pause - what must not leave, by classes of traffic
 * @classes: those that are paused, a bit each
 * @until: when each goes on
 * @timer: runs until the first of them does
 * @held: QPs with a frame of such a class
 * @let_go: QPs that were held, and may try again
 */
struct vhca_pause {
    uint8_t classes;
    uint64_t until[VHCA_CLASSES];
    struct vhca_timer timer;
    struct vhca_list held, let_go;
};

struct vhca_qp;

/*
 * struct vhca_mcast_group - the member QPs of a GID; each may join repeatedly
 */
struct vhca_mcast_group {
    uint8_t gid[16];
    uint32_t num_qps;
    struct vhca_qp *qp[VHCA_MAX_MCAST_QP];
    uint32_t joins[VHCA_MAX_MCAST_QP];
};

/* Whom a frame with several receivers is for. */
enum vhca_receivers {
    VHCA_TO_NOBODY,
    VHCA_TO_MEMBERS,            /* QPs of a multicast group */
    VHCA_TO_RULES,              /* flow rules */
    VHCA_NUM_RECEIVERS
};

/*
 * struct vhca_delivery - a frame on its way to several receivers, which get it
 * one after the other; while it is, other frames wait
 * @kind: enum vhca_receivers; VHCA_TO_NOBODY: none is
 * @csum_ok: its checksums have been verified
 * @num: receivers when it came
 * @next: whose turn it is
 * @to: numbers of QPs or rules; 0: it has left since
 * @gid: VHCA_TO_MEMBERS: of the group
 * @frame: a copy, made when the budget ends before all have had it
 */
struct vhca_delivery {
    uint8_t kind;
    bool csum_ok;
    uint32_t num, next, len;
    uint32_t to[QHCA_FLOW_MAX];
    uint8_t gid[16];
    uint8_t frame[VHCA_MAX_FRAME];
};

struct vhca_port {
    struct vhca_gid gid[VHCA_MAX_GID];
    uint8_t (*allowed)[VHCA_MAX_GID / 8];   /* per doorbell page, a bit a GID */
    uint8_t mac[6];
    uint8_t flags;              /* QHCA_PORT_* */
    uint32_t mtu;
    bool link;                  /* carrier; survives a reset */
    struct vhca_async async;
    uint32_t num_gid;           /* one past the last valid entry */
    uint32_t num_mcast;
    uint8_t mcast[VHCA_MAX_MCAST][6];
    uint32_t bad_pkey, qkey_viol;
    uint32_t num_groups;
    struct vhca_mcast_group *group[VHCA_MAX_MCAST_GRP];
    struct vhca_delivery delivery;
    struct vhca_fifo loop;      /* frames to the port itself */
    uint32_t late_rx;           /* those from the network among them */
    struct vhca_fifo tx;        /* frames that the network has to take yet */
    bool tx_blocked;
    struct vhca_timer line;     /* for frames of either whose time will come */
    struct vhca_pace pace;      /* of bytes sent; survives a reset */
    struct vhca_pause pause;
    uint32_t told;              /* the speed that the driver knows, or can */
};

/*
 * struct vhca_cut - the frames of a long one
 * @num: how many, at least one
 * @len: of each, except the last one
 * @last: length of that
 */
struct vhca_cut {
    uint32_t num, len, last;
};

/* Return the bytes of all of them. */
static inline uint32_t vhca_cut_bytes(const struct vhca_cut *cut)
{
    return (cut->num - 1) * cut->len + cut->last;
}

extern const struct vhca_room vhca_port_room;

/* ---- port.c ---- */

/* Whether SET_PORT may set this; an MTU that is too large is not checked. */
bool vhca_port_settings_ok(const uint8_t *mac, uint8_t flags, uint32_t mtu);
/* Whether the GID table may have such an entry. */
bool vhca_gid_entry_ok(const uint8_t *gid, const uint8_t *smac, uint16_t vlan);
/* Find the last valid GID again, after the table has changed. */
void vhca_port_count_gids(struct vhca_port *p);
/* Return the index of @gid (16 bytes) on VLAN @vlan in the table, or -1. */
int vhca_gid_find(const struct qhca_engine *e, const uint8_t *gid,
                  uint16_t vlan);
/* Whether datagrams of doorbell page @page may use this source GID. */
bool vhca_gid_allowed(const struct qhca_engine *e, uint32_t page,
                      unsigned index);
/* Whether the GID is an IPv4 address, ::ffff:a.b.c.d. */
static inline bool vhca_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static inline bool vhca_gid_is_multicast(const uint8_t *gid)
{
    return vhca_gid_is_ipv4(gid) ? gid[12] >> 4 == 14 : gid[0] == 0xff;
}

/*
 * Whether packets to this GID are accepted in frames to @dmac: GIDs of upper
 * devices (macvlan) have a MAC address of their own.
 */
static inline bool vhca_gid_has_mac(const struct vhca_port *port,
                                    const struct vhca_gid *gid,
                                    const uint8_t *dmac)
{
    return !memcmp(dmac, port->mac, 6) || !memcmp(dmac, gid->smac, 6);
}

/* Whether @gid (16 bytes) is one of the port's, on any VLAN. */
bool vhca_gid_is_own(const struct qhca_engine *e, const uint8_t *gid);
/* Whether the port has a GID on that VLAN. */
bool vhca_gid_on_vlan(const struct qhca_engine *e, uint16_t vlan);
/* Set the carrier, and raise an event if it changes. */
void vhca_port_set_link(struct qhca_engine *e, bool up);
/* Set the operator's limit, and raise an event if the speed changes. */
void vhca_port_set_bandwidth(struct qhca_engine *e, uint32_t mbit);
/* Return the largest payload of a packet, 0 if not even the smallest fits. */
uint32_t vhca_port_path_mtu(const struct qhca_engine *e);
/* Whether frames are sent and received: enabled, and there is a carrier. */
bool vhca_port_up(const struct qhca_engine *e);

/* Return the speed of the port in Mbit/s. */
static inline uint32_t vhca_port_speed(const struct qhca_engine *e)
{
    return e->cfg.bandwidth ? e->cfg.bandwidth : VHCA_PORT_SPEED;
}

/*
 * Return the Mbit/s that the port may send, by its speed and the fault rules;
 * 0: no limit.
 */
static inline uint32_t vhca_port_limit(const struct qhca_engine *e)
{
    uint32_t set = e->cfg.bandwidth, slow = e->rules->mbit;

    return set && slow ? MIN_OF(set, slow) : set + slow;
}

/* Whether that allows a frame now. */
static inline bool vhca_port_open(const struct qhca_engine *e)
{
    return vhca_pace_left(&e->port->pace, e->now, 1) &&
           vhca_pace_left(&e->rules->pace, e->now, 1);
}

/* Return the ns that frames are on their way, by the fault rules. */
static inline uint64_t vhca_port_latency(const struct qhca_engine *e)
{
    return e->rules->late ? e->rules->late->does.value : 0;
}

/* Pay for a frame of @len bytes that is sent. */
static inline void vhca_port_pay(struct qhca_engine *e, size_t len)
{
    vhca_pace_take(&e->port->pace, e->now, len);
    if (e->rules->slow) {
        vhca_rule_slow(e, len);
    }
}

/* ---- group.c ---- */

/* Return the group of @gid (16 bytes), or NULL if it has no members. */
struct vhca_mcast_group *vhca_group_find(const struct qhca_engine *e,
                                         const uint8_t *gid);
bool vhca_group_has(const struct qhca_engine *e, const uint8_t *gid,
                    const struct vhca_qp *qp);
/* Join @qp once more. Returns false if group or table is full. */
bool vhca_group_join(struct qhca_engine *e, const uint8_t *gid,
                     struct vhca_qp *qp);
/* Undo one join of @qp, with number @qpn, which must be a member. */
void vhca_group_leave(struct qhca_engine *e, const uint8_t *gid,
                      const struct vhca_qp *qp, uint32_t qpn);
void vhca_group_free_all(struct qhca_engine *e);
/* Write the Ethernet address of a multicast GID (E-039) to @mac. */
void vhca_group_mac(const uint8_t *gid, uint8_t *mac);

/* ---- delivery.c ---- */

/* Whether a frame has receivers left, and no other can be delivered. */
static inline bool vhca_delivering(const struct qhca_engine *e)
{
    return e->port->delivery.kind != VHCA_TO_NOBODY;
}

/* Whether a frame from the network has to wait. */
static inline bool vhca_rx_waits(const struct qhca_engine *e)
{
    return vhca_running(e) && (vhca_delivering(e) || e->port->late_rx);
}

/* Add a receiver of the frame that has come; it is delivered to each once. */
static inline void vhca_delivery_add(struct qhca_engine *e,
                                     enum vhca_receivers kind, uint32_t number)
{
    struct vhca_delivery *d = &e->port->delivery;

    d->kind = (uint8_t)kind;
    d->to[d->num++] = number;
}

/*
 * Return the next receiver, or 0 if all have had the frame or the budget ends;
 * then call vhca_delivery_stop().
 */
uint32_t vhca_delivery_next(struct qhca_engine *e);
/* Keep the frame for those that have not had it. */
void vhca_delivery_stop(struct qhca_engine *e, const uint8_t *frame, size_t len,
                        bool csum_ok);
/* A receiver is one no longer. @gid: of the group that a QP leaves, or NULL */
void vhca_delivery_forget(struct qhca_engine *e, enum vhca_receivers kind,
                          const uint8_t *gid, uint32_t number);
/*
 * Keep a frame from the network, of at least ETH_LEN bytes, behind the one that
 * is being delivered. If there is no room, the frame is lost, and counted.
 */
void vhca_rx_keep(struct qhca_engine *e, const uint8_t *frame, size_t len);
/* Take the oldest frame, which has been looked at, out of the loopback FIFO. */
void vhca_loop_pop(struct qhca_engine *e);

/* ---- snapshot.c ---- */

/*
 * Walk over the frame being delivered, after its receivers. @ok: whether the
 * loaded frame can be for @number
 */
void vhca_delivery_walk(struct vhca_snap *s,
                        bool (*ok)(struct qhca_engine *e,
                                   const struct vhca_delivery *d,
                                   uint32_t number));

void vhca_port_walk(struct vhca_snap *s);

/* ---- tx.c ---- */

/*
 * Send a copy of a frame. If @from is the number of a QP, the frame goes to the
 * port's own receive path as one that this QP has sent; the run loop processes
 * it, never this call. If @from is 0 it goes to the network, and waits in the
 * transmit FIFO while the network does not take frames. While the port is down
 * the frame disappears, as on a cable that is not plugged in, and counts as
 * sent. Returns false if there is no room: the caller keeps the packet.
 */
bool vhca_tx(struct qhca_engine *e, const uint8_t *frame, size_t len,
             uint32_t from);
/*
 * Offer the network a frame that counts as the frames that @cut tells. Returns
 * false if it has to be cut: the network does not take it, or not now, or a
 * fault rule is for single frames.
 */
bool vhca_tx_long(struct qhca_engine *e, const uint8_t *frame, size_t len,
                  const struct qhca_long_frame *how,
                  const struct vhca_cut *cut);
/* Whether @n more frames of any size fit. */
bool vhca_tx_room(const struct qhca_engine *e, bool loop, unsigned n);
/* Whether the pace allows a frame, and requests find room in both FIFOs. */
bool vhca_tx_free(const struct qhca_engine *e);
/* Whether the frames to the port itself are on their way for some time yet. */
bool vhca_loop_waits(const struct qhca_engine *e);
/* The network takes frames again: hand it those whose time has come. */
void vhca_tx_flush(struct qhca_engine *e);
/* Wait for the time of the first of the frames that wait. */
void vhca_tx_wait(struct qhca_engine *e);
/* The time that vhca_tx_wait() has waited for has come. */
void vhca_tx_due(struct qhca_engine *e, struct vhca_timer *t);

/* ---- pause.c ---- */

/* Return the class of a frame: the priority in its tag, or from its DSCP. */
static inline unsigned vhca_class_of(uint16_t vlan, uint8_t sl, uint8_t tclass)
{
    return vlan == QHCA_NO_VLAN ? tclass >> 5 : sl & 7u;
}

/* Whether frames of the class have to wait. */
static inline bool vhca_paused(const struct qhca_engine *e, unsigned class)
{
    return e->port->pause.classes >> class & 1;
}

/*
 * Let frames of these classes, a bit each, wait for @ns, or VHCA_PAUSE_NS if
 * that is less; 0: no longer.
 */
void vhca_pause(struct qhca_engine *e, uint8_t classes, uint64_t ns);
/* A frame for the MAC has come: one that asks for a pause is obeyed. */
void vhca_pause_rx(struct qhca_engine *e, const uint8_t *frame, size_t len);
/* The pause of a class has ended by itself. */
void vhca_pause_due(struct qhca_engine *e, struct vhca_timer *t);

#endif /* QHCA_ENGINE_PORT_H */
