/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow rules of the Ethernet queues, and the RSS contexts that they name.
 */
#include "harness/debug.h"
#include "harness/fields.h"
#include "harness/flows.h"
#include "harness/snapshot.h"

#define QUEUES  4u
#define NOBODY  QUEUES
#define RAW_QP  (QUEUES + 1)
#define TYPES   0x3fu

static const uint8_t far_mac[6] = { 0x52, 0x54, 0, 9, 9, 9 };
static const uint8_t group[6] = { 0x01, 0, 0x5e, 1, 1, 1 };

static struct node n;
static struct rc_qp q;
static struct eth_rx rx[QUEUES];

/* Frames are spread over queues 0 and 1. */
static void start(void)
{
    struct qhca_rss rss = eth_rss_even(2);

    n = node_new(NULL, 1);
    port_enable(n.g, test_mac, 0, 1500);
    for (unsigned i = 0; i < QUEUES; i++) {
        rx[i] = eth_rx_create_at(n.g, &n.comp, i, 6, 1600);
    }
    CHECK_EQ(eth_set_rss(n.g, TYPES, &rss), QHCA_OK);
    q = flow_qp(&n);
    for (unsigned k = 0; k < 8; k++) {
        flow_recv(&q, k, 1600);
    }
}

/* A frame to UDP port @dport. */
static struct frame to_port(unsigned dport)
{
    return udp_frame(test_mac, 1, 2, dport, 100);
}

/* Receives @f; returns the only receiver: a queue, RAW_QP or NOBODY. */
static unsigned who(const struct frame *f)
{
    unsigned at = NOBODY;
    struct qhca_cqe cqe;

    guest_rx(n.g, f->data, f->len);
    for (unsigned i = 0; i < QUEUES; i++) {
        if (cq_poll(&rx[i].cq, &cqe)) {
            CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
            CHECK_EQ(at, NOBODY);
            at = i;
            rx[i].cq.ci--;              /* refill polls again */
            eth_rx_refill(&rx[i]);
        }
    }
    if (cq_poll(&q.rcq, &cqe)) {
        CHECK_EQ(at, NOBODY);
        at = RAW_QP;
    }
    return at;
}

/* A rule for UDP port @dport. */
static struct qhca_flow rule(unsigned action, unsigned target, unsigned dport)
{
    struct qhca_flow r = {
        .action = (uint8_t)action, .target = htole32(target),
        .order = QHCA_FLOW_ETH,
    };

    flow_match_udp(&r, dport);
    return r;
}

static void queues(void)
{
    struct frame f = to_port(7), other = to_port(8), all = f, tag = f;
    struct qhca_flow r;
    uint32_t number;

    start();
    memcpy(all.data, group, 6);
    frame_add_vlan(&tag, 5);
    for (unsigned i = 0; i < QUEUES; i++) {
        r = rule(QHCA_FLOW_QUEUE, i, 7);
        number = flow_add(n.g, &r);
        CHECK_EQ(who(&f), i);
        CHECK_EQ(who(&tag), i);
        CHECK(who(&other) < 2);
        CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
        CHECK(who(&f) < 2);
    }
    /* A frame to a group goes to one queue. */
    r = rule(QHCA_FLOW_QUEUE, 3, 7);
    flow_add(n.g, &r);
    r = rule(QHCA_FLOW_QUEUE, 2, 7);
    flow_add(n.g, &r);
    CHECK_EQ(who(&all), NOBODY);
    port_enable(n.g, test_mac, QHCA_PORT_ALLMULTI, 1500);
    CHECK_EQ(who(&all), 3);
}

/* A rule does not change the hash. */
static void hashes(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7);
    struct frame f = to_port(7);
    struct qhca_cqe cqe[2];

    start();
    for (unsigned i = 0; i < 2; i++) {
        guest_rx(n.g, f.data, f.len);
        for (unsigned k = 0; k < QUEUES; k++) {
            if (cq_poll(&rx[k].cq, &cqe[i])) {
                break;
            }
        }
        CHECK(le16toh(cqe[i].flags) & QHCA_CQE_HASH_L4);
        flow_add(n.g, &r);
    }
    CHECK_EQ(le32toh(cqe[1].qpn), rx[3].number);
    CHECK_EQ(cqe[0].hash, cqe[1].hash);
}

