/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca simulator: the table of features. A new one is a row here, and code that
 * asks for SIM_HAS(): the seeds then draw it with each of the others.
 */
#include <stdio.h>

#include "sim.h"

#define ERRS    (1u << SIM_BAD_WR | 1u << SIM_DRAIN_BAD)
#define DRAINS  (1u << SIM_DRAIN | 1u << SIM_DRAIN_BAD)
#define STRIKES (~0u << SIM_CUT)
#define ALL     (~0u)

/* ---- whether they are there ---- */

static bool loses(const struct sim *s)
{
    const struct net *n = s->net;

    return n->loss + n->corrupt + n->dup + n->reorder;
}

static bool untimed(const struct sim *s)
{
    return s->untimed;
}

static bool slow_line(const struct sim *s)
{
    return s->mbit;
}

static bool paged(const struct sim *s)
{
    return s->paged && s->saw[SIM_SAW_FAULT];
}

static bool fickle(const struct sim *s)
{
    return s->fickle && s->saw[SIM_SAW_CHANGE];
}

static bool has_xrc(const struct sim *s)
{
    unsigned i = 0;

    while (i < s->num_qps && s->qp[i].q.o.type != QHCA_QPT_XRC_TGT) {
        i++;
    }
    return i < s->num_qps;
}

static bool has_srq(const struct sim *s)
{
    unsigned i = 0;

    while (i < s->num_qps && !s->qp[i].q.o.srqn) {
        i++;
    }
    return i < s->num_qps;
}

static bool has_windows(const struct sim *s)
{
    return s->num_windows;
}

static bool stale(const struct sim *s)
{
    return s->saw[SIM_SAW_UNBOUND];
}

static bool copied(const struct sim *s)
{
    return s->node[0].g->no_peek;
}

static bool ordered(const struct sim *s)
{
    return *s->order;
}

static bool rated(const struct sim *s)
{
    return s->rated;
}

static bool marked(const struct sim *s)
{
    return s->marked;
}

static bool pauses(const struct sim *s)
{
    return s->saw[SIM_SAW_PAUSE];
}

static bool moved(const struct sim *s)
{
    return s->saw[SIM_SAW_MOVE];
}

static bool is_reset(const struct sim *s)
{
    return s->nodes_gone;
}

/* ---- the table ---- */

/*
 * @percent: of the schedules have it by chance, others only as one of a pair
 * @needs: what else must be there
 * @not_kinds: kinds of schedules that cannot have it
 * @rules, @moves: whether devices with rules, and that are moved, can
 * @both: kinds in which plays that are compared cannot
 * @there: whether the schedule has had it
 */
static const struct {
    const char *name;
    unsigned percent, needs, not_kinds, both;
    bool rules, moves;
    bool (*there)(const struct sim *s);
} rows[SIM_FEATURES] = {
    [SIM_LOSS] = { "loss, doubles, disorder", 85, 0, 0, ALL, true, true,
                   loses },
    [SIM_UNTIMED] = { "no ACK timers", 25, 0, 0, ALL, false, true, untimed },
    [SIM_LINE] = { "slow ports", 10, SIM_HAS(UNTIMED), STRIKES, ALL, false,
                   true, slow_line },
    [SIM_PAGES] = { "page faults", 2, 0, 0, STRIKES, true, true, paged },
    [SIM_MIND] = { "a change of mind", 0, SIM_HAS(PAGES), ERRS, ALL, false,
                   true, fickle },
    [SIM_XRC] = { "XRC", 5, 0, 0, 0, true, true, has_xrc },
    [SIM_SRQ] = { "an SRQ", 5, 0, 0, 0, true, true, has_srq },
    [SIM_WINDOWS] = { "windows", 5, 0, 0, 0, true, true, has_windows },
    [SIM_STALE] = { "invalidation in flight", 0, SIM_HAS(WINDOWS), 0, ALL,
                    true, true, stale },
    [SIM_COPIED] = { "memory that must be copied", 10, 0, 0, ALL, true, true,
                     copied },
    [SIM_ORDER] = { "data in any order", 25, 0, 0, 0, false, false, ordered },
    [SIM_RATES] = { "rates", 15, 0, 0, STRIKES | DRAINS, true, true, rated },
    [SIM_MARKS] = { "marks and notifications", 10, SIM_HAS(RATES), 0,
                    STRIKES | DRAINS, true, true, marked },
    [SIM_PAUSE] = { "pauses of classes", 10, 0, 0, ALL, true, true, pauses },
    [SIM_MOVE] = { "another device takes over", 0, 0, 0, ALL, false, false,
                   moved },
    [SIM_FLR] = { "the reset of a function", 0, 0, 0, ALL, true, true,
                  is_reset },
};

