/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: settings, GID table, and steering of received frames. */
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"

static const uint8_t other_mac[6] = { 0x52, 0x54, 0x00, 0x99, 0x99, 0x99 };
static const uint8_t mc_mac[6] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 };
static const uint8_t bc_mac[6] = { 255, 255, 255, 255, 255, 255 };

static void settings(void)
{
    struct guest *g = guest_start();
    struct qhca_cmd good = { .opcode = htole16(QHCA_CMD_SET_PORT) }, cmd;
    struct qhca_port_attr a;

    memcpy(good.set_port.mac, test_mac, 6);
    good.set_port.port = 1;
    good.set_port.flags = 7;
    good.set_port.mtu = htole32(4200);
#define TRY(change, status) \
    do { \
        cmd = good; \
        change; \
        CHECK_EQ(guest_cmd(g, &cmd, NULL), status); \
    } while (0)
    TRY((void)0, QHCA_OK);
    TRY(cmd.set_port.mac[0] |= 1, QHCA_ERR_PARAM);
    TRY(memset(cmd.set_port.mac, 0, 6), QHCA_ERR_PARAM);
    TRY(cmd.set_port.port = 0, QHCA_ERR_PARAM);
    TRY(cmd.set_port.port = 2, QHCA_ERR_PARAM);
    TRY(cmd.set_port.flags = 8, QHCA_ERR_PARAM);
    TRY(cmd.set_port.mtu = htole32(67), QHCA_ERR_PARAM);
    TRY(cmd.set_port.mtu = htole32(9001), QHCA_ERR_LIMIT);
#undef TRY
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 1, &a, sizeof(a)), QHCA_OK);
    CHECK_EQ(le32toh(a.mtu), 4200);
    CHECK_EQ(le32toh(a.max_mtu), 9000);
    CHECK_EQ(a.link_up, 1);
    CHECK(a.speed != 0);
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 2, &a, sizeof(a)),
             QHCA_ERR_PARAM);
}

static int set_gid(struct guest *g, unsigned index, const uint8_t *gid,
                   unsigned vlan)
{
    return gid_set(g, index, gid, test_mac, vlan);
}

static void gid_table(void)
{
    static const uint8_t v4[16] = { [10] = 255, [11] = 255, 10, 0, 0, 1 };
    static const uint8_t v6[16] = { 0xfe, 0x80, [15] = 1 };
    static const uint8_t mc4[16] = { [10] = 255, [11] = 255, 224, 0, 0, 1 };
    static const uint8_t mc6[16] = { 0xff, 0x02, [15] = 1 };
    static const uint8_t zero[16];
    struct guest *g = guest_start();
    struct qhca_cmd bad = {
        .opcode = htole16(QHCA_CMD_SET_GID),
        .set_gid = { .vlan = htole16(1), .port = 1, .valid = 2 },
    };

    CHECK_EQ(set_gid(g, 0, v6, QHCA_NO_VLAN), QHCA_OK);
    CHECK_EQ(set_gid(g, 127, v4, 5), QHCA_OK);
    CHECK_EQ(set_gid(g, 128, v4, 5), QHCA_ERR_LIMIT);
    CHECK_EQ(set_gid(g, 65535, NULL, 5), QHCA_ERR_LIMIT);
    CHECK_EQ(set_gid(g, 1, zero, QHCA_NO_VLAN), QHCA_ERR_PARAM);
    CHECK_EQ(set_gid(g, 1, mc4, QHCA_NO_VLAN), QHCA_ERR_PARAM);
    CHECK_EQ(set_gid(g, 1, mc6, QHCA_NO_VLAN), QHCA_ERR_PARAM);
    CHECK_EQ(set_gid(g, 1, v4, 4095), QHCA_ERR_PARAM);
    CHECK_EQ(set_gid(g, 1, v4, 0), QHCA_ERR_PARAM);
    memcpy(bad.set_gid.gid, v4, sizeof(v4));
    CHECK_EQ(guest_cmd(g, &bad, NULL), QHCA_ERR_PARAM);
    CHECK_EQ(vhca_gid_find(g->e, v6, QHCA_NO_VLAN), 0);
    CHECK_EQ(vhca_gid_find(g->e, v6, 5), -1);
    CHECK_EQ(vhca_gid_find(g->e, v4, 5), 127);
    CHECK(g->e->port->gid[127].ipv4 && !g->e->port->gid[0].ipv4);
    CHECK_EQ(set_gid(g, 127, NULL, 0), QHCA_OK);
    CHECK_EQ(vhca_gid_find(g->e, v4, 5), -1);
    CHECK_EQ(g->e->port->num_gid, 1);
    CHECK_EQ(vhca_gid_find(g->e, zero, 0), -1);
}

