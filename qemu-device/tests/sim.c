/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a simulator of RC queue pairs on a bad network.
 *
 * A seed decides everything: how many machines and queue pairs, their work
 * requests, what the network does and when the program gets round to posting.
 * It plays in virtual time and holds each completion against what was planned:
 *
 *   sim                         a bounded run of every kind, as TAP
 *   sim --seed S --count N      schedules S, S + 1 and so on
 *   sim --seed S --count N --kind K     of one kind only (0 to 7)
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "sim.h"

#define DEFAULT_COUNT   2000u
#define LIMIT_ROUNDS    20000u

static const char *const kind_name[SIM_KINDS] = {
    [SIM_PLAIN] = "D-049 B-060..B-067 loss, doubles, disorder, damage",
    [SIM_DRAIN] = "A-084..A-089 A-112 SQD and back",
    [SIM_PRESSURE] = "D-049 the network takes no frames",
    [SIM_CUT] = "I-021 D-046 the cable comes out",
    [SIM_TO_ERR] = "A-097..A-100 A-115 moved to ERR",
    [SIM_TO_RESET] = "A-103 A-120 moved to RESET",
    [SIM_DESTROY] = "A-020 destroyed",
    [SIM_BAD_WR] = "I-052 bad WRs in between",
};

static struct sim sim;

unsigned sim_rand(struct sim *s, unsigned below)
{
    return (unsigned)((test_random(&s->rng) >> 24) % below);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    va_list ap;

    if (!s->failed) {
        printf("# seed %llu kind %d at %llu ns: ", (unsigned long long)s->seed,
               (int)s->kind, (unsigned long long)s->net->clock);
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf("\n");
    }
    s->failed = true;
}

uint64_t sim_alloc(struct sim *s, struct node *n, uint32_t len)
{
    uint64_t addr = n->mr.addr + s->used[n - s->node];

    s->used[n - s->node] += len + 1;
    REQUIRE(s->used[n - s->node] <= SIM_REGION);
    return addr;
}

/* ---- what happens ---- */

static void take_events(struct sim *s, struct node *n)
{
    struct qhca_eqe e;

    while (eq_next(&n->async, &e)) {
        struct sim_qp *q = NULL;

        for (unsigned i = 0; i < s->num_qps; i++) {
            if (s->qp[i].q.n == n && s->qp[i].q.qpn == le32toh(e.obj)) {
                q = &s->qp[i];
            }
        }
        if (q && e.type == QHCA_EVENT_SQ_DRAINED && q->drained_owed) {
            q->drained_owed = false;
        } else if (!q || !q->may_fail) {
            sim_fail(s, "event %u", e.type);
        }
    }
    eq_arm(&n->async);
}

/* SQD, or back if it has drained. */
static void toggle_drain(struct sim *s, struct sim_qp *q)
{
    struct qhca_qp_attr a = { .state = QHCA_QPS_SQD };
    bool notify = sim_rand(s, 2);

    if (!q->held) {
        a.en_sqd_async_notify = 1;
        CHECK_EQ(rc_modify(&q->q, &a, QHCA_QP_STATE |
                           (notify ? QHCA_QP_EN_SQD_ASYNC_NOTIFY : 0)), 0);
        q->held = true;
        q->drained_owed = notify;
    } else if (!rc_query(&q->q).sq_draining) {
        take_events(s, q->q.n);
        if (q->drained_owed) {
            sim_fail(s, "drained, but no event");
        }
        CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_RTS), 0);
        q->held = false;
    } else {
        CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_RTS), QHCA_ERR_STATE);
    }
}

static void strike(struct sim *s, struct sim_qp *q)
{
    switch (s->kind) {
    case SIM_CUT:
        s->net->cut = true;
        for (unsigned i = 0; i < s->num_qps; i++) {
            s->qp[i].may_fail = true;
        }
        return;
    case SIM_TO_ERR:
        CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_ERR), 0);
        break;
    case SIM_TO_RESET:
        CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_RESET), 0);
        q->gone = true;
        break;
    case SIM_DESTROY:
        CHECK_EQ(rc_destroy(&q->q), 0);
        q->gone = true;
        break;
    default:
        return;
    }
    q->may_fail = q->peer->may_fail = true;
}

