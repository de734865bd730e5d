/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: flow rules: which frames QPs receive. */
#include <stdlib.h>

#include "steering.h"
#include "../wire/wire.h"

#define WORDS   8u              /* of struct qhca_flow_key */

_Static_assert(sizeof(struct qhca_flow_key) == WORDS * sizeof(uint64_t),
               "a key is not made of words");

/* ---- asking them ---- */

static bool matches(const struct vhca_flow *f, const uint64_t *key)
{
    for (unsigned i = 0; i < WORDS; i++) {
        if ((key[i] & f->mask[i]) != f->key[i]) {
            return false;
        }
    }
    return true;
}

static void parse(const uint8_t *frame, size_t len, uint64_t *key)
{
    struct qhca_flow_key k;

    vhca_flow_parse(&k, frame, len);
    memcpy(key, &k, sizeof(k));
}

/* Return the index from @i on, below @end, of a rule that matches, or @end. */
static uint32_t find(struct qhca_engine *e, const uint64_t *key, uint32_t i,
                     uint32_t end)
{
    uint32_t start = i;

    while (i < end && !matches(e->raw->line[i], key)) {
        i++;
    }
    vhca_spend(e, (i - start) / VHCA_UNIT_OBJECTS);
    return i;
}

bool vhca_flow_wants(struct qhca_engine *e, const uint8_t *frame, size_t len)
{
    uint32_t end = e->raw->end[QHCA_FLOW_FIRST];
    uint64_t key[WORDS];

    if (!end) {
        return false;
    }
    parse(frame, len, key);
    return find(e, key, 0, end) < end;
}

static void count_frame(struct vhca_flow *f, size_t len)
{
    f->frames++;
    f->bytes += len;
}

static void flow_deliver(struct qhca_engine *e, struct vhca_flow *f,
                         const uint8_t *frame, size_t len, bool csum_ok)
{
    struct vhca_qp *qp = f->spread ? vhca_spread_choose(f->spread, frame, len) :
                                     f->qp;

    count_frame(f, len);
    if (qp) {
        vhca_spend_bytes(e, len, VHCA_UNIT_FRAME);
        vhca_raw_rx(e, qp, frame, len, f->tag, csum_ok);
    }
}

void vhca_flow_deliver(struct qhca_engine *e, const uint8_t *frame, size_t len,
                       bool csum_ok)
{
    uint32_t number;

    while ((number = vhca_delivery_next(e)) != 0) {
        flow_deliver(e, vhca_table_get(&e->raw->flow, number), frame, len,
                     csum_ok);
    }
    vhca_delivery_stop(e, frame, len, csum_ok);
}

void vhca_flow_go_on(struct qhca_engine *e)
{
    const struct vhca_delivery *d = &e->port->delivery;

    vhca_flow_deliver(e, d->frame, d->len, d->csum_ok);
}

bool vhca_flow_choose(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      enum qhca_flow_order order)
{
    const struct vhca_raw *raw = e->raw;
    uint32_t i = order == QHCA_FLOW_FIRST ? 0 : raw->end[order - 1];
    uint32_t end = raw->end[order];
    bool group = frame[0] & 1, dropped = false;
    uint64_t key[WORDS];
    uint32_t priority;

    if (i == end) {
        return false;
    }
    parse(frame, len, key);
    i = find(e, key, i, end);
    if (i == end) {
        return false;
    }
    priority = raw->line[i]->priority;
    while (i < end && raw->line[i]->priority == priority) {
        struct vhca_flow *f = raw->line[i];

        dropped |= f->action == QHCA_FLOW_DROP;
        vhca_delivery_add(e, VHCA_TO_RULES, f->number);
        if (!group || dropped) {
            break;
        }
        i = find(e, key, i + 1, end);
    }
    return !group || dropped;
}

bool vhca_flow_may_get(struct qhca_engine *e, const struct vhca_delivery *d,
                       uint32_t number)
{
    const struct vhca_flow *f = vhca_table_get(&e->raw->flow, number);
    uint64_t key[WORDS];

    parse(d->frame, d->len, key);
    return f && f->order != QHCA_FLOW_ETH && matches(f, key);
}

bool vhca_flow_eth(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   struct vhca_eth_to *to)
{
    const struct vhca_raw *raw = e->raw;
    uint32_t i = raw->end[QHCA_FLOW_ETH - 1], end = raw->end[QHCA_FLOW_ETH];
    uint64_t key[WORDS];

    if (i == end) {
        return true;
    }
    parse(frame, len, key);
    i = find(e, key, i, end);
    if (i == end) {
        return true;
    }
    count_frame(raw->line[i], len);
    *to = raw->line[i]->to;
    return raw->line[i]->action != QHCA_FLOW_DROP;
}

/* ---- commands ---- */

/* Whether rules of that order can do that. */
static bool action_ok(const struct qhca_flow *r)
{
    if (r->order == QHCA_FLOW_ETH) {
        return !r->tag && (r->action == QHCA_FLOW_DROP ||
                           r->action == QHCA_FLOW_QUEUE ||
                           r->action == QHCA_FLOW_RSS);
    }
    return r->order < QHCA_FLOW_ETH && r->action <= QHCA_FLOW_SPREAD;
}

int vhca_flow_check(const struct qhca_flow *r)
{
    const uint8_t *key = (const uint8_t *)&r->key;
    const uint8_t *mask = (const uint8_t *)&r->mask;

    for (size_t i = 0; i < sizeof(r->key); i++) {
        if (key[i] & ~mask[i]) {
            return QHCA_ERR_PARAM;
        }
    }
    if (!action_ok(r) ||
        (r->action == QHCA_FLOW_DROP && r->target) ||
        !vhca_is_zero(r->mask.rsvd, sizeof(r->mask.rsvd)) ||
        !vhca_is_zero(r->rsvd, sizeof(r->rsvd))) {
        return QHCA_ERR_PARAM;
    }
    return le32toh(r->priority) < QHCA_FLOW_PRIORITIES ? QHCA_OK :
                                                         QHCA_ERR_LIMIT;
}

