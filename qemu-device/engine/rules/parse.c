/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: the language of the rules. A rule is a point followed by
 * words in any order: some say when, and one says what happens then. Each word
 * has a row in a table. The text may come from the guest.
 */
#include <stdarg.h>
#include <stdio.h>

#include "rules.h"

#define SEED    1u              /* if the text sets none */
#define SEED_LEN strlen("seed=")
#define LONGEST 10000000000ull  /* ns */
#define FASTEST 100000          /* Mbit/s */
#define WITHIN  50000u          /* ns, if the rule does not say */
#define SLOWEST 1000000000u     /* ns that data may take to reach memory */
#define COARSEST 1024u

#define AT(point)   (1u << VHCA_RULE_##point)
#define PACKETS     (AT(TX) | AT(RX))
#define QPS         (PACKETS | AT(CQE))
#define OWN_WAY     (QPS | AT(CMD) | AT(TIMER))
#define COUNTED     (QPS | AT(EVENT) | AT(IRQ) | AT(CMD))
#define ALL         (COUNTED | AT(TIMER))
#define IN(member)  offsetof(struct vhca_rule, member)

/* Rows of the table: conditions and actions. */
#define WHEN(word, where, what, to, ...) \
    { .name = word, .points = where, .takes = VHCA_TAKES_##what, \
      .off = IN(to), __VA_ARGS__ }
#define DOES(word, where, act, what, ...) \
    { .name = word, .points = where, .takes = VHCA_TAKES_##what, \
      .action = VHCA_RULE_##act, .off = IN(does.value), __VA_ARGS__ }

static const struct vhca_rule_word words[] = {
    WHEN("opcode", PACKETS, KINDS, kinds, 0),
    WHEN("opcode", AT(CQE), KINDS, kinds, 0),
    WHEN("opcode", AT(CMD), KINDS, kinds, 0),
    WHEN("type", AT(EVENT), KINDS, kinds, 0),
    WHEN("qpn", QPS, RANGE, field[VHCA_RULE_QPN], .max = QHCA_OBJ_MASK),
    WHEN("psn", PACKETS, RANGE, field[VHCA_RULE_PSN], .max = PSN_MASK),
    WHEN("cqn", AT(CQE), RANGE, field[VHCA_RULE_CQN], .max = QHCA_OBJ_MASK),
    WHEN("obj", AT(EVENT), RANGE, field[VHCA_RULE_OBJ],
         .max = QHCA_OBJ_MASK),
    WHEN("vector", AT(IRQ), RANGE, field[VHCA_RULE_VECTOR], .max = 2047),
    WHEN("nth", COUNTED, NUMBER, nth, .min = 1, .max = UINT32_MAX),
    WHEN("after", COUNTED, NUMBER, after, .max = UINT32_MAX),
    WHEN("after", AT(TIMER), TIME, after, .min = 1, .max = LONGEST),
    WHEN("every", AT(TIMER), TIME, every, .min = 1000000, .max = LONGEST),
    WHEN("times", ALL, NUMBER, times, .min = 1, .max = UINT32_MAX),
    WHEN("once", ALL, NOTHING, times, .min = 1),
    WHEN("within", AT(PORT), TIME, within, .min = 1, .max = SLOWEST),
    WHEN("grain", AT(PORT), NUMBER, grain, .min = 1, .max = COARSEST),
    WHEN("prio", OWN_WAY, NUMBER, prio, .max = VHCA_RULE_PRIOS - 1),
    WHEN("prob", ALL, PERCENT, ppm, 0),

    DOES("drop", PACKETS | AT(EVENT) | AT(IRQ), DROP, NOTHING, 0),
    DOES("duplicate", PACKETS, DUPLICATE, NOTHING, 0),
    DOES("delay", PACKETS, DELAY, TIME, .min = 1, .max = LONGEST),
    DOES("reorder", PACKETS, REORDER, NOTHING, 0),
    DOES("corrupt", PACKETS, CORRUPT, NAME, .names = vhca_rule_damages),
    DOES("wrong-psn", PACKETS, WRONG_PSN, NUMBER, .min = 1, .max = PSN_MASK),
    DOES("mark", PACKETS, MARK, NAME, .names = vhca_rule_marks),
    DOES("nak", AT(RX), NAK, NAME, .names = vhca_rule_naks),
    DOES("event", QPS, RAISE, NAME, .names = vhca_rule_qp_events),
    DOES("fail", AT(CQE), FAIL, NAME, .names = vhca_rule_cqe_statuses),
    DOES("fail", AT(CMD), FAIL, NAME, .names = vhca_rule_cmd_statuses),
    DOES("overrun", AT(CQE), OVERRUN, NOTHING, 0),
    DOES("stall", AT(CMD), STALL, TIME, .min = 1, .max = LONGEST),
    DOES("hang", AT(CMD), STALL, NOTHING, 0),
    DOES("bandwidth", AT(PORT), SLOW, NUMBER, .min = 1, .max = FASTEST),
    DOES("latency", AT(PORT), LATE, TIME, .min = 1, .max = LONGEST),
    DOES("order", AT(PORT), ORDER, NAME, .names = vhca_rule_orders),
    /* The same as "tx prob=... mark=ce". */
    { .name = "ce", .points = AT(PORT), .takes = VHCA_TAKES_PERCENT,
      .action = VHCA_RULE_MARK, .off = IN(ppm) },
    DOES("link-down", OWN_WAY, LINK_DOWN, TIME, .min = 1, .max = LONGEST),
    DOES("pause", OWN_WAY, PAUSE, TIME, .min = 1, .max = LONGEST),
    DOES("fatal", OWN_WAY, FATAL, NOTHING, 0),
    DOES("remove", OWN_WAY, REMOVE, NOTHING, 0),
};

_Static_assert(ARRAY_SIZE(words) <= 64, "too many words for parser.said");

static const char *const point_name[] = {
    [VHCA_RULE_TX] = "tx",
    [VHCA_RULE_RX] = "rx",
    [VHCA_RULE_CQE] = "cqe",
    [VHCA_RULE_EVENT] = "event",
    [VHCA_RULE_IRQ] = "irq",
    [VHCA_RULE_CMD] = "cmd",
    [VHCA_RULE_TIMER] = "timer",
    [VHCA_RULE_PORT] = "port",
};

struct parser {
    const char *text, *no_remove;
    struct qhca_fault_error *err;
    struct vhca_rule *rule;   /* being read */
    uint64_t said;                  /* its words so far, a bit each */
    uint64_t seed;
};

/* Set line and column of an error at @where; returns false. */
static bool blame(struct parser *p, const char *where)
{
    const char *line = p->text;

    p->err->line = 1;
    for (const char *c = p->text; c < where; c++) {
        if (*c == '\n') {
            p->err->line++;
            line = c + 1;
        }
    }
    p->err->column = (unsigned)(where - line) + 1;
    return false;
}

/* Set line, column and text of an error at @where; returns false. */
__attribute__((format(printf, 3, 4)))
static bool wrong(struct parser *p, const char *where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->err->what, sizeof(p->err->what), fmt, ap);
    va_end(ap);
    return blame(p, where);
}

