/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, wire: from bytes to packets and back: Ethernet and IP headers,
 * RoCEv2 packets, their ICRC, Internet checksums. These are pure functions,
 * which know nothing of the engine.
 *
 * Header layouts are from the IBTA specification, volume 1, chapter 9 and annex
 * A17 (RoCEv2).
 */
#ifndef QHCA_ENGINE_WIRE_H
#define QHCA_ENGINE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca/cmd.h"
#include "bytes.h"

#define ROCE_UDP_PORT       4791
#define PSN_MASK            0x00ffffffu
#define PKEY_DEFAULT        0xffff

#define ETH_LEN             14
#define ETH_MIN_LEN         60      /* of a frame, without FCS */
#define VLAN_LEN            4
#define IPV4_LEN            20      /* without options */
#define IPV6_LEN            40
#define UDP_LEN             8
#define TCP_LEN             20      /* without options */

#define ETHERTYPE_IPV4      0x0800
#define ETHERTYPE_VLAN      0x8100
#define ETHERTYPE_IPV6      0x86dd
#define ETHERTYPE_CONTROL   0x8808  /* for the MAC, which keeps it */
#define ETHERTYPE_SVLAN     0x88a8
#define IP_PROTO_TCP      6
#define IP_PROTO_UDP      17

#define BTH_LEN             12
#define ICRC_LEN            4
/*
 * Ethernet, tag, IPv6, UDP, BTH, XRCETH and AtomicETH (the longest), ICRC and
 * padding.
 */
#define ROCE_MAX_OVERHEAD   (ETH_LEN + VLAN_LEN + IPV6_LEN + UDP_LEN + \
                             BTH_LEN + 4 + 28 + ICRC_LEN + 3)
#define ROCE_MAX_FRAME      (4096 + ROCE_MAX_OVERHEAD)

/* ---- frame.c: the headers that all frames have ---- */

/* struct frame_headers - Ethernet, and the headers behind it if it is UDP */
struct frame_headers {
    uint16_t type;              /* EtherType behind a tag */
    uint16_t vlan;              /* identifier, or QHCA_NO_VLAN */
    uint8_t priority;           /* of the tag */
    size_t l3;                  /* offset of the network header */
    bool udp;                   /* UDP that may be RoCE: vhca_frame_parse() */
    /* Only if @udp: */
    uint8_t sgid[16], dgid[16]; /* IPv4 addresses are ::ffff:a.b.c.d */
    uint16_t dport;
};

/*
 * Parse a frame of at least ETH_LEN bytes; never reads past @len. @h->udp is
 * not set for UDP behind IP options or extension headers, nor for fragments.
 */
void vhca_frame_parse(struct frame_headers *h, const uint8_t *frame,
                      size_t len);

/*
 * Return the offset of the header of @proto in a frame whose IP header is at
 * @l3, or 0 if it has none. Looks behind options and extension headers, and
 * into first fragments (for IPv6 it sets @fragment). The result can be @len or
 * more: the frame ends before it is clear whether that header follows.
 */
size_t vhca_frame_find_l4(const uint8_t *frame, size_t len, size_t l3,
                          uint8_t proto, bool *fragment);

/*
 * Whether a frame of at least ETH_LEN bytes begins a datagram for RoCE's UDP
 * port; @sgid is set to its source. Unlike vhca_frame_parse() this looks behind
 * options, extension headers and a second tag, and into first fragments: a peer
 * in software sees the datagram without them.
 */
bool vhca_frame_roce_source(const uint8_t *frame, size_t len, uint8_t *sgid);

/*
 * Return how many bytes of a frame of at least ETH_LEN bytes the MTU does not
 * limit: its addresses, up to two VLAN tags, and its type.
 */
size_t vhca_frame_header_len(const uint8_t *frame, size_t len);

/* ---- flow.c ---- */