/* ---- steering ---- */

struct setup {
    struct guest *g;
    struct eth_rx rx;
};

static struct setup start(unsigned flags)
{
    struct setup s = { .g = guest_start() };
    struct geq eq = eq_create(s.g, 1, 6, 0);

    s.rx = eth_rx_create(s.g, &eq, 8, 2048);
    port_enable(s.g, test_mac, flags, 1500);
    gid_set_ipv4(s.g, 0, 1, test_mac);
    return s;
}

/*
 * The receiver of a frame: the Ethernet queue, the transport, or none; LENGTH:
 * no frame has this length.
 */
enum taker { NOBODY, ETH, ROCE, LENGTH };

static enum taker taker_of(struct setup *s, const uint8_t *frame, size_t len)
{
    uint64_t eth = counter(s->g, QHCA_CNT_ETH_RX_PKTS);
    uint64_t length = counter(s->g, QHCA_CNT_RX_LENGTH);
    uint64_t drops = counter(s->g, QHCA_CNT_RX_ICRC) +
                     counter(s->g, QHCA_CNT_RX_MALFORMED);
    bool roce;

    guest_rx(s->g, frame, len);
    roce = counter(s->g, QHCA_CNT_RX_ICRC) +
           counter(s->g, QHCA_CNT_RX_MALFORMED) != drops;
    if (counter(s->g, QHCA_CNT_ETH_RX_PKTS) != eth) {
        CHECK(!roce);
        eth_rx_refill(&s->rx);
        return ETH;
    }
    if (counter(s->g, QHCA_CNT_RX_LENGTH) != length) {
        CHECK(!roce);
        return LENGTH;
    }
    return roce ? ROCE : NOBODY;
}

static enum taker to_mac(struct setup *s, const uint8_t *mac)
{
    uint8_t f[64] = { 0 };

    memcpy(f, mac, 6);
    f[12] = 0x08;
    f[13] = 0x06;
    return taker_of(s, f, sizeof(f));
}

/* A frame that ends behind its tag has one. */
static void shortest_tag(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct frame_headers h;

    frame_add_vlan(&f, 0x2005);
    vhca_frame_parse(&h, f.data, ETH_LEN + 4);
    CHECK_EQ(h.vlan, 5);
    CHECK_EQ(h.priority, 1);
    CHECK_EQ(h.type, 0x0800);
    CHECK(!h.udp);
}

/* Rules see frames that hardly have an IP header. */
static void hardly_ip(void)
{
    static const uint8_t to[16] = { 0xfd, [15] = 9 };
    struct frame f = udp6_frame(test_mac, to, 7, 100);
    struct qhca_flow_key k;

    vhca_flow_parse(&k, f.data, ETH_LEN + 40);  /* and nothing behind it */
    CHECK_EQ(k.headers, QHCA_FLOW_HAS_IPV6);
    CHECK(!memcmp(k.dst, to, sizeof(to)));
    put_be16(f.data + 12, 0x0800);              /* which IPv6 is not */
    vhca_flow_parse(&k, f.data, f.len);
    CHECK_EQ(k.headers, 0);
}

/* Frames whose payload has no checksum that the port knows. */
static void unchecked(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    uint8_t *ip = f.data + 14, *udp = ip + 20;
    const size_t len = f.len - 34;

    CHECK(vhca_csum_verify(f.data, f.len, 14, 0x0800));
    for (unsigned bad = 0; bad < 3; bad++) {
        f = udp_frame(test_mac, 1, 2, 7, 100);
        if (bad) {
            put_be16(udp + 4, bad == 1 ? 7 : (uint16_t)(len + 1));
        } else {
            ip[9] = 47;             /* GRE, with what would be UDP's sum */
            put_be16(ip + 10, 0);
            put_be16(ip + 10, vhca_csum_fold(vhca_csum_add(0, ip, 20)));
            put_be16(udp + 6, 0);
            put_be16(udp + 6, vhca_csum_fold(vhca_csum_add(
                vhca_csum_pseudo(ip, true, 47, (uint32_t)len), udp, len)));
        }
        CHECK(!vhca_csum_verify(f.data, f.len, 14, 0x0800));
    }
}

