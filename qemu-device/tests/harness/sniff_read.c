/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the sniffer demands of each frame.
 */
#include <string.h>

#include "sniff.h"
#include "tables.h"

#define HEADERS_MAX (E1_IPV6_LEN + E1_UDP_LEN + E1_BTH_LEN)

static uint32_t be(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;

    while (bytes-- > 0) {
        v = v << 8 | *p++;
    }
    return v;
}

/* ---- the ICRC (E-032, E-033) ---- */

static uint32_t crc_add(uint32_t crc, const uint8_t *p, size_t len)
{
    static uint32_t table[256];

    for (unsigned i = 0; !table[255] && i < 256; i++) {
        uint32_t c = i;

        for (unsigned bit = 0; bit < 8; bit++) {
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        }
        table[i] = c;
    }
    while (len-- > 0) {
        crc = crc >> 8 ^ table[(uint8_t)(crc ^ *p++)];
    }
    return crc;
}

static bool icrc_right(const uint8_t *ip, const uint8_t *end)
{
    bool v4 = ip[0] >> 4 == 4;
    size_t ip_len = v4 ? E1_IPV4_LEN : E1_IPV6_LEN;
    size_t head = ip_len + E1_UDP_LEN + E1_BTH_LEN;
    static const uint8_t lrh[8] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    };
    uint8_t h[HEADERS_MAX];
    uint32_t crc;

    memcpy(h, ip, head);
    if (v4) {
        h[1] = h[8] = h[10] = h[11] = 0xff;     /* TOS, TTL, checksum */
    } else {
        h[0] |= 0x0f;                           /* class, label, hop limit */
        h[1] = h[2] = h[3] = h[7] = 0xff;
    }
    h[ip_len + 6] = h[ip_len + 7] = 0xff;       /* UDP checksum */
    h[ip_len + E1_UDP_LEN + 4] = 0xff;          /* F, B, reserved */
    crc = crc_add(0xffffffffu, lrh, sizeof(lrh));
    crc = crc_add(crc, h, head);
    crc = ~crc_add(crc, ip + head, (size_t)(end - ip) - head);
    return end[0] == (uint8_t)crc && end[1] == (uint8_t)(crc >> 8) &&
           end[2] == (uint8_t)(crc >> 16) && end[3] == (uint8_t)(crc >> 24);
}

/* ---- Ethernet, IP, UDP ---- */

static const char *read_ipv4(const uint8_t *ip, size_t len)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < E1_IPV4_LEN; i += 2) {
        sum += be(ip + i, 2);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    if (ip[0] != 0x45 || ip[9] != 17) {
        return "E-002: IPv4 without options, UDP";
    }
    if (be(ip + 2, 2) != len) {
        return "E-002: IPv4 length";
    }
    if (be(ip + 6, 2) != 0x4000) {
        return "E-002: DF, and no fragment";
    }
    return (sum & 0xffff) + (sum >> 16) == 0xffff ? NULL :
           "E-002: IPv4 checksum";
}

static const char *read_ipv6(const uint8_t *ip, size_t len)
{
    if (ip[0] >> 4 != 6 || ip[6] != 17) {
        return "E-002: IPv6, UDP";
    }
    return be(ip + 4, 2) == len - E1_IPV6_LEN ? NULL : "E-002: IPv6 length";
}

/* A group has its own MAC (E-039). */
static const char *read_group(const uint8_t *mac, const uint8_t *ip, bool v4)
{
    const uint8_t *to = ip + (v4 ? 16 : 24);
    bool group = v4 ? to[0] >> 4 == 0xe : to[0] == 0xff;

    if (group != (mac[0] & 1)) {
        return "E-039: a group's MAC exactly for groups";
    }
    if (!group) {
        return NULL;
    }
    if (v4) {
        return !memcmp(mac, "\x01\x00\x5e", 3) && mac[3] == (to[1] & 0x7f) &&
               !memcmp(mac + 4, to + 2, 2) ? NULL : "E-039: IPv4 group's MAC";
    }
    return !memcmp(mac, "\x33\x33", 2) && !memcmp(mac + 2, to + 12, 4) ?
           NULL : "E-039: IPv6 group's MAC";
}

