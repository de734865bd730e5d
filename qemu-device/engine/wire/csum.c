/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: Internet checksums (RFC 1071). */
#include "wire.h"

uint32_t vhca_csum_add(uint32_t sum, const uint8_t *p, size_t len)
{
    uint64_t acc = sum;

    for (; len >= 4; p += 4, len -= 4) {
        acc += get_be32(p);
    }
    if (len >= 2) {
        acc += get_be16(p);
        p += 2;
        len -= 2;
    }
    if (len) {
        acc += (uint32_t)p[0] << 8;
    }
    while (acc >> 32) {
        acc = (acc & UINT32_MAX) + (acc >> 32);
    }
    return (uint32_t)acc;
}

uint16_t vhca_csum_fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

uint32_t vhca_csum_pseudo(const uint8_t *ip, bool ipv4, unsigned proto,
                          size_t len)
{
    uint32_t addresses = ipv4 ? vhca_csum_add(0, ip + 12, 8) :
                                vhca_csum_add(0, ip + 8, 32);

    /* Folded, so that the sum cannot overflow. */
    return (uint32_t)(uint16_t)~vhca_csum_fold(addresses) + proto +
           (uint32_t)len;
}

/* Check TCP or UDP at @l4, which the IP header at @ip is for. */
static bool verify_l4(const uint8_t *ip, bool ipv4, const uint8_t *l4,
                      size_t len, unsigned proto)
{
    size_t need = proto == IP_PROTO_UDP ? UDP_LEN : TCP_LEN;

    if ((proto != IP_PROTO_TCP && proto != IP_PROTO_UDP) || len < need) {
        return false;
    }
    if (proto == IP_PROTO_UDP) {
        if (get_be16(l4 + 6) == 0) {
            return false;       /* sent without a checksum */
        }
        if (get_be16(l4 + 4) < need || get_be16(l4 + 4) > len) {
            return false;
        }
        len = get_be16(l4 + 4);
    }
    return vhca_csum_fold(vhca_csum_add(vhca_csum_pseudo(ip, ipv4, proto, len),
                                        l4, len)) == 0;
}

static bool verify_ipv4(const uint8_t *ip, size_t len)
{
    size_t hdr, total;

    if (len < IPV4_LEN || ip[0] >> 4 != 4) {
        return false;
    }
    hdr = (ip[0] & 0xfu) * 4;
    total = get_be16(ip + 2);
    if (hdr < IPV4_LEN || total < hdr || total > len ||
        vhca_csum_fold(vhca_csum_add(0, ip, hdr)) != 0 ||
        get_be16(ip + 6) & 0x3fff) {
        return false;           /* a fragment has no checksum of its own */
    }
    return verify_l4(ip, true, ip + hdr, total - hdr, ip[9]);
}

static bool verify_ipv6(const uint8_t *ip, size_t len)
{
    size_t payload;

    if (len < IPV6_LEN || ip[0] >> 4 != 6) {
        return false;
    }
    payload = get_be16(ip + 4);
    if (payload > len - IPV6_LEN) {
        return false;
    }
    return verify_l4(ip, false, ip + IPV6_LEN, payload, ip[6]);
}

bool vhca_csum_verify(const uint8_t *frame, size_t len, size_t l3,
                      uint16_t ethertype)
{
    if (len < l3) {
        return false;
    }
    switch (ethertype) {
    case ETHERTYPE_IPV4:
        return verify_ipv4(frame + l3, len - l3);
    case ETHERTYPE_IPV6:
        return verify_ipv6(frame + l3, len - l3);
    default:
        return false;
    }
}

static void fill_l4(uint8_t *ip, bool ipv4, uint8_t *l4, size_t len,
                    unsigned proto)
{
    size_t need = proto == IP_PROTO_UDP ? UDP_LEN : TCP_LEN;
    size_t at = proto == IP_PROTO_UDP ? 6 : 16;
    uint16_t csum;

    if ((proto != IP_PROTO_TCP && proto != IP_PROTO_UDP) || len < need) {
        return;
    }
    put_be16(l4 + at, 0);
    csum = vhca_csum_fold(vhca_csum_add(vhca_csum_pseudo(ip, ipv4, proto, len),
                                        l4, len));
    put_be16(l4 + at, csum == 0 && proto == IP_PROTO_UDP ? 0xffff : csum);
}

static void fill_ipv4(uint8_t *ip, size_t len)
{
    size_t hdr = (ip[0] & 0xfu) * 4, total = get_be16(ip + 2);

    if (ip[0] >> 4 != 4 || hdr < IPV4_LEN || total < hdr || total > len) {
        return;
    }
    put_be16(ip + 10, 0);
    put_be16(ip + 10, vhca_csum_fold(vhca_csum_add(0, ip, hdr)));
    if (!(get_be16(ip + 6) & 0x3fff)) {
        fill_l4(ip, true, ip + hdr, total - hdr, ip[9]);
    }
}

void vhca_csum_fill(uint8_t *frame, size_t len)
{
    struct frame_headers h;
    uint8_t *ip;

    vhca_frame_parse(&h, frame, len);
    ip = frame + h.l3;
    len -= h.l3;
    if (h.type == ETHERTYPE_IPV4 && len >= IPV4_LEN) {
        fill_ipv4(ip, len);
    } else if (h.type == ETHERTYPE_IPV6 && len >= IPV6_LEN &&
               ip[0] >> 4 == 6 && get_be16(ip + 4) <= len - IPV6_LEN) {
        fill_l4(ip, false, ip + IPV6_LEN, get_be16(ip + 4), ip[6]);
    }
}
