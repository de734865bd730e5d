/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: building and parsing RoCEv2 frames.
 * Rules that the header layouts do not make obvious have the identifier of
 * their statement in Documentation/conformance.
 */
#include <string.h>

#include "wire.h"

/* ---- extension headers ---- */

static void put_xrceth(const struct roce_packet *p, uint8_t *h)
{
    put_be32(h, p->srqn);
}

static void get_xrceth(struct roce_packet *p, const uint8_t *h)
{
    p->srqn = get_be24(h + 1);
}

static void put_deth(const struct roce_packet *p, uint8_t *h)
{
    put_be32(h, p->qkey);
    put_be32(h + 4, p->src_qp);
}

static void get_deth(struct roce_packet *p, const uint8_t *h)
{
    p->qkey = get_be32(h);
    p->src_qp = get_be24(h + 5);
}

static void put_feth(const struct roce_packet *p, uint8_t *h)
{
    put_be32(h, (uint32_t)p->flush_level << 4 | p->flush_type);
}

static void get_feth(struct roce_packet *p, const uint8_t *h)
{
    p->flush_type = h[3] & 0xf;
    p->flush_level = h[3] >> 4 & 3;
}

static void put_reth(const struct roce_packet *p, uint8_t *h)
{
    put_be64(h, p->va);
    put_be32(h + 8, p->rkey);
    put_be32(h + 12, p->dma_len);
}

static void get_reth(struct roce_packet *p, const uint8_t *h)
{
    p->va = get_be64(h);
    p->rkey = get_be32(h + 8);
    p->dma_len = get_be32(h + 12);
}

static void put_atomiceth(const struct roce_packet *p, uint8_t *h)
{
    put_be64(h, p->va);
    put_be32(h + 8, p->rkey);
    put_be64(h + 12, p->swap_add);
    put_be64(h + 20, p->compare);
}

static void get_atomiceth(struct roce_packet *p, const uint8_t *h)
{
    p->va = get_be64(h);
    p->rkey = get_be32(h + 8);
    p->swap_add = get_be64(h + 12);
    p->compare = get_be64(h + 20);
}

static void put_aeth(const struct roce_packet *p, uint8_t *h)
{
    put_be32(h, (uint32_t)p->syndrome << 24 | p->msn);
}

static void get_aeth(struct roce_packet *p, const uint8_t *h)
{
    p->syndrome = h[0];
    p->msn = get_be24(h + 1);
}

static void put_atomicack(const struct roce_packet *p, uint8_t *h)
{
    put_be64(h, p->atomic_orig);
}

static void get_atomicack(struct roce_packet *p, const uint8_t *h)
{
    p->atomic_orig = get_be64(h);
}

static void put_imm(const struct roce_packet *p, uint8_t *h)
{
    memcpy(h, &p->imm, 4);
}

static void get_imm(struct roce_packet *p, const uint8_t *h)
{
    memcpy(&p->imm, h, 4);
}

static void put_ieth(const struct roce_packet *p, uint8_t *h)
{
    put_be32(h, p->inv_key);
}

static void get_ieth(struct roce_packet *p, const uint8_t *h)
{
    p->inv_key = get_be32(h);
}

/* The extension headers, in their order in a packet. */
static const struct {
    uint16_t flag;
    uint8_t len;
    void (*put)(const struct roce_packet *p, uint8_t *h);
    void (*get)(struct roce_packet *p, const uint8_t *h);
} ext_headers[] = {
    { OPF_XRCETH, XRCETH_LEN, put_xrceth, get_xrceth },
    { OPF_DETH, DETH_LEN, put_deth, get_deth },
    { OPF_FETH, FETH_LEN, put_feth, get_feth },
    { OPF_RETH, RETH_LEN, put_reth, get_reth },
    { OPF_ATOMICETH, ATOMICETH_LEN, put_atomiceth, get_atomiceth },
    { OPF_AETH, AETH_LEN, put_aeth, get_aeth },
    { OPF_ATOMICACK, ATOMICACK_LEN, put_atomicack, get_atomicack },
    { OPF_IMM, IMM_LEN, put_imm, get_imm },
    { OPF_IETH, IETH_LEN, put_ieth, get_ieth },
};

#define NUM_EXT_HEADERS (sizeof(ext_headers) / sizeof(ext_headers[0]))

