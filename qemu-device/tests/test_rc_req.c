/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC requester against a scripted peer: when it sends what
 * again, and how WRs end.
 */
#include "rc.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define T(code)     (4096ull << (code))

static struct node node;
static const struct node far = { .host = 2, .vlan = QHCA_NO_VLAN };
static struct rc_qp qp;
static struct guest *g;

/* A QP in RTS whose peer is the test. */
static struct rc_qp *start(const struct rc_opts *o)
{
    node = node_new(NULL, 1);
    g = node.g;
    qp = rc_create(&node, o);
    rc_set_peer(&qp, &far, 0x77);
    rc_bring_up(&qp, QHCA_QPS_RTS);
    return &qp;
}

static void post(uint8_t opcode, uint32_t len)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, len);

    wr.raddr = 0x10000;
    wr.rkey = 0xcafe;
    rc_post(&qp, &wr);
    guest_settle(g);
}

/* WRs are numbered 0x1000 + posting order. */
static void done(unsigned i, unsigned status)
{
    rc_expect(&qp.scq, 0x1000 + i, status);
}

static void answer_read(uint8_t opcode, uint32_t psn, size_t len)
{
    static const uint8_t data[4096];
    struct roce_packet p = peer_packet(&qp, opcode, psn);

    peer_inject(&qp, &p, data, len);
}

static void answer_atomic(uint32_t psn)
{
    struct roce_packet p = peer_packet(&qp, RC_ATOMIC_ACKNOWLEDGE, psn);

    peer_inject(&qp, &p, NULL, 0);
}

static void expect_dead(void)
{
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK(g->deadline == UINT64_MAX);
    peer_expect_none(&qp);
    rc_expect_none(&qp.scq);
}

static void test_timeout(void)
{
    for (uint8_t retry = 0; retry <= 7; retry++) {
        struct rc_opts o = RC_OPTS;

        o.timeout = retry + 4;
        o.retry = retry;
        start(&o);
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
        harness_cleanup();
    }
}

static void test_no_timeout(void)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 0;
    start(&o);
    post(QHCA_WR_SEND, 5);
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, 1000000000000);
    peer_expect_none(&qp);
    peer_ack(&qp, PSN);
    done(0, QHCA_WC_SUCCESS);
}

/* Restarts on progress; resumes at the oldest; nothing runs when idle. */
static void test_progress(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 1;
    start(&o);
    for (unsigned i = 0; i < 4; i++) {
        post(QHCA_WR_SEND, 100);
        peer_expect(&qp, RC_SEND_ONLY, PSN + i);
    }
    guest_advance(g, T(10) / 2);
    peer_ack(&qp, PSN + 1);             /* covers two (D-011) */
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
    CHECK(g->deadline == UINT64_MAX);                           /* D-047 */
}

static void test_nak_seq(void)
{
    struct rc_opts o = RC_OPTS;

    o.retry = 2;
    start(&o);
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
    start(&o);
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
        start(&o);
        post(QHCA_WR_SEND, 1);
        for (unsigned i = 0; i < (n < 7 ? n + 1u : 60u); i++) {
            peer_expect(&qp, RC_SEND_ONLY, PSN);
            peer_nak(&qp, AETH_RNR_NAK | 1, PSN);
            guest_advance(g, 10000);
        }
        if (n < 7) {
            done(0, QHCA_WC_RNR_RETRY_EXC_ERR);
            expect_dead();
        } else {
            peer_ack(&qp, PSN);
            done(0, 0);
        }
        harness_cleanup();
    }
}

static void test_stale(void)
{
    struct rc_opts o = RC_OPTS;

    start(&o);
    post(QHCA_WR_SEND, 1);
    post(QHCA_WR_SEND, 1);
    peer_ack(&qp, PSN);
    done(0, 0);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_ack(&qp, PSN);                 /* again, before, never sent */
    peer_ack(&qp, PSN - 1);
    peer_ack(&qp, PSN + 2);
    peer_ack(&qp, PSN + 0x800000);
    peer_nak(&qp, AETH_NAK_ACCESS, PSN);
    peer_nak(&qp, AETH_NAK_SEQ, PSN + 2);
    peer_nak(&qp, AETH_RNR_NAK, PSN - 5);
    answer_read(RC_READ_RESP_ONLY, PSN, 0);
    peer_expect_none(&qp);
    rc_expect_none(&qp.scq);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_RTS);
    peer_ack(&qp, PSN + 1);
    done(1, 0);
}

