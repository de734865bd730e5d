/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: bounds, checked after each call of an entry point.
 */
#include "debug.h"
#include "harness.h"
#include "snapshot.h"

/*
 * Limits of one call in units of work (Documentation/bounds.rst): a slice, and
 * the most that its last step can take: a message to a receive WQE with as many
 * SGEs as possible, each of a region of as many pieces as possible.
 */
#define SLICE       2048u
#define STEP        (QHCA_MAX_RECV_SGE * (VHCA_MAX_FAST_REG / 2 + 16))
#define UNITS       (SLICE + STEP)
/* The table of a buffer is freed in one piece. */
#define TABLES      (VHCA_MAX_TABLE_BLOCKS / VHCA_UNIT_BLOCKS)

static const struct call_cost limit = {
    .units = UNITS + TABLES,
    .dma = UNITS,
    .dma_bytes = UNITS * 2048ull + VHCA_MAX_TSO,
    .frames = SLICE + VHCA_FIFO_FRAMES,     /* waiting frames are sent first */
    .irqs = VHCA_MAX_EQ + 256 + 2,          /* commands can create EQs again */
    .timers = 2,
    .lines = SLICE,
};

#define WITHIN(g, what) \
    do { \
        if ((g)->cost.what > limit.what) { \
            tap_note(#what ": %llu in one call, at most %llu", \
                     (unsigned long long)(g)->cost.what, \
                     (unsigned long long)limit.what); \
            tap_fail(__FILE__, __LINE__, "a call that does too much"); \
        } \
    } while (0)

static void check_cost(const struct guest *g)
{
    WITHIN(g, units);
    WITHIN(g, dma);
    WITHIN(g, dma_bytes);
    WITHIN(g, frames);
    WITHIN(g, irqs);
    WITHIN(g, timers);
    WITHIN(g, lines);
}

/* The engine lists all memory it has, and has no more than is allowed. */
static void check_memory(const struct guest *g)
{
    struct qhca_holding h[VHCA_MAX_HOLDINGS];
    unsigned n = qhca_engine_holdings(g->e, h);
    uint64_t listed = 0;

    for (unsigned i = 0; i < n; i++) {
        listed += (uint64_t)h[i].size * h[i].used;
        if (h[i].used > h[i].max) {
            tap_note("%s: %u, at most %u", h[i].what, h[i].used, h[i].max);
            tap_fail(__FILE__, __LINE__, "too many");
        }
    }
    if (listed != g->heap->bytes) {
        tap_note("%zu bytes in use, %llu are accounted for", g->heap->bytes,
                 (unsigned long long)listed);
        tap_fail(__FILE__, __LINE__, "memory that is not listed");
    }
}

static unsigned length(const struct vhca_list *head)
{
    unsigned n = 0;

    for (const struct vhca_list *at = head->next; at != head; at = at->next) {
        n++;
    }
    return n;
}

static bool waits_well(const struct vhca_async *a)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < a->waiting && i < VHCA_ASYNC_TYPES; i++) {
        if (seen & 1u << a->type[i]) {
            return false;
        }
        seen |= 1u << a->type[i];
    }
    return a->waiting && a->waiting <= VHCA_ASYNC_TYPES;
}

/* An object waits for room in an EQ once, with one event of each type. */
static void check_pending(const struct qhca_engine *e, unsigned strangers)
{
    unsigned cqs = e->events->cq.used;
    unsigned all = cqs + e->qps->table.used + e->rqs->srq.used + 1 +
                   strangers;

    for (unsigned i = 0; i < VHCA_MAX_EQ; i++) {
        const struct vhca_eq *eq = &e->events->eq[i];
        const struct vhca_list *at;

        if (!eq->used || vhca_list_empty(&eq->pending)) {
            continue;
        }
        CHECK(length(&eq->pending) <= (eq->async ? all : cqs));
        for (at = eq->pending.next; eq->async && at != &eq->pending;
             at = at->next) {
            CHECK(waits_well(container_of(at, struct vhca_async, node)));
        }
    }
}

