/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the language of fault rules: what the parser accepts, and
 * the line and column of each error.
 */
#include <stdio.h>

#include "harness/fixture.h"
#include "harness/seed.h"

static struct vhca_rule rule[VHCA_MAX_RULES];
static struct qhca_fault_error err;

static int read_all(const char *text)
{
    return vhca_rule_parse(text, NULL, rule, VHCA_MAX_RULES, &err);
}

static struct vhca_rule *read_one(const char *text)
{
    int n = read_all(text);

    if (n != 1) {
        tap_note("%s: %d rules, column %u: %s", text, n, err.column, err.what);
    }
    REQUIRE(n == 1);
    return rule;
}

static bool has_kind(const struct vhca_rule *r, unsigned kind)
{
    return r->kinds[kind / 64] >> kind % 64 & 1;
}

static void test_words(void)
{
    const struct vhca_rule *r;

    r = read_one("tx opcode=rc.write_first qpn=0x11 nth=3 drop");
    CHECK_EQ(r->point, VHCA_RULE_TX);
    CHECK(has_kind(r, RC_WRITE_FIRST) && !has_kind(r, RC_WRITE_MIDDLE));
    CHECK_EQ(r->field[VHCA_RULE_QPN].from, 0x11);
    CHECK_EQ(r->field[VHCA_RULE_QPN].to, 0x11);
    CHECK_EQ(r->field[VHCA_RULE_PSN].to, UINT32_MAX);
    CHECK_EQ(r->nth, 3);
    CHECK_EQ(r->ppm, 1000000);
    CHECK_EQ(r->does.action, VHCA_RULE_DROP);

    r = read_one("seed=7; rx prob=1% corrupt=icrc");
    CHECK_EQ(r->point, VHCA_RULE_RX);
    CHECK_EQ(r->seed, 7);
    CHECK_EQ(r->ppm, 10000);
    CHECK_EQ(r->does.value, VHCA_RULE_ICRC);
    CHECK(!strcmp(r->text, "rx prob=1% corrupt=icrc"));

    CHECK_EQ(read_one("rx prob=0.0125% drop")->ppm, 125);
    CHECK_EQ(read_one("rx prob=100% drop")->ppm, 1000000);
    r = read_one(" \t rx psn=5-0xff  delay=3ms after=9 times=2\t # why");
    CHECK_EQ(r->field[VHCA_RULE_PSN].from, 5);
    CHECK_EQ(r->field[VHCA_RULE_PSN].to, 255);
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

/* Words of points other than tx and rx; their meaning depends on the point. */
static void test_points_words(void)
{
    const struct vhca_rule *r;

    r = read_one("cqe opcode=recv* cqn=7 fail=loc_len_err");
    CHECK_EQ(r->point, VHCA_RULE_CQE);
    CHECK(has_kind(r, QHCA_CQE_RECV) && !has_kind(r, QHCA_CQE_SEND) &&
          has_kind(r, QHCA_CQE_RECV_RDMA_WITH_IMM));
    CHECK_EQ(r->does.value, QHCA_WC_LOC_LEN_ERR);
    r = read_one("cmd opcode=create_* fail=no_resource");
    CHECK(has_kind(r, QHCA_CMD_CREATE_QP) && !has_kind(r, QHCA_CMD_NOP));
    CHECK_EQ(r->does.value, QHCA_ERR_NO_RESOURCE);
    r = read_one("cmd stall=2s");
    CHECK(r->does.action == VHCA_RULE_STALL && r->does.value == 2000000000);
    r = read_one("cmd hang");
    CHECK(r->does.action == VHCA_RULE_STALL && !r->does.value);
    r = read_one("event type=comp obj=3 drop");
    CHECK(has_kind(r, QHCA_EVENT_COMP) && !has_kind(r, QHCA_EVENT_CQ_ERR));
    CHECK_EQ(r->field[VHCA_RULE_OBJ].from, 3);
    CHECK_EQ(read_one("irq vector=1-2 drop")->field[VHCA_RULE_VECTOR].to, 2);
    r = read_one("timer after=5ms fatal");
    CHECK(r->after == 5000000 && !r->every && r->times == 1);
    r = read_one("port order=adversarial");
    CHECK(r->does.action == VHCA_RULE_ORDER && r->within == 50000 &&
          r->grain == 1);
    r = read_one("port grain=64 order=adversarial within=1ms");
    CHECK(r->within == 1000000 && r->grain == 64);
    r = read_one("timer every=5ms link-down=1ms");
    CHECK(r->every == 5000000 && !r->times && r->does.value == 1000000);
}

/* Every opcode has a name of its own, and * matches anything. */
static void test_opcodes(void)
{
    const struct vhca_rule *r = read_one("tx opcode=* drop");

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
    r = read_one("tx opcode=*.send_* drop");
    CHECK(has_kind(r, SVC_XRC | RC_SEND_FIRST) &&
          has_kind(r, SVC_UD | RC_SEND_ONLY_IMM) &&
          has_kind(r, RC_SEND_LAST_INV) && !has_kind(r, RC_WRITE_ONLY));
    r = read_one("tx opcode=**_resp*_m*e drop");
    CHECK(has_kind(r, RC_READ_RESP_MIDDLE) && !has_kind(r, RC_READ_RESP_LAST));
    CHECK(has_kind(read_one("tx opcode=cnp drop"), ROCE_CNP));
    CHECK(has_kind(read_one("tx opcode=rc.flush drop"), RC_FLUSH));
}

static void test_several(void)
{
    CHECK_EQ(read_all(""), 0);
    CHECK_EQ(read_all(" ;;\n# nothing; tx\n ; "), 0);
    CHECK_EQ(read_all("tx drop; rx drop # a; b\nseed=0x9\nrx reorder"), 3);
    CHECK_EQ(rule[1].seed, rule[0].seed);
    CHECK_EQ(rule[2].seed, 9);
    CHECK(rule[0].rng != rule[1].rng);
    CHECK(!strcmp(rule[1].text, "rx drop"));
}

/* Each error has a message and the line and column of its cause. */
static void test_errors(void)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *what;
    } bad[] = {
        { "dorp", 1, 1,
          "a rule begins with one of: tx rx cqe event irq cmd timer "
          "port" },
        { "  tx dorp", 1, 6, "no such word: dorp" },
        { "tx", 1, 3, "the rule has no action" },
        { "tx nth=3 # drop", 1, 9, "the rule has no action" },
        { "tx nak=rnr", 1, 4, "nak has no meaning with tx" },
        { "rx drop; tx drop; ry drop", 1, 19, NULL },
        { "rx drop\n\n  tx drop x", 3, 11, "no such word: x" },
        { "tx drop delay=1ms", 1, 9, "a rule has only one action" },
        { "tx qpn=1 drop qpn=1", 1, 15, "qpn is given twice" },
        { "tx drop drop", 1, 9, "drop is given twice" },
        { "tx drop=1", 1, 8, "drop takes no value" },
        { "tx drop=", 1, 8, "drop takes no value" },
        { "tx qpn drop", 1, 7, "qpn needs a value" },
        { "tx qpn= drop", 1, 8, "qpn needs a value" },
        { "tx qpn=x drop", 1, 8, "expected a number" },
        { "tx qpn=0x drop", 1, 8, "expected a number" },
        { "tx qpn=1x drop", 1, 8, "expected a number" },
        { "tx qpn=0x1000000 drop", 1, 8, "not from 0 to 16777215" },
        { "tx qpn=99999999999999999999999 drop", 1, 8, "expected a number" },
        { "tx psn=5- drop", 1, 10, "expected a number" },
        { "tx psn=9-5 drop", 1, 8, "the range ends before it begins" },
        { "tx psn=1-2-3 drop", 1, 10, "expected a number" },
        { "tx nth=0 drop", 1, 8, "not from 1 to 4294967295" },
        { "tx times=0 drop", 1, 10, "not from 1 to 4294967295" },
        { "tx wrong-psn=0", 1, 14, "not from 1 to 16777215" },
        { "port bandwidth=0", 1, 16, "not from 1 to 100000" },
        { "port bandwidth=100001", 1, 16, "not from 1 to 100000" },
        { "port bandwidth", 1, 15, "bandwidth needs a value" },
        { "port latency=0ms", 1, 14, "not from 0 us to 10 s" },
        { "tx latency=5ms", 1, 4, "latency has no meaning with tx" },
        { "tx bandwidth=5", 1, 4, "bandwidth has no meaning with tx" },
        { "port drop", 1, 6, "drop has no meaning with port" },
        { "port order=random", 1, 12, "expected one of: adversarial" },
        { "port order=adversarial grain=0", 1, 30, "not from 1 to 1024" },
        { "port order=adversarial within=2s", 1, 31, "not from 0 us to 1 s" },
        { "port latency=5us grain=8", 1, 25,
          "within and grain go with order=" },
        { "port within=5us", 1, 16, "within and grain go with order=" },
        { "tx grain=8 drop", 1, 4, "grain has no meaning with tx" },
        { "port once bandwidth=5", 1, 6, "once has no meaning with port" },
        { "port ce=5% bandwidth=5", 1, 12, "a rule has only one action" },
        { "tx opcode=rc.wrote drop", 1, 11, "no opcode of that name" },
        { "tx opcode=*z* drop", 1, 11, "no opcode of that name" },
        { "tx prob=1 drop", 1, 9, "expected a percentage, like 0.5%" },
        { "tx prob=0% drop", 1, 9, "expected a percentage, like 0.5%" },
        { "tx prob=100.1% drop", 1, 9, "expected a percentage, like 0.5%" },
        { "tx prob=.5% drop", 1, 9, "expected a percentage, like 0.5%" },
        { "tx prob=1.00001% drop", 1, 9, "expected a percentage, like 0.5%" },
        { "tx delay=5", 1, 10, "expected a time, like 50us, 5ms or 1s" },
        { "tx delay=5m", 1, 10, "expected a time, like 50us, 5ms or 1s" },
        { "tx delay=0us", 1, 10, "not from 0 us to 10 s" },
        { "tx delay=11s", 1, 10, "not from 0 us to 10 s" },
        { "tx delay=18446744073709551615s", 1, 10, NULL },
        { "tx corrupt=all", 1, 12, "expected one of: payload icrc" },
        { "rx nak=no", 1, 8, "expected one of: rnr psn_seq_err inv_req "
          "rem_access_err rem_op_err" },
        { "cqe psn=1 overrun", 1, 5, "psn has no meaning with cqe" },
        { "cqe opcode=create_qp overrun", 1, 12, "no opcode of that name" },
        { "cqe fail=success", 1, 10, NULL },
        { "event type=device_fatal drop", 1, 12, "no type of that name" },
        { "irq vector=2048 drop", 1, 12, "not from 0 to 2047" },
        { "cmd fail=wr_flush_err", 1, 10, NULL },
        { "cmd stall", 1, 10, "stall needs a value" },
        { "timer nth=2 fatal", 1, 7, "nth has no meaning with timer" },
        { "timer after=2 fatal", 1, 13,
          "expected a time, like 50us, 5ms or 1s" },
        { "timer every=999us fatal", 1, 13, "not from 1000 us to 10 s" },
        { "tx fatal=1", 1, 9, "fatal takes no value" },
        { "seed=x; tx drop", 1, 6, "expected a number" },
        { "seed=1 tx drop", 1, 8, "a ; is missing" },
        { "tx drop \x01", 1, 9, "not a character of a rule" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int n = read_all(bad[i].text);

        if (n != -1 || err.line != bad[i].line ||
            err.column != bad[i].column ||
            (bad[i].what && strcmp(err.what, bad[i].what))) {
            tap_note("%s: %d, %u:%u: %s", bad[i].text, n, err.line, err.column,
                     err.what);
            tap_fail(__FILE__, __LINE__, "another message");
        }
    }
}