static void set_blocked(struct sim *s, struct guest *g, bool blocked)
{
    if (g->net_blocked && !blocked) {
        g->net_blocked = false;
        qhca_engine_tx_ready(g->e, s->net->clock);
    }
    g->net_blocked = blocked;
}

static void act(struct sim *s, unsigned round, unsigned strike_at)
{
    struct sim_qp *q = &s->qp[sim_rand(s, s->num_qps)];

    if (s->kind == SIM_DRAIN && !sim_rand(s, 3)) {
        toggle_drain(s, q);
    }
    if (s->kind == SIM_PRESSURE) {
        set_blocked(s, q->q.n->g, sim_rand(s, 2));
    }
    if (round == strike_at) {
        strike(s, q);
    }
    for (unsigned i = 0; i < s->num_qps; i++) {
        q = &s->qp[i];
        if (!sim_rand(s, 3)) {
            sim_post_recv(s, q, sim_rand(s, 8));
        }
        if (!sim_rand(s, 3)) {
            sim_post_send(s, q, sim_rand(s, 8));
        }
        if (!q->gone && !sim_rand(s, 2)) {
            sim_poll(s, q);
        }
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        take_events(s, &s->node[i]);
    }
}

static bool complete(const struct sim *s)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        const struct sim_qp *q = &s->qp[i];

        if (!q->gone && !q->failed &&
            (q->done < q->num_wr || q->held ||
             (!q->may_fail && q->rr_done < q->num_rr))) {
            return false;
        }
    }
    return true;
}

/* ---- the end ---- */

/* Everything posted, everything over: whatever is left must be flushed. */
static void finish(struct sim *s)
{
    for (unsigned i = 0; i < s->num_nodes; i++) {
        set_blocked(s, s->node[i].g, false);
    }
    net_run(s->net, 10000000000ull);
    for (unsigned round = 0; round < 2 * SIM_MAX_WR; round++) {
        for (unsigned i = 0; i < s->num_qps; i++) {
            struct sim_qp *q = &s->qp[i];

            if (!q->gone && round == 0) {
                if (!complete(s)) {
                    q->may_fail = true;
                }
                if (q->may_fail) {
                    CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_ERR), 0);
                }
            }
            sim_post_recv(s, q, SIM_MAX_WR);
            sim_post_send(s, q, SIM_MAX_WR);
        }
        net_run(s->net, 10000000000ull);
        for (unsigned i = 0; i < s->num_qps; i++) {
            if (!s->qp[i].gone) {
                sim_poll(s, &s->qp[i]);
            }
        }
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        take_events(s, &s->node[i]);
    }
}

static void check_quiet(struct sim *s)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct sim_qp *q = &s->qp[i];

        if (!q->gone && (q->done < q->num_wr || q->rr_done < q->num_rr)) {
            sim_fail(s, "QP %u: %u of %u WRs, %u of %u receive WRs complete", i,
                     q->done, q->num_wr, q->rr_done, q->num_rr);
        }
        if (s->kind != SIM_DESTROY || !q->gone) {
            CHECK_EQ(rc_destroy(&q->q), 0);
        }
        CHECK_EQ(guest_cmd_obj(q->q.n->g, QHCA_CMD_DESTROY_CQ,
                               q->q.scq.cqn), 0);
        CHECK_EQ(guest_cmd_obj(q->q.n->g, QHCA_CMD_DESTROY_CQ,
                               q->q.rcq.cqn), 0);
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        struct guest *g = s->node[i].g;

        /* Left: a PD, two MRs, two EQs. */
        if (g->deadline != UINT64_MAX || g->scheduled ||
            qhca_engine_num_objects(g->e) != 5) {
            sim_fail(s, "node %u is not quiet: timer %llu, %u objects", i,
                     (unsigned long long)g->deadline,
                     qhca_engine_num_objects(g->e));
        }
    }
    if (s->net->num_frames) {
        sim_fail(s, "%u frames on their way", s->net->num_frames);
    }
}