/* Find what flow rules look at in a frame of at least ETH_LEN bytes. */
void vhca_flow_parse(struct qhca_flow_key *key, const uint8_t *frame,
                     size_t len);

/* ---- hash.c ---- */

/* Return the Toeplitz hash of at most QHCA_RSS_KEY_LEN - 4 bytes. */
uint32_t vhca_toeplitz(const uint8_t *key, const uint8_t *data, size_t len);
/*
 * Hash a frame of at least ETH_LEN bytes, behind at most one tag. Returns which
 * of @types the hash is of, or 0 if there is none. Fragments are hashed without
 * ports, which only the first has.
 */
unsigned vhca_frame_hash(const uint8_t *key, unsigned types,
                         const uint8_t *frame, size_t len, uint32_t *hash);

/* ---- opcode.c ---- */

/* The operation of an opcode; services that share one share the value. */
enum roce_op {
    OP_NONE = 0,            /* reserved opcode */
    OP_SEND,
    OP_WRITE,
    OP_READ_REQ,
    OP_READ_RESP,
    OP_ACK,
    OP_ATOMIC_ACK,
    OP_CAS,
    OP_FAA,
    OP_FLUSH,
    OP_ATOMIC_WRITE,
    OP_CNP,                 /* congestion notification, in no service */
};

/* Place in the message, and the extension headers that follow the BTH. */
#define OPF_FIRST       0x001   /* opens a message */
#define OPF_LAST        0x002   /* closes it */
#define OPF_RETH        0x004
#define OPF_ATOMICETH   0x008
#define OPF_AETH        0x010
#define OPF_ATOMICACK   0x020
#define OPF_IMM         0x040
#define OPF_DETH        0x080
#define OPF_PAYLOAD     0x100   /* may carry payload */
#define OPF_RESPONSE    0x200   /* from responder to requester */
#define OPF_IETH        0x400
#define OPF_FETH        0x800
#define OPF_XRCETH      0x1000

/* Lengths of these headers in bytes. */
#define XRCETH_LEN      4
#define DETH_LEN        8
#define FETH_LEN        4
#define RETH_LEN        16
#define ATOMICETH_LEN   28
#define AETH_LEN        4
#define ATOMICACK_LEN   8
#define IMM_LEN         4
#define IETH_LEN        4

struct roce_opcode_info {
    uint8_t op;             /* enum roce_op */
    uint8_t ext_len;        /* bytes of all its extension headers */
    uint16_t flags;         /* OPF_* */
};

/* Indexed by all 8 bits of BTH.OpCode; op OP_NONE: reserved or not offered. */
extern const struct roce_opcode_info roce_opcodes[256];

static inline const struct roce_opcode_info *roce_opcode(uint8_t opcode)
{
    return &roce_opcodes[opcode];
}

/* Transport service: top three bits of the opcode. */
#define SVC_RC          0x00
#define SVC_UC          0x20
#define SVC_UD          0x60
#define SVC_XRC         0xa0
#define SVC_MASK        0xe0

/*
 * RC opcodes (IBTA table 38). An opcode of UC or XRC is the one here plus
 * SVC_UC or SVC_XRC.
 */
#define RC_SEND_FIRST           0x00
#define RC_SEND_MIDDLE          0x01
#define RC_SEND_LAST            0x02
#define RC_SEND_LAST_IMM        0x03
#define RC_SEND_ONLY            0x04
#define RC_SEND_ONLY_IMM        0x05
#define RC_WRITE_FIRST          0x06
#define RC_WRITE_MIDDLE         0x07
#define RC_WRITE_LAST           0x08
#define RC_WRITE_LAST_IMM       0x09
#define RC_WRITE_ONLY           0x0a
#define RC_WRITE_ONLY_IMM       0x0b
#define RC_READ_REQUEST         0x0c
#define RC_READ_RESP_FIRST      0x0d
#define RC_READ_RESP_MIDDLE     0x0e
#define RC_READ_RESP_LAST       0x0f
#define RC_READ_RESP_ONLY       0x10
#define RC_ACKNOWLEDGE          0x11
#define RC_ATOMIC_ACKNOWLEDGE   0x12
#define RC_CMP_SWAP             0x13
#define RC_FETCH_ADD            0x14
#define RC_SEND_LAST_INV        0x16
#define RC_SEND_ONLY_INV        0x17
#define RC_FLUSH                0x1c    /* annex A19, and the next */
#define RC_ATOMIC_WRITE         0x1d