static void test_implied(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    start(&o);
    post(QHCA_WR_SEND, 1);                              /* PSN */
    post(QHCA_WR_RDMA_READ, 2500);                      /* +1 to +3 */
    post(QHCA_WR_SEND, 1);                              /* +4 */
    post(QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);              /* +5 */
    CHECK_EQ(peer_drain(&qp), 4);
    peer_ack(&qp, PSN + 4);             /* steps over the READ (D-014) */
    done(0, 0);
    rc_expect_none(&qp.scq);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 1);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 4);
    peer_expect(&qp, RC_FETCH_ADD, PSN + 5);
    peer_ack(&qp, PSN + 4);             /* went back already for this one */
    peer_expect_none(&qp);
    answer_read(RC_READ_RESP_FIRST, PSN + 1, 1024);
    answer_read(RC_READ_RESP_LAST, PSN + 3, 452);       /* a gap */
    p = peer_expect(&qp, RC_READ_REQUEST, PSN + 2);             /* D-006 */
    CHECK_EQ(p.va, 0x10000 + 1024);
    CHECK_EQ(p.dma_len, 2500 - 1024);
}

static void test_read_rest(void)
{
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;

    o.mtu = 2;
    o.sq_psn = 0xfffffe;                                        /* D-003 */
    start(&o);
    post(QHCA_WR_RDMA_READ, 2100);
    p = peer_expect(&qp, RC_READ_REQUEST, 0xfffffe);
    CHECK_EQ(p.dma_len, 2100);
    answer_read(RC_READ_RESP_FIRST, 0xfffffe, 512);
    answer_read(RC_READ_RESP_MIDDLE, 0xffffff, 512);
    answer_read(RC_READ_RESP_MIDDLE, 0, 512);
    guest_advance(g, T(10));
    p = peer_expect(&qp, RC_READ_REQUEST, 1);
    CHECK_EQ(p.va, 0x10000 + 3 * 512);
    CHECK_EQ(p.dma_len, 2100 - 3 * 512);
    CHECK_EQ(p.rkey, 0xcafe);
    answer_read(RC_READ_RESP_FIRST, 1, 512);
    rc_expect_none(&qp.scq);
    answer_read(RC_READ_RESP_LAST, 2, 52);
    done(0, 0);
    CHECK(g->deadline == UINT64_MAX);
}

/* D-012: an answer acknowledges what came before it. */
static void test_acks_before(void)
{
    struct rc_opts o = RC_OPTS;

    start(&o);
    post(QHCA_WR_SEND, 1);
    post(QHCA_WR_RDMA_WRITE, 1);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_SEND, 1);
    post(QHCA_WR_ATOMIC_CMP_AND_SWP, 8);
    answer_read(RC_READ_RESP_ONLY, PSN + 2, 4);
    done(0, 0);
    done(1, 0);
    done(2, 0);
    answer_atomic(PSN + 4);
    done(3, 0);
    done(4, 0);
}

/* D-010, B-045: who asks for an ACK, and SE. */
static void test_flags(void)
{
    static const struct {
        uint8_t op;
        bool se;
    } ops[] = {
        { QHCA_WR_SEND, true }, { QHCA_WR_SEND_WITH_IMM, true },
        { QHCA_WR_RDMA_WRITE, false }, { QHCA_WR_RDMA_WRITE_WITH_IMM, true },
    };
    struct rc_opts o = RC_OPTS;
    struct roce_packet p;
    uint32_t psn = PSN;

    start(&o);
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct rc_wr wr = rc_wr(&qp, ops[i].op, 0, 40 * 512);

        wr.flags |= QHCA_WQE_SOLICITED;
        rc_post(&qp, &wr);
        guest_settle(g);
        for (unsigned n = 1; peer_next(&qp, &p); n++) {
            CHECK_EQ(p.psn, psn);
            CHECK_EQ(p.ackreq, n == 16 || n == 20);
            CHECK_EQ(p.solicited, n == 20 && ops[i].se);
            psn++;
        }
        peer_ack(&qp, psn - 1);
    }
    CHECK_EQ(psn, PSN + 80);
}