static size_t span_len(const struct vhca_rule_span *s)
{
    return (size_t)(s->end - s->at);
}

bool vhca_rule_is(const struct vhca_rule_span *s, const char *word)
{
    return strlen(word) == span_len(s) && !memcmp(s->at, word, span_len(s));
}

/* Return how many characters of it messages show. */
static int shown(const struct vhca_rule_span *s)
{
    return (int)MIN_OF(span_len(s), 24u);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct vhca_rule_span next_word(struct vhca_rule_span *rest)
{
    struct vhca_rule_span word;

    while (rest->at < rest->end && is_blank(*rest->at)) {
        rest->at++;
    }
    word = *rest;
    while (rest->at < rest->end && !is_blank(*rest->at)) {
        rest->at++;
    }
    word.end = rest->at;
    return word;
}

/* ---- words ---- */

static const struct vhca_rule_word *
find_word(struct parser *p, const struct vhca_rule_span *name)
{
    bool known = false;

    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        if (vhca_rule_is(name, words[i].name)) {
            if (words[i].points >> p->rule->point & 1) {
                return &words[i];
            }
            known = true;
        }
    }
    if (known) {
        wrong(p, name->at, "%.*s has no meaning with %s", shown(name), name->at,
              point_name[p->rule->point]);
    } else {
        wrong(p, name->at, "no such word: %.*s", shown(name), name->at);
    }
    return NULL;
}

/* @arg: NULL if the word has no equals sign. */
static bool put_value(struct parser *p, const struct vhca_rule_word *w,
                      const char *arg, const char *end)
{
    const struct vhca_rule_span value = { arg, end };
    const char *bad;

    if (w->takes == VHCA_TAKES_NOTHING && arg) {
        return wrong(p, arg - 1, "%s takes no value", w->name);
    }
    if (w->takes != VHCA_TAKES_NOTHING && (!arg || arg == end)) {
        return wrong(p, end, "%s needs a value", w->name);
    }
    bad = vhca_rule_value(w, value, (char *)p->rule + w->off, p->err);
    return !bad || blame(p, bad);
}

static bool read_word(struct parser *p, struct vhca_rule_span word)
{
    const char *equals = memchr(word.at, '=', span_len(&word));
    struct vhca_rule_span name = { word.at, equals ? equals : word.end };
    const struct vhca_rule_word *w = find_word(p, &name);
    uint64_t bit;

    if (!w) {
        return false;
    }
    bit = 1ull << (w - words);
    if (p->said & bit) {
        return wrong(p, word.at, "%s is given twice", w->name);
    }
    p->said |= bit;
    if (w->action) {
        if (p->rule->does.action) {
            return wrong(p, word.at, "a rule has only one action");
        }
        if (w->action == VHCA_RULE_REMOVE && p->no_remove) {
            return wrong(p, word.at, "%s", p->no_remove);
        }
        p->rule->does.action = w->action;
    }
    return put_value(p, w, equals ? equals + 1 : NULL, word.end);
}

/* ---- rules ---- */

