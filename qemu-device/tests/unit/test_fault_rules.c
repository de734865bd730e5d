/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the language of fault rules: what is understood, where the
 * finger points at what is not, and what a rule matches.
 */
#include <stdio.h>

#include "harness/fixture.h"
#include "harness/seed.h"

static struct qhca_fault_rule rule[QHCA_FAULT_RULES];
static struct qhca_fault_error err;

static struct qhca_fault_rule *read_one(const char *text)
{
    int n = qhca_fault_parse(text, rule, &err);

    if (n != 1) {
        tap_note("%s: %d rules, column %u: %s", text, n, err.column, err.what);
    }
    REQUIRE(n == 1);
    return rule;
}

static bool has_kind(const struct qhca_fault_rule *r, unsigned kind)
{
    return r->kinds[kind / 64] >> kind % 64 & 1;
}

static void test_words(void)
{
    const struct qhca_fault_rule *r;

    r = read_one("tx opcode=rc.write_first qpn=0x11 nth=3 drop");
    CHECK_EQ(r->point, QHCA_FAULT_TX);
    CHECK(has_kind(r, RC_WRITE_FIRST) && !has_kind(r, RC_WRITE_MIDDLE));
    CHECK_EQ(r->field[QHCA_FAULT_QPN].from, 0x11);
    CHECK_EQ(r->field[QHCA_FAULT_QPN].to, 0x11);
    CHECK_EQ(r->field[QHCA_FAULT_PSN].to, UINT32_MAX);
    CHECK_EQ(r->nth, 3);
    CHECK_EQ(r->ppm, 1000000);
    CHECK_EQ(r->does.action, QHCA_FAULT_DROP);

    r = read_one("seed=7; rx prob=1% corrupt=icrc");
    CHECK_EQ(r->point, QHCA_FAULT_RX);
    CHECK_EQ(r->seed, 7);
    CHECK_EQ(r->ppm, 10000);
    CHECK_EQ(r->does.value, QHCA_FAULT_ICRC);
    CHECK(!strcmp(r->text, "rx prob=1% corrupt=icrc"));

    CHECK_EQ(read_one("rx prob=0.0125% drop")->ppm, 125);
    CHECK_EQ(read_one("rx prob=100% drop")->ppm, 1000000);
    r = read_one(" \t rx psn=5-0xff  delay=3ms after=9 times=2\t # why");
    CHECK_EQ(r->field[QHCA_FAULT_PSN].from, 5);
    CHECK_EQ(r->field[QHCA_FAULT_PSN].to, 255);
    CHECK_EQ(r->does.value, 3000000);
    CHECK_EQ(r->after, 9);
    CHECK_EQ(r->times, 2);
    CHECK(!strcmp(r->text, "rx psn=5-0xff  delay=3ms after=9 times=2"));
    CHECK_EQ(read_one("rx delay=250us")->does.value, 250000);
    CHECK_EQ(read_one("rx delay=2s once")->times, 1);
    CHECK_EQ(read_one("rx nak=rnr")->does.value, AETH_RNR_NAK);
    CHECK_EQ(read_one("rx nak=rem_access_err")->does.value, AETH_NAK_ACCESS);
    CHECK_EQ(read_one("rx event=qp_fatal")->does.value, QHCA_EVENT_QP_FATAL);
    CHECK_EQ(read_one("tx wrong-psn=0xffffff")->does.value, PSN_MASK);
}

