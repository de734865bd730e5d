/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the headers of a frame, as far as both the transport and the
 * Ethernet queues need them.
 */
#include <string.h>

#include "wire.h"

#define MAX_TAGS    2           /* VLAN tags that do not count as payload */

#define IPV6_EXT_LEN            8u      /* smallest length, and its unit */
#define IP_PROTO_HOP_BY_HOP     0
#define IP_PROTO_ROUTING        43
#define IP_PROTO_FRAGMENT       44
#define IP_PROTO_DEST_OPTIONS   60

static void ipv4_gid(uint8_t *gid, const uint8_t *addr)
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, addr, 4);
}

static void parse_ipv4(struct frame_headers *h, const uint8_t *ip, size_t len)
{
    /* Neither options (E-002) nor fragments (E-045) are RoCE. */
    if (len < IPV4_LEN + UDP_LEN || ip[0] != 0x45 || ip[9] != IP_PROTO_UDP ||
        get_be16(ip + 6) & 0x3fff) {
        return;
    }
    h->udp = true;
    h->dport = get_be16(ip + IPV4_LEN + 2);
    ipv4_gid(h->sgid, ip + 12);
    ipv4_gid(h->dgid, ip + 16);
}

static void parse_ipv6(struct frame_headers *h, const uint8_t *ip, size_t len)
{
    if (len < IPV6_LEN + UDP_LEN || ip[0] >> 4 != 6 ||
        ip[6] != IP_PROTO_UDP) {
        return;
    }
    h->udp = true;
    h->dport = get_be16(ip + IPV6_LEN + 2);
    memcpy(h->sgid, ip + 8, sizeof(h->sgid));
    memcpy(h->dgid, ip + 24, sizeof(h->dgid));
}

void vhca_frame_parse(struct frame_headers *h, const uint8_t *frame, size_t len)
{
    h->udp = false;
    h->vlan = QHCA_NO_VLAN;
    h->priority = 0;
    h->l3 = ETH_LEN;
    h->type = get_be16(frame + 12);
    if (h->type == ETHERTYPE_VLAN && len >= ETH_LEN + VLAN_LEN) {
        uint16_t vid = get_be16(frame + ETH_LEN) & 0xfff;

        /* VLAN 0 is a priority tag: the frame counts as untagged. */
        h->vlan = vid ? vid : QHCA_NO_VLAN;
        h->priority = frame[ETH_LEN] >> 5;
        h->type = get_be16(frame + ETH_LEN + 2);
        h->l3 += VLAN_LEN;
    }
    if (h->type == ETHERTYPE_IPV4) {
        parse_ipv4(h, frame + h->l3, len - h->l3);
    } else if (h->type == ETHERTYPE_IPV6) {
        parse_ipv6(h, frame + h->l3, len - h->l3);
    }
}

size_t vhca_frame_header_len(const uint8_t *frame, size_t len)
{
    size_t header = ETH_LEN;
    uint16_t type;

    for (unsigned tags = 0; tags < MAX_TAGS && len >= header + VLAN_LEN;
         tags++) {
        type = get_be16(frame + header - 2);
        if (type != ETHERTYPE_VLAN && type != ETHERTYPE_SVLAN) {
            break;
        }
        header += VLAN_LEN;
    }
    return header;
}

/*
 * Return the offset of a protocol's header in an IPv6 packet, behind extension
 * headers, or 0. @fragment: the packet is a first fragment, so the header may
 * be in the next one.
 */
static size_t find6(const uint8_t *ip, size_t len, uint8_t proto,
                    bool *fragment)
{
    uint8_t next = ip[6];
    size_t at = IPV6_LEN;

    while (next != proto) {
        if (at + IPV6_EXT_LEN > len) {
            return len;
        }
        switch (next) {
        case IP_PROTO_HOP_BY_HOP:
        case IP_PROTO_ROUTING:
        case IP_PROTO_DEST_OPTIONS:
            next = ip[at];
            at += (ip[at + 1] + 1u) * IPV6_EXT_LEN;
            break;
        case IP_PROTO_FRAGMENT:
            if (get_be16(ip + at + 2) & 0xfff8) {
                return 0;               /* not the first one */
            }
            *fragment = *fragment || (get_be16(ip + at + 2) & 1);
            next = ip[at];
            at += IPV6_EXT_LEN;
            break;
        default:
            return 0;
        }
    }
    return at;
}

static size_t find4(const uint8_t *ip, uint8_t proto)
{
    return ip[9] == proto && !(get_be16(ip + 6) & 0x1fff) ?
           (ip[0] & 0xfu) * 4 : 0;
}

size_t vhca_frame_find_l4(const uint8_t *frame, size_t len, size_t l3,
                          uint8_t proto, bool *fragment)
{
    const uint8_t *ip = frame + l3;
    uint16_t type = get_be16(ip - 2);
    size_t l4 = 0;

    *fragment = false;
    len -= l3;
    if (type == ETHERTYPE_IPV4 && len >= IPV4_LEN) {
        l4 = find4(ip, proto);
    } else if (type == ETHERTYPE_IPV6 && len >= IPV6_LEN) {
        l4 = find6(ip, len, proto, fragment);
    }
    return l4 ? l3 + l4 : 0;
}

bool vhca_frame_roce_source(const uint8_t *frame, size_t len, uint8_t *sgid)
{
    size_t l3 = vhca_frame_header_len(frame, len), l4;
    bool fragment;

    l4 = vhca_frame_find_l4(frame, len, l3, IP_PROTO_UDP, &fragment);
    if (!l4) {
        return false;
    }
    if (get_be16(frame + l3 - 2) == ETHERTYPE_IPV4) {
        ipv4_gid(sgid, frame + l3 + 12);
    } else {
        memcpy(sgid, frame + l3 + 8, 16);
    }
    /* RFC 8200 forbids a UDP header in a second fragment; not all check. */
    return l4 + UDP_LEN > len ? fragment :
                                get_be16(frame + l4 + 2) == ROCE_UDP_PORT;
}
