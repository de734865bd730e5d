/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the hash by which received frames are spread over queues:
 * Toeplitz's, over addresses and ports as Microsoft's RSS has them.
 */
#include <string.h>

#include "wire.h"

#define PORTS_LEN   4u

uint32_t vhca_toeplitz(const uint8_t *key, const uint8_t *data, size_t len)
{
    uint32_t window = get_be32(key), hash = 0;

    for (size_t i = 0; i < len; i++) {
        for (unsigned bit = 8; bit-- > 0;) {
            hash ^= window & -(uint32_t)(data[i] >> bit & 1);
            window = window << 1 | (key[i + sizeof(window)] >> bit & 1);
        }
    }
    return hash;
}

/* struct ip_kind - a version of IP: types of hash, and where addresses are */
static const struct ip_kind {
    uint16_t ethertype;
    uint8_t version, any, tcp, udp;
    size_t len, addr, addr_len;
} kinds[] = {
    { ETHERTYPE_IPV4, 4, QHCA_RSS_IPV4, QHCA_RSS_TCPV4, QHCA_RSS_UDPV4,
      IPV4_LEN, 12, 2 * 4 },
    { ETHERTYPE_IPV6, 6, QHCA_RSS_IPV6, QHCA_RSS_TCPV6, QHCA_RSS_UDPV6,
      IPV6_LEN, 8, 2 * 16 },
};

/* Return the offset of the ports, or 0: all fragments need the same hash. */
static size_t find_ports(const struct ip_kind *k, uint8_t proto,
                         const uint8_t *frame, size_t len, size_t l3)
{
    bool fragment;
    size_t l4 = vhca_frame_find_l4(frame, len, l3, proto, &fragment);

    if (k->version == 4) {
        fragment = get_be16(frame + l3 + 6) & 0x3fff;
    }
    return fragment || l4 < l3 + k->len || l4 + PORTS_LEN > len ? 0 : l4;
}

unsigned vhca_frame_hash(const uint8_t *key, unsigned types,
                         const uint8_t *frame, size_t len, uint32_t *hash)
{
    bool tagged = get_be16(frame + 12) == ETHERTYPE_VLAN &&
                  len >= ETH_LEN + VLAN_LEN;
    size_t l3 = ETH_LEN + (tagged ? VLAN_LEN : 0), l4 = 0;
    uint16_t ethertype = get_be16(frame + l3 - 2);
    const struct ip_kind *k = &kinds[ethertype == ETHERTYPE_IPV6];
    uint8_t data[2 * 16 + PORTS_LEN];
    unsigned type = types & k->any;

    if (ethertype != k->ethertype || len < l3 + k->len ||
        frame[l3] >> 4 != k->version) {
        return 0;
    }
    if (types & k->tcp) {
        l4 = find_ports(k, IP_PROTO_TCP, frame, len, l3);
        type = l4 ? k->tcp : type;
    }
    if (types & k->udp && !l4) {
        l4 = find_ports(k, IP_PROTO_UDP, frame, len, l3);
        type = l4 ? k->udp : type;
    }
    if (!type) {
        return 0;
    }
    memcpy(data, frame + l3 + k->addr, k->addr_len);
    if (l4) {
        memcpy(data + k->addr_len, frame + l4, PORTS_LEN);
    }
    *hash = vhca_toeplitz(key, data, k->addr_len + (l4 ? PORTS_LEN : 0));
    return type;
}