static void test_fatal_naks(void)
{
    static const struct {
        uint8_t syndrome;
        unsigned status;
    } naks[] = {
        { AETH_NAK_INV_REQ, QHCA_WC_REM_INV_REQ_ERR },
        { AETH_NAK_ACCESS, QHCA_WC_REM_ACCESS_ERR },
        { AETH_NAK_OP, QHCA_WC_REM_OP_ERR },
        { 0x64, QHCA_WC_BAD_RESP_ERR }, { 0x7f, QHCA_WC_BAD_RESP_ERR },
        { 0x40, QHCA_WC_BAD_RESP_ERR }, { 0x80, QHCA_WC_BAD_RESP_ERR },
        { 0x9f, QHCA_WC_BAD_RESP_ERR }, { 0xe2, QHCA_WC_BAD_RESP_ERR },
    };

    for (size_t i = 0; i < ARRAY_SIZE(naks); i++) {
        struct rc_opts o = RC_OPTS;

        start(&o);
        for (unsigned n = 0; n < 5; n++) {
            post(QHCA_WR_SEND, 1);
        }
        CHECK_EQ(peer_drain(&qp), 5);
        peer_nak(&qp, naks[i].syndrome, PSN + 2);
        done(0, 0);                                             /* D-025 */
        done(1, 0);
        done(2, naks[i].status);                                /* I-052 */
        done(3, QHCA_WC_WR_FLUSH_ERR);
        done(4, QHCA_WC_WR_FLUSH_ERR);
        expect_dead();                                          /* D-026 */
        harness_cleanup();
    }
}

static void test_bad_answers(void)
{
    static const struct {
        uint8_t op, answer;
        size_t len;
    } bad[] = {
        { QHCA_WR_SEND, RC_READ_RESP_ONLY, 4 },                 /* I-030 */
        { QHCA_WR_SEND, RC_ATOMIC_ACKNOWLEDGE, 0 },
        { QHCA_WR_RDMA_READ, RC_ATOMIC_ACKNOWLEDGE, 0 },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, RC_READ_RESP_ONLY, 8 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 4 },            /* I-031 */
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 12 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 0 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_FIRST, 8 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rc_opts o = RC_OPTS;

        start(&o);
        post(bad[i].op, 8);
        CHECK_EQ(peer_drain(&qp), 1);
        answer_read(bad[i].answer, PSN, bad[i].len);
        done(0, QHCA_WC_BAD_RESP_ERR);
        expect_dead();
        harness_cleanup();
    }
}

static void test_rd_atomic(void)
{
    struct rc_opts o = RC_OPTS;

    o.rd_atomic = 2;
    start(&o);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_SEND, 4);
    peer_expect(&qp, RC_READ_REQUEST, PSN);
    peer_expect(&qp, RC_FETCH_ADD, PSN + 1);
    peer_expect_none(&qp);                                      /* D-067 */
    answer_read(RC_READ_RESP_ONLY, PSN, 4);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 2);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);    /* unfenced: overtakes */
    /* All is lost: they go out again in the same order, within the limit. */
    guest_advance(g, T(10));
    peer_expect(&qp, RC_FETCH_ADD, PSN + 1);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 2);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);
    answer_atomic(PSN + 1);
    answer_read(RC_READ_RESP_ONLY, PSN + 2, 4);
    peer_ack(&qp, PSN + 3);
    for (unsigned i = 0; i < 4; i++) {
        done(i, 0);
    }
    harness_cleanup();

    o.rd_atomic = 0;
    start(&o);
    post(QHCA_WR_SEND, 4);
    post(QHCA_WR_RDMA_READ, 4);
    CHECK_EQ(peer_drain(&qp), 1);
    peer_ack(&qp, PSN);
    done(0, 0);
    done(1, QHCA_WC_LOC_QP_OP_ERR);
    expect_dead();
}