#define ROCE_CNP                0x81
#define CNP_LEN                 16      /* reserved bytes behind its BTH */

/* The two low bits of the traffic class (RFC 3168). */
#define IP_DSCP_SHIFT           2
#define IP_ECN_MASK             3
#define IP_ECN_ECT0             2       /* may be marked by the network */
#define IP_ECN_CE               3       /* marked by the network */

/* AETH syndromes (IBTA 9.7.5.1). */
#define AETH_ACK                0x1f    /* no credit information */
#define AETH_RNR_NAK            0x20    /* | RNR timer code */
#define AETH_NAK                0x60
#define AETH_NAK_SEQ            0x60
#define AETH_NAK_INV_REQ        0x61
#define AETH_NAK_ACCESS         0x62
#define AETH_NAK_OP             0x63
/* Bit 7 is reserved: if it is set, the type matches none of these (D-024). */
#define AETH_TYPE(syndrome)     ((syndrome) & 0xe0)
#define AETH_CODE(syndrome)     ((syndrome) & 0x1f)

/* ---- packet.c ---- */

/*
 * struct roce_packet - a packet in CPU order, to be built or as parsed
 *
 * A packet that stays inside the port can stand for @num_psn packets that
 * follow each other in a message, each of @mtu bytes except for the last of the
 * message. Its opcode says whether the message's first and last are among them.
 */
struct roce_packet {
    /* Addressing */
    uint8_t smac[6], dmac[6];
    uint16_t vlan;              /* identifier, or QHCA_NO_VLAN */
    uint8_t sl;                 /* VLAN priority */
    bool ipv4;
    uint8_t sgid[16], dgid[16];
    uint8_t tclass, hop_limit;
    uint32_t flow_label;
    uint16_t sport;
    const uint8_t *ip;          /* parsed: the IP header in the frame */
    uint32_t from;              /* not in the frame: see vhca_roce_rx() */

    /* BTH */
    uint8_t opcode;
    bool solicited, ackreq;
    uint8_t pad;                /* parsed */
    uint16_t pkey;
    uint32_t dest_qp, psn;
    uint32_t num_psn;           /* parsed: 1 */
    uint32_t mtu;               /* if @num_psn is more than 1 */

    /* Extension headers; the opcode tells which are there */
    uint64_t va;                /* RETH, AtomicETH */
    uint32_t rkey, dma_len;
    uint64_t swap_add, compare;
    uint8_t syndrome;           /* AETH */
    uint32_t msn;
    uint64_t atomic_orig;
    uint32_t imm;               /* as on the wire: never swapped */
    uint32_t qkey, src_qp;      /* DETH */
    uint32_t inv_key;           /* IETH */
    uint32_t srqn;              /* XRCETH */
    uint8_t flush_type;         /* FETH: placement type, selectivity level */
    uint8_t flush_level;

    /* In one piece, as parsed; if that is NULL, in @num_pieces pieces. */
    const uint8_t *payload;
    const struct vhca_piece *piece;
    size_t num_pieces;
    size_t payload_len;         /* of all pieces */
};

/*
 * Return the piece of the payload with index @i, which begins with byte @off.
 * It is cut off where the payload ends.
 */
static inline struct vhca_piece roce_piece(const struct roce_packet *p,
                                           size_t i, size_t off)
{
    struct vhca_piece all = { p->payload, p->payload_len };

    if (!p->payload) {
        all = p->piece[i];
        if (all.len > p->payload_len - off) {
            all.len = p->payload_len - off;
        }
    }
    return all;
}

