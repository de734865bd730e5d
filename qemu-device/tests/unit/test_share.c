/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How doorbell pages share the device, and the device's share of its host.
 */
#include "harness/budget.h"

static uint32_t done_on(struct rc_qp *q)
{
    return le32toh(rc_query(q).sq_ci);
}

/*
 * Sum of the WRs that every other of these QPs has begun. (Their completion
 * depends on responses of QPs of the same page, which wait for all the others.)
 */
static uint32_t sum_begun(const struct rc_qp *qps, unsigned n)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < n; i += 2) {
        sum += vhca_qp_get(g->e, qps[i].qpn)->sq.next;
    }
    return sum;
}

/*
 * Doorbell pages share the device whatever the number of their QPs: a page with
 * a single QP gets as much work done as one with hundreds.
 */
static void test_pages(void)
{
    static struct rc_qp rival[800];
    const unsigned rivals = 400, n = 512;
    struct rc_opts o = RC_OPTS, theirs = RC_OPTS;
    uint32_t done, before;

    o.sq_log = 10;
    o.cq_log = 12;
    start_pair(&o);
    theirs.uar = 2;
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        rival[i] = rc_create(&node, &theirs);
        rival[i + 1] = rc_create(&node, &theirs);
        rc_connect(&rival[i], &rival[i + 1]);
    }
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        post_writes(&rival[i], 50, 8);
    }
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        rc_ring(&rival[i]);
    }
    post_writes(&qp, n, 8);
    before = sum_begun(rival, 2 * rivals);
    rc_ring(&qp);
    while (vhca_qp_get(g->e, qp.qpn)->sq.ci != n) {
        REQUIRE(g->host.todo);
        g->host.todo = 0;
        qhca_engine_run(g->e, *g->clock);
    }
    done = sum_begun(rival, 2 * rivals) - before;
    tap_note("%u WRs of one QP, %u of its %u rivals", n, done, rivals);
    CHECK(done < 3 * n && done > n / 10);
    settle();
    for (unsigned i = 0; i < 2 * rivals; i += 2) {
        CHECK_EQ(done_on(&rival[i]), 50);
    }
}

/* ---- limits set by the operator ---- */

static uint32_t num_done(const struct rc_qp *q)
{
    return vhca_qp_get(g->e, q->qpn)->sq.ci;
}

/* Milliseconds until @n WRs are done; @worst: most units in a millisecond. */
static unsigned run_until_done(const struct rc_qp *q, unsigned n,
                               unsigned *worst)
{
    uint64_t start = *g->clock, end;
    unsigned units;

    for (*worst = 0; num_done(q) < n; ) {
        REQUIRE(*g->clock - start < 20000000000);
        REQUIRE(g->host.deadline != UINT64_MAX || g->host.todo);
        units = 0;
        for (end = *g->clock + 1000000; *g->clock < end; ) {
            if (g->host.todo) {
                g->host.todo = 0;
                qhca_engine_run(g->e, *g->clock);
                units += g->e->spent;
            } else if (g->host.deadline <= end) {
                *g->clock = MAX_OF(g->host.deadline, *g->clock);
                qhca_host_tick(&g->host, *g->clock);
                units += g->e->spent;
            } else {
                *g->clock = end;
            }
        }
        *worst = units > *worst ? units : *worst;
    }
    return (unsigned)((*g->clock - start) / 1000000);
}

static void test_cpu_share(void)
{
    static const unsigned shares[] = { 1, 10, 50, 100 };
    struct rc_opts o = RC_OPTS;
    unsigned ms, worst;
    uint64_t before;

    o.sq_log = 12;
    o.cq_log = 13;
    for (unsigned i = 0; i < ARRAY_SIZE(shares); i++) {
        const unsigned units = CALL * shares[i] / 100;

        start_limited(shares[i], 0, &o);
        post_writes(&qp, 3000, 64);
        before = dma_calls();
        rc_ring(&qp);
        CHECK(dma_calls() - before <= units + 64);
        CHECK(!g->host.todo);           /* it would have no effect */
        before = dma_calls();
        reg_write(g, QHCA_REG_CMD_SQ_LO, 1);
        CHECK_EQ(dma_calls(), before);
        CHECK(!qhca_engine_has_time(g->e, *g->clock));
        ms = run_until_done(&qp, 3000, &worst);
        tap_note("%u percent: %u ms, at most %u units in one", shares[i], ms,
                 worst);
        CHECK(worst <= 2 * units + 64);
        CHECK(ms > 3000 * 6 / units && ms < 3000 * 12 / units);
        guest_advance(g, 100000000);
        CHECK(qhca_engine_has_time(g->e, *g->clock));
        CHECK_EQ(g->host.deadline, UINT64_MAX);
        CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
    }
}

