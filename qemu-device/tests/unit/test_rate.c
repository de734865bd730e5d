/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rates of QPs: when packets with data leave, to the nanosecond.
 */
#include "harness/flows.h"
#include "harness/scripted.h"
#include "harness/snapshot.h"

#define PSN     0x111111u       /* sq_psn of RC_OPTS */
#define GBIT    1000000u        /* in kbit/s */

static int set_rate(struct rc_qp *q, uint32_t kbit)
{
    struct qhca_qp_attr a = { .state = QHCA_QPS_RTS };

    a.rate_limit = htole32(kbit);
    return rc_modify(q, &a, QHCA_QP_STATE | QHCA_QP_RATE_LIMIT);
}

/* How long @bytes take, of which packets before have left @rest of a ns. */
static uint64_t takes(size_t bytes, uint32_t kbit, uint64_t *rest)
{
    uint64_t bits = 8000000 * (uint64_t)bytes + *rest;

    *rest = bits % kbit;
    return bits / kbit;
}

/*
 * @n packets leave, the first now and each as soon as the one before has been
 * paid for at @kbit.
 */
static void expect_paced(uint8_t first, uint32_t psn, unsigned n, uint32_t kbit)
{
    uint64_t rest = 0;

    for (unsigned i = 0; i < n; i++) {
        struct roce_packet p;
        uint64_t ns;

        REQUIRE(g->num_sent);
        ns = takes(g->sent[0].len, kbit, &rest);
        CHECK(peer_next(&qp, &p));
        CHECK_EQ(p.psn, psn + i);
        CHECK(i || p.opcode == first);
        peer_expect_none(&qp);
        if (i + 1 < n) {
            guest_advance(g, ns - 1);
            peer_expect_none(&qp);
            guest_advance(g, 1);
        }
    }
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
}

/* Odd rates, so that there is something left of each division. */
static const uint32_t rates[] = {
    1, 64, 9973, GBIT, 10 * GBIT, 99999989, 3000000000u,
};

static void test_limit(void)
{
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_XRC_INI,
    };
    static const uint8_t first[] = {
        RC_WRITE_FIRST, SVC_UC | RC_WRITE_FIRST, SVC_XRC | RC_WRITE_FIRST,
    };

    for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
        for (unsigned i = 0; i < ARRAY_SIZE(rates); i++) {
            struct rc_opts o = opts_of(types[t]);

            o.timeout = 0;
            start_alone(&o);
            CHECK_EQ(set_rate(&qp, rates[i]), 0);
            post(QHCA_WR_RDMA_WRITE, 5 * 1024 + 7);
            expect_paced(first[t], PSN, 6, rates[i]);
        }
    }
}

/* The limit holds for datagrams, which are of one packet each. */
static void test_datagrams(void)
{
    start_type(QHCA_QPT_UD);
    CHECK_EQ(set_rate(&qp, GBIT), 0);
    for (unsigned i = 0; i < 5; i++) {
        put(QHCA_WR_SEND, 100 * i);
    }
    go();
    expect_paced(SVC_UD | RC_SEND_ONLY, PSN, 5, GBIT);
}

static void test_frames(void)
{
    static const uint8_t to[6] = { 0x52, 0x54, 0, 9, 9, 9 };
    struct frame f = udp_frame(to, 1, 2, 7, 1000);
    struct node n = node_new(NULL, 1);
    uint64_t rest = 0, ns = takes(f.len, GBIT, &rest);
    struct rc_qp q;

    port_enable(n.g, test_mac, 0, 1500);
    q = flow_qp(&n);
    CHECK_EQ(set_rate(&q, GBIT), 0);
    for (unsigned i = 0; i < 4; i++) {
        struct rc_wr wr = rc_wr(&q, QHCA_WR_SEND, 0, (uint32_t)f.len);

        memcpy(guest_ptr(n.g, n.mr.addr, f.len), f.data, f.len);
        rc_put(&q, &wr);
    }
    rc_ring(&q);
    guest_settle(n.g);
    for (unsigned i = 1; i <= 4; i++) {
        CHECK_EQ(n.g->num_sent, i);
        guest_advance(n.g, ns - 1);
        CHECK_EQ(n.g->num_sent, i);
        guest_advance(n.g, 1);
    }
    CHECK_EQ(n.g->num_sent, 4);
}

/* The data of a READ are paced where they are; ACKs never wait. */
static void test_answers(void)
{
    start_alone(&RC_OPTS);
    CHECK_EQ(set_rate(&qp, 9973), 0);
    inject_read(0x222222, 0, 3 * 1024);
    expect_paced(RC_READ_RESP_FIRST, 0x222222, 3, 9973);
    guest_advance(g, 1000000);
    post(QHCA_WR_RDMA_WRITE, 2 * 1024);
    peer_expect(&qp, RC_WRITE_FIRST, PSN);
    peer_expect_none(&qp);
    for (unsigned i = 0; i < 3; i++) {
        inject(RC_WRITE_ONLY, 0x222225 + i, 0);
        peer_expect(&qp, RC_ACKNOWLEDGE, 0x222225 + i);
    }
    peer_expect_none(&qp);
}

