/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hash of received frames: the vectors that Microsoft publishes for RSS,
 * and what is hashed of frames that are not just TCP or UDP.
 */
#include <arpa/inet.h>

#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"

#define V4  (QHCA_RSS_IPV4 | QHCA_RSS_TCPV4 | QHCA_RSS_UDPV4)
#define V6  (QHCA_RSS_IPV6 | QHCA_RSS_TCPV6 | QHCA_RSS_UDPV6)

static const uint8_t key[QHCA_RSS_KEY_LEN] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
    0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
    0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* struct vector - a flow, its hash, and the hash of its addresses only */
static const struct vector {
    const char *dst;
    uint16_t dport;
    const char *src;
    uint16_t sport;
    uint32_t addresses, ports;
} vectors[] = {
    { "161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178 },
    { "65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea },
    { "12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a },
    { "209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f },
    { "202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2 },
    { "3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794,
      0x2cc18cd5, 0x40207d3d },
    { "ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230,
      0x0f0c461c, 0xdde51bbf },
    { "fe80::200:f8ff:fe21:67cf", 38024,
      "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985, 0x02d1feef },
};

/* The frame of @v with protocol @proto; *@l4: where its ports are. */
static struct frame flow(const struct vector *v, uint8_t proto, size_t *l4)
{
    static const uint8_t any[16] = { 0xfd };
    bool v6 = strchr(v->dst, ':');
    struct frame f = v6 ? udp6_frame(test_mac, any, 9, 30) :
                          udp_frame(test_mac, 1, 2, 9, 30);
    uint8_t *ip = f.data + 14;

    REQUIRE(inet_pton(v6 ? AF_INET6 : AF_INET, v->src,
                      ip + (v6 ? 8 : 12)) == 1);
    REQUIRE(inet_pton(v6 ? AF_INET6 : AF_INET, v->dst,
                      ip + (v6 ? 24 : 16)) == 1);
    ip[v6 ? 6 : 9] = proto;
    *l4 = v6 ? 54 : 34;
    put_be16(f.data + *l4, v->sport);
    put_be16(f.data + *l4 + 2, v->dport);
    return f;
}

static void check_hash(const struct frame *f, unsigned types, unsigned type,
                       uint32_t want)
{
    uint32_t hash = 0;

    CHECK_EQ(vhca_frame_hash(key, types, f->data, f->len, &hash), type);
    CHECK_EQ(hash, want);
}

static void published(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++) {
        const struct vector *v = &vectors[i];
        bool v6 = strchr(v->dst, ':');
        unsigned all = v6 ? V6 : V4;
        unsigned any = v6 ? QHCA_RSS_IPV6 : QHCA_RSS_IPV4;
        unsigned tcp = v6 ? QHCA_RSS_TCPV6 : QHCA_RSS_TCPV4;
        unsigned udp = v6 ? QHCA_RSS_UDPV6 : QHCA_RSS_UDPV4;
        struct frame f;
        size_t l4;

        f = flow(v, IP_PROTO_TCP, &l4);
        check_hash(&f, V4 | V6, tcp, v->ports);
        check_hash(&f, tcp, tcp, v->ports);
        check_hash(&f, all & ~tcp, any, v->addresses);
        check_hash(&f, udp, 0, 0);
        check_hash(&f, all ^ (V4 | V6), 0, 0);
        f = flow(v, IP_PROTO_UDP, &l4);
        check_hash(&f, V4 | V6, udp, v->ports);
        check_hash(&f, all & ~udp, any, v->addresses);
        check_hash(&f, tcp, 0, 0);
        f = flow(v, 132, &l4);              /* SCTP */
        check_hash(&f, V4 | V6, any, v->addresses);
        check_hash(&f, udp | tcp, 0, 0);
    }
}

static void tags(void)
{
    size_t l4;
    struct frame f = flow(&vectors[0], IP_PROTO_TCP, &l4);

    frame_add_vlan(&f, 0x6123);
    check_hash(&f, V4, QHCA_RSS_TCPV4, vectors[0].ports);
    frame_add_vlan(&f, 5);
    check_hash(&f, V4 | V6, 0, 0);
}

/* Only the first fragment has ports, and all must get to one queue. */
static void fragments(void)
{
    static const uint16_t parts[] = { 0x2000, 0x2010, 0x0010 };
    size_t l4;
    struct frame f;

    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        f = flow(&vectors[0], IP_PROTO_UDP, &l4);
        put_be16(f.data + 14 + 6, parts[i]);
        check_hash(&f, V4, QHCA_RSS_IPV4, vectors[0].addresses);
        check_hash(&f, V4 & ~QHCA_RSS_IPV4, 0, 0);
    }
    f = flow(&vectors[0], IP_PROTO_UDP, &l4);
    put_be16(f.data + 14 + 6, 0x4000);          /* do not fragment */
    check_hash(&f, V4, QHCA_RSS_UDPV4, vectors[0].ports);
}

/* Puts an extension header in front of the ports. */
static struct frame extended(uint8_t proto, uint16_t word)
{
    size_t l4;
    struct frame f = flow(&vectors[5], IP_PROTO_TCP, &l4);

    memmove(f.data + l4 + 8, f.data + l4, f.len - l4);
    memset(f.data + l4, 0, 8);
    f.data[l4] = IP_PROTO_TCP;
    put_be16(f.data + l4 + 2, word);
    f.data[14 + 6] = proto;
    f.len += 8;
    return f;
}

static void extensions(void)
{
    const uint32_t all = vectors[5].ports, some = vectors[5].addresses;
    size_t l4;
    struct frame f = extended(60, 0);           /* destination options */

    check_hash(&f, V6, QHCA_RSS_TCPV6, all);
    f = extended(44, 0);                        /* the only fragment */
    check_hash(&f, V6, QHCA_RSS_TCPV6, all);
    f = extended(44, 1);                        /* the first one */
    check_hash(&f, V6, QHCA_RSS_IPV6, some);
    f = extended(44, 0x0101);
    check_hash(&f, V6, QHCA_RSS_IPV6, some);
    f = extended(44, 0x0100);
    check_hash(&f, V6, QHCA_RSS_IPV6, some);
    f = flow(&vectors[0], IP_PROTO_TCP, &l4);   /* options of IPv4 */
    memmove(f.data + l4 + 8, f.data + l4, f.len - l4);
    memset(f.data + l4, 1, 8);
    f.data[14] = 0x47;
    f.len += 8;
    check_hash(&f, V4, QHCA_RSS_TCPV4, vectors[0].ports);
}

/* Frames that end too early, each in memory of just its length. */
static void cut(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++) {
        bool v6 = strchr(vectors[i].dst, ':');
        size_t l4;
        struct frame f = flow(&vectors[i], IP_PROTO_TCP, &l4);

        for (size_t len = 14; len <= l4 + 4; len++) {
            uint32_t hash = 0, want = len < l4 ? 0 : vectors[i].addresses;
            uint8_t *copy = malloc(len);
            unsigned type;

            REQUIRE(copy);
            memcpy(copy, f.data, len);
            type = vhca_frame_hash(key, V4 | V6, copy, len, &hash);
            CHECK_EQ(hash, len < l4 + 4 ? want : vectors[i].ports);
            if (len < l4) {
                CHECK_EQ(type, 0);
            } else if (len < l4 + 4) {
                CHECK_EQ(type, v6 ? QHCA_RSS_IPV6 : QHCA_RSS_IPV4);
            }
            free(copy);
        }
    }
}

static void no_ip(void)
{
    size_t l4;
    struct frame f = flow(&vectors[0], IP_PROTO_TCP, &l4);

    f.data[14] = 0x65;                          /* version 6 in IPv4 */
    check_hash(&f, V4 | V6, 0, 0);
    f.data[14] = 0x45;
    put_be16(f.data + 12, 0x0806);
    check_hash(&f, V4 | V6, 0, 0);
    f = flow(&vectors[5], IP_PROTO_TCP, &l4);
    f.data[14] = 0x45;
    check_hash(&f, V4 | V6, 0, 0);
    f = flow(&vectors[0], IP_PROTO_TCP, &l4);   /* a header of 12 bytes */
    f.data[14] = 0x43;
    check_hash(&f, V4, QHCA_RSS_IPV4, vectors[0].addresses);
}

static const struct test tests[] = {
    { "the published vectors", published },
    { "behind a tag", tags },
    { "fragments of IPv4", fragments },
    { "options and extension headers", extensions },
    { "frames that end too early", cut },
    { "frames that are not IP", no_ip },
};

TEST_MAIN(tests)
