/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the way in. RoCEv2 frames to a GID of the port go to the link,
 * others to an Ethernet queue, if the address filter accepts them.
 */
#include "device.h"

static bool mac_equal(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, 6) == 0;
}

static bool is_roce(const struct qhca_engine *e, const struct frame_headers *p,
                    const uint8_t *dmac, bool loop)
{
    int index;

    if (!p->udp || p->dport != ROCE_UDP_PORT) {
        return false;
    }
    if (vhca_gid_is_multicast(p->dgid)) {
        uint8_t mac[6];

        vhca_group_mac(p->dgid, mac);
        return mac_equal(dmac, mac) && vhca_gid_on_vlan(e, p->vlan) &&
               vhca_group_find(e, p->dgid);                     /* E-039 */
    }
    index = vhca_gid_find(e, p->dgid, p->vlan);
    if (index < 0) {
        return false;
    }
    return loop || vhca_gid_has_mac(e->port, &e->port->gid[index], dmac);
}

/* The address filter of the Ethernet queue. */
static bool eth_accepts(const struct vhca_port *port, const uint8_t *dmac)
{
    static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

    if (port->flags & QHCA_PORT_PROMISC) {
        return true;
    }
    if (!(dmac[0] & 1)) {
        return mac_equal(dmac, port->mac);
    }
    for (uint32_t i = 0; i < port->num_mcast; i++) {
        if (mac_equal(dmac, port->mcast[i])) {
            return true;
        }
    }
    return mac_equal(dmac, broadcast) || port->flags & QHCA_PORT_ALLMULTI;
}

/* Deliver a frame that is not RoCE, or not for this port's GIDs. */
static void ethernet(struct qhca_engine *e, const struct frame_headers *p,
                     const uint8_t *frame, size_t len)
{
    bool accepted = eth_accepts(e->port, frame), csum_ok, taken;
    struct vhca_eth_to to = { .direct = false };

    if (!accepted && !e->raw->flow.used) {
        return;
    }
    csum_ok = vhca_csum_verify(frame, len, p->l3, p->type);
    taken = vhca_flow_choose(e, frame, len, QHCA_FLOW_FIRST);
    if (!taken && !accepted) {
        vhca_flow_choose(e, frame, len, QHCA_FLOW_REST);
    }
    vhca_flow_deliver(e, frame, len, csum_ok);
    if (!taken && accepted && vhca_flow_eth(e, frame, len, &to)) {
        vhca_eth_rx(e, frame, len, to, csum_ok);
    }
}

void vhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from)
{
    struct frame_headers p;

    vhca_spend_bytes(e, len, VHCA_UNIT_FRAME);
    if (!vhca_running(e) || !vhca_port_up(e)) {
        return;
    }
    if (len < ETH_LEN) {
        vhca_count(e, QHCA_CNT_RX_LENGTH);
        return;
    }
    if (!from && get_be16(frame + 12) == ETHERTYPE_CONTROL) {
        vhca_pause_rx(e, frame, len);
        return;
    }
    vhca_frame_parse(&p, frame, len);
    if (len > vhca_frame_header_len(frame, len) + e->port->mtu) {
        vhca_count(e, QHCA_CNT_RX_LENGTH);
        return;
    }
    if (from == VHCA_FROM_RAW) {
        /*
         * A rule wanted this frame of a QP of type RAW. The frame must not
         * speak for a peer, so it does not reach other QPs.
         */
        vhca_flow_choose(e, frame, len, QHCA_FLOW_FIRST);
        vhca_flow_deliver(e, frame, len,
                          vhca_csum_verify(frame, len, p.l3, p.type));
    } else if (is_roce(e, &p, frame, from != 0)) {
        vhca_roce_rx(e, frame, len, from);
    } else if (from) {
        vhca_count(e, QHCA_CNT_RX_BAD_ADDR);    /* its GID has been removed */
    } else {
        ethernet(e, &p, frame, len);
    }
}
