/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet send queue: TCP segments that the network takes whole.
 */
#include "harness/debug.h"
#include "harness/harness.h"
#include "harness/long.h"
#include "harness/tso.h"

static unsigned offered;

static bool take(struct guest *g, const uint8_t *frame, size_t len,
                 const struct qhca_long_frame *how)
{
    offered++;
    return long_cut(g, frame, len, how);
}

static bool refuse(struct guest *g, const uint8_t *frame, size_t len,
                   const struct qhca_long_frame *how)
{
    (void)g;
    (void)frame;
    (void)len;
    (void)how;
    offered++;
    return false;
}

/* tso_start() without a CWR. */
static struct tso start_long(bool ipv6, bool tagged)
{
    struct tso s = tso_start(ipv6, tagged);

    s.flags = TSO_FLAGS & ~0x80u;
    *(uint8_t *)guest_ptr(s.g, s.mem + s.l4 + 13, 1) = (uint8_t)s.flags;
    s.g->take_long = take;
    offered = 0;
    return s;
}

/* Five frames of tso_segments() are long, and in few enough pieces. */
static void whole(bool ipv6, bool tagged)
{
    struct tso s = start_long(ipv6, tagged);

    tso_segments(s);
    CHECK_EQ(offered, tagged ? 5 : 10);     /* two tags are too many */
    s = start_long(ipv6, tagged);
    s.g->take_long = refuse;
    tso_segments(s);
    CHECK_EQ(offered, tagged ? 5 : 10);
}

static void whole4(void)
{
    whole(false, false);
}

static void whole6(void)
{
    whole(true, false);
}

static void whole_tagged(void)
{
    whole(false, true);
    whole(true, true);
}

/* Sends a frame that is cut by the engine, without asking. */
static void sent_cut(struct tso *s, uint32_t payload, unsigned mss)
{
    offered = 0;
    tso_post(s, payload, mss, 0);
    eth_tx_ring(&s->tx);
    tso_check(s, payload, mss, 0);
    CHECK_EQ(offered, 0);
}

static void not_whole(void)
{
    struct tso s = start_long(false, false);
    uint8_t *f = guest_ptr(s.g, s.mem, s.hdr);

    sent_cut(&s, 65535 - 52 + 1, 1400);     /* more than IPv4 has room for */
    sent_cut(&s, 129, 1);
    f[20] = 0x20;                           /* a fragment has no end of TCP's */
    tso_post(&s, 3000, 1400, 0);
    eth_tx_ring(&s.tx);
    guest_settle(s.g);
    CHECK_EQ(s.g->num_sent, 3);
    CHECK_EQ(offered, 0);
    tso_expect(&s, QHCA_WC_SUCCESS);
    s.g->num_sent = 0;
    f[20] = 0;
    s.flags |= 0x80;
    f[s.l4 + 13] |= 0x80;
    sent_cut(&s, 3000, 1400);
}

/* A network that cuts need not pad: frames may be short inside of a host. */
static void not_whole_short(void)
{
    struct tso s = start_long(false, false);

    s.hdr = s.l4 + 20;
    *(uint8_t *)guest_ptr(s.g, s.mem + s.l4 + 12, 1) = 5 << 4;
    sent_cut(&s, 2 * 1400 + 5, 1400);
    sent_cut(&s, 300, 5);
    tso_post(&s, 2 * 1400 + 6, 1400, 0);
    eth_tx_ring(&s.tx);
    tso_check(&s, 2 * 1400 + 6, 1400, 0);
    CHECK_EQ(offered, 1);
}

/* The network is offered none but the one that is right. */
static void whole_refusals(void)
{
    tso_refusals(start_long(false, false));
    CHECK_EQ(offered, 1);
}

/* Rules are for frames, and count them. */
static void not_whole_by_rule(void)
{
    static const char *const rules[] = {
        "port latency=1us", "port bandwidth=1000",
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++) {
        struct tso s = start_long(false, false);

        guest_set_faults(s.g, rules[i]);
        tso_post(&s, 60000, 1400, 0);
        eth_tx_ring(&s.tx);
        guest_advance(s.g, 10000000);
        tso_check(&s, 60000, 1400, 0);
        CHECK_EQ(offered, 0);
    }
}

