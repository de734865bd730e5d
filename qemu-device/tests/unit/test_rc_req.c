/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the RC requester against a scripted peer: packets and
 * completions.
 */
#include "harness/scripted.h"
#include "tables.h"

#define PSN         0x111111u       /* sq_psn of RC_OPTS */
#define T(code)     (4096ull << (code))

static void answer_atomic(uint32_t psn)
{
    peer_send(&qp, RC_ATOMIC_ACKNOWLEDGE, psn, NULL, 0);
}

static void test_stale(void)
{
    start_alone(&RC_OPTS);
    post(QHCA_WR_SEND, 1);
    post(QHCA_WR_SEND, 1);
    peer_ack(&qp, PSN);
    done(0, 0);
    CHECK_EQ(peer_drain(&qp), 2);
    peer_ack(&qp, PSN);                 /* again; too old; not sent yet */
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

/* D-012: a response acknowledges all requests before its own. */
static void test_acks_before(void)
{
    start_alone(&RC_OPTS);
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

/* D-010, B-045: which packets ask for an ACK, and SE. */
static void test_flags(void)
{
    static const struct {
        uint8_t op;
        bool se;
    } ops[] = {
        { QHCA_WR_SEND, true }, { QHCA_WR_SEND_WITH_IMM, true },
        { QHCA_WR_RDMA_WRITE, false }, { QHCA_WR_RDMA_WRITE_WITH_IMM, true },
    };
    static const uint8_t single[] = {
        QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_CMP_AND_SWP,
        QHCA_WR_ATOMIC_FETCH_AND_ADD, QHCA_WR_SEND, QHCA_WR_RDMA_WRITE,
    };
    struct roce_packet p;
    uint32_t psn = PSN;

    start_alone(&RC_OPTS);
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct rc_wr wr = rc_wr(&qp, ops[i].op, 0, 40 * 512);

        wr.flags |= QHCA_WQE_SOLICITED;
        rc_do(&qp, &wr);
        for (unsigned n = 1; peer_next(&qp, &p); n++) {
            CHECK_EQ(p.psn, psn);
            CHECK_EQ(p.ackreq, n == 16 || n == 20);
            CHECK_EQ(p.solicited, n == 20 && ops[i].se);
            psn++;
        }
        peer_ack(&qp, psn - 1);
    }
    CHECK_EQ(psn, PSN + 80);
    for (size_t i = 0; i < ARRAY_SIZE(single); i++) {
        struct rc_wr wr = rc_wr(&qp, single[i], 0, 8);

        wr.flags |= QHCA_WQE_SOLICITED;
        rc_do(&qp, &wr);
        CHECK(peer_next(&qp, &p));
        CHECK_EQ(p.ackreq, true);
        CHECK_EQ(p.solicited, single[i] == QHCA_WR_SEND);
        peer_expect_none(&qp);
    }
}

/*
 * D-017: an ACK counts whatever its credits are, and no credit count stops the
 * queue.
 */
static void test_credits(void)
{
    start_alone(&RC_OPTS);
    for (unsigned code = 0; code < 32; code++) {
        post(QHCA_WR_SEND, 1);
        post(QHCA_WR_SEND, 1);
        CHECK_EQ(peer_drain(&qp), 2);
        peer_nak(&qp, (uint8_t)code, PSN + 2 * code);
        done(2 * code, 0);
        rc_expect_none(&qp.scq);
        peer_nak(&qp, (uint8_t)code, PSN + 2 * code + 1);
        done(2 * code + 1, 0);
    }
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
        start_alone(&RC_OPTS);
        for (unsigned n = 0; n < 5; n++) {
            post(QHCA_WR_SEND, 1);
        }
        CHECK_EQ(peer_drain(&qp), 5);
        peer_nak(&qp, naks[i].syndrome, PSN + 2);
        done(0, 0);                                             /* D-025 */
        done(1, 0);
        done(2, naks[i].status);
        done(3, QHCA_WC_WR_FLUSH_ERR);
        done(4, QHCA_WC_WR_FLUSH_ERR);
        expect_dead();                                          /* D-026 */
    }
}

static void test_bad_answers(void)
{
    static const struct {
        uint8_t op, answer;
        size_t len;
    } bad[] = {
        { QHCA_WR_SEND, RC_READ_RESP_ONLY, 4 },
        { QHCA_WR_SEND, RC_ATOMIC_ACKNOWLEDGE, 0 },
        { QHCA_WR_RDMA_READ, RC_ATOMIC_ACKNOWLEDGE, 0 },
        { QHCA_WR_ATOMIC_FETCH_AND_ADD, RC_READ_RESP_ONLY, 8 },
        /* I-031 */
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 4 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 12 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_ONLY, 0 },
        { QHCA_WR_RDMA_READ, RC_READ_RESP_FIRST, 8 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        start_alone(&RC_OPTS);
        post(bad[i].op, 8);
        CHECK_EQ(peer_drain(&qp), 1);
        answer_read(bad[i].answer, PSN, bad[i].len);
        done(0, i < 4 ? I_030_RQ : I_031_RQ);
        expect_dead();
    }
}

