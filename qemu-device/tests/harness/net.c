/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the simulated network and its virtual time.
 */
#include "debug.h"
#include "net.h"
#include "story.h"
#include "switch.h"

#define MAX_NETS    16

static struct net *nets[MAX_NETS];

uint64_t test_random(uint64_t *state)
{
    return qhca_random_next(state);
}

static bool chance(struct net *n, unsigned per_mille)
{
    return per_mille && (test_random(&n->rng) >> 33) % 1000 < per_mille;
}

struct net *net_new(uint64_t seed)
{
    struct net *n = calloc(1, sizeof(*n));
    unsigned i;

    REQUIRE(n);
    for (i = 0; nets[i]; i++) {
        REQUIRE(i + 1 < MAX_NETS);
    }
    nets[i] = n;
    n->rng = seed * 2 + 1;
    n->clock = 1000000;
    n->latency = 1000;
    n->jitter = 20000;
    return n;
}

unsigned net_attach(struct net *n, struct guest *g)
{
    REQUIRE(n->num_guests < NET_MAX_PORTS);
    g->net = n;
    g->net_port = n->num_guests;
    g->clock = &n->clock;
    n->guest[n->num_guests] = g;
    return n->num_guests++;
}

/* ---- frames in flight: a heap, whose first one arrives next ---- */

static bool is_before(const struct net_frame *a, const struct net_frame *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void push(struct net *n, struct net_frame f)
{
    unsigned i = n->num_frames++, up;

    if (i == n->room) {
        n->room = n->room ? 2 * n->room : 64;
        n->frame = realloc(n->frame, n->room * sizeof(*n->frame));
        REQUIRE(n->frame);
    }
    for (; i && is_before(&f, &n->frame[up = (i - 1) / 2]); i = up) {
        n->frame[i] = n->frame[up];
    }
    n->frame[i] = f;
}

static struct net_frame pop(struct net *n)
{
    struct net_frame first = n->frame[0], last = n->frame[--n->num_frames];
    unsigned i = 0, down;

    for (; (down = 2 * i + 1) < n->num_frames; i = down) {
        down += down + 1 < n->num_frames &&
                is_before(&n->frame[down + 1], &n->frame[down]);
        if (!is_before(&n->frame[down], &last)) {
            break;
        }
        n->frame[i] = n->frame[down];
    }
    n->frame[i] = last;
    return first;
}

static const struct net_frame *next_frame(const struct net *n)
{
    return n->num_frames ? &n->frame[0] : NULL;
}

static void enqueue(struct net *n, unsigned from, unsigned to,
                    const uint8_t *frame, size_t len, uint64_t when,
                    bool halfway)
{
    struct net_frame f = {
        .when = when, .order = n->order++, .from = from, .to = to,
        .halfway = halfway, .len = len, .data = malloc(len),
    };

    REQUIRE(f.data);
    memcpy(f.data, frame, len);
    push(n, f);
}

/* To the switch, if the frame is for the machine at @to. */
static void send_half(struct net *n, unsigned from, unsigned to,
                      const uint8_t *frame, size_t len)
{
    if (!memcmp(n->guest[to]->e->port->mac, frame, 6)) {
        enqueue(n, from, to, frame, len,
                switch_in(n, from, len) + n->latency, true);
    }
}

/* From the switch. */
static void send_on(struct net *n, struct net_frame *f)
{
    uint64_t when = switch_out(n, f->to, f->data, f->len);

    if (when) {
        enqueue(n, f->from, f->to, f->data, f->len, when + n->latency,
                false);
    }
}

static void send_to(struct net *n, unsigned from, unsigned to,
                    const uint8_t *frame, size_t len)
{
    uint64_t when = n->clock + n->latency;

    if (n->switched) {
        send_half(n, from, to, frame, len);
        return;
    }
    if (chance(n, n->loss)) {
        story_say("net", from, n->clock, "loses a frame of %zu bytes", len);
        n->lost++;
        return;
    }
    if (chance(n, n->reorder)) {
        n->delayed++;
        when += (test_random(&n->rng) >> 20) % (n->jitter + 1);
        story_say("net", from, n->clock, "keeps a frame for %llu ns",
                  (unsigned long long)(when - n->clock));
    }
    enqueue(n, from, to, frame, len, when, false);
    if (chance(n, n->dup)) {
        story_say("net", from, n->clock, "doubles a frame");
        n->doubled++;
        enqueue(n, from, to, frame, len, when + n->latency / 2, false);
    }
}

static bool is_spoofed(const struct guest *g, const uint8_t *smac)
{
    return g->spoofchk && memcmp(smac, g->e->port->mac, 6);
}

void net_send(struct net *n, unsigned from, const uint8_t *frame, size_t len)
{
    uint8_t copy[MAX_FRAME];
    unsigned to;

    memcpy(copy, frame, len);
    n->sent++;
    if (n->cut || is_spoofed(n->guest[from], copy + 6) ||
        (n->filter && !n->filter(n, from, copy, len))) {
        n->lost++;
        return;
    }
    if (chance(n, n->corrupt)) {
        story_say("net", from, n->clock, "damages a frame");
        n->corrupted++;
        copy[(test_random(&n->rng) >> 20) % len] ^=
            (uint8_t)(1u << (test_random(&n->rng) >> 40) % 8);
    }
    for (to = 0; to < n->num_guests; to++) {
        if (to != from) {
            send_to(n, from, to, copy, len);
        }
    }
}

static bool takes_all(const struct net *n, const struct guest *g)
{
    return !g->net_blocked && !g->on_send &&
           qhca_engine_has_time(g->e, n->clock);
}

struct guest *net_neighbour(const struct guest *g, const uint8_t *smac,
                            const uint8_t *mac)
{
    const struct net *n = g->net;
    struct guest *to = NULL;

    if (!n || !n->one_place || is_spoofed(g, smac)) {
        return NULL;
    }
    for (unsigned i = 0; i < n->num_guests; i++) {
        if (n->guest[i] != g &&
            (n->num_guests == 2 ||
             !memcmp(n->guest[i]->e->port->mac, mac, 6))) {
            to = n->guest[i];
        }
    }
    return to && !n->cut && !n->filter && !n->num_frames &&
           takes_all(n, g) && takes_all(n, to) ? to : NULL;
}

static void deliver(struct net *n)
{
    struct net_frame f = pop(n);
    const struct net_frame *next;

    if (f.halfway) {
        send_on(n, &f);
        free(f.data);
        return;
    }
    next = next_frame(n);
    if (n->together && next && next->to == f.to && next->when <= n->clock) {
        guest_rx_more(n->guest[f.to], f.data, f.len);
    } else {
        guest_rx(n->guest[f.to], f.data, f.len);
    }
    free(f.data);
}

/* Deferred work runs before time advances; false: there was none. */
static bool run_scheduled(struct net *n)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < n->num_guests; i++) {
        if (n->guest[i]->host.todo) {
            guest_run(n->guest[i]);
            any = true;
        }
    }
    return any;
}