static const char *read_udp(const uint8_t *udp, size_t len)
{
    if (be(udp, 2) < 0xc000 || be(udp + 2, 2) != 4791) {
        return "E-003: UDP ports";
    }
    if (be(udp + 4, 2) != len) {
        return "E-003: UDP length";
    }
    return be(udp + 6, 2) ? "E-003: UDP checksum 0" : NULL;
}

/* Sets @bth. Returns NULL, or the rule that the headers before it break. */
static const char *read_outer(const uint8_t *frame, size_t len, bool crosses,
                              const uint8_t **bth)
{
    bool tag = be(frame + 12, 2) == 0x8100;
    const uint8_t *ip = frame + E1_ETHERNET_LEN + (tag ? E1_802_1Q_LEN : 0);
    uint32_t type = be(ip - 2, 2);
    size_t left = len - (size_t)(ip - frame);
    size_t ip_len = type == 0x0800 ? E1_IPV4_LEN : E1_IPV6_LEN;
    const char *why;

    if (type != 0x0800 && type != 0x86dd) {
        return "E-001: EtherType";
    }
    if (left < ip_len + E1_UDP_LEN + E1_BTH_LEN + E1_ICRC_LEN) {
        return "E-010: length";
    }
    why = type == 0x0800 ? read_ipv4(ip, left) : read_ipv6(ip, left);
    *bth = ip + ip_len + E1_UDP_LEN;
    if (!why) {
        why = read_udp(ip + ip_len, left - ip_len);
    }
    if (why || crosses) {
        return why;
    }
    if (frame[6] & 1) {
        return "E-001: a group as source";
    }
    why = read_group(frame, ip, type == 0x0800);
    if (!why && !icrc_right(ip, frame + len - E1_ICRC_LEN)) {
        why = "E-032, E-033: ICRC";
    }
    return why;
}

/* ---- BTH and what is behind it ---- */

static void read_reth(struct sniffed *s, const uint8_t *p)
{
    s->va = (uint64_t)be(p, 4) << 32 | be(p + 4, 4);
    s->dma_len = be(p + 12, 4);
}

/* Reads the extension headers at @p; returns where they end, or NULL. */
static const uint8_t *read_ext(struct sniffed *s, const struct table_e2 *op,
                               const uint8_t *p, const uint8_t *end)
{
    for (unsigned i = 0; i < sizeof(op->ext); i++) {
        uint8_t ext = op->ext[i];

        if (end - p < table_e1[ext]) {
            return NULL;
        }
        if (ext == E1_RETH) {
            read_reth(s, p);
        } else if (ext == E1_AETH) {
            s->has_aeth = true;
            s->syndrome = p[0];
            s->msn = be(p + 1, 3);
        } else if ((ext == E1_XRCETH && p[0]) || (ext == E1_DETH && p[4]) ||
                   (ext == E1_FETH && (be(p, 4) & ~0x3fu))) {
            return NULL;
        }
        p += table_e1[ext];
    }
    return p;
}

static const char *read_bth(struct sniffed *s, const uint8_t *b)
{
    bool is_cnp = s->kind == E2_CNP;

    if ((b[1] & 0x0f) || b[4] != (is_cnp ? 0x40 : 0) || (b[8] & 0x7f)) {
        return "E-031: TVer, F, B and reserved bits";
    }
    if (!(b[1] & 0x40)) {
        return "E-031: MigReq";
    }
    if (be(b + 2, 2) != 0xffff) {
        return "D-082: P_Key";
    }
    if (!s->dest_qp || (s->dest_qp == 0xffffff && s->service != SNIFF_UD)) {
        return "E-045: DestQP";
    }
    if (s->ackreq && (s->response || is_cnp || s->service == SNIFF_UC ||
                      s->service == SNIFF_UD)) {
        return "D-010: AckReq is 0 on UC, UD and responses";
    }
    if (!s->ackreq && !s->response && s->last && !is_cnp &&
        (s->service == SNIFF_RC || s->service == SNIFF_XRC)) {
        return "D-010: AckReq on the last packet of a message";
    }
    return NULL;
}