static void build_ext(const struct roce_packet *p, uint8_t *h, uint16_t flags)
{
    for (size_t i = 0; i < NUM_EXT_HEADERS; i++) {
        if (flags & ext_headers[i].flag) {
            ext_headers[i].put(p, h);
            h += ext_headers[i].len;
        }
    }
}

static void parse_ext(struct roce_packet *p, const uint8_t *h, uint16_t flags)
{
    for (size_t i = 0; i < NUM_EXT_HEADERS; i++) {
        if (flags & ext_headers[i].flag) {
            ext_headers[i].get(p, h);
            h += ext_headers[i].len;
        }
    }
}

/* ---- building ---- */

/* Return the bytes of all headers in front of the extension headers. */
static size_t headers_len(bool ipv4, uint16_t vlan)
{
    return ETH_LEN + (vlan != QHCA_NO_VLAN ? VLAN_LEN : 0) +
           (ipv4 ? IPV4_LEN : IPV6_LEN) + UDP_LEN + BTH_LEN;
}

size_t roce_ack_len(bool ipv4, uint16_t vlan)
{
    return headers_len(ipv4, vlan) + AETH_LEN + ICRC_LEN;
}

size_t roce_payload_offset(const struct roce_packet *p)
{
    return headers_len(p->ipv4, p->vlan) + roce_opcode(p->opcode)->ext_len;
}

size_t roce_frames_len(const struct roce_packet *p)
{
    uint16_t flags = roce_opcode(p->opcode)->flags;
    size_t headers = roce_payload_offset(p) + ICRC_LEN;
    size_t middle = headers - roce_opcode(p->opcode)->ext_len +
                    (flags & OPF_XRCETH ? XRCETH_LEN : 0);
    size_t len = headers + p->payload_len + (-p->payload_len & 3) +
                 (p->num_psn - 1) * middle;

    /* Both the first and the last packet of a READ response have an AETH. */
    if (p->num_psn > 1 && (flags & OPF_AETH) && (flags & OPF_FIRST) &&
        (flags & OPF_LAST)) {
        len += AETH_LEN;
    }
    return len;
}

struct roce_packet roce_first_of(const struct roce_packet *p)
{
    /* For each kind of message: opcodes of a middle and of a first packet. */
    static const uint8_t opcode[][2] = {
        [OP_SEND] = { RC_SEND_MIDDLE, RC_SEND_FIRST },
        [OP_WRITE] = { RC_WRITE_MIDDLE, RC_WRITE_FIRST },
        [OP_READ_RESP] = { RC_READ_RESP_MIDDLE, RC_READ_RESP_FIRST },
    };
    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    struct roce_packet first = *p;

    first.opcode = (p->opcode & SVC_MASK) |
                   opcode[info->op][!!(info->flags & OPF_FIRST)];
    first.num_psn = 1;
    first.payload_len = p->mtu;
    first.pad = 0;
    first.ackreq = first.solicited = false;
    return first;
}

static uint8_t *build_eth(const struct roce_packet *p, uint8_t *h)
{
    memcpy(h, p->dmac, 6);
    memcpy(h + 6, p->smac, 6);
    h += 12;
    if (p->vlan != QHCA_NO_VLAN) {
        put_be16(h, ETHERTYPE_VLAN);
        put_be16(h + 2, (uint16_t)(p->sl << 13 | (p->vlan & 0xfff)));
        h += VLAN_LEN;
    }
    put_be16(h, p->ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    return h + 2;
}

/* @udp_len: bytes of the UDP header and everything behind it. */
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
        h[9] = IP_PROTO_UDP;
        memcpy(h + 12, p->sgid + 12, 4);
        memcpy(h + 16, p->dgid + 12, 4);
        put_be16(h + 10, vhca_csum_fold(vhca_csum_add(0, h, IPV4_LEN)));
        return h + IPV4_LEN;
    }
    put_be32(h, 0x60000000u | (uint32_t)p->tclass << 20 |
                (p->flow_label & 0xfffff));
    put_be16(h + 4, (uint16_t)udp_len);
    h[6] = IP_PROTO_UDP;
    h[7] = p->hop_limit;
    memcpy(h + 8, p->sgid, 16);
    memcpy(h + 24, p->dgid, 16);
    return h + IPV6_LEN;
}

void roce_set_ecn(uint8_t *ip, bool ipv4, uint8_t ecn)
{
    if (!ipv4) {
        ip[1] = (uint8_t)((ip[1] & ~(IP_ECN_MASK << 4)) | ecn << 4);
        return;
    }
    ip[1] = (uint8_t)((ip[1] & ~IP_ECN_MASK) | ecn);
    put_be16(ip + 10, 0);
    put_be16(ip + 10, vhca_csum_fold(vhca_csum_add(0, ip, IPV4_LEN)));
}

