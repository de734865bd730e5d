/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DCQCN: the reaction point against the equations of the paper in floating
 * point (Zhu et al., SIGCOMM 2015, section 5).
 */
#include "harness/fixture.h"

#define US      1000ull

static void set_one(enum qhca_cc which, uint64_t value)
{
    g->e->congestion->value[which] = (uint32_t)value;
}

/* struct model - the paper's RP; rates in kbit/s, times in ns */
struct model {
    double rate, target, alpha, bytes;
    unsigned times, laps;
    uint64_t now, timed, shrunk, cut;
};

static double param(enum qhca_cc which)
{
    return g->e->congestion->value[which];
}

static const double line = 100e6;

static void model_increase(struct model *m)
{
    unsigned f = (unsigned)param(QHCA_CC_RP_STAGES);
    unsigned most = m->times > m->laps ? m->times : m->laps;
    unsigned least = m->times < m->laps ? m->times : m->laps;

    if (most < f) {
        ;                       /* fast recovery */
    } else if (least > f) {
        m->target += 1000 * param(QHCA_CC_RP_LEAP) * (least - f);
    } else {
        m->target += 1000 * param(QHCA_CC_RP_STEP);
    }
    m->target = m->target < line ? m->target : line;
    m->rate = (m->rate + m->target) / 2;
    if (m->rate > line - 1) {
        m->rate = 0;
    }
}

static void model_pass(struct model *m, uint64_t ns)
{
    uint64_t end = m->now + ns;
    uint64_t shrink = US * (uint64_t)param(QHCA_CC_RP_ALPHA_TIME);
    uint64_t step = US * (uint64_t)param(QHCA_CC_RP_TIME);

    for (m->now = end; m->rate && m->shrunk + shrink <= end; ) {
        m->shrunk += shrink;
        m->alpha *= 1 - param(QHCA_CC_RP_GAIN) / 1024;
    }
    while (m->rate && m->timed + step <= end) {
        m->timed += step;
        m->times++;
        model_increase(m);
    }
}

static void model_sent(struct model *m, unsigned bytes)
{
    m->bytes += m->rate ? bytes : 0;
    while (m->rate && m->bytes >= param(QHCA_CC_RP_BYTES)) {
        m->bytes -= param(QHCA_CC_RP_BYTES);
        m->laps++;
        model_increase(m);
    }
}

static void model_cnp(struct model *m)
{
    double gain = param(QHCA_CC_RP_GAIN) / 1024, cut;

    if (!m->rate) {
        m->rate = line;
        m->alpha = param(QHCA_CC_RP_ALPHA) / 1024;
    } else if (m->now - m->cut < US * param(QHCA_CC_RP_MIN_CUT)) {
        return;
    }
    cut = 1 - m->alpha / 2;
    if (cut < param(QHCA_CC_RP_MIN_FACTOR) / 100) {
        cut = param(QHCA_CC_RP_MIN_FACTOR) / 100;
    }
    m->target = m->rate;
    m->rate *= cut;
    if (m->rate < 1000 * param(QHCA_CC_RP_MIN_RATE)) {
        m->rate = 1000 * param(QHCA_CC_RP_MIN_RATE);
    }
    m->alpha = (1 - gain) * m->alpha + gain;
    m->times = m->laps = 0;
    m->bytes = 0;
    m->timed = m->shrunk = m->cut = m->now;
}

/* Whether they agree within a thousandth. */
static bool agree(double model, double is)
{
    return is > model * 0.999 - 2 && is < model * 1.001 + 2;
}

static void draw_params(uint64_t *rng)
{
    set_one(QHCA_CC_RP_GAIN, 1 + test_random(rng) % 256);
    set_one(QHCA_CC_RP_ALPHA, 1 + test_random(rng) % 1024);
    set_one(QHCA_CC_RP_ALPHA_TIME, 10 + test_random(rng) % 200);
    set_one(QHCA_CC_RP_TIME, 10 + test_random(rng) % 2000);
    set_one(QHCA_CC_RP_BYTES, 65536 << test_random(rng) % 10);
    set_one(QHCA_CC_RP_STAGES, 1 + test_random(rng) % 8);
    set_one(QHCA_CC_RP_STEP, 1 + test_random(rng) % 200);
    set_one(QHCA_CC_RP_LEAP, 1 + test_random(rng) % 2000);
    set_one(QHCA_CC_RP_MIN_CUT, test_random(rng) % 50);
    set_one(QHCA_CC_RP_MIN_FACTOR, 1 + test_random(rng) % 100);
    set_one(QHCA_CC_RP_MIN_RATE, 1 + test_random(rng) % 1000);
}

