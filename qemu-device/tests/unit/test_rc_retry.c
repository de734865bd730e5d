/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC requester against a scripted peer: what it
 * retransmits and when, to the nanosecond.
 */
#include "harness/scripted.h"
#include "tables.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define T(code)     (4096ull << (code))

static void test_timeout(void)
{
    for (uint8_t retry = 0; retry <= 7; retry++) {
        struct rc_opts o = RC_OPTS;

        o.timeout = retry + 4;
        o.retry = retry;
        start_alone(&o);
        post(QHCA_WR_SEND, 5);
        for (unsigned i = 0; i <= retry; i++) {
            peer_expect(&qp, RC_SEND_ONLY, PSN);
            guest_advance(g, T(o.timeout) - 1);
            peer_expect_none(&qp);
            rc_expect_none(&qp.scq);
            guest_advance(g, 1);
        }
        done(0, QHCA_WC_RETRY_EXC_ERR);
        expect_dead();
        CHECK_EQ(counter(g, QHCA_CNT_RETRY_EXC), 1);
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), retry + 1);
    }
}

static void test_no_timeout(void)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 0;
    start_alone(&o);
    post(QHCA_WR_SEND, 5);
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, 1000000000000);
    peer_expect_none(&qp);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
}

/* Progress restarts the timer; a retry begins with the oldest packet. */
static void test_progress(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 1;
    start_alone(&o);
    for (unsigned i = 0; i < 4; i++) {
        post(QHCA_WR_SEND, 100);
        peer_expect(&qp, RC_SEND_ONLY, PSN + i);
    }
    guest_advance(g, T(10) / 2);
    peer_ack(&qp, PSN + 1);             /* covers two packets (D-011) */
    done(0, 0);
    done(1, 0);
    guest_advance(g, T(10) - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);                    /* D-048 */
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);
    peer_ack(&qp, PSN + 2);             /* reloads the one retry (D-034) */
    guest_advance(g, T(10));
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);
    peer_ack(&qp, PSN + 3);
    done(2, 0);
    done(3, 0);
    CHECK(g->host.deadline == UINT64_MAX);                           /* D-047 */
}

static void test_nak_seq(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 2;
    start_alone(&o);
    post(QHCA_WR_SEND, 10);
    post(QHCA_WR_RDMA_WRITE, 3000);     /* three packets */
    CHECK_EQ(peer_drain(&qp), 4);
    peer_nak(&qp, AETH_NAK_SEQ, PSN + 2);
    done(0, 0);                                                 /* D-025 */
    for (unsigned i = 0; i < 2; i++) {
        peer_expect(&qp, RC_WRITE_MIDDLE, PSN + 2);             /* D-020 */
        CHECK(peer_expect(&qp, RC_WRITE_LAST, PSN + 3).ackreq);
        peer_expect_none(&qp);
        peer_nak(&qp, AETH_NAK_SEQ, PSN + 2);
    }
    done(1, QHCA_WC_RETRY_EXC_ERR);                             /* D-046 */
    expect_dead();
}

static void test_rnr_times(void)
{
    static const double ms[32] = {
        655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32,
        0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36,
        20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68,
        491.52,
    };
    struct rc_opts o = RC_OPTS;

    o.timeout = 1;              /* far shorter than the waits (D-033) */
    start_alone(&o);
    post(QHCA_WR_SEND, 1);
    for (unsigned code = 0; code < 32; code++) {
        uint64_t ns = (uint64_t)(ms[code] * 1000000 + 0.5);

        peer_drain(&qp);
        peer_nak(&qp, (uint8_t)(AETH_RNR_NAK | code), PSN);
        guest_advance(g, ns - 1);
        peer_expect_none(&qp);
        guest_advance(g, 1);
        peer_expect(&qp, RC_SEND_ONLY, PSN);
    }
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    peer_ack(&qp, PSN);
    done(0, 0);
}

static void test_rnr_retry(void)
{
    for (uint8_t n = 0; n <= 7; n++) {
        struct rc_opts o = RC_OPTS;

        o.rnr_retry = n;
        o.retry = 0;
        start_alone(&o);
        post(QHCA_WR_SEND, 1);
        for (unsigned i = 0; i < (n < 7 ? n + 1u : 60u); i++) {
            peer_expect(&qp, RC_SEND_ONLY, PSN);
            peer_nak(&qp, I_018_NAK | 1, PSN);
            guest_advance(g, 10000);
        }
        if (n < 7) {
            done(0, I_018_RQ);
            expect_dead();
        } else {
            peer_ack(&qp, PSN);
            done(0, I_019_RQ);
        }
    }
}

/*
 * Both counters are 1: neither kind of retry uses up the other's (D-033), and
 * any packet that the peer accepts reloads both (D-034).
 */
