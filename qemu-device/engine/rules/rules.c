/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: the rules in force: which of them act, and how often
 * they have. The operator's survive a reset.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"

/* SplitMix64: the same seed gives the same faults wherever the engine runs. */
uint64_t vhca_rule_draw(struct vhca_rule *r, uint64_t max)
{
    uint64_t z = r->rng += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((z ^ (z >> 31)) >> 32) * max >> 32;
}

static bool is_spent(const struct vhca_rule *r)
{
    return r->times && r->hits == r->times;
}

static bool matches(const struct vhca_rule *r,
                    const struct vhca_rule_at *at)
{
    if (r->point != at->point || is_spent(r) ||
        !(r->kinds[at->kind / 64] >> at->kind % 64 & 1)) {
        return false;
    }
    for (unsigned i = 0; i < VHCA_RULE_FIELDS; i++) {
        if (at->field[i] < r->field[i].from || at->field[i] > r->field[i].to) {
            return false;
        }
    }
    return true;
}

static bool has_chance(struct vhca_rule *r)
{
    return r->ppm == 1000000 || vhca_rule_draw(r, 1000000) < r->ppm;
}

/* Count a match; returns whether the rule acts on it. */
static bool has_turn(struct vhca_rule *r)
{
    r->seen++;
    return r->seen > r->after && (r->seen - r->after) % r->nth == 0 &&
           has_chance(r);
}

/*
 * Apply the rule; @obj is for the trace. Link, fatal error and removal act
 * later, from the timer.
 */
static struct vhca_effect act(struct qhca_engine *e, struct vhca_rule *r,
                             uint32_t obj)
{
    struct vhca_rules *f = e->rules;
    struct vhca_effect does = r->does;

    r->hits++;
    vhca_trace_fault(e, (unsigned)(r - f->rule) + 1, r->hits, obj);
    if (does.action >= VHCA_RULE_LINK_DOWN) {
        f->wanted |= 1u << does.action;
        if (does.action == VHCA_RULE_LINK_DOWN) {
            f->link_ns = does.value;
        } else if (does.action == VHCA_RULE_PAUSE) {
            f->pause_ns = does.value;
            f->pause_classes = (uint8_t)(r->prio < VHCA_RULE_PRIOS ?
                                         1u << r->prio : 0xffu);
        }
        does.action = VHCA_RULE_NONE;
    }
    if (is_spent(r) || f->wanted) {
        vhca_rules_update(e);
    }
    return does;
}

/* Return the number of the object concerned, for the trace. */
static uint32_t object_of(const struct vhca_rule_at *at)
{
    switch (at->point) {
    case VHCA_RULE_EVENT:
        return at->field[VHCA_RULE_OBJ];
    case VHCA_RULE_IRQ:
        return at->field[VHCA_RULE_VECTOR];
    case VHCA_RULE_CMD:
        return at->kind;
    default:
        return at->field[VHCA_RULE_QPN];
    }
}

struct vhca_effect vhca_rule_judge(struct qhca_engine *e,
                                   const struct vhca_rule_at *at)
{
    struct vhca_rules *f = e->rules;

    for (unsigned i = 0; i < f->num_rules; i++) {
        struct vhca_rule *r = &f->rule[i];

        if (matches(r, at) && has_turn(r)) {
            return act(e, r, object_of(at));
        }
    }
    return (struct vhca_effect) { VHCA_RULE_NONE, 0 };
}

void vhca_rules_tick(struct qhca_engine *e)
{
    for (unsigned i = 0; i < e->rules->num_rules; i++) {
        struct vhca_rule *r = &e->rules->rule[i];

        if (r->point == VHCA_RULE_TIMER && !is_spent(r) && r->due <= e->now) {
            /* Missed periods are not made up for. */
            r->due = r->every ? MAX_OF(r->due, e->now) + r->every : UINT64_MAX;
            if (has_chance(r)) {
                (void)act(e, r, 0);
            }
        }
    }
}

void vhca_rules_set_clock(struct qhca_engine *e, uint64_t now)
{
    e->rules->pace.paid = now;
    for (unsigned i = 0; i < e->rules->num_rules; i++) {
        struct vhca_rule *r = &e->rules->rule[i];

        if (r->due != UINT64_MAX) {
            r->due = now + (r->due > e->now ? r->due - e->now : 0);
        }
    }
}

