/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow rules and spreads: who receives which frames.
 */
#include "harness/debug.h"
#include "harness/fields.h"
#include "harness/flows.h"
#include "harness/snapshot.h"

#define QPS     4u
#define BUFS    8u

static const uint8_t far_mac[6] = { 0x52, 0x54, 0, 9, 9, 9 };
static const uint8_t group[6] = { 0x01, 0, 0x5e, 1, 1, 1 };

static struct node n;
static struct rc_qp q[QPS];
static struct eth_rx rx;

/* Ethernet queue 0, and QPs with receive buffers. */
static void start(void)
{
    n = node_new(NULL, 1);
    port_enable(n.g, test_mac, 0, 1500);
    rx = eth_rx_create(n.g, &n.comp, 6, 1600);
    for (unsigned i = 0; i < QPS; i++) {
        q[i] = flow_qp(&n);
        for (unsigned k = 0; k < BUFS; k++) {
            flow_recv(&q[i], i * BUFS + k, 1600);
        }
    }
}

/* Receives @f; returns a bit for each QP that gets it, QPS: the card. */
static unsigned who(const struct frame *f)
{
    struct qhca_cqe cqe;
    unsigned got = 0;

    guest_rx(n.g, f->data, f->len);
    for (unsigned i = 0; i < QPS; i++) {
        if (cq_poll(&q[i].rcq, &cqe)) {
            CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
            CHECK_EQ(le32toh(cqe.byte_len), f->len);
            rc_recv(&q[i], le64toh(cqe.wr_id),
                    FLOW_RECV + (le64toh(cqe.wr_id) - 100) * FLOW_STEP, 1600);
            got |= 1u << i;
        }
    }
    if (cq_poll(&rx.cq, &cqe)) {
        rx.cq.ci--;
        eth_rx_refill(&rx);
        got |= 1u << QPS;
    }
    return got;
}

#define CARD    (1u << QPS)

static void one_rule(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct frame other = udp_frame(test_mac, 1, 2, 8, 100);
    struct frame afar = udp_frame(far_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    uint32_t number;

    start();
    CHECK_EQ(who(&f), CARD);
    CHECK_EQ(who(&afar), 0);
    r = flow_rule(&q[0]);
    flow_match_udp(&r, 7);
    number = flow_add(n.g, &r);
    CHECK_EQ(who(&f), 1);
    CHECK_EQ(who(&other), CARD);
    CHECK_EQ(who(&afar), 1);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_ERR_OBJ);
    CHECK_EQ(who(&f), CARD);
}

/* The smallest priority wins, then age; whatever order they are made in. */
static void priorities(void)
{
    static const unsigned order[][3] = { { 5, 3, 9 }, { 9, 5, 3 },
                                         { 3, 9, 5 } };
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    uint32_t made[3];

    for (unsigned o = 0; o < ARRAY_SIZE(order); o++) {
        start();
        for (unsigned i = 0; i < 3; i++) {
            r = flow_rule(&q[i]);
            r.priority = htole32(order[o][i]);
            made[i] = flow_add(n.g, &r);
        }
        for (unsigned p = 3; p < 10; p += p == 3 ? 2 : 4) {
            for (unsigned i = 0; i < 3; i++) {
                if (order[o][i] == p) {
                    CHECK_EQ(who(&f), 1u << i);
                    CHECK_EQ(flow_destroy(n.g, made[i]), QHCA_OK);
                }
            }
        }
        CHECK_EQ(who(&f), CARD);
    }
    start();
    for (unsigned i = 0; i < 3; i++) {
        r = flow_rule(&q[2 - i]);
        made[i] = flow_add(n.g, &r);
    }
    CHECK_EQ(who(&f), 4);
    CHECK_EQ(flow_destroy(n.g, made[0]), QHCA_OK);
    CHECK_EQ(who(&f), 2);
}

/* Groups: all rules of the best priority, and the card if it is a member. */
static void groups(void)
{
    struct frame f = udp_frame(group, 1, 2, 7, 100);
    struct qhca_flow r;

    start();
    for (unsigned i = 0; i < QPS; i++) {
        r = flow_rule(&q[i]);
        r.priority = htole32(i / 2);
        flow_match_dmac(&r, &f);
        flow_add(n.g, &r);
    }
    CHECK_EQ(who(&f), 3);
    port_enable(n.g, test_mac, QHCA_PORT_ALLMULTI, 1500);
    CHECK_EQ(who(&f), 3 | CARD);
    r = flow_rule(NULL);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), 3);       /* it is the last of the best */
}

