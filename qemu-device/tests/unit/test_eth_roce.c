/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network card refuses RoCE frames that the stack sends in the name of a
 * QP. The port's GIDs are 10.0.0.1 and fe80::1; 10.0.0.2 is another machine's.
 */
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/rc.h"

static struct frame plain(void)
{
    return udp_frame(test_mac, 1, 2, 4791, 100);
}

static struct frame tagged(void)
{
    struct frame f = plain();

    frame_add_vlan(&f, 7);
    return f;
}

static struct frame two_tags(void)
{
    struct frame f = tagged();

    frame_add_vlan(&f, 8);
    return f;
}

/* The first of two fragments. */
static struct frame fragment(void)
{
    struct frame f = plain();

    f.data[20] |= 0x20;
    return f;
}

static struct frame later_fragment(void)
{
    struct frame f = plain();

    f.data[21] = 1;
    return f;
}

static struct frame options(void)
{
    struct frame f = plain();

    memmove(f.data + 14 + 24, f.data + 14 + 20, f.len - 34);
    memset(f.data + 34, 1, 4);
    f.data[14] = 0x46;
    f.len += 4;
    return f;
}

static struct frame other_port(void)
{
    return udp_frame(test_mac, 1, 2, 4792, 100);
}

static struct frame forwarded(void)
{
    return udp_frame(test_mac, 3, 2, 4791, 100);
}

static const uint8_t v6[16] = { 0xfe, 0x80, [15] = 1 };

/* From and to the port's own GID, because only the source matters. */
static struct frame six(void)
{
    struct frame f = udp6_frame(test_mac, v6, 4791, 100);

    memcpy(f.data + 22, v6, 16);
    return f;
}

/* six() with a header of @len bytes in front of UDP. */
static struct frame six_with(uint8_t header, unsigned len)
{
    struct frame f = six();

    memmove(f.data + 54 + len, f.data + 54, f.len - 54);
    memset(f.data + 54, 0, len);
    f.data[54] = f.data[20];
    f.data[55] = (uint8_t)(len / 8 - 1);
    f.data[20] = header;
    f.len += len;
    return f;
}

static struct frame six_options(void)
{
    return six_with(60, 24);
}

static struct frame six_fragment(void)
{
    struct frame f = six_with(44, 8);

    f.data[57] = 1;
    return f;
}

static struct frame six_later_fragment(void)
{
    struct frame f = six_with(44, 8);

    f.data[57] = 9;
    return f;
}

static struct frame six_endless(void)
{
    struct frame f = six_with(0, 8);

    f.data[54] = 0;
    f.data[55] = 255;
    return f;
}

/* The first fragment, whose UDP header is in the second. */
static struct frame six_cut(void)
{
    struct frame f = six_with(60, 24);

    memmove(f.data + 62, f.data + 54, 24);
    memset(f.data + 54, 0, 8);
    f.data[54] = 60;
    f.data[57] = 1;
    f.data[20] = 44;
    f.data[63] = 2;             /* the options end 8 bytes behind the packet */
    f.len = 14 + 40 + 8 + 16;
    return f;
}

/* The first fragment of a first fragment; @outer: which is not the last one. */
static struct frame six_cut_again(bool outer)
{
    struct frame f = six_cut();

    memmove(f.data + 62, f.data + 54, f.len - 54);
    memset(f.data + 54, 0, 8);
    f.data[54] = 44;
    f.data[57] = outer;
    f.data[65] = !outer;
    f.len += 8;
    return f;
}

static struct frame six_cut_outside(void)
{
    return six_cut_again(true);
}

static struct frame six_cut_inside(void)
{
    return six_cut_again(false);
}

/* A forged aggregate of frames, which only devices may send. */
static struct frame aggregate(void)
{
    static struct vhca_aggregate a;
    struct frame f = plain();
    const uint8_t *data;

    REQUIRE(vhca_aggregate_add(&a, f.data, f.len) &&
            vhca_aggregate_add(&a, f.data, f.len));
    data = vhca_aggregate_take(&a, &f.len);
    memcpy(f.data, data, f.len);
    return f;
}

/* The checksum that the device computes and writes is the port 4791, 0x12b7. */
static struct frame made_by_checksum(void)
{
    struct frame f = other_port();

