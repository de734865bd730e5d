/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: where the packets of a QP go, whether they can be handed across,
 * and whether there is room for them.
 */
#include "link.h"

void qhca_route(const struct qhca_engine *e, const struct qhca_av *av,
                bool *loop, bool *net)
{
    const struct qhca_gid *local = &e->port->gid[av->sgid_index];

    if (qhca_gid_is_multicast(av->dgid)) {
        *net = true;
        *loop = qhca_group_find(e, av->dgid);
        return;
    }
    *loop = !memcmp(local->gid, av->dgid, 16) ||
            qhca_gid_find(e, av->dgid, local->vlan) >= 0;
    *net = !*loop;
}

/*
 * A GID that was taken away sends nothing from anywhere (G-015). A datagram
 * posted before the GID was replaced must not use the new GID either.
 */
static bool is_lost(const struct qhca_engine *e, const struct qhca_qp *qp,
                    const struct qhca_way *way)
{
    const struct qhca_gid *local = way->local;

    return !local->valid ||
           local->ipv4 != qhca_gid_is_ipv4(way->av->dgid) ||
           (qhca_qp_is(qp, QHCA_DATAGRAM) &&
            !qhca_gid_allowed(e, qp->uar, way->av->sgid_index));
}

void qhca_way_to(struct qhca_engine *e, struct qhca_qp *qp,
                 const struct qhca_av *av, uint32_t dest_qp,
                 struct qhca_way *way)
{
    way->av = av;
    way->dest_qp = dest_qp;
    way->local = &e->port->gid[av->sgid_index];
    way->lost = is_lost(e, qp, way);
    qhca_route(e, av, &way->loop, &way->net);
    way->peer = NULL;
}

/* Whether a packet with these addresses is from the peer of @qp, at @local. */
static bool addresses_fit(const struct qhca_qp *qp,
                          const struct qhca_gid *local, uint16_t vlan,
                          const uint8_t *sgid, const uint8_t *dgid)
{
    return local->valid && vlan == local->vlan &&
           !memcmp(dgid, local->gid, 16) &&
           !memcmp(sgid, qp->attr.av.dgid, 16);
}

/*
 * The QP of this port that the packets of @qp reach, if it takes them from it.
 * What would not be taken becomes a frame, and so does what a QP sends to
 * itself.
 */
static struct qhca_qp *find_peer(struct qhca_engine *e, struct qhca_qp *qp,
                                 const struct qhca_way *way)
{
    struct qhca_qp *peer = qhca_qp_get(e, way->dest_qp);

    if (!peer || peer == qp || qhca_qp_is(peer, QHCA_DATAGRAM) ||
        peer->attr.dest_qpn != htole32(qp->qpn) ||
        !addresses_fit(peer, &e->port->gid[peer->attr.av.sgid_index],
                       way->local->vlan, way->local->gid, way->av->dgid)) {
        return NULL;
    }
    return peer;
}

void qhca_way_to_peer(struct qhca_engine *e, struct qhca_qp *qp,
                      struct qhca_way *way)
{
    qhca_way_to(e, qp, &qp->attr.av, le32toh(qp->attr.dest_qpn), way);
    if (way->loop && !way->net && !way->lost && !e->cfg.frames &&
        qp->mtu <= qhca_port_path_mtu(e)) {
        way->peer = find_peer(e, qp, way);
    }
}

bool qhca_way_room(struct qhca_engine *e, struct qhca_qp *qp,
                   const struct qhca_way *way, unsigned reserve)
{
    bool here = qhca_tx_room(e, true, reserve + 1);
    bool there = qhca_tx_room(e, false, reserve + 1);

    /* The run loop empties the loopback FIFO; the network calls back. */
    qhca_list_del(&qp->tx_wait);
    if (!qhca_port_open(e) || (way->net && !there)) {
        qhca_qp_wait_tx(e, qp);
        return false;
    }
    return !way->loop || here;
}

bool qhca_way_from_peer(const struct qhca_engine *e, const struct qhca_qp *qp,
                        const struct roce_packet *p)
{
    const struct qhca_gid *local = &e->port->gid[qp->attr.av.sgid_index];
    bool loop, net;

    if (!addresses_fit(qp, local, p->vlan, p->sgid, p->dgid)) {
        return false;
    }
    qhca_route(e, &qp->attr.av, &loop, &net);
    return loop ? p->from == le32toh(qp->attr.dest_qpn) : !p->from;
}