/* While the port is down frames disappear, whatever they are. */
static void not_whole_down(void)
{
    struct tso s = start_long(false, false);

    qhca_engine_set_link(s.g->e, *s.g->clock, false);
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    guest_settle(s.g);
    CHECK_EQ(le32toh(tso_expect(&s, QHCA_WC_SUCCESS).byte_len), 62838);
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_PKTS), 43);
    CHECK_EQ(s.g->num_sent + offered, 0);
}

/* The rest of a frame that was begun in pieces is not offered; later are. */
static void not_whole_blocked(void)
{
    struct tso s = start_long(false, false);

    s.g->take_long = NULL;
    s.g->net_blocked = true;
    tso_post(&s, 60000, 1400, 0);
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    guest_settle(s.g);
    s.g->take_long = take;
    guest_unblock(s.g);
    guest_settle(s.g);
    CHECK_EQ(offered, 1);
    CHECK_EQ(s.g->num_sent, 86);
    tso_expect(&s, QHCA_WC_SUCCESS);
    tso_expect(&s, QHCA_WC_SUCCESS);
}

/* A pause of the port holds it, until it is over. */
static void whole_paused(void)
{
    static const uint8_t pause[60] = {
        1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 0, 1, 0xff, 0xff,
    };
    struct tso s = start_long(false, false);

    guest_rx(s.g, pause, sizeof(pause));
    tso_post(&s, 60000, 1400, 0);
    eth_tx_ring(&s.tx);
    guest_settle(s.g);
    CHECK_EQ(offered, 0);
    guest_advance(s.g, 1000000000);
    tso_check(&s, 60000, 1400, 0);
    CHECK_EQ(offered, 1);
}

/* Returns when 20 frames have been sent. */
static uint64_t time_limited(unsigned bandwidth, bool takes)
{
    struct tso s = start_long(false, false);
    struct qhca_cqe cqe;
    uint64_t from;

    s.g->take_long = takes ? take : NULL;
    qhca_engine_set_bandwidth(s.g->e, *s.g->clock, bandwidth);
    s.g->limited = true;
    from = *s.g->clock;
    for (unsigned i = 0; i < 20; i++) {
        tso_post(&s, 60000, 1400, 0);
    }
    eth_tx_ring(&s.tx);
    for (unsigned i = 0; i < 20; i++) {
        while (!cq_poll(&s.tx.cq, &cqe)) {
            guest_advance(s.g, 1000);
        }
    }
    CHECK_EQ(s.g->num_sent, 860);
    CHECK_EQ(offered, takes ? 20 : 0);
    return *s.g->clock - from;
}

/* 20 frames of 62,838 bytes take 10 ms, of which one may be owed. */
static void whole_limited(void)
{
    uint64_t cut = time_limited(1000, false);
    uint64_t whole = time_limited(1000, true);

    tap_note("cut: %u us, whole: %u us", (unsigned)(cut / 1000),
             (unsigned)(whole / 1000));
    CHECK(cut >= 9000000 && cut <= 10000000);
    CHECK(whole >= 9000000 && whole <= 10500000);
}

/* A whole segment costs the guest as much time as its pieces. */
static void whole_costs(void)
{
    struct tso s = start_long(false, false);
    unsigned spent[2];

    for (unsigned i = 0; i < 2; i++) {
        s.g->take_long = i ? take : refuse;
        tso_post(&s, 30000, 1400, 0);
        eth_tx_ring(&s.tx);
        spent[i] = s.g->e->spent;
        tso_check(&s, 30000, 1400, 0);
    }
    CHECK_EQ(spent[0], spent[1]);
}

static const struct test tests[] = {
    { "the network takes segments over IPv4", whole4 },
    { "the network takes segments over IPv6", whole6 },
    { "the network takes segments with a tag", whole_tagged },
    { "what the network is not offered", not_whole },
    { "frames that have to be padded", not_whole_short },
    { "what cannot be segmented by the network, either", whole_refusals },
    { "a fault rule for frames", not_whole_by_rule },
    { "long frames with the link down", not_whole_down },
    { "long frames after the network was blocked", not_whole_blocked },
    { "a long frame waits for the end of a pause", whole_paused },
    { "long frames with a limit of the bandwidth", whole_limited },
    { "long frames cost what their pieces do", whole_costs },
};

TEST_MAIN(tests)
