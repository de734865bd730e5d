/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: building and parsing RoCEv2 frames.
 *
 * Rules that are not obvious from the header layouts carry the identifier of
 * Documentation/conformance they come from.
 */
#include <string.h>

#include "qhca/cmd.h"
#include "wire.h"

#define FIRST   OPF_FIRST
#define LAST    OPF_LAST
#define ONLY    (OPF_FIRST | OPF_LAST)
#define PAY     OPF_PAYLOAD

/*
 * The opcodes RC, UC and XRC share, for service @svc. @ext: what requests of
 * that service carry besides.
 */
#define CONNECTED_OPCODES(svc, ext) \
    [(svc) | RC_SEND_FIRST]     = { OP_SEND, FIRST | PAY | (ext) }, \
    [(svc) | RC_SEND_MIDDLE]    = { OP_SEND, PAY | (ext) }, \
    [(svc) | RC_SEND_LAST]      = { OP_SEND, LAST | PAY | (ext) }, \
    [(svc) | RC_SEND_LAST_IMM]  = { OP_SEND, LAST | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_SEND_ONLY]      = { OP_SEND, ONLY | PAY | (ext) }, \
    [(svc) | RC_SEND_ONLY_IMM]  = { OP_SEND, ONLY | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_WRITE_FIRST]    = { OP_WRITE, FIRST | PAY | OPF_RETH | \
                                    (ext) }, \
    [(svc) | RC_WRITE_MIDDLE]   = { OP_WRITE, PAY | (ext) }, \
    [(svc) | RC_WRITE_LAST]     = { OP_WRITE, LAST | PAY | (ext) }, \
    [(svc) | RC_WRITE_LAST_IMM] = { OP_WRITE, LAST | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_WRITE_ONLY]     = { OP_WRITE, ONLY | PAY | OPF_RETH | (ext) }, \
    [(svc) | RC_WRITE_ONLY_IMM] = { OP_WRITE, ONLY | PAY | OPF_RETH | \
                                    OPF_IMM | (ext) }

#define RESP    (OPF_RESPONSE | OPF_PAYLOAD)

/* And those RC and XRC share. */
#define RELIABLE_OPCODES(svc, ext) \
    [(svc) | RC_READ_REQUEST]    = { OP_READ_REQ, ONLY | OPF_RETH | (ext) }, \
    [(svc) | RC_READ_RESP_FIRST] = { OP_READ_RESP, FIRST | RESP | OPF_AETH }, \
    [(svc) | RC_READ_RESP_MIDDLE] = { OP_READ_RESP, RESP }, \
    [(svc) | RC_READ_RESP_LAST]  = { OP_READ_RESP, LAST | RESP | OPF_AETH }, \
    [(svc) | RC_READ_RESP_ONLY]  = { OP_READ_RESP, ONLY | RESP | OPF_AETH }, \
    [(svc) | RC_ACKNOWLEDGE]     = { OP_ACK, ONLY | OPF_RESPONSE | OPF_AETH }, \
    [(svc) | RC_ATOMIC_ACKNOWLEDGE] = { OP_ATOMIC_ACK, ONLY | OPF_RESPONSE | \
                                        OPF_AETH | OPF_ATOMICACK }, \
    [(svc) | RC_CMP_SWAP]        = { OP_CAS, ONLY | OPF_ATOMICETH | (ext) }, \
    [(svc) | RC_FETCH_ADD]       = { OP_FAA, ONLY | OPF_ATOMICETH | (ext) }, \
    [(svc) | RC_SEND_LAST_INV]   = { OP_SEND, LAST | PAY | OPF_IETH | (ext) }, \
    [(svc) | RC_SEND_ONLY_INV]   = { OP_SEND, ONLY | PAY | OPF_IETH | (ext) }

static const struct roce_opcode_info opcodes[256] = {
    CONNECTED_OPCODES(SVC_RC, 0),
    RELIABLE_OPCODES(SVC_RC, 0),
    CONNECTED_OPCODES(SVC_UC, 0),
    CONNECTED_OPCODES(SVC_XRC, OPF_XRCETH),
    RELIABLE_OPCODES(SVC_XRC, OPF_XRCETH),
    [RC_FLUSH]              = { OP_FLUSH, ONLY | OPF_FETH | OPF_RETH },
    [RC_ATOMIC_WRITE]       = { OP_ATOMIC_WRITE, ONLY | PAY | OPF_RETH },
    [SVC_UD | RC_SEND_ONLY] = { OP_SEND, ONLY | PAY | OPF_DETH },
    [SVC_UD | RC_SEND_ONLY_IMM] = { OP_SEND, ONLY | PAY | OPF_DETH | OPF_IMM },
    [ROCE_CNP]              = { OP_CNP, ONLY | PAY },
};

