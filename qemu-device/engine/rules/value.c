/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine, faults: the values of words, behind their equals sign. */
#include <stdarg.h>
#include <stdio.h>

#include "rules.h"

#define PPM     1000000u

/* struct reading - a value being parsed */
struct reading {
    struct vhca_rule_span s;       /* what is left of it */
    const struct vhca_rule_word *w;
    void *to;
    struct qhca_fault_error *err;
};

/* Note what is wrong; returns @where. */
__attribute__((format(printf, 3, 4)))
static const char *wrong(struct reading *r, const char *where,
                         const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->err->what, sizeof(r->err->what), fmt, ap);
    va_end(ap);
    return where;
}

static int digit_of(char c, unsigned base)
{
    int d = c >= '0' && c <= '9' ? c - '0' :
            c >= 'a' && c <= 'f' ? c - 'a' + 10 :
            c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;

    return d < (int)base ? d : -1;
}

/* Parse decimal or hex digits; false: there are none, or the sum overflows. */
static bool take_number(struct vhca_rule_span *s, uint64_t *out)
{
    bool hex = s->end - s->at > 2 && s->at[0] == '0' && s->at[1] == 'x';
    unsigned base = hex ? 16 : 10;
    const char *start = s->at += hex ? 2 : 0;
    uint64_t n = 0;
    int d;

    while (s->at < s->end && (d = digit_of(*s->at, base)) >= 0) {
        if (__builtin_mul_overflow(n, base, &n) ||
            __builtin_add_overflow(n, (unsigned)d, &n)) {
            return false;
        }
        s->at++;
    }
    *out = n;
    return s->at > start;
}

/* Parse a number within the word's limits, up to the end or @stop. */
static const char *take_bounded(struct reading *r, char stop, uint64_t *out)
{
    const char *start = r->s.at;

    if (!take_number(&r->s, out) || (r->s.at < r->s.end && *r->s.at != stop)) {
        return wrong(r, start, "expected a number");
    }
    if (*out < r->w->min || *out > r->w->max) {
        return wrong(r, start, "not from %llu to %llu",
                     (unsigned long long)r->w->min,
                     (unsigned long long)r->w->max);
    }
    return NULL;
}

static const char *take_nothing(struct reading *r)
{
    *(uint64_t *)r->to = r->w->min;
    return NULL;
}

static const char *take_one(struct reading *r)
{
    return take_bounded(r, '\0', r->to);
}

static const char *take_range(struct reading *r)
{
    struct vhca_rule_range *range = r->to;
    const char *start = r->s.at, *bad;
    uint64_t from, last;

    bad = take_bounded(r, '-', &from);
    last = from;
    if (!bad && r->s.at < r->s.end) {
        r->s.at++;
        bad = take_bounded(r, '\0', &last);
    }
    if (bad) {
        return bad;
    }
    if (last < from) {
        return wrong(r, start, "the range ends before it begins");
    }
    range->from = (uint32_t)from;
    range->to = (uint32_t)last;
    return NULL;
}

static const char *take_kinds(struct reading *r)
{
    const char *name = r->s.at;

    return vhca_rule_kinds(r->w->points, name, (size_t)(r->s.end - name),
                            r->to) ?
           NULL : wrong(r, name, "no %s of that name", r->w->name);
}

/* Up to four decimal places, which gives millionths. */
static const char *take_percent(struct reading *r)
{
    struct vhca_rule_span *s = &r->s;
    const char *start = s->at;
    uint64_t n = 0, scale = PPM / 100;
    bool good = take_number(s, &n) && n <= 100;
    int d;

    n *= scale;
    if (s->at < s->end && *s->at == '.') {
        for (s->at++; s->at < s->end && scale > 1 &&
                      (d = digit_of(*s->at, 10)) >= 0; s->at++) {
            scale /= 10;
            n += (unsigned)d * scale;
        }
    }
    *(uint64_t *)r->to = n;
    good = good && s->end - s->at == 1 && *s->at == '%' && n && n <= PPM;
    return good ? NULL : wrong(r, start, "expected a percentage, like 0.5%%");
}

/* Return the nanoseconds of a unit, or 0 if there is no such unit. */
static uint64_t unit_ns(const struct vhca_rule_span *s)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } unit[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };

    for (unsigned i = 0; i < ARRAY_SIZE(unit); i++) {
        if (vhca_rule_is(s, unit[i].name)) {
            return unit[i].ns;
        }
    }
    return 0;
}

static const char *take_time(struct reading *r)
{
    const char *start = r->s.at;
    uint64_t n, ns = take_number(&r->s, &n) ? unit_ns(&r->s) : 0;

    if (!ns) {
        return wrong(r, start, "expected a time, like 50us, 5ms or 1s");
    }
    if (n > r->w->max / ns || n * ns < r->w->min) {
        return wrong(r, start, "not from %llu us to %llu s",
                     (unsigned long long)r->w->min / 1000,
                     (unsigned long long)r->w->max / 1000000000);
    }
    *(uint64_t *)r->to = n * ns;
    return NULL;
}

static const char *take_name(struct reading *r)
{
    const struct vhca_rule_name *n;
    size_t len;

    for (n = r->w->names; n->name; n++) {
        if (vhca_rule_is(&r->s, n->name)) {
            *(uint64_t *)r->to = n->value;
            return NULL;
        }
    }
    wrong(r, r->s.at, "expected one of:");
    len = strlen(r->err->what);
    for (n = r->w->names; n->name && len < sizeof(r->err->what); n++) {
        len += (size_t)snprintf(r->err->what + len, sizeof(r->err->what) - len,
                                " %s", n->name);
    }
    return r->s.at;
}

static const char *(*const take[])(struct reading *r) = {
    [VHCA_TAKES_NOTHING] = take_nothing,
    [VHCA_TAKES_NUMBER] = take_one,
    [VHCA_TAKES_RANGE] = take_range,
    [VHCA_TAKES_KINDS] = take_kinds,
    [VHCA_TAKES_PERCENT] = take_percent,
    [VHCA_TAKES_TIME] = take_time,
    [VHCA_TAKES_NAME] = take_name,
};

const char *vhca_rule_value(const struct vhca_rule_word *w,
                             struct vhca_rule_span s, void *to,
                             struct qhca_fault_error *err)
{
    struct reading r = { .s = s, .w = w, .to = to, .err = err };

    return take[w->takes](&r);
}