/* A response with data counts only if its AETH is an ACK. */
static void test_bad_syndromes(void)
{
    static const uint8_t syndromes[] = {
        AETH_RNR_NAK | 1, 0x40, AETH_NAK_SEQ, AETH_NAK_ACCESS, 0x9f,
    };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(syndromes); i++) {
        struct roce_packet p;

        start_alone(&RC_OPTS);
        post(i & 1 ? QHCA_WR_RDMA_READ : QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);
        CHECK_EQ(peer_drain(&qp), 1);
        p = peer_packet(&qp, i & 1 ? RC_READ_RESP_ONLY : RC_ATOMIC_ACKNOWLEDGE,
                        PSN);
        p.syndrome = syndromes[i / 2];
        peer_inject(&qp, &p, "12345678", i & 1 ? 8 : 0);
        done(0, QHCA_WC_BAD_RESP_ERR);
        expect_dead();
    }
}

static void test_rd_atomic(void)
{
    struct rc_opts o = RC_OPTS;

    o.rd_atomic = 2;
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_ATOMIC_FETCH_AND_ADD, 8);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_SEND, 4);
    peer_expect(&qp, RC_READ_REQUEST, PSN);
    peer_expect(&qp, RC_FETCH_ADD, PSN + 1);
    peer_expect_none(&qp);                                      /* D-067 */
    answer_read(RC_READ_RESP_ONLY, PSN, 4);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 2);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);    /* unfenced: not delayed */
    /*
     * All requests are lost: they are sent again in the same order, within
     * the limit.
     */
    guest_advance(g, T(10));
    peer_expect(&qp, RC_FETCH_ADD, PSN + 1);
    peer_expect(&qp, RC_READ_REQUEST, PSN + 2);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 3);
    answer_atomic(PSN + 1);
    answer_read(RC_READ_RESP_ONLY, PSN + 2, 4);
    peer_ack(&qp, PSN + 3);
    all_done(0, 4, 0);

    o.rd_atomic = 1;            /* the rest of a READ still counts */
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, 3000);
    post(QHCA_WR_RDMA_READ, 4);
    CHECK_EQ(peer_drain(&qp), 1);
    answer_read(RC_READ_RESP_FIRST, PSN, 1024);
    guest_advance(g, T(10));
    peer_expect(&qp, RC_READ_REQUEST, PSN + 1);
    peer_expect_none(&qp);

    o.rd_atomic = 0;
    start_alone(&o);
    post(QHCA_WR_SEND, 4);
    post(QHCA_WR_RDMA_READ, 4);
    CHECK_EQ(peer_drain(&qp), 1);
    peer_ack(&qp, PSN);
    done(0, 0);
    done(1, QHCA_WC_LOC_QP_OP_ERR);
    expect_dead();
}

/* The window for packets sent does not limit the length of READs. */
static void test_long_reads(void)
{
    struct rc_opts o = RC_OPTS;
    const unsigned n = 20, packets = 100;

    o.rd_atomic = VHCA_MAX_RD_ATOMIC;
    start_alone(&o);
    for (unsigned i = 0; i < n; i++) {
        post(QHCA_WR_RDMA_READ, packets * 1024);
    }
    post(QHCA_WR_SEND, 4);
    for (unsigned i = 0; i < VHCA_MAX_RD_ATOMIC; i++) {
        peer_expect(&qp, RC_READ_REQUEST, PSN + i * packets);
    }
    peer_expect_none(&qp);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < packets; k++) {
            answer_read(!k ? RC_READ_RESP_FIRST : k + 1 < packets ?
                        RC_READ_RESP_MIDDLE : RC_READ_RESP_LAST,
                        PSN + i * packets + k, 1024);
        }
        done(i, 0);
        if (i + VHCA_MAX_RD_ATOMIC < n) {
            peer_expect(&qp, RC_READ_REQUEST,
                        PSN + (i + VHCA_MAX_RD_ATOMIC) * packets);
        }
        if (i + VHCA_MAX_RD_ATOMIC == n - 1) {
            peer_expect(&qp, RC_SEND_ONLY, PSN + n * packets);
        }
        peer_expect_none(&qp);
    }
    peer_ack(&qp, PSN + n * packets);
    done(n, 0);

    /* Behind a long READ the window for packets sent is unchanged. */
    start_alone(&o);
    post(QHCA_WR_RDMA_READ, packets * 1024);
    post(QHCA_WR_RDMA_WRITE, packets * 1024);
    CHECK_EQ(peer_drain(&qp), 1 + VHCA_WINDOW);
    guest_advance(g, T(10));
    CHECK_EQ(peer_drain(&qp), 1 + VHCA_WINDOW);
    answer_read(RC_READ_RESP_FIRST, PSN, 1024);
    CHECK_EQ(peer_drain(&qp), 0);
    guest_advance(g, T(10));            /* the rest of the READ */
    CHECK_EQ(peer_drain(&qp), 1 + VHCA_WINDOW);
}