/* Every opcode has a name of its own, and a * stands for anything. */
static void test_opcodes(void)
{
    const struct qhca_fault_rule *r = read_one("tx opcode=* drop");

    for (unsigned op = 0; op < 256; op++) {
        CHECK_EQ(has_kind(r, op), roce_opcode((uint8_t)op)->op != OP_NONE);
    }
    r = read_one("tx opcode=rc.write_* drop");
    for (unsigned op = 0; op < 256; op++) {
        CHECK_EQ(has_kind(r, op), op >= RC_WRITE_FIRST &&
                                  op <= RC_WRITE_ONLY_IMM);
    }
    r = read_one("tx opcode=*.send_only drop");
    CHECK(has_kind(r, SVC_XRC | RC_SEND_ONLY) &&
          has_kind(r, SVC_UD | RC_SEND_ONLY) &&
          has_kind(r, SVC_UC | RC_SEND_ONLY) && has_kind(r, RC_SEND_ONLY) &&
          !has_kind(r, RC_SEND_ONLY_IMM));
    r = read_one("tx opcode=rc.m*_add drop");
    CHECK(has_kind(r, RC_MASKED_FETCH_ADD) && !has_kind(r, RC_FETCH_ADD));
    CHECK(has_kind(read_one("tx opcode=cnp drop"), ROCE_CNP));
    CHECK(has_kind(read_one("tx opcode=rc.flush drop"), RC_FLUSH));
}

static void test_several(void)
{
    CHECK_EQ(qhca_fault_parse("", rule, &err), 0);
    CHECK_EQ(qhca_fault_parse(" ;;\n# nothing; tx\n ; ", rule, &err), 0);
    CHECK_EQ(qhca_fault_parse("tx drop; rx drop # a; b\nseed=0x9\nrx reorder",
                              rule, &err), 3);
    CHECK_EQ(rule[1].seed, rule[0].seed);
    CHECK_EQ(rule[2].seed, 9);
    CHECK(rule[0].rng != rule[1].rng);
    CHECK(!strcmp(rule[1].text, "rx drop"));
}

/* What is wrong, and the line and column that is to blame. */
static void test_errors(void)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *what;
    } bad[] = {
        { "dorp", 1, 1, "a rule begins with one of: tx rx" },
        { "  tx dorp", 1, 6, "no such word: dorp" },
        { "tx", 1, 3, "it does not say what is to happen" },
        { "tx nth=3 # drop", 1, 9, "it does not say what is to happen" },
        { "tx nak=rnr", 1, 4, "nak has no meaning with tx" },
        { "rx drop; tx drop; ry drop", 1, 19, NULL },
        { "rx drop\n\n  tx drop x", 3, 11, "no such word: x" },
        { "tx drop delay=1ms", 1, 9, "a rule does one thing only" },
        { "tx qpn=1 drop qpn=1", 1, 15, "qpn stands there twice" },
        { "tx drop drop", 1, 9, "drop stands there twice" },
        { "tx drop=1", 1, 8, "drop takes no value" },
        { "tx drop=", 1, 8, "drop takes no value" },
        { "tx qpn drop", 1, 7, "qpn wants a value" },
        { "tx qpn= drop", 1, 8, "qpn wants a value" },
        { "tx qpn=x drop", 1, 8, "a number is wanted" },
        { "tx qpn=0x drop", 1, 8, "a number is wanted" },
        { "tx qpn=1x drop", 1, 8, "a number is wanted" },
        { "tx qpn=0x1000000 drop", 1, 8, "not from 0 to 16777215" },
        { "tx qpn=99999999999999999999999 drop", 1, 8, "a number is wanted" },
        { "tx psn=5- drop", 1, 10, "a number is wanted" },
        { "tx psn=9-5 drop", 1, 8, "it ends before it begins" },
        { "tx psn=1-2-3 drop", 1, 10, "a number is wanted" },
        { "tx nth=0 drop", 1, 8, "not from 1 to 4294967295" },
        { "tx times=0 drop", 1, 10, "not from 1 to 4294967295" },
        { "tx wrong-psn=0", 1, 14, "not from 1 to 16777215" },
        { "tx opcode=rc.wrote drop", 1, 11, "no opcode of that name" },
        { "tx opcode=** drop", 1, 11, "no opcode of that name" },
        { "tx prob=1 drop", 1, 9, "a percentage is wanted, as 0.5%" },
        { "tx prob=0% drop", 1, 9, "a percentage is wanted, as 0.5%" },
        { "tx prob=100.1% drop", 1, 9, "a percentage is wanted, as 0.5%" },
        { "tx prob=.5% drop", 1, 9, "a percentage is wanted, as 0.5%" },
        { "tx prob=1.00001% drop", 1, 9, "a percentage is wanted, as 0.5%" },
        { "tx delay=5", 1, 10, "a time is wanted, as 50us, 5ms or 1s" },
        { "tx delay=5m", 1, 10, "a time is wanted, as 50us, 5ms or 1s" },
        { "tx delay=0us", 1, 10, "not from 0 us to 10 s" },
        { "tx delay=11s", 1, 10, "not from 0 us to 10 s" },
        { "tx delay=18446744073709551615s", 1, 10, NULL },
        { "tx corrupt=all", 1, 12, "one of these is wanted: payload icrc" },
        { "rx nak=no", 1, 8, "one of these is wanted: rnr psn_seq_err inv_req "
          "rem_access_err rem_op_err" },
        { "seed=x; tx drop", 1, 6, "a number is wanted" },
        { "seed=1 tx drop", 1, 8, "a ; is missing" },
        { "tx drop \x01", 1, 9, "not a character of the language" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int n = qhca_fault_parse(bad[i].text, rule, &err);

        if (n != -1 || err.line != bad[i].line ||
            err.column != bad[i].column ||
            (bad[i].what && strcmp(err.what, bad[i].what))) {
            tap_note("%s: %d, %u:%u: %s", bad[i].text, n, err.line, err.column,
                     err.what);
            tap_fail(__FILE__, __LINE__, "another message");
        }
    }
}