static void mac_filter(void)
{
    struct setup s = start(0);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_MCAST) };
    struct qhca_mcast_list list = { 0 };

    CHECK_EQ(to_mac(&s, test_mac), ETH);
    CHECK_EQ(to_mac(&s, bc_mac), ETH);
    CHECK_EQ(to_mac(&s, other_mac), NOBODY);
    CHECK_EQ(to_mac(&s, mc_mac), NOBODY);

    memcpy(list.mac[511], mc_mac, 6);
    for (unsigned i = 0; i < 511; i++) {
        list.mac[i][0] = 1;
        list.mac[i][4] = (uint8_t)(i >> 8);
        list.mac[i][5] = (uint8_t)i;
    }
    cmd.set_mcast.count = htole32(512);
    CHECK_EQ(guest_cmd_mbox(s.g, &cmd, &list, sizeof(list), NULL, 0, NULL),
             QHCA_OK);
    CHECK_EQ(to_mac(&s, mc_mac), ETH);
    list.mac[3][0] = 0;                     /* unicast: the list is refused */
    list.mac[511][5] = 0;
    CHECK_EQ(guest_cmd_mbox(s.g, &cmd, &list, sizeof(list), NULL, 0, NULL),
             QHCA_ERR_PARAM);
    CHECK_EQ(to_mac(&s, mc_mac), ETH);
    cmd.set_mcast.count = htole32(513);
    CHECK_EQ(guest_cmd_mbox(s.g, &cmd, &list, sizeof(list), NULL, 0, NULL),
             QHCA_ERR_LIMIT);
    cmd.set_mcast.count = 0;
    CHECK_EQ(guest_cmd_mbox(s.g, &cmd, &list, sizeof(list), NULL, 0, NULL),
             QHCA_OK);
    CHECK_EQ(to_mac(&s, mc_mac), NOBODY);

    port_enable(s.g, test_mac, QHCA_PORT_ALLMULTI, 1500);
    CHECK_EQ(to_mac(&s, mc_mac), ETH);
    CHECK_EQ(to_mac(&s, other_mac), NOBODY);
    port_enable(s.g, test_mac, QHCA_PORT_PROMISC, 1500);
    CHECK_EQ(to_mac(&s, other_mac), ETH);
    port_enable(s.g, other_mac, 0, 1500);
    CHECK_EQ(to_mac(&s, other_mac), ETH);
    CHECK_EQ(to_mac(&s, test_mac), NOBODY);
}

static void port_down(void)
{
    struct setup s = start(0);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_PORT) };

    qhca_engine_set_link(s.g->e, 1, false);
    CHECK_EQ(to_mac(&s, test_mac), NOBODY);
    qhca_engine_set_link(s.g->e, 1, true);
    CHECK_EQ(to_mac(&s, test_mac), ETH);
    memcpy(cmd.set_port.mac, test_mac, 6);
    cmd.set_port.port = 1;
    cmd.set_port.mtu = htole32(1500);
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_OK);
    CHECK_EQ(to_mac(&s, test_mac), NOBODY);
}

static void too_long(void)
{
    struct setup s = start(0);
    uint8_t f[1600] = { 0 };

    memcpy(f, test_mac, 6);
    CHECK_EQ(taker_of(&s, f, 1514), ETH);
    CHECK_EQ(taker_of(&s, f, 1515), LENGTH);
    f[12] = 0x81;
    CHECK_EQ(taker_of(&s, f, 1518), ETH);
    CHECK_EQ(taker_of(&s, f, 1519), LENGTH);
    CHECK_EQ(taker_of(&s, f, 13), LENGTH);
    CHECK_EQ(taker_of(&s, f, 0), LENGTH);
    CHECK_EQ(taker_of(&s, f, 14), ETH);
}