static uint8_t *build_bth(const struct roce_packet *p, uint8_t *h, unsigned pad)
{
    h[0] = p->opcode;
    /* MigReq is constantly 1, the migrated state (E-031). */
    h[1] = (uint8_t)((unsigned)p->solicited << 7 | 1u << 6 | pad << 4);
    put_be16(h + 2, p->pkey);
    /* FECN and BECN: only a CNP is a notification (E-040). */
    put_be32(h + 4, (uint32_t)(p->opcode == ROCE_CNP) << 30 | p->dest_qp);
    put_be32(h + 8, (uint32_t)p->ackreq << 31 | p->psn);
    return h + BTH_LEN;
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
    build_ext(p, h, roce_opcode(p->opcode)->flags);
    memset(frame + end - pad, 0, pad);

    uint32_t icrc = roce_icrc(ip, p->ipv4, (size_t)(frame + end - ip));

    /* The one little-endian field of the packet (E-032). */
    for (int i = 0; i < ICRC_LEN; i++) {
        frame[end + (size_t)i] = (uint8_t)(icrc >> (8 * i));
    }
    return end + ICRC_LEN;
}

/* ---- parsing ---- */

/* Parse up to UDP; false: the frame is not UDP that may be RoCE. */
static bool parse_frame(struct roce_packet *p, const uint8_t *frame, size_t len)
{
    struct frame_headers h;

    if (len < ETH_LEN) {
        return false;
    }
    vhca_frame_parse(&h, frame, len);
    if (!h.udp) {
        return false;
    }
    memcpy(p->dmac, frame, 6);
    memcpy(p->smac, frame + 6, 6);
    memcpy(p->sgid, h.sgid, 16);
    memcpy(p->dgid, h.dgid, 16);
    p->vlan = h.vlan;
    p->sl = h.priority;
    p->ipv4 = h.type == ETHERTYPE_IPV4;
    p->ip = frame + h.l3;
    if (p->ipv4) {
        p->tclass = p->ip[1];
        p->hop_limit = p->ip[8];
    } else {
        p->tclass = (uint8_t)(get_be32(p->ip) >> 20);
        p->hop_limit = p->ip[7];
        p->flow_label = get_be32(p->ip) & 0xfffff;
    }
    return true;
}

/* Return the bytes from the IP header to the end of the datagram. */
static size_t datagram_len(const struct roce_packet *p)
{
    return p->ipv4 ? get_be16(p->ip + 2) :
                     (size_t)IPV6_LEN + get_be16(p->ip + 4);
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
    if (!parse_frame(p, frame, len)) {
        return ROCE_MALFORMED;
    }

    size_t ip_len = p->ipv4 ? IPV4_LEN : IPV6_LEN;
    size_t total = datagram_len(p);
    const uint8_t *udp = p->ip + ip_len, *bth = udp + UDP_LEN;

    if (total > len - (size_t)(p->ip - frame) ||
        total < ip_len + UDP_LEN + BTH_LEN + ICRC_LEN ||
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
    p->num_psn = 1;

    const struct roce_opcode_info *info = roce_opcode(p->opcode);
    size_t pad = bth[1] >> 4 & 3;
    size_t headers = ip_len + UDP_LEN + BTH_LEN + info->ext_len;

    if ((bth[1] & 0x0f) || total < headers + pad + ICRC_LEN) {
        return ROCE_MALFORMED;
    }
    p->pad = (uint8_t)pad;
    p->payload = p->ip + headers;
    p->num_pieces = 1;
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
    put_be16(ipv4 + 10, vhca_csum_fold(vhca_csum_add(0, ipv4, IPV4_LEN)));
}

uint16_t roce_sport(uint32_t flow_label, uint32_t src_qpn, uint32_t dst_qpn)
{
    if (!flow_label) {
        /* From both QPNs, like Linux' rdma_calc_flow_label(). */
        uint64_t v = (uint64_t)src_qpn * dst_qpn;

        v ^= v >> 20;
        v ^= v >> 40;
        flow_label = (uint32_t)v & 0xfffff;
    }
    return (uint16_t)(0xc000 | ((flow_label ^ flow_label >> 14) & 0x3fff));
}