/* Any history, with any parameters, ends where the equations say. */
static void test_equations(void)
{
    uint64_t rng = 20151;
    unsigned limited = 0, released = 0;

    start_node();
    for (unsigned run = 0; run < 200; run++) {
        struct vhca_rp rp = { 0 };
        struct model m = { .now = g->e->now };
        const unsigned often = 2 + test_random(&rng) % 30;

        draw_params(&rng);
        m.now = g->e->now;
        for (unsigned i = 0; i < 300; i++) {
            uint64_t ns = test_random(&rng) % 300000;
            unsigned bytes = test_random(&rng) % 300000;

            model_pass(&m, ns);
            g->e->now += ns;
            vhca_rp_catch_up(g->e, &rp);
            if (test_random(&rng) % often == 0) {
                model_cnp(&m);
                vhca_rp_cut(g->e, &rp);
            } else {
                model_sent(&m, bytes);
                vhca_rp_sent(g->e, &rp, bytes);
            }
            if (!agree(m.rate, rp.rate) || !agree(m.target * !!m.rate,
                                                  rp.target)) {
                tap_note("run %u step %u: %.0f of %.0f, here %u of %u", run, i,
                         m.rate, m.target, rp.rate, rp.target);
                CHECK(!"as the equations say");
                return;
            }
            limited += rp.rate != 0;
            released += rp.rate == 0;
        }
        *g->clock = g->e->now;
    }
    tap_note("%u steps with a limit, %u without", limited, released);
    CHECK(limited > 20000 && released > 2000);
}

/* After a long time, catching up is short, and ends at the top. */
static void test_long_ago(void)
{
    struct vhca_rp rp = { 0 };
    unsigned looks;

    start_node();
    set_one(QHCA_CC_RP_TIME, 1);
    set_one(QHCA_CC_RP_STEP, 1);
    CHECK(vhca_rp_cut(g->e, &rp));
    rp.rate = rp.target = 10000;
    g->e->now += 1000000000000000;
    vhca_rp_catch_up(g->e, &rp);
    CHECK_EQ(rp.alpha, 0);
    CHECK_EQ(rp.times, 64);
    for (looks = 0; rp.rate; looks++) {
        REQUIRE(looks < 10000);
        vhca_rp_catch_up(g->e, &rp);
    }
    tap_note("%u looks", looks);
    CHECK_EQ(rp.timed, 0);
}

/* A notification adds a quarter of everything, to the last digit. */
static void test_alpha(void)
{
    struct vhca_rp rp = { 0 };

    start_node();
    set_one(QHCA_CC_RP_GAIN, 256);
    set_one(QHCA_CC_RP_ALPHA, 0);
    CHECK(vhca_rp_cut(g->e, &rp));
    CHECK_EQ(rp.alpha, VHCA_ALPHA_ONE / 4);
}

/* Catching up with many bytes is as short as with a long time. */
static void test_much_sent(void)
{
    struct vhca_rp rp = { 0 };

    start_node();
    set_one(QHCA_CC_RP_BYTES, 1);
    set_one(QHCA_CC_RP_STEP, 1);
    CHECK(vhca_rp_cut(g->e, &rp));
    rp.rate = rp.target = 10000;
    vhca_rp_sent(g->e, &rp, 1000000);
    CHECK_EQ(rp.laps, 64);
}

static const struct test tests[] = {
    { "the equations of the paper", test_equations },
    { "a time that was long", test_long_ago },
    { "alpha after a notification", test_alpha },
    { "bytes that were many", test_much_sent },
};

TEST_MAIN(tests)