/* Only QPs, CQs and fault rules have timers, and the heap is in order. */
static void check_timers(const struct qhca_engine *e, unsigned strangers)
{
    const struct vhca_timers *t = &e->timers;

    CHECK(t->used <= e->qps->num_swr + e->events->cq.used + 1 + strangers);
    for (uint32_t i = 0; i < t->used; i++) {
        CHECK(t->heap[i]->pos == i + 1);
        CHECK(t->heap[i]->deadline >= t->heap[(i - !!i) / 2]->deadline);
    }
}

/* ---- around each call ---- */

/* struct call - a call in progress; only the outermost one is checked */
struct call {
    struct guest *g;            /* NULL: the engine belongs to no guest */
    struct heap *heap;          /* the one in use before */
};

static struct call begin(struct qhca_engine *e)
{
    struct call c = { 0 };

    if (e->ops != &guest_ops) {
        return c;
    }
    c.g = e->opaque;
    c.heap = heap_use(c.g->heap);
    if (c.g->depth++ == 0) {
        memset(&c.g->cost, 0, sizeof(c.g->cost));
    }
    return c;
}

static void end(const struct call *c)
{
    struct guest *g = c->g;

    if (!g) {
        return;
    }
    heap_use(c->heap);
    if (--g->depth > 0) {
        return;
    }
    g->cost.units = g->e->spent;
    if (g->cost.dma > g->cost.units) {
        tap_note("%llu accesses to memory, %llu units",
                 (unsigned long long)g->cost.dma,
                 (unsigned long long)g->cost.units);
        tap_fail(__FILE__, __LINE__, "accesses that nothing was charged for");
    }
    check_cost(g);
    check_memory(g);
    check_pending(g->e, g->strangers);
    check_timers(g->e, g->strangers);
    snapshot_after_call(g);
}

#define WRAP(name, params, ...) \
    void __real_qhca_engine_##name params; \
    void __wrap_qhca_engine_##name params \
    { \
        struct call c = begin(e); \
        __real_qhca_engine_##name(__VA_ARGS__); \
        end(&c); \
    }

#define WRAP_RET(type, name, params, ...) \
    type __real_qhca_engine_##name params; \
    type __wrap_qhca_engine_##name params \
    { \
        struct call c = begin(e); \
        type ret = __real_qhca_engine_##name(__VA_ARGS__); \
        end(&c); \
        return ret; \
    }

WRAP_RET(unsigned, rx_frame, (struct qhca_engine *e, uint64_t now,
                              const uint8_t *frame, size_t len),
         e, now, frame, len)
WRAP_RET(unsigned, rx_more, (struct qhca_engine *e, uint64_t now,
                             const uint8_t *frame, size_t len),
         e, now, frame, len)
WRAP_RET(bool, set_faults, (struct qhca_engine *e, uint64_t now,
                            const char *text, struct qhca_fault_error *err),
         e, now, text, err)
WRAP_RET(bool, look, (struct qhca_engine *e, uint64_t now), e, now)
WRAP_RET(bool, rest, (struct qhca_engine *e, uint64_t now), e, now)
WRAP(reset, (struct qhca_engine *e, uint64_t now), e, now)
WRAP(reg_write, (struct qhca_engine *e, uint64_t now, unsigned off,
                 uint32_t val), e, now, off, val)
WRAP(doorbell, (struct qhca_engine *e, uint64_t now, unsigned page,
                unsigned off, uint64_t val), e, now, page, off, val)
WRAP(bad_doorbell, (struct qhca_engine *e), e)
WRAP(tx_ready, (struct qhca_engine *e, uint64_t now), e, now)
WRAP(tick, (struct qhca_engine *e, uint64_t now), e, now)
WRAP(run, (struct qhca_engine *e, uint64_t now), e, now)
WRAP(set_link, (struct qhca_engine *e, uint64_t now, bool up), e, now, up)
WRAP(inject_fatal, (struct qhca_engine *e, uint64_t now), e, now)