static bool run(struct sim *s, uint64_t seed, enum sim_kind kind)
{
    unsigned strike_at, round = 0, limit = LIMIT_ROUNDS;

    sim_setup(s, seed, kind);
    strike_at = sim_rand(s, 60);
    if (kind >= SIM_CUT) {
        limit = strike_at + 400;
    }
    while (!s->failed && round < limit &&
           (!complete(s) || round <= strike_at)) {
        net_advance(s->net, 1 + sim_rand(s, 40000));
        act(s, round++, strike_at);
    }
    if (kind < SIM_CUT && !s->failed && !complete(s)) {
        sim_fail(s, "stuck");
    }
    if (!s->failed) {
        finish(s);
        check_quiet(s);
    }
    return !s->failed;
}

/* ---- main ---- */

static unsigned count = DEFAULT_COUNT;
static uint64_t first_seed = 1;
static int only_kind = -1;

static void run_kind(enum sim_kind kind, unsigned n)
{
    if (!sim.net) {
        sim.net = net_new(1);
    }
    for (unsigned i = 0; i < n; i++) {
        CHECK(run(&sim, first_seed + i, kind));
    }
}

/* One after the other, in the order of enum sim_kind. */
static void next_kind(void)
{
    static int kind = -1;

    kind = only_kind >= 0 ? only_kind : kind + 1;
    run_kind((enum sim_kind)kind, count / SIM_KINDS);
}

static void keep(void)
{
}

/* What the schedules were like: none of these should be 0. */
static void print_counters(void)
{
    static const enum qhca_counter which[] = {
        QHCA_CNT_TX_PKTS, QHCA_CNT_RETRANSMIT, QHCA_CNT_TIMEOUT,
        QHCA_CNT_RX_DUPLICATE, QHCA_CNT_RX_OUT_OF_SEQ, QHCA_CNT_RX_NAK_SEQ,
        QHCA_CNT_RX_RNR_NAK, QHCA_CNT_RX_ICRC, QHCA_CNT_RETRY_EXC,
    };

    for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
        uint64_t sum = 0;

        for (unsigned j = 0; j < SIM_MAX_NODES; j++) {
            sum += sim_machine[j] ? counter(sim_machine[j], which[i]) : 0;
        }
        printf("# %s %llu\n", qhca_counter_name(which[i]),
               (unsigned long long)sum);
    }
}

int main(int argc, char **argv)
{
    struct test tests[SIM_KINDS];
    struct timespec t0, t1;
    double seconds;
    unsigned first = 0, n = SIM_KINDS;
    int status;

    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t v = strtoull(argv[i + 1], NULL, 0);

        if (!strcmp(argv[i], "--seed")) {
            first_seed = v;
        } else if (!strcmp(argv[i], "--count")) {
            count = (unsigned)v;
        } else if (!strcmp(argv[i], "--kind") && v < SIM_KINDS) {
            only_kind = (int)v;
        } else {
            fprintf(stderr, "usage: sim [--seed S] [--count N] [--kind K]\n");
            return 2;
        }
    }
    for (unsigned i = 0; i < SIM_KINDS; i++) {
        tests[i] = (struct test) { kind_name[i], next_kind };
    }
    if (only_kind >= 0) {
        first = (unsigned)only_kind;
        n = 1;
        count *= SIM_KINDS;
    }
    clock_gettime(CLOCK_MONOTONIC, &t0);
    status = tap_main(1, argv, tests + first, n, keep);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    seconds = (double)(t1.tv_sec - t0.tv_sec) +
              (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
    printf("# %u schedules, %.0f per second\n", count / SIM_KINDS * n,
           count / SIM_KINDS * n / seconds);
    print_counters();
    harness_cleanup();
    return status;
}