static void dropping(void)
{
    struct frame f = to_port(7), other = to_port(8);
    struct qhca_flow r = rule(QHCA_FLOW_DROP, 0, 7);

    start();
    r.priority = htole32(4);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), NOBODY);
    CHECK(who(&other) < 2);
    r = rule(QHCA_FLOW_QUEUE, 3, 7);
    r.priority = htole32(5);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), NOBODY);
    r.priority = htole32(3);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), 3);
}

/* Only frames that the card would have are asked about. */
static void what_the_card_has(void)
{
    struct frame f = to_port(7), afar = f;
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7), first, rest;
    uint32_t number;

    start();
    memcpy(afar.data, far_mac, 6);
    flow_add(n.g, &r);
    CHECK_EQ(who(&afar), NOBODY);
    rest = flow_rule(&q);
    rest.order = QHCA_FLOW_REST;
    flow_add(n.g, &rest);
    CHECK_EQ(who(&afar), RAW_QP);
    CHECK_EQ(who(&f), 3);
    first = flow_rule(&q);
    first.priority = htole32(65535);
    number = flow_add(n.g, &first);
    CHECK_EQ(who(&f), RAW_QP);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
    CHECK_EQ(who(&f), 3);
    /* Such a rule does not send the frames of a QP back to the port. */
    flow_send(&q, &f, 0, QHCA_WC_SUCCESS);
    CHECK_EQ(n.g->num_sent, 1);
}

/* ---- contexts ---- */

/* A table that has queues 2 and 3. */
static struct qhca_rss upper(void)
{
    struct qhca_rss rss = eth_rss_even(2);

    for (unsigned i = 0; i < sizeof(rss.queue); i++) {
        rss.queue[i] += 2;
    }
    return rss;
}

static void contexts(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_RSS, 5, 0);
    struct frame arp = to_port(7);
    struct qhca_rss rss = upper();
    unsigned seen[QUEUES] = { 0 };

    start();
    memset(&r.key, 0, sizeof(r.key));
    memset(&r.mask, 0, sizeof(r.mask));
    CHECK_EQ(eth_set_context(n.g, 5, TYPES, &rss), QHCA_OK);
    flow_add(n.g, &r);
    for (unsigned i = 0; i < 100; i++) {
        struct frame f = to_port(1000 + i);
        unsigned at = who(&f);

        CHECK(at < QUEUES);
        seen[at % QUEUES]++;
        if (i == 50) {
            snapshot_cycle(n.g);
        }
    }
    CHECK(!seen[0] && !seen[1] && seen[2] && seen[3]);
    arp.data[13] = 6;
    CHECK_EQ(who(&arp), 2);     /* without a hash: the first of the table */
    memset(rss.queue, 1, sizeof(rss.queue));
    CHECK_EQ(eth_set_context(n.g, 5, TYPES, &rss), QHCA_OK);
    CHECK_EQ(who(&arp), 1);
}

/* Rules with context 0 are exceptions from others. */
static void exceptions(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7);
    struct frame f = to_port(7), other = f;
    struct qhca_rss rss;

    start();
    r.priority = htole32(2);
    flow_add(n.g, &r);
    CHECK_EQ(who(&f), 3);
    r = rule(QHCA_FLOW_RSS, 0, 7);
    flow_add(n.g, &r);
    CHECK(who(&f) < 2);
    rss = upper();
    CHECK_EQ(eth_set_rss(n.g, TYPES, &rss), QHCA_OK);
    CHECK(who(&f) >= 2 && who(&f) < QUEUES);
    other.data[13] = 6;         /* without a hash: not the first of the table */
    r = rule(QHCA_FLOW_RSS, 0, 0);
    memset(&r.key, 0, sizeof(r.key));
    memset(&r.mask, 0, sizeof(r.mask));
    flow_add(n.g, &r);
    CHECK_EQ(who(&other), 0);
    CHECK_EQ(eth_set_rss(n.g, 0, NULL), QHCA_OK);       /* never busy */
    CHECK_EQ(who(&f), 0);
}