/*
 * Return the first of the packets that @p stands for. AckReq and the solicited
 * event concern the last packet, and are cleared.
 */
struct roce_packet roce_first_of(const struct roce_packet *p);

/*
 * Return the offset at which the payload of @p has to be in the frame when
 * roce_finish() is called.
 */
size_t roce_payload_offset(const struct roce_packet *p);
/* Return the bytes of all the frames that @p would travel in. */
size_t roce_frames_len(const struct roce_packet *p);
/* Return the bytes of a frame with an ACK. */
size_t roce_ack_len(bool ipv4, uint16_t vlan);
/*
 * Write all headers, padding and the ICRC around the @p->payload_len bytes of
 * payload that are already in @frame. Returns the length of the frame.
 */
size_t roce_finish(const struct roce_packet *p, uint8_t *frame);

#define GRH_LEN             40
/*
 * Write the 40 bytes that precede a received datagram: the IPv6 header, or 20
 * bytes of zeroes and the IPv4 header (D-076). Routers may have changed the
 * latter, so its checksum is computed anew.
 */
void roce_grh(const struct roce_packet *p, uint8_t *grh);

enum roce_parse_result {
    ROCE_OK = 0,
    ROCE_MALFORMED,             /* lengths, versions or opcode do not fit */
    ROCE_BAD_ICRC,
};

/* Parse a frame; pointers in @p refer to @frame. Never reads past @len. */
enum roce_parse_result roce_parse(struct roce_packet *p, const uint8_t *frame,
                                  size_t len);

/* Return the source UDP port of a flow (A17.9.3; E-036), 0xc000 to 0xffff. */
uint16_t roce_sport(uint32_t flow_label, uint32_t src_qpn, uint32_t dst_qpn);

/* ---- icrc.c ---- */

/* CRC-32 (Ethernet, reflected): running values, which are not complemented. */
uint32_t roce_crc32(uint32_t crc, const uint8_t *data, size_t len);
/*
 * ICRC over the frame from its IP header @ip on; @len counts to the end of the
 * padding. IBTA 7.8.1 and annex A17: variant fields count as ones.
 */
uint32_t roce_icrc(const uint8_t *ip, bool ipv4, size_t len);

/*
 * Set the ECN bits of the packet with the IP header at @ip; the ICRC does not
 * cover them.
 */
void roce_set_ecn(uint8_t *ip, bool ipv4, uint8_t ecn);

/* ---- csum.c: Internet checksums (RFC 1071) ---- */

/*
 * Add @len bytes in network order to a ones-complement sum, folded or not. Only
 * the last block added may have an odd length; its last byte counts as the high
 * byte of a word.
 */
uint32_t vhca_csum_add(uint32_t sum, const uint8_t *p, size_t len);
/* Return the 16-bit checksum of a sum. */
uint16_t vhca_csum_fold(uint32_t sum);
/* Return the sum of the pseudo header of @len bytes of @proto behind @ip. */
uint32_t vhca_csum_pseudo(const uint8_t *ip, bool ipv4, unsigned proto,
                          size_t len);
/*
 * Whether a frame, whose network header of type @ethertype is at @l3, is TCP or
 * UDP over IPv4 or IPv6 and all its checksums are right. False for others, for
 * fragments and for UDP without a checksum: the guest checks those itself.
 */
bool vhca_csum_verify(const uint8_t *frame, size_t len, size_t l3,
                 uint16_t ethertype);
/*
 * Fill in the checksums of IPv4, TCP and UDP in a frame of at least ETH_LEN
 * bytes, behind at most one tag; leave fragments and truncated packets alone.
 */
void vhca_csum_fill(uint8_t *frame, size_t len);

/* PSN arithmetic is modulo 2^24; a distance is signed, up to half a window. */
static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

#endif /* QHCA_ENGINE_WIRE_H */
