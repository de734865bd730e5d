/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: where the packets of a QP go, whether they can be handed across,
 * and whether there is room for them.
 */
#include "link.h"

/* Whether packets to @av go to this port, to the network, or to both. */
static void route(const struct qhca_engine *e, const struct qhca_av *av,
                  bool *loop, bool *net)
{
    const struct vhca_gid *local = &e->port->gid[av->sgid_index];

    if (vhca_gid_is_multicast(av->dgid)) {
        *net = true;
        *loop = vhca_group_find(e, av->dgid);
        return;
    }
    *loop = !memcmp(local->gid, av->dgid, 16) ||
            vhca_gid_find(e, av->dgid, local->vlan) >= 0;
    *net = !*loop;
}

void vhca_way_to(struct qhca_engine *e, struct vhca_qp *qp,
                 const struct qhca_av *av, uint32_t dest_qp,
                 struct vhca_way *way)
{
    way->av = av;
    way->dest_qp = dest_qp;
    way->local = &e->port->gid[av->sgid_index];
    /*
     * A GID that was removed sends nothing (G-015). A datagram posted before
     * the GID was replaced must not use the new GID either.
     */
    way->lost = !way->local->valid ||
                way->local->ipv4 != vhca_gid_is_ipv4(av->dgid) ||
                (vhca_qp_is(qp, VHCA_DATAGRAM) &&
                 !vhca_gid_allowed(e, qp->uar, av->sgid_index));
    route(e, av, &way->loop, &way->net);
    way->peer = NULL;
}

/* Whether a packet with these addresses is from the peer of @qp, at @local. */
static bool addresses_fit(const struct vhca_qp *qp,
                          const struct vhca_gid *local, uint16_t vlan,
                          const uint8_t *sgid, const uint8_t *dgid)
{
    return local->valid && vlan == local->vlan &&
           !memcmp(dgid, local->gid, 16) &&
           !memcmp(sgid, qp->attr.av.dgid, 16);
}

/* Whether packets may cross: not if they would be too large for frames. */
static bool may_cross(const struct qhca_engine *e, const struct vhca_qp *qp)
{
    return !e->cfg.frames && !vhca_port_latency(e) &&
           qp->mtu <= vhca_port_path_mtu(e);
}

/* Return the neighbour that frames with this destination reach, or NULL. */
static struct qhca_engine *neighbour(const struct qhca_engine *e,
                                     const struct vhca_way *way)
{
    struct qhca_engine *at = NULL;

    if (e->ops->neighbour && !vhca_fifo_used(&e->port->tx)) {
        at = e->ops->neighbour(e->opaque, way->local->smac, way->av->dmac);
    }
    return at && vhca_running(at) && !vhca_fifo_used(&at->port->tx) ? at : NULL;
}

/*
 * Return the QP in @at that @qp is connected to, if it takes packets from @qp;
 * else NULL: they become frames then, as do those that a QP sends to itself.
 */
static struct vhca_qp *find_peer(struct qhca_engine *at,
                                 const struct vhca_qp *qp,
                                 const struct vhca_way *way)
{
    struct vhca_qp *peer = vhca_qp_get(at, way->dest_qp);
    const struct vhca_gid *there;

    if (!peer || peer == qp || vhca_qp_is(peer, VHCA_DATAGRAM) ||
        peer->attr.dest_qpn != htole32(qp->qpn)) {
        return NULL;
    }
    there = &at->port->gid[peer->attr.av.sgid_index];
    return addresses_fit(peer, there, way->local->vlan, way->local->gid,
                         way->av->dgid) ? peer : NULL;
}

/*
 * Whether @peer expects frames from another port, its port takes them, and its
 * own frames get to @e: an ACK crosses back without having a way of its own.
 */
static bool takes_from_afar(const struct qhca_engine *e,
                            const struct qhca_engine *at,
                            const struct vhca_qp *peer,
                            const struct vhca_way *way)
{
    const struct qhca_av *av = &peer->attr.av;
    const struct vhca_gid *there = &at->port->gid[av->sgid_index];
    bool loop, net;

    route(at, av, &loop, &net);
    return !loop && vhca_gid_has_mac(at->port, there, way->av->dmac) &&
           vhca_gid_has_mac(e->port, way->local, av->dmac) &&
           at->ops->neighbour &&
           at->ops->neighbour(at->opaque, there->smac, av->dmac) == e;
}

void vhca_way_to_peer(struct qhca_engine *e, struct vhca_qp *qp,
                      struct vhca_way *way)
{
    struct qhca_engine *at;
    struct vhca_qp *peer;

    vhca_way_to(e, qp, &qp->attr.av, le32toh(qp->attr.dest_qpn), way);
    if (way->loop == way->net || way->lost) {
        return;
    }
    at = way->loop ? e : neighbour(e, way);
    peer = at && may_cross(e, qp) ? find_peer(at, qp, way) : NULL;
    if (peer && (at == e || (may_cross(at, qp) &&
                             takes_from_afar(e, at, peer, way)))) {
        way->peer = peer;
        way->at = at;
    }
}

/* Whether answers of @peer, of @at, are paused: an ACK must not cross then. */
static bool is_paused(const struct qhca_engine *at, const struct vhca_qp *peer)
{
    const struct qhca_av *av = &peer->attr.av;

    return vhca_paused(at, vhca_class_of(at->port->gid[av->sgid_index].vlan,
                                         av->sl, av->tclass));
}

bool vhca_way_far_across(const struct qhca_engine *e,
                         const struct vhca_way *way)
{
    const struct qhca_engine *at = neighbour(e, way);

    return at && at == way->at && vhca_port_up(at) &&
           !is_paused(at, way->peer) && vhca_has_time(at, at->now);
}

bool vhca_way_room_as(struct qhca_engine *e, struct vhca_qp *qp,
                      const struct vhca_way *way, uint8_t tclass,
                      unsigned reserve)
{
    unsigned class = way->local ? vhca_class_of(way->local->vlan, way->av->sl,
                                                tclass) : 0;

    return vhca_qp_tx_room(e, qp, way->loop, way->net, class, reserve);
}

bool vhca_way_room(struct qhca_engine *e, struct vhca_qp *qp,
                   const struct vhca_way *way, unsigned reserve)
{
    return vhca_way_room_as(e, qp, way, way->local ? way->av->tclass : 0,
                            reserve);
}

bool vhca_way_from_peer(const struct qhca_engine *e, const struct vhca_qp *qp,
                        const struct roce_packet *p)
{
    const struct vhca_gid *local = &e->port->gid[qp->attr.av.sgid_index];
    bool loop, net;

    if (!addresses_fit(qp, local, p->vlan, p->sgid, p->dgid)) {
        return false;
    }
    route(e, &qp->attr.av, &loop, &net);
    return loop ? p->from == le32toh(qp->attr.dest_qpn) : !p->from;
}