const struct roce_opcode_info *roce_opcode(uint8_t opcode)
{
    return &opcodes[opcode];
}

/* Lengths of the extension headers, in the order they stand in a packet. */
static const struct {
    uint16_t flag;
    uint8_t len;
} ext_headers[] = {
    { OPF_XRCETH, 4 }, { OPF_DETH, 8 }, { OPF_FETH, 4 }, { OPF_RETH, 16 },
    { OPF_ATOMICETH, 28 },
    { OPF_AETH, 4 }, { OPF_ATOMICACK, 8 }, { OPF_IMM, 4 }, { OPF_IETH, 4 },
};

static size_t ext_len(uint16_t flags)
{
    size_t len = 0;

    for (size_t i = 0; i < sizeof(ext_headers) / sizeof(ext_headers[0]); i++) {
        len += flags & ext_headers[i].flag ? ext_headers[i].len : 0;
    }
    return len;
}

size_t roce_payload_offset(const struct roce_packet *p)
{
    size_t vlan_len = p->vlan != QHCA_NO_VLAN ? VLAN_LEN : 0;
    size_t ip_len = p->ipv4 ? IPV4_LEN : IPV6_LEN;

    return ETH_LEN + vlan_len + ip_len + UDP_LEN + BTH_LEN +
           ext_len(opcodes[p->opcode].flags);
}

static uint8_t *build_eth(const struct roce_packet *p, uint8_t *h)
{
    memcpy(h, p->dmac, 6);
    memcpy(h + 6, p->smac, 6);
    h += 12;
    if (p->vlan != QHCA_NO_VLAN) {
        put_be16(h, 0x8100);
        put_be16(h + 2, (uint16_t)(p->sl << 13 | (p->vlan & 0xfff)));
        h += VLAN_LEN;
    }
    put_be16(h, p->ipv4 ? 0x0800 : 0x86dd);
    return h + 2;
}