/* Inside a port, with frames: the maximum of READs is in flight together. */
static void test_long_reads_here(void)
{
    const unsigned n = 40;
    struct rc_opts o = RC_OPTS;

    o.rd_atomic = o.dest_rd_atomic = VHCA_MAX_RD_ATOMIC;
    o.sq_log = 6;
    for (unsigned frames = 0; frames < 2; frames++) {
        const struct vhca_requester *r;

        start_pair(&o);
        g->e->cfg.frames |= frames;
        guest_fill(g, node.mr.addr + NODE_MEM / 2, NODE_MEM / 2, 7);
        for (unsigned i = 0; i < n; i++) {
            struct rc_wr wr = rc_wr(&qp, QHCA_WR_RDMA_READ, 0, NODE_MEM / 2);

            rc_aim(&wr, &node, NODE_MEM / 2);
            rc_put(&qp, &wr);
        }
        rc_ring(&qp);
        r = &vhca_qp_get(g->e, qp.qpn)->req;
        CHECK(vhca_qp_get(g->e, qp.qpn)->sq.ci <= n - VHCA_MAX_RD_ATOMIC);
        /* The call may have ended between one READ and the next. */
        CHECK(r->rd_atomic >= VHCA_MAX_RD_ATOMIC - 1);
        CHECK(r->read_psns > (VHCA_MAX_RD_ATOMIC - 2) * 512);
        guest_settle(g);
        all_done(0, n, 0);
        CHECK_EQ(vhca_qp_get(g->e, qp.qpn)->req.read_psns, 0);
        CHECK(guest_is_filled(g, node.mr.addr, NODE_MEM / 2, 7));
        CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
    }
}

static void test_fence(void)
{
    struct rc_wr wr;

    start_alone(&RC_OPTS);
    post(QHCA_WR_RDMA_READ, 4);
    post(QHCA_WR_SEND, 4);
    wr = rc_wr(&qp, QHCA_WR_SEND, 0, 4);
    wr.flags |= QHCA_WQE_FENCE;
    rc_do(&qp, &wr);
    peer_expect(&qp, RC_READ_REQUEST, PSN);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 1);
    peer_expect_none(&qp);                                      /* B-051 */
    guest_advance(g, T(10));            /* also in a retransmission */
    CHECK_EQ(peer_drain(&qp), 2);
    answer_read(RC_READ_RESP_ONLY, PSN, 4);
    peer_expect(&qp, RC_SEND_ONLY, PSN + 2);
}

/* A bad WR fails after all earlier WRs have completed. */
static void test_bad_behind(void)
{
    static const uint8_t before[] = {
        QHCA_WR_SEND, QHCA_WR_RDMA_READ, QHCA_WR_ATOMIC_FETCH_AND_ADD,
    };

    for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
        start_alone(&RC_OPTS);
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
    }
}

/* The window closes after 64 packets, and opens as they are acknowledged. */
static void test_window(void)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 1;
    start_alone(&o);
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

    /* The packet that fills it asks for an ACK, whenever others have. */
    for (unsigned n = 1; n < VHCA_ACKREQ_EVERY; n++) {
        struct roce_packet p;

        start_alone(&o);
        put(QHCA_WR_SEND, n * 256);
        post(QHCA_WR_SEND, 200 * 256);
        CHECK_EQ(g->num_sent, VHCA_WINDOW);
        while (g->num_sent) {
            CHECK(peer_next(&qp, &p));
        }
        CHECK(p.ackreq);
    }
}

static const struct test tests[] = {
    { "D-015 ACKs that acknowledge nothing new", test_stale },
    { "D-012 READ and atomic responses acknowledge", test_acks_before },
    { "D-010 B-045 AckReq and SE", test_flags },
    { "D-017 credits of the peer", test_credits },
    { "D-021 D-024 D-025 D-026 H-023 I-052 fatal NAKs", test_fatal_naks },
    { "I-030 I-031 responses that do not fit", test_bad_answers },
    { "D-024 I-030 responses with the syndrome of a NAK", test_bad_syndromes },
    { "D-067 max_rd_atomic", test_rd_atomic },
    { "D-067 max_rd_atomic and long READs", test_long_reads },
    { "D-067 long READs inside the port", test_long_reads_here },
    { "B-051 fence", test_fence },
    { "I-051 I-052 a bad WR behind others", test_bad_behind },
    { "D-010 the window", test_window },
};

TEST_MAIN(tests)