/* Text and rules are bounded. */
static void test_bounds(void)
{
    char text[QHCA_FAULT_RULES * 16 + 32] = "";
    char one[QHCA_FAULT_TEXT + 2];

    for (unsigned i = 0; i < QHCA_FAULT_RULES; i++) {
        strcat(text, "tx once drop\n");
    }
    CHECK_EQ(qhca_fault_parse(text, rule, &err), QHCA_FAULT_RULES);
    strcat(text, " rx drop");
    CHECK_EQ(qhca_fault_parse(text, rule, &err), -1);
    CHECK_EQ(err.line, QHCA_FAULT_RULES + 1);
    CHECK_EQ(err.column, 2);

    memset(one, ' ', sizeof(one));
    memcpy(one, "tx drop", 7);
    memcpy(one + QHCA_FAULT_TEXT - 5, "once", 5);
    CHECK_EQ(qhca_fault_parse(one, rule, &err), 1);
    CHECK_EQ(strlen(rule[0].text), QHCA_FAULT_TEXT - 1);
    memcpy(one + QHCA_FAULT_TEXT - 5, " once", 6);
    CHECK_EQ(qhca_fault_parse(one, rule, &err), -1);
    CHECK(strstr(err.what, "less than 120 characters"));
}

/* ---- which packets ---- */