/* A rule for a queue that is gone loses frames, and each is counted. */
static void dead_queues(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7);
    struct frame f = to_port(7), other = to_port(8);
    struct qhca_rss rss = upper();

    start();
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_OK);
    flow_add(n.g, &r);
    r = rule(QHCA_FLOW_RSS, 1, 8);
    flow_add(n.g, &r);
    for (unsigned i = 2; i < QUEUES; i++) {
        CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_ETHQ, rx[i].number),
                 QHCA_OK);
    }
    CHECK_EQ(who(&f), NOBODY);
    CHECK_EQ(who(&other), NOBODY);
    CHECK_EQ(n.g->e->cnt[QHCA_CNT_ETH_RX_NO_BUF], 2);
    snapshot_cycle(n.g);
    rx[3] = eth_rx_create_at(n.g, &n.comp, 3, 6, 1600);
    CHECK_EQ(who(&f), 3);
}

static void hostile(void)
{
    struct qhca_flow good = rule(QHCA_FLOW_QUEUE, 1, 7), r;
    struct qhca_rss rss = upper();
    uint32_t number;

    start();
#define TRY(change, status) \
    do { \
        r = good; \
        change; \
        CHECK_EQ(flow_create(n.g, &r, &number), status); \
    } while (0)
    TRY(r.target = htole32(n.g->e->cfg.eth_queues), QHCA_ERR_LIMIT);
    TRY(r.target = htole32(256), QHCA_ERR_LIMIT);
    TRY(r.target = htole32(~0u), QHCA_ERR_LIMIT);
    TRY(r.tag = htole32(1), QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_QP, QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_SPREAD, QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_RSS + 1, QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_DROP, QHCA_ERR_PARAM);
    TRY(r.order = QHCA_FLOW_ETH + 1, QHCA_ERR_PARAM);
    TRY(r.order = QHCA_FLOW_FIRST, QHCA_ERR_PARAM);
    TRY(r.order = QHCA_FLOW_REST, QHCA_ERR_PARAM);
    TRY(r.action = QHCA_FLOW_RSS, QHCA_ERR_OBJ);
    good.action = QHCA_FLOW_RSS;
    TRY(r.target = htole32(QHCA_RSS_CONTEXTS), QHCA_ERR_OBJ);
    TRY(r.target = htole32(QHCA_RSS_CONTEXTS + 1), QHCA_ERR_OBJ);
    TRY(r.target = htole32(1u << 16), QHCA_ERR_OBJ);
    CHECK_EQ(eth_set_context(n.g, QHCA_RSS_CONTEXTS, TYPES, &rss), QHCA_OK);
    TRY(r.target = htole32(QHCA_RSS_CONTEXTS), QHCA_OK);
#undef TRY
    CHECK_EQ(eth_set_context(n.g, QHCA_RSS_CONTEXTS, 0, NULL), QHCA_ERR_BUSY);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
    CHECK_EQ(eth_set_context(n.g, QHCA_RSS_CONTEXTS, 0, NULL), QHCA_OK);
    CHECK_EQ(eth_set_context(n.g, QHCA_RSS_CONTEXTS + 1, TYPES, &rss),
             QHCA_ERR_LIMIT);
    CHECK_EQ(eth_set_context(n.g, ~0u, 0, NULL), QHCA_ERR_LIMIT);
    CHECK_EQ(eth_set_context(n.g, 1, TYPES + 1, &rss), QHCA_ERR_PARAM);
    rss.queue[127] = (uint8_t)n.g->e->cfg.eth_queues;
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_ERR_OBJ);
}

/* A rule in place of another, which needs no room of its own. */
static void replaced(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7), last;
    struct frame f = to_port(7), other = to_port(8);
    struct qhca_rss rss = upper();
    uint32_t number, none;

    start();
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_OK);
    number = flow_add(n.g, &r);
    last = rule(QHCA_FLOW_QUEUE, 0, 9);
    last.priority = htole32(1);
    for (unsigned i = 1; i < QHCA_FLOW_MAX; i++) {
        flow_add(n.g, &last);
    }
    CHECK_EQ(flow_create(n.g, &last, &none), QHCA_ERR_NO_RESOURCE);
    r = rule(QHCA_FLOW_QUEUE, 2, 7);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_OK);
    /* A replacement that is refused leaves the rule that there was. */
    r = rule(QHCA_FLOW_RSS, 2, 7);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_ERR_OBJ);
    CHECK_EQ(who(&f), 2);
    r = rule(QHCA_FLOW_RSS, 1, 8);
    r.priority = htole32(2);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_OK);
    CHECK(who(&f) != 2 && who(&other) >= 2);
    CHECK_EQ(eth_set_context(n.g, 1, 0, NULL), QHCA_ERR_BUSY);
    snapshot_cycle(n.g);
    r = rule(QHCA_FLOW_DROP, 0, 8);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_OK);
    CHECK_EQ(eth_set_context(n.g, 1, 0, NULL), QHCA_OK);
    CHECK_EQ(who(&other), NOBODY);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_ERR_OBJ);
}

