/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segments of a hostile guest, in two machines: one network cuts the
 * segments that it is offered, as Linux does; the other takes frames only.
 * The frames, completions and counters must be the same, whatever the guest
 * posts. FUZZ_ITERATIONS and FUZZ_SEED (or "date") in the environment; the
 * seed of a failure is in its message.
 */
#include "harness/debug.h"
#include "harness/long.h"
#include "harness/seed.h"
#include "harness/tso.h"

#define MAX_PARTS   4u
#define MAX_FRAMES  200u                /* of a segment: they take time */
#define WHOLE       (65536u + 200)      /* bytes that the guest may post */

/* struct segment - what the guest posts: a frame and how to cut it */
struct segment {
    uint32_t len, part[MAX_PARTS];
    unsigned parts, bad;                /* @bad: part without memory, or none */
    uint16_t mss, start, flags, tci;
    uint8_t head[TSO_HEADERS];
};

static unsigned offered;

static bool take(struct guest *g, const uint8_t *frame, size_t len,
                 const struct qhca_long_frame *how)
{
    offered++;
    return long_cut(g, frame, len, how);
}

static uint64_t below(uint64_t *rng, uint64_t n)
{
    return (test_random(rng) >> 20) % n;
}

static bool one_in(uint64_t *rng, unsigned n)
{
    return below(rng, n) == 0;
}

/* Breaks headers, or only makes them unusual. */
static void change(uint64_t *rng, struct segment *s, size_t l3, size_t l4)
{
    static const uint8_t protocols[] = { 0, 6, 17, 43, 44, 51, 60 };
    uint8_t *ip = s->head + l3, *tcp = s->head + l4;
    bool ipv6 = l4 - l3 == 40;

    switch (below(rng, 9)) {
    case 0:
        tcp[12] = (uint8_t)below(rng, 256);
        break;
    case 1:
        tcp[13] = (uint8_t)below(rng, 256);
        break;
    case 2:
        ip[0] = (uint8_t)(ip[0] + below(rng, 8));
        break;
    case 3:
        ip[ipv6 ? 6 : 9] = protocols[below(rng, sizeof(protocols))];
        break;
    case 4:
        ip[6] = (uint8_t)(1u << below(rng, 8));
        break;
    case 5:
        s->start = (uint16_t)below(rng, one_in(rng, 2) ? 100 : 65536);
        break;
    case 6:
        ip[-1] = (uint8_t)below(rng, 256);
        break;
    default:
        s->head[below(rng, sizeof(s->head))] ^= (uint8_t)(1u << below(rng, 8));
    }
}

static struct segment some_segment(uint64_t *rng)
{
    static const uint16_t sizes[] = {
        0, 1, 2, 5, 6, 9, 100, 536, 1400, 1440, 1448, 1460, 1461, 65535,
    };
    bool ipv6 = one_in(rng, 2), tagged = one_in(rng, 3);
    size_t l3 = tagged ? 18 : 14, l4 = l3 + (ipv6 ? 40 : 20);
    struct segment s = { .bad = MAX_PARTS, .start = (uint16_t)l4 };
    size_t hdr = tso_headers(s.head, ipv6, tagged,
                             one_in(rng, 4) ? 0x90 : 0x19);
    uint32_t left;

    if (one_in(rng, 2)) {
        s.head[l4 + 12] = 5 << 4;
        hdr -= 12;
    }
    s.mss = one_in(rng, 4) ? (uint16_t)below(rng, 1500) :
                             sizes[below(rng, ARRAY_SIZE(sizes))];
    s.flags = QHCA_ETH_TSO | QHCA_ETH_CSUM |
              (one_in(rng, 3) ? QHCA_ETH_VLAN : 0);
    s.tci = (uint16_t)below(rng, 65536);
    s.len = (uint32_t)(hdr + below(rng, one_in(rng, 3) ? 65600 : 6000));
    if (one_in(rng, 3)) {               /* with a rest of a few bytes */
        s.len = (uint32_t)(hdr + s.mss * below(rng, 6) + below(rng, 8));
    }
    if (s.len > hdr + MAX_FRAMES * s.mss) {
        s.len = (uint32_t)hdr + MAX_FRAMES * s.mss;
    }
    while (one_in(rng, 3)) {
        change(rng, &s, l3, l4);
    }
    if (one_in(rng, 20)) {
        s.len = (uint32_t)below(rng, hdr + 2);
    }
    for (left = s.len; s.parts < MAX_PARTS - 1 && one_in(rng, 2); s.parts++) {
        s.part[s.parts] = (uint32_t)below(rng, one_in(rng, 2) ? 80 : left + 1);
        s.part[s.parts] = s.part[s.parts] < left ? s.part[s.parts] : left;
        left -= s.part[s.parts];
    }
    s.part[s.parts++] = left;
    if (one_in(rng, 20)) {
        s.bad = (unsigned)below(rng, s.parts);
    }
    return s;
}

