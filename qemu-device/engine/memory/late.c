/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the order in which data reach memory. IBTA lets an adapter place
 * the bytes of a message in any order, and late, as long as they are there when
 * it says so (IBTA 9.5, 10.8.3; o9-20). This device places them in order and
 * without delay, unless a fault rule asks for disorder: then it holds some of
 * them back for a while. Held pieces never overlap, so any order is legal.
 */
#include "../rules/rules.h"
#include "memory.h"

static struct vhca_rule_data *held(const struct qhca_engine *e)
{
    return e->rules->data;
}

/* Place held piece @i; the last one moves to where it was. */
static void late_place(struct qhca_engine *e, unsigned i)
{
    struct vhca_late *o = &e->memory->late;
    struct vhca_rule_data *h = held(e) + i, *last = held(e) + --o->num;

    (void)vhca_dma_write(e, h->addr, h->bytes, h->len);
    if (h != last) {
        memcpy(h, last, offsetof(struct vhca_rule_data, bytes) + last->len);
    }
}

/* After pieces may have come or gone: set the timer for the one due next. */
static void wait(struct qhca_engine *e)
{
    struct vhca_late *o = &e->memory->late;
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < o->num; i++) {
        next = MIN_OF(next, held(e)[i].due);
    }
    e->late_data = o->num;
    if (o->num) {
        vhca_timer_set(e, &o->timer, next);
    } else {
        vhca_timer_cancel(e, &o->timer);
    }
}

static void timeout(struct qhca_engine *e, struct vhca_timer *t)
{
    struct vhca_late *o = container_of(t, struct vhca_late, timer);

    for (unsigned i = o->num; i-- > 0;) {
        if (held(e)[i].due <= e->now) {
            late_place(e, i);
        }
    }
    wait(e);
}

void vhca_late_place(struct qhca_engine *e, uint32_t qpn)
{
    struct vhca_late *o = &e->memory->late;

    for (unsigned i = o->num; i-- > 0;) {
        if (qpn == VHCA_EVERY_QP || held(e)[i].qpn == qpn) {
            late_place(e, i);
        }
    }
    wait(e);
}

void vhca_late_meet(struct qhca_engine *e, const struct vhca_mr *mr,
                     uint64_t addr, size_t len)
{
    struct vhca_late *o = &e->memory->late;
    unsigned looked = 0;
    uint64_t at;
    size_t n;

    for (; len > 0 && o->num; addr += n, len -= n) {
        n = len;
        if (!vhca_mr_run(e, mr, addr, &n, false, &at)) {
            break;              /* nothing behind it is touched */
        }
        looked += o->num;
        for (unsigned i = o->num; i-- > 0;) {
            if (held(e)[i].addr < at + n &&
                at < held(e)[i].addr + held(e)[i].len) {
                late_place(e, i);
            }
        }
    }
    vhca_spend(e, looked / VHCA_UNIT_OBJECTS);
    wait(e);
}

/* Return the length of the next piece of @len bytes for @at. */
static size_t cut(struct vhca_rule *r, uint64_t at, size_t len)
{
    size_t n = (size_t)MIN_OF((uint64_t)len, VHCA_RULE_BYTES);

    if (vhca_rule_draw(r, 2)) {
        n = 1 + (size_t)vhca_rule_draw(r, n);
    }
    /* Up to the next multiple of the grain. */
    n += (size_t)((r->grain - (at + n) % r->grain) % r->grain);
    return MIN_OF(n, len);
}

/* Whether the data have been put aside. */
static bool hold(struct qhca_engine *e, uint32_t qpn, uint64_t at,
                 const uint8_t *data, size_t len)
{
    struct vhca_late *o = &e->memory->late;
    struct vhca_rule *r = e->rules->disorder;
    struct vhca_rule_data *h;
    size_t seen = len;

    if (o->num == VHCA_RULE_DATA || len > VHCA_RULE_BYTES) {
        return false;
    }
    vhca_spend(e, 1);
    if (!e->ops->dma_peek(e->opaque, at, &seen) || seen < len) {
        return false;           /* what may fail has to fail now */
    }
    h = held(e) + o->num++;
    h->addr = at;
    h->due = e->now + 1 + vhca_rule_draw(r, r->within);
    h->qpn = qpn;
    h->len = (uint32_t)len;
    memcpy(h->bytes, data, len);
    r->hits++;
    return true;
}

enum vhca_mem_result vhca_late_write(struct qhca_engine *e, uint32_t qpn,
                                      const struct vhca_mr *mr, uint64_t addr,
                                      const uint8_t *buf, size_t len)
{
    struct vhca_rule *r = e->rules->disorder;
    enum vhca_mem_result result = VHCA_MEM_OK;
    size_t n, run;

    for (; len > 0 && result == VHCA_MEM_OK; addr += n, buf += n, len -= n) {
        uint64_t at = addr;
        bool known;

        run = len;
        known = vhca_mr_run(e, mr, addr, &run, true, &at);
        n = cut(r, at, len);
        if (!vhca_rule_draw(r, 2) || !known || run < n ||
            !hold(e, qpn, at, buf, n)) {
            result = vhca_mr_put(e, mr, addr, buf, n);
        }
        if (result == VHCA_MEM_FAULT) {
            vhca_miss_extend(e, len - n);
        }
    }
    wait(e);
    return result;
}

void vhca_late_init(struct qhca_engine *e)
{
    e->memory->late.timer.fn = timeout;
    vhca_timers_provide(e, 1);
}

void vhca_late_forget(struct qhca_engine *e)
{
    e->memory->late.num = 0;
    wait(e);
}