static void test_fence(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_wr wr;

    start(&o);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_SEND, 4);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 4);
    wr.flags |= QHCA_WQE_FENCE;
    rc_post(&qp, &wr);
    guest_settle(g);
    peer_expect(&qp, RC_READ_REQUEST, PSN);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect_none(&qp);                                      /* B-051 */
    guest_advance(g, T(10));            /* nor when all is sent again */
    CHECK_EQ(peer_drain(&qp), 2);
    answer_read(RC_READ_RESP_ONLY, PSN, 4);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
}

/* A WR that cannot work waits for those before it, whatever they are. */
static void test_bad_behind(void)
{
    static const uint8_t before[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_FETCH_AND_ADD,
    };

    for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
        struct rc_opts o = RC_OPTS;

        start(&o);
        post(before[i], 8);
        post(0x55, 8);
        post(QHCA_WR_SEND, 8);
        CHECK_EQ(peer_drain(&qp), 1);
        rc_expect_none(&qp.scq);
        switch (before[i]) {
        case QHCA_WR_SEND:
            peer_ack(&qp, PSN);
            break;
        case QHCA_WR_RDMA_READ:
            answer_read(RC_READ_RESP_ONLY, PSN, 8);
            break;
        default:
            answer_atomic(PSN);
            break;
        }
        done(0, 0);
        done(1, QHCA_WC_LOC_QP_OP_ERR);
        done(2, QHCA_WC_WR_FLUSH_ERR);
        expect_dead();
        harness_cleanup();
    }
}

/* The window closes after 64 packets, opens by what is acknowledged. */
static void test_window(void)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 1;
    start(&o);
    post(QHCA_WR_SEND, 200 * 256);
    CHECK_EQ(peer_drain(&qp), 64);
    peer_ack(&qp, PSN + 9);
    CHECK_EQ(peer_drain(&qp), 10);
    peer_ack(&qp, PSN + 73);
    CHECK_EQ(peer_drain(&qp), 64);
    peer_ack(&qp, PSN + 137);
    CHECK_EQ(peer_drain(&qp), 62);
    peer_ack(&qp, PSN + 199);
    done(0, 0);
}

/* A network that takes nothing for a while loses nothing. */
static void test_pressure(void)
{
    struct rc_opts o = RC_OPTS;
    uint32_t psn = PSN;
    struct roce_packet p;

    o.mtu = 1;
    start(&o);
    g->net_blocked = true;
    post(QHCA_WR_SEND, 30 * 256);
    post(QHCA_WR_SEND, 30 * 256);
    guest_advance(g, T(10) + 1);        /* not lost: no repetition yet */
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    guest_settle(g);
    while (peer_next(&qp, &p)) {
        CHECK_EQ(p.psn, psn++);
    }
    CHECK_EQ(psn, PSN + 60);
    peer_ack(&qp, psn - 1);
    done(0, 0);
    done(1, 0);
}

static const struct test tests[] = {
    { "D-045 D-046 D-047 D-006 timeouts and retry_cnt 0 to 7", test_timeout },
    { "D-045 timeout 0 waits for ever", test_no_timeout },
    { "D-011 D-034 D-047 D-048 progress restarts timer and retries",
      test_progress },
    { "D-020 D-025 D-046 sequence NAK goes back and uses retries",
      test_nak_seq },
    { "D-031 D-033 D-035..D-038 every RNR time, to the nanosecond",
      test_rnr_times },
    { "D-032 D-033 I-018 I-019 rnr_retry 0 to 7", test_rnr_retry },
    { "D-015 answers to nothing", test_stale },
    { "D-014 D-006 implied NAK", test_implied },
    { "D-003 D-006 the rest of a READ is asked for again", test_read_rest },
    { "D-012 READ and atomic answers acknowledge", test_acks_before },
    { "D-010 B-045 AckReq and SE", test_flags },
    { "D-021 D-024 D-025 D-026 I-052 fatal NAKs", test_fatal_naks },
    { "I-030 I-031 answers that do not fit", test_bad_answers },
    { "D-067 max_rd_atomic", test_rd_atomic },
    { "B-051 fence", test_fence },
    { "I-051 I-052 a bad WR behind others", test_bad_behind },
    { "D-010 the window", test_window },
    { "D-047 back-pressure", test_pressure },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