static void post(struct tso *t, const struct segment *s)
{
    uint64_t at = t->mem;
    struct qhca_eth_wqe *w;

    memcpy(guest_ptr(t->g, t->mem, sizeof(s->head)), s->head, sizeof(s->head));
    for (unsigned i = 0; i < s->parts; i++) {
        bool more = i + 1 < s->parts;

        w = eth_tx_post(&t->tx, i == s->bad ? ~UINT64_C(0xfff) : at, s->part[i],
                        s->flags | (more ? QHCA_ETH_MORE : 0u));
        w->mss = htole16(s->mss);
        w->csum_start = htole16(s->start);
        w->csum_offset = htole16(16);
        w->vlan_tci = htole16(s->tci);
        at += s->part[i];
    }
    eth_tx_ring(&t->tx);
}

/* Lets the network take nothing for a while, perhaps. */
static struct qhca_cqe run(struct tso *t, const struct segment *s, bool blocked)
{
    struct qhca_cqe cqe = { 0 };

    t->g->num_sent = 0;
    t->g->net_blocked = blocked;
    post(t, s);
    guest_settle(t->g);
    if (blocked) {
        guest_unblock(t->g);
        guest_settle(t->g);
    }
    REQUIRE(cq_poll(&t->tx.cq, &cqe));
    return cqe;
}

static void compare(struct tso *a, struct tso *b)
{
    static const unsigned counters[] = {
        QHCA_CNT_ETH_TX_PKTS, QHCA_CNT_ETH_TX_BYTES, QHCA_CNT_ETH_TX_ERR,
    };

    REQUIRE(a->g->num_sent == b->g->num_sent);
    for (unsigned i = 0; i < a->g->num_sent; i++) {
        REQUIRE(a->g->sent[i].len == b->g->sent[i].len);
        REQUIRE(!memcmp(a->g->sent[i].data, b->g->sent[i].data,
                        a->g->sent[i].len));
    }
    for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
        REQUIRE(counter(a->g, counters[i]) == counter(b->g, counters[i]));
    }
}

static void segments(void)
{
    uint64_t left = seed_from_env("FUZZ_ITERATIONS", 3000);
    uint64_t seed = seed_from_env("FUZZ_SEED", 1), rng;
    struct tso whole = tso_start(false, false), cut = tso_start(false, false);
    unsigned good = 0;

    tap_note("replay: FUZZ_SEED=%llu FUZZ_ITERATIONS=%llu test_fuzz_segments",
             (unsigned long long)seed, (unsigned long long)left);
    whole.g->take_long = take;
    offered = 0;
    guest_fill(cut.g, cut.mem, WHOLE, 1);
    guest_fill(whole.g, whole.mem, WHOLE, 1);
    for (; left > 0; left--, seed++) {
        struct qhca_cqe a, b;
        struct segment s;
        bool blocked;

        rng = seed * 0x9e3779b97f4a7c15u + 1;
        tap_seed(seed);
        s = some_segment(&rng);
        blocked = one_in(&rng, 8);
        a = run(&whole, &s, blocked);
        b = run(&cut, &s, blocked);
        REQUIRE(a.status == b.status && a.byte_len == b.byte_len);
        compare(&whole, &cut);
        good += a.status == QHCA_WC_SUCCESS;
    }
    tap_note("%u were sent, of these %u whole", good, offered);
    CHECK(good > 0 && offered > good / 9);
}

static const struct test tests[] = {
    { "segments that are cut here or there", segments },
};

int main(int argc, char **argv)
{
    harness_verify(VERIFY_SOMETIMES);
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