static const struct {
    unsigned a, b;
    const char *why;
} clashes[] = {
    { SIM_LOSS, SIM_UNTIMED, "that network loses only what can be noticed" },
    { SIM_LINE, SIM_RATES, "the ports have a speed already" },
    { SIM_MIND, SIM_UNTIMED,
      "the network may not keep requests of before RESET" },
    { SIM_MIND, SIM_RATES, "nor may the device" },
    { SIM_COPIED, SIM_ORDER,
      "only data for memory that can be looked at is held back" },
};

/* Return the features that @f needs, and itself. */
static unsigned closure(unsigned f)
{
    unsigned all = 1u << f | rows[f].needs, before;

    do {
        before = all;
        for (unsigned i = 0; i < SIM_FEATURES; i++) {
            all |= before >> i & 1 ? rows[i].needs : 0;
        }
    } while (all != before);
    return all;
}

static const char *clash_in(unsigned has)
{
    for (unsigned i = 0; i < ARRAY_SIZE(clashes); i++) {
        if (has >> clashes[i].a & 1 && has >> clashes[i].b & 1) {
            return clashes[i].why;
        }
    }
    return NULL;
}

static const char *clash(unsigned a, unsigned b)
{
    return clash_in(closure(a) | closure(b));
}

/* ---- drawing ---- */

/* Whether this program, with its options, can play feature @f. */
static bool can_play(const struct sim *s, unsigned f)
{
    return !(rows[f].not_kinds >> s->kind & 1) &&
           !(s->seen && rows[f].both >> s->kind & 1) &&
           (rows[f].rules || !*sim_faults) && (rows[f].moves || !sim_moves) &&
           !(sim_limits.without >> f & 1);
}

static void add(struct sim *s, unsigned f)
{
    unsigned more = closure(f);

    for (unsigned i = 0; i < SIM_FEATURES; i++) {
        if (more >> i & 1 && !can_play(s, i)) {
            return;
        }
    }
    if (!clash_in(s->has | more)) {
        s->has |= more;
    }
}

static unsigned pair[SIM_FEATURES * SIM_FEATURES][2], num_pairs;

/* Lists all pairs that do not clash. */
static void list_pairs(void)
{
    for (unsigned a = 0; a < SIM_FEATURES; a++) {
        for (unsigned b = a + 1; b < SIM_FEATURES; b++) {
            if (!clash(a, b)) {
                pair[num_pairs][0] = a;
                pair[num_pairs++][1] = b;
            }
        }
    }
}

static void add_pair(struct sim *s, uint64_t nth)
{
    if (!num_pairs) {
        list_pairs();
    }
    add(s, pair[nth % num_pairs][0]);
    add(s, pair[nth % num_pairs][1]);
}

void sim_features_draw(struct sim *s)
{
    uint64_t rng = s->rng;

    s->has = 0;
    sim_stream(s, SIM_STREAM_FEATURES);
    add_pair(s, s->seed + 7 * s->kind);
    /* From the last row on: those before it are needed, or keep others out. */
    for (unsigned i = SIM_FEATURES; i-- > 0;) {
        if (sim_rand(s, 100) < rows[i].percent) {
            add(s, i);
        }
    }
    s->rng = rng;
}

/* ---- what has been drawn ---- */

/* Return those that have been there, when the schedule has ended. */
static unsigned met_by(const struct sim *s)
{
    unsigned met = 0;

    for (unsigned i = 0; i < SIM_FEATURES; i++) {
        met |= (unsigned)rows[i].there(s) << i;
    }
    return met;
}

void sim_features_count(const struct sim *s, sim_pairs count)
{
    unsigned met = met_by(s);

    for (unsigned a = 0; a < SIM_FEATURES; a++) {
        for (unsigned b = 0; b < SIM_FEATURES; b++) {
            __atomic_fetch_add(&count[a][b], met >> a & met >> b & 1,
                               __ATOMIC_RELAXED);
        }
    }
}

/* Whether @n schedules with both can be. */
static bool pair_ok(unsigned a, unsigned b, unsigned n)
{
    const char *why = clash(a, b);

    if (!why == (n > 0)) {
        return true;
    }
    printf("# %u schedules with %s and %s%s%s\n", n, rows[a].name,
           rows[b].name, why ? ", but " : "", why ? why : "");
    return false;
}

bool sim_features_report(sim_pairs count, bool judge)
{
    bool ok = true;

    /* With these options some features are left out. */
    judge = judge && !sim_moves && !*sim_faults && !sim_limits.without;
    for (unsigned a = 0; a < SIM_FEATURES; a++) {
        printf("# %u schedules with %s\n", count[a][a], rows[a].name);
        for (unsigned b = a + 1; judge && b < SIM_FEATURES; b++) {
            ok &= pair_ok(a, b, count[a][b]);
        }
    }
    return ok;
}
