/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet send queue: TCP segmentation.
 */
#include "harness/debug.h"
#include "harness/harness.h"
#include "harness/snapshot.h"
#include "harness/tso.h"

static void tcp4(void)
{
    tso_segments(tso_start(false, false));
}

static void tcp6(void)
{
    tso_segments(tso_start(true, false));
}

static void tagged(void)
{
    tso_segments(tso_start(false, true));
}

/* The network stops taking frames in the middle, more than once. */
static unsigned sent_until_blocked;

static void block(struct guest *g, const uint8_t *frame, size_t len)
{
    (void)frame;
    (void)len;
    g->net_blocked = ++sent_until_blocked % 5 == 0;
}

static void back_pressure_of(bool ipv6)
{
    struct tso s = tso_start(ipv6, false);
    unsigned i;

    sent_until_blocked = 0;
    s.g->on_send = block;
    tso_post(&s, 60000, 1400, 0);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    for (i = 0; i < 20; i++) {
        guest_settle(s.g);
        snapshot_cycle(s.g);
        s.g->net_blocked = false;
        qhca_engine_tx_ready(s.g->e, 1);
    }
    REQUIRE(s.g->num_sent == 44);
    CHECK_EQ(s.g->sent[43].len, 100);
    s.g->num_sent = 43;
    tso_check(&s, 60000, 1400, 0);
    tso_expect(&s, QHCA_WC_SUCCESS);
}

static void back_pressure(void)
{
    back_pressure_of(false);
    back_pressure_of(true);
}

/* A segment that lacks its end is longer than any frame. */
static void saved_half(void)
{
    struct tso s = tso_start(false, false);
    struct qhca_eth_wqe *w;

    w = eth_tx_post(&s.tx, s.mem, (uint32_t)s.hdr + 20000,
                    QHCA_ETH_TSO | QHCA_ETH_CSUM | QHCA_ETH_MORE);
    w->mss = htole16(1400);
    w->csum_start = htole16((uint16_t)s.l4);
    w->csum_offset = htole16(16);
    eth_tx_ring(&s.tx);
    snapshot_cycle(s.g);
    CHECK(s.g->e->eth->gather[0].active);
    eth_tx_post(&s.tx, s.mem + s.hdr + 20000, 10000, 0);
    eth_tx_ring(&s.tx);
    tso_check(&s, 30000, 1400, 0);
}

static void stopped(void)
{
    struct tso s = tso_start(false, false);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };

    s.g->net_blocked = true;
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, s.tx.number), QHCA_OK);
    guest_unblock(s.g);
    CHECK(s.g->num_sent <= 2);          /* those already taken from the queue */
    s.g->num_sent = 0;
    cmd.create_ethq.buf = s.tx.ring.desc;
    cmd.create_ethq.cqn = htole32(s.tx.cq.cqn);
    cmd.create_ethq.log_size = 6;
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_OK);
    s.tx.pi = 0;
    tso_post(&s, 5000, 1400, 0);
    eth_tx_ring(&s.tx);
    tso_check(&s, 5000, 1400, 0);
}

static void link_down(void)
{
    struct tso s = tso_start(false, false);

    qhca_engine_set_link(s.g->e, 1, false);
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    tso_expect(&s, QHCA_WC_SUCCESS);
    CHECK_EQ(s.g->num_sent, 0);
}

static void refusals(void)
{
    tso_refusals(tso_start(false, false));
}

static void largest(void)
{
    struct tso s = tso_start(true, true);
    struct qhca_eth_wqe *w;

    port_enable(s.g, test_mac, 0, 9000);
    w = eth_tx_post(&s.tx, s.mem, VHCA_MAX_TSO, QHCA_ETH_TSO | QHCA_ETH_VLAN);
    w->mss = htole16(8900);
    w->csum_start = htole16((uint16_t)s.l4);
    w->vlan_tci = htole16(0x6005);
    eth_tx_ring(&s.tx);
    tso_check(&s, (uint32_t)(VHCA_MAX_TSO - s.hdr), 8900, 4);
}

/*
 * The pieces of a segment in a saved state must fit an MTU, and their headers
 * must be where the segment has them.
 */
static void saved(void)
{
    static const struct {
        int l3, l4, hdr_len;    /* so much more than they are */
        uint16_t mss;
    } wrong[] = {
        { 0, 0, 0, 20000 }, { 196, 196, 184, 8960 }, { 0, 4, 4, 1400 },
        { 0, 0, 4, 1400 }, { 4, 0, 0, 1400 },
    };
    struct tso s = tso_start(false, false);
    static uint8_t state[1u << 20];
    struct vhca_tso *t, was;
    char why[200];

    s.g->net_blocked = true;
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    t = &s.g->e->eth->gather[0].tso;
    REQUIRE(t->active);
    snapshot_check(s.g);
    was = *t;
    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
        t->l3 = (uint16_t)(was.l3 + wrong[i].l3);
        t->l4 = (uint16_t)(was.l4 + wrong[i].l4);
        t->hdr_len = (uint16_t)(was.hdr_len + wrong[i].hdr_len);
        t->payload = was.payload + (unsigned)wrong[i].hdr_len;
        t->len = was.len - (unsigned)wrong[i].hdr_len;
        t->mss = wrong[i].mss;
        CHECK_EQ(qhca_engine_save(s.g->e, s.g->e->now, state, sizeof(state),
                                  why, sizeof(why)), 0);
        CHECK(strstr(why, "tso"));
    }
    *t = was;
    guest_unblock(s.g);
    tso_check(&s, 60000, 1400, 0);
}

static const struct test tests[] = {
    { "TCP over IPv4", tcp4 },
    { "TCP over IPv6", tcp6 },
    { "with a tag in the frame", tagged },
    { "back-pressure in the middle", back_pressure },
    { "saved in the middle", saved_half },
    { "the queue is destroyed in the middle", stopped },
    { "with the link down", link_down },
    { "what cannot be segmented", refusals },
    { "the largest frame", largest },
    { "in a saved state", saved },
};

TEST_MAIN(tests)