/* A reset does not renew the share. */
static void test_share_and_reset(void)
{
    start_limited(1, 0, &RC_OPTS);
    post_writes(&qp, 60, 65536);
    rc_ring(&qp);
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    CHECK_EQ(g->host.deadline, UINT64_MAX);
    CHECK(qhca_engine_has_time(g->e, *g->clock + 100000000));

    start_limited(0, 1, &RC_OPTS);
    post_writes(&qp, 60, 65536);
    rc_ring(&qp);
    CHECK(!vhca_port_open(g->e));
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(!vhca_port_open(g->e));
}

/* Commands use the share of the CPU as well, and complete. */
static void test_commands_share(void)
{
    start_limited(1, 0, &RC_OPTS);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
    }
    CHECK(*g->clock > 1001000000);
}

/* A packet that crosses is paid for, also if a rule acts on its arrival. */
static void test_bandwidth(void)
{
    static const struct {
        unsigned mbits;
        const char *rule;
    } limits[] = {
        { 1, "" }, { 10, "" }, { 1000, "" }, { 25000, "" },
        { 1000, "rx opcode=*.write_* event=comm_est" },
    };
    struct rc_opts o = RC_OPTS;
    struct qhca_port_attr port;
    unsigned ms, worst, n, want;

    o.timeout = 12;                     /* 17 ms */
    for (unsigned i = 0; i < ARRAY_SIZE(limits); i++) {
        unsigned mbits = limits[i].mbits;

        n = mbits < 1000 ? 4 : 60;
        start_limited(0, mbits, &o);
        guest_set_faults(g, limits[i].rule);
        CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_PORT, 1, &port, sizeof(port)),
                 QHCA_OK);
        CHECK_EQ(le32toh(port.speed), mbits);
        post_writes(&qp, n, 65536);
        rc_ring(&qp);
        ms = run_until_done(&qp, n, &worst);
        want = n * 65536 * 8 / 1000 / mbits;
        tap_note("%u Mbit/s: %u ms of %u", mbits, ms, want);
        CHECK(ms + 3 > want && ms < want + want / 3 + 4);
        CHECK_EQ(counter(g, QHCA_CNT_RETRANSMIT), 0);
        guest_advance(g, 1000000000);
        CHECK_EQ(g->host.deadline, UINT64_MAX);
    }
}

/* Doorbell pages take turns when QPs wait for bandwidth. */
static void test_bandwidth_pages(void)
{
    static struct rc_qp rival[40];
    struct rc_opts o = RC_OPTS, theirs = RC_OPTS;
    unsigned worst, done = 0;

    start_limited(0, 100, &o);
    theirs.uar = 2;
    for (unsigned i = 0; i < ARRAY_SIZE(rival); i += 2) {
        rival[i] = rc_create(&node, &theirs);
        rival[i + 1] = rc_create(&node, &theirs);
        rc_connect(&rival[i], &rival[i + 1]);
        post_writes(&rival[i], 30, 10000);
        rc_ring(&rival[i]);
    }
    post_writes(&qp, 30, 10000);
    rc_ring(&qp);
    (void)run_until_done(&qp, 30, &worst);
    for (unsigned i = 0; i < ARRAY_SIZE(rival); i += 2) {
        done += num_done(&rival[i]);
    }
    tap_note("30 WRs of one QP, %u of its 20 rivals", done);
    CHECK(done < 100);
}

/* ---- commands of a device that has little time ---- */

#define SLOW_CQS    31u
#define SLOW_LOG    16u

/* Puts RESIZE_CQ of full CQs in the ring until it is full, without doorbell. */
static void post_resizes(const struct geq *eq)
{
    struct qhca_cmd *sq = guest_ptr(g, g->cmd_sq, 256 * sizeof(*sq));

    for (unsigned i = 0; i < SLOW_CQS; i++) {
        struct gcq cq = cq_create(g, eq, 1, SLOW_LOG);
        struct gbuf buf = guest_buf(g, vhca_cq_bytes(SLOW_LOG), 12, 2);

        vhca_cq_get(g->e, cq.cqn)->pi = 1u << SLOW_LOG;
        sq[(g->cmd_pi + i) % (1u << g->cmd_log)] = (struct qhca_cmd) {
            .opcode = htole16(QHCA_CMD_RESIZE_CQ),
            .create_cq = {
                .buf = buf.desc, .cqn = htole32(cq.cqn), .log_size = SLOW_LOG,
            },
        };
    }
    g->cmd_pi += SLOW_CQS;
}