    memset(f.data + 36, 0, f.len - 36);
    f.data[f.len - 2] = 0xff & ~0x12;
    f.data[f.len - 1] = 0xff & ~0xb7;
    return f;
}

/*
 * IPv6 headers that end in UDP to RoCE's port. For segmentation the TCP header
 * is wherever csum_start says.
 */
static struct frame segment(void)
{
    struct frame f = six();

    f.data[54 + 8 + 12 + 12] = 5 << 4;
    return f;
}

static struct frame segment_options(void)
{
    struct frame f = six_options();

    f.data[54 + 24 + 8 + 12 + 12] = 5 << 4;
    return f;
}

/* segment() for IPv4: TCP at csum_start, after 20 bytes of "options". */
static struct frame segment4(void)
{
    struct frame f = plain();

    f.data[34 + 20 + 12] = 5 << 4;
    return f;
}

static void test_card(void)
{
    static const struct {
        struct frame (*make)(void);
        unsigned sent;
        uint16_t flags, csum_start;
    } cases[] = {
        { .make = plain },
        { .make = tagged },
        { .make = two_tags },
        { .make = fragment },
        { .make = later_fragment, .sent = 1 },
        { .make = options },
        { .make = other_port, .sent = 1 },
        { .make = forwarded, .sent = 1 },
        { .make = six },
        { .make = six_options },
        { .make = six_fragment },
        { .make = six_later_fragment, .sent = 1 },
        { .make = six_endless, .sent = 1 },
        { .make = six_cut },
        { .make = six_cut_outside },
        { .make = six_cut_inside },
        { .make = aggregate },
        { .make = plain, .flags = QHCA_ETH_VLAN },
        { .make = tagged, .flags = QHCA_ETH_VLAN },
        { .make = other_port, .sent = 1, .flags = QHCA_ETH_VLAN },
        { .make = made_by_checksum, .flags = QHCA_ETH_CSUM, .csum_start = 36 },
        { .make = other_port, .sent = 1,
          .flags = QHCA_ETH_CSUM, .csum_start = 40 },
        { .make = segment,
          .flags = QHCA_ETH_TSO | QHCA_ETH_CSUM, .csum_start = 54 + 8 + 12 },
        { .make = segment,
          .flags = QHCA_ETH_TSO | QHCA_ETH_CSUM | QHCA_ETH_VLAN,
          .csum_start = 74 },
        { .make = segment_options,
          .flags = QHCA_ETH_TSO | QHCA_ETH_CSUM, .csum_start = 54 + 24 + 20 },
        { .make = segment4,
          .flags = QHCA_ETH_TSO | QHCA_ETH_CSUM, .csum_start = 34 + 20 },
    };
    struct node n = node_new(NULL, 1);
    struct guest *g = n.g;
    struct eth_tx tx = eth_tx_create(g, &n.comp, 4);
    uint64_t mem = guest_alloc(g, 4096, 4096);
    struct qhca_eth_wqe *w;
    struct qhca_cqe cqe;

    CHECK_EQ(gid_set(g, 3, v6, test_mac, QHCA_NO_VLAN), QHCA_OK);
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct frame f = cases[i].make();

        g->num_sent = 0;
        memcpy(guest_ptr(g, mem, f.len), f.data, f.len);
        w = eth_tx_post(&tx, mem, (uint32_t)f.len, cases[i].flags);
        w->mss = htole16(1000);
        w->csum_start = htole16(cases[i].csum_start);
        eth_tx_ring(&tx);
        REQUIRE(cq_poll(&tx.cq, &cqe));
        if (g->num_sent != cases[i].sent) {
            tap_note("case %u", i);
        }
        CHECK_EQ(g->num_sent, cases[i].sent);
        CHECK_EQ(cqe.status == QHCA_WC_SUCCESS, cases[i].sent);
        CHECK_EQ(cqe.status == QHCA_WC_LOC_QP_OP_ERR, !cases[i].sent);
    }
    CHECK_EQ(counter(g, QHCA_CNT_ETH_TX_ERR), 19);
    /* Frames to the port's own GIDs are not looped back. */
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_MALFORMED), 0);
}

static const struct test tests[] = {
    { "D-088 the network card sends no RoCE frames in the name of QPs",
      test_card },
};

TEST_MAIN(tests)
