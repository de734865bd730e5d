/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: saves an engine, goes on with one that has loaded it. */
#include "debug.h"
#include "snapshot.h"

#define NOT_SAID    UINT32_MAX
#define CRC_AT      8

static unsigned every = NOT_SAID;
static uint64_t calls, count;
static uint8_t *state;
static size_t state_size;
static char why[200];

void harness_verify(enum harness_verify how)
{
    vhca_verify_every = how;
}

void snapshot_every(unsigned nth)
{
    every = nth;
}

uint64_t snapshot_count(void)
{
    return count;
}

const char *snapshot_why(void)
{
    return why;
}

uint8_t *snapshot_save(struct guest *g, size_t *len)
{
    size_t n;

    *len = 0;
    while ((n = qhca_engine_save(g->e, g->e->now, state, state_size, why,
                                 sizeof(why))) > state_size) {
        state = realloc(state, n + n / 2);
        REQUIRE(state);
        state_size = n + n / 2;
    }
    if (!n) {
        tap_note("not saved: %s", why);
        tap_fail(__FILE__, __LINE__, "a state that cannot be saved");
        return NULL;
    }
    *len = n;
    return state;
}

bool snapshot_load(struct guest *g, const uint8_t *data, size_t len)
{
    struct heap *before = heap_use(g->heap);
    bool ok = qhca_engine_load(g->e, g->e->now, data, len, why, sizeof(why));

    heap_use(before);
    return ok;
}

void snapshot_fix(uint8_t *data, size_t len)
{
    uint32_t crc;

    if (len > CRC_AT + sizeof(crc)) {
        crc = htole32(roce_crc32(0, data + CRC_AT + sizeof(crc),
                                 len - CRC_AT - sizeof(crc)));
        memcpy(data + CRC_AT, &crc, sizeof(crc));
    }
}

/* The heap of the engine that is not in use. */
static struct heap *other_heap(struct guest *g)
{
    return &g->heaps[g->heap == &g->heaps[0]];
}

/* Saves the engine and loads the spare one. False: the test has failed. */
static bool to_spare(struct guest *g)
{
    struct qhca_engine *e = g->e;
    uint64_t now = g->e->now;
    struct heap *before;
    size_t len;
    bool ok;

    if (!snapshot_save(g, &len)) {
        return false;
    }
    before = heap_use(other_heap(g));
    if (!g->spare) {
        g->spare = qhca_engine_new(&e->cfg, &guest_ops, &g->host);
        REQUIRE(g->spare);
    }
    g->spare->cfg.frames = e->cfg.frames;       /* tests change these */
    g->spare->cfg.timer_slack = e->cfg.timer_slack;
    g->spare->cfg.bandwidth = e->cfg.bandwidth;
    vhca_pace_set(&g->spare->port->pace, now, e->cfg.bandwidth);
    ok = qhca_engine_load(g->spare, now, state, len, why, sizeof(why));
    heap_use(before);
    if (!ok) {
        tap_note("not loaded: %s", why);
        tap_fail(__FILE__, __LINE__, "a state that cannot be loaded");
    }
    return ok;
}

void snapshot_check(struct guest *g)
{
    uint64_t deadline = g->host.deadline;
    unsigned todo = g->host.todo;

    to_spare(g);
    g->host.deadline = deadline;
    g->host.todo = todo;
}

void snapshot_cycle(struct guest *g)
{
    struct qhca_engine *e = g->e;

    if (!to_spare(g)) {
        return;
    }
    g->e = g->host.engine = g->spare;
    g->spare = e;
    g->heap = other_heap(g);
    count++;
}

/* An engine cannot save timers and events that a test has added. */
void snapshot_after_call(struct guest *g)
{
    const char *env;

    if (every == NOT_SAID) {
        env = getenv("QHCA_TEST_SNAPSHOT");
        every = env ? (unsigned)atoi(env) : 0;
    }
    if (every && !g->strangers && ++calls % every == 0) {
        snapshot_cycle(g);
    }
}

void snapshot_free(struct guest *g)
{
    struct heap *before = heap_use(other_heap(g));

    qhca_engine_free(g->spare);
    heap_use(before);
    free(state);
    state = NULL;
    state_size = 0;
}