/* Lets time pass; @q, if any, has WRITEs to do all the while. */
static void pass(uint64_t ns, struct rc_qp *q)
{
    uint64_t end = *g->clock + ns;

    while (*g->clock < end) {
        struct vhca_qp *at = q ? vhca_qp_get(g->e, q->qpn) : NULL;

        if (at && at->sq.pi - at->sq.ci < 64) {
            post_writes(q, 64, 65536);
            rc_ring(q);
        }
        if (g->host.todo) {
            g->host.todo = 0;
            qhca_engine_run(g->e, *g->clock);
        } else {
            *g->clock = MIN_OF(end, MAX_OF(g->host.deadline, *g->clock + 1000));
            qhca_engine_tick(g->e, *g->clock);
        }
    }
}

/*
 * Users' commands can take longer than any time-out, but CMD_PROGRESS tells the
 * driver that the device is working on them.
 */
static void test_commands_progress(void)
{
    const uint64_t step = 10000000, most = 1000000000;
    struct rc_opts o = RC_OPTS;
    uint64_t start, seen;
    uint64_t worst = 0;
    uint32_t last, before;

    o.sq_log = 10;
    o.cq_log = 12;
    start_pair(&o);
    post_resizes(&node.comp);
    before = reg_read(g, QHCA_REG_CMD_PROGRESS);
    CHECK(before > 0);
    limit_cpu(g, 1);
    pass(100 * step, NULL);
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_PROGRESS), before);
    ring(g, 0, QHCA_DB_CMD, 0, g->cmd_pi);
    last = before;
    start = seen = *g->clock;
    while (g->e->cmdq->ci != g->e->cmdq->pi) {
        pass(step, &qp);
        if (reg_read(g, QHCA_REG_CMD_PROGRESS) != last) {
            last = reg_read(g, QHCA_REG_CMD_PROGRESS);
            seen = *g->clock;
        }
        worst = MAX_OF(worst, *g->clock - seen);
        REQUIRE(*g->clock - seen < most);
    }
    tap_note("%u commands in %llu ms, a step at least every %llu ms", SLOW_CQS,
             (unsigned long long)(*g->clock - start) / 1000000,
             (unsigned long long)worst / 1000000);
    CHECK(*g->clock - start > reg_read(g, QHCA_REG_CMD_TIMEOUT) * 1000000ull);
    last = reg_read(g, QHCA_REG_CMD_PROGRESS);
    pass(100 * step, &qp);
    CHECK_EQ(reg_read(g, QHCA_REG_CMD_PROGRESS), last);
}

/*
 * A timer that is due while the share is spent also waits for time. The device
 * does not ask to be called again and again until then.
 */
static void test_timer_waits(void)
{
    struct rc_opts o = RC_OPTS;
    unsigned ticks = 0;

    harness_cleanup();
    g = guest_new_limited(1, 1, 0);
    guest_enable(g, 5);
    node = node_on(g, 1);
    far = (struct node) { .g = g, .host = 9, .vlan = QHCA_NO_VLAN };
    o.timeout = 1;                      /* 8 us */
    o.retry = 7;
    qp = rc_scripted(&node, &o, &far);
    guest_advance(g, 1000000000);
    post_writes(&qp, 40, 4000);
    rc_ring(&qp);
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    *g->clock = g->host.deadline;
    /* As QEMU's main loop does, without time passing. */
    while (g->host.deadline <= *g->clock && ticks < 1000) {
        qhca_host_tick(&g->host, *g->clock);
        CHECK(g->e->spent > 0);
        ticks++;
    }
    CHECK(ticks <= 1);
}

static const struct test tests[] = {
    { "doorbell pages take turns", test_pages },
    { "a share of the CPU", test_cpu_share },
    { "a timer that is due while the share is spent waits, too",
      test_timer_waits },
    { "a reset does not renew the share", test_share_and_reset },
    { "commands within a share of the CPU", test_commands_share },
    { "commands of a slow device show progress", test_commands_progress },
    { "a limited bandwidth", test_bandwidth },
    { "doorbell pages share the bandwidth", test_bandwidth_pages },
};

TEST_MAIN(tests)