/* SE is for the last packet of a SEND, or of a WRITE with immediate (B-045). */
static const char *read_se(const struct sniffed *s, const struct table_e2 *op)
{
    bool may = s->last && (s->kind == E2_SEND ||
                           (s->kind == E2_RDMA_WRITE &&
                            memchr(op->ext, E1_IMMDT, sizeof(op->ext))));

    return s->se && !may ? "B-045: SE" : NULL;
}

static const char *read_syndrome(const struct sniffed *s)
{
    if (!s->has_aeth || s->syndrome == 0x1f) {
        return NULL;
    }
    return s->kind == E2_ACKNOWLEDGE &&
           ((s->syndrome >= 0x20 && s->syndrome < 0x40) ||
            (s->syndrome >= 0x60 && s->syndrome <= 0x63)) ? NULL :
           "D-017, D-020, D-021: syndrome";
}

static const char *read_payload(const struct sniffed *s, unsigned pad)
{
    const uint8_t *end = s->payload + s->payload_len;
    bool data = s->kind == E2_SEND || s->kind == E2_RDMA_WRITE ||
                s->kind == E2_RDMA_READ_RESPONSE;

    if ((s->payload_len + pad) % 4) {
        return "E-030: PadCnt";
    }
    while (pad > 0) {
        if (end[--pad]) {
            return "E-030: padding of zeroes";
        }
    }
    if (s->kind == E2_CNP) {
        for (size_t i = 0; i < s->payload_len; i++) {
            if (s->payload[i]) {
                return "E-040: a CNP has 16 zeroes";
            }
        }
        return s->payload_len == 16 && !s->psn ? NULL : "E-040: CNP";
    }
    if (s->kind == E2_ATOMIC_WRITE) {
        return s->payload_len == 8 && s->dma_len == 8 ? NULL :
               "B-074: ATOMIC_WRITE of 8 bytes";
    }
    return !data && s->payload_len ? "E-022, E-023: no payload" : NULL;
}

const char *sniff_read(struct sniffed *s, const uint8_t *frame, size_t len,
                       bool crosses)
{
    const uint8_t *b, *end = frame + len - E1_ICRC_LEN;
    const struct table_e2 *op;
    unsigned pad;
    const char *why = read_outer(frame, len, crosses, &b);

    memset(s, 0, sizeof(*s));
    if (why) {
        return why;
    }
    op = &table_e2[b[0]];
    if (op->op == E2_NONE) {
        return "E-027: an opcode that nobody has";
    }
    pad = b[1] >> 4 & 3;
    s->bth = b;
    s->opcode = b[0];
    s->service = b[0] >> 5;
    s->kind = op->op;
    s->first = op->first;
    s->last = op->last;
    s->response = op->response;
    s->se = b[1] & 0x80;
    s->dest_qp = be(b + 5, 3);
    s->ackreq = b[8] & 0x80;
    s->psn = be(b + 9, 3);
    s->payload = read_ext(s, op, b + E1_BTH_LEN, end);
    if (!s->payload || end - s->payload < (ptrdiff_t)pad) {
        return "E-005 to E-009: extension headers";
    }
    s->header_len = (size_t)(s->payload - b);
    s->payload_len = (size_t)(end - s->payload) - pad;
    why = read_bth(s, b);
    why = why ? why : read_se(s, op);
    why = why ? why : read_syndrome(s);
    return why ? why : read_payload(s, pad);
}
