/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what the sniffer demands of each frame. The table of
 * opcodes is from E.2 in Documentation/conformance.md.
 */
#include <string.h>

#include "sniff.h"

#define ETH         14u
#define TAG         4u
#define IPV4        20u
#define IPV6        40u
#define UDP         8u
#define BTH         12u
#define ICRC        4u
#define HEADERS_MAX (IPV6 + UDP + BTH)

#define FIRST   1u
#define LAST    2u
#define ONLY    (FIRST | LAST)

/* Extension headers. */
enum ext {
    NO_EXT, XRCETH, DETH, FETH, RETH, ATOMICETH, AETH, ATOMICACK, IMMDT, IETH,
};

static const uint8_t ext_len[] = {
    [XRCETH] = 4, [DETH] = 8, [FETH] = 4, [RETH] = 16, [ATOMICETH] = 28,
    [AETH] = 4, [ATOMICACK] = 8, [IMMDT] = 4, [IETH] = 4,
};

/* struct op - what the low five bits of an opcode say */
struct op {
    uint8_t kind, place;
    uint8_t ext[2];             /* enum ext, in their order */
};

static const struct op ops[32] = {
    [0x00] = { SNIFF_SEND, FIRST, { 0 } },
    [0x01] = { SNIFF_SEND, 0, { 0 } },
    [0x02] = { SNIFF_SEND, LAST, { 0 } },
    [0x03] = { SNIFF_SEND, LAST, { IMMDT } },
    [0x04] = { SNIFF_SEND, ONLY, { 0 } },
    [0x05] = { SNIFF_SEND, ONLY, { IMMDT } },
    [0x06] = { SNIFF_WRITE, FIRST, { RETH } },
    [0x07] = { SNIFF_WRITE, 0, { 0 } },
    [0x08] = { SNIFF_WRITE, LAST, { 0 } },
    [0x09] = { SNIFF_WRITE, LAST, { IMMDT } },
    [0x0a] = { SNIFF_WRITE, ONLY, { RETH } },
    [0x0b] = { SNIFF_WRITE, ONLY, { RETH, IMMDT } },
    [0x0c] = { SNIFF_READ, ONLY, { RETH } },
    [0x0d] = { SNIFF_READ_DATA, FIRST, { AETH } },
    [0x0e] = { SNIFF_READ_DATA, 0, { 0 } },
    [0x0f] = { SNIFF_READ_DATA, LAST, { AETH } },
    [0x10] = { SNIFF_READ_DATA, ONLY, { AETH } },
    [0x11] = { SNIFF_ACK, ONLY, { AETH } },
    [0x12] = { SNIFF_ATOMIC_ACK, ONLY, { AETH, ATOMICACK } },
    [0x13] = { SNIFF_ATOMIC, ONLY, { ATOMICETH } },
    [0x14] = { SNIFF_ATOMIC, ONLY, { ATOMICETH } },
    [0x16] = { SNIFF_SEND, LAST, { IETH } },
    [0x17] = { SNIFF_SEND, ONLY, { IETH } },
    [0x1c] = { SNIFF_FLUSH, ONLY, { FETH, RETH } },
    [0x1d] = { SNIFF_ATOMIC_WRITE, ONLY, { RETH } },
};
static const struct op cnp = { SNIFF_CNP, ONLY, { 0 } };

#define OPCODE_CNP  0x81

static uint32_t be(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;

    while (bytes-- > 0) {
        v = v << 8 | *p++;
    }
    return v;
}

