/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: Internet checksums (RFC 1071), for the Ethernet queues.
 */
#include "internal.h"

#define ETHERTYPE_IPV4  0x0800
#define ETHERTYPE_IPV6  0x86dd
#define PROTO_TCP       6
#define PROTO_UDP       17

static unsigned be16(const uint8_t *p)
{
    return (unsigned)(p[0] << 8 | p[1]);
}

/**
 * qhca_csum_add() - adds bytes to a ones-complement sum
 * @sum: the sum so far, folded or not
 * @p: the bytes; an odd last one counts as the high byte of a word
 * @len: how many; only the last block added may have an odd length
 */
uint32_t qhca_csum_add(uint32_t sum, const uint8_t *p, size_t len)
{
    uint64_t acc = sum;
    uint32_t word;

    for (; len >= 4; p += 4, len -= 4) {
        memcpy(&word, p, sizeof(word));
        acc += be32toh(word);
    }
    if (len >= 2) {
        acc += be16(p);
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

/**
 * qhca_csum_fold() - the checksum of a sum
 * @sum: from qhca_csum_add()
 */
uint16_t qhca_csum_fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* TCP or UDP at @l4, the sum of the pseudo header's addresses given. */
static bool verify_l4(const uint8_t *l4, size_t len, unsigned proto,
                      uint32_t addresses)
{
    size_t need = proto == PROTO_UDP ? 8 : 20;

    if ((proto != PROTO_TCP && proto != PROTO_UDP) || len < need) {
        return false;
    }
    if (proto == PROTO_UDP) {
        if (be16(l4 + 6) == 0) {
            return false;       /* none sent: nothing to vouch for */
        }
        if (be16(l4 + 4) < need || be16(l4 + 4) > len) {
            return false;
        }
        len = be16(l4 + 4);
    }
    return qhca_csum_fold(qhca_csum_add(addresses + proto + (uint32_t)len, l4,
                                        len)) == 0;
}

static bool verify_ipv4(const uint8_t *ip, size_t len)
{
    size_t hdr, total;

    if (len < 20 || ip[0] >> 4 != 4) {
        return false;
    }
    hdr = (ip[0] & 0xfu) * 4;
    total = be16(ip + 2);
    if (hdr < 20 || total < hdr || total > len ||
        qhca_csum_fold(qhca_csum_add(0, ip, hdr)) != 0 ||
        be16(ip + 6) & 0x3fff) {     /* a fragment has no checksum of its own */
        return false;
    }
    return verify_l4(ip + hdr, total - hdr, ip[9],
                     (uint32_t)(uint16_t)~qhca_csum_fold(
                         qhca_csum_add(0, ip + 12, 8)));
}

static bool verify_ipv6(const uint8_t *ip, size_t len)
{
    size_t payload;

    if (len < 40 || ip[0] >> 4 != 6) {
        return false;
    }
    payload = be16(ip + 4);
    if (payload > len - 40) {
        return false;
    }
    return verify_l4(ip + 40, payload, ip[6],
                     (uint32_t)(uint16_t)~qhca_csum_fold(
                         qhca_csum_add(0, ip + 8, 32)));
}

/**
 * qhca_csum_verify() - whether all checksums of a frame hold
 * @frame: the frame
 * @len: its length
 * @l3: where its network header starts
 * @ethertype: what that is
 *
 * Return: true for TCP and UDP over IPv4 and IPv6 that are intact; false for
 * everything that is not, or not one of these: the guest checks those itself.
 */
bool qhca_csum_verify(const uint8_t *frame, size_t len, size_t l3,
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
