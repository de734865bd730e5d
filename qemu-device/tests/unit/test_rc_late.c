/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC responder, when what was missing comes while the
 * NAK that asks for it waits to leave.
 */
#include "harness/scripted.h"

#define PSN     0x222222u       /* rq_psn of RC_OPTS */
#define MTU     1024

/* Two receive WRs, and answers to duplicates in front of all that come. */
static void answers_wait(void)
{
    start_responder(&RC_OPTS, QHCA_QPS_RTR);
    rc_recv(&qp, 0, 0, 100);
    rc_recv(&qp, 1, 0, 100);
    g->net_blocked = true;
    for (unsigned i = 0; i < 130; i++) {
        inject(RC_SEND_ONLY, PSN - 1, 1);
    }
}

/* All answers leave; the last one is still to be looked at. */
static void answers_leave(void)
{
    struct roce_packet p;

    guest_unblock(g);
    while (g->num_sent > 1) {
        CHECK(peer_next(&qp, &p) && p.psn == ((PSN - 1) & PSN_MASK));
    }
}

/*
 * A NAK that waits asks for the request after the one that has come late, and
 * is then the only one for the gap behind it.
 */
static void test_late(void)
{
    answers_wait();
    inject(RC_SEND_ONLY, PSN + 1, 1);
    inject(RC_SEND_ONLY, PSN, 1);
    answers_leave();
    expect_nak(AETH_NAK_SEQ, PSN + 1);
    rc_expect(&qp.rcq, 0, 0);
    inject(RC_SEND_ONLY, PSN + 2, 1);
    peer_expect_none(&qp);                                      /* D-020 */
}

/* The early packet has come again: the NAK has nothing left to ask for. */
static void test_all_late(void)
{
    answers_wait();
    inject(RC_SEND_ONLY, PSN + 1, 1);
    inject(RC_SEND_ONLY, PSN, 1);
    inject(RC_SEND_ONLY, PSN + 1, 1);
    rc_expect(&qp.rcq, 0, 0);
    rc_expect(&qp.rcq, 1, 0);
    answers_leave();
    expect_ack(PSN + 1, 2);
}

/* A READ takes the place of the NAK, which comes behind its response. */
static void test_late_read(void)
{
    struct roce_packet p;

    answers_wait();
    inject(RC_SEND_ONLY, PSN + 1, 1);
    p = request(RC_READ_REQUEST, PSN, 0, 8);
    peer_inject(&qp, &p, NULL, 0);
    guest_unblock(g);
    while (g->num_sent > 2) {
        CHECK(peer_next(&qp, &p) && p.psn == ((PSN - 1) & PSN_MASK));
    }
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN);
    expect_nak(AETH_NAK_SEQ, PSN + 1);
    inject(RC_SEND_ONLY, PSN + 2, 1);
    peer_expect_none(&qp);                                      /* D-020 */
}

/* An answer to a duplicate does not keep the NAK from moving on. */
static void test_late_replay(void)
{
    struct roce_packet p[2] = { 0 };

    start_responder(&RC_OPTS, QHCA_QPS_RTR);
    for (unsigned i = 0; i < 2; i++) {
        p[i] = request(RC_READ_REQUEST, PSN + i, 0, 8);
        peer_inject(&qp, &p[i], NULL, 0);
        peer_expect(&qp, RC_READ_RESP_ONLY, PSN + i);
    }
    rc_recv(&qp, 0, 0, 100);
    g->net_blocked = true;
    for (unsigned i = 0; i < 130; i++) {
        peer_inject(&qp, &p[0], NULL, 0);
    }
    inject(RC_SEND_ONLY, PSN + 3, 1);
    peer_inject(&qp, &p[1], NULL, 0);
    inject(RC_SEND_ONLY, PSN + 2, 1);
    rc_expect(&qp.rcq, 0, 0);
    guest_unblock(g);
    while (g->num_sent > 2) {
        CHECK(peer_next(&qp, &p[0]) && p[0].psn == PSN);
    }
    peer_expect(&qp, RC_READ_RESP_ONLY, PSN + 1);
    expect_nak(AETH_NAK_SEQ, PSN + 3);
    peer_expect_none(&qp);
}

/* The NAK moves on even if the late packet asks for no answer. */
static void test_late_first(void)
{
    struct roce_packet p;

    answers_wait();
    inject(RC_SEND_ONLY, PSN + 1, 1);
    p = request(RC_WRITE_FIRST, PSN, 0, 2 * MTU);
    p.ackreq = false;
    peer_inject(&qp, &p, data, MTU);
    answers_leave();
    expect_nak(AETH_NAK_SEQ, PSN + 1);
    inject(RC_SEND_ONLY, PSN + 2, 1);
    peer_expect_none(&qp);                                      /* D-020 */
}

