/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the way in. A frame is the transport's if it is RoCEv2 to a GID
 * of the port, else the Ethernet queue's if the address filter lets it in.
 */
#include "internal.h"
#include "wire.h"

#define TYPE_VLAN       0x8100
#define TYPE_IPV4       0x0800
#define TYPE_IPV6       0x86dd
#define PROTO_UDP       17

/* struct parsed - what steering needs to know of a frame */
struct parsed {
    uint16_t type;              /* EtherType behind a tag */
    uint16_t vlan;              /* VLAN identifier, or QHCA_NO_VLAN */
    size_t l3;                  /* offset of the network header */
    bool udp;                   /* unfragmented UDP with its header there */
    uint16_t dport;
    uint8_t dgid[16];
};

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void parse_ipv4(struct parsed *p, const uint8_t *ip, size_t len)
{
    /* Options are not RoCE (E-002), nor is any part of a datagram (E-045). */
    if (len < IPV4_LEN + UDP_LEN || ip[0] != 0x45 || ip[9] != PROTO_UDP ||
        be16(ip + 6) & 0x3fff) {
        return;
    }
    p->udp = true;
    p->dport = be16(ip + IPV4_LEN + 2);
    memset(p->dgid, 0, 10);
    memset(p->dgid + 10, 0xff, 2);
    memcpy(p->dgid + 12, ip + 16, 4);
}

static void parse_ipv6(struct parsed *p, const uint8_t *ip, size_t len)
{
    if (len < IPV6_LEN + UDP_LEN || ip[0] >> 4 != 6 || ip[6] != PROTO_UDP) {
        return;
    }
    p->udp = true;
    p->dport = be16(ip + IPV6_LEN + 2);
    memcpy(p->dgid, ip + 24, sizeof(p->dgid));
}

static void parse(struct parsed *p, const uint8_t *frame, size_t len)
{
    memset(p, 0, sizeof(*p));
    p->vlan = QHCA_NO_VLAN;
    p->l3 = ETH_LEN;
    p->type = be16(frame + 12);
    if (p->type == TYPE_VLAN && len >= ETH_LEN + VLAN_LEN) {
        p->vlan = be16(frame + ETH_LEN) & 0x0fff;
        p->type = be16(frame + ETH_LEN + 2);
        p->l3 += VLAN_LEN;
        if (p->vlan == 0) {
            p->vlan = QHCA_NO_VLAN;     /* priority only */
        }
    }
    if (p->type == TYPE_IPV4) {
        parse_ipv4(p, frame + p->l3, len - p->l3);
    } else if (p->type == TYPE_IPV6) {
        parse_ipv6(p, frame + p->l3, len - p->l3);
    }
}

static bool mac_equal(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, 6) == 0;
}

/* To a group of the port's, with the address that goes with it (E-039). */
static bool is_wanted_mcast(const struct qhca_engine *e, const struct parsed *p,
                            const uint8_t *dmac)
{
    uint8_t mac[6];

    qhca_mcast_mac(p->dgid, mac);
    return mac_equal(dmac, mac) && qhca_gid_on_vlan(e, p->vlan) &&
           qhca_mcast_wanted(e, p->dgid);
}

static bool is_roce(const struct qhca_engine *e, const struct parsed *p,
                    const uint8_t *dmac, bool loop)
{
    int index;

    if (!p->udp || p->dport != ROCE_UDP_PORT) {
        return false;
    }
    if (qhca_gid_is_multicast(p->dgid)) {
        return is_wanted_mcast(e, p, dmac);
    }
    index = qhca_gid_find(e, p->dgid, p->vlan);
    if (index < 0) {
        return false;
    }
    /* Upper devices (macvlan) have GIDs with an address of their own. */
    return loop || mac_equal(dmac, e->port.mac) ||
           mac_equal(dmac, e->port.gid[index].smac);
}

static bool in_mcast_list(const struct qhca_port *port, const uint8_t *dmac)
{
    uint32_t i;

    for (i = 0; i < port->num_mcast; i++) {
        if (mac_equal(dmac, port->mcast[i])) {
            return true;
        }
    }
    return false;
}

/* The address filter of the Ethernet queue. */
static bool eth_accepts(const struct qhca_port *port, const uint8_t *dmac)
{
    static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

    if (port->flags & QHCA_PORT_PROMISC) {
        return true;
    }
    if (!(dmac[0] & 1)) {
        return mac_equal(dmac, port->mac);
    }
    return mac_equal(dmac, broadcast) || port->flags & QHCA_PORT_ALLMULTI ||
           in_mcast_list(port, dmac);
}

/**
 * qhca_steer() - finds the taker of a frame
 * @e: the engine
 * @frame: the frame
 * @len: its length
 * @from: of the port's own, number of the QP that has sent it; else 0
 */
void qhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from)
{
    struct parsed p;

    if (!qhca_running(e) || !qhca_port_up(e)) {
        return;
    }
    if (len < ETH_LEN) {
        qhca_count(e, QHCA_CNT_RX_MALFORMED);
        return;
    }
    parse(&p, frame, len);
    if (len > qhca_eth_header_len(frame, len) + e->port.mtu) {
        qhca_count(e, QHCA_CNT_RX_MALFORMED);
        return;
    }
    if (is_roce(e, &p, frame, from != 0)) {
        qhca_roce_rx(e, frame, len, from);
    } else if (from) {
        qhca_count(e, QHCA_CNT_RX_BAD_ADDR);    /* its GID has gone meanwhile */
    } else if (eth_accepts(&e->port, frame)) {
        qhca_eth_rx(e, frame, len, qhca_csum_verify(frame, len, p.l3, p.type));
    }
}
