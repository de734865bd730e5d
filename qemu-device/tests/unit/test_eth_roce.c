/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network card does not speak for QPs: RoCE frames that the stack sends.
 * The port's GIDs are 10.0.0.1 and fe80::1; 10.0.0.2 is elsewhere.
 */
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

/* From and to the port's own, as only the source matters. */
static struct frame six(void)
{
    struct frame f = udp6_frame(test_mac, v6, 4791, 100);

    memcpy(f.data + 22, v6, 16);
    return f;
}

/* With a header of @len bytes in front of UDP. */
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

/* D-088 */
static void test_card(void)
{
    static const struct {
        struct frame (*make)(void);
        unsigned sent;
    } cases[] = {
        { plain, 0 }, { tagged, 0 }, { two_tags, 0 },
        { fragment, 0 }, { later_fragment, 1 }, { options, 0 },
        { other_port, 1 }, { forwarded, 1 }, { six, 0 },
        { six_options, 0 }, { six_fragment, 0 },
        { six_later_fragment, 1 }, { six_endless, 1 },
    };
    struct node n = node_new(NULL, 1);
    struct guest *g = n.g;
    struct eth_tx tx = eth_tx_create(g, &n.comp, 4);
    uint64_t mem = guest_alloc(g, 4096, 4096);
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_SET_GID),
        .set_gid = { .smac = { 2, 3, 4, 5, 6, 7 }, .index = htole16(3),
                     .vlan = htole16(QHCA_NO_VLAN), .port = 1, .valid = 1 },
    };
    struct qhca_cqe cqe;

    memcpy(cmd.set_gid.gid, v6, 16);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_OK);
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct frame f = cases[i].make();

        g->num_sent = 0;
        memcpy(guest_ptr(g, mem, f.len), f.data, f.len);
        eth_tx_post(&tx, mem, (uint32_t)f.len, 0);
        eth_tx_ring(&tx);
        guest_settle(g);
        REQUIRE(cq_poll(&tx.cq, &cqe));
        if (g->num_sent != cases[i].sent) {
            tap_note("case %u", i);
        }
        CHECK_EQ(g->num_sent, cases[i].sent);
        CHECK_EQ(cqe.status == QHCA_WC_SUCCESS, cases[i].sent);
        CHECK_EQ(cqe.status == QHCA_WC_LOC_QP_OP_ERR, !cases[i].sent);
    }
    CHECK_EQ(counter(g, QHCA_CNT_ETH_TX_ERR), 8);
    /* What is sent to the port's own GIDs does not come back to them. */
    CHECK_EQ(counter(g, QHCA_CNT_RX_PKTS), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RX_MALFORMED), 0);
}

static const struct test tests[] = {
    { "D-088 the network card in the name of QPs", test_card },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