/* Whether @a is asked before @b, if both are as old. */
static bool before(const struct vhca_flow *a, const struct vhca_flow *b)
{
    return a->order != b->order ? a->order < b->order :
                                  a->priority < b->priority;
}

void vhca_flow_queue(struct vhca_raw *raw, struct vhca_flow *f, uint32_t n)
{
    while (n > 0 && before(f, raw->line[n - 1])) {
        raw->line[n] = raw->line[n - 1];
        n--;
    }
    raw->line[n] = f;
    for (unsigned i = f->order; i < ARRAY_SIZE(raw->end); i++) {
        raw->end[i]++;
    }
}

/* Find the target of a rule of the Ethernet queues. */
static int find_to(struct qhca_engine *e, struct vhca_flow *f, uint32_t target)
{
    if (f->action == QHCA_FLOW_QUEUE && target >= e->cfg.eth_queues) {
        return QHCA_ERR_LIMIT;
    }
    if (f->action == QHCA_FLOW_RSS && !vhca_rss_get(e, target)) {
        return QHCA_ERR_OBJ;
    }
    f->to.direct = f->action == QHCA_FLOW_QUEUE;
    f->to.target = (uint8_t)target;
    return QHCA_OK;
}

int vhca_flow_find(struct qhca_engine *e, struct vhca_flow *f,
                   const struct qhca_flow *r)
{
    uint32_t target = le32toh(r->target);

    f->priority = le32toh(r->priority);
    f->tag = le32toh(r->tag);
    f->order = r->order;
    f->action = r->action;
    memcpy(f->key, &r->key, sizeof(f->key));
    memcpy(f->mask, &r->mask, sizeof(f->mask));
    if (f->order == QHCA_FLOW_ETH) {
        return find_to(e, f, target);
    }
    if (r->action == QHCA_FLOW_QP) {
        f->qp = vhca_raw_target(e, target);
    } else if (r->action == QHCA_FLOW_SPREAD) {
        f->spread = vhca_table_get(&e->raw->spread, target);
    }
    return r->action == QHCA_FLOW_DROP || f->qp || f->spread ? QHCA_OK :
                                                               QHCA_ERR_OBJ;
}

void vhca_flow_count(struct qhca_engine *e, struct vhca_flow *f, int by)
{
    if (f->qp) {
        f->qp->groups += (uint32_t)by;
    } else if (f->spread) {
        f->spread->users += (uint32_t)by;
    } else if (f->action == QHCA_FLOW_RSS) {
        e->eth->rss[f->to.target].users += (uint16_t)by;
    }
}

/* Take a rule out of the line. */
static void unqueue(struct qhca_engine *e, struct vhca_flow *f)
{
    struct vhca_raw *raw = e->raw;
    uint32_t i = 0;

    vhca_delivery_forget(e, VHCA_TO_RULES, NULL, f->number);
    while (raw->line[i] != f) {
        i++;
    }
    memmove(&raw->line[i], &raw->line[i + 1],
            (raw->flow.used - i - 1) * sizeof(raw->line[0]));
    for (i = f->order; i < ARRAY_SIZE(raw->end); i++) {
        raw->end[i]--;
    }
    vhca_flow_count(e, f, -1);
}

/* Return a new rule, or NULL. */
static struct vhca_flow *add(struct vhca_raw *raw)
{
    struct vhca_flow *f = raw->flow.used < raw->flow.max ?
                          calloc(1, sizeof(*f)) : NULL;

    if (f) {
        f->number = vhca_table_add(&raw->flow, f);
    }
    return f;
}

int vhca_do_create_flow(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    uint32_t old = le32toh(c->cmd->obj.obj);
    struct vhca_flow *f = vhca_table_get(&e->raw->flow, old), next = { 0 };
    struct qhca_flow r;
    int status;

    memcpy(&r, c->mbox, sizeof(r));
    status = old && !f ? QHCA_ERR_OBJ : vhca_flow_check(&r);
    if (status == QHCA_OK) {
        status = vhca_flow_find(e, &next, &r);
    }
    if (status != QHCA_OK) {
        return status;
    }
    if (f) {
        unqueue(e, f);
    } else {
        f = add(e->raw);
    }
    if (!f) {
        return QHCA_ERR_NO_RESOURCE;
    }
    next.number = f->number;
    *f = next;
    vhca_flow_queue(e->raw, f, e->raw->flow.used - 1);
    vhca_flow_count(e, f, 1);
    c->obj = f->number;
    return QHCA_OK;
}

int vhca_do_query_flow(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct vhca_flow *f = vhca_table_get(&e->raw->flow,
                                               le32toh(c->cmd->obj.obj));

    if (!f) {
        return QHCA_ERR_OBJ;
    }
    memcpy(c->mbox, &(struct qhca_flow_counts) {
        .frames = htole64(f->frames), .bytes = htole64(f->bytes),
    }, sizeof(struct qhca_flow_counts));
    return QHCA_OK;
}

int vhca_do_destroy_flow(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    struct vhca_flow *f = vhca_table_get(&e->raw->flow,
                                         le32toh(c->cmd->obj.obj));

    if (!f) {
        return QHCA_ERR_OBJ;
    }
    unqueue(e, f);
    vhca_table_del(&e->raw->flow, f->number);
    free(f);
    return QHCA_OK;
}