/* A rule of a QP becomes one of a receive queue; the QP is in use no more. */
static void replaced_order(void)
{
    struct qhca_flow r;
    struct frame f = to_port(7);
    uint32_t number;

    start();
    r = flow_rule(&q);
    number = flow_add(n.g, &r);
    CHECK_EQ(who(&f), RAW_QP);
    r = rule(QHCA_FLOW_QUEUE, 3, 7);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_OK);
    CHECK_EQ(who(&f), 3);
    CHECK_EQ(guest_cmd_obj(n.g, QHCA_CMD_DESTROY_QP, q.qpn), QHCA_OK);
}

static void reset(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_RSS, 1, 7);
    struct qhca_rss rss = upper();
    uint32_t number;

    start();
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_OK);
    flow_add(n.g, &r);
    start();
    CHECK_EQ(flow_create(n.g, &r, &number), QHCA_ERR_OBJ);
    CHECK_EQ(eth_set_context(n.g, 1, 0, NULL), QHCA_OK);
}

/* Rules of all orders, of which each keeps its place. */
static void saved(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_QUEUE, 3, 7), first;
    struct qhca_rss rss = upper();
    struct frame f = to_port(7);
    uint32_t made[3];

    start();
    CHECK_EQ(eth_set_context(n.g, 2, TYPES, &rss), QHCA_OK);
    made[2] = flow_add(n.g, &r);
    first = flow_rule(&q);
    made[0] = flow_add(n.g, &first);
    r = rule(QHCA_FLOW_QUEUE, 2, 7);
    r.priority = htole32(1);
    flow_add(n.g, &r);
    snapshot_cycle(n.g);
    CHECK_EQ(who(&f), RAW_QP);
    CHECK_EQ(flow_destroy(n.g, made[0]), QHCA_OK);
    snapshot_cycle(n.g);
    CHECK_EQ(who(&f), 3);
    CHECK_EQ(flow_destroy(n.g, made[2]), QHCA_OK);
    snapshot_cycle(n.g);
    CHECK_EQ(who(&f), 2);
}

/* States whose rule names a context that cannot be, or is not there. */
static void saved_badly(void)
{
    struct qhca_flow r = rule(QHCA_FLOW_RSS, 1, 7);
    struct field_edit edit = { .how = FIELD_SET };
    struct qhca_rss rss = upper();
    uint8_t *state;
    size_t len;

    start();
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_OK);
    flow_add(n.g, &r);
    edit.which = fields_find(n.g, "eth", "types", 1);
    edit.value = 0x40;
    state = fields_save(n.g, &edit, 1, &len);
    CHECK(!snapshot_load(n.g, state, len));
    CHECK(strstr(snapshot_why(), "types"));

    start();
    CHECK_EQ(eth_set_context(n.g, 1, TYPES, &rss), QHCA_OK);
    flow_add(n.g, &r);
    n.g->e->eth->rss[1].types = 0;
    state = snapshot_save(n.g, &len);
    CHECK(!snapshot_load(n.g, state, len));
    CHECK(strstr(snapshot_why(), "rule"));
}

static const struct test tests[] = {
    { "to a queue", queues },
    { "the hash is there anyway", hashes },
    { "frames are dropped", dropping },
    { "before and after the rules of QPs", what_the_card_has },
    { "a context", contexts },
    { "exceptions", exceptions },
    { "queues that do not exist", dead_queues },
    { "hostile rules and contexts", hostile },
    { "after a reset", reset },
    { "in place of another", replaced },
    { "in place of a QP's", replaced_order },
    { "saved and loaded", saved },
    { "a bad context in a state", saved_badly },
};

TEST_MAIN(tests)