/* If an RNR NAK need not leave, a NAK asks for the packets behind it. */
static void test_late_ready(void)
{
    static const struct {
        uint8_t op;
        uint16_t len;
        bool ackreq;
    } c[] = { { RC_SEND_ONLY, 8, true }, { RC_SEND_FIRST, MTU, false } };
    struct roce_packet p;

    for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
        answers_wait();
        inject(RC_SEND_ONLY, PSN, 1);
        inject(RC_SEND_ONLY, PSN + 1, 1);
        p = peer_packet(&qp, c[i].op, PSN + 2);
        p.ackreq = c[i].ackreq;
        peer_inject(&qp, &p, data, c[i].len);           /* no receive WR */
        inject(RC_SEND_ONLY, PSN + 3, 1);
        rc_recv(&qp, 2, 0, 2 * MTU);
        peer_inject(&qp, &p, data, c[i].len);
        answers_leave();
        expect_nak(AETH_NAK_SEQ, PSN + 3);
        CHECK_EQ(counter(g, QHCA_CNT_TX_RNR_NAK), 0);
    }
}

/* ---- what it costs the requester ---- */

static struct {
    size_t len;
    uint8_t data[MAX_FRAME];
} caught[16];
static unsigned num_caught;

static bool catch(struct net *n, unsigned from, uint8_t *frame, size_t len)
{
    (void)n;
    if (from == 0 && num_caught < ARRAY_SIZE(caught)) {
        caught[num_caught].len = len;
        memcpy(caught[num_caught++].data, frame, len);
        return false;
    }
    return true;
}

/*
 * Two machines. The packets that @qp, which retries once, sends for @n WRs are
 * caught: @first, of @len bytes, and WRITEs.
 */
static void catch_wrs(unsigned n, uint8_t first, uint32_t len)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    o.retry = 1;
    start_net(&o, false);
    num_caught = 0;
    net->filter = catch;
    for (unsigned i = 0; i < n; i++) {
        wr = rc_wr(&qp, i ? QHCA_WR_RDMA_WRITE : first, 0, i ? 8 : len);
        rc_aim(&wr, &there, 0);
        wr.wr_id = i;
        rc_put(&qp, &wr);
    }
    rc_ring(&qp);
}

/* Packet @i arrives; @more: others do so at the same time. */
static void arrive(unsigned i, bool more)
{
    net->filter = NULL;
    (more ? guest_rx_more : guest_rx)(there.g, caught[i].data, caught[i].len);
}

/* All @n WRs complete with success. */
static void expect_done(unsigned n)
{
    net_run(net, 1000000000);
    for (unsigned i = 0; i < n; i++) {
        rc_expect(&qp.scq, i, QHCA_WC_SUCCESS);
    }
}

/*
 * A machine that stands still for longer than a time-out gets two requests
 * twice, but for one that is lost. One retry is enough.
 */
static void test_pause(void)
{
    static const uint8_t first[] = { QHCA_WR_RDMA_WRITE, QHCA_WR_RDMA_READ };

    for (unsigned j = 0; j < ARRAY_SIZE(first); j++) {
        catch_wrs(2, first[j], 8);
        net_advance(net, 5000000);      /* the time-out is 4.2 ms */
        REQUIRE(num_caught == 4);
        for (unsigned i = 1; i < num_caught; i++) {     /* the first is lost */
            arrive(i, i + 1 < num_caught);
        }
        expect_done(2);
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
    }
}

/* So with a message of four packets; the NAK leaves before the rest comes. */
static void test_pause_within(void)
{
    catch_wrs(1, QHCA_WR_RDMA_WRITE, 4 * MTU);
    net_advance(net, 5000000);
    REQUIRE(num_caught == 8);
    for (unsigned i = 1; i < num_caught; i++) {
        arrive(i, i < 4);
    }
    expect_done(1);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 1);
}

/* Two requests that overtake each other cost one retry, not two. */
static void test_swapped(void)
{
    static const unsigned order[] = { 1, 0, 2, 3 };

    catch_wrs(ARRAY_SIZE(order), QHCA_WR_RDMA_WRITE, 8);
    REQUIRE(num_caught == ARRAY_SIZE(order));
    for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
        arrive(order[i], i == 0);
    }
    expect_done(ARRAY_SIZE(order));
    CHECK_EQ(counter(g, QHCA_CNT_RX_NAK_SEQ), 1);
}

static const struct test tests[] = {
    { "D-020 what was missing comes before the NAK has left", test_late },
    { "D-020 what came too early comes again before the NAK has left",
      test_all_late },
    { "D-020 what was missing is a READ", test_late_read },
    { "D-020 a duplicate comes before what was missing", test_late_replay },
    { "D-020 what was missing asks for no answer", test_late_first },
    { "D-020 D-030 a receive WR comes before the RNR NAK has left",
      test_late_ready },
    { "a pause longer than a time-out costs one retry", test_pause },
    { "a pause within a message costs one retry", test_pause_within },
    { "two requests that overtake each other cost one retry", test_swapped },
};

TEST_MAIN(tests)