static void dropping(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct frame all = udp_frame(group, 1, 2, 7, 100);
    struct qhca_flow r;

    start();
    port_enable(n.g, test_mac, QHCA_PORT_ALLMULTI, 1500);
    r = flow_rule(NULL);
    flow_match_udp(&r, 7);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), 0);
    CHECK_EQ(who(&all), 0);
    r = flow_rule(&q[0]);
    r.priority = htole32(1);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), 0);
    r.priority = 0;             /* as good as the first, and younger */
    flow_add(n.g, &r);
    CHECK_EQ(who(&all), 0);
}

/* Rules for frames that the card does not want. */
static void the_rest(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct frame afar = udp_frame(far_mac, 1, 2, 7, 100);
    struct qhca_flow r;

    start();
    r = flow_rule(&q[0]);
    r.order = QHCA_FLOW_REST;
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), CARD);
    CHECK_EQ(who(&afar), 1);
    r = flow_rule(&q[1]);
    r.priority = htole32(9);
    flow_match_dmac(&r, &afar);
    flow_add(n.g, &r);
    CHECK_EQ(who(&afar), 2);
    /* Only the first kind sends a QP's frames back to the port. */
    flow_send(&q[3], &f, 0, QHCA_WC_SUCCESS);
    CHECK_EQ(n.g->num_sent, 1);
}

/* Every field of the key, alone: a frame with it, and one with another. */
static void fields(void)
{
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    struct frame four = udp_frame(test_mac, 1, 2, 7, 100), six, tag;
    struct qhca_flow_key seen;
    const uint8_t *bytes = (const uint8_t *)&seen;
    const struct frame *all[] = { &four, &six, &tag };

    start();
    four.data[15] = 0x28;       /* TOS */
    four.data[20] = 0x40;       /* do not fragment */
    six = udp6_frame(test_mac, v6, 7, 100);
    six.data[14] = 0x62;
    six.data[15] = 0x81;
    six.data[16] = 0x23;
    tag = four;
    frame_add_vlan(&tag, 0x6123);
    for (unsigned k = 0; k < ARRAY_SIZE(all); k++) {
        vhca_flow_parse(&seen, all[k]->data, all[k]->len);
        for (unsigned bit = 0; bit < 8 * sizeof(seen) - 24; bit++) {
            struct qhca_flow r = flow_rule(&q[0]);
            uint32_t number;
            unsigned want = bytes[bit / 8] >> bit % 8 & 1;

            ((uint8_t *)&r.mask)[bit / 8] = (uint8_t)(1u << bit % 8);
            ((uint8_t *)&r.key)[bit / 8] = (uint8_t)(want << bit % 8);
            number = flow_add(n.g, &r);
            CHECK_EQ(who(all[k]), 1);
            CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
            ((uint8_t *)&r.key)[bit / 8] ^= (uint8_t)(1u << bit % 8);
            number = flow_add(n.g, &r);
            CHECK_EQ(who(all[k]), CARD);
            CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
        }
    }
}

