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

/* Return the length of the header of TCP or UDP, or 0 for other protocols. */
static size_t l4_header_len(unsigned proto)
{
    return proto == IP_PROTO_TCP ? TCP_LEN :
           proto == IP_PROTO_UDP ? UDP_LEN : 0;
}

/* Whether an IPv4 packet is whole; if so, get the lengths of header and all. */
static bool is_ipv4(const uint8_t *ip, size_t len, size_t *hdr, size_t *total)
{
    if (len < IPV4_LEN || ip[0] >> 4 != 4) {
        return false;
    }
    *hdr = (ip[0] & 0xfu) * 4;
    *total = get_be16(ip + 2);
    return *hdr >= IPV4_LEN && *total >= *hdr && *total <= len;
}

static bool is_ipv4_fragment(const uint8_t *ip)
{
    return get_be16(ip + 6) & 0x3fff;
}

/* Whether an IPv6 packet is whole; if so, get the length behind its header. */
static bool is_ipv6(const uint8_t *ip, size_t len, size_t *payload)
{
    if (len < IPV6_LEN || ip[0] >> 4 != 6) {
        return false;
    }
    *payload = get_be16(ip + 4);
    return *payload <= len - IPV6_LEN;
}

/* Check TCP or UDP at @l4, which the IP header at @ip is for. */
static bool verify_l4(const uint8_t *ip, bool ipv4, const uint8_t *l4,
                      size_t len, unsigned proto)
{
    size_t need = l4_header_len(proto);

    if (!need || len < need) {
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

    if (!is_ipv4(ip, len, &hdr, &total) ||
        vhca_csum_fold(vhca_csum_add(0, ip, hdr)) != 0 ||
        is_ipv4_fragment(ip)) {
        return false;           /* a fragment has no checksum of its own */
    }
    return verify_l4(ip, true, ip + hdr, total - hdr, ip[9]);
}

static bool verify_ipv6(const uint8_t *ip, size_t len)
{
    size_t payload;

    return is_ipv6(ip, len, &payload) &&
           verify_l4(ip, false, ip + IPV6_LEN, payload, ip[6]);
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
    size_t need = l4_header_len(proto);
    size_t at = proto == IP_PROTO_UDP ? 6 : 16;
    uint16_t csum;

    if (!need || len < need) {
        return;
    }
    put_be16(l4 + at, 0);
    csum = vhca_csum_fold(vhca_csum_add(vhca_csum_pseudo(ip, ipv4, proto, len),
                                        l4, len));
    put_be16(l4 + at, csum == 0 && proto == IP_PROTO_UDP ? 0xffff : csum);
}

static void fill_ipv4(uint8_t *ip, size_t len)
{
    size_t hdr, total;

    if (!is_ipv4(ip, len, &hdr, &total)) {
        return;
    }
    put_be16(ip + 10, 0);
    put_be16(ip + 10, vhca_csum_fold(vhca_csum_add(0, ip, hdr)));
    if (!is_ipv4_fragment(ip)) {
        fill_l4(ip, true, ip + hdr, total - hdr, ip[9]);
    }
}

void vhca_csum_fill(uint8_t *frame, size_t len)
{
    struct frame_headers h;
    size_t payload;
    uint8_t *ip;

    vhca_frame_parse(&h, frame, len);
    ip = frame + h.l3;
    len -= h.l3;
    if (h.type == ETHERTYPE_IPV4) {
        fill_ipv4(ip, len);
    } else if (h.type == ETHERTYPE_IPV6 && is_ipv6(ip, len, &payload)) {
        fill_l4(ip, false, ip + IPV6_LEN, payload, ip[6]);
    }
}