/* Return when the timer has something to do next. */
static uint64_t next_time(const struct vhca_rules *f)
{
    uint64_t next = f->wanted ? 0 : UINT64_MAX;

    for (unsigned i = 0; f->num_held && i < VHCA_RULE_HELD; i++) {
        if (f->held[i].used) {
            next = MIN_OF(next, f->held[i].when);
        }
    }
    for (unsigned i = 0; i < f->num_rules; i++) {
        if (f->rule[i].point == VHCA_RULE_TIMER && !is_spent(&f->rule[i])) {
            next = MIN_OF(next, f->rule[i].due);
        }
    }
    next = f->link_back ? MIN_OF(next, f->link_back) : next;
    return f->stalled ? MIN_OF(next, f->stalled) : next;
}

/* Return the first of @n rules that does this, or NULL. */
static struct vhca_rule *first_of(struct vhca_rule *rule,
                                        unsigned n,
                                        enum vhca_rule_action action)
{
    for (unsigned i = 0; i < n; i++) {
        if (rule[i].does.action == action) {
            return &rule[i];
        }
    }
    return NULL;
}

/* Put the first rule for each property of the port in force. */
static void update_port(struct qhca_engine *e)
{
    struct vhca_rules *f = e->rules;
    uint32_t before = f->mbit;

    f->slow = first_of(f->rule, f->num_rules, VHCA_RULE_SLOW);
    f->late = first_of(f->rule, f->num_rules, VHCA_RULE_LATE);
    f->disorder = first_of(f->rule, f->num_rules, VHCA_RULE_ORDER);
    f->mbit = f->slow ? (uint32_t)f->slow->does.value : 0;
    if (f->mbit != before) {
        vhca_pace_set(&f->pace, e->now, f->mbit);
    }
}

void vhca_rule_slow(struct qhca_engine *e, size_t len)
{
    e->rules->slow->hits++;
    vhca_pace_take(&e->rules->pace, e->now, len);
}

/* See packets for the rules, and for a frame that waits for the next one. */
void vhca_rules_update(struct qhca_engine *e)
{
    struct vhca_rules *f = e->rules;
    unsigned points = f->num_held ? VHCA_RULE_PACKETS : 0;
    uint64_t next = next_time(f);

    for (unsigned i = 0; i < f->num_rules; i++) {
        points |= (unsigned)!is_spent(&f->rule[i]) << f->rule[i].point;
    }
    e->fault_points = (uint8_t)points;
    if (next < UINT64_MAX && vhca_running(e)) {
        vhca_timer_set(e, &f->timer, next);
    } else {
        vhca_timer_cancel(e, &f->timer);
    }
}

/* Return why a rule must not remove the device, or NULL. */
static const char *no_remove(const struct qhca_engine *e, bool guest)
{
    if (guest) {
        return "remove is not for the guest: it acts outside of the device";
    }
    return e->cfg.removable ? NULL :
           "the device is not in a slot that it can be removed from";
}

/*
 * Allocate all places that @n rules need now: holding a frame or data back
 * takes no memory then.
 */
static bool provide(struct vhca_rules *f, struct vhca_rule *rule,
                    unsigned n, struct qhca_fault_error *err)
{
    bool order = first_of(rule, n, VHCA_RULE_ORDER);

    if (n && !f->held) {
        f->held = calloc(VHCA_RULE_HELD, sizeof(*f->held));
    }
    if (order && !f->data) {
        f->data = calloc(VHCA_RULE_DATA, sizeof(*f->data));
    }
    if (order && !f->early) {
        f->early = calloc(VHCA_RULE_EARLY, sizeof(*f->early));
    }
    if ((n && !f->held) || (order && !(f->data && f->early))) {
        snprintf(err->what, sizeof(err->what), "no memory for rules");
        return false;
    }
    return true;
}

/* Replace the guest's rules, or the operator's, by these @n. */
static void replace(struct vhca_rules *f, bool guest,
                    const struct vhca_rule *rule, unsigned n)
{
    unsigned others = f->num_rules - f->num_host;

    if (guest) {
        memcpy(f->rule + f->num_host, rule, n * sizeof(*rule));
        f->num_rules = f->num_host + n;
    } else {
        memmove(f->rule + n, f->rule + f->num_host, others * sizeof(*rule));
        memcpy(f->rule, rule, n * sizeof(*rule));
        f->num_host = n;
        f->num_rules = n + others;
    }
}

bool vhca_rules_set(struct qhca_engine *e, bool guest, const char *text,
                     struct qhca_fault_error *err)
{
    struct vhca_rule rule[VHCA_MAX_RULES];
    struct vhca_rules *f = e->rules;
    unsigned others = guest ? f->num_host : f->num_rules - f->num_host;
    unsigned max = MIN_OF(VHCA_MAX_RULES - others,
                          guest ? VHCA_RULE_GUEST : VHCA_MAX_RULES);
    int n = vhca_rule_parse(text, no_remove(e, guest), rule, max, err);