/* The key of a frame, against what the frame was made of. */
static void parsed(void)
{
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow_key k;

    f.data[15] = 0x28;
    f.data[20] = 0x60;
    frame_add_vlan(&f, 0x6123);
    vhca_flow_parse(&k, f.data, f.len);
    CHECK(!memcmp(k.dmac, test_mac, 6));
    CHECK_EQ(be16toh(k.vlan_tci), 0x6123);
    CHECK_EQ(be16toh(k.ethertype), 0x0800);
    CHECK_EQ(k.headers, QHCA_FLOW_HAS_VLAN | QHCA_FLOW_HAS_IPV4);
    CHECK_EQ(k.proto, 17);
    CHECK_EQ(k.tclass, 0x28);
    CHECK_EQ(k.ttl, 64);
    CHECK_EQ(k.ip_flags, QHCA_FLOW_DONT_FRAG | QHCA_FLOW_MORE_FRAGS);
    CHECK(!memcmp(k.src, "\x0a\0\0\1", 4) && !memcmp(k.dst, "\x0a\0\0\2", 4));
    CHECK_EQ(k.dport, 0);       /* a fragment */
    f.data[24] = 0;
    vhca_flow_parse(&k, f.data, f.len);
    CHECK_EQ(be16toh(k.dport), 7);
    CHECK_EQ(be16toh(k.sport), 0xc123);
    CHECK_EQ(k.headers, QHCA_FLOW_HAS_VLAN | QHCA_FLOW_HAS_IPV4 |
                        QHCA_FLOW_HAS_UDP);
    f = udp6_frame(test_mac, v6, 7, 100);
    f.data[14] = 0x62;
    f.data[15] = 0x81;
    f.data[16] = 0x23;
    f.data[17] = 0x45;
    vhca_flow_parse(&k, f.data, f.len);
    CHECK_EQ(k.headers, QHCA_FLOW_HAS_IPV6 | QHCA_FLOW_HAS_UDP);
    CHECK_EQ(k.tclass, 0x28);
    CHECK_EQ(be32toh(k.flow_label), 0x12345);
    CHECK(!memcmp(k.dst, v6, 16));
    CHECK_EQ(be16toh(k.dport), 7);
    /* However short the frame is, nothing is read behind its end. */
    for (size_t len = f.len; len >= 14; len--) {
        uint8_t *copy = malloc(len);

        REQUIRE(copy);
        memcpy(copy, f.data, len);
        vhca_flow_parse(&k, copy, len);
        free(copy);
    }
    CHECK_EQ(k.headers, 0);
}

static void hostile(void)
{
    struct qhca_flow good, r;
    struct rc_opts o = RC_OPTS;
    struct rc_qp rc;
    uint32_t number;

    start();
    rc = rc_create(&n, &o);
    good = flow_rule(&q[0]);
    flow_match_udp(&good, 7);
#define TRY(change, status) \
    do { \
        r = good; \
        change; \
        CHECK_EQ(flow_create(n.g, &r, &number), status); \
    } while (0)
    TRY(r.mask.dport = 0, QHCA_ERR_PARAM);
    TRY(r.key.smac[3] = 1, QHCA_ERR_PARAM);
    TRY(r.action = 3, QHCA_ERR_PARAM);
    TRY(r.order = 2, QHCA_ERR_PARAM);
    TRY(r.rsvd[1] = 1, QHCA_ERR_PARAM);
    TRY(r.mask.rsvd[2] = 1, QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_DROP, QHCA_ERR_PARAM);
    TRY(r.priority = htole32(65536), QHCA_ERR_LIMIT);
    TRY(r.target = 0, QHCA_ERR_OBJ);
    TRY(r.target = htole32(rc.qpn), QHCA_ERR_OBJ);
    TRY(r.target = htole32(q[0].qpn | 1u << 24), QHCA_ERR_OBJ);
    TRY(r.action = QHCA_FLOW_SPREAD, QHCA_ERR_OBJ);
    TRY(r.priority = htole32(65535), QHCA_OK);
#undef TRY
    for (unsigned i = 1; i < QHCA_FLOW_MAX; i++) {
        flow_add(n.g, &good);
    }
    CHECK_EQ(flow_create(n.g, &good, &number), QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(rc_destroy(&q[0]), QHCA_ERR_BUSY);
    CHECK_EQ(rc_destroy(&q[1]), QHCA_OK);
}

/* ---- spreads ---- */

static struct qhca_spread even(unsigned log)
{
    struct qhca_spread s = { .log_size = (uint8_t)log };

    s.types = htole32(QHCA_RSS_IPV4 | QHCA_RSS_UDPV4);
    for (unsigned i = 0; i < sizeof(s.key); i++) {
        s.key[i] = (uint8_t)(i * 37 + 11);
    }
    for (unsigned i = 0; i < 1u << log; i++) {
        s.qpn[i] = htole32(q[i % QPS].qpn);
    }
    return s;
}

static void spreading(void)
{
    struct qhca_flow r = { .action = QHCA_FLOW_SPREAD };
    struct frame arp = udp_frame(test_mac, 1, 2, 7, 100);
    unsigned seen[QPS] = { 0 };
    uint32_t number, rule;
    struct qhca_spread s;

    start();
    s = even(3);
    REQUIRE(spread_create(n.g, &s, &number) == QHCA_OK);
    r.target = htole32(number);
    rule = flow_add(n.g, &r);
    for (unsigned i = 0; i < 100; i++) {
        struct frame f = udp_frame(test_mac, 1, 2, 1000 + i, 100);
        uint32_t hash = 0;

        CHECK(vhca_frame_hash(s.key, le32toh(s.types), f.data, f.len, &hash));
        CHECK_EQ(who(&f), 1u << hash % 8 % QPS);
        seen[hash % 8 % QPS]++;
        if (i == 50) {
            snapshot_cycle(n.g);
        }
    }
    CHECK(seen[0] && seen[1] && seen[2] && seen[3]);
    arp.data[13] = 6;
    CHECK_EQ(who(&arp), 1);
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_SPREAD, number),
             QHCA_ERR_BUSY);
    CHECK_EQ(rc_destroy(&q[3]), QHCA_ERR_BUSY);
    CHECK_EQ(flow_destroy(n.g, rule), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_SPREAD, number), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_SPREAD, number), QHCA_ERR_OBJ);
    CHECK_EQ(rc_destroy(&q[3]), QHCA_OK);
}