/* Read "seed=", which must be a statement of its own. */
static bool read_seed(struct parser *p, struct vhca_rule_span word,
                      struct vhca_rule_span rest)
{
    static const struct vhca_rule_word seed = {
        .name = "seed", .takes = VHCA_TAKES_NUMBER, .max = UINT64_MAX,
    };
    const char *bad;

    word.at += SEED_LEN;
    bad = vhca_rule_value(&seed, word, &p->seed, p->err);
    if (bad) {
        return blame(p, bad);
    }
    word = next_word(&rest);
    return word.at == word.end || wrong(p, word.at, "a ; is missing");
}

static void begin(struct parser *p, struct vhca_rule *r, unsigned index)
{
    memset(r, 0, sizeof(*r));
    r->seed = p->seed;
    r->rng = p->seed + index * 0xd1342543de82ef95ull;
    r->nth = 1;
    r->ppm = 1000000;
    r->prio = VHCA_RULE_PRIOS;
    memset(r->kinds, 0xff, sizeof(r->kinds));
    for (unsigned i = 0; i < VHCA_RULE_FIELDS; i++) {
        r->field[i].to = UINT32_MAX;
    }
    p->rule = r;
    p->said = 0;
}

static bool read_point(struct parser *p, const struct vhca_rule_span *word)
{
    for (unsigned i = 0; i < ARRAY_SIZE(point_name); i++) {
        if (vhca_rule_is(word, point_name[i])) {
            p->rule->point = (uint8_t)i;
            return true;
        }
    }
    return wrong(p, word->at, "a rule begins with one of: tx rx cqe "
                 "event irq cmd timer port");
}

static bool keep_text(struct parser *p, const struct vhca_rule_span *rule)
{
    size_t len = span_len(rule);

    if (len >= VHCA_RULE_TEXT) {
        return wrong(p, rule->at, "a rule must have less than %u characters",
                     VHCA_RULE_TEXT);
    }
    for (size_t i = 0; i < len; i++) {
        char c = rule->at[i];

        if (c < ' ' && !is_blank(c)) {
            return wrong(p, rule->at + i, "not a character of a rule");
        }
        p->rule->text[i] = is_blank(c) ? ' ' : c;
    }
    return true;
}

/* Check words that go with order= or pause= only, and set their defaults. */
static bool check_pairs(struct parser *p, const char *end)
{
    struct vhca_rule *r = p->rule;

    if (r->does.action == VHCA_RULE_ORDER) {
        r->within = r->within ? r->within : WITHIN;
        r->grain = r->grain ? r->grain : 1;
    } else if (r->within || r->grain) {
        return wrong(p, end, "within and grain go with order=");
    }
    if (r->does.action != VHCA_RULE_PAUSE && r->prio < VHCA_RULE_PRIOS) {
        return wrong(p, end, "prio goes with pause=");
    }
    return true;
}

static bool read_rule(struct parser *p, struct vhca_rule_span rest)
{
    struct vhca_rule_span rule = rest, word = next_word(&rest);

    rule.at = word.at;
    if (!read_point(p, &word) || !keep_text(p, &rule)) {
        return false;
    }
    for (word = next_word(&rest); word.at < word.end; word = next_word(&rest)) {
        if (!read_word(p, word)) {
            return false;
        }
    }
    if (p->rule->point == VHCA_RULE_TIMER && !p->rule->every) {
        p->rule->times = 1;
    }
    if (p->rule->point == VHCA_RULE_PORT &&
        p->rule->does.action == VHCA_RULE_MARK) {
        p->rule->point = VHCA_RULE_TX;
        p->rule->does.value = IP_ECN_CE;
    }
    return check_pairs(p, rule.end) &&
           (p->rule->does.action ||
            wrong(p, rule.end, "the rule has no action"));
}

/* Return the next statement, up to a semicolon or newline, without comment. */
static struct vhca_rule_span next_statement(const char **at)
{
    struct vhca_rule_span s = { *at, *at + strcspn(*at, ";\n#") };

    *at = s.end;
    if (**at == '#') {
        *at += strcspn(*at, "\n");
    }
    *at += **at != '\0';
    while (s.end > s.at && is_blank(s.end[-1])) {
        s.end--;
    }
    return s;
}

int vhca_rule_parse(const char *text, const char *no_remove,
                     struct vhca_rule *rule, unsigned max,
                     struct qhca_fault_error *err)
{
    struct parser p = {
        .text = text, .no_remove = no_remove, .err = err, .seed = SEED,
    };
    unsigned n = 0;

    memset(err, 0, sizeof(*err));
    for (const char *at = text; *at;) {
        struct vhca_rule_span s = next_statement(&at), rest = s;
        struct vhca_rule_span word = next_word(&rest);
        bool good = true;

        if (span_len(&word) >= SEED_LEN &&
            !memcmp(word.at, "seed=", SEED_LEN)) {
            good = read_seed(&p, word, rest);
        } else if (word.at < word.end && n == max) {
            good = wrong(&p, word.at, "more than %u rules", max);
        } else if (word.at < word.end) {
            begin(&p, &rule[n], n);
            good = read_rule(&p, s);
            n++;
        }
        if (!good) {
            return -1;
        }
    }
    return (int)n;
}