/* The conditions for a frame to be RoCE, each broken in turn. */
static void roce_or_not(void)
{
    struct setup s = start(QHCA_PORT_PROMISC);
    struct frame f;

#define TRY(change, who) \
    do { \
        f = udp_frame(test_mac, 2, 1, 4791, 60); \
        change; \
        CHECK_EQ(taker_of(&s, f.data, f.len), who); \
    } while (0)
    TRY((void)0, ROCE);
    TRY(f.data[36] = 0, ETH);                   /* another UDP port */
    TRY(f.data[23] = 6, ETH);                   /* TCP */
    TRY(f.data[33] = 9, ETH);                   /* another address */
    TRY(f.data[14] = 0x46, ETH);                /* IP options */
    TRY(f.data[14] = 0x65, ETH);                /* not version 4 */
    TRY(f.data[20] |= 0x20, ETH);               /* more fragments (E-045) */
    TRY(f.data[21] |= 0x01, ETH);               /* a later fragment */
    TRY(f.data[20] |= 0x40, ROCE);              /* don't fragment */
    TRY(memcpy(f.data, other_mac, 6), ETH);     /* another machine's */
    TRY(memcpy(f.data, mc_mac, 6), ETH);
    TRY(f.len = 41, ETH);                       /* no whole UDP header */
    TRY(f.len = 42, ROCE);
    TRY(f.data[12] = 0x88, ETH);
    TRY(frame_add_vlan(&f, 7), ETH);            /* the GID has no VLAN */
    TRY(frame_add_vlan(&f, 0x6000), ROCE);      /* a priority tag is no VLAN */
#undef TRY
    gid_set_ipv4(s.g, 3, 77, other_mac);        /* an upper device's GID */
    f = udp_frame(other_mac, 2, 77, 4791, 60);
    CHECK_EQ(taker_of(&s, f.data, f.len), ROCE);
    f = udp_frame(other_mac, 2, 1, 4791, 60);
    CHECK_EQ(taker_of(&s, f.data, f.len), ETH);
}

static void roce_vlan_and_ipv6(void)
{
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    struct setup s = start(0);
    struct frame f;

    CHECK_EQ(set_gid(s.g, 4, v6, 100), QHCA_OK);
    f = udp6_frame(test_mac, v6, 4791, 60);
    CHECK_EQ(taker_of(&s, f.data, f.len), ETH);
    frame_add_vlan(&f, 0xe000 | 100);
    CHECK_EQ(taker_of(&s, f.data, f.len), ROCE);
    f.data[18] = 0x40;                          /* not version 6 */
    CHECK_EQ(taker_of(&s, f.data, f.len), ETH);
    f = udp6_frame(test_mac, v6, 4791, 60);
    frame_add_vlan(&f, 101);
    CHECK_EQ(taker_of(&s, f.data, f.len), ETH);
    f = udp6_frame(test_mac, v6, 4791, 60);
    frame_add_vlan(&f, 100);
    f.data[18 + 6] = 44;                        /* fragment header */
    CHECK_EQ(taker_of(&s, f.data, f.len), ETH);
}

static void random_frames(void)
{
    struct setup s = start(QHCA_PORT_PROMISC);
    uint64_t rng = 42;
    struct frame f;
    unsigned i, j;

    for (i = 0; i < 20000; i++) {
        f = udp_frame(test_mac, 2, 1, 4791, 100);
        for (j = (unsigned)(test_random(&rng) >> 60); j > 0; j--) {
            f.data[(test_random(&rng) >> 20) % f.len] =
                (uint8_t)(test_random(&rng) >> 40);
        }
        f.len = (test_random(&rng) >> 20) % (f.len + 1);
        guest_rx(s.g, f.data, f.len);
        if (i % 200 == 0) {
            eth_rx_refill(&s.rx);
        }
    }
    CHECK_EQ(dev_state(s.g), QHCA_STATE_RUNNING);
}

static const struct test tests[] = {
    { "SET_PORT and QUERY_PORT", settings },
    { "GID table", gid_table },
    { "the shortest frame with a tag", shortest_tag },
    { "frames that hardly have an IP header", hardly_ip },
    { "payload without a checksum", unchecked },
    { "Ethernet address filter", mac_filter },
    { "a port that is down drops all frames", port_down },
    { "frame lengths", too_long },
    { "E-045 RoCE or Ethernet", roce_or_not },
    { "RoCE over VLAN and IPv6", roce_vlan_and_ipv6 },
    { "random frames", random_frames },
};

TEST_MAIN(tests)
