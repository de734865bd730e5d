/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of the frames and bytes that flow rules have been applied to.
 */
#include "harness/flows.h"
#include "harness/snapshot.h"

#define BUFS    4u

static struct node n;
static struct rc_qp q;
static struct eth_rx rx;

/* An Ethernet queue with room, and a QP with room for BUFS frames. */
static void start(void)
{
    n = node_new(NULL, 1);
    port_enable(n.g, test_mac, 0, 1500);
    rx = eth_rx_create(n.g, &n.comp, 6, 1600);
    q = flow_qp(&n);
    for (unsigned i = 0; i < BUFS; i++) {
        flow_recv(&q, i, 1600);
    }
}

/* Adds @r for UDP port @dport. */
static uint32_t add(struct qhca_flow r, unsigned dport)
{
    flow_match_udp(&r, dport);
    return flow_add(n.g, &r);
}

static void receive(const struct frame *f, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        guest_rx(n.g, f->data, f->len);
    }
}

/* Whether rule @number has been applied to @frames of @len bytes. */
static bool counted(uint32_t number, unsigned frames, size_t len)
{
    struct qhca_flow_counts c = flow_counts(n.g, number);

    return le64toh(c.frames) == frames && le64toh(c.bytes) == frames * len;
}

/* Whether or not there is room. */
static void received(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    uint32_t number;

    start();
    number = add(flow_rule(&q), 7);
    CHECK(counted(number, 0, 0));
    receive(&f, 1);
    CHECK(counted(number, 1, f.len));
    receive(&f, BUFS + 2);
    CHECK(counted(number, BUFS + 3, f.len));
}

static void dropped(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 300);
    struct frame other = udp_frame(test_mac, 1, 2, 8, 100);
    uint32_t number;

    start();
    number = add(flow_rule(NULL), 7);
    receive(&f, 2);
    receive(&other, 1);
    CHECK(counted(number, 2, f.len));
}

/* All rules for a frame to a group are applied to it, and one for another. */
static void several(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100), all = f;
    uint32_t first, second;

    start();
    all.data[0] |= 1;
    first = add(flow_rule(&q), 7);
    second = add(flow_rule(&q), 7);
    receive(&f, 1);
    CHECK(counted(first, 1, f.len) && counted(second, 0, 0));
    receive(&all, 1);
    CHECK(counted(first, 2, f.len) && counted(second, 1, f.len));
}

/* Also if the queue is not there. */
static void of_the_card(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r = {
        .action = QHCA_FLOW_QUEUE, .order = QHCA_FLOW_ETH,
    };
    uint32_t here, nowhere, gone;

    start();
    here = add(r, 7);
    r.target = htole32(1);
    nowhere = add(r, 8);
    r = (struct qhca_flow) { .order = QHCA_FLOW_ETH };
    gone = add(r, 9);
    receive(&f, 2);
    f = udp_frame(test_mac, 1, 2, 8, 100);
    receive(&f, 3);
    f = udp_frame(test_mac, 1, 2, 9, 100);
    receive(&f, 4);
    CHECK(counted(here, 2, f.len) && counted(nowhere, 3, f.len));
    CHECK(counted(gone, 4, f.len));
}

static void stays(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 7, 100);
    struct qhca_flow r;
    uint32_t number;

    start();
    number = add(flow_rule(&q), 7);
    receive(&f, 3);
    snapshot_cycle(n.g);
    CHECK(counted(number, 3, f.len));
    /* A rule in its place begins anew. */
    r = flow_rule(&q);
    flow_match_udp(&r, 7);
    CHECK_EQ(flow_replace(n.g, &r, number), QHCA_OK);
    CHECK(counted(number, 0, 0));
}

static void none(void)
{
    struct qhca_flow_counts c;
    uint32_t number;

    start();
    number = add(flow_rule(&q), 7);
    CHECK_EQ(flow_destroy(n.g, number), QHCA_OK);
    CHECK_EQ(guest_query(n.g, QHCA_CMD_QUERY_FLOW, number, &c, sizeof(c)),
             QHCA_ERR_OBJ);
}

static const struct test tests[] = {
    { "frames of a QP", received },
    { "frames that are dropped", dropped },
    { "several rules for a frame", several },
    { "rules of the Ethernet queues", of_the_card },
    { "counts are saved, and not handed on", stays },
    { "a rule that does not exist", none },
};

TEST_MAIN(tests)