static uint16_t ipv4_checksum(const uint8_t *h)
{
    uint32_t sum = 0;

    for (int i = 0; i < IPV4_LEN; i += 2) {
        sum += get_be16(h + i);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* @udp_len: UDP header and everything behind it. */
static uint8_t *build_ip(const struct roce_packet *p, uint8_t *h,
                         size_t udp_len)
{
    if (p->ipv4) {
        memset(h, 0, IPV4_LEN);
        h[0] = 0x45;
        h[1] = p->tclass;
        put_be16(h + 2, (uint16_t)(IPV4_LEN + udp_len));
        h[6] = 0x40;                    /* don't fragment (E-002) */
        h[8] = p->hop_limit;
        h[9] = 17;
        memcpy(h + 12, p->sgid + 12, 4);
        memcpy(h + 16, p->dgid + 12, 4);
        put_be16(h + 10, ipv4_checksum(h));
        return h + IPV4_LEN;
    }
    put_be32(h, 0x60000000u | (uint32_t)p->tclass << 20 |
                (p->flow_label & 0xfffff));
    put_be16(h + 4, (uint16_t)udp_len);
    h[6] = 17;
    h[7] = p->hop_limit;
    memcpy(h + 8, p->sgid, 16);
    memcpy(h + 24, p->dgid, 16);
    return h + IPV6_LEN;
}

static uint8_t *build_bth(const struct roce_packet *p, uint8_t *h, unsigned pad)
{
    h[0] = p->opcode;
    /* MigReq is constantly 1, the migrated state (E-031). */
    h[1] = (uint8_t)((unsigned)p->solicited << 7 | 1u << 6 | pad << 4);
    put_be16(h + 2, p->pkey);
    put_be32(h + 4, p->dest_qp);
    put_be32(h + 8, (uint32_t)p->ackreq << 31 | p->psn);
    return h + BTH_LEN;
}

static uint8_t *build_ext(const struct roce_packet *p, uint8_t *h)
{
    uint16_t flags = opcodes[p->opcode].flags;

    if (flags & OPF_XRCETH) {
        put_be32(h, p->srqn);
        h += 4;
    }
    if (flags & OPF_DETH) {
        put_be32(h, p->qkey);
        put_be32(h + 4, p->src_qp);
        h += 8;
    }
    if (flags & OPF_FETH) {
        put_be32(h, (uint32_t)p->flush_level << 4 | p->flush_type);
        h += 4;
    }
    if (flags & (OPF_RETH | OPF_ATOMICETH)) {
        put_be64(h, p->va);
        put_be32(h + 8, p->rkey);
        h += 12;
    }
    if (flags & OPF_RETH) {
        put_be32(h, p->dma_len);
        h += 4;
    }
    if (flags & OPF_ATOMICETH) {
        put_be64(h, p->swap_add);
        put_be64(h + 8, p->compare);
        h += 16;
    }
    if (flags & OPF_AETH) {
        put_be32(h, (uint32_t)p->syndrome << 24 | p->msn);
        h += 4;
    }
    if (flags & OPF_ATOMICACK) {
        put_be64(h, p->atomic_orig);
        h += 8;
    }
    if (flags & OPF_IMM) {
        memcpy(h, &p->imm, 4);
        h += 4;
    }
    if (flags & OPF_IETH) {
        put_be32(h, p->inv_key);
        h += 4;
    }
    return h;
}

size_t roce_finish(const struct roce_packet *p, uint8_t *frame)
{
    unsigned pad = -(unsigned)p->payload_len & 3;
    size_t off = roce_payload_offset(p);
    size_t end = off + p->payload_len + pad;
    uint8_t *ip = build_eth(p, frame);
    size_t udp_len = (size_t)(frame + end - ip) + ICRC_LEN -
                     (p->ipv4 ? IPV4_LEN : IPV6_LEN);
    uint8_t *h = build_ip(p, ip, udp_len);

    put_be16(h, p->sport);
    put_be16(h + 2, ROCE_UDP_PORT);
    put_be16(h + 4, (uint16_t)udp_len);
    put_be16(h + 6, 0);                 /* checksum unused (E-003) */
    h = build_bth(p, h + UDP_LEN, pad);
    build_ext(p, h);
    memset(frame + end - pad, 0, pad);

    uint32_t icrc = roce_icrc(ip, p->ipv4, (size_t)(frame + end - ip));

    /* The one little-endian field of the packet (E-032). */
    for (int i = 0; i < ICRC_LEN; i++) {
        frame[end + (size_t)i] = (uint8_t)(icrc >> (8 * i));
    }
    return end + ICRC_LEN;
}

/* Returns the IP header, or NULL. */
static const uint8_t *parse_eth(struct roce_packet *p, const uint8_t *f,
                                size_t len)
{
    const uint8_t *h = f + 12;

    if (len < ETH_LEN + VLAN_LEN + IPV4_LEN) {
        return NULL;
    }
    memcpy(p->dmac, f, 6);
    memcpy(p->smac, f + 6, 6);
    p->vlan = QHCA_NO_VLAN;
    p->sl = 0;
    if (get_be16(h) == 0x8100) {
        uint16_t vid = get_be16(h + 2) & 0xfff;

        /* VLAN 0 is a priority tag: the frame counts as untagged. */
        p->vlan = vid ? vid : QHCA_NO_VLAN;
        p->sl = h[2] >> 5;
        h += VLAN_LEN;
    }
    p->ipv4 = get_be16(h) == 0x0800;
    return p->ipv4 || get_be16(h) == 0x86dd ? h + 2 : NULL;
}

/* Returns the bytes from the IP header to the end of the datagram, or 0. */
static size_t parse_ip(struct roce_packet *p, size_t avail)
{
    const uint8_t *h = p->ip;
    size_t len;

    if (p->ipv4) {
        if (avail < IPV4_LEN || h[0] != 0x45 || h[9] != 17 ||
            (get_be16(h + 6) & 0x3fff)) {
            return 0;
        }
        len = get_be16(h + 2);
        memset(p->sgid, 0, 10);
        memset(p->sgid + 10, 0xff, 2);
        memcpy(p->dgid, p->sgid, 12);
        memcpy(p->sgid + 12, h + 12, 4);
        memcpy(p->dgid + 12, h + 16, 4);
        p->tclass = h[1];
        p->hop_limit = h[8];
    } else {
        if (avail < IPV6_LEN || h[0] >> 4 != 6 || h[6] != 17) {
            return 0;
        }
        len = (size_t)IPV6_LEN + get_be16(h + 4);
        memcpy(p->sgid, h + 8, 16);
        memcpy(p->dgid, h + 24, 16);
        p->tclass = (uint8_t)(get_be32(h) >> 20);
        p->hop_limit = h[7];
        p->flow_label = get_be32(h) & 0xfffff;
    }
    return len <= avail ? len : 0;
}

static void parse_ext(struct roce_packet *p, const uint8_t *h, uint16_t flags)
{
    if (flags & OPF_XRCETH) {
        p->srqn = get_be24(h + 1);
        h += 4;
    }
    if (flags & OPF_DETH) {
        p->qkey = get_be32(h);
        p->src_qp = get_be24(h + 5);
        h += 8;
    }
    if (flags & OPF_FETH) {
        p->flush_type = h[3] & 0xf;
        p->flush_level = h[3] >> 4 & 3;
        h += 4;
    }
    if (flags & (OPF_RETH | OPF_ATOMICETH)) {
        p->va = get_be64(h);
        p->rkey = get_be32(h + 8);
        h += 12;
    }
    if (flags & OPF_RETH) {
        p->dma_len = get_be32(h);
        h += 4;
    }
    if (flags & OPF_ATOMICETH) {
        p->swap_add = get_be64(h);
        p->compare = get_be64(h + 8);
        h += 16;
    }
    if (flags & OPF_AETH) {
        p->syndrome = h[0];
        p->msn = get_be24(h + 1);
        h += 4;
    }
    if (flags & OPF_ATOMICACK) {
        p->atomic_orig = get_be64(h);
        h += 8;
    }
    if (flags & OPF_IMM) {
        memcpy(&p->imm, h, 4);
        h += 4;
    }
    if (flags & OPF_IETH) {
        p->inv_key = get_be32(h);
    }
}

static bool icrc_matches(const struct roce_packet *p, const uint8_t *end)
{
    uint32_t icrc = (uint32_t)end[0] | (uint32_t)end[1] << 8 |
                    (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;

    return icrc == roce_icrc(p->ip, p->ipv4, (size_t)(end - p->ip));
}

enum roce_parse_result roce_parse(struct roce_packet *p, const uint8_t *frame,
                                  size_t len)
{
    memset(p, 0, sizeof(*p));
    p->ip = parse_eth(p, frame, len);
    if (!p->ip) {
        return ROCE_MALFORMED;
    }

    size_t ip_len = p->ipv4 ? IPV4_LEN : IPV6_LEN;
    size_t total = parse_ip(p, len - (size_t)(p->ip - frame));
    const uint8_t *udp = p->ip + ip_len, *bth = udp + UDP_LEN;

    if (total < ip_len + UDP_LEN + BTH_LEN + ICRC_LEN ||
        get_be16(udp + 4) != total - ip_len ||
        get_be16(udp + 2) != ROCE_UDP_PORT) {
        return ROCE_MALFORMED;
    }
    p->sport = get_be16(udp);
    p->opcode = bth[0];
    p->solicited = bth[1] & 0x80;
    p->pkey = get_be16(bth + 2);
    p->dest_qp = get_be24(bth + 5);
    p->ackreq = bth[8] & 0x80;
    p->psn = get_be24(bth + 9);

    const struct roce_opcode_info *info = &opcodes[p->opcode];
    size_t pad = bth[1] >> 4 & 3;
    size_t headers = ip_len + UDP_LEN + BTH_LEN + ext_len(info->flags);

    if ((bth[1] & 0x0f) || total < headers + pad + ICRC_LEN) {
        return ROCE_MALFORMED;
    }
    p->pad = (uint8_t)pad;
    p->payload = p->ip + headers;
    p->payload_len = total - headers - pad - ICRC_LEN;
    if (!icrc_matches(p, p->ip + total - ICRC_LEN)) {
        return ROCE_BAD_ICRC;
    }
    parse_ext(p, bth + BTH_LEN, info->flags);
    return ROCE_OK;
}

void roce_grh(const struct roce_packet *p, uint8_t *grh)
{
    uint8_t *ipv4 = grh + GRH_LEN - IPV4_LEN;

    if (!p->ipv4) {
        memcpy(grh, p->ip, GRH_LEN);
        return;
    }
    memset(grh, 0, GRH_LEN - IPV4_LEN);
    memcpy(ipv4, p->ip, IPV4_LEN);
    put_be16(ipv4 + 10, 0);
    put_be16(ipv4 + 10, ipv4_checksum(ipv4));
}

uint16_t roce_sport(uint32_t flow_label, uint32_t src_qpn, uint32_t dst_qpn)
{
    if (!flow_label) {
        /* Both QPNs decide, as Linux' rdma_calc_flow_label() does it. */
        uint64_t v = (uint64_t)src_qpn * dst_qpn;

        v ^= v >> 20;
        v ^= v >> 40;
        flow_label = (uint32_t)v & 0xfffff;
    }
    return (uint16_t)(0xc000 | ((flow_label ^ flow_label >> 14) & 0x3fff));
}