/* The lowest of the limits counts; values that are not a rate are none. */
static void test_static(void)
{
    static const struct {
        uint8_t rate;
        uint32_t limit, kbit;
    } rows[] = {
        { 2, 0, 2500000 }, { 3, 0, 10 * GBIT }, { 5, 0, 5 * GBIT },
        { 24, 0, 1200 * GBIT }, { 3, GBIT, GBIT }, { 2, 9 * GBIT, 2500000 },
    };
    static const uint8_t none[] = { 0, 1, 25, 255 };
    struct vhca_qp *v;

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        start_alone(&RC_OPTS);
        vhca_qp_get(g->e, qp.qpn)->attr.av.static_rate = rows[i].rate;
        CHECK_EQ(set_rate(&qp, rows[i].limit), 0);
        post(QHCA_WR_RDMA_WRITE, 4 * 1024);
        expect_paced(RC_WRITE_FIRST, PSN, 4, rows[i].kbit);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(none); i++) {
        start_alone(&RC_OPTS);
        v = vhca_qp_get(g->e, qp.qpn);
        v->attr.av.static_rate = none[i];
        post(QHCA_WR_RDMA_WRITE, 4 * 1024);
        CHECK_EQ(peer_drain(&qp), 4);
    }
}

/* Each datagram has the static rate of its own address. */
static void test_static_datagrams(void)
{
    struct rc_wr wr;
    size_t len;
    uint64_t rest = 0;

    start_type(QHCA_QPT_UD);
    for (unsigned i = 0; i < 3; i++) {
        wr = rc_wr(&qp, QHCA_WR_SEND, 0, 1000);
        wr.av.static_rate = i == 1 ? 2 : 0;
        rc_put(&qp, &wr);
    }
    go();
    len = g->sent[0].len;
    CHECK_EQ(peer_drain(&qp), 2);
    guest_advance(g, takes(len, 2500000, &rest) - 1);
    peer_expect_none(&qp);
    guest_advance(g, 1);
    CHECK_EQ(peer_drain(&qp), 1);
}

/* A new limit holds from now on, whatever the packet before had to pay. */
static void test_change(void)
{
    start_alone(&RC_OPTS);
    CHECK_EQ(set_rate(&qp, 1), 0);
    post(QHCA_WR_RDMA_WRITE, 6 * 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, 1000000);
    peer_expect_none(&qp);
    CHECK_EQ(set_rate(&qp, GBIT), 0);
    expect_paced(RC_WRITE_MIDDLE, PSN + 1, 3, GBIT);
    CHECK_EQ(set_rate(&qp, 0), 0);
    CHECK_EQ(peer_drain(&qp), 2);
    CHECK_EQ(g->host.deadline != UINT64_MAX, 1);     /* only the ACK timer */
}

/* Packets that wait here are not lost; but a dead peer is noticed. */
static void test_timeout(void)
{
    struct rc_opts o = RC_OPTS;
    unsigned sent;

    o.timeout = 1;              /* 8 us; a packet takes 8.7 ms */
    o.retry = 1;
    start_alone(&o);
    CHECK_EQ(set_rate(&qp, 1000), 0);
    put(QHCA_WR_RDMA_WRITE, 3 * 1024);
    go();
    for (sent = 0; sent < 3; guest_advance(g, 1000)) {
        if (peer_drain(&qp)) {
            peer_ack(&qp, PSN + sent++);
        }
    }
    done(0, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    put(QHCA_WR_RDMA_WRITE, 3 * 1024);
    go();
    for (sent = 0; vhca_qp_get(g->e, qp.qpn)->state == QHCA_QPS_RTS; ) {
        REQUIRE(sent < 100);
        guest_advance(g, 1000000);
        sent += peer_drain(&qp);
    }
    done(1, QHCA_WC_RETRY_EXC_ERR);
    CHECK_EQ(sent, 6);
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 2);
}

/* A host that is late causes no timeout of a packet that has just left. */
static void test_late_host(void)
{
    struct rc_opts o = RC_OPTS;

    o.timeout = 12;             /* 17 ms; a packet takes 8.7 ms */
    start_alone(&o);
    CHECK_EQ(set_rate(&qp, 1000), 0);
    post(QHCA_WR_RDMA_WRITE, 12 * 1024);
    for (unsigned sent = peer_drain(&qp), late = 0; sent < 12;
         sent += peer_drain(&qp)) {
        REQUIRE(late++ < 12);
        *g->clock += 20000000;
        guest_advance(g, 0);
    }
    CHECK_EQ(counter(g, QHCA_CNT_TIMEOUT), 0);
    CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
    peer_ack(&qp, PSN + 11);
    done(0, QHCA_WC_SUCCESS);
}