static void test_reload(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = o.rnr_retry = 1;
    start_alone(&o);
    post(QHCA_WR_SEND, 1);                              /* PSN */
    post(QHCA_WR_SEND, 3000);                           /* +1 to +3 */
    post(QHCA_WR_SEND, 1);                              /* +4 */
    CHECK_EQ(peer_drain(&qp), 5);
    for (unsigned i = 0; i < 3; i += 2) {
        peer_nak(&qp, AETH_RNR_NAK | 1, PSN + i);
        peer_nak(&qp, AETH_RNR_NAK | 1, PSN + i);       /* duplicate */
        peer_nak(&qp, AETH_NAK_SEQ, PSN + i);           /* reordered */
        guest_advance(g, 10000);
        CHECK_EQ(peer_drain(&qp), 5 - i);
        guest_advance(g, T(10));
        CHECK_EQ(peer_drain(&qp), 5 - i);
    }
    done(0, 0);
    peer_nak(&qp, AETH_RNR_NAK | 1, PSN + 4);
    done(1, 0);
    guest_advance(g, 10000);
    CHECK_EQ(peer_drain(&qp), 1);
    peer_nak(&qp, AETH_RNR_NAK | 1, PSN + 4);
    done(2, QHCA_WC_RNR_RETRY_EXC_ERR);
    expect_dead();
}

/*
 * The timer belongs to the oldest packet: neither new packets nor old ACKs
 * restart it.
 */
static void test_not_put_off(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 0;
    start_alone(&o);
    post(QHCA_WR_SEND, 1);
    peer_ack(&qp, PSN);
    done(0, 0);
    for (unsigned i = 0; i < 4; i++) {
        post(QHCA_WR_SEND, 1);
        peer_ack(&qp, PSN);
        guest_advance(g, T(10) / 4 - 1);
        rc_expect_none(&qp.scq);
    }
    guest_advance(g, 4);
    done(1, QHCA_WC_RETRY_EXC_ERR);                             /* D-045 */

    o.retry = 1;
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_SEND, 1);
    peer_ack(&qp, PSN + 1);             /* an implied NAK: the only retry */
    guest_advance(g, T(10) - 1);
    peer_ack(&qp, PSN + 1);             /* the same does not count again */
    rc_expect_none(&qp.scq);
    guest_advance(g, 1);
    done(0, QHCA_WC_RETRY_EXC_ERR);
}

static void test_implied(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    start_alone(&o);
    post(QHCA_WR_SEND, 1);                              /* PSN */
    post(QHCA_WR_RDMA_READ, 2500);                      /* +1 to +3 */
    post(QHCA_WR_SEND, 1);                              /* +4 */
    post(QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);              /* +5 */
    CHECK_EQ(peer_drain(&qp), 4);
    peer_ack(&qp, PSN + 4);             /* skips the READ (D-014) */
    done(0, 0);
    rc_expect_none(&qp.scq);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 4);
    peer_expect(&qp, RC_FETCH_ADD, PSN + 5);
    peer_ack(&qp, PSN + 4);             /* a second one has no effect */
    peer_expect_none(&qp);
    answer_read(RC_READ_RESP_FIRST, PSN + 1, 1024);
    answer_read(RC_READ_RESP_LAST, PSN + 3, 452);       /* a gap */
    p = peer_expect(&qp, RC_READ_REQUEST, PSN + 2);             /* D-006 */
    CHECK_EQ(p.va, node.mr.addr + 1024);
    CHECK_EQ(p.dma_len, 2500 - 1024);

    o.retry = 0;                        /* an implied NAK uses a retry */
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 8);
    post(QHCA_WR_SEND, 1);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_ack(&qp, PSN + 1);
    done(0, QHCA_WC_RETRY_EXC_ERR);                             /* D-046 */
    done(1, QHCA_WC_WR_FLUSH_ERR);
    expect_dead();
}

/* An ACK from before a timeout is no reason to go back again. */
static void test_late_ack(void)
{
    static const uint32_t first[] = { 0x111111, 0x900000, PSN_MASK };
    struct rc_opts o = RC_OPTS;

    for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
        o.sq_psn = first[i];
        start_alone(&o);
        post(QHCA_WR_RDMA_READ, 8);
        post(QHCA_WR_SEND, 1);
        CHECK_EQ(peer_drain(&qp), 2);
        guest_advance(g, T(o.timeout));
        CHECK_EQ(peer_drain(&qp), 2);
        peer_ack(&qp, psn_add(first[i], 1));
        peer_expect_none(&qp);
    }
}