static void bad_spreads(void)
{
    struct qhca_spread s;
    uint32_t number, i;

    start();
    s = even(3);
    s.types = htole32(0x40);
    CHECK_EQ(spread_create(n.g, &s, &number), QHCA_ERR_PARAM);
    s = even(3);
    s.log_size = QHCA_SPREAD_LOG_MAX + 1;
    CHECK_EQ(spread_create(n.g, &s, &number), QHCA_ERR_LIMIT);
    s.log_size = 255;
    CHECK_EQ(spread_create(n.g, &s, &number), QHCA_ERR_LIMIT);
    s = even(3);
    s.qpn[7] = 0;
    CHECK_EQ(spread_create(n.g, &s, &number), QHCA_ERR_OBJ);
    for (i = 0; i < QHCA_SPREAD_MAX; i++) {
        s = even(i % (QHCA_SPREAD_LOG_MAX + 1));
        CHECK_EQ(spread_create(n.g, &s, &number), QHCA_OK);
    }
    CHECK_EQ(spread_create(n.g, &s, &number), QHCA_ERR_NO_RESOURCE);
}

/* ---- saved states ---- */

/* A saved state keeps the order among rules of one priority. */
static void saved(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    uint32_t made[20];

    start();
    for (unsigned i = 0; i < 20; i++) {
        r = flow_rule(&q[(i * 7 + i / 3) % QPS]);
        made[i] = flow_add(n.g, &r);
    }
    for (unsigned i = 0; i < 20; i++) {
        snapshot_cycle(n.g);
        CHECK_EQ(who(&f), 1u << (i * 7 + i / 3) % QPS);
        CHECK_EQ(flow_destroy(n.g, made[i]), QHCA_OK);
    }
    CHECK_EQ(rc_destroy(&q[0]), QHCA_OK);
}

/* Rules and their order, each twisted. */
static void saved_badly(void)
{
    struct field_edit edit = { .how = FIELD_COPY };
    struct qhca_flow r;
    uint8_t *state;
    size_t len;

    start();
    for (unsigned i = 0; i < 2; i++) {
        r = flow_rule(&q[i]);
        r.priority = htole32(i);
        flow_add(n.g, &r);
    }
    /* The last two fields of that name are the order of the rules. */
    unsigned fields_of = fields_count(n.g, "transport", "rule");

    REQUIRE(fields_of >= 2);
    edit.which = fields_find(n.g, "transport", "rule", fields_of - 1);
    edit.value = fields_find(n.g, "transport", "rule", fields_of - 2);
    state = fields_save(n.g, &edit, 1, &len);
    CHECK(!snapshot_load(n.g, state, len));
    CHECK(strstr(snapshot_why(), "rule"));
}

static const struct test tests[] = {
    { "a rule", one_rule },
    { "priority, then age", priorities },
    { "frames to groups", groups },
    { "frames are dropped", dropping },
    { "what the card does not want", the_rest },
    { "each bit of the key", fields },
    { "what a frame has", parsed },
    { "hostile rules", hostile },
    { "a spread", spreading },
    { "hostile spreads", bad_spreads },
    { "saved and loaded", saved },
    { "a bad order in a state", saved_badly },
};

TEST_MAIN(tests)
