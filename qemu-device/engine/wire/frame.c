/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the headers of a frame, as far as both the transport and the
 * Ethernet queues have to know them.
 */
#include <string.h>

#include "wire.h"

#define MAX_TAGS    2           /* that do not count as payload */

static void ipv4_gid(uint8_t *gid, const uint8_t *addr)
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, addr, 4);
}

static void parse_ipv4(struct frame_headers *h, const uint8_t *ip, size_t len)
{
    /* Options are not RoCE (E-002), nor is any part of a datagram (E-045). */
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

void qhca_frame_parse(struct frame_headers *h, const uint8_t *frame, size_t len)
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

size_t qhca_frame_header_len(const uint8_t *frame, size_t len)
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
