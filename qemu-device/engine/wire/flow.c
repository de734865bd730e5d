/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what flow rules look at in a frame. */
#include <string.h>

#include "wire.h"

static void parse_ipv4(struct qhca_flow_key *key, const uint8_t *ip)
{
    uint8_t flags = ip[6] >> 5;

    key->headers |= QHCA_FLOW_HAS_IPV4;
    key->tclass = ip[1];
    key->ttl = ip[8];
    key->proto = ip[9];
    key->ip_flags = (flags & 2 ? QHCA_FLOW_DONT_FRAG : 0) |
                    (flags & 1 ? QHCA_FLOW_MORE_FRAGS : 0);
    memcpy(key->src, ip + 12, 4);
    memcpy(key->dst, ip + 16, 4);
}

static void parse_ipv6(struct qhca_flow_key *key, const uint8_t *ip)
{
    key->headers |= QHCA_FLOW_HAS_IPV6;
    key->tclass = (uint8_t)(get_be16(ip) >> 4);
    put_be32((uint8_t *)&key->flow_label, get_be32(ip) & 0xfffff);
    key->proto = ip[6];
    key->ttl = ip[7];
    memcpy(key->src, ip + 8, 16);
    memcpy(key->dst, ip + 24, 16);
}

/* Find the ports of TCP or UDP; a fragment has none. */
static void parse_ports(struct qhca_flow_key *key, const uint8_t *frame,
                        size_t len, size_t l3)
{
    static const struct {
        uint8_t proto, header;
        size_t len;
    } kinds[] = {
        { IP_PROTO_TCP, QHCA_FLOW_HAS_TCP, TCP_LEN },
        { IP_PROTO_UDP, QHCA_FLOW_HAS_UDP, UDP_LEN },
    };

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        bool fragment;
        size_t l4 = vhca_frame_find_l4(frame, len, l3, kinds[i].proto,
                                       &fragment);

        if (l4 > l3 && l4 + kinds[i].len <= len && !fragment &&
            !(key->ip_flags & QHCA_FLOW_MORE_FRAGS)) {
            key->headers |= kinds[i].header;
            key->proto = kinds[i].proto;
            memcpy(&key->sport, frame + l4, 2);
            memcpy(&key->dport, frame + l4 + 2, 2);
            return;
        }
    }
}

void vhca_flow_parse(struct qhca_flow_key *key, const uint8_t *frame,
                     size_t len)
{
    struct frame_headers h;

    vhca_frame_parse(&h, frame, len);
    memset(key, 0, sizeof(*key));
    memcpy(key->dmac, frame, 6);
    memcpy(key->smac, frame + 6, 6);
    put_be16((uint8_t *)&key->ethertype, h.type);
    if (h.l3 > ETH_LEN) {
        key->headers |= QHCA_FLOW_HAS_VLAN;
        memcpy(&key->vlan_tci, frame + ETH_LEN, 2);
    }
    if (h.type == ETHERTYPE_IPV4 && len >= h.l3 + IPV4_LEN &&
        frame[h.l3] >> 4 == 4) {
        parse_ipv4(key, frame + h.l3);
        parse_ports(key, frame, len, h.l3);
    } else if (h.type == ETHERTYPE_IPV6 && len >= h.l3 + IPV6_LEN &&
               frame[h.l3] >> 4 == 6) {
        parse_ipv6(key, frame + h.l3);
        parse_ports(key, frame, len, h.l3);
    }
}
