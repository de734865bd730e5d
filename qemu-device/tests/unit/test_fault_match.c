/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what fault rules match, and how they are shown.
 */
#include <stdio.h>

#include "harness/fixture.h"

static struct qhca_fault_error err;

/* For packets 1 to @n of a QP: 1 if a rule hits the packet, 0 otherwise. */
static const char *hits(const char *text, unsigned n)
{
    static char said[200];
    struct vhca_rule_at at = { .point = VHCA_RULE_TX, .kind = RC_SEND_ONLY };

    start_node();
    REQUIRE(qhca_engine_set_faults(g->e, *g->clock, text, &err));
    for (unsigned i = 0; i < n; i++) {
        at.field[VHCA_RULE_QPN] = 0x42;
        at.field[VHCA_RULE_PSN] = i + 1;
        said[i] = vhca_rule_judge(g->e, &at).action ? '1' : '0';
    }
    said[n] = '\0';
    return said;
}

static bool hits_are(const char *text, const char *want)
{
    const char *said = hits(text, (unsigned)strlen(want));

    if (strcmp(said, want)) {
        tap_note("%s: %s, not %s", text, said, want);
        return false;
    }
    return true;
}

static void test_match(void)
{
    CHECK(hits_are("tx drop", "111111"));
    CHECK(hits_are("tx opcode=rc.send_only drop", "111111"));
    CHECK(hits_are("tx opcode=rc.send_first drop", "000000"));
    CHECK(hits_are("rx drop", "000000"));
    CHECK(hits_are("tx qpn=0x42 drop", "111111"));
    CHECK(hits_are("tx qpn=0x41 drop", "000000"));
    CHECK(hits_are("tx qpn=0x40-0x50 drop", "111111"));
    CHECK(hits_are("tx psn=2 drop", "010000"));
    CHECK(hits_are("tx psn=2-4 drop", "011100"));
    CHECK(hits_are("tx nth=3 drop", "001001"));
    CHECK(hits_are("tx after=2 drop", "001111"));
    CHECK(hits_are("tx after=2 nth=2 drop", "000101"));
    CHECK(hits_are("tx once drop", "100000"));
    CHECK(hits_are("tx times=2 nth=2 drop", "010100"));
    CHECK(hits_are("tx after=4 once drop", "000010"));
    /* A packet that one rule hits is not seen by the next. */
    CHECK(hits_are("tx psn=1-2 drop; tx nth=2 drop", "110101"));
    CHECK(hits_are("tx once drop; tx once drop", "110000"));
}

static void test_probability(void)
{
    char first[200];
    unsigned n = 0;

    strcpy(first, hits("seed=7; tx prob=30% drop", 199));
    for (unsigned i = 0; i < 199; i++) {
        n += first[i] == '1';
    }
    CHECK(n > 35 && n < 85);
    CHECK(!strcmp(first, hits("seed=7\ntx prob=30% drop", 199)));
    CHECK(strcmp(first, hits("seed=8; tx prob=30% drop", 199)));
    CHECK(strcmp(first, hits("seed=7; rx drop; tx prob=30% drop", 199)));
    /* The sequence is part of the language: it must not change. */
    CHECK(hits_are("seed=7; tx prob=50% drop", "1100111111100000"));
}

/* ---- as the operator sees them ---- */

static const char *shown(void)
{
    static char text[VHCA_RULES_TEXT];

    CHECK(qhca_engine_get_faults(g->e, text, sizeof(text)) < sizeof(text));
    return text;
}

static void test_print(void)
{
    struct vhca_rule_at at = { .point = VHCA_RULE_RX };
    static char first[VHCA_RULES_TEXT];
    char all[40 * VHCA_MAX_RULES * 5] = "", few[20];

    start_node();
    CHECK(!strcmp(shown(), ""));
    CHECK(qhca_engine_set_faults(g->e, *g->clock,
                                 "rx drop nth=2 # x; y\nseed=5;tx drop", &err));
    for (unsigned i = 0; i < 7; i++) {
        vhca_rule_judge(g->e, &at);
    }
    CHECK(!strcmp(shown(), "seed=1\nrx drop nth=2  # hits 3\n"
                           "seed=5\ntx drop  # hits 0\n"));

    /* The text shown can be set again, and a wrong text changes nothing. */
    strcpy(first, shown());
    CHECK(!qhca_engine_set_faults(g->e, *g->clock, "tx drop; tx", &err));
    CHECK(!strcmp(shown(), first));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, first, &err));
    CHECK(!strcmp(shown(), "seed=1\nrx drop nth=2  # hits 0\n"
                           "seed=5\ntx drop  # hits 0\n"));

    /* Rules belong to the operator: a reset keeps them. */
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(strstr(shown(), "tx drop"));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "", &err));
    CHECK(!strcmp(shown(), ""));

    /* The longest text possible. */
    for (unsigned i = 0; i < VHCA_MAX_RULES; i++) {
        sprintf(all + strlen(all), "seed=1844674407370955161%u; tx drop "
                "qpn=0x000000000000000000000000000000000000000000000000000000"
                "0000000000000000000000000000000000000000000001\n", i % 6);
    }
    CHECK(qhca_engine_set_faults(g->e, *g->clock, all, &err));
    CHECK(strlen(shown()) > 3600);
    CHECK_EQ(qhca_engine_get_faults(g->e, few, sizeof(few)), strlen(shown()));
    CHECK_EQ(strlen(few), sizeof(few) - 1);
}

/* Posts @n WRITEs of 8 bytes; returns how many frames they became. */
static uint32_t frames_of(unsigned n)
{
    uint32_t before = g->e->port->loop.tail;

    post_writes(&qp, n, 8);
    rc_ring(&qp);
    all_done(0, n, QHCA_WC_SUCCESS);
    return g->e->port->loop.tail - before;
}

/* Only packets that a rule may act on become frames; all others cross. */
static void test_path(void)
{
    start_pair(&RC_OPTS);
    CHECK_EQ(frames_of(1), 0);
    CHECK(!g->e->fault_points);

    start_pair(&RC_OPTS);
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "tx drop qpn=0x1", &err));
    CHECK(g->e->fault_points == 1 << VHCA_RULE_TX);
    CHECK_EQ(frames_of(3), 0);

    /* The second WRITE twice, and the third, which must not overtake it. */
    start_pair(&RC_OPTS);
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "tx once duplicate "
                                 "opcode=rc.write_only nth=2", &err));
    CHECK_EQ(frames_of(3), 3);
    /* TX counts the packet that the rule duplicates once. */
    CHECK_EQ(counter(g, QHCA_CNT_TX_PKTS) - counter(g, QHCA_CNT_TX_ACK), 3);
    CHECK(!g->e->fault_points);

    /* If the operator wants frames, rules do not change that. */
    start_pair(&RC_OPTS);
    g->e->cfg.frames = true;
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "rx drop", &err));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "", &err));
    CHECK_EQ(frames_of(1), 2);
}

static const struct test tests[] = {
    { "which packets a rule acts on", test_match },
    { "chance is repeatable", test_probability },
    { "rules are shown with their hits, and survive a reset", test_print },
    { "B-060 packets that no rule acts on cross", test_path },
};

TEST_MAIN(tests)