/* A rule with a word that is forbidden to the guest. */
static void test_remove(void)
{
    CHECK_EQ(read_all("tx remove"), 1);
    CHECK_EQ(vhca_rule_parse("tx  remove", "not you", rule, 1, &err), -1);
    CHECK(err.column == 5 && !strcmp(err.what, "not you"));
}

/* Text and rules are bounded. */
static void test_bounds(void)
{
    char text[VHCA_MAX_RULES * 16 + 32] = "";
    char one[VHCA_RULE_TEXT + 2];

    for (unsigned i = 0; i < VHCA_MAX_RULES; i++) {
        strcat(text, "tx once drop\n");
    }
    CHECK_EQ(read_all(text), VHCA_MAX_RULES);
    strcat(text, " rx drop");
    CHECK_EQ(read_all(text), -1);
    CHECK_EQ(err.line, VHCA_MAX_RULES + 1);
    CHECK_EQ(err.column, 2);

    memset(one, ' ', sizeof(one));
    memcpy(one, "tx drop", 7);
    memcpy(one + VHCA_RULE_TEXT - 5, "once", 5);
    CHECK_EQ(read_all(one), 1);
    CHECK_EQ(strlen(rule[0].text), VHCA_RULE_TEXT - 1);
    memcpy(one + VHCA_RULE_TEXT - 5, " once", 6);
    CHECK_EQ(read_all(one), -1);
    CHECK(strstr(err.what, "less than 120 characters"));
}

/* ---- random text ---- */

static void test_garbage(void)
{
    static const char *const piece[] = {
        "tx", "rx", " ", "=", "\n", ";", "#", "drop", "qpn", "0x", "1", "-",
        "99999999999999999999", "opcode", "rc.*", "*", "%", ".", "prob", "us",
        "delay", "seed=", "nak=rnr", "event=", "\t", "\xff", "times", "psn",
        "cqe", "cmd", "irq", "timer", "event", "fatal", "fail=", "every=1s",
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
        n = read_all(text);
        good += n > 0;
        CHECK(n >= 0 ? !err.what[0] :
              err.what[0] && err.line && err.column <= len + 1);
    }
    CHECK(good > 0);
}

static const struct test tests[] = {
    { "words and values", test_words },
    { "words of points other than tx and rx", test_points_words },
    { "names of opcodes", test_opcodes },
    { "several rules, seeds, comments", test_several },
    { "each error points at its column", test_errors },
    { "a rule that is not for the guest", test_remove },
    { "text and rules are bounded", test_bounds },
    { "random text", test_garbage },
};

TEST_MAIN(tests)