/* Does the next thing that is due until @end; false: nothing is. */
static bool step(struct net *n, uint64_t end)
{
    uint64_t when = UINT64_MAX;
    struct guest *timed = NULL;
    const struct net_frame *frame = next_frame(n);
    unsigned i;

    if (run_scheduled(n)) {
        return true;
    }
    if (frame) {
        when = frame->when;
    }
    for (i = 0; i < n->num_guests; i++) {
        if (n->guest[i]->host.deadline < when) {
            when = n->guest[i]->host.deadline;
            timed = n->guest[i];
        }
    }
    if (when > end || when == UINT64_MAX) {
        return false;
    }
    n->clock = when > n->clock ? when : n->clock;
    if (timed) {
        qhca_host_tick(&timed->host, n->clock);
    } else {
        deliver(n);
    }
    return true;
}

void net_run(struct net *n, uint64_t limit)
{
    uint64_t end = n->clock + limit;

    do {
        if (n->on_step) {
            n->on_step(n);
        }
    } while (step(n, end));
}

void net_advance(struct net *n, uint64_t ns)
{
    uint64_t end = n->clock + ns;

    net_run(n, ns);
    n->clock = end;
}

void net_clear(struct net *n)
{
    while (n->num_frames > 0) {
        free(n->frame[--n->num_frames].data);
    }
}

void net_cleanup(void)
{
    unsigned i;

    for (i = 0; i < MAX_NETS; i++) {
        if (nets[i]) {
            net_clear(nets[i]);
            free(nets[i]->frame);
            free(nets[i]);
            nets[i] = NULL;
        }
    }
}
