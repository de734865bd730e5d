/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: one schedule of the simulator. It runs in virtual time and
 * checks each completion against the plan.
 */
#include <stdarg.h>
#include <stdio.h>

#include "harness/digest.h"
#include "harness/shadow.h"
#include "harness/debug.h"
#include "sim.h"

/* No bound on the time is as long. */
#define LIMIT_ROUNDS    400000u

unsigned sim_rand_of(uint64_t *rng, unsigned below)
{
    return (unsigned)((test_random(rng) >> 24) % below);
}

unsigned sim_rand(struct sim *s, unsigned below)
{
    return sim_rand_of(&s->rng, below);
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

void sim_stream(struct sim *s, unsigned which)
{
    s->rng = (s->seed * 64 + which) * 0x9e3779b97f4a7c15u + 88172645463325252u;
    sim_rand(s, 2);
}

uint64_t sim_alloc(struct sim *s, struct node *n, uint32_t len)
{
    uint64_t addr = n->mr.addr + s->used[n - s->node];

    s->used[n - s->node] += len + 1;
    REQUIRE(s->used[n - s->node] <= SIM_REGION);
    return addr;
}

static bool complete(const struct sim *s)
{
    for (unsigned i = 0; i < s->num_qps; i++) {
        const struct sim_qp *q = &s->qp[i];

        if (!q->gone && !q->model->complete(q)) {
            return false;
        }
    }
    return true;
}

/* ---- what happens ---- */

/*
 * Waiting for a receive WR costs no retry, but each packet that is lost then
 * does: a sender gives up that waits long enough on a network with rules, or in
 * the end on any.
 */
static void excuse(struct sim *s)
{
    for (unsigned i = 0; (*sim_faults || s->ends) && i < s->num_qps; i++) {
        struct sim_qp *q = &s->qp[i];
        const struct vhca_qp *v = q->gone ? NULL :
                                  vhca_qp_get(q->q.n->g->e, q->q.qpn);

        if (v && v->state == QHCA_QPS_ERR && !v->req.retries &&
            counter(q->q.n->g, QHCA_CNT_RX_RNR_NAK)) {
            q->may_fail = q->peer->may_fail = true;
        }
    }
}

void sim_take_events(struct sim *s, struct node *n)
{
    struct qhca_eqe e;

    if (sim_node_gone(s, n)) {
        return;
    }
    excuse(s);
    while (eq_next(&n->async, &e)) {
        struct sim_qp *q = NULL;

        if (s->paged && e.type == QHCA_EVENT_PAGE_FAULT) {
            sim_pages_event(s, n, le32toh(e.obj));
            continue;
        }
        sim_see_event(s, &e);
        for (unsigned i = 0; i < s->num_qps; i++) {
            if (s->qp[i].q.n == n && s->qp[i].q.qpn == le32toh(e.obj)) {
                q = &s->qp[i];
            }
        }
        if (q && e.type == QHCA_EVENT_SQ_DRAINED && q->drained_owed) {
            q->drained_owed = false;
            s->saw[SIM_SAW_DRAINED]++;
        } else if (!sim_srq_event(s, n, &e) && !(q && q->may_fail) &&
                   !(s->rated && e.type == QHCA_EVENT_SPEED_CHANGE) &&
                   !(s->net->cut && e.type == QHCA_EVENT_LINK_DOWN)) {
            sim_fail(s, "event %u", e.type);
        }
    }
    eq_arm(&n->async);
}

/* Moves @q to SQD, or back to RTS if it has drained. */
static void toggle_drain(struct sim *s, struct sim_qp *q)
{
    struct qhca_qp_attr a = { .state = QHCA_QPS_SQD };
    bool notify = sim_rand(s, 2);
    unsigned state = q->gone ? QHCA_QPS_ERR : rc_state(&q->q);
    int status;

    if (state != QHCA_QPS_RTS && state != QHCA_QPS_SQD) {
        return;                 /* an error, which is checked elsewhere */
    }
    if (!q->held) {
        a.en_sqd_async_notify = 1;
        status = rc_modify(&q->q, &a, QHCA_QP_STATE |
                           (notify ? QHCA_QP_EN_SQD_ASYNC_NOTIFY : 0));
        if (status == QHCA_ERR_STATE && *s->order) {
            return;             /* the query has ended a wait, then it failed */
        }
        CHECK_EQ(status, 0);
        q->held = true;
        q->drained_owed = notify;
        s->saw[SIM_SAW_SQD]++;
    } else if (!rc_query(&q->q).sq_draining) {
        sim_take_events(s, q->q.n);
        if (q->drained_owed) {
            sim_fail(s, "drained, but no event");
        }
        status = rc_set_state(&q->q, QHCA_QPS_RTS);
        if (status == QHCA_ERR_STATE && *s->order) {
            return;             /* the query has let it go on, and fail */
        }
        CHECK_EQ(status, 0);
        q->held = false;
        s->saw[SIM_SAW_RESUMED]++;
    } else {
        CHECK_EQ(rc_set_state(&q->q, QHCA_QPS_RTS), QHCA_ERR_STATE);
        s->saw[SIM_SAW_DRAINING]++;
    }
}

static void strike(struct sim *s, struct sim_qp *q)
{
    s->saw[SIM_SAW_STRIKE] += !complete(s);
    if (q->gone && s->kind != SIM_CUT && s->kind != SIM_UNBIND) {
        return;                 /* its function has been reset */
    }
    switch (s->kind) {
    case SIM_CUT:
        s->net->cut = true;
        sim_both_cut(s);
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
    case SIM_UNBIND:
        sim_strike_windows(s);
        for (unsigned i = 0; i < s->num_qps; i++) {
            s->qp[i].may_fail = true;
        }
        return;
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
    s->saw[SIM_SAW_REFUSED] += g->refused;
    g->refused = 0;
    g->net_blocked = blocked;
}

/* WRs posted before RTS are flushed, not executed. */
static void leave_sqe(struct sim *s, struct sim_qp *q)
{
    int status = rc_set_state(&q->q, QHCA_QPS_RTS);

    if (status && q->may_fail && rc_state(&q->q) == QHCA_QPS_ERR) {
        return;                 /* a bad receive WQE has led to ERR */
    }
    s->saw[SIM_SAW_SQE]++;
    CHECK_EQ(status, 0);
    q->flushed = q->posted;
    q->sqe = false;
}

static void act(struct sim *s, unsigned round, unsigned strike_at)
{
    struct sim_qp *q = &s->qp[sim_rand(s, s->num_qps)];

    if (sim_drains(s->kind) && !sim_rand(s, 3)) {
        toggle_drain(s, q);
        sim_both_settle(s);
    }
    if (s->kind == SIM_DRAIN_BAD && !q->gone && q->held &&
        q->model == &sim_uc && rc_query(&q->q).sq_draining && sim_rand(s, 2)) {
        sim_poll(s, q);
        sim_strike_key(s, q);
    }
    if (sim_blocks(s->kind)) {
        set_blocked(s, q->q.n->g, sim_rand(s, 2));
    }
    if (round == strike_at) {
        strike(s, q);
    }
    sim_flr(s, round);
    sim_move(s);
    sim_pages_steal(s);
    sim_rates_change(s, q);
    if (s->has & SIM_HAS(STALE) && !sim_rand(s, 20)) {
        sim_strike_windows(s);
    }
    for (unsigned i = 0; i < s->num_qps; i++) {
        q = &s->qp[i];
        if (!sim_rand(s, 3)) {
            sim_post_recv(s, q, sim_rand(s, 8));
            sim_both_settle(s);
        }
        if (!sim_rand(s, 3)) {
            sim_post_send(s, q, sim_rand(s, 8));
            sim_both_settle(s);
        }
        if (!q->gone && !sim_rand(s, 2)) {
            sim_poll(s, q);
        }
        if (!q->gone && q->sqe && !sim_rand(s, 3)) {
            leave_sqe(s, q);
        }
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        sim_take_events(s, &s->node[i]);
    }
}

/* ---- the end ---- */

/* Lets all WRs be posted and end; those that cannot end are flushed. */
static void finish(struct sim *s)
{
    sim_pages_prompt(s);
    sim_gaps_stop(s);
    for (unsigned i = 0; i < s->num_nodes; i++) {
        set_blocked(s, s->node[i].g, false);
    }
    s->ends = !complete(s);
    /* Longer than all retries, except waiting for a receive WR, take. */
    net_run(s->net, 4000000000ull);
    for (unsigned round = 0; round < 2 * SIM_MAX_WR; round++) {
        for (unsigned i = 0; i < s->num_qps; i++) {
            struct sim_qp *q = &s->qp[i];

            if (!q->gone && round == 0) {
                /* Receive WRs of UC and UD may never get a message. */
                if (!complete(s) || q->model == &sim_uc ||
                    q->model == &sim_ud) {
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
        sim_take_events(s, &s->node[i]);
    }
}

/* finish() has moved QPs that may fail to ERR; all others must be in RTS. */
static void check_state(struct sim *s, struct sim_qp *q)
{
    unsigned want = q->may_fail ? QHCA_QPS_ERR : QHCA_QPS_RTS;
    struct qhca_qpc c;

    if ((s->kind == SIM_DESTROY && q->gone) || sim_node_gone(s, q->q.n)) {
        return;
    }
    c = rc_query(&q->q);
    sim_see_qp(s, q, &c);
    digest_feed('q', q->q.qpn, &c, sizeof(c));
    if (c.attr.state != (q->gone ? QHCA_QPS_RESET : want)) {
        sim_fail(s, "QP 0x%x is in state %u in the end", q->q.qpn,
                 c.attr.state);
    }
}

static void check_quiet(struct sim *s)
{
    sim_see_end(s);
    for (unsigned i = 0; i < s->num_qps; i++) {
        struct sim_qp *q = &s->qp[i];

        if (!q->gone && (q->done < q->num_wr ||
                         (q->rr_done < q->num_rr &&
                          !(sim_shares_rq(q) && q->may_fail)))) {
            sim_fail(s, "QP %u: %u of %u WRs, %u of %u receive WRs complete", i,
                     q->done, q->num_wr, q->rr_done, q->num_rr);
        }
        if (q->model->check_memory) {
            q->model->check_memory(s, q);
        }
        check_state(s, q);
        if (sim_node_gone(s, q->q.n)) {
            continue;
        }
        if (s->kind != SIM_DESTROY || !q->gone) {
            CHECK_EQ(rc_destroy(&q->q), 0);
        }
        CHECK_EQ(guest_cmd_obj(q->q.n->g, QHCA_CMD_DESTROY_CQ,
                               q->q.scq.cqn), 0);
        CHECK_EQ(guest_cmd_obj(q->q.n->g, QHCA_CMD_DESTROY_CQ,
                               q->q.rcq.cqn), 0);
    }
    sim_free_keys(s);
    for (unsigned i = 0; i < s->num_nodes; i++) {
        if (!sim_node_gone(s, &s->node[i])) {
            sim_srq_check(s, &s->node[i]);
        }
    }
    for (unsigned i = 0; i < s->num_nodes; i++) {
        struct guest *g = s->node[i].g;
        unsigned left = sim_node_gone(s, &s->node[i]) ?
                        0 : 5 + (g->in_memory ? SHADOW_PAGES : 0);

        /*
         * A PD, two MRs, two EQs and doorbells are left; and with a limit a
         * timer, for the last commands.
         */
        if ((g->host.deadline != UINT64_MAX && !g->limited) ||
            (g->host.todo && !g->look) ||
            qhca_engine_num_objects(g->e) != left) {
            sim_fail(s, "node %u is not quiet: timer %llu, %u objects", i,
                     (unsigned long long)g->host.deadline,
                     qhca_engine_num_objects(g->e));
        }
    }
    if (s->net->num_frames) {
        sim_fail(s, "%u frames still in flight", s->net->num_frames);
    }
}

bool sim_run(struct sim *s, uint64_t seed, enum sim_kind kind)
{
    unsigned strike_at, round = 0, limit = LIMIT_ROUNDS;

    sim_setup(s, seed, kind);
    sim_time_begin(s);
    sim_stream(s, SIM_STREAM_PLAY);
    strike_at = sim_rand(s, 60);
    if (sim_may_hang(s)) {
        limit = MAX_OF(strike_at, s->has & SIM_HAS(FLR) ? s->flr_at : 0) + 400;
    }
    while (!s->failed && round < limit &&
           (!complete(s) || round <= strike_at)) {
        if (!sim_may_hang(s) && s->net->clock - s->begin > sim_time_bound(s)) {
            break;
        }
        net_advance(s->net, 1 + sim_rand(s, 40000));
        act(s, round++, strike_at);
        sim_gaps_end_round(s);
    }
    if (!sim_may_hang(s) && !s->failed && !complete(s)) {
        sim_fail(s, "stuck: not complete after %llu ns",
                 (unsigned long long)(s->net->clock - s->begin));
    }
    if (!s->failed) {
        finish(s);
        check_quiet(s);
    }
    return !s->failed;
}