/* What a rule does with the packets 1 to @n of a QP, as a string of 0 and 1. */
static const char *hits(const char *text, unsigned n)
{
    static char said[200];
    struct qhca_fault_at at = { .point = QHCA_FAULT_TX, .kind = RC_SEND_ONLY };

    start_node();
    REQUIRE(qhca_engine_set_faults(g->e, *g->clock, text, &err));
    for (unsigned i = 0; i < n; i++) {
        at.field[QHCA_FAULT_QPN] = 0x42;
        at.field[QHCA_FAULT_PSN] = i + 1;
        said[i] = qhca_fault_judge(g->e, &at).action ? '1' : '0';
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
    /* What one rule takes the next does not see. */
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
    static char text[QHCA_FAULTS_TEXT];

    CHECK(qhca_engine_get_faults(g->e, text, sizeof(text)) < sizeof(text));
    return text;
}

static void test_print(void)
{
    struct qhca_fault_at at = { .point = QHCA_FAULT_RX };
    static char first[QHCA_FAULTS_TEXT];
    char all[40 * QHCA_FAULT_RULES * 5] = "", few[20];

    start_node();
    CHECK(!strcmp(shown(), ""));
    CHECK(qhca_engine_set_faults(g->e, *g->clock,
                                 "rx drop nth=2 # x; y\nseed=5;tx drop", &err));
    for (unsigned i = 0; i < 7; i++) {
        qhca_fault_judge(g->e, &at);
    }
    CHECK(!strcmp(shown(), "seed=1\nrx drop nth=2  # hits 3\n"
                           "seed=5\ntx drop  # hits 0\n"));

    /* It can be set again, and a wrong text changes nothing. */
    strcpy(first, shown());
    CHECK(!qhca_engine_set_faults(g->e, *g->clock, "tx drop; tx", &err));
    CHECK(!strcmp(shown(), first));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, first, &err));
    CHECK(!strcmp(shown(), "seed=1\nrx drop nth=2  # hits 0\n"
                           "seed=5\ntx drop  # hits 0\n"));

    /* They are the operator's. */
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK(strstr(shown(), "tx drop"));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "", &err));
    CHECK(!strcmp(shown(), ""));

    /* The longest there can be. */
    for (unsigned i = 0; i < QHCA_FAULT_RULES; i++) {
        sprintf(all + strlen(all), "seed=1844674407370955161%u; tx drop "
                "qpn=0x000000000000000000000000000000000000000000000000000000"
                "0000000000000000000000000000000000000000000001\n", i % 6);
    }
    CHECK(qhca_engine_set_faults(g->e, *g->clock, all, &err));
    CHECK(strlen(shown()) > 3600);
    CHECK_EQ(qhca_engine_get_faults(g->e, few, sizeof(few)), strlen(shown()));
    CHECK_EQ(strlen(few), sizeof(few) - 1);
}

/* Without a rule that looks at packets they need not be frames. */
static void test_points(void)
{
    start_node();
    CHECK(!g->e->fault_points && !g->e->cfg.frames);
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "tx once drop", &err));
    CHECK(g->e->fault_points == 1 << QHCA_FAULT_TX && g->e->cfg.frames);
    qhca_fault_judge(g->e, &(struct qhca_fault_at) { .point = QHCA_FAULT_TX });
    CHECK(!g->e->fault_points && !g->e->cfg.frames);

    g->e->cfg.frames = true;
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "rx drop", &err));
    CHECK(qhca_engine_set_faults(g->e, *g->clock, "", &err));
    CHECK(g->e->cfg.frames);
}

/* ---- whatever anybody writes ---- */

static void test_garbage(void)
{
    static const char *const piece[] = {
        "tx", "rx", " ", "=", "\n", ";", "#", "drop", "qpn", "0x", "1", "-",
        "99999999999999999999", "opcode", "rc.*", "*", "%", ".", "prob", "us",
        "delay", "seed=", "nak=rnr", "event=", "\t", "\xff", "times", "psn",
    };
    uint64_t rng = seed_from_env("FUZZ_SEED", 1);
    char text[400];
    unsigned good = 0;

    tap_seed(rng);
    for (unsigned i = 0; i < 200000; i++) {
        unsigned pieces = (unsigned)(test_random(&rng) % 12);
        size_t len = 0;
        int n;

        for (unsigned j = 0; j < pieces; j++) {
            const char *p = piece[test_random(&rng) % ARRAY_SIZE(piece)];

            len += (size_t)sprintf(text + len, "%s%s", p,
                                   test_random(&rng) % 3 ? "" : " ");
        }
        text[len] = '\0';
        n = qhca_fault_parse(text, rule, &err);
        good += n > 0;
        CHECK(n >= 0 ? !err.what[0] :
              err.what[0] && err.line && err.column <= len + 1);
    }
    CHECK(good > 0);
}

static const struct test tests[] = {
    { "words and values", test_words },
    { "names of opcodes", test_opcodes },
    { "several rules, seeds, comments", test_several },
    { "each error points at its column", test_errors },
    { "text and rules are bounded", test_bounds },
    { "which packets a rule acts upon", test_match },
    { "chance is repeatable", test_probability },
    { "rules are shown with their hits, and survive a reset", test_print },
    { "frames only where a rule looks", test_points },
    { "any text", test_garbage },
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, ARRAY_SIZE(tests), harness_cleanup);
}