/* The row of an opcode, or NULL if no QP of ours sends it. */
static const struct op *op_of(uint8_t opcode)
{
    unsigned low = opcode & 0x1f;

    if (opcode == OPCODE_CNP) {
        return &cnp;
    }
    switch (opcode >> 5) {
    case SNIFF_RC:
        break;
    case SNIFF_UC:
        if (low > 0x0b) {
            return NULL;
        }
        break;
    case SNIFF_UD:
        if (low != 0x04 && low != 0x05) {
            return NULL;
        }
        break;
    case SNIFF_XRC:
        if (low > 0x17) {
            return NULL;
        }
        break;
    default:
        return NULL;
    }
    return ops[low].kind ? &ops[low] : NULL;
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
    size_t ip_len = v4 ? IPV4 : IPV6, head = ip_len + UDP + BTH;
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
    h[ip_len + UDP + 4] = 0xff;                 /* F, B, reserved */
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

    for (unsigned i = 0; i < IPV4; i += 2) {
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
    return be(ip + 4, 2) == len - IPV6 ? NULL : "E-002: IPv6 length";
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
    const uint8_t *ip = frame + ETH + (tag ? TAG : 0);
    uint32_t type = be(ip - 2, 2);
    size_t left = len - (size_t)(ip - frame);
    size_t ip_len = type == 0x0800 ? IPV4 : IPV6;
    const char *why;

    if (type != 0x0800 && type != 0x86dd) {
        return "E-001: EtherType";
    }
    if (left < ip_len + UDP + BTH + ICRC) {
        return "E-010: length";
    }
    why = type == 0x0800 ? read_ipv4(ip, left) : read_ipv6(ip, left);
    *bth = ip + ip_len + UDP;
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
    if (!why && !icrc_right(ip, frame + len - ICRC)) {
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
static const uint8_t *read_ext(struct sniffed *s, const struct op *op,
                               const uint8_t *p, const uint8_t *end)
{
    uint8_t list[3] = { NO_EXT, op->ext[0], op->ext[1] };

    if (s->service == SNIFF_UD) {
        list[0] = DETH;
    } else if (s->service == SNIFF_XRC && !s->response) {
        list[0] = XRCETH;
    }
    for (unsigned i = 0; i < 3; i++) {
        uint8_t ext = list[i];

        if (end - p < ext_len[ext]) {
            return NULL;
        }
        if (ext == RETH) {
            read_reth(s, p);
        } else if (ext == AETH) {
            s->has_aeth = true;
            s->syndrome = p[0];
            s->msn = be(p + 1, 3);
        } else if ((ext == XRCETH && p[0]) || (ext == DETH && p[4]) ||
                   (ext == FETH && (be(p, 4) & ~0x3fu))) {
            return NULL;
        }
        p += ext_len[ext];
    }
    return p;
}

static const char *read_bth(struct sniffed *s, const uint8_t *b)
{
    bool is_cnp = s->kind == SNIFF_CNP;

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
static const char *read_se(const struct sniffed *s, const struct op *op)
{
    bool may = s->last && (s->kind == SNIFF_SEND ||
                           (s->kind == SNIFF_WRITE &&
                            (op->ext[0] == IMMDT || op->ext[1] == IMMDT)));

    return s->se && !may ? "B-045: SE" : NULL;
}

static const char *read_syndrome(const struct sniffed *s)
{
    if (!s->has_aeth || s->syndrome == 0x1f) {
        return NULL;
    }
    return s->kind == SNIFF_ACK &&
           ((s->syndrome >= 0x20 && s->syndrome < 0x40) ||
            (s->syndrome >= 0x60 && s->syndrome <= 0x63)) ? NULL :
           "D-017, D-020, D-021: syndrome";
}

static const char *read_payload(const struct sniffed *s, unsigned pad)
{
    const uint8_t *end = s->payload + s->payload_len;
    bool data = s->kind == SNIFF_SEND || s->kind == SNIFF_WRITE ||
                s->kind == SNIFF_READ_DATA;

    if ((s->payload_len + pad) % 4) {
        return "E-030: PadCnt";
    }
    while (pad > 0) {
        if (end[--pad]) {
            return "E-030: padding of zeroes";
        }
    }
    if (s->kind == SNIFF_CNP) {
        for (size_t i = 0; i < s->payload_len; i++) {
            if (s->payload[i]) {
                return "E-040: a CNP has 16 zeroes";
            }
        }
        return s->payload_len == 16 && !s->psn ? NULL : "E-040: CNP";
    }
    if (s->kind == SNIFF_ATOMIC_WRITE) {
        return s->payload_len == 8 && s->dma_len == 8 ? NULL :
               "B-074: ATOMIC_WRITE of 8 bytes";
    }
    return !data && s->payload_len ? "E-022, E-023: no payload" : NULL;
}

const char *sniff_read(struct sniffed *s, const uint8_t *frame, size_t len,
                       bool crosses)
{
    const uint8_t *b, *end = frame + len - ICRC;
    const struct op *op;
    unsigned pad;
    const char *why = read_outer(frame, len, crosses, &b);

    memset(s, 0, sizeof(*s));
    if (why) {
        return why;
    }
    op = op_of(b[0]);
    if (!op) {
        return "E-027: an opcode that nobody has";
    }
    pad = b[1] >> 4 & 3;
    s->bth = b;
    s->opcode = b[0];
    s->service = b[0] >> 5;
    s->kind = op->kind;
    s->first = op->place & FIRST;
    s->last = op->place & LAST;
    s->response = s->kind >= SNIFF_READ_DATA;
    s->se = b[1] & 0x80;
    s->dest_qp = be(b + 5, 3);
    s->ackreq = b[8] & 0x80;
    s->psn = be(b + 9, 3);
    s->payload = read_ext(s, op, b + BTH, end);
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