    if (n < 0 || !provide(f, rule, (unsigned)n, err)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        rule[i].due = e->now + (rule[i].after ? rule[i].after : rule[i].every);
    }
    replace(f, guest, rule, (unsigned)n);
    update_port(e);
    vhca_rules_update(e);
    return true;
}

size_t vhca_rules_print(const struct qhca_engine *e, unsigned from,
                         unsigned to, char *buf, size_t size)
{
    uint64_t seed = 0;
    size_t len = 0;

    if (size) {
        buf[0] = '\0';
    }
    for (unsigned i = from; i < to; i++) {
        const struct vhca_rule *r = &e->rules->rule[i];

        if (i == from || r->seed != seed) {
            seed = r->seed;
            len += (size_t)snprintf(buf + MIN_OF(len, size),
                                    size - MIN_OF(len, size), "seed=%llu\n",
                                    (unsigned long long)seed);
        }
        len += (size_t)snprintf(buf + MIN_OF(len, size),
                                size - MIN_OF(len, size), "%s  # hits %llu\n",
                                r->text, (unsigned long long)r->hits);
    }
    return len;
}

/* ---- rules set by the guest, if the operator allows it ---- */

/*
 * Keep what is wrong with @text for the guest, as comments: the line, unless it
 * is longer than 80 characters, and a mark under the place.
 */
static void complain(struct vhca_rules *f, const char *text,
                     const struct qhca_fault_error *err)
{
    size_t len;

    for (unsigned line = err->line; line > 1; line--) {
        text = strchr(text, '\n') + 1;
    }
    len = strcspn(text, "\n");
    if (len < 80 && err->column <= 80) {
        snprintf(f->complaint, sizeof(f->complaint), "# %.*s\n# %*s %.80s\n",
                 (int)len, text, (int)err->column, "^", err->what);
    } else {
        snprintf(f->complaint, sizeof(f->complaint),
                 "# line %u, column %u: %.80s\n", err->line, err->column,
                 err->what);
    }
}

int vhca_do_set_faults(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const char *text = (const char *)c->mbox;
    struct qhca_fault_error err;

    if (!e->cfg.guest_faults) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (!memchr(text, '\0', sizeof(struct qhca_faults_text))) {
        return QHCA_ERR_PARAM;
    }
    e->rules->complaint[0] = '\0';
    if (!vhca_rules_set(e, true, text, &err)) {
        complain(e->rules, text, &err);
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

int vhca_do_query_faults(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct vhca_rules *f = e->rules;
    size_t len = strlen(f->complaint);

    if (!e->cfg.guest_faults) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    memcpy(c->mbox, f->complaint, len);
    vhca_rules_print(e, f->num_host, f->num_rules, (char *)c->mbox + len,
                      sizeof(struct qhca_faults_text) - len);
    return QHCA_OK;
}

/* ---- the room ---- */

static bool rules_init(struct qhca_engine *e)
{
    vhca_timers_provide(e, 1 + VHCA_RULE_EARLY);
    return true;
}

static void rules_reset(struct qhca_engine *e)
{
    struct vhca_rules *f = e->rules;

    for (unsigned i = 0; f->num_held && i < VHCA_RULE_HELD; i++) {
        f->held[i].used = false;
    }
    for (unsigned i = 0; f->early && i < VHCA_RULE_EARLY; i++) {
        vhca_timer_cancel(e, &f->early[i].timer);
        f->early[i].num = 0;
    }
    f->num_held = 0;
    f->wanted = 0;
    f->link_back = f->stalled = 0;
    vhca_rules_update(e);
}

static void rules_fini(struct qhca_engine *e)
{
    free(e->rules->held);
    free(e->rules->data);
    free(e->rules->early);
}

static unsigned rules_holdings(const struct qhca_engine *e,
                               struct qhca_holding *h)
{
    h[0] = (struct qhca_holding) {
        "packets that come later", false,
        VHCA_RULE_HELD * sizeof(struct vhca_rule_held), 1, !!e->rules->held
    };
    h[1] = (struct qhca_holding) {
        "data that come later", false,
        VHCA_RULE_DATA * sizeof(struct vhca_rule_data), 1, !!e->rules->data
    };
    h[2] = (struct qhca_holding) {
        "data read early", false,
        VHCA_RULE_EARLY * sizeof(struct vhca_early), 1,
        !!e->rules->early
    };
    return 3;
}

const struct vhca_room vhca_rules_room = {
    .init = rules_init, .reset = rules_reset, .fini = rules_fini,
    .holdings = rules_holdings,
};