/* Whether packets cross or are frames, they take the same time. */
static void test_inside(void)
{
    uint64_t took[2];

    for (unsigned i = 0; i < 2; i++) {
        uint64_t start;

        start_pair(&RC_OPTS);
        g->e->cfg.frames = i;
        CHECK_EQ(set_rate(&qp, GBIT), 0);
        post_writes(&qp, 1, 64 * 1024);
        start = *g->clock;
        rc_ring(&qp);
        while (vhca_qp_get(g->e, qp.qpn)->sq.ci == 0) {
            REQUIRE(*g->clock < start + 10000000);
            guest_advance(g, 100);
        }
        took[i] = *g->clock - start;
        done(0, QHCA_WC_SUCCESS);
    }
    tap_note("64 KiB at 1 Gbit/s: %llu us", (unsigned long long)took[0] / 1000);
    CHECK_EQ(took[0], took[1]);
    CHECK(took[0] > 63 * 1024 * 8 && took[0] < 72 * 1024 * 8);
}

/* The QP stops, or goes, while the gate is closed. */
static void test_end(void)
{
    for (unsigned how = 0; how < 3; how++) {
        start_alone(&RC_OPTS);
        CHECK_EQ(set_rate(&qp, 1000), 0);
        post(QHCA_WR_RDMA_WRITE, 4 * 1024);
        CHECK_EQ(peer_drain(&qp), 1);
        if (how == 0) {
            CHECK_EQ(rc_set_state(&qp, QHCA_QPS_ERR), 0);
            done(0, QHCA_WC_WR_FLUSH_ERR);
        } else if (how == 1) {
            CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), 0);
        } else {
            CHECK_EQ(rc_destroy(&qp), 0);
        }
        CHECK_EQ(g->host.deadline, UINT64_MAX);
        guest_advance(g, 100000000);
        peer_expect_none(&qp);
    }
}

/* A reset of the QP takes its limit away. */
static void test_reset(void)
{
    start_alone(&RC_OPTS);
    CHECK_EQ(set_rate(&qp, 1000), 0);
    CHECK_EQ(le32toh(rc_query(&qp).attr.rate_limit), 1000);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), 0);
    qp.sq_pi = 0;
    rc_bring_up(&qp, QHCA_QPS_RTS);
    CHECK_EQ(rc_query(&qp).attr.rate_limit, 0);
    post(QHCA_WR_RDMA_WRITE, 4 * 1024);
    CHECK_EQ(peer_drain(&qp), 4);
    CHECK_EQ(set_rate(&qp, 1000), 0);   /* and it can have one again */
    post(QHCA_WR_RDMA_WRITE, 4 * 1024);
    CHECK_EQ(peer_drain(&qp), 1);
    guest_advance(g, 9000000);
    CHECK_EQ(peer_drain(&qp), 1);
}

/* A timer that is late by the slack does not make the QP slower. */
static void test_slack(void)
{
    const uint64_t slack = 50000;
    uint64_t start;
    unsigned n = 0;

    start_alone(&RC_OPTS);
    g->e->cfg.timer_slack = (unsigned)slack;
    CHECK_EQ(set_rate(&qp, GBIT), 0);
    start = *g->clock;
    post(QHCA_WR_RDMA_WRITE, 60 * 1024);
    while (n < 60) {
        n += peer_drain(&qp);
        if (n < 60) {
            /* The timer, as late as it may be. */
            *g->clock = g->host.deadline + slack - 1;
            guest_advance(g, 0);
        }
    }
    tap_note("60 packets: %llu us",
             (unsigned long long)(*g->clock - start) / 1000);
    CHECK(*g->clock - start < 60 * 1100 * 8);
    CHECK(*g->clock - start + 2 * slack > 60 * 1000 * 8);
}

static const struct test tests[] = {
    { "a limit of each type of QP", test_limit },
    { "datagrams", test_datagrams },
    { "Ethernet frames", test_frames },
    { "READ data and ACKs", test_answers },
    { "static rates", test_static },
    { "static rates of datagrams", test_static_datagrams },
    { "another limit", test_change },
    { "the ACK timer", test_timeout },
    { "a host that is late", test_late_host },
    { "inside the port", test_inside },
    { "the end of the QP", test_end },
    { "a reset of the QP", test_reset },
    { "late timers", test_slack },
};

TEST_MAIN(tests)