static void test_read_rest(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.mtu = 2;
    o.sq_psn = 0xfffffe;                                        /* D-003 */
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 2100);
    p = peer_expect(&qp, RC_READ_REQUEST, 0xfffffe);
    CHECK_EQ(p.dma_len, 2100);
    answer_read(RC_READ_RESP_FIRST, 0xfffffe, 512);
    answer_read(RC_READ_RESP_MIDDLE, 0xffffff, 512);
    answer_read(RC_READ_RESP_MIDDLE, 0, 512);
    guest_advance(g, T(10));
    p = peer_expect(&qp, RC_READ_REQUEST, 1);
    CHECK_EQ(p.va, node.mr.addr + 3 * 512);
    CHECK_EQ(p.dma_len, 2100 - 3 * 512);
    CHECK_EQ(p.rkey, node.mr.key);
    answer_read(RC_READ_RESP_FIRST, 1, 512);
    rc_expect_none(&qp.scq);
    answer_read(RC_READ_RESP_LAST, 2, 52);
    done(0, 0);
    CHECK(g->host.deadline == UINT64_MAX);
}

/* No packet is lost if the network blocks for a while, more than once. */
static void test_pressure(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = PSN;
    struct roce_packet p;

    o.mtu = 1;
    start_alone(&o);
    for (unsigned i = 0; i < 4; i += 2) {
        g->net_blocked = true;
        post(QHCA_WR_SEND, 30 * 256);
        post(QHCA_WR_SEND, 30 * 256);
        guest_advance(g, T(10) + 1);    /* not lost: no retransmission yet */
        CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
        guest_unblock(g);
        while (peer_next(&qp, &p)) {
            CHECK_EQ(p.psn, psn++);
        }
        CHECK_EQ(psn, PSN + 30 * (i + 2));
        peer_ack(&qp, psn - 1);
        done(i, 0);
        done(i + 1, 0);
    }
}

static struct rc_wr to_repeat(uint8_t opcode, uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 3, len);

    rc_aim(&wr, &node, 16384);
    wr.imm = 0x01020304;
    wr.swap_add = 0x1112131415161718;
    wr.compare = 0x2122232425262728;
    wr.flush_len = 100;
    wr.flush_type = QHCA_FLUSH_GLOBAL;
    if (opcode == QHCA_WR_FLUSH) {
        wr.num_sge = 0;
    }
    return wr;
}

/* From the BTH on a packet is what it was; only AckReq may be another. */
static void same_packet(struct sent *a, struct sent *b)
{
    const size_t bth = ETH_LEN + IPV4_LEN + UDP_LEN;

    CHECK_EQ(a->len, b->len);
    a->data[bth + 8] = b->data[bth + 8] = 0;
    CHECK(!memcmp(a->data + bth, b->data + bth, a->len - bth - ICRC_LEN));
}

static void test_again(void)
{
    static const struct {
        uint8_t opcode;
        unsigned packets;
        uint32_t len;
    } rows[] = {
        { QHCA_WR_SEND, 3, 3000 }, { QHCA_WR_SEND_WITH_IMM, 3, 3000 },
        { QHCA_WR_SEND_WITH_INV, 3, 3000 }, { QHCA_WR_RDMA_WRITE, 3, 3000 },
        { QHCA_WR_RDMA_WRITE_WITH_IMM, 3, 3000 },
        { QHCA_WR_RDMA_READ, 1, 3000 }, { QHCA_WR_ATOMIC_CMP_AND_SWP, 1, 8 },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, 1, 8 }, { QHCA_WR_ATOMIC_WRITE, 1, 8 },
        { QHCA_WR_FLUSH, 1, 0 },
    };
    struct rc_wr wr;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        start_alone(&RC_OPTS);
        guest_fill(g, node.mr.addr, 8192, 1);
        wr = to_repeat(rows[i].opcode, rows[i].len);
        rc_do(&qp, &wr);
        CHECK_EQ(g->num_sent, rows[i].packets);
        guest_advance(g, T(10));
        REQUIRE(g->num_sent == 2 * rows[i].packets);
        for (unsigned n = 0; n < rows[i].packets; n++) {
            same_packet(&g->sent[n], &g->sent[rows[i].packets + n]);
        }
    }
}

static const struct test tests[] = {
    { "D-006 every kind of packet, sent once more", test_again },
    { "D-045 D-046 D-047 H-023 I-021 timeouts and retry_cnt 0 to 7",
      test_timeout },
    { "D-045 timeout 0 waits for ever", test_no_timeout },
    { "D-011 D-034 D-047 D-048 I-023 progress restarts timer and retries",
      test_progress },
    { "D-020 D-025 D-046 sequence NAK goes back and uses retries",
      test_nak_seq },
    { "D-031 D-033 D-035 D-036 D-037 D-038 every RNR time, to the nanosecond",
      test_rnr_times },
    { "D-032 D-033 I-018 I-019 rnr_retry 0 to 7", test_rnr_retry },
    { "D-032 D-033 D-034 progress reloads both counters", test_reload },
    { "D-045 D-047 the timer of the oldest packet", test_not_put_off },
    { "D-014 D-006 implied NAK", test_implied },
    { "D-014 an ACK from before the timeout", test_late_ack },
    { "D-003 D-006 the rest of a READ is requested again", test_read_rest },
    { "D-047 back-pressure", test_pressure },
};

TEST_MAIN(tests)
